/* Several ways to do the same job, run in turn: round r runs each of them once, there and back, each run in a process of its
   own, so that what else the machine does meets all alike. A ratio is one of two runs of the same round. */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "measure.h"

enum { MAX_RUNS = 1000 };

/* What one run came to. The work fills the first three, and the others only if it knows better than the process's own
   usage. A larger struct may begin with this one. */
typedef struct contest_result {
    double clips, frames, failures;
    double wall_s, cpu_s, peak_bytes;
} contest_result;

typedef struct contest_entry {
    const char *name;
    bench_work *work; /* NULL = it does not take part */
    const void *argument;
} contest_entry;

typedef struct contest {
    const char *name; /* for the progress on a terminal */
    const contest_entry *entries;
    size_t num_entries;
    uint32_t num_rounds;
    size_t result_bytes; /* of the struct that the works fill (0 = a contest_result) */
    void (*see)(void *self, size_t entry, const void *run); /* each result (NULL = nobody looks) */
    void *self;
    contest_result *results; /* [num_rounds][num_entries], made by contest_run(); to be freed */
} contest;

/* 0, or -1 after a line on stderr. */
int contest_run(contest *self);

typedef double contest_metric(const contest_result *result);
contest_metric contest_clips_per_s, contest_clips_per_cpu_s, contest_cpu_s, contest_cpu_s_per_clip,
    contest_peak_bytes;

#define CONTEST_NONE SIZE_MAX

/* Over all rounds: an entry's metric, or its ratio to that of the entry `over` in the same round. */
bench_spread contest_spread(const contest *self, size_t entry, contest_metric *metric, size_t over);

/* An entry's result in the last round. */
const contest_result *contest_last(const contest *self, size_t entry);

#endif
