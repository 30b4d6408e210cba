/* How much of the machine others have used meanwhile: figures of speed are worth little where it is much. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

typedef struct bench_others {
    double idle_s; /* of all CPUs together, since the start of the machine; negative = unknown */
    double own_s;  /* CPU time of this process and its children that have ended */
    double wall_s;
} bench_others;

bench_others bench_others_now(void);

/* The share of all CPUs' time that was neither idle nor this process's, nor its children's, since then: 0 to 1;
   negative = the system does not tell. */
double bench_others_since(const bench_others *start);

#endif
