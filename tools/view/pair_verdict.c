#include "tools/view/pair_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* From the side with less of a setting to the one with more. */
typedef struct outcome {
    double gain, low, high; /* of the throughput */
    int more;               /* the side with more */
} outcome;

static double setting_at(const comparison_pair *pair, int side)
{
    const weir_total *all = pair->sides[side];
    if (pair->subject == WEIR_SUBJECT_STAGE)
        return round(weir_num_slots(&all->metrics.task, all->elapsed_ns));
    return (double)all->capacity;
}

static bool is_setting(const comparison_pair *pair)
{
    bool is_known = pair->sides[0] && pair->sides[1] &&
                    (pair->subject == WEIR_SUBJECT_STAGE || pair->subject == WEIR_SUBJECT_POOL ||
                     pair->subject == WEIR_SUBJECT_QUEUE);
    double a = is_known ? setting_at(pair, 0) : NAN, b = is_known ? setting_at(pair, 1) : NAN;
    return a > 0 && b > 0 && a != b; /* not if one is NAN */
}

static outcome outcome_of(const comparison_pair *pair, const comparison_row *d)
{
    outcome o = { 1 + d->change, 1 + d->low, 1 + d->high, setting_at(pair, 1) > setting_at(pair, 0) };
    return o.more ? o : (outcome){ 1 / o.gain, 1 / o.high, 1 / o.low, 0 };
}

/* What the intervals say. time: of the tasks of a stage, from A to B. */
static const char *conclusion_of(const comparison_pair *pair, const outcome *o, const comparison_row *time)
{
    double times = setting_at(pair, o->more) / setting_at(pair, !o->more);
    bool brings_nothing = o->high < WEIR_WORTH_GAIN && !(o->low > 1),
         are_longer = o->more ? time->low > 0 : time->high < 0;
    if (isnan(o->low) || isnan(o->high))
        return ": too few laps to say more";
    if (brings_nothing && are_longer)
        return ": the stage waits for something that does not get faster, so more slots do not help";
    if (brings_nothing)
        return ": more of them does not help";
    if (o->low > 1 && times < WEIR_WORTH_GAIN * o->high)
        return ": more of them helps";
    if (o->low > 1)
        return ": more of them helps, but less and less";
    return ": no clear difference";
}

static size_t add_sentence(char *text, size_t size, const comparison_pair *pair, const outcome *o, bool is_other_job)
{
    static const char *const what[] = { [WEIR_SUBJECT_STAGE] = "slots of ",
                                        [WEIR_SUBJECT_POOL] = "threads of ",
                                        [WEIR_SUBJECT_QUEUE] = "items of room in " };
    char task[120] = "";
    comparison_row time = { .change = NAN, .low = NAN, .high = NAN };
    if (pair->subject == WEIR_SUBJECT_STAGE)
        time = comparison_compare(pair, "ave_time");
    double change = o->more ? time.change : 1 / (1 + time.change) - 1;
    if (!isnan(change))
        snprintf(task, sizeof task, "its tasks take %+.0f %% time, and ", 100 * change);
    int length = snprintf(text, size, "With %.0f %s%s instead of %.0f, %s%+.0f %% items per second are delivered",
                          setting_at(pair, o->more), what[pair->subject], pair->key, setting_at(pair, !o->more), task,
                          100 * (o->gain - 1));
    size_t used = (size_t)length < size ? (size_t)length : size - 1;
    if (!isnan(o->low) && !isnan(o->high))
        snprintf(text + used, size - used, " (95 %%: %+.0f to %+.0f %%)", 100 * (o->low - 1), 100 * (o->high - 1));
    used = strlen(text);
    snprintf(text + used, size - used, "%s. ", is_other_job ? "" : conclusion_of(pair, o, &time));
    return strlen(text);
}

bool pair_verdict_describe(const lap_comparison *c, bool is_other_job, char *text, size_t size)
{
    size_t used = 0, count = 0;
    const comparison_pair *sink = comparison_find_sink(c);
    *text = '\0';
    if (!sink)
        return false;
    comparison_row d = comparison_compare(sink, "items_per_s");
    for (size_t i = 0; i < c->num_pairs && !isnan(d.change); i++) {
        if (!is_setting(&c->pairs[i]) || size - used < 300)
            continue;
        outcome o = outcome_of(&c->pairs[i], &d);
        used += add_sentence(text + used, size - used, &c->pairs[i], &o, is_other_job);
        count++;
    }
    if (count && is_other_job)
        snprintf(text + used, size - used,
                 "But the runs did not do the same job, so this is no comparison of these settings.");
    else if (count > 1)
        snprintf(text + used, size - used, "These settings differ together: each alone may bring less.");
    else if (used)
        text[used - 1] = '\0'; /* the last space */
    return count > 0;
}
