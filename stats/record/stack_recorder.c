#include "stats/record/stack_recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/record/stack_sampler.h"

/* Laps that have ended are kept: a handler may have been interrupted since it noted its lap. Such samples are in the
   next lap. */
enum { NUM_ENDED = 64, MARK_BYTES = 64 };

struct weir_stack_recorder {
    weir_record_taker *taker;
    bool *has_call; /* by its number, whether the run has it */
    size_t num_calls;
    uint64_t ended[NUM_ENDED]; /* the latest ids of laps; 0 = none */
    size_t num_ended;
    weir_samples_record last; /* of the last lap; its texts are: */
    char mode[MARK_BYTES], phase[MARK_BYTES];
};

weir_stack_recorder *weir__stack_recorder_new(weir_record_taker *taker, weir_error *error)
{
    weir_stack_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (!recorder || weir__stack_sampler_start(error) != WEIR_OK) {
        free(recorder);
        return NULL;
    }
    recorder->taker = taker;
    return recorder;
}

void weir__stack_recorder_free(weir_stack_recorder *recorder)
{
    if (!recorder)
        return;
    weir__stack_sampler_stop();
    free(recorder->has_call);
    free(recorder);
}

void weir__stack_recorder_start(weir_stack_recorder *recorder)
{
    if (recorder->num_calls)
        memset(recorder->has_call, 0, recorder->num_calls * sizeof *recorder->has_call);
    memset(recorder->ended, 0, sizeof recorder->ended);
    recorder->last = (weir_samples_record){ 0 };
}

/* ---- functions ------------------------------------------------------------------------------------------------------ */

/* False = out of memory. */
static bool make_room(weir_stack_recorder *recorder, uint32_t call)
{
    size_t count = recorder->num_calls ? recorder->num_calls : 256;
    while (count <= call)
        count *= 2;
    if (count == recorder->num_calls)
        return true;
    bool *grown = realloc(recorder->has_call, count * sizeof *grown);
    if (!grown)
        return false;
    memset(grown + recorder->num_calls, 0, (count - recorder->num_calls) * sizeof *grown);
    recorder->has_call = grown;
    recorder->num_calls = count;
    return true;
}

/* What the run does not have of a call and its callers, these first: a program that is killed leaves no call without its caller.
   False = out of memory. */
static bool put_calls(weir_stack_recorder *recorder, uint32_t call)
{
    weir_stack_record missing[WEIR_STACK_FRAMES];
    size_t count = 0;
    if (!make_room(recorder, call))
        return false;
    for (uint32_t caller; call && !recorder->has_call[call] && count < WEIR_STACK_FRAMES; call = caller) {
        const char *function = weir__stack_sampler_call(call, &caller);
        missing[count++] = (weir_stack_record){ .stack = call, .caller = caller, .function = function };
        recorder->has_call[call] = true;
    }
    while (count-- > 0)
        recorder->taker->take(recorder->taker, &(weir_record){ .kind = WEIR_RECORD_STACK, .stack = missing[count] });
    return true;
}

/* ---- samples -------------------------------------------------------------------------------------------------------- */

static void put_samples(weir_stack_recorder *recorder, const char *name, uint32_t stack, uint64_t num_samples)
{
    weir_record record = { .kind = WEIR_RECORD_SAMPLES, .samples = recorder->last };
    record.samples.name = name;
    record.samples.stack = stack;
    record.samples.num_samples = weir__at_most_int64(num_samples);
    record.samples.cpu_ns = record.samples.num_samples * weir__stack_sampler_period_ns();
    recorder->taker->take(recorder->taker, &record);
}

/* Takes the samples of the laps that have ended. */
static void take_samples(weir_stack_recorder *recorder)
{
    weir_stack_samples taken = weir__stack_sampler_take(recorder->ended, NUM_ENDED);
    for (size_t i = 0; i < taken.num_counts; i++) {
        const weir_stack_count *count = &taken.counts[i];
        if (put_calls(recorder, count->stack))
            put_samples(recorder, weir__stack_sampler_name(count->name), count->stack, count->num_samples);
        else
            taken.num_lost += count->num_samples;
    }
    if (taken.num_lost)
        put_samples(recorder, "", 0, taken.num_lost);
    free(taken.counts);
}

static void end_lap_id(weir_stack_recorder *recorder, uint64_t id)
{
    recorder->ended[recorder->num_ended++ % NUM_ENDED] = id;
}

void weir__stack_recorder_end_lap(weir_stack_recorder *recorder, const weir_lap *lap)
{
    weir_record_position position = weir__record_position_of(lap);
    snprintf(recorder->mode, sizeof recorder->mode, "%s", position.mode);
    snprintf(recorder->phase, sizeof recorder->phase, "%s", position.phase);
    position.mode = recorder->mode;
    position.phase = recorder->phase;
    recorder->last =
        (weir_samples_record){ .end_unix_ns = lap->end_unix_ns, .elapsed_ns = lap->elapsed_ns, .position = position };
    for (uint32_t first = 0; first < lap->num_ids; first += NUM_ENDED) {
        for (uint32_t i = first; i < lap->num_ids && i < first + NUM_ENDED; i++)
            end_lap_id(recorder, lap->ids[i]);
        take_samples(recorder);
    }
}

void weir__stack_recorder_end(weir_stack_recorder *recorder)
{
    if (recorder->last.elapsed_ns)
        take_samples(recorder);
}
