/*
 * libFuzzer's target: everything that reads a database, on two recorded runs in which the input has changed values. The
 * first byte chooses the recording, the second one a filter, the others are the changes. Whatever the values are, readers
 * return a result or an error with a text. Damaged files are SQLite's business: tests/torture/run has them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/query.h>
#include <weir/sqlite.h>

#include "tests/fuzz/changed_database.h"
#include "tests/fuzz/run_weir.h"

enum { NUM_ITEMS = 200 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char path[] = "recorded.db";
static changed_database database;

/* ---- the runs ---------------------------------------------------------------------------------------------------- */

static int make_number(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    uint32_t *count = worker;
    char label[16];
    snprintf(label, sizeof label, "%" PRIu32, *count);
    if (++*count > NUM_ITEMS)
        return WEIR_EOF;
    out->data = strdup(label);
    out->size_bytes = strlen(label);
    out->release = weir_release_free;
    return weir_task_set_label(task, label);
}

static int fail_some(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    WEIR_SPAN(weir_span_name_get("io", "read"));
    weir_counter_set(weir_counter_get("memory", "cache", NULL, 0), 0, (double)weir_task_seq(task));
    if (weir_task_seq(task) % 10 == 0)
        return weir_task_fail(task, WEIR_EDATA, 7, "the tenth is bad");
    weir_item_move(out, in);
    return WEIR_OK;
}

static int every_other(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

static const weir_op source_op = { .name = "source", .worker_size = sizeof(uint32_t), .run = make_number };
static const weir_op stage_op = { .name = "stage", .run = fail_some };

static void consume(weir_pipeline *pipeline)
{
    weir_item item;
    for (int64_t i = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++) {
        weir_pipeline_mark_step(pipeline, i);
        if (i % 50 == 0)
            weir_pipeline_mark_phase(pipeline, i % 100 ? "train" : "eval");
        weir_item_release(&item);
    }
}

static void record_run(int32_t rank)
{
    weir_sqlite_writer *writer;
    weir_task_hook hook;
    weir_pipeline *pipeline;
    const weir_sqlite_options ranked = {
        .command = "fuzz", .node_id = "node", .job = "job", .world = 2, .rank = rank
    };
    require(weir_sqlite_open(path, &ranked, &writer, NULL) == WEIR_OK);
    require(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hook, NULL) == WEIR_OK);
    weir_observer observer = weir_sqlite_observer(writer);
    const weir_stage_options watched = { .concurrency = 2, .task_hooks = &hook, .num_task_hooks = 1 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, NULL, 0, NULL);
    weir_builder_source(builder, &source_op, NULL, 0, NULL);
    weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, NULL);
    weir_builder_route(builder, &(weir_route_config){ .pick = every_other, .num_branches = 2 }, NULL);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &stage_op, NULL, 0, &watched);
    weir_builder_branch(builder);
    weir_builder_pipe(builder, &stage_op, NULL, 0, &watched);
    weir_builder_join(builder, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = &observer,
                                      .num_observers = 1,
                                      .stats_interval_ns = WEIR_MILLISECOND };
    require(weir_builder_build(builder, &options, &pipeline, NULL) == WEIR_OK);
    consume(pipeline);
    weir_pipeline_free(pipeline);
    require(weir_sqlite_close(writer, NULL) == WEIR_OK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    run_weir_init();
    weir_log_set_level(WEIR_LOG_ERROR);
    record_run(0);
    record_run(1);
    changed_database_read(&database, path);
    return 0;
}

/* ---- the readers ------------------------------------------------------------------------------------------------- */

/* Filters that all commands of the first list take. */
static const char *const filters[] = {
    "",
    " --run all",
    " --run last",
    " --run 1 --name stage",
    " --run all --phase train",
    " --from-phase train --until-phase eval --every-time",
    " --from-mode train --until-mode eval",
    " --steps 10:60 --node n*",
    " --between-steps 5:100",
    " --section before-steps",
    " --section after-steps",
    " --since +1ms --until -1ms",
    " --rank 1",
};

static const char *const filtered[] = {
    "summary recorded.db",
    "failures recorded.db",
    "failures recorded.db --list",
    "slowest recorded.db --json",
    "slowest recorded.db --of items --sort per-frame",
    "slowest recorded.db --of laps",
    "explain recorded.db",
    "explain recorded.db --json",
    "whatif recorded.db --resamples 2",
    "whatif recorded.db --json --resamples 2 --threads 3 --cpus 1.5 --set stage.concurrency=3",
    "compare recorded.db recorded.db",
    "compare recorded.db recorded.db --all --json",
    "export recorded.db --format openmetrics",
    "export recorded.db --format openmetrics --laps",
    "export recorded.db --format json",
    "export recorded.db --format csv --output tables",
    "export recorded.db --format tensorboard --output events",
    "report recorded.db --output -",
    "plot recorded.db --output picture.svg",
    "plot recorded.db --all --output page.html",
    "watch recorded.db --once",
    "watch recorded.db --once --json",
    "query recorded.db",
    "query recorded.db --queues --sort p90 --reverse",
    "query recorded.db --by lap,flow --json",
    "query recorded.db --by step,stage --step-bin 7",
    "query recorded.db --by phase,queue --csv",
    "query recorded.db --by job-phase,pool",
    "query recorded.db --by transition,span",
    "query recorded.db --by mode-transition,stage",
    "query recorded.db --by node,run,process",
    "query recorded.db --by time,machine --bin 1ms",
    "query recorded.db --by counter,run --top 3",
    "query recorded.db --by function",
    "query recorded.db --by function --json",
    "query recorded.db --by function --folded",
    "query recorded.db --by function --flame-graph",
    "query recorded.db --list runs",
    "query recorded.db --list nodes --json",
    "query recorded.db --list stages",
    "query recorded.db --list phases",
    "query recorded.db --list tasks --csv",
    "query recorded.db --list flow",
    "query recorded.db --list queues --reverse",
    "query recorded.db --list pools",
    "query recorded.db --list process",
    "query recorded.db --list machine",
    "query recorded.db --list spans",
    "query recorded.db --list counters",
    "query recorded.db --list events --json",
    "query recorded.db --list failures",
    "query recorded.db --list items",
    "query recorded.db --list contents",
};

static const char *const unfiltered[] = {
    "check recorded.db --verbose", "check recorded.db --quick --json",
    "check recorded.db",           "merge merged.db recorded.db",
    "fleet recorded.db",           "fleet recorded.db --json",
};

static int ignore_lap(void *self, const weir_record *lap, weir_error *error)
{
    (void)self;
    (void)lap;
    (void)error;
    return WEIR_OK;
}

/* What no command reads. */
static void read_by_library(void)
{
    weir_recording *recording;
    weir_error error = { 0 };
    if (weir_recording_open(path, &recording, &error) == WEIR_OK) {
        int status = weir_recording_each_lap(recording, NULL, ignore_lap, NULL, &error);
        require(status >= 0 || error.message[0]);
        weir_recording_close(recording);
    } else
        require(error.message[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[256];
    if (size < 2)
        return -1;
    run_weir_clean();
    changed_database_write(&database, path, data + 2, size - 2);
    size_t recording = data[0] % (COUNT(filtered) + COUNT(unfiltered) + 1);
    if (recording < COUNT(filtered)) {
        snprintf(line, sizeof line, "%s%s", filtered[recording], filters[data[1] % COUNT(filters)]);
        run_weir(line, ' ');
    } else if (recording < COUNT(filtered) + COUNT(unfiltered))
        run_weir(unfiltered[recording - COUNT(filtered)], ' ');
    else
        read_by_library();
    return 0;
}
