/* The table of metrics: each row is stored, read, added up and shown, without any other code for it. */
#include "tests/recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/query.h>
#include <weir/span.h>
#include <weir/verdict.h>

/* Sets every metric of a subject to a different value; `scale` is 1 for the first lap. */
static void fill(weir_subject subject, void *metrics, int64_t scale)
{
    const weir_metric_table *table = weir_subject_metrics(subject);
    weir_metrics_clear(table, metrics);
    for (size_t i = 0; i < table->num_metrics; i++) {
        void *at = (char *)metrics + table->metrics[i].offset;
        int64_t value = (int64_t)(i + 1) * 1000000 * scale;
        switch (table->metrics[i].kind) {
        case WEIR_METRIC_COUNT: *(uint64_t *)at = (uint64_t)value; break;
        case WEIR_METRIC_LEVEL:
        case WEIR_METRIC_LAST:
        case WEIR_METRIC_LOWEST:
        case WEIR_METRIC_HIGHEST:
        case WEIR_METRIC_GROWTH: *(double *)at = (double)value; break;
        case WEIR_METRIC_HISTOGRAM: break;
        default: *(int64_t *)at = value; break;
        }
    }
}

static const weir_lap first_lap = {
    .end_unix_ns = NS(1010), .elapsed_ns = NS(10), .suspended_ns = NS(2), .num_joined = 3, .position.phase = ""
};
static const weir_lap second_lap = {
    .number = 1, .end_unix_ns = NS(1020), .elapsed_ns = NS(10), .num_joined = 1, .position.phase = ""
};

static void observe(weir_observer observer, const weir_lap *lap, int64_t scale)
{
    weir_subject_lap stage = { .subject = WEIR_SUBJECT_STAGE, .lap = lap, .name = "0:1:decode", .kind = "stage" };
    weir_subject_lap source = { .subject = WEIR_SUBJECT_FLOW, .lap = lap, .name = "0:0:src", .kind = "source" };
    weir_subject_lap queue = {
        .subject = WEIR_SUBJECT_QUEUE, .kind = "queue", .lap = lap, .name = "0:1:decode_queue", .capacity = 4
    };
    weir_subject_lap pool = {
        .subject = WEIR_SUBJECT_POOL, .kind = "pool", .lap = lap, .name = "0:pool", .capacity = 2
    };
    fill(WEIR_SUBJECT_STAGE, &stage.metrics.task, scale);
    fill(WEIR_SUBJECT_FLOW, &source.metrics.task, scale);
    fill(WEIR_SUBJECT_QUEUE, &queue.metrics.queue, scale);
    fill(WEIR_SUBJECT_POOL, &pool.metrics.pool, scale);
    weir_subject_lap process = {
        .subject = WEIR_SUBJECT_PROCESS, .kind = "process", .lap = lap, .name = "0:process", .capacity = 2
    };
    weir_subject_lap machine = {
        .subject = WEIR_SUBJECT_MACHINE, .kind = "machine", .lap = lap, .name = "0:machine"
    };
    fill(WEIR_SUBJECT_PROCESS, &process.metrics.process, scale);
    fill(WEIR_SUBJECT_MACHINE, &machine.metrics.machine, scale);
    weir_subject_lap span = { .subject = WEIR_SUBJECT_SPAN, .lap = lap, .name = "train/forward", .kind = "frame" };
    weir_subject_lap counter = { .subject = WEIR_SUBJECT_COUNTER, .kind = "level", .lap = lap, .name = "train/loss" };
    fill(WEIR_SUBJECT_SPAN, &span.metrics.span, scale);
    fill(WEIR_SUBJECT_COUNTER, &counter.metrics.counter, scale);
    observer.lap(observer.self, &source);
    observer.lap(observer.self, &stage);
    observer.lap(observer.self, &queue);
    observer.lap(observer.self, &pool);
    observer.lap(observer.self, &process);
    observer.lap(observer.self, &machine);
    observer.lap(observer.self, &span);
    observer.lap(observer.self, &counter);
}

static const char *record(void)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "n", 0, 1000);
    observe(weir_sqlite_observer(writer), &first_lap, 1);
    observe(weir_sqlite_observer(writer), &second_lap, 2);
    recording_end(writer, 1020);
    return path;
}

static void assert_near(const char *name, double found, double wanted)
{
    if (!(fabs(found - wanted) <= 1e-6 * fabs(wanted) + 1e-9))
        fail_msg("%s is %g, not %g", name, found, wanted);
}

TEST_CASE(every_metric_is_stored_and_read_back)
{
    weir_recording *recording = open_reader(record());
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_metric_table *table = weir_subject_metrics(subject);
        const weir_record *found;
        weir_metrics wanted;
        weir_query *query;
        fill(subject, &wanted, 1);
        assert_int_equal(weir_query_begin(recording, weir_record_kind_of(subject), NULL, &query, NULL), WEIR_OK);
        assert_int_equal(weir_query_next(query, &found, NULL), WEIR_OK);
        assert_int_equal(found->lap.subject, subject);
        assert_int_equal(found->lap.suspended_ns, NS(2));
        assert_int_equal(found->lap.num_joined, 3);
        for (size_t i = 0; i < table->num_metrics; i++)
            if (table->metrics[i].kind != WEIR_METRIC_HISTOGRAM)
                assert_near(table->metrics[i].name,
                            weir_measure_of(subject, table->metrics[i].name, &found->lap.metrics, 1),
                            weir_measure_of(subject, table->metrics[i].name, &wanted, 1));
        weir_query_end(query);
    }
    weir_recording_close(recording);
}

TEST_CASE(every_metric_is_added_up_by_its_kind)
{
    weir_recording *recording = open_reader(record());
    weir_totals totals;
    assert_int_equal(weir_totals_read(recording, NULL, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, NULL),
                     WEIR_OK);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_metric_table *table = weir_subject_metrics(subject);
        weir_metrics sum, second;
        fill(subject, &sum, 1);
        fill(subject, &second, 2);
        weir_metrics_add(table, &sum, &second);
        assert_int_equal(totals.of[subject].count, 1);
        for (size_t i = 0; i < table->num_metrics; i++)
            if (table->metrics[i].kind != WEIR_METRIC_HISTOGRAM)
                assert_near(table->metrics[i].name, total_value(&totals.of[subject].all[0], table->metrics[i].name),
                            weir_measure_of(subject, table->metrics[i].name, &sum, 1));
    }
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

static void observe_total(weir_observer observer, double at, double elapsed, double known, double increase)
{
    weir_lap lap = { .end_unix_ns = NS(at), .elapsed_ns = NS(elapsed), .num_joined = 1, .position.phase = "" };
    weir_subject_lap total = { .subject = WEIR_SUBJECT_COUNTER,
                               .kind = "total",
                               .lap = &lap,
                               .name = WEIR_FRAMES_CATEGORY "/" WEIR_FRAMES_NAME };
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), &total.metrics);
    total.metrics.counter.value_ns = NAN;
    total.metrics.counter.known_ns = NS(known);
    total.metrics.counter.increase = increase;
    observer.lap(observer.self, &total);
}

static double recorded_frames_per_s(const char *path)
{
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    assert_int_equal(weir_totals_read(recording, &(weir_filter){ .run_id = WEIR_ALL_RUNS },
                                      &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, NULL),
                     WEIR_OK);
    double per_s = weir_totals_frames_per_s(&totals);
    if (totals.of[WEIR_SUBJECT_COUNTER].count) {
        assert_string_equal(totals.of[WEIR_SUBJECT_COUNTER].all[0].kind, "total");
        assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_COUNTER].all[0], "ave_value")));
    }
    weir_totals_free(&totals);
    weir_recording_close(recording);
    return per_s;
}

/* 600 frames in the 12 s since the counter began, in the middle of a lap of 10 s, whatever the laps are. */
TEST_CASE(frames_per_second_are_over_the_life_of_their_total)
{
    static const double laps[][3][2] = { { { 10, 7 }, { 5, 5 } }, { { 10, 7 }, { 2, 2 }, { 3, 3 } }, { { 15, 12 } } };
    for (size_t i = 0; i < sizeof laps / sizeof laps[0]; i++) {
        double at = 1000;
        unlink(in_folder("a.db"));
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "n", 0, 1000);
        for (size_t j = 0; j < 3 && laps[i][j][0] > 0; j++) {
            at += laps[i][j][0];
            observe_total(weir_sqlite_observer(writer), at, laps[i][j][0], laps[i][j][1], 50 * laps[i][j][1]);
        }
        recording_end(writer, 1015);
        assert_near("frames per s", recorded_frames_per_s(in_folder("a.db")), 50);
    }
}

TEST_CASE(frames_per_second_of_ranks_add_up)
{
    for (int32_t rank = 0; rank < 3; rank++) {
        weir_sqlite_writer *writer = recording_begin(in_folder("a.db"), "n", rank, 1000);
        observe_total(weir_sqlite_observer(writer), 1010, 10, 10, 1000);
        recording_end(writer, 1010);
    }
    assert_near("frames per s", recorded_frames_per_s(in_folder("a.db")), 300);
    weir_totals none = { 0 };
    assert_true(isnan(weir_totals_frames_per_s(&none)));
}

TEST_CASE(every_measure_has_a_unit_and_a_meaning)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        size_t count;
        const weir_measure *measures = weir_subject_measures(subject, &count);
        assert_true(count > 5);
        for (size_t i = 0; i < count; i++) {
            assert_non_null(measures[i].unit);
            assert_true(measures[i].help && *measures[i].help);
            assert_ptr_equal(weir_measure_find(subject, measures[i].name), &measures[i]); /* no name comes twice */
        }
    }
}

TEST_CASE(what_spdl_would_not_have_stays_out_of_its_tables)
{
    const char *path = record();
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats WHERE name <> '0:1:decode'"), 0);
    assert_int_equal(query_int(path, "SELECT count(*) FROM flow_stats WHERE kind = 'source'"), 2);
    assert_int_equal(query_int(path, "SELECT count(*) FROM pool_stats WHERE num_threads = 2"), 2);
}

/* Not 0: a container without block devices reads no bytes from a disk that is not there. */
TEST_CASE(what_the_system_does_not_tell_is_null)
{
    const char *path = in_folder("a.db");
    weir_sqlite_writer *writer = recording_begin(path, "n", 0, 1000);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_subject_lap process = { .subject = WEIR_SUBJECT_PROCESS,
                                 .kind = "process",
                                 .lap = &first_lap,
                                 .name = "0:process",
                                 .metrics.process = { .cpu_ns = 5, .read_bytes = -1 } };
    weir_subject_lap machine = { .subject = WEIR_SUBJECT_MACHINE,
                                 .kind = "machine",
                                 .lap = &first_lap,
                                 .name = "0:machine",
                                 .metrics.machine = { .stolen_ns = -1 } };
    process.metrics.process.resident_bytes = -1; /* a largest value, not a sum */
    for (int i = 0; i < 2; i++) {
        observer.lap(observer.self, &process);
        observer.lap(observer.self, &machine);
    }
    recording_end(writer, 1020);
    assert_int_equal(query_int(path, "SELECT count(*) FROM process_stats WHERE read_bytes IS NULL AND "
                                     "resident_bytes IS NULL AND num_major_faults = 0"),
                     2);
    assert_int_equal(query_int(path, "SELECT count(*) FROM machine_stats WHERE stolen_time IS NULL"), 2);
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    assert_int_equal(weir_totals_read(recording, NULL, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, NULL),
                     WEIR_OK);
    assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_PROCESS].all[0], "read_bytes")));
    assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_PROCESS].all[0], "resident_bytes")));
    assert_true(isnan(total_value(&totals.of[WEIR_SUBJECT_MACHINE].all[0], "stolen_cpus")));
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

TEST_CASE(a_metric_that_a_database_lacks_is_unknown_until_a_writer_adds_it)
{
    const char *path = record();
    execute(path, "DROP VIEW stage_laps; DROP VIEW stage_runs; ALTER TABLE task_stats DROP COLUMN wait_turn_time; "
                  "ALTER TABLE task_stats DROP COLUMN min_time;"
                  "ALTER TABLE pool_stats DROP COLUMN run_delay_time");
    for (int round = 0; round < 2; round++) {
        weir_recording *recording = open_reader(path);
        const weir_record *found;
        weir_query *query;
        assert_int_equal(weir_query_begin(recording, WEIR_RECORD_TASK, NULL, &query, NULL), WEIR_OK);
        assert_int_equal(weir_query_next(query, &found, NULL), WEIR_OK);
        assert_true(isnan(lap_value(&found->lap, "min_time")));
        assert_near("busy_time", lap_value(&found->lap, "busy_time"), 0.008);
        weir_query_end(query);
        assert_int_equal(weir_query_begin(recording, WEIR_RECORD_POOL, NULL, &query, NULL), WEIR_OK);
        assert_int_equal(weir_query_next(query, &found, NULL), WEIR_OK);
        assert_true(isnan(lap_value(&found->lap, "run_delay_time")));
        weir_query_end(query);
        weir_recording_close(recording);
        close_writer(open_writer(path, NULL));
    }
    assert_int_equal(query_int(path, "SELECT count(*) FROM pragma_table_info('task_stats') WHERE name IN "
                                     "('min_time', 'wait_turn_time')"),
                     2);
}

/* -- runs */

TEST_CASE(a_run_is_running_killed_or_ended)
{
    char here[256] = "";
    assert_int_equal(gethostname(here, sizeof here - 1), 0);
    weir_run_record run = { .node_id = here, .pid = getpid() };
    assert_int_equal(weir_run_state_of(&run), WEIR_RUN_RUNNING);
    run.pid = 0x3fffffff; /* above what Linux gives */
    assert_int_equal(weir_run_state_of(&run), WEIR_RUN_KILLED);
    run.node_id = "elsewhere";
    assert_int_equal(weir_run_state_of(&run), WEIR_RUN_OPEN);
    run.has_ended = true;
    assert_int_equal(weir_run_state_of(&run), WEIR_RUN_FINISHED);
    run.status = WEIR_ESTOPPED;
    assert_int_equal(weir_run_state_of(&run), WEIR_RUN_STOPPED);
    run.status = WEIR_EFAILED;
    assert_string_equal(weir_run_state_name(weir_run_state_of(&run)), "failed");
}

/* -- the sink */

static weir_total total_of(weir_subject subject, const char *name, const char *kind, int64_t busy, int64_t in,
                           int64_t thread, int64_t out)
{
    weir_total total = { .key.name = name, .subject = subject, .kind = kind, .elapsed_ns = NS(10) };
    weir_metrics_clear(weir_subject_metrics(subject), &total.metrics);
    total.metrics.task.busy_ns = busy * WEIR_SECOND;
    total.metrics.task.wait_in_ns = in * WEIR_SECOND;
    total.metrics.task.wait_thread_ns = thread * WEIR_SECOND;
    total.metrics.task.wait_out_ns = out * WEIR_SECOND;
    return total;
}

/* The queues behind a route come before the sink's, whichever name is last. */
TEST_CASE(the_sinks_queue_is_found_by_the_sink)
{
    weir_total sink = total_of(WEIR_SUBJECT_FLOW, "0:2:sink", "sink", 0, 1, 0, 0);
    weir_total queues[] = { total_of(WEIR_SUBJECT_QUEUE, "0:2:sink_queue", "queue", 0, 0, 0, 0),
                            total_of(WEIR_SUBJECT_QUEUE, "0:1:route.1_queue", "queue", 0, 0, 0, 0) };
    weir_totals totals = { .of[WEIR_SUBJECT_QUEUE] = { queues, 2 }, .of[WEIR_SUBJECT_FLOW] = { &sink, 1 } };
    assert_string_equal(weir_totals_sink_queue(&totals)->key.name, "0:2:sink_queue");
}

int main(void)
{
    weir_log_set_level(WEIR_LOG_ERROR);
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
