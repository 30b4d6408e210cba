/* Recordings in memory: queries, summary and verdict are the same as with a database file, while the run goes on and
   after it. */
#include "tests/stats_fixture.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/summary.h>
#include <weir/verdict.h>

static weir_sqlite_writer *open_memory(const weir_sqlite_options *given)
{
    weir_sqlite_options options = *given;
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    options.in_memory = true;
    if (weir_sqlite_open(NULL, &options, &writer, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return writer;
}

static weir_recording *read_writer(weir_sqlite_writer *writer)
{
    weir_recording *recording;
    weir_error error = { 0 };
    if (weir_recording_open_writer(writer, &recording, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return recording;
}

/* Summary, failures and verdict of the last run, without the line that has the path; the caller frees it. */
static char *describe(weir_recording *recording)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_error error = { 0 };
    weir_verdict *verdict;
    const weir_filter last = { .run_id = WEIR_LAST_RUN };
    assert_int_equal(weir_summary_write(out, recording, &last, NULL, weir_verdict_write_limit, &error), WEIR_OK);
    assert_int_equal(weir_summary_write_failures(out, recording, &last, 10, &error), WEIR_OK);
    assert_int_equal(weir_verdict_explain(recording, &last, &verdict, &error), WEIR_OK);
    weir_verdict_write(verdict, WEIR_VERDICT_ALL, 0, out);
    weir_verdict_free(verdict);
    fclose(out);
    char *line = strstr(text, "Database: ");
    assert_non_null(line);
    memmove(line, strchr(line, '\n'), strlen(strchr(line, '\n')) + 1);
    return text;
}

static void observe_run(weir_sqlite_writer *writer)
{
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int lap = 0; lap < 5; lap++)
        observe_lap(observer, lap, 40);
    observe_failure(observer, 3, "c.mp4", "no video in it");
    observe_end(observer, WEIR_OK);
}

TEST_CASE(a_recording_in_memory_reads_as_that_in_a_file)
{
    const weir_sqlite_options options = { .command = "job", .node_id = "here" };
    weir_sqlite_writer *memory = open_memory(&options), *file = open_writer(in_folder("same.db"), &options);
    observe_run(memory);
    observe_run(file);
    weir_recording *of_memory = read_writer(memory), *of_file = read_writer(file);
    assert_string_equal(weir_recording_path(of_memory), "(memory)");
    assert_string_equal(weir_recording_path(of_file), in_folder("same.db"));
    char *text = describe(of_memory), *wanted = describe(of_file);
    assert_string_equal(text, wanted);
    assert_non_null(strstr(text, "Total tasks processed: 200"));
    assert_non_null(strstr(text, "c.mp4"));
    free(text);
    free(wanted);
    weir_recording_close(of_file);
    weir_recording_close(of_memory);
    close_writer(memory);
    close_writer(file);
}

static uint64_t num_tasks(weir_recording *recording)
{
    char *text = describe(recording);
    const char *line = strstr(text, "Total tasks processed: ");
    assert_non_null(line);
    uint64_t num = strtoull(line + strlen("Total tasks processed: "), NULL, 10);
    free(text);
    return num;
}

TEST_CASE(a_reader_follows_a_run_and_outlives_the_writer)
{
    weir_sqlite_writer *writer = open_memory(&(weir_sqlite_options){ .flush_interval_ns = 3600 * WEIR_SECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 40);
    weir_recording *recording = read_writer(writer), *second;
    assert_int_equal(num_tasks(recording), 40);
    observe_lap(observer, 1, 40);
    assert_int_equal(num_tasks(recording), 40); /* it waits in the buffer */
    second = read_writer(writer);
    assert_int_equal(num_tasks(recording), 80);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
    assert_int_equal(num_tasks(second), 80);
    weir_recording_close(recording);
    assert_int_equal(num_tasks(second), 80);
    weir_recording_close(second);
}

TEST_CASE(recordings_in_memory_are_apart)
{
    weir_sqlite_writer *one = open_memory(&(weir_sqlite_options){ 0 }),
                       *other = open_memory(&(weir_sqlite_options){ 0 });
    observe_run(one);
    weir_recording *recording = read_writer(other);
    weir_run_record run;
    weir_error error = { 0 };
    observe_start(weir_sqlite_observer(other));
    observe_lap(weir_sqlite_observer(other), 0, 4);
    observe_end(weir_sqlite_observer(other), WEIR_OK);
    assert_int_equal(weir_sqlite_flush(other, &error), WEIR_OK);
    assert_int_equal(weir_recording_find_run(recording, WEIR_PREVIOUS_RUN, &run, &error), WEIR_ENOTFOUND);
    assert_int_equal(num_tasks(recording), 4);
    weir_recording_close(recording);
    close_writer(one);
    close_writer(other);
}

TEST_CASE(while_a_reader_holds_a_recording_in_memory_its_entries_wait)
{
    weir_sqlite_writer *writer = open_memory(&(weir_sqlite_options){ .retry_limit_ns = 50 * WEIR_MILLISECOND });
    weir_observer observer = weir_sqlite_observer(writer);
    weir_error error = { 0 };
    observe_start(observer);
    observe_lap(observer, 0, 40);
    weir_recording *recording = read_writer(writer);
    assert_int_equal(weir_recording_hold(recording, &error), WEIR_OK);
    observe_lap(observer, 1, 40);
    assert_true(weir_sqlite_flush(writer, &error) < 0);
    assert_int_equal(num_tasks(recording), 40);
    weir_recording_release(recording);
    while (weir_sqlite_flush(writer, &error) != WEIR_OK)
        error = (weir_error){ 0 };
    assert_int_equal(num_tasks(recording), 80);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
    weir_recording_close(recording);
}

TEST_CASE(a_recording_has_a_path_or_is_in_memory)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    assert_int_equal(weir_sqlite_open(NULL, NULL, &writer, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "either the path of a database or in_memory"));
    assert_int_equal(
        weir_sqlite_open(in_folder("both.db"), &(weir_sqlite_options){ .in_memory = true }, &writer, NULL),
        WEIR_EINVAL);
    assert_null(writer);
}

TEST_CASE(a_pipeline_is_recorded_in_memory_to_the_item)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1234 };
    weir_sqlite_writer *writer = open_memory(&(weir_sqlite_options){ 0 });
    weir_observer observer = weir_sqlite_observer(writer);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder,
              &(weir_pipeline_options){ .observers = &observer, .num_observers = 1, .stats_interval_ns = 1000000 });
    weir_recording *recording = read_writer(writer); /* from the start */
    assert_int_equal(drain_all(pipeline), 1234);
    weir_pipeline_free(pipeline);
    close_writer(writer);
    assert_int_equal(num_tasks(recording), 1234);
    weir_recording_close(recording);
    ledger_close(&ledger);
}

TEST_MAIN(NULL, NULL, make_folder, remove_folder)
