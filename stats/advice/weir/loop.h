/*
 * The verdict on a loop without a pipeline of weir: does it wait for its data, and how much faster could it be? For any loader:
 *
 *     weir_loop_new(&loop, &error);
 *     for (;;) {
 *         weir_loop_wait(loop);           // asks for data
 *         if (!loader_next(&batch))
 *             break;
 *         weir_loop_step(loop, false);    // has it
 *         train(&batch);
 *     }
 *     weir_loop_judge(loop, &result);
 *     puts(result.text);
 *     weir_loop_free(loop);
 *
 * The share of waiting gives a bound. Let data be always there, and let steps take as long as now. Then the loop
 * takes 1 / (1 - share) times as many steps per second. Steps may then take longer, because the loader works at the
 * same time on the same CPUs. They may also take less time, if the loader has taken CPUs from them before. So a
 * measurement is better: for some steps, the loop uses data that it has kept, and says so (is_replayed). Then the
 * lengths of these steps and of the others are compared. Replay last. Meanwhile the loader works ahead, and what it
 * then has in store would make the next steps look too fast. weir/headspace.h does that for a pipeline of weir.
 *
 * If steps run asynchronously (on a GPU), let each one wait for its end, or the loop waits where it does not wait for data.
 * Times are also recorded as spans "loop/wait", "loop/step" and "loop/replay": weir_span_dump() and traces show them.
 */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread at a time. About 2 kB, however many steps there are. */
typedef struct weir_loop weir_loop;

/* WEIR_OK, or WEIR_EINVAL or WEIR_ENOMEM with *error (may be NULL) filled. */
WEIR_API int weir_loop_new(weir_loop **loop, weir_error *error);

/* NULL is fine. */
WEIR_API void weir_loop_free(weir_loop *loop);

/* The loop asks for data: its step ends, if there is one, and waiting begins. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_loop_wait(weir_loop *loop);

/* The loop has data: waiting ends, and a step begins. is_replayed: it is data that the loop had kept. WEIR_OK;
   WEIR_EINVAL: weir_loop_wait() was not called before. */
WEIR_API int weir_loop_step(weir_loop *loop, bool is_replayed);

/* The loop does something else, such as an evaluation: its step ends, or its waiting, which then does not count. The
   next wait begins anew. WEIR_OK or WEIR_EINVAL. */
WEIR_API int weir_loop_pause(weir_loop *loop);

/* A step of a loop that measures its times itself: instead of the three functions above. The first one, which
   contains the start of the loader, is better left out. WEIR_OK; WEIR_EINVAL: a time is negative. */
WEIR_API int weir_loop_add(weir_loop *loop, int64_t wait_ns, int64_t step_ns, bool is_replayed);

typedef enum weir_loop_kind {
    WEIR_LOOP_UNKNOWN = 0, /* too few steps, or they differ too much */
    WEIR_LOOP_DATA,        /* it waits for data: faster loading brings at least WEIR_WORTH_GAIN */
    WEIR_LOOP_STEPS,       /* it does not: faster loading brings less than that */
} weir_loop_kind;

/* Intervals are those of 95 % confidence; NAN = not known. */
typedef struct weir_loop_result {
    weir_loop_kind kind;
    uint64_t num_steps;                  /* that have ended, with data of the loader; without the first ones */
    double wait_s, step_s;               /* means: of waiting for the data of a step, and of the step itself */
    double share, share_low, share_high; /* of the time in which the loop waits for data */
    double most, most_low,
        most_high;         /* the bound of the gain by faster loading: steps per second / the present ones */
    uint64_t num_replayed; /* steps with kept data */
    double gain, gain_low, gain_high; /* what they measure: the same gain; NAN = nothing was replayed */
    /* The first wait for the loader, and the first after a pause, contains its start. These steps are not in the other
       figures. */
    uint64_t num_starts;
    double start_s; /* mean of these waits */
    char text[512]; /* one sentence */
} weir_loop_result;

WEIR_API int weir_loop_judge_sized(const weir_loop *loop, weir_loop_result *result, size_t result_size);

/* What is known so far; the step that goes on is not counted. WEIR_OK or WEIR_EINVAL. */
static inline int weir_loop_judge(const weir_loop *loop, weir_loop_result *result)
{
    return weir_loop_judge_sized(loop, result, sizeof *result);
}

#ifdef __cplusplus
}
#endif

#endif
