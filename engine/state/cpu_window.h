/*
 * How much of a thread's CPU time belongs to its tasks. A window is a part of the thread's life: steps of tasks, and
 * hand-offs between them, which belong to the engine. Only the CPU time of the whole window is known, and the wall time
 * of each part. What the thread used less than the length of the window it slept or waited for a CPU, in steps or in
 * hand-offs.
 */
#ifndef ENGINE_STATE_CPU_WINDOW_H
#define ENGINE_STATE_CPU_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weir__cpu_window {
    int64_t start_ns;
    int64_t end_ns; /* of its last step so far */
    int64_t run_ns; /* sum of its steps */
    int64_t handoffs_ns;
    int64_t num_handoffs;
} weir__cpu_window;

static inline void weir__cpu_window_begin(weir__cpu_window *window, int64_t now_ns)
{
    *window = (weir__cpu_window){ .start_ns = now_ns, .end_ns = now_ns };
}

/* From the end of the step before. */
static inline void weir__cpu_window_add_handoff(weir__cpu_window *window, int64_t until_ns)
{
    window->handoffs_ns += until_ns > window->end_ns ? until_ns - window->end_ns : 0; /* the clock may be corrected */
    window->num_handoffs++;
}

static inline void weir__cpu_window_add_step(weir__cpu_window *window, int64_t begin_ns, int64_t end_ns)
{
    window->run_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
    window->end_ns = end_ns;
}

/* What hand-offs use: the mean of some of them, each measured as a window of its own. */
typedef struct weir__handoff_sample {
    int64_t mean_ns;
    int64_t num_measured;
    int64_t num_unmeasured; /* windows since the last of them */
    int64_t num_skipped;    /* hand-offs after these windows */
} weir__handoff_sample;

enum {
    WEIR_HANDOFF_MOST_WINDOWS = 16, /* from one that is measured to the next; fewer at first */
    WEIR_HANDOFF_MOST_SKIPPED = 32,
    WEIR_HANDOFF_MOST_AVERAGED = 64, /* an older one counts less */
};

/*
 * Called before each hand-off: is this one measured? The first hand-off after a window is not like the others. It follows
 * a sleep or a wait for a CPU, and wakes the consumer, which has waited meanwhile. So each of WEIR_HANDOFF_MOST_SKIPPED
 * hand-offs has its turn.
 */
static inline bool weir__handoff_sample_is_due(weir__handoff_sample *sample)
{
    bool is_time =
        sample->num_unmeasured >= WEIR_HANDOFF_MOST_WINDOWS || sample->num_unmeasured >= sample->num_measured;
    return is_time && sample->num_skipped++ == sample->num_measured * 7 % WEIR_HANDOFF_MOST_SKIPPED;
}

static inline void weir__handoff_sample_add(weir__handoff_sample *sample, int64_t used_ns)
{
    sample->num_measured++;
    int64_t weight =
        sample->num_measured < WEIR_HANDOFF_MOST_AVERAGED ? sample->num_measured : WEIR_HANDOFF_MOST_AVERAGED;
    sample->mean_ns += ((used_ns > 0 ? used_ns : 0) - sample->mean_ns) / weight;
    sample->num_unmeasured = sample->num_skipped = 0;
}

/*
 * The part of cpu_ns, which the thread used from start_ns to now_ns, that belongs to the tasks. If the thread always
 * had a CPU, the hand-offs used all the time that they took. If not, each used handoff_ns, which is what the measured
 * ones use. But together they used no more than the time that they took. And they used no less than what is left of
 * that time if all of the missing time was lost in them.
 */
static inline int64_t weir__cpu_window_tasks_ns(const weir__cpu_window *window, int64_t now_ns, int64_t cpu_ns,
                                                int64_t handoff_ns)
{
    int64_t lost_ns = now_ns - window->start_ns > cpu_ns ? now_ns - window->start_ns - cpu_ns : 0;
    int64_t engine_ns = window->num_handoffs * handoff_ns;
    if (engine_ns < window->handoffs_ns - lost_ns)
        engine_ns = window->handoffs_ns - lost_ns;
    if (engine_ns > window->handoffs_ns)
        engine_ns = window->handoffs_ns;
    int64_t tasks_ns = cpu_ns - engine_ns;
    return tasks_ns < 0 ? 0 : tasks_ns < window->run_ns ? tasks_ns : window->run_ns;
}

#endif
