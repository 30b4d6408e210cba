/*
 * What the engine tells about a run. An observer is a table of functions. All of them but attach() and detach() are called
 * on one thread of the pipeline that does nothing else, never two at once and never under a lock.
 *
 * What may block, and for how long: an observer may block as long as it likes. Scheduling, deadlines, stop and the
 * boundaries of laps do not wait for it. Only weir_pipeline_free() does, since it returns when the last call has.
 * Meanwhile the engine keeps what it has to tell: up to 64 laps, of which the newest ones are then joined to one longer
 * lap (weir_lap.num_joined), so that sums stay exact; and failures and events up to 16 MiB. What does not fit is counted
 * and told by an event "dropped" as soon as there is room, and by the log.
 *
 * Pointers inside the structs are valid during the call only, but for names, which live until the pipeline is freed.
 */
#ifndef WEIR_OBSERVER_H
#define WEIR_OBSERVER_H

#include <stdint.h>

#include <weir/export.h>
#include <weir/histogram.h>
#include <weir/metrics.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the pipeline was built; one entry for each source, stage, route, merge and sink. */
typedef struct weir_stage_info {
    const char *name;         /* "0:1:decode[10]"; source "0:0:src", sink "0:2:sink" */
    const char *queue_name;   /* "0:1:decode[10]_queue"; of a route: that of its first branch */
    const char *kind;         /* "source", "stage", "route", "merge" or "sink" */
    uint32_t concurrency;     /* slots as built */
    uint32_t queue_items;     /* capacity of the queue behind it */
    uint64_t queue_bytes;     /* 0 = unlimited */
    const char *output_order; /* "completion" or "input" */
    uint64_t reserved[8];
} weir_stage_info;

typedef struct weir_run_info {
    int64_t start_unix_ns;
    uint32_t pipeline_id;
    uint32_t threads;              /* of all pools together */
    const weir_stage_info *stages; /* upstream first */
    uint32_t num_stages;
} weir_run_info;

/*
 * Where the consumer was in its job during a lap. A lap ends where a phase does, so each lap is in one phase: "startup"
 * until the first step is marked, then "loop", "finish" once the sources have ended, or what weir_pipeline_mark_phase()
 * said. "" is a lap that ended before any mark: start-up, if marks follow.
 */
typedef struct weir_lap_place {
    const char *phase;
    int64_t first_step, last_step; /* marked so far and not before this lap; last < first = none */
} weir_lap_place;

/* One reporting interval. The first one of intervals above a second ends after a second, the last one with the run. */
typedef struct weir_lap {
    uint64_t number; /* from 0 */
    int64_t
        end_unix_ns; /* the end of the lap before, or the run's start, plus elapsed_ns, unless the clock was set or has
                             drifted by more than a millisecond */
    int64_t elapsed_ns; /* its length */
    int64_t
        suspended_ns; /* time in which the whole process did not run: stopped by a signal (part of elapsed_ns), or the
                             machine asleep (not part of it). Spans that were open look that much too long */
    uint32_t num_joined; /* laps joined in this one, because observers were behind; 1 = an ordinary lap */
    weir_lap_place place;
} weir_lap;

/* One source, stage, route, merge or sink over one lap. */
typedef struct weir_stage_lap {
    const weir_lap *lap;
    const char *name;
    const char *kind; /* as in weir_stage_info */
    weir_task_metrics metrics;
} weir_stage_lap;

/* One queue over one lap. */
typedef struct weir_queue_lap {
    const weir_lap *lap;
    const char *name;
    uint32_t capacity; /* items */
    weir_queue_metrics metrics;
} weir_queue_lap;

/* The threads of one pool over one lap: of the pipeline's pool ("0:pool"), or of a stage with threads of its own
   ("0:1:decode[10]_pool"). */
typedef struct weir_pool_lap {
    const weir_lap *lap;
    const char *name;
    uint32_t num_threads;
    weir_pool_metrics metrics;
} weir_pool_lap;

/* A task that failed. */
typedef struct weir_failure {
    int64_t unix_ns;
    const char *name; /* of the stage */
    uint32_t source;  /* of the item: which source, which epoch, */
    uint64_t epoch;
    uint64_t seq;      /* and its number there */
    const char *label; /* "" = none */
    int status;
    int library_code;
    const char *message;
    int64_t run_ns;
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
    int64_t end_unix_ns;
    int status; /* WEIR_OK (all delivered), WEIR_ESTOPPED or WEIR_EFAILED */
} weir_run_end;

/*
 * All functions are optional. Order of calls: attach, run_start, then laps, failures and events as they come; for each
 * lap one stage_lap for every node and one queue_lap for every queue, upstream first, one pool_lap for every pool, then
 * lap_end; after the last lap run_end, detach. Observers are told in the order in which they were given.
 */
typedef struct weir_observer {
    void *self;
    /* On the thread that calls weir_builder_build(), before anything runs. A negative result makes that fail with *error,
       as where an observer serves one pipeline at a time and is in use. */
    int (*attach)(void *self, weir_error *error);
    void (*run_start)(void *self, const weir_run_info *info);
    void (*stage_lap)(void *self, const weir_stage_lap *lap);
    void (*queue_lap)(void *self, const weir_queue_lap *lap);
    void (*pool_lap)(void *self, const weir_pool_lap *lap);
    void (*lap_end)(void *self, const weir_lap *lap);
    void (*failure)(void *self, const weir_failure *failure);
    void (*event)(void *self, const weir_event *event);
    void (*run_end)(void *self, const weir_run_end *end);
    /* The last call, if attach returned WEIR_OK or there is none, also when building failed afterwards: on the thread
       that builds or frees. */
    void (*detach)(void *self);
    void (*reserved[6])(void); /* NULL */
} weir_observer;

/* Writes each lap to the log (level info): a line for each stage and queue. */
WEIR_API weir_observer weir_console_observer(void);

#ifdef __cplusplus
}
#endif

#endif
