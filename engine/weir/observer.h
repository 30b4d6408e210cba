/*
 * What the engine reports about a run. An observer is a table of functions. All of them except attach(), detach() and
 * mark() are called on a dedicated thread of the pipeline, never concurrently and never under a lock.
 *
 * Blocking: an observer may block as long as it needs. Scheduling, deadlines, stop and the ends of laps do not wait for it.
 * Only weir_pipeline_free() waits, until the last call has returned. Meanwhile the engine buffers up to 64 laps. Further laps
 * are joined to the newest one of their mode and phase (weir_lap.num_joined), so sums stay exact. It also buffers up to 16 MiB
 * of failures and events. What does not fit is counted. As soon as there is room, an event "dropped" and a log line report the
 * number.
 *
 * Pointers inside the structs are valid during the call only, except names of stages, queues and pools, which are valid
 * until the pipeline is freed.
 */
#ifndef WEIR_OBSERVER_H
#define WEIR_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/metrics.h>
#include <weir/status.h>
#include <weir/trace.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the pipeline was built; one entry for each source, stage, route, merge and sink. */
typedef struct weir_stage_info {
    const char *name;         /* "0:1:load[10]"; source "0:0:src", sink "0:2:sink" */
    const char *queue_name;   /* "0:1:load[10]_queue"; of a route: the queue of its first branch */
    const char *kind;         /* "source", "stage", "route", "merge" or "sink" */
    uint32_t concurrency;     /* slots as built */
    uint32_t queue_items;     /* capacity of its output queue */
    uint64_t queue_bytes;     /* 0 = unlimited */
    const char *output_order; /* "completion" or "input" */
    const char *inputs;       /* the queues that it takes from, separated by spaces; "" = none */
    const char *merge_order;  /* "" = one input; "arrival", "round_robin", "weighted 3 1", "random 3 1" */
    uint64_t threads;         /* private threads; 0 = it uses the pipeline's pool */
    /* of a route: items that it may set aside (weir_route_config.look_ahead_items); 0 = none */
    uint32_t look_ahead_items;
} weir_stage_info;

/* One queue; a route has several, one for each branch. */
typedef struct weir_queue_info {
    const char *name;
    uint32_t producer; /* index in weir_run_info.stages */
    uint32_t capacity; /* items */
} weir_queue_info;

typedef struct weir_run_info {
    int64_t start_unix_ns;
    uint32_t pipeline_id;
    uint32_t threads;              /* in all pools together */
    const weir_stage_info *stages; /* upstream first */
    uint32_t num_stages;
    int64_t start_ns; /* the start by weir_clock_ns() */
    const weir_queue_info *queues;
    uint32_t num_queues;
} weir_run_info;

/*
 * The position of the consumer during a lap, which has one mode and one phase. The phase is what weir_pipeline_mark_phase()
 * has set. Without phase marks, it is "startup" until the first step is marked, then "loop", and "finish" once the sources
 * have ended. "" means that the lap ended before any mark; if marks follow, it belongs to the start-up.
 *
 * A mode or phase that has lasted for a second ends the interval. Those that change more often share an interval: each mode
 * and phase has one lap in it, for all the time that belongs to it. The laps of an interval follow each other, in the
 * order in which their modes and phases ended for the last time. So their sums and lengths are exact. Their times are exact if each
 * mode and phase came once.
 */
typedef struct weir_lap_position {
    const char *mode; /* "" = none was marked */
    const char *phase;
    int64_t first_step, last_step; /* the steps that began in it, and the one that was open; last < first = none */
} weir_lap_position;

/* Instead of a step: none. The mark ends the step before; what follows belongs to none. */
#define WEIR_NO_STEP INT64_MIN

/*
 * What was measured in one interval (weir_pipeline_options.stats_interval_ns) while the consumer was in one mode and phase;
 * without marks, each interval is one lap. If the interval is longer than a second, the first lap ends after one second.
 *
 * The last lap is passed on when weir_pipeline_free() has begun. It ends there if the consumer has reported anything (steps,
 * phases, spans, counters) after the last item was delivered. Otherwise it ended with the work, so the figures do not depend
 * on how long a pipeline is kept. If the interval ends between the two, the lap that ends with the work is passed on then.
 */
typedef struct weir_lap {
    uint64_t number; /* from 0 */
    /* the end of the lap before, or the run's start, plus elapsed_ns, unless the clock was set or has drifted by more
       than a millisecond */
    int64_t end_unix_ns;
    int64_t elapsed_ns; /* its length */
    /* time in which the whole process did not run: stopped by a signal (part of elapsed_ns), or the machine asleep (not
       part of it). Times of open spans contain it */
    int64_t suspended_ns;
    /* number of laps joined into this one because observers were too slow; 1 = an ordinary lap */
    uint32_t num_joined;
    weir_lap_position position;
    /* what weir_thread_place.lap_id was, each time that its mode and phase came. NULL, 0 for a stage with an interval of its own */
    const uint64_t *ids;
    uint32_t num_ids;
} weir_lap;

/* What the calling thread does, for programs that sample their threads. */
typedef struct weir_thread_place {
    /* the current lap of the thread's pipeline, one of weir_lap.ids. A thread of no pipeline belongs, as with spans, to
       the oldest pipeline that runs */
    uint64_t lap_id;
    /* the stage, source, … whose task it runs; between tasks its pool; NULL = it is not a thread of a pool. Valid
       until the pipeline is freed */
    const char *name;
} weir_thread_place;

/* False = nothing is measured: no pipeline runs, or recording is paused. Any thread; safe in a signal handler. */
WEIR_API bool weir_thread_place_read(weir_thread_place *place);

/* One subject over one lap. The member of `metrics` is that of the subject; weir_subject_metrics() describes it. */
typedef struct weir_subject_lap {
    const weir_lap *lap;
    weir_subject subject;
    const char *name;  /* "0:1:load[10]", "0:1:load[10]_queue"; a pool: "0:pool", or "0:1:load[10]_pool" of a stage
                         with private threads; "0:process"; "0:machine"; a span: "category/name"; a counter:
                         "category/name" or "category/name/value" */
    const char *kind;  /* as in weir_stage_info; of a span: "span", "frame" or "marker"; of a counter: "level" or
                          "total"; else the subject: "queue" */
    uint64_t capacity; /* of a queue: items; of a pool: threads; of a process: its CPU budget; else 0 */
    weir_metrics metrics;
} weir_subject_lap;

/* A task that failed. */
typedef struct weir_failure {
    int64_t unix_ns;
    const char *name; /* of the stage */
    uint32_t source;  /* the item's source, epoch */
    uint64_t epoch;
    uint64_t seq;      /* and number within them */
    const char *label; /* "" = none */
    int status;
    int library_code;
    const char *message;
    int64_t run_ns;
    weir_identity identity; /* of the item */
} weir_failure;

/* Something that happened once: "stop", "failed", a change of concurrency, … */
typedef struct weir_event {
    int64_t unix_ns;
    const char *name;
    const char *category; /* "pipeline", "stage", "user", … */
    const char *detail;   /* "" = none */
} weir_event;

/* How the run ended. */
typedef struct weir_run_end {
    int64_t end_unix_ns; /* the end of the last lap */
    int status;          /* WEIR_OK (all delivered), WEIR_ESTOPPED or WEIR_EFAILED */
} weir_run_end;

/* What of the consumer's position begins or ends. */
typedef enum weir_mark_kind {
    WEIR_MARK_EPOCH = 0, /* begins with the delivery of its first item, ends with WEIR_EPOCH or the end of all */
    WEIR_MARK_STEP,      /* weir_pipeline_mark_step() */
    WEIR_MARK_PHASE,     /* weir_pipeline_mark_phase() */
    WEIR_MARK_MODE,      /* weir_pipeline_mark_mode() */
} weir_mark_kind;

typedef struct weir_mark {
    struct weir_pipeline *pipeline;
    weir_mark_kind kind;
    bool begins;      /* false = it ends */
    int64_t number;   /* of the epoch (from 0) or the step; else 0 */
    const char *name; /* of the phase or mode; else "" */
} weir_mark;

/*
 * All functions are optional. Order of calls: attach, run_start, then laps, failures and events as they occur. For
 * each lap, lap() is called first for every stage followed by its queues, upstream first. Stages with an interval of
 * their own have this call at its end. Then lap() is called for every pool, the process, the machine, and the spans
 * and counters that user code recorded in the lap. lap_end follows. After the last lap come run_end and detach, while
 * weir_pipeline_free() waits. Observers are called in the order in which they were given. Ignore subjects that you do
 * not know: there may be more in a later version.
 */
typedef struct weir_observer {
    void *self;
    /* On the thread that calls weir_builder_build(), before anything runs. A negative result makes the build fail
       with *error, for example if an observer serves one pipeline at a time and is in use. */
    int (*attach)(void *self, weir_error *error);
    void (*run_start)(void *self, const weir_run_info *info);
    void (*lap)(void *self, const weir_subject_lap *lap);
    void (*lap_end)(void *self, const weir_lap *lap);
    void (*failure)(void *self, const weir_failure *failure);
    void (*event)(void *self, const weir_event *event);
    void (*run_end)(void *self, const weir_run_end *end);
    /* The last call, if attach returned WEIR_OK or is NULL, also if building failed afterwards: on the thread that
       builds or frees the pipeline. */
    void (*detach)(void *self);
    void (*trace)(void *self, const weir_trace_batch *batch); /* see <weir/trace.h> */
    /*
     * Called at once, unlike the others: on the thread that marks, or for an epoch in weir_pipeline_next(), before that
     * function returns, with no lock held. The position has moved already: first the end of what was, then the begin of
     * what is. What is still open ends in weir_pipeline_free(). It may call every function of the pipeline except
     * weir_pipeline_free(); several threads that mark call it at the same time. Phases that are set automatically are
     * not reported.
     */
    void (*mark)(void *self, const weir_mark *mark);
    void (*reserved[3])(void); /* NULL */
} weir_observer;

/* Writes each lap to the log (level info): one line for each stage and queue. */
WEIR_API weir_observer weir_console_observer(void);

#ifdef __cplusplus
}
#endif

#endif
