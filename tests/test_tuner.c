/*
 * The tuner, fed with the laps of simulated pipelines: no test measures time. Each lap's figures are those that the
 * simulator gives for the settings of the moment.
 */
#include "support.h"

#include <math.h>
#include <unistd.h>

#include <weir/sqlite.h>
#include <weir/tuner.h>
#include <weir/whatif.h>

enum { MAX_STAGES = 4, MAX_DECISIONS = 256, LAPS = 30 };

/* A chain: source, stages, sink. */
typedef struct chain {
    const char *what;
    double source_s, sink_s, cpus;
    struct {
        double time_s, cpu_s;
        uint32_t most; /* slots that the search for the best fixed setting tries; 0 = 64 */
    } stages[MAX_STAGES];
    size_t num_stages;
    weir_order order;
} chain;

static const chain chains[] = {
    { .what = "the source is slow",
      .source_s = 0.010,
      .cpus = 2,
      .stages = { { 0.002, 0.002, 0 } },
      .num_stages = 1 },
    { .what = "decoding waits", .cpus = 2, .stages = { { 0.010, 0.0001, 0 } }, .num_stages = 1 },
    { .what = "the consumer is slow",
      .sink_s = 0.010,
      .cpus = 2,
      .stages = { { 0.001, 0.001, 0 } },
      .num_stages = 1 },
    { .what = "decoding computes", .cpus = 2, .stages = { { 0.005, 0.005, 0 } }, .num_stages = 1 },
    { .what = "results in input order",
      .cpus = 2,
      .stages = { { 0.005, 0.0001, 0 } },
      .num_stages = 1,
      .order = WEIR_ORDER_INPUT },
    { .what = "the main job", .source_s = 2e-6, .cpus = 2, .stages = { { 0.1, 0.095, 0 } }, .num_stages = 1 },
    { .what = "two stages on 8 CPUs",
      .cpus = 8,
      .stages = { { 0.030, 0.002, 0 }, { 0.012, 0.012, 0 } },
      .num_stages = 2 },
};

/* ---- the simulated pipeline --------------------------------------------------------------------------------- */

typedef struct decided {
    uint64_t lap;
    weir_tuner_action action;
    double predicted;
    char text[200];
} decided;

typedef struct simulated {
    chain chain;
    double slower; /* times of the stages are multiplied by it */
    weir_model *truth;
    weir_prediction *last; /* of the settings lap_threads and lap_slots; NULL = none */
    uint32_t lap_threads, lap_slots[MAX_STAGES];
    uint32_t threads, slots[MAX_STAGES];
    weir_observer observers[2];
    size_t num_observers;
    uint64_t lap;
    decided decisions[MAX_DECISIONS];
    size_t num_decisions;
    double rate, cpus;           /* of the last lap */
    uint64_t held_from, held_to; /* laps without results */
    const double *bursts;        /* what a lap's results are multiplied by; NULL = 1 */
    size_t num_bursts;
    double process_bytes, slot_bytes; /* memory, with slots; 0 = not told */
    double claimed_cpus;              /* the tasks seem to compute, on so many CPUs; 0 = the truth */
    bool in_children;                 /* the tasks run in child processes */
    bool has_threads;                 /* the stages have private threads */
} simulated;

static const char *const names[MAX_STAGES + 2] = { "0:0:src", "0:1:first", "0:2:second", "0:3:third", "0:4:fourth" };
static const char *const queues[MAX_STAGES + 2] = { "0:0:src_queue", "0:1:first_queue", "0:2:second_queue",
                                                    "0:3:third_queue", "0:4:fourth_queue" };

/* Times of the stages are multiplied by own->slower. */
static void make_truth(simulated *own)
{
    weir_error error = { 0 };
    char text[32];
    weir_model_free(own->truth);
    weir_prediction_free(own->last);
    own->last = NULL;
    assert_int_equal(weir_model_new(&own->truth, &error), WEIR_OK);
    weir_model_node source = { .name = names[0], .kind = "source", .time_s = own->chain.source_s, .threads = 1 };
    assert_int_equal(weir_model_add(own->truth, &source, &error), WEIR_OK);
    for (size_t i = 0; i < own->chain.num_stages; i++) {
        weir_model_node stage = { .name = names[i + 1],
                                  .kind = "stage",
                                  .time_s = own->chain.stages[i].time_s * own->slower,
                                  .cpu_s = own->chain.stages[i].cpu_s * own->slower,
                                  .output_order = own->chain.order };
        assert_int_equal(weir_model_add(own->truth, &stage, &error), WEIR_OK);
    }
    weir_model_node sink = { .name = "0:9:sink", .kind = "sink", .time_s = own->chain.sink_s };
    assert_int_equal(weir_model_add(own->truth, &sink, &error), WEIR_OK);
    snprintf(text, sizeof text, "%g", own->chain.cpus);
    assert_int_equal(weir_model_set(own->truth, "cpus", text, &error), WEIR_OK);
}

static void set(simulated *own, const char *setting, uint32_t value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    assert_int_equal(weir_model_set(own->truth, setting, text, NULL), WEIR_OK);
}

static weir_prediction *predict(simulated *own, uint32_t threads, const uint32_t *slots)
{
    weir_prediction *prediction;
    weir_error error = { 0 };
    char setting[64];
    set(own, "threads", threads);
    for (size_t i = 0; i < own->chain.num_stages; i++) {
        snprintf(setting, sizeof setting, "%s.concurrency", names[i + 1]);
        set(own, setting, slots[i]);
    }
    weir_predict_options options = { .num_items = 300, .no_range = true };
    if (weir_model_predict(own->truth, &options, &prediction, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return prediction;
}

/* Most laps have the settings of the lap before. */
static const weir_prediction *predict_lap(simulated *own)
{
    if (own->last && own->lap_threads == own->threads && memcmp(own->lap_slots, own->slots, sizeof own->slots) == 0)
        return own->last;
    weir_prediction_free(own->last);
    own->lap_threads = own->threads;
    memcpy(own->lap_slots, own->slots, sizeof own->slots);
    return own->last = predict(own, own->threads, own->slots);
}

#define EACH(call, ...) \
    for (size_t o = 0; o < own->num_observers; o++) \
        if (own->observers[o].call) \
    own->observers[o].call(own->observers[o].self, __VA_ARGS__)

static void start(simulated *own)
{
    weir_stage_info infos[MAX_STAGES + 2];
    size_t count = 0;
    infos[count++] = (weir_stage_info){ .name = names[0],
                                        .queue_name = queues[0],
                                        .kind = "source",
                                        .concurrency = 1,
                                        .queue_items = 2,
                                        .output_order = "completion",
                                        .inputs = "",
                                        .merge_order = "",
                                        .threads = 1 };
    for (size_t i = 1; i <= own->chain.num_stages; i++)
        infos[count++] =
            (weir_stage_info){ .name = names[i],
                               .queue_name = queues[i],
                               .kind = "stage",
                               .concurrency = own->slots[i - 1],
                               .queue_items = 2,
                               .output_order = own->chain.order == WEIR_ORDER_INPUT ? "input" : "completion",
                               .inputs = queues[i - 1],
                               .merge_order = "",
                               .threads = own->has_threads ? own->slots[i - 1] : 0 };
    infos[count++] = (weir_stage_info){ .name = "0:9:sink",
                                        .queue_name = "0:9:sink_queue",
                                        .kind = "sink",
                                        .concurrency = 1,
                                        .queue_items = 3,
                                        .output_order = "completion",
                                        .inputs = queues[own->chain.num_stages],
                                        .merge_order = "" };
    weir_run_info info = {
        .start_unix_ns = WEIR_SECOND, .threads = own->threads + 1, .stages = infos, .num_stages = (uint32_t)count
    };
    EACH(run_start, &info);
}

static int64_t ns(double seconds)
{
    return (int64_t)llround(seconds * 1e9);
}

static double memory_of(const simulated *own)
{
    double bytes = own->process_bytes;
    for (size_t i = 0; i < own->chain.num_stages; i++)
        bytes += own->slots[i] * own->slot_bytes;
    return bytes;
}

/* One lap of a second. */
static void run_lap(simulated *own)
{
    const weir_prediction *p = predict_lap(own);
    weir_lap lap = { .number = own->lap,
                     .end_unix_ns = (int64_t)(own->lap + 2) * WEIR_SECOND,
                     .elapsed_ns = WEIR_SECOND,
                     .num_joined = 1,
                     .position = { "loop", 0, -1 } };
    weir_pool_metrics pool = { 0 }, own_pool = { 0 };
    weir_subject_lap process = {
        .subject = WEIR_SUBJECT_PROCESS, .kind = "process", .lap = &lap, .name = "0:process"
    };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &process.metrics.process);
    double burst = own->bursts ? own->bursts[own->lap % own->num_bursts] : 1;
    bool is_held = own->lap >= own->held_from && own->lap < own->held_to;
    uint64_t num_items = is_held ? 0 : (uint64_t)llround(p->throughput * burst);
    own->lap++;
    own->rate = p->throughput;
    own->cpus = p->cpus;
    for (size_t i = 0; i + 1 < p->num_nodes; i++) {
        const weir_predicted_node *node = &p->nodes[i];
        double slots = i == 0 ? 1 : own->slots[i - 1];
        weir_subject_lap stage = { .subject =
                                       strcmp(node->kind, "stage") == 0 ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW,
                                   .lap = &lap,
                                   .name = names[i],
                                   .kind = node->kind };
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), &stage.metrics.task);
        stage.metrics.task.num_tasks = num_items;
        stage.metrics.task.busy_ns = ns(node->busy_share * slots);
        stage.metrics.task.wait_in_ns = i == 0 ? 0 : ns(node->wait_in_share * slots);
        stage.metrics.task.wait_thread_ns = ns(node->wait_thread_share * slots);
        stage.metrics.task.wait_turn_ns = ns(node->wait_turn_share * slots);
        stage.metrics.task.wait_out_ns = ns(node->wait_out_share * slots);
        stage.metrics.task.cpu_ns = ns(node->cpus);
        if (own->claimed_cpus > 0 && i > 0)
            stage.metrics.task.cpu_ns = ns(fmin(node->busy_share * slots, own->claimed_cpus));
        weir_pool_metrics *of = i == 0 ? &own_pool : &pool;
        of->busy_ns += stage.metrics.task.busy_ns;
        of->cpu_ns += own->in_children ? 0 : stage.metrics.task.cpu_ns;
        process.metrics.process.pool_cpu_ns += stage.metrics.task.cpu_ns;
        of->run_delay_ns += ns(node->cpu_wait_share * node->busy_share * slots);
        EACH(lap, &stage);
    }
    for (size_t i = 0; i < p->num_nodes; i++) {
        bool is_sink = i + 1 == p->num_nodes;
        weir_subject_lap queue = { .subject = WEIR_SUBJECT_QUEUE,
                                   .kind = "queue",
                                   .lap = &lap,
                                   .name = is_sink ? "0:9:sink_queue" : queues[i],
                                   .capacity = 2 };
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &queue.metrics.queue);
        queue.metrics.queue.num_put = queue.metrics.queue.num_items = num_items;
        if (is_sink)
            queue.metrics.queue.get_ns = ns(fmax(1 - p->throughput * own->chain.sink_s, 0));
        EACH(lap, &queue);
    }
    EACH(lap, (&(weir_subject_lap){ &lap, WEIR_SUBJECT_POOL, "0:pool", "pool", own->threads, { .pool = pool } }));
    EACH(lap, (&(weir_subject_lap){ &lap, WEIR_SUBJECT_POOL, "0:0:src_pool", "pool", 1, { .pool = own_pool } }));
    process.metrics.process.resident_bytes = own->slot_bytes > 0 ? (int64_t)memory_of(own) : -1;
    EACH(lap, &process);
    EACH(lap_end, &lap);
}

static void run_laps(simulated *own, int num_laps)
{
    for (int lap = 0; lap < num_laps; lap++)
        run_lap(own);
}

static void carry_out(void *self, const weir_tuner_decision *decision)
{
    simulated *own = self;
    assert_true(own->num_decisions < MAX_DECISIONS);
    assert_true(decision->action <= WEIR_TUNER_REVERTED || isnan(decision->predicted));
    decided *kept = &own->decisions[own->num_decisions++];
    *kept = (decided){ .lap = decision->lap, .action = decision->action, .predicted = decision->predicted };
    snprintf(kept->text, sizeof kept->text, "%s", decision->text);
    if (decision->after == 0)
        return;
    uint32_t *setting = &own->threads;
    for (size_t i = 0; i < own->chain.num_stages && decision->stage; i++)
        if (strcmp(names[i + 1], decision->stage) == 0)
            setting = &own->slots[i];
    assert_int_equal(*setting, decision->before);
    *setting = decision->after;
}

/* The highest throughput of all settings with up to 32 slots: with that many threads, or, within a CPU budget, with any
   number of them. */
static double best_of(simulated *own, uint32_t most_threads, double cpus)
{
    static const uint32_t ladder[] = { 1, 2, 4, 8, 16, 24, 32 };
    double best = 0;
    for (size_t t = 0; t < LENGTH(ladder) && ladder[t] <= most_threads; t++)
        for (size_t a = isinf(cpus) && ladder[t] < most_threads ? LENGTH(ladder) : 0; a < LENGTH(ladder); a++)
            for (size_t b = 0; b < LENGTH(ladder); b++) {
                uint32_t slots[MAX_STAGES] = { ladder[a], ladder[b] };
                if (own->chain.num_stages == 1 && b > 0)
                    break;
                weir_prediction *p = predict(own, ladder[t], slots);
                best = p->cpus <= cpus ? fmax(best, p->throughput) : best;
                weir_prediction_free(p);
            }
    return best;
}

static simulated *simulate(const chain *of, uint32_t threads, weir_tuner_options options, weir_tuner **tuner)
{
    simulated *own = calloc(1, sizeof *own);
    assert_non_null(own);
    own->chain = *of;
    own->slower = 1;
    own->threads = threads;
    for (size_t i = 0; i < of->num_stages; i++)
        own->slots[i] = 1;
    make_truth(own);
    options.decided = carry_out;
    options.decided_self = own;
    options.machine_cpus = of->cpus;
    assert_int_equal(weir_tuner_new(&options, tuner, NULL), WEIR_OK);
    own->observers[own->num_observers++] = weir_tuner_observer(*tuner);
    return own;
}

static void end(simulated *own, weir_tuner *tuner)
{
    weir_tuner_free(tuner);
    weir_prediction_free(own->last);
    weir_model_free(own->truth);
    free(own);
}

static void fail_with_decisions(const simulated *own, const char *why)
{
    for (size_t i = 0; i < own->num_decisions; i++)
        fprintf(stderr, "lap %llu: %s\n", (unsigned long long)own->decisions[i].lap, own->decisions[i].text);
    fail_msg("%s: %s: lap %llu, %g items/s, %g CPUs, threads %u, slots %u, %u", own->chain.what, why,
             (unsigned long long)own->lap, own->rate, own->cpus, own->threads, own->slots[0], own->slots[1]);
}

static void assert_reaches(const simulated *own, double share, double best)
{
    char text[64];
    snprintf(text, sizeof text, "the best is %g items/s", best);
    if (own->rate < share * best)
        fail_with_decisions(own, text);
}

/* ---- tests -------------------------------------------------------------------------------------------------- */

static void from_one_slot_it_reaches_the_best_and_rests(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(chains); c++) {
        weir_tuner *tuner;
        simulated *own = simulate(&chains[c], 1 + c % 2, (weir_tuner_options){ 0 }, &tuner);
        double best = best_of(own, (uint32_t)fmax(8, 4 * own->chain.cpus), INFINITY);
        start(own);
        for (int i = 0; i < LAPS; i++)
            run_lap(own);
        assert_reaches(own, 0.95, best);
        size_t num_decisions = own->num_decisions;
        assert_int_equal(own->decisions[num_decisions - 1].action, WEIR_TUNER_RESTED);
        for (int i = 0; i < LAPS; i++)
            run_lap(own);
        assert_int_equal(own->num_decisions, num_decisions); /* it does not oscillate */
        end(own, tuner);
    }
}

static void it_starts_again_when_the_load_changes(void **state)
{
    (void)state;
    for (size_t c = 0; c < LENGTH(chains); c++) {
        weir_tuner *tuner;
        simulated *own = simulate(&chains[c], 2, (weir_tuner_options){ 0 }, &tuner);
        start(own);
        run_laps(own, LAPS / 2);
        own->slower = c % 2 ? 0.25 : 4;
        make_truth(own);
        run_laps(own, LAPS);
        assert_reaches(own, 0.9, best_of(own, (uint32_t)fmax(8, 4 * own->chain.cpus), INFINITY));
        end(own, tuner);
    }
}

static size_t find(const simulated *own, weir_tuner_action action, size_t from)
{
    while (from < own->num_decisions && own->decisions[from].action != action)
        from++;
    return from;
}

static const chain slow_consumer = {
    .what = "a slow consumer", .sink_s = 0.010, .cpus = 2, .stages = { { 0.005, 0.00002, 0 } }, .num_stages = 1
};

static void after_a_change_of_the_load_it_predicts_again(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&slow_consumer, 1, (weir_tuner_options){ 0 }, &tuner);
    start(own);
    run_laps(own, LAPS);
    own->slower = 8;
    make_truth(own);
    run_laps(own, LAPS);
    size_t changed = find(own, WEIR_TUNER_CHANGED, find(own, WEIR_TUNER_RESTARTED, 0));
    if (changed >= own->num_decisions || !isfinite(own->decisions[changed].predicted))
        fail_with_decisions(own, "no change with a prediction after the restart");
    assert_reaches(own, 0.95, 100);
    end(own, tuner);
}

static void each_of_many_changes_of_the_load_is_noticed(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&slow_consumer, 1, (weir_tuner_options){ .max_threads = 64 }, &tuner);
    start(own);
    for (; own->slower <= 64; own->slower *= 2) {
        make_truth(own);
        run_laps(own, LAPS);
        assert_reaches(own, 0.9, 100);
    }
    end(own, tuner);
}

/* The throughput is the same: the slots were just enough for the source. */
static void it_notices_that_the_source_has_become_faster(void **state)
{
    (void)state;
    chain tight = {
        .what = "a slow source", .source_s = 0.005, .cpus = 2, .stages = { { 0.010, 0.0001, 0 } }, .num_stages = 1
    };
    weir_tuner *tuner;
    simulated *own = simulate(&tight, 1, (weir_tuner_options){ 0 }, &tuner);
    start(own);
    run_laps(own, 2 * LAPS);
    assert_in_range((uint64_t)own->rate, 190, 200);
    own->chain.source_s = 0.001;
    make_truth(own);
    run_laps(own, LAPS);
    assert_reaches(own, 0.95, best_of(own, 8, INFINITY));
    end(own, tuner);
}

static void laps_in_which_one_item_holds_all_results_back_do_not_count(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&chains[4], 1, (weir_tuner_options){ 0 }, &tuner);
    own->held_from = 7; /* while it measures the effect of the first changes */
    own->held_to = 17;
    start(own);
    run_laps(own, LAPS + 10);
    assert_reaches(own, 0.95, best_of(own, 8, INFINITY));
    for (size_t i = 0; i < own->num_decisions; i++)
        if (strstr(own->decisions[i].text, " 0/s"))
            fail_with_decisions(own, "it decided without a result");
    end(own, tuner);
}

static void laps_that_differ_much_are_measured_for_longer(void **state)
{
    (void)state;
    static const double bursts[] = { 1.9, 0.1 };
    chain slow_source = { .what = "a bursty source",
                          .source_s = 1.0 / 150,
                          .cpus = 2,
                          .stages = { { 0.010, 0.0001, 0 } },
                          .num_stages = 1 };
    weir_tuner *tuner;
    simulated *own = simulate(&slow_source, 1, (weir_tuner_options){ 0 }, &tuner);
    own->bursts = bursts;
    own->num_bursts = LENGTH(bursts);
    start(own);
    run_laps(own, LAPS);
    assert_reaches(own, 0.9, best_of(own, 8, INFINITY));
    end(own, tuner);
}

/* To the model, the CPUs seem to be the limit. */
static void slots_and_threads_are_tried_together_if_the_model_is_wrong(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&chains[1], 1, (weir_tuner_options){ 0 }, &tuner);
    own->claimed_cpus = 2;
    start(own);
    run_laps(own, LAPS);
    assert_reaches(own, 0.95, best_of(own, 8, INFINITY));
    end(own, tuner);
}

static void a_budget_that_cannot_be_kept_is_told(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&chains[3], 1, (weir_tuner_options){ .cpus = 0.8 }, &tuner);
    start(own);
    run_laps(own, 2 * LAPS);
    assert_int_equal(own->num_decisions, 1);
    if (!strstr(own->decisions[0].text, "the CPU budget is exceeded by 25 %, and there is nothing left to lower"))
        fail_with_decisions(own, "no such text");
    end(own, tuner);
}

static void the_cpu_budget_is_not_exceeded_twice_in_a_row(void **state)
{
    (void)state;
    static const double budgets[] = { 1, 1.5, 3, 3 };
    chain computes = { .what = "a CPU budget", .cpus = 8, .stages = { { 0.005, 0.004, 0 } }, .num_stages = 1 };
    for (size_t b = 0; b < LENGTH(budgets); b++) {
        weir_tuner *tuner;
        simulated *own = simulate(&computes, 1, (weir_tuner_options){ .cpus = budgets[b] }, &tuner);
        own->in_children = b == 3; /* as behind weir_isolated: the threads only wait */
        unsigned num_over = 0;
        start(own);
        for (int lap = 0; lap < 4 * LAPS; lap++) {
            own->chain.stages[0].cpu_s = lap < 2 * LAPS ? 0.002 : 0.005; /* the same work becomes expensive */
            if (lap % (2 * LAPS) == 0)
                make_truth(own);
            run_lap(own);
            num_over = own->cpus > budgets[b] * 1.011 ? num_over + 1 : 0;
            if (num_over > 1)
                fail_with_decisions(own, "over the budget for two laps");
        }
        assert_reaches(own, 0.9, best_of(own, 32, budgets[b]));
        end(own, tuner);
    }
}

static void the_memory_budget_is_not_exceeded_twice_in_a_row(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&chains[1], 2, (weir_tuner_options){ .memory_bytes = 1000000000 }, &tuner);
    unsigned num_over = 0;
    own->process_bytes = 5e8;
    own->slot_bytes = 9e7; /* so there is room for five */
    start(own);
    for (int lap = 0; lap < 2 * LAPS; lap++) {
        num_over = memory_of(own) > 1e9 ? num_over + 1 : 0;
        if (num_over > 1)
            fail_with_decisions(own, "over the budget for two laps");
        run_lap(own);
        if (lap == LAPS)
            assert_reaches(own, 0.95, 5 / 0.010);
        own->slot_bytes = lap < LAPS ? own->slot_bytes : 2e8; /* larger videos */
    }
    assert_int_equal(own->slots[0], 2);
    end(own, tuner);
}

static void a_memory_budget_that_cannot_be_kept_is_told(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own = simulate(&chains[1], 2, (weir_tuner_options){ .memory_bytes = 100000 }, &tuner);
    own->slots[0] = 8;
    own->process_bytes = 90000;
    own->slot_bytes = 20000;
    start(own);
    run_laps(own, LAPS);
    assert_int_equal(own->slots[0], 1);
    for (size_t i = 0; i + 1 < own->num_decisions; i++)
        assert_int_equal(own->decisions[i].action, WEIR_TUNER_REDUCED);
    if (!strstr(own->decisions[own->num_decisions - 1].text, "the memory budget is exceeded by 10 %"))
        fail_with_decisions(own, "no such text");
    end(own, tuner);
}

static void a_recorded_run_is_decided_the_same_way_again(void **state)
{
    (void)state;
    char path[] = "/tmp/weir-tuner-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    weir_tuner *tuner;
    weir_sqlite_writer *writer;
    weir_reader *reader;
    weir_error error = { 0 };
    simulated *own = simulate(&chains[6], 2, (weir_tuner_options){ .memory_bytes = 2000000000 }, &tuner);
    own->process_bytes = 1e9;
    own->slot_bytes = 3e7;
    assert_int_equal(weir_sqlite_open(path, NULL, &writer, NULL), WEIR_OK);
    own->observers[own->num_observers++] = weir_sqlite_observer(writer);
    assert_int_equal(own->observers[1].attach(own->observers[1].self, &error), WEIR_OK);
    start(own);
    run_laps(own, LAPS);
    own->observers[1].run_end(own->observers[1].self, &(weir_run_end){ .end_unix_ns = 100 * WEIR_SECOND });
    own->observers[1].detach(own->observers[1].self);
    assert_int_equal(weir_sqlite_close(writer, &error), WEIR_OK);

    simulated *again = calloc(1, sizeof *again);
    again->chain = own->chain;
    again->threads = 2;
    again->slots[0] = again->slots[1] = 1;
    weir_tuner_options options = {
        .machine_cpus = own->chain.cpus, .memory_bytes = 2000000000, .decided = carry_out, .decided_self = again
    };
    assert_int_equal(weir_reader_open(path, &reader, &error), WEIR_OK);
    if (weir_tuner_replay(reader, WEIR_LAST_RUN, &options, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_reader_close(reader);
    assert_true(own->num_decisions > 2);
    assert_int_equal(again->num_decisions, own->num_decisions);
    for (size_t i = 0; i < own->num_decisions; i++) {
        assert_int_equal(again->decisions[i].lap, own->decisions[i].lap);
        assert_string_equal(again->decisions[i].text, own->decisions[i].text);
    }
    end(own, tuner);
    free(again);
    unlink(path);
}

static void more_slots_than_the_engine_accepts_are_not_tried(void **state)
{
    (void)state;
    weir_tuner *tuner;
    simulated *own =
        simulate(&chains[1], 1, (weir_tuner_options){ .max_slots = UINT32_MAX, .max_threads = UINT32_MAX }, &tuner);
    start(own);
    run_laps(own, 6);
    assert_in_range(own->slots[0], 2, 65536);
    assert_in_range(own->threads, 2, 65536);
    end(own, tuner);
}

static void note_length(void *self, const weir_tuner_decision *decision)
{
    *(size_t *)self = strlen(decision->text);
}

static void a_decision_on_a_stage_with_a_long_name_is_cut_off(void **state)
{
    (void)state;
    char name[600];
    weir_tuner *tuner;
    size_t length = 0;
    weir_tuner_options options = { .memory_bytes = 1, .decided = note_length, .decided_self = &length };
    weir_lap lap = { .elapsed_ns = WEIR_SECOND, .num_joined = 1, .position = { "loop", 0, -1 } };
    snprintf(name, sizeof name, "0:1:%0590d", 1);
    assert_int_equal(weir_tuner_new(&options, &tuner, NULL), WEIR_OK);
    weir_observer observer = weir_tuner_observer(tuner);
    weir_stage_info infos[] = {
        { .name = "0:0:src", .queue_name = "0:0:q", .kind = "source", .concurrency = 1, .inputs = "" },
        { .name = name, .queue_name = "0:1:q", .kind = "stage", .concurrency = 2, .inputs = "0:0:q" },
        { .name = "0:2:sink", .queue_name = "0:2:q", .kind = "sink", .concurrency = 1, .inputs = "0:1:q" },
    };
    for (size_t i = 0; i < 3; i++)
        infos[i].output_order = infos[i].merge_order = "";
    observer.run_start(observer.self, &(weir_run_info){ .threads = 1, .stages = infos, .num_stages = 3 });
    weir_subject_lap process = {
        .subject = WEIR_SUBJECT_PROCESS, .kind = "process", .lap = &lap, .name = "0:process"
    };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &process.metrics.process);
    process.metrics.process.resident_bytes = 1000;
    observer.lap(observer.self, &process);
    observer.lap_end(observer.self, &lap);
    assert_in_range(length, 100, strlen(name));
    weir_tuner_free(tuner);
}

/* ---- a real pipeline ---------------------------------------------------------------------------------------- */

static void an_attached_pipeline_is_changed_and_events_say_why(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    test_gate gate = GATE;
    test_recorder recorder;
    recorder_init(&recorder);
    weir_tuner *tuner;
    assert_int_equal(weir_tuner_new(&(weir_tuner_options){ .min_items = 1 }, &tuner, NULL), WEIR_OK);
    weir_observer observers[] = { recorder.observer, weir_tuner_observer(tuner) };
    test_numbers numbers = { .ledger = &ledger, .count = 100000 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &gated_op, &gate, 0, &(weir_stage_options){ .name = "work" });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 2,
                                                                       .observers = observers,
                                                                       .num_observers = 2,
                                                                       .stats_interval_ns = 5 * WEIR_MILLISECOND });
    assert_int_equal(weir_tuner_attach(tuner, pipeline), WEIR_OK);
    gate_let(&gate, 1);
    for (uint64_t num_taken = 0; recorder_events_named(&recorder, "tuner") == 0 && num_taken < 90000; num_taken++) {
        gate_let(&gate, 1);
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, 60 * WEIR_SECOND), WEIR_OK);
        weir_item_release(&item);
    }
    gate_open(&gate);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    weir_tuner_free(tuner);
    assert_true(recorder_events_named(&recorder, "tuner") > 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

/* The stage keeps items between tasks. Its laps are made up: it looks like the limit. */
static void what_the_engine_refuses_changes_nothing(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    test_recorder recorder;
    recorder_init(&recorder);
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 2 },
                        &(weir_stage_options){ .name = "first", .threads = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = 8,
                                                                       .observers = &recorder.observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = WEIR_FOREVER });
    weir_tuner *tuner;
    simulated *own = simulate(&chains[1], 8, (weir_tuner_options){ .max_threads = 8 }, &tuner);
    own->has_threads = true;
    assert_int_equal(weir_tuner_attach(tuner, pipeline), WEIR_OK);
    start(own);
    run_laps(own, LAPS);
    assert_int_equal(own->slots[0], 1);
    end(own, tuner);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    assert_int_equal(recorder_events_named(&recorder, "threads"), 0);
    recorder_free(&recorder);
    ledger_close(&ledger);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(from_one_slot_it_reaches_the_best_and_rests),
        TEST(it_starts_again_when_the_load_changes),
        TEST(after_a_change_of_the_load_it_predicts_again),
        TEST(each_of_many_changes_of_the_load_is_noticed),
        TEST(it_notices_that_the_source_has_become_faster),
        TEST(laps_in_which_one_item_holds_all_results_back_do_not_count),
        TEST(laps_that_differ_much_are_measured_for_longer),
        TEST(slots_and_threads_are_tried_together_if_the_model_is_wrong),
        TEST(a_budget_that_cannot_be_kept_is_told),
        TEST(the_cpu_budget_is_not_exceeded_twice_in_a_row),
        TEST(the_memory_budget_is_not_exceeded_twice_in_a_row),
        TEST(a_memory_budget_that_cannot_be_kept_is_told),
        TEST(a_recorded_run_is_decided_the_same_way_again),
        TEST(more_slots_than_the_engine_accepts_are_not_tried),
        TEST(a_decision_on_a_stage_with_a_long_name_is_cut_off),
        TEST(an_attached_pipeline_is_changed_and_events_say_why),
        TEST(what_the_engine_refuses_changes_nothing),
    };
    return RUN_TESTS(tests);
}
