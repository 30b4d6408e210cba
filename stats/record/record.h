/*
 * What an observer call told, kept until it is written: a copy in one piece of memory, with percentiles taken and
 * histograms in their stored form.
 */
#ifndef WEIR_ENTRY_H
#define WEIR_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/cost.h>
#include <weir/observer.h>

typedef enum weir_entry_kind {
    WEIR_ENTRY_RUN_START,
    WEIR_ENTRY_STAGE_LAP,
    WEIR_ENTRY_QUEUE_LAP,
    WEIR_ENTRY_FAILURE,
    WEIR_ENTRY_EVENT,
    WEIR_ENTRY_ITEM,
    WEIR_ENTRY_RUN_END,
} weir_entry_kind;

typedef struct weir_spread {
    int64_t p50_ns;
    int64_t p90_ns;
    int64_t p99_ns;
    const void *encoded; /* the stored form of the histogram */
    size_t encoded_bytes;
} weir_spread;

typedef struct weir_stage_entry {
    weir_lap time;
    weir_stage_lap lap; /* without its histogram */
    weir_spread run_times;
} weir_stage_entry;

typedef struct weir_queue_entry {
    weir_lap time;
    weir_queue_lap lap; /* without its histograms */
    weir_spread put_times;
    weir_spread get_times;
} weir_queue_entry;

/* What one item cost. */
typedef struct weir_item_entry {
    const char *name; /* of the stage */
    uint64_t seq;
    const char *label;
    int64_t elapsed_ns;
    const char *chosen; /* why it is recorded: a literal */
    weir_item_cost cost;
} weir_item_entry;

typedef struct weir_entry {
    struct weir_entry *next; /* in the buffer, later in the batch */
    struct weir_run *run;    /* which it belongs to; see rows.h */
    int64_t arrived_ns;      /* weir_clock_ns() */
    int64_t unix_ns;         /* when it happened */
    bool refused;            /* the database will never take it: do not try again */
    weir_entry_kind kind;
    union {
        weir_run_info run_start;
        weir_stage_entry stage;
        weir_queue_entry queue;
        weir_failure failure;
        weir_event event;
        weir_item_entry item;
        weir_run_end run_end;
    };
} weir_entry;

/* Each copies what it is given; NULL = out of memory. Free with free(). */
weir_entry *weir_entry_of_run_start(const weir_run_info *info);
weir_entry *weir_entry_of_stage_lap(const weir_stage_lap *lap);
weir_entry *weir_entry_of_queue_lap(const weir_queue_lap *lap);
weir_entry *weir_entry_of_failure(const weir_failure *failure);
weir_entry *weir_entry_of_event(const weir_event *event);
weir_entry *weir_entry_of_item(const weir_item_entry *item, int64_t unix_ns);
weir_entry *weir_entry_of_run_end(const weir_run_end *end);

/* The start and the end of a run: what the other entries hang on. */
bool weir_entry_is_boundary(const weir_entry *entry);

#endif
