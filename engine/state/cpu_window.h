/*
 * How much of a thread's CPU time belongs to its tasks. A window is a part of the thread's life: steps of tasks, and
 * hand-offs between them, which belong to the engine. Only the CPU time of the whole window is known, and the wall time
 * of each part. What the thread used less than the length of the window it slept or waited for a CPU, in steps or in
 * hand-offs.
 */
#ifndef ENGINE_STATE_CPU_WINDOW_H
#define ENGINE_STATE_CPU_WINDOW_H

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

/*
 * The part of cpu_ns, which the thread used from start_ns to now_ns, that belongs to the tasks. If the thread always had a
 * CPU, the hand-offs used what they took. If not, they used handoff_ns each, what those use that were measured, but no
 * more than they took, and no less than what is left of it if all of the missing time was lost in them.
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
