/*
 * A model checker of our own kind: builds pipelines at random, lets everything happen to them that can, and checks what
 * must hold whatever happens:
 *
 *   - every item is accounted for, per stage and over the pipeline, and each payload is released exactly once;
 *   - order is kept where it is promised, and no item crosses the end of an epoch;
 *   - no queue is above its capacity, no stage runs more concurrent tasks than it had slots;
 *   - hooks pair; the laps add up to the account;
 *   - it ends: after a stop at any moment from any place, too;
 *   - killed at random moments and resumed from the last checkpoint, it delivers each result exactly once.
 *
 * Built with WEIR_TRACED, it also writes a trace of each run, and what the trace says alone must equal what the laps do.
 *
 *     WEIR_SEED=N  only that one pipeline; a failing run prints its seed
 *     WEIR_RUNS=N  how many
 *     WEIR_SOAK=1  every ten pipelines, while there is none: "soak", resident KiB, descriptors, threads to stderr
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/support.h"
#ifdef WEIR_TRACED
#include <weir/trace_file.h>

#include "tests/trace_totals.h"
#endif

enum { MAX_STAGES = 24, MAX_SLOTS = 8, ITEMS = 120, SECONDS_TO_END = 240 };

#if defined WEIR_TRACED && defined SANITIZED
enum { DEFAULT_RUNS = 40 };
#elif defined WEIR_TRACED
enum { DEFAULT_RUNS = 200 };
#elif defined SANITIZED
enum { DEFAULT_RUNS = 600 };
#else
enum { DEFAULT_RUNS = 3000 };
#endif

/* ---- chance ------------------------------------------------------------------------------------------------- */

/* splitmix64 (Sebastiano Vigna): any two seeds give unrelated numbers. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef struct chance {
    uint64_t state;
} chance;

static uint32_t below(chance *chance_, uint32_t limit)
{
    chance_->state += 0x9e3779b97f4a7c15u;
    return (uint32_t)(mix(chance_->state) % limit);
}

static bool one_in(chance *chance_, uint32_t limit)
{
    return below(chance_, limit) == 0;
}

/* ---- the model ---------------------------------------------------------------------------------------------- */

typedef struct model model;

/* What a stage does to its items; several may be true. */
typedef struct behaviour {
    model *model;
    uint64_t seed;
    uint32_t fails, skips, pends, multiplies, yields; /* one in this many; 0 = never */
    uint32_t most_slots;                              /* it ever may have */
    atomic_uint *running;
    bool is_batched;
    uint64_t stops_at; /* number of the task that stops the pipeline; 0 = none */
} behaviour;

struct model {
    uint64_t seed;
    chance chance; /* what the pipeline does */
    chance tuning; /* how: concurrency, order, queues, threads, stops */
    test_ledger ledger;
    test_pending pending;
    weir_observer observers[2];
    size_t num_observers;
    weir_builder *builder;
    _Atomic(weir_pipeline *) pipeline;

    /* what was built */
    behaviour behaviours[MAX_STAGES];
    atomic_uint running[MAX_STAGES];
    char names[MAX_STAGES][16];
    uint32_t num_stages;
    uint32_t num_sources;
    uint32_t epochs;
    bool keeps_order;    /* the values come out in the order in which they were made */
    bool restores_order; /* some joins do, unless the pipeline fails */
    bool meddled;        /* another thread changes concurrencies */
    bool batched;        /* what comes out are batches */
    bool regrouped;      /* items were in batches: their numbers depend on the batches */
    bool ends_first;     /* the merge does: tasks before it may still run when the consumer is at the end */
    bool is_resumed;     /* the pipeline is built several times, and must do the same */
    weir_checkpoints checkpoints;
    const char *resume; /* NULL = from the start */
    bool never_stops;   /* no stops, no limit of failures */

    /* what happened */
    atomic_ullong tasks, hooks_begun, hooks_ended;
    test_recorder recorder;
    uint64_t made, delivered, epochs_seen;
    uint64_t last_value;
};

static void complain(const model *m, const char *what)
{
    fprintf(stderr, "WEIR_SEED=%llu: %s\n", (unsigned long long)m->seed, what);
    abort();
}

static void check(const model *m, bool holds, const char *what)
{
    if (!holds)
        complain(m, what);
}

/* ---- operations --------------------------------------------------------------------------------------------- */

/* A value contains the epoch, the source, the number, and which chunk it is: four digits of 16 bits, from the highest. */
typedef struct source_worker {
    uint64_t made;
} source_worker;

typedef struct source_config {
    model *model;
    uint64_t count, end_status;
    bool seeks; /* it does not make the items that are done */
} source_config;

static int source_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    source_worker *source = worker;
    const source_config *config = weir_task_config(task);
    uint64_t number = config->seeks ? weir_task_seq(task) : source->made++;
    if (number >= config->count)
        return config->end_status ? weir_task_fail(task, WEIR_EIO, 0, "the source broke") : WEIR_EOF;
    check(config->model, number == weir_task_seq(task), "a source's item has another number");
    uint64_t value = weir_task_epoch(task) << 48 | (uint64_t)weir_task_source(task) << 32 | number << 16;
    ledger_fill(&config->model->ledger, out, value, (size_t)(number % 7));
    if (number % 3 == 0)
        out->label = "every third";
    return WEIR_OK;
}

static const weir_op source_op = {
    .name = "source",
    .config_size = sizeof(source_config),
    .worker_size = sizeof(source_worker),
    .run = source_run,
};

static char *save_nothing(const void *config, uint64_t epoch)
{
    (void)config;
    (void)epoch;
    return strdup("");
}

static int resume_same(void *config, const weir_checkpoint *const *checkpoints, size_t num_checkpoints, size_t source,
                       weir_error *error)
{
    (void)config;
    (void)checkpoints;
    (void)source;
    (void)error;
    return num_checkpoints == 1 ? WEIR_OK : WEIR_EINVAL;
}

static const weir_op seeking_source_op = {
    .name = "source",
    .config_size = sizeof(source_config),
    .worker_size = sizeof(source_worker),
    .run = source_run,
    .save = save_nothing,
    .resume = resume_same,
};

static bool happens(const behaviour *b, uint64_t seq, uint32_t one_in_, uint64_t salt)
{
    return one_in_ && mix(b->seed ^ mix(seq + salt * 1000003)) % one_in_ == 0;
}

static int multiply(const behaviour *b, const weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t value = item_value(in), chunk = weir_task_num_chunks(task);
    ledger_fill(&b->model->ledger, out, (value & ~UINT64_C(0xffff)) | ((value * 4 + chunk + 1) & 0xffff), 1);
    return chunk < 2 ? WEIR_MORE : WEIR_OK;
}

static int decide(const behaviour *b, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t seq = b->is_batched ? weir_task_seq(task) : item_value(in);
    if (happens(b, seq, b->yields, 1))
        sched_yield();
    if (happens(b, seq, b->fails, 2))
        return weir_task_fail(task, WEIR_EDATA, 7, "as it was to be");
    if (happens(b, seq, b->skips, 3))
        return WEIR_SKIP;
    if (happens(b, seq, b->multiplies, 4))
        return multiply(b, in, out, task);
    if (happens(b, seq, b->pends, 5)) {
        pending_add(&b->model->pending, task, in);
        return WEIR_PENDING;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static int stage_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const behaviour *b = weir_task_config(task);
    uint32_t at_once = atomic_fetch_add(b->running, 1) + 1;
    check(b->model, at_once <= b->most_slots, "more tasks at once than slots");
    uint64_t number = atomic_fetch_add(&b->model->tasks, 1) + 1;
    weir_pipeline *pipeline = atomic_load(&b->model->pipeline);
    if (number == b->stops_at && pipeline)
        weir_pipeline_stop(pipeline);
    int status = decide(b, in, out, task);
    atomic_fetch_sub(b->running, 1);
    return status;
}

static const weir_op stage_op = {
    .makes = WEIR_TYPE_ANY, /* as its input */
    .name = "stage",
    .config_size = sizeof(behaviour),
    .run = stage_run,
};

/* Brings the results of pending tasks, now this way, now that. */
static void *complete_tasks(void *argument)
{
    model *m = argument;
    weir_item *in;
    weir_task *task;
    while ((task = pending_take(&m->pending, &in))) {
        weir_item out = { 0 };
        uint64_t kind = mix(m->seed ^ item_value(in)) % 8;
        if (kind == 0) {
            weir_task_complete(task, WEIR_SKIP, NULL);
        } else if (kind == 1) {
            weir_task_complete(task, weir_task_fail(task, WEIR_EIO, 0, "it came to nothing"), NULL);
        } else {
            weir_item_move(&out, in);
            weir_task_complete(task, WEIR_OK, &out);
        }
    }
    return NULL;
}

static int hook_begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)in;
    model *m = self;
    *(uint64_t *)state = 0xfeed;
    if (mix(weir_task_seq(task) ^ m->seed) % 97 == 0)
        return WEIR_EHOOK;
    atomic_fetch_add(&m->hooks_begun, 1);
    return WEIR_OK;
}

static int hook_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    model *m = self;
    (void)end;
    check(m, *(uint64_t *)state == 0xfeed, "a hook's state is not its own");
    atomic_fetch_add(&m->hooks_ended, 1);
    return mix(weir_task_seq(task) + m->seed) % 101 == 0 ? WEIR_EHOOK : WEIR_OK;
}

static int pick(void *self, const weir_item *item)
{
    (void)self;
    return (int)(mix(item_value(item)) % 3);
}

/* ---- building ----------------------------------------------------------------------------------------------- */

static weir_stage_options random_options(model *m, weir_task_hook *hook)
{
    weir_stage_options options = {
        .concurrency = 1 + below(&m->tuning, MAX_SLOTS),
        .queue_items = 1 + below(&m->tuning, 5),
        .queue_bytes = one_in(&m->tuning, 4) ? 1 + below(&m->tuning, 20) : 0,
        .threads = one_in(&m->tuning, 6) ? 1 + below(&m->tuning, 2) : 0,
        .output_order = one_in(&m->tuning, 2) ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION,
    };
    if (options.threads > options.concurrency)
        options.threads = options.concurrency;
    if (one_in(&m->chance, 5) && !(m->is_resumed && m->regrouped)) {
        *hook = (weir_task_hook){ .self = m, .state_size = sizeof(uint64_t), .begin = hook_begin, .end = hook_end };
        options.task_hooks = hook;
        options.num_task_hooks = 1;
    }
    if (m->never_stops)
        return options;
    if (one_in(&m->tuning, 12))
        options.max_failures = (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = below(&m->tuning, 4) };
    else if (one_in(&m->tuning, 12))
        options.max_failures = (weir_max_failures){ .kind = WEIR_FAILURES_RATE, .num = 1, .den = 10 };
    return options;
}

static uint32_t rarely(model *m, uint32_t one_in_)
{
    return one_in(&m->chance, one_in_) ? 2 + below(&m->chance, 20) : 0;
}

static void add_stage(model *m)
{
    if (m->num_stages == MAX_STAGES)
        return;
    behaviour *b = &m->behaviours[m->num_stages];
    weir_task_hook hook;
    weir_stage_options options = random_options(m, &hook);
    *b = (behaviour){
        .model = m,
        .seed = mix(m->seed + m->num_stages),
        .fails = m->is_resumed && m->batched ? 0 : rarely(m, 4),
        .skips = m->is_resumed && m->batched ? 0 : rarely(m, 4),
        .pends = m->batched ? 0 : rarely(m, 5),
        .multiplies = m->batched ? 0 : rarely(m, 6),
        .yields = rarely(m, 3),
        .most_slots = MAX_SLOTS,
        .running = &m->running[m->num_stages],
        .stops_at = one_in(&m->tuning, 20) && !m->never_stops ? 1 + below(&m->tuning, ITEMS) : 0,
        .is_batched = m->batched,
    };
    snprintf(m->names[m->num_stages], sizeof m->names[0], "stage%u", m->num_stages);
    options.name = m->names[m->num_stages++];
    bool has_one_slot = options.concurrency == 1 && !m->meddled;
    m->keeps_order &= has_one_slot || options.output_order == WEIR_ORDER_INPUT;
    weir_builder_pipe(m->builder, &stage_op, b, sizeof(behaviour), &options);
}

static void add_route(model *m)
{
    static const uint32_t look_aheads[] = { 0, WEIR_NO_LOOK_AHEAD, 1, 2, 5 };
    weir_route_config config = { .pick = pick,
                                 .num_branches = 3,
                                 .look_ahead_items = look_aheads[below(&m->tuning, LENGTH(look_aheads))] };
    weir_builder_route(m->builder, &config, &(weir_stage_options){ .concurrency = 1 + below(&m->tuning, 3) });
    bool keeps_order = m->keeps_order, restores_order = one_in(&m->tuning, 2);
    for (int branch = 0; branch < 3; branch++) {
        weir_builder_branch(m->builder);
        for (uint32_t stages = below(&m->chance, 3); stages > 0; stages--)
            add_stage(m);
    }
    weir_builder_join(m->builder, restores_order ? &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT,
                                                                          .queue_items = 1 + below(&m->tuning, 3) }
                                                 : NULL);
    m->keeps_order = keeps_order && restores_order;
    m->restores_order |= restores_order;
}

static void add_batches(model *m)
{
    weir_aggregate_config config = { .num_items = 1 + below(&m->chance, 7), .drop_last = one_in(&m->chance, 3) };
    config.drop_last &= !m->is_resumed; /* which items would be dropped depends on the batches before */
    bool has_slots = m->is_resumed && one_in(&m->tuning, 2);
    weir_pipe_aggregate(m->builder, &config, &(weir_stage_options){ .concurrency = has_slots ? 3 : 1 });
    m->keeps_order &= !has_slots;
    m->batched = m->regrouped = true;
    if (one_in(&m->chance, 2))
        add_stage(m);
    if (one_in(&m->chance, 3))
        return;
    weir_pipe_disaggregate(m->builder, NULL);
    m->batched = false;
}

static void add_something(model *m)
{
    switch (m->batched ? 9 : below(&m->chance, 10)) {
    case 0: add_route(m); break;
    case 1: add_batches(m); break;
    default: add_stage(m);
    }
}

static void add_sources(model *m)
{
    m->num_sources = one_in(&m->chance, 4) ? 2 + below(&m->chance, 2) : 1;
    m->epochs = one_in(&m->chance, 4) ? 1 + below(&m->chance, 4) : 0;
    for (uint32_t i = 0; i < m->num_sources; i++) {
        source_config config = { .model = m, .count = below(&m->chance, ITEMS) };
        config.end_status = one_in(&m->chance, 40) && !m->is_resumed;
        config.seeks = one_in(&m->chance, 2);
        weir_stage_options options = { .epochs = m->epochs,
                                       .threads = one_in(&m->tuning, 3),
                                       .queue_items = 1 + below(&m->tuning, 4) };
        weir_builder_source(m->builder, config.seeks ? &seeking_source_op : &source_op, &config, sizeof config,
                            &options);
        if (m->num_sources > 1 && one_in(&m->chance, 2))
            add_stage(m);
    }
    static const uint32_t weights[] = { 3, 1, 2 };
    weir_merge_config merge = { .order = (weir_merge_order)below(&m->chance, 4) };
    m->ends_first = m->num_sources > 1 && !m->epochs && !m->is_resumed && one_in(&m->chance, 3);
    merge.end = m->ends_first ? WEIR_MERGE_END_FIRST : WEIR_MERGE_END_LAST;
    if (merge.order >= WEIR_MERGE_WEIGHTED) {
        merge.weights = weights;
        merge.num_weights = m->num_sources;
    }
    if (m->num_sources > 1)
        weir_builder_merge(m->builder, &merge, NULL);
    m->keeps_order &= m->num_sources == 1;
}

/* ---- the trace ---------------------------------------------------------------------------------------------- */

#ifdef WEIR_TRACED
static weir_trace_file *trace_file;
static char trace_path[64];

/* One lap: a thread takes a task just before the end of a lap, and begins it just after the end. In the trace it has
   waited for it, but in the first lap it was busy. */
static void trace_begin(model *m, weir_pipeline_options *options)
{
    weir_error error = { 0 };
    snprintf(trace_path, sizeof trace_path, "/tmp/weir-random-%d.json", (int)getpid());
    weir_trace_options wanted = { .overwrite = true };
    check(m, weir_trace_open(trace_path, &wanted, &trace_file, &error) == WEIR_OK, error.message);
    m->observers[m->num_observers++] = weir_trace_observer(trace_file);
    options->stats_interval_ns = WEIR_FOREVER;
}

static void check_stage(model *m, const trace_totals *totals, const stage_record *record)
{
    const weir_task_metrics *lap = &record->lap.metrics.task;
    const trace_total *traced = trace_totals_of(totals, record->name);
    bool times = traced->busy_ns == lap->busy_ns && traced->wait_in_ns == lap->wait_in_ns &&
                 traced->wait_thread_ns == lap->wait_thread_ns && traced->ended_ns == lap->ended_ns &&
                 traced->wait_turn_ns == lap->wait_turn_ns && traced->wait_out_ns == lap->wait_out_ns;
    bool tasks = traced->num_tasks == lap->num_tasks && traced->num_failures == lap->num_failures &&
                 traced->num_skipped == lap->num_skipped;
    if (!times || !tasks)
        fprintf(stderr,
                "%s: busy %lld, in %lld, thread %lld, turn %lld, out %lld, tasks %llu, failed %llu, skipped %llu;"
                " the trace: %lld, %lld, %lld, %lld, %lld, %llu, %llu, %llu\n",
                record->name, (long long)lap->busy_ns, (long long)lap->wait_in_ns, (long long)lap->wait_thread_ns,
                (long long)lap->wait_turn_ns, (long long)lap->wait_out_ns, (unsigned long long)lap->num_tasks,
                (unsigned long long)lap->num_failures, (unsigned long long)lap->num_skipped,
                (long long)traced->busy_ns, (long long)traced->wait_in_ns, (long long)traced->wait_thread_ns,
                (long long)traced->wait_turn_ns, (long long)traced->wait_out_ns,
                (unsigned long long)traced->num_tasks, (unsigned long long)traced->num_failures,
                (unsigned long long)traced->num_skipped);
    check(m, times, "the trace tells other times than the lap");
    check(m, tasks, "the trace tells other tasks than the lap");
}

static void check_queue(model *m, const trace_totals *totals, const queue_record *record)
{
    const weir_queue_metrics *lap = &record->lap.metrics.queue;
    const trace_total *traced = trace_totals_of(totals, record->name);
    check(m, traced->occupied_ns == lap->occupied_ns, "the trace tells another occupancy than the lap");
    check(m, traced->depth_ns >= lap->depth_ns * (1 - 1e-9) && traced->depth_ns <= lap->depth_ns * (1 + 1e-9),
          "the trace tells another mean level than the lap");
    check(m, traced->max_level == (int64_t)lap->max_depth, "the trace tells another highest level than the lap");
}

static char *trace_text(model *m, size_t *length)
{
    FILE *file = fopen(trace_path, "rb");
    char *text = NULL;
    size_t room = 0;
    ssize_t all = file ? getdelim(&text, &room, EOF, file) : -1;
    check(m, all > 0, "the trace cannot be read");
    *length = (size_t)all;
    fclose(file);
    return text;
}

static void trace_end(model *m)
{
    static trace_totals totals;
    weir_error error = { 0 };
    size_t length;
    check(m, weir_trace_close(trace_file, &error) == WEIR_OK, error.message);
    char *text = trace_text(m, &length);
    const char *mistake = trace_format_mistake(text, length);
    check(m, !mistake, mistake);
    check(m, trace_totals_read(trace_path, &totals) && !totals.is_cut, "the trace cannot be read to its end");
    check(m, totals.num_open == 0, "a span is still open at the end");
    for (uint64_t i = 0; i < m->recorder.num_stage_records; i++)
        check_stage(m, &totals, &m->recorder.stages[i]);
    for (uint64_t i = 0; i < m->recorder.num_queue_records; i++)
        check_queue(m, &totals, &m->recorder.queues[i]);
    free(text);
    unlink(trace_path);
}
#else
static void trace_begin(model *m, weir_pipeline_options *options)
{
    (void)m, (void)options;
}

static void trace_end(model *m)
{
    (void)m;
}
#endif

static void build_model(model *m)
{
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    weir_pipeline_options options = {
        .threads = 1 + below(&m->tuning, 4),
        .stats_interval_ns = one_in(&m->tuning, 3) ? WEIR_MILLISECOND : WEIR_FOREVER,
        .observers = m->observers,
        .stall_warning_ns = WEIR_FOREVER,
        .checkpoints = m->checkpoints,
        .retry_failed = m->is_resumed && one_in(&m->tuning, 2),
        .resume = &m->resume,
        .num_resume = m->resume != NULL,
    };
    m->num_observers = 0;
    m->observers[m->num_observers++] = m->recorder.observer;
    trace_begin(m, &options);
    options.num_observers = m->num_observers;
    m->builder = weir_builder_new();
    m->keeps_order = true;
    add_sources(m);
    for (uint32_t things = below(&m->chance, 6); things > 0; things--)
        add_something(m);
    weir_builder_sink(m->builder, &(weir_stage_options){ .queue_items = below(&m->tuning, 5) });
    int status = weir_builder_build(m->builder, &options, &pipeline, &error);
    if (status != WEIR_OK) {
        fprintf(stderr, "%s: %s\n", error.stage, error.message);
        complain(m, "it was not built");
    }
    atomic_store(&m->pipeline, pipeline);
}

/* ---- running ------------------------------------------------------------------------------------------------ */

static void check_value(model *m, uint64_t value)
{
    check(m, m->epochs == 0 || value >> 48 == m->epochs_seen, "an item crossed the end of an epoch");
    weir_error error = { 0 };
    bool in_order = !m->keeps_order || m->delivered == 0 || value >> 16 >= m->last_value >> 16;
    bool failed =
        !in_order && m->restores_order && weir_pipeline_error(atomic_load(&m->pipeline), NULL, &error) != WEIR_OK;
    check(m, in_order || failed, "the order was not kept");
    m->last_value = value;
}

static void look_at(model *m, const weir_item *item)
{
    if (!m->batched) {
        check_value(m, item_value(item));
        return;
    }
    const weir_batch *batch = item->data;
    for (size_t i = 0; i < batch->num_items; i++)
        check_value(m, item_value(&batch->items[i]));
}

/* Takes results until there are no more, or this many. */
static int consume(model *m, uint64_t at_most)
{
    weir_pipeline *pipeline = atomic_load(&m->pipeline);
    weir_item item;
    int status = WEIR_OK;
    for (uint64_t taken = 0; taken < at_most; taken++) {
        status = weir_pipeline_next(pipeline, &item, one_in(&m->chance, 50) ? 0 : WEIR_FOREVER);
        m->epochs_seen += status == WEIR_EPOCH;
        if (status == WEIR_OK) {
            look_at(m, &item);
            weir_item_release(&item);
            m->delivered++;
        } else if (status != WEIR_EPOCH && status != WEIR_ETIMEDOUT) {
            break;
        }
    }
    return status;
}

/* Inspects and changes the pipeline from another thread while items flow. */
static void *meddle(void *argument)
{
    model *m = argument;
    chance chance_ = { .state = mix(m->seed ^ 0xabcdef) };
    weir_pipeline *pipeline = atomic_load(&m->pipeline);
    for (uint32_t acts = below(&chance_, 20); acts > 0; acts--) {
        weir_snapshot *snapshot;
        if (m->num_stages && one_in(&chance_, 2))
            weir_pipeline_set_concurrency(pipeline, m->names[below(&chance_, m->num_stages)],
                                          1 + below(&chance_, MAX_SLOTS));
        else if (weir_pipeline_snapshot(pipeline, &snapshot) == WEIR_OK)
            weir_snapshot_free(snapshot);
        if (one_in(&chance_, 40))
            weir_pipeline_stop(pipeline);
        sched_yield();
    }
    return NULL;
}

static void check_account(model *m, const char *stage, bool ended)
{
    weir_account account;
    check(m, weir_pipeline_account(atomic_load(&m->pipeline), stage, &account) == WEIR_OK, "no account");
    uint64_t gone = account.passed_on + account.skipped + account.failed + account.dropped + account.merged;
    check(m, account.taken + account.created == gone + account.in_flight, "the account does not add up");
    check(m, !ended || account.in_flight == 0, "something is still in flight after the end");
    check(m, stage || account.passed_on == m->delivered, "the account does not tell what was delivered");
    if (!stage && ended)
        m->made = account.taken;
}

static void check_accounts(model *m, bool ended)
{
    check_account(m, NULL, ended);
    for (uint32_t i = 0; i < m->num_stages; i++)
        check_account(m, m->names[i], ended);
}

static void check_laps(model *m)
{
    uint64_t made = 0;
    for (uint64_t i = 0; i < m->recorder.num_queue_records; i++) {
        const queue_record *record = &m->recorder.queues[i];
        check(m, record->lap.metrics.queue.max_depth <= (int64_t)record->lap.capacity,
              "a queue was above its capacity");
        check(m,
              record->put_count == record->lap.metrics.queue.num_put &&
                  record->get_count == record->lap.metrics.queue.num_items,
              "a queue's histograms do not tell its items");
    }
    for (uint64_t i = 0; i < m->recorder.num_stage_records; i++) {
        const stage_record *record = &m->recorder.stages[i];
        check(m,
              record->histogram_count == record->lap.metrics.task.num_tasks - record->lap.metrics.task.num_failures,
              "a stage's histogram does not tell its successes");
        if (strcmp(record->lap.kind, "source") == 0)
            made += record->histogram_count;
    }
    check(m, m->recorder.ended, "the end of the run was not told");
    check(m, m->made == 0 || made == m->made, "the laps of the sources do not tell what they made");
}

static atomic_ullong running_seed;

static void on_hang(int signal)
{
    char line[64];
    (void)signal;
    int length = snprintf(line, sizeof line, "WEIR_SEED=%llu: it hangs\n", (unsigned long long)running_seed);
    if (write(STDERR_FILENO, line, (size_t)length) == length)
        abort();
    _exit(1);
}

static void run_model(uint64_t seed)
{
    static model m;
    memset(&m, 0, sizeof m);
    atomic_store(&running_seed, seed);
    signal(SIGALRM, on_hang);
    alarm(SECONDS_TO_END);
    m.seed = seed;
    m.chance.state = mix(seed);
    ledger_init(&m.ledger);
    pending_init(&m.pending);
    recorder_init(&m.recorder);
    m.tuning.state = mix(seed + 1);
    m.meddled = one_in(&m.chance, 3);
    m.checkpoints = (weir_checkpoints)below(&m.tuning, 3);
    build_model(&m);
    m.pending.thread = thread_start(complete_tasks, &m);
    pthread_t meddler = m.meddled ? thread_start(meddle, &m) : m.pending.thread;

    bool leaves_early = one_in(&m.chance, 5);
    int status = consume(&m, leaves_early ? below(&m.chance, ITEMS) : UINT64_MAX);
    if (one_in(&m.chance, 8))
        weir_pipeline_stop(atomic_load(&m.pipeline));
    if (m.meddled)
        thread_join(meddler);
    bool at_end = status == WEIR_EOF;
    check_accounts(&m, at_end && !m.ends_first);
    check(&m, !at_end || m.epochs_seen == m.epochs, "not every end of an epoch was told");
    weir_pipeline_free(atomic_load(&m.pipeline));
    pending_end(&m.pending);
    check(&m, atomic_load(&m.hooks_begun) == atomic_load(&m.hooks_ended), "hooks do not pair");
    check_laps(&m);
    trace_end(&m);
    recorder_free(&m.recorder);
    ledger_close(&m.ledger);
}

/* ---- resuming ----------------------------------------------------------------------------------------------- */

/* What a consumer has stored: the values of results, and the checkpoint that belongs to them. */
typedef struct store {
    uint64_t *values;
    size_t num_values, num_committed;
    char *text; /* NULL = no checkpoint yet */
} store;

static void store_value(model *m, store *to, uint64_t value)
{
    check_value(m, value);
    to->values = realloc(to->values, (to->num_values + 1) * sizeof *to->values);
    to->values[to->num_values++] = value;
}

static void store_item(model *m, store *to, weir_item *item)
{
    const weir_batch *batch = m->batched ? item->data : NULL;
    for (size_t i = 0; batch && i < batch->num_items; i++)
        store_value(m, to, item_value(&batch->items[i]));
    if (!batch)
        store_value(m, to, item_value(item));
    if (m->checkpoints == WEIR_CHECKPOINTS_DONE)
        check(m, weir_item_done(atomic_load(&m->pipeline), item) == WEIR_OK, "an item was not acknowledged");
    weir_item_release(item);
}

static void commit(model *m, store *to)
{
    free(to->text);
    check(m, weir_pipeline_checkpoint(atomic_load(&m->pipeline), &to->text) == WEIR_OK, "no checkpoint");
    to->num_committed = to->num_values;
}

/* Takes results until the end, or until it is killed; acknowledges them in another order. */
static int consume_and_commit(model *m, store *to, uint64_t killed_at)
{
    enum { MAX_HELD = 5 };
    weir_item held[MAX_HELD];
    uint32_t num_held = 0, max_held = m->checkpoints == WEIR_CHECKPOINTS_DONE ? below(&m->tuning, MAX_HELD) : 0;
    weir_pipeline *pipeline = atomic_load(&m->pipeline);
    int status = WEIR_OK;
    for (uint64_t i = 0; i < killed_at && (status == WEIR_OK || status == WEIR_EPOCH); i++) {
        status = weir_pipeline_next(pipeline, &held[num_held], WEIR_FOREVER);
        num_held += status == WEIR_OK;
        while (num_held > (status == WEIR_OK ? max_held : 0)) {
            uint32_t chosen = below(&m->tuning, num_held);
            store_item(m, to, &held[chosen]);
            held[chosen] = held[--num_held];
        }
        m->epochs_seen += status == WEIR_EPOCH;
        if (one_in(&m->tuning, 6))
            commit(m, to);
    }
    for (uint32_t i = 0; i < num_held; i++)
        weir_item_release(&held[i]);
    return status;
}

/* Builds the model once more and runs it until its end, a failure, a stop or a kill. */
static int run_once_more(model *m, uint64_t seed, uint32_t run, store *to)
{
    bool is_reference = run == 0;
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->chance.state = mix(seed);
    m->tuning.state = mix(seed + run);
    m->is_resumed = true;
    m->checkpoints = one_in(&m->chance, 2) ? WEIR_CHECKPOINTS_DELIVERED : WEIR_CHECKPOINTS_DONE;
    m->resume = to->text;
    ledger_init(&m->ledger);
    pending_init(&m->pending);
    recorder_init(&m->recorder);
    weir_checkpoint *checkpoint = NULL;
    if (to->text)
        check(m, weir_checkpoint_read(to->text, &checkpoint, NULL) == WEIR_OK, "the checkpoint cannot be read");
    m->epochs_seen = checkpoint ? checkpoint->epoch : 0;
    weir_checkpoint_free(checkpoint);
    m->never_stops = is_reference;
    build_model(m);
    m->pending.thread = thread_start(complete_tasks, m);
    int status = consume_and_commit(m, to, is_reference ? UINT64_MAX : 1 + below(&m->tuning, ITEMS));
    bool is_killed = status == WEIR_OK || status == WEIR_EPOCH;
    if (status == WEIR_EOF || !is_killed)
        commit(m, to);
    check(m, status != WEIR_EOF || m->epochs_seen == m->epochs, "not every end of an epoch was told");
    to->num_values = to->num_committed;
    weir_pipeline_free(atomic_load(&m->pipeline));
    pending_end(&m->pending);
    trace_end(m);
    recorder_free(&m->recorder);
    ledger_close(&m->ledger);
    return status;
}

static int compare_values(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static void run_resumed_model(uint64_t seed)
{
    static model m;
    store all = { 0 }, resumed = { 0 };
    int status = WEIR_OK;
    atomic_store(&running_seed, seed);
    signal(SIGALRM, on_hang);
    alarm(SECONDS_TO_END);
    status = run_once_more(&m, seed, 0, &all);
    check(&m, status == WEIR_EOF, "the run without stops did not end");
    status = WEIR_OK;
    for (uint32_t run = 1; status != WEIR_EOF; run++)
        status = run_once_more(&m, seed, run, &resumed);
    if (all.values)
        qsort(all.values, all.num_values, sizeof *all.values, compare_values);
    if (resumed.values)
        qsort(resumed.values, resumed.num_values, sizeof *resumed.values, compare_values);
    check(&m, all.num_values == resumed.num_values, "resumed runs deliver more or fewer results");
    for (size_t i = 0; i < all.num_values; i++)
        check(&m, all.values[i] == resumed.values[i], "resumed runs deliver other results");
    free(all.values);
    free(all.text);
    free(resumed.values);
    free(resumed.text);
}

static long count_files(const char *folder)
{
    long count = 0;
    DIR *open = opendir(folder);
    while (open && readdir(open))
        count++;
    if (open)
        closedir(open);
    return count;
}

static void tell_what_is_held(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &pages, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    fprintf(stderr, "soak %ld %ld %ld\n", resident * (sysconf(_SC_PAGESIZE) / 1024), count_files("/proc/self/fd"),
            count_files("/proc/self/task"));
}

static void run_models(void (*run)(uint64_t), uint64_t default_runs)
{
    const char *seed = getenv("WEIR_SEED"), *runs = getenv("WEIR_RUNS");
    if (seed) {
        run(strtoull(seed, NULL, 10));
        return;
    }
    uint64_t first = (uint64_t)time(NULL) * 1000000;
    uint64_t num_runs = runs ? strtoull(runs, NULL, 10) : default_runs;
    print_message("WEIR_SEED=%llu and the %llu after it\n", (unsigned long long)first,
                  (unsigned long long)num_runs - 1);
    bool soaks = getenv("WEIR_SOAK");
    for (uint64_t i = 0; i < num_runs; i++) {
        run(first + i);
        if (soaks && i % 10 == 9)
            tell_what_is_held();
    }
}

TEST_CASE(whatever_happens_nothing_is_lost_and_it_ends)
{
    run_models(run_model, DEFAULT_RUNS);
}

TEST_CASE(after_kills_resumed_runs_deliver_each_result_once)
{
    run_models(run_resumed_model, DEFAULT_RUNS / 20);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
