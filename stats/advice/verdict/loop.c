/*
 * Steps are added up in blocks of equally many, because neighbouring steps are alike (a slow file, a busy minute): means of blocks
 * depend on each other less than steps do. When all blocks are full, each two become one. So the memory is constant, and there
 * are always enough blocks for an interval.
 */
#include <weir/loop.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>
#include <weir/span.h>
#include <weir/struct_copy.h>
#include <weir/verdict.h>

#include "stats/advice/verdict/live.h"

enum { MAX_BLOCKS = 64 /* even */ };

typedef struct loop_block {
    double wait_s, step_s; /* sums */
} loop_block;

/* Steps of one kind. All-zero is none. */
typedef struct loop_part {
    loop_block blocks[MAX_BLOCKS]; /* the last one may be incomplete */
    uint32_t num_whole;
    uint64_t block_steps; /* of a whole block; 0 = 1 */
    uint64_t last_steps;  /* of the incomplete one */
    uint64_t num_steps;
    loop_block all;
} loop_part;

typedef enum loop_state { LOOP_IDLE = 0, LOOP_WAITS, LOOP_STEPS } loop_state;

struct weir_loop {
    loop_state state;
    bool is_start; /* the first step since the beginning or a pause */
    bool is_replayed;
    int64_t wait_ns, step_ns; /* when these began */
    weir_span_token span;
    weir_span_name *wait_name, *step_name, *replay_name;
    loop_part loaded, replayed;
    uint64_t num_starts;
    double starts_s;
};

int weir_loop_new(weir_loop **loop, weir_error *error)
{
    if (!loop)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *loop = calloc(1, sizeof **loop);
    if (!*loop)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    **loop = (weir_loop){ .is_start = true,
                          .wait_name = weir_span_name_get("loop", "wait"),
                          .step_name = weir_span_name_get("loop", "step"),
                          .replay_name = weir_span_name_get("loop", "replay") };
    return WEIR_OK;
}

void weir_loop_free(weir_loop *loop)
{
    if (loop)
        weir_span_finish(&loop->span);
    free(loop);
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static void join_blocks(loop_part *part)
{
    for (uint32_t i = 0; i < MAX_BLOCKS / 2; i++) {
        const loop_block *first = &part->blocks[2 * i], *second = first + 1;
        part->blocks[i] = (loop_block){ first->wait_s + second->wait_s, first->step_s + second->step_s };
    }
    part->num_whole = MAX_BLOCKS / 2;
    part->block_steps *= 2;
}

static void add_step(loop_part *part, double wait_s, double step_s)
{
    if (part->block_steps == 0)
        part->block_steps = 1;
    if (part->num_whole == MAX_BLOCKS)
        join_blocks(part);
    loop_block *block = &part->blocks[part->num_whole];
    if (part->last_steps == 0)
        *block = (loop_block){ 0 };
    block->wait_s += wait_s;
    block->step_s += step_s;
    part->all.wait_s += wait_s;
    part->all.step_s += step_s;
    part->num_steps++;
    if (++part->last_steps == part->block_steps) {
        part->last_steps = 0;
        part->num_whole++;
    }
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)WEIR_SECOND;
}

int weir_loop_add(weir_loop *loop, int64_t wait_ns, int64_t step_ns, bool is_replayed)
{
    if (!loop || wait_ns < 0 || step_ns < 0)
        return WEIR_EINVAL;
    add_step(is_replayed ? &loop->replayed : &loop->loaded, seconds(wait_ns), seconds(step_ns));
    return WEIR_OK;
}

static void end_step(weir_loop *loop, int64_t now_ns)
{
    if (loop->state != LOOP_STEPS)
        return;
    int64_t wait_ns = loop->step_ns - loop->wait_ns;
    if (loop->is_replayed) { /* the loader does not start for it: the next step with its data is still the first one */
        weir_loop_add(loop, wait_ns, now_ns - loop->step_ns, true);
        return;
    }
    if (loop->is_start) {
        loop->num_starts++;
        loop->starts_s += seconds(wait_ns);
    } else {
        weir_loop_add(loop, wait_ns, now_ns - loop->step_ns, false);
    }
    loop->is_start = false;
}

int weir_loop_wait(weir_loop *loop)
{
    if (!loop)
        return WEIR_EINVAL;
    int64_t now_ns = weir_clock_ns();
    end_step(loop, now_ns);
    weir_span_finish(&loop->span);
    if (loop->state != LOOP_WAITS)
        loop->wait_ns = now_ns;
    loop->state = LOOP_WAITS;
    loop->span = weir_span_start(loop->wait_name);
    return WEIR_OK;
}

int weir_loop_step(weir_loop *loop, bool is_replayed)
{
    if (!loop || loop->state != LOOP_WAITS)
        return WEIR_EINVAL;
    weir_span_finish(&loop->span);
    loop->step_ns = weir_clock_ns();
    loop->is_replayed = is_replayed;
    loop->state = LOOP_STEPS;
    loop->span = weir_span_start(is_replayed ? loop->replay_name : loop->step_name);
    return WEIR_OK;
}

int weir_loop_pause(weir_loop *loop)
{
    if (!loop)
        return WEIR_EINVAL;
    end_step(loop, weir_clock_ns());
    weir_span_finish(&loop->span);
    loop->state = LOOP_IDLE;
    loop->is_start = true;
    return WEIR_OK;
}

/* ---- judging ------------------------------------------------------------------------------------------------------ */

static double length_of(const loop_block *block)
{
    return block->wait_s + block->step_s;
}

/* Half of the interval of the share of waiting. It is computed as for a ratio of two sums over blocks. */
static double half_of_share(const loop_part *part, double share)
{
    double distances[MAX_BLOCKS], half, length_s = 0;
    for (uint32_t i = 0; i < part->num_whole; i++) {
        length_s += length_of(&part->blocks[i]);
        distances[i] = part->blocks[i].wait_s - share * length_of(&part->blocks[i]);
    }
    if (part->num_whole == 0 || length_s <= 0)
        return INFINITY;
    weir__mean_interval(distances, part->num_whole, &half);
    return half * part->num_whole / length_s;
}

/* Half of the interval of the mean length of a step, as a share of it. */
static double half_of_length(const loop_part *part)
{
    double lengths[MAX_BLOCKS], half;
    for (uint32_t i = 0; i < part->num_whole; i++)
        lengths[i] = length_of(&part->blocks[i]);
    if (part->num_whole == 0)
        return INFINITY;
    double mean_s = weir__mean_interval(lengths, part->num_whole, &half);
    return mean_s > 0 ? half / mean_s : INFINITY;
}

static void measure_share(const loop_part *part, weir_loop_result *r)
{
    double length_s = length_of(&part->all);
    if (part->num_steps == 0 || length_s <= 0)
        return;
    r->wait_s = part->all.wait_s / (double)part->num_steps;
    r->step_s = part->all.step_s / (double)part->num_steps;
    r->share = part->all.wait_s / length_s;
    double half = half_of_share(part, r->share);
    r->share_low = fmax(0, r->share - half);
    r->share_high = fmin(1, r->share + half);
    r->most = 1 / (1 - r->share);
    r->most_low = 1 / (1 - r->share_low);
    r->most_high = 1 / (1 - r->share_high);
}

static void measure_gain(const weir_loop *loop, weir_loop_result *r)
{
    const loop_part *loaded = &loop->loaded, *replayed = &loop->replayed;
    double replayed_s = length_of(&replayed->all);
    if (loaded->num_steps == 0 || replayed->num_steps == 0 || replayed_s <= 0)
        return;
    r->gain = length_of(&loaded->all) / (double)loaded->num_steps / (replayed_s / (double)replayed->num_steps);
    double half = exp(hypot(half_of_length(loaded), half_of_length(replayed)));
    r->gain_low = r->gain / half;
    r->gain_high = r->gain * half;
}

/* A measurement says more than a bound. */
static weir_loop_kind judge_kind(const weir_loop_result *r)
{
    double low = isnan(r->gain) ? r->most_low : r->gain_low, high = isnan(r->gain) ? r->most_high : r->gain_high;
    if (low >= WEIR_WORTH_GAIN)
        return WEIR_LOOP_DATA;
    return high < WEIR_WORTH_GAIN ? WEIR_LOOP_STEPS : WEIR_LOOP_UNKNOWN;
}

static void put_text(weir_loop_result *r)
{
    static const char *const sentences[] = {
        [WEIR_LOOP_UNKNOWN] = "the steps so far do not tell whether the loop waits for data",
        [WEIR_LOOP_DATA] = "the loop waits for data",
        [WEIR_LOOP_STEPS] = "the loop does not wait for data",
    };
    if (r->num_steps == 0) {
        snprintf(r->text, sizeof r->text, "no step has ended yet, apart from the first one");
        return;
    }
    int length = snprintf(r->text, sizeof r->text,
                          "%s: it waits for %.1f %% of the time (%.1f to %.1f %%, %" PRIu64 " steps), so ",
                          sentences[r->kind], 100 * r->share, 100 * r->share_low, 100 * r->share_high, r->num_steps);
    if (isnan(r->gain))
        snprintf(r->text + length, sizeof r->text - (size_t)length,
                 "faster loading brings at most %.2f times as many steps per second, if they take as long as now",
                 r->most);
    else
        snprintf(
            r->text + length, sizeof r->text - (size_t)length,
            "faster loading should bring up to %.2f times as many steps per second; steps with kept data were %.2f "
            "times as many (%.2f to %.2f)",
            r->most, r->gain, r->gain_low, r->gain_high);
}

int weir_loop_judge_sized(const weir_loop *loop, weir_loop_result *result, size_t result_size)
{
    if (!loop || !result)
        return WEIR_EINVAL;
    weir_loop_result own = {
        .num_steps = loop->loaded.num_steps,
        .wait_s = NAN,
        .step_s = NAN,
        .share = NAN,
        .share_low = NAN,
        .share_high = NAN,
        .most = NAN,
        .most_low = NAN,
        .most_high = NAN,
        .num_replayed = loop->replayed.num_steps,
        .gain = NAN,
        .gain_low = NAN,
        .gain_high = NAN,
        .num_starts = loop->num_starts,
        .start_s = loop->num_starts ? loop->starts_s / (double)loop->num_starts : NAN,
    };
    measure_share(&loop->loaded, &own);
    measure_gain(loop, &own);
    if (own.num_steps)
        own.kind = judge_kind(&own);
    put_text(&own);
    return weir_struct_fill(result, result_size, &own, sizeof own);
}
