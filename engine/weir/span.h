/*
 * Measurements in user code: spans (an interval of time), frames (numbered spans), markers (a moment in time) and
 * counters (a value over time). They work in operations, hooks, the consumer and any other thread.
 *
 *     static weir_span_name *forward;
 *     forward = weir_span_name_get("train", "forward");        // once
 *     weir_span_begin(forward);  …;  weir_span_end();          // or, to the end of the block:
 *     WEIR_SPAN(forward);
 *
 * Names belong to the process and live until it ends: the same category and name give the same pointer. A name is
 * reported as "category/name". There are at most WEIR_SPAN_MAX_NAMES of them. Further spans are recorded under
 * "weir/others". Further counters are not recorded. A line in the log reports it. Every function accepts a NULL name or
 * counter, and then records nothing.
 *
 * Each span is in exactly one lap: the lap in which it ended. Spans and counters of a pipeline's thread are reported to
 * the observers of that pipeline; those of other threads to the observers of the oldest running pipeline. Without a
 * pipeline, only weir_span_dump() shows them. A begin/end pair costs about 50 ns (`weir-bench costs`). A thread waits
 * for others only while the figures of one of its names are collected, once in a lap. Each thread uses 11 kB for each
 * name that it has recorded.
 */
#ifndef WEIR_SPAN_H
#define WEIR_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Spans, frames, markers and values of counters together. */
#define WEIR_SPAN_MAX_NAMES 1024

typedef struct weir_span_name weir_span_name;

/*
 * The name, created by the first call. The category groups names, like MXNet's Domain; in traces, commas separate several
 * categories ("train,gpu"). Takes a lock: call it once and keep the result. NULL = out of memory, or a text is empty, or
 * longer than 200 bytes. Any thread.
 */
WEIR_API weir_span_name *weir_span_name_get(const char *category, const char *name);

/* -- spans -- */

/* weir_span_begin() begins a span on this thread, inside the open ones; weir_span_end() ends the innermost one. Spans
   that are nested deeper than 128 levels are not recorded. */
WEIR_API void weir_span_begin(weir_span_name *name);
WEIR_API void weir_span_end(void);

/* A span that may end on another thread. Passed by value; zeroed = none. */
typedef struct weir_span_token {
    weir_span_name *name;
    int64_t start;
    uint64_t place[2]; /* internal */
} weir_span_token;

/* Starts a span on this thread, and finishes it on any thread. Finishing it twice, or NULL, has no effect. */
WEIR_API weir_span_token weir_span_start(weir_span_name *name);
WEIR_API void weir_span_finish(weir_span_token *token);

/* A span from here to the end of the block, inside the open ones. Only with compilers that have
   __attribute__((cleanup)): gcc and clang. */
#if defined(__GNUC__) || defined(__clang__)
static inline int weir_span_enter(weir_span_name *name)
{
    weir_span_begin(name);
    return 0;
}

static inline void weir_span_leave(const int *entered)
{
    (void)entered;
    weir_span_end();
}

#define WEIR_SPAN_JOIN(one, other) one##other
#define WEIR_SPAN_VARIABLE(line)   WEIR_SPAN_JOIN(weir_span_at_, line)
#define WEIR_SPAN(name) \
    __attribute__((cleanup(weir_span_leave), unused)) const int WEIR_SPAN_VARIABLE(__LINE__) = weir_span_enter(name)
#endif

/*
 * Frames: numbered spans, one after the other, from any thread. A new frame ends the previous one. Queries show the
 * rate of a name as spans_per_s. weir_pipeline_mark_step() also records frames "weir/step": a step lasts until the next
 * mark of a step, or until weir_pipeline_free() begins.
 */
WEIR_API void weir_frame_begin(weir_span_name *name, int64_t number);
WEIR_API void weir_frame_end(weir_span_name *name);

/* What a marker is about; only traces show it. */
typedef enum weir_marker_scope {
    WEIR_MARKER_GLOBAL = 0, /* all processes */
    WEIR_MARKER_PROCESS,
    WEIR_MARKER_THREAD,
    WEIR_MARKER_TASK, /* the task that this thread runs */
} weir_marker_scope;

/* An instant, counted like a span of length 0: a name is for markers or for spans, not for both. */
WEIR_API void weir_marker(weir_span_name *name, weir_marker_scope scope);

/*
 * A prefix for the names of spans and markers that this thread records until the matching pop: "category/prefix/name".
 * append: add it after the current prefixes; otherwise replace them. The text is copied; all prefixes together are cut
 * to 100 bytes. NULL changes nothing until its pop. Up to 16 levels; deeper ones have no effect.
 */
WEIR_API void weir_span_prefix_push(const char *prefix, bool append);
WEIR_API void weir_span_prefix_pop(void);

/* -- counters -- */

typedef struct weir_counter weir_counter;

/*
 * A level: it rises and falls, like a loss or the bytes in a cache; its mean over time is shown. A total only grows, like
 * frames or bytes that were sent: see weir_counter_get_total().
 *
 * The counter, created by the first call, with one value for each of the `num_values` texts: "category/name/value".
 * values NULL (num_values 0): one value, "category/name". Initially the values are not known, so a mean begins
 * with the first update. Takes a lock. NULL = out of memory, a text as above, more than 16 values, too many names,
 * or the name is already used in another way. Any thread.
 */
WEIR_API weir_counter *weir_counter_get(const char *category, const char *name, const char *const *values,
                                        size_t num_values);

/*
 * The same for a total, which is shown by its growth and its rate. It begins at 0 when it is created. Create it before the
 * work that it counts. A change that would make it smaller, or not finite, is ignored.
 */
WEIR_API weir_counter *weir_counter_get_total(const char *category, const char *name, const char *const *values,
                                              size_t num_values);

/* The total of the frames that the consumer got; weir watch and weir summary show it as frames per second. weir record keeps
   it, and your program may. */
#define WEIR_FRAMES_CATEGORY "weir"
#define WEIR_FRAMES_NAME     "frames"

/* Sets or changes value number `which` (the first is 0); an unknown value counts as 0. Any thread. */
WEIR_API void weir_counter_set(weir_counter *counter, size_t which, double value);
WEIR_API void weir_counter_add(weir_counter *counter, size_t which, double change);

/* -- all of them -- */

/*
 * true: from now on, nothing is measured in this process. Spans, markers and counters are not recorded, and the time does
 * not count for open spans and means of counters; laps of all pipelines end, and traces have a gap. What tasks and queues do
 * in a pause is in no lap; accounts, failures and events go on. false: everything is measured again, in new laps. A pipeline
 * that is built in a pause begins with it. Any thread; calls do not nest. WEIR_OK, or WEIR_ENOMEM: a
 * pipeline without memory goes on as before.
 */
WEIR_API int weir_set_paused(bool is_paused);

typedef enum weir_span_sort {
    WEIR_SPAN_BY_NAME = 0, /* in the order of creation */
    WEIR_SPAN_BY_TOTAL,
    WEIR_SPAN_BY_AVERAGE,
    WEIR_SPAN_BY_MIN,
    WEIR_SPAN_BY_MAX,
    WEIR_SPAN_BY_COUNT,
} weir_span_sort;

/* A zeroed struct prints a table, in the order of names. */
typedef struct weir_span_dump_options {
    bool json;           /* one object, in seconds */
    bool ascending;      /* (default: largest first) */
    bool reset;          /* start again from 0 afterwards; laps are not affected */
    weir_span_sort sort; /* counters: count the updates; levels: total is value x time, average the
                            mean over time; totals: total is the growth, average the growth per second */
} weir_span_dump_options;

WEIR_API int weir_span_dump_sized(FILE *out, const weir_span_dump_options *options, size_t options_size);

/* Prints all spans, frames, markers and counters of the process since it began, or since the last reset. Also prints
   the tasks of all its pipelines ("stages"); the times are those of successes. The lines are grouped by category. No
   pipeline and no database is needed. WEIR_OK, WEIR_EINVAL, WEIR_ENOMEM or WEIR_EIO. Any thread. */
static inline int weir_span_dump(FILE *out, const weir_span_dump_options *options)
{
    return weir_span_dump_sized(out, options, sizeof *options);
}

#ifdef __cplusplus
}
#endif

#endif
