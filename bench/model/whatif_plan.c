#include "whatif_plan.h"

#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef WEIR_BENCH_STAGES
#include <weir/video.h>
#endif

/* ---- chance ------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
    *state = mix(*state);
    return (uint32_t)(*state >> 33) % limit;
}

static double share_of(uint64_t x)
{
    return (double)(mix(x) >> 11) * 0x1p-53;
}

/* ---- work --------------------------------------------------------------------------------------------------- */

/* Items from one burst, or giant, to the next. */
enum { BURST_ITEMS = 20, GIANT_ITEMS = 40 };

static double length_of(const plan_work *work, uint64_t seq)
{
    double u = share_of(work->seed ^ seq * 31);
    switch (work->spread) {
    case PLAN_UNIFORM: return 0.5 + u;
    case PLAN_EXPONENTIAL: return -log(1 - u);
    case PLAN_RARE: return u < 0.02 ? 10 : 0.82;
    case PLAN_BURSTS: return seq % BURST_ITEMS == 0 ? BURST_ITEMS : 0;
    case PLAN_GIANTS: return seq % GIANT_ITEMS == GIANT_ITEMS - 1 ? 100 : 1;
    default: return 1;
    }
}

static void work_alone(const plan_work *work, uint64_t seq)
{
    double length = length_of(work, seq), wait_s = length * work->wait_s;
    struct timespec span = { .tv_sec = (time_t)wait_s };
    span.tv_nsec = (long)((wait_s - (double)span.tv_sec) * 1e9);
    if (wait_s > 0)
        nanosleep(&span, NULL);
    if (work->compute_s <= 0)
        return;
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    double end_s = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9 + length * work->compute_s;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    while ((double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9 < end_s);
}

static sem_t permits;        /* of the plan that runs */
static atomic_uint slowness; /* percent of the time that a task of a stage takes in the plan */

static void do_work(const plan_work *work, uint64_t seq)
{
    while (work->permits && sem_wait(&permits) != 0) {
    }
    work_alone(work, seq);
    if (work->permits)
        sem_post(&permits);
}

/* Numbers tasks: results of one input have the same seq, but must not all be equally long. */
static uint64_t next_number(const plan_work *work, uint64_t seq)
{
    static atomic_ullong number;
    bool is_periodic = work->spread == PLAN_BURSTS || work->spread == PLAN_GIANTS;
    if (is_periodic || work->num_files)
        return is_periodic ? seq : seq % work->num_files;
    return atomic_fetch_add_explicit(&number, 1, memory_order_relaxed);
}

static int run_source(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    static char nothing;
    const plan_work *work = weir_task_config(task);
    do_work(work, next_number(work, weir_task_seq(task)));
    out->data = &nothing;
    out->size_bytes = 1000;
    return WEIR_OK;
}

static int run_stage(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const plan_work *work = weir_task_config(task);
    plan_work piece = *work;
    uint64_t seq = weir_task_seq(task);
    double times = atomic_load_explicit(&slowness, memory_order_relaxed) / 100.0 / work->pieces;
    piece.wait_s *= times;
    piece.compute_s *= times;
    do_work(&piece, next_number(work, seq));
    if (work->skips && mix((work->seed + 1) ^ seq) % work->skips == 0)
        return WEIR_SKIP;
    if (work->fails && mix((work->seed + 2) ^ seq) % work->fails == 0)
        return weir_task_fail(task, WEIR_EDATA, 0, "as planned");
    if (weir_task_num_pieces(task) + 1 < work->pieces) {
        out->data = in->data;
        out->size_bytes = in->size_bytes;
        return WEIR_MORE;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op source_op = { .name = "src", .config_size = sizeof(plan_work), .run = run_source };
static const weir_op stage_op = { .name = "stage", .config_size = sizeof(plan_work), .run = run_stage };

static int pick_branch(void *self, const weir_item *item)
{
    const plan_part *route = self;
    if (route->in_turn)
        return (int)(item->seq % route->count);
    uint32_t share = (uint32_t)(mix(route->work.seed ^ item->seq) % (route->count * (route->count + 1) / 2));
    int branch = 0;
    for (uint32_t upto = 1; share >= upto; upto += (uint32_t)branch + 1) /* branch i gets i + 1 shares */
        branch++;
    return branch;
}

/* ---- building and running ----------------------------------------------------------------------------------- */

static void build_part(weir_builder *builder, const plan_part *part)
{
    static const uint32_t weights[] = { 3, 1, 2, 1 };
    const void *config = part->op ? part->config : &part->work;
    weir_stage_options options = part->options;
    options.name = part->name[0] ? part->name : NULL;
    switch (part->kind) {
    case PLAN_SOURCE: weir_builder_source(builder, part->op ? part->op : &source_op, config, &options); break;
    case PLAN_STAGE: weir_builder_pipe(builder, part->op ? part->op : &stage_op, config, &options); break;
    case PLAN_ROUTE: {
        weir_route_config route = { pick_branch, (void *)(uintptr_t)part, part->count };
        weir_builder_route(builder, &route, &options);
        break;
    }
    case PLAN_BRANCH: weir_builder_branch(builder); break;
    case PLAN_JOIN: weir_builder_join(builder, &options); break;
    case PLAN_MERGE: {
        weir_merge_config merge = { .order = part->merge_order };
        if (part->merge_order == WEIR_MERGE_WEIGHTED) {
            merge.weights = weights;
            merge.num_weights = part->count;
        }
        weir_builder_merge(builder, &merge, &options);
        break;
    }
    case PLAN_AGGREGATE:
        weir_builder_pipe(builder, &weir_aggregate, &(weir_aggregate_config){ .num_items = part->count }, &options);
        break;
    case PLAN_DISAGGREGATE: weir_builder_pipe(builder, &weir_disaggregate, NULL, &options); break;
    case PLAN_SINK: weir_builder_sink(builder, &options); break;
    }
}

static int consume(weir_pipeline *pipeline, const whatif_plan *plan, double seconds, double *throughput)
{
    const plan_work *work = &plan->parts[plan->num_parts - 1].work;
    int64_t start_ns = weir_clock_ns(), from_ns = start_ns + (int64_t)(0.2 * seconds * 1e9), now_ns = start_ns;
    int64_t first_ns = 0, last_ns = 0, end_ns = start_ns + (int64_t)(seconds * 1e9);
    uint64_t count = 0, number = 0;
    weir_item item;
    int status = WEIR_OK;
    while ((plan->num_items ? number < plan->num_items : now_ns < end_ns) &&
           (status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        now_ns = weir_clock_ns();
        if (plan->num_items ? number >= plan->num_start : now_ns >= from_ns) {
            first_ns = first_ns ? first_ns : now_ns;
            last_ns = now_ns;
            count++;
        }
        do_work(work, number++);
        weir_item_release(&item);
        if (plan->later_percent && now_ns >= start_ns + (end_ns - start_ns) / 2)
            atomic_store_explicit(&slowness, plan->later_percent, memory_order_relaxed);
    }
    *throughput = last_ns > first_ns ? (double)(count - 1) * 1e9 / (double)(last_ns - first_ns) : 0;
    return status;
}

static void no_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

int plan_run(const whatif_plan *plan, double seconds, const plan_watch *watch, double *throughput)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    atomic_store_explicit(&slowness, 100, memory_order_relaxed);
    weir_log_set_function(no_log, NULL); /* failures are planned, or those of damaged files */
    for (size_t i = 0; i < plan->num_parts; i++) {
        build_part(builder, &plan->parts[i]);
        if (plan->parts[i].work.permits)
            sem_init(&permits, 0, plan->parts[i].work.permits);
    }
    weir_pipeline_options options = { .threads = plan->threads,
                                      .stats_interval_ns = watch && watch->lap_ns ? watch->lap_ns : WEIR_SECOND / 10,
                                      .observers = watch ? watch->observers : NULL,
                                      .num_observers = watch ? watch->num_observers : 0 };
    int status = weir_builder_build(builder, &options, &pipeline, &error);
    if (status == WEIR_OK) {
        if (watch && watch->tuner)
            weir_tuner_attach(watch->tuner, pipeline);
        status = consume(pipeline, plan, seconds, throughput);
        weir_pipeline_error(pipeline, &error);
        weir_pipeline_free(pipeline);
    }
    weir_log_set_function(NULL, NULL);
    if (status != WEIR_OK)
        fprintf(stderr, "weir-bench: %s: %s: %s\n", plan->name, error.stage, error.message);
    return status == WEIR_OK ? 0 : -1;
}

/* ---- plans -------------------------------------------------------------------------------------------------- */

plan_part *plan_add(whatif_plan *plan, plan_kind kind, const char *name)
{
    plan_part *part = &plan->parts[plan->num_parts++];
    *part = (plan_part){ .kind = kind, .work.pieces = 1 };
    if (name)
        snprintf(part->name, sizeof part->name, "%s%zu", name, plan->num_parts - 1);
    part->work.seed = mix(plan->num_parts);
    return part;
}

void plan_add_change(whatif_plan *plan, const char *name, const char *what, uint32_t value)
{
    plan_change change; /* not in place: the name may be in the plan, and gcc cannot see that they do not overlap */
    snprintf(change.setting, sizeof change.setting, "%s%s%s", name, *name ? "." : "", what);
    snprintf(change.value, sizeof change.value, "%u", value);
    plan->changes[plan->num_changes++] = change;
}

static double random_time(uint64_t *chance)
{
    static const double times_s[] = { 0.0005, 0.001, 0.002, 0.004, 0.008, 0.012 };
    return times_s[below(chance, 6)] * (0.7 + below(chance, 60) / 100.0);
}

static void add_stage(whatif_plan *plan, uint64_t *chance, bool in_branch)
{
    plan_part *part = plan_add(plan, PLAN_STAGE, "s");
    part->work.wait_s = random_time(chance);
    part->work.spread = (plan_spread)below(chance, 4);
    if (below(chance, 3) == 0)
        part->work.compute_s = 0.0002 + below(chance, 10) / 10000.0;
    part->work.skips = below(chance, 5) == 0 ? 3 + below(chance, 10) : 0;
    part->work.fails = below(chance, 5) == 0 ? 4 + below(chance, 20) : 0;
    part->work.pieces = !in_branch && below(chance, 6) == 0 ? 2 + below(chance, 3) : 1;
    part->options.concurrency = 1 + below(chance, 6);
    part->options.queue_items = 1 + below(chance, 5);
    part->options.queue_bytes = below(chance, 6) == 0 ? 1 + below(chance, 4000) : 0;
    part->options.output_order = below(chance, 3) == 0 ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION;
    part->options.threads = below(chance, 5) == 0 ? 1 + below(chance, part->options.concurrency) : 0;
}

static void add_route(whatif_plan *plan, uint64_t *chance)
{
    uint32_t count = 2 + below(chance, 2);
    plan_part *route = plan_add(plan, PLAN_ROUTE, "r");
    route->count = count;
    for (uint32_t i = 0; i < count; i++) {
        plan_add(plan, PLAN_BRANCH, NULL);
        if (below(chance, 3) > 0)
            add_stage(plan, chance, true);
    }
    plan_part *join = plan_add(plan, PLAN_JOIN, "j");
    join->options.output_order = below(chance, 2) ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION;
}

static void add_sources(whatif_plan *plan, uint64_t *chance)
{
    uint32_t count = below(chance, 4) == 0 ? 2 + below(chance, 2) : 1;
    for (uint32_t i = 0; i < count; i++) {
        plan_part *source = plan_add(plan, PLAN_SOURCE, "src");
        source->work.wait_s = below(chance, 2) ? random_time(chance) / 4 : 0;
        source->work.spread = (plan_spread)below(chance, 4);
        source->options.threads = below(chance, 2);
        if (count > 1 && below(chance, 2))
            add_stage(plan, chance, true);
    }
    if (count == 1)
        return;
    plan_part *merge = plan_add(plan, PLAN_MERGE, "m");
    merge->merge_order = (weir_merge_order)below(chance, 3);
    merge->count = count;
}

static void add_changes(whatif_plan *plan, uint64_t *chance)
{
    uint32_t wanted = 1 + below(chance, 3);
    for (uint32_t tries = 0; tries < 50 && plan->num_changes < wanted; tries++) {
        const plan_part *part = &plan->parts[below(chance, (uint32_t)plan->num_parts)];
        if (below(chance, 3) == 0 && plan->num_changes == 0)
            plan_add_change(plan, "", "threads", 1 + below(chance, 8));
        else if (part->kind == PLAN_STAGE && !part->options.threads)
            plan_add_change(plan, part->name, "concurrency", 1 + below(chance, 10));
        else if (part->kind == PLAN_STAGE)
            plan_add_change(plan, part->name, "queue_items", 1 + below(chance, 16));
    }
}

void plan_random(whatif_plan *plan, uint64_t seed)
{
    uint64_t chance = mix(seed);
    *plan = (whatif_plan){ .threads = 2 + below(&chance, 7) };
    snprintf(plan->name, sizeof plan->name, "random %llu", (unsigned long long)seed);
    add_sources(plan, &chance);
    for (uint32_t things = 1 + below(&chance, 3); things > 0; things--) {
        uint32_t what = below(&chance, 8);
        if (what == 0 && plan->num_parts < PLAN_MAX_PARTS - 12)
            add_route(plan, &chance);
        else
            add_stage(plan, &chance, false);
        if (what == 1) {
            plan_add(plan, PLAN_AGGREGATE, "a")->count = 2 + below(&chance, 6);
            if (below(&chance, 2))
                plan_add(plan, PLAN_DISAGGREGATE, "d");
        }
    }
    plan_part *sink = plan_add(plan, PLAN_SINK, "sink");
    sink->work.wait_s = below(&chance, 3) == 0 ? random_time(&chance) / 4 : 0;
    add_changes(plan, &chance);
}

static const struct pattern {
    const char *name;
    plan_work source, decode, sink, second_source, second_branch;
    uint32_t concurrency, threads, source_items;
    uint64_t source_bytes;
    weir_order order;
    bool shares_threads;
} patterns[] = {
    { .name = "source",
      .source = { .wait_s = 0.010 },
      .decode = { .compute_s = 0.002 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "decode", .decode = { .wait_s = 0.010 }, .concurrency = 2, .threads = 4 },
    { .name = "sink", .decode = { .compute_s = 0.001 }, .sink = { .wait_s = 0.010 }, .concurrency = 4, .threads = 4 },
    { .name = "threads", .decode = { .compute_s = 0.005 }, .concurrency = 10, .threads = 1 },
    { .name = "slow-file",
      .decode = { .wait_s = 0.005, .spread = PLAN_RARE, .num_files = 600 },
      .concurrency = 4,
      .threads = 16,
      .order = WEIR_ORDER_INPUT },
    { .name = "starved",
      .source = { .wait_s = 0.001 },
      .decode = { .wait_s = 0.005 },
      .concurrency = 4,
      .threads = 1,
      .shares_threads = true },
    { .name = "cpus", .decode = { .compute_s = 0.005 }, .concurrency = 16, .threads = 16 },
    { .name = "lock", .decode = { .compute_s = 0.005, .permits = 1 }, .concurrency = 4, .threads = 8 },
    { .name = "own-threads", .decode = { .wait_s = 0.005, .permits = 2 }, .concurrency = 4, .threads = 8 },
    { .name = "bursts",
      .source = { .wait_s = 0.010, .spread = PLAN_BURSTS },
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4 },
    { .name = "bytes",
      .source = { .wait_s = 0.010, .spread = PLAN_BURSTS },
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4,
      .source_items = 64,
      .source_bytes = 2000 },
    { .name = "giants", .decode = { .wait_s = 0.001, .spread = PLAN_GIANTS }, .concurrency = 2, .threads = 4 },
    { .name = "branch",
      .decode = { .wait_s = 0.002 },
      .concurrency = 1,
      .threads = 4,
      .second_branch = { .wait_s = 0.010 } },
    { .name = "input",
      .source = { .wait_s = 0.001 },
      .decode = { .wait_s = 0.001 },
      .concurrency = 2,
      .threads = 4,
      .second_source = { .wait_s = 0.010 } },
};

/* Parts are named by the beginning of their name; "" is the pipeline. */
static const struct pattern_change {
    const char *pattern, *part, *setting;
    uint32_t value;
} pattern_changes[] = {
    { "source", "decode", "concurrency", 8 },
    { "source", "", "threads", 1 },
    { "decode", "decode", "concurrency", 1 },
    { "decode", "decode", "concurrency", 4 },
    { "decode", "decode", "concurrency", 8 },
    { "decode", "", "threads", 1 },
    { "sink", "decode", "concurrency", 1 },
    { "sink", "", "threads", 1 },
    { "threads", "", "threads", 2 },
    { "threads", "", "threads", 4 },
    { "threads", "decode", "concurrency", 1 },
    { "slow-file", "decode", "output_order", 0 },
    { "slow-file", "decode", "concurrency", 12 },
    { "starved", "", "threads", 2 },
    { "starved", "", "threads", 4 },
    { "cpus", "", "threads", 2 },
    { "cpus", "decode", "concurrency", 1 },
    { "lock", "decode", "concurrency", 1 },
    { "lock", "decode", "concurrency", 8 },
    { "own-threads", "decode", "concurrency", 1 },
    { "own-threads", "decode", "concurrency", 8 },
    { "bursts", "src", "queue_items", 20 },
    { "bursts", "decode", "concurrency", 4 },
    { "bytes", "src", "queue_bytes", 0 },
    { "bytes", "decode", "concurrency", 4 },
    { "giants", "decode", "concurrency", 4 },
    { "giants", "decode", "queue_items", 64 },
    { "branch", "large", "concurrency", 5 },
    { "branch", "decode", "queue_items", 16 },
    { "input", "src", "queue_items", 16 },
    { "input", "decode", "concurrency", 1 },
};

static plan_part *add_working(whatif_plan *plan, plan_kind kind, const char *name, const plan_work *work)
{
    plan_part *part = plan_add(plan, kind, name);
    uint64_t seed = part->work.seed;
    part->work = *work;
    part->work.seed = seed;
    part->work.pieces = 1;
    return part;
}

static void add_pattern(whatif_plan *plan, const struct pattern *pattern)
{
    bool has_merge = pattern->second_source.wait_s > 0, has_route = pattern->second_branch.wait_s > 0;
    weir_stage_options source = { .threads = pattern->shares_threads ? 0 : 1,
                                  .queue_items = pattern->source_items,
                                  .queue_bytes = pattern->source_bytes };
    weir_stage_options decode = { .concurrency = pattern->concurrency, .output_order = pattern->order };
    add_working(plan, PLAN_SOURCE, "src", &pattern->source)->options = source;
    if (has_merge) {
        add_working(plan, PLAN_SOURCE, "slow", &pattern->second_source)->options = source;
        plan_part *merge = plan_add(plan, PLAN_MERGE, "m");
        merge->merge_order = WEIR_MERGE_ROUND_ROBIN;
        merge->count = 2;
    }
    if (has_route) {
        plan_part *route = plan_add(plan, PLAN_ROUTE, "r");
        route->count = 2;
        route->in_turn = true;
        plan_add(plan, PLAN_BRANCH, NULL);
    }
    add_working(plan, PLAN_STAGE, "decode", &pattern->decode)->options = decode;
    if (has_route) {
        plan_add(plan, PLAN_BRANCH, NULL);
        add_working(plan, PLAN_STAGE, "large", &pattern->second_branch)->options = decode;
        plan_add(plan, PLAN_JOIN, "j");
    }
    add_working(plan, PLAN_SINK, "sink", &pattern->sink);
    /* In a second there would be three bursts or four, and eight slow files or sixteen. */
    uint64_t period = pattern->source.spread == PLAN_BURSTS   ? BURST_ITEMS
                      : pattern->decode.spread == PLAN_GIANTS ? GIANT_ITEMS
                                                              : pattern->decode.num_files;
    plan->num_start = period;
    plan->num_items = period * (period < 100 ? 21 : 3);
}

bool plan_pattern(whatif_plan *plan, size_t index)
{
    if (index >= sizeof pattern_changes / sizeof pattern_changes[0])
        return false;
    const struct pattern_change *change = &pattern_changes[index];
    const struct pattern *pattern = patterns;
    while (strcmp(pattern->name, change->pattern) != 0)
        pattern++;
    *plan = (whatif_plan){ .threads = pattern->threads };
    snprintf(plan->name, sizeof plan->name, "%s", pattern->name);
    add_pattern(plan, pattern);
    size_t part = 0;
    while (*change->part && strncmp(plan->parts[part].name, change->part, strlen(change->part)) != 0)
        part++;
    plan_add_change(plan, *change->part ? plan->parts[part].name : "", change->setting, change->value);
    if (strcmp(change->setting, "output_order") == 0)
        snprintf(plan->changes[0].value, sizeof plan->changes[0].value, "completion");
    return true;
}

bool plan_is_pattern(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        found |= strcmp(name, patterns[i].name) == 0;
    return found;
}

#ifdef WEIR_BENCH_STAGES
void plan_main_job(whatif_plan *plan, const bench_files *files, uint32_t slots, uint32_t threads)
{
    static const weir_video_config video = { .width = 128, .height = 128 };
    *plan = (whatif_plan){ .threads = threads };
    plan_part *source = plan_add(plan, PLAN_SOURCE, "src"), *decode = plan_add(plan, PLAN_STAGE, "decode");
    source->op = &bench_files_op;
    source->config = files;
    source->options.threads = 1;
    decode->op = &weir_video_decode;
    decode->config = &video;
    decode->options.concurrency = slots;
    plan_add(plan, PLAN_SINK, "sink");
    snprintf(plan->name, sizeof plan->name, "%u slots, %u threads", slots, threads);
}
#endif

void plan_apply(whatif_plan *plan)
{
    for (size_t i = 0; i < plan->num_changes; i++) {
        const plan_change *change = &plan->changes[i];
        const char *dot = strchr(change->setting, '.');
        uint32_t value = (uint32_t)strtoul(change->value, NULL, 10);
        if (!dot)
            plan->threads = value;
        for (size_t j = 0; dot && j < plan->num_parts; j++) {
            plan_part *part = &plan->parts[j];
            if (strlen(part->name) != (size_t)(dot - change->setting) ||
                strncmp(part->name, change->setting, strlen(part->name)) != 0)
                continue;
            if (strcmp(dot, ".concurrency") == 0)
                part->options.concurrency = value;
            else if (strcmp(dot, ".queue_items") == 0)
                part->options.queue_items = value;
            else if (strcmp(dot, ".queue_bytes") == 0)
                part->options.queue_bytes = value;
            else
                part->options.output_order = WEIR_ORDER_COMPLETION;
        }
    }
}
