/* The benches of weir-bench, one file each. To add one: its function here, its line in bench_main.c's table. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

/* Results are the program's exit status: 0 = done, 1 = failed, 2 = wrong options. argv[0] is the bench's name. */
int bench_decode(int argc, char **argv);
int bench_decode_peers(int argc, char **argv);
int bench_engine(int argc, char **argv);
int bench_size(int argc, char **argv);
int bench_stop(int argc, char **argv);
int bench_training(int argc, char **argv);

#endif
