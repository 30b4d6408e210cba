/* Task hooks and stage hooks: they pair, nest, see how it ended, and may fail. */
#include "tests/support.h"

#include <inttypes.h>
#include <sched.h>

static test_ledger ledger;

static weir_pipeline_options one_thread = { .threads = 1 };

/* ---- a hook that checks that it pairs ------------------------------------------------------------------------ */

static struct {
    pthread_mutex_t lock;
    char text[4096];
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void note(char letter)
{
    pthread_mutex_lock(&trace.lock);
    size_t length = strlen(trace.text);
    if (length < sizeof trace.text - 1) {
        trace.text[length] = letter;
        trace.text[length + 1] = '\0';
    }
    pthread_mutex_unlock(&trace.lock);
}

typedef struct pairing_hook {
    char begin_letter, end_letter;
    int begin_status, end_status;
    uint64_t failing_seq; /* the item at which it answers so; UINT64_MAX = all */
    bool in_order;        /* it sees the items one after the other */
    uint64_t next_seq;
    test_counter begun, ended;
    atomic_int last_status; /* passed to the end hook */
} pairing_hook;

typedef struct pairing_state {
    _Alignas(max_align_t) pairing_hook *hook; /* of this task; NULL before begin */
    uint64_t seq;
    char label[32];
} pairing_state;

static bool answers(const pairing_hook *hook, uint64_t seq)
{
    return hook->failing_seq == UINT64_MAX || hook->failing_seq == seq;
}

static int pairing_begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    pairing_hook *hook = self;
    pairing_state *own = state;
    REQUIRE((uintptr_t)own % _Alignof(max_align_t) == 0);
    REQUIRE(!own->hook && own->seq == 0 && !own->label[0]); /* zeroed for each task */
    REQUIRE(in->seq == weir_task_seq(task) && in->label && strcmp(in->label, weir_task_label(task)) == 0);
    REQUIRE(!hook->in_order || in->seq == hook->next_seq++);
    note(hook->begin_letter);
    if (hook->begin_status && answers(hook, in->seq))
        return hook->begin_status;
    *own = (pairing_state){ .hook = hook, .seq = in->seq };
    snprintf(own->label, sizeof own->label, "%s", in->label);
    counter_add(&hook->begun, 1);
    return WEIR_OK;
}

static int pairing_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    pairing_hook *hook = self;
    pairing_state *own = state;
    REQUIRE(own->hook == hook); /* begun, not ended, and of this task */
    own->hook = NULL;
    REQUIRE(own->seq == weir_task_seq(task) && strcmp(own->label, weir_task_label(task)) == 0);
    REQUIRE((end->status < 0) == (end->error != NULL));
    REQUIRE((end->status == WEIR_OK) == (end->out != NULL));
    REQUIRE(end->run_ns >= 0 && end->start_ns <= weir_clock_ns());
    note(hook->end_letter);
    counter_add(&hook->ended, 1);
    hook->last_status = end->status;
    return hook->end_status && answers(hook, own->seq) ? hook->end_status : WEIR_OK;
}

static weir_task_hook hook_of(pairing_hook *hook, char begin_letter, char end_letter)
{
    counter_init(&hook->begun);
    counter_init(&hook->ended);
    hook->begin_letter = begin_letter;
    hook->end_letter = end_letter;
    trace.text[0] = '\0';
    return (weir_task_hook){
        .self = hook,
        .state_size = sizeof(pairing_state),
        .begin = pairing_begin,
        .end = pairing_end,
    };
}

static void assert_paired(pairing_hook *hook, int64_t times)
{
    assert_int_equal(counter_value(&hook->begun), times);
    assert_int_equal(counter_value(&hook->ended), times);
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static int noted_pass(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    note('x');
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op noted_op = { .name = "noted", .run = noted_pass };

/* By the item's number: fails, is skipped, becomes two results, or is passed on. */
static int do_anything(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *chunks = worker;
    switch (item_value(in) % 4) {
    case 0: return weir_task_fail(task, WEIR_EDATA, 5, "damaged");
    case 1: return WEIR_SKIP;
    case 2:
        if (++*chunks == 1) {
            ledger_fill(&ledger, out, item_value(in), 0);
            return WEIR_MORE;
        }
        *chunks = 0;
        return WEIR_SKIP;
    default: weir_item_move(out, in); return WEIR_OK;
    }
}

static const weir_op anything_op = { .name = "anything", .worker_size = sizeof(uint64_t), .run = do_anything };

/* One stage with these hooks. */
static weir_pipeline *build_hooked(const test_numbers *numbers, const weir_op *op, const void *config,
                                   weir_task_hook *hooks, size_t num_hooks, const weir_pipeline_options *options)
{
    ledger_init(&ledger);
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, op, config, op->config_size,
                      &(weir_stage_options){ .task_hooks = hooks, .num_task_hooks = num_hooks });
    weir_builder_sink(builder, NULL);
    return build(builder, options);
}

static void free_and_close(weir_pipeline *pipeline)
{
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- nesting and pairing ------------------------------------------------------------------------------------ */

TEST_CASE(hooks_nest_in_the_order_given_the_pipelines_outside)
{
    pairing_hook p = { 0 }, q = { 0 }, a = { 0 }, b = { 0 };
    weir_task_hook of_pipeline[] = { hook_of(&p, 'P', 'p'), hook_of(&q, 'Q', 'q') };
    weir_task_hook of_stage[] = { hook_of(&a, 'A', 'a'), hook_of(&b, 'B', 'b') };
    test_numbers numbers = { .ledger = &ledger, .count = 3, .labelled = true };
    weir_pipeline *pipeline =
        build_hooked(&numbers, &noted_op, NULL, of_stage, 2,
                     &(weir_pipeline_options){ .threads = 1, .task_hooks = of_pipeline, .num_task_hooks = 2 });
    assert_int_equal(drain_all(pipeline), 3);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "PQABxbaqpPQABxbaqpPQABxbaqp");
}

TEST_CASE(the_pipelines_hooks_run_around_every_stage_but_not_the_source)
{
    pairing_hook p = { 0 };
    weir_task_hook hook = hook_of(&p, 'P', 'p');
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 2, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &noted_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &noted_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){ .threads = 1, .task_hooks = &hook, .num_task_hooks = 1 });
    assert_int_equal(drain_all(pipeline), 2);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "PxpPxpPxpPxp");
}

TEST_CASE(hooks_pair_whatever_the_result)
{
    for (uint32_t slots = 1; slots <= 4; slots += 3)
        for (weir_order order = WEIR_ORDER_COMPLETION; order <= WEIR_ORDER_INPUT; order++) {
            pairing_hook a = { .in_order = slots == 1 }, b = { .in_order = slots == 1 };
            weir_task_hook hooks[] = { hook_of(&a, 'A', 'a'), hook_of(&b, 'B', 'b') };
            ledger_init(&ledger);
            test_numbers numbers = { .ledger = &ledger, .count = 400, .labelled = true };
            weir_builder *builder = builder_with(&numbers);
            weir_builder_pipe(builder, &anything_op, NULL, 0,
                              &(weir_stage_options){ .concurrency = slots,
                                                     .threads = slots,
                                                     .output_order = order,
                                                     .task_hooks = hooks,
                                                     .num_task_hooks = 2 });
            weir_builder_sink(builder, NULL);
            weir_pipeline *pipeline = build(builder, &one_thread);
            assert_int_equal(drain_all(pipeline), 200);
            free_and_close(pipeline);
            assert_paired(&a, 400);
            assert_paired(&b, 400);
        }
}

TEST_CASE(hooks_pair_around_pending_tasks)
{
    test_pending pending = PENDING;
    pairing_hook a = { 0 };
    weir_task_hook hook = hook_of(&a, 'A', 'a');
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 200, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pending_op, &pending, 0,
                      &(weir_stage_options){ .concurrency = 16, .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    pending_await(&pending, 16);
    assert_int_equal(counter_value(&a.begun), 16);
    assert_int_equal(counter_value(&a.ended), 0); /* not before the result is there */
    pending_start(&pending);
    assert_int_equal(drain_all(pipeline), 200);
    pending_end(&pending);
    free_and_close(pipeline);
    assert_paired(&a, 200);
}

TEST_CASE(a_hook_may_have_one_end_only)
{
    pairing_hook a = { 0 }, b = { 0 };
    weir_task_hook hooks[] = { hook_of(&a, 'A', 'a'), hook_of(&b, 'B', 'b'), { 0 } };
    hooks[0].end = NULL;
    hooks[1].begin = NULL;
    hooks[1].end = NULL;
    test_numbers numbers = { .ledger = &ledger, .count = 2, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &noted_op, NULL, hooks, 3, &one_thread);
    assert_int_equal(drain_all(pipeline), 2);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "AxAx");
}

/* ---- stop --------------------------------------------------------------------------------------------------- */

static int wait_for_stop(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    test_counter *inside = (test_counter *)weir_task_config(task);
    (void)worker;
    (void)in;
    (void)out;
    counter_add(inside, 1);
    while (!weir_task_should_stop(task))
        ;
    return WEIR_ESTOPPED;
}

TEST_CASE(hooks_end_when_a_running_task_is_stopped)
{
    static const weir_op op = { .name = "obedient", .run = wait_for_stop };
    test_counter inside = COUNTER;
    pairing_hook a = { 0 };
    weir_task_hook hook = hook_of(&a, 'A', 'a');
    test_numbers numbers = { .ledger = &ledger, .count = 5, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &op, &inside, &hook, 1, NULL);
    counter_await(&inside, 1);
    weir_pipeline_stop(pipeline);
    free_and_close(pipeline);
    assert_paired(&a, 1);
    assert_int_equal(a.last_status, WEIR_ESTOPPED);
}

static int make_endless(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    ledger_fill(&ledger, out, item_value(in), 0);
    counter_add((test_counter *)weir_task_config(task), 1);
    return WEIR_MORE;
}

/* There is no room for its fifth result: the sink holds three, and one more waits for room. */
TEST_CASE(hooks_end_when_a_task_between_two_chunks_is_stopped)
{
    static const weir_op op = { .name = "endless", .run = make_endless };
    test_counter chunks = COUNTER;
    pairing_hook a = { 0 };
    weir_task_hook hook = hook_of(&a, 'A', 'a');
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5, .labelled = true };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &chunks, 0,
                      &(weir_stage_options){ .queue_items = 1, .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, NULL);
    counter_await(&chunks, 1 + 1 + 1 + 1);
    weir_pipeline_stop(pipeline);
    free_and_close(pipeline);
    assert_paired(&a, 1);
    assert_int_equal(a.last_status, WEIR_ESTOPPED);
}

TEST_CASE(hooks_end_when_a_pending_task_is_stopped)
{
    test_pending pending = PENDING;
    pairing_hook a = { 0 };
    weir_task_hook hook = hook_of(&a, 'A', 'a');
    test_numbers numbers = { .ledger = &ledger, .count = 5, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &pending_op, &pending, &hook, 1, NULL);
    weir_task *task = pending_take(&pending, NULL);
    weir_pipeline_stop(pipeline);
    weir_item out = { 0 };
    ledger_fill(&ledger, &out, 0, 0);
    weir_task_complete(task, WEIR_OK, &out);
    free_and_close(pipeline);
    assert_paired(&a, 1);
}

/* ---- what the end sees -------------------------------------------------------------------------------------- */

typedef struct end_log {
    weir_task_end ends[16];
    weir_error errors[16];
    uint64_t values[16]; /* of what was made */
    size_t num_ends;
    int64_t now_ns[16];
} end_log;

static int log_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    end_log *log = self;
    (void)state;
    (void)task;
    log->ends[log->num_ends] = *end;
    if (end->error)
        log->errors[log->num_ends] = *end->error;
    if (end->out)
        log->values[log->num_ends] = item_value(end->out);
    log->now_ns[log->num_ends] = weir_clock_ns();
    log->num_ends++;
    return WEIR_OK;
}

TEST_CASE(the_end_sees_result_times_and_error)
{
    end_log log = { .num_ends = 0 };
    weir_task_hook hook = { .self = &log, .end = log_end };
    int64_t start_ns = weir_clock_ns();
    test_numbers numbers = { .ledger = &ledger, .count = 4 };
    weir_pipeline *pipeline = build_hooked(&numbers, &anything_op, NULL, &hook, 1, &one_thread);
    assert_int_equal(drain_all(pipeline), 2);
    free_and_close(pipeline);

    static const int statuses[] = { WEIR_EDATA, WEIR_SKIP, WEIR_SKIP, WEIR_OK };
    assert_int_equal(log.num_ends, LENGTH(statuses));
    for (size_t i = 0; i < log.num_ends; i++) {
        const weir_task_end *end = &log.ends[i];
        assert_int_equal(end->status, statuses[i]);
        assert_true(end->start_ns >= start_ns && end->run_ns >= 0);
        assert_true(end->start_ns + end->run_ns <= log.now_ns[i] + CLOCKS_APART_NS);
    }
    assert_int_equal(log.errors[0].status, WEIR_EDATA);
    assert_int_equal(log.errors[0].library_code, 5);
    assert_string_equal(log.errors[0].message, "damaged");
    assert_non_null(log.ends[3].out);
    assert_int_equal(log.values[3], 3);
}

static int timed_chunks(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *chunks = worker;
    int64_t until_ns = weir_clock_ns() + 2 * WEIR_MILLISECOND;
    while (weir_clock_ns() < until_ns)
        ;
    ledger_fill(&ledger, out, item_value(in), 0);
    counter_add((test_counter *)weir_task_config(task), 1);
    return ++*chunks < 8 ? WEIR_MORE : WEIR_OK;
}

/* Eight chunks of 2 ms, and 200 ms in which there is no room. */
TEST_CASE(the_time_of_a_task_leaves_out_its_waiting_for_room)
{
    static const weir_op op = { .name = "chunks", .worker_size = sizeof(uint64_t), .run = timed_chunks };
    end_log log = { .num_ends = 0 };
    weir_task_hook hook = { .self = &log, .end = log_end };
    test_counter chunks = COUNTER;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &op, &chunks, 0,
                      &(weir_stage_options){ .queue_items = 1, .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &one_thread);
    counter_await(&chunks, 1 + 1 + 1 + 1);
    AWAIT_SLOTS(pipeline, "0:1:chunks", waiting_out, 1);
    int64_t until_ns = weir_clock_ns() + 200 * WEIR_MILLISECOND;
    while (weir_clock_ns() < until_ns)
        sched_yield();
    assert_int_equal(drain_all(pipeline), 8);
    free_and_close(pipeline);
    int64_t all_ns = log.now_ns[0] - log.ends[0].start_ns;
    assert_true(log.ends[0].run_ns >= 8 * (2 * WEIR_MILLISECOND - CLOCKS_APART_NS));
    assert_true(log.ends[0].run_ns <= all_ns - 200 * WEIR_MILLISECOND + CLOCKS_APART_NS);
}

/* ---- parts -------------------------------------------------------------------------------------------------- */

static const weir_part_info work_part = { "work", WEIR_PART_TIME, "s", "" },
                            count_part = { "count", WEIR_PART_COUNT, "things", "" },
                            bytes_part = { "bytes", WEIR_PART_BYTES, "bytes", "" },
                            kind_part = { "kind", WEIR_PART_TEXT, "", "" };

/* What the end hooks saw, "work=7 kind=one;" for each task. */
typedef struct parts_log {
    char text[1024];
    int begin_status;
} parts_log;

static int parts_begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)state;
    (void)task;
    return item_value(in) == 1 ? ((parts_log *)self)->begin_status : WEIR_OK;
}

static int parts_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    parts_log *log = self;
    size_t length = strlen(log->text);
    (void)state;
    (void)task;
    for (uint32_t i = 0; i < end->num_parts; i++) {
        const weir_item_part *part = &end->parts[i];
        bool is_text = part->info->kind == WEIR_PART_TEXT;
        REQUIRE(is_text == (part->text != NULL) && (!is_text || part->number == 0));
        char number[24];
        snprintf(number, sizeof number, "%" PRId64, part->number);
        length += (size_t)snprintf(log->text + length, sizeof log->text - length, "%s=%s ", part->info->name,
                                   is_text ? part->text : number);
    }
    snprintf(log->text + length, sizeof log->text - length, "%d;", end->status);
    return WEIR_OK;
}

/* Item 0 tells all kinds, 1 nothing, 2 fails, 3 has three results. */
static int telling_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    uint64_t value = item_value(in);
    uint32_t chunk = weir_task_num_chunks(task);
    if (value == 0) {
        REQUIRE(weir_task_set_part(task, &work_part, 5) == WEIR_OK);
        REQUIRE(weir_task_set_text(task, &kind_part, "one") == WEIR_OK);
        REQUIRE(weir_task_set_part(task, &bytes_part, INT64_MAX) == WEIR_OK);
        REQUIRE(weir_task_set_part(task, &work_part, 7) == WEIR_OK); /* instead of 5 */
    }
    if (value == 2) {
        REQUIRE(weir_task_set_part(task, &count_part, 0) == WEIR_OK);
        return weir_task_fail(task, WEIR_EDATA, 0, "bad");
    }
    if (value == 3) {
        REQUIRE(weir_task_set_part(task, &count_part, chunk + 1) == WEIR_OK);
        if (chunk == 1)
            REQUIRE(weir_task_set_text(task, &kind_part, "late") == WEIR_OK);
        ledger_fill(&ledger, out, value, 0);
        return chunk < 2 ? WEIR_MORE : WEIR_OK;
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op telling_op = { .name = "telling", .run = telling_run };

TEST_CASE(the_end_sees_what_the_operation_reported_of_this_item_and_of_no_other)
{
    parts_log log = { .begin_status = WEIR_OK };
    weir_task_hook hook = { .self = &log, .begin = parts_begin, .end = parts_end };
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_pipeline *pipeline = build_hooked(&numbers, &telling_op, NULL, &hook, 1, &one_thread);
    assert_int_equal(drain_all(pipeline), 6);
    free_and_close(pipeline);
    char expected[256];
    snprintf(expected, sizeof expected,
             "work=7 kind=one bytes=9223372036854775807 0;0;count=0 %d;count=3 kind=late 0;0;", WEIR_EDATA);
    assert_string_equal(log.text, expected);
}

TEST_CASE(a_task_that_never_ran_has_no_parts)
{
    parts_log outer = { .begin_status = WEIR_OK }, inner = { .begin_status = WEIR_EACCESS };
    weir_task_hook hooks[] = { { .self = &outer, .begin = parts_begin, .end = parts_end },
                               { .self = &inner, .begin = parts_begin, .end = parts_end } };
    test_numbers numbers = { .ledger = &ledger, .count = 2 };
    weir_pipeline *pipeline = build_hooked(&numbers, &telling_op, NULL, hooks, 2, &one_thread);
    assert_int_equal(drain_all(pipeline), 1);
    free_and_close(pipeline);
    char expected[128];
    snprintf(expected, sizeof expected, "work=7 kind=one bytes=9223372036854775807 0;%d;", WEIR_EACCESS);
    assert_string_equal(outer.text, expected);
}

/* Parts that cannot be are refused, and leave the others as they are. */
static int refused_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const char name_31[] = "1234567890123456789012345678901", name_32[] = "12345678901234567890123456789012";
    static const weir_part_info nameless = { NULL, WEIR_PART_TIME, "", "" }, empty = { "", WEIR_PART_TIME, "", "" },
                                longest = { name_31, WEIR_PART_COUNT, "", "" },
                                too_long = { name_32, WEIR_PART_COUNT, "", "" }, no_kind = { "none", 0, "", "" },
                                beyond = { "beyond", 5, "", "" }, again = { "work", WEIR_PART_TIME, "ms", "other" },
                                other = { "work", WEIR_PART_COUNT, "", "" };
    const weir_part_info *const wrong[] = { NULL, &nameless, &empty, &too_long, &no_kind, &beyond, &kind_part };
    (void)worker;
    for (size_t i = 0; i < LENGTH(wrong); i++)
        REQUIRE(weir_task_set_part(task, wrong[i], 1) == WEIR_EINVAL);
    REQUIRE(weir_task_set_text(task, NULL, "a") == WEIR_EINVAL &&
            weir_task_set_text(task, &kind_part, NULL) == WEIR_EINVAL);
    REQUIRE(weir_task_set_text(task, &work_part, "a") == WEIR_EINVAL);
    REQUIRE(weir_task_set_part(task, &work_part, -1) == WEIR_EINVAL);
    REQUIRE(weir_task_set_part(task, &work_part, 1) == WEIR_OK && weir_task_set_part(task, &longest, 2) == WEIR_OK);
    REQUIRE(weir_task_set_part(task, &other, 9) == WEIR_EINVAL); /* of another kind */
    REQUIRE(weir_task_set_part(task, &again, 3) == WEIR_OK);     /* another row, the same part */
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op refused_op = { .name = "refused", .run = refused_run };

TEST_CASE(parts_that_cannot_be_are_refused)
{
    parts_log log = { .begin_status = WEIR_OK };
    weir_task_hook hook = { .self = &log, .end = parts_end };
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline = build_hooked(&numbers, &refused_op, NULL, &hook, 1, &one_thread);
    assert_int_equal(drain_all(pipeline), 1);
    free_and_close(pipeline);
    assert_string_equal(log.text, "work=3 1234567890123456789012345678901=2 0;");
}

static int cut_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static const char *const texts[] = { "1234567890123456789012345678901",        /* 31 bytes fit */
                                         "12345678901234567890123456789012",       /* 32 do not */
                                         "123456789012345678901234567890\xc3\xa9", /* nor does half a character */
                                         "http://user:secret@host/clip.mp4" };
    (void)worker;
    REQUIRE(weir_task_set_text(task, &kind_part, texts[item_value(in)]) == WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op cut_op = { .name = "cut", .run = cut_run };

TEST_CASE(long_texts_are_cut_at_a_character_and_without_secrets)
{
    parts_log log = { .begin_status = WEIR_OK };
    weir_task_hook hook = { .self = &log, .end = parts_end };
    test_numbers numbers = { .ledger = &ledger, .count = 4 };
    weir_pipeline *pipeline = build_hooked(&numbers, &cut_op, NULL, &hook, 1, &one_thread);
    assert_int_equal(drain_all(pipeline), 4);
    free_and_close(pipeline);
    assert_string_equal(log.text, "kind=1234567890123456789012345678901 0;kind=1234567890123456789012345678901 0;"
                                  "kind=123456789012345678901234567890 0;kind=http://***@host/clip.mp4 0;");
}

static int full_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static char names[WEIR_MAX_ITEM_PARTS + 1][8];
    static weir_part_info parts[WEIR_MAX_ITEM_PARTS + 1];
    (void)worker;
    for (int i = 0; i <= WEIR_MAX_ITEM_PARTS; i++) {
        snprintf(names[i], sizeof names[i], "p%d", i);
        parts[i] = (weir_part_info){ names[i], WEIR_PART_COUNT, "", "" };
        REQUIRE(weir_task_set_part(task, &parts[i], i) == (i < WEIR_MAX_ITEM_PARTS ? WEIR_OK : WEIR_ELIMIT));
    }
    REQUIRE(weir_task_set_part(task, &parts[WEIR_MAX_ITEM_PARTS - 1], 100) == WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op full_op = { .name = "full", .run = full_run };

TEST_CASE(an_item_has_a_limited_number_of_parts)
{
    parts_log log = { .begin_status = WEIR_OK };
    weir_task_hook hook = { .self = &log, .end = parts_end };
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline = build_hooked(&numbers, &full_op, NULL, &hook, 1, &one_thread);
    assert_int_equal(drain_all(pipeline), 1);
    free_and_close(pipeline);
    assert_non_null(strstr(log.text, "p22=22 p23=100 0;"));
}

/* Each item reports another part than the items before. Short steps without hooks: several items are made in one
   burst. */
enum { ROTATING_PARTS = 4 * WEIR_MAX_ITEM_PARTS, ROTATING_ITEMS = 20000 };

typedef struct rotating {
    char names[ROTATING_PARTS][8];
    weir_part_info parts[ROTATING_PARTS];
    uint64_t num_made, num_refused;
} rotating;

static int rotating_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    rotating *own = (rotating *)(uintptr_t)weir_task_config(task);
    (void)worker;
    (void)in;
    if (own->num_made == ROTATING_ITEMS)
        return WEIR_EOF;
    own->num_refused += weir_task_set_part(task, &own->parts[own->num_made++ % ROTATING_PARTS], 1) != WEIR_OK;
    out->data = own;
    return WEIR_OK;
}

static const weir_op rotating_op = { .name = "rotating", .run = rotating_run };

TEST_CASE(the_limit_of_parts_is_that_of_one_item_also_where_many_are_made_at_once)
{
    static rotating own;
    for (int i = 0; i < ROTATING_PARTS; i++) {
        snprintf(own.names[i], sizeof own.names[i], "p%d", i);
        own.parts[i] = (weir_part_info){ own.names[i], WEIR_PART_COUNT, "", "" };
    }
    const weir_stage_options options = { .queue_items = 64 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &rotating_op, &own, 0, &options);
    weir_builder_sink(builder, &options);
    weir_pipeline *pipeline = build(builder, &one_thread);
    weir_item item;
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    assert_int_equal(own.num_made, ROTATING_ITEMS);
    assert_int_equal(own.num_refused, 0);
}

/* ---- hooks that fail ---------------------------------------------------------------------------------------- */

TEST_CASE(a_failed_begin_keeps_the_operation_from_running)
{
    weir_error error = { 0 };
    pairing_hook a = { 0 }, b = { .begin_status = WEIR_EACCESS, .failing_seq = 1 }, c = { 0 };
    weir_task_hook hooks[] = { hook_of(&a, 'A', 'a'), hook_of(&b, 'B', 'b'), hook_of(&c, 'C', 'c') };
    test_numbers numbers = { .ledger = &ledger, .count = 3, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &noted_op, NULL, hooks, 3, &one_thread);
    assert_int_equal(drain_all(pipeline), 2);
    assert_string_equal(trace.text, "ABCxcbaABaABCxcba"); /* of the second item A ends, B and C do not */
    weir_pipeline_error(pipeline, "noted", &error);
    assert_int_equal(error.status, WEIR_EACCESS);
    assert_string_equal(error.label, "item-1");
    assert_non_null(strstr(error.message, "hook"));
    assert_int_equal(account_of(pipeline, "noted").failed, 1);
    free_and_close(pipeline);
}

TEST_CASE(a_failed_end_drops_the_item)
{
    weir_error error = { 0 };
    pairing_hook a = { 0 }, b = { .end_status = WEIR_ELIMIT, .failing_seq = 1 };
    weir_task_hook hooks[] = { hook_of(&a, 'A', 'a'), hook_of(&b, 'B', 'b') };
    test_numbers numbers = { .ledger = &ledger, .count = 2, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &noted_op, NULL, hooks, 2, &one_thread);
    assert_int_equal(next_value(pipeline), 0);
    assert_int_equal(drain_all(pipeline), 0);
    assert_int_equal(a.last_status, WEIR_ELIMIT); /* the outer one sees what the inner one did */
    assert_int_equal(b.last_status, WEIR_OK);
    weir_pipeline_error(pipeline, "noted", &error);
    assert_int_equal(error.status, WEIR_ELIMIT);
    assert_int_equal(account_of(pipeline, "noted").failed, 1);
    free_and_close(pipeline);
}

TEST_CASE(the_end_of_a_failed_task_does_not_hide_its_error)
{
    weir_error error = { 0 };
    pairing_hook a = { .end_status = WEIR_ELIMIT, .failing_seq = UINT64_MAX };
    weir_task_hook hook = hook_of(&a, 'A', 'a');
    test_numbers numbers = { .ledger = &ledger, .count = 1, .labelled = true };
    weir_pipeline *pipeline = build_hooked(&numbers, &anything_op, NULL, &hook, 1, NULL);
    assert_int_equal(drain_all(pipeline), 0);
    weir_pipeline_error(pipeline, "anything", &error);
    assert_int_equal(error.status, WEIR_EDATA);
    assert_string_equal(error.message, "damaged");
    free_and_close(pipeline);
}

TEST_CASE(a_hook_that_answers_nonsense_has_failed)
{
    for (int i = 0; i < 2; i++) {
        weir_error error = { 0 };
        pairing_hook a = { .begin_status = i == 0 ? 7 : 0, .end_status = i == 1 ? WEIR_SKIP : 0 };
        a.failing_seq = UINT64_MAX;
        weir_task_hook hook = hook_of(&a, 'A', 'a');
        test_numbers numbers = { .ledger = &ledger, .count = 1, .labelled = true };
        weir_pipeline *pipeline = build_hooked(&numbers, &noted_op, NULL, &hook, 1, NULL);
        assert_int_equal(drain_all(pipeline), 0);
        weir_pipeline_error(pipeline, "noted", &error);
        assert_int_equal(error.status, WEIR_EHOOK);
        free_and_close(pipeline);
    }
}

static int explain(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)state;
    (void)in;
    return weir_task_fail(task, WEIR_EBUSY, 42, "the device is in use");
}

TEST_CASE(a_hook_may_say_why_it_fails_and_counts_against_the_budget)
{
    weir_error error = { 0 };
    int status;
    weir_task_hook hook = { .begin = explain };
    test_numbers numbers = { .ledger = &ledger, .count = 100, .labelled = true };
    weir_pipeline *pipeline =
        build_hooked(&numbers, &noted_op, NULL, &hook, 1,
                     &(weir_pipeline_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 2 } });
    assert_int_equal(drain(pipeline, &status), 0);
    assert_int_equal(status, WEIR_EFAILED);
    assert_int_equal(account_of(pipeline, "noted").failed, 3);
    weir_pipeline_error(pipeline, "noted", &error);
    assert_int_equal(error.status, WEIR_EBUSY);
    assert_int_equal(error.library_code, 42);
    assert_string_equal(error.message, "the device is in use");
    free_and_close(pipeline);
}

/* ---- stage hooks -------------------------------------------------------------------------------------------- */

typedef struct stage_pair {
    char start_letter, end_letter;
    int start_status;
    test_gate *gate; /* passed at the start (NULL = none) */
    const char *expected_stage;
} stage_pair;

static int pair_start(void *self, const char *stage, weir_error *error)
{
    stage_pair *pair = self;
    (void)error;
    REQUIRE(strcmp(stage, pair->expected_stage) == 0);
    if (pair->gate)
        gate_pass(pair->gate);
    note(pair->start_letter);
    return pair->start_status;
}

static int pair_end(void *self, const char *stage, weir_error *error)
{
    stage_pair *pair = self;
    (void)error;
    REQUIRE(strcmp(stage, pair->expected_stage) == 0);
    note(pair->end_letter);
    return WEIR_OK;
}

#define STAGE_HOOK(pair) \
    { \
        .self = &(pair), .start = pair_start, .end = pair_end \
    }

static weir_pipeline *build_staged(const test_numbers *numbers, const weir_stage_hook *hooks, size_t num_hooks)
{
    trace.text[0] = '\0';
    ledger_init(&ledger);
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &noted_op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 3, .stage_hooks = hooks, .num_stage_hooks = num_hooks });
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

TEST_CASE(stage_hooks_run_before_the_first_task_and_after_the_last)
{
    stage_pair a = { 'A', 'a', 0, NULL, "0:1:noted[3]" }, b = { 'B', 'b', 0, NULL, "0:1:noted[3]" };
    const weir_stage_hook hooks[] = { STAGE_HOOK(a), { 0 }, STAGE_HOOK(b) };
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_pipeline *pipeline = build_staged(&numbers, hooks, 3);
    assert_int_equal(drain_all(pipeline), 5);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "ABxxxxxba");
}

static int fail_each(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_EDATA;
}

static void assert_noted_once(char letter)
{
    assert_non_null(strchr(trace.text, letter));
    assert_ptr_equal(strchr(trace.text, letter), strrchr(trace.text, letter));
}

/* Ten items, batches of four: a flush of the incomplete one, or none, is not a task. The stage behind fails every
   task. */
TEST_CASE(hooks_run_around_the_tasks_of_an_aggregate_and_around_those_that_fail)
{
    static const weir_op op = { .name = "failing", .takes = WEIR_TYPE_BATCH, .run = fail_each };
    for (int drop_last = 0; drop_last <= 1; drop_last++) {
        pairing_hook a = { 0 }, b = { 0 };
        weir_task_hook of_aggregate = hook_of(&a, 'A', 'a'), of_failing = hook_of(&b, 'B', 'b');
        stage_pair s = { 'S', 's', 0, NULL, "0:1:aggregate" }, t = { 'T', 't', 0, NULL, "0:2:failing" };
        const weir_stage_hook around_aggregate = STAGE_HOOK(s), around_failing = STAGE_HOOK(t);
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 10, .labelled = true };
        weir_builder *builder = builder_with(&numbers);
        weir_stage_options options = { .task_hooks = &of_aggregate, .num_task_hooks = 1 };
        options.stage_hooks = &around_aggregate;
        options.num_stage_hooks = 1;
        weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 4, .drop_last = drop_last }, &options);
        options.task_hooks = &of_failing;
        options.stage_hooks = &around_failing;
        weir_builder_pipe(builder, &op, NULL, 0, &options);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, &one_thread);
        assert_int_equal(drain_all(pipeline), 0);
        free_and_close(pipeline);
        assert_paired(&a, 10);
        assert_paired(&b, drop_last ? 2 : 3);
        assert_int_equal(b.last_status, WEIR_EDATA);
        for (const char *letter = "SsTt"; *letter; letter++)
            assert_noted_once(*letter);
    }
}

TEST_CASE(no_task_starts_before_the_start_hooks_have_ended)
{
    test_gate gate = GATE;
    test_counter made = COUNTER;
    stage_pair a = { 'A', 'a', 0, &gate, "0:1:noted[3]" };
    const weir_stage_hook hooks[] = { STAGE_HOOK(a) };
    test_numbers numbers = { .ledger = &ledger, .count = 20, .made = &made };
    weir_pipeline *pipeline = build_staged(&numbers, hooks, 1);
    gate_await_waiting(&gate, 1);
    counter_await(&made, 3 + 2 + 1); /* the source need not wait: three slots, the queue, and one that waits there */
    assert_string_equal(trace.text, "");
    gate_open(&gate);
    assert_int_equal(drain_all(pipeline), 20);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "Axxxxxxxxxxxxxxxxxxxxa");
}

TEST_CASE(what_has_started_ends_when_a_later_start_fails)
{
    stage_pair a = { 'A', 'a', 0, NULL, "0:1:noted[3]" }, b = { 'B', 'b', WEIR_EIO, NULL, "0:1:noted[3]" };
    stage_pair c = { 'C', 'c', 0, NULL, "0:1:noted[3]" };
    const weir_stage_hook hooks[] = { STAGE_HOOK(a), STAGE_HOOK(b), STAGE_HOOK(c) };
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_pipeline *pipeline = build_staged(&numbers, hooks, 3);
    int status;
    assert_int_equal(drain(pipeline, &status), 0);
    assert_int_equal(status, WEIR_EFAILED);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "ABa");
}

TEST_CASE(stage_hooks_end_on_stop)
{
    stage_pair a = { 'A', 'a', 0, NULL, "0:1:noted[3]" };
    const weir_stage_hook hooks[] = { STAGE_HOOK(a) };
    test_numbers numbers = { .ledger = &ledger, .count = UINT64_MAX };
    weir_pipeline *pipeline = build_staged(&numbers, hooks, 1);
    next_value(pipeline);
    weir_pipeline_stop(pipeline);
    free_and_close(pipeline);
    assert_int_equal(trace.text[0], 'A');
    assert_int_equal(trace.text[strlen(trace.text) - 1], 'a');
}

/* Stopped while the start stands at the gate: it succeeds, so it is ended, and no task has run. */
TEST_CASE(a_stop_during_the_start_is_followed_by_the_end)
{
    test_gate gate = GATE;
    stage_pair a = { 'A', 'a', 0, &gate, "0:1:noted[3]" };
    const weir_stage_hook hooks[] = { STAGE_HOOK(a) };
    test_numbers numbers = { .ledger = &ledger, .count = 20 };
    weir_pipeline *pipeline = build_staged(&numbers, hooks, 1);
    gate_await_waiting(&gate, 1);
    weir_pipeline_stop(pipeline);
    gate_open(&gate);
    free_and_close(pipeline);
    assert_string_equal(trace.text, "Aa");
}

TEST_CASE(a_source_has_stage_hooks_too)
{
    stage_pair a = { 'A', 'a', 0, NULL, "0:0:src" };
    const weir_stage_hook hook = STAGE_HOOK(a);
    test_counter made = COUNTER;
    trace.text[0] = '\0';
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3, .made = &made };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0,
                        &(weir_stage_options){ .stage_hooks = &hook, .num_stage_hooks = 1 });
    weir_builder_pipe(builder, &noted_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &one_thread);
    assert_int_equal(drain_all(pipeline), 3);
    free_and_close(pipeline);
    assert_int_equal(trace.text[0], 'A');
    assert_non_null(strchr(trace.text, 'a'));
}

TEST_CASE(states_of_hooks_that_no_memory_can_hold_are_refused)
{
    static const size_t sizes[][2] = {
        { SIZE_MAX, 0 }, { SIZE_MAX - 63, 128 }, { PTRDIFF_MAX - 63, 128 }, { 128, PTRDIFF_MAX }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const weir_task_hook hooks[] = { { .state_size = sizes[i][0] }, { .state_size = sizes[i][1] } };
        weir_error error = { 0 };
        weir_pipeline *pipeline;
        ledger_init(&ledger);
        weir_builder *builder = weir_builder_new();
        weir_builder_source(builder, &numbers_op, &(test_numbers){ .ledger = &ledger, .count = 3 }, 0, NULL);
        weir_builder_pipe(builder, &noted_op, NULL, 0,
                          &(weir_stage_options){ .task_hooks = hooks, .num_task_hooks = 2 });
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, &one_thread, &pipeline, &error), WEIR_ENOMEM);
        assert_non_null(strstr(error.message, "noted"));
        ledger_close(&ledger);
    }
}

/* ---- hooks of threads ------------------------------------------------------------------------------------------- */

/* A stack of what has begun on this thread. */
static _Thread_local const char *begun[4];
static _Thread_local size_t num_begun;

typedef struct thread_hook {
    const char *name;
    size_t depth; /* hooks that are outside of this one */
    test_counter begun, ended;
    char pools[16][32]; /* with the lock of `trace` */
    size_t num_pools;
} thread_hook;

static void *begin_thread(void *self, const char *pool)
{
    thread_hook *hook = self;
    REQUIRE(num_begun == hook->depth);
    begun[num_begun++] = hook->name;
    pthread_mutex_lock(&trace.lock);
    snprintf(hook->pools[hook->num_pools++], sizeof hook->pools[0], "%s", pool);
    pthread_mutex_unlock(&trace.lock);
    counter_add(&hook->begun, 1);
    return &begun[num_begun - 1]; /* differs on each thread */
}

static void end_thread(void *self, void *state)
{
    thread_hook *hook = self;
    REQUIRE(num_begun == hook->depth + 1);
    REQUIRE(state == &begun[num_begun - 1] && begun[num_begun - 1] == hook->name);
    num_begun--;
    counter_add(&hook->ended, 1);
}

static int in_thread(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    if (num_begun != 2 || strcmp(begun[0], "outer") != 0 || strcmp(begun[1], "inner") != 0)
        return WEIR_EHOOK;
    weir_item_move(out, in);
    return WEIR_OK;
}

static int init_in_thread(void *worker, const void *config, weir_task *task)
{
    (void)worker;
    (void)config;
    (void)task;
    return num_begun == 2 ? WEIR_OK : WEIR_EHOOK;
}

static int start_in_thread(void *self, const char *stage, weir_error *error)
{
    (void)self;
    (void)stage;
    (void)error;
    return num_begun == 2 ? WEIR_OK : WEIR_EHOOK;
}

static uint64_t threads_of_pool(const thread_hook *hook, const char *pool)
{
    uint64_t count = 0;
    for (size_t i = 0; i < hook->num_pools; i++)
        count += strcmp(hook->pools[i], pool) == 0;
    return count;
}

TEST_CASE(hooks_of_threads_are_around_all_that_the_threads_run)
{
    static const weir_op op = { .name = "inside", .worker_init = init_in_thread, .run = in_thread };
    thread_hook outer = { .name = "outer", .begun = COUNTER, .ended = COUNTER };
    thread_hook inner = { .name = "inner", .depth = 1, .begun = COUNTER, .ended = COUNTER };
    weir_thread_hook hooks[] = { { .self = &outer, .begin = begin_thread, .end = end_thread },
                                 { .self = &inner, .begin = begin_thread, .end = end_thread } };
    weir_stage_hook stage_hook = { .start = start_in_thread, .end = start_in_thread };
    weir_pipeline_options options = { .threads = 2, .thread_hooks = hooks, .num_thread_hooks = 2 };
    ledger_init(&ledger);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &(test_numbers){ .ledger = &ledger, .count = 300 }, 0, NULL);
    weir_builder_pipe(builder, &op, NULL, 0,
                      &(weir_stage_options){ .concurrency = 3, .stage_hooks = &stage_hook, .num_stage_hooks = 1 });
    weir_builder_pipe(builder, &op, NULL, 0,
                      &(weir_stage_options){ .name = "private", .concurrency = 3, .threads = 3 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &options);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 4), WEIR_OK);
    memset(hooks, 0, sizeof hooks); /* they were copied */
    assert_int_equal(drain_all(pipeline), 300);
    assert_int_equal(counter_value(&outer.ended), 0); /* a thread lasts as long as the pipeline */
    weir_pipeline_free(pipeline);
    thread_hook *both[] = { &outer, &inner };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(counter_value(&both[i]->begun), 7);
        assert_int_equal(counter_value(&both[i]->ended), 7);
        assert_int_equal(threads_of_pool(both[i], "0:pool"), 4);
        assert_int_equal(threads_of_pool(both[i], "0:2:private[3]_pool"), 3);
    }
    ledger_close(&ledger);
}

static void end_without_begin(void *self, void *state)
{
    REQUIRE(!state);
    counter_add(self, 1);
}

TEST_CASE(a_hook_of_threads_may_have_one_function)
{
    test_counter ended = COUNTER;
    thread_hook hook = { .name = "begin", .begun = COUNTER };
    weir_thread_hook hooks[] = { { .self = &hook, .begin = begin_thread },
                                 { .self = &ended, .end = end_without_begin },
                                 { 0 } };
    weir_pipeline_options options = { .threads = 3, .thread_hooks = hooks, .num_thread_hooks = 3 };
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    ledger_init(&ledger);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &options);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    assert_int_equal(counter_value(&hook.begun), 3);
    assert_int_equal(counter_value(&ended), 3);
    ledger_close(&ledger);
}

TEST_CASE(hooks_of_threads_that_are_counted_but_missing_are_refused)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    static const test_numbers numbers = { .count = 0 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    assert_int_equal(
        weir_builder_build(builder, &(weir_pipeline_options){ .num_thread_hooks = 1 }, &pipeline, &error),
        WEIR_EINVAL);
    assert_non_null(strstr(error.message, "thread_hooks"));
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
