/*
 * A model checker of our own kind: builds pipelines at random, lets everything happen to them that can, and checks what
 * must hold whatever happens:
 *
 *   - every item is accounted for, per stage and over the pipeline, and each payload is released exactly once;
 *   - order is kept where it is promised, and no item crosses the end of an epoch;
 *   - no queue is above its capacity, no stage runs more concurrent tasks than it had slots;
 *   - hooks pair; the laps add up to the account;
 *   - it ends: after a stop at any moment from any place, too.
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

#include "support.h"
#ifdef WEIR_TRACED
#include <weir/trace_file.h>

#include "trace_totals.h"
#endif

enum { MAX_STAGES = 24, MAX_SLOTS = 8, ITEMS = 120, SECONDS_TO_END = 60 };

#if defined(WEIR_TRACED) && (defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__))
enum { DEFAULT_RUNS = 40 };
#elif defined(WEIR_TRACED)
enum { DEFAULT_RUNS = 200 };
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
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
    uint64_t stops_at; /* number of the task that stops the pipeline; 0 = none */
} behaviour;

struct model {
    uint64_t seed;
    chance chance;
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

/* A value contains the epoch and the number within it: epoch × 2^32 + number. */
typedef struct source_worker {
    uint64_t made;
} source_worker;

typedef struct source_config {
    model *model;
    uint64_t count, end_status;
    atomic_uint *epoch;
} source_config;

static int source_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    source_worker *source = worker;
    const source_config *config = weir_task_config(task);
    if (source->made == config->count) {
        atomic_fetch_add(config->epoch, 1);
        return config->end_status ? weir_task_fail(task, WEIR_EIO, 0, "the source broke") : WEIR_EOF;
    }
    uint64_t value = ((uint64_t)atomic_load(config->epoch) << 32) + source->made++;
    ledger_fill(&config->model->ledger, out, value, (size_t)(value % 7));
    if (value % 3 == 0)
        out->label = "every third";
    return WEIR_OK;
}

static const weir_op source_op = {
    .name = "source",
    .config_size = sizeof(source_config),
    .worker_size = sizeof(source_worker),
    .run = source_run,
};

typedef struct stage_worker {
    const void *multiplied; /* the input of which pieces have been made */
    uint32_t pieces;
} stage_worker;

static bool happens(const behaviour *b, uint64_t seq, uint32_t one_in_, uint64_t salt)
{
    return one_in_ && mix(b->seed ^ mix(seq + salt * 1000003)) % one_in_ == 0;
}

static int multiply(stage_worker *worker, const behaviour *b, const weir_item *in, weir_item *out)
{
    if (worker->multiplied != in->data)
        *worker = (stage_worker){ .multiplied = in->data };
    ledger_fill(&b->model->ledger, out, item_value(in), 1);
    if (++worker->pieces < 3)
        return WEIR_MORE;
    worker->multiplied = NULL;
    return WEIR_OK;
}

static int decide(stage_worker *worker, const behaviour *b, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t seq = weir_task_seq(task);
    if (happens(b, seq, b->yields, 1))
        sched_yield();
    if (happens(b, seq, b->fails, 2))
        return weir_task_fail(task, WEIR_EDATA, 7, "as it was to be");
    if (happens(b, seq, b->skips, 3))
        return WEIR_SKIP;
    if (happens(b, seq, b->multiplies, 4))
        return multiply(worker, b, in, out);
    if (happens(b, seq, b->pends, 5)) {
        pending_add(&b->model->pending, task, in);
        return WEIR_PENDING;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static int stage_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const behaviour *b = weir_task_config(task);
    uint32_t at_once = atomic_fetch_add(b->running, 1) + 1;
    check(b->model, at_once <= b->most_slots, "more tasks at once than slots");
    uint64_t number = atomic_fetch_add(&b->model->tasks, 1) + 1;
    weir_pipeline *pipeline = atomic_load(&b->model->pipeline);
    if (number == b->stops_at && pipeline)
        weir_pipeline_stop(pipeline);
    int status = decide(worker, b, in, out, task);
    atomic_fetch_sub(b->running, 1);
    return status;
}

static const weir_op stage_op = {
    .makes = WEIR_TYPE_ANY, /* as its input */
    .name = "stage",
    .config_size = sizeof(behaviour),
    .worker_size = sizeof(stage_worker),
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
        uint64_t kind = mix(m->seed ^ weir_task_seq(task)) % 8;
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
    return (int)(item->seq % 3);
}

/* ---- building ----------------------------------------------------------------------------------------------- */

static weir_stage_options random_options(model *m, weir_task_hook *hook)
{
    weir_stage_options options = {
        .concurrency = 1 + below(&m->chance, MAX_SLOTS),
        .queue_items = 1 + below(&m->chance, 5),
        .queue_bytes = one_in(&m->chance, 4) ? 1 + below(&m->chance, 20) : 0,
        .threads = one_in(&m->chance, 6) ? 1 + below(&m->chance, 2) : 0,
        .output_order = one_in(&m->chance, 2) ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION,
    };
    if (options.threads > options.concurrency)
        options.threads = options.concurrency;
    if (one_in(&m->chance, 5)) {
        *hook = (weir_task_hook){ .self = m, .state_size = sizeof(uint64_t), .begin = hook_begin, .end = hook_end };
        options.task_hooks = hook;
        options.num_task_hooks = 1;
    }
    if (one_in(&m->chance, 12))
        options.max_failures = (weir_max_failures){ .kind = WEIR_FAILURES_COUNT, .count = below(&m->chance, 4) };
    else if (one_in(&m->chance, 12))
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
        .fails = rarely(m, 4),
        .skips = rarely(m, 4),
        .pends = m->batched ? 0 : rarely(m, 5),
        .multiplies = m->batched ? 0 : rarely(m, 6),
        .yields = rarely(m, 3),
        .most_slots = MAX_SLOTS,
        .running = &m->running[m->num_stages],
        .stops_at = one_in(&m->chance, 20) ? 1 + below(&m->chance, ITEMS) : 0,
    };
    snprintf(m->names[m->num_stages], sizeof m->names[0], "stage%u", m->num_stages);
    options.name = m->names[m->num_stages++];
    bool has_one_slot = options.concurrency == 1 && !m->meddled;
    m->keeps_order &= has_one_slot || options.output_order == WEIR_ORDER_INPUT;
    weir_builder_pipe(m->builder, &stage_op, b, &options);
}

static void add_route(model *m)
{
    weir_builder_route(m->builder, &(weir_route_config){ .pick = pick, .num_branches = 3 },
                       &(weir_stage_options){ .concurrency = 1 + below(&m->chance, 3) });
    bool keeps_order = m->keeps_order, restores_order = one_in(&m->chance, 2);
    for (int branch = 0; branch < 3; branch++) {
        weir_builder_branch(m->builder);
        for (uint32_t stages = below(&m->chance, 3); stages > 0; stages--)
            add_stage(m);
    }
    weir_builder_join(m->builder, restores_order ? &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT,
                                                                          .queue_items = 1 + below(&m->chance, 3) }
                                                 : NULL);
    m->keeps_order = keeps_order && restores_order;
    m->restores_order |= restores_order;
}

static void add_batches(model *m)
{
    weir_aggregate_config config = { .num_items = 1 + below(&m->chance, 7), .drop_last = one_in(&m->chance, 3) };
    weir_builder_pipe(m->builder, &weir_aggregate, &config, NULL);
    m->batched = true;
    if (one_in(&m->chance, 2))
        add_stage(m);
    if (one_in(&m->chance, 3))
        return;
    weir_builder_pipe(m->builder, &weir_disaggregate, NULL, NULL);
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

static void add_sources(model *m, atomic_uint *epochs)
{
    m->num_sources = one_in(&m->chance, 4) ? 2 + below(&m->chance, 2) : 1;
    m->epochs = one_in(&m->chance, 4) ? 1 + below(&m->chance, 4) : 0;
    for (uint32_t i = 0; i < m->num_sources; i++) {
        source_config config = { .model = m, .count = below(&m->chance, ITEMS), .epoch = &epochs[i] };
        config.end_status = one_in(&m->chance, 40);
        weir_stage_options options = { .epochs = m->epochs,
                                       .threads = one_in(&m->chance, 3),
                                       .queue_items = 1 + below(&m->chance, 4) };
        weir_builder_source(m->builder, &source_op, &config, &options);
        if (m->num_sources > 1 && one_in(&m->chance, 2))
            add_stage(m);
    }
    static const uint32_t weights[] = { 3, 1, 2 };
    weir_merge_config merge = { .order = (weir_merge_order)below(&m->chance, 3) };
    if (merge.order == WEIR_MERGE_WEIGHTED) {
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

/* One lap: a thread that takes a task just before the end of a lap, and begins it just after it, has waited for it in
   the trace, but was busy in the first lap. */
static void trace_begin(model *m, weir_pipeline_options *options)
{
    weir_error error = { 0 };
    snprintf(trace_path, sizeof trace_path, "/tmp/weir-random-%d.json", (int)getpid());
    weir_trace_options wanted = { .overwrite = true, .no_system = true };
    check(m, weir_trace_open(trace_path, &wanted, &trace_file, &error) == WEIR_OK, error.message);
    m->observers[m->num_observers++] = weir_trace_observer(trace_file);
    options->stats_interval_ns = WEIR_FOREVER;
}

static void check_stage(model *m, const trace_totals *totals, const stage_record *record)
{
    const weir_task_metrics *lap = &record->lap.metrics;
    const trace_total *traced = trace_totals_of(totals, record->name);
    bool times = traced->busy_ns == lap->busy_ns && traced->wait_in_ns == lap->wait_in_ns &&
                 traced->wait_thread_ns == lap->wait_thread_ns && traced->wait_turn_ns == lap->wait_turn_ns &&
                 traced->wait_out_ns == lap->wait_out_ns;
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
    const weir_queue_metrics *lap = &record->lap.metrics;
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

static void build_model(model *m, atomic_uint *epochs)
{
    weir_error error;
    weir_pipeline *pipeline;
    weir_pipeline_options options = {
        .threads = 1 + below(&m->chance, 4),
        .stats_interval_ns = one_in(&m->chance, 3) ? WEIR_MILLISECOND : WEIR_FOREVER,
        .observers = m->observers,
        .stall_warning_ns = WEIR_FOREVER,
    };
    m->observers[m->num_observers++] = m->recorder.observer;
    trace_begin(m, &options);
    options.num_observers = m->num_observers;
    m->builder = weir_builder_new();
    m->keeps_order = true;
    add_sources(m, epochs);
    for (uint32_t things = below(&m->chance, 6); things > 0; things--)
        add_something(m);
    weir_builder_sink(m->builder, &(weir_stage_options){ .queue_items = below(&m->chance, 5) });
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
    check(m, m->epochs == 0 || value >> 32 == m->epochs_seen, "an item crossed the end of an epoch");
    weir_error error;
    bool in_order = !m->keeps_order || m->delivered == 0 || value >= m->last_value;
    bool failed = !in_order && m->restores_order && weir_pipeline_error(atomic_load(&m->pipeline), &error) != WEIR_OK;
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
    uint64_t gone = account.handed_on + account.skipped + account.failed + account.dropped + account.merged;
    check(m, account.taken + account.created == gone + account.in_flight, "the account does not add up");
    check(m, !ended || account.in_flight == 0, "something is still in flight after the end");
    check(m, stage || account.handed_on == m->delivered, "the account does not tell what was delivered");
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
        check(m, record->lap.metrics.max_depth <= record->lap.capacity, "a queue was above its capacity");
        check(m,
              record->put_count == record->lap.metrics.num_put && record->get_count == record->lap.metrics.num_items,
              "a queue's histograms do not tell its items");
    }
    for (uint64_t i = 0; i < m->recorder.num_stage_records; i++) {
        const stage_record *record = &m->recorder.stages[i];
        check(m, record->histogram_count == record->lap.metrics.num_tasks - record->lap.metrics.num_failures,
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
    atomic_uint epochs[3] = { 0 };
    m.meddled = one_in(&m.chance, 3);
    build_model(&m, epochs);
    m.pending.thread = thread_start(complete_tasks, &m);
    pthread_t meddler = m.meddled ? thread_start(meddle, &m) : m.pending.thread;

    bool leaves_early = one_in(&m.chance, 5);
    int status = consume(&m, leaves_early ? below(&m.chance, ITEMS) : UINT64_MAX);
    if (one_in(&m.chance, 8))
        weir_pipeline_stop(atomic_load(&m.pipeline));
    if (m.meddled)
        thread_join(meddler);
    bool at_end = status == WEIR_EOF;
    check_accounts(&m, at_end);
    check(&m, !at_end || m.epochs_seen == m.epochs, "not every end of an epoch was told");
    weir_pipeline_free(atomic_load(&m.pipeline));
    pending_end(&m.pending);
    check(&m, atomic_load(&m.hooks_begun) == atomic_load(&m.hooks_ended), "hooks do not pair");
    check_laps(&m);
    trace_end(&m);
    recorder_free(&m.recorder);
    ledger_close(&m.ledger);
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

static void whatever_happens_nothing_is_lost_and_it_ends(void **state)
{
    (void)state;
    const char *seed = getenv("WEIR_SEED"), *runs = getenv("WEIR_RUNS");
    if (seed) {
        run_model(strtoull(seed, NULL, 10));
        return;
    }
    uint64_t first = (uint64_t)time(NULL) * 1000000;
    uint64_t num_runs = runs ? strtoull(runs, NULL, 10) : DEFAULT_RUNS;
    print_message("WEIR_SEED=%llu and the %llu after it\n", (unsigned long long)first,
                  (unsigned long long)num_runs - 1);
    bool soaks = getenv("WEIR_SOAK");
    for (uint64_t i = 0; i < num_runs; i++) {
        run_model(first + i);
        if (soaks && i % 10 == 9)
            tell_what_is_held();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(whatever_happens_nothing_is_lost_and_it_ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
