/* What the observers of a pipeline get, and from whom: the struct behind outbox.c and observing.c. */
#ifndef ENGINE_MEASURE_REPORTING_H
#define ENGINE_MEASURE_REPORTING_H

#include "engine/state/run_state.h"

/* Messages for the observers; see outbox.c. */
typedef struct weir_message weir_message;

typedef struct weir_outbox {
    /* immutable after init */
    bool filled_made, reported_made;
    weir_message *start; /* allocated in advance, so that adding it cannot fail */

    uv_mutex_t lock;

    /* guarded by lock */
    weir_message *first, **end;
    size_t bytes; /* of failures and events */
    uint32_t num_laps;
    uint64_t dropped_failures, dropped_events; /* not reported yet */
    bool closed;                               /* only observers still add messages: at most MAX_LATE late events */
    uint32_t num_late;                         /* events of observers since then */
    bool woken;                                /* the observer thread has something else to do */
    uv_cond_t filled;                          /* first, closed or woken; with lock */
    uint64_t num_asked, num_reported;          /* requests, and those that are answered; see lap_request.c */
    uv_cond_t reported;                        /* num_reported or closed; with lock */
} weir_outbox;

/* What observers get, and the thread that calls them. */
typedef struct weir__reporting {
    /* immutable after init */
    bool wants_laps, wants_marks, wants_failures, wants_events; /* an observer wants them */
    int64_t start_unix_ns;

    weir_outbox outbox; /* has its own lock */

    /* owned by the observer thread */
    uv_thread_t thread;
    bool thread_started;
    weir_stage_info *stage_infos; /* one for each node */
    weir_queue_info *queue_infos;
    struct delivery *delivery;
    struct held_subject **held; /* of each subject; NULL = its stage has no interval of its own */

    /* written by the service thread before the outbox is closed */
    int end_status;
    int64_t end_unix_ns;
} weir__reporting;

#endif
