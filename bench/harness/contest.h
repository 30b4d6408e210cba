/*
 * Compares several ways to do the same job. Runs are interleaved: each round runs each of them once, in alternating
 * order, each run in a separate process, so that background load affects all alike. A ratio compares two runs of the
 * same round.
 */
#ifndef BENCH_HARNESS_CONTEST_H
#define BENCH_HARNESS_CONTEST_H

#include "bench/harness/measure.h"

enum { MAX_RUNS = 1000 };

/* The result of one run. The work sets the first three fields. It sets others (0 = not set) only if it has better
   values than the resource usage of the process. A larger struct may begin with this one. */
typedef struct contest_result {
    double clips, frames, failures;
    double wall_s, cpu_s, peak_bytes;
} contest_result;

typedef struct contest_entry {
    const char *name;
    bench_work *work; /* NULL = not included */
    const void *argument;
} contest_entry;

typedef struct contest {
    const char *name; /* for the progress on a terminal */
    const contest_entry *entries;
    size_t num_entries;
    uint32_t num_rounds;
    size_t result_bytes;                                    /* size of the result struct (0 = a contest_result) */
    void (*see)(void *self, size_t entry, const void *run); /* called for each result (NULL = not called) */
    void *self;
    contest_result *results; /* [num_rounds][num_entries], allocated by contest_run(); the caller frees it */
} contest;

/* Returns 0, or -1 after an error message on stderr. */
int contest_run(contest *self);

typedef double contest_metric(const contest_result *result);
contest_metric contest_clips_per_s, contest_clips_per_cpu_s, contest_cpu_s, contest_cpu_s_per_clip,
    contest_peak_bytes;

#define CONTEST_NONE SIZE_MAX

/* Over all rounds: the metric of an entry, or its ratio to that of the entry `over` in the same round. */
bench_spread contest_spread(const contest *self, size_t entry, contest_metric *metric, size_t over);

/* The result of an entry in the last round. */
const contest_result *contest_last(const contest *self, size_t entry);

#endif
