/*
 * The data of an observer call, kept until it is written: a copy in one allocation, with encoded histograms.
 */
#ifndef STATS_RECORD_RECORD_H
#define STATS_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/observer.h>
#include <weir/query.h>

typedef enum weir_record_entry_kind {
    WEIR_ENTRY_RUN_START,
    WEIR_ENTRY_LAP,
    WEIR_ENTRY_RECORD, /* a failure, an event or an item; elsewhere any, as a copy */
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
        weir_record record; /* the three begin alike: id, run_id, unix_ns */
        weir_run_end run_end;
    };
} weir_record_entry;

/* What gets the engine's reports as the records that a query would return: the first member of such an observer. */
typedef struct weir_record_taker {
    void (*take)(void *self,
                 const weir_record *record); /* a lap, failure or event; texts and histograms are the engine's */
} weir_record_taker;

/* An observer with this self, whose functions for laps, failures and events convert them; the others are NULL. */
weir_observer weir__record_observer(weir_record_taker *self);

/* Each copies its arguments; NULL = out of memory. Free with free(). */
weir_record_entry *weir__record_entry_of_run_start(const weir_run_info *info);
weir_record_entry *weir__record_entry_of_lap(const weir_lap_record *lap);
weir_record_entry *weir__record_entry_of_record(const weir_record *record); /* any with columns in record_tables.h */
weir_record_entry *weir__record_entry_of_run_end(const weir_run_end *end);

/* The start and the end of a run, which the other entries depend on. */
bool weir__record_entry_is_boundary(const weir_record_entry *entry);

#endif
