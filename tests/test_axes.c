/*
 * Steps, phases and modes are independent axes of the consumer's time. What the laps and the database say by each of
 * them, and by any two, is compared with the raw trace. The trace has the time of each mark and of each item
 * delivered.
 */
#include "tests/stats_fixture.h"
#include "tests/support.h"

#include <weir/span.h>
#include <weir/trace.h>

enum { MAX_PLACES = 512, MAX_NAME = 16 };

/* The time and items of one mode, phase and step. */
typedef struct place {
    char mode[MAX_NAME], phase[MAX_NAME];
    int64_t step; /* WEIR_NO_STEP = none */
    int64_t elapsed_ns;
    int64_t num_items;
} place;

typedef struct places {
    size_t count;
    place all[MAX_PLACES];
} places;

static void add_place(places *to, const char *mode, const char *phase, int64_t step, int64_t elapsed_ns,
                      int64_t num_items)
{
    size_t i = 0;
    while (i < to->count &&
           (to->all[i].step != step || strcmp(to->all[i].mode, mode) != 0 || strcmp(to->all[i].phase, phase) != 0))
        i++;
    REQUIRE(i < MAX_PLACES);
    if (i == to->count) {
        to->all[to->count++].step = step;
        snprintf(to->all[i].mode, MAX_NAME, "%s", mode);
        snprintf(to->all[i].phase, MAX_NAME, "%s", phase);
    }
    to->all[i].elapsed_ns += elapsed_ns;
    to->all[i].num_items += num_items;
}

/* ---- what the trace says ------------------------------------------------------------------------------------- */

typedef struct traced {
    places places;
    char mode[MAX_NAME], phase[MAX_NAME];
    int64_t step, since_ns;
} traced;

static void pass_time(traced *t, int64_t at_ns)
{
    add_place(&t->places, t->mode, t->phase, t->step, at_ns - t->since_ns, 0);
    t->since_ns = at_ns;
}

static void follow_trace(void *self, const weir_trace_batch *batch)
{
    traced *t = self;
    for (size_t i = 0; i < batch->num_records; i++) {
        const weir_trace_record *record = &batch->records[i];
        const char *text = (const char *)(intptr_t)record->value;
        switch ((weir_trace_kind)record->kind) {
        case WEIR_TRACE_ON: t->since_ns = record->time_ns; break;
        case WEIR_TRACE_OFF: pass_time(t, record->time_ns); break;
        case WEIR_TRACE_DELIVER: add_place(&t->places, t->mode, t->phase, t->step, 0, 1); break;
        case WEIR_TRACE_STEP:
            pass_time(t, record->time_ns);
            t->step = record->value;
            break;
        case WEIR_TRACE_PHASE:
            pass_time(t, record->time_ns);
            snprintf(t->phase, MAX_NAME, "%s", text);
            break;
        case WEIR_TRACE_MODE:
            pass_time(t, record->time_ns);
            snprintf(t->mode, MAX_NAME, "%s", text);
            break;
        default: break;
        }
    }
}

/* ---- what the laps say --------------------------------------------------------------------------------------- */

typedef struct reported {
    test_counter steps; /* in laps so far */
    int64_t next_step;
    places places;
    bool has_lap_of_steps;        /* a lap with more than one step */
    int64_t num_laps, num_spans;  /* spans "test/forward" */
    int64_t spans_in_place;       /* of them in the phase and mode in which they were recorded */
    int64_t slots_ns, elapsed_ns; /* of the stage, with one slot: time in all states; of its laps */
} reported;

static void follow_laps(void *self, const weir_subject_lap *lap)
{
    reported *t = self;
    const weir_lap_position *position = &lap->lap->position;
    const weir_task_metrics *task = &lap->metrics.task;
    bool has_step = position->last_step >= position->first_step;
    if (lap->subject == WEIR_SUBJECT_QUEUE && strstr(lap->name, "sink_queue")) {
        t->num_laps++;
        t->has_lap_of_steps |= position->last_step > position->first_step;
        add_place(&t->places, position->mode, position->phase, has_step ? position->first_step : WEIR_NO_STEP,
                  lap->lap->elapsed_ns, (int64_t)lap->metrics.queue.num_items);
    } else if (lap->subject == WEIR_SUBJECT_SPAN && strcmp(lap->name, "test/forward") == 0) {
        t->num_spans += (int64_t)lap->metrics.span.num_spans;
        t->spans_in_place += strcmp(position->phase, "forward") == 0 ? (int64_t)lap->metrics.span.num_spans : 0;
    } else if (lap->subject == WEIR_SUBJECT_STAGE) {
        t->slots_ns += task->busy_ns + task->wait_in_ns + task->wait_thread_ns + task->wait_turn_ns +
                       task->wait_out_ns + task->ended_ns;
        t->elapsed_ns += lap->lap->elapsed_ns;
        REQUIRE(task->busy_ns >= 0 && task->wait_in_ns >= 0 && task->wait_thread_ns >= 0 && task->wait_out_ns >= 0);
        REQUIRE(task->cpu_ns <= task->busy_ns);
    }
}

/* ---- comparing ----------------------------------------------------------------------------------------------- */

enum { BY_MODE = 1, BY_PHASE = 2, BY_STEP = 4 };

/* The time before the first mark is the start-up. */
static void sum_places(const places *from, unsigned by, places *sums)
{
    *sums = (places){ 0 };
    for (size_t i = 0; i < from->count; i++)
        if (!(by & BY_STEP) || from->all[i].step != WEIR_NO_STEP)
            add_place(sums, by & BY_MODE ? from->all[i].mode : "",
                      !(by & BY_PHASE)        ? ""
                      : from->all[i].phase[0] ? from->all[i].phase
                                              : "startup",
                      by & BY_STEP ? from->all[i].step : 0, from->all[i].elapsed_ns, from->all[i].num_items);
}

static void assert_same_places(const places *wanted, const places *got, unsigned by, int64_t tolerance_ns)
{
    static places left, right;
    sum_places(wanted, by, &left);
    sum_places(got, by, &right);
    for (size_t i = 0; i < right.count; i++) /* what is missing is there with the other sign */
        add_place(&left, right.all[i].mode, right.all[i].phase, right.all[i].step, -right.all[i].elapsed_ns,
                  -right.all[i].num_items);
    for (size_t i = 0; i < left.count; i++)
        if (llabs(left.all[i].elapsed_ns) > tolerance_ns || left.all[i].num_items)
            fail_msg("by %u: mode '%s', phase '%s', step %lld: the trace has %lld ns and %lld items more", by,
                     left.all[i].mode, left.all[i].phase, (long long)left.all[i].step,
                     (long long)left.all[i].elapsed_ns, (long long)left.all[i].num_items);
}

static void read_places(const char *path, unsigned by, places *read)
{
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    weir_error error = { 0 };
    weir_grouping grouping = { .by = (by & BY_MODE ? WEIR_BY_MODE : 0u) | (by & BY_PHASE ? WEIR_BY_PHASE : 0u) |
                                     (by & BY_STEP ? WEIR_BY_STEP : 0u),
                               .subjects = 1u << WEIR_SUBJECT_QUEUE };
    assert_int_equal(weir_totals_read(recording, &(weir_filter){ .name = "sink", .run_id = WEIR_LAST_RUN }, &grouping,
                                      &totals, &error),
                     WEIR_OK);
    *read = (places){ 0 };
    for (size_t i = 0; i < totals.of[WEIR_SUBJECT_QUEUE].count; i++) {
        const weir_total *total = &totals.of[WEIR_SUBJECT_QUEUE].all[i];
        add_place(read, total->key.mode, total->key.phase, total->key.bin_step, total->elapsed_ns,
                  (int64_t)total->metrics.queue.num_items);
    }
    weir_totals_free(&totals);
    weir_recording_close(recording);
}

/* ---- the runs ------------------------------------------------------------------------------------------------ */

static uint64_t random_below(uint64_t *random, uint64_t limit)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % limit;
}

static void spend_time(uint64_t *random)
{
    int64_t until_ns = weir_clock_ns() + (int64_t)random_below(random, 40 * WEIR_MICROSECOND);
    while (weir_clock_ns() < until_ns)
        ;
}

/* A slow observer gets laps of several steps, joined. */
static void follow_lap_ends(void *self, const weir_lap *lap)
{
    reported *t = self;
    if (lap->position.last_step < lap->position.first_step || lap->position.last_step < t->next_step)
        return;
    counter_add(&t->steps, (int)(lap->position.last_step + 1 - t->next_step));
    t->next_step = lap->position.last_step + 1;
}

static int64_t next_step;

/* Marks at random, and takes items in between. Returns how many spans it has recorded in the phase "forward". */
static int64_t consume(weir_pipeline *pipeline, uint64_t *random, int num_marks, bool takes_items,
                       reported *each_step)
{
    static const char *const modes[] = { "train", "eval", "test" }, *const phases[] = { "forward", "backward",
                                                                                        "load" };
    weir_span_name *forward = weir_span_name_get("test", "forward");
    int64_t num_spans = 0;
    int num_steps = 0;
    for (int i = 0; i < num_marks; i++) {
        uint64_t which = random_below(random, 8), phase = random_below(random, 3);
        if (which == 0)
            assert_int_equal(weir_pipeline_mark_mode(pipeline, modes[random_below(random, 3)]), WEIR_OK);
        else if (which == 1)
            assert_int_equal(weir_pipeline_mark_step(pipeline, WEIR_NO_STEP), WEIR_OK);
        else if (which < 4)
            assert_int_equal(weir_pipeline_mark_step(pipeline, next_step++), WEIR_OK);
        else
            assert_int_equal(weir_pipeline_mark_phase(pipeline, phases[phase]), WEIR_OK);
        num_steps += which == 2 || which == 3;
        if (each_step && num_steps % 8 == 7) /* all but the last have ended a lap */
            counter_await(&each_step->steps, num_steps - 1);
        if (takes_items && random_below(random, 2))
            next_value(pipeline);
        if (which >= 4 && phase == 0) {
            weir_span_begin(forward);
            spend_time(random);
            weir_span_end();
            num_spans++;
        }
    }
    return num_spans;
}

static void compare_run(uint32_t steps_per_lap, int64_t interval_ns, uint64_t random)
{
    static traced trace;
    static reported laps;
    static places read;
    test_ledger ledger = LEDGER;
    trace = (traced){ .step = WEIR_NO_STEP };
    laps = (reported){ .steps = COUNTER, .next_step = next_step };
    const char *path = in_folder("axes.db");
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observers[] = { { .self = &trace, .trace = follow_trace },
                                  { .self = &laps, .lap = follow_laps, .lap_end = follow_lap_ends },
                                  weir_sqlite_observer(writer) };
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 1000 });
    weir_builder_pipe(builder, &pass_op, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = observers,
                                                                       .num_observers = 3,
                                                                       .stats_interval_ns = interval_ns,
                                                                       .steps_per_lap = steps_per_lap });
    int64_t num_spans = consume(pipeline, &random, 150, true, steps_per_lap == 1 ? &laps : NULL);
    drain_all(pipeline);
    num_spans += consume(pipeline, &random, 20, false, NULL); /* until the pipeline is freed */
    weir_pipeline_free(pipeline);
    close_writer(writer);
    ledger_close(&ledger);

    bool has_steps = steps_per_lap == 1 && !laps.has_lap_of_steps;
    for (unsigned by = 0; by <= (has_steps ? BY_MODE | BY_PHASE | BY_STEP : BY_MODE | BY_PHASE); by++) {
        assert_same_places(&trace.places, &laps.places, by, 0);
        read_places(path, by, &read);
        assert_same_places(&trace.places, &read, by, 500);
    }
    assert_true(steps_per_lap != 1 || !laps.has_lap_of_steps);
    assert_int_equal(laps.slots_ns, laps.elapsed_ns);
    if (laps.num_spans != num_spans)
        fprintf(stderr, "AXES steps %d interval %lld seed: %d of %d\n", (int)steps_per_lap, (long long)interval_ns,
                (int)laps.num_spans, (int)num_spans);
    assert_int_equal(laps.spans_in_place, num_spans);
}

TEST_CASE(figures_by_mode_phase_and_step_are_those_of_the_trace)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        compare_run(0, WEIR_FOREVER, seed);
        compare_run(1, WEIR_FOREVER, seed);
        compare_run(1, 2 * WEIR_MILLISECOND, seed);
        compare_run(3, WEIR_MILLISECOND, seed);
    }
}

/* ---- phases inside steps ------------------------------------------------------------------------------------- */

/* Steps of a training with the phases that docs/tracing.md recommends. */
static void record_steps(const char *path, traced *trace, uint32_t steps_per_lap, int64_t num_steps)
{
    *trace = (traced){ .step = WEIR_NO_STEP };
    test_ledger ledger = LEDGER;
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observers[] = { { .self = trace, .trace = follow_trace }, weir_sqlite_observer(writer) };
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 2 * (uint64_t)num_steps });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = observers,
                                                                       .num_observers = 2,
                                                                       .stats_interval_ns = WEIR_FOREVER,
                                                                       .steps_per_lap = steps_per_lap });
    assert_int_equal(weir_pipeline_mark_mode(pipeline, "train"), WEIR_OK);
    for (int64_t step = 1; step <= num_steps; step++) {
        uint64_t random = (uint64_t)step;
        assert_int_equal(weir_pipeline_mark_step(pipeline, step), WEIR_OK);
        assert_int_equal(weir_pipeline_mark_phase(pipeline, "forward"), WEIR_OK);
        next_value(pipeline);
        spend_time(&random);
        assert_int_equal(weir_pipeline_mark_phase(pipeline, "backward"), WEIR_OK);
        next_value(pipeline);
    }
    assert_int_equal(weir_pipeline_mark_step(pipeline, WEIR_NO_STEP), WEIR_OK);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    close_writer(writer);
    ledger_close(&ledger);
}

TEST_CASE(steps_with_phases_inside_have_their_whole_time)
{
    enum { STEPS = 20 };
    static traced trace;
    static places sums;
    const char *path = in_folder("steps.db");
    record_steps(path, &trace, 1, STEPS);
    sum_places(&trace.places, BY_STEP, &sums);
    assert_int_equal(sums.count, STEPS);
    for (int64_t step = 1; step <= STEPS; step++) {
        char sql[256];
        snprintf(sql, sizeof sql,
                 "SELECT round(sum(elapsed) * 1e9) FROM queue_stats WHERE name LIKE '%%sink_queue' AND first_step = "
                 "%d AND "
                 "last_step = %d",
                 (int)step, (int)step);
        assert_true(llabs(query_int(path, sql) - sums.all[step - 1].elapsed_ns) < WEIR_MICROSECOND);
    }
    weir_recording *recording = open_reader(path);
    weir_totals totals;
    weir_error error = { 0 };
    weir_filter filter = { .name = "sink", .by_step = true, .first_step = 3, .last_step = 5 };
    assert_int_equal(weir_totals_read(recording, &filter, &(weir_grouping){ .subjects = 1u << WEIR_SUBJECT_QUEUE },
                                      &totals, &error),
                     WEIR_OK);
    int64_t wanted_ns = sums.all[2].elapsed_ns + sums.all[3].elapsed_ns + sums.all[4].elapsed_ns;
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].count, 1);
    assert_true(llabs(totals.of[WEIR_SUBJECT_QUEUE].all->elapsed_ns - wanted_ns) < WEIR_MICROSECOND);
    assert_int_equal(totals.of[WEIR_SUBJECT_QUEUE].all->metrics.queue.num_items, 6);
    weir_totals_free(&totals);
    weir_recording_close(recording);
    assert_int_equal(query_int(path, "SELECT sum(num_spans) FROM span_stats WHERE name = 'weir/step'"), STEPS);
}

/* A step with two phases makes no rows of its own. */
TEST_CASE(short_phases_share_laps)
{
    static traced trace;
    const char *path = in_folder("short.db");
    record_steps(path, &trace, 0, 200);
    enum { PLACES = 5 }; /* also the start-up, without and with a mode, and the loop before the first phase */
    assert_in_range(query_int(path, "SELECT count(*) FROM queue_stats WHERE name LIKE '%sink_queue'"), PLACES,
                    PLACES * (1 + (uint64_t)query_int(path, "SELECT ended - started FROM run")));
    assert_int_equal(query_int(path,
                               "SELECT sum(num_items) FROM queue_stats WHERE name LIKE '%sink_queue' AND phase = "
                               "'forward' AND mode = 'train'"),
                     200);
    assert_int_equal(query_int(path, "SELECT max(last_step) FROM queue_stats"), 200);
    assert_int_equal(query_int(path, "SELECT count(*) FROM event_stats"), 0);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
