/*
 * The raw trace of a run: what happened when. A record has 32 bytes. There is one for every change of a slot's state
 * and every item put into or taken out of a queue. Every task, step and phase is a record, too. Records are passed to
 * weir_observer.trace in batches. Recording is on from the start if an observer has that function;
 * weir_pipeline_trace() switches it on or off at any time.
 *
 * Records are stored in a ring of fixed size, which the observer thread reads at least every 10 ms. The pipeline never
 * waits for the observer thread. If the ring is full, records are lost until it has been emptied. Then recording begins
 * again, with a WEIR_TRACE_ON that contains the number of lost records.
 *
 * Order: records of the engine are in the order of the events, and so are their times. There is one exception: the
 * STATE that follows RUNNING has the time at which the call of the operation ended. This time may be earlier than the
 * records before it. Records of user code (spans, counters, markers) are in order for each thread. They come before
 * all records of the engine with a later time.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_pipeline;

/* Values never change meaning between versions. "queue": index in weir_run_info.queues. */
typedef enum weir_trace_kind {
    WEIR_TRACE_NONE = 0,
    /* Recording begins. value: number of records lost since the previous record. Followed by one STATE for each slot,
       one LABEL for each label in a slot or a queue, one LEVEL for each queue. */
    WEIR_TRACE_ON = 1,
    WEIR_TRACE_OFF = 2,   /* recording ends, and everything that is open ends with it */
    WEIR_TRACE_STATE = 3, /* a slot enters detail (weir_trace_state). value: when its previous state began, if that is
                             later than the record that said so (see WEIR_TRACE_RUNNING), else 0 */
    /* a task made a result (WEIR_MORE) or ended. detail: its status; value: bytes of its result */
    WEIR_TRACE_TASK = 4,
    WEIR_TRACE_PUT = 5,      /* an item was put into queue `node`. number: its items, value: its bytes, from now on */
    WEIR_TRACE_GET = 6,      /* an item was taken from queue `node`; number and value as above. detail: 1 = dropped */
    WEIR_TRACE_PASS = 7,     /* an item passed queue `node` immediately: the consumer was waiting */
    WEIR_TRACE_LEVEL = 8,    /* the level of queue `node`; number and value as above */
    WEIR_TRACE_LABEL = 9,    /* the label of an item, before the item is put. value: (intptr_t) of its text */
    WEIR_TRACE_EPOCH = 10,   /* the end of an epoch was put into queue `node` */
    WEIR_TRACE_DELIVER = 11, /* the consumer got an item. value: how long it had waited */
    WEIR_TRACE_STEP = 12,    /* weir_pipeline_mark_step(). value: the step, or WEIR_NO_STEP */
    WEIR_TRACE_PHASE = 13,   /* the consumer's phase begins. value: (intptr_t) of its name */
    WEIR_TRACE_LAP = 14,     /* laps end; or, in a long interval, are taken (once a minute) */
    /* a part of the task whose TASK follows. item: (uintptr_t) of its name; value: its total time since the previous result
       (weir_task_set_part()) */
    WEIR_TRACE_PART = 15,
    WEIR_TRACE_MODE = 16, /* the consumer's mode begins. value: (intptr_t) of its name */

    /*
     * From user code, see <weir/span.h>. item: (uintptr_t) of the text "category/name"; node: bytes of the category;
     * number: the thread's id in the kernel
     */
    WEIR_TRACE_NAME = 32, /* not used in records: the first of these kinds */
    /* A span or frame begins or ends. detail: 0 = it is inside the open spans of its thread, and value is the number of
       spans around it. 1 = it may overlap others, and value is its id. 2 = a frame: as 1, but number is the last 32 bits
       of the frame's number, not the thread. For spans that are open when recording is switched on or off, one of the two
       records is missing. */
    WEIR_TRACE_SPAN_BEGIN = 33,
    WEIR_TRACE_SPAN_END = 34,
    /* A value of a counter was set. value is the bits of the double. number is not the thread, but the bytes of
       "category/name" in "category/name/value" (0 = the counter has a single value, without a name) */
    WEIR_TRACE_COUNTER = 35,
    WEIR_TRACE_MARKER = 36, /* detail: weir_marker_scope */
} weir_trace_kind;

/* The state of a slot. In parentheses: the metric that contains its time. */
typedef enum weir_trace_state {
    WEIR_TRACE_WAITING_IN = 0,     /* for an input (wait_in) */
    WEIR_TRACE_WAITING_THREAD = 1, /* for a thread of its pool (wait_thread) */
    /* A thread has taken it (busy). The thread starts a little later. The record of the next state contains the start
       time; until then the slot was waiting for the thread. */
    WEIR_TRACE_RUNNING = 2,
    WEIR_TRACE_PENDING = 3,      /* WEIR_PENDING: completed elsewhere (busy) */
    WEIR_TRACE_WAITING_TURN = 4, /* for earlier results (wait_turn) */
    WEIR_TRACE_WAITING_OUT = 5,  /* for room (wait_out) */
    WEIR_TRACE_RETIRED = 6,      /* surplus after the concurrency was lowered: the slot does not exist now */
    WEIR_TRACE_ENDED = 7,        /* its node has ended (ended) */
    WEIR_TRACE_STATES = 8,
} weir_trace_state;

/* Bits of weir_trace_record.number, besides the number of the slot. */
#define WEIR_TRACE_SLOT      UINT32_C(0xffff)  /* the number of the slot, from 0 */
#define WEIR_TRACE_FLUSH     UINT32_C(0x10000) /* the task flushes the kept items */
#define WEIR_TRACE_DROPPED   UINT32_C(0x20000) /* the task counts in no metric: it was dropped at stop or failure */
#define WEIR_TRACE_LIFECYCLE UINT32_C(0x40000) /* not a slot: runs stage hooks, passes on ends of epochs */

typedef struct weir_trace_record {
    int64_t time_ns; /* weir_clock_ns() */
    uint64_t item;   /* which item; see below */
    int64_t value;
    uint32_t number; /* STATE, TASK: the slot and WEIR_TRACE_… bits; PUT, GET, LEVEL: items */
    uint16_t node;   /* index in weir_run_info.stages, or of a queue in weir_run_info.queues */
    int8_t detail;
    uint8_t kind; /* weir_trace_kind */
} weir_trace_record;

/* The item: its source, epoch and number. Exact below 256 sources, 65536 epochs and 2^40 items in an epoch. */
static inline uint64_t weir_trace_item(uint32_t source, uint64_t epoch, uint64_t seq)
{
    return (source & UINT64_C(0xff)) << 56 | (epoch & 0xffff) << 40 | (seq & UINT64_C(0xffffffffff));
}

static inline uint64_t weir_trace_seq(uint64_t item)
{
    return item & UINT64_C(0xffffffffff);
}

static inline uint64_t weir_trace_epoch(uint64_t item)
{
    return item >> 40 & 0xffff;
}

static inline uint64_t weir_trace_source(uint64_t item)
{
    return item >> 56;
}

/* Records for an observer. While recording is on, a batch is passed at least once a second. Texts that records point to
   are only valid during the call, except for names of user code, which live as long as the process. */
typedef struct weir_trace_batch {
    const weir_trace_record *records;
    size_t num_records;
    uint64_t num_dropped; /* records of user code lost since the last batch; records of the engine: see ON */
} weir_trace_batch;

/*
 * Switches recording on or off; does nothing if it already is. Open states end when it is switched off, and are
 * recorded again when it is switched on. Any thread, also in tasks, hooks and observers. WEIR_OK; WEIR_EINVAL;
 * WEIR_ENOMEM; WEIR_EUNSUPPORTED if no observer has `trace` or the pipeline has more than 65536 stages.
 */
WEIR_API int weir_pipeline_trace(struct weir_pipeline *pipeline, bool on);

#ifdef __cplusplus
}
#endif

#endif
