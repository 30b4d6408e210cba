/*
 * Turns the raw record of a run into events of Chrome's trace format: two tracks for each slot (its tasks, and its
 * waits), one for the consumer, steps and phases, a counter for each queue. A span is a begin and an end event. The
 * begin of a span of user code is written at once. That of a slot's state, a step or a phase is written together with
 * its end, when its name and its exact time are known, or earlier by weir__trace_events_write_open(). One thread at a
 * time. Times in the events are microseconds since base_ns.
 */
#ifndef STATS_EXPORT_TRACE_EVENTS_H
#define STATS_EXPORT_TRACE_EVENTS_H

#include <weir/observer.h>

#include "trace_text.h"

/* Tracks besides the slots'; a slot's is weir__trace_track_of(). They are shown in this order. */
enum {
    TRACE_TRACK_RUN = 1,
    TRACE_TRACK_STEPS,
    TRACE_TRACK_PHASES,
    TRACE_TRACK_WAITS = 70000, /* from a slot's tasks to its waits */
    TRACE_TRACK_NODES = 140000,
};

/* What has begun and not ended. */
typedef struct weir_trace_slot {
    bool known, named[2], has_outcome;
    bool written, item_written; /* the begin event; with the item */
    int8_t state;               /* weir_trace_state */
    int8_t outcome;             /* status of the task that has just ended */
    int64_t since_ns;           /* when the state began */
    int64_t ready_ns;           /* RUNNING: when it began to wait for the thread */
    uint32_t number;            /* with its bits, as in the record */
    uint64_t item;              /* of the state */
    int64_t result_bytes;       /* with has_outcome */
    int64_t held_bytes;         /* of the result that it has not put yet */
} weir_trace_slot;

typedef struct weir_trace_node {
    weir_trace_slot *slots, lifecycle;
    uint32_t num_slots;
    int64_t held_bytes, told_bytes; /* of its results, in its slots and queues; what the counter says */
} weir_trace_node;

typedef struct weir_trace_events {
    weir_trace_text *out;  /* events go here, each with ",\n" at its end */
    weir_trace_text *body; /* names of tracks go here … */
    weir_trace_text *head; /* … and here: each file begins with those so far */
    bool muted;            /* nothing goes to `out`, except names; what is open is still followed */
    bool no_flows;         /* no arrows */
    int64_t pid;
    int64_t base_ns; /* weir_clock_ns() where the file's time is 0 */

    /* of the run */
    int64_t start_ns, start_unix_ns;
    char **stage_names, **short_names;
    bool *is_source;
    uint32_t num_nodes, num_queues;
    weir_trace_node *nodes;
    struct trace_queue {
        char *name;
        uint32_t producer, num_items;
        int64_t num_bytes;
    } * queues;
    int64_t held_ns; /* when held_bytes of some node changed; 0 = the counters say it */
    struct trace_label {
        uint64_t item;
        char *text;
    } * labels; /* of the items that had one most recently */
    bool consumer_named;
    int64_t last_ns; /* the latest time of a record */
    int64_t step;
    uint64_t epoch; /* of the last item that the consumer got */
    struct trace_mark {
        char name[64];       /* "" = none is open */
        bool named, written; /* its track; the begin event */
        int64_t begin_ns;
    } marks[2];             /* step, phase */
    uint32_t *user_threads; /* those that have a track; trace_user.c */
    size_t num_user_threads;
    struct trace_user_span {
        weir_trace_record record; /* of its begin */
        bool written;
    } * open; /* spans of user code; trace_user.c */
    size_t num_open;
    uint64_t num_lost; /* records */
    size_t event_start;
} weir_trace_events;

/* For a run; `out`, `body`, `head`, `pid` and `base_ns` are set. 0, or ENOMEM: only free it. The names are copied. */
int weir__trace_events_begin(weir_trace_events *events, const weir_run_info *info);
void weir__trace_events_free(weir_trace_events *events);

void weir__trace_events_add(weir_trace_events *events, const weir_trace_record *record);
void weir__trace_events_failure(weir_trace_events *events, const weir_failure *failure);
void weir__trace_events_event(weir_trace_events *events, const weir_event *event);

/* Marks and counts lost records. */
void weir__trace_events_lost(weir_trace_events *events, int64_t at_ns, const char *where, uint64_t num_records);

/* Writes the begin of what is open, so that it is in the file of a program that is killed. */
void weir__trace_events_write_open(weir_trace_events *events);

/* The end of a file, or of a part of it: whatever is open ends here, and begins again here. Spans of user code are
   written again by weir__trace_user_resume(). */
void weir__trace_events_cut(weir_trace_events *events, int64_t at_ns);

/* The track of a slot; `number` as in weir_trace_record. */
int64_t weir__trace_track_of(uint16_t node, uint32_t number);

/* -- for other kinds of events: {"ph":…,"pid":…,"tid":…,"ts":…,"cat":…,"name":… are written by the first, a comma and
   the arguments by the caller, the end by the last. name: NULL = neither name nor category */
void weir__trace_event_begin(weir_trace_events *events, char phase, int64_t track, int64_t at_ns, const char *name,
                             const char *category);
void weir__trace_event_end(weir_trace_events *events);

/* Metadata of a process or track: a name, or (NULL) a number. */
void weir__trace_put_metadata(weir_trace_text *out, int64_t pid, int64_t track, const char *what, const char *key,
                              const char *name, int64_t number);

/* The name of a track, and its place among the others; once for each track. */
void weir__trace_name_track(weir_trace_events *events, int64_t track, const char *name);

/* One value of a counter. */
void weir__trace_counter(weir_trace_events *events, int64_t at_ns, const char *name, const char *value_name,
                         double value);

#endif
