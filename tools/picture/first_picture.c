#include "tools/picture/first_picture.h"

#include <stdlib.h>
#include <string.h>

#include <weir/verdict.h>

#include "tools/cli/memory.h"
#include "tools/picture/svg.h"

enum {
    MAX_STAGES = 12, /* rows of stages, and of queues */
    MAX_LANES = 4,   /* of names of events above each other */
    MAX_NAMES = 12,  /* of phases in a legend, and of events that are listed */
    NUM_LONGEST = 5, /* pauses that are listed */
    NUM_STATES = 6,
    NUM_CPU_PARTS = 5,
};

/* ---- events and pauses -------------------------------------------------------------------------------------- */

static int longer_pause(const void *one, const void *other)
{
    const series_mark *a = one, *b = other;
    double more = (b->end - b->start) - (a->end - a->start);
    return more > 0 ? 1 : more < 0 ? -1 : 0;
}

/* How many there were, and the longest. */
static void put_longest_pauses(layout *l)
{
    const series_marks *pauses = &l->set->pauses;
    time_unit unit = time_unit_of(l->set->end);
    size_t size;
    double all_s = 0;
    char *text;
    if (pauses->count == 0)
        return;
    series_mark *sorted = memory_get(pauses->count, sizeof *sorted);
    memcpy(sorted, pauses->all, pauses->count * sizeof *sorted);
    qsort(sorted, pauses->count, sizeof *sorted, longer_pause);
    for (size_t i = 0; i < pauses->count; i++)
        all_s += sorted[i].end - sorted[i].start;
    FILE *line = memory_file_open(&text, &size);
    fprintf(line, "%zu pause%s, %.3g s in all. Longest: ", pauses->count, pauses->count == 1 ? "" : "s", all_s);
    for (size_t i = 0; i < pauses->count && i < NUM_LONGEST; i++)
        fprintf(line, "%s%s %.3g s at %.4g %s", i ? ", " : "", sorted[i].text, sorted[i].end - sorted[i].start,
                sorted[i].start / unit.seconds, unit.name);
    memory_file_close(line);
    layout_text(l, "n", text);
    free(text);
    free(sorted);
}

/* Events whose names found no place, by name. */
typedef struct event_list {
    struct listed_event {
        const char *name;
        size_t count;
        double first;
    } * all;
    size_t num_names;
} event_list;

static void list_event(event_list *list, const series_mark *event)
{
    size_t i = 0;
    while (i < list->num_names && strcmp(list->all[i].name, event->text) != 0)
        i++;
    if (i == list->num_names) {
        list->all = memory_grow(list->all, list->num_names++, sizeof *list->all);
        list->all[i] = (struct listed_event){ event->text, 0, event->start };
    }
    list->all[i].count++;
}

static void put_event_list(layout *l, const event_list *list)
{
    time_unit unit = time_unit_of(l->set->end);
    size_t size;
    char *text;
    if (list->num_names == 0)
        return;
    FILE *line = memory_file_open(&text, &size);
    fputs("More events: ", line);
    for (size_t i = 0; i < list->num_names; i++) {
        fprintf(line, "%s%s", i ? ", " : "", list->all[i].name);
        if (list->all[i].count > 1)
            fprintf(line, " × %zu, the first", list->all[i].count);
        fprintf(line, " at %.4g %s", list->all[i].first / unit.seconds, unit.name);
    }
    memory_file_close(line);
    layout_text(l, "n", text);
    free(text);
}

/* Names stand above the graph, each where its event is, in the first lane that is free there; the others are listed. */
static void put_event_names(layout *l, event_list *others)
{
    const series_marks *events = &l->set->events;
    const time_graph place = { .x = l->left, .width = l->right - l->left, .end_s = l->set->end };
    double used[MAX_LANES], top = l->y;
    int num_lanes = 0;
    for (int i = 0; i < MAX_LANES; i++)
        used[i] = -INFINITY;
    for (size_t i = 0; i < events->count; i++) {
        double width = svg_text_width(events->all[i].text), x = graph_x(&place, events->all[i].start);
        x = fmax(4, fmin(x, l->right - width));
        int lane = 0;
        while (lane < MAX_LANES && used[lane] > x)
            lane++;
        if (lane == MAX_LANES || width > l->right - 4) {
            list_event(others, &events->all[i]);
            continue;
        }
        used[lane] = x + width + 10;
        num_lanes = lane >= num_lanes ? lane + 1 : num_lanes;
        svg_text(l->out, "n", x, top + 14 * lane + 11, "start", events->all[i].text, SIZE_MAX);
    }
    l->y = top + 14 * num_lanes + 2;
}

static void put_phase_legend(layout *l)
{
    const series_marks *phases = &l->set->phases;
    const char *names[MAX_NAMES];
    size_t num_names = 0;
    if (phases->count == 0)
        return;
    legend of = legend_begin(l, "Phases");
    bool are_more = false;
    for (size_t i = 0; i < phases->count && !are_more; i++) {
        size_t known = 0;
        while (known < num_names && strcmp(names[known], phases->all[i].text) != 0)
            known++;
        if (known < num_names)
            continue;
        are_more = num_names == MAX_NAMES;
        if (are_more)
            break;
        names[num_names++] = phases->all[i].text;
        legend_fill(&of, phases->all[i].text, (ink)(INK_PHASES + l->tints[i]), 1);
    }
    if (are_more)
        legend_note(&of, "and others");
    legend_end(&of);
}

/* ---- throughput and limit ----------------------------------------------------------------------------------- */

/* A band that says what limits each part of the run, and for how much of the time. */
static void put_limits(layout *l)
{
    const series_marks *limits = &l->set->limits;
    double all_s = 0;
    if (limits->count == 0)
        return;
    l->y += 3;
    time_graph band = layout_row(l, "", 16, "share", NULL);
    graph_limits(&band, limits, false);
    for (size_t i = 0; i < limits->count; i++)
        all_s += limits->all[i].end - limits->all[i].start;
    legend of = legend_begin(l, "Limit");
    for (size_t i = 0; i < limits->count; i++) {
        double reported_s = 0;
        size_t first = 0;
        while (strcmp(limits->all[first].text, limits->all[i].text) != 0)
            first++;
        if (first < i)
            continue;
        for (size_t j = i; j < limits->count; j++)
            if (strcmp(limits->all[j].text, limits->all[i].text) == 0)
                reported_s += limits->all[j].end - limits->all[j].start;
        char *text = reported_s < all_s
                         ? memory_format("%s, %.0f %% of the time", limits->all[i].text, 100 * reported_s / all_s)
                         : memory_copy(limits->all[i].text);
        legend_fill(&of, text, (ink)(INK_LIMITS + limits->all[i].kind), 1);
        free(text);
    }
    legend_end(&of);
}

static void put_throughput(layout *l)
{
    const series_set *set = l->set;
    weir_subject subject;
    const series *line = series_throughput(set, &subject);
    const series_list *list = &set->lists[subject];
    const char *measure = subject == WEIR_SUBJECT_QUEUE ? "items_per_s" : "tasks_per_s";
    value_range range = value_range_none;
    event_list others = { .all = NULL };
    size_t num_curves = 0;
    if (!line)
        return;
    put_phase_legend(l);
    legend of = legend_begin(l, subject == WEIR_SUBJECT_QUEUE ? "Items per second" : "Tasks per second");
    for (size_t i = 0; i < list->count; i++) {
        const series_value *values = series_values(list, &list->all[i], measure);
        if (!values || strcmp(list->all[i].plain_name, line->plain_name) != 0)
            continue;
        legend_curve(&of, list->all[i].name, num_curves++);
        graph_add_range(&range, &list->all[i], values);
    }
    legend_end(&of);
    put_event_names(l, &others);
    time_graph g = layout_row(l, "", l->is_narrow ? 150 : 180, "1/s", &range);
    graph_begin(&g);
    graph_phases(&g, &set->phases, l->tints);
    if (set->phases.count == 0) /* two tints would be a third one */
        graph_limits(&g, &set->limits, true);
    graph_pauses(&g, &set->pauses, true);
    graph_value_axis(&g);
    graph_time_grid(&g);
    graph_events(&g, &set->events, true);
    num_curves = 0;
    for (size_t i = 0; i < list->count; i++) {
        const series_value *values = series_values(list, &list->all[i], measure);
        if (values && strcmp(list->all[i].plain_name, line->plain_name) == 0)
            graph_curve(&g, &list->all[i], values, list->all[i].name, num_curves++);
    }
    graph_end(&g);
    put_limits(l);
    put_event_list(l, &others);
    free(others.all);
}

/* ---- stacks ------------------------------------------------------------------------------------------------- */

/* A part of a stack: not above `most`, and without `rest_of`; "" = no such limit. */
typedef struct stack_part {
    const char *name;
    ink fill;
    const char *measure, *most, *rest_of;
    weir_subject subject;
} stack_part;

static const stack_part states[NUM_STATES] = {
    /* a codec's own threads may use more CPU time than the slots are busy */
    { "busy on a CPU", INK_BUSY, "cpu_slot_share", "busy_share", "", WEIR_SUBJECT_STAGE },
    { "busy otherwise", INK_BUSY_ELSEWHERE, "busy_share", "", "cpu_slot_share", WEIR_SUBJECT_STAGE },
    { "waits for input", INK_INPUT, "wait_in_share", "", "", WEIR_SUBJECT_STAGE },
    { "for a thread", INK_THREAD, "wait_thread_share", "", "", WEIR_SUBJECT_STAGE },
    { "for its turn", INK_TURN, "wait_turn_share", "", "", WEIR_SUBJECT_STAGE },
    { "for room", INK_ROOM, "wait_out_share", "", "", WEIR_SUBJECT_STAGE },
};

static const stack_part cpu_parts[NUM_CPU_PARTS] = {
    { "this process", INK_BUSY, "cpus", "", "", WEIR_SUBJECT_PROCESS },
    { "throttled", INK_THROTTLED, "throttled_share", "", "", WEIR_SUBJECT_MACHINE }, /* of one CPU */
    { "other virtual machines", INK_STOLEN, "stolen_cpus", "", "", WEIR_SUBJECT_MACHINE },
    { "other programs", INK_OTHERS, "other_cpus", "", "", WEIR_SUBJECT_MACHINE },
    { "idle", INK_IDLE, "idle_cpus", "", "", WEIR_SUBJECT_MACHINE },
};

/* The mean at a time; point: where it may be. NAN = there is none. */
static double mean_at(const series_list *list, const series *line, const char *measure, size_t point, double start)
{
    const series_value *values = *measure ? series_values(list, line, measure) : NULL;
    bool is_there = values && point < line->num_points && fabs(line->times[point].start - start) < 0.5;
    return is_there ? values[point * line->num_columns].mean : NAN;
}

static double part_value(const stack_part *part, const series_list *list, const series *line, size_t point,
                         double start)
{
    double value = mean_at(list, line, part->measure, point, start);
    double most = mean_at(list, line, part->most, point, start);
    double rest = mean_at(list, line, part->rest_of, point, start);
    if (isfinite(value) && isfinite(most))
        value = fmin(value, most);
    return fmax(isfinite(value) ? value - (isfinite(rest) ? rest : 0) : 0, 0);
}

/* Puts the parts on each other, up to `most`. The first line is of the process or stage, the second of the machine; NULL =
   none. */
static void put_stack(const time_graph *g, const series_set *set, const stack_part *parts, size_t num_parts,
                      const series *const lines[2], const series_list *own, double most)
{
    graph_layer layers[NUM_STATES];
    size_t num_points = lines[0]->num_points;
    double *tops = memory_get(num_parts * num_points + 1, sizeof *tops);
    for (size_t i = 0; i < num_parts; i++)
        layers[i] = (graph_layer){ parts[i].name, parts[i].fill, tops + i * num_points, INFINITY, -INFINITY };
    for (size_t j = 0; j < num_points; j++) {
        double sum = 0, start = lines[0]->times[j].start;
        bool is_known = isfinite(
            mean_at(own, lines[0], parts[0].subject == WEIR_SUBJECT_PROCESS ? "cpus" : "busy_share", j, start));
        for (size_t i = 0; i < num_parts; i++) {
            bool is_own = parts[i].subject == parts[0].subject;
            const series_list *list = is_own ? own : &set->lists[parts[i].subject];
            double value = part_value(&parts[i], list, lines[!is_own], j, start);
            double top = fmin(sum + value, i == 0 ? INFINITY : fmax(most, sum));
            if (is_known) {
                layers[i].low = fmin(layers[i].low, top - sum);
                layers[i].high = fmax(layers[i].high, top - sum);
            }
            sum = top;
            layers[i].tops[j] = is_known ? sum : NAN;
        }
    }
    graph_layers(g, lines[0], layers, num_parts);
    free(tops);
}

static void put_parts_legend(layout *l, const char *heading, const stack_part *parts, size_t count)
{
    legend of = legend_begin(l, heading);
    for (size_t i = 0; i < count; i++)
        legend_fill(&of, parts[i].name, parts[i].fill, 1);
    legend_end(&of);
}

static bool has_states(const series_list *list, const series *line)
{
    const series_value *busy = series_values(list, line, "busy_share");
    bool is_known = false;
    for (size_t i = 0; busy && i < line->num_points; i++)
        is_known |= isfinite(busy[i * line->num_columns].mean);
    return is_known && strcmp(line->kind, "sink") != 0 && strcmp(line->kind, "merge") != 0;
}

static void put_states(layout *l)
{
    static const weir_subject subjects[] = { WEIR_SUBJECT_FLOW, WEIR_SUBJECT_STAGE }; /* sources come first */
    size_t count = 0;
    for (size_t s = 0; s < 2; s++) {
        const series_list *list = &l->set->lists[subjects[s]];
        for (size_t i = 0; i < list->count && count < MAX_STAGES; i++) {
            const series *lines[2] = { &list->all[i], NULL };
            if (!has_states(list, lines[0]))
                continue;
            if (count++ == 0)
                put_parts_legend(l, "Time of the slots", states, NUM_STATES);
            time_graph g = layout_row(l, lines[0]->name, 34, "share", NULL);
            graph_begin(&g);
            put_stack(&g, l->set, states, NUM_STATES, lines, list, 1);
            graph_time_grid(&g);
            graph_end(&g);
            l->y += 5;
        }
    }
}

/* Who used the CPUs, up to the budget. */
static void put_cpus(layout *l)
{
    const series_list *processes = &l->set->lists[WEIR_SUBJECT_PROCESS],
                      *machines = &l->set->lists[WEIR_SUBJECT_MACHINE];
    const series *lines[2] = { processes->count == 1 ? processes->all : NULL,
                               machines->count == 1 ? machines->all : NULL };
    const series_value *cpus = series_values(processes, lines[0], "cpus");
    value_range range = value_range_none;
    char budget[40];
    if (!lines[0] || !cpus)
        return;
    for (size_t i = 0; i < lines[0]->num_points; i++)
        value_range_add(&range, cpus[i * processes->num_columns].mean);
    if (!(range.high > 0))
        return;
    double most = lines[0]->capacity ? (double)lines[0]->capacity : range.high;
    value_range_add(&range, most);
    put_parts_legend(l, "CPUs", cpu_parts, NUM_CPU_PARTS);
    snprintf(budget, sizeof budget, "of %.3g", most);
    time_graph g = layout_row(l, budget, 72, "CPUs", &range);
    graph_begin(&g);
    graph_value_axis(&g);
    put_stack(&g, l->set, cpu_parts, NUM_CPU_PARTS, lines, processes, most);
    graph_time_grid(&g);
    double y = axis_at(&g.values, most);
    svg_line(l->out, "m", g.x, y, g.x + g.width, y);
    graph_end(&g);
    l->y += 6;
}

/* ---- queues ------------------------------------------------------------------------------------------------- */

/* The share of its room that a queue uses; that of the time in which it was not empty, if the level is not known. */
static double *filled_shares(const series_list *list, const series *queue)
{
    const series_value *depths = series_values(list, queue, "ave_depth");
    const series_value *occupied = series_values(list, queue, "occupancy_rate");
    double *levels = memory_get(queue->num_points + 1, sizeof *levels);
    for (size_t i = 0; i < queue->num_points; i++) {
        double depth = depths ? depths[i * list->num_columns].mean : NAN;
        levels[i] = queue->capacity > 0 && isfinite(depth) ? fmin(1, depth / (double)queue->capacity)
                    : occupied                             ? occupied[i * list->num_columns].mean
                                                           : NAN;
    }
    return levels;
}

static void put_queues(layout *l)
{
    const series_list *queues = &l->set->lists[WEIR_SUBJECT_QUEUE];
    if (queues->count == 0)
        return;
    legend of = legend_begin(l, "Level of the queues");
    legend_fill(&of, "empty", INK_EMPTY, 1);
    legend_fill(&of, "half full", INK_FULL, 0.5);
    legend_fill(&of, "full", INK_FULL, 1);
    legend_end(&of);
    for (size_t i = 0; i < queues->count && i < MAX_STAGES; i++) {
        double *levels = filled_shares(queues, &queues->all[i]);
        time_graph g = layout_row(l, queues->all[i].name, 15, "share", NULL);
        graph_levels(&g, &queues->all[i], levels, queues->all[i].name);
        l->y += 4;
        free(levels);
    }
}

void first_picture_put(layout *l)
{
    double top = l->y;
    put_longest_pauses(l);
    put_throughput(l);
    put_states(l);
    put_cpus(l);
    put_queues(l);
    if (l->y == top)
        return;
    time_graph g = layout_row(l, "", 2, "share", NULL); /* the axis of all of them */
    graph_time_labels(&g);
    svg_line(l->out, "g", g.x, g.y + 2, g.x + g.width, g.y + 2);
    l->y += 34;
}
