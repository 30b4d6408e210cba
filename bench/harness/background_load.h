/* How much of the machine others have used meanwhile: figures of speed are worth little where it is much. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

#include "report.h"

typedef struct bench_others {
    double idle_s; /* of all CPUs together, since the start of the machine; negative = unknown */
    double own_s;  /* CPU time of this process and its children that have ended */
    double wall_s;
} bench_others;

bench_others bench_others_now(void);

/* Prints which share of all CPUs' time was neither idle nor this process's, nor its children's, since then, and adds it to
   the report's machine. Says nothing where the system does not tell. */
void bench_tell_others(bench_report *report, const bench_others *start);

#endif
