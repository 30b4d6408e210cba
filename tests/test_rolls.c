/*
 * Rolls change no figure. Random recordings are asked for totals as they are, and once more from their laps alone.
 * Crossed are lengths of laps (20 ms to 2 s), phases, modes, runs, ranks, killed ends, ranges and groupings. There
 * are spans that are in some laps, counters, and metrics that are not known. Clocks are set back, and a database is
 * locked for a while. Held constant: one machine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/summary.h>
#include <weir/verdict.h>

#include "tests/recording.h"

#include "common/random.h"
#include "stats/read/long_runs.h"
#include "stats/read/open_recording.h"
#include "stats/record/rolls.h"
#include "stats/schema/measures.h"

/* ---- random recordings -------------------------------------------------------------------------------------------- */

static const struct {
    weir_subject subject;
    const char *name, *kind;
    unsigned in_one_of; /* it is in one of this number of laps */
} subjects[] = {
    { WEIR_SUBJECT_FLOW, "0:0:src", "source", 1 },        { WEIR_SUBJECT_QUEUE, "0:0:src_queue", "queue", 1 },
    { WEIR_SUBJECT_STAGE, "0:1:decode[10]", "stage", 1 }, { WEIR_SUBJECT_QUEUE, "0:1:decode[10]_queue", "queue", 1 },
    { WEIR_SUBJECT_FLOW, "0:2:sink", "sink", 1 },         { WEIR_SUBJECT_QUEUE, "0:2:sink_queue", "queue", 1 },
    { WEIR_SUBJECT_POOL, "0:pool", "pool", 1 },           { WEIR_SUBJECT_PROCESS, "0:process", "process", 1 },
    { WEIR_SUBJECT_MACHINE, "0:machine", "machine", 1 },  { WEIR_SUBJECT_SPAN, "wire/read", "span", 150 },
    { WEIR_SUBJECT_SPAN, "zero/now", "marker", 7 },       { WEIR_SUBJECT_COUNTER, "user/loss", "level", 3 },
    { WEIR_SUBJECT_COUNTER, "user/bytes", "total", 1 },   { WEIR_SUBJECT_SPAN, "wire/read", "frame", 100 },
};

enum { NUM_SUBJECTS = sizeof subjects / sizeof subjects[0] };

static const char *const phases[] = { "", "train", "eval", WEIR_PHASE_REPLAY };
static const char *const modes[] = { "", "fast" };

/* One run; a unit of time is 20 ms. */
typedef struct random_run {
    weir_sqlite_writer *writer;
    uint64_t draw;
    weir_lap lap;
    unsigned until_change; /* laps up to the next phase */
    weir_histogram times[WEIR_MAX_HISTOGRAMS];
} random_run;

static uint64_t below(random_run *run, uint64_t limit)
{
    return weir__random_next(&run->draw) % limit;
}

static bool chance(random_run *run, unsigned of)
{
    return below(run, of) == 0;
}

static void draw_histogram(random_run *run, weir_histogram *times)
{
    weir_histogram_clear(times);
    for (uint64_t left = below(run, 6); left; left--)
        weir_histogram_record(times, (int64_t)below(run, UINT64_C(1) << (10 + below(run, 24))));
}

/* Any value of its kind, also none. */
static void draw_metric(random_run *run, const weir_metric *metric, weir_metrics *metrics, weir_histogram *times)
{
    void *at = (char *)metrics + metric->offset;
    bool is_missing = chance(run, 200);
    switch (metric->kind) {
    case WEIR_METRIC_COUNT: *(uint64_t *)at = below(run, 9); break;
    case WEIR_METRIC_SUM: *(int64_t *)at = is_missing ? -1 : (int64_t)below(run, 1000000000); break;
    case WEIR_METRIC_MIN: *(int64_t *)at = is_missing ? INT64_MAX : (int64_t)below(run, 1000000); break;
    case WEIR_METRIC_MAX: *(int64_t *)at = is_missing ? -1 : (int64_t)below(run, 1000000000); break;
    case WEIR_METRIC_LEVEL: *(double *)at = is_missing ? (double)NAN : 1e3 * (double)below(run, 1000000); break;
    case WEIR_METRIC_HISTOGRAM:
        draw_histogram(run, times);
        *(const weir_histogram **)at = times;
        break;
    default: *(double *)at = is_missing ? (double)NAN : (double)below(run, 1000) - 300; break;
    }
}

static void observe_subject(random_run *run, size_t i)
{
    weir_observer observer = weir_sqlite_observer(run->writer);
    const weir_metric_table *metrics = weir_subject_metrics(subjects[i].subject);
    weir_subject_lap lap = { .lap = &run->lap,
                             .subject = subjects[i].subject,
                             .name = subjects[i].name,
                             .kind = subjects[i].kind,
                             .capacity = 1 + below(run, 3) };
    size_t histogram = 0;
    weir_metrics_clear(metrics, &lap.metrics);
    for (size_t m = 0; m < metrics->num_metrics; m++) {
        draw_metric(run, &metrics->metrics[m], &lap.metrics, &run->times[histogram]);
        histogram += metrics->metrics[m].kind == WEIR_METRIC_HISTOGRAM;
    }
    observer.lap(observer.self, &lap);
}

static void move_on(random_run *run)
{
    weir_lap *lap = &run->lap;
    const int64_t unit_ns = 20000000;
    if (run->until_change-- == 0) {
        run->until_change = (unsigned)below(run, chance(run, 2) ? 200 : 5);
        lap->position.phase = phases[below(run, 4)];
        lap->position.mode = modes[below(run, 2)];
    }
    bool has_steps = *lap->position.phase && chance(run, 2);
    lap->position.first_step = has_steps ? (int64_t)lap->number : 0;
    lap->position.last_step = has_steps ? (int64_t)lap->number + (int64_t)below(run, 2) : -1;
    lap->number++;
    lap->num_joined = 1 + (uint32_t)chance(run, 9);
    lap->elapsed_ns = unit_ns * (int64_t)(1 + below(run, 100));
    lap->suspended_ns = chance(run, 50) ? lap->elapsed_ns / 2 : 0;
    lap->end_unix_ns += lap->elapsed_ns - (chance(run, 300) ? 30 * WEIR_SECOND : 0);
}

static void observe_laps(random_run *run, unsigned count)
{
    for (; count; count--) {
        move_on(run);
        for (size_t i = 0; i < NUM_SUBJECTS; i++)
            if (chance(run, subjects[i].in_one_of))
                observe_subject(run, i);
    }
}

static random_run *begin_run(const char *path, uint64_t seed, int32_t rank)
{
    random_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->draw = seed;
    run->lap.end_unix_ns = NS(1000) + (int64_t)below(run, 100) * WEIR_SECOND;
    run->writer = recording_begin(path, rank ? "other" : "node", rank, 1000);
    return run;
}

static void end_run(random_run *run, bool is_killed)
{
    if (is_killed)
        close_writer(run->writer);
    else
        recording_end(run->writer, (double)run->lap.end_unix_ns / 1e9);
    free(run);
}

/* Two runs at the same time, one of which is killed, and a third. */
static void record_runs(const char *path, uint64_t seed)
{
    random_run *one = begin_run(path, seed, 0), *other = begin_run(path, seed + 1, 1);
    for (int i = 0; i < 4; i++) {
        observe_laps(one, 60 + (unsigned)below(one, 60));
        observe_laps(other, (unsigned)below(other, 90));
    }
    end_run(one, false);
    end_run(other, true);
    random_run *third = begin_run(path, seed + 2, 0);
    observe_laps(third, 130);
    end_run(third, false);
}

static const char *without_rolls(const char *path)
{
    static char copy[4096];
    size_t size;
    char *bytes = read_file(path, &size);
    snprintf(copy, sizeof copy, "%s", in_folder("laps.db"));
    write_file(copy, bytes, size);
    free(bytes);
    execute(copy, "DELETE FROM roll");
    return copy;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

/* Doubles were added in another order. */
static bool is_near(double one, double other)
{
    return (isnan(one) && isnan(other)) || fabs(one - other) <= 1e-9 * fmax(1, fabs(other));
}

static void assert_same_histograms(const weir_total *one, const weir_total *other)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    weir_metrics m = one->metrics, n = other->metrics;
    for (size_t i = 0, count = weir__subject_histograms(one->subject, histograms); i < count; i++) {
        const weir_histogram *a = *weir__metric_histogram_at(histograms[i].metric, &m),
                             *b = *weir__metric_histogram_at(histograms[i].metric, &n);
        assert_int_equal(a != NULL, b != NULL);
        if (a && memcmp(a->buckets, b->buckets, sizeof a->buckets) != 0)
            fail_msg("%s: another %s", one->key.name, histograms[i].metric->name);
        assert_int_equal(one->percentiles[i].are_known, other->percentiles[i].are_known);
    }
}

static void assert_same_key(const weir_group_key *one, const weir_group_key *other)
{
    assert_string_equal(one->name, other->name);
    assert_string_equal(one->node_id, other->node_id);
    assert_string_equal(one->phase, other->phase);
    assert_string_equal(one->mode, other->mode);
    assert_int_equal(one->run_id, other->run_id);
    assert_int_equal(one->bin_unix_ns, other->bin_unix_ns);
    assert_int_equal(one->first_step, other->first_step);
    assert_int_equal(one->last_step, other->last_step);
    assert_int_equal(one->start_unix_ns, other->start_unix_ns);
    assert_int_equal(one->end_unix_ns, other->end_unix_ns);
    assert_int_equal(one->num_laps, other->num_laps);
    assert_true(is_near(one->share, other->share));
}

static void assert_same_total(const weir_total *one, const weir_total *other)
{
    size_t count;
    const weir_measure *measures = weir_subject_measures(one->subject, &count);
    const weir_metric_table *metrics = weir_subject_metrics(one->subject);
    assert_same_key(&one->key, &other->key);
    assert_string_equal(one->kind, other->kind);
    assert_int_equal(one->elapsed_ns, other->elapsed_ns);
    assert_int_equal(one->suspended_ns, other->suspended_ns);
    assert_int_equal(one->capacity, other->capacity);
    assert_true(is_near(one->concurrency, other->concurrency));
    for (size_t i = 0; i < metrics->num_metrics; i++) {
        double value = weir__metric_value(&metrics->metrics[i], &one->metrics),
               expected = weir__metric_value(&metrics->metrics[i], &other->metrics);
        if (!is_near(value, expected))
            fail_msg("%s: %s is %.17g with rolls, %.17g from the laps", one->key.name, metrics->metrics[i].name,
                     value, expected);
    }
    for (size_t i = 0; i < count; i++)
        assert_true(is_near(weir_total_value(one, &measures[i]), weir_total_value(other, &measures[i])));
    assert_same_histograms(one, other);
}

static void assert_same_totals(weir_recording *rolls, weir_recording *laps, const weir_filter *filter,
                               const weir_grouping *grouping)
{
    weir_totals one, other;
    weir_error error = { 0 };
    if (weir_totals_read(rolls, filter, grouping, &one, &error) != WEIR_OK ||
        weir_totals_read(laps, filter, grouping, &other, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    for (weir_subject s = 0; s < WEIR_NUM_SUBJECTS; s++) {
        assert_int_equal(one.of[s].count, other.of[s].count);
        for (size_t i = 0; i < one.of[s].count; i++)
            assert_same_total(&one.of[s].all[i], &other.of[s].all[i]);
    }
    weir_totals_free(&one);
    weir_totals_free(&other);
}

/* Any filter and grouping; those that need single laps are among them. */
static void draw_question(random_run *run, uint64_t num_runs, weir_filter *filter, weir_grouping *grouping)
{
    static const char *const names[] = { NULL, NULL, "decode", "*read*" };
    *filter = (weir_filter){ .run_id = (int64_t)below(run, num_runs + 1),
                             .name = names[below(run, 4)],
                             .node_id = chance(run, 6) ? "oth*" : NULL,
                             .by_rank = chance(run, 6),
                             .phase = chance(run, 4) ? phases[below(run, 3)] : NULL,
                             .mode = chance(run, 6) ? "fast" : NULL,
                             .from_phase = chance(run, 12) ? "eval" : NULL,
                             .no_replay = chance(run, 3),
                             .by_step = chance(run, 8),
                             .first_step = 20,
                             .last_step = 150 };
    if (chance(run, 2))
        filter->start_unix_ns = NS(1000) + (int64_t)below(run, 500) * WEIR_SECOND;
    if (chance(run, 2))
        filter->end_unix_ns = NS(1100) + (int64_t)below(run, 500) * WEIR_SECOND;
    const uint32_t few = (uint32_t)below(run, 2048); /* each key in one question of four */
    *grouping = (weir_grouping){ .by = (uint32_t)below(run, 2048) & few,
                                 .bin_ns = (int64_t)(1 + below(run, 300)) * WEIR_SECOND };
    if (!chance(run, 4)) /* most questions are for rolls */
        grouping->by = (uint32_t)below(run, 2048) & (WEIR_BY_NAME | WEIR_BY_RUN | WEIR_BY_NODE | WEIR_BY_PHASE |
                                                     WEIR_BY_MODE | (chance(run, 3) ? WEIR_BY_TIME : 0));
    if (grouping->by & WEIR_BY_TRANSITION)
        grouping->by &= ~(uint32_t)(WEIR_BY_PHASE | WEIR_BY_JOB_PHASE);
    if (grouping->by & WEIR_BY_MODE_TRANSITION)
        grouping->by &= ~(uint32_t)WEIR_BY_MODE;
}

static void compare_answers(const char *path, uint64_t seed, unsigned num_questions)
{
    random_run draws = { .draw = seed };
    uint64_t num_runs = (uint64_t)query_int(path, "SELECT count(*) FROM run");
    weir_recording *rolls = open_reader(path), *laps = open_reader(without_rolls(path));
    for (unsigned i = 0; i < num_questions; i++) {
        weir_filter filter;
        weir_grouping grouping;
        draw_question(&draws, num_runs, &filter, &grouping);
        assert_same_totals(rolls, laps, &filter, &grouping);
    }
    weir_recording_close(rolls);
    weir_recording_close(laps);
}

/* ---- the tests ---------------------------------------------------------------------------------------------------- */

enum { NUM_SEEDS = 1 }; /* more take longer, and have found nothing more */

TEST_CASE(totals_from_rolls_are_those_of_the_laps)
{
    for (uint64_t seed = 1; seed <= NUM_SEEDS; seed++) {
        const char *path = in_folder("rolls.db");
        remove(path);
        record_runs(path, seed);
        assert_true(query_int(path, "SELECT max(num_laps) FROM roll") == WEIR_ROLL_LAPS);
        compare_answers(path, seed, 40);
    }
}

static char *summary_of(const char *path)
{
    char *text = NULL;
    size_t size;
    weir_error error = { 0 };
    FILE *out = open_memstream(&text, &size);
    if (print_summary(out, path, 1, weir_verdict_write_limit, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    fclose(out);
    char *line = strstr(text, "Database: "); /* its path */
    if (line)
        memmove(line, strchr(line, '\n'), strlen(strchr(line, '\n')) + 1);
    return text;
}

TEST_CASE(the_summary_of_a_run_with_rolls_is_that_of_its_laps)
{
    const char *path = in_folder("rolls.db");
    record_runs(path, 7);
    char *one = summary_of(path), *other = summary_of(without_rolls(path));
    assert_string_equal(one, other);
    free(one);
    free(other);
}

TEST_CASE(the_total_of_a_finished_run_reads_no_laps)
{
    const char *path = in_folder("rolls.db");
    random_run *run = begin_run(path, 3, 0);
    observe_laps(run, 300);
    end_run(run, false);
    const char *laps = without_rolls(path);
    execute(path, "UPDATE task_stats SET num_tasks = 1000; UPDATE queue_stats SET num_put = 1000;"
                  " UPDATE span_stats SET total_time = 1000");
    weir_recording *recording = open_reader(path), *other = open_reader(laps);
    assert_same_totals(recording, other, NULL, &(weir_grouping){ .by = WEIR_BY_NAME });
    weir_recording_close(recording);
    weir_recording_close(other);
}

TEST_CASE(a_roll_is_of_one_phase_and_mode_and_all_subjects_are_cut_at_one_lap)
{
    const char *path = in_folder("rolls.db");
    record_runs(path, 5);
    static const char *const tables[] = { "task_stats", "flow_stats", "queue_stats", "pool_stats", "span_stats" };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        char sql[700];
        snprintf(
            sql, sizeof sql,
            "SELECT count(*) FROM (SELECT 1 FROM %s t JOIN roll r USING (run_id, roll) GROUP BY t.run_id, t.roll,"
            " t.name HAVING count(DISTINCT t.phase || ' ' || t.mode) > 1 OR min(t.timestamp) < r.first_time OR"
            " max(t.timestamp) > r.timestamp OR count(*) > r.num_laps)",
            tables[i]);
        assert_int_equal(query_int(path, sql), 0);
    }
    assert_int_equal(query_int(path, "SELECT count(*) FROM roll WHERE num_laps > 64"), 0);
    assert_int_equal(query_int(path, "SELECT count(*) FROM queue_stats q WHERE NOT EXISTS (SELECT 1 FROM roll r WHERE"
                                     " r.run_id = q.run_id AND r.roll = q.roll) AND run_id IN (SELECT run_id FROM run"
                                     " WHERE ended IS NOT NULL)"),
                     0);
}

TEST_CASE(a_database_that_was_locked_meanwhile_has_the_same_rolls)
{
    const char *path = in_folder("rolls.db");
    random_run *run = begin_run(path, 9, 0);
    observe_laps(run, 70);
    assert_int_equal(weir_sqlite_flush(run->writer, NULL), WEIR_OK);
    sqlite3 *other = connect_to(path);
    run_sql(other, "BEGIN IMMEDIATE");
    observe_laps(run, 150);
    run_sql(other, "COMMIT");
    sqlite3_close(other);
    observe_laps(run, 40);
    end_run(run, false);
    assert_int_equal(query_int(path, "SELECT sum(num_laps) FROM roll"), 260);
    compare_answers(path, 9, 15);
}

/* The stage is the limit all the time. */
static void record_long(const char *path, unsigned num_laps)
{
    static const double times[] = { 0.1, 0.2, 0.3 };
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    weir_observer observer = weir_sqlite_observer(writer);
    for (unsigned i = 1; i <= num_laps; i++) {
        weir_lap lap = { .end_unix_ns = NS(1000) + i * WEIR_SECOND,
                         .elapsed_ns = WEIR_SECOND,
                         .num_joined = 1,
                         .position = { .mode = "", .phase = "", .last_step = -1 } };
        weir_subject_lap source = { .lap = &lap, .subject = WEIR_SUBJECT_FLOW, .name = "0:0:src", .kind = "source" };
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_FLOW), &source.metrics);
        source.metrics.task.num_tasks = 3;
        source.metrics.task.wait_out_ns = WEIR_SECOND;
        observer.lap(observer.self, &source);
        record_lap(writer, &(invented_lap){ .at = 1000 + i, .elapsed = 1, .num_tasks = 3, .times = times });
    }
    recording_end(writer, 1000 + num_laps);
}

static void record_finding(void *self, const weir_finding *finding)
{
    if (strcmp(finding->check, "rolls") == 0)
        snprintf(self, 300, "%d %s", (int)finding->level, finding->text);
}

static const char *finding_of_rolls(const char *path)
{
    static char found[300];
    weir_recording *recording = open_reader(path);
    weir_error error = { 0 };
    *found = '\0';
    if (weir_database_check(recording, true, record_finding, found, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(recording);
    return found;
}

static void count_wrong_sum(void *self, const weir_finding *finding)
{
    *(int *)self += strstr(finding->text, "is not the sum of its laps") != NULL;
}

/* Random laps are wrong in other ways, which are none of this count. */
static int count_wrong_sums(const char *path)
{
    int num_wrong = 0;
    weir_recording *recording = open_reader(path);
    weir_error error = { 0 };
    if (weir_database_check(recording, true, count_wrong_sum, &num_wrong, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(recording);
    return num_wrong;
}

TEST_CASE(a_check_finds_a_roll_that_is_not_the_sum_of_its_laps)
{
    const char *path = in_folder("rolls.db");
    weir_sqlite_writer *writer = recording_begin(path, "node", 0, 1000);
    for (int i = 1; i <= 200; i++)
        record_lap(writer, &(invented_lap){ .at = 1000 + 10 * i, .num_tasks = 2 });
    recording_end(writer, 3000);
    assert_string_equal(finding_of_rolls(path), "0 have the sums of their laps");
    execute(path, "UPDATE queue_rolls SET num_items = num_items + 1 WHERE roll = 2 AND name = '0:2:sink_queue'");
    assert_int_equal(count_wrong_sums(path), 1);
    assert_string_equal(finding_of_rolls(path),
                        "2 roll 2 in queue_rolls: num_items of 0:2:sink_queue is not the sum of its laps");
}

TEST_CASE(merged_runs_keep_their_rolls)
{
    const char *path = in_folder("rolls.db"), *to = in_folder("merged.db");
    weir_merged merged;
    weir_error error = { 0 };
    random_run *before = begin_run(to, 1, 5); /* so that ids are other ones */
    observe_laps(before, 70);
    end_run(before, false);
    record_runs(path, 6);
    if (weir_database_merge(to, path, &merged, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(merged.added, 3);
    assert_int_equal(query_int(to,
                               "SELECT count(*) FROM task_rolls x LEFT JOIN task_stats t ON t.id = x.id AND t.roll ="
                               " x.roll AND t.run_id = x.run_id AND t.name = x.name WHERE t.id IS NULL"),
                     0);
    assert_int_equal(query_int(to, "SELECT count(*) FROM roll WHERE run_id > 1"),
                     query_int(path, "SELECT count(*) FROM roll"));
    assert_int_equal(count_wrong_sums(to), 0); /* also of a name of two kinds */
    compare_answers(to, 6, 12);
}

TEST_CASE(a_database_of_before_without_rolls_is_read)
{
    const char *path = in_folder("rolls.db");
    record_runs(path, 8);
    weir_recording *other = open_reader(without_rolls(path));
    execute(
        path,
        "DROP TABLE roll; DROP TABLE task_rolls; DROP TABLE queue_rolls; ALTER TABLE task_stats DROP COLUMN roll");
    weir_recording *recording = open_reader(path);
    assert_same_totals(recording, other, NULL, &(weir_grouping){ .by = WEIR_BY_NAME | WEIR_BY_RUN });
    weir_recording_close(recording);
    weir_recording_close(other);
    random_run *run = begin_run(path, 2, 0); /* a writer adds what is missing */
    observe_laps(run, 100);
    end_run(run, false);
    compare_answers(path, 8, 10);
}

/* ---- long runs ---------------------------------------------------------------------------------------------------- */

static weir_verdict *explain(const char *path, bool *was_long)
{
    weir_recording *recording = open_reader(path);
    weir_verdict *verdict;
    weir_error error = { 0 };
    bool before;
    assert_int_equal(weir__recording_join_laps(recording, &(weir_filter){ 0 }, &before, &error), WEIR_OK);
    *was_long = recording->joins_laps;
    weir__recording_join_laps_end(recording, before);
    if (weir_verdict_explain(recording, &(weir_filter){ .run_id = WEIR_LAST_RUN }, &verdict, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_false(recording->joins_laps);
    weir_recording_close(recording);
    return verdict;
}

TEST_CASE(rolls_are_the_laps_of_a_long_run_and_the_verdict_is_the_same)
{
    const char *path = in_folder("long.db");
    const unsigned num_laps = WEIR_ROLL_LAPS * WEIR_ROLL_LAPS;
    bool was_long, other_was_long;
    record_long(path, num_laps);
    weir_verdict *one = explain(path, &was_long), *other = explain(without_rolls(path), &other_was_long);
    assert_true(was_long && !other_was_long);
    assert_int_equal(one->kind, other->kind);
    assert_string_equal(one->name, other->name);
    assert_true(fabs(one->items_per_s - other->items_per_s) < 0.02 * other->items_per_s);
    weir_verdict_free(one);
    weir_verdict_free(other);
    weir_recording *rolls = open_reader(path), *laps = open_reader(without_rolls(path));
    assert_same_totals(rolls, laps, NULL, &(weir_grouping){ .by = WEIR_BY_NAME });
    weir_recording_close(rolls);
    weir_recording_close(laps);
}

TEST_CASE(a_shorter_run_is_judged_by_its_laps)
{
    const char *path = in_folder("short.db");
    bool was_long;
    record_long(path, WEIR_ROLL_LAPS * 4);
    weir_verdict_free(explain(path, &was_long));
    assert_false(was_long);
}

/* ---- old laps ----------------------------------------------------------------------------------------------------- */

static random_run *begin_kept(const char *path, int64_t keep_ns)
{
    random_run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->draw = 12;
    run->lap.end_unix_ns = NS(1000);
    run->writer = open_writer(path, &(weir_sqlite_options){ .keep_ns = keep_ns, .node_id = "node" });
    weir_observer observer = weir_sqlite_observer(run->writer);
    observer.run_start(observer.self, &(weir_run_info){ .start_unix_ns = NS(1000), .threads = 1 });
    return run;
}

static void record_kept(const char *path, int64_t keep_ns)
{
    random_run *run = begin_kept(path, keep_ns);
    observe_laps(run, 500);
    end_run(run, false);
}

TEST_CASE(old_laps_are_joined_and_the_totals_stay)
{
    static const unsigned groupings[] = { 0, WEIR_BY_NAME, WEIR_BY_NAME | WEIR_BY_PHASE | WEIR_BY_MODE };
    const char *kept = in_folder("kept.db"), *thinned = in_folder("thinned.db");
    record_kept(kept, 0);
    record_kept(thinned, WEIR_SECOND);
    assert_int_equal(query_int(kept, "SELECT count(*) FROM task_stats"), 500);
    assert_int_equal(query_int(thinned, "SELECT count(*) FROM task_stats"),
                     query_int(kept, "SELECT count(*) FROM roll"));
    assert_int_equal(query_int(thinned, "SELECT sum(num_joined) FROM task_stats"),
                     query_int(kept, "SELECT sum(num_joined) FROM task_stats"));
    weir_recording *one = open_reader(thinned), *other = open_reader(kept);
    for (size_t i = 0; i < sizeof groupings / sizeof groupings[0]; i++)
        assert_same_totals(one, other, NULL, &(weir_grouping){ .by = groupings[i] });
    weir_recording_close(one);
    weir_recording_close(other);
    assert_int_equal(query_int(thinned,
                               "SELECT count(*) FROM queue_rolls x JOIN queue_stats q USING (run_id, roll, name)"
                               " WHERE x.id = q.id AND x.num_put = q.num_put AND x.elapsed = q.elapsed"),
                     query_int(thinned, "SELECT count(*) FROM queue_stats"));
    execute(thinned, "DELETE FROM roll"); /* the laps alone */
    assert_true(is_near(query_real(thinned, "SELECT total(num_tasks) FROM stage_runs"),
                        query_real(kept, "SELECT total(num_tasks) FROM stage_runs")));
}

static void assert_same_rolls(const char *path, const char *sql, const char *wanted)
{
    char *found = query_text(path, sql);
    assert_string_equal(found, wanted);
    free(found);
}

/* Their entries come in turn, and are written in the same transactions. */
TEST_CASE(writers_of_one_file_have_rolls_and_old_laps_of_their_own)
{
#define ROLLS_OF(run) \
    "SELECT group_concat(roll || ':' || num_laps || ':' || num_tasks) FROM (SELECT * FROM task_rolls WHERE run_id " \
    "= " run " ORDER BY roll, name)"
    const char *alone = in_folder("alone.db"), *shared = in_folder("shared.db");
    record_kept(alone, 0);
    random_run *thinned = begin_kept(shared, WEIR_SECOND), *kept = begin_kept(shared, 0);
    for (int i = 0; i < 50; i++) {
        observe_laps(thinned, 10);
        observe_laps(kept, 10);
        if (i % 7 == 0)
            assert_int_equal(weir_sqlite_flush(i % 2 ? kept->writer : thinned->writer, NULL), WEIR_OK);
    }
    end_run(thinned, false);
    end_run(kept, false);
    char *wanted = query_text(alone, ROLLS_OF("1"));
    assert_same_rolls(shared, ROLLS_OF("1"), wanted);
    assert_same_rolls(shared, ROLLS_OF("2"), wanted);
    free(wanted);
    int64_t num_rolls = query_int(alone, "SELECT count(*) FROM roll");
    assert_int_equal(query_int(shared, "SELECT count(*) FROM task_stats WHERE run_id = 1"), num_rolls);
    assert_int_equal(query_int(shared, "SELECT count(*) FROM task_stats WHERE run_id = 2"), 500);
#undef ROLLS_OF
}

TEST_CASE(young_laps_are_kept)
{
    const char *path = in_folder("kept.db");
    record_kept(path, 100 * INT64_C(365) * 24 * 3600 * WEIR_SECOND);
    assert_int_equal(query_int(path, "SELECT count(*) FROM task_stats"), 500);
}

int main(void)
{
    return test_cases_run(make_folder, remove_folder, NULL, NULL);
}
