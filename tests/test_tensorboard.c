/* TensorBoard event files, live and from a database: their frames, their content, and TensorBoard can read them. */
#include "tests/stats_fixture.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/query.h>
#include <weir/tensorboard.h>

#include "tensorboard.pb-c.h"

#define AWKWARD "it's \"quoted\",\nin two lines <b> \\ \xff"

/* -- reading */

/* CRC-32C bit by bit, unlike the code under test. */
static uint32_t crc32c(const uint8_t *bytes, size_t size_bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size_bytes; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ UINT32_C(0x82f63b78) : crc >> 1;
    }
    return ~crc;
}

static uint64_t little_endian(const uint8_t *bytes, int size_bytes)
{
    uint64_t value = 0;
    for (int i = size_bytes - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static void assert_checksum(const uint8_t *bytes, size_t size_bytes, const uint8_t *stored)
{
    uint32_t crc = crc32c(bytes, size_bytes);
    uint32_t masked = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
    assert_int_equal(little_endian(stored, 4), masked);
}

enum { MAX_EVENTS = 1000 };

struct events {
    Weir__Tensorboard__Event *all[MAX_EVENTS];
    size_t count;
};

/* Every record of the file, whole and with the right checksums. */
static struct events read_events(const char *path)
{
    struct events events = { .count = 0 };
    size_t size, at = 0;
    char *file = read_file(path, &size);
    const uint8_t *bytes = (const uint8_t *)file;
    while (at < size) {
        assert_in_range(at + 16, 16, size);
        uint64_t length = little_endian(bytes + at, 8);
        assert_in_range(length, 1, size - at - 16);
        assert_checksum(bytes + at, 8, bytes + at + 8);
        assert_checksum(bytes + at + 12, length, bytes + at + 12 + length);
        assert_in_range(events.count, 0, MAX_EVENTS - 1);
        events.all[events.count] = weir__tensorboard__event__unpack(NULL, length, bytes + at + 12);
        assert_non_null(events.all[events.count++]);
        at += 16 + length;
    }
    free(file);
    return events;
}

static void free_events(struct events *events)
{
    for (size_t i = 0; i < events->count; i++)
        weir__tensorboard__event__free_unpacked(events->all[i], NULL);
}

/* The value of that name at that step, or NULL. */
static const Weir__Tensorboard__Summary__Value *find_value(const struct events *events, const char *tag, int64_t step)
{
    for (size_t i = 0; i < events->count; i++) {
        const Weir__Tensorboard__Event *event = events->all[i];
        if (event->what_case != WEIR__TENSORBOARD__EVENT__WHAT_SUMMARY || event->step != step)
            continue;
        for (size_t j = 0; j < event->summary->n_value; j++)
            if (strcmp(event->summary->value[j]->tag, tag) == 0)
                return event->summary->value[j];
    }
    return NULL;
}

static void assert_scalar(const struct events *events, const char *tag, int64_t step, double expected)
{
    const Weir__Tensorboard__Summary__Value *value = find_value(events, tag, step);
    if (!value)
        fail_msg("no %s at step %d", tag, (int)step);
    assert_int_equal(value->value_case, WEIR__TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE);
    if (fabs((double)value->simple_value - expected) > 1e-6 * fabs(expected))
        fail_msg("%s at step %d is %g, not %g", tag, (int)step, (double)value->simple_value, expected);
}

/* The only event file in a folder; valid until the fourth call after it. */
static const char *event_file_in(const char *folder)
{
    char name[512] = "";
    DIR *directory = opendir(in_folder(folder));
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        assert_non_null(strstr(entry->d_name, ".out.tfevents."));
        assert_string_equal(name, "");
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    assert_string_not_equal(name, "");
    return in_folder(name);
}

static struct events events_in(const char *folder)
{
    return read_events(event_file_in(folder));
}

/* -- writing */

static weir_tensorboard_log *open_log(const char *folder)
{
    weir_tensorboard_log *log;
    weir_error error = { 0 };
    weir_tensorboard_options options = { .node_id = "a/node \xff" };
    if (weir_tensorboard_open(in_folder(folder), &options, &log, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return log;
}

static void close_log(weir_tensorboard_log *log)
{
    weir_error error = { 0 };
    if (weir_tensorboard_close(log, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

/* Two laps. */
static void observe_run(weir_observer observer)
{
    observe_start(observer);
    observe_lap(observer, 0, 100);
    observe_lap(observer, 1, 0);
    observe_end(observer, WEIR_OK);
}

static void record_run(const char *name, int32_t rank)
{
    weir_sqlite_options options = { .node_id = "a/node \xff", .command = "program --option", .rank = rank };
    weir_sqlite_writer *writer = open_writer(in_folder(name), &options);
    observe_run(weir_sqlite_observer(writer));
    close_writer(writer);
}

static int export(const char *db, const weir_filter *filter, const char *folder, weir_error *error)
{
    weir_recording *recording;
    int status = weir_recording_open(in_folder(db), &recording, error);
    if (status != WEIR_OK)
        return status;
    status = weir_tensorboard_export(recording, filter, in_folder(folder), error);
    weir_recording_close(recording);
    return status;
}

static void assert_exports(const char *db, const weir_filter *filter, const char *folder)
{
    weir_error error = { 0 };
    if (export(db, filter, folder, &error) != WEIR_OK)
        fail_msg("%s", error.message);
}

/* What observe_run() comes to, whoever wrote it. */
static void assert_run(const struct events *events)
{
    assert_string_equal(events->all[0]->file_version, "brain.Event:2");
    assert_scalar(events, "0:1:decode[10]/num_tasks", 0, 100);
    assert_scalar(events, "0:1:decode[10]/tasks_per_s", 0, 50);
    assert_scalar(events, "0:1:decode[10]/num_failures", 0, 25);
    assert_scalar(events, "0:1:decode[10]/ave_time", 0, 0.1);
    assert_scalar(events, "0:1:decode[10]/max_time", 0, 0.1);
    assert_scalar(events, "0:1:decode[10]/busy_share", 0, 0.5);
    assert_scalar(events, "0:1:decode[10]/wait_out_share", 0, 0.1);
    assert_scalar(events, "0:1:decode[10]/cpus", 0, 4);
    assert_scalar(events, "0 overview/items_per_s", 0, 37.5);
    assert_scalar(events, "0 overview/items_per_s", 1, 0);
    assert_scalar(events, "0 overview/failures", 0, 25);
    assert_scalar(events, "0 overview/failures", 1, 0);
    assert_scalar(events, "0 overview/level of 0:2:sink_queue", 1, 0.75);
    assert_null(find_value(events, "0 overview/limit", 0)); /* nobody has rules */
    assert_scalar(events, "0:0:src_queue/occupancy_rate", 0, 0.5);
    assert_scalar(events, "0:0:src_queue/ave_get_time", 0, 0.02);
    assert_scalar(events, "0:2:sink_queue/ave_depth", 0, 1.5);
    assert_scalar(events, "0:2:sink_queue/max_bytes", 1, 2000000);
    assert_scalar(events, "0:1:decode[10]/num_tasks", 1, 0);
    assert_null(find_value(events, "0:1:decode[10]/ave_time", 1)); /* none, not 0 */
    assert_null(find_value(events, "0:1:decode[10]/num_tasks", 2));
}

TEST_CASE(live_log_holds_every_lap)
{
    struct stat info;
    mode_t mask = umask(0);
    weir_tensorboard_log *log = open_log("new/folder");
    umask(mask);
    observe_run(weir_tensorboard_observer(log));
    close_log(log);
    assert_int_equal(stat(event_file_in("new/folder"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666); /* the umask alone decides */
    struct events events = events_in("new/folder");
    assert_run(&events);
    free_events(&events);
}

TEST_CASE(export_writes_what_a_live_log_would_have)
{
    record_run("a.db", 3);
    assert_exports("a.db", NULL, "logs");
    assert_exports("a.db", NULL, "logs"); /* replaced, not doubled */
    struct events events = events_in("logs/run-1-rank-3");
    assert_run(&events);
    free_events(&events);
}

TEST_CASE(laps_can_be_read_as_soon_as_they_have_ended)
{
    weir_tensorboard_log *log = open_log("logs");
    weir_observer observer = weir_tensorboard_observer(log);
    observe_start(observer);
    for (int lap = 0; lap < 3; lap++) {
        observe_lap(observer, lap, 100);
        struct events events = events_in("logs");
        assert_scalar(&events, "0:2:sink_queue/num_items", lap, 75);
        free_events(&events);
    }
    close_log(log);
}

TEST_CASE(histogram_counts_and_bounds_every_time)
{
    weir_tensorboard_log *log = open_log("logs");
    weir_observer observer = weir_tensorboard_observer(log);
    observe_start(observer);
    weir_histogram *times = calloc(1, sizeof *times);
    assert_non_null(times);
    weir_histogram_record(times, 0);
    weir_histogram_record(times, 0);
    weir_histogram_record(times, 100 * WEIR_MILLISECOND);
    weir_histogram_record(times, WEIR_SECOND);
    weir_subject_lap lap = { .subject = WEIR_SUBJECT_STAGE,
                             .kind = "stage",
                             .name = AWKWARD,
                             .lap = &(weir_lap){ .elapsed_ns = WEIR_SECOND },
                             .metrics.task = { .num_tasks = 4,
                                               .success_ns = 1100 * WEIR_MILLISECOND,
                                               .max_ns = WEIR_SECOND,
                                               .run_times = times } };
    observer.lap(observer.self, &lap);
    close_log(log);
    free(times);

    struct events events = events_in("logs");
    const Weir__Tensorboard__Summary__Value *value =
        find_value(&events, "it's \"quoted\",\\nin two lines <b> \\ \\xff/time_histogram", 0);
    assert_non_null(value);
    const Weir__Tensorboard__HistogramProto *histo = value->histo;
    assert_true(histo->num == 4 && fabs(histo->sum - 1.1) < 1e-9);
    assert_true(histo->min == 0 && histo->max >= 1 && histo->max < 1.02);
    assert_int_equal(histo->n_bucket, histo->n_bucket_limit);
    double counts[3] = { 0 };
    for (size_t i = 0; i < histo->n_bucket; i++) {
        double low = i ? histo->bucket_limit[i - 1] : histo->min, high = histo->bucket_limit[i];
        assert_true(low < high);
        counts[0] += low <= 0 ? histo->bucket[i] : 0;
        counts[1] += low <= 0.1 && high > 0.1 ? histo->bucket[i] : 0;
        counts[2] += low <= 1 && high > 1 ? histo->bucket[i] : 0;
    }
    assert_true(counts[0] == 2 && counts[1] == 1 && counts[2] == 1);
    free_events(&events);
}

TEST_CASE(steps_of_the_consumer_are_told)
{
    weir_tensorboard_log *log = open_log("logs");
    weir_sqlite_writer *writer = open_writer(in_folder("a.db"), NULL);
    weir_observer observers[] = { weir_tensorboard_observer(log), weir_sqlite_observer(writer) };
    weir_histogram *times = calloc(1, sizeof *times);
    assert_non_null(times);
    for (int i = 0; i < 2; i++) {
        observe_start(observers[i]);
        weir_subject_lap lap = { .subject = WEIR_SUBJECT_QUEUE,
                                 .kind = "queue",
                                 .name = "0:2:sink_queue",
                                 .lap =
                                     &(weir_lap){ .elapsed_ns = WEIR_SECOND,
                                                  .end_unix_ns = 1001 * WEIR_SECOND,
                                                  .position = { .phase = "loop", .first_step = 5, .last_step = 9 } },
                                 .metrics.queue = { .put_times = times, .get_times = times } };
        observers[i].lap(observers[i].self, &lap);
        if (observers[i].lap_end)
            observers[i].lap_end(observers[i].self, lap.lap);
    }
    free(times);
    close_log(log);
    close_writer(writer);
    assert_exports("a.db", NULL, "exported");
    struct events live = events_in("logs"), exported = events_in("exported/run-1");
    assert_scalar(&live, "consumer/step", 0, 9);
    assert_scalar(&exported, "consumer/step", 0, 9);
    free_events(&live);
    free_events(&exported);
}

static bool is_break(char c)
{
    return c == '/' || c == '_' || (c >= '0' && c <= '9');
}

/* As TensorBoard sorts tags (vz-sorting), for numbers without signs and points. */
static int compare_tags(const char *a, const char *b)
{
    while (*a && *b) {
        char *end_a, *end_b;
        if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
            unsigned long one = strtoul(a, &end_a, 10), other = strtoul(b, &end_b, 10);
            if (one != other)
                return one < other ? -1 : 1;
            a = end_a;
            b = end_b;
            continue;
        }
        if (is_break(*a) != is_break(*b))
            return is_break(*a) ? -1 : 1;
        if (!is_break(*a) && *a != *b)
            return *a < *b ? -1 : 1;
        a++;
        b++;
    }
    return (*a != '\0') - (*b != '\0');
}

static int judge_tasks(const weir_totals *totals, const weir_records *stages, weir_named_limit *limit,
                       weir_error *error)
{
    (void)error;
    *limit = (weir_named_limit){
        .kind = "x", .number = totals->of[WEIR_SUBJECT_STAGE].all[0].metrics.task.num_tasks ? (int)stages->count : 1
    };
    return WEIR_OK;
}

static const char *four_words(int number)
{
    static const char *const words[] = { "unknown", "none", "consumer", "source", "" };
    return words[number];
}

static int read_no_limit(weir_recording *recording, const weir_filter *filter, weir_named_limit *limit,
                         weir_error *error)
{
    (void)recording, (void)filter, (void)limit;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "not in this test");
}

static void observe_queue(weir_observer observer, const char *name)
{
    const weir_lap lap = { .end_unix_ns = 1002 * WEIR_SECOND, .elapsed_ns = 2 * WEIR_SECOND };
    observer.lap(observer.self, &(weir_subject_lap){ .subject = WEIR_SUBJECT_QUEUE,
                                                     .kind = "queue",
                                                     .name = name,
                                                     .capacity = 4,
                                                     .lap = &lap,
                                                     .metrics.queue = { .depth_ns = 2e9 } });
}

/* Held constant: what the overview needs is in each lap, except the process and frames. */
TEST_CASE(tensorboard_opens_on_ten_scalars_at_most)
{
    static const weir_limit_rules rules = { .word = four_words, .judge = judge_tasks, .read = read_no_limit };
    weir_tensorboard_log *log;
    weir_tensorboard_options options = { .limit_rules = &rules };
    assert_int_equal(weir_tensorboard_open(in_folder("logs"), &options, &log, NULL), WEIR_OK);
    weir_observer observer = weir_tensorboard_observer(log);
    observe_start(observer);
    for (int i = 0; i < 9; i++) {
        char name[40];
        snprintf(name, sizeof name, "0:0:queue %d", i);
        observe_queue(observer, name);
    }
    observe_lap(observer, 0, 100);
    observe_lap(observer, 1, 0);
    observe_end(observer, WEIR_OK);
    close_log(log);
    struct events events = events_in("logs");
    assert_scalar(&events, "0 overview/limit", 0, 3);
    assert_scalar(&events, "0 overview/limit", 1, 1);
    assert_scalar(&events, "0 overview/level of 0:0:queue 0", 0, 0.25);
    assert_null(find_value(&events, "0 overview/level of 0:0:queue 2", 0));
    assert_string_equal(find_value(&events, "0 overview/limit", 0)->metadata->summary_description,
                        "What limits the run (weir explain): 0 = unknown, 1 = none, 2 = consumer, 3 = source");
    assert_null(find_value(&events, "0 overview/limit", 1)->metadata); /* once is enough */
    size_t num_shown = 0;
    for (size_t i = 1; i < events.count; i++)
        for (size_t j = 0; j < events.all[i]->summary->n_value; j++) {
            const char *tag = events.all[i]->summary->value[j]->tag;
            bool is_shown = strncmp(tag, "0 overview/", 11) == 0;
            num_shown += is_shown && events.all[i]->step == 0;
            assert_true((compare_tags(tag, "0 overview/~") < 0) == is_shown);
        }
    assert_int_equal(num_shown, 7); /* the process has two more, frames one */
    free_events(&events);
}

TEST_CASE(only_what_is_asked_for_is_exported)
{
    record_run("a.db", 0);
    record_run("a.db", 0);
    assert_exports("a.db", &(weir_filter){ .run_id = WEIR_LAST_RUN, .name = "decode", .descending = true }, "logs");
    assert_int_not_equal(access(in_folder("logs/run-1"), F_OK), 0);
    struct events events = events_in("logs/run-2");
    assert_scalar(&events, "0:1:decode[10]_queue/num_items", 0, 75);
    assert_null(find_value(&events, "0:2:sink_queue/num_items", 0));
    assert_null(find_value(&events, "0 overview/items_per_s", 0)); /* a part of the stages has none */
    free_events(&events);

    weir_error error = { 0 };
    assert_int_equal(export("a.db", &(weir_filter){ .end_unix_ns = 500 * WEIR_SECOND }, "nothing", &error),
                     WEIR_ENOTFOUND);
    assert_exports("a.db", &(weir_filter){ .name = "no*stage" }, "nothing");
    assert_int_not_equal(access(in_folder("nothing"), F_OK), 0);
    assert_int_equal(export("a.db", &(weir_filter){ .run_id = 7 }, "nothing", &error), WEIR_ENOTFOUND);
}

TEST_CASE(a_log_has_one_pipeline_at_a_time)
{
    weir_tensorboard_log *log = open_log("logs");
    weir_observer observer = weir_tensorboard_observer(log);
    weir_error error = { 0 };
    assert_int_equal(observer.attach(observer.self, &error), WEIR_OK);
    assert_int_equal(observer.attach(observer.self, &error), WEIR_EBUSY);
    assert_non_null(strstr(error.message, "logs"));
    observer.detach(observer.self);
    close_log(log);
}

TEST_CASE(damaged_histogram_is_an_error_and_leaves_no_file)
{
    record_run("a.db", 0);
    execute(in_folder("a.db"), "UPDATE task_stats SET histogram = x'07'");
    weir_error error = { 0 };
    assert_int_equal(export("a.db", NULL, "logs", &error), WEIR_EDATA);
    assert_non_null(strstr(error.message, "a.db"));
    assert_int_not_equal(access(in_folder("logs/run-1"), F_OK), 0);
}

TEST_CASE(folder_that_cannot_be_is_told_at_once)
{
    weir_tensorboard_log *log;
    weir_error error = { 0 };
    write_file(in_folder("file"), "x", 1);
    assert_int_equal(weir_tensorboard_open(in_folder("file/logs"), NULL, &log, &error), WEIR_EINVAL);
    assert_null(log);
    assert_non_null(strstr(error.message, "file/logs"));
    assert_int_equal(weir_tensorboard_open("", NULL, &log, NULL), WEIR_EINVAL);
    record_run("a.db", 0);
    error = (weir_error){ 0 };
    assert_int_equal(export("a.db", NULL, "file", &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "file"));
}

/* WEIR_PYTHON names a Python that has TensorBoard, if it is not python3. */
TEST_CASE(tensorboard_reads_it)
{
    const char *python = getenv("WEIR_PYTHON") ? getenv("WEIR_PYTHON") : "python3";
    char command[2048];
    snprintf(command, sizeof command, "'%s' -c 'import tensorboard' 2>/dev/null", python);
    if (system(command) != 0) {
        print_message("TensorBoard is not installed (PyPI: tensorboard): not read by it\n");
        skip();
    }
    record_run("a.db", 0);
    assert_exports("a.db", NULL, "logs");
    static const char script[] =
        "import sys\n"
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
        "a = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0}); a.Reload()\n"
        "s = a.Scalars('0:1:decode[10]/num_tasks')\n"
        "assert [(e.step, e.wall_time, e.value) for e in s] == [(0, 1002.0, 100.0), (1, 1004.0, 0.0)], s\n"
        "h = a.Histograms('0:1:decode[10]/task_time')\n"
        "assert len(h) == 1 and h[0].histogram_value.num == 75, h\n";
    write_file(in_folder("read.py"), script, sizeof script - 1);
    snprintf(command, sizeof command, "LD_PRELOAD= '%s' '%s' '%s' 2>&1", python, in_folder("read.py"),
             in_folder("logs/run-1"));
    assert_int_equal(system(command), 0);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
