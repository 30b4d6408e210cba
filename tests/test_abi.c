/*
 * A plain program that uses the public structs of the libraries, with memory behind them that the library must not touch.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

#define REQUIRE(condition) ((condition) ? (void)0 : fail_at(#condition, __LINE__))

static void fail_at(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    exit(1);
}

/* Allocated by the program, followed by memory that the library must not touch. */
#define GUARDED(type, name) \
    struct { \
        type value; \
        uint64_t guard; \
    } name = { .guard = UINT64_C(0x1122334455667788) } /* NOLINT(bugprone-macro-parentheses): a declaration */
#define CHECK_GUARD(name) REQUIRE((name).guard == UINT64_C(0x1122334455667788))

static int make(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint64_t *made = worker;
    char label[32];
    (void)in;
    if (*made == 20)
        return WEIR_EOF;
    snprintf(label, sizeof label, "item %d", (int)*made);
    *out = (weir_item){ .data = malloc(sizeof *made), .size_bytes = sizeof *made, .release = weir_release_free };
    memcpy(out->data, made, sizeof *made);
    ++*made;
    return weir_task_set_label(task, label);
}

static const weir_part_info width = { "width", WEIR_PART_COUNT, "pixels", "of the item" };

static int change(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const int *failing = weir_task_config(task);
    if (weir_task_seq(task) == (uint64_t)*failing)
        return weir_task_fail(task, WEIR_EDATA, -5, "this one");
    REQUIRE(strcmp(in->type, "number") == 0);
    REQUIRE(weir_task_set_part(task, &width, 12) == WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op source = { .name = "make", .makes = "number", .worker_size = 8, .run = make };
static const weir_op stage = {
    .name = "change", .takes = "number", .makes = WEIR_TYPE_ANY, .config_size = sizeof(int), .run = change
};

static int num_begun, num_stage_calls, num_ends;

static int begin(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)task;
    REQUIRE(self == &num_begun && *(uint64_t *)state == 0 && in->label[0] == 'i');
    num_begun++;
    return WEIR_OK;
}

static int stage_called(void *self, const char *name, weir_error *error)
{
    (void)name;
    (void)error;
    REQUIRE(self == &num_stage_calls);
    num_stage_calls++;
    return WEIR_OK;
}

static void end_reported(void *self, const weir_run_end *end)
{
    REQUIRE(self == &num_ends && end->status == WEIR_OK);
    num_ends++;
}

static int pick(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

static weir_pipeline *build(const weir_observer *observers, size_t num_observers)
{
    int failing = 7;
    weir_task_hook task_hooks[] = { { .self = &num_begun, .state_size = 8, .begin = begin }, { .self = NULL } };
    weir_stage_hook stage_hooks[] = { { .self = &num_stage_calls, .start = stage_called, .end = stage_called },
                                      { .self = NULL } };
    weir_stage_options options = {
        .queue_items = 7,
        .max_failures = { .kind = WEIR_FAILURES_COUNT, .count = 5 },
        .task_hooks = task_hooks,
        .num_task_hooks = 2,
        .stage_hooks = stage_hooks,
        .num_stage_hooks = 2,
    };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, &(weir_stage_options){ .epochs = 2 });
    weir_builder_pipe(builder, &stage, &failing, sizeof(int), &options);
    weir_builder_route(builder, &(weir_route_config){ .pick = pick, .num_branches = 2, .look_ahead_items = 3 }, NULL);
    weir_builder_branch(builder);
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    weir_pipe_aggregate(builder, &(weir_aggregate_config){ .num_items = 5 }, NULL);
    weir_pipe_disaggregate(builder, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 4 });
    weir_pipeline_options all = {
        .threads = 2,
        .stats_interval_ns = WEIR_FOREVER,
        .observers = observers,
        .num_observers = num_observers,
        .max_failures = { .kind = WEIR_FAILURES_RATE, .num = 1, .den = 2 },
        .thread_hooks = &(weir_thread_hook){ .self = NULL },
        .num_thread_hooks = 1,
        .kept_failures = 4,
    };
    if (weir_builder_build(builder, &all, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "%s: %s\n", error.stage, error.message);
        exit(1);
    }
    return pipeline;
}

static void run(const weir_observer *observers, size_t num_observers)
{
    weir_pipeline *pipeline = build(observers, num_observers);
    GUARDED(weir_item, item);
    GUARDED(weir_account, account);
    GUARDED(weir_error, error);
    int num_items = 0, num_epochs = 0, status;
    while ((status = weir_pipeline_next(pipeline, &item.value, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        num_epochs += status == WEIR_EPOCH;
        if (status == WEIR_EPOCH)
            continue;
        REQUIRE(strncmp(item.value.label, "item ", 5) == 0 && strcmp(item.value.type, "number") == 0);
        weir_item_release(&item.value);
        num_items++;
    }
    REQUIRE(status == WEIR_EOF && num_epochs == 2);
    weir_pipeline_account(pipeline, "change", &account.value);
    REQUIRE(account.value.failed >= 1 && account.value.failed + (uint64_t)num_items == 40);
    REQUIRE(weir_pipeline_error(pipeline, "change", &error.value) == WEIR_EDATA);
    REQUIRE(error.value.library_code == -5 && strcmp(error.value.message, "this one") == 0);
    CHECK_GUARD(item);
    CHECK_GUARD(account);
    CHECK_GUARD(error);

    weir_kept_failure *kept;
    REQUIRE(weir_pipeline_next_failure(pipeline, &kept) == WEIR_OK);
    REQUIRE(strcmp(kept->failure->message, "this one") == 0 && !kept->cause);
    weir_kept_failure_free(kept);

    weir_snapshot *snapshot;
    REQUIRE(weir_pipeline_snapshot(pipeline, &snapshot) == WEIR_OK);
    REQUIRE(snapshot->num_stages == 7 && snapshot->num_queues == 8);
    REQUIRE(strcmp(snapshot->stages[6].kind, "sink") == 0 && strstr(snapshot->queues[7].name, "sink_queue"));
    weir_snapshot_free(snapshot);
    weir_pipeline_free(pipeline);
}

#ifdef WEIR_SQLITE_H
static void record_and_read(void)
{
    char path[] = "/tmp/weir-abi-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    weir_error error = { 0 };
    weir_sqlite_writer *writer;
    weir_sqlite_options options = { .buffer_entries = 100, .node_id = "here", .rank = 3 };
    REQUIRE(weir_sqlite_open(path, &options, &writer, &error) == WEIR_OK);
    GUARDED(weir_export_options, own);
    own.value = (weir_export_options){ .rank = 3, .max_bytes = 1 << 20 };
    weir_export *trace;
    REQUIRE(weir_export_open(weir_export_find("trace"), path, &own.value, &trace, &error) == WEIR_EINVAL);
    REQUIRE(strstr(error.message, path)); /* which is a database */
    own.value.force = true;
    char trace_path[64];
    snprintf(trace_path, sizeof trace_path, "%s.json", path);
    REQUIRE(weir_export_open(weir_export_find("trace"), trace_path, &own.value, &trace, &error) == WEIR_OK);
    CHECK_GUARD(own);
    weir_observer observers[] = { weir_sqlite_observer(writer), weir_export_observer(trace) };
    run(observers, 2);
    REQUIRE(weir_export_close(trace, &error) == WEIR_OK);
    REQUIRE(weir_sqlite_close(writer, &error) == WEIR_OK);
    weir_recording *recording;
    REQUIRE(weir_recording_open(path, &recording, &error) == WEIR_OK);
    weir_recording_close(recording);
    close(fd);
    unlink(path);
    REQUIRE(unlink(trace_path) == 0);
}
#endif

#ifdef WEIR_SQLITE_H
static void record_in_memory(void)
{
    weir_error error = { 0 };
    weir_sqlite_writer *writer;
    weir_recording *recording;
    GUARDED(weir_sqlite_options, options);
    options.value = (weir_sqlite_options){ .in_memory = true };
    REQUIRE(weir_sqlite_open(NULL, &options.value, &writer, &error) == WEIR_OK);
    REQUIRE(weir_recording_open_writer(writer, &recording, &error) == WEIR_OK);
    REQUIRE(weir_sqlite_close(writer, &error) == WEIR_OK);
    weir_recording_close(recording);
    CHECK_GUARD(options);
}
#endif

#ifdef WEIR_LOOP_H
static void judge_loop(void)
{
    weir_loop *loop;
    GUARDED(weir_loop_result, result);
    REQUIRE(weir_loop_new(&loop, NULL) == WEIR_OK);
    for (int i = 0; i < 50; i++)
        REQUIRE(weir_loop_add(loop, 10000 + i % 2, 10000, false) == WEIR_OK);
    REQUIRE(weir_loop_judge(loop, &result.value) == WEIR_OK);
    REQUIRE(result.value.kind == WEIR_LOOP_DATA && result.value.num_steps == 50 &&
            strstr(result.value.text, "waits"));
    weir_loop_free(loop);
    CHECK_GUARD(result);
}
#endif

#ifdef WEIR_DATASET_H
static void index_in_memory(void)
{
    const char *missing = "/nowhere.mp4";
    weir_error error = { 0 };
    weir_dataset_memory *memory;
    weir_dataset *dataset;
    uint64_t num_broken;
    GUARDED(weir_broken_clip, clip);
    const weir_dataset_build_options options = { .paths = &missing, .num_paths = 1 };
    REQUIRE(weir_dataset_build_memory(&options, &memory, NULL, &error) == WEIR_OK);
    const weir_dataset_options all = { .memory = memory, .may_be_empty = true };
    REQUIRE(weir_dataset_open(NULL, &all, &dataset, &error) == WEIR_OK);
    weir_dataset_memory_free(memory);
    REQUIRE(weir_dataset_count_broken(dataset, &num_broken, &error) == WEIR_OK && num_broken == 1);
    REQUIRE(weir_dataset_read_broken(dataset, 0, &clip.value, &error) == WEIR_OK);
    REQUIRE(strcmp(clip.value.path, missing) == 0 && clip.value.status < 0);
    weir_dataset_close(dataset);
    CHECK_GUARD(clip);
}
#endif

#ifdef WEIR_VIDEO_H
static void refuse_what_is_no_video(void)
{
    static const char *const paths[] = { "/dev/null", "/nowhere" };
    GUARDED(weir_directory_counts, counts);
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 2 }, NULL);
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 16, .height = 16),
                                      WEIR_WITH_DECODER(.max_pixels = 1 << 20),
                                      WEIR_WITH_INPUT(.io_timeout_ns = WEIR_SECOND) };
    weir_pipe_video(builder, &video, NULL);
    weir_builder_sink(builder, NULL);
    REQUIRE(weir_builder_build(builder, NULL, &pipeline, &error) == WEIR_OK);
    REQUIRE(weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_EOF);
    weir_pipeline_free(pipeline);

    builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .may_be_empty = true, .occurrences = (uint64_t[]){ 0 } }, NULL);
    weir_source_directory(builder, &(weir_directory_config){ .root = ".", .glob = "*.none", .may_be_empty = true },
                          NULL);
    weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    REQUIRE(weir_builder_build(builder, NULL, &pipeline, &error) == WEIR_OK);
    REQUIRE(weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_EOF);
    weir_pipeline_free(pipeline);

    builder = weir_builder_new();
    weir_source_directory(
        builder, &(weir_directory_config){ .root = ".", .glob = "*.md", .flat = true, .counts = &counts.value },
        NULL);
    weir_builder_sink(builder, NULL);
    REQUIRE(weir_builder_build(builder, NULL, &pipeline, &error) == WEIR_OK);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    REQUIRE(counts.value.files > 0);
    CHECK_GUARD(counts);
}
#endif

static void check_identities(void)
{
    static const char *const addresses[] = { "http://user:secret@host/a", "http://host/a", "b" };
    uint64_t occurrences[4] = { 9, 9, 9, 9 };
    GUARDED(weir_identity, identity);
    GUARDED(weir_item, item);
    GUARDED(weir_item, other);
    const unsigned char key[WEIR_IDENTITY_KEY_BYTES] = { 1 };
    REQUIRE(weir_identity_set_key(key, sizeof key) == WEIR_OK);
    REQUIRE(weir_identity_number(addresses, 3, occurrences) == WEIR_OK);
    REQUIRE(occurrences[0] == 0 && occurrences[1] == 1 && occurrences[2] == 0 && occurrences[3] == 9);
    item.value = other.value = (weir_item){ 0 };
    REQUIRE(weir_item_set_address(&item.value, addresses[0], 7) == WEIR_OK);
    weir_item_copy_label(&other.value, &item.value);
    identity.value = weir_item_identity(&other.value);
    char *address = weir_identity_of(addresses[1]);
    REQUIRE(weir_identity_hash(addresses[1]) != 0);
    REQUIRE(identity.value.occurrence == 7 && address && strcmp(identity.value.address, address) == 0);
    free(address);
    weir_item_release(&item.value);
    weir_item_release(&other.value);
    CHECK_GUARD(identity);
    CHECK_GUARD(item);
    CHECK_GUARD(other);
}

static void check_totals(void)
{
    const char *const values[] = { "in", "out" };
    weir_counter *total = weir_counter_get_total("abi", "total", values, 2);
    REQUIRE(total && total == weir_counter_get_total("abi", "total", values, 2));
    weir_counter_add(total, 1, 3);
    weir_counter_add(weir_counter_get_total(WEIR_FRAMES_CATEGORY, WEIR_FRAMES_NAME, NULL, 0), 0, 1);
}

/* A library of a program may have configs of its own, which grow in the same way. */
typedef struct own_config {
    uint32_t old, added;
} own_config;

static void check_struct_copy(void)
{
    weir_error error = { 0 };
    GUARDED(own_config, own);
    GUARDED(own_config, given);
    own.value.added = 4;
    given.value = (own_config){ .old = 5, .added = 6 };
    REQUIRE(weir_struct_copy(&own.value, sizeof own.value, &given.value, 4, "own_config", &error) == WEIR_OK);
    REQUIRE(own.value.old == 5 && own.value.added == 0);
    own.value.added = 7;
    REQUIRE(weir_struct_fill(&given.value, sizeof given.value, &own.value, sizeof own.value) == WEIR_OK);
    REQUIRE(given.value.added == 7);
    CHECK_GUARD(own);
    CHECK_GUARD(given);
}

#ifdef WEIR_ALLOCATOR_H
static int num_blocks, num_closed;

static void *allocate(void *self, size_t num_bytes)
{
    REQUIRE(self == &num_blocks);
    num_blocks++;
    return malloc(num_bytes);
}

static void give_back(void *self, void *data, size_t num_bytes)
{
    REQUIRE(self == &num_blocks && num_bytes > 0);
    num_blocks--;
    free(data);
}

static void count_close(void *self)
{
    REQUIRE(self == &num_blocks && num_blocks == 0);
    num_closed++;
}

static void check_allocator(void)
{
    weir_error error = { 0 };
    weir_allocator *allocator;
    GUARDED(weir_allocator_config, config);
    GUARDED(weir_memory, memory);
    config.value = (weir_allocator_config){ .memory = { WEIR_MEMORY_CUDA_HOST, 0 },
                                            .self = &num_blocks,
                                            .allocate = allocate,
                                            .free = give_back,
                                            .close = count_close };
    REQUIRE(weir_allocator_new(&config.value, &allocator, &error) == WEIR_OK);
    memory.value = weir_allocator_memory(allocator);
    REQUIRE(memory.value.kind == WEIR_MEMORY_CUDA_HOST && weir_memory_is_accessible(memory.value));
    REQUIRE(weir_memory_dlpack_type(memory.value) == 3);
    weir_allocator_free(allocator);
    REQUIRE(num_closed == 1);
    CHECK_GUARD(config);
    CHECK_GUARD(memory);
}
#endif

#ifdef WEIR_ARRAYS_H
static void check_streams(void)
{
    weir_npy *npy = NULL;
    GUARDED(weir_error, error);
    FILE *file = tmpfile();
    REQUIRE(file && weir_npy_open_stream(&npy, file, "a stream", &error.value) == WEIR_OK);
    REQUIRE(weir_npy_close(npy, true, &error.value) == WEIR_EINVAL && strstr(error.value.message, "a stream"));
    REQUIRE(fclose(file) == 0);
    CHECK_GUARD(error);
}
#endif

static void check_outputs(void)
{
    const char *input = "README.md";
    weir_error error = { 0 };
    GUARDED(weir_output_rules, rules);
    memset(&rules.value, 0, sizeof rules.value);
    rules.value.inputs = &input;
    rules.value.num_inputs = 1;
    weir_standard_files_open();
    REQUIRE(weir_output_check("README.md", WEIR_OUTPUT_RAW, &rules.value, &error) == WEIR_EINVAL);
    REQUIRE(weir_output_check("README.md.csv", WEIR_OUTPUT_CSV, &rules.value, NULL) == WEIR_OK);
    REQUIRE(weir_output_is(".", WEIR_OUTPUT_FOLDER));
    CHECK_GUARD(rules);
}

int main(void)
{
    weir_observer observers[] = { { .self = &num_ends, .run_end = end_reported }, { .self = NULL } };
    weir_log_set_level(WEIR_LOG_ERROR);
    run(observers, 2);
    check_outputs();
    check_identities();
    check_totals();
    check_struct_copy();
    REQUIRE(num_begun == 40 && num_stage_calls == 2 && num_ends == 1);
#ifdef WEIR_SQLITE_H
    record_and_read();
    record_in_memory();
#endif
#ifdef WEIR_LOOP_H
    judge_loop();
#endif
#ifdef WEIR_DATASET_H
    index_in_memory();
#endif
#ifdef WEIR_VIDEO_H
    refuse_what_is_no_video();
#endif
#ifdef WEIR_ALLOCATOR_H
    check_allocator();
#endif
#ifdef WEIR_ARRAYS_H
    check_streams();
#endif
    return 0;
}
