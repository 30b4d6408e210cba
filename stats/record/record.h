/*
 * The data of an observer call, kept until it is written: a copy in one allocation, with encoded histograms.
 */
#ifndef WEIR_RECORD_ENTRY_H
#define WEIR_RECORD_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/cost.h>
#include <weir/observer.h>
#include <weir/query.h>

typedef enum weir_record_entry_kind {
    WEIR_ENTRY_RUN_START,
    WEIR_ENTRY_LAP,
    WEIR_ENTRY_FAILURE,
    WEIR_ENTRY_EVENT,
    WEIR_ENTRY_ITEM,
    WEIR_ENTRY_RUN_END,
} weir_record_entry_kind;

typedef struct weir_stored_histogram {
    const void *bytes;
    size_t size_bytes;
} weir_stored_histogram;

typedef struct weir_lap_entry {
    weir_lap_record record; /* without its histograms */
    weir_stored_histogram histograms[WEIR_MAX_HISTOGRAMS];
} weir_lap_entry;

/* The cost of one item. */
typedef struct weir_item_entry {
    const char *name; /* of the stage */
    uint64_t seq;
    const char *label;
    int64_t elapsed_ns;
    const char *chosen; /* why it is recorded: a literal */
    weir_item_cost cost;
} weir_item_entry;

typedef struct weir_record_entry {
    struct weir_record_entry *next; /* in the buffer, then in the batch */
    struct weir_run *run;           /* the run that it belongs to; see insert.h */
    int64_t arrived_ns;             /* weir_clock_ns() */
    int64_t unix_ns;                /* when it happened */
    bool refused;                   /* the database will never accept it: do not retry */
    weir_record_entry_kind kind;
    union {
        weir_run_info run_start;
        weir_lap_entry lap;
        weir_failure failure;
        weir_event event;
        weir_item_entry item;
        weir_run_end run_end;
    };
} weir_record_entry;

/* Converts the engine's report of a lap to the record that a query would return; texts and histograms belong to the
   engine. */
weir_lap_record weir_record_of_stage_lap(const weir_stage_lap *lap);
weir_lap_record weir_record_of_queue_lap(const weir_queue_lap *lap);
weir_lap_record weir_record_of_pool_lap(const weir_pool_lap *lap);
weir_lap_record weir_record_of_process_lap(const weir_process_lap *lap);
weir_lap_record weir_record_of_machine_lap(const weir_machine_lap *lap);

/* Each copies its arguments; NULL = out of memory. Free with free(). */
weir_record_entry *weir_record_entry_of_run_start(const weir_run_info *info);
weir_record_entry *weir_record_entry_of_lap(const weir_lap_record *lap);
weir_record_entry *weir_record_entry_of_failure(const weir_failure *failure);
weir_record_entry *weir_record_entry_of_event(const weir_event *event);
weir_record_entry *weir_record_entry_of_item(const weir_item_entry *item, int64_t unix_ns);
weir_record_entry *weir_record_entry_of_run_end(const weir_run_end *end);

/* The start and the end of a run, which the other entries depend on. */
bool weir_record_entry_is_boundary(const weir_record_entry *entry);

#endif
