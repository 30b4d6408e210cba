/* The benches of weir-bench, one file each. To add one, declare its function here and add a line to the table in
   bench_main.c. */
#ifndef BENCH_CLI_BENCH_H
#define BENCH_CLI_BENCH_H

/* Return values are the exit status of the program: 0 = done, 1 = failed, 2 = wrong options. argv[0] is the name
   of the bench. */
int bench_costs(int argc, char **argv);
int bench_decode(int argc, char **argv);
int bench_decode_peers(int argc, char **argv);
int bench_draws(int argc, char **argv);
int bench_engine(int argc, char **argv);
int bench_recording(int argc, char **argv);
int bench_stop(int argc, char **argv);
int bench_verdict(int argc, char **argv);

#endif
