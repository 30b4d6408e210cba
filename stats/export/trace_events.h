/*
 * Turns the raw record of a run into events of Chrome's trace format. Each slot has two tracks: its tasks, and its
 * waits. The consumer, steps, phases and each thread of user code have one track each. Each queue has a counter. A
 * span is a begin and an end event. The begin of a slot's state, a step or a phase is written together with its end:
 * then its name and its exact time are known. weir__trace_events_write_open() may write it earlier. What user code
 * records is written at once. One thread at a time. Times in the events are microseconds since base_ns.
 */
#ifndef STATS_EXPORT_TRACE_EVENTS_H
#define STATS_EXPORT_TRACE_EVENTS_H

#include <weir/item_part.h>
#include <weir/observer.h>

#include "stats/export/trace_text.h"

/* What goes on in a slot. */
typedef struct weir_trace_slot {
    bool known, written; /* written: the begin event of the state */
    bool named[2];       /* the track of its tasks, of its waits */
    bool has_outcome;    /* of the task that has just ended: outcome, result_bytes */
    int8_t state;        /* weir_trace_state */
    int8_t outcome;
    uint32_t number;  /* with its bits, as in the record */
    int64_t since_ns; /* when the state began */
    int64_t ready_ns; /* RUNNING: when it began to wait for the thread */
    uint64_t item;    /* of the state */
    int64_t result_bytes;
    uint32_t num_parts; /* of the task */
    struct {
        const char *name;
        int64_t ns;
    } parts[WEIR_MAX_ITEM_PARTS];
} weir_trace_slot;

enum { TRACE_NUM_AXES = 3 };

/* A step, phase or mode. */
typedef struct weir_trace_mark {
    char name[64]; /* "" = none is open */
    bool named, written;
    int64_t since_ns;
} weir_trace_mark;

typedef struct weir_trace_events {
    weir_trace_text *body; /* events go here, each with ",\n" at its end */
    weir_trace_text *head; /* names of tracks go here, too: each file begins with those so far */
    bool muted;            /* nothing goes to `body`, except names; what is open is still followed */
    bool no_flows;         /* no arrows */
    int64_t pid;
    int64_t base_ns; /* weir_clock_ns() where the file's time is 0 */

    /* of the run */
    int64_t start_ns, start_unix_ns;
    struct trace_node {
        char *name, *short_name;
        bool is_source;
        weir_trace_slot *slots, lifecycle;
        uint32_t num_slots;
    } * nodes; /* NULL = no run */
    struct trace_queue {
        char *name;
        bool has_items, has_bytes;
    } * queues;
    uint32_t num_nodes, num_queues;
    struct trace_label {
        uint64_t item;
        char *text;
    } * labels; /* of the items that had one most recently */
    bool consumer_named;
    int64_t last_ns; /* the latest time of a record */
    int64_t step;
    uint64_t epoch;                        /* of the last item that the consumer got */
    weir_trace_mark marks[TRACE_NUM_AXES]; /* step, phase, mode */
    struct trace_thread {
        uint32_t tid; /* 0 = frames */
        /* spans that are open in the file: those inside `floor` others up to those inside depth - 1 others */
        int64_t floor, depth;
    } * threads; /* of user code */
    size_t num_threads;
    struct trace_counter {
        const char *text;  /* begins with "category/name"; lives as long as the process */
        size_t text_bytes; /* of that */
        struct trace_value {
            const char *name;
            double value; /* the last one; not finite = not shown */
        } * values;
        size_t num_values;
    } * counters; /* of user code */
    size_t num_counters;
    uint64_t num_lost; /* records */
    size_t event_start;
} weir_trace_events;

/* For a run; `body`, `head`, `pid` and `base_ns` are set. 0, or ENOMEM: only free it. The names are copied. */
int weir__trace_events_begin(weir_trace_events *events, const weir_run_info *info);
void weir__trace_events_free(weir_trace_events *events);

void weir__trace_events_add(weir_trace_events *events, const weir_trace_record *record);
void weir__trace_events_failure(weir_trace_events *events, const weir_failure *failure);
void weir__trace_events_event(weir_trace_events *events, const weir_event *event);

/* Marks and counts lost records. */
void weir__trace_events_lost(weir_trace_events *events, int64_t at_ns, const char *where, uint64_t num_records);

/* Writes the begin of the states, step and phase that are open. So the trace of a program that is killed has them. */
void weir__trace_events_write_open(weir_trace_events *events);

/* The states, step and phase that are open end here, and begin again here: in the next file. */
void weir__trace_events_cut(weir_trace_events *events, int64_t at_ns);

/* The beginning of the metadata of a process or track, up to its arguments: pid, track, and what is named. */
#define WEIR_TRACE_METADATA "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"ts\":0,\"name\":%j,\"args\":"

#endif
