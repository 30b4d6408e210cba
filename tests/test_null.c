/*
 * One rule for NULL: functions that free accept it, all others return WEIR_EINVAL or an empty value. Every public
 * function is called here; the last test searches the headers for new ones.
 */
#include "tests/support.h"

#include <dirent.h>
#include <math.h>
#include <regex.h>

#include <weir/weir.h>

#define REFUSED(call) assert_int_equal((call), WEIR_EINVAL)

static weir_pipeline *idle_pipeline(test_ledger *ledger)
{
    static test_gate gate = GATE;
    static test_numbers numbers;
    gate_init(&gate);
    gate_open(&gate);
    numbers = (test_numbers){ .ledger = ledger, .count = 3, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    return build(builder, NULL);
}

TEST_CASE(the_engine_refuses_null)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    weir_item item = { 0 };
    char line[8];
    int fd;
    weir_account account;
    weir_snapshot *snapshot;
    char *text;
    weir_pipeline *p = idle_pipeline(&ledger), *none = p;

    REFUSED(weir_pipeline_next(NULL, &item, 0));
    REFUSED(weir_pipeline_next(p, NULL, 0));
    REFUSED(weir_pipeline_stop(NULL));
    REFUSED(weir_pipeline_stop_from_signal(NULL));
    REFUSED(weir_pipeline_stop_on_signals(NULL));
    REFUSED(weir_pipeline_stop_signal(NULL));
    REFUSED(weir_pipeline_poll_fd(NULL, &fd));
    REFUSED(weir_pipeline_poll_fd(p, NULL));
    REFUSED(weir_pipeline_error(NULL, NULL, &error));
    REFUSED(weir_pipeline_error(NULL, "src", &error));
    REFUSED(weir_pipeline_error(p, NULL, NULL));
    REFUSED(weir_pipeline_error(p, "src", NULL));
    REFUSED(weir_pipeline_account(NULL, NULL, &account));
    REFUSED(weir_pipeline_account(p, NULL, NULL));
    REFUSED(weir_pipeline_set_concurrency(NULL, "src", 1));
    REFUSED(weir_pipeline_set_concurrency(p, NULL, 1));
    REFUSED(weir_pipeline_set_speedup(NULL, "a", 0.2));
    REFUSED(weir_pipeline_set_threads(NULL, NULL, 1));
    REFUSED(weir_pipeline_snapshot(NULL, &snapshot));
    REFUSED(weir_pipeline_snapshot(p, NULL));
    REFUSED(weir_pipeline_event(NULL, "name", NULL, NULL));
    REFUSED(weir_pipeline_event(p, NULL, NULL, NULL));
    REFUSED(weir_pipeline_mark_step(NULL, 1));
    REFUSED(weir_pipeline_checkpoint(NULL, &text));
    REFUSED(weir_pipeline_checkpoint(p, NULL));
    REFUSED(weir_item_done(NULL, &item));
    REFUSED(weir_struct_copy(NULL, 1, "x", 1, "x", &error));
    REFUSED(weir_struct_copy(&item, sizeof item, &item, sizeof item, NULL, &error));
    REFUSED(weir_struct_fill(NULL, 1, "x", 1));
    REFUSED(weir_struct_fill(&item, sizeof item, NULL, 1));
    REFUSED(weir_item_done(p, NULL));
    weir_checkpoint *checkpoint;
    REFUSED(weir_checkpoint_read(NULL, &checkpoint, &error));
    REFUSED(weir_checkpoint_read("", NULL, &error));
    REFUSED(weir_checkpoint_store(NULL, "x", NULL, 0, &error));
    REFUSED(weir_checkpoint_store(p, NULL, NULL, 0, &error));
    REFUSED(weir_checkpoint_store(p, "x", NULL, 1, &error));
    REFUSED(weir_checkpoint_load(NULL, &text, NULL, NULL, &error));
    REFUSED(weir_checkpoint_load("x", NULL, NULL, NULL, &error));
    weir_checkpoint_free(NULL);
    weir_standard_files_open();
    REFUSED(weir_output_check(NULL, WEIR_OUTPUT_CSV, NULL, &error));
    REFUSED(weir_output_check("", WEIR_OUTPUT_CSV, NULL, NULL));
    REFUSED(weir_output_check("a", (weir_output_kind)1000, NULL, NULL));
    assert_false(weir_output_is(NULL, WEIR_OUTPUT_FOLDER));
    assert_false(weir_output_is("/", (weir_output_kind)-1));
    assert_false(weir_output_is_same(NULL, "a"));
    assert_false(weir_output_is_same("a", NULL));
    assert_null(weir_checkpoint_source_at(NULL, 0));
    assert_false(weir_checkpoint_is_done(NULL, 0, 0, 0));
    weir_checkpoint_range(NULL, 0, 0, NULL, NULL);
    REFUSED(weir_pipeline_trace(NULL, true));
    REFUSED(weir_pipeline_mark_phase(NULL, "train"));
    REFUSED(weir_pipeline_mark_phase(p, NULL));
    REFUSED(weir_pipeline_mark_mode(NULL, "train"));
    REFUSED(weir_pipeline_mark_mode(p, NULL));
    REFUSED(weir_pipeline_end_lap(NULL, 0));
    REFUSED(weir_pipeline_end_lap(p, -2));
    weir_kept_failure *failure;
    REFUSED(weir_pipeline_next_failure(NULL, &failure));
    REFUSED(weir_pipeline_next_failure(p, NULL));
    weir_kept_failure_free(NULL);
    REFUSED(weir_task_set_cause(NULL, &item, NULL));
    weir_pipeline_free(NULL);
    assert_int_equal(weir_pipeline_close(NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_pipeline_close_wait(-2), WEIR_EINVAL);
    assert_null(weir_text_open(NULL, NULL));
    assert_int_equal(weir_log_take(NULL, NULL, 0, NULL, 0), WEIR_EINVAL);

    weir_task_metrics metrics;
    weir_metrics_clear(NULL, &metrics);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_STAGE), NULL);
    weir_metrics_add(NULL, &metrics, &metrics);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), NULL, &metrics);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &metrics, NULL);

    weir_builder_source(NULL, NULL, NULL, 0, NULL);
    weir_builder_pipe(NULL, NULL, NULL, 0, NULL);
    weir_builder_route(NULL, NULL, NULL);
    weir_builder_branch(NULL);
    weir_builder_join(NULL, NULL);
    weir_builder_merge(NULL, NULL, NULL);
    weir_builder_sink(NULL, NULL);
    weir_builder_free(NULL);
    assert_null(weir_builder_copy(NULL));
    REFUSED(weir_builder_print(NULL, stderr));
    REFUSED(weir_profile(NULL, NULL, NULL, NULL, NULL));
    assert_int_equal(weir_builder_build(NULL, NULL, &none, NULL), WEIR_ENOMEM); /* weir_builder_new() failed */
    assert_null(none);
    REFUSED(weir_builder_build(weir_builder_new(), NULL, NULL, NULL));

    weir_snapshot_free(NULL);
    weir_item_release(NULL);
    weir_item_move(NULL, &item);
    weir_item_keep(&item, NULL);
    weir_item_pass(NULL, &item);
    weir_item_pass(&item, NULL);
    weir_item_copy_label(NULL, &item);
    weir_item_copy_label(&item, NULL);
    REFUSED(weir_item_set_address(NULL, "a", 0));
    REFUSED(weir_item_set_address(&item, NULL, 0));
    assert_string_equal(weir_item_identity(NULL).address, "");
    assert_null(weir_identity_of(NULL));
    assert_int_equal(weir_identity_hash(NULL), 0);
    REFUSED(weir_identity_number(NULL, 1, NULL));
    REFUSED(weir_identity_set_key(NULL, WEIR_IDENTITY_KEY_BYTES));
    REFUSED(weir_identity_set_key("a", 1));
    weir_release_free(NULL, NULL);
    weir_batch_free(NULL);
    weir_batch_release(NULL, NULL);
    REFUSED(weir_error_format(NULL, line, sizeof line));
    REFUSED(weir_error_format(&error, NULL, 0));
    weir_histogram_clear(NULL);
    weir_histogram_record(NULL, 1);
    weir_histogram_add(NULL, NULL);
    assert_int_equal(weir_histogram_quantile_ns(NULL, 0.5), 0);
    weir_histogram_bucket_range(0, NULL, NULL);
    assert_int_equal(weir_histogram_encode(NULL, NULL, 0), 0);
    REFUSED(weir_histogram_add_encoded(NULL, NULL, 0));

    assert_null(weir_span_name_get(NULL, "a"));
    assert_null(weir_span_name_get("a", NULL));
    weir_span_begin(NULL);
    weir_span_end();
    weir_span_end();
    weir_span_token token = weir_span_start(NULL);
    weir_span_finish(&token);
    weir_span_finish(NULL);
    weir_frame_begin(NULL, 1);
    weir_frame_end(NULL);
    weir_marker(NULL, WEIR_MARKER_GLOBAL);
    weir_span_prefix_push(NULL, true);
    weir_span_prefix_pop();
    assert_null(weir_counter_get(NULL, "a", NULL, 0));
    assert_null(weir_counter_get("a", NULL, NULL, 0));
    assert_null(weir_counter_get("a", "b", NULL, 1));
    assert_null(weir_counter_get_total(NULL, "a", NULL, 0));
    assert_null(weir_counter_get_total("a", NULL, NULL, 0));
    assert_null(weir_counter_get_total("a", "b", NULL, 1));
    weir_counter_set(NULL, 0, 1);
    weir_counter_add(NULL, 0, 1);
    REFUSED(weir_span_dump(NULL, NULL));
    assert_false(weir_thread_place_read(NULL));
    weir_set_paused(true);
    weir_set_paused(false);

    assert_false(weir_task_should_stop(NULL));
    assert_string_equal(weir_task_label(NULL), "");
    assert_string_equal(weir_task_stage(NULL), "");
    assert_int_equal(weir_task_seq(NULL), 0);
    assert_int_equal(weir_task_epoch(NULL), 0);
    assert_int_equal(weir_task_source(NULL), 0);
    assert_int_equal(weir_task_num_chunks(NULL), 0);
    assert_null(weir_task_config(NULL));
    REFUSED(weir_task_set_label(NULL, "a"));
    assert_string_equal(weir_task_identity(NULL).address, "");
    REFUSED(weir_task_event(NULL, "a", NULL));
    REFUSED(weir_task_fail(NULL, WEIR_EIO, 0, "a"));
    weir_task_add_cpu_time(NULL, 1);
    weir_task_add_run_delay(NULL, 1);
    assert_int_equal(weir_child_process_begin(0), WEIR_EINVAL);
    weir_child_process_end(0);
    static const weir_part_info time = { "time", WEIR_PART_TIME, "s", "" }, word = { "word", WEIR_PART_TEXT, "", "" };
    REFUSED(weir_task_set_part(NULL, &time, 1));
    REFUSED(weir_task_set_text(NULL, &word, "a"));
    REFUSED(weir_task_advance(NULL, "frames", 1));
    REFUSED(weir_task_set_held(NULL, WEIR_HOLDER_WORKER, 1));
    REFUSED(weir_pipeline_set_held(NULL, 1));
    weir_task_set_number(NULL, 1);
    weir_task_complete(NULL, WEIR_OK, NULL);

    assert_int_equal(drain_all(p), 3);
    weir_pipeline_free(p);
    ledger_close(&ledger);
}

#ifdef WEIR_VIDEO_H
TEST_CASE(the_stages_refuse_null)
{
    uint64_t count;
    weir_npy *npy;
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *unversioned;
    weir_allocator *allocator;
    weir_item item;
    weir_headspace_result result;
    weir_headspace_free(NULL);
    REFUSED(weir_headspace_new(NULL, NULL, NULL));
    REFUSED(weir_headspace_next(NULL, NULL, &item, 0));
    REFUSED(weir_headspace_report(NULL, &result));
    weir_frames_free(NULL);
    weir_frames_release(NULL, NULL);
    weir_audio_free(NULL);
    weir_audio_release(NULL, NULL);
    weir_bytes_free(NULL);
    weir_bytes_release(NULL, NULL);
    assert_int_equal(weir_bytes_memory(NULL), 0);
    assert_null(weir_bytes_wrap(NULL, 1, NULL, NULL, NULL));
    weir_bytes_free(weir_bytes_new(1, NULL));
    assert_false(weir_sampling_is_rising(NULL));
    REFUSED(weir_directory_count(NULL, 1, &count, NULL));
    assert_false(weir_file_name_matches(NULL, "*"));
    assert_true(weir_file_name_matches("a", NULL));
    REFUSED(weir_isolated_serve(2, NULL, NULL, 0));
    REFUSED(weir_certificates_set_fallback(NULL, NULL));
    REFUSED(weir_directory_count(&(weir_directory_config){ .root = "." }, 1, NULL, NULL));
    REFUSED(weir_npy_open(NULL, "a", NULL));
    REFUSED(weir_npy_open(&npy, NULL, NULL));
    REFUSED(weir_npy_open_stream(NULL, stderr, "a", NULL));
    REFUSED(weir_npy_open_stream(&npy, NULL, "a", NULL));
    REFUSED(weir_npy_open_stream(&npy, stderr, NULL, NULL));
    REFUSED(weir_npy_close(NULL, false, NULL));
    REFUSED(weir_npy_add(NULL, &(weir_item){ 0 }, NULL));
    REFUSED(weir_write_npy(NULL, "/tmp/weir-null.npy", NULL));
    REFUSED(weir_write_npy(&(weir_item){ 0 }, NULL, NULL));
    REFUSED(weir_write_safetensors(NULL, "a", NULL));
    REFUSED(weir_write_safetensors(&(weir_item){ 0 }, NULL, NULL));
    REFUSED(weir_to_dlpack(NULL, WEIR_ARRAY_DATA, NULL, &tensor, NULL));
    REFUSED(weir_column_to_dlpack(NULL, "n", &tensor, NULL));
    REFUSED(weir_column_to_dlpack(&(weir_item){ 0 }, NULL, &tensor, NULL));
    REFUSED(weir_column_to_dlpack(&(weir_item){ 0 }, "n", NULL, NULL));
    REFUSED(weir_entry_set_values(NULL, NULL, 0));
    REFUSED(weir_to_dlpack(&(weir_item){ 0 }, WEIR_ARRAY_DATA, NULL, &tensor, NULL));
    REFUSED(weir_to_dlpack(&(weir_item){ 0 }, WEIR_ARRAY_DATA, NULL, NULL, NULL));
    REFUSED(weir_to_dlpack_unversioned(NULL, WEIR_ARRAY_DATA, NULL, &unversioned, NULL));
    REFUSED(weir_to_dlpack_unversioned(&(weir_item){ 0 }, WEIR_ARRAY_DATA, NULL, &unversioned, NULL));
    REFUSED(weir_to_dlpack_unversioned(&(weir_item){ 0 }, WEIR_ARRAY_DATA, NULL, NULL, NULL));
    REFUSED(weir_allocator_new(NULL, &allocator, NULL));
    REFUSED(weir_allocator_new(&(weir_allocator_config){ 0 }, &allocator, NULL));
    REFUSED(weir_allocator_new(&(weir_allocator_config){ 0 }, NULL, NULL));
    weir_allocator_free(NULL);
    assert_string_equal(weir_memory_kind_name((weir_memory_kind)-1), "unknown");
    assert_false(weir_memory_is_accessible((weir_memory){ (weir_memory_kind)-1, 0 }));
    assert_int_equal(weir_allocator_memory(NULL).kind, WEIR_MEMORY_HOST);
    assert_int_equal(weir_memory_check((weir_memory){ WEIR_MEMORY_HOST, 0 }, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_memory_check((weir_memory){ WEIR_MEMORY_CUDA, 0 }, NULL, NULL), WEIR_EUNSUPPORTED);
    assert_int_equal(weir_memory_dlpack_type((weir_memory){ WEIR_MEMORY_HOST, 0 }), 1);
    assert_int_equal(weir_memory_of_dlpack(1, 0).kind, WEIR_MEMORY_HOST);
    weir_entry_free(NULL);
    weir_entry_release(NULL, NULL);
    weir_entry_free(weir_entry_new());
    assert_int_equal(weir_entry_memory(NULL), 0);
    weir_probe_result_free(NULL);
    weir_probe_result_release(NULL, NULL);
}

TEST_CASE(readers_refuse_null)
{
    weir_video_source none = { 0 };
    weir_video_reader *reader;
    weir_video_info info;
    weir_frames_size size;
    weir_frames *frames;
    weir_audio *audio;
    REFUSED(weir_video_reader_open(NULL, &none, sizeof none, NULL, 0, NULL));
    REFUSED(weir_video_reader_open(&reader, NULL, sizeof none, NULL, 0, NULL));
    REFUSED(weir_video_reader_open(&reader, &none, 0, NULL, 0, NULL));
    REFUSED(weir_video_reader_open(&reader, &none, sizeof none, NULL, 0, NULL));
    REFUSED(weir_video_reader_info(NULL, &info, sizeof info));
    REFUSED(weir_video_reader_set_number(NULL, 0, 0));
    weir_frame_times *times;
    REFUSED(weir_video_reader_scan(NULL, NULL));
    REFUSED(weir_video_reader_times(NULL, &times, NULL));
    weir_frame_times_free(NULL);
    REFUSED(weir_video_reader_frames(NULL, NULL, 0, NULL, 0, &frames, NULL));
    REFUSED(weir_video_reader_frames_into(NULL, NULL, 0, NULL, 0, &none, sizeof none, &frames, NULL));
    REFUSED(weir_video_reader_measure(NULL, NULL, 0, NULL, 0, &size, sizeof size, NULL));
    REFUSED(weir_video_reader_begin(NULL, NULL, 0, NULL, 0, NULL));
    REFUSED(weir_video_reader_next(NULL, &frames, NULL));
    REFUSED(weir_video_reader_sound(NULL, NULL, 0, 0, 1, &audio, NULL));
    weir_video_reader_free(NULL);
    REFUSED(weir_isolated_reader_open(NULL, &none, sizeof none, NULL, 0, NULL, 0, NULL));
    REFUSED(weir_isolated_reader_open(&reader, NULL, sizeof none, NULL, 0, NULL, 0, NULL));
    REFUSED(weir_isolated_reader_open(&reader, &none, 0, NULL, 0, NULL, 0, NULL));
    REFUSED(weir_isolated_reader_open(&reader, &none, sizeof none, NULL, 0, NULL, 0, NULL));
}

TEST_CASE(pools_of_readers_refuse_null)
{
    weir_video_source none = { 0 };
    weir_video_reader *reader;
    weir_video_reader_pool *pool;
    weir_video_reader_pool_config config = { 0 };
    weir_video_reader_pool_figures figures;
    REFUSED(weir_video_reader_pool_new(NULL, &config, sizeof config, NULL));
    REFUSED(weir_video_reader_pool_new(&pool, &config, 0, NULL));
    REFUSED(weir_video_reader_pool_take(NULL, &none, sizeof none, &reader, NULL));
    REFUSED(weir_video_reader_pool_figures_get(NULL, &figures, sizeof figures));
    assert_int_equal(weir_video_reader_pool_new(&pool, NULL, 0, NULL), WEIR_OK);
    REFUSED(weir_video_reader_pool_take(pool, NULL, sizeof none, &reader, NULL));
    REFUSED(weir_video_reader_pool_take(pool, &none, 0, &reader, NULL));
    REFUSED(weir_video_reader_pool_take(pool, &none, sizeof none, NULL, NULL));
    REFUSED(weir_video_reader_pool_figures_get(pool, NULL, sizeof figures));
    weir_video_reader_pool_give_back(pool, NULL);
    weir_video_reader_pool_give_back(NULL, NULL);
    weir_video_reader_pool_drop(NULL);
    weir_video_reader_pool_free(pool);
    weir_video_reader_pool_free(NULL);
}

TEST_CASE(sampling_and_batches_refuse_null)
{
    weir_sampler *sampler;
    REFUSED(weir_sampler_new(NULL, &sampler, NULL));
    REFUSED(weir_sampler_new(&(weir_sampler_config){ .num_items = 1 }, NULL, NULL));
    REFUSED(weir_sampler_begin(NULL, 0));
    assert_int_equal(weir_sampler_count(NULL), 0);
    assert_int_equal(weir_sampler_left(NULL), 0);
    assert_int_equal(weir_sampler_batches_left(NULL, 2, false), 0);
    REFUSED(weir_sampler_resume(NULL, (const char *const[]){ "" }, 1, 0, NULL));
    assert_int_equal(weir_sampler_at(NULL, 0), 0);
    weir_sampler_free(NULL);
    REFUSED(weir_world_find(NULL, NULL, NULL));
    weir_collated_free(NULL);
    weir_collated_release(NULL, NULL);
    assert_int_equal(weir_dtype_bytes(WEIR_DTYPE_FLOAT16), 2);
}
#endif

#ifdef WEIR_SQLITE_H
static weir_finding_function *no_function;

TEST_CASE(the_statistics_refuse_null)
{
    weir_sqlite_writer *writer;
    weir_openmetrics_file *file;
    weir_tensorboard_log *log;
    weir_recording *reader;
    weir_query *query;
    const weir_record *record;
    weir_totals totals;
    weir_run_record run;
    weir_merged merged;
    weir_task_hook hook;
    REFUSED(weir_sqlite_open(NULL, NULL, &writer, NULL));
    REFUSED(weir_sqlite_open("a", NULL, NULL, NULL));
    REFUSED(weir_sqlite_item_hook(NULL, NULL, &hook, NULL));
    REFUSED(weir_sqlite_flush(NULL, NULL));
    assert_int_equal(weir_sqlite_run_id(NULL), 0);
    assert_int_equal(weir_sqlite_close(NULL, NULL), WEIR_OK);
    assert_null(weir_sqlite_observer(NULL).self);
    REFUSED(weir_openmetrics_open(NULL, NULL, &file, NULL));
    REFUSED(weir_openmetrics_open("a", NULL, NULL, NULL));
    assert_int_equal(weir_openmetrics_close(NULL, NULL), WEIR_OK);
    assert_null(weir_openmetrics_observer(NULL).self);
    REFUSED(weir_openmetrics_export(NULL, NULL, false, stdout, NULL));
    REFUSED(weir_openmetrics_export(NULL, NULL, true, stdout, NULL));
    REFUSED(weir_tensorboard_open("a", NULL, NULL, NULL));
    assert_int_not_equal(weir_tensorboard_open(NULL, NULL, &log, NULL), WEIR_OK);
    assert_int_equal(weir_tensorboard_close(NULL, NULL), WEIR_OK);
    assert_null(weir_tensorboard_observer(NULL).self);
    assert_int_not_equal(weir_tensorboard_export(NULL, NULL, "a", NULL), WEIR_OK);

    weir_export *opened;
    const weir_export_format *format = weir_export_at(0);
    assert_non_null(format);
    assert_null(weir_export_find(NULL));
    REFUSED(weir_export_check(NULL, false, NULL, NULL));
    REFUSED(weir_export_open(NULL, "a", NULL, &opened, NULL));
    REFUSED(weir_export_open(format, NULL, NULL, &opened, NULL));
    REFUSED(weir_export_open(format, "a", NULL, NULL, NULL));
    assert_null(weir_export_observer(NULL).self);
    weir_export_request(NULL);
    assert_int_equal(weir_export_close(NULL, NULL), WEIR_OK);
    REFUSED(weir_export_write(format, NULL, NULL, NULL, stdout, NULL));
    REFUSED(weir_export_write_folder(format, NULL, NULL, NULL, "a", NULL));

    weir_trace_file *trace;
    assert_int_not_equal(weir_trace_open(NULL, NULL, &trace, NULL), WEIR_OK);
    assert_int_not_equal(weir_trace_open("a", NULL, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_trace_close(NULL, NULL), WEIR_OK);
    weir_trace_facts facts;
    REFUSED(weir_trace_times_read(NULL, NULL, WEIR_TRACE_BY_NAME, &facts, NULL, NULL, NULL));
    REFUSED(weir_trace_times_read("a", NULL, WEIR_TRACE_BY_NAME, &facts, NULL, NULL, NULL));
    assert_null(weir_trace_observer(NULL).self);
    weir_trace_request(NULL);
    assert_int_not_equal(weir_trace_merge(NULL, &(const char *){ "a" }, 1, NULL, false, NULL), WEIR_OK);
    assert_int_not_equal(weir_trace_merge("a", NULL, 1, NULL, false, NULL), WEIR_OK);
    assert_int_equal(weir_trace_merge("a", (const char *const[]){ "b", NULL }, 2, NULL, false, NULL), WEIR_EINVAL);
    REFUSED(weir_recording_open(NULL, &reader, NULL));
    REFUSED(weir_recording_open("a", NULL, NULL));
    REFUSED(weir_recording_open_writer(NULL, &reader, NULL));
    weir_recording_close(NULL);
    assert_string_equal(weir_recording_path(NULL), "");
    REFUSED(weir_recording_hold(NULL, NULL));
    REFUSED(weir_recording_set_selection(NULL, NULL, NULL));
    weir_recording_skip_histograms(NULL, true);
    weir_recording_release(NULL);
    REFUSED(weir_recording_find_run(NULL, 1, &run, NULL));
    REFUSED(weir_query_begin(NULL, WEIR_RECORD_TASK, NULL, &query, NULL));
    REFUSED(weir_query_next(NULL, &record, NULL));
    weir_query_end(NULL);
    REFUSED(weir_totals_read(NULL, NULL, NULL, &totals, NULL));
    weir_totals_free(NULL);
    weir_total_of_lap(NULL);
    assert_true(isnan(weir_total_value(NULL, NULL)));
    assert_null(weir_recording_lacks(NULL));
    assert_int_equal(weir_run_state_of(NULL), WEIR_RUN_OPEN);
    size_t count;
    assert_non_null(weir_subject_measures(WEIR_SUBJECT_QUEUE, &count));
    assert_null(weir_subject_measures(WEIR_SUBJECT_QUEUE, NULL));
    assert_null(weir_measure_find(WEIR_SUBJECT_QUEUE, NULL));
    assert_true(isnan(weir_measure_value(NULL, NULL, 1)));
    assert_true(isnan(weir_measure_of(WEIR_SUBJECT_QUEUE, NULL, NULL, 1)));
    assert_true(weir_slots_ns(NULL) < 0);
    assert_int_equal(weir_task_life_ns(NULL, 7), 7);
    assert_true(weir_num_slots(NULL, 7) < 0);
    assert_int_equal(weir_total_life_ns(NULL), 0);
    weir_verdict *verdict;
    REFUSED(weir_verdict_read(NULL, NULL, &verdict, NULL));
    REFUSED(weir_verdict_read(NULL, NULL, NULL, NULL));
    REFUSED(weir_verdict_explain(NULL, NULL, &verdict, NULL));
    weir_loop_result loop_result;
    weir_loop *loop;
    REFUSED(weir_loop_new(NULL, NULL));
    REFUSED(weir_loop_wait(NULL));
    REFUSED(weir_loop_step(NULL, false));
    REFUSED(weir_loop_pause(NULL));
    REFUSED(weir_loop_add(NULL, 1, 1, false));
    REFUSED(weir_loop_judge(NULL, &loop_result));
    assert_int_equal(weir_loop_new(&loop, NULL), WEIR_OK);
    REFUSED(weir_loop_add(loop, -1, 1, false));
    REFUSED(weir_loop_judge(loop, NULL));
    weir_loop_free(loop);
    weir_loop_free(NULL);
    weir_verdict_free(NULL);
    assert_string_equal(weir_verdict_certainty(NULL), "unsure");
    weir_verdict_write(NULL, 0, 0, stdout);
    weir_verdict_write(NULL, WEIR_VERDICT_ALL | WEIR_VERDICT_CODE, 0, NULL);
    assert_null(weir_totals_sink_queue(NULL));
    assert_true(isnan(weir_totals_frames_per_s(NULL)));
    assert_true(isnan(weir_totals_items_per_s(NULL)));
    weir_verdict *live;
    REFUSED(weir_explain_live(NULL, NULL, &live, NULL));
    REFUSED(weir_verdict_write_limit(NULL, NULL, NULL, NULL));
    REFUSED(weir_verdict_write_limit(stdout, NULL, NULL, NULL));
    weir_records records;
    REFUSED(weir_recording_each_lap(NULL, NULL, NULL, NULL, NULL));
    REFUSED(weir_records_read(NULL, WEIR_RECORD_RUN, NULL, &records, NULL));
    weir_records_free(NULL);
    assert_false(weir_name_matches(NULL, "decode"));
    assert_false(weir_name_matches("decode", NULL));
    REFUSED(weir_summary_write(stdout, NULL, NULL, NULL, NULL, NULL));
    REFUSED(weir_summary_write(stdout, NULL, NULL, &totals, NULL, NULL));
    REFUSED(weir_summary_write_notes(NULL, NULL, NULL, &totals, NULL));
    REFUSED(weir_summary_write_notes(stdout, NULL, NULL, NULL, NULL));
    REFUSED(weir_summary_write_failures(stdout, NULL, NULL, 1, NULL));
    REFUSED(weir_recording_query(NULL, NULL, "SELECT 1", NULL, NULL, NULL, NULL));
    weir_rows *rows;
    const weir_row *row;
    size_t num_columns = 1;
    REFUSED(weir_rows_begin(NULL, NULL, "SELECT 1", NULL, &rows, NULL));
    assert_null(rows);
    REFUSED(weir_rows_next(NULL, &row, NULL));
    assert_null(weir_rows_columns(NULL, &num_columns));
    assert_int_equal(num_columns, 0);
    weir_rows_end(NULL);
    REFUSED(weir_recording_each(NULL, WEIR_RECORD_FAILURE, NULL, NULL, NULL, NULL));
    REFUSED(weir_recording_has(NULL, WEIR_RECORD_FAILURE, NULL, NULL, NULL));
    assert_string_equal(weir_row_text(NULL, 0), "");
    assert_int_equal(weir_row_int(NULL, 0), 0);
    assert_true(isnan(weir_row_real(NULL, 0)));
    assert_true(weir_row_is_null(NULL, 0));
    assert_null(weir_recording_sql(NULL));
    REFUSED(weir_database_check(NULL, true, no_function, NULL, NULL));
    REFUSED(weir_database_merge(NULL, "a", &merged, NULL));
    REFUSED(weir_database_merge("a", "b", NULL, NULL));
    weir_tuner *tuner;
    weir_tuner_free(NULL);
    REFUSED(weir_tuner_start(NULL, NULL, &tuner, NULL));
    REFUSED(weir_tuner_start(NULL, NULL, NULL, NULL));
}

TEST_CASE(predictions_refuse_null)
{
    weir_prediction *prediction;
    REFUSED(weir_whatif(NULL, NULL, NULL, &prediction, NULL));
    weir_prediction_free(NULL);
}
#endif

#ifdef WEIR_DATASET_H
static int no_row(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    (void)self;
    (void)cells;
    (void)num_cells;
    return WEIR_OK;
}

TEST_CASE(the_dataset_refuses_null)
{
    weir_dataset *dataset;
    uint32_t *classes;
    REFUSED(weir_dataset_build(NULL, &(weir_dataset_build_options){ .root = "." }, NULL, NULL));
    REFUSED(weir_dataset_build("a", NULL, NULL, NULL));
    REFUSED(weir_dataset_open(NULL, NULL, &dataset, NULL));
    REFUSED(weir_dataset_open("a", NULL, NULL, NULL));
    weir_dataset_close(NULL);
    weir_dataset_memory_free(NULL);
    REFUSED(weir_dataset_build_memory(&(weir_dataset_build_options){ .root = "." }, NULL, NULL, NULL));
    REFUSED(weir_dataset_ask_memory(NULL, WEIR_DATASET_SUMMARY, NULL, no_row, NULL, NULL));
    uint64_t num_broken;
    weir_broken_clip broken;
    REFUSED(weir_dataset_count_broken(NULL, &num_broken, NULL));
    REFUSED(weir_dataset_read_broken(NULL, 0, &broken, NULL));
    assert_int_equal(weir_dataset_count(NULL), 0);
    assert_int_equal(weir_dataset_fingerprint(NULL), 0);
    assert_true(weir_dataset_items(NULL).fill == NULL);
    assert_int_equal(weir_dataset_num_classes(NULL), 0);
    double *sizes;
    REFUSED(weir_dataset_read_sizes(NULL, NULL, &sizes, NULL));
    uint64_t *files;
    REFUSED(weir_dataset_read_files(NULL, &files, NULL));
    assert_null(weir_dataset_columns(NULL, NULL));
    assert_null(weir_dataset_class_name(NULL, 0));
    REFUSED(weir_dataset_read_classes(NULL, &classes, NULL));
    REFUSED(weir_dataset_ask(NULL, WEIR_DATASET_SUMMARY, NULL, no_row, NULL, NULL));
    REFUSED(weir_dataset_ask("a", WEIR_DATASET_SUMMARY, NULL, NULL, NULL, NULL));
}
#endif

/* ---- none is forgotten ---------------------------------------------------------------------------------------- */

/* These take no pointer, or are tested elsewhere. */
static const char *const without_pointers[] = {
    "weir_clock_ns",        "weir_console_observer", "weir_certificates_find",
    "weir_cpu_budget",      "weir_error_set",        "weir_log",
    "weir_log_get_level",   "weir_log_set_level",    "weir_log_set_function",
    "weir_status_name",     "weir_status_text",      "weir_log_queue_start",
    "weir_recording_table", "weir_subject_metrics",  "weir_run_state_name",
    "weir_verdict_word",    "weir_version",          "weir_verdict_limit_rules",
};

static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    static char text[1 << 18];
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    return strdup(text);
}

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < LENGTH(without_pointers); i++)
        if (strcmp(without_pointers[i], name) == 0)
            return true;
    return false;
}

/* The name, with or without _sized, is called in this file. */
static bool is_called(const char *source, const char *name)
{
    char call[128];
    int length = (int)strlen(name);
    if (length > 6 && strcmp(name + length - 6, "_sized") == 0)
        length -= 6;
    snprintf(call, sizeof call, "%.*s(", length, name);
    return strstr(source, call) != NULL;
}

static int look_into(const char *header, const char *source)
{
    regex_t function;
    assert_int_equal(regcomp(&function, "WEIR_API [^;={}]*[ *](weir_[a-z0-9_]+)\\(", REG_EXTENDED), 0);
    char *text = read_all(header);
    int num_functions = 0;
    regmatch_t found[2];
    for (const char *rest = text; regexec(&function, rest, 2, found, 0) == 0; rest += found[0].rm_eo) {
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)(found[1].rm_eo - found[1].rm_so), rest + found[1].rm_so);
        num_functions++;
        if (!is_called(source, name) && !is_listed(name))
            fail_msg("%s: %s() is not tested with NULL", header, name);
    }
    free(text);
    regfree(&function);
    return num_functions;
}

TEST_CASE(every_public_function_is_here)
{
    char *source = read_all("tests/test_null.c"); /* the working folder is the project's */
    static const char *const folders[] = { "engine/weir", "stages/weir",       "stages/isolate/weir",
                                           "stats/weir",  "stats/export/weir", "stats/advice/weir",
                                           "dataset/weir" };
    int num_functions = 0;
    for (size_t i = 0; i < LENGTH(folders); i++) {
        DIR *folder = opendir(folders[i]);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            char path[512];
            size_t length = strlen(entry->d_name);
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            if (length > 2 && strcmp(entry->d_name + length - 2, ".h") == 0)
                num_functions += look_into(path, source);
        }
        closedir(folder);
    }
    assert_true(num_functions > 100);
    free(source);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
