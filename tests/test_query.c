/* Queries and sums: what a filter means, for each kind of record, and that sums over laps, ranks and runs are exact. */
#include "tests/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/openmetrics.h>
#include <weir/query.h>
#include <weir/summary.h>
#include <weir/trace_file.h>
#include <weir/verdict.h>

static weir_query *begin_query(weir_recording *recording, weir_record_kind kind, const weir_filter *filter)
{
    weir_query *query;
    weir_error error = { 0 };
    if (weir_query_begin(recording, kind, filter, &query, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return query;
}

static double time_of(const weir_record *record)
{
    switch (record->kind) {
    case WEIR_RECORD_TASK:
    case WEIR_RECORD_FLOW:
    case WEIR_RECORD_QUEUE:
    case WEIR_RECORD_POOL:
    case WEIR_RECORD_PROCESS:
    case WEIR_RECORD_MACHINE:
    case WEIR_RECORD_SPAN:
    case WEIR_RECORD_COUNTER: return (double)record->lap.end_unix_ns / 1e9;
    case WEIR_RECORD_EVENT: return (double)record->event.unix_ns / 1e9;
    case WEIR_RECORD_FAILURE: return (double)record->failure.unix_ns / 1e9;
    case WEIR_RECORD_ITEM: return (double)record->item.unix_ns / 1e9;
    case WEIR_RECORD_RUN: return (double)record->run.run_id;
    case WEIR_RECORD_STAGE: return (double)record->stage.run_id;
    case WEIR_RECORD_NODE: return (double)record->node.num_runs;
    case WEIR_RECORD_PHASE: return (double)record->phase.start_unix_ns / 1e9;
    case WEIR_RECORD_CONTENT: return (double)record->content.num_records;
    case WEIR_RECORD_STACK: return (double)record->stack.stack;
    case WEIR_RECORD_SAMPLES: return (double)record->samples.end_unix_ns / 1e9;
    case WEIR_NUM_RECORD_KINDS: break;
    }
    return 0;
}

static weir_selection selection; /* of times_of() */

/* The times (or numbers) of all records, as "1010 1020 ". Each ends with WEIR_EOF, again and again. */
static const char *times_of(const char *path, weir_record_kind kind, const weir_filter *filter)
{
    static char text[4096];
    const weir_record *record;
    weir_error error = { 0 };
    weir_recording *recording = open_reader(path);
    assert_int_equal(weir_recording_set_selection(recording, &selection, &error), WEIR_OK);
    weir_query *query = begin_query(recording, kind, filter);
    size_t length = 0;
    int status;
    text[0] = '\0';
    while ((status = weir_query_next(query, &record, &error)) == WEIR_OK)
        length += (size_t)snprintf(text + length, sizeof text - length, "%g ", time_of(record));
    if (status != WEIR_EOF)
        fail_msg("%s", error.message);
    assert_null(record);
    assert_int_equal(weir_query_next(query, &record, &error), WEIR_EOF);
    weir_query_end(query);
    weir_recording_close(recording);
    return text;
}

#define assert_times(kind, filter, wanted) assert_string_equal(times_of(path, kind, filter), wanted)

/* Four laps of one run: 1000 to 1010, 1020, 1030, 1040. */
static const char *record_four_laps(void)
{
    const char *path = in_folder("four.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    for (int i = 1; i <= 4; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = (uint64_t)i });
    recording_end(writer, 1040);
    return path;
}

/* -- order, names, runs */

TEST_CASE(without_a_filter_everything_comes_in_the_order_of_time)
{
    const char *path = record_four_laps();
    assert_times(WEIR_RECORD_TASK, NULL, "1010 1020 1030 1040 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .run_id = 1 }, "1010 1020 1030 1040 ");
    assert_times(WEIR_RECORD_QUEUE, NULL, "1010 1010 1010 1020 1020 1020 1030 1030 1030 1040 1040 1040 ");
}

TEST_CASE(descending_gives_the_latest_first)
{
    const char *path = record_four_laps();
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .descending = true }), "1040 1030 1020 1010 ");
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .descending = true, .run_id = 1, .limit = 2 }), "1040 1030 ");
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .descending = true, .start_unix_ns = NS(1015) }),
                 "1040 1030 1020 ");
}

TEST_CASE(a_name_is_matched_whole_short_and_by_glob)
{
    const char *path = record_four_laps();
    static const struct {
        const char *glob;
        const char *tasks, *queues; /* of the first lap */
    } cases[] = {
        { "decode", "1010 ", "1010 " },
        { "0:1:decode[10]", "1010 ", "" },
        { "decode[10]", "1010 ", "1010 " },
        { "0:1:decode[10]_queue", "", "1010 " },
        { "decode*_queue", "", "1010 " },
        { "d*", "1010 ", "1010 " },
        { "*", "1010 ", "1010 1010 1010 " },
        { "*_queue", "", "1010 1010 1010 " },
        { "0:*", "1010 ", "1010 1010 1010 " },
        { "sink", "", "1010 " },
        { "[ds]*", "1010 ", "1010 1010 1010 " },
        { "nobody", "", "" },
        { "DECODE", "", "" },
        { "", "", "" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_filter filter = { .name = cases[i].glob, .end_unix_ns = NS(1005) };
        assert_times(WEIR_RECORD_TASK, &filter, cases[i].tasks);
        assert_times(WEIR_RECORD_QUEUE, &filter, cases[i].queues);
    }
}

/* Nothing that a user gives becomes a part of the SQL. */
TEST_CASE(quotes_and_newlines_in_conditions_are_only_text)
{
    const char *path = record_four_laps();
    const char *awkward = "'; DROP TABLE run; --\n\"";
    weir_filter filters[] = { { .name = awkward },
                              { .node_id = awkward },
                              { .phase = awkward },
                              { .from_phase = awkward },
                              { .until_phase = awkward } };
    for (size_t i = 0; i < 4; i++)
        assert_times(WEIR_RECORD_TASK, &filters[i], "");
    assert_times(WEIR_RECORD_TASK, &filters[4], "1010 1020 1030 1040 ");
    assert_times(WEIR_RECORD_RUN, NULL, "1 ");
}

static const char *record_three_runs(void)
{
    const char *path = in_folder("runs.db");
    static const char *const nodes[] = { "node-a", "node-b", "node-a" };
    for (int i = 0; i < 3; i++) {
        weir_sqlite_writer *writer = recording_begin(path, nodes[i], i, 1000 + 100 * i);
        record_lap(writer, &(invented_lap){ .at = 1010 + 100 * i, .num_tasks = 4 });
        recording_end(writer, 1010 + 100 * i);
    }
    return path;
}

TEST_CASE(runs_are_chosen_by_number_node_and_rank)
{
    const char *path = record_three_runs();
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .run_id = 2 }, "1110 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .run_id = WEIR_LAST_RUN }, "1210 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .node_id = "node-a" }, "1010 1210 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .node_id = "*-b" }, "1110 ");
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .by_rank = true, .rank = 0 }), "1010 ");
    assert_times(WEIR_RECORD_RUN, &(weir_filter){ .node_id = "node-a" }, "1 3 ");
    assert_times(WEIR_RECORD_RUN, (&(weir_filter){ .descending = true, .limit = 2 }), "3 2 ");
    assert_times(WEIR_RECORD_STAGE, &(weir_filter){ .run_id = 2 }, "2 2 2 ");
    assert_times(WEIR_RECORD_NODE, NULL, "2 1 ");
    assert_times(WEIR_RECORD_PHASE, (&(weir_filter){ .by_rank = true, .rank = 1 }), "1100 ");
}

TEST_CASE(a_run_that_is_not_there_is_not_found)
{
    weir_recording *recording = open_reader(record_three_runs());
    weir_query *query;
    weir_totals totals;
    weir_run_record run;
    weir_error error = { 0 };
    weir_filter filter = { .run_id = 4 };
    assert_int_equal(weir_query_begin(recording, WEIR_RECORD_TASK, &filter, &query, &error), WEIR_ENOTFOUND);
    assert_null(query);
    assert_non_null(strstr(error.message, "runs.db holds no run 4"));
    assert_int_equal(weir_totals_read(recording, &filter, NULL, &totals, NULL), WEIR_ENOTFOUND);
    assert_int_equal(weir_recording_find_run(recording, 4, &run, NULL), WEIR_ENOTFOUND);
    assert_int_equal(weir_recording_find_run(recording, WEIR_LAST_RUN, &run, NULL), WEIR_OK);
    assert_int_equal(run.run_id, 3);
    assert_string_equal(run.node_id, "node-a");
    assert_int_equal(run.rank, 2);
    assert_true(run.has_ended);
    assert_string_equal(run.command, "invented");
    weir_recording_close(recording);
}

/* -- time */

TEST_CASE(laps_that_overlap_with_a_range_belong_to_it)
{
    const char *path = record_four_laps();
    static const struct {
        double start, end;
        const char *wanted;
    } cases[] = {
        { 0, 0, "1010 1020 1030 1040 " },
        { 1015, 1016, "1020 " }, /* within a lap: the one that encloses it */
        { 1005, 1025, "1010 1020 1030 " },
        { 1010, 1020, "1020 " }, /* what only touches it does not */
        { 1019.99, 1020.01, "1020 1030 " },
        { 1035, 0, "1040 " },
        { 0, 1005, "1010 " },
        { 1, 1000, "" },
        { 1040, 2000, "" },
        { 1, 9999, "1010 1020 1030 1040 " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_filter filter = { .start_unix_ns = NS(cases[i].start), .end_unix_ns = NS(cases[i].end) };
        assert_times(WEIR_RECORD_TASK, &filter, cases[i].wanted);
        filter.run_id = 1;
        assert_times(WEIR_RECORD_TASK, &filter, cases[i].wanted);
        filter.name = "sink";
        assert_times(WEIR_RECORD_QUEUE, &filter, cases[i].wanted);
    }
}

/* Timestamps of now have only a quarter of a microsecond left behind the point. */
TEST_CASE(ranges_that_begin_and_end_with_laps_hold_just_these)
{
    const char *path = in_folder("now.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1795223144.0);
    for (int i = 1; i <= 9; i++)
        record_lap(writer, &(invented_lap){ .at = 1795223144.0 + i * 0.1234567, .elapsed = 0.1234567 });
    recording_end(writer, 1795223146.0);
    weir_recording *recording = open_reader(path);
    int64_t ends[9];
    const weir_record *record;
    weir_query *query = begin_query(recording, WEIR_RECORD_TASK, NULL);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        ends[i] = record->lap.end_unix_ns;
    }
    weir_query_end(query);
    for (int i = 0; i + 1 < 9; i++) {
        weir_filter filter = { .start_unix_ns = ends[i], .end_unix_ns = ends[i + 1] };
        query = begin_query(recording, WEIR_RECORD_TASK, &filter);
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_true(record->lap.end_unix_ns == ends[i + 1]);
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_EOF);
        weir_query_end(query);
    }
    weir_recording_close(recording);
}

TEST_CASE(points_in_time_belong_to_a_range_from_its_start_to_before_its_end)
{
    const char *path = in_folder("points.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    for (int i = 0; i < 3; i++) {
        record_failure(writer, 1010 + 10 * i, "x", 1);
        record_event(writer, 1010 + 10 * i, i == 1 ? "stop" : "start");
    }
    recording_end(writer, 1040);
    weir_filter filter = { .start_unix_ns = NS(1010), .end_unix_ns = NS(1030) };
    assert_times(WEIR_RECORD_FAILURE, &filter, "1010 1020 ");
    assert_times(WEIR_RECORD_EVENT, &filter, "1010 1020 ");
    filter.name = "st?p";
    assert_times(WEIR_RECORD_EVENT, &filter, "1020 ");
    assert_times(WEIR_RECORD_RUN, &(weir_filter){ .start_unix_ns = NS(1039) }, "1 ");
    assert_times(WEIR_RECORD_RUN, &(weir_filter){ .start_unix_ns = NS(1041) }, "");
    assert_times(WEIR_RECORD_RUN, &(weir_filter){ .end_unix_ns = NS(999) }, "");
}

TEST_CASE(records_after_an_id_follow_what_is_written)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    weir_recording *recording = open_reader(path);
    int64_t after_id = 0;
    for (int i = 1; i <= 5; i++) {
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i });
        assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
        const weir_record *record;
        weir_filter filter = { .run_id = WEIR_LAST_RUN, .after_id = after_id };
        weir_query *query = begin_query(recording, WEIR_RECORD_TASK, &filter);
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_true(record->lap.end_unix_ns == NS(1000 + 10 * i));
        after_id = record->lap.id;
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_EOF);
        weir_query_end(query);
    }
    weir_recording_close(recording);
    recording_end(writer, 1050);
}

/* -- steps and phases */

/* "", startup, loop with steps 0–9 and 10–19, a lap without a step, 20–20, finish; a failure and an event in each. */
static const char *record_phases(void)
{
    const char *path = in_folder("phases.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010 });
    record_lap(writer, &(invented_lap){ .at = 1020, .phase = "startup" });
    record_lap(writer, &(invented_lap){ .at = 1030, .phase = "loop", .has_steps = true, .last_step = 9 });
    record_lap(writer,
               &(invented_lap){ .at = 1040, .phase = "loop", .has_steps = true, .first_step = 10, .last_step = 19 });
    record_lap(writer, &(invented_lap){ .at = 1050, .phase = "loop" });
    record_lap(writer,
               &(invented_lap){ .at = 1060, .phase = "loop", .has_steps = true, .first_step = 20, .last_step = 20 });
    record_lap(writer, &(invented_lap){ .at = 1070, .phase = "finish" });
    for (int i = 0; i < 7; i++) {
        record_failure(writer, 1005 + 10 * i, "x", i + 1);
        record_event(writer, 1006 + 10 * i, "e");
    }
    recording_end(writer, 1070);
    return path;
}

static weir_filter steps(int64_t first, int64_t last)
{
    return (weir_filter){ .by_step = true, .first_step = first, .last_step = last };
}

TEST_CASE(laps_that_overlap_with_a_range_of_steps_belong_to_it)
{
    const char *path = record_phases();
    static const struct {
        int64_t first, last;
        const char *wanted;
    } cases[] = {
        { 5, 5, "1030 " },   { 9, 10, "1030 1040 " }, { 0, INT64_MAX, "1030 1040 1060 " },
        { 20, 99, "1060 " }, { 21, 99, "" },          { INT64_MIN, 0, "1030 " },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_filter filter = steps(cases[i].first, cases[i].last);
        assert_times(WEIR_RECORD_TASK, &filter, cases[i].wanted);
    }
}

TEST_CASE(phases_hold_their_laps)
{
    const char *path = record_phases();
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "loop" }, "1030 1040 1050 1060 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "finish" }, "1070 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "eval" }, "");
    /* what had ended before the first mark is start-up: marks followed */
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "startup" }, "1010 1020 ");
}

TEST_CASE(without_marks_there_is_no_phase)
{
    const char *path = record_four_laps();
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "startup" }, "");
    weir_recording *recording = open_reader(path);
    const weir_record *record;
    weir_query *query = begin_query(recording, WEIR_RECORD_PHASE, NULL);
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    assert_string_equal(record->phase.position.phase, "");
    assert_true(record->phase.position.last_step < record->phase.position.first_step);
    assert_int_equal(record->phase.num_laps, 4);
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_EOF);
    weir_query_end(query);
    weir_recording_close(recording);
}

/* The clock of the wall is read a moment after a lap was cut. */
TEST_CASE(laps_that_are_told_a_little_late_part_no_phase)
{
    const char *path = record_phases();
    execute(path, "UPDATE queue_stats SET timestamp = timestamp + 0.1 WHERE timestamp = 1040");
    assert_times(WEIR_RECORD_PHASE, &(weir_filter){ .phase = "loop" }, "1020 ");
}

TEST_CASE(points_have_the_phase_and_step_of_the_lap_around_them)
{
    const char *path = record_phases();
    assert_times(WEIR_RECORD_FAILURE, &(weir_filter){ .phase = "loop" }, "1025 1035 1045 1055 ");
    assert_times(WEIR_RECORD_FAILURE, &(weir_filter){ .phase = "startup" }, "1005 1015 ");
    assert_times(WEIR_RECORD_EVENT, &(weir_filter){ .phase = "finish" }, "1066 ");
    assert_times(WEIR_RECORD_FAILURE, &(weir_filter){ .phase = "eval" }, "");
    weir_filter filter = steps(15, 20);
    assert_times(WEIR_RECORD_FAILURE, &filter, "1035 1055 ");
    filter.phase = "finish";
    assert_times(WEIR_RECORD_FAILURE, &filter, "");
    filter = (weir_filter){ .phase = "loop", .longest_first = true, .limit = 2 };
    assert_times(WEIR_RECORD_FAILURE, &filter, "1055 1045 ");
}

TEST_CASE(a_range_between_two_phases_goes_from_one_beginning_to_the_other)
{
    const char *path = in_folder("between.db");
    static const char *const phases[] = { "warm", "train", "train", "eval", "train", "eval" };
    for (int run = 0; run < 2; run++) {
        weir_sqlite_writer *writer = recording_begin(path, "a", run, 1000 + 1000 * run);
        for (int i = 0; i < 6; i++) {
            record_lap(writer,
                       &(invented_lap){ .at = 1010 + 1000 * run + 10 * i, .phase = run ? "other" : phases[i] });
            record_failure(writer, 1005 + 1000 * run + 10 * i, "x", 1);
        }
        recording_end(writer, 1060 + 1000 * run);
    }
    weir_filter filter = { .from_phase = "train", .until_phase = "eval" };
    assert_times(WEIR_RECORD_TASK, &filter, "1020 1030 ");
    assert_times(WEIR_RECORD_FAILURE, &filter, "1015 1025 ");
    filter = (weir_filter){ .from_phase = "eval" };
    assert_times(WEIR_RECORD_TASK, &filter, "1040 1050 1060 ");
    filter = (weir_filter){ .until_phase = "train", .run_id = 1 };
    assert_times(WEIR_RECORD_TASK, &filter, "1010 ");
    filter = (weir_filter){ .until_phase = "warm", .run_id = 1 };
    assert_times(WEIR_RECORD_TASK, &filter, "");
    filter = (weir_filter){ .from_phase = "eval", .until_phase = "warm" };
    assert_times(WEIR_RECORD_TASK, &filter, "1040 1050 1060 "); /* it never comes: to the end */
    filter = (weir_filter){ .from_phase = "eval", .phase = "train" };
    assert_times(WEIR_RECORD_TASK, &filter, "1050 ");
}

/* Three steps with a phase forward, in which the step is marked, and one backward. */
static const char *record_steps_with_phases(void)
{
    const char *path = in_folder("steps.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    weir_observer observer = weir_sqlite_observer(writer);
    static const char *const phases[] = { "startup",  "forward", "backward", "forward",
                                          "backward", "forward", "backward", "finish" };
    for (int i = 0; i < 8; i++) {
        bool has_step = i > 0 && i < 7; /* until it ends: forward and backward */
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i,
                                            .phase = phases[i],
                                            .has_steps = has_step,
                                            .first_step = (i + 1) / 2,
                                            .last_step = (i + 1) / 2 });
        weir_lap lap = { .end_unix_ns = NS(1010 + 10 * i), .elapsed_ns = NS(10), .num_joined = 1 };
        lap.position =
            (weir_lap_position){ "train", phases[i], has_step ? (i + 1) / 2 : 0, has_step ? (i + 1) / 2 : -1 };
        weir_subject_lap span = { .lap = &lap,
                                  .subject = WEIR_SUBJECT_SPAN,
                                  .name = "train/io/read",
                                  .kind = "span",
                                  .metrics.span = { .num_spans = (uint64_t)i + 1, .total_ns = NS(i + 1) } };
        observer.lap(observer.self, &span);
        weir_subject_lap counter = { .lap = &lap,
                                     .subject = WEIR_SUBJECT_COUNTER,
                                     .name = "train/loss",
                                     .kind = "level",
                                     .metrics.counter = {
                                         .num_updates = 1, .last = i, .min = i, .max = i, .increase = NAN } };
        observer.lap(observer.self, &counter);
        record_failure(writer, 1005 + 10 * i, "file", 1);
    }
    recording_end(writer, 1080);
    return path;
}

TEST_CASE(phases_and_modes_are_globs)
{
    const char *path = record_steps_with_phases();
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "*ward" }, "1020 1030 1040 1050 1060 1070 ");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .phase = "[fs]*" }, "1010 1020 1040 1060 1080 ");
    assert_times(WEIR_RECORD_FAILURE, &(weir_filter){ .phase = "f*d" }, "1015 1035 1055 ");
    assert_times(WEIR_RECORD_SPAN, (&(weir_filter){ .mode = "tr*", .phase = "b*" }), "1030 1050 1070 ");
    assert_times(WEIR_RECORD_SPAN, &(weir_filter){ .mode = "eval" }, "");
    assert_times(WEIR_RECORD_TASK, &(weir_filter){ .mode = "train" }, ""); /* its laps have no mode */
}

static weir_selection each_time(bool every)
{
    return (weir_selection){ .every = every };
}

static weir_selection between(int64_t from_step, int64_t until_step)
{
    return (weir_selection){ .by_step = true, .from_step = from_step, .until_step = until_step };
}

static weir_selection section(weir_run_section which)
{
    return (weir_selection){ .section = which };
}

#define assert_selected(set, kind, filter, wanted) (selection = (set), assert_times(kind, filter, wanted))

TEST_CASE(a_range_between_two_phases_may_come_every_time)
{
    const char *path = record_steps_with_phases();
    weir_filter filter = { .from_phase = "forward", .until_phase = "backward" };
    assert_selected(each_time(false), WEIR_RECORD_TASK, &filter, "1020 ");
    assert_selected(each_time(true), WEIR_RECORD_TASK, &filter, "1020 1040 1060 ");
    assert_selected(each_time(true), WEIR_RECORD_SPAN, &filter, "1020 1040 1060 ");
    assert_selected(each_time(true), WEIR_RECORD_COUNTER, &filter, "1020 1040 1060 ");
    assert_selected(each_time(true), WEIR_RECORD_FAILURE, &filter, "1015 1035 1055 ");
    filter = (weir_filter){ .from_phase = "forward", .until_phase = "forward" };
    assert_selected(each_time(true), WEIR_RECORD_TASK, &filter, "1020 1030 1040 1050 1060 1070 1080 ");
    filter = (weir_filter){ .from_phase = "backward", .until_phase = "startup" };
    assert_selected(each_time(true), WEIR_RECORD_TASK, &filter, "1030 1040 1050 1060 1070 1080 ");
    selection = (weir_selection){ 0 };
}

/* no mode, train, train, eval, eval, train, train: the phases load and step in each, warm before them */
static const char *record_modes(void)
{
    const char *path = in_folder("modes.db");
    static const char *const modes[] = { NULL, "train", "train", "eval", "eval", "train", "train" };
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    for (int i = 0; i < 7; i++) {
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i,
                                            .mode = modes[i],
                                            .phase = i == 0  ? "warm"
                                                     : i % 2 ? "load"
                                                             : "step" });
        record_failure(writer, 1005 + 10 * i, "x", 1);
    }
    recording_end(writer, 1070);
    return path;
}

static weir_selection modes(const char *from, const char *until, bool every)
{
    return (weir_selection){ .from_mode = from, .until_mode = until, .every = every };
}

TEST_CASE(a_range_between_two_modes_goes_from_one_beginning_to_the_other)
{
    const char *path = record_modes();
    assert_selected(modes("train", "eval", false), WEIR_RECORD_TASK, NULL, "1020 1030 ");
    assert_selected(modes("train", "eval", true), WEIR_RECORD_TASK, NULL, "1020 1030 1060 1070 ");
    assert_selected(modes("train", "eval", true), WEIR_RECORD_FAILURE, NULL, "1015 1025 1055 1065 ");
    assert_selected(modes("eval", NULL, false), WEIR_RECORD_TASK, NULL, "1040 1050 1060 1070 ");
    assert_selected(modes(NULL, "e*", false), WEIR_RECORD_TASK, NULL, "1010 1020 1030 ");
    assert_selected(modes("train", "train", false), WEIR_RECORD_TASK, NULL, "1020 1030 1040 1050 ");
    /* both: the phase within the mode */
    const weir_filter filter = { .from_phase = "step", .until_phase = "load" };
    assert_selected(modes("eval", "train", false), WEIR_RECORD_TASK, &filter, "1050 ");
    assert_selected(modes("train", "eval", true), WEIR_RECORD_TASK, &filter, "1030 1070 ");
    selection = (weir_selection){ 0 };
    weir_recording *recording = open_reader(path);
    weir_selection both = { .section = WEIR_SECTION_AFTER_STEPS, .until_mode = "eval" };
    assert_int_equal(weir_recording_set_selection(recording, &both, NULL), WEIR_EINVAL);
    weir_recording_close(recording);
}

TEST_CASE(positions_are_steps_and_phases_within_them)
{
    const char *path = record_steps_with_phases();
    weir_filter filter = { 0 };
    assert_selected(between(2, 2), WEIR_RECORD_TASK, &filter, "1040 1050 ");
    assert_selected(between(2, INT64_MAX), WEIR_RECORD_SPAN, &filter, "1040 1050 1060 1070 1080 ");
    assert_selected(between(7, 9), WEIR_RECORD_TASK, &filter, "");
    filter = (weir_filter){ .from_phase = "backward", .until_phase = "backward" };
    assert_selected(between(2, 3), WEIR_RECORD_TASK, &filter, "1050 1060 ");
    filter = (weir_filter){ .from_phase = "forward", .until_phase = "backward" };
    assert_selected(between(2, 2), WEIR_RECORD_TASK, &filter, "1040 ");
    filter = (weir_filter){ .from_phase = "backward" };
    assert_selected(between(1, 1), WEIR_RECORD_FAILURE, &filter, "1025 ");
    path = record_phases(); /* several steps in a lap */
    assert_selected(between(5, 12), WEIR_RECORD_TASK, NULL, "1030 1040 ");
    selection = (weir_selection){ 0 };
}

TEST_CASE(sections_are_before_the_first_step_and_after_the_last)
{
    const char *path = record_steps_with_phases();
    assert_selected(section(WEIR_SECTION_BEFORE_STEPS), WEIR_RECORD_TASK, NULL, "1010 ");
    assert_selected(section(WEIR_SECTION_BEFORE_STEPS), WEIR_RECORD_SPAN, NULL, "1010 ");
    assert_selected(section(WEIR_SECTION_AFTER_STEPS), WEIR_RECORD_TASK, NULL, "1080 ");
    assert_selected(section(WEIR_SECTION_AFTER_STEPS), WEIR_RECORD_FAILURE, NULL, "1075 ");
    path = record_four_laps();
    assert_selected(section(WEIR_SECTION_BEFORE_STEPS), WEIR_RECORD_TASK, NULL, "1010 1020 1030 1040 ");
    assert_selected(section(WEIR_SECTION_AFTER_STEPS), WEIR_RECORD_TASK, NULL, "");
    selection = (weir_selection){ 0 };
    weir_recording *recording = open_reader(path);
    weir_error error = { 0 };
    weir_selection both = { .section = WEIR_SECTION_AFTER_STEPS, .every = true },
                   reversed = { .by_step = true, .from_step = 1 };
    assert_int_equal(weir_recording_set_selection(recording, &both, &error), WEIR_EINVAL);
    assert_int_equal(weir_recording_set_selection(recording, &reversed, &error), WEIR_EINVAL);
    weir_recording_close(recording);
}

TEST_CASE(contents_are_listed_by_table_name_node_mode_and_phase)
{
    static const char *const phases[] = { "backward", "finish", "forward", "startup" };
    static const int64_t counts[] = { 3, 1, 3, 1 };
    const char *path = record_steps_with_phases();
    const weir_record *record;
    weir_recording *recording = open_reader(path);
    weir_query *query = begin_query(recording, WEIR_RECORD_CONTENT, &(weir_filter){ .name = "*read" });
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_string_equal(record->content.table, "span_stats");
        assert_string_equal(record->content.name, "train/io/read");
        assert_string_equal(record->content.node_id, "a");
        assert_string_equal(record->content.mode, "train");
        assert_string_equal(record->content.phase, phases[i]);
        assert_string_equal(record->content.path, path);
        assert_int_equal(record->content.num_records, counts[i]);
    }
    assert_true(record->content.start_unix_ns == NS(1000) && record->content.end_unix_ns == NS(1010));
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_EOF);
    weir_query_end(query);
    weir_recording_close(recording);
    /* failures, then stage, queues, span, counter */
    assert_times(WEIR_RECORD_CONTENT, NULL, "8 3 1 3 1 3 1 3 1 3 1 3 1 3 1 3 1 3 1 3 1 3 1 3 1 ");
    assert_times(WEIR_RECORD_CONTENT, &(weir_filter){ .name = "loss" }, "3 1 3 1 ");
}

TEST_CASE(contents_name_files_that_exist)
{
    static const char *const names[] = { "t-0[a].json", "t-1\\\"[a].json" };
    char path[300], statement[1200];
    snprintf(path, sizeof path, "%s", record_steps_with_phases());
    for (size_t i = 0; i < 2; i++)
        fclose(fopen(in_folder(names[i]), "w"));
    snprintf(statement, sizeof statement,
             "INSERT INTO event_stats (timestamp, event_name, run_id, category, detail)"
             " SELECT started, 'trace_file', run_id, 'pipeline', f.value FROM run, json_each('[\"%s\", \"%s\"]') f",
             in_folder("t-{rank}[a].json"), in_folder("gone.json"));
    execute(path, statement);
    const weir_record *record;
    weir_recording *recording = open_reader(path);
    weir_query *query = begin_query(recording, WEIR_RECORD_CONTENT, &(weir_filter){ .name = "trace" });
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_string_equal(record->content.table, "trace");
        assert_string_equal(record->content.path, in_folder(names[i]));
    }
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_EOF);
    weir_query_end(query);
    weir_recording_close(recording);
}

TEST_CASE(intervals_of_a_phase_are_one_record_each)
{
    const char *path = record_phases();
    static const struct {
        const char *phase;
        double start, end;
        int64_t first_step, last_step, num_laps;
    } wanted[] = {
        { "startup", 1000, 1020, 0, -1, 2 },
        { "loop", 1020, 1060, 0, 20, 4 },
        { "finish", 1060, 1070, 0, -1, 1 },
    };
    weir_recording *recording = open_reader(path);
    const weir_record *record;
    weir_query *query = begin_query(recording, WEIR_RECORD_PHASE, NULL);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_string_equal(record->phase.position.phase, wanted[i].phase);
        assert_true(record->phase.start_unix_ns == NS(wanted[i].start) &&
                    record->phase.end_unix_ns == NS(wanted[i].end));
        assert_int_equal(record->phase.position.first_step, wanted[i].first_step);
        assert_int_equal(record->phase.position.last_step, wanted[i].last_step);
        assert_int_equal(record->phase.num_laps, wanted[i].num_laps);
    }
    weir_query_end(query);
    weir_recording_close(recording);
    execute(path, "DELETE FROM queue_stats WHERE timestamp = 1040");
    assert_times(WEIR_RECORD_PHASE, &(weir_filter){ .phase = "loop" }, "1020 1040 "); /* a gap splits the phase */
    assert_times(WEIR_RECORD_PHASE, (&(weir_filter){ .phase = "loop", .limit = 1 }), "1020 ");
}

/* -- content of records */

TEST_CASE(a_record_holds_what_was_observed)
{
    const char *path = in_folder("a.db");
    static const double times[] = { 0.1, 0.2, 0.4 };
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010,
                                        .phase = "train",
                                        .has_steps = true,
                                        .first_step = 3,
                                        .last_step = 8,
                                        .num_tasks = 4,
                                        .num_failures = 1,
                                        .times = times });
    record_failure(writer, 1004, "it's \"a\"\nb", 0.5);
    recording_end(writer, 1010);

    weir_recording *recording = open_reader(path);
    const weir_record *record;
    weir_query *query = begin_query(recording, WEIR_RECORD_TASK, NULL);
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    const weir_lap_record *lap = &record->lap;
    assert_string_equal(lap->name, "0:1:decode[10]");
    assert_string_equal(lap->kind, "stage");
    assert_string_equal(lap->position.phase, "train");
    assert_int_equal(lap->position.first_step, 3);
    assert_int_equal(lap->position.last_step, 8);
    const weir_task_metrics *task = &lap->metrics.task;
    assert_int_equal(task->num_tasks, 4);
    assert_int_equal(task->num_failures, 1);
    assert_int_equal(lap->elapsed_ns, NS(10));
    assert_int_equal(task->max_ns, NS(0.4));
    assert_int_equal(task->failed_ns, NS(0.01));
    assert_true(fabs(lap_value(lap, "ave_time") - 0.7 / 3) < 1e-9 && fabs(lap_value(lap, "p50_time") - 0.2) < 0.002);
    assert_true(task->busy_ns == NS(60) && task->wait_in_ns == NS(20) && task->wait_thread_ns == NS(10) &&
                task->wait_out_ns == NS(10) && task->cpu_ns == NS(50));
    assert_int_equal(task->run_times->count, 3);
    weir_query_end(query);

    query = begin_query(recording, WEIR_RECORD_QUEUE, &(weir_filter){ .name = "sink" });
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    lap = &record->lap;
    assert_string_equal(lap->name, "0:2:sink_queue");
    assert_int_equal(lap->metrics.queue.num_items, 4);
    assert_int_equal(lap->metrics.queue.num_put, 4);
    assert_int_equal(lap->capacity, 2);
    assert_true(fabs(lap_value(lap, "ave_put_time") - 0.002) < 1e-9 &&
                fabs(lap_value(lap, "ave_get_time") - 0.03) < 1e-9);
    assert_true(lap_value(lap, "occupancy_rate") == 0.25 && lap_value(lap, "ave_depth") == 1.5 &&
                lap_value(lap, "ave_bytes") == 2e6);
    assert_int_equal(lap->metrics.queue.max_bytes, 3000000);
    weir_query_end(query);

    query = begin_query(recording, WEIR_RECORD_FAILURE, NULL);
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    assert_string_equal(record->failure.label, "it's \"a\"\nb");
    assert_int_equal(record->failure.status, WEIR_EDATA);
    assert_int_equal(record->failure.library_code, -22);
    assert_int_equal(record->failure.seq, 7);
    assert_true(record->failure.run_ns == NS(0.5));
    weir_query_end(query);

    query = begin_query(recording, WEIR_RECORD_STAGE, &(weir_filter){ .name = "decode" });
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    assert_string_equal(record->stage.name, "0:1:decode[10]");
    assert_string_equal(record->stage.queue_name, "0:1:decode[10]_queue");
    assert_string_equal(record->stage.kind, "stage");
    assert_int_equal(record->stage.concurrency, 10);
    weir_query_end(query);
    weir_recording_close(recording);
}

TEST_CASE(items_are_read_from_whatever_columns_there_are)
{
    const char *path = record_four_laps();
    assert_times(WEIR_RECORD_ITEM, NULL, ""); /* no such table */
    execute(path, "DROP TABLE item_stats;"
                  "CREATE TABLE item_stats (id INTEGER PRIMARY KEY, timestamp REAL, run_id INTEGER, name TEXT,"
                  " label TEXT, elapsed REAL, codec TEXT, width INTEGER);"
                  "INSERT INTO item_stats VALUES (1, 1005, 1, '0:1:decode[10]', 'a.mp4', 0.5, 'h264', 640),"
                  " (2, 1015, 1, '0:1:decode[10]', 'b.mp4', 2.5, 'hevc', NULL)");
    assert_times(WEIR_RECORD_ITEM, NULL, "1005 1015 ");
    assert_times(WEIR_RECORD_ITEM, (&(weir_filter){ .name = "decode", .end_unix_ns = NS(1010) }), "1005 ");
    weir_recording *recording = open_reader(path);
    const weir_record *record;
    weir_query *query = begin_query(recording, WEIR_RECORD_ITEM, &(weir_filter){ .longest_first = true });
    assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
    assert_string_equal(record->item.label, "b.mp4");
    assert_string_equal(record->item.codec, "hevc");
    assert_true(record->item.run_ns == NS(2.5) && record->item.decode_ns < 0);
    assert_int_equal(record->item.width, -1);
    assert_int_equal(record->item.num_frames, -1);
    weir_query_end(query);
    weir_recording_close(recording);
}

TEST_CASE(the_longest_come_first_when_asked_for)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    static const double longest[] = { 0.2, 0.9, 0.1, 0.5 };
    for (int i = 0; i < 4; i++) {
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = 1, .times = &longest[i] });
        record_failure(writer, 1005 + 10 * i, "x", longest[3 - i]);
    }
    recording_end(writer, 1040);
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .longest_first = true }), "1020 1040 1010 1030 ");
    assert_times(WEIR_RECORD_TASK, (&(weir_filter){ .longest_first = true, .limit = 2 }), "1020 1040 ");
    assert_times(WEIR_RECORD_FAILURE, (&(weir_filter){ .longest_first = true, .limit = 2 }), "1025 1005 ");
}

TEST_CASE(an_unknown_kind_is_refused)
{
    weir_recording *recording = open_reader(record_four_laps());
    weir_query *query;
    assert_int_equal(weir_query_begin(recording, (weir_record_kind)77, NULL, &query, NULL), WEIR_EINVAL);
    weir_recording_close(recording);
}

/* -- sums */

static void read_totals(weir_recording *recording, const weir_filter *filter, uint32_t by, weir_totals *totals)
{
    weir_error error = { 0 };
    if (weir_totals_read(recording, filter, &(weir_grouping){ .by = by, .bin_ns = NS(20), .bin_steps = 10 }, totals,
                         &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

/* Random times over three runs of twenty laps each: the sum of the stored laps equals one histogram of all of
   them. */
TEST_CASE(percentiles_over_laps_ranks_and_runs_are_those_of_all_times_together)
{
    const char *path = in_folder("random.db");
    weir_histogram all = { 0 };
    double sum = 0, max = 0;
    uint64_t count = 0;
    srand(5);
    for (int run = 0; run < 3; run++) {
        weir_sqlite_writer *writer = recording_begin(path, run ? "b" : "a", run, 1000);
        for (int lap = 1; lap <= 20; lap++) {
            double times[64];
            uint64_t n = (uint64_t)rand() % 64;
            for (uint64_t i = 0; i < n; i++) {
                times[i] = exp((double)rand() / RAND_MAX * 18 - 14);
                weir_histogram_record(&all, llround(times[i] * 1e9));
                sum += times[i];
                max = times[i] > max ? times[i] : max;
            }
            count += n;
            record_lap(writer, &(invented_lap){ .at = 1000 + 10 * lap, .num_tasks = n, .times = times });
        }
        recording_end(writer, 1200);
    }
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, NULL, WEIR_BY_NAME, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 1);
    const weir_total *total = &totals.of[WEIR_SUBJECT_STAGE].all[0];
    const weir_histogram *found = total->metrics.task.run_times;
    assert_int_equal(total->metrics.task.num_tasks, count);
    assert_int_equal(total->key.num_laps, 60);
    assert_memory_equal(found->buckets, all.buckets, sizeof all.buckets);
    assert_int_equal(found->count, all.count);
    assert_int_equal(found->first, all.first);
    assert_int_equal(found->last, all.last);
    static const double shares[] = { 0.5, 0.9, 0.99 };
    static const char *const measures[] = { "p50_time", "p90_time", "p99_time" };
    for (int i = 0; i < 3; i++)
        assert_true(total_value(total, measures[i]) == (double)weir_histogram_quantile_ns(&all, shares[i]) / 1e9);
    assert_true(fabs(total_value(total, "ave_time") - sum / (double)count) < 1e-8);
    assert_true(fabs(total_value(total, "max_time") - max) < 1e-9);
    assert_true(total->metrics.task.busy_ns == NS(3 * 20 * 60) && total->elapsed_ns == NS(600));
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

/* Two laps of three billion tasks, all in bucket 5. */
TEST_CASE(more_tasks_than_32_bits_count_are_added_up)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1030, .elapsed = 30, .num_tasks = 1 });
    record_lap(writer, &(invented_lap){ .at = 1060, .elapsed = 30, .num_tasks = 1 });
    recording_end(writer, 1060);
    execute(path, "UPDATE task_stats SET num_tasks = 3000000000, histogram = x'010580bcc1960b'");
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, NULL, WEIR_BY_NAME, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 1);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.run_times->count, UINT64_C(6000000000));
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.run_times->buckets[5], UINT64_C(6000000000));
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(queues_are_weighted_by_what_their_means_are_of)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1030, .elapsed = 30, .num_tasks = 1 });
    record_lap(writer, &(invented_lap){ .at = 1040, .elapsed = 10, .num_tasks = 3 });
    recording_end(writer, 1040);
    execute(path, "UPDATE queue_stats SET occupied_time = elapsed, depth_time = 2 * elapsed, get_time = num_items "
                  "WHERE timestamp = 1030");
    execute(path, "UPDATE queue_stats SET occupied_time = 0, depth_time = 0, get_time = 0 WHERE timestamp = 1040");
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, &(weir_filter){ .name = "sink" }, WEIR_BY_NAME, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].count, 1);
    assert_true(fabs(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "occupancy_rate") - 0.75) < 1e-9);
    assert_true(fabs(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "ave_depth") - 1.5) < 1e-9);
    assert_true(fabs(total_value(&totals.of[WEIR_SUBJECT_QUEUE].all[0], "ave_get_time") - 0.25) < 1e-9);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].all[0].metrics.queue.num_items, 4);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].all[0].capacity, 2);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

/* Each group as "run|node|phase|bin|laps", with spaces between. */
static const char *groups_by(const char *path, const weir_filter *filter, uint32_t by)
{
    static char text[4096];
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, filter, by, &totals);
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < totals.of[WEIR_SUBJECT_STAGE].count; i++) {
        const weir_group_key *key = &totals.of[WEIR_SUBJECT_STAGE].all[i].key;
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%d|%s|%s|%g|%d ", (int)key->run_id, key->node_id,
                             key->phase, (double)key->bin_unix_ns / 1e9 + (double)key->bin_step, (int)key->num_laps);
    }
    weir_totals_free(&totals);
    weir_recording_close(recording);
    return text;
}

/* A run is what a rank has recorded: 10 items per second, 100 s long. */
static void record_one_rank(const char *path, int32_t rank, double started)
{
    weir_sqlite_writer *writer = recording_begin(path, "node", rank, started);
    for (int i = 1; i <= 10; i++)
        record_lap(writer, &(invented_lap){ .at = started + 10 * i, .num_tasks = 100 });
    recording_end(writer, started + 100);
}

/* The value of all runs together. */
static double value_of_all(const char *path, weir_subject subject, const char *measure)
{
    weir_totals totals;
    weir_recording *recording = open_reader(path);
    assert_int_equal(weir_totals_read(recording,
                                      &(weir_filter){ .name = subject == WEIR_SUBJECT_QUEUE ? "sink_queue" : NULL },
                                      &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, NULL),
                     WEIR_OK);
    double value = weir_total_value(&totals.of[subject].all[0], weir_measure_find(subject, measure));
    weir_totals_free(&totals);
    weir_recording_close(recording);
    return value;
}

static double rate_of_all(const char *path)
{
    return value_of_all(path, WEIR_SUBJECT_QUEUE, "items_per_s");
}

TEST_CASE(the_rate_of_a_job_is_that_of_its_ranks_together)
{
    const char *path = in_folder("job.db");
    record_one_rank(path, 0, 1000);
    assert_true(rate_of_all(path) == 10);
    record_one_rank(path, 0, 2000); /* one after the other */
    assert_true(rate_of_all(path) == 10);
    assert_int_equal(unlink(path), 0);
    record_one_rank(path, 0, 1000);
    record_one_rank(path, 1, 1000); /* at the same time */
    assert_true(rate_of_all(path) == 20);
    execute(path, "UPDATE task_stats SET cpu_time = 5 * elapsed / 10");
    assert_float_equal(value_of_all(path, WEIR_SUBJECT_STAGE, "cpus"), 1, 1e-9); /* 0.5 of each */
    record_one_rank(path, 2, 1050);                                              /* half of the time */
    assert_true(fabs(rate_of_all(path) - 20) < 1e-9);
}

TEST_CASE(groups_are_by_run_node_phase_step_and_time)
{
    const char *runs = record_three_runs(), *phases = record_phases();
    assert_string_equal(groups_by(runs, NULL, 0), "0|||0|3 ");
    assert_string_equal(groups_by(runs, NULL, WEIR_BY_RUN), "1|||0|1 2|||0|1 3|||0|1 ");
    assert_string_equal(groups_by(runs, NULL, WEIR_BY_NODE), "0|node-a||0|2 0|node-b||0|1 ");
    assert_string_equal(groups_by(runs, NULL, WEIR_BY_RUN | WEIR_BY_NODE),
                        "1|node-a||0|1 2|node-b||0|1 3|node-a||0|1 ");
    assert_string_equal(groups_by(phases, NULL, WEIR_BY_PHASE), "0||startup|0|2 0||loop|0|4 0||finish|0|1 ");
    assert_string_equal(groups_by(phases, NULL, WEIR_BY_STEP), "0|||0|1 0|||10|1 0|||20|1 ");
    assert_string_equal(groups_by(phases, NULL, WEIR_BY_TIME),
                        "0|||1000|2 0|||1020|2 0|||1040|2 0|||1060|1 "); /* bins of 20 s */
    assert_string_equal(groups_by(phases, &(weir_filter){ .phase = "loop" }, WEIR_BY_PHASE), "0||loop|0|4 ");
}

TEST_CASE(groups_are_by_transition_between_phases)
{
    const char *path = record_steps_with_phases();
    assert_string_equal(groups_by(path, NULL, WEIR_BY_TRANSITION),
                        "0||start > startup|0|1 0||startup > forward|0|1 0||forward > backward|0|3 "
                        "0||backward > forward|0|2 0||backward > finish|0|1 ");
    assert_string_equal(groups_by(record_four_laps(), NULL, WEIR_BY_TRANSITION), "0||start > |0|4 ");
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, &(weir_filter){ .name = "read", .phase = "backward" }, WEIR_BY_NAME | WEIR_BY_TRANSITION,
                &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_SPAN].count, 1);
    const weir_total *total = &totals.of[WEIR_SUBJECT_SPAN].all[0];
    assert_string_equal(total->key.phase, "forward > backward");
    assert_int_equal(total->metrics.span.num_spans, 3 + 5 + 7);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(job_phases_are_start_up_loop_and_finish_whatever_the_loop_is_called)
{
    const char *path = in_folder("job.db");
    static const char *const phases[] = { NULL, "startup", "train", "eval", "train", "finish" };
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    for (int i = 0; i < 6; i++)
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .phase = phases[i], .has_steps = i >= 2 && i < 5 });
    recording_end(writer, 1060);
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0||startup|0|2 0||loop|0|3 0||finish|0|1 ");
    assert_string_equal(groups_by(path, NULL, WEIR_BY_PHASE),
                        "0||startup|0|2 0||train|0|2 0||eval|0|1 0||finish|0|1 ");
}

/* From the last lap with a step on, or without steps, with an item; whatever their phases are. */
TEST_CASE(without_own_phases_the_loop_goes_from_the_first_step_or_item_to_the_last)
{
    const char *path = record_steps_with_phases(); /* of a program with phases of its own */
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0||startup|0|1 0||loop|0|6 0||finish|0|1 ");
    execute(path, "UPDATE task_stats SET phase = ''; UPDATE queue_stats SET phase = ''");
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0||startup|0|1 0||loop|0|6 0||finish|0|1 ");
    path = in_folder("items.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    for (int i = 0; i < 7; i++) /* the last lap of the loop has none; a queue in front has some in each lap */
        record_lap(writer, &(invented_lap){ .at = 1010 + 10 * i, .num_tasks = i == 2 || i == 4 });
    recording_end(writer, 1070);
    execute(path, "UPDATE queue_stats SET num_items = 9 WHERE name <> '0:2:sink_queue'");
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0||startup|0|2 0||loop|0|3 0||finish|0|2 ");
    execute(path, "UPDATE queue_stats SET num_items = 0 WHERE name = '0:2:sink_queue'"); /* nothing came out */
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0||startup|0|7 ");
    execute(path, "DELETE FROM stage");
    assert_string_equal(groups_by(path, NULL, WEIR_BY_JOB_PHASE), "0|||0|7 ");
}

/* A mode, and "|mode" of each group. */
static const char *modes_by(const char *path, uint32_t by)
{
    static char text[1000];
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    read_totals(recording, NULL, by, &totals);
    size_t length = 0;
    for (size_t i = 0; i < totals.of[WEIR_SUBJECT_STAGE].count; i++) {
        const weir_group_key *key = &totals.of[WEIR_SUBJECT_STAGE].all[i].key;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s|%s|%d ", key->mode, key->phase,
                                   (int)key->num_laps);
    }
    weir_totals_free(&totals);
    weir_recording_close(recording);
    return text;
}

TEST_CASE(groups_are_by_transition_between_modes)
{
    const char *path = record_modes();
    assert_string_equal(modes_by(path, WEIR_BY_MODE_TRANSITION),
                        "start > ||1 start > train||2 train > eval||2 eval > train||2 ");
    assert_string_equal(modes_by(path, WEIR_BY_MODE_TRANSITION | WEIR_BY_TRANSITION),
                        "start > |start > warm|1 start > train|warm > load|1 start > train|load > step|1 "
                        "train > eval|load > step|1 train > eval|step > load|1 "
                        "eval > train|load > step|1 eval > train|step > load|1 ");
}

TEST_CASE(groups_say_what_they_cover)
{
    weir_recording *recording = open_reader(record_phases());
    weir_totals totals;
    read_totals(recording, &(weir_filter){ .phase = "loop" }, WEIR_BY_NAME | WEIR_BY_PHASE, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 1);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].count, 3);
    const weir_group_key *key = &totals.of[WEIR_SUBJECT_STAGE].all[0].key;
    assert_string_equal(key->name, "0:1:decode[10]");
    assert_true(key->start_unix_ns == NS(1020) && key->end_unix_ns == NS(1060));
    assert_int_equal(key->first_step, 0);
    assert_int_equal(key->last_step, 20);
    assert_string_equal(totals.of[WEIR_SUBJECT_QUEUE].all[0].key.name,
                        "0:0:src_queue"); /* in the order of the pipeline */
    assert_string_equal(totals.of[WEIR_SUBJECT_QUEUE].all[2].key.name, "0:2:sink_queue");
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(over_nothing_there_are_no_groups)
{
    weir_recording *recording = open_reader(record_four_laps());
    weir_totals totals;
    read_totals(recording, (&(weir_filter){ .start_unix_ns = NS(5), .end_unix_ns = NS(6) }), WEIR_BY_NAME, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 0);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].count, 0);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(more_groups_than_fit_are_refused)
{
#ifdef SANITIZED_THREADS
    skip(); /* its 2 GB of histograms become 9 GB, and there is one thread */
#endif
    const char *path = record_four_laps();
    execute(path,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 100000) "
            "INSERT INTO task_stats (timestamp, name, num_tasks, num_failures, ave_time, p90_time, p99_time, run_id, "
            "elapsed, histogram, phase, first_step, last_step) "
            "SELECT 2000 + i, '0:1:x', 0, 0, 0, 0, 0, 1, 1, x'01', 'loop', i, i FROM n");
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    weir_error error = { 0 };
    weir_grouping fine = { .by = WEIR_BY_STEP }, coarse = { .by = WEIR_BY_STEP, .bin_steps = 1000 };
    assert_int_equal(weir_totals_read(recording, NULL, &fine, &totals, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.message, "wider bins"));
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 0);
    assert_int_equal(weir_totals_read(recording, NULL, &coarse, &totals, NULL), WEIR_OK);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].count, 101);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(a_damaged_histogram_is_named_with_its_row)
{
    const char *path = record_four_laps();
    static const char *const damaged[] = { "x''",           "x'02'",   "x'0101'",
                                           "x'010100'",     "x'01ff'", "x'01808080808001'",
                                           "x'01ffff0101'", "5" };
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "UPDATE task_stats SET histogram = %s WHERE id = 3", damaged[i]);
        execute(path, sql);
        weir_recording *recording = open_reader(path);
        weir_totals totals;
        weir_error error = { 0 };
        assert_int_equal(weir_totals_read(recording, NULL, NULL, &totals, &error), WEIR_EDATA);
        assert_non_null(strstr(error.message, "row 3 of task_stats has no valid histogram"));
        weir_recording_close(recording);
    }
}

/* -- what else may be going on */

TEST_CASE(laps_and_sums_without_histograms_have_all_else)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 4, .times = (double[]){ 1, 2, 3, 4 } });
    recording_end(writer, 1010);
    weir_recording *recording = open_reader(path);
    for (int skip = 1; skip >= 0; skip--) {
        const weir_record *record;
        weir_totals totals;
        weir_recording_skip_histograms(recording, skip);
        weir_query *query = begin_query(recording, WEIR_RECORD_TASK, NULL);
        assert_int_equal(weir_query_next(query, &record, NULL), WEIR_OK);
        assert_int_equal(record->lap.metrics.task.run_times == NULL, skip);
        assert_true(lap_value(&record->lap, "ave_time") == 2.5);
        assert_true(lap_value(&record->lap, "max_time") == 4);
        weir_query_end(query);
        assert_int_equal(weir_totals_read(recording, NULL, NULL, &totals, NULL), WEIR_OK);
        const weir_total *stage = &totals.of[WEIR_SUBJECT_STAGE].all[0];
        assert_int_equal(isnan(total_value(stage, "p99_time")) != 0, skip);
        assert_true(total_value(stage, "ave_time") == 2.5);
        weir_totals_free(&totals);
    }
    weir_recording_close(recording);
}

TEST_CASE(what_is_held_is_of_one_moment)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 1 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    weir_recording *recording = open_reader(path);
    assert_int_equal(weir_recording_hold(recording, NULL), WEIR_OK);
    record_lap(writer, &(invented_lap){ .at = 1020, .num_tasks = 1 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    weir_totals totals;
    read_totals(recording, NULL, 0, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.num_tasks, 1);
    weir_totals_free(&totals);
    weir_recording_release(recording);
    read_totals(recording, NULL, 0, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.num_tasks, 2);
    weir_totals_free(&totals);
    weir_recording_close(recording);
    recording_end(writer, 1020);
}

TEST_CASE(several_queries_of_one_reader_go_on_side_by_side)
{
    weir_recording *recording = open_reader(record_four_laps());
    const weir_record *task, *queue;
    weir_query *tasks = begin_query(recording, WEIR_RECORD_TASK, NULL);
    weir_query *queues = begin_query(recording, WEIR_RECORD_QUEUE, &(weir_filter){ .name = "sink" });
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(weir_query_next(tasks, &task, NULL), WEIR_OK);
        assert_int_equal(weir_query_next(queues, &queue, NULL), WEIR_OK);
        assert_true(task->lap.end_unix_ns == queue->lap.end_unix_ns);
        assert_string_equal(task->lap.name, "0:1:decode[10]");
    }
    weir_query_end(tasks);
    weir_query_end(queues);
    weir_recording_close(recording);
}

/* Opens and reads it as a user without write permission for the file and its folder. 0 = as expected. */
static int read_as_nobody(const char *path, int64_t wanted_tasks)
{
    if (geteuid() == 0 && setuid(65534) != 0)
        return 1;
    weir_recording *recording;
    weir_totals totals;
    weir_error error = { 0 };
    if (weir_recording_open(path, &recording, &error) != WEIR_OK) {
        if (wanted_tasks < 0 && strstr(error.message, "copy both files"))
            return 0;
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    if (weir_totals_read(recording, NULL, NULL, &totals, &error) != WEIR_OK)
        return 3;
    int result = totals.of[WEIR_SUBJECT_STAGE].count == 1 &&
                         totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.num_tasks == (uint64_t)wanted_tasks
                     ? 0
                     : 4;
    weir_totals_free(&totals);
    weir_recording_close(recording);
    return result;
}

static int in_child(const char *path, int64_t wanted_tasks)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(read_as_nobody(path, wanted_tasks));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE(a_folder_that_cannot_be_written_to_is_read)
{
    char path[300];
    snprintf(path, sizeof path, "%s", in_folder("odd name?#%41.db"));
    assert_int_equal(rename(record_four_laps(), path), 0);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(in_folder(""), 0555), 0);
    assert_int_equal(in_child(path, 10), 0);
    assert_int_equal(chmod(in_folder(""), 0755), 0);
}

/* The log of a run that was killed, copied without the file that says how to read it. */
TEST_CASE(a_log_that_cannot_be_read_is_told)
{
    char path[300];
    snprintf(path, sizeof path, "%s", in_folder("killed.db"));
    weir_sqlite_writer *writer = recording_begin(in_folder("live.db"), "a", 0, 1000);
    record_lap(writer, &(invented_lap){ .at = 1010, .num_tasks = 3 });
    assert_int_equal(weir_sqlite_flush(writer, NULL), WEIR_OK);
    size_t size;
    char *bytes = read_file(in_folder("live.db"), &size);
    write_file(path, bytes, size);
    free(bytes);
    bytes = read_file(in_folder("live.db-wal"), &size);
    assert_true(size > 0);
    write_file(in_folder("killed.db-wal"), bytes, size);
    free(bytes);
    recording_end(writer, 1010);
    assert_int_equal(chmod(in_folder(""), 0555), 0);
    assert_int_equal(in_child(path, -1), 0);
    assert_int_equal(chmod(in_folder(""), 0755), 0);
    weir_recording *recording = open_reader(path); /* where it may be written to, it is read whole */
    weir_totals totals;
    read_totals(recording, NULL, 0, &totals);
    assert_int_equal(totals.of[WEIR_SUBJECT_STAGE].all[0].metrics.task.num_tasks, 3);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

/* -- the statement behind an answer */

int sqlite3_weirstats_init(sqlite3 *db, char **message, const void *routines); /* as .load calls it */

/* The value of a column of the first row; -1 = no such column. */
static double first_value(const char *path, const char *sql, const char *column)
{
    sqlite3 *db = connect_to(path);
    sqlite3_stmt *row;
    double value = -1;
    assert_int_equal(sqlite3_weirstats_init(db, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    for (int i = 0; i < sqlite3_column_count(row); i++)
        if (strcmp(sqlite3_column_name(row, i), column) == 0)
            value = sqlite3_column_double(row, i);
    sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

TEST_CASE(the_statement_behind_an_answer_runs_in_other_programs)
{
    const char *path = record_four_laps();
    weir_recording *recording = open_reader(path);
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_TRANSITION, .subjects = 1u << WEIR_SUBJECT_STAGE };
    weir_totals totals;
    weir_query *query;
    char sql[8000];
    assert_int_equal(weir_totals_read(recording, &(weir_filter){ .name = "decode" }, &grouping, &totals, NULL),
                     WEIR_OK);
    const weir_total *stage = &totals.of[WEIR_SUBJECT_STAGE].all[0];
    assert_true(first_value(path, weir_recording_sql(recording), "num_tasks") == total_value(stage, "num_tasks"));
    snprintf(sql, sizeof sql, "SELECT weir_quantile(histogram, 0.9) AS p90 FROM (%s)", weir_recording_sql(recording));
    assert_true(fabs(first_value(path, sql, "p90") - total_value(stage, "p90_time")) < 0.01);
    weir_totals_free(&totals);
    /* spans of time and positions are part of the statement */
    const weir_filter filter = { .phase = "train", .until_phase = "eval" };
    weir_recording_set_selection(recording, &(weir_selection){ .by_step = true, .until_step = 100 }, NULL);
    assert_int_equal(weir_query_begin(recording, WEIR_RECORD_FAILURE, &filter, &query, NULL), WEIR_OK);
    assert_non_null(weir_recording_sql(recording));
    assert_non_null(strstr(weir_recording_sql(recording), "'eval'"));
    weir_query_end(query);
    weir_recording_close(recording);
}

/* Every column of a view that has the name of a measure has its value. */
static void assert_view(const char *path, const char *view, weir_subject subject)
{
    char sql[200];
    int num_compared = 0;
    weir_totals totals;
    weir_recording *recording = open_reader(path);
    sqlite3_stmt *row;
    sqlite3 *db = connect_to(path);
    assert_int_equal(
        weir_totals_read(recording, NULL, &(weir_grouping){ .by = WEIR_BY_NAME | WEIR_BY_RUN }, &totals, NULL),
        WEIR_OK);
    const weir_total *total = &totals.of[subject].all[0];
    snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE run_id = %lld AND name = '%s'", view,
             (long long)total->key.run_id, total->key.name);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    for (int i = 0; i < sqlite3_column_count(row); i++) {
        const weir_measure *measure = weir_measure_find(subject, sqlite3_column_name(row, i));
        double value = measure ? weir_total_value(total, measure) : NAN;
        if (!measure || isnan(value))
            continue;
        num_compared++;
        if (fabs(sqlite3_column_double(row, i) - value) > 1e-9 * fabs(value))
            fail_msg("%s: %s is %g, and not %g", view, measure->name, sqlite3_column_double(row, i), value);
    }
    assert_in_range(num_compared, 5, 20);
    sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(the_views_have_the_figures_of_queries)
{
    const char *path = record_four_laps();
    assert_view(path, "stage_runs", WEIR_SUBJECT_STAGE);
    assert_view(path, "queue_runs", WEIR_SUBJECT_QUEUE);
    execute(path, "DELETE FROM task_stats WHERE id > 1; DELETE FROM queue_stats WHERE id > 1"); /* one lap */
    assert_view(path, "stage_laps", WEIR_SUBJECT_STAGE);
    assert_view(path, "queue_laps", WEIR_SUBJECT_QUEUE);
}

TEST_CASE(what_is_no_database_of_ours_is_refused_by_name)
{
    weir_recording *recording;
    static const char text[] =
        "this is a text, and longer than the hundred bytes of a database's header, which it does "
        "not even begin with, so that nobody can take it for one";
    write_file(in_folder("text"), text, sizeof text);
    write_file(in_folder("empty"), "", 0);
    execute(in_folder("other"), "CREATE TABLE t (x)");
    close_writer(open_writer(in_folder("newer"), NULL));
    execute(in_folder("newer"), "PRAGMA user_version = 77");
    close_writer(open_writer(in_folder("older"), NULL));
    execute(in_folder("older"), "PRAGMA user_version = 4");
    static const struct {
        const char *name, *said;
        int status;
    } cases[] = {
        { "text", "not a database", WEIR_EDATA },
        { "empty", "is empty", WEIR_EDATA },
        { "other", "another program", WEIR_EDATA },
        { "newer", "use a newer weir", WEIR_EUNSUPPORTED },
        { "older", "record again in another file", WEIR_EUNSUPPORTED },
        { "nothing", "there is no", WEIR_ENOTFOUND },
        { ".", "a folder", WEIR_EINVAL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_error error = { 0 };
        assert_int_equal(weir_recording_open(in_folder(cases[i].name), &recording, &error), cases[i].status);
        assert_null(recording);
        assert_non_null(strstr(error.message, cases[i].said));
        assert_non_null(strstr(error.message, in_folder(cases[i].name)));
    }
}

static void execute_format(const char *path, const char *format, ...) WEIR_PRINTF(2, 3);

static void execute_format(const char *path, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    char *sql = sqlite3_vmprintf(format, values);
    va_end(values);
    execute(path, sql);
    sqlite3_free(sql);
}

/* All columns of numbers except keys. */
static void set_all_numbers(const char *path, const char *table, const char *value)
{
    char *names = NULL, *column, *rest;
    char *sql = sqlite3_mprintf("SELECT group_concat(name, ' ') FROM pragma_table_info(%Q) "
                                "WHERE type IN ('REAL', 'INTEGER') AND name NOT IN ('id', 'run_id')",
                                table);
    names = query_text(path, sql);
    for (column = strtok_r(names, " ", &rest); column; column = strtok_r(NULL, " ", &rest))
        execute_format(path, "UPDATE %s SET %s = %s", table, column, value);
    sqlite3_free(sql);
    free(names);
}

static void ignore_finding(void *self, const weir_finding *finding)
{
    (void)self;
    (void)finding;
}

static int count_record(void *count, const weir_record *record, weir_error *error)
{
    (void)record;
    (void)error;
    ++*(int64_t *)count;
    return WEIR_OK;
}

/* A hostile file may hold any number: sums stop at the largest one. */
TEST_CASE(sums_of_the_largest_numbers_do_not_overflow)
{
    static const char *const values[] = { "8.5e9", "-8.5e9", "9223372036854775807", "-9223372036854775808", "1e300" };
    const char *path = record_steps_with_phases();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        weir_recording *recording;
        weir_totals totals;
        weir_verdict *verdict;
        FILE *nowhere = fopen("/dev/null", "w");
        assert_non_null(nowhere);
        static const char *const tables[] = { "task_stats", "queue_stats", "span_stats", "counter_stats" };
        for (size_t j = 0; j < sizeof tables / sizeof tables[0]; j++)
            set_all_numbers(path, tables[j], values[i]);
        execute_format(path, "UPDATE run SET started = %s, ended = -(%s), threads = %s", values[i], values[i],
                       values[i]);
        execute_format(path, "UPDATE task_failures SET timestamp = %s, elapsed = -(%s), seq = %s", values[i],
                       values[i], values[i]);
        assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
        for (uint32_t by = 0; by <= WEIR_BY_TRANSITION; by = by ? 2 * by : 1) {
            assert_int_equal(weir_totals_read(recording, NULL, &(weir_grouping){ .by = by }, &totals, NULL), WEIR_OK);
            weir_totals_free(&totals);
        }
        assert_int_equal(weir_summary_write(nowhere, recording, NULL, NULL, weir_verdict_write_limit, NULL), WEIR_OK);
        assert_int_equal(weir_summary_write_failures(nowhere, recording, NULL, 10, NULL), WEIR_OK);
        assert_int_equal(weir_openmetrics_export(recording, NULL, true, nowhere, NULL), WEIR_OK);
        assert_int_equal(weir_database_check(recording, true, ignore_finding, NULL, NULL), WEIR_OK);
        assert_int_equal(weir_verdict_explain(recording, NULL, &verdict, NULL), WEIR_OK);
        weir_verdict_free(verdict);
        weir_recording_close(recording);
        fclose(nowhere);
    }
}

/* Each step of a training has a phase forward and one backward: a day has more than an SQL statement could list. */
TEST_CASE(there_may_be_any_number_of_windows)
{
    enum { NUM_STEPS = 21000 };
    const char *path = record_steps_with_phases();
    int64_t num_laps = 0, num_failures = 0;
    weir_recording *recording;
    weir_filter filter = { .from_phase = "forward", .until_phase = "backward" };
    execute_format(path,
                   "DELETE FROM queue_stats; DELETE FROM task_failures; WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
                   "SELECT i + 1 FROM n WHERE i < %d) INSERT INTO queue_stats (timestamp, name, elapsed, num_items, "
                   "ave_put_time, ave_get_time, p90_put_time, p99_put_time, p90_get_time, p99_get_time, "
                   "occupancy_rate, run_id, phase) SELECT 1000 + i, 'q', 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, "
                   "CASE i %% 2 WHEN 0 THEN 'forward' ELSE 'backward' END FROM n; "
                   "INSERT INTO task_failures (timestamp, run_id, name, seq, label, status, library_code, message, "
                   "elapsed) SELECT timestamp - 0.5, 1, 's', 0, '', -6, 0, '', 0 FROM queue_stats",
                   2 * NUM_STEPS - 1);
    assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
    assert_int_equal(weir_recording_set_selection(recording, &(weir_selection){ .every = true }, NULL), WEIR_OK);
    assert_int_equal(weir_recording_each(recording, WEIR_RECORD_QUEUE, &filter, count_record, &num_laps, NULL),
                     WEIR_OK);
    assert_int_equal(num_laps, NUM_STEPS);
    assert_int_equal(weir_recording_set_selection(recording, NULL, NULL), WEIR_OK);
    filter = (weir_filter){ .phase = "forward" };
    assert_int_equal(weir_recording_each(recording, WEIR_RECORD_FAILURE, &filter, count_record, &num_failures, NULL),
                     WEIR_OK);
    assert_int_equal(num_failures, NUM_STEPS);
    weir_recording_close(recording);
}

/* -- rows, one by one */

static weir_rows *begin_rows(weir_recording *recording, const weir_filter *filter, const char *sql)
{
    weir_rows *rows = NULL;
    weir_error error = { 0 };
    if (weir_rows_begin(recording, filter, sql, NULL, &rows, &error) != WEIR_OK)
        fail_msg("%s: %s", sql, error.message);
    return rows;
}

/* "name:type name:type …"; valid until the next call. */
static const char *columns_of(const weir_rows *rows)
{
    static const char types[] = {
        [WEIR_ROW_INT] = 'i', [WEIR_ROW_REAL] = 'r', [WEIR_ROW_TEXT] = 't', [WEIR_ROW_BYTES] = 'b'
    };
    static char text[2000];
    size_t count, length = 0;
    const weir_row_column *columns = weir_rows_columns(rows, &count);
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s:%c", i ? " " : "", columns[i].name,
                                   types[columns[i].type]);
    return text;
}

TEST_CASE(rows_come_one_by_one_and_only_those_that_match)
{
    weir_recording *recording = open_reader(record_four_laps());
    const weir_row *row;
    weir_rows *rows = begin_rows(recording, &(weir_filter){ .start_unix_ns = NS(1015) },
                                 "SELECT timestamp, num_tasks, name FROM tasks ORDER BY 1");
    assert_string_equal(columns_of(rows), "timestamp:r num_tasks:i name:t");
    for (int i = 2; i <= 4; i++) {
        assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_OK);
        assert_true(weir_row_real(row, 0) == 1000 + 10 * i);
        assert_int_equal(weir_row_int(row, 1), i);
        assert_string_equal(weir_row_text(row, 2), "0:1:decode[10]");
    }
    assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_EOF);
    assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_EOF);
    assert_null(row);
    weir_rows_end(rows);
    weir_recording_close(recording);
}

TEST_CASE(types_of_columns_are_declared_or_hold_all_values)
{
    static const struct {
        const char *sql, *columns;
    } cases[] = {
        { "SELECT run_id, timestamp, name, histogram FROM tasks WHERE 0", "run_id:i timestamp:r name:t histogram:b" },
        { "SELECT value AS a FROM json_each('[1, 2, null]')", "a:i" },
        { "SELECT value AS a FROM json_each('[null, 1, 2.5]')", "a:r" },
        { "SELECT value AS a, 1 AS b FROM json_each('[null, 1, 2.5, \"x\", 3]')", "a:t b:i" },
        { "SELECT NULL AS a, 'x' AS b", "a:r b:t" },
        { ", other AS (SELECT 1 AS a) SELECT a FROM other", "a:i" },
        { "SELECT ave_time, p99_time, phase FROM tasks", "ave_time:r p99_time:r phase:t" },
        { "SELECT occupancy_rate, capacity FROM queues", "occupancy_rate:r capacity:i" },
        { "SELECT run_id, has_ended FROM runs", "run_id:i has_ended:i" },
        { "SELECT name, end_time, num_tasks FROM stage_laps", "name:t end_time:r num_tasks:i" },
        { "SELECT x'00' AS a", "a:b" },
        { "SELECT 1 AS a WHERE 0", "a:r" },
    };
    weir_recording *recording = open_reader(record_four_laps());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_rows *rows = begin_rows(recording, NULL, cases[i].sql);
        assert_string_equal(columns_of(rows), cases[i].columns);
        weir_rows_end(rows);
    }
    weir_recording_close(recording);
}

TEST_CASE(rows_after_their_types_are_found_begin_with_the_first)
{
    weir_recording *recording = open_reader(record_four_laps());
    const weir_row *row;
    weir_rows *rows = begin_rows(recording, NULL, "SELECT num_tasks || '' AS n FROM tasks ORDER BY timestamp");
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_OK);
        assert_int_equal(weir_row_int(row, 0), i);
    }
    assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_EOF);
    weir_rows_end(rows);
    weir_recording_close(recording);
}

/* The types and the rows are of one state of the database. */
TEST_CASE(what_is_written_after_rows_have_begun_is_not_among_them)
{
    const char *path = record_four_laps();
    weir_recording *recording = open_reader(path);
    const weir_row *row;
    int count = 0;
    weir_rows *rows = begin_rows(recording, NULL, "SELECT name FROM tasks");
    execute(path, "DELETE FROM task_stats");
    while (weir_rows_next(rows, &row, NULL) == WEIR_OK)
        count++;
    assert_int_equal(count, 4);
    weir_rows_end(rows);
    rows = begin_rows(recording, NULL, "SELECT name FROM tasks");
    assert_int_equal(weir_rows_next(rows, &row, NULL), WEIR_EOF);
    weir_rows_end(rows);
    weir_recording_close(recording);
}

TEST_CASE(every_table_of_rows_can_be_read)
{
    weir_recording *recording = open_reader(record_four_laps());
    size_t count = 0;
    for (const char *name; (name = weir_recording_table(count)); count++) {
        char sql[100];
        const weir_row *row;
        snprintf(sql, sizeof sql, "SELECT * FROM %s", name);
        weir_rows *rows = begin_rows(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, sql);
        int status = weir_rows_next(rows, &row, NULL);
        assert_true(status == WEIR_OK || status == WEIR_EOF);
        assert_null(strstr(columns_of(rows), "NULL")); /* an expression without a name */
        weir_rows_end(rows);
    }
    assert_int_equal(count, 15);
    assert_null(weir_recording_table(SIZE_MAX));
    weir_recording_close(recording);
}

TEST_CASE(a_statement_that_is_wrong_gives_no_rows)
{
    weir_recording *recording = open_reader(record_four_laps());
    weir_rows *rows = NULL;
    weir_error error = { 0 };
    assert_true(weir_rows_begin(recording, NULL, "SELECT nothing FROM tasks", NULL, &rows, &error) < 0);
    assert_null(rows);
    assert_non_null(strstr(error.message, "nothing"));
    assert_int_equal(weir_rows_begin(recording, &(weir_filter){ .run_id = 99 }, "SELECT 1", NULL, &rows, &error),
                     WEIR_ENOTFOUND);
    weir_recording_close(recording);
}

TEST_CASE(a_second_statement_is_refused_instead_of_left_out)
{
    static const char *const several[] = { "SELECT 1; SELECT 2", "SELECT 1;;SELECT", "SELECT 1; no SQL" };
    static const char *const one[] = { "SELECT 1", "SELECT 1;", "SELECT 1; -- SELECT 2\n", "SELECT 1 ;; /* 2 */ " };
    weir_recording *recording = open_reader(record_four_laps());
    weir_rows *rows = NULL;
    weir_error error = { 0 };
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        assert_int_equal(weir_rows_begin(recording, NULL, several[i], NULL, &rows, &error), WEIR_EINVAL);
        assert_null(rows);
        assert_non_null(strstr(error.message, "more than one statement"));
    }
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) {
        if (weir_rows_begin(recording, NULL, one[i], NULL, &rows, &error) != WEIR_OK)
            fail_msg("%s: %s", one[i], error.message);
        weir_rows_end(rows);
    }
    weir_recording_close(recording);
}

/* Merged runs are numbered in the order of merging. */
TEST_CASE(the_last_value_of_a_counter_is_that_of_the_latest_lap)
{
    weir_recording *recording;
    weir_totals totals;
    const char *path = record_steps_with_phases();
    execute(path, "UPDATE counter_stats SET id = 100 - id");
    assert_int_equal(weir_recording_open(path, &recording, NULL), WEIR_OK);
    assert_int_equal(weir_totals_read(recording, NULL, NULL, &totals, NULL), WEIR_OK);
    assert_true(total_value(&totals.of[WEIR_SUBJECT_COUNTER].all[0], "last_value") == 7);
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

int main(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
