/*
 * weir-bench engine: the cost of passing an item on. Five parts: the hops of a chain of stages; the raw record; other
 * shapes of pipelines; scaling with the number of threads, compared with the work on plain threads; and other libraries.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/pipeline.h>

#include "background_load.h"
#include "bench.h"
#include "engine_table.h"
#include "engine_weir.h"
#include "memory.h"
#include "peers.h"
#include "spin.h"

enum { STATS_ON = 1, STATS_OFF = 2 };

typedef struct engine_settings {
    bench_list threads;
    bench_list queues;
    bench_list ops_us;
    unsigned stats; /* STATS_ON | STATS_OFF */
    bool checkpoints;
    uint32_t num_stages;
    uint32_t num_items;
    uint32_t run_ms;
    uint32_t runs;
    bool quick;
    bool hops, shapes, scaling, peers, trace; /* none = all */
    const char *json_path;
} engine_settings;

/* The cases to run and the lines to show. */
typedef struct engine_plan {
    const engine_settings *settings;
    engine_rounds rounds;
    engine_line *lines;
    size_t num_lines;
} engine_plan;

/* ---- the plan ----------------------------------------------------------------------------------------------- */

/* A line of the plan without a queue size. */
typedef struct line_plan {
    const char *part;
    const char *title; /* the number of threads is added */
    unsigned metrics;
    unsigned hidden; /* of these, in the report only */
    engine_case self;
    const engine_case *base; /* NULL = none */
    const char *base_name;
} line_plan;

#define METRIC(metric) (1u << METRIC_##metric)

static bool holds(const bench_list *list, uint32_t value)
{
    for (size_t i = 0; i < list->num_values; i++) {
        if (list->values[i] == value)
            return true;
    }
    return false;
}

static size_t add_fewer(engine_plan *plan, engine_case of)
{
    of.job.num_stages = of.job.num_stages > 1;
    return rounds_add(&plan->rounds, &of);
}

static size_t add_unmeasured(engine_plan *plan, engine_case of)
{
    of.job.no_statistics = true;
    return rounds_add(&plan->rounds, &of);
}

static size_t add_one_thread(engine_plan *plan, engine_case of)
{
    of.job.threads = 1;
    return rounds_add(&plan->rounds, &of);
}

/* The cases needed by the metrics of the line, at one queue size. */
static engine_cell add_cell(engine_plan *plan, const line_plan *line, uint32_t queue_items)
{
    const engine_settings *settings = plan->settings;
    unsigned roles = engine_roles(line->metrics);
    engine_cell cell;
    engine_case self = line->self;
    self.job.queue_items = queue_items;
    for (engine_role role = 0; role < NUM_ROLES; role++)
        cell.cases[role] = NO_CASE;
    cell.cases[ROLE_SELF] = rounds_add(&plan->rounds, &self);
    if (roles & 1u << ROLE_FEWER)
        cell.cases[ROLE_FEWER] = add_fewer(plan, self);
    if (roles & 1u << ROLE_UNMEASURED && settings->stats == (STATS_ON | STATS_OFF))
        cell.cases[ROLE_UNMEASURED] = add_unmeasured(plan, self);
    if (roles & 1u << ROLE_ONE_THREAD && self.job.threads > 1 && holds(&settings->threads, 1))
        cell.cases[ROLE_ONE_THREAD] = add_one_thread(plan, self);
    if (line->base) {
        engine_case base = *line->base;
        base.job.queue_items = queue_items;
        cell.cases[ROLE_BASE] = rounds_add(&plan->rounds, &base);
        if (roles & 1u << ROLE_BASE_FEWER)
            cell.cases[ROLE_BASE_FEWER] = add_fewer(plan, base);
    }
    return cell;
}

static void add_line(engine_plan *plan, const line_plan *wanted, uint32_t threads)
{
    const bench_list *queues = &plan->settings->queues;
    plan->lines = memory_grow(plan->lines, plan->num_lines, sizeof *plan->lines);
    engine_line *line = &plan->lines[plan->num_lines++];
    *line = (engine_line){
        .part = wanted->part,
        .op_us = wanted->self.op_us,
        .metrics = wanted->metrics,
        .shown = wanted->metrics & ~wanted->hidden,
        .base_name = wanted->base_name,
    };
    snprintf(line->title, sizeof line->title, "%s%s%" PRIu32 " thread%s", wanted->title, *wanted->title ? ", " : "",
             threads, threads == 1 ? "" : "s");
    for (size_t i = 0; i < queues->num_values; i++)
        line->cells[i] = add_cell(plan, wanted, queues->values[i]);
}

/* ---- the parts ---------------------------------------------------------------------------------------------- */

static engine_case weir_case(const engine_settings *settings, uint32_t num_stages, uint32_t concurrency,
                             uint32_t threads)
{
    return (engine_case){
        .what = "weir",
        .run = engine_run_weir,
        .job = { .num_stages = num_stages,
                 .concurrency = concurrency,
                 .threads = threads,
                 .no_statistics = !(settings->stats & STATS_ON),
                 .checkpoints = settings->checkpoints },
    };
}

static void add_hops(engine_plan *plan, uint32_t op_us, uint32_t threads)
{
    static const unsigned plain = METRIC(ITEM) | METRIC(HOP) | METRIC(STAGE) | METRIC(CPU);
    line_plan line = {
        .part = "hops",
        .title = "",
        .metrics = plain | METRIC(STATISTICS) | METRIC(SPEED),
        .hidden = METRIC(CPU),
        .self = weir_case(plan->settings, plan->settings->num_stages, 1, threads),
    };
    line.self.op_us = op_us;
    add_line(plan, &line, threads);
    if (plan->settings->stats == (STATS_ON | STATS_OFF)) {
        line.self.job.no_statistics = true;
        line.metrics = line.hidden = plain;
        add_line(plan, &line, threads);
    }
}

/* Adds a line for a shape and one for its baseline. */
static void add_shape(engine_plan *plan, const char *title, engine_case self, const char *base_title,
                      engine_case base, const char *base_name)
{
    line_plan line = { .part = "shapes", .title = base_title, .metrics = METRIC(ITEM) | METRIC(CPU), .self = base };
    line.hidden = METRIC(ITEM) | METRIC(CPU);
    add_line(plan, &line, base.job.threads);
    line.title = title;
    line.metrics |= METRIC(ITEM_TO_BASE);
    line.self = self;
    line.base = &base;
    line.base_name = base_name;
    add_line(plan, &line, self.job.threads);
}

static void add_shapes(engine_plan *plan, uint32_t threads)
{
    engine_case base = weir_case(plan->settings, 1, 1, threads);
    engine_case self = base;
    self.job.shape = ENGINE_ROUTE;
    add_shape(plan, "4 branches", self, "1 stage", base, "1 stage");

    base = self = weir_case(plan->settings, 1, 4, threads);
    self.job.in_order = true;
    add_shape(plan, "4 slots, input order", self, "4 slots", base, "completion");

    base = self = weir_case(plan->settings, 1, 16, threads);
    self.job.shape = ENGINE_PENDING;
    add_shape(plan, "16 slots, pending", self, "16 slots", base, "at once");
}

static void add_scaling(engine_plan *plan, uint32_t op_us, uint32_t threads)
{
    uint32_t concurrency = threads > 4 ? threads : 4;
    engine_case plain = {
        .what = "plain_threads",
        .run = bench_run_plain_threads,
        .op_us = op_us,
        .job = { .num_stages = 1, .threads = threads },
    };
    line_plan line = { .part = "scaling", .title = "plain", .self = plain };
    line.metrics = METRIC(ITEM) | METRIC(CPU) | METRIC(SPEED);
    line.hidden = METRIC(ITEM) | METRIC(CPU);
    add_line(plan, &line, threads);

    line.title = "weir";
    line.metrics |= METRIC(STATISTICS) | METRIC(SHARE_OF_BASE);
    line.self = weir_case(plan->settings, 1, concurrency, threads);
    line.self.op_us = op_us;
    line.base = &plain;
    line.base_name = "plain threads";
    add_line(plan, &line, threads);
}

/* The cost of the raw record. "none" is the line above each. */
static void add_trace(engine_plan *plan, uint32_t op_us, uint32_t threads)
{
    static const char *const titles[] = { "no trace", "off", "on", "on, file" };
    engine_trace most = ENGINE_TRACE_ON;
#ifdef WEIR_BENCH_STATS
    most = ENGINE_TRACE_FILE;
#endif
    engine_case base = weir_case(plan->settings, plan->settings->num_stages, 1, threads);
    base.op_us = op_us;
    for (engine_trace trace = ENGINE_NO_TRACE; trace <= most; trace++) {
        line_plan line = {
            .part = "trace", .title = titles[trace], .metrics = METRIC(ITEM) | METRIC(HOP) | METRIC(CPU), .self = base
        };
        line.self.job.trace = trace;
        line.hidden = METRIC(ITEM) | METRIC(CPU);
        if (trace) {
            line.metrics |= METRIC(HOP_MORE);
            line.base = &base;
            line.base_name = "none";
        }
        add_line(plan, &line, threads);
    }
}

static void add_peers(engine_plan *plan, uint32_t threads)
{
    uint32_t num_stages = plan->settings->num_stages;
    engine_case weir = weir_case(plan->settings, num_stages, 1, threads);
    line_plan line = { .part = "peers", .title = "weir", .self = weir };
    line.metrics = METRIC(ITEM) | METRIC(STAGE) | METRIC(CPU);
    line.hidden = METRIC(ITEM) | METRIC(CPU);
    add_line(plan, &line, threads);

    line.metrics |= METRIC(ITEM_TO_BASE) | METRIC(STAGE_TO_BASE);
    line.base = &weir;
    line.base_name = "weir";
    for (const bench_peer *peer = bench_peers; peer->name; peer++) {
        line.title = peer->name;
        line.self = (engine_case){ .what = peer->name, .run = peer->run };
        line.self.job.num_stages = num_stages;
        line.self.job.threads = peer->own_threads ? num_stages + 1 : threads;
        if (peer->run)
            add_line(plan, &line, threads);
    }
}

static void make_plan(engine_plan *plan)
{
    const engine_settings *settings = plan->settings;
    const bench_list *ops_us = &settings->ops_us, *threads = &settings->threads;
    bool all = !settings->hops && !settings->shapes && !settings->scaling && !settings->peers && !settings->trace;
    for (size_t op = 0; op < ops_us->num_values && (all || settings->hops); op++) {
        for (size_t i = 0; i < threads->num_values; i++)
            add_hops(plan, ops_us->values[op], threads->values[i]);
    }
    for (size_t op = 0; op < ops_us->num_values && (all || settings->trace); op++) {
        for (size_t i = 0; i < threads->num_values; i++)
            add_trace(plan, ops_us->values[op], threads->values[i]);
    }
    for (size_t i = 0; i < threads->num_values && (all || settings->peers); i++)
        add_peers(plan, threads->values[i]);
    for (size_t i = 0; i < threads->num_values && (all || settings->shapes); i++)
        add_shapes(plan, threads->values[i]);
    for (size_t op = 0; op < ops_us->num_values && (all || settings->scaling); op++) {
        for (size_t i = 0; i < threads->num_values && ops_us->values[op]; i++)
            add_scaling(plan, ops_us->values[op], threads->values[i]);
    }
}

/* ---- the words ---------------------------------------------------------------------------------------------- */

static void explain(const engine_plan *plan)
{
    uint32_t num_stages = plan->settings->num_stages;
    uint32_t num_fewer = num_stages > 1;
    printf("engine: source, stages, sink and a consumer; %zu configurations, medians (min..max) of %" PRIu32
           " interleaved runs of each\n\n",
           plan->rounds.num_cases, plan->settings->runs);
    printf("  ns/item        time from the first item of the source to the last of the consumer, per item\n");
    printf("  ns/hop         ns/item with %" PRIu32 " stages over %" PRIu32
           ", the queues that an operation's result goes through\n",
           num_stages, num_stages + 1);
    printf("  ns/stage       cost of one more stage: (ns/item with %" PRIu32 " - ns/item with %" PRIu32 ") / %" PRIu32
           "\n",
           num_stages, num_fewer, num_stages - num_fewer);
    printf("  stats on/off   time with all statistics / time without\n");
    printf("  speed/…, item/…, stage/…   relative to the other line, run by run\n");
}

static void explain_peers(void)
{
    printf("\npeers (item/weir above 1: weir is faster):\n");
    for (const bench_peer *peer = bench_peers; peer->name; peer++) {
        if (peer->run)
            printf("  %-18s%s%s%s%s\n", peer->name, peer->what, peer->version ? " (" : "",
                   peer->version ? peer->version : "", peer->version ? ")" : "");
        else
            printf("  %-18snot built: needs %s, and a build without sanitizers\n", peer->name, peer->library);
    }
}

static void report_machine(bench_report *report, const engine_plan *plan)
{
    for (const bench_peer *peer = bench_peers; peer->name; peer++) {
        if (peer->library)
            bench_report_text(report, peer->name, peer->run ? peer->version : "not built");
    }
    bench_report_number(report, "spins_per_us", plan->rounds.spins_per_us);
}

static int run_plan(engine_plan *plan)
{
    const engine_settings *settings = plan->settings;
    explain(plan);
    if (settings->peers || !(settings->hops || settings->shapes || settings->scaling || settings->trace))
        explain_peers();
    bench_background_load start = bench_background_load_now();
    if (rounds_run(&plan->rounds) != 0)
        return 1;
    bench_report *report = bench_report_new();
    report_machine(report, plan);
    bench_report_background_load(report, &start);
    engine_tell(report, &plan->rounds, plan->lines, plan->num_lines, &settings->queues);
    return bench_report_end(report, settings->json_path) == 0 ? 0 : 1;
}

/* ---- the command line --------------------------------------------------------------------------------------- */

/* "on", "off" or both */
static bool parse_stats(const char *text, void *value)
{
    unsigned *stats = value;
    *stats = strcmp(text, "on") == 0                                      ? STATS_ON
             : strcmp(text, "off") == 0                                   ? STATS_OFF
             : strcmp(text, "on,off") == 0 || strcmp(text, "off,on") == 0 ? STATS_ON | STATS_OFF
                                                                          : 0;
    return *stats != 0;
}

static const option_kind stats_kind = { .parse = parse_stats, .wanted = "on, off or on,off" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(engine_settings, what)

static const option_row rows[] = {
    { ROW("threads", threads, bench_counts), .argument = "LIST", .help = "threads of the pool (default 1,2,4)" },
    { ROW("queue", queues, bench_counts), .argument = "LIST", .help = "items in each queue (default 1,2,8,32,256)" },
    { ROW("op-us", ops_us, bench_numbers), .argument = "LIST",
      .help = "work of an operation in microseconds (default 0,1,10,100)" },
    { ROW("stats", stats, stats_kind), .argument = "on,off", .help = "statistics: on, off or both (default both)" },
    { ROW("checkpoints", checkpoints, option_flag), .help = "track which items are done" },
    { ROW("stages", num_stages, option_count32), .argument = "N", .help = "stages in hops and peers (default 3)" },
    { ROW("items", num_items, option_count32), .argument = "N",
      .help = "items per run (default: chosen by --run-ms)" },
    { ROW("run-ms", run_ms, option_count32), .argument = "N", .help = "approximate length of a run (default 100)" },
    { ROW("runs", runs, option_count32), .argument = "N",
      .help = "runs of each configuration, interleaved (default 5)" },
    { ROW("hops", hops, option_flag), .help = "run only the named parts; this one: a chain of stages" },
    { ROW("peers", peers, option_flag), .help = "other libraries compared with weir" },
    { ROW("shapes", shapes, option_flag), .help = "branches, order, pending tasks" },
    { ROW("scaling", scaling, option_flag), .help = "speed with more threads" },
    { ROW("trace", trace, option_flag), .help = "the raw record: off, on, and on with a file" },
    { ROW("quick", quick, option_flag), .help = "fewer and shorter runs, to check that it works" },
    { 0 },
};

static void set_list(bench_list *list, bench_list normal, bench_list quick, bool is_quick)
{
    if (list->num_values == 0)
        *list = is_quick ? quick : normal;
}

#define LIST(...) \
    ((bench_list){ .values = { __VA_ARGS__ }, .num_values = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) })

static void set_defaults(engine_settings *settings)
{
    bool quick = settings->quick;
    set_list(&settings->threads, LIST(1, 2, 4), LIST(1, 2), quick);
    set_list(&settings->queues, LIST(1, 2, 8, 32, 256), LIST(2, 32), quick);
    set_list(&settings->ops_us, LIST(0, 1, 10, 100), LIST(0, 10), quick);
    if (!settings->runs)
        settings->runs = quick ? 3 : 5;
    if (!settings->run_ms)
        settings->run_ms = quick ? 20 : 100;
}

int bench_engine(int argc, char **argv)
{
    engine_settings settings = { .stats = STATS_ON | STATS_OFF, .num_stages = 3 };
    bench_parsed parsed =
        bench_parse(argc, argv, &(option_set){ rows, &settings }, 1, &settings.json_path, "engine [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;

    set_defaults(&settings);
    engine_plan plan = {
        .settings = &settings,
        .rounds = { .num_rounds = settings.runs,
                    .run_ms = settings.run_ms,
                    .num_items = settings.num_items,
                    .spins_per_us = bench_spins_per_us() },
    };
    make_plan(&plan);
    int rc = run_plan(&plan);
    rounds_free(&plan.rounds);
    free(plan.lines);
    return rc;
}
