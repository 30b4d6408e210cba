/* The formulas of the metrics, and how they are printed. */
#include "engine_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"

/* One metric of the cases of one cell, in one round. The cases that the formula needs exist. */
typedef struct cell_round {
    const engine_case *cases[NUM_ROLES];
    const engine_sample *samples[NUM_ROLES];
} cell_round;

static double item_ns(const cell_round *round)
{
    return round->samples[ROLE_SELF]->ns_per_item;
}

static double hop_ns(const cell_round *round)
{
    return item_ns(round) / (round->cases[ROLE_SELF]->job.num_stages + 1);
}

static double cpu_ns(const cell_round *round)
{
    return round->samples[ROLE_SELF]->cpu_ns_per_item;
}

static double stage_ns_of(const cell_round *round, engine_role more, engine_role fewer)
{
    double added_ns = round->samples[more]->ns_per_item - round->samples[fewer]->ns_per_item;
    return added_ns / (round->cases[more]->job.num_stages - round->cases[fewer]->job.num_stages);
}

static double stage_ns(const cell_round *round)
{
    return stage_ns_of(round, ROLE_SELF, ROLE_FEWER);
}

static double over_unmeasured(const cell_round *round)
{
    return item_ns(round) / round->samples[ROLE_UNMEASURED]->ns_per_item;
}

static double speed(const cell_round *round)
{
    return round->samples[ROLE_ONE_THREAD]->ns_per_item / item_ns(round);
}

static double item_to_base(const cell_round *round)
{
    return item_ns(round) / round->samples[ROLE_BASE]->ns_per_item;
}

static double hop_more(const cell_round *round)
{
    return hop_ns(round) - round->samples[ROLE_BASE]->ns_per_item / (round->cases[ROLE_BASE]->job.num_stages + 1);
}

static double stage_to_base(const cell_round *round)
{
    return stage_ns(round) / stage_ns_of(round, ROLE_BASE, ROLE_BASE_FEWER);
}

static double share_of_base(const cell_round *round)
{
    return round->samples[ROLE_BASE]->ns_per_item / item_ns(round);
}

typedef struct metric_kind {
    const char *name;  /* in the report */
    const char *label; /* in the table; followed by the name of the base if the metric needs one */
    unsigned roles;    /* required roles besides ROLE_SELF */
    double (*compute)(const cell_round *round);
} metric_kind;

#define ROLE(role) (1u << ROLE_##role)

static const metric_kind metric_kinds[NUM_METRICS] = {
    [METRIC_ITEM] = { "ns_per_item", "ns/item", 0, item_ns },
    [METRIC_HOP] = { "ns_per_hop", "ns/hop", 0, hop_ns },
    [METRIC_STAGE] = { "ns_per_stage", "ns/stage", ROLE(FEWER), stage_ns },
    [METRIC_CPU] = { "cpu_ns_per_item", "CPU ns/item", 0, cpu_ns },
    [METRIC_STATISTICS] = { "stats_on_to_off", "stats on/off", ROLE(UNMEASURED), over_unmeasured },
    [METRIC_SPEED] = { "speed_to_one_thread", "speed/1 thread", ROLE(ONE_THREAD), speed },
    [METRIC_HOP_MORE] = { "ns_per_hop_more", "ns/hop above ", ROLE(BASE), hop_more },
    [METRIC_ITEM_TO_BASE] = { "item_to_base", "item/", ROLE(BASE), item_to_base },
    [METRIC_STAGE_TO_BASE] = { "stage_to_base", "stage/", ROLE(FEWER) | ROLE(BASE) | ROLE(BASE_FEWER),
                               stage_to_base },
    [METRIC_SHARE_OF_BASE] = { "speed_to_base", "speed/", ROLE(BASE), share_of_base },
};

unsigned engine_roles(unsigned metrics)
{
    unsigned roles = ROLE(SELF);
    for (engine_metric metric = 0; metric < NUM_METRICS; metric++)
        roles |= metrics & 1u << metric ? metric_kinds[metric].roles : 0;
    return roles;
}

static bool has_metric(const engine_cell *cell, engine_metric metric)
{
    for (engine_role role = 0; role < NUM_ROLES; role++) {
        if (metric_kinds[metric].roles & 1u << role && cell->cases[role] == NO_CASE)
            return false;
    }
    return true;
}

static bench_spread compute(const engine_rounds *rounds, const engine_cell *cell, engine_metric metric)
{
    double *values = memory_get(rounds->num_rounds, sizeof *values);
    for (uint32_t i = 0; i < rounds->num_rounds; i++) {
        cell_round round = { 0 };
        for (engine_role role = 0; role < NUM_ROLES; role++) {
            if (cell->cases[role] == NO_CASE)
                continue;
            round.cases[role] = &rounds->cases[cell->cases[role]];
            round.samples[role] = &round.cases[role]->samples[i];
        }
        values[i] = metric_kinds[metric].compute(&round);
    }
    bench_spread spread = bench_spread_of(values, rounds->num_rounds);
    free(values);
    return spread;
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

enum { TITLE_COLUMNS = 32, LABEL_COLUMNS = 20, CELL_COLUMNS = 23 };

/* The widths of printf count bytes. */
static void print_padded(const char *text, int columns)
{
    for (; *text; text++) {
        putchar(*text);
        columns -= ((unsigned char)*text & 0xc0) != 0x80;
    }
    for (; columns > 0; columns--)
        putchar(' ');
}

static void format_number(char *text, size_t size, double value)
{
    double magnitude = value < 0 ? -value : value;
    if (magnitude >= 9999.5)
        snprintf(text, size, "%.1fk", value / 1000);
    else if (magnitude >= 99.95)
        snprintf(text, size, "%.0f", value);
    else if (magnitude >= 9.995)
        snprintf(text, size, "%.1f", value);
    else
        snprintf(text, size, "%.3f", value);
}

static void print_cell(bench_spread spread)
{
    char median[32], min[32], max[32], cell[112];
    format_number(median, sizeof median, spread.median);
    format_number(min, sizeof min, spread.min);
    format_number(max, sizeof max, spread.max);
    snprintf(cell, sizeof cell, "%s (%s..%s)", median, min, max);
    print_padded(cell, CELL_COLUMNS);
}

static void print_head(const engine_line *line, const bench_list *queues)
{
    char text[64];
    snprintf(text, sizeof text, line->op_us ? "%s, op of %" PRIu32 " µs" : "%s, op does nothing", line->part,
             line->op_us);
    putchar('\n');
    print_padded(text, TITLE_COLUMNS + LABEL_COLUMNS);
    for (size_t i = 0; i < queues->num_values; i++) {
        snprintf(text, sizeof text, "queue %" PRIu32, queues->values[i]);
        print_padded(text, CELL_COLUMNS);
    }
    putchar('\n');
}

static void print_metric(const engine_rounds *rounds, const engine_line *line, engine_metric metric, size_t num_cells)
{
    const metric_kind *kind = &metric_kinds[metric];
    char label[64];
    snprintf(label, sizeof label, "%s%s", kind->label, kind->roles & ROLE(BASE) ? line->base_name : "");
    print_padded(label, LABEL_COLUMNS);
    for (size_t i = 0; i < num_cells; i++)
        print_cell(compute(rounds, &line->cells[i], metric));
    putchar('\n');
}

static void print_line(const engine_rounds *rounds, const engine_line *line, size_t num_cells)
{
    const char *title = line->title;
    for (engine_metric metric = 0; metric < NUM_METRICS; metric++) {
        if (!(line->shown & 1u << metric) || !has_metric(&line->cells[0], metric))
            continue;
        print_padded(title, TITLE_COLUMNS);
        print_metric(rounds, line, metric, num_cells);
        title = "";
    }
}

/* ---- the report --------------------------------------------------------------------------------------------- */

static void report_weir(bench_report *report, const engine_job *job)
{
    static const char *const shapes[] = { "line", "route", "pending" };
    static const char *const traces[] = { "none", "off", "on", "file" };
    bench_report_text(report, "shape", shapes[job->shape]);
    bench_report_text(report, "output_order", job->in_order ? "input" : "completion");
    bench_report_number(report, "concurrency", job->concurrency);
    bench_report_number(report, "stats", !job->no_statistics);
    bench_report_text(report, "trace", traces[job->trace]);
}

static void report_case(bench_report *report, const engine_case *self)
{
    bench_report_text(report, "what", self->what);
    bench_report_number(report, "threads", self->job.threads);
    bench_report_number(report, "queue_items", self->job.queue_items);
    bench_report_number(report, "op_us", self->op_us);
    bench_report_number(report, "stages", self->job.num_stages);
    bench_report_number(report, "items", (double)self->job.num_items);
    if (self->job.concurrency)
        report_weir(report, &self->job);
}

static void report_cell(bench_report *report, const engine_rounds *rounds, const engine_line *line,
                        const engine_cell *cell)
{
    bench_report_row(report, "engine");
    bench_report_text(report, "part", line->part);
    bench_report_text(report, "title", line->title);
    report_case(report, &rounds->cases[cell->cases[ROLE_SELF]]);
    bench_report_number(report, "runs", rounds->num_rounds);
    if (line->base_name) {
        bench_report_text(report, "base", line->base_name);
        bench_report_number(report, "base_threads", rounds->cases[cell->cases[ROLE_BASE]].job.threads);
    }
    for (engine_metric metric = 0; metric < NUM_METRICS; metric++)
        if (line->metrics & 1u << metric && has_metric(cell, metric))
            bench_report_spread(report, metric_kinds[metric].name, compute(rounds, cell, metric));
}

void engine_tell(bench_report *report, const engine_rounds *rounds, const engine_line *lines, size_t num_lines,
                 const bench_list *queues)
{
    const engine_line *last_shown = NULL;
    for (const engine_line *line = lines; line < lines + num_lines; line++) {
        if (line->shown) {
            if (!last_shown || line->part != last_shown->part || line->op_us != last_shown->op_us)
                print_head(line, queues);
            print_line(rounds, line, queues->num_values);
            last_shown = line;
        }
        for (size_t i = 0; i < queues->num_values; i++)
            report_cell(report, rounds, line, &line->cells[i]);
    }
}
