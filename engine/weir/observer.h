/*
 * What the engine tells about a run: an observer is a table of functions, called on the pipeline's statistics thread,
 * never two at once and never under a lock. Pointers inside the structs are valid during the call only, but for names,
 * which live until the pipeline is freed.
 */
#ifndef WEIR_OBSERVER_H
#define WEIR_OBSERVER_H

#include <stdint.h>

#include <weir/export.h>
#include <weir/histogram.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the pipeline was built; one entry for the source, each stage and the sink. */
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
    const weir_stage_info *stages; /* source first, sink last */
    uint32_t num_stages;
} weir_run_info;

/*
 * Where the consumer was in its job during a lap. A lap ends where a phase does, so each lap is in one phase: "startup"
 * until the first step is marked, then "loop", "finish" once the sources have ended, or what weir_pipeline_mark_phase() said.
 * "" is a lap that ended before any mark: start-up, if marks follow.
 */
typedef struct weir_lap_place {
    const char *phase;
    int64_t first_step, last_step; /* marked so far and not before this lap; last < first = none */
} weir_lap_place;

/*
 * One stage over one lap. Spans are in nanoseconds of slot time: with s slots a lap of e ns holds s × e of them, and
 * busy + wait_in + wait_thread + wait_out is exactly that. A span that is still open counts up to the lap's end.
 */
typedef struct weir_stage_lap {
    const char *name;
    int64_t end_unix_ns;    /* the lap's end: that of the lap before, or the run's start, plus elapsed_ns, unless the
                                 clock was set or has drifted by more than a millisecond */
    int64_t elapsed_ns;     /* the lap's length */
    uint64_t num_tasks;     /* ended in this lap, failed ones included */
    uint64_t num_failures;  /* of these, failed */
    uint64_t num_skipped;   /* of these, handed nothing on */
    int64_t success_ns;     /* run time of the tasks that succeeded in this lap */
    int64_t failed_ns;      /* run time of the tasks that failed in this lap */
    int64_t max_ns;         /* longest success; 0 = none */
    int64_t busy_ns;        /* slots × time running (or pending elsewhere). Close to the lap's slots × elapsed: this
                                 stage is the limit, give it slots */
    int64_t wait_in_ns;     /* … waiting for input: what is before is the limit */
    int64_t wait_thread_ns; /* … ready, but without a thread: the pool is the limit */
    int64_t wait_out_ns;    /* … holding a result that found no room: what is behind is the limit */
    int64_t cpu_ns;         /* CPU time that threads spent in its tasks */
    const weir_histogram *run_times; /* of the successes of this lap */
    weir_lap_place place;
} weir_stage_lap;

/* One queue over one lap. */
typedef struct weir_queue_lap {
    const char *name;
    int64_t end_unix_ns;
    int64_t elapsed_ns;
    uint32_t capacity;  /* items */
    uint64_t num_put;   /* items put in, in this lap */
    uint64_t num_items; /* items taken out, in this lap */
    int64_t put_ns;     /* how long the items put in had waited for room, summed */
    int64_t get_ns;     /* how long the takers of the items taken out had waited for them, summed */
    int64_t
        occupied_ns; /* time not empty. Close to 0: what is before is the limit; close to the lap: what is behind */
    double depth_ns; /* items × time: over elapsed_ns this is the average depth */
    double bytes_ns; /* bytes × time */
    uint64_t max_depth;
    uint64_t max_bytes;
    const weir_histogram *put_times;
    const weir_histogram *get_times;
    weir_lap_place place;
} weir_queue_lap;

/* A task that failed. */
typedef struct weir_failure {
    int64_t unix_ns;
    const char *name; /* of the stage */
    uint64_t seq;
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
 * All functions are optional. Order of calls: run_start, then laps, failures and events as they come, in each lap one
 * stage_lap for every stage and one queue_lap for every queue, upstream first; the last lap, then run_end.
 */
typedef struct weir_observer {
    void *self;
    void (*run_start)(void *self, const weir_run_info *info);
    void (*stage_lap)(void *self, const weir_stage_lap *lap);
    void (*queue_lap)(void *self, const weir_queue_lap *lap);
    void (*failure)(void *self, const weir_failure *failure);
    void (*event)(void *self, const weir_event *event);
    void (*run_end)(void *self, const weir_run_end *end);
    const void *reserved[8]; /* NULL */
} weir_observer;

/* Writes each lap to the log (level info): a line for each stage and queue. */
WEIR_API weir_observer weir_console_observer(void);

#ifdef __cplusplus
}
#endif

#endif
