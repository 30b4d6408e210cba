/*
 * How spans and counters get into laps and traces. Each thread adds its spans to cells of its own, one for each name.
 * It has a lock of its own, which is free except while its figures are collected. span_collect.c moves the cells to
 * the process's sums and to those of the pipelines. user_trace.c says where records for traces go.
 *
 * Locks: the registry's lock, then that of a thread or of a counter. None of them is taken with the lock of a
 * pipeline held. No other lock is taken with that of a thread or of a counter held. The lock of user_trace.c is taken
 * last. fork() takes the registry's lock, so that a child can record, too. It begins without the other threads and
 * without pipelines.
 */
#ifndef ENGINE_SPANS_SPANS_H
#define ENGINE_SPANS_SPANS_H

#include <weir/span.h>

#include <sched.h>

#include "engine/state/run_state.h"
#include "engine/trace/trace_ring.h"

enum { SPAN_MAX_DEPTH = 128, SPAN_PREFIX_BYTES = 101, SPAN_PREFIX_LEVELS = 16, SPAN_CACHED_NAMES = 64 };

typedef enum span_kind {
    SPAN_KIND_SPAN,
    SPAN_KIND_FRAME,
    SPAN_KIND_MARKER,
    SPAN_KIND_LEVEL,
    SPAN_KIND_TOTAL
} span_kind;

struct weir_span_name {
    /* immutable after init */
    char *text; /* "category/name" */
    size_t category_bytes;
    uint32_t id;
    struct weir_counter *counter; /* of a counter's value; NULL = none */
    uint32_t value;               /* which of its values */

    atomic_int kind;
    weir_span_token frame; /* the open one; guarded by the registry's lock */
};

/* The figures of one lap. An empty cell (count 0) may become that of another lap. */
typedef struct span_cell {
    struct span_cell *next;
    uint64_t lap_id;
    uint64_t count;
    int64_t total_ns, min_ns, max_ns;
    weir_live_histogram times;
} span_cell;

/* The start of a span that is not recorded. */
#define SPAN_NOT_RECORDED INT64_MIN

typedef struct span_thread {
    /* immutable after init */
    weir_pipeline *pipeline; /* whose thread it is; NULL = none */
    int tid;                 /* in the kernel */

    atomic_bool locked; /* span_lock() */

    /* guarded by span_lock(); this thread alone changes depth and open, so it reads them without */
    span_cell *cells[WEIR_SPAN_MAX_NAMES]; /* of each name: first the latest lap's */
    uint32_t depth;
    struct {
        weir_span_name *name;
        int64_t start;
    } open[SPAN_MAX_DEPTH];

    /* guarded by the registry's lock */
    struct span_thread *next, **link;

    /* this thread only */
    int64_t reported_ns; /* the time of its latest record in a trace */
    uint32_t prefix_levels;
    char prefixes[SPAN_PREFIX_LEVELS * SPAN_PREFIX_BYTES];
    struct {
        uint64_t level_id; /* 0 = empty */
        weir_span_name *name, *prefixed;
    } cache[SPAN_CACHED_NAMES];
    uint64_t level_id, next_level_id; /* of the current prefix: unique in this thread */
    uint64_t level_ids[SPAN_PREFIX_LEVELS];
} span_thread;

/* The sums of one name: of the process, or of a lap of a pipeline that has not been taken. */
typedef struct span_sum {
    struct span_sum *next;
    uint64_t lap_id; /* 0 = of the process */
    weir_span_metrics metrics;
    weir_histogram times;
} span_sum;

/* The sums of one pipeline. Guarded by the registry's lock. */
typedef struct weir_span_store {
    weir_pipeline *pipeline;
    struct weir_span_store *next; /* younger */
    span_sum *sums[WEIR_SPAN_MAX_NAMES];
    uint64_t refused_reported;
} weir_span_store;

/* span.c */

/* The clock of spans: it stands still while recording is paused. */
int64_t weir__span_now_ns(void);
int64_t weir__span_since_ns(int64_t start_ns); /* at least 0: the clocks of two threads differ by some ns */
int64_t weir__span_clock_ns(int64_t span_ns);  /* as weir_clock_ns(); exact for times since the last pause */
bool weir__span_is_paused(void);

/* With the registry's lock: the clock stops, or goes on. */
void weir__span_clock_pause_locked(bool is_paused);

/* The spans of the calling thread; NULL = out of memory. */
span_thread *weir__span_this_thread(void);

/* In a new child process, with the registry's lock: this thread, the only one left; NULL = it has recorded nothing. */
span_thread *weir__span_thread_of_child(void);

/* The lock of a thread is held for some ns, or by a collector for one name's figures at a time (some µs). Locking and
   unlocking takes 6 ns, a pthread mutex 13, and a span does it twice. */
static inline void span_lock(span_thread *thread)
{
    while (atomic_exchange_explicit(&thread->locked, true, memory_order_acquire))
        sched_yield();
}

static inline void span_unlock(span_thread *thread)
{
    atomic_store_explicit(&thread->locked, false, memory_order_release);
}

/* One relaxed load. */
static inline bool span_is_traced(void)
{
    return atomic_load_explicit(&weir__user_traced, memory_order_relaxed);
}

/* weir_trace_record.detail of spans that may overlap others */
enum { SPAN_OVERLAPS = 1, SPAN_IS_FRAME = 2 };

/* Adds a record to the trace that gets those of this thread, if there is one; times do not go back. `value`, `number`,
   `detail`: see weir/trace.h; the thread's id is filled in, except for counters. */
void weir__span_trace(span_thread *thread, const weir_span_name *name, weir_trace_record record);

/* span_names.c. All names so far; *count may grow. */
weir_span_name *const *weir__span_names(uint32_t *count);
const char *weir__span_kind_name(const weir_span_name *name);
weir_span_name *weir__span_name_with_prefix(const weir_span_name *name, const char *prefix);
weir_span_name *weir__span_name_of_value_locked(const char *category, const char *name, const char *value,
                                                struct weir_counter *counter, uint32_t which);
uint64_t weir__span_names_refused(void); /* how often, because there were too many */
void weir__span_names_unlock(void);      /* the registry; and logs the first name that was refused */

/* span_collect.c */
void weir__spans_lock(void);
void weir__spans_unlock(void);
extern span_thread *weir__span_threads; /* guarded by the registry's lock */
void weir__span_thread_add(span_thread *thread);
void weir__span_thread_remove(span_thread *thread); /* and frees it */

/* Starts to collect for the pipeline's laps, if an observer wants them. WEIR_OK or WEIR_ENOMEM. */
int weir__span_store_open(weir_pipeline *pipeline);
void weir__span_store_close(weir_pipeline *pipeline);

/* With the pipeline's lock: spans that end from now on are of this lap. */
void weir__span_set_lap(weir_pipeline *pipeline, uint64_t lap_id);

/* The lap to which a span would belong that ends now, on a thread of this pipeline (NULL = of no pipeline). Safe in a
   signal handler. */
uint64_t weir__span_lap_of_thread(const weir_pipeline *pipeline);

/* "weir/step"; NULL = refused. */
weir_span_name *weir__span_name_of_steps(void);

/* Adds a step to the sums of the process; negative = none. */
void weir__span_add_step(int64_t step_ns);

/* Whether there is anything to take. */
bool weir__span_store_has_more(const weir_pipeline *pipeline);

/* Gets the sum of a span in a lap, or of a counter since the last lap (lap_id 0); metrics is a weir_span_metrics or
   a weir_counter_metrics. False = a sum of a span remains for the next lap. */
typedef bool weir__span_taker(void *self, const weir_span_name *name, uint64_t lap_id, const void *metrics);

/* Passes all sums to `take`, with the registry's lock. Returns how often a name was refused since the last call. */
uint64_t weir__span_store_take(const weir_pipeline *pipeline, weir__span_taker *take, void *self);

/* Collects, then calls `each` for the sums of the process; metrics is a weir_span_metrics or a weir_counter_metrics. */
void weir__span_totals_visit(void (*each)(void *self, const weir_span_name *name, const void *metrics), void *self,
                             bool reset);

/* counter.c. In a new child process, with the registry's lock: threads that are only in the parent hold no counter. */
void weir__counters_reset_child(void);

/* SPAN_KIND_LEVEL or SPAN_KIND_TOTAL. */
span_kind weir__counter_kind(const struct weir_counter *counter);

/* Copies what a value has measured since the last lap (`of_lap`) or reset, and begins anew. False = it was
   never set. */
bool weir__counter_take(const weir_span_name *name, bool of_lap, bool restart, weir_counter_metrics *metrics);

#endif
