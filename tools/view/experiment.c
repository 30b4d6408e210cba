#include "experiment.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"

#define NO_GAIN 1.05 /* throughput / throughput: less is as much */

/* The recording with the ambiguous verdict (side), and the other one. */
typedef struct experiment {
    const lap_comparison *c;
    const weir_verdict *verdict;
    const comparison_pair *sink;
    int side;
    char *text;
    size_t size;
} experiment;

static double slots_at(const comparison_pair *stage, int side)
{
    const batch *all = &stage->sides[side].all;
    return (double)weir_slots_ns(&all->metrics.task) / (double)all->elapsed_ns;
}

static double rate_at(const experiment *e, int side)
{
    return comparison_value(e->sink, side, "items_per_s");
}

/* The stage of that name, if its number of slots differs. */
static const comparison_pair *find_changed(const experiment *e, const char *name)
{
    const comparison_pair *stage = comparison_find(e->c, e->side, name);
    if (!stage || stage->subject != WEIR_SUBJECT_STAGE || !stage->sides[!e->side].name)
        return NULL;
    return fabs(log(slots_at(stage, 0) / slots_at(stage, 1))) > log(1.25) ? stage : NULL;
}

/* Slots × n brings n times as many items if tasks do not wait for each other, and as many if they always do. */
static bool tell_lock(const experiment *e)
{
    const comparison_pair *stage = find_changed(e, e->verdict->name);
    bool may_be_lock = e->verdict->kind == WEIR_VERDICT_LOCK || e->verdict->other_kind == WEIR_VERDICT_LOCK;
    if (!may_be_lock || !stage)
        return false;
    int many = slots_at(stage, 1) > slots_at(stage, 0), few = !many;
    double gain = rate_at(e, many) / rate_at(e, few), times = slots_at(stage, many) / slots_at(stage, few);
    double share = log(gain) / log(times);
    if (!(comparison_value(stage, few, "busy_share") >= 0.8) || !isfinite(share))
        return false;
    const char *shows =
        share < 0.25   ? "wait for each other (a lock, or another serial part), so more slots do not help"
        : share > 0.75 ? "do not wait for each other, but for something outside, so more slots help"
                       : "wait for each other for a part of their time, so more slots help only a little";
    snprintf(
        e->text, e->size,
        "The experiment shows that the tasks of %s %s: %.3g slots deliver %.2f times as many items per second as "
        "%.3g.",
        stage->key, shows, slots_at(stage, many), gain, slots_at(stage, few));
    return true;
}

/* More slots for one of two stages in use: if that brings nothing, the other one limits. */
static bool tell_two(const experiment *e)
{
    const char *names[2] = { e->verdict->name, e->verdict->other_name };
    if (!*names[1] || strcmp(names[0], names[1]) == 0)
        return false;
    for (int i = 0; i < 2; i++) {
        const comparison_pair *stage = find_changed(e, names[i]);
        if (!stage || find_changed(e, names[!i]))
            continue;
        int many = slots_at(stage, 1) > slots_at(stage, 0);
        double gain = rate_at(e, many) / rate_at(e, !many);
        snprintf(e->text, e->size,
                 "The experiment shows that %s is the limit: with %.3g slots for %s instead of %.3g, %.2f times as "
                 "many items per second are delivered.",
                 names[gain >= NO_GAIN ? i : !i], slots_at(stage, many), stage->key, slots_at(stage, !many), gain);
        return isfinite(gain);
    }
    return false;
}

/* Of the consumer, without the time in which it waits for an item. */
static double consumer_s(const experiment *e, int side)
{
    const batch *all = &e->sink->sides[side].all;
    return 1e-9 * (double)(all->elapsed_ns - all->metrics.queue.get_ns) / (double)all->metrics.queue.num_items;
}

static bool tell_consumer(const experiment *e)
{
    char slow[WEIR_FORMAT_BYTES], fast[WEIR_FORMAT_BYTES];
    double before_s = consumer_s(e, e->side), after_s = consumer_s(e, !e->side);
    double gain = rate_at(e, !e->side) / rate_at(e, e->side);
    bool is_asked = e->verdict->kind == WEIR_VERDICT_CONSUMER || e->verdict->kind == WEIR_VERDICT_NONE;
    if (!is_asked || !(after_s < 0.7 * before_s) || !isfinite(gain))
        return false;
    weir_text_format_time(slow, before_s);
    weir_text_format_time(fast, after_s);
    snprintf(e->text, e->size,
             "The experiment shows that the consumer is %s: when it takes %s per item instead of %s, %.2f times as "
             "many items per second are delivered.",
             gain >= NO_GAIN ? "the limit" : "not the limit", fast, slow, gain);
    return true;
}

bool experiment_describe(const lap_comparison *c, const weir_verdict *const verdicts[2], const comparison_pair *sink,
                         char *text, size_t size)
{
    if (!sink || !sink->sides[0].name || !sink->sides[1].name)
        return false;
    for (int side = 0; side < 2; side++) {
        experiment e = { c, verdicts[side], sink, side, text, size };
        if (verdicts[side]->other_kind == WEIR_VERDICT_UNKNOWN || verdicts[side]->changed_unix_ns)
            continue;
        if (tell_lock(&e) || tell_two(&e) || tell_consumer(&e))
            return true;
    }
    return false;
}
