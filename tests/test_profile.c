/* Profiles: that slots really run at the same time, what the stages are fed with, and what is recorded. */
#include "support.h"

#include <unistd.h>

#include <sqlite3.h>

#include <weir/profile.h>

enum { INPUTS = 5 };

/* The first tasks of a point wait for each other, as many as there are slots: without that many threads they never end. */
typedef struct meeting {
    test_counter arrived;
    atomic_int wanted;
    atomic_ullong highest_value;
} meeting;

static int meet(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    meeting *own = *(meeting *const *)weir_task_config(task);
    counter_add(&own->arrived, 1);
    counter_await(&own->arrived, atomic_load(&own->wanted));
    unsigned long long value = item_value(in), highest = atomic_load(&own->highest_value);
    while (value > highest && !atomic_compare_exchange_weak(&own->highest_value, &highest, value)) {
    }
    weir_item_move(out, in);
    return WEIR_OK;
}

static int refuse(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EDATA, 0, "nothing in it");
}

static const weir_op meet_op = { .name = "meet", .config_size = sizeof(meeting *), .run = meet };
static const weir_op refuse_op = { .name = "refuse", .run = refuse };

static void next_point(void *self, const weir_profile_point *point)
{
    meeting *own = self;
    if (strcmp(point->stage, "meet") != 0)
        return;
    counter_add(&own->arrived, -counter_value(&own->arrived));
    atomic_store(&own->wanted, (int)point->concurrency * 2);
}

static weir_profile_report *profile_of(const weir_profile_stage *stages, size_t num_stages, meeting *own)
{
    weir_profile_options options = { .time_ns = WEIR_MILLISECOND,
                                     .max_concurrency = 4,
                                     .max_inputs = INPUTS,
                                     .progress = next_point,
                                     .progress_self = own };
    weir_profile_report *report;
    weir_error error = { 0 };
    if (weir_profile(stages, num_stages, &options, &report, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return report;
}

static void slots_run_at_the_same_time_on_a_bounded_number_of_inputs(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 100000 };
    meeting own = { .arrived = COUNTER };
    meeting *pointer = &own;
    atomic_init(&own.wanted, 1);
    weir_profile_stage stages[] = { { .op = &numbers_op, .config = &numbers },
                                    { .op = &pass_op, .name = "first" },
                                    { .op = &meet_op, .config = &pointer } };
    weir_profile_report *report = profile_of(stages, 3, &own);
    int num_best = 0, num_meetings = 0;
    for (size_t i = 0; i < report->num_points; i++) {
        const weir_profile_point *point = &report->points[i];
        bool is_first = i == 0 || strcmp(point->stage, report->points[i - 1].stage) != 0;
        assert_int_equal(point->concurrency, is_first ? 1 : 2 * report->points[i - 1].concurrency);
        assert_true(point->num_tasks > 0 && point->num_failures == 0);
        num_best += point->is_best;
        num_meetings += strcmp(point->stage, "meet") == 0;
    }
    assert_int_equal(num_best, 3); /* one of each stage */
    assert_true(num_meetings >= 2);
    assert_true(atomic_load(&own.highest_value) < INPUTS);
    weir_profile_free(report);
    ledger_close(&ledger);
}

static void a_stage_that_always_fails_is_an_error_with_its_reason(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_profile_stage stages[] = { { .op = &numbers_op, .config = &numbers }, { .op = &refuse_op } };
    weir_profile_report *report;
    weir_error error = { 0 };
    assert_int_equal(weir_profile(stages, 2, &(weir_profile_options){ .time_ns = WEIR_MILLISECOND }, &report, &error),
                     WEIR_EDATA);
    assert_null(report);
    assert_non_null(strstr(error.message, "every task of refuse fails: nothing in it"));
    ledger_close(&ledger);
}

static void a_source_without_items_is_an_error(void **state)
{
    (void)state;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger };
    weir_profile_stage stages[] = { { .op = &numbers_op, .config = &numbers }, { .op = &pass_op } };
    weir_profile_report *report;
    weir_error error = { 0 };
    assert_int_equal(weir_profile(stages, 2, NULL, &report, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "gives no items"));
    ledger_close(&ledger);
}

/* What the database has of a profile: names of its own, rates and efficiency as measured. */
static void expect_the_same_from_the_database(const char *path, const weir_profile_report *report)
{
    weir_reader *reader;
    weir_profile_report *read;
    weir_error error = { 0 };
    assert_int_equal(weir_reader_open(path, &reader, NULL), WEIR_OK);
    assert_int_equal(weir_profile_read(reader, WEIR_LAST_RUN, &read, NULL), WEIR_OK);
    assert_int_equal(weir_profile_read(reader, 77, &(weir_profile_report *){ NULL }, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "holds no run 77"));
    weir_reader_close(reader);
    assert_int_equal(read->num_points, report->num_points);
    assert_int_equal(read->start_unix_ns, report->start_unix_ns);
    for (size_t i = 0; i < read->num_points; i++) {
        const weir_profile_point *point = &read->points[i], *as = &report->points[i];
        assert_string_equal(point->stage, as->stage);
        assert_int_equal(point->concurrency, as->concurrency);
        assert_int_equal(point->is_best, as->is_best);
        assert_int_equal(point->num_tasks, as->num_tasks);
        assert_true(point->cpu_time_s == as->cpu_time_s);
        assert_true(point->tasks_per_s == as->tasks_per_s);
        assert_true(point->efficiency == as->efficiency);
    }
    weir_profile_free(read);
}

static void a_report_is_a_run_of_its_own_in_the_database(void **state)
{
    (void)state;
    char path[] = "/tmp/weir-profile-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    weir_profile_point points[] = {
        { .stage = "list", .concurrency = 1, .efficiency = 1 },
        { .stage = "decode", .concurrency = 1, .num_tasks = 10, .elapsed_s = 2, .tasks_per_s = 5, .efficiency = 1 },
        { .stage = "decode",
          .concurrency = 2,
          .is_best = true,
          .num_tasks = 5,
          .elapsed_s = 2,
          .cpu_time_s = 1.5,
          .tasks_per_s = 2.5,
          .efficiency = 0.25 },
        /* another stage of the same name */
        { .stage = "decode", .concurrency = 1, .num_tasks = 4, .elapsed_s = 2, .tasks_per_s = 2, .efficiency = 1 },
    };
    weir_profile_report report = { .points = points, .num_points = 4, .start_unix_ns = WEIR_SECOND };
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_profile_record(&report, path, NULL), WEIR_OK);
    sqlite3 *db;
    sqlite3_stmt *rows;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT count(*), count(DISTINCT run_id), sum(is_best), sum(cpu_time) "
                                        "FROM profile_stats JOIN run USING (run_id)",
                                        -1, &rows, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(rows), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(rows, 0), 8);
    assert_int_equal(sqlite3_column_int(rows, 1), 2);
    assert_int_equal(sqlite3_column_int(rows, 2), 2);
    assert_true(sqlite3_column_double(rows, 3) == 3);
    sqlite3_finalize(rows);
    sqlite3_close(db);
    expect_the_same_from_the_database(path, &report);
    unlink(path);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(slots_run_at_the_same_time_on_a_bounded_number_of_inputs),
        TEST(a_stage_that_always_fails_is_an_error_with_its_reason),
        TEST(a_source_without_items_is_an_error),
        TEST(a_report_is_a_run_of_its_own_in_the_database),
    };
    return RUN_TESTS(tests);
}
