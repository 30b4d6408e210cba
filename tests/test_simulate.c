/* The metrics of each pattern of the reading guide are as the guide says. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/query.h>

#include "tests/program.h"

/* What one run recorded, added up. */
typedef struct figures {
    double busy, wait_in, wait_thread, wait_out; /* shares of the decode stage's slot time */
    double max_time;
    double src_occupied, sink_occupied;
    char slowest[64]; /* the label of the item that took longest */
} figures;

static double value_of(const weir_total *total, const char *measure)
{
    return weir_measure_of(total->subject, measure, &total->metrics, total->elapsed_ns);
}

/* False: nothing was recorded, as the time was over before the first item. */
static bool read_figures(const char *database, figures *seen)
{
    weir_recording *recording;
    weir_totals totals;
    weir_error error = { 0 };
    assert_int_equal(weir_recording_open(database, &recording, &error), WEIR_OK);
    assert_int_equal(weir_totals_read(recording, NULL, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, &error),
                     WEIR_OK);
    const weir_total_list *stages = &totals.of[WEIR_SUBJECT_STAGE], *queues = &totals.of[WEIR_SUBJECT_QUEUE];
    assert_int_equal(stages->count, 1);
    *seen = (figures){ .busy = value_of(&stages->all[0], "busy_share"),
                       .wait_in = value_of(&stages->all[0], "wait_in_share"),
                       .wait_thread = value_of(&stages->all[0], "wait_thread_share"),
                       .wait_out =
                           value_of(&stages->all[0], "wait_out_share") + value_of(&stages->all[0], "wait_turn_share"),
                       .max_time = value_of(&stages->all[0], "max_time") };
    for (size_t i = 0; i < queues->count; i++) {
        if (strcmp(queues->all[i].key.name, "0:0:src_queue") == 0) {
            seen->src_occupied = value_of(&queues->all[i], "occupancy_rate");
        }
        if (strcmp(queues->all[i].key.name, "0:2:sink_queue") == 0)
            seen->sink_occupied = value_of(&queues->all[i], "occupancy_rate");
    }
    weir_totals_free(&totals);

    weir_query *query;
    const weir_record *record;
    assert_int_equal(weir_query_begin(recording, WEIR_RECORD_ITEM,
                                      &(weir_filter){ .longest_first = true, .limit = 1 }, &query, &error),
                     WEIR_OK);
    bool has_items = weir_query_next(query, &record, &error) == WEIR_OK;
    snprintf(seen->slowest, sizeof seen->slowest, "%s", has_items ? record->item.label : "");
    weir_query_end(query);
    weir_recording_close(recording);
    return has_items;
}

static bool simulate(const char *pattern, double seconds, figures *seen)
{
    char *work = make_folder(), *database = path_in(work, "simulated.db"), span[16];
    snprintf(span, sizeof span, "%.1f", seconds);
    char *argv[] = { (char *)(uintptr_t)program_path("SIMULATE"),
                     (char *)(uintptr_t) "--pattern",
                     (char *)(uintptr_t)pattern,
                     (char *)(uintptr_t) "--seconds",
                     span,
                     (char *)(uintptr_t) "--db-path",
                     database,
                     NULL };
    struct program program;
    program_run(&program, work, argv);
    assert_string_equal(program.err, "");
    assert_int_equal(program.status, 0);
    bool has_items = read_figures(database, seen);
    print_message("%s: busy %.2f, waiting for input %.2f, a thread %.2f, room %.2f; occupied %.2f, %.2f\n", pattern,
                  seen->busy, seen->wait_in, seen->wait_thread, seen->wait_out, seen->src_occupied,
                  seen->sink_occupied);
    program_free(&program);
    free(database);
    remove_folder(work);
    return has_items;
}

/* Other programs on the machine change the figures: a pattern that does not show is run again, TEST_TRIES times in all. */
static void assert_shows(const char *pattern, bool (*shows)(const figures *seen))
{
    figures seen;
    int number = 0;
    bool is_right;
    do
        is_right = simulate(pattern, 1.5, &seen) && shows(&seen);
    while (!test_try_was_right(++number, is_right, pattern));
}

static bool shows_source(const figures *seen)
{
    return seen->wait_in > 0.2 && seen->wait_in > seen->wait_out && seen->src_occupied < 0.6;
}

TEST_CASE(behind_a_slow_source_slots_wait_for_input_and_its_queue_is_empty)
{
    assert_shows("source", shows_source);
}

static bool shows_decode(const figures *seen)
{
    return seen->busy > 0.5 && seen->src_occupied > 0.5 && seen->sink_occupied < 0.5;
}

TEST_CASE(a_slow_decode_stage_is_busy_and_the_queue_before_it_full)
{
    assert_shows("decode", shows_decode);
}

static bool shows_sink(const figures *seen)
{
    return seen->wait_out > seen->wait_in && seen->wait_out > seen->wait_thread && seen->src_occupied > 0.5 &&
           seen->sink_occupied > 0.5;
}

TEST_CASE(before_a_slow_consumer_slots_wait_for_room_and_queues_are_full)
{
    assert_shows("sink", shows_sink);
}

static bool shows_threads(const figures *seen)
{
    return seen->wait_thread > 0.5 && seen->sink_occupied < 0.6;
}

TEST_CASE(with_too_few_threads_slots_wait_for_them)
{
    assert_shows("threads", shows_threads);
}

static bool shows_slow_file(const figures *seen)
{
    return seen->max_time > 0.9 && strcmp(seen->slowest, "videos/clip-000150.mp4") == 0 && seen->wait_out > 0.05 &&
           seen->sink_occupied < 0.5;
}

TEST_CASE(one_slow_file_shows_in_the_longest_time_and_holds_up_the_others)
{
    assert_shows("slow-file", shows_slow_file);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
