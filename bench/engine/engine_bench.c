/*
 * weir-bench engine: the cost of passing an item on. Five groups: the hops of a chain of stages; the raw record; other
 * shapes of pipelines; scaling with the number of threads, compared with the work on plain threads; and other libraries.
 *
 * The plan is a list of cases. A case may name an earlier one as its base. Then the ratio of their times is computed
 * round by round. The two stand close to each other, so that background load affects both alike.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/background_load.h"
#include "bench/harness/contest.h"
#include "bench/harness/report.h"
#include "bench/harness/spin.h"
#include "bench/peers/peers.h"
#include "tools/cli/memory.h"

enum { STATS_ON = 1, STATS_OFF = 2, FEWEST_ITEMS = 100, MOST_ITEMS = 20000000 };

typedef struct engine_settings {
    bench_list threads;
    bench_list queues;
    bench_list ops_us;
    unsigned stats; /* STATS_ON | STATS_OFF */
    bool checkpoints;
    uint32_t num_stages;
    uint32_t num_items; /* of each run; 0 = as many as take about run_ms */
    uint32_t run_ms;
    uint32_t runs;
    bool quick;
    bool hops, shapes, scaling, peers, trace; /* none = all */
    const char *json_path;
} engine_settings;

/* A configuration. */
typedef struct engine_case {
    const char *group; /* "hops", "peers", … */
    const char *what;  /* or the name of the peer */
    engine_run *run;
    uint32_t op_us;
    engine_job job; /* num_items and op_spins are set before the rounds */
    size_t base;    /* the case to compare with; CONTEST_NONE = none */
} engine_case;

typedef struct engine_plan {
    const engine_settings *settings;
    double spins_per_us;
    engine_case *cases;
    size_t num_cases;
} engine_plan;

/* ---- the plan ----------------------------------------------------------------------------------------------- */

static size_t add_case(engine_plan *plan, const engine_case *wanted)
{
    plan->cases = memory_grow(plan->cases, plan->num_cases, sizeof *plan->cases);
    plan->cases[plan->num_cases] = *wanted;
    return plan->num_cases++;
}

/* A chain of stages, without a base. */
static engine_case weir_case(const engine_plan *plan, const char *group, const char *what, const engine_job *job)
{
    engine_case self = { .group = group, .what = what, .run = engine_run_weir, .job = *job, .base = CONTEST_NONE };
    self.job.concurrency = job->concurrency ? job->concurrency : 1;
    self.job.no_statistics = !(plan->settings->stats & STATS_ON);
    self.job.checkpoints = plan->settings->checkpoints;
    return self;
}

static void add_hops(engine_plan *plan, uint32_t op_us, const engine_job *job)
{
    engine_case self = weir_case(plan, "hops", "weir", job);
    self.op_us = op_us;
    if (plan->settings->stats == (STATS_ON | STATS_OFF)) {
        engine_case off = self;
        off.what = "weir, statistics off";
        off.job.no_statistics = true;
        self.base = add_case(plan, &off);
    }
    add_case(plan, &self);
}

/* The cost of the raw record. */
static void add_trace(engine_plan *plan, uint32_t op_us, const engine_job *job)
{
    static const char *const names[] = { "no trace", "trace off", "trace on" };
    size_t base = CONTEST_NONE;
    for (engine_trace trace = ENGINE_NO_TRACE; trace <= ENGINE_TRACE_ON; trace++) {
        engine_case self = weir_case(plan, "trace", names[trace], job);
        self.op_us = op_us;
        self.job.trace = trace;
        self.base = base;
        size_t added = add_case(plan, &self);
        base = trace == ENGINE_NO_TRACE ? added : base;
    }
}

static void add_scaling(engine_plan *plan, uint32_t op_us, const engine_job *job)
{
    engine_job one_stage = *job;
    one_stage.num_stages = 1;
    if (op_us == 0)
        return; /* plain threads would do nothing */
    engine_case plain = { "scaling", "plain threads", bench_run_plain_threads, op_us, one_stage, CONTEST_NONE };
    one_stage.concurrency = job->threads > 4 ? job->threads : 4;
    engine_case self = weir_case(plan, "scaling", "weir", &one_stage);
    self.op_us = op_us;
    self.base = add_case(plan, &plain);
    add_case(plan, &self);
}

static void add_shapes(engine_plan *plan, uint32_t op_us, const engine_job *job)
{
    static const struct {
        const char *base, *name;
        uint32_t concurrency;
        engine_shape shape;
        bool in_order;
    } pairs[] = {
        { "1 stage", "4 branches", 1, ENGINE_ROUTE, false },
        { "4 slots, completion order", "4 slots, input order", 4, ENGINE_LINE, true },
        { "16 slots, at once", "16 slots, pending", 16, ENGINE_PENDING, false },
    };
    (void)op_us;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        engine_job one_stage = *job;
        one_stage.num_stages = 1;
        one_stage.concurrency = pairs[i].concurrency;
        engine_case base = weir_case(plan, "shapes", pairs[i].base, &one_stage), self = base;
        self.what = pairs[i].name;
        self.job.shape = pairs[i].shape;
        self.job.in_order = pairs[i].in_order;
        self.base = add_case(plan, &base);
        add_case(plan, &self);
    }
}

static void add_peers(engine_plan *plan, uint32_t op_us, const engine_job *job)
{
    (void)op_us;
    engine_case weir = weir_case(plan, "peers", "weir", job);
    size_t base = add_case(plan, &weir);
    for (const bench_peer *peer = bench_peers; peer->name; peer++) {
        engine_case self = { "peers", peer->name, peer->run, 0, *job, base };
        if (peer->own_threads)
            self.job.threads = job->num_stages + 1;
        if (peer->run)
            add_case(plan, &self);
    }
}

/* Adds the cases of each operation, number of threads and size of queues. */
static void add_cases(engine_plan *plan, void (*add)(engine_plan *, uint32_t op_us, const engine_job *),
                      const bench_list *ops_us)
{
    const engine_settings *settings = plan->settings;
    for (size_t op = 0; op < ops_us->num_values; op++)
        for (size_t i = 0; i < settings->threads.num_values; i++)
            for (size_t queue = 0; queue < settings->queues.num_values; queue++)
                add(plan, ops_us->values[op],
                    &(engine_job){ .num_stages = settings->num_stages,
                                   .threads = settings->threads.values[i],
                                   .queue_items = settings->queues.values[queue] });
}

static void make_plan(engine_plan *plan)
{
    static const bench_list nothing = { .values = { 0 }, .num_values = 1 };
    const engine_settings *settings = plan->settings;
    bool all = !settings->hops && !settings->shapes && !settings->scaling && !settings->peers && !settings->trace;
    if (all || settings->hops)
        add_cases(plan, add_hops, &settings->ops_us);
    if (all || settings->trace)
        add_cases(plan, add_trace, &settings->ops_us);
    if (all || settings->peers)
        add_cases(plan, add_peers, &nothing);
    if (all || settings->shapes)
        add_cases(plan, add_shapes, &nothing);
    if (all || settings->scaling)
        add_cases(plan, add_scaling, &settings->ops_us);
}

/* ---- the rounds --------------------------------------------------------------------------------------------- */

static int run_case(const void *argument, void *result)
{
    const engine_case *self = argument;
    engine_result times = { 0 };
    int rc = self->run(&self->job, &times);
    *(contest_result *)result = (contest_result){ .clips = (double)self->job.num_items,
                                                  .wall_s = 1e-9 * (double)(times.end_ns - times.start_ns) };
    return rc;
}

static double ns_per_item(const contest_result *result)
{
    return 1e9 * result->wall_s / result->clips;
}

static double cpu_ns_per_item(const contest_result *result)
{
    return 1e9 * contest_cpu_s_per_clip(result);
}

static double clamp_items(double num_items)
{
    return num_items < FEWEST_ITEMS ? FEWEST_ITEMS : num_items < MOST_ITEMS ? num_items : MOST_ITEMS;
}

/* The number of items that takes about run_ms, found by runs that grow until they are long enough to measure. */
static int find_num_items(const engine_plan *plan, engine_case *self)
{
    self->job.op_spins = (uint64_t)(self->op_us * plan->spins_per_us + 0.5);
    self->job.num_items = plan->settings->num_items ? plan->settings->num_items : FEWEST_ITEMS;
    double factor = plan->settings->num_items ? 1 : INFINITY;
    while (factor >= 4 && self->job.num_items < MOST_ITEMS) {
        contest_entry entry = { self->what, run_case, self };
        contest one = { .name = "calibrating", .entries = &entry, .num_entries = 1, .num_rounds = 1 };
        int rc = contest_run(&one);
        if (rc == 0)
            factor = plan->settings->run_ms * 1e-3 / one.results->wall_s;
        free(one.results);
        if (rc != 0)
            return -1;
        self->job.num_items = (uint64_t)clamp_items((double)self->job.num_items * fmin(factor, 20));
    }
    return 0;
}

/* ---- the result --------------------------------------------------------------------------------------------- */

static void print_spread(bench_spread spread, int columns)
{
    char cell[80];
    int digits = spread.median < 9.995 ? 3 : spread.median < 99.95 ? 1 : 0;
    snprintf(cell, sizeof cell, "%.*f (%.*f..%.*f)", digits, spread.median, digits, spread.min, digits, spread.max);
    printf("%*s", columns, cell);
}

static void report_weir(bench_report *report, const engine_job *job)
{
    static const char *const shapes[] = { "line", "route", "pending" };
    static const char *const traces[] = { "none", "off", "on" };
    bench_report_text(report, "shape", shapes[job->shape]);
    bench_report_text(report, "output_order", job->in_order ? "input" : "completion");
    bench_report_number(report, "concurrency", job->concurrency);
    bench_report_number(report, "stats", !job->no_statistics);
    bench_report_text(report, "trace", traces[job->trace]);
}

static void tell_case(bench_report *report, const engine_plan *plan, const contest *rounds, size_t index)
{
    const engine_case *self = &plan->cases[index];
    bench_spread item = contest_spread(rounds, index, ns_per_item, CONTEST_NONE);
    bench_spread cpu = contest_spread(rounds, index, cpu_ns_per_item, CONTEST_NONE);
    double num_hops = self->job.num_stages + 1;
    bench_report_row(report, "engine");
    bench_report_text(report, "group", self->group);
    bench_report_text(report, "what", self->what);
    bench_report_number(report, "threads", self->job.threads);
    bench_report_number(report, "queue_items", self->job.queue_items);
    bench_report_number(report, "op_us", self->op_us);
    bench_report_number(report, "stages", self->job.num_stages);
    bench_report_number(report, "items", (double)self->job.num_items);
    bench_report_number(report, "runs", rounds->num_rounds);
    if (self->run == engine_run_weir)
        report_weir(report, &self->job);
    bench_report_spread(report, "ns_per_item", item);
    bench_report_spread(report, "ns_per_hop",
                        (bench_spread){ item.median / num_hops, item.min / num_hops, item.max / num_hops });
    bench_report_spread(report, "cpu_ns_per_item", cpu);

    printf("%-8s%-26s%7" PRIu32 "%7" PRIu32 "%7" PRIu32, self->group, self->what, self->job.threads,
           self->job.queue_items, self->op_us);
    print_spread(item, 24);
    printf("%9.1f%9.1f", item.median / num_hops, cpu.median / num_hops);
    if (self->base != CONTEST_NONE) {
        bench_spread ratio = contest_spread(rounds, index, ns_per_item, self->base);
        bench_report_text(report, "base", plan->cases[self->base].what);
        bench_report_number(report, "base_threads", plan->cases[self->base].job.threads);
        bench_report_spread(report, "item_to_base", ratio);
        print_spread(ratio, 24);
        printf("  %s", plan->cases[self->base].what);
    }
    putchar('\n');
}

static void explain_peers(void)
{
    printf("\npeers (time / base above 1: weir is faster):\n");
    for (const bench_peer *peer = bench_peers; peer->name; peer++) {
        if (peer->run)
            printf("  %-18s%s%s%s%s\n", peer->name, peer->what, peer->version ? " (" : "",
                   peer->version ? peer->version : "", peer->version ? ")" : "");
        else
            printf("  %-18snot built: needs %s, and a build without sanitizers\n", peer->name, peer->library);
    }
}

static void explain(const engine_plan *plan)
{
    uint32_t num_stages = plan->settings->num_stages;
    printf("engine: source, stages, sink and a consumer; %zu configurations, medians (min..max) of %" PRIu32
           " interleaved runs of each\n\n"
           "  ns/item      time from the first item of the source to the last of the consumer, per item\n"
           "  ns/hop       the same divided by the queues that an operation's result goes through: stages + 1\n"
           "  CPU/hop      CPU time of all threads, start and end included, divided in the same way, in ns\n"
           "  time / base  ns/item over that of the other configuration, run by run; %" PRIu32
           " stages in hops, trace and peers\n",
           plan->num_cases, plan->settings->runs, num_stages);
    for (size_t i = 0; i < plan->num_cases; i++) {
        if (strcmp(plan->cases[i].group, "peers") == 0) {
            explain_peers();
            break;
        }
    }
}

static int run_plan(engine_plan *plan)
{
    const engine_settings *settings = plan->settings;
    contest_entry *entries = memory_get(plan->num_cases, sizeof *entries);
    contest rounds = {
        .name = "engine", .entries = entries, .num_entries = plan->num_cases, .num_rounds = settings->runs
    };
    int rc = 0;
    explain(plan);
    bench_background_load start = bench_background_load_now();
    for (size_t i = 0; i < plan->num_cases && rc == 0; i++) {
        entries[i] = (contest_entry){ plan->cases[i].what, run_case, &plan->cases[i] };
        rc = find_num_items(plan, &plan->cases[i]);
    }
    if (rc == 0)
        rc = contest_run(&rounds);
    if (rc == 0) {
        bench_report *report = bench_report_new();
        bench_report_number(report, "spins_per_us", plan->spins_per_us);
        bench_report_background_load(report, &start);
        printf("\n%-8s%-26s%7s%7s  op µs%24s%9s%9s%24s  base\n", "group", "what", "threads", "queue", "ns/item",
               "ns/hop", "CPU/hop", "time / base");
        for (size_t i = 0; i < plan->num_cases; i++)
            tell_case(report, plan, &rounds, i);
        rc = bench_report_end(report, settings->json_path);
    }
    free(rounds.results);
    free(entries);
    return rc == 0 ? 0 : 1;
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
    { ROW("hops", hops, option_flag), .help = "run only the named groups; this one: a chain of stages" },
    { ROW("peers", peers, option_flag), .help = "other libraries compared with weir" },
    { ROW("shapes", shapes, option_flag), .help = "branches, order, pending tasks" },
    { ROW("scaling", scaling, option_flag), .help = "speed with more threads" },
    { ROW("trace", trace, option_flag), .help = "the raw record, off and on" },
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
    engine_plan plan = { .settings = &settings, .spins_per_us = bench_spins_per_us() };
    make_plan(&plan);
    int rc = run_plan(&plan);
    free(plan.cases);
    return rc;
}
