/*
 * A profile: each stage alone gets the inputs that the stages before it make, runs as many tasks at once as it has slots, and
 * loses nothing. No test asserts a speed.
 */
#include "tests/support.h"

#include <weir/profile.h>

enum { MAX_RESULTS = 64, NUM_ITEMS = 12 };

static test_ledger ledger;
static const uint32_t one_two_four[] = { 1, 2, 4 };

/* ---- reports -------------------------------------------------------------------------------------------------------- */

typedef struct reports {
    weir_profile_result results[MAX_RESULTS];
    char names[MAX_RESULTS][32];
    size_t count;
} reports;

static void keep(void *self, const weir_profile_result *result)
{
    reports *all = self;
    assert_true(all->count < MAX_RESULTS);
    snprintf(all->names[all->count], sizeof all->names[0], "%s", result->name);
    all->results[all->count++] = *result;
}

/* "src 1, pass 1, pass 2, …": the names and slots, in the order of the reports. */
static void assert_order(const reports *all, const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < all->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %u", i ? ", " : "", all->names[i],
                 all->results[i].slots);
    assert_string_equal(text, expected);
}

/* What holds for each result. */
static void assert_is_whole(const weir_profile_result *result)
{
    assert_int_equal(result->error.status, WEIR_OK);
    assert_true(result->elapsed_ns > 0);
    assert_true(result->busy_ns >= 0 && result->cpu_ns >= 0);
    assert_true(result->items_per_s > 0 && result->source_items_per_s > 0);
    assert_true(result->busy_share >= 0 && result->busy_share <= 1.001);
    double expected = (double)result->num_tasks / (double)result->elapsed_ns * WEIR_SECOND;
    if (strcmp(result->kind, "stage") == 0)
        assert_true(result->items_per_s > 0.999 * expected && result->items_per_s < 1.001 * expected);
    assert_true(result->tail_ns >= 0);
    assert_true((double)(result->busy_ns + result->tail_ns) <= 1.001 * result->slots * (double)result->elapsed_ns);
}

static reports profile_well(const weir_builder *builder, const weir_profile_options *options)
{
    static reports all;
    weir_error error = { 0 };
    all = (reports){ .count = 0 };
    if (weir_profile(builder, options, keep, &all, &error) != WEIR_OK)
        fail_msg("%s: %s", error.stage, error.message);
    for (size_t i = 0; i < all.count; i++)
        assert_is_whole(&all.results[i]);
    return all;
}

static const weir_profile_options few_items = { .items = NUM_ITEMS,
                                                .concurrencies = one_two_four,
                                                .num_concurrencies = LENGTH(one_two_four) };

/* ---- as many tasks at once as slots ----------------------------------------------------------------------------------- */

/* Tasks wait for each other: `together` of them have to run at once. A stage hook begins each measurement with the next number. */
typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t num_begun, together; /* of measurements; tasks that meet */
    uint32_t present;
    uint64_t num_meetings;
    test_counter running;
} meeting;

static int begin_meeting(void *self, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    meeting *m = self;
    m->together = one_two_four[m->num_begun++ % LENGTH(one_two_four)];
    m->num_meetings = 0;
    return WEIR_OK;
}

static int end_meeting(void *self, const char *stage, weir_error *error)
{
    (void)stage;
    (void)error;
    meeting *m = self;
    REQUIRE(m->present == 0);
    REQUIRE(m->num_meetings == NUM_ITEMS / m->together);
    REQUIRE(counter_highest(&m->running) == m->together);
    return WEIR_OK;
}

static int run_meeting(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    meeting *m = (meeting *)(uintptr_t)weir_task_config(task);
    counter_add(&m->running, 1);
    pthread_mutex_lock(&m->lock);
    uint64_t mine = m->num_meetings;
    if (++m->present == m->together) {
        m->present = 0;
        m->num_meetings++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->num_meetings == mine)
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
    counter_add(&m->running, -1);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op meeting_op = { .name = "meeting", .run = run_meeting };

TEST_CASE(a_stage_alone_runs_as_many_tasks_at_once_as_it_has_slots)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    meeting m = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .running = COUNTER };
    weir_stage_hook hook = { .self = &m, .start = begin_meeting, .end = end_meeting };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &meeting_op, &m, 0,
                      &(weir_stage_options){ .concurrency = 2, .stage_hooks = &hook, .num_stage_hooks = 1 });
    reports all = profile_well(builder, &few_items);
    weir_builder_free(builder);
    assert_order(&all, "src 1, meeting 1, meeting 2, meeting 4");
    assert_string_equal(all.results[0].kind, "source");
    assert_string_equal(all.results[0].op, "numbers");
    assert_int_equal(all.results[0].num_results, NUM_ITEMS);
    for (size_t i = 1; i < all.count; i++) {
        const weir_profile_result *result = &all.results[i];
        assert_string_equal(result->kind, "stage");
        assert_int_equal(result->index, 1);
        assert_int_equal(result->threads, result->slots);
        assert_int_equal(result->is_own, result->slots == 2);
        assert_int_equal(result->num_inputs, NUM_ITEMS);
        assert_int_equal(result->num_tasks, NUM_ITEMS);
        assert_int_equal(result->num_results, NUM_ITEMS);
        assert_int_equal(result->num_failures, 0);
    }
    assert_true(all.results[1].gain == 1);
    ledger_close(&ledger);
}

/* ---- inputs --------------------------------------------------------------------------------------------------------- */

/* Requires each input to be one of the source's first NUM_ITEMS, once in a measurement, with its number, epoch and label. */
static atomic_uint seen[NUM_ITEMS];

static int look_at_input(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    char label[32];
    uint64_t value = item_value(in);
    REQUIRE(value < NUM_ITEMS && weir_task_seq(task) == value && weir_task_epoch(task) == 0);
    snprintf(label, sizeof label, "item-%u", (unsigned)value);
    REQUIRE(strcmp(weir_task_label(task), label) == 0);
    atomic_fetch_add(&seen[value], 1);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op look_op = { .name = "look", .run = look_at_input };

TEST_CASE(each_measurement_gets_the_same_inputs)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000, .labelled = true };
    for (size_t i = 0; i < NUM_ITEMS; i++)
        atomic_store(&seen[i], 0);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = 8 });
    weir_builder_pipe(builder, &look_op, NULL, 0, NULL);
    reports all = profile_well(builder, &few_items);
    weir_builder_free(builder);
    assert_order(&all, "src 1, pass 1, pass 2, pass 4, look 1, look 2, look 4");
    for (size_t i = 0; i < NUM_ITEMS; i++)
        assert_int_equal(atomic_load(&seen[i]), LENGTH(one_two_four));
    ledger_close(&ledger);
}

/* Disaggregate takes the items out of its batches: they could not be used a second time. */
TEST_CASE(stages_that_keep_items_and_that_take_their_inputs_apart_have_all_of_them)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &weir_aggregate, &(weir_aggregate_config){ .num_items = 3 },
                      sizeof(weir_aggregate_config), NULL);
    weir_builder_pipe(builder, &weir_disaggregate, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    reports all = profile_well(builder, &few_items);
    assert_order(&all,
                 "src 1, aggregate 1, aggregate 2, aggregate 4, disaggregate 1, disaggregate 2, disaggregate 4, "
                 "pass 1, pass 2, pass 4");
    assert_int_equal(all.results[1].num_results, NUM_ITEMS / 3);
    for (size_t i = 4; i < 7; i++) {
        assert_int_equal(all.results[i].num_inputs, NUM_ITEMS); /* batches */
        assert_int_equal(all.results[i].num_results, 3 * NUM_ITEMS);
    }
    /* A batch is three items of the source, and what is made of it is one again. With 4 slots batches are not full. */
    assert_true(all.results[1].source_items_per_s == all.results[1].items_per_s);
    assert_true(all.results[4].source_items_per_s > all.results[4].items_per_s);

    weir_pipeline *pipeline = build(builder, NULL); /* the description is as it was */
    assert_int_equal(drain_all(pipeline), 1000);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(a_source_with_less_gives_less)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = profile_well(builder, &few_items);
    for (size_t i = 1; i < all.count; i++)
        assert_int_equal(all.results[i].num_tasks, 5);
    numbers.count = 0;
    weir_error error = { 0 };
    all.count = 0;
    assert_int_equal(weir_profile(builder, &few_items, keep, &all, &error), WEIR_ENOTFOUND);
    assert_string_equal(error.stage, "pass");
    assert_int_equal(all.count, 1); /* the source */
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_CASE(inputs_are_kept_up_to_a_limit_of_bytes)
{
    enum { SIZE = 1000000 };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000, .size_bytes = SIZE };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_profile_options options = few_items;
    options.max_bytes = 3 * SIZE;
    reports all = profile_well(builder, &options);
    for (size_t i = 1; i < all.count; i++) {
        assert_int_equal(all.results[i].num_inputs, 3);
        assert_true(all.results[i].kept_bytes >= 3 * SIZE && all.results[i].kept_bytes < 4 * SIZE);
    }
    weir_builder_free(builder);
    ledger_close(&ledger);
}

/* Without a number of items: ten for each slot, and all of the few that there are, however short the tasks are. */
TEST_CASE(by_default_numbers_of_slots_double_up_to_the_stages_own_and_inputs_last_for_a_time)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 100 };
    uint32_t own = 2 * weir_cpu_budget() + 3; /* no power of two */
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = own });
    reports all = profile_well(builder, &(weir_profile_options){ .run_ns = WEIR_SECOND });
    uint32_t slots = 1;
    for (size_t i = 1; i < all.count; i++, slots = 2 * slots < own ? 2 * slots : own) {
        assert_int_equal(all.results[i].slots, slots);
        assert_int_equal(all.results[i].is_own, slots == own);
        assert_int_equal(all.results[i].num_tasks, 100);
    }
    assert_int_equal(all.results[all.count - 1].slots, own);
    weir_builder_free(builder);

    numbers.count = UINT64_MAX; /* a run of a millisecond of those has one for each slot at least */
    builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .concurrency = own });
    all = profile_well(builder, &(weir_profile_options){ .run_ns = WEIR_MILLISECOND });
    for (size_t i = 1; i < all.count; i++)
        assert_true(all.results[i].num_tasks >= own);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

/* ---- shapes --------------------------------------------------------------------------------------------------------- */

static int pick_odd(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item_value(item) % 2);
}

TEST_CASE(behind_a_join_and_a_merge_stages_are_measured_and_in_a_branch_they_are_not)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick_odd, .num_branches = 2 },
                       &(weir_stage_options){ .name = "parity" });
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "even" });
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "joined" });
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .name = "other" });
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "merged" });
    reports all = { .count = 0 };
    weir_profile_options options = few_items;
    options.num_concurrencies = 1;
    weir_error error = { 0 };
    assert_int_equal(weir_profile(builder, &options, keep, &all, &error), WEIR_OK);
    assert_order(&all, "src 1, even 0, joined 1, other 1, merged 1");
    assert_int_equal(all.results[1].error.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(all.results[1].error.message, "branch of route parity"));
    assert_int_equal(all.results[2].num_tasks, NUM_ITEMS);
    assert_int_equal(all.results[4].num_tasks, NUM_ITEMS);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_CASE(ends_of_epochs_end_no_measurement)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &numbers_op, &numbers, 0, &(weir_stage_options){ .epochs = WEIR_ENDLESS });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = profile_well(builder, &few_items);
    for (size_t i = 1; i < all.count; i++)
        assert_int_equal(all.results[i].num_tasks, NUM_ITEMS);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

/* ---- failures and ends ------------------------------------------------------------------------------------------------ */

static int fail_odd(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (item_value(in) % 2)
        return weir_task_fail(task, WEIR_EDATA, 0, "odd");
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op fail_odd_op = { .name = "even", .run = fail_odd };

TEST_CASE(failures_are_counted_and_end_nothing)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &fail_odd_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = profile_well(builder, &few_items);
    assert_order(&all, "src 1, even 1, even 2, even 4, pass 1, pass 2, pass 4");
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(all.results[i].num_tasks, NUM_ITEMS);
        assert_int_equal(all.results[i].num_failures, NUM_ITEMS / 2);
        assert_int_equal(all.results[i].num_results, NUM_ITEMS / 2);
    }
    assert_int_equal(all.results[4].num_tasks, NUM_ITEMS); /* of twice as many items of the source */
    assert_true(all.results[4].source_items_per_s == 2 * all.results[4].items_per_s);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

static int fail_always(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EDATA, 0, "never right");
}

static const weir_op fail_always_op = { .name = "never", .run = fail_always };

TEST_CASE(if_all_tasks_fail_there_is_no_rate_and_the_profile_ends_with_the_cause)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &fail_always_op, NULL, 0, NULL);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = { .count = 0 };
    weir_error error = { 0 };
    assert_int_equal(weir_profile(builder, &few_items, keep, &all, &error), WEIR_EDATA);
    assert_string_equal(error.stage, "never");
    assert_non_null(strstr(error.message, " tasks failed; the first: "));
    assert_non_null(strstr(error.message, "never right"));
    assert_order(&all, "src 1, never 1");
    assert_int_equal(all.results[1].num_failures, all.results[1].num_tasks);
    assert_true(all.results[1].items_per_s == 0 && all.results[1].source_items_per_s == 0);
    assert_int_equal(all.results[1].error.status, WEIR_EDATA);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_CASE(beyond_its_max_failures_a_stage_is_reported_and_the_profile_ends)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &fail_odd_op, NULL, 0,
                      &(weir_stage_options){ .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 2 } });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = { .count = 0 };
    weir_error error = { 0 };
    weir_profile_options options = few_items;
    options.num_concurrencies = 1;
    int status = weir_profile(builder, &options, keep, &all, &error);
    assert_int_equal(status, error.status);
    assert_true(status < 0);
    assert_non_null(strstr(error.stage, "even"));
    assert_order(&all, "src 1, even 1");
    assert_int_equal(all.results[1].error.status, status);
    assert_int_equal(all.results[1].num_failures, 3);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

static const weir_op endless_op = { .name = "endless", .run = run_until_asked };

static bool has_begun(void *self)
{
    return counter_value(self) > 0;
}

static int count_begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)state;
    (void)task;
    (void)in;
    counter_add(self, 1);
    return WEIR_OK;
}

/* Asked when a task of the stage runs, which would not end by itself. */
TEST_CASE(a_profile_can_be_stopped_while_a_task_runs)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1000 };
    test_counter begun = COUNTER;
    weir_task_hook hook = { .self = &begun, .begin = count_begin };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &endless_op, NULL, 0,
                      &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_profile_options options = few_items;
    options.should_stop = has_begun;
    options.should_stop_self = &begun;
    reports all = { .count = 0 };
    weir_error error = { 0 };
    assert_int_equal(weir_profile(builder, &options, keep, &all, &error), WEIR_ESTOPPED);
    assert_order(&all, "src 1");
    assert_int_equal(counter_value(&begun), 1);

    options.should_stop = NULL;
    options.time_limit_ns = WEIR_MILLISECOND;
    assert_int_equal(weir_profile(builder, &options, keep, &all, &error), WEIR_ETIMEDOUT);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_CASE(a_source_that_fails_fails_the_profile)
{
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3, .end_status = WEIR_EIO };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    reports all = { .count = 0 };
    weir_error error = { 0 };
    assert_int_equal(weir_profile(builder, &few_items, keep, &all, &error), WEIR_EIO);
    assert_order(&all, "src 1");
    assert_int_equal(all.results[0].error.status, WEIR_EIO);
    assert_int_equal(all.results[0].num_results, 3);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_CASE(what_is_not_valid_is_refused_before_anything_runs)
{
    static const uint32_t none[] = { 2, 0 }, many[] = { WEIR_MAX_SLOTS + 1 };
    static const weir_profile_options mistakes[] = {
        { .run_ns = -1 },
        { .time_limit_ns = -1 },
        { .concurrencies = none },
        { .num_concurrencies = 2 },
        { .concurrencies = none, .num_concurrencies = 2 },
        { .concurrencies = many, .num_concurrencies = 1 },
    };
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    reports all = { .count = 0 };
    weir_error error = { 0 };
    for (size_t i = 0; i < LENGTH(mistakes); i++)
        assert_int_equal(weir_profile(builder, &mistakes[i], keep, &all, &error), WEIR_EINVAL);
    assert_int_equal(weir_profile(NULL, NULL, keep, &all, &error), WEIR_EINVAL);
    assert_int_equal(weir_profile(builder, NULL, NULL, NULL, NULL), WEIR_EINVAL);
    weir_builder_join(builder, NULL); /* a mistake of the description */
    assert_int_equal(weir_profile(builder, NULL, keep, &all, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "no route is open"));
    assert_int_equal(all.count, 0);
    weir_builder_free(builder);
    ledger_close(&ledger);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
