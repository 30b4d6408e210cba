/*
 * The raw trace of a pipeline (see weir/trace.h): two rings of records between the threads that record and the
 * observer thread. One belongs to the engine and is written with the pipeline's lock, so a record costs a few plain
 * stores. The other is for user code on any thread, and is written with the lock of user_trace.c.
 */
#ifndef ENGINE_TRACE_TRACE_RING_H
#define ENGINE_TRACE_TRACE_RING_H

#include <weir/trace.h>

#include "engine/state/run_state.h"

/* One writer at a time fills a place, then advances `tail`; the reader reads it, then advances `head`. If the ring is
   full, records are dropped and counted. */
typedef struct weir_trace_ring {
    /* the engine's ring: changed by the observer thread, with the lock, while records are lost; else immutable */
    weir_trace_record *records;
    uint64_t mask; /* number of records - 1 */
    /* Immutable: if a record is lost, nothing is added until the ring is empty and `lost` is reset. */
    bool stays_empty;
    char padding_writers[CACHE_LINE];
    bool lost;                 /* guarded by the lock of the writers */
    _Atomic uint64_t tail;     /* of the writers */
    _Atomic uint64_t limit;    /* head + number of records, as last read by a writer */
    _Atomic uint64_t num_lost; /* not reported yet */
    char padding_reader[CACHE_LINE];
    _Atomic uint64_t head; /* of the reader */
} weir_trace_ring;

typedef struct weir_trace_rings {
    weir_pipeline *next_traced; /* guarded by the lock of user_trace.c */
    bool traces_users;          /* the same: records of user code are added */
    bool is_wanted;             /* guarded by pipeline->lock: it is recorded, except in a pause */
    weir_trace_ring engine;     /* written with pipeline->lock */
    weir_trace_ring users;      /* written with the lock of user_trace.c */
    int64_t on_ns;              /* guarded by pipeline->lock: when recording last began */
    int64_t reported_ns;        /* observer thread: when a batch was last passed */
    uint64_t num_lost;          /* observer thread: records, in all */
    int64_t patience_ns;        /* observer thread: time until it must read the ring again */
    weir_trace_record *batch;   /* observer thread: the records for the observers */
    struct weir_label **spent;  /* observer thread: references of the batch, released after it */
} weir_trace_rings;

enum { TRACE_BATCH = 4096, TRACE_AHEAD = 16 };

/* False = the ring is full. With the lock of the writers. */
bool weir__trace_make_room(weir_trace_ring *ring);

/* Adds a record. False = it is lost. With the lock of the writers. */
static inline bool ring_add(weir_trace_ring *ring, const weir_trace_record *record)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail >= atomic_load_explicit(&ring->limit, memory_order_relaxed) && !weir__trace_make_room(ring))
        return false;
    __builtin_prefetch(&ring->records[(tail + TRACE_AHEAD) & ring->mask], true); /* the reader's CPU has it */
    ring->records[tail & ring->mask] = *record;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
    return true;
}

/* ---- user code (user_trace.c) --------------------------------------------------------------------------------- */

/* NULL = no pipeline may be recording a trace. */
extern _Atomic(weir_pipeline *) weir__user_traced;

/* Adds a record of a thread of the pipeline, or (NULL) of none, to the trace that gets it, if there is one. It is lost if that
   is full. A pointer in it must stay valid until the pipeline of the trace has been freed. */
void weir__user_trace_add(const weir_pipeline *own, const weir_trace_record *record);

/* Whether the pipeline's trace gets records of user code. */
void weir__user_trace_switch(weir_pipeline *pipeline, bool on);

/* Threads may add records to the pipeline's trace, or no longer do when it returns. */
void weir__user_trace_open(weir_pipeline *pipeline);
void weir__user_trace_close(weir_pipeline *pipeline);

/* In a new child process, which has no traced pipelines. */
void weir__user_trace_reset_child(void);

/* One relaxed load. */
static inline bool weir__trace_is_on(weir_pipeline *pipeline)
{
    return atomic_load_explicit(&pipeline->traces, memory_order_relaxed);
}

/* ---- what the engine records; all need the lock -------------------------------------------------------------- */

/* WEIR_TRACE_STEP, WEIR_TRACE_LAP: only a value. */
void weir__trace_mark_locked(weir_pipeline *pipeline, weir_trace_kind kind, int64_t value);

/* WEIR_TRACE_PHASE, WEIR_TRACE_MODE. label: its name; NULL = `fixed`, a static text. */
void weir__trace_place_locked(weir_pipeline *pipeline, weir_trace_kind kind, struct weir_label *label,
                              const char *fixed);

/* The consumer got an item that it had waited for. */
void weir__trace_deliver_locked(weir_pipeline *pipeline, const weir_item *item, int64_t waited_ns);

/* ---- the observer thread ------------------------------------------------------------------------------------- */

/* How long the observer thread may sleep without a call of weir__trace_deliver(). */
int64_t weir__trace_patience_ns(weir_pipeline *pipeline);

/* Passes all records to the observers. Without the lock. */
void weir__trace_deliver(weir_pipeline *pipeline);

/* ---- beginning and end --------------------------------------------------------------------------------------- */

/* Creates pipeline->trace if an observer has the function `trace`; num_records: 0 = the default. WEIR_OK or
   WEIR_ENOMEM. */
int weir__trace_init(weir_pipeline *pipeline, uint32_t num_records);
void weir__trace_destroy(weir_pipeline *pipeline);

/* Begins to record, before the pipeline has threads. */
void weir__trace_begin(weir_pipeline *pipeline);

/* Called when the pipeline has a trace: from now on it is recorded if that is wanted and there is no pause. */
void weir__trace_update(weir_pipeline *pipeline);

/* How many records the engine has added. */
static inline uint64_t weir__trace_count_locked(const weir_pipeline *pipeline)
{
    return pipeline->trace ? atomic_load_explicit(&pipeline->trace->engine.tail, memory_order_relaxed) : 0;
}

/* Recording ends; at_ns: not before the latest record of the engine. */
void weir__trace_end_locked(weir_pipeline *pipeline, int64_t at_ns);

#endif
