#include "plot_panel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The length of the counter's category and name in "category/name/value": values of one counter share a panel. */
static size_t group_length(const char *name)
{
    size_t length = strcspn(name, "/");
    return length + (name[length] ? 1 + strcspn(name + length + 1, "/") : 0);
}

static bool is_in_group(const panel *p, const series *line)
{
    return !p->group || (group_length(line->plain_name) == p->group_length &&
                         strncmp(line->plain_name, p->group, p->group_length) == 0);
}

/* Whether it has a value that is not 0. */
static bool has_values(weir_subject subject, const series *line, const weir_measure *measure)
{
    for (size_t j = 0; j < line->num_points; j++) {
        double value = series_value(subject, &line->points[j], measure->name);
        if (isfinite(value) && value != 0)
            return true;
    }
    return false;
}

bool panel_has(const panel *p, const series *line)
{
    for (int c = 0; c < p->num_curves && is_in_group(p, line); c++)
        if (has_values(p->subject, line, p->curves[c]))
            return true;
    return false;
}

/* "time" of "p99_time": times of one family share a panel; of other units all do. */
static const char *family_of(const weir_measure *measure)
{
    static const char *const prefixes[] = { "ave_", "p50_", "p90_", "p99_", "min_", "max_" };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && strcmp(measure->unit, "s") == 0; i++)
        if (strncmp(measure->name, prefixes[i], 4) == 0)
            return measure->name + 4;
    return strcmp(measure->unit, "s") == 0 ? measure->name : measure->unit;
}

/* Sums depend on the length of a lap, rates do not. Bad rates have no title in tables, but are worth a curve. What the
   slots do is in the first picture. */
static bool is_drawn(weir_subject subject, const weir_measure *measure)
{
    bool is_sum = measure->metric && measure->metric->kind <= WEIR_METRIC_SUM;
    bool is_bad_rate = strcmp(measure->unit, "1/s") == 0 && measure->better < 0;
    bool is_state = strcmp(measure->name, "busy_share") == 0 || strncmp(measure->name, "wait_", 5) == 0;
    bool is_least = strncmp(measure->name, "min_", 4) == 0 && subject != WEIR_SUBJECT_COUNTER;
    return (measure->title || is_bad_rate) && !is_sum && !is_least && !(is_state && subject <= WEIR_SUBJECT_FLOW);
}

static bool any_has_values(const panel *p, const series_list *list, const weir_measure *measure)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_in_group(p, &list->all[i]) && has_values(p->subject, &list->all[i], measure))
            return true;
    return false;
}

void panel_curve_title(const weir_measure *measure, char title[64])
{
    snprintf(title, 64, "%s", measure->title ? measure->title : measure->name);
    for (char *c = title; *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

/* "task time", "share", or, of a single measure, what it is. */
static void name_panel(panel *p)
{
    const weir_measure *first = p->curves[0];
    const char *noun = p->subject <= WEIR_SUBJECT_FLOW ? "task " : p->subject == WEIR_SUBJECT_SPAN ? "span " : "";
    bool is_time = strcmp(family_of(first), "time") == 0;
    if (p->group)
        snprintf(p->title, sizeof p->title, "%.*s", (int)p->group_length, p->group);
    else if (p->num_curves == 1 && first->title)
        snprintf(p->title, sizeof p->title, "%s: %.*s", first->title, (int)strcspn(first->help, ":"), first->help);
    else
        snprintf(p->title, sizeof p->title, "%s%s", is_time ? noun : "",
                 strcmp(family_of(first), "1/s") == 0 ? "per second" : family_of(first));
    for (char *c = p->title; *c && !p->group; c++)
        *c = *c == '_' ? ' ' : *c;
}

/* Adds a panel for each family of measures, for all series or those of a group. */
static size_t add_panels(const panel *like, const series_list *list, panel *panels, size_t num_panels)
{
    size_t num_measures, first = num_panels;
    const weir_measure *measures = weir_subject_measures(like->subject, &num_measures);
    for (size_t i = 0; i < num_measures; i++) {
        if (!is_drawn(like->subject, &measures[i]) || !any_has_values(like, list, &measures[i]))
            continue;
        size_t place = first;
        while (place < num_panels && strcmp(family_of(panels[place].curves[0]), family_of(&measures[i])) != 0)
            place++;
        if (place == PANEL_MAX || panels[place].num_curves == PANEL_MAX_CURVES)
            continue;
        if (place == num_panels)
            panels[num_panels++] = *like;
        panels[place].curves[panels[place].num_curves++] = &measures[i];
    }
    for (; first < num_panels; first++)
        name_panel(&panels[first]);
    return num_panels;
}

size_t panels_make(weir_subject subject, const series_list *list, panel panels[PANEL_MAX])
{
    size_t num_panels = 0;
    memset(panels, 0, PANEL_MAX * sizeof *panels);
    if (subject != WEIR_SUBJECT_COUNTER)
        return add_panels(&(panel){ .subject = subject }, list, panels, 0);
    for (size_t i = 0; i < list->count && num_panels < PANEL_MAX; i++) { /* counters have scales of their own */
        bool is_known = false;
        for (size_t j = 0; j < num_panels; j++)
            is_known |= is_in_group(&panels[j], &list->all[i]);
        const char *name = list->all[i].plain_name;
        panel own = { .subject = subject, .group = name, .group_length = group_length(name) };
        if (!is_known)
            num_panels = add_panels(&own, list, panels, num_panels);
    }
    return num_panels;
}
