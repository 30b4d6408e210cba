/* OpenMetrics text, live: what the file holds, when it changes, and that promtool takes it. */
#include "tests/stats_fixture.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/openmetrics.h>

static const weir_limit_rules *limit_rules; /* of the next file */

static weir_openmetrics_file *open_metrics(const char *path)
{
    weir_openmetrics_file *file;
    weir_error error = { 0 };
    weir_openmetrics_options options = {
        .node_id = "a \"node\"\n\\ \xff", .rank = 3, .command = "program --option", .limit_rules = limit_rules
    };
    if (weir_openmetrics_open(path, &options, &file, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return file;
}

static void close_metrics(weir_openmetrics_file *file)
{
    weir_error error = { 0 };
    if (weir_openmetrics_close(file, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

#define NODE   "{node=\"a \\\"node\\\"\\n\\\\ \\\\xff\",rank=\"3\""
#define DECODE NODE ",stage=\"0:1:decode[10]\",kind=\"stage\""

static bool has_line(const char *path, const char *line)
{
    char *text = read_file(path, NULL);
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s\n", line);
    const char *at = strstr(text, wanted);
    bool found = at && (at == text || at[-1] == '\n');
    free(text);
    return found;
}

static void assert_line(const char *path, const char *line)
{
    if (!has_line(path, line)) {
        char *text = read_file(path, NULL);
        fail_msg("no line %s in\n%s", line, text);
    }
}

static void observe_event(weir_observer observer, const char *name)
{
    weir_event event = { .unix_ns = 1001 * WEIR_SECOND, .name = name, .category = "user", .detail = "" };
    observer.event(observer.self, &event);
}

/* Whether promtool takes the file without a word; its words go to this test's output. Without promtool nothing is checked. */
static void assert_promtool_accepts(const char *path)
{
    if (system("promtool --version >/dev/null 2>&1") != 0) {
        print_message("promtool is not installed (Debian: prometheus): not checked by it\n");
        return;
    }
    char command[1024];
    snprintf(command, sizeof command, "promtool check metrics <'%s'", path);
    int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_CASE(sums_of_all_laps_are_told)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    observe_lap(observer, 0, 100);
    observe_lap(observer, 1, 20);

    assert_line(path, "weir_run_threads" NODE "} 10");
    assert_line(path, "weir_run_start_timestamp_seconds" NODE "} 1000");
    assert_line(path, "weir_stage_time_seconds_count" DECODE "} 90");
    assert_line(path, "weir_stage_time_seconds_sum" DECODE "} 9");
    assert_line(path, "weir_stage_failures_total" DECODE "} 30");
    assert_line(path, "weir_stage_failed_seconds_total" DECODE "} 0.3");
    assert_line(path, "weir_stage_max_seconds" DECODE "} 0.1");
    assert_line(path, "weir_stage_max_held_bytes" DECODE "} 5000000");
    assert_line(path, "weir_stage_busy_seconds_total" DECODE "} 20");
    assert_line(path, "weir_stage_wait_out_seconds_total" DECODE "} 4");
    assert_line(path, "weir_stage_cpu_seconds_total" DECODE "} 16");
    assert_line(path, "weir_queue_get_time_seconds_count" NODE ",queue=\"0:0:src_queue\"} 120");
    assert_line(path, "weir_queue_get_time_seconds_sum" NODE ",queue=\"0:0:src_queue\"} 2.4");
    assert_false(has_line(path, "weir_queue_latency_seconds_count" NODE ",queue=\"0:0:src_queue\"} 120")); /* none */
    assert_line(path, "weir_queue_occupied_seconds_total" NODE ",queue=\"0:2:sink_queue\"} 2");
    assert_line(path, "weir_queue_depth_seconds_total" NODE ",queue=\"0:2:sink_queue\"} 6");
    assert_line(path, "weir_queue_max_bytes" NODE ",queue=\"0:2:sink_queue\"} 2000000");
    assert_line(path, "# EOF");
    observe_end(observer, WEIR_OK);
    close_metrics(file);
}

/* All successes took 100 ms, which is between 2^26 and 2^27 ns. */
TEST_CASE(buckets_count_exactly)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    observe_lap(observer, 0, 100);
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.000001023\"} 0");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.067108863\"} 0");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.134217727\"} 75");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"1099.511627775\"} 75");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"+Inf\"} 75");
    close_metrics(file);
}

/* Each bucket counts all that are below, too; 2^20 ns belongs to the one above its edge. */
TEST_CASE(buckets_are_cumulative)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    weir_histogram *times = calloc(1, sizeof *times);
    assert_non_null(times);
    static const int64_t durations_ns[] = {
        0, 1023, 1024, 900000, 1000000, (1 << 20) - 1, 1 << 20, 5000 * WEIR_SECOND
    };
    for (size_t i = 0; i < sizeof durations_ns / sizeof durations_ns[0]; i++)
        weir_histogram_record(times, durations_ns[i]);
    weir_subject_lap lap = { .subject = WEIR_SUBJECT_STAGE,
                             .kind = "stage",
                             .name = "0:1:decode[10]",
                             .lap = &(weir_lap){ .elapsed_ns = WEIR_SECOND },
                             .metrics.task = { .num_tasks = 8, .run_times = times } };
    observe_start(observer);
    observer.lap(observer.self, &lap);
    observe_end(observer, WEIR_OK);
    free(times);

    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.000001023\"} 2");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.000002047\"} 3");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.000524287\"} 3");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.001048575\"} 6");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"0.002097151\"} 7");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"1099.511627775\"} 7");
    assert_line(path, "weir_stage_time_seconds_bucket" DECODE ",le=\"+Inf\"} 8");
    close_metrics(file);
}

TEST_CASE(file_changes_with_each_whole_lap)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    assert_line(path, "# EOF");
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    assert_line(path, "weir_run_threads" NODE "} 10");
    assert_false(has_line(path, "weir_stage_time_seconds_count" DECODE "} 0"));
    observe_lap(observer, 0, 0);
    assert_line(path, "weir_stage_time_seconds_count" DECODE "} 0");
    assert_line(path, "weir_queue_get_time_seconds_count" NODE ",queue=\"0:0:src_queue\"} 0");
    /* the latency of a queue that is not the sink's is not known, and would go away with its first item */
    assert_false(has_line(path, "weir_queue_latency_seconds_count" NODE ",queue=\"0:0:src_queue\"} 0"));
    assert_false(has_line(path, "weir_run_status" NODE "} -4"));
    observe_end(observer, WEIR_ESTOPPED);
    assert_line(path, "weir_run_status" NODE "} -4");
    assert_line(path, "weir_run_end_timestamp_seconds" NODE "} 1100");

    observe_start(observer); /* the next pipeline */
    assert_false(has_line(path, "weir_stage_time_seconds_count" DECODE "} 0"));
    assert_false(has_line(path, "weir_run_status" NODE "} -4"));
    close_metrics(file);
}

/* A recording that has opened the file goes on reading the old one, whole. */
TEST_CASE(readers_never_see_half_a_file)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    FILE *recording = fopen(path, "r");
    assert_non_null(recording);
    observe_lap(observer, 0, 100);
    char line[512], last[512] = "";
    while (fgets(line, sizeof line, recording)) {
        memcpy(last, line, sizeof last);
        assert_null(strstr(line, "decode"));
    }
    assert_string_equal(last, "# EOF\n");
    fclose(recording);
    close_metrics(file);
    char others[1024];
    snprintf(others, sizeof others, "ls -A \"$(dirname '%s')\" | grep '[.]tmp$' >&2", path);
    assert_int_not_equal(system(others), 0);
}

static void observe_counter(weir_observer observer, const char *name, const char *kind, weir_counter_metrics counter)
{
    const weir_lap lap = { .end_unix_ns = 1010 * WEIR_SECOND, .elapsed_ns = 10 * WEIR_SECOND, .num_joined = 1 };
    observer.lap(
        observer.self,
        &(weir_subject_lap){
            .subject = WEIR_SUBJECT_COUNTER, .kind = kind, .name = name, .lap = &lap, .metrics.counter = counter });
}

/* Names of counters are labels, so that no two of them become one name. Held constant: one lap. */
TEST_CASE(levels_are_gauges_and_totals_counters)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    const weir_counter_metrics total = { .num_updates = 3,
                                         .last = 300,
                                         .min = NAN,
                                         .max = NAN,
                                         .value_ns = NAN,
                                         .known_ns = 9 * WEIR_SECOND,
                                         .increase = 250 };
    const weir_counter_metrics level = { .num_updates = 2,
                                         .last = -1.5,
                                         .min = -2,
                                         .max = 4,
                                         .value_ns = -1e10,
                                         .known_ns = 10 * WEIR_SECOND,
                                         .increase = NAN };
    observe_counter(observer, "sent/bytes/ms", "total", total);
    observe_counter(observer, "sent.bytes ms", "total", total);
    observe_counter(observer, "train/\"loss\" \\ 损失", "level", level);
    observe_end(observer, WEIR_OK);
    assert_line(path, "weir_amount_total" NODE ",counter=\"sent/bytes/ms\"} 250");
    assert_line(path, "weir_amount_total" NODE ",counter=\"sent.bytes ms\"} 250");
    assert_line(path, "weir_amount_known_seconds_total" NODE ",counter=\"sent/bytes/ms\"} 9");
    assert_line(path, "weir_level_last_value" NODE ",counter=\"train/\\\"loss\\\" \\\\ 损失\"} -1.5");
    assert_line(path, "weir_level_value_seconds" NODE ",counter=\"train/\\\"loss\\\" \\\\ 损失\"} -10");
    char *text = read_file(path, NULL);
    assert_null(strstr(text, "weir_counter"));
    assert_null(strstr(text, "weir_level_last_value" NODE ",counter=\"sent"));
    assert_null(strstr(text, "weir_amount_last_value")); /* of what adds up only the sum has a meaning */
    assert_null(strstr(text, "weir_level_total"));
    assert_null(strstr(text, "nan"));
    free(text);
    assert_promtool_accepts(path);
    close_metrics(file);
}

/* Rules that name the number of tasks and of stages, so that each lap has another limit. */
static int judge_by_number(const weir_totals *totals, const weir_records *stages, weir_named_limit *limit,
                           weir_error *error)
{
    (void)error;
    const weir_total_list *tasks = &totals->of[WEIR_SUBJECT_STAGE];
    if (tasks->count != 1)
        return WEIR_ENOMEM;
    *limit = (weir_named_limit){ .kind = tasks->all[0].metrics.task.num_tasks > 50 ? "many" : "few", .number = 1 };
    snprintf(limit->stage, sizeof limit->stage, "%zu \"%s\"", stages->count, stages->all[1]->stage.inputs);
    return WEIR_OK;
}

static const char *no_word(int number)
{
    (void)number;
    return "";
}

static int read_nothing(weir_recording *recording, const weir_filter *filter, weir_named_limit *limit,
                        weir_error *error)
{
    (void)recording, (void)filter, (void)limit;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "not in this test");
}

static const weir_limit_rules numbers = { .word = no_word, .judge = judge_by_number, .read = read_nothing };

static void observe_frames(weir_observer observer, int lap, double increase)
{
    const weir_lap of = { .end_unix_ns = (1000 + 2 * (lap + 1)) * WEIR_SECOND, .elapsed_ns = 2 * WEIR_SECOND };
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_COUNTER,
                                                     .kind = "total",
                                                     .name = "weir/frames",
                                                     .lap = &of,
                                                     .metrics.counter = { .num_updates = 1,
                                                                          .last = increase,
                                                                          .known_ns = 2 * WEIR_SECOND,
                                                                          .increase = increase } });
}

#define LIMIT(kind) "weir_limit" NODE ",kind=\"" kind "\",stage=\"3 \\\"0:0:src_queue\\\"\"} 1"

/* Held constant: laps of two seconds, without phases. */
TEST_CASE(rates_and_the_limit_are_of_the_latest_lap_until_the_run_ends)
{
    const char *path = in_folder("weir.prom");
    limit_rules = &numbers;
    weir_openmetrics_file *file = open_metrics(path);
    limit_rules = NULL;
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    char *text = read_file(path, NULL);
    assert_null(strstr(text, "weir_limit"));
    assert_null(strstr(text, "weir_items_per_second"));
    free(text);
    observe_frames(observer, 0, 90);
    observe_lap(observer, 0, 100);
    assert_line(path, "# TYPE weir_limit gauge");
    assert_line(path, LIMIT("many"));
    assert_line(path, "weir_items_per_second" NODE "} 37.5");
    assert_line(path, "weir_frames_per_second" NODE "} 45");
    observe_lap(observer, 1, 20);
    assert_line(path, LIMIT("few"));
    assert_false(has_line(path, LIMIT("many")));
    assert_line(path, "weir_items_per_second" NODE "} 7.5");
    text = read_file(path, NULL);
    assert_null(strstr(text, "weir_frames_per_second" NODE)); /* not counted in this lap */
    free(text);
    assert_promtool_accepts(path);
    observe_end(observer, WEIR_OK);
    text = read_file(path, NULL);
    assert_null(strstr(text, "weir_limit"));
    assert_null(strstr(text, "weir_items_per_second"));
    free(text);
    close_metrics(file);
}

TEST_CASE(without_rules_there_are_rates_but_no_limit)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    observe_lap(observer, 0, 100);
    assert_line(path, "weir_items_per_second" NODE "} 37.5");
    char *text = read_file(path, NULL);
    assert_null(strstr(text, "weir_limit"));
    free(text);
    close_metrics(file);
}

/* "s" at the end of a metric's unit follows from its name: seconds are the base unit of time. */
TEST_CASE(every_time_is_named_in_seconds)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    observe_start(weir_openmetrics_observer(file));
    char *text = read_file(path, NULL), name[100];
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_metric_table *table = weir_subject_metrics(subject);
        for (size_t i = 0; i < table->num_metrics; i++) {
            const weir_metric *metric = &table->metrics[i];
            if (strcmp(metric->unit, "s") != 0 || metric->kind == WEIR_METRIC_HISTOGRAM)
                continue;
            const char *help = strstr(text, metric->meaning);
            while (help && help > text && help[-1] != '\n')
                help--;
            assert_int_equal(sscanf(help, "# HELP %99s", name), 1);
            if (!strstr(name, "_seconds"))
                fail_msg("%s is in seconds: %s", metric->name, name);
        }
    }
    free(text);
    close_metrics(file);
}

TEST_CASE(promtool_accepts_it)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    assert_promtool_accepts(path);
    observe_start(observer);
    assert_promtool_accepts(path);
    observe_lap(observer, 0, 100);
    observe_event(observer, "it's \"quoted\",\nin two lines \\ and \xfe");
    observe_event(observer, "it's \"quoted\",\nin two lines \\ and \xff");
    observe_lap(observer, 1, 7);
    observe_end(observer, WEIR_OK);
    assert_promtool_accepts(path);
    assert_line(path, "weir_events_total" NODE ",event=\"it's \\\"quoted\\\",\\nin two lines \\\\ and \\\\xfe\","
                      "category=\"user\"} 1");
    close_metrics(file);
}

TEST_CASE(a_file_has_one_pipeline_at_a_time)
{
    weir_openmetrics_file *file = open_metrics(in_folder("weir.prom"));
    weir_observer observer = weir_openmetrics_observer(file);
    weir_error error = { 0 };
    assert_int_equal(observer.attach(observer.self, &error), WEIR_OK);
    assert_int_equal(observer.attach(observer.self, &error), WEIR_EBUSY);
    assert_non_null(strstr(error.message, "weir.prom"));
    observer.detach(observer.self);
    assert_int_equal(observer.attach(observer.self, &error), WEIR_OK);
    observer.detach(observer.self);
    close_metrics(file);
}

TEST_CASE(every_stored_metric_is_told_with_its_meaning)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    observe_start(weir_openmetrics_observer(file));
    char *text = read_file(path, NULL);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        const weir_metric_table *table = weir_subject_metrics(subject);
        for (size_t i = 0; i < table->num_metrics; i++) {
            char stored[64];
            if (!strstr(text, table->metrics[i].meaning))
                fail_msg("no metric for %s in\n%s", table->metrics[i].name, text);
            snprintf(stored, sizeof stored, "_%s ", table->metrics[i].name);
            if (table->metrics[i].kind == WEIR_METRIC_HISTOGRAM && strstr(text, stored))
                fail_msg("the stored form of %s has a family", table->metrics[i].name);
        }
    }
    free(text);
    close_metrics(file);
}

TEST_CASE(events_without_number_are_added_up)
{
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    for (int i = 0; i < 700; i++) {
        char name[16];
        snprintf(name, sizeof name, "event %d", i);
        observe_event(observer, name);
    }
    observe_end(observer, WEIR_OK);
    assert_line(path, "weir_events_total" NODE ",event=\"event 499\",category=\"user\"} 1");
    assert_line(path, "weir_events_total" NODE ",event=\"(others)\",category=\"(others)\"} 200");
    close_metrics(file);
}

TEST_CASE(numbers_have_a_point_in_any_locale)
{
    if (!test_set_comma_locale()) {
        print_message("no locale with a decimal comma can be made\n");
        skip();
    }
    const char *path = in_folder("weir.prom");
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    observe_lap(observer, 0, 100);
    setlocale(LC_ALL, "C");
    assert_line(path, "weir_stage_failed_seconds_total" DECODE "} 0.25");
    close_metrics(file);
}

TEST_CASE(missing_folder_is_told_at_once)
{
    weir_openmetrics_file *file;
    weir_error error = { 0 };
    const char *path = in_folder("missing/weir.prom");
    assert_int_equal(weir_openmetrics_open(path, NULL, &file, &error), WEIR_ENOTFOUND);
    assert_null(file);
    assert_int_equal(error.library_code, -ENOENT);
    assert_non_null(strstr(error.message, "missing/weir.prom"));
    assert_int_equal(weir_openmetrics_open("", NULL, &file, NULL), WEIR_EINVAL);
}

TEST_CASE(folder_that_goes_away_and_comes_back_is_survived)
{
    const char *folder = in_folder("gone"), *path = in_folder("gone/weir.prom");
    assert_int_equal(mkdir(folder, 0700), 0);
    weir_openmetrics_file *file = open_metrics(path);
    weir_observer observer = weir_openmetrics_observer(file);
    observe_start(observer);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    weir_log_set_level((weir_log_level)-1);
    observe_lap(observer, 0, 100);
    weir_log_set_level(WEIR_LOG_INFO);
    assert_int_equal(mkdir(folder, 0700), 0);
    observe_lap(observer, 1, 20);
    assert_line(path, "weir_stage_time_seconds_count" DECODE "} 90");

    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    weir_log_set_level((weir_log_level)-1);
    observe_end(observer, WEIR_OK);
    weir_log_set_level(WEIR_LOG_INFO);
    weir_error error = { 0 };
    assert_int_equal(weir_openmetrics_close(file, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "gone/weir.prom"));
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
