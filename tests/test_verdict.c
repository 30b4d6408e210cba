/*
 * Pipelines with known limits, each as the laps that it leaves: the verdict must name the limit, and say so if the
 * laps cannot tell. Every run begins and ends with a lap that looks different and must not count.
 */
#include "tests/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>
#include <weir/verdict.h>

enum { MAX_NODES = 6, STEADY_LAPS = 4, LAP_S = 10 };

/* Shares are of slot time; the rest of it is waiting for input. */
typedef struct node_case {
    const char *name, *kind, *inputs; /* inputs NULL = the queue of the node before */
    double slots;                     /* (0 = 1) */
    double busy, thread, turn, out;
    double tail, gap;   /* at the ends of epochs: shares of the rest of the time */
    double cpu, delay;  /* shares of busy: on a CPU, waiting for one */
    double rate;        /* tasks per second (0 = 100) */
    double shortest;    /* the shortest task, as a share of the average (0 = 0.95) */
    double at_start;    /* the shortest task of the start-up, in the same way (0 = none ended there) */
    double short_tasks; /* share of the tasks that take the shortest time */
    double spread;      /* other tasks take (1 - spread) to (1 + spread) times the average */
    double pending;     /* share of busy: without a thread */
    double long_tasks;  /* share of the tasks that take 100 times as long */
    double failed;      /* share of busy: in one task in ten, which fail */
    uint32_t threads;   /* private */
    double occupied;    /* of its queue */
    int64_t depth;      /* largest of its queue (0 = its capacity of 2) */
    uint32_t capacity;  /* (0 = 2) */
    double queue_bytes; /* bound, which the queue reaches */
    const char *second; /* the name of a second queue, such as routes have */
    const char *merge_order;
    bool ordered;
} node_case;

typedef struct pipeline_case {
    const char *what;
    weir_verdict_kind kind;
    const char *name;        /* of what limits (NULL = "") */
    weir_verdict_kind other; /* that the laps cannot tell from it */
    node_case nodes[MAX_NODES];
    uint32_t threads;                          /* of the pool (0 = 4) */
    double late_threads;                       /* of the pool, on average: wait for a CPU between two tasks */
    double consumer_waits;                     /* share of the time (0 = when the sink's queue is empty) */
    double late;                               /* share of the time: a consumer that polls stays away from items */
    double outside, others, stolen, disk_idle; /* CPUs, of 4 */
    double throttled, io, memory;              /* shares of the time */
    double faults, stored, received;           /* per second */
    bool trains;
    double rate; /* items per second (0 = 100) */
} pipeline_case;

#define SOURCE(...) \
    { \
        .name = "0:0:src", .kind = "source", .threads = 1, __VA_ARGS__ \
    }
#define IDLE_SOURCE SOURCE(.busy = 0.01, .out = 0.98, .occupied = 0.98)
#define OTHER_SOURCE(...) \
    { \
        .name = "0:1:other", .kind = "source", .inputs = "", .cpu = 0.01, .threads = 1, .occupied = 0.02, \
        __VA_ARGS__ \
    }
#define MERGE(...) \
    { \
        .name = "0:2:merge", .kind = "merge", .inputs = "0:0:src_queue 0:1:other_queue", __VA_ARGS__ \
    }
#define DECODE(...) \
    { \
        .name = "0:1:decode", .kind = "stage", __VA_ARGS__ \
    }
#define SINK(...) \
    { \
        .name = "0:2:sink", .kind = "sink", .capacity = 3, __VA_ARGS__ \
    }
#define EMPTY_SINK SINK(.occupied = 0.02)

/* Four slots that only wait, for something outside. */
#define WAITING .slots = 4, .busy = 0.98, .cpu = 0.02

static const pipeline_case cases[] = {
    { "a source that waits", WEIR_VERDICT_SOURCE, "0:0:src",
      .nodes = { SOURCE(.busy = 0.98, .cpu = 0.01), DECODE(.slots = 4, .busy = 0.05, .cpu = 0.9), EMPTY_SINK } },
    { "a source that is busy before a full store", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.99, .cpu = 0.01, .occupied = 1), DECODE(.busy = 0.98, .cpu = 0.02), EMPTY_SINK } },
    { "a source that computes", WEIR_VERDICT_SOURCE, "0:0:src",
      .nodes = { SOURCE(.busy = 0.97, .cpu = 0.9), DECODE(.slots = 4, .busy = 0.2, .cpu = 0.9), EMPTY_SINK } },
    { "a source on a slow disk", WEIR_VERDICT_SOURCE, "0:0:src",
      .nodes = { SOURCE(.busy = 0.97, .cpu = 0.05), DECODE(.slots = 4, .busy = 0.2, .cpu = 0.9), EMPTY_SINK },
      .io = 0.8, .stored = 50e6 },
    { "a source that starves on the stage's thread", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { { .name = "0:0:src", .kind = "source", .busy = 0.15, .thread = 0.85, .cpu = 0.1 },
                 DECODE(.slots = 4, .busy = 0.21, .thread = 0.3, .cpu = 0.02),
                 EMPTY_SINK },
      .threads = 1 },
    { "a source that waits for the thread of a stage that lacks no items", WEIR_VERDICT_SLOTS, "0:1:decode",
      .nodes = { { .name = "0:0:src", .kind = "source", .busy = 0.001, .thread = 0.998, .cpu = 0.9 },
                 DECODE(.busy = 0.995, .cpu = 0.95),
                 EMPTY_SINK },
      .threads = 1 },
    { "two slots that wait", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.99, .cpu = 0.01), EMPTY_SINK } },
    { "one slot that computes, and idle CPUs", WEIR_VERDICT_SLOTS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.busy = 0.97, .cpu = 0.98), EMPTY_SINK } },
    { "the second of two stages", WEIR_VERDICT_SLOTS, "0:2:scale",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 2, .busy = 0.3, .out = 0.68, .cpu = 0.9, .occupied = 0.97),
                 { .name = "0:2:scale", .kind = "stage", .busy = 0.99, .cpu = 0.9 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.01 } } },
    { "the first of two stages", WEIR_VERDICT_SLOTS, "0:1:decode",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 2, .busy = 0.98, .cpu = 0.9),
                 { .name = "0:2:scale", .kind = "stage", .busy = 0.4, .cpu = 0.9 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.01 } } },
    { "ten slots on one thread", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 10, .busy = 0.1, .thread = 0.89, .cpu = 0.98), EMPTY_SINK },
      .threads = 1 },
    { "tasks that wait on all threads of the pool", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.25, .thread = 0.74, .cpu = 0.01), EMPTY_SINK },
      .threads = 2 },
    { "private threads that are too few", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 6, .busy = 0.32, .thread = 0.67, .cpu = 0.02, .threads = 2),
                 EMPTY_SINK } },
    { "a stage that takes the other's threads", WEIR_VERDICT_THREADS, "0:2:send",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 4, .busy = 0.2, .thread = 0.79, .cpu = 0.5, .occupied = 0.3),
                 { .name = "0:2:send", .kind = "stage", .slots = 2, .busy = 0.55, .thread = 0.1, .cpu = 0.01 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.01 } },
      .threads = 2 },
    { "pending tasks beside a stage that blocks the thread", WEIR_VERDICT_THREADS, "0:2:send",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 8, .busy = 0.28, .thread = 0.1, .out = 0.6, .pending = 0.97, .occupied = 0.98),
                 { .name = "0:2:send", .kind = "stage", .slots = 4, .busy = 0.23, .thread = 0.76, .cpu = 0.01 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.01 } },
      .threads = 1 },
    { "four computing threads on four CPUs", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.49, .thread = 0.5, .cpu = 0.98), EMPTY_SINK } },
    { "more computing threads than CPUs", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.98, .cpu = 0.49, .delay = 0.5), EMPTY_SINK },
      .threads = 8 },
    { "tasks that use the CPUs and mostly wait for something else", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 16, .busy = 0.98, .cpu = 0.24, .delay = 0.22), EMPTY_SINK },
      .threads = 16 },
    { "a short source on threads that wait for CPUs", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { { .name = "0:0:src", .kind = "source", .busy = 0.82, .out = 0.18, .cpu = 0.05, .delay = 0.93 },
                 DECODE(.slots = 8, .busy = 0.7, .cpu = 0.2, .delay = 0.75),
                 EMPTY_SINK },
      .threads = 9, .others = 2.7 },
    { "threads that wait between tasks for CPUs that others take", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { { .name = "0:0:src", .kind = "source", .thread = 1 },
                 DECODE(.slots = 2, .busy = 0.2, .cpu = 0.98),
                 EMPTY_SINK },
      .threads = 2, .late_threads = 1.55, .others = 3.5 },
    { "CPUs that other programs take", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.3, .delay = 0.65), EMPTY_SINK },
      .others = 2.7 },
    { "a pool that waits for CPUs that others take", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.49, .thread = 0.5, .cpu = 0.4, .delay = 0.58),
                 EMPTY_SINK },
      .others = 2.3 },
    { "more slots than items, on threads that wait for CPUs that others take", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 10, .busy = 0.18, .thread = 0.18, .cpu = 0.42, .delay = 0.57),
                 EMPTY_SINK },
      .threads = 2, .others = 3.2 },
    { "more slots than items, on one thread", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 10, .busy = 0.098, .thread = 0.2, .cpu = 0.02), EMPTY_SINK },
      .threads = 1 },
    { "a CPU quota", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.5, .delay = 0.3), EMPTY_SINK },
      .throttled = 0.5 },
    { "a CPU quota whose stops do not count as waiting for a CPU", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.97, .cpu = 0.08, .delay = 0.47, .shortest = 0.1),
                 EMPTY_SINK },
      .throttled = 1.5 },
    { "a virtual machine among others", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.5, .delay = 0.45), EMPTY_SINK },
      .stolen = 1.8 },
    { "a disk", WEIR_VERDICT_OUTSIDE, "0:1:decode", .nodes = { IDLE_SOURCE, DECODE(WAITING), EMPTY_SINK }, .io = 0.9,
      .stored = 80e6 },
    { "a disk, without pressure figures", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(WAITING), EMPTY_SINK }, .io = -1, .disk_idle = 1.5, .stored = 80e6 },
    { "a lock, while another program uses a disk", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(WAITING), EMPTY_SINK }, .io = 0.9 },
    { "a network", WEIR_VERDICT_OUTSIDE, "0:1:decode", .nodes = { IDLE_SOURCE, DECODE(WAITING), EMPTY_SINK },
      .received = 12e6 },
    { "a lock, while the machine receives something", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.01, .shortest = 0.25), EMPTY_SINK },
      .received = 114e6 },
    { "a lock around the work", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.25, .shortest = 0.26), EMPTY_SINK } },
    { "a lock around waiting: like slow requests", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.01, .shortest = 0.25), EMPTY_SINK } },
    { "a resource outside that serves two tasks at a time", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.99, .cpu = 0.01, .shortest = 0.247, .short_tasks = 0.35),
                 EMPTY_SINK } },
    { "one lock in two stages", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 3, .busy = 0.95, .cpu = 0.01, .shortest = 0.17, .short_tasks = 0.1),
                 { .name = "0:2:scale",
                   .kind = "stage",
                   .slots = 3,
                   .busy = 0.76,
                   .cpu = 0.01,
                   .shortest = 0.21,
                   .short_tasks = 0.5 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.01 } } },
    { "a lock around the computing part of tasks that also wait", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 6, .busy = 0.99, .cpu = 0.135, .shortest = 0.28, .short_tasks = 0.02),
                 EMPTY_SINK } },
    { "epochs of few items: the next one waits in the queue", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.01, .out = 0.98, .occupied = 0.97), DECODE(.slots = 4, .busy = 0.54, .cpu = 0.01),
                 EMPTY_SINK } },
    { "epochs whose last items trail", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.01, .out = 0.98, .occupied = 0.4),
                 DECODE(.slots = 4, .busy = 0.6, .tail = 0.75, .gap = 0.15, .cpu = 0.01), EMPTY_SINK } },
    { "epochs that start late", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.65, .out = 0.3, .occupied = 0.2),
                 DECODE(.slots = 4, .busy = 0.5, .gap = 0.9, .cpu = 0.01), EMPTY_SINK } },
    { "epochs that start so late that the source works most of the time", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.85, .out = 0.1, .occupied = 0.1),
                 DECODE(.slots = 4, .busy = 0.2, .gap = 0.9, .cpu = 0.01), EMPTY_SINK } },
    { "ends of epochs that cost little", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { SOURCE(.busy = 0.01, .out = 0.98, .occupied = 0.9),
                 DECODE(.slots = 4, .busy = 0.94, .tail = 0.8, .cpu = 0.01), EMPTY_SINK } },
    { "a source that is slow within epochs, too", WEIR_VERDICT_SOURCE, "0:0:src",
      .nodes = { SOURCE(.busy = 0.97, .cpu = 0.01), DECODE(.slots = 4, .busy = 0.2, .gap = 0.25, .cpu = 0.01),
                 EMPTY_SINK } },
    { "a few tasks that find their result in a cache", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.01, .shortest = 0.05, .short_tasks = 0.05),
                 EMPTY_SINK } },
    { "tasks of random length", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.99, .cpu = 0.01, .shortest = 0.5, .spread = 0.5),
                 EMPTY_SINK } },
    { "pending tasks, and a thread that waits for a CPU now and then", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.98, .cpu = 0.01, .delay = 0.02, .pending = 0.97),
                 EMPTY_SINK },
      .others = 3 },
    { "pending tasks, and threads that wait for a CPU whenever they are needed", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.98, .cpu = 0.01, .pending = 0.97), EMPTY_SINK },
      .late_threads = 1.2, .others = 3.8 },
    { "tasks that sleep, and wake up late on a busy machine", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.98, .cpu = 0.01, .delay = 0.6), EMPTY_SINK },
      .others = 3.9 },
    { "few threads for tasks that sleep, on a busy machine", WEIR_VERDICT_THREADS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.25, .thread = 0.74, .cpu = 0.01, .delay = 0.6),
                 EMPTY_SINK },
      .threads = 2, .others = 3.9 },
    { "a codec's own threads", WEIR_VERDICT_SLOTS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.05), EMPTY_SINK }, .outside = 1.9 },
    { "a codec's own threads on all CPUs", WEIR_VERDICT_CPUS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.05), EMPTY_SINK }, .outside = 3.7 },
    { "a consumer that computes is no codec", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.99, .cpu = 0.01), SINK(.occupied = 0.1) }, .outside = 0.5,
      .consumer_waits = 0.5 },
    { "too little memory", WEIR_VERDICT_OUTSIDE, "0:1:decode", .nodes = { IDLE_SOURCE, DECODE(WAITING), EMPTY_SINK },
      .memory = 0.4, .io = 0.5, .faults = 800, .stored = 40e6 },
    { "a bound in bytes", WEIR_VERDICT_QUEUE, "0:0:src_queue",
      .nodes = { SOURCE(.busy = 0.5, .out = 0.5, .occupied = 0.45, .capacity = 64, .depth = 3, .queue_bytes = 1e6),
                 DECODE(.slots = 4, .busy = 0.45, .cpu = 0.9), EMPTY_SINK } },
    { "a slow item before others, in input order", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { IDLE_SOURCE,
                 DECODE(.slots = 4, .busy = 0.4, .turn = 0.59, .cpu = 0.1, .long_tasks = 0.02, .ordered = true),
                 EMPTY_SINK } },
    { "uneven items in input order", WEIR_VERDICT_ORDER, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.68, .turn = 0.3, .cpu = 0.9, .ordered = true),
                 EMPTY_SINK },
      .threads = 8 },
    { "a branch of a route", WEIR_VERDICT_OUTSIDE, "0:3:large",
      .nodes = { IDLE_SOURCE,
                 { .name = "0:1:route",
                   .kind = "route",
                   .busy = 0.01,
                   .out = 0.97,
                   .cpu = 1,
                   .occupied = 0.1,
                   .second = "0:1:route.1_queue" },
                 { .name = "0:2:small", .kind = "stage", .inputs = "0:1:route.0_queue", .busy = 0.2, .cpu = 0.9 },
                 { .name = "0:3:large", .kind = "stage", .inputs = "0:1:route.1_queue", .busy = 0.99, .cpu = 0.1 },
                 { .name = "0:4:join",
                   .kind = "merge",
                   .inputs = "0:2:small_queue 0:3:large_queue",
                   .merge_order = "arrival" },
                 { .name = "0:5:sink", .kind = "sink", .occupied = 0.02 } } },
    { "a branch of a route whose join restores the order", WEIR_VERDICT_OUTSIDE, "0:2:small",
      .nodes = { IDLE_SOURCE,
                 { .name = "0:1:route",
                   .kind = "route",
                   .busy = 0.01,
                   .out = 0.97,
                   .cpu = 1,
                   .occupied = 0.1,
                   .second = "0:1:route.1_queue" },
                 { .name = "0:2:small", .kind = "stage", .inputs = "0:1:route.0_queue", .busy = 0.99, .cpu = 0.1 },
                 { .name = "0:3:large",
                   .kind = "stage",
                   .inputs = "0:1:route.1_queue",
                   .busy = 0.1,
                   .out = 0.88,
                   .cpu = 0.9,
                   .occupied = 0.99 },
                 { .name = "0:4:join",
                   .kind = "merge",
                   .inputs = "0:2:small_queue 0:3:large_queue",
                   .merge_order = "arrival",
                   .ordered = true },
                 { .name = "0:5:sink", .kind = "sink", .occupied = 0.02 } } },
    { "a slow source among the inputs of a merge", WEIR_VERDICT_SOURCE, "0:1:other",
      .nodes = { SOURCE(.busy = 0.1, .out = 0.89, .occupied = 0.99),
                 OTHER_SOURCE(.busy = 0.98),
                 MERGE(.merge_order = "round_robin"),
                 { .name = "0:3:decode", .kind = "stage", .slots = 2, .busy = 0.1, .cpu = 0.9 },
                 { .name = "0:4:sink", .kind = "sink", .occupied = 0.02 } } },
    { "a slow source among the inputs of a merge, whose items wait", WEIR_VERDICT_OUTSIDE, "0:3:decode",
      .nodes = { SOURCE(.busy = 0.1, .out = 0.89, .occupied = 0.99),
                 OTHER_SOURCE(.busy = 0.99),
                 MERGE(.merge_order = "arrival", .occupied = 0.7),
                 { .name = "0:3:decode", .kind = "stage", .slots = 2, .busy = 0.88, .cpu = 0.01 },
                 { .name = "0:4:sink", .kind = "sink", .occupied = 0.02 } } },
    { "an input that comes seldom", WEIR_VERDICT_UNKNOWN, NULL,
      .nodes = { SOURCE(.busy = 0.1, .out = 0.89, .occupied = 0.99),
                 OTHER_SOURCE(.busy = 0.55),
                 MERGE(.merge_order = "weighted 3 1"),
                 { .name = "0:3:decode", .kind = "stage", .slots = 2, .busy = 0.1, .cpu = 0.9 },
                 { .name = "0:4:sink", .kind = "sink", .occupied = 0.02 } } },
    { "two sources that are both slow", WEIR_VERDICT_SOURCE, "0:0:src", .other = WEIR_VERDICT_SOURCE,
      .nodes = { SOURCE(.busy = 0.98, .cpu = 0.01, .occupied = 0.02),
                 OTHER_SOURCE(.busy = 0.97),
                 MERGE(.merge_order = "arrival"),
                 { .name = "0:3:decode", .kind = "stage", .slots = 2, .busy = 0.1, .cpu = 0.9 },
                 { .name = "0:4:sink", .kind = "sink", .occupied = 0.02 } } },
    { "a source that makes bursts", WEIR_VERDICT_QUEUE, "0:0:src_queue",
      .nodes = { SOURCE(.busy = 0.68, .out = 0.31, .cpu = 0.01, .occupied = 0.35),
                 DECODE(.slots = 2, .busy = 0.34, .cpu = 0.01), EMPTY_SINK } },
    { "bursts beside other programs on all CPUs", WEIR_VERDICT_QUEUE, "0:0:src_queue", .other = WEIR_VERDICT_CPUS,
      .nodes = { SOURCE(.busy = 0.68, .out = 0.31, .cpu = 0.01, .occupied = 0.35),
                 DECODE(.slots = 2, .busy = 0.34, .cpu = 0.01), EMPTY_SINK },
      .others = 3.9 },
    { "a consumer that takes bursts", WEIR_VERDICT_QUEUE, "0:2:sink_queue",
      .nodes = { SOURCE(.busy = 0.01, .out = 0.97, .occupied = 0.98), DECODE(.busy = 0.55, .out = 0.43, .cpu = 0.9),
                 SINK(.occupied = 0.45, .out = 0.43) },
      .consumer_waits = 0.5 },
    { "a few long items", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.98, .cpu = 0.01, .long_tasks = 0.025), EMPTY_SINK } },
    { "a few long items that compute", WEIR_VERDICT_SLOTS, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.98, .cpu = 0.97, .long_tasks = 0.03), EMPTY_SINK } },
    { "a slow consumer", WEIR_VERDICT_CONSUMER, "",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.1, .out = 0.88, .cpu = 0.9, .occupied = 0.98),
                 SINK(.occupied = 0.99, .out = 0.98) } },
    { "a training loop that never waits", WEIR_VERDICT_NONE, "",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.3, .out = 0.68, .cpu = 0.9, .occupied = 0.98),
                 SINK(.occupied = 0.99, .out = 0.98) },
      .trains = true },
    { "files that fail after a long wait", WEIR_VERDICT_FAILURES, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.1, .failed = 0.85), EMPTY_SINK } },
    { "files that fail on all CPUs", WEIR_VERDICT_FAILURES, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 8, .busy = 0.49, .thread = 0.5, .cpu = 0.98, .failed = 0.6),
                 EMPTY_SINK } },
    { "files that fail on the threads of others", WEIR_VERDICT_FAILURES, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 10, .busy = 0.1, .thread = 0.89, .cpu = 0.5, .failed = 0.7),
                 EMPTY_SINK },
      .threads = 1 },
    { "a few files that fail", WEIR_VERDICT_OUTSIDE, "0:1:decode",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.1, .failed = 0.3), EMPTY_SINK } },
    { "files that fail, and nobody waits for them", WEIR_VERDICT_CONSUMER, "",
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.3, .out = 0.68, .cpu = 0.1, .failed = 0.9),
                 SINK(.occupied = 0.99) } },
    { "a consumer as fast as the stage", WEIR_VERDICT_CONSUMER, "", .other = WEIR_VERDICT_OUTSIDE,
      .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.88, .out = 0.1, .cpu = 0.1), SINK(.occupied = 0.85) } },
    { "two stages in balance", WEIR_VERDICT_SLOTS, "0:1:decode", .other = WEIR_VERDICT_SLOTS,
      .nodes = { IDLE_SOURCE,
                 DECODE(.busy = 0.96, .cpu = 0.9, .occupied = 0.5),
                 { .name = "0:2:scale", .kind = "stage", .busy = 0.93, .cpu = 0.9 },
                 { .name = "0:3:sink", .kind = "sink", .occupied = 0.02 } } }
};

/* ---- recording a case -------------------------------------------------------------------------------------------- */

static double or_default(double value, double fallback)
{
    return value > 0 ? value : fallback;
}

static int64_t share_ns(double share)
{
    return NS(share * LAP_S);
}

/* Of `busy` seconds in all; a share of `long_tasks` of the tasks takes 100 times as long. */
static void fill_times(weir_histogram *times, const node_case *n, uint64_t num_tasks, int64_t *max_ns)
{
    double all = or_default(n->slots, 1) * n->busy * LAP_S, long_tasks = n->long_tasks * (double)num_tasks;
    double one = all / ((double)num_tasks - long_tasks + 100 * long_tasks);
    double shortest = or_default(n->shortest, 0.95) * all / (double)num_tasks;
    double num_short = floor(n->short_tasks * (double)num_tasks);
    one = num_short > 0 ? (all - num_short * shortest) / ((double)num_tasks - num_short) : one;
    for (uint64_t i = 0; i < num_tasks; i++) {
        bool is_long = n->long_tasks > 0 && i % (uint64_t)(1 / n->long_tasks) == 0;
        double normal = one * (1 - n->spread + 2 * n->spread * (double)i / (double)num_tasks);
        weir_histogram_record(times, NS(is_long ? 100 * one : (double)i < num_short ? shortest : normal));
    }
    *max_ns = NS(n->long_tasks > 0 ? 100 * one : one);
}

static void record_node(weir_observer observer, const weir_lap *lap, const node_case *n, bool counts)
{
    static weir_histogram times;
    bool works = strcmp(n->kind, "merge") != 0 && strcmp(n->kind, "sink") != 0;
    double slots = or_default(n->slots, 1), rest = 1 - n->busy - n->thread - n->turn - n->out;
    uint64_t num_tasks = (uint64_t)(or_default(n->rate, 100) * LAP_S);
    weir_subject_lap stage = { .subject = strcmp(n->kind, "stage") == 0 ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW,
                               .lap = lap,
                               .name = n->name,
                               .kind = n->kind };
    weir_histogram_clear(&times);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &stage.metrics.task);
    stage.metrics.task.run_times = &times;
    if (!counts) {
        stage.metrics.task.ended_ns = share_ns(slots);
    } else {
        stage.metrics.task.busy_ns = share_ns(slots * n->busy);
        stage.metrics.task.pending_ns = share_ns(slots * n->busy * n->pending);
        stage.metrics.task.wait_thread_ns = share_ns(slots * n->thread);
        stage.metrics.task.wait_turn_ns = share_ns(slots * n->turn);
        stage.metrics.task.wait_out_ns = share_ns(slots * n->out);
        if (strcmp(n->kind, "source") == 0)
            stage.metrics.task.wait_out_ns += share_ns(rest); /* a source has no input to wait for */
        else
            stage.metrics.task.wait_in_ns = share_ns(slots * rest);
        stage.metrics.task.epoch_tail_ns = share_ns(slots * rest * n->tail);
        stage.metrics.task.epoch_gap_ns = share_ns(slots * rest * n->gap);
    }
    if (counts && works) {
        stage.metrics.task.num_tasks = num_tasks;
        stage.metrics.task.failed_ns = share_ns(slots * n->busy * n->failed);
        stage.metrics.task.num_failures = n->failed > 0 ? num_tasks / 10 : 0;
        stage.metrics.task.success_ns = stage.metrics.task.busy_ns - stage.metrics.task.failed_ns;
        stage.metrics.task.cpu_ns = share_ns(slots * n->busy * n->cpu);
        stage.metrics.task.min_ns = NS(or_default(n->shortest, 0.95) * slots * n->busy * LAP_S / (double)num_tasks);
        fill_times(&times, n, num_tasks, &stage.metrics.task.max_ns);
    }
    if (!counts && n->at_start > 0) {
        stage.metrics.task.num_tasks = 1;
        stage.metrics.task.success_ns = stage.metrics.task.min_ns = stage.metrics.task.max_ns =
            NS(n->at_start * slots * n->busy * LAP_S / (double)num_tasks);
        weir_histogram_record(&times, stage.metrics.task.min_ns);
    }
    observer.lap(observer.self, &stage);
}

static void record_one_queue(weir_observer observer, const weir_lap *lap, const pipeline_case *c, const node_case *n,
                             const char *name, bool counts)
{
    static weir_histogram none;
    bool is_sink = strcmp(n->kind, "sink") == 0;
    uint32_t capacity = n->capacity ? n->capacity : 2;
    weir_subject_lap queue = {
        .subject = WEIR_SUBJECT_QUEUE, .kind = "queue", .lap = lap, .name = name, .capacity = capacity
    };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &queue.metrics.queue);
    queue.metrics.queue.put_times = queue.metrics.queue.get_times = &none;
    queue.metrics.queue.num_put = queue.metrics.queue.num_items =
        counts ? (uint64_t)(or_default(c->rate, 100) * LAP_S) : is_sink;
    queue.metrics.queue.get_ns = is_sink ? share_ns(or_default(c->consumer_waits, 1 - n->occupied)) : 0;
    queue.metrics.queue.late_ns = is_sink ? share_ns(c->late) : 0;
    queue.metrics.queue.occupied_ns = counts ? share_ns(n->occupied) : 0;
    queue.metrics.queue.depth_ns = n->occupied * LAP_S * 1e9 * (n->depth ? (double)n->depth : capacity);
    queue.metrics.queue.max_depth = n->depth ? n->depth : capacity;
    queue.metrics.queue.bytes_ns = n->occupied * LAP_S * 1e9 * n->queue_bytes;
    queue.metrics.queue.max_bytes = (int64_t)n->queue_bytes;
    observer.lap(observer.self, &queue);
}

static void record_queues(weir_observer observer, const weir_lap *lap, const pipeline_case *c, const node_case *n,
                          bool counts)
{
    char name[80];
    snprintf(name, sizeof name, n->second ? "%s.0_queue" : "%s_queue", n->name);
    record_one_queue(observer, lap, c, n, name, counts);
    if (n->second)
        record_one_queue(observer, lap, c, n, n->second, counts);
}

/* The threads that run these nodes: a node's own, or (NULL) the pipeline's. Returns the CPUs in use. */
static double record_pool(weir_observer observer, const weir_lap *lap, const pipeline_case *c, const node_case *own)
{
    char name[80] = "0:pool";
    double busy = 0, cpu = 0, delay = 0;
    uint32_t threads = own ? own->threads : c->threads ? c->threads : 4;
    for (const node_case *n = own ? own : c->nodes; n < c->nodes + MAX_NODES && n->name; n++) {
        if (own ? n != own : n->threads > 0)
            continue;
        double at_work = or_default(n->slots, 1) * n->busy;
        busy += at_work * (1 - n->pending);
        cpu += at_work * n->cpu;
        delay += at_work * n->delay;
    }
    if (own)
        snprintf(name, sizeof name, "%s_pool", own->name);
    weir_subject_lap pool = {
        .subject = WEIR_SUBJECT_POOL, .kind = "pool", .lap = lap, .name = name, .capacity = threads
    };
    pool.metrics.pool.busy_ns = share_ns(fmin(busy, threads));
    pool.metrics.pool.idle_ns = share_ns(threads) - pool.metrics.pool.busy_ns;
    pool.metrics.pool.cpu_ns = share_ns(cpu);
    pool.metrics.pool.run_delay_ns = share_ns(delay + (own ? 0 : c->late_threads));
    observer.lap(observer.self, &pool);
    return cpu;
}

static void record_machine(weir_observer observer, const weir_lap *lap, const pipeline_case *c, double pool_cpus)
{
    enum { CPUS = 4 };
    double process_cpus = pool_cpus + c->outside;
    weir_subject_lap process = {
        .subject = WEIR_SUBJECT_PROCESS, .kind = "process", .lap = lap, .name = "0:process", .capacity = CPUS
    };
    process.metrics.process.cpu_ns = share_ns(process_cpus);
    process.metrics.process.pool_cpu_ns = share_ns(pool_cpus);
    process.metrics.process.budget_ns = share_ns(CPUS);
    process.metrics.process.num_major_faults = (int64_t)(c->faults * LAP_S);
    process.metrics.process.read_bytes = (int64_t)(c->stored * LAP_S);
    observer.lap(observer.self, &process);
    weir_subject_lap machine = {
        .subject = WEIR_SUBJECT_MACHINE, .kind = "machine", .lap = lap, .name = "0:machine"
    };
    machine.metrics.machine.other_cpu_ns = share_ns(c->others);
    machine.metrics.machine.disk_idle_ns = share_ns(c->disk_idle);
    machine.metrics.machine.idle_ns = share_ns(fmax(0, CPUS - process_cpus - c->others - c->stolen - c->disk_idle));
    machine.metrics.machine.stolen_ns = share_ns(c->stolen);
    machine.metrics.machine.throttled_ns = share_ns(c->throttled);
    machine.metrics.machine.io_pressure_ns = c->io < 0 ? -1 : share_ns(c->io);
    machine.metrics.machine.memory_pressure_ns = share_ns(c->memory);
    machine.metrics.machine.received_bytes = (int64_t)(c->received * LAP_S);
    observer.lap(observer.self, &machine);
}

static void record_case_lap(weir_observer observer, const pipeline_case *c, int number, const char *phase,
                            bool counts)
{
    weir_lap lap = {
        .number = (uint64_t)number,
        .end_unix_ns = NS(1000 + LAP_S * (number + 1)),
        .elapsed_ns = NS(LAP_S),
        .num_joined = 1,
        .position = { .phase = phase, .first_step = c->trains ? number : 0, .last_step = c->trains ? number : -1 }
    };
    double cpus = 0;
    for (const node_case *n = c->nodes; n < c->nodes + MAX_NODES && n->name; n++) {
        record_node(observer, &lap, n, counts);
        record_queues(observer, &lap, c, n, counts);
        if (n->threads)
            cpus += record_pool(observer, &lap, c, n);
    }
    cpus += record_pool(observer, &lap, c, NULL);
    record_machine(observer, &lap, c, cpus);
    observer.lap_end ? observer.lap_end(observer.self, &lap) : (void)0;
}

static weir_observer begin_case(weir_sqlite_writer *writer, const pipeline_case *c)
{
    static char queues[MAX_NODES][80];
    weir_stage_info stages[MAX_NODES] = { { .name = NULL } };
    weir_observer observer = weir_sqlite_observer(writer);
    uint32_t count = 0;
    for (const node_case *n = c->nodes; n < c->nodes + MAX_NODES && n->name; n++, count++) {
        snprintf(queues[count], sizeof queues[count], n->second ? "%s.0_queue" : "%s_queue", n->name);
        stages[count] = (weir_stage_info){
            .name = n->name,
            .queue_name = queues[count],
            .kind = n->kind,
            .concurrency = (uint32_t)or_default(n->slots, 1),
            .queue_items = n->capacity ? n->capacity : 2,
            .queue_bytes = (uint64_t)n->queue_bytes,
            .output_order = n->ordered ? "input" : "completion",
            .inputs = n->inputs ? n->inputs
                      : count   ? queues[count - 1]
                                : "",
            .merge_order = n->merge_order ? n->merge_order : "",
            .threads = n->threads,
        };
    }
    observer.run_start(observer.self, &(weir_run_info){ .start_unix_ns = NS(1000),
                                                        .threads = c->threads ? c->threads : 4,
                                                        .stages = stages,
                                                        .num_stages = count });
    return observer;
}

/* The laps before `change` are those of `c`, the others those of `later`; period: as many laps of `c` and of `later` take turns
   (0 = they do not). The first and the last lap do not count. */
static void record_turns(const char *path, weir_sqlite_options options, const pipeline_case *c, int num_laps,
                         const pipeline_case *later, int change, int period)
{
    options.command = "weir record videos";
    weir_sqlite_writer *writer = open_writer(path, &options);
    weir_observer observer = begin_case(writer, c);
    for (int i = 0; i < num_laps; i++) {
        bool is_first = period ? i / period % 2 == 0 : i < change;
        record_case_lap(observer, is_first ? c : later, i, "", i > 0 && i < num_laps - 1);
    }
    observer.run_end(observer.self, &(weir_run_end){ .end_unix_ns = NS(1000 + LAP_S * num_laps) });
    close_writer(writer);
}

static void record_run(const char *path, weir_sqlite_options options, const pipeline_case *c, int num_laps,
                       const pipeline_case *later, int change)
{
    record_turns(path, options, c, num_laps, later, change, 0);
}

static const char *record_case(const pipeline_case *c)
{
    const char *path = in_folder("case.db"); /* many runs; the last one counts */
    record_run(path, (weir_sqlite_options){ .rank = 0 }, c, STEADY_LAPS + 2, c, 0);
    return path;
}

static weir_verdict *verdict_on(const char *path, const weir_filter *filter)
{
    const weir_filter last = { .run_id = WEIR_LAST_RUN };
    weir_recording *recording = open_reader(path);
    weir_verdict *verdict;
    weir_error error = { 0 };
    if (weir_verdict_explain(recording, filter ? filter : &last, &verdict, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(recording);
    return verdict;
}

/* ---- the tests --------------------------------------------------------------------------------------------------- */

TEST_CASE(each_limit_is_named)
{
    size_t num_wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pipeline_case *c = &cases[i];
        weir_recording *recording = open_reader(record_case(c));
        weir_verdict *v;
        assert_int_equal(weir_verdict_read(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &v, NULL), WEIR_OK);
        weir_recording_close(recording);
        if (v->kind != c->kind || strcmp(v->name, c->name ? c->name : "") != 0 || v->other_kind != c->other) {
            num_wrong++;
            print_message("%s: %s %s, other %s, instead of %s %s, other %s\n", c->what, weir_verdict_word(v->kind),
                          v->name, weir_verdict_word(v->other_kind), weir_verdict_word(c->kind), c->name,
                          weir_verdict_word(c->other));
            weir_verdict_write(v, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, stdout);
        }
        if (v->num_cut_laps != 2 || v->num_laps != STEADY_LAPS)
            fail_msg("%s: %d laps count, %d do not", c->what, (int)v->num_laps, (int)v->num_cut_laps);
        bool is_sure = strcmp(weir_verdict_certainty(v), "unsure") != 0;
        bool can_tell = c->kind != WEIR_VERDICT_UNKNOWN && c->other == WEIR_VERDICT_UNKNOWN;
        if (is_sure != can_tell)
            fail_msg("%s: %s", c->what, weir_verdict_certainty(v));
        weir_verdict_free(v);
    }
    assert_int_equal(num_wrong, 0);
}

/* What exports show of a lap in progress follows from the same rules. Held constant: the laps of a case do not differ. */
TEST_CASE(the_limit_of_one_lap_is_that_of_the_recording)
{
    const weir_limit_rules *rules = weir_verdict_limit_rules();
    const weir_filter run = { .run_id = WEIR_LAST_RUN };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_recording *recording = open_reader(record_case(&cases[i]));
        weir_filter one_lap = run;
        weir_records stages;
        weir_totals totals;
        weir_named_limit recorded, current;
        one_lap.start_unix_ns = NS(1000 + 2.25 * LAP_S);
        one_lap.end_unix_ns = NS(1000 + 2.75 * LAP_S);
        assert_int_equal(rules->read(recording, &run, &recorded, NULL), WEIR_OK);
        assert_int_equal(weir_records_read(recording, WEIR_RECORD_STAGE, &run, &stages, NULL), WEIR_OK);
        assert_int_equal(weir_totals_read(recording, &one_lap, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, NULL),
                         WEIR_OK);
        assert_int_equal(rules->judge(&totals, &stages, &current, NULL), WEIR_OK);
        if (strcmp(current.kind, recorded.kind) != 0 || strcmp(current.stage, recorded.stage) != 0)
            fail_msg("%s: %s of %s, not %s of %s", cases[i].what, current.kind, current.stage, recorded.kind,
                     recorded.stage);
        assert_string_equal(recorded.kind, weir_verdict_word(cases[i].kind));
        assert_string_equal(rules->word(recorded.number), recorded.kind);
        weir_totals_free(&totals);
        weir_records_free(&stages);
        weir_recording_close(recording);
    }
    assert_string_equal(rules->word(WEIR_NUM_VERDICTS), "");
}

static const pipeline_case *case_of(const char *what)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(cases[i].what, what) == 0)
            return &cases[i];
    fail_msg("no case %s", what);
    return NULL;
}

static size_t count_evidence(const weir_verdict *v, const char *text)
{
    size_t count = 0;
    for (size_t i = 0; i < v->num_evidence; i++)
        count += strstr(v->evidence[i], text) != NULL;
    return count;
}

TEST_CASE(the_time_at_the_ends_of_epochs_is_told_with_its_cause)
{
    static const struct {
        const char *what, *sentence, *evidence;
    } reported[] = {
        { "epochs whose last items trail",
          "The ends of epochs: 36 % of the time of the slots of 0:1:decode goes into them, mostly waiting for the "
          "last items of an "
          "epoch.",
          "30 % of the time of the slots of 0:1:decode: no item of the epoch is left" },
        { "epochs that start late",
          "The ends of epochs: 45 % of the time of the slots of 0:1:decode goes into them, mostly waiting for the "
          "first item of "
          "the next one.",
          "the first item of the next one is not there; it comes from 0:0:src" },
        { "a source that is slow within epochs, too", NULL,
          "20 % of the time of the slots of 0:1:decode: an epoch has ended" },
        { "ends of epochs that cost little", NULL, NULL },
    };
    for (size_t i = 0; i < sizeof reported / sizeof reported[0]; i++) {
        weir_verdict *v = verdict_on(record_case(case_of(reported[i].what)), NULL);
        if (reported[i].sentence)
            assert_string_equal(v->sentence, reported[i].sentence);
        assert_int_equal(count_evidence(v, "of the time of the slots of"), reported[i].evidence ? 1 : 0);
        if (reported[i].evidence)
            assert_int_equal(count_evidence(v, reported[i].evidence), 1);
        weir_verdict_free(v);
    }
}

/* What may be other programs' is evidence only if this process could have waited for it. */
TEST_CASE(evidence_is_of_this_process)
{
    static const struct {
        const char *what, *text;
        size_t count;
    } lines[] = { { "a network", "network", 0 },
                  { "a disk", "waited for a disk", 1 },
                  { "a lock, while another program uses a disk", "disk", 0 },
                  { "too little memory", "waited for memory", 1 },
                  { "a few long items", "the slowest 1 % of the items", 1 },
                  { "tasks of random length", "the slowest 1 %", 0 } };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        weir_verdict *v = verdict_on(record_case(case_of(lines[i].what)), NULL);
        if (count_evidence(v, lines[i].text) != lines[i].count)
            fail_msg("%s: %s", lines[i].what, lines[i].text);
        weir_verdict_free(v);
    }
}

/* All that is reported, as it follows from the shares of the case. */
static const struct {
    const char *what, *evidence[6];
} evidence_cases[] = {
    { "a source on a slow disk",
      { "0:0:src (1 slot): busy for 97 % of the time, waiting for room in its queue 3 %",
        "while it is busy: on a CPU for 5 % of the time, waiting for something else 95 %",
        "on average 1.0 tasks run at once, and each takes 9.70 ms; the shortest took 9.21 ms",
        "for 80 % of the time some task of the machine waited for a disk; this process reads and writes 50.0 MB per "
        "second" } },
    { "a source that starves on the stage's thread",
      { "0:0:src (1 slot): busy for 15 % of the time, waiting for a thread 85 %",
        "while it is busy: on a CPU for 10 % of the time, waiting for something else 90 %",
        "0:pool (1 thread): busy for 99 % of the time, on a CPU for 3 % of that",
        "CPUs: this process uses 0.03 of 4, other programs 0.00, 3.97 are idle",
        "0:1:decode uses most of them: 0.84 on average" } },
    { "two slots that wait",
      { "0:1:decode (2 slots): busy for 99 % of the time, waiting for input 1 %",
        "while it is busy: on a CPU for 1 % of the time, waiting for something else 99 %",
        "on average 2.0 tasks run at once, and each takes 19.8 ms; the shortest took 18.8 ms" } },
    { "private threads that are too few",
      { "0:1:decode (6 slots): busy for 32 % of the time, waiting for input 1 %, waiting for a thread 67 %",
        "while it is busy: on a CPU for 2 % of the time, waiting for something else 98 %",
        "0:1:decode_pool (2 threads): busy for 96 % of the time, on a CPU for 2 % of that",
        "CPUs: this process uses 0.04 of 4, other programs 0.00, 3.96 are idle" } },
    { "CPUs that other programs take",
      { "0:1:decode (4 slots): busy for 98 % of the time, waiting for input 2 %",
        "while it is busy: on a CPU for 30 % of the time, waiting for a CPU 59 %, waiting for something else 11 %",
        "CPUs: this process uses 1.18 of 4, other programs 2.70, 0.12 are idle" } },
    { "a CPU quota",
      { "0:1:decode (4 slots): busy for 98 % of the time, waiting for input 2 %",
        "while it is busy: on a CPU for 50 % of the time, waiting for a CPU 23 %, waiting for something else 27 %",
        "CPUs: this process uses 1.96 of 4, other programs 0.00, 2.04 are idle; the quota stopped it for 50 % of the "
        "time" } },
};

TEST_CASE(each_limit_has_its_evidence)
{
    for (size_t i = 0; i < sizeof evidence_cases / sizeof evidence_cases[0]; i++) {
        size_t num = 0;
        weir_verdict *v = verdict_on(record_case(case_of(evidence_cases[i].what)), NULL);
        for (; num < 6 && evidence_cases[i].evidence[num]; num++) {
            assert_true(num < v->num_evidence);
            assert_string_equal(v->evidence[num], evidence_cases[i].evidence[num]);
        }
        assert_int_equal(v->num_evidence, num);
        assert_float_equal(v->items_per_s, 100, 1e-3);
        weir_verdict_free(v);
    }
}

TEST_CASE(each_kind_has_a_case_a_word_and_a_sentence)
{
    for (int kind = 0; kind < WEIR_NUM_VERDICTS; kind++) {
        bool has_case = kind == WEIR_VERDICT_UNKNOWN; /* without_records_nothing_can_be_told */
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            has_case |= (int)cases[i].kind == kind;
        if (!has_case || !*weir_verdict_word((weir_verdict_kind)kind))
            fail_msg("kind %d", kind);
    }
    assert_string_equal(weir_verdict_word((weir_verdict_kind)99), "");
}

static void assert_advice_is_written(const weir_verdict *v, const char *first, const char *rest)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_verdict_write(v, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, out);
    fclose(out);
    if (!strstr(text, first) || !strstr(text, rest))
        fail_msg("%s", text);
    free(text);
}

/* A text that does not fit is cut off. */
TEST_CASE(predictions_of_any_size_are_written)
{
    weir_verdict_advice advice = {
        .change = "this", .options = "", .code = "", .next = "", .assumes = "", .stage = ""
    };
    advice.error = NAN;
    advice.gain = advice.low = advice.high = advice.more_cpus = advice.more_bytes = 1e200;
    weir_verdict v = { .kind = WEIR_VERDICT_SLOTS, .sentence = "The slots.", .missing = "", .items_per_s = 1e200 };
    v.advice = &advice;
    v.num_advice = 1;
    assert_advice_is_written(
        &v, "What helps (predicted: ", "1000000.00x to 1000000.00x   this (1000000000.0 CPUs more)\n");
}

/* A gain with its error; what no recording tells is a sentence. */
TEST_CASE(what_a_prediction_assumes_is_said_with_it)
{
    weir_verdict *v = verdict_on(record_case(case_of("two slots that wait")), NULL);
    assert_advice_is_written(v, "\n  2.00x +/- 0.2", "many at once; as now if not\n");
    weir_verdict_free(v);
    v = verdict_on(record_case(case_of("one slot that computes, and idle CPUs")), NULL);
    assert_advice_is_written(v, "\n  2.00x +/- 0.2", "decode with 2 slots instead of 1");
    assert_string_equal(v->advice[0].assumes, "");
    weir_verdict_free(v);
}

static weir_verdict_advice invented_advice(const char *change, double low, double high)
{
    return (weir_verdict_advice){ .change = change,
                                  .options = "--threads 2",
                                  .code = "",
                                  .next = "",
                                  .assumes = "",
                                  .stage = "",
                                  .gain = (low + high) / 2,
                                  .error = NAN,
                                  .low = low,
                                  .high = high,
                                  .more_cpus = NAN,
                                  .is_measured = true };
}

/* What was measured and does not help is not given as help; there is one command to go on with. */
TEST_CASE(a_measured_loss_is_no_help)
{
    const weir_verdict_advice advice[] = { invented_advice("more slots", 0.7, 0.9),
                                           invented_advice("fewer", 1.2, 1.3) };
    weir_verdict v = { .kind = WEIR_VERDICT_SLOTS, .sentence = "The slots.", .missing = "", .items_per_s = NAN };
    v.advice = advice;
    v.num_advice = 2;
    assert_advice_is_written(&v,
                             "\nWhat was tried and does not help (measured: items per second, 1.00x = as now):\n"
                             "  0.70x to 0.90x   more slots: --threads 2\n",
                             "\nWhat helps (measured: items per second, 1.00x = as now):\n"
                             "  1.20x to 1.30x   fewer: --threads 2\n");
    assert_advice_is_written(&v, "What helps", "\nNext: weir record DIR --threads 2, then weir compare\n");
    v.num_advice = 1;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_verdict_write(&v, 0, 0, out);
    fclose(out);
    assert_null(strstr(text, "would help"));
    assert_null(strstr(text, "Next"));
    free(text);
}

/* Options are those of the program that recorded. */
TEST_CASE(advice_fits_the_program_that_recorded)
{
    static const char *const commands[][2] = { { "/usr/bin/weir record videos", "--concurrency 4 --threads 6" },
                                               { "bin/performance_analysis --dataset-dir d", "--concurrency 4" },
                                               { "python3 train.py record", "" },
                                               { "", "" } };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char sql[200];
        const char *path = record_case(case_of("two slots that wait"));
        snprintf(sql, sizeof sql, "UPDATE run SET command = '%s'", commands[i][0]);
        execute(path, sql);
        weir_verdict *v = verdict_on(path, NULL);
        assert_string_equal(v->advice[0].options, commands[i][1]);
        assert_true(*v->advice[0].code && !strstr(v->missing, "weir record") == (i > 0));
        assert_true(!strstr(v->missing, "explain(live=True)") == !strstr(commands[i][0], "python"));
        weir_verdict_free(v);
    }
    const char *path = record_case(case_of("a slow consumer"));
    execute(path, "UPDATE run SET command = 'weir record videos --headspace 1s'");
    weir_verdict *v = verdict_on(path, NULL);
    assert_string_equal(v->advice[0].change, "loading needs no change; only a faster training step would help");
    weir_verdict_free(v);
    execute(path, "UPDATE run SET command = '/usr/bin/python3.11 train.py'");
    v = verdict_on(path, NULL);
    assert_string_equal(v->advice[0].change, "several threads that iterate over the pipeline");
    weir_verdict_free(v);
}

/* Where a stage waits: its slowest items. */
TEST_CASE(the_slowest_items_of_a_stage_that_waits_are_named)
{
    const char *path = record_case(case_of("two slots that wait"));
    execute(path,
            "INSERT INTO item_stats (timestamp, run_id, name, label, elapsed) SELECT 1020, run_id, "
            "'0:1:decode', 'dir/' || value || '.mp4', value FROM run, json_each('[1, 5, 2, 4]'); "
            "INSERT INTO event_stats (timestamp, event_name, run_id, detail) SELECT 1020, 'trace_file', run_id, "
            "'/tmp/t.json' FROM run");
    weir_verdict *v = verdict_on(path, NULL);
    assert_advice_is_written(v, "its slowest items: 5.mp4 5.00 s, 4.mp4 4.00 s, 2.mp4 2.00 s",
                             "weir trace /tmp/t.json");
    weir_verdict_free(v);
}

/* Half of the 95 % interval of a share of n looks is at most 1 / sqrt(n). */
TEST_CASE(what_the_tasks_wait_for_is_named_where_looks_are_certain)
{
    static const struct {
        const char *set, *sentence, *evidence;
    } waits[] = {
        { "num_lock_waits = 900, num_file_waits = 80",
          "The slots of 0:1:decode: all of them are busy, mostly with waiting for locks or other threads.",
          "what its tasks wait for, in 3920 looks at them: locks or other threads 92 %" },
        { "num_file_waits = 520, num_network_waits = 480",
          "The slots of 0:1:decode: all of them are busy, mostly with waiting for files.",
          "what its tasks wait for, in 4000 looks at them: files 52 %, the network 48 %" },
        { "num_file_waits = 510, num_network_waits = 490",
          "The slots of 0:1:decode: all of them are busy, mostly with waiting for something outside weir.",
          "what its tasks wait for, in 4000 looks at them: files 51 %, the network 49 %" },
        { "num_other_waits = 1000",
          "The slots of 0:1:decode: all of them are busy, mostly with waiting for something outside weir.",
          "what its tasks wait for, in 4000 looks at them: other system calls 100 %" },
        { "num_lock_waits = 0",
          "The slots of 0:1:decode: all of them are busy, mostly with waiting for something outside weir.", NULL },
    };
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        char sql[300];
        const char *path = record_case(case_of("a network"));
        snprintf(sql, sizeof sql, "UPDATE task_stats SET num_looks = 1000, %s WHERE name = '0:1:decode'",
                 waits[i].set);
        execute(path, sql);
        weir_verdict *v = verdict_on(path, NULL);
        assert_string_equal(v->sentence, waits[i].sentence);
        bool is_reported = false, has_looks = false;
        for (size_t j = 0; j < v->num_evidence; j++) {
            is_reported |= waits[i].evidence && strcmp(v->evidence[j], waits[i].evidence) == 0;
            has_looks |= strstr(v->evidence[j], " looks at them") != NULL;
        }
        if (waits[i].evidence ? !is_reported : has_looks)
            fail_msg("case %zu: %s", i, v->evidence[v->num_evidence - 1]);
        weir_verdict_free(v);
    }
}

/* The first one of this stage. */
TEST_CASE(the_first_item_that_failed_is_named)
{
    const char *path = record_case(case_of("files that fail after a long wait"));
    execute(path,
            "INSERT INTO task_failures (timestamp, run_id, name, label, status, message) "
            "SELECT 1020 + value, run_id, iif(value, '0:1:decode', '0:0:src'), 'dir/' || value || '.mp4', -1, 'x' "
            "FROM run, json_each('[0, 1, 2]') WHERE run_id = (SELECT max(run_id) FROM run)");
    weir_verdict *v = verdict_on(path, NULL);
    assert_string_equal(v->sentence,
                        "Items that fail: 85 % of the time of the tasks of 0:1:decode goes into them; the "
                        "first is 1.mp4.");
    assert_string_equal(v->evidence[1],
                        "85 % of the time of its tasks goes into 400 that fail: weir failures lists them");
    assert_string_equal(v->advice[0].change, "a list without the items that fail: weir failures lists them");
    weir_verdict_free(v);
}

/* By its sum, not by its longest one; a counter or marker of that name is none. */
TEST_CASE(the_longest_span_of_the_program_is_named)
{
    const char *path = record_case(case_of("two slots that wait"));
    execute(path,
            "INSERT INTO span_stats (timestamp, elapsed, name, run_id, kind, num_spans, total_time, min_time, "
            "max_time) SELECT 1020, 10, value->>0, run_id, value->>1, value->>2, value->>3, 0.01, value->>4 FROM "
            "run, json_each('[[\"lock\", \"span\", 3, 0.25, 0.2], [\"fetch\", \"span\", 9, 0.75, 0.1], "
            "[\"mark\", \"marker\", 9, 8, 1]]')");
    weir_verdict *v = verdict_on(path, NULL);
    assert_advice_is_written(v, "the longest span in the program: fetch, 0.75 s in all\n", "Limit: ");
    weir_verdict_free(v);
}

TEST_CASE(the_advice_is_what_the_model_predicts)
{
    weir_verdict *v = verdict_on(record_case(case_of("two slots that wait")), NULL);
    assert_true(v->num_advice >= 1);
    assert_string_equal(v->advice[0].change, "decode with 4 slots instead of 2, and 6 threads instead of 4");
    assert_string_equal(v->advice[0].options, "--concurrency 4 --threads 6");
    assert_string_equal(v->advice[0].stage, "0:1:decode");
    assert_true(v->advice[0].slots == 4 && v->advice[0].threads == 6 && !v->advice[0].is_measured);
    assert_true(fabs(v->advice[0].gain - 2) < 0.1 && v->advice[0].low <= 1); /* it was not measured */
    assert_true(v->advice[0].items_per_s > 180 && *v->advice[0].next);
    assert_advice_is_written(v, "\nWhat helps (predicted: items per second, 1.00x = as now):\n  ",
                             "   decode with 4 slots instead of 2, and 6 threads instead of 4:\n                   "
                             "--concurrency 4 --threads 6");
    assert_advice_is_written(v, "\n                   C: .concurrency = 4 in the options of decode, ", "");
    for (size_t i = 1; i < v->num_advice; i++)
        assert_true(isnan(v->advice[i].gain) || v->advice[i].gain <= v->advice[i - 1].gain + 0.02);
    weir_verdict_free(v);

    v = verdict_on(record_case(case_of("a slow item before others, in input order")), NULL);
    bool has_order = false;
    for (size_t i = 0; i < v->num_advice; i++)
        has_order |= strcmp(v->advice[i].options, "--order completion") == 0;
    assert_true(has_order);
    weir_verdict_free(v);
    v = verdict_on(record_case(case_of("a network")), NULL);
    assert_true(v->num_advice >= 1);
    weir_verdict_free(v);
}

/* An advice with its figures, as they follow from the shares of the case: 100 items per second are measured in each. */
static const struct advice_case {
    const char *what; /* the case */
    size_t at;        /* place of the advice */
    const char *change, *options, *code, *next;
    double gain, more_cpus; /* NAN = is not predicted */
    uint32_t slots, threads;
} advice_cases[] = {
    /* twice the slots: twice the tasks, and twice 2 x 1 % of a CPU */
    { "two slots that wait", 0, "decode with 4 slots instead of 2, and 6 threads instead of 4",
      "--concurrency 4 --threads 6",
      ".concurrency = 4 in the options of decode, .threads = 6 in those of the pipeline",
      "the slots of 0:1:decode[4]", 2, 0.02, 4, 6 },
    { "one slot that computes, and idle CPUs", 0, "decode with 2 slots instead of 1, and 5 threads instead of 4",
      "--concurrency 2 --threads 5",
      ".concurrency = 2 in the options of decode, .threads = 5 in those of the pipeline",
      "the slots of 0:1:decode[2]", 2, 0.98, 2, 5 },
    { "the second of two stages", 0, "scale with 2 slots instead of 1, and 5 threads instead of 4", "",
      ".concurrency = 2 in the options of scale, .threads = 5 in those of the pipeline", "the slots of 0:2:scale[2]",
      2, 1.44, 2, 5 },
    { "ten slots on one thread", 0, "2 threads instead of 1 in the pool", "--threads 2",
      ".threads = 2 in the options of the pipeline", "the threads of the pool", 2, 0.98, 0, 2 },
    /* as many threads as slots: 8 / 2 */
    { "tasks that wait on all threads of the pool", 0, "8 private threads for decode, whose tasks mostly wait", "",
      ".threads = 8 in the options of decode", "the slots of 0:1:decode[8]", 4, 0.06, 0, 0 },
    { "tasks that wait on all threads of the pool", 1, "4 threads instead of 2 in the pool", "--threads 4",
      ".threads = 4 in the options of the pipeline", "the threads of the pool", 2, 0.02, 0, 4 },
    { "more slots than items, on one thread", 0, "10 private threads for decode, whose tasks mostly wait", "",
      ".threads = 10 in the options of decode", "the slots of 0:1:decode[10]", 10, 0.18, 0, 0 },
    { "private threads that are too few", 0, "4 threads instead of 2 for decode", "",
      ".threads = 4 in the options of the stage", "the threads of 0:1:decode[6]", 2, 0.04, 0, 4 },
    { "a source that starves on the stage's thread", 2, "1 private thread for src, whose tasks mostly wait", "",
      ".threads = 1 in the options of src", "the threads of the pool", 1 / 0.85, 0.0057, 0, 0 },
    { "four computing threads on four CPUs", 0, "a machine, or a quota, with twice the CPUs", "", "", "the CPUs", 2,
      3.92, 0, 0 },
    /* without the 59 % of a task that wait for a CPU */
    { "CPUs that other programs take", 0, "stop other programs that use the CPUs", "", "",
      "the slots of 0:1:decode[4]", 1 / 0.41, 1.7, 0, 0 },
    { "a bound in bytes", 0, "a queue of 256 items and four times the bytes after src instead of 64",
      "--source-queue-items 256", ".queue_items = 256 in the options of src", "", NAN, NAN, 0, 0 },
    { "a source that makes bursts", 0, "a queue of 32 items after src instead of 2", "--source-queue-items 32",
      ".queue_items = 32 in the options of src", "", NAN, NAN, 0, 0 },
    { "a consumer that takes bursts", 0, "a queue of 32 items after sink instead of 3", "--sink-queue-items 32",
      ".queue_items = 32 in the options of sink", "", NAN, NAN, 0, 0 },
    { "epochs of few items: the next one waits in the queue", 0,
      "longer epochs: several passes over the items in each, or steps that the consumer counts", "", "", "", NAN, NAN,
      0, 0 },
};

static bool is_near(double got, double wanted, double share)
{
    return isnan(wanted) ? isnan(got) : fabs(got - wanted) <= share * wanted;
}

static void assert_advice(const struct advice_case *c, const weir_verdict *v)
{
    if (v->num_advice <= c->at)
        fail_msg("%s: %zu pieces of advice", c->what, v->num_advice);
    const weir_verdict_advice *a = &v->advice[c->at];
    assert_string_equal(a->change, c->change);
    assert_string_equal(a->options, c->options);
    assert_string_equal(a->code, c->code);
    assert_string_equal(a->next, c->next);
    assert_int_equal(a->slots, c->slots);
    assert_int_equal(a->threads, c->threads);
    assert_false(a->is_measured || a->changes_job);
    if (!is_near(a->gain, c->gain, 0.02) || !is_near(a->more_cpus, c->more_cpus, 0.05) ||
        !is_near(a->items_per_s, 100 * c->gain, 0.02))
        fail_msg("%s: %s: gain %.3f, %.2f items per second, %.3f CPUs", c->what, c->change, a->gain, a->items_per_s,
                 a->more_cpus);
    if (isnan(c->gain))
        assert_true(isnan(a->low) && isnan(a->high) && isnan(a->error));
    else
        assert_true(a->low > 0.4 && a->low <= 1 && a->high >= a->gain && a->high <= 1.15 * a->gain);
    assert_true(isnan(c->gain) || (a->error >= 0.1 && a->error < 0.25));
}

TEST_CASE(each_advice_has_its_figures)
{
    for (size_t i = 0; i < sizeof advice_cases / sizeof advice_cases[0]; i++) {
        weir_verdict *v = verdict_on(record_case(case_of(advice_cases[i].what)), NULL);
        assert_advice(&advice_cases[i], v);
        weir_verdict_free(v);
    }
}

/* Half of the frames, whose share of a task is 80 %: 1 / (0.2 + 0.8 / 2); unless the run has chosen frames. */
TEST_CASE(fewer_frames_are_advised_where_decoding_computes)
{
    static const struct {
        const char *command;
        bool is_advised;
    } runs[] = { { "weir record videos", true },
                 { "weir record videos --every 3", false },
                 { "weir record videos --first 20", false },
                 { "weir record videos --window 2", false },
                 { "weir record videos --keyframes", false } };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char sql[600];
        const char *path = record_case(case_of("one slot that computes, and idle CPUs"));
        snprintf(
            sql, sizeof sql,
            "UPDATE run SET command = '%s'; INSERT INTO item_stats (timestamp, run_id, name, label, codec, "
            "num_frames, elapsed, demux_time, decode_time, scale_time) SELECT 1020, run_id, '0:1:decode', value, "
            "'h264', 40 + value, 10, 1, 4, 3 FROM run, json_each('[0, 20, 40]')",
            runs[i].command);
        execute(path, sql);
        weir_verdict *v = verdict_on(path, NULL);
        const weir_verdict_advice *last = &v->advice[v->num_advice - 1];
        assert_int_equal(v->num_advice, runs[i].is_advised ? 2 : 1);
        assert_int_equal(last->changes_job, runs[i].is_advised);
        if (runs[i].is_advised) {
            assert_string_equal(last->change, "half of the frames: only the first 30 of each video");
            assert_string_equal(last->options, "--first 30");
            assert_string_equal(last->code, ".sampling.first = 30 in weir_video_config");
            assert_true(is_near(last->gain, 1 / 0.6, 0.02));
        }
        weir_verdict_free(v);
    }
}

TEST_CASE(an_end_to_other_programs_helps_where_they_take_the_cpus)
{
    weir_verdict *v = verdict_on(record_case(case_of("CPUs that other programs take")), NULL);
    assert_true(v->num_advice >= 1);
    assert_string_equal(v->advice[0].change, "stop other programs that use the CPUs");
    assert_true(v->advice[0].gain > 1.1 && v->advice[0].high >= v->advice[0].gain);
    weir_verdict_free(v);
}

/* A lap with few items, in which a change that doubles the throughput could not be seen. */
TEST_CASE(a_short_run_predicts_nothing)
{
    pipeline_case c = *case_of("two slots that wait");
    for (int i = 0; i < 2; i++) {
        const char *path = in_folder("short.db");
        record_run(path, (weir_sqlite_options){ .rank = 0 }, &c, 3, &c, 0);
        if (i == 1)
            execute(path, "UPDATE queue_stats SET num_items = 8, num_put = 8 WHERE num_items > 100");
        weir_verdict *v = verdict_on(path, NULL);
        bool is_short = strstr(v->missing, "too short") != NULL;
        if (is_short != (i == 1) || isnan(v->advice[0].high) != (i == 1))
            fail_msg("%d: %s, up to %.2f times", i, v->missing, v->advice[0].high);
        assert_true(!is_short || strstr(v->missing, "weir record DIR --explain")); /* which is short itself */
        weir_verdict_free(v);
        for (int n = 0; n < 3; n++)
            c.nodes[n].rate = 0.8;
    }
}

TEST_CASE(where_nothing_takes_time_there_is_a_verdict_without_predictions)
{
    static const pipeline_case c = { .nodes = { SOURCE(.out = 1, .occupied = 1), DECODE(.out = 1, .occupied = 1),
                                                SINK(.occupied = 1) },
                                     .consumer_waits = 1 };
    const char *path = in_folder("idle.db");
    record_run(path, (weir_sqlite_options){ .rank = 0 }, &c, STEADY_LAPS + 2, &c, 0);
    weir_verdict *v = verdict_on(path, NULL);
    assert_int_equal(v->kind, WEIR_VERDICT_CONSUMER);
    for (size_t i = 0; i < v->num_advice; i++)
        assert_true(isnan(v->advice[i].gain));
    weir_verdict_free(v);
}

TEST_CASE(where_no_option_helps_the_experiment_is_next)
{
    static const pipeline_case c = { .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.99, .cpu = 0.99),
                                                EMPTY_SINK } };
    const char *path = in_folder("full.db");
    record_run(path, (weir_sqlite_options){ .rank = 0 }, &c, STEADY_LAPS + 2, &c, 0);
    weir_verdict *v = verdict_on(path, NULL);
    assert_int_equal(v->kind, WEIR_VERDICT_CPUS);
    assert_string_equal(v->missing,
                        "weir record DIR --explain measures what a faster source, stage or consumer would bring");
    weir_verdict_free(v);
}

/* Trials that a recording notes count as long as the settings are as they were. */
TEST_CASE(what_the_run_has_tried_is_not_predicted)
{
    static const char tried[] =
        "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) SELECT "
        "min(timestamp) + 10, 'trial', run_id, '0:1:decode', 'slots 2 -> 4, threads 4 -> 6: 1010 per mille "
        "(990 to 1030) of 99000 items in 1000 s' FROM queue_stats GROUP BY run_id",
                      changed[] =
                          "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) SELECT "
                          "max(timestamp), 'concurrency', run_id, '0:1:decode', '2 -> 8' FROM queue_stats GROUP "
                          "BY run_id";
    static const pipeline_case c = { .nodes = { IDLE_SOURCE, DECODE(.slots = 2, .busy = 0.99, .cpu = 0.01),
                                                EMPTY_SINK } };
    const char *path = in_folder("tried.db");
    record_run(path, (weir_sqlite_options){ .rank = 0 }, &c, STEADY_LAPS + 2, &c, 0);
    weir_verdict *v = verdict_on(path, NULL);
    int64_t num_laps = v->num_laps;
    assert_false(v->advice[0].is_measured);
    assert_string_equal(v->advice[0].change, "decode with 4 slots instead of 2, and 6 threads instead of 4");
    assert_non_null(strstr(v->missing, "--explain"));
    weir_verdict_free(v);

    execute(path, tried);
    v = verdict_on(path, NULL);
    assert_true(v->advice[0].is_measured);
    assert_float_equal(v->advice[0].high, 1.03, 1e-9);
    assert_non_null(
        strstr(v->sentence, "Doubled: +1 % (-1 to +3 %). It serves 99 items per second whatever you set."));
    assert_string_equal(v->missing, "");
    assert_true(v->num_laps < num_laps); /* those before the last trial do not count */
    weir_verdict_free(v);

    execute(path, changed);
    v = verdict_on(path, NULL);
    assert_false(v->advice[0].is_measured);
    assert_string_equal(v->advice[0].change, "decode with 16 slots instead of 8, and 12 threads instead of 4");
    weir_verdict_free(v);
}

static void add_trial(const char *path, const char *stage, const char *detail)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail) SELECT min(timestamp) + 10, "
             "'trial', run_id, '%s', '%s in 1000 s' FROM queue_stats GROUP BY run_id",
             stage, detail);
    execute(path, sql);
}

#define ALONE   "slots 2 -> 4, threads 6 -> 8: 1010 per mille (990 to 1030) of 99000 items"
#define SET     "slots 2 -> 4, threads 6 -> 10: 1980 per mille (1900 to 2060) of 99000 items"
#define IN_VAIN "slots 2 -> 4, threads 6 -> 10: 1010 per mille (990 to 1030) of 99000 items"

/* Two stages were tried alone, and together: the recording says the same as the run. */
TEST_CASE(what_the_run_has_tried_together_is_told)
{
    static const pipeline_case c = {
        .nodes = { IDLE_SOURCE,
                   DECODE(.slots = 2, .busy = 0.99, .cpu = 0.01),
                   { .name = "0:2:scale", .kind = "stage", .slots = 2, .busy = 0.98, .cpu = 0.01 },
                   { .name = "0:3:sink", .kind = "sink", .capacity = 3, .occupied = 0.02 } },
        .threads = 6
    };
    const char *path = in_folder("together.db");
    record_run(path, (weir_sqlite_options){ .rank = 0 }, &c, STEADY_LAPS + 2, &c, 0);
    add_trial(path, "0:1:decode", ALONE);
    weir_verdict *v = verdict_on(path, NULL);
    assert_null(strstr(v->sentence, "whatever you set")); /* scale is used as much, and was not tried */
    weir_verdict_free(v);

    add_trial(path, "0:2:scale", ALONE);
    add_trial(path, "0:1:gone", "part 1 of 2, " SET); /* its first part is no longer true */
    add_trial(path, "0:2:scale", "part 2 of 2, " SET);
    v = verdict_on(path, NULL);
    assert_string_equal(v->together, "");
    weir_verdict_free(v);

    add_trial(path, "0:1:decode", "part 1 of 2, " SET);
    add_trial(path, "0:2:scale", "part 2 of 2, " SET);
    v = verdict_on(path, NULL);
    assert_string_equal(v->together, "decode and scale");
    assert_non_null(strstr(v->sentence, "+98 % (+90 to +106 %); those of one of them alone, +1 %."));
    assert_string_equal(
        v->advice[0].change,
        "decode with 4 slots instead of 2, scale with 4 slots instead of 2, and 10 threads instead of 6");
    assert_int_equal(v->other_kind, WEIR_VERDICT_UNKNOWN);
    weir_verdict_free(v);

    add_trial(path, "0:1:decode", "part 1 of 2, " IN_VAIN); /* the last result counts */
    add_trial(path, "0:2:scale", "part 2 of 2, " IN_VAIN);
    v = verdict_on(path, NULL);
    assert_string_equal(v->together, "");
    assert_non_null(strstr(v->sentence, "whatever you set"));
    weir_verdict_free(v);
}

/* A phase is a run of its own: one in which the consumer is slow, one in which the source is. */
TEST_CASE(a_phase_has_a_verdict_of_its_own)
{
    const char *path = in_folder("phases.db");
    const pipeline_case *slow = case_of("a slow consumer"), *source = case_of("a source that waits");
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .command = "weir record videos" });
    weir_observer observer = begin_case(writer, slow);
    for (int i = 0; i < 8; i++)
        record_case_lap(observer, i < 4 ? slow : source, i, i < 4 ? "warm" : "cold", true);
    observer.run_end(observer.self, &(weir_run_end){ .end_unix_ns = NS(1100) });
    close_writer(writer);
    weir_verdict *warm = verdict_on(path, &(weir_filter){ .run_id = WEIR_LAST_RUN, .phase = "warm" });
    weir_verdict *cold = verdict_on(path, &(weir_filter){ .run_id = WEIR_LAST_RUN, .phase = "cold" });
    assert_string_equal(weir_verdict_word(warm->kind), "consumer");
    assert_string_equal(weir_verdict_word(cold->kind), "source");
    assert_true(cold->start_unix_ns >= NS(1040));
    weir_verdict_free(warm);
    weir_verdict_free(cold);
}

/* While kept results are used, nobody takes items: that is neither a limit of the pipeline nor a change. */
TEST_CASE(a_replay_is_not_counted_as_the_pipeline)
{
    const char *path = in_folder("replay.db");
    const pipeline_case *slow = case_of("a slow consumer"), *source = case_of("a source that waits");
    weir_sqlite_writer *writer = open_writer(path, &(weir_sqlite_options){ .command = "weir record videos" });
    weir_observer observer = begin_case(writer, source);
    for (int i = 0; i < 16; i++) {
        bool replays = i > 4 && i < 13;
        record_case_lap(observer, replays ? slow : source, i, replays ? WEIR_PHASE_REPLAY : "train", i > 0 && i < 15);
    }
    observer.run_end(observer.self, &(weir_run_end){ .end_unix_ns = NS(1160) });
    close_writer(writer);
    weir_verdict *v = verdict_on(path, NULL);
    assert_string_equal(weir_verdict_word(v->kind), "source");
    assert_true(v->changed_unix_ns == 0 && v->items_per_s > 90);
    weir_verdict_free(v);
}

/* Two ranks that have half of the CPUs each, at the same time. */
TEST_CASE(ranks_of_one_job_are_no_other_programs)
{
    const char *path = in_folder("job.db");
    pipeline_case c = *case_of("CPUs that other programs take");
    c.nodes[1].cpu = c.nodes[1].delay = 0.49;
    c.others = 2;
    record_run(path, (weir_sqlite_options){ .rank = 0, .world = 2 }, &c, STEADY_LAPS + 2, &c, 0);
    weir_verdict *v = verdict_on(path, NULL);
    assert_non_null(strstr(v->sentence, "other programs"));
    assert_true(v->world == 2 && v->num_ranks == 1 && fabs(v->items_per_s - 100) < 5);
    weir_verdict_free(v);
    record_run(path, (weir_sqlite_options){ .rank = 1, .world = 2 }, &c, STEADY_LAPS + 2, &c, 0);
    v = verdict_on(path, NULL);
    assert_non_null(strstr(v->sentence, "the other ranks of the job"));
    assert_true(v->rank == 1 && v->num_ranks == 1 && fabs(v->items_per_s - 100) < 5);
    assert_advice_is_written(v, " items per second by rank 1 of 2 ", "other ranks of the job 1.9");
    weir_verdict_free(v);
    v = verdict_on(path, &(weir_filter){ .run_id = WEIR_ALL_RUNS });
    assert_true(v->num_ranks == 2 && fabs(v->items_per_s - 200) < 10);
    weir_verdict_free(v);
}

/* The CPUs in the evidence: of this process, of how many, of other programs, idle. */
typedef struct reported_cpus {
    double process, budget, others, idle;
} reported_cpus;

static reported_cpus read_cpus(const char *path, const weir_filter *filter)
{
    reported_cpus cpus;
    weir_verdict *v = verdict_on(path, filter);
    bool is_found = false;
    for (size_t i = 0; i < v->num_evidence && !is_found; i++)
        is_found = sscanf(v->evidence[i], "CPUs: this process uses %lf of %lf, other programs %lf, %lf are idle",
                          &cpus.process, &cpus.budget, &cpus.others, &cpus.idle) == 4;
    weir_verdict_free(v);
    assert_true(is_found);
    return cpus;
}

static void assert_near(double value, double known)
{
    if (!(fabs(value - known) <= 0.02))
        fail_msg("%g instead of %g", value, known);
}

/* Two runs of other jobs, and two of one job; each sees the other one among other programs. The machine has 4 CPUs however many
   runs have counted them. */
TEST_CASE(two_runs_at_once_have_the_cpus_of_one_machine)
{
    pipeline_case c = *case_of("CPUs that other programs take");
    c.nodes[1].cpu = c.nodes[1].delay = 0.49;
    c.others = 2;
    for (int32_t world = 1; world <= 2; world++) {
        char name[32];
        snprintf(name, sizeof name, "at-once-%d.db", (int)world);
        const char *path = in_folder(name);
        record_run(path, (weir_sqlite_options){ .rank = 0, .world = (uint32_t)world }, &c, STEADY_LAPS + 2, &c, 0);
        reported_cpus one = read_cpus(path, NULL);
        assert_near(one.process + one.others + one.idle, 4);
        record_run(path, (weir_sqlite_options){ .rank = world - 1, .world = (uint32_t)world }, &c, STEADY_LAPS + 2,
                   &c, 0);
        weir_filter all = { .run_id = WEIR_ALL_RUNS };
        if (world > 1) { /* the other rank is reported by itself */
            weir_verdict *v = verdict_on(path, &all);
            double process, budget, ranks, others, idle;
            bool is_found = false;
            for (size_t i = 0; i < v->num_evidence && !is_found; i++)
                is_found =
                    sscanf(v->evidence[i],
                           "CPUs: this process uses %lf of %lf, other ranks of the job %lf, other programs %lf, "
                           "%lf are idle",
                           &process, &budget, &ranks, &others, &idle) == 5;
            weir_verdict_free(v);
            assert_true(is_found);
            assert_near(process, one.process);
            assert_near(ranks, one.process);
            assert_near(process + ranks + others + idle, 4);
            continue;
        }
        reported_cpus both = read_cpus(path, &all);
        assert_near(both.process, one.process);
        assert_near(both.budget, 4);
        assert_near(both.others, one.others);
        assert_near(both.idle, one.idle);
    }
}

/* SPDL records how often queues are not empty, and no use of slots: items wait before the slow stage, and not behind it. */
TEST_CASE(occupancies_alone_name_a_stage)
{
    static const struct {
        double occupied[3];
        const char *limit;
    } runs[] = { { { 1, 0, 0.01 }, "slots 0:1:decode[10]" },
                 { { 0.02, 0, 0.01 }, "source 0:0:src" },
                 { { 1, 1, 0.98 }, "consumer " },
                 { { 0.6, 0.3, 0.2 }, "unknown " } };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char name[40], sql[2000], limit[100];
        snprintf(name, sizeof name, "spdl-%zu.db", i);
        snprintf(
            sql, sizeof sql,
            "CREATE TABLE task_stats (id INTEGER PRIMARY KEY, timestamp REAL, name TEXT, num_tasks INTEGER, "
            "num_failures INTEGER, ave_time REAL, p90_time REAL, p99_time REAL);"
            "CREATE TABLE event_stats (id INTEGER PRIMARY KEY, timestamp REAL, event_name TEXT);"
            "CREATE TABLE queue_stats (id INTEGER PRIMARY KEY, timestamp REAL, name TEXT, elapsed REAL, num_items "
            "INTEGER, ave_put_time REAL, ave_get_time REAL, p90_put_time REAL, p99_put_time REAL, p90_get_time "
            "REAL, p99_get_time REAL, occupancy_rate REAL);"
            "INSERT INTO task_stats VALUES (1, 1060, '0:1:decode[10]', 100, 0, 1, 1, 1);"
            "INSERT INTO queue_stats VALUES (1, 1060, '0:0:src_queue', 60, 100, 0, 0, 0, 0, 0, 0, %g),"
            "(2, 1060, '0:1:decode[10]_queue', 60, 100, 0, 0, 0, 0, 0, 0, %g),"
            "(3, 1060, '0:2:sink_queue', 60, 100, 0, 0, 0, 0, 0, 0, %g)",
            runs[i].occupied[0], runs[i].occupied[1], runs[i].occupied[2]);
        execute(in_folder(name), sql);
        weir_verdict *v = verdict_on(in_folder(name), NULL);
        snprintf(limit, sizeof limit, "%s %s", weir_verdict_word(v->kind), v->name);
        assert_string_equal(limit, runs[i].limit);
        weir_verdict_free(v);
    }
}

/* For as long as one part lasts, its limit is clear; one verdict on both would be wrong for each. */
TEST_CASE(a_limit_that_changes_is_told)
{
    const char *path = in_folder("change.db");
    const pipeline_case *consumer = case_of("a slow consumer"), *source = case_of("a source that waits");
    record_run(path, (weir_sqlite_options){ .rank = 0 }, consumer, 18, source, 7);
    weir_verdict *v = verdict_on(path, NULL);
    assert_string_equal(weir_verdict_word(v->kind), "source"); /* of the longer part */
    assert_string_equal(v->name, "0:0:src");
    assert_string_equal(weir_verdict_word(v->other_kind), "consumer");
    assert_string_equal(weir_verdict_certainty(v), "unsure");
    assert_true(v->changed_unix_ns >= NS(1060) && v->changed_unix_ns <= NS(1080));
    assert_non_null(strstr(v->evidence[0], "the limit changed at ")); /* and, whatever the time zone: */
    assert_non_null(strstr(v->evidence[0], ":50, after 60.0 s (38 % of this time)"));
    assert_true(v->num_advice > 0 && strstr(v->advice[0].change, "source"));
    weir_verdict_free(v);
    v = verdict_on(path, &(weir_filter){ .run_id = WEIR_LAST_RUN, .start_unix_ns = NS(1081) });
    assert_string_equal(weir_verdict_certainty(v), "clear");
    assert_true(v->changed_unix_ns == 0);
    weir_verdict_free(v);
}

/* Four laps are enough, two on each side. */
/* Its tasks take 9.3 ms, or 26.7 ms, in the same CPU time. */
static const pipeline_case fast = {
    .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.2, .rate = 430), EMPTY_SINK }, .rate = 430
};
static const pipeline_case slow = {
    .nodes = { IDLE_SOURCE, DECODE(.slots = 4, .busy = 0.98, .cpu = 0.07, .rate = 150), EMPTY_SINK },
    .rate = 150,
    .others = 2
};

static bool has_evidence(const weir_verdict *v, const char *text)
{
    for (size_t i = 0; i < v->num_evidence; i++)
        if (strstr(v->evidence[i], text))
            return true;
    return false;
}

/* The limit is the same, but not the rate. */
TEST_CASE(a_rate_that_changes_is_told_with_what_differs)
{
    const char *path = in_folder("drift.db");
    for (int rises = 0; rises < 2; rises++) {
        record_run(path, (weir_sqlite_options){ .rank = 0 }, rises ? &slow : &fast, 26, rises ? &fast : &slow, 11);
        weir_verdict *v = verdict_on(path, NULL);
        assert_int_equal(v->kind, WEIR_VERDICT_OUTSIDE);
        assert_non_null(strstr(v->sentence, rises ? "The rate rose from 150 to 430 items per second at "
                                                  : "The rate fell from 430 to 150 items per second at "));
        if (!strstr(v->sentence, ":30, after 0:01:40."))
            fail_msg("%s", v->sentence);
        assert_true(
            has_evidence(v, rises ? "a task of 0:1:decode takes 26.1 ms before, of which 1.83 ms are CPU time, and "
                                    "9.12 ms after it, of which 1.82 ms are"
                                  : "a task of 0:1:decode takes 9.12 ms before, of which 1.82 ms are CPU time, and "
                                    "26.1 ms after it, of which 1.83 ms are"));
        assert_true(has_evidence(v, rises ? "other programs use 2.00 CPUs before, and 0.00 after it"
                                          : "other programs use 0.00 CPUs before, and 2.00 after it"));
        weir_verdict_free(v);
    }
}

TEST_CASE(a_rate_that_alternates_is_told_with_what_differs)
{
    const char *path = in_folder("turns.db");
    record_turns(path, (weir_sqlite_options){ .rank = 0 }, &fast, 40, &slow, 0, 5);
    weir_verdict *v = verdict_on(path, NULL);
    assert_int_equal(v->kind, WEIR_VERDICT_OUTSIDE);
    assert_int_equal(v->other_kind, WEIR_VERDICT_UNKNOWN);
    assert_non_null(
        strstr(v->sentence, "The rate alternates between 430 and 150 items per second, every 47.5 s on average."));
    assert_true(
        has_evidence(v, "a task of 0:1:decode takes 9.12 ms while it is high, of which 1.82 ms are CPU time, and "
                        "26.1 ms while it is low, of which 1.83 ms are"));
    weir_verdict_free(v);
    pipeline_case waiting = *case_of("a slow consumer");
    waiting.rate = 150;
    record_turns(path, (weir_sqlite_options){ .rank = 0 }, &fast, 41, &waiting, 0, 5);
    v = verdict_on(path, NULL);
    assert_int_equal(v->kind, WEIR_VERDICT_CONSUMER);
    assert_int_equal(v->other_kind, WEIR_VERDICT_OUTSIDE);
    assert_non_null(strstr(v->sentence, "The rate alternates between 430 and 150 items per second"));
    assert_string_equal(v->evidence[0], "the rate is low for 51 % of the time");
    weir_verdict_free(v);
}

TEST_CASE(a_limit_that_changes_in_few_laps_is_told)
{
    const char *path = in_folder("change.db");
    const pipeline_case *consumer = case_of("a slow consumer"), *source = case_of("a source that waits");
    for (int before = 1; before <= 2; before++) {
        record_run(path, (weir_sqlite_options){ .rank = 0 }, consumer, 7, source, before + 1);
        weir_verdict *v = verdict_on(path, NULL);
        assert_int_equal(v->num_laps, 5);
        if (before == 2)
            assert_string_equal(weir_verdict_word(v->kind), "source");
        assert_true(before == 1 ? v->changed_unix_ns == 0
                                : v->changed_unix_ns >= NS(1020) && v->changed_unix_ns <= NS(1040));
        weir_verdict_free(v);
    }
}

/* A database from elsewhere says that a queue is endless. */
TEST_CASE(an_endless_queue_does_not_keep_the_advice_waiting)
{
    const char *path = record_case(case_of("two slots that wait"));
    execute(path, "UPDATE stage SET queue_items = 4294967295; UPDATE flow_stats SET busy_time = 1e-4, cpu_time = 0, "
                  "wait_out_time = elapsed WHERE kind = 'source'");
    weir_verdict *v = verdict_on(path, NULL);
    assert_string_equal(weir_verdict_word(v->kind), "outside");
    assert_string_equal(v->advice[0].options, "--concurrency 4 --threads 6");
    assert_true(fabs(v->advice[0].gain - 2) < 0.1);
    weir_verdict_free(v);
}

static bool has_advice(const weir_verdict *v, const char *change)
{
    for (size_t i = 0; i < v->num_advice; i++)
        if (strstr(v->advice[i].change, change))
            return true;
    return false;
}

/* The stage that blocks the pool is named, and threads of its own are offered for it. */
TEST_CASE(threads_are_advised_to_the_stage_that_holds_them)
{
    weir_verdict *v = verdict_on(record_case(case_of("a source that starves on the stage's thread")), NULL);
    assert_true(has_advice(v, "4 private threads for decode"));
    weir_verdict_free(v);
    v = verdict_on(record_case(case_of("a stage that takes the other's threads")), NULL);
    assert_true(has_advice(v, "2 private threads for send") && !has_advice(v, "private threads for decode"));
    weir_verdict_free(v);
    v = verdict_on(record_case(case_of("pending tasks beside a stage that blocks the thread")), NULL);
    assert_true(has_advice(v, "4 private threads for send"));
    weir_verdict_free(v);
    v = verdict_on(record_case(case_of("private threads that are too few")), NULL);
    assert_true(has_advice(v, "4 threads instead of 2 for decode"));
    weir_verdict_free(v);
}

/* The consumer is away while items wait, but it does not work. More slots bring more, because it takes all items that
   there are. */
TEST_CASE(a_consumer_that_polls_is_not_slow)
{
    pipeline_case c = *case_of("two slots that wait");
    c.nodes[2].occupied = 0.8;
    for (int polls = 0; polls < 2; polls++) {
        c.late = polls ? 0.75 : 0;
        weir_verdict *v = verdict_on(record_case(&c), NULL);
        assert_string_equal(weir_verdict_word(v->kind), "outside");
        double gain = 1;
        for (size_t i = 0; i < v->num_advice; i++)
            if (strcmp(v->advice[i].options, "--concurrency 4 --threads 6") == 0)
                gain = v->advice[i].gain;
        assert_true(polls ? gain > 1.9 : gain < 1.4);
        weir_verdict_free(v);
    }
}

/* At most 20 lines, whatever there is to say. */
static void assert_is_short(const weir_verdict *v)
{
    char *text;
    size_t size, num_lines = 0;
    FILE *out = open_memstream(&text, &size);
    weir_verdict_write(v, 0, 0, out);
    fclose(out);
    for (const char *at = text; *at; at++)
        num_lines += *at == '\n';
    if (num_lines > 20 || strncmp(text, "Limit: ", 7) != 0)
        fail_msg("%zu lines: %s", num_lines, text);
    free(text);
}

/* What was not measured may bring nothing, and the command that measures it is printed, in few lines. */
TEST_CASE(a_range_that_was_not_measured_includes_no_gain)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_verdict *v = verdict_on(record_case(&cases[i]), NULL);
        for (size_t k = 0; k < v->num_advice; k++)
            if (!isnan(v->advice[k].gain) && (v->advice[k].low > 1 || v->advice[k].high < 1))
                fail_msg("%s: %s: %.2f to %.2f", cases[i].what, v->advice[k].change, v->advice[k].low,
                         v->advice[k].high);
        if (v->kind == WEIR_VERDICT_OUTSIDE && !strstr(v->missing, "weir record DIR --explain"))
            fail_msg("%s: %s", cases[i].what, v->missing);
        assert_is_short(v);
        weir_verdict_free(v);
    }
}

TEST_CASE(without_records_nothing_can_be_told)
{
    weir_verdict *v =
        verdict_on(record_case(&cases[0]), &(weir_filter){ .run_id = WEIR_LAST_RUN, .start_unix_ns = NS(5000) });
    assert_int_equal(v->kind, WEIR_VERDICT_UNKNOWN);
    assert_int_equal(v->num_laps, 0);
    assert_int_equal(v->num_advice, 0);
    weir_verdict_free(v);
}

int main(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
