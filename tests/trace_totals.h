/* Reads a trace as a stranger would: checks its format strictly, and adds up what its events say. */
#ifndef TESTS_TRACE_TOTALS_H
#define TESTS_TRACE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOTALS_MAX_TRACKS = 1024, TOTALS_NAME = 160, TOTALS_MAX_OPEN = 4096 };

/* A stage, all its slots together; or a queue. Times in ns. */
typedef struct trace_total {
    char name[TOTALS_NAME];
    int64_t busy_ns, wait_in_ns, ended_ns, wait_thread_ns, wait_turn_ns, wait_out_ns;
    uint64_t num_tasks, num_failures, num_skipped;
    int64_t level, level_since_ns, occupied_ns, max_level; /* of a queue, in items */
    double depth_ns;
} trace_total;

/* A span that has begun and not ended. */
typedef struct trace_open {
    int64_t track, begin_ns, inner_ns;
    trace_total *total;
    int64_t *sum_ns;
} trace_open;

typedef struct trace_totals {
    struct {
        int64_t id;
        char name[TOTALS_NAME];
    } tracks[TOTALS_MAX_TRACKS];
    size_t num_tracks;
    trace_total totals[TOTALS_MAX_TRACKS];
    size_t num_totals;
    trace_open open[TOTALS_MAX_OPEN];
    size_t num_open;
    int64_t end_ns; /* of the last event */
    uint64_t num_events, num_flow_begins, num_flow_ends, num_labels, num_lost;
    bool is_cut;
} trace_totals;

/* False = it cannot be read. */
bool trace_totals_read(const char *path, trace_totals *totals);

/* All zeros if there is none. */
const trace_total *trace_totals_of(const trace_totals *totals, const char *name);

/* Whether the text is JSON (RFC 8259) to the last byte, and each element of the array an event that viewers accept. NULL =
   yes, otherwise what is wrong. */
const char *trace_format_mistake(const char *text, size_t length);

#endif
