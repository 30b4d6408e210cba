/*
 * What the engine reports, as the records that a query would return; and such a record, kept until it is written: a copy
 * in one allocation, with encoded histograms.
 */
#ifndef STATS_RECORD_RECORD_H
#define STATS_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/observer.h>
#include <weir/query.h>

#include "common/sibling.h"

typedef struct weir_stored_histogram {
    const void *bytes;
    size_t size_bytes;
} weir_stored_histogram;

typedef struct weir_record_entry {
    weir_record record;                                    /* first; without its histograms */
    struct weir_record_entry *next;                        /* in the buffer, then in the batch */
    struct weir_run *run;                                  /* the run that it belongs to; see insert.h */
    int64_t arrived_ns;                                    /* weir_clock_ns() */
    bool refused;                                          /* the database will never accept it: do not retry */
    bool ends_roll;                                        /* rolls before `roll` are complete; see rolls.h */
    int64_t roll;                                          /* of a lap: the number of its roll */
    weir_stored_histogram histograms[WEIR_MAX_HISTOGRAMS]; /* of a lap */
} weir_record_entry;

/*
 * What gets the engine's reports as records: the first member of such an observer. A run comes when it starts, with its
 * start and threads, followed by its stages; and when it ends, with its end. Texts and histograms are the engine's; texts
 * may be NULL.
 */
typedef struct weir_record_taker {
    void (*take)(void *self, const weir_record *record);
} weir_record_taker;

/* An observer with this self, whose functions for runs, laps, failures and events convert them; the others are NULL. */
WEIR_SIBLING_API weir_observer weir__record_observer(weir_record_taker *self);

/* The position of a lap. Its texts are those of the lap. */
weir_record_position weir__record_position_of(const weir_lap *lap);

/* What is stored of the address of an identity: "" if it is the label. */
const char *weir__stored_identity(const weir_identity *identity, const char *label);

/* A copy of any record with columns in record_tables.h; NULL = out of memory. Free with free(). */
WEIR_SIBLING_API weir_record_entry *weir__record_entry_of(const weir_record *record);

static inline int64_t weir__at_most_int64(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Is it one that other entries depend on? That is the start, the stages and the end of a run, and the functions of
   stacks. */
bool weir__record_entry_is_boundary(const weir_record_entry *entry);

#endif
