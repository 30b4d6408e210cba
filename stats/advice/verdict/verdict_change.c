/* What is another one in a part of a run, in words: its limit, its rate, and what differs beside that. */
#include "stats/advice/verdict/verdict_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/format.h"

enum { CLOCK_BYTES = 16 };

static void format_clock(char text[CLOCK_BYTES], int64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm local;
    if (!localtime_r(&seconds, &local) || strftime(text, CLOCK_BYTES, "%H:%M:%S", &local) == 0)
        snprintf(text, CLOCK_BYTES, "?");
}

void weir__verdict_settle_change(full_verdict *v, const full_verdict *before, const full_verdict *after,
                                 int64_t start_unix_ns, int64_t end_unix_ns)
{
    int64_t before_ns = v->shown.changed_unix_ns - start_unix_ns;
    double share = (double)before_ns / (double)(end_unix_ns - start_unix_ns);
    char duration[WEIR_FORMAT_BYTES], clock[CLOCK_BYTES];
    const full_verdict *longer = share >= 0.5 ? before : after, *other = share >= 0.5 ? after : before;
    weir__text_format_duration(duration, before_ns);
    format_clock(clock, v->shown.changed_unix_ns);
    v->shown.num_evidence = 0;
    weir__verdict_settle(v, longer->shown.kind, longer->name, longer->sentence, longer->shown.confidence);
    weir__verdict_settle_other(v, other->shown.kind, other->name, other->sentence);
    weir__verdict_add_evidence(v,
                               "the limit changed at %s, after %s (%.0f %% of this time): before, %.2f items per "
                               "second; after, %.2f",
                               clock, duration, 100 * share, before->shown.items_per_s, after->shown.items_per_s);
    for (size_t i = 0; i < longer->shown.num_evidence; i++)
        weir__verdict_add_evidence(v, "%s: %s", share >= 0.5 ? "before" : "after", longer->lines[i]);
    for (size_t i = 0; i < other->shown.num_evidence; i++)
        weir__verdict_add_evidence(v, "%s: %s", share >= 0.5 ? "after" : "before", other->lines[i]);
}

static void append_sentence(full_verdict *v, const char *text)
{
    size_t used = strlen(v->sentence);
    snprintf(v->sentence + used, sizeof v->sentence - used, " %s", text);
}

void weir__verdict_say_rate_change(full_verdict *v, const double rates[2], int64_t changed_unix_ns,
                                   int64_t start_unix_ns)
{
    const char *verb = rates[1] < rates[0] ? "fell" : "rose";
    char text[200], clock[CLOCK_BYTES], duration[WEIR_FORMAT_BYTES];
    if (!changed_unix_ns) {
        snprintf(text, sizeof text, "The rate %s all the time, from %.3g to %.3g items per second.", verb, rates[0],
                 rates[1]);
    } else {
        format_clock(clock, changed_unix_ns);
        weir__text_format_duration(duration, changed_unix_ns - start_unix_ns);
        snprintf(text, sizeof text, "The rate %s from %.3g to %.3g items per second at %s, after %s.", verb, rates[0],
                 rates[1], clock, duration);
    }
    append_sentence(v, text);
}

void weir__verdict_say_levels(full_verdict *v, const rate_levels *levels, double length_s)
{
    char text[200], length[WEIR_FORMAT_BYTES];
    weir__text_format_time(length, length_s);
    snprintf(text, sizeof text, "The rate alternates between %.3g and %.3g items per second, every %s on average.",
             levels->high.rate, levels->low.rate, length);
    append_sentence(v, text);
}

void weir__verdict_settle_levels(full_verdict *v, full_verdict *const parts[2], const rate_levels *levels)
{
    bool is_low = levels->low.num_laps > levels->high.num_laps;
    const full_verdict *more = parts[is_low], *less = parts[!is_low];
    double num_laps = (double)(levels->low.num_laps + levels->high.num_laps);
    char rate[VERDICT_TEXT_BYTES];
    snprintf(rate, sizeof rate, "%s", strstr(v->sentence, "The rate alternates"));
    weir__verdict_settle(v, more->shown.kind, more->name, more->sentence, more->shown.confidence);
    append_sentence(v, rate);
    weir__verdict_settle_other(v, less->shown.kind, less->name, less->sentence);
    v->shown.num_evidence = 0;
    for (int i = 0; i < 2; i++) {
        bool low = i == 0 ? is_low : !is_low;
        const char *when = low ? "low" : "high";
        double share = (double)(low ? levels->low.num_laps : levels->high.num_laps) / num_laps;
        weir__verdict_add_evidence(v, "the rate is %s for %.0f %% of the time", when, 100 * share);
        for (size_t j = 0; j < parts[low]->shown.num_evidence; j++)
            weir__verdict_add_evidence(v, "%s: %s", when, parts[low]->lines[j]);
    }
}

static const node_view *find_node(const verdict_view *view, const char *name)
{
    for (size_t i = 0; i < view->num_nodes; i++)
        if (strcmp(view->nodes[i].name, name) == 0)
            return &view->nodes[i];
    return NULL;
}

/* The tasks of the node take longer in one of the two parts, and the node is used enough there to slow the run
   down. */
static bool explains(const verdict_view *slower, const node_view *slow, const node_view *fast)
{
    return fast && weir__verdict_use(slower, (size_t)(slow - slower->nodes)) >= FULL &&
           slow->time_s >= WEIR_WORTH_GAIN * fast->time_s;
}

static void tell_task_times(full_verdict *v, const node_view *a, const node_view *b, const char *const names[2])
{
    char times[2][WEIR_FORMAT_BYTES], cpus[2][WEIR_FORMAT_BYTES];
    const node_view *both[2] = { a, b };
    for (int i = 0; i < 2; i++) {
        weir__text_format_time(times[i], both[i]->time_s);
        weir__text_format_time(cpus[i], both[i]->time_s * weir__or_zero(both[i]->cpu));
    }
    weir__verdict_add_evidence(v, "a task of %s takes %s %s, of which %s are CPU time, and %s %s, of which %s are",
                               a->name, times[0], names[0], cpus[0], times[1], names[1], cpus[1]);
}

void weir__verdict_tell_difference(full_verdict *v, const verdict_view *a, const verdict_view *b,
                                   const char *const names[2])
{
    bool is_b_slower = b->items_per_s < a->items_per_s;
    const verdict_view *slower = is_b_slower ? b : a, *faster = is_b_slower ? a : b;
    for (size_t i = 0; i < slower->num_nodes; i++) {
        const node_view *slow = &slower->nodes[i], *fast = find_node(faster, slow->name);
        if (explains(slower, slow, fast))
            tell_task_times(v, is_b_slower ? fast : slow, is_b_slower ? slow : fast, names);
        if (fast && fabs(slow->slots - fast->slots) >= HALF)
            weir__verdict_add_evidence(v, "%s has %.0f slots %s, and %.0f %s", slow->name,
                                       round(is_b_slower ? fast->slots : slow->slots), names[0],
                                       round(is_b_slower ? slow->slots : fast->slots), names[1]);
    }
    if (fabs(a->system.other - b->system.other) >= HALF)
        weir__verdict_add_evidence(v, "other programs use %.2f CPUs %s, and %.2f %s", a->system.other, names[0],
                                   b->system.other, names[1]);
    if (slower->sink && slower->sink->occupied >= FULL && !(faster->sink && faster->sink->occupied >= FULL))
        weir__verdict_add_evidence(v, "the consumer takes items more slowly than the pipeline makes them only %s",
                                   names[is_b_slower]);
}
