/*
 * The model of a pipeline and the simulator: compared with results that are known exactly. All times are simulated; no
 * test measures any.
 */
#include "tests/support.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/sqlite.h>
#include <weir/whatif.h>

#include "stats/advice/model/model.h"

/* -- making models */

static weir_model *new_model(uint32_t threads, double cpus)
{
    weir_model *model;
    weir_error error = { 0 };
    char text[32];
    assert_int_equal(weir__model_new(&model, &error), WEIR_OK);
    snprintf(text, sizeof text, "%u", threads);
    assert_int_equal(weir__model_set(model, "threads", text, &error), WEIR_OK);
    snprintf(text, sizeof text, "%g", cpus);
    assert_int_equal(weir__model_set(model, "cpus", text, &error), WEIR_OK);
    return model;
}

static uint32_t add(weir_model *model, weir_model_node node)
{
    weir_error error = { 0 };
    if (weir__model_add(model, &node, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return (uint32_t)model->num_nodes - 1;
}

static void set(weir_model *model, const char *name, const char *value)
{
    weir_error error = { 0 };
    if (weir__model_set(model, name, value, &error) != WEIR_OK)
        fail_msg("%s=%s: %s", name, value, error.message);
}

static weir_prediction *predict(weir_model *model)
{
    weir_error error = { 0 };
    weir_prediction *prediction;
    weir_whatif_options options = { .num_items = 20000, .resamples = 8 };
    if (weir__model_predict(model, &options, &prediction, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return prediction;
}

static void assert_near(double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance * wanted))
        fail_msg("%g is not within %g of %g", found, tolerance, wanted);
}

static void assert_throughput(weir_model *model, double wanted, double tolerance)
{
    weir_prediction *prediction = predict(model);
    double found = prediction->throughput;
    weir_prediction_free(prediction);
    assert_near(found, wanted, tolerance);
}

static void assert_limit(weir_model *model, weir_limit_kind kind, const char *name)
{
    weir_prediction *prediction = predict(model);
    char text[400];
    snprintf(text, sizeof text, "%s", prediction->limit_text);
    if (prediction->limit != kind || strcmp(prediction->limit_name, name) != 0)
        fail_msg("the limit is %s", text);
    weir_prediction_free(prediction);
}

#define SOURCE \
    (weir_model_node) \
    { \
        .name = "src", .kind = "source" \
    }
#define SINK \
    (weir_model_node) \
    { \
        .name = "sink", .kind = "sink" \
    }
#define STAGE(...) \
    (weir_model_node) \
    { \
        .kind = "stage", __VA_ARGS__ \
    }

/* A source and a stage without a queue to speak of, and a consumer that takes no time. The caller frees it. */
static weir_model *one_stage(weir_model_node stage, uint32_t threads, double cpus)
{
    weir_model *model = new_model(threads, cpus);
    add(model, SOURCE);
    stage.name = "work";
    stage.kind = "stage";
    add(model, stage);
    add(model, SINK);
    return model;
}

/* Lengths in a histogram: `count` values of a function of (i + 0.5) / count. */
static const weir_histogram *lengths(double (*length_of)(double), uint32_t count)
{
    static weir_histogram histogram;
    weir_histogram_clear(&histogram);
    for (uint32_t i = 0; i < count; i++)
        weir_histogram_record(&histogram, (int64_t)(1e6 * length_of((i + 0.5) / count)));
    return &histogram;
}

static double exponential(double u)
{
    return -log(1 - u);
}

static double one_or_three(double u)
{
    return u < 0.5 ? 1 : 3;
}

/* -- lines of constant tasks */

TEST_CASE(the_slowest_of_constant_stages_sets_the_pace)
{
    weir_model *model = new_model(8, 8);
    add(model, SOURCE);
    add(model, STAGE(.name = "a", .time_s = 0.004));
    add(model, STAGE(.name = "b", .time_s = 0.010));
    add(model, STAGE(.name = "c", .time_s = 0.002));
    add(model, SINK);
    assert_throughput(model, 100, 0.001);
    assert_limit(model, WEIR_LIMIT_SLOTS, "b");
    set(model, "b.concurrency", "5");
    assert_throughput(model, 250, 0.001);
    assert_limit(model, WEIR_LIMIT_SLOTS, "a");
    set(model, "sink.time", "20ms");
    assert_throughput(model, 50, 0.001);
    assert_limit(model, WEIR_LIMIT_CONSUMER, "sink");
    set(model, "src.time", "40ms");
    assert_throughput(model, 25, 0.001);
    assert_limit(model, WEIR_LIMIT_SOURCE, "src");
    weir__model_reset(model);
    assert_throughput(model, 100, 0.001);
    weir__model_free(model);
}

TEST_CASE(slots_beyond_the_threads_do_not_help)
{
    weir_model *model = one_stage((weir_model_node){ .concurrency = 10, .time_s = 0.005 }, 2, 16);
    assert_throughput(model, 400, 0.001);
    assert_limit(model, WEIR_LIMIT_THREADS, "the pool");
    set(model, "threads", "10");
    assert_throughput(model, 2000, 0.001);
    assert_limit(model, WEIR_LIMIT_SLOTS, "work");
    weir__model_free(model);
}

TEST_CASE(private_threads_do_not_share)
{
    weir_model *model = new_model(2, 8); /* one of them for the source */
    add(model, SOURCE);
    add(model, STAGE(.name = "read", .concurrency = 6, .threads = 3, .time_s = 0.010));
    add(model, STAGE(.name = "work", .time_s = 0.004));
    add(model, SINK);
    assert_throughput(model, 250, 0.001);
    set(model, "read.threads", "2");
    assert_throughput(model, 200, 0.001);
    assert_limit(model, WEIR_LIMIT_THREADS, "read");
    set(model, "threads", "1");
    set(model, "read.threads", "0"); /* one thread for both: 14 ms an item */
    assert_throughput(model, 1 / 0.014, 0.001);
    weir__model_free(model);
}

TEST_CASE(pending_tasks_hold_no_thread)
{
    weir_model *model = one_stage((weir_model_node){ .concurrency = 8, .time_s = 0.010, .pending_s = 0.010 }, 1, 1);
    assert_throughput(model, 800, 0.001);
    weir__model_free(model);
}

/* -- CPUs */

TEST_CASE(tasks_share_the_cpus)
{
    weir_model *model = one_stage((weir_model_node){ .concurrency = 4, .time_s = 0.010, .cpu_s = 0.010 }, 4, 2);
    assert_throughput(model, 200, 0.001);
    assert_limit(model, WEIR_LIMIT_CPUS, "");
    set(model, "background", "2"); /* six threads on two CPUs: ours get four sixths of them */
    assert_throughput(model, 2 * 4 / 6.0 / 0.010, 0.001);
    set(model, "background", "0");
    set(model, "cpus", "64");
    set(model, "threads", "64");
    set(model, "work.concurrency", "256");
    assert_throughput(model, 6400, 0.005);
    weir_prediction *prediction = predict(model);
    assert_true(prediction->beyond_measured);
    assert_near(prediction->cpus, 64, 0.005);
    weir_prediction_free(prediction);
    weir__model_free(model);
}

TEST_CASE(waiting_tasks_need_no_cpu)
{
    weir_model *model = one_stage((weir_model_node){ .concurrency = 2, .time_s = 0.010, .cpu_s = 0.001 }, 2, 1);
    set(model, "work.cpu_time", "0.5x");
    assert_near(model->shown.nodes[1].time_s, 0.0095, 1e-9);
    set(model, "work.wait_time", "0");
    set(model, "work.cpu_time", "2ms");
    assert_throughput(model, 500, 0.001);
    weir__model_free(model);
}

/* -- lengths that vary */

/* Two exponential servers with room for B in between, the first blocked after service: throughput (B + 2) / (B + 3) of
   a server's rate. */
TEST_CASE(exponential_stages_block_as_theory_says)
{
    static const char *const rooms[] = { "1", "2", "6", "20" };
    weir_model *model = new_model(4, 4);
    weir_model_node source = SOURCE;
    source.time_s = 0.001;
    source.times = lengths(exponential, 4000);
    add(model, source);
    add(model, STAGE(.name = "work", .time_s = 0.001, .times = source.times));
    add(model, SINK);
    for (size_t i = 0; i < LENGTH(rooms); i++) {
        double room = atof(rooms[i]);
        set(model, "src.queue_items", rooms[i]);
        assert_throughput(model, 1000 * (room + 2) / (room + 3), 0.015);
    }
    weir__model_free(model);
}

/*
 * Two slots in input order, tasks of 1 or 3 ms. The time between two results is max(0, X - the time before). It is a
 * Markov chain on 0, 1, 2, 3 with the stationary shares 6/15, 4/15, 2/15, 3/15 and the mean 17/15 ms.
 */
TEST_CASE(results_in_input_order_wait_for_earlier_ones)
{
    weir_model *model = one_stage((weir_model_node){ .concurrency = 2,
                                                     .time_s = 0.002,
                                                     .times = lengths(one_or_three, 1000),
                                                     .output_order = WEIR_ORDER_INPUT },
                                  4, 4);
    assert_throughput(model, 1000 * 15 / 17.0, 0.015);
    weir_prediction *prediction = predict(model);
    assert_near(prediction->nodes[1].wait_turn_share, 1 - 15 / 17.0, 0.1);
    weir_prediction_free(prediction);
    set(model, "work.output_order", "completion");
    assert_throughput(model, 1000, 0.015);
    weir__model_free(model);
}

TEST_CASE(rare_long_tasks_keep_their_share)
{
    static weir_histogram times;
    weir_histogram_clear(&times);
    for (int i = 0; i < 100000; i++)
        weir_histogram_record(&times, i % 50000 == 0 ? 10 * WEIR_SECOND : WEIR_MILLISECOND);
    weir_model *model = one_stage((weir_model_node){ .time_s = 0.0014, .times = &times }, 1, 1);
    assert_throughput(model, 1 / 0.0014, 0.05);
    weir__model_free(model);
}

/* -- results */

TEST_CASE(skips_and_failures_make_no_results)
{
    weir_model *model =
        one_stage((weir_model_node){ .time_s = 0.001, .skip_share = 0.25, .failure_share = 0.25 }, 2, 2);
    assert_throughput(model, 500, 0.02);
    weir__model_free(model);
}

TEST_CASE(batches_and_chunks_change_the_number_of_items)
{
    weir_model *model = one_stage((weir_model_node){ .time_s = 0.001, .results = 0.25 }, 2, 2);
    assert_throughput(model, 250, 0.001);
    weir__model_free(model);
    model = one_stage((weir_model_node){ .time_s = 0.010, .results = 5 }, 2, 2);
    assert_throughput(model, 500, 0.001);
    set(model, "sink.time", "5ms"); /* chunks wait for room, one by one */
    assert_throughput(model, 200, 0.001);
    weir__model_free(model);
}

TEST_CASE(queues_are_bounded_in_items_and_in_bytes)
{
    weir_model *model = new_model(4, 4);
    weir_model_node source = SOURCE;
    source.queue_items = 100;
    source.item_bytes = 1000;
    add(model, source);
    add(model, STAGE(.name = "work", .time_s = 0.001));
    add(model, SINK);
    weir_prediction *prediction = predict(model);
    assert_near(prediction->nodes[0].queue_depth, 100, 0.001);
    weir_prediction_free(prediction);
    set(model, "src.queue_bytes", "4500"); /* may be exceeded by one item */
    prediction = predict(model);
    assert_near(prediction->nodes[0].queue_depth, 5, 0.001);
    assert_near(prediction->memory_bytes, 6000, 0.001); /* and one in the source's slot */
    weir_prediction_free(prediction);
    weir__model_free(model);
}

/* -- routes and merges */

/* Half of the items take 1 ms, the others 10 ms. */
static weir_model *two_branches(weir_order order, double skip_share)
{
    weir_model *model = new_model(8, 8);
    uint32_t source = add(model, SOURCE);
    uint32_t route = add(model, (weir_model_node){ .name = "route",
                                                   .kind = "route",
                                                   .inputs = &source,
                                                   .num_inputs = 1,
                                                   .queue_items = 200,
                                                   .output_order = order,
                                                   .shares = (const double[]){ 1, 1 },
                                                   .num_shares = 2 });
    uint32_t fast = add(model, STAGE(.name = "fast", .inputs = &route, .num_inputs = 1, .time_s = 0.001,
                                     .queue_items = 200, .output_order = order));
    uint32_t slow = add(model, STAGE(.name = "slow", .inputs = &route, .num_inputs = 1, .time_s = 0.010,
                                     .skip_share = skip_share, .output_order = order));
    add(model, (weir_model_node){ .name = "join",
                                  .kind = "merge",
                                  .inputs = (const uint32_t[]){ fast, slow },
                                  .num_inputs = 2,
                                  .output_order = order });
    add(model, SINK);
    return model;
}

TEST_CASE(the_slow_branch_of_a_route_sets_the_pace)
{
    weir_model *model = two_branches(WEIR_ORDER_COMPLETION, 0);
    assert_throughput(model, 200, 0.03);
    assert_limit(model, WEIR_LIMIT_SLOTS, "slow");
    set(model, "slow.concurrency", "5");
    assert_throughput(model, 1000, 0.03);
    weir__model_free(model);
}

/* Half of the items, drawn at random, go to each of two branches of 5 ms. With places for one item each, one branch often
   waits while the route holds an item for the other: then one of two queues is full. The other branch has 0, 1 or 2
   items, each in a third of the time. So 5 of 6 slots are busy. */
TEST_CASE(a_route_that_looks_ahead_keeps_its_branches_busy)
{
    weir_model *model = new_model(8, 8);
    uint32_t source = add(model, SOURCE);
    uint32_t route = add(model, (weir_model_node){ .name = "route",
                                                   .kind = "route",
                                                   .inputs = &source,
                                                   .num_inputs = 1,
                                                   .queue_items = 1,
                                                   .look_ahead_items = 400,
                                                   .shares = (const double[]){ 1, 1 },
                                                   .num_shares = 2 });
    uint32_t one = add(model, STAGE(.name = "one", .inputs = &route, .num_inputs = 1, .time_s = 0.005));
    uint32_t two = add(model, STAGE(.name = "two", .inputs = &route, .num_inputs = 1, .time_s = 0.005));
    add(model, (weir_model_node){
                   .name = "join", .kind = "merge", .inputs = (const uint32_t[]){ one, two }, .num_inputs = 2 });
    add(model, SINK);
    assert_throughput(model, 400, 0.03);
    set(model, "route.look_ahead_items", "0");
    assert_throughput(model, 400 * 5 / 6.0, 0.03);
    weir__model_free(model);
}

TEST_CASE(a_join_in_input_order_passes_over_items_that_vanish)
{
    weir_model *model = two_branches(WEIR_ORDER_INPUT, 0);
    assert_throughput(model, 200, 0.03);
    weir__model_free(model);
    model = two_branches(WEIR_ORDER_INPUT, 0.5); /* 100 items a second for the slow branch, half of them vanish */
    assert_throughput(model, 150, 0.04);
    weir_error error = { 0 };
    set(model, "slow.output_order", "input");
    assert_int_equal(weir__model_set(model, "slow.output_order", "completion", &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "a join after it restores the order"));
    weir__model_free(model);
}

/* The first branch has no stage; the second one gets 3 of 4 items. */
TEST_CASE(a_branch_without_stages_keeps_its_share)
{
    weir_model *model = new_model(8, 8);
    uint32_t source = add(model, SOURCE);
    uint32_t route = add(model, (weir_model_node){ .name = "route",
                                                   .kind = "route",
                                                   .inputs = &source,
                                                   .num_inputs = 1,
                                                   .shares = (const double[]){ 1, 3 },
                                                   .num_shares = 2 });
    uint32_t work = add(model, STAGE(.name = "work", .inputs = &route, .num_inputs = 1,
                                     .branches = (const uint32_t[]){ 1 }, .time_s = 0.003));
    add(model, (weir_model_node){ .name = "join",
                                  .kind = "merge",
                                  .inputs = (const uint32_t[]){ route, work },
                                  .branches = (const uint32_t[]){ 0, 0 },
                                  .num_inputs = 2 });
    add(model, SINK);
    assert_throughput(model, 1000 / 3.0 / 0.75, 0.02);
    weir__model_free(model);
}

/* Sources of 10 ms and 1 ms an item. */
TEST_CASE(merges_take_from_their_inputs_as_their_order_says)
{
    static const struct {
        weir_merge_order order;
        double wanted;
    } cases[] = { { WEIR_MERGE_ARRIVAL, 1100 }, { WEIR_MERGE_ROUND_ROBIN, 200 }, { WEIR_MERGE_WEIGHTED, 500 } };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_model *model = new_model(4, 4);
        uint32_t a = add(model, (weir_model_node){ .name = "a", .kind = "source", .time_s = 0.010 });
        uint32_t b = add(model, (weir_model_node){ .name = "b", .kind = "source", .time_s = 0.001 });
        add(model, (weir_model_node){ .name = "merge",
                                      .kind = "merge",
                                      .inputs = (const uint32_t[]){ a, b },
                                      .num_inputs = 2,
                                      .merge_order = cases[i].order,
                                      .weights = (const uint32_t[]){ 1, 4 } });
        add(model, SINK);
        assert_throughput(model, cases[i].wanted, 0.001);
        weir__model_free(model);
    }
}

/* -- laws */

/* Every slot is in one state; busy slots are throughput × time (Little's law); so are busy CPUs. */
TEST_CASE(the_laws_of_queues_hold)
{
    weir_model *model = two_branches(WEIR_ORDER_INPUT, 0.2);
    set(model, "slow.cpu_time", "4ms");
    set(model, "slow.wait_time", "3ms");
    set(model, "slow.concurrency", "4");
    set(model, "cpus", "2");
    weir_prediction *p = predict(model);
    for (size_t i = 0; i < p->num_nodes; i++) {
        const weir_predicted_node *node = &p->nodes[i];
        double all = node->busy_share + node->wait_in_share + node->wait_thread_share + node->wait_turn_share +
                     node->wait_out_share;
        assert_near(all, 1, 1e-6);
    }
    const weir_predicted_node *fast = &p->nodes[2], *slow = &p->nodes[3];
    assert_near(fast->busy_share, fast->items_per_s * 0.001, 0.001);
    assert_near(slow->cpus, slow->items_per_s / 0.8 * 0.004, 0.02);
    assert_near((slow->busy_share - slow->cpu_wait_share) * 4, slow->items_per_s / 0.8 * 0.007, 0.02);
    weir_prediction_free(p);
    weir__model_free(model);
}

TEST_CASE(the_same_seed_gives_the_same_prediction)
{
    weir_model *model = two_branches(WEIR_ORDER_INPUT, 0.3);
    weir_error error = { 0 };
    weir_prediction *p[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__model_predict(model, &(weir_whatif_options){ .seed = (uint64_t)i / 2 }, &p[i], &error),
                         WEIR_OK);
    assert_true(p[0]->throughput == p[1]->throughput);
    assert_true(p[0]->throughput != p[2]->throughput);
    for (int i = 0; i < 3; i++)
        weir_prediction_free(p[i]);
    weir__model_free(model);
}

/* -- what is refused */

TEST_CASE(bad_settings_say_what_is_allowed)
{
    static const struct {
        const char *name, *value, *wanted;
        int status;
    } cases[] = {
        { "work.concurency", "3", "no such setting; did you mean concurrency? (there are threads", WEIR_EINVAL },
        { "thread", "3", "did you mean threads?", WEIR_EINVAL },
        { "quux", "3", "quux: no such setting (there are threads", WEIR_EINVAL },
        { "wrok.concurrency", "3", "did you mean work? (there are src, work, sink)", WEIR_ENOTFOUND },
        { "work.concurrency", "0", "a whole number above 0", WEIR_EINVAL },
        { "work.concurrency", "2.5", "a whole number above 0", WEIR_EINVAL },
        { "work.concurrency", "-1", "a whole number above 0", WEIR_EINVAL },
        { "work.time", "5 parsecs", "a multiple, such as 0.5x", WEIR_EINVAL },
        { "work.output_order", "random", "completion or input", WEIR_EINVAL },
        { "src.concurrency", "2", "only stages and routes", WEIR_EINVAL },
        { "sink.threads", "2", "only sources, stages and routes", WEIR_EINVAL },
        { "cpus", "0", "a number above 0", WEIR_EINVAL },
    };
    weir_model *model = one_stage((weir_model_node){ .time_s = 0.001 }, 2, 2);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_error error = { 0 };
        assert_int_equal(weir__model_set(model, cases[i].name, cases[i].value, &error), cases[i].status);
        if (!strstr(error.message, cases[i].wanted))
            fail_msg("no \"%s\" in \"%s\"", cases[i].wanted, error.message);
    }
    assert_throughput(model, 1000, 0.001);
    weir__model_free(model);
}

TEST_CASE(impossible_models_are_refused)
{
    weir_model *model = new_model(2, 2);
    weir_prediction *prediction;
    weir_error error = { 0 };
    assert_int_equal(weir__model_predict(model, NULL, &prediction, &error), WEIR_EINVAL);
    assert_int_equal(weir__model_add(model, &STAGE(.name = "first"), &error), WEIR_EINVAL);
    add(model, SOURCE);
    assert_int_equal(weir__model_add(model, &STAGE(.name = "work", .time_s = 1, .cpu_s = 2), &error), WEIR_EINVAL);
    assert_int_equal(weir__model_add(model, &(weir_model_node){ .name = "x", .kind = "pump" }, &error), WEIR_EINVAL);
    assert_int_equal(weir__model_add(model, &STAGE(.name = "wide", .concurrency = 65537), &error), WEIR_EINVAL);
    add(model, SINK);
    assert_int_equal(weir__model_add(model, &STAGE(.name = "late"), &error), WEIR_EINVAL);
    assert_int_equal(weir__model_predict(model, NULL, &prediction, &error), WEIR_EINVAL); /* nothing takes time */
    assert_null(prediction);
    weir__model_free(model);

    model = one_stage((weir_model_node){ .time_s = 0.001, .skip_share = 1 }, 2, 2);
    assert_int_equal(weir__model_predict(model, NULL, &prediction, &error), WEIR_ELIMIT);
    weir__model_free(model);
}

/* -- laps */

static const weir_stage_record made_up[] = {
    { .name = "0:0:src",
      .queue_name = "0:0:src_queue",
      .kind = "source",
      .concurrency = 1,
      .queue_items = 2,
      .output_order = "completion",
      .inputs = "",
      .merge_order = "" },
    { .name = "0:1:decode[4]",
      .queue_name = "0:1:decode[4]_queue",
      .kind = "stage",
      .concurrency = 4,
      .queue_items = 2,
      .output_order = "completion",
      .inputs = "0:0:src_queue",
      .merge_order = "" },
    { .name = "0:2:sink",
      .queue_name = "0:2:sink_queue",
      .kind = "sink",
      .concurrency = 1,
      .queue_items = 3,
      .output_order = "completion",
      .inputs = "0:1:decode[4]_queue",
      .merge_order = "" },
};

/* A lap of a second: tasks of the same length, of which cpu_s on a CPU, and cpu_wait_s without one. */
typedef struct reported_lap {
    double tasks, time_s, cpu_s, cpu_wait_s;
    int64_t source_ended_ns;
} reported_lap;

static void tell(weir_model *model, weir_lap_record lap)
{
    lap.elapsed_ns = WEIR_SECOND;
    assert_int_equal(
        weir__model_take(model, &(weir_record){ .kind = weir_record_kind_of(lap.subject), .lap = lap }, NULL),
        WEIR_OK);
}

static void tell_lap(weir_model *model, reported_lap reported)
{
    double tasks = reported.tasks, time_s = reported.time_s;
    static weir_histogram times;
    weir_lap_record stage = { .subject = WEIR_SUBJECT_FLOW, .name = "0:0:src", .kind = "source" };
    weir_lap_record queue = { .subject = WEIR_SUBJECT_QUEUE, .kind = "queue" };
    weir_lap_record pool = { .subject = WEIR_SUBJECT_POOL, .kind = "pool", .name = "0:pool", .capacity = 4 };
    weir_histogram_clear(&times);
    weir_histogram_record(&times, (int64_t)(time_s * 1e9));
    stage.metrics.task = (weir_task_metrics){ .num_tasks = (uint64_t)tasks, .ended_ns = reported.source_ended_ns };
    tell(model, stage);
    stage.name = "0:1:decode[4]";
    stage.kind = "stage";
    stage.metrics.task = (weir_task_metrics){ .num_tasks = (uint64_t)tasks,
                                              .busy_ns = (int64_t)(1e9 * tasks * time_s),
                                              .cpu_ns = (int64_t)(1e9 * tasks * reported.cpu_s),
                                              .min_ns = (int64_t)(1e9 * time_s),
                                              .run_times = &times };
    tell(model, stage);
    for (size_t i = 0; i < LENGTH(made_up); i++) {
        queue.name = made_up[i].queue_name;
        queue.metrics.queue = (weir_queue_metrics){ .num_put = (uint64_t)tasks,
                                                    .num_items = (uint64_t)tasks,
                                                    .get_ns = WEIR_SECOND / 2 };
        tell(model, queue);
    }
    pool.metrics.pool = (weir_pool_metrics){ .busy_ns = (int64_t)(1e9 * tasks * time_s),
                                             .run_delay_ns = (int64_t)(1e9 * tasks * reported.cpu_wait_s) };
    tell(model, pool);
    weir__model_end_lap(model);
    weir__model_learn(model);
}

static int begin_model(weir_model *model, const weir_stage_record *stages, size_t count)
{
    weir_record copies[LENGTH(made_up)];
    const weir_record *all[LENGTH(made_up)];
    for (size_t i = 0; i < count; i++) {
        copies[i] = (weir_record){ .kind = WEIR_RECORD_STAGE, .stage = stages[i] };
        all[i] = &copies[i];
    }
    return weir__model_begin(model, &(weir_records){ all, count }, NULL);
}

/* A model of the run that is made up. */
static weir_model *recorded_model(void)
{
    weir_model *model = new_model(1, 4);
    assert_int_equal(begin_model(model, made_up, LENGTH(made_up)), WEIR_OK);
    return model;
}

/* On four CPUs. */
static weir_model *reported_model(void)
{
    weir_model *model = recorded_model();
    set(model, "cpus", "4");
    return model;
}

TEST_CASE(steady_laps_make_the_figures)
{
    weir_model *model = reported_model();
    tell_lap(model, (reported_lap){ .tasks = 10, .time_s = 0.1, .cpu_s = 0.1 }); /* start-up */
    for (int i = 0; i < 10; i++)
        tell_lap(model, (reported_lap){ .tasks = 200, .time_s = 0.020, .cpu_s = 0.005 });
    tell_lap(model, (reported_lap){ .tasks = 20,
                                    .time_s = 0.1,
                                    .cpu_s = 0.1,
                                    .source_ended_ns = WEIR_SECOND / 2 }); /* the source has ended */
    const weir_model_node *decode = &model->shown.nodes[1];
    assert_near(decode->time_s, 0.020, 1e-6);
    assert_near(decode->cpu_s, 0.005, 1e-6);
    assert_near(model->shown.nodes[2].time_s, 0.0025, 1e-6); /* half a second of work for 200 items */
    assert_int_equal(weir__model_num_laps(model), 10);
    assert_near(weir__model_measured(model), 200, 1e-6);
    assert_near(model->shown.threads, 4, 1e-9);
    assert_throughput(model, 200, 0.001);
    set(model, "decode.concurrency", "2");
    assert_throughput(model, 100, 0.001);
    assert_limit(model, WEIR_LIMIT_SLOTS, "0:1:decode[2]"); /* with the slots of the prediction */
    set(model, "decode.concurrency", "1");
    assert_limit(model, WEIR_LIMIT_SLOTS, "0:1:decode");
    weir__model_free(model);
}

/* As in a recording of which only the laps are left. */
TEST_CASE(without_a_source_there_is_no_model)
{
    weir_model *model = reported_model();
    for (uint32_t i = 0; i < 2; i++) { /* without any node, and without the source */
        assert_int_equal(begin_model(model, made_up + 1, i), WEIR_EUNSUPPORTED);
        tell_lap(model, (reported_lap){ .tasks = 100, .time_s = 0.020 });
        assert_int_equal(model->num_nodes, 0);
        assert_int_equal(weir__model_num_laps(model), 0);
    }
    weir__model_free(model);
}

TEST_CASE(only_start_and_tail_are_better_than_nothing)
{
    weir_model *model = reported_model();
    weir_prediction *prediction;
    weir_error error = { 0 };
    assert_int_equal(weir__model_predict(model, NULL, &prediction, &error), WEIR_EINVAL); /* no laps yet */
    tell_lap(model, (reported_lap){ .tasks = 100, .time_s = 0.020, .cpu_s = 0.005, .source_ended_ns = 1 });
    assert_int_equal(weir__model_num_laps(model), 1);
    assert_throughput(model, 200, 0.001);
    weir__model_free(model);
}

/* Laps that differ widen the range; if they are few, they show less of how much they differ. */
TEST_CASE(the_range_is_wider_if_laps_differ_and_if_they_are_few)
{
    static const struct {
        int num_laps, joined;
        double short_s, long_s;
    } cases[] = { { 200, 10, 0.020, 0.020 }, { 200, 10, 0.010, 0.030 }, { 5, 1, 0.010, 0.030 } };
    double widths[LENGTH(cases)];
    for (size_t k = 0; k < LENGTH(cases); k++) {
        weir_model *model = reported_model();
        for (int i = 0; i < cases[k].num_laps; i++)
            tell_lap(model, (reported_lap){ .tasks = 200,
                                            .time_s = i / cases[k].joined % 2 ? cases[k].long_s : cases[k].short_s });
        assert_int_equal(weir__model_num_laps(model), cases[k].num_laps - 1); /* without the first */
        weir_prediction *prediction = predict(model);
        widths[k] = (prediction->high - prediction->low) / prediction->throughput;
        assert_true(prediction->low <= prediction->throughput && prediction->throughput <= prediction->high);
        weir_prediction_free(prediction);
        weir__model_free(model);
    }
    assert_true(widths[1] > widths[0] + 0.05);
    assert_true(widths[2] > 5 * widths[1]);
}

/* So what resampled runs deviate is what laps do. */
TEST_CASE(equal_laps_give_equal_resamples)
{
    weir_model *model = reported_model();
    weir_prediction *prediction;
    weir_error error = { 0 };
    for (int i = 0; i < 10; i++)
        tell_lap(model, (reported_lap){ .tasks = 200, .time_s = 0.020, .cpu_s = 0.015 });
    set(model, "cpus", "2"); /* tasks that wait for each other: the throughput depends on chance */
    assert_int_equal(weir__model_predict(model, NULL, &prediction, &error), WEIR_OK);
    assert_true(prediction->deviation == 0);
    weir_prediction_free(prediction);
    weir__model_free(model);
}

TEST_CASE(few_steps_predict_what_many_do)
{
    static const uint32_t slots[] = { 1, 4, 16 };
    for (size_t i = 0; i < LENGTH(slots); i++) {
        weir_model_node work = { .time_s = 0.01, .cpu_s = 0.005, .concurrency = slots[i] };
        work.times = lengths(exponential, 5000);
        weir_model *model = one_stage(work, 16, 4);
        weir_prediction *many, *few;
        weir_error error = { 0 };
        assert_int_equal(weir__model_predict(model, NULL, &many, &error), WEIR_OK);
        model->num_steps = 6000;
        assert_int_equal(weir__model_predict(model, NULL, &few, &error), WEIR_OK);
        assert_near(few->throughput, many->throughput, 0.01);
        assert_true(20 * few->num_items < many->num_items);
        weir_prediction_free(many);
        weir_prediction_free(few);
        weir__model_free(model);
    }
}

/* The throughput must be near, and the range contain both; the settings are of a recorded run with 4 slots. */
static void expect_range(reported_lap start, reported_lap lap, const char *setting, const char *value, double wanted,
                         double other)
{
    weir_model *model = reported_model();
    tell_lap(model, start);
    for (int i = 0; i < 20; i++)
        tell_lap(model, lap);
    if (lap.cpu_wait_s > 0)
        weir__model_reset(model); /* CPUs of this machine: the range is about those that are recorded */
    set(model, setting, value);
    set(model, "sink.time", "0");
    if (strcmp(setting, "decode.concurrency") == 0)
        set(model, "threads", "16");
    weir_prediction *p;
    weir_error error = { 0 };
    if (weir__model_predict(model, &(weir_whatif_options){ .num_items = 2000, .resamples = 2 }, &p, &error) !=
        WEIR_OK)
        fail_msg("%s", error.message);
    assert_near(p->throughput, wanted, 0.02);
    if (!(p->low <= other * 1.02 && p->high >= other * 0.98 && p->low <= p->throughput && p->throughput <= p->high))
        fail_msg("%s=%s: %g (%g to %g) does not contain %g", setting, value, p->throughput, p->low, p->high, other);
    weir_prediction_free(p);
    weir__model_free(model);
}

/* Tasks wait for something that may serve as many per second as before: more slots may bring nothing, and fewer cost
   nothing. */
TEST_CASE(a_range_for_other_slots_contains_no_difference)
{
    reported_lap alone = { .tasks = 10, .time_s = 0.005, .cpu_s = 0.005 };
    reported_lap computing = { .tasks = 200, .time_s = 0.020, .cpu_s = 0.005 };
    reported_lap sleeping = { .tasks = 200, .time_s = 0.020, .cpu_s = 0.0001 };
    expect_range(alone, computing, "decode.concurrency", "8", 400, 200);
    expect_range(alone, computing, "decode.concurrency", "1", 50, 200);
    expect_range(alone, sleeping, "decode.concurrency", "8", 400, 200);
    expect_range(alone, sleeping, "decode.concurrency", "1", 50, 200);
}

/* Four tasks get half a CPU of all: as four threads among others, or as the share of a session or container. */
TEST_CASE(the_range_has_both_ways_to_share_cpus_with_others)
{
    reported_lap lap = { .tasks = 50, .time_s = 0.080, .cpu_s = 0.010, .cpu_wait_s = 0.070 };
    double cpus = weir_cpu_budget(), others = 8 * cpus - 4;
    expect_range(lap, lap, "threads", "1", 100 * cpus / (1 + others), 50);
    expect_range(lap, lap, "decode.concurrency", "16", 100 * 16 * cpus / (16 + others), 50);
}

/* used_s: the CPU time of the process. */
static void tell_process(weir_model *model, uint32_t num_cpus, double used_s)
{
    weir_lap_record process = {
        .subject = WEIR_SUBJECT_PROCESS, .kind = "process", .name = "0:process", .capacity = num_cpus
    };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &process.metrics.process);
    process.metrics.process.cpu_ns = (int64_t)(1e9 * used_s);
    tell(model, process);
}

static void tell_cpus(weir_model *model, uint32_t num_cpus)
{
    tell_process(model, num_cpus, 0);
}

static void tell_machine(weir_model *model, double others_s, double idle_s)
{
    weir_lap_record machine = { .subject = WEIR_SUBJECT_MACHINE, .kind = "machine", .name = "0:machine" };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &machine.metrics.machine);
    machine.metrics.machine.other_cpu_ns = (int64_t)(1e9 * others_s);
    machine.metrics.machine.idle_ns = (int64_t)(1e9 * idle_s);
    tell(model, machine);
}

/* Four tasks wait longer for two CPUs than if they shared them exactly equally, but nobody else can have used them. */
TEST_CASE(others_cannot_have_had_the_cpu_time_that_the_tasks_had)
{
    static const struct {
        reported_lap lap;
        double most_others;
    } cases[] = {
        { { .tasks = 392, .time_s = 0.0102, .cpu_s = 0.005, .cpu_wait_s = 0.00577 }, 0.01 },
        { { .tasks = 360, .time_s = 0.0111, .cpu_s = 0.005, .cpu_wait_s = 0.00740 }, 0.5 }, /* 0.2 CPUs are left */
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_model *model = recorded_model();
        for (int k = 0; k < 10; k++) {
            tell_cpus(model, 2);
            tell_lap(model, cases[i].lap);
        }
        weir_prediction_free(predict(model));
        double others = model->shown.background;
        if (!(others <= cases[i].most_others))
            fail_msg("case %zu: %g threads of other programs", i, others);
        weir__model_free(model);
    }
}

/*
 * Four slots compute on eight CPUs. Others that use nearly all the rest do not delay them, but eight slots would
 * share the CPUs with them: 8 / (8 + 3.9) of a CPU each. Where others use nothing, waits for a CPU have another
 * cause. A larger machine has CPUs that the process may not use, and nobody knows which of them the others used: only
 * the waits count.
 */
TEST_CASE(others_have_as_many_threads_as_use_the_cpus_that_were_measured)
{
    static const struct {
        reported_lap lap;
        double others_s, idle_s, others, gain;
    } cases[] = {
        { { .tasks = 400, .time_s = 0.010, .cpu_s = 0.010 }, 3.9, 0.1, 3.9, 2 * 8 / (8 + 3.9) },
        { { .tasks = 296, .time_s = 0.0135, .cpu_s = 0.010, .cpu_wait_s = 0.0035 }, 0, 5, 0, 2 },
        { { .tasks = 400, .time_s = 0.010, .cpu_s = 0.010 }, 3.9, 8, 0, 2 },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_model *model = recorded_model();
        double used_s = cases[i].lap.tasks * cases[i].lap.cpu_s;
        for (int k = 0; k < 10; k++) {
            tell_process(model, 8, used_s);
            tell_machine(model, cases[i].others_s, cases[i].idle_s);
            tell_lap(model, cases[i].lap);
        }
        weir__model_reset(model);
        set(model, "decode.concurrency", "8");
        set(model, "threads", "8");
        set(model, "sink.time", "0");
        weir_prediction *p = predict(model);
        if (!(fabs(model->shown.background - cases[i].others) <= 0.2))
            fail_msg("case %zu: %g threads of other programs", i, model->shown.background);
        assert_near(p->throughput / 400, cases[i].gain, 0.03);
        weir_prediction_free(p);
        weir__model_free(model);
    }
}

/* Tasks that compute for 5 ms, and take 41 ms because 16 share two CPUs; 0.15 ms of that is the error of clocks. */
TEST_CASE(tasks_that_compute_do_not_sleep)
{
    weir_model *model = reported_model();
    for (int i = 0; i < 10; i++)
        tell_lap(model, (reported_lap){ .tasks = 390, .time_s = 0.041, .cpu_s = 0.005, .cpu_wait_s = 0.03585 });
    assert_near(model->shown.nodes[1].time_s, 0.00515, 0.001);
    weir__model_free(model);
}

/* A container on a larger machine. */
TEST_CASE(the_cpus_are_those_that_the_process_may_use)
{
    weir_model *model;
    assert_int_equal(weir__model_new(&model, NULL), WEIR_OK);
    tell_cpus(model, 3);
    weir__model_reset(model);
    assert_near(model->shown.cpus, 3, 1e-9);
    weir__model_free(model);
}

/* The source has a thread for its slot, but the slot waits 2 ms for it after each task of 10 ms. */
TEST_CASE(waits_for_a_thread_of_its_own_belong_to_each_task)
{
    weir_stage_record stages[LENGTH(made_up)];
    memcpy(stages, made_up, sizeof stages);
    stages[0].threads = 1;
    weir_model *model = new_model(1, 4);
    assert_int_equal(begin_model(model, stages, LENGTH(stages)), WEIR_OK);
    for (int k = 0; k < 10; k++) {
        weir_lap_record source = { .subject = WEIR_SUBJECT_FLOW, .name = "0:0:src", .kind = "source" };
        source.metrics.task = (weir_task_metrics){ .num_tasks = 83,
                                                   .busy_ns = 830 * WEIR_MILLISECOND,
                                                   .wait_thread_ns = 166 * WEIR_MILLISECOND };
        weir_lap_record pool = {
            .subject = WEIR_SUBJECT_POOL, .kind = "pool", .name = "0:0:src_pool", .capacity = 1
        };
        pool.metrics.pool = (weir_pool_metrics){ .busy_ns = 830 * WEIR_MILLISECOND };
        tell(model, source);
        tell(model, pool);
        tell_lap(model, (reported_lap){ .tasks = 0 });
    }
    assert_near(model->shown.nodes[0].time_s, 0.012, 0.01);
    weir__model_free(model);
}

/* A task needs less CPU time if it has the CPUs for itself, but how much less is not recorded. */
TEST_CASE(the_range_knows_that_busy_cpus_slow_each_other_down)
{
    weir_model *model = reported_model();
    tell_cpus(model, 4);
    for (int i = 0; i < 10; i++)
        tell_lap(model, (reported_lap){ .tasks = 400, .time_s = 0.010, .cpu_s = 0.010 });
    set(model, "sink.time", "0");
    set(model, "threads", "1");
    weir_prediction *p = predict(model);
    assert_near(p->throughput, 100, 0.01);
    if (!(p->high >= 150 && p->low > 90))
        fail_msg("%g to %g", p->low, p->high);
    weir_prediction_free(p);
    weir__model_free(model);
}

/* -- a real run */

enum { NUM_ITEMS = 200 };

static int make_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static char nothing;
    (void)worker;
    (void)in;
    if (weir_task_seq(task) == NUM_ITEMS)
        return WEIR_EOF;
    out->data = &nothing;
    return WEIR_OK;
}

static int pass_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (weir_task_seq(task) % 10 == 0)
        return WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static int pick_third(void *self, const weir_item *item)
{
    (void)self;
    return item->seq % 4 == 0;
}

static void run_pipeline(weir_observer recorder)
{
    static const weir_op source = { .name = "src", .run = make_item }, pass = { .name = "pass", .run = pass_item };
    weir_builder *b = weir_builder_new();
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder_source(b, &source, NULL, 0, &(weir_stage_options){ .name = "one", .threads = 1 });
    weir_builder_source(b, &source, NULL, 0, &(weir_stage_options){ .name = "two" });
    weir_builder_merge(
        b,
        &(weir_merge_config){ .order = WEIR_MERGE_WEIGHTED, .weights = (const uint32_t[]){ 3, 1 }, .num_weights = 2 },
        NULL);
    weir_builder_route(b, &(weir_route_config){ .pick = pick_third, .num_branches = 2 }, NULL);
    weir_builder_branch(b);
    weir_builder_branch(b);
    weir_builder_pipe(b, &pass, NULL, 0, &(weir_stage_options){ .concurrency = 3, .threads = 2 });
    weir_builder_join(b, &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT });
    weir_pipe_aggregate(b, &(weir_aggregate_config){ .num_items = 5 }, NULL);
    weir_builder_sink(b, NULL);
    assert_int_equal(weir_builder_build(b,
                                        &(weir_pipeline_options){ .threads = 2,
                                                                  .stats_interval_ns = WEIR_FOREVER,
                                                                  .observers = &recorder,
                                                                  .num_observers = 1 },
                                        &pipeline, NULL),
                     WEIR_OK);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
}

/* Runs weir whatif; its output on both channels must have this text. */
static void check_command(const char *path, const char *arguments, int wanted_status, const char *wanted)
{
    char command[1024], output[16384];
    const char *program = getenv("WEIR_TOOL");
    if (!program)
        fail_msg("WEIR_TOOL is not set: run this test with ctest");
    snprintf(command, sizeof command, "'%s' whatif '%s' %s 2>&1", program, path, arguments);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    output[fread(output, 1, sizeof output - 1, out)] = '\0';
    int status = pclose(out);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted_status || !strstr(output, wanted))
        fail_msg("%s: status %d, and no \"%s\" in:\n%s", command, status, wanted, output);
}

TEST_CASE(a_recorded_run_gives_a_model_with_its_connections)
{
    char folder[] = "/tmp/weir-whatif-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run.db", folder);
    weir_sqlite_writer *writer;
    static const char *const names[] = { "0:0:one",     "0:1:two",  "0:2:merge",     "0:3:route",
                                         "0:4:pass[3]", "0:5:join", "0:6:aggregate", "0:7:sink" };
    weir_model *read;
    weir_recording *recording;
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_open(path, NULL, &writer, &error), WEIR_OK);
    run_pipeline(weir_sqlite_observer(writer));
    assert_int_equal(weir_sqlite_close(writer, &error), WEIR_OK);

    assert_int_equal(weir_recording_open(path, &recording, &error), WEIR_OK);
    if (weir__model_read(recording, NULL, &read, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(recording);
    assert_int_equal(read->num_nodes, 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(read->shown.nodes[i].name, names[i]);
    assert_int_equal(read->shown.nodes[4].concurrency, 3);
    assert_int_equal(read->shown.nodes[4].threads, 2);
    assert_near(read->shown.nodes[4].skip_share, 0.2, 1e-9);
    assert_int_equal(read->shown.nodes[5].output_order, WEIR_ORDER_INPUT);
    assert_int_equal(read->shown.nodes[4].branches[0], 1);
    const weir_model_node *merge = &read->shown.nodes[2], *route = &read->shown.nodes[3];
    assert_int_equal(merge->merge_order, WEIR_MERGE_WEIGHTED);
    assert_int_equal(merge->weights[0], 3);
    assert_near(route->shares[0] / route->shares[1], 3, 1e-9);
    assert_int_equal(route->look_ahead_items, 0); /* its join restores the order */
    assert_int_equal(read->shown.nodes[0].threads, 1);
    assert_near(read->shown.nodes[6].results, 0.2, 1e-9);
    assert_near(read->shown.threads, 2, 1e-9);
    weir_prediction *prediction = predict(read);
    assert_true(prediction->throughput > 0);
    weir_prediction_free(prediction);
    weir__model_free(read);
    check_command(path, "--set pass.concurrency=8 --threads 4 --cpus 16", 0,
                  "This is a prediction for more slots, threads or CPUs");
    check_command(path, "--set pass.concurrency=8", 0, "This is a prediction for more slots");
    check_command(path, "--set pass.time=0.5x --json", 0, "{\"is_prediction\": true, \"throughput\": ");
    check_command(path, "--csv", 0, "0:6:aggregate,stage,1,");
    check_command(path, "--set pass.concurency=8", 2,
                  "weir whatif: pass.concurency: no such setting; did you mean concurrency?");
    check_command(path, "--set threads", 2, "a setting and its value, such as decode.concurrency=8");
    check_command(path, "--run 7", 3, "");
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
