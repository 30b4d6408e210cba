/*
 * weir-bench stop: the time from weir_pipeline_stop() until weir_pipeline_free() has returned. Then every thread is
 * joined and every item is released. All slots of a stage are in one state. The operations follow the rule of op.h
 * for long operations: they check weir_task_should_stop() about every millisecond.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/engine.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "bench/harness/background_load.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/harness/spin.h"
#include "tools/cli/memory.h"

enum { ITEM_BYTES = 4096 };

typedef struct stop_settings {
    uint32_t slots;
    uint32_t runs;
    const char *json_path;
    uint64_t spins_per_ask; /* about one millisecond of CPU time */
} stop_settings;

/* One state, for all slots. */
typedef struct stop_state {
    const char *name;
    const char *what;
    const weir_op *source;
    const weir_op *stage;
    bool own_threads; /* the stage has one private thread for each slot */
    size_t count;     /* offset of the number of slots in this state in the snapshot */
} stop_state;

/* ---- operations --------------------------------------------------------------------------------------------- */

/* Makes an item with data to release. */
static int make_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    out->data = malloc(ITEM_BYTES);
    out->size_bytes = ITEM_BYTES;
    out->release = weir_release_free;
    return out->data ? WEIR_OK : weir_task_fail(task, WEIR_ENOMEM, 0, "no memory for an item");
}

static int sleep_until_stopped(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    while (!weir_task_should_stop(task))
        usleep(1000);
    return WEIR_ESTOPPED;
}

static int compute_until_stopped(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    const stop_settings *settings = weir_task_config(task);
    while (!weir_task_should_stop(task))
        bench_spin(settings->spins_per_ask);
    return WEIR_ESTOPPED;
}

static int pass_on(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_item_move(out, in);
    return WEIR_OK;
}

static int stay_pending(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    (void)task;
    return WEIR_PENDING;
}

static void cancel_pending(void *worker, weir_task *task)
{
    (void)worker;
    weir_task_complete(task, WEIR_ESTOPPED, NULL);
}

static const weir_op endless_source = { .name = "make", .run = make_item };
static const weir_op silent_source = { .name = "wait", .run = sleep_until_stopped };
static const weir_op compute_op = { .name = "slots", .run = compute_until_stopped };
static const weir_op sleep_op = { .name = "slots", .run = sleep_until_stopped };
static const weir_op pass_on_op = { .name = "slots", .run = pass_on };
static const weir_op pending_op = { .name = "slots", .run = stay_pending, .cancel = cancel_pending };

static const stop_state states[] = {
    { "computing", "tasks that compute, each on a private thread", &endless_source, &compute_op, true,
      offsetof(weir_stage_snapshot, running) },
    { "sleeping", "tasks that sleep, each on a private thread", &endless_source, &sleep_op, true,
      offsetof(weir_stage_snapshot, running) },
    { "put", "results waiting for room", &endless_source, &pass_on_op, false,
      offsetof(weir_stage_snapshot, waiting_out) },
    { "get", "slots waiting for input", &silent_source, &pass_on_op, false,
      offsetof(weir_stage_snapshot, waiting_in) },
    { "pending", "pending tasks, completed when they are cancelled", &endless_source, &pending_op, false,
      offsetof(weir_stage_snapshot, pending) },
};

enum { NUM_STATES = sizeof states / sizeof *states };

/* ---- a run -------------------------------------------------------------------------------------------------- */

static weir_pipeline *build(const stop_settings *settings, const stop_state *state)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, state->source, NULL, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(
        builder, state->stage, settings, 0,
        &(weir_stage_options){ .concurrency = settings->slots, .threads = state->own_threads ? settings->slots : 0 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_builder_build(builder, NULL, &pipeline, &error);
    if (!pipeline)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

/* The number of slots of the stage in the state; also waits for the source if required. */
static uint32_t count_slots(weir_pipeline *pipeline, const stop_state *state)
{
    weir_snapshot *snapshot;
    uint32_t count = 0;
    if (weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
        return 0;
    if (state->source == &endless_source || snapshot->stages[0].running == 1)
        memcpy(&count, (const char *)&snapshot->stages[1] + state->count, sizeof count);
    weir_snapshot_free(snapshot);
    return count;
}

static int wait_for_state(weir_pipeline *pipeline, const stop_settings *settings, const stop_state *state)
{
    int64_t end_ns = weir_clock_ns() + 15 * WEIR_SECOND;
    uint32_t count;
    while ((count = count_slots(pipeline, state)) < settings->slots) {
        if (weir_clock_ns() > end_ns) {
            fprintf(stderr, "weir-bench: after 15 s %" PRIu32 " of %" PRIu32 " slots are in the state '%s'\n", count,
                    settings->slots, state->name);
            return -1;
        }
        usleep(1000);
    }
    return 0;
}

static int run_once(const stop_settings *settings, const stop_state *state, double *took_ms)
{
    weir_pipeline *pipeline = build(settings, state);
    if (!pipeline)
        return -1;
    int rc = wait_for_state(pipeline, settings, state);
    int64_t start_ns = weir_clock_ns();
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    *took_ms = (double)(weir_clock_ns() - start_ns) / WEIR_MILLISECOND;
    return rc;
}

static int run_all(const stop_settings *settings, double *took_ms)
{
    int rc = 0;
    for (uint32_t run = 0; run < settings->runs && rc == 0; run++) {
        for (int i = 0; i < NUM_STATES && rc == 0; i++)
            rc = run_once(settings, &states[i], &took_ms[(uint32_t)i * settings->runs + run]);
    }
    return rc;
}

static int tell(const stop_settings *settings, const bench_background_load *start, double *took_ms)
{
    bench_report *report = bench_report_new();
    bench_report_background_load(report, start);
    printf("\n%-12s%10s%10s%10s  %s\n", "state", "median ms", "min ms", "max ms", "what is stopped");
    for (int i = 0; i < NUM_STATES; i++) {
        bench_spread spread = bench_spread_of(&took_ms[(uint32_t)i * settings->runs], settings->runs);
        printf("%-12s%10.2f%10.2f%10.2f  %s\n", states[i].name, spread.median, spread.min, spread.max,
               states[i].what);
        bench_report_row(report, "stop");
        bench_report_text(report, "state", states[i].name);
        bench_report_number(report, "slots", settings->slots);
        bench_report_number(report, "runs", settings->runs);
        bench_report_spread(report, "ms", spread);
    }
    return bench_report_end(report, settings->json_path) == 0 ? 0 : 1;
}

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(stop_settings, what)

int bench_stop(int argc, char **argv)
{
    stop_settings settings = { .slots = 64, .runs = 100 };
    static const option_row rows[] = {
        { ROW("slots", slots, option_count32), .argument = "N", .help = "slots of the stage (default 64)" },
        { ROW("runs", runs, option_count32), .argument = "N",
          .help = "runs in each state, interleaved (default 100)" },
        { 0 },
    };
    bench_parsed parsed =
        bench_parse(argc, argv, &(option_set){ rows, &settings }, 1, &settings.json_path, "stop [options]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;

    settings.spins_per_ask = (uint64_t)(bench_spins_per_us() * 1000);
    double *took_ms = memory_get((size_t)settings.runs * NUM_STATES, sizeof *took_ms);
    printf("stop: %" PRIu32 " slots, from weir_pipeline_stop() until weir_pipeline_free() has returned, %" PRIu32
           " runs in each state, interleaved\n",
           settings.slots, settings.runs);
    bench_background_load start = bench_background_load_now();
    int rc = run_all(&settings, took_ms) == 0 ? tell(&settings, &start, took_ms) : 1;
    free(took_ms);
    return rc;
}
