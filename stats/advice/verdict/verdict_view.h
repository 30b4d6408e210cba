/*
 * Shared by the parts of the verdict. What is known of a pipeline is a view: from totals (verdict_view.c) or from
 * snapshots of a run in progress (live.c). The rules (verdict.c) judge a view; verdict_read.c cuts recordings into
 * parts, verdict_advice.c predicts changes, experiment.c measures them.
 */
#ifndef STATS_ADVICE_VERDICT_VERDICT_VIEW_H
#define STATS_ADVICE_VERDICT_VERDICT_VIEW_H

#include <weir/pipeline.h>
#include <weir/verdict.h>

#include "stats/advice/verdict/variation.h"

/*
 * A resource is FULL where more of it can bring more than anything else. Let it be in use for a share U of the time.
 * Twice as much of it brings at most 2 U times as many items. Better timing alone (longer queues, other orders)
 * brings at most 1 / U times as many. The two are equal at the square root of 1/2.
 */
#define FULL 0.7071
#define MOST 0.5 /* of a time: more than everything else in it */
#define HALF 0.5 /* a mean number of CPUs, threads or slots that rounds to one */

/* A source, stage, route, merge or sink. NAN = not known. Texts belong to what the view was made from. */
typedef struct node_view {
    const char *name, *inputs;
    bool is_source, is_merge, is_sink;
    double slots, busy, in, thread, turn, out; /* shares of slot time */
    double epoch_tail, epoch_gap; /* parts of `in`, at the ends of epochs; see weir/metrics.h. 0 = not known */
    double held;                  /* busy + thread: has an item and would work on it */
    double cpu, delay, pending;   /* shares of busy time: on a CPU, waiting for one, without a thread */
    double failed;                /* share of busy time: in tasks that failed */
    double num_failures;
    double num_asleep;            /* looks that found one of its threads asleep in a task */
    double waits[WEIR_NUM_WAITS]; /* shares of these: what it slept for */
    double tasks_per_s, time_s, shortest_s;
    double unevenness;           /* of the lengths of its tasks: variance / mean²; live only, 0 = not known */
    const weir_histogram *times; /* NULL = not known */
    const char *pool;            /* NULL = runs nothing, or not known */
    double threads, pool_busy, pool_cpu, pool_delay; /* of its pool; the last two are shares of its busy time */
} node_view;

typedef struct queue_view {
    const char *name;
    int putter;                                      /* index of a node; -1 = not known */
    double occupied, ave_depth, max_depth, capacity; /* share of the time; items */
    double max_bytes, bound_bytes;                   /* 0 = unlimited */
    double empty;                                    /* share of the time that takers wait for an item */
} queue_view;

typedef struct system_view {
    /* CPUs. outside: not of the pools' threads; ranks: other ranks of the job, as far as they are in the database */
    double process, budget, outside, ranks, other, idle, stolen, all;
    double throttled, io_pressure, memory_pressure; /* shares of the time */
    double disk_idle;                               /* CPUs */
    double stored;                                  /* bytes per second, to and from disks */
} system_view;

typedef struct verdict_view {
    node_view *nodes; /* upstream first; owned */
    size_t num_nodes;
    queue_view *queues; /* owned */
    size_t num_queues;
    const queue_view *sink; /* NULL = not known */
    double sink_waits;      /* share of the time that the consumer waits for an item */
    double num_items, items_per_s;
    double rate_half; /* half the width of its 95 % interval; live only */
    int work_node;    /* live only: its tasks report most work (frames, samples); -1 = no stage reports any */
    double work_per_s;
    uint32_t world; /* ranks of the job; 0, 1: it is alone */
    bool trains;    /* the consumer is a training loop */
    bool polls;     /* the consumer does not wait for items */
    system_view system;
} verdict_view;

enum { VERDICT_MAX_EVIDENCE = 16, VERDICT_MAX_ADVICE = 12, VERDICT_TEXT_BYTES = 400 };

/* The public struct and its texts. */
typedef struct full_verdict {
    weir_verdict shown;
    bool is_short; /* few items were delivered */
    bool polls;    /* the consumer does not wait for items */
    char name[VERDICT_TEXT_BYTES], sentence[VERDICT_TEXT_BYTES], other_name[VERDICT_TEXT_BYTES],
        other_sentence[VERDICT_TEXT_BYTES], missing[VERDICT_TEXT_BYTES], together[VERDICT_TEXT_BYTES];
    char lines[VERDICT_MAX_EVIDENCE][VERDICT_TEXT_BYTES];
    const char *evidence[VERDICT_MAX_EVIDENCE];
    weir_verdict_advice advice[VERDICT_MAX_ADVICE + 1]; /* the last one is never shown */
    char advice_texts[VERDICT_MAX_ADVICE + 1][6]
                     [VERDICT_TEXT_BYTES]; /* change, options, code, next, assumes, stage */
} full_verdict;

/* stages: how they are connected; without records that is not known. False = out of memory. Free it with verdict_view_free(). */
bool weir__verdict_view_totals(verdict_view *view, const weir_totals *steady, const weir_totals *whole,
                               const weir_records *stages);
void weir__verdict_view_free(verdict_view *view);

/* The node that puts into a queue of this name; -1 = not known. */
int weir__verdict_find_putter(const verdict_view *view, const char *queue);
/* Sets what the node's tasks sleep for. */
void weir__verdict_view_waits(node_view *node, const uint64_t num_waits[WEIR_NUM_WAITS]);
/* How long those that take from the queue wait for an item. */
void weir__verdict_view_takers(const verdict_view *view, queue_view *queue);

/* What the node is as a limit: its source, its slots that compute, or what they wait for. */
weir_verdict_kind weir__verdict_kind_of(const node_view *node);

/* What its tasks wait for most of the time in which they sleep: "files", for a sentence. NULL = not known, or several. */
const char *weir__verdict_waits_for(const node_view *node);

/* The share of the time in which more of this node could bring more; -1 = it does not work. */
double weir__verdict_use(const verdict_view *view, size_t node);

/* NULL = out of memory. */
full_verdict *weir__verdict_judge(const verdict_view *view);
void weir__verdict_add_evidence(full_verdict *verdict, const char *format, ...) WEIR_PRINTF(2, 3);
void weir__verdict_settle(full_verdict *verdict, weir_verdict_kind kind, const char *name, const char *sentence,
                          double confidence);

/* A second limit that is as likely. */
void weir__verdict_settle_other(full_verdict *verdict, weir_verdict_kind kind, const char *name,
                                const char *sentence);

/* Says that the limit was another one in a part of the run, which changed at shown.changed_unix_ns. */
void weir__verdict_settle_change(full_verdict *verdict, const full_verdict *before, const full_verdict *after,
                                 int64_t start_unix_ns, int64_t end_unix_ns);

/* The rate is not the same all the time. rates: before and after changed_unix_ns (0 = it changes slowly, all the time). */
void weir__verdict_say_rate_change(full_verdict *verdict, const double rates[2], int64_t changed_unix_ns,
                                   int64_t start_unix_ns);
/* length_s: of an interval, on average. */
void weir__verdict_say_levels(full_verdict *verdict, const rate_levels *levels, double length_s);
/* Each level has a limit of its own; parts: the verdicts on the high and the low one. */
void weir__verdict_settle_levels(full_verdict *verdict, full_verdict *const parts[2], const rate_levels *levels);
/* Adds evidence of what differs between two parts, which have these names. */
void weir__verdict_tell_difference(full_verdict *verdict, const verdict_view *a, const verdict_view *b,
                                   const char *const names[2]);

/* Keeps only options that the program with this command line has. */
void weir__verdict_fit_options(full_verdict *verdict, const char *command);

/* The slots of one stage and the threads that it runs on. */
typedef struct live_setting {
    const char *stage;       /* NULL = no slots are changed */
    bool has_own;            /* threads are the stage's private ones; else those of the pool */
    uint32_t slots, threads; /* 0 = are not changed */
    bool is_speedup;         /* instead: the stage (or the sink: the consumer) is virtually faster by this share */
    double speedup;
} live_setting;

enum { LIVE_MOST_PARTS = 8 };

/* Settings of several stages, which are changed together: the present ones, and the others. */
typedef struct live_set {
    uint32_t num;
    live_setting now[LIVE_MOST_PARTS], other[LIVE_MOST_PARTS];
} live_set;

/* "decode with 8 slots instead of 4, scale with 2 slots instead of 1, and 12 threads instead of 8" */
void weir__verdict_describe_set(char *text, size_t size, const live_set *set);
/* An advice of other settings, with its texts, but without figures. */
weir_verdict_advice *weir__verdict_new_setting(full_verdict *verdict, const live_set *set);
/* The one that it has already; NULL = none. */
weir_verdict_advice *weir__verdict_find_setting(full_verdict *verdict, const live_setting *now,
                                                const live_setting *other);
/* An advice without figures, whose texts are empty. */
weir_verdict_advice *weir__verdict_new_advice(full_verdict *verdict);
/* Sets a text of an advice. */
void weir__verdict_text(const char *field, const char *format, ...) WEIR_PRINTF(2, 3);
/* "decode" of "0:1:decode[10]" */
const char *weir__verdict_short_name(const char *name, char *text, size_t size);

/* Adds advice: from the model if it can be made, otherwise without figures. */
int weir__verdict_advise(full_verdict *verdict, weir_recording *recording, const weir_filter *filter,
                         weir_error *error);

#endif
