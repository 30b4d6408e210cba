/*
 * Every allocation, thread, lock, condition variable and event loop fails, once or from then on: when the pipeline is
 * built, started and run. An error comes back, or the run ends with exact accounts; nothing leaks, nothing hangs, and
 * nothing is used after it was freed.
 *
 * The engine is compiled into this program with other names for malloc() and the like (see CMakeLists.txt), which are
 * defined here: they count, and the chosen one fails.
 */
#include "tests/support.h"

#include <malloc.h>
#include <sched.h>
#include <uv.h>

/* ---- what may fail -------------------------------------------------------------------------------------------- */

static struct {
    atomic_long calls;   /* of anything that may fail */
    long failing_call;   /* 1 = the first one; 0 = none */
    bool stays;          /* those after it fail, too */
    uint64_t one_in;     /* …: this share of all; 0 = none */
    atomic_ullong state; /* of the random numbers for that */
    atomic_long failed;
    atomic_long blocks, threads, locks, loops; /* that are there */
} faults;

static bool one_fails(void)
{
    long call = atomic_fetch_add(&faults.calls, 1) + 1;
    bool chosen = call == faults.failing_call || (faults.stays && call > faults.failing_call);
    if (faults.one_in) {
        uint64_t random = atomic_fetch_add(&faults.state, UINT64_C(0x9e3779b97f4a7c15));
        random = (random ^ (random >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        chosen = (random >> 32) % faults.one_in == 0;
    }
    if (chosen)
        atomic_fetch_add(&faults.failed, 1);
    return chosen;
}

static void *count_block(void *block)
{
    if (block)
        atomic_fetch_add(&faults.blocks, 1);
    return block;
}

static int count_made(atomic_long *made, int code)
{
    if (code == 0)
        atomic_fetch_add(made, 1);
    return code;
}

void *fault_malloc(size_t size);
void *fault_calloc(size_t count, size_t size);
void *fault_realloc(void *block, size_t size);
char *fault_strdup(const char *text);
int fault_asprintf(char **text, const char *format, ...) WEIR_PRINTF(2, 3);
FILE *fault_open_memstream(char **text, size_t *size);
void fault_free(void *block);
int fault_thread_create(uv_thread_t *thread, uv_thread_cb main, void *argument);
int fault_thread_join(uv_thread_t *thread);
int fault_mutex_init(uv_mutex_t *mutex);
void fault_mutex_destroy(uv_mutex_t *mutex);
int fault_cond_init(uv_cond_t *condition);
void fault_cond_destroy(uv_cond_t *condition);
int fault_loop_init(uv_loop_t *loop);
int fault_loop_close(uv_loop_t *loop);
int fault_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb on_wake);

void *fault_malloc(size_t size)
{
    return one_fails() ? NULL : count_block(malloc(size));
}

void *fault_calloc(size_t count, size_t size)
{
    return one_fails() ? NULL : count_block(calloc(count, size));
}

void *fault_realloc(void *block, size_t size)
{
    if (one_fails())
        return NULL;
    return block ? realloc(block, size) : count_block(malloc(size));
}

char *fault_strdup(const char *text)
{
    return one_fails() ? NULL : count_block(strdup(text));
}

int fault_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    *text = NULL;
    if (one_fails())
        return -1;
    va_start(arguments, format);
    int length = vasprintf(text, format, arguments);
    va_end(arguments);
    count_block(*text);
    return length;
}

FILE *fault_open_memstream(char **text, size_t *size)
{
    FILE *stream = one_fails() ? NULL : open_memstream(text, size);
    count_block(stream); /* its text, which is freed later */
    return stream;
}

/* What was freed is no longer what it was: who still uses it is noticed without a sanitizer, too. */
void fault_free(void *block)
{
    if (block) {
        atomic_fetch_sub(&faults.blocks, 1);
        memset(block, 0xa5, malloc_usable_size(block));
    }
    free(block);
}

int fault_thread_create(uv_thread_t *thread, uv_thread_cb main, void *argument)
{
    return one_fails() ? UV_EAGAIN : count_made(&faults.threads, uv_thread_create(thread, main, argument));
}

int fault_thread_join(uv_thread_t *thread)
{
    atomic_fetch_sub(&faults.threads, 1);
    return uv_thread_join(thread);
}

int fault_mutex_init(uv_mutex_t *mutex)
{
    return one_fails() ? UV_ENOMEM : count_made(&faults.locks, uv_mutex_init(mutex));
}

void fault_mutex_destroy(uv_mutex_t *mutex)
{
    atomic_fetch_sub(&faults.locks, 1);
    uv_mutex_destroy(mutex);
}

int fault_cond_init(uv_cond_t *condition)
{
    return one_fails() ? UV_ENOMEM : count_made(&faults.locks, uv_cond_init(condition));
}

void fault_cond_destroy(uv_cond_t *condition)
{
    atomic_fetch_sub(&faults.locks, 1);
    uv_cond_destroy(condition);
}

int fault_loop_init(uv_loop_t *loop)
{
    return one_fails() ? UV_EMFILE : count_made(&faults.loops, uv_loop_init(loop));
}

int fault_loop_close(uv_loop_t *loop)
{
    int code = uv_loop_close(loop);
    REQUIRE(code == 0); /* every handle has been closed */
    atomic_fetch_sub(&faults.loops, 1);
    return code;
}

int fault_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb on_wake)
{
    return one_fails() ? UV_EMFILE : uv_async_init(loop, async, on_wake);
}

/* ---- pipelines -------------------------------------------------------------------------------------------------- */

static test_ledger ledger;

typedef struct named_config {
    char *name; /* a copy of its own */
    test_pending *pending;
} named_config;

static int copy_name(void *config, weir_error *error)
{
    named_config *named = config;
    (void)error;
    named->name = strdup(named->name);
    return named->name ? WEIR_OK : WEIR_ENOMEM;
}

static void free_name(void *config)
{
    free(((named_config *)config)->name);
}

/* By the item's number: fails, gets another label, or is pending. */
static int do_anything(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const named_config *config = weir_task_config(task);
    (void)worker;
    switch (item_value(in) % 4) {
    case 0: return weir_task_fail(task, WEIR_EDATA, 0, "%s cannot read it", config->name);
    case 1: out->label = config->name; break;
    case 2: pending_add(config->pending, task, in); return WEIR_PENDING;
    default: break;
    }
    if (weir_task_event(task, "seen", config->name) == WEIR_ENOMEM)
        return WEIR_ENOMEM;
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op anything_op = {
    .name = "anything",
    .config_size = sizeof(named_config),
    .config_init = copy_name,
    .config_free = free_name,
    .worker_size = 64,
    .run = do_anything,
};

static int check_zeros(void *self, void *hook_state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)task;
    (void)in;
    REQUIRE(*(uint64_t *)hook_state == 0);
    *(uint64_t *)hook_state = 1;
    return WEIR_OK;
}

static int greet_stage(void *self, const char *stage, weir_error *error)
{
    (void)self;
    (void)stage;
    (void)error;
    return WEIR_OK;
}

static void check_error(int status, const weir_error *error)
{
    assert_true(status == WEIR_ENOMEM || status == WEIR_ESYSTEM);
    assert_int_equal(error->status, status);
    assert_true(strlen(error->message) > 0);
    assert_true(status != WEIR_ESYSTEM || error->library_code < 0);
}

/* NULL = it was not to be built. */
static weir_pipeline *try_build(weir_builder *builder, const weir_pipeline_options *options)
{
    weir_pipeline *pipeline = (weir_pipeline *)&ledger;
    weir_error error = { 0 };
    int status = weir_builder_build(builder, options, &pipeline, &error);
    if (status == WEIR_OK)
        return pipeline;
    assert_null(pipeline);
    check_error(status, &error);
    return NULL;
}

/* Takes everything, including ends of epochs; the source fails if there is no memory for a label. */
static void drain_and_check(weir_pipeline *pipeline)
{
    weir_item item;
    uint64_t delivered = 0;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        delivered += status == WEIR_OK;
        assert_true(status == WEIR_EPOCH || item.label); /* without one it would have failed */
        weir_item_release(&item);
    }
    assert_true(status == WEIR_EOF || status == WEIR_EFAILED || status == WEIR_ESTOPPED);
    weir_account account = account_of(pipeline, NULL);
    assert_account_is_exact(&account);
    assert_int_equal(account.passed_on, delivered);
    weir_pipeline_free(pipeline);
}

/* A line with everything that is copied, two pools, an observer, failures, labels, pending tasks. */
static void run_line(void)
{
    static const weir_task_hook task_hook = { .state_size = sizeof(uint64_t), .begin = check_zeros };
    static const weir_stage_hook stage_hook = { .start = greet_stage, .end = greet_stage };
    static test_pending pending;
    test_recorder recorder;
    recorder_init(&recorder);
    recorder.may_lose_laps = faults.stays;
    pending_init(&pending);
    pending.label = "from elsewhere";
    pending_start(&pending);
    test_numbers numbers = { .ledger = &ledger, .count = 12, .labelled = true };
    named_config config = { .name = "somebody", .pending = &pending };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, NULL);
    weir_builder_pipe(builder, &anything_op, &config, sizeof(named_config),
                      &(weir_stage_options){ .concurrency = 3,
                                             .threads = 2,
                                             .output_order = WEIR_ORDER_INPUT,
                                             .stage_hooks = &stage_hook,
                                             .num_stage_hooks = 1,
                                             .task_hooks = &task_hook,
                                             .num_task_hooks = 1 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = try_build(builder, &(weir_pipeline_options){ .threads = 2,
                                                                           .observers = &recorder.observer,
                                                                           .num_observers = 1,
                                                                           .task_hooks = &task_hook,
                                                                           .num_task_hooks = 1,
                                                                           .stats_interval_ns = WEIR_MILLISECOND });
    if (pipeline) {
        if (!faults.stays)
            counter_await(&recorder.laps, 1); /* so that the run is not over and holds items when it is inspected */
        weir_account before = account_of(pipeline, NULL);
        assert_account_is_exact(&before);
        drain_and_check(pipeline);
        assert_true(recorder.ended);
        uint64_t reported = recorder.num_failures + recorder_dropped_failures(&recorder);
        if (!faults.stays) /* else laps may be lost, which the log says */
            assert_int_equal(reported, recorder_stage_total(&recorder, "0:1:anything[3]").metrics.task.num_failures +
                                           recorder_stage_total(&recorder, "0:2:pass").metrics.task.num_failures);
    }
    pending_end(&pending);
    recorder_free(&recorder);
}

static int by_parity(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

/* Two sources of two epochs each, merged round robin, batched, taken apart, routed and joined. */
static weir_builder *describe_graph(const test_numbers *numbers)
{
    static const uint32_t weights[] = { 2, 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, numbers, 0, &(weir_stage_options){ .epochs = 2 });
    weir_builder_source(builder, &numbers_op, numbers, 0, &(weir_stage_options){ .epochs = 2 });
    weir_builder_merge(
        builder, &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED, .weights = weights, .num_weights = 2 }, NULL);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
    weir_pipe_disaggregate(builder, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_route(builder, &(weir_route_config){ .pick = by_parity, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    return builder;
}

static void run_graph(void)
{
    test_numbers numbers = { .ledger = &ledger, .count = 7, .labelled = true };
    weir_pipeline *pipeline = try_build(describe_graph(&numbers), &(weir_pipeline_options){ .threads = 2 });
    if (pipeline)
        drain_and_check(pipeline);
}

/* A copy of a description that is gone. */
static void run_copy(void)
{
    test_numbers numbers = { .ledger = &ledger, .count = 7, .labelled = true };
    weir_builder *builder = describe_graph(&numbers), *copy = weir_builder_copy(builder);
    weir_builder_free(builder);
    weir_pipeline *pipeline = try_build(copy, &(weir_pipeline_options){ .threads = 2 });
    if (pipeline)
        drain_and_check(pipeline);
}

static void ignore_result(void *self, const weir_profile_result *result)
{
    (void)self;
    assert_true(result->name && result->op);
}

static void run_profile(void)
{
    static const uint32_t slots[] = { 1, 2 };
    test_numbers numbers = { .ledger = &ledger, .count = 7, .labelled = true };
    weir_builder *builder = describe_graph(&numbers);
    weir_error error = { 0 };
    weir_profile_options options = { .items = 3, .concurrencies = slots, .num_concurrencies = 2 };
    int status = weir_profile(builder, &options, ignore_result, NULL, &error);
    assert_int_equal(status, builder ? error.status : WEIR_EINVAL);
    assert_true(status == WEIR_OK || atomic_load(&faults.failed) > 0);
    weir_builder_free(builder);
}

static int wait_for_cancel(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_PENDING;
}

static void complete_cancelled(void *worker, weir_task *task)
{
    weir_item out = { .label = "too late" };
    (void)worker;
    ledger_fill(&ledger, &out, 0, 0);
    weir_task_complete(task, WEIR_OK, &out);
}

/* Stopped with tasks pending, results waiting and a stage starting. */
static void run_to_a_stop(void)
{
    static const weir_op op = { .name = "pending", .run = wait_for_cancel, .cancel = complete_cancelled };
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX, .labelled = true };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 2, .threads = 1 });
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = try_build(builder, &(weir_pipeline_options){ .threads = 1 });
    if (!pipeline)
        return;
    weir_pipeline_stop(pipeline);
    drain_and_check(pipeline);
}

static void ok_or_no_memory(int status)
{
    assert_true(status == WEIR_OK || status == WEIR_ENOMEM);
}

static void look_into(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    int status = weir_pipeline_snapshot(pipeline, &snapshot);
    ok_or_no_memory(status);
    assert_true((status == WEIR_OK) == (snapshot != NULL));
    weir_snapshot_free(snapshot);
}

/* Is held at a gate, inspected and changed. */
static void run_with_questions(void)
{
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 9, .labelled = true };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, NULL);
    weir_builder_pipe(builder, &gated_op, &gate, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = try_build(builder, &(weir_pipeline_options){ .threads = 2 });
    if (!pipeline)
        return;
    look_into(pipeline);
    ok_or_no_memory(weir_pipeline_set_concurrency(pipeline, "gated", 5));
    ok_or_no_memory(weir_pipeline_event(pipeline, "asked", "test", "something"));
    ok_or_no_memory(weir_pipeline_mark_phase(pipeline, "train"));
    ok_or_no_memory(weir_pipeline_set_concurrency(pipeline, "gated", 1));
    ok_or_no_memory(weir_pipeline_set_concurrency(pipeline, "gated", 9));
    look_into(pipeline);
    gate_open(&gate);
    drain_and_check(pipeline);
}

/* Two epochs of batches, taken apart again: stopped after some items, and resumed from the checkpoint. */
static void run_with_checkpoints(void)
{
    char *text = NULL;
    for (int run = 0; run < 2; run++) {
        test_numbers numbers = { .ledger = &ledger, .count = 7, .labelled = true };
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = 2 });
        weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 3 }, NULL);
        weir_pipe_disaggregate(builder, &(weir_stage_options){ .concurrency = 2 });
        weir_builder_sink(builder, NULL);
        const char *resume = text;
        weir_pipeline *pipeline =
            try_build(builder, &(weir_pipeline_options){ .threads = 2,
                                                         .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                                         .resume = &resume,
                                                         .num_resume = resume != NULL });
        if (!pipeline)
            break;
        weir_item item;
        for (int i = 0; run == 0 && i < 4 && weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++)
            weir_item_release(&item);
        if (run == 0) {
            ok_or_no_memory(weir_pipeline_checkpoint(pipeline, &text));
            weir_pipeline_free(pipeline);
        } else {
            drain_and_check(pipeline);
        }
    }
    fault_free(text);
}

/* ---- failing ---------------------------------------------------------------------------------------------------- */

/* Runs it with this call failing, and those after it if that stays so, or one in that many. Returns whether any call
   failed. */
static bool run_with_fault(void (*run)(void), long failing_call, bool stays, uint64_t one_in)
{
    atomic_store(&faults.calls, 0);
    atomic_store(&faults.failed, 0);
    faults.failing_call = failing_call;
    faults.stays = stays;
    faults.one_in = one_in;
    ledger_init(&ledger);
    run();
    ledger_close(&ledger);
    assert_int_equal(atomic_load(&faults.blocks), 0);
    assert_int_equal(atomic_load(&faults.threads), 0);
    assert_int_equal(atomic_load(&faults.locks), 0);
    assert_int_equal(atomic_load(&faults.loops), 0);
    return atomic_load(&faults.failed) > 0;
}

/* The first call fails, then the second one, and so on until a run has fewer. */
static void fail_each_call(void (*run)(void))
{
    long failing_call = 1;
    while (run_with_fault(run, failing_call, false, 0))
        failing_call++;
    assert_true(failing_call > 50); /* else the engine does not call the functions above */
}

/* All calls fail from the first one on, then from the second one on, and so on. */
static void fail_from_each_call(void (*run)(void))
{
    long failing_call = 1;
    while (run_with_fault(run, failing_call, true, 0))
        failing_call++;
    assert_true(failing_call > 50);
}

static void fail_at_random(void (*run)(void))
{
    for (uint64_t one_in = 2; one_in < 200; one_in += 1 + one_in / 10) {
        atomic_store(&faults.state, one_in * UINT64_C(0x2545f4914f6cdd1d));
        run_with_fault(run, 0, false, one_in);
    }
}

TEST_CASE(a_line_bears_every_fault)
{
    fail_each_call(run_line);
    fail_from_each_call(run_line);
    fail_at_random(run_line);
}

TEST_CASE(a_graph_bears_every_fault)
{
    fail_each_call(run_graph);
    fail_from_each_call(run_graph);
    fail_at_random(run_graph);
}

TEST_CASE(a_copy_bears_every_fault)
{
    fail_each_call(run_copy);
    fail_from_each_call(run_copy);
    fail_at_random(run_copy);
}

TEST_CASE(a_profile_bears_every_fault)
{
    fail_each_call(run_profile);
    fail_at_random(run_profile);
}

TEST_CASE(a_stop_bears_every_fault)
{
    fail_each_call(run_to_a_stop);
    fail_from_each_call(run_to_a_stop);
    fail_at_random(run_to_a_stop);
}

TEST_CASE(questions_bear_every_fault)
{
    fail_each_call(run_with_questions);
    fail_from_each_call(run_with_questions);
    fail_at_random(run_with_questions);
}

TEST_CASE(checkpoints_bear_every_fault)
{
    fail_each_call(run_with_checkpoints);
    fail_from_each_call(run_with_checkpoints);
    fail_at_random(run_with_checkpoints);
}

TEST_CASE(without_a_fault_everything_is_delivered)
{
    static void (*const runs[])(void) = {
        run_line, run_graph, run_copy, run_profile, run_to_a_stop, run_with_questions, run_with_checkpoints
    };
    for (size_t i = 0; i < LENGTH(runs); i++)
        assert_false(run_with_fault(runs[i], 0, false, 0));
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
