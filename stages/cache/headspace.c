/* Results of the pipeline for the first round, replayed ones for the second, then those of the pipeline again. */
#include <weir/headspace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>

#include "stages/cache/step_times.h"
#include "stages/memory/kept_items.h"

typedef enum headspace_round { ROUND_LOADER, ROUND_REPLAYED, ROUND_DONE } headspace_round;

struct weir_headspace {
    weir_headspace_options options;
    weir_kept_items kept;
    headspace_round round;
    uint32_t num_skipped; /* steps of the current round that did not count */
    bool stands_still;    /* the pipeline has no task that runs */
    int64_t returned_ns;  /* when the last result was returned; 0 = the next step cannot be measured */
    int64_t epoch_ns;     /* when WEIR_EPOCH was returned: until the next call, time belongs to no step; 0 = not */
    weir_step_times times[2]; /* of ROUND_LOADER and ROUND_REPLAYED */
    bool marks_replay;        /* the pipeline is in WEIR_PHASE_REPLAY, and `phase` was its phase before */
    char phase[64];
};

int weir_headspace_new_sized(const weir_headspace_options *options, size_t options_size, weir_headspace **headspace,
                             weir_error *error)
{
    if (!headspace)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_headspace *made = *headspace = calloc(1, sizeof *made);
    if (!made)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    weir_headspace_options *own = &made->options;
    int rc = weir_struct_copy(own, sizeof *own, options, options_size, "weir_headspace_options", error);
    if (rc != WEIR_OK) {
        free(made);
        *headspace = NULL;
        return rc;
    }
    own->warmup_steps = own->warmup_steps ? own->warmup_steps : 10;
    own->num_steps = own->num_steps ? own->num_steps : 50;
    made->kept.max_items = own->num_items ? own->num_items : 8;
    made->kept.max_bytes = own->max_bytes ? own->max_bytes : UINT64_C(1) << 30;
    return WEIR_OK;
}

static void log_headspace(const weir_headspace *headspace, weir_pipeline *pipeline)
{
    weir_headspace_result result;
    weir_headspace_report(headspace, &result);
    weir_pipeline_event(pipeline, "headspace", "user", result.text);
}

/* At first the tasks of the loader go on until its queues are full. Some sources never stand still. */
static bool is_warming_up(const weir_headspace *headspace)
{
    enum { MAX_RESTLESS_STEPS = 1000 };
    return headspace->num_skipped < headspace->options.warmup_steps ||
           (headspace->round == ROUND_REPLAYED && !headspace->stands_still &&
            headspace->num_skipped < MAX_RESTLESS_STEPS);
}

/* From when the pipeline stands still until it is asked again: these laps say nothing about it. */
static void mark_replay(weir_headspace *headspace, weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    if (headspace->marks_replay || weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
        return;
    snprintf(headspace->phase, sizeof headspace->phase, "%s", *snapshot->phase ? snapshot->phase : "loop");
    weir_snapshot_free(snapshot);
    headspace->marks_replay = weir_pipeline_mark_phase(pipeline, WEIR_PHASE_REPLAY) == WEIR_OK;
}

static void end_replay(weir_headspace *headspace, weir_pipeline *pipeline)
{
    if (headspace->marks_replay)
        weir_pipeline_mark_phase(pipeline, headspace->phase);
    headspace->marks_replay = false;
}

/* A step has ended. The first ones of a round do not count: queues fill, caches warm up. */
static void count_step(weir_headspace *headspace, weir_pipeline *pipeline)
{
    int64_t now_ns = weir_clock_ns();
    int64_t step_ns = now_ns - headspace->returned_ns;
    bool is_known = headspace->returned_ns != 0;
    headspace->returned_ns = now_ns;
    if (!is_known || headspace->round == ROUND_DONE)
        return;
    if (is_warming_up(headspace)) {
        headspace->num_skipped++;
        return;
    }
    if (headspace->round == ROUND_REPLAYED)
        mark_replay(headspace, pipeline);
    weir_step_times *times = &headspace->times[headspace->round];
    weir__step_times_add(times, (double)step_ns / (double)WEIR_SECOND);
    if (times->num_steps < headspace->options.num_steps)
        return;
    headspace->round++;
    headspace->num_skipped = 0;
    if (headspace->round == ROUND_DONE) {
        weir__kept_items_free(&headspace->kept);
        log_headspace(headspace, pipeline);
    }
}

/* Nothing is taken from the pipeline meanwhile, so that it stands still; its end must be noticed in another way. */
static bool is_running(weir_headspace *headspace, weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    if (weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
        return true;
    bool runs = strcmp(snapshot->state, "running") == 0;
    headspace->stands_still = snapshot->num_tasks == 0;
    weir_snapshot_free(snapshot);
    return runs;
}

int weir_headspace_next(weir_headspace *headspace, weir_pipeline *pipeline, weir_item *item, int64_t timeout_ns)
{
    if (!headspace || !pipeline || !item)
        return WEIR_EINVAL;
    int status = WEIR_OK;
    if (headspace->epoch_ns && headspace->returned_ns)
        headspace->returned_ns += weir_clock_ns() - headspace->epoch_ns;
    headspace->epoch_ns = 0;
    if (headspace->round == ROUND_REPLAYED && is_running(headspace, pipeline))
        weir__kept_items_lend(&headspace->kept, item);
    else {
        end_replay(headspace, pipeline);
        status = weir_pipeline_next(pipeline, item, timeout_ns);
    }
    if (status == WEIR_OK && headspace->round == ROUND_LOADER && weir__kept_items_has_room(&headspace->kept) &&
        !weir__kept_items_add(&headspace->kept, item) && headspace->kept.num_items == 0) {
        weir_item_release(item);
        return WEIR_ENOMEM;
    }
    if (status == WEIR_OK) {
        count_step(headspace, pipeline);
        weir_pipeline_set_held(pipeline, headspace->kept.num_bytes);
    } else if (status == WEIR_EPOCH)
        headspace->epoch_ns = weir_clock_ns();
    else if (status != WEIR_ETIMEDOUT) /* the wait goes on */
        headspace->returned_ns = 0;
    return status;
}

int weir_headspace_report_sized(const weir_headspace *headspace, weir_headspace_result *result, size_t result_size)
{
    if (!headspace || !result)
        return WEIR_EINVAL;
    weir_headspace_result own =
        weir__step_times_compare(&headspace->times[ROUND_LOADER], &headspace->times[ROUND_REPLAYED]);
    own.is_complete = headspace->round == ROUND_DONE;
    /* Steps are between results, and the pipeline must not have ended when the first result is replayed. */
    own.num_needed = (uint64_t)headspace->options.warmup_steps + headspace->options.num_steps + 2;
    weir__step_times_describe(&own);
    weir_struct_fill(result, result_size, &own, sizeof own);
    return WEIR_OK;
}

void weir_headspace_free(weir_headspace *headspace)
{
    if (!headspace)
        return;
    weir__kept_items_free(&headspace->kept);
    free(headspace);
}
