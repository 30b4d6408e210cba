/*
 * Spans, frames, markers and counters of user code: what is counted, in which lap, on which thread, and the dump. No
 * test depends on how long something takes.
 */
#include "tests/support.h"

#include <math.h>
#include <sys/wait.h>

/* ---- what observers are told ---------------------------------------------------------------------------------- */

/* The sums of all laps of a name. */
typedef struct reported_name {
    char name[256], kind[16];
    weir_span_metrics span;
    weir_counter_metrics counter;
    uint64_t num_times, num_laps; /* in the histograms */
} reported_name;

enum { MAX_TOLD = 64 };

typedef struct reported_names {
    reported_name all[MAX_TOLD];
    size_t count;
    uint64_t num_refused_events;
} reported_names;

static reported_name *reported_entry(reported_names *reported, const char *name)
{
    for (size_t i = 0; i < reported->count; i++)
        if (strcmp(reported->all[i].name, name) == 0)
            return &reported->all[i];
    REQUIRE(reported->count < MAX_TOLD);
    reported_name *entry = &reported->all[reported->count++];
    *entry = (reported_name){ .num_laps = 0 };
    snprintf(entry->name, sizeof entry->name, "%s", name);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &entry->span);
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), &entry->counter);
    return entry;
}

static void add_span(reported_name *entry, const weir_subject_lap *lap)
{
    snprintf(entry->kind, sizeof entry->kind, "%s", lap->kind);
    REQUIRE(lap->lap->elapsed_ns >= 0 && lap->metrics.span.times);
    REQUIRE(lap->metrics.span.num_spans > 0 && lap->metrics.span.times->count == lap->metrics.span.num_spans);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &entry->span, &lap->metrics.span);
    entry->num_times += lap->metrics.span.times->count;
    entry->num_laps++;
}

static void on_lap(void *self, const weir_subject_lap *lap)
{
    if (lap->subject == WEIR_SUBJECT_SPAN)
        add_span(reported_entry(self, lap->name), lap);
    if (lap->subject != WEIR_SUBJECT_COUNTER)
        return;
    reported_name *entry = reported_entry(self, lap->name);
    snprintf(entry->kind, sizeof entry->kind, "%s", lap->kind);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_COUNTER), &entry->counter, &lap->metrics.counter);
    entry->num_laps++;
}

static void on_event(void *self, const weir_event *event)
{
    reported_names *reported = self;
    reported->num_refused_events += strcmp(event->name, "span_names_refused") == 0;
}

static weir_observer observe(reported_names *reported)
{
    *reported = (reported_names){ .count = 0 };
    return (weir_observer){ .self = reported, .lap = on_lap, .event = on_event };
}

/* ---- the dump --------------------------------------------------------------------------------------------------- */

static char *dump_text(const weir_span_dump_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(weir_span_dump(out, options), WEIR_OK);
    fclose(out);
    return text;
}

static void reset(void)
{
    free(dump_text(&(weir_span_dump_options){ .reset = true }));
}

/* The number behind `key` in the JSON of a name; NAN = the name is not there, or null. */
static double dumped(const char *name, const char *key)
{
    char wanted[300], *end;
    char *text = dump_text(&(weir_span_dump_options){ .json = true });
    snprintf(wanted, sizeof wanted, "{\"name\": \"%s\", \"category\": ", name);
    const char *row = strstr(text, wanted);
    double value = NAN;
    if (row) {
        snprintf(wanted, sizeof wanted, "\"%s\": ", key);
        const char *at = strstr(row, wanted);
        assert_non_null(at);
        value = strtod(at + strlen(wanted), &end);
        value = end == at + strlen(wanted) ? NAN : value;
    }
    free(text);
    return value;
}

static int count_of(const char *name)
{
    double count = dumped(name, "count");
    return isnan(count) ? 0 : (int)count;
}

/* ---- spans ------------------------------------------------------------------------------------------------------ */

TEST_CASE(spans_nest_and_are_counted_when_they_end)
{
    reset();
    weir_span_name *outer = weir_span_name_get("test", "outer"), *inner = weir_span_name_get("test", "inner");
    assert_ptr_equal(outer, weir_span_name_get("test", "outer"));
    assert_ptr_not_equal(outer, inner);
    weir_span_begin(outer);
    for (int i = 0; i < 3; i++) {
        weir_span_begin(inner);
        weir_span_begin(NULL); /* has a place in the nesting, and no name */
        weir_span_end();
        weir_span_end();
    }
    assert_int_equal(count_of("test/inner"), 3);
    assert_int_equal(count_of("test/outer"), 0);
    weir_span_end();
    weir_span_end(); /* none is open */
    assert_int_equal(count_of("test/outer"), 1);
    assert_true(dumped("test/outer", "total") >= dumped("test/inner", "total"));
    assert_true(dumped("test/inner", "max") >= dumped("test/inner", "min"));
    reset();
    assert_int_equal(count_of("test/inner"), 0);
}

TEST_CASE(spans_deeper_than_the_limit_leave_the_others_intact)
{
    reset();
    weir_span_name *deep = weir_span_name_get("test", "deep");
    for (int i = 0; i < 500; i++)
        weir_span_begin(deep);
    for (int i = 0; i < 500; i++)
        weir_span_end();
    assert_int_equal(count_of("test/deep"), 128);
    weir_span_begin(deep);
    weir_span_end();
    assert_int_equal(count_of("test/deep"), 129);
}

static void *finish_token(void *token)
{
    weir_span_finish(token);
    return NULL;
}

TEST_CASE(token_is_finished_once_on_any_thread)
{
    reset();
    weir_span_token token = weir_span_start(weir_span_name_get("test", "token"));
    assert_int_equal(count_of("test/token"), 0);
    thread_join(thread_start(finish_token, &token)); /* the thread has ended: what it recorded is kept */
    assert_int_equal(count_of("test/token"), 1);
    weir_span_finish(&token);
    weir_span_finish(NULL);
    assert_int_equal(count_of("test/token"), 1);
}

#ifdef WEIR_SPAN
static int leave_early(int times)
{
    WEIR_SPAN(weir_span_name_get("test", "block"));
    for (int i = 0; i < times; i++) {
        WEIR_SPAN(weir_span_name_get("test", "body"));
        if (i == 2)
            return i;
    }
    return times;
}

TEST_CASE(scope_macro_ends_with_its_block)
{
    reset();
    assert_int_equal(leave_early(5), 2);
    assert_int_equal(leave_early(1), 1);
    assert_int_equal(count_of("test/block"), 2);
    assert_int_equal(count_of("test/body"), 4);
}
#endif

TEST_CASE(frames_end_when_the_next_one_begins)
{
    reset();
    weir_span_name *frame = weir_span_name_get("test", "frame");
    weir_frame_end(frame);
    for (int i = 0; i < 4; i++)
        weir_frame_begin(frame, i);
    assert_int_equal(count_of("test/frame"), 3);
    weir_frame_end(frame);
    weir_frame_end(frame);
    assert_int_equal(count_of("test/frame"), 4);
    char *text = dump_text(&(weir_span_dump_options){ .json = true });
    assert_non_null(
        strstr(text, "{\"name\": \"test/frame\", \"category\": \"test\", \"kind\": \"frame\", \"count\": 4,"));
    free(text);
}

TEST_CASE(markers_are_counted)
{
    reset();
    weir_span_name *marker = weir_span_name_get("test", "marker");
    weir_marker(marker, WEIR_MARKER_GLOBAL);
    weir_marker(marker, WEIR_MARKER_TASK);
    weir_marker(NULL, WEIR_MARKER_TASK);
    assert_int_equal(count_of("test/marker"), 2);
    assert_true(dumped("test/marker", "total") == 0);
}

TEST_CASE(prefixes_nest_or_replace_and_end_with_the_pop)
{
    reset();
    weir_span_name *work = weir_span_name_get("test", "work");
    for (int i = 0; i < 2; i++) {
        weir_span_prefix_push("one", true);
        weir_span_prefix_push("two", true);
        weir_span_begin(work);
        weir_span_prefix_push("alone", false);
        weir_marker(work, WEIR_MARKER_THREAD);
        weir_span_prefix_pop();
        weir_span_prefix_pop();
        weir_span_end(); /* has the name that it began with */
        weir_span_begin(work);
        weir_span_end();
        weir_span_prefix_pop();
        weir_span_begin(work);
        weir_span_end();
    }
    weir_span_prefix_pop();
    weir_span_prefix_push("one", false);
    weir_span_prefix_push(NULL, false); /* a level that changes nothing */
    weir_span_begin(work);
    weir_span_end();
    weir_span_prefix_pop();
    weir_span_begin(work);
    weir_span_end();
    weir_span_prefix_pop();
    assert_int_equal(count_of("test/one/two/work"), 2);
    assert_int_equal(count_of("test/alone/work"), 2);
    assert_int_equal(count_of("test/one/work"), 4);
    assert_int_equal(count_of("test/work"), 2);
    for (int i = 0; i < 20; i++)
        weir_span_prefix_push(i < 16 ? "deep" : "deeper", false);
    weir_span_begin(work);
    weir_span_end();
    assert_int_equal(count_of("test/deep/work"), 1);
    for (int i = 0; i < 20; i++)
        weir_span_prefix_pop();
    weir_span_begin(work);
    weir_span_end();
    assert_int_equal(count_of("test/work"), 3);
}

TEST_CASE(nothing_is_recorded_during_a_pause)
{
    reset();
    weir_span_name *across = weir_span_name_get("test", "across"), *within = weir_span_name_get("test", "within");
    weir_counter *counter = weir_counter_get("test", "paused", NULL, 0);
    weir_counter_set(counter, 0, 5);
    weir_span_begin(across);
    weir_set_paused(true);
    weir_set_paused(true);
    weir_span_begin(within);
    weir_counter_set(counter, 0, 50);
    weir_marker(within, WEIR_MARKER_THREAD);
    int64_t paused_ns = weir_clock_ns() + 20 * WEIR_MILLISECOND;
    while (weir_clock_ns() < paused_ns)
        ;
    weir_set_paused(false);
    weir_set_paused(false);
    weir_span_end(); /* began in the pause */
    assert_int_equal(count_of("test/within"), 0);
    assert_true(dumped("test/paused", "max") == 5);
    weir_span_begin(within);
    weir_span_end();
    weir_span_end();
    assert_int_equal(count_of("test/within"), 1);
    assert_int_equal(count_of("test/across"), 1);
}

/* ---- counters --------------------------------------------------------------------------------------------------- */

TEST_CASE(counters_have_last_lowest_highest_and_mean)
{
    static const char *const values[] = { "train", "eval" };
    reset();
    weir_counter *loss = weir_counter_get("test", "loss", values, 2);
    assert_non_null(loss);
    assert_ptr_equal(loss, weir_counter_get("test", "loss", values, 2));
    assert_null(weir_counter_get("test", "loss", values, 1));
    assert_ptr_not_equal(weir_counter_get("test", "loss", NULL, 0), loss); /* another name */
    weir_counter_set(loss, 0, 2.5);
    weir_counter_add(loss, 0, -4);
    weir_counter_set(loss, 0, 0.25);
    weir_counter_set(loss, 2, 1); /* no such value */
    assert_true(dumped("test/loss/train", "count") == 3);
    assert_true(dumped("test/loss/train", "min") == -1.5);
    assert_true(dumped("test/loss/train", "max") == 2.5);
    assert_true(dumped("test/loss/train", "last") == 0.25);
    double mean = dumped("test/loss/train", "average"); /* over time, so between the two */
    assert_true(mean >= -1.5 && mean <= 2.5);
    assert_true(isnan(dumped("test/loss/eval", "last"))); /* never set */
    reset();
    assert_true(dumped("test/loss/train", "count") == 0); /* goes on with its value */
    assert_true(dumped("test/loss/train", "min") == 0.25 && dumped("test/loss/train", "max") == 0.25);
}

TEST_CASE(a_constant_counter_has_its_value_as_mean)
{
    reset();
    weir_counter *constant = weir_counter_get("test", "constant", NULL, 0);
    weir_counter_set(constant, 0, 7);
    weir_counter_set(constant, 0, 7);
    assert_true(fabs(dumped("test/constant", "average") - 7) < 1e-6);
}

TEST_CASE(totals_only_grow_and_have_no_mean)
{
    reset();
    weir_counter *bytes = weir_counter_get_total("test", "bytes", NULL, 0);
    assert_non_null(bytes);
    assert_ptr_equal(bytes, weir_counter_get_total("test", "bytes", NULL, 0));
    assert_null(weir_counter_get("test", "bytes", NULL, 0)); /* of another kind */
    assert_true(dumped("test/bytes", "last") == 0);          /* known from the beginning */
    weir_counter_add(bytes, 0, 100);
    weir_counter_add(bytes, 0, -30);
    weir_counter_set(bytes, 0, 99);
    weir_counter_set(bytes, 0, NAN);
    weir_counter_set(bytes, 0, INFINITY);
    weir_counter_set(bytes, 0, 250);
    weir_counter_set(bytes, 0, 250);
    assert_true(dumped("test/bytes", "count") == 3);
    assert_true(dumped("test/bytes", "last") == 250);
    assert_true(dumped("test/bytes", "total") == 250);
    assert_true(dumped("test/bytes", "average") > 250); /* per second: it is younger than one */
    assert_true(isnan(dumped("test/bytes", "min")) && isnan(dumped("test/bytes", "max")));
    reset();
    weir_counter_add(bytes, 0, 7);
    assert_true(dumped("test/bytes", "total") == 7); /* since then */
    assert_true(dumped("test/bytes", "last") == 257);
}

static void *add_often(void *counter)
{
    for (int i = 0; i < 10000; i++)
        weir_counter_add(counter, 0, 1);
    return NULL;
}

TEST_CASE(counter_adds_of_several_threads_are_not_lost)
{
    pthread_t threads[4];
    weir_counter *counter = weir_counter_get("test", "threads", NULL, 0);
    weir_counter_set(counter, 0, 0);
    for (size_t i = 0; i < LENGTH(threads); i++)
        threads[i] = thread_start(add_often, counter);
    for (size_t i = 0; i < LENGTH(threads); i++)
        thread_join(threads[i]);
    assert_true(dumped("test/threads", "last") == 40000);
}

/* ---- the dump --------------------------------------------------------------------------------------------------- */

static void record_times(const char *name, int times)
{
    weir_span_name *span = weir_span_name_get("sort", name);
    for (int i = 0; i < times; i++) {
        weir_span_begin(span);
        weir_span_end();
    }
}

static bool is_before(const char *text, const char *first, const char *second)
{
    const char *one = strstr(text, first), *other = strstr(text, second);
    assert_true(one && other);
    return one < other;
}

TEST_CASE(dump_sorts_and_keeps_the_order_of_names)
{
    reset();
    record_times("few", 2);
    record_times("many", 9);
    record_times("some", 5);
    char *text = dump_text(NULL);
    assert_true(is_before(text, "sort/few", "sort/many") && is_before(text, "sort/many", "sort/some"));
    free(text);
    text = dump_text(&(weir_span_dump_options){ .sort = WEIR_SPAN_BY_COUNT });
    assert_true(is_before(text, "sort/many", "sort/some") && is_before(text, "sort/some", "sort/few"));
    free(text);
    text = dump_text(&(weir_span_dump_options){ .sort = WEIR_SPAN_BY_COUNT, .ascending = true, .json = true });
    assert_true(is_before(text, "sort/few", "sort/some") && is_before(text, "sort/some", "sort/many"));
    free(text);
    for (weir_span_sort sort = WEIR_SPAN_BY_TOTAL; sort <= WEIR_SPAN_BY_MAX; sort++)
        free(dump_text(&(weir_span_dump_options){ .sort = sort }));
    assert_int_equal(weir_span_dump(stdout, &(weir_span_dump_options){ .sort = (weir_span_sort)9 }), WEIR_EINVAL);
}

/* One item after the other: three tasks before the reset, two after it, of which one in a pipeline that was freed. */
TEST_CASE(dump_groups_by_category_with_stages_and_counters)
{
    test_ledger ledger;
    ledger_init(&ledger);
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 4, .gate = &gate };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &pass_op, NULL, 0, &(weir_stage_options){ .name = "dumped" });
    weir_builder_sink(builder, NULL);
    reset();
    weir_pipeline *pipeline = build(builder, NULL);
    record_times("one", 1);
    weir_counter_set(weir_counter_get("sort", "loss", NULL, 0), 0, 0.25);
    weir_marker(weir_span_name_get("other", "mark"), WEIR_MARKER_THREAD);
    record_times("two", 2);
    gate_let(&gate, 3);
    for (int i = 0; i < 3; i++)
        next_value(pipeline);
    assert_int_equal(count_of("0:1:dumped"), 3);
    char *text = dump_text(NULL);
    assert_true(is_before(text, "stages (ms)", "0:1:dumped") && is_before(text, "0:1:dumped", "sort (ms)"));
    assert_true(is_before(text, "sort/one", "sort/two") && is_before(text, "sort/two", "other (ms)"));
    assert_true(is_before(text, "sort (levels)", "sort/loss"));
    assert_non_null(strstr(text, " level            1         0.25         0.25         0.25         0.25\n"));
    free(text);
    reset();
    assert_int_equal(count_of("0:1:dumped"), 0);
    gate_open(&gate);
    drain_all(pipeline);
    assert_int_equal(count_of("0:1:dumped"), 1);
    weir_pipeline_free(pipeline);
    assert_int_equal(count_of("0:1:dumped"), 1);
    reset();
    assert_int_equal(count_of("0:1:dumped"), 0);
    ledger_close(&ledger);
}

TEST_CASE(json_escapes_names)
{
    reset();
    weir_marker(weir_span_name_get("test", "a\"b\\c\n\xff"), WEIR_MARKER_THREAD);
    char *text = dump_text(&(weir_span_dump_options){ .json = true });
    assert_non_null(strstr(text, "\"test/a\\\"b\\\\c\\\\n\\\\xff\""));
    assert_null(strstr(text, ",]"));
    assert_null(strstr(text, ",\n]"));
    free(text);
}

TEST_CASE(names_must_not_be_empty_or_long)
{
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_null(weir_span_name_get("test", name));
    assert_null(weir_span_name_get(name, "test"));
    assert_null(weir_span_name_get("", "test"));
    assert_null(weir_span_name_get("test", NULL));
    assert_null(weir_counter_get("test", "", NULL, 0));
    assert_non_null(weir_counter_get("test", "is a counter", NULL, 0));
    assert_null(weir_span_name_get("test", "is a counter"));
}

/* ---- laps ------------------------------------------------------------------------------------------------------- */

static weir_span_name *in_operation;

static int record_and_pass(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_span_begin(in_operation);
    weir_item_move(out, in);
    weir_span_end();
    return WEIR_OK;
}

static const weir_op recording_op = { .name = "record", .run = record_and_pass };

static weir_pipeline *build_recording(const test_numbers *numbers, const weir_observer *observer)
{
    weir_builder *builder = builder_with(numbers);
    weir_builder_pipe(builder, &recording_op, NULL, 0, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .threads = 2,
                                                    .stats_interval_ns = WEIR_MILLISECOND,
                                                    .observers = observer,
                                                    .num_observers = 1 });
}

TEST_CASE(every_span_is_in_exactly_one_lap)
{
    enum { ITEMS = 3000 };
    static test_ledger ledger;
    static reported_names reported;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = ITEMS };
    weir_observer observer = observe(&reported);
    in_operation = weir_span_name_get("test", "operation");
    weir_span_name *consumer = weir_span_name_get("test", "consumer"), *marker = weir_span_name_get("test", "mark");
    weir_counter *counter = weir_counter_get("test", "delivered", NULL, 0);
    weir_counter *total = weir_counter_get_total("test", "delivered in all", NULL, 0);
    weir_span_begin(consumer); /* before the pipeline: in no lap */
    weir_span_end();
    weir_counter_set(counter, 0, -1);
    weir_counter_add(total, 0, 1e6);
    reset();
    weir_pipeline *pipeline = build_recording(&numbers, &observer);
    weir_counter_set(counter, 0, 0);
    weir_item item;
    for (int i = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++) {
        weir_pipeline_mark_step(pipeline, i);
        weir_span_begin(consumer);
        weir_item_release(&item);
        weir_counter_add(counter, 0, 1);
        weir_counter_add(total, 0, 2);
        weir_span_end();
        if (i % 1000 == 0) {
            weir_marker(marker, WEIR_MARKER_PROCESS);
            assert_true(count_of("test/consumer") == i + 1); /* a dump takes nothing away from the laps */
        }
    }
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    reported_name *entry = reported_entry(&reported, "test/operation");
    assert_int_equal(entry->span.num_spans, ITEMS);
    assert_int_equal(entry->num_times, ITEMS);
    assert_string_equal(entry->kind, "span");
    assert_int_equal(reported_entry(&reported, "test/mark")->span.num_spans, 3);
    assert_string_equal(reported_entry(&reported, "test/mark")->kind, "marker");
    assert_string_equal(reported_entry(&reported, "weir/step")->kind, "frame");
    assert_int_equal(count_of("test/operation"), ITEMS);
    assert_int_equal(count_of("weir/step"), ITEMS);
    assert_int_equal(reported_entry(&reported, "weir/step")->span.num_spans, ITEMS);
    assert_int_equal(reported_entry(&reported, "test/consumer")->span.num_spans, ITEMS);
    assert_int_equal(count_of("test/consumer"), ITEMS);
    assert_true(reported_entry(&reported, "test/delivered")->counter.min >= -1);
    assert_string_equal(reported_entry(&reported, "test/delivered")->kind, "level");
    assert_true(isnan(reported_entry(&reported, "test/delivered")->counter.increase));
    assert_string_equal(reported_entry(&reported, "test/delivered in all")->kind, "total");
    assert_true(reported_entry(&reported, "test/delivered in all")->counter.increase == 2 * ITEMS);
    assert_true(isnan(reported_entry(&reported, "test/delivered in all")->counter.value_ns));
    assert_true(dumped("test/delivered", "last") == ITEMS);
}

TEST_CASE(step_lasts_until_the_next_step)
{
    static test_ledger ledger;
    static reported_names reported;
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_observer observer = observe(&reported);
    weir_pipeline *pipeline = build_recording(&numbers, &observer);
    weir_pipeline_mark_step(pipeline, 1);
    weir_pipeline_mark_step(pipeline, 2);
    weir_pipeline_mark_phase(pipeline, "eval");
    weir_pipeline_mark_phase(pipeline, "train");
    weir_pipeline_mark_step(pipeline, 3);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_int_equal(reported_entry(&reported, "weir/step")->span.num_spans, 3); /* the end of the run ends step 3 */
}

/* The steps of the laps, in their order. */
typedef struct reported_steps {
    test_counter num_laps, num_with_steps;
    char text[256];
} reported_steps;

static void on_lap_end(void *self, const weir_lap *lap)
{
    reported_steps *reported = self;
    size_t length = strlen(reported->text);
    counter_add(&reported->num_laps, 1);
    if (lap->position.last_step < lap->position.first_step)
        return;
    snprintf(reported->text + length, sizeof reported->text - length, "%d-%d ", (int)lap->position.first_step,
             (int)lap->position.last_step);
    counter_add(&reported->num_with_steps, 1);
}

static const char *laps_of_steps(uint32_t steps_per_lap, int num_steps, reported_steps *reported)
{
    static test_ledger ledger;
    test_gate gate = GATE;
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    *reported = (reported_steps){ .num_laps = COUNTER, .num_with_steps = COUNTER };
    weir_observer observer = { .self = reported, .lap_end = on_lap_end };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .stats_interval_ns = WEIR_FOREVER,
                                                                       .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .steps_per_lap = steps_per_lap });
    for (int i = 1; i <= num_steps; i++) {
        weir_pipeline_mark_step(pipeline, i);
        if (i == 1 && steps_per_lap)
            counter_await(&reported->num_laps, 1); /* the start-up has ended */
        else if (steps_per_lap && (i - 1) % (int)steps_per_lap == 0)
            counter_await(&reported->num_with_steps, (i - 1) / (int)steps_per_lap);
    }
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return reported->text;
}

TEST_CASE(steps_end_laps_when_asked_to)
{
    reported_steps reported;
    /* the last one lasts into the phase "finish" */
    assert_string_equal(laps_of_steps(1, 4, &reported), "1-1 2-2 3-3 4-4 4-4 ");
    assert_string_equal(laps_of_steps(2, 5, &reported), "1-2 3-4 5-5 5-5 ");
    assert_string_equal(laps_of_steps(0, 3, &reported), "1-3 3-3 ");
}

TEST_CASE(spans_of_pool_threads_belong_to_their_pipeline)
{
    static test_ledger ledgers[2];
    static reported_names reported[2];
    test_gate gate = GATE;
    weir_pipeline *pipelines[2];
    weir_observer observers[2] = { observe(&reported[0]), observe(&reported[1]) };
    in_operation = weir_span_name_get("test", "of its own");
    weir_span_name *foreign = weir_span_name_get("test", "foreign");
    test_numbers numbers[2] = { { .ledger = &ledgers[0], .count = 50, .gate = &gate },
                                { .ledger = &ledgers[1], .count = 70, .gate = &gate } };
    for (int i = 0; i < 2; i++) {
        ledger_init(&ledgers[i]);
        pipelines[i] = build_recording(&numbers[i], &observers[i]);
    }
    weir_span_begin(foreign);
    weir_span_end();
    gate_open(&gate);
    for (int i = 1; i >= 0; i--) {
        drain_all(pipelines[i]);
        weir_pipeline_free(pipelines[i]);
        ledger_close(&ledgers[i]);
    }
    assert_int_equal(reported_entry(&reported[0], "test/of its own")->span.num_spans, 50);
    assert_int_equal(reported_entry(&reported[1], "test/of its own")->span.num_spans, 70);
    assert_int_equal(reported_entry(&reported[0], "test/foreign")->span.num_spans, 1); /* the oldest */
    assert_int_equal(reported_entry(&reported[1], "test/foreign")->span.num_spans, 0);
}

/* ---- traces ------------------------------------------------------------------------------------------------------ */

typedef struct traced {
    int num_spans, num_overlapping, num_markers, num_counts;
    double last_count;
    bool is_outermost;
} traced;

static void on_trace(void *self, const weir_trace_batch *batch)
{
    traced *seen = self;
    for (size_t i = 0; i < batch->num_records; i++) {
        const weir_trace_record *record = &batch->records[i];
        const char *text = (const char *)(uintptr_t)record->item;
        if (record->kind < WEIR_TRACE_NAME || !text || strncmp(text, "traced/", 7) != 0)
            continue;
        REQUIRE(record->node == 6 && (record->number > 0) == (record->kind != WEIR_TRACE_COUNTER));
        bool begins = record->kind == WEIR_TRACE_SPAN_BEGIN, ends = record->kind == WEIR_TRACE_SPAN_END;
        if (begins || ends)
            seen->is_outermost &= record->detail || record->value == 0;
        if (ends)
            ++*(record->detail ? &seen->num_overlapping : &seen->num_spans);
        seen->num_markers += record->kind == WEIR_TRACE_MARKER && record->detail == WEIR_MARKER_TASK;
        seen->num_counts += record->kind == WEIR_TRACE_COUNTER;
        if (record->kind == WEIR_TRACE_COUNTER)
            memcpy(&seen->last_count, &record->value, sizeof seen->last_count);
    }
}

TEST_CASE(user_code_is_in_the_raw_record_while_it_is_on)
{
    static test_ledger ledger;
    test_gate gate = GATE;
    traced seen = { .is_outermost = true };
    weir_observer observer = { .self = &seen, .trace = on_trace };
    weir_span_name *name = weir_span_name_get("traced", "span");
    weir_counter *counter = weir_counter_get("traced", "count", NULL, 0);
    in_operation = weir_span_name_get("traced", "operation");
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 5, .gate = &gate };
    weir_pipeline *pipeline = build_recording(&numbers, &observer);
    for (int i = 0; i < 2; i++) { /* on, then off */
        weir_span_begin(name);
        weir_span_end();
        weir_span_token token = weir_span_start(name);
        thread_join(thread_start(finish_token, &token));
        weir_marker(name, WEIR_MARKER_TASK);
        weir_counter_set(counter, 0, 2.5 - i);
        assert_int_equal(weir_pipeline_trace(pipeline, i != 0), WEIR_OK);
    }
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_int_equal(seen.num_spans, 1 + 5);
    assert_int_equal(seen.num_overlapping, 1);
    assert_int_equal(seen.num_markers, 1);
    assert_int_equal(seen.num_counts, 1);
    assert_true(seen.last_count == 2.5 && seen.is_outermost);
}

/* The parts of spans and frames in this category: a record from the begin (value) to the end (time_ns) of each. */
typedef struct parts {
    weir_trace_record all[4096], open[8192];
    size_t count, num_open;
    const char *category;
    test_counter num_begun;
} parts;

static bool ends_part(const weir_trace_record *open, const weir_trace_record *end)
{
    if (end->detail)
        return open->detail && open->value == end->value;
    return !open->detail && open->number == end->number && open->value >= end->value;
}

/* It is the end of the latest one; of the others, recording was switched off before their end. */
static void end_parts(parts *seen, const weir_trace_record *end)
{
    bool is_latest = true;
    for (size_t i = seen->num_open; i-- > 0;) {
        weir_trace_record part = seen->open[i];
        if (!ends_part(&part, end))
            continue;
        memmove(&seen->open[i], &seen->open[i + 1], (--seen->num_open - i) * sizeof part);
        part.value = part.time_ns;
        part.time_ns = end->time_ns;
        if (is_latest && seen->count < LENGTH(seen->all))
            seen->all[seen->count++] = part;
        is_latest = false;
    }
}

static void collect_parts(void *self, const weir_trace_batch *batch)
{
    parts *seen = self;
    for (size_t i = 0; i < batch->num_records; i++) {
        const weir_trace_record *record = &batch->records[i];
        const char *text = (const char *)(uintptr_t)record->item;
        if (record->kind == WEIR_TRACE_SPAN_END)
            end_parts(seen, record);
        if (record->kind != WEIR_TRACE_SPAN_BEGIN || strncmp(text, seen->category, strlen(seen->category)) != 0)
            continue;
        REQUIRE(seen->num_open < LENGTH(seen->open));
        seen->open[seen->num_open++] = *record;
        counter_add(&seen->num_begun, 1);
    }
}

/* Not recording yet. */
static weir_pipeline *build_parts(parts *seen, const test_numbers *numbers, const char *category)
{
    *seen = (parts){ .category = category, .num_begun = COUNTER };
    ledger_init(numbers->ledger);
    weir_builder *builder = builder_with(numbers);
    weir_observer observer = { .self = seen, .trace = collect_parts };
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){
                              .threads = 1, .observers = &observer, .num_observers = 1, .trace_off = true });
}

/* Copies the records of this name, in their order. */
static size_t parts_of(const parts *seen, const char *name, weir_trace_record *found, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp((const char *)(uintptr_t)seen->all[i].item, name) == 0) {
            assert_true(count < room);
            found[count++] = seen->all[i];
        }
    return count;
}

/* Spans may be open when recording is switched. Only their part that lies in the recording is recorded. */
TEST_CASE(spans_are_recorded_as_far_as_recording_is_on)
{
    static test_ledger ledger;
    static parts seen;
    weir_trace_record part[4];
    test_gate gate = GATE;
    weir_span_name *before = weir_span_name_get("switched", "before"), *during = weir_span_name_get("switched", "on");
    weir_span_name *during_off = weir_span_name_get("switched", "off");
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_pipeline *pipeline = build_parts(&seen, &numbers, "switched/");
    weir_span_begin(before);
    weir_span_token token = weir_span_start(weir_span_name_get("switched", "token"));
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    weir_span_finish(&token);
    weir_span_begin(during);
    weir_span_end();
    weir_frame_begin(weir_span_name_get("switched", "frame"), 7);
    weir_frame_end(weir_span_name_get("switched", "frame"));
    weir_span_begin(weir_span_name_get("switched", "after"));
    weir_set_paused(true);
    weir_span_begin(during_off);
    weir_span_end();
    weir_set_paused(false);
    assert_int_equal(weir_pipeline_trace(pipeline, false), WEIR_OK);
    weir_span_begin(during_off);
    weir_span_end();
    weir_span_end();
    weir_span_end();
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_int_equal(parts_of(&seen, "switched/on", part, LENGTH(part)), 1);
    assert_int_equal(parts_of(&seen, "switched/frame", part, LENGTH(part)), 1);
    assert_true(part[0].detail == 2 && part[0].number == 7);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.num_open, 1); /* "after" */
    assert_string_equal((const char *)(uintptr_t)seen.open[0].item, "switched/after");
}

TEST_CASE(frames_follow_each_other_without_overlapping)
{
    static test_ledger ledger;
    static parts seen;
    weir_trace_record part[4];
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_pipeline *pipeline = build_parts(&seen, &numbers, "following/");
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    for (int i = 0; i < 4; i++)
        weir_frame_begin(weir_span_name_get("following", "frame"), i);
    weir_frame_end(weir_span_name_get("following", "frame"));
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_int_equal(parts_of(&seen, "following/frame", part, LENGTH(part)), 4);
    for (int i = 0; i < 3; i++)
        assert_true(part[i].time_ns <= part[i + 1].value || part[i].time_ns == part[i].value);
}

/* The child has no thread that would deliver records to the pipelines of its parent. */
static int record_in_child(parts *seen)
{
    static test_ledger ledger;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_pipeline *pipeline = build_parts(seen, &numbers, "forked/");
    weir_pipeline_trace(pipeline, true);
    weir_span_begin(weir_span_name_get("forked", "span"));
    weir_span_end();
    weir_span_token token = weir_span_start(weir_span_name_get("forked", "token"));
    weir_span_finish(&token);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    return (int)seen->count;
}

static void *add_until_end(void *ends)
{
    weir_counter *counter = weir_counter_get("forked", "counter", NULL, 0);
    while (!atomic_load((atomic_bool *)ends))
        weir_counter_add(counter, 0, 1);
    return NULL;
}

/* A thread that holds a counter at the moment of the fork is not in the child. */
TEST_CASE(a_forked_child_sets_counters_that_others_are_setting)
{
    static atomic_bool ends;
    int status = 0;
    weir_counter *counter = weir_counter_get("forked", "counter", NULL, 0);
    pthread_t thread = thread_start(add_until_end, &ends);
    for (int i = 0; i < 200 && status == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* would hang */
            weir_counter_set(counter, 0, 1);
            _exit(weir_counter_get("forked", "another", NULL, 0) == NULL);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
    }
    atomic_store(&ends, true);
    thread_join(thread);
    assert_int_equal(status, 0);
}

TEST_CASE(a_forked_child_records_for_pipelines_of_its_own)
{
    static test_ledger ledger;
    static parts seen;
    int status;
#ifdef SANITIZED_THREADS
    skip();
#endif
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_pipeline *pipeline = build_parts(&seen, &numbers, "forked/");
    assert_int_equal(weir_pipeline_trace(pipeline, true), WEIR_OK);
    weir_span_begin(weir_span_name_get("forked", "before"));
    pid_t child = fork();
    if (child == 0)
        _exit(record_in_child(&seen));
    assert_int_equal(waitpid(child, &status, 0), child);
    weir_span_end();
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_int_equal(seen.count, 1);
}

typedef struct busy_thread {
    atomic_bool ends;
    atomic_int rounds, allowed; /* so that the ring cannot be full */
} busy_thread;

static void *nest_until_end(void *self)
{
    busy_thread *busy = self;
    while (!atomic_load(&busy->ends)) {
        if (atomic_load(&busy->rounds) >= atomic_load(&busy->allowed)) {
            sched_yield();
            continue;
        }
        weir_span_begin(weir_span_name_get("busy", "outer"));
        weir_span_begin(weir_span_name_get("busy", "inner"));
        weir_span_end();
        weir_span_token token = weir_span_start(weir_span_name_get("busy", "token"));
        weir_span_finish(&token);
        weir_span_end();
        atomic_fetch_add(&busy->rounds, 1);
    }
    return NULL;
}

TEST_CASE(records_of_each_thread_are_in_order_although_recording_is_switched)
{
    static test_ledger ledger;
    static parts seen;
    static weir_trace_record part[LENGTH(seen.all)];
    enum { THREADS = 2, SWITCHES = 20, ROUNDS = 40 };
    static busy_thread busy;
    pthread_t threads[THREADS];
    test_gate gate = GATE;
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_pipeline *pipeline = build_parts(&seen, &numbers, "busy/inner");
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start(nest_until_end, &busy);
    for (int i = 0; i < SWITCHES; i++) {
        int before = atomic_fetch_add(&busy.allowed, ROUNDS);
        assert_int_equal(weir_pipeline_trace(pipeline, i % 2 == 0), WEIR_OK);
        while (atomic_load(&busy.rounds) < before + ROUNDS / 2)
            sched_yield();
    }
    atomic_store(&busy.ends, true);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    size_t count = parts_of(&seen, "busy/inner", part, LENGTH(part));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) /* value: when it began */
        for (size_t j = 0; j < i; j++)
            assert_true(part[i].number != part[j].number || part[i].value >= part[j].time_ns);
}

static atomic_bool recording_ends;

static void *record_until_end(void *name)
{
    while (!atomic_load(&recording_ends)) {
        weir_span_begin(name);
        weir_span_end();
    }
    return NULL;
}

TEST_CASE(foreign_threads_record_while_traced_pipelines_come_and_go)
{
    static test_ledger ledger;
    traced seen = { .is_outermost = true };
    weir_observer observer = { .self = &seen, .trace = on_trace };
    atomic_store(&recording_ends, false);
    pthread_t thread = thread_start(record_until_end, weir_span_name_get("traced", "foreign"));
    for (int i = 0; i < 20; i++) {
        ledger_init(&ledger);
        test_numbers numbers = { .ledger = &ledger, .count = 100 };
        weir_pipeline *pipeline = build_recording(&numbers, &observer);
        drain_all(pipeline);
        weir_pipeline_free(pipeline);
        ledger_close(&ledger);
    }
    atomic_store(&recording_ends, true);
    thread_join(thread);
    assert_true(seen.is_outermost);
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

enum { RECORDED = 20000 };

static void *record_many(void *name)
{
    for (int i = 0; i < RECORDED; i++) {
        weir_span_begin(name);
        weir_span_end();
    }
    return NULL;
}

TEST_CASE(dumps_during_recording_lose_nothing)
{
    pthread_t threads[3];
    weir_span_name *name = weir_span_name_get("test", "concurrent");
    reset();
    for (size_t i = 0; i < LENGTH(threads); i++)
        threads[i] = thread_start(record_many, name);
    int before = 0;
    for (int i = 0; i < 50; i++) {
        int now = count_of("test/concurrent");
        assert_true(now >= before);
        before = now;
    }
    for (size_t i = 0; i < LENGTH(threads); i++)
        thread_join(threads[i]);
    assert_int_equal(count_of("test/concurrent"), LENGTH(threads) * RECORDED);
}

/* The last test: it uses up the names of the process. */
TEST_CASE(too_many_names_are_counted_together_and_reported)
{
    static test_ledger ledger;
    static reported_names reported;
    test_gate gate = GATE;
    char name[32];
    ledger_init(&ledger);
    test_numbers numbers = { .ledger = &ledger, .count = 1, .gate = &gate };
    weir_observer observer = observe(&reported);
    weir_pipeline *pipeline = build_recording(&numbers, &observer);
    enum { NUM_TOO_MANY = 10, NUM_ASKED = WEIR_SPAN_MAX_NAMES + NUM_TOO_MANY };
    static weir_span_name *names[NUM_ASKED];
    for (int i = 0; i < NUM_ASKED; i++) {
        snprintf(name, sizeof name, "number %d", i);
        assert_non_null(names[i] = weir_span_name_get("many", name));
    }
    weir_span_name *others = names[NUM_ASKED - 1];
    int num_refused = 0;
    for (int i = 0; i < NUM_ASKED; i++)
        if (names[i] == others) {
            weir_marker(others, WEIR_MARKER_THREAD);
            num_refused++;
        }
    assert_true(num_refused >= NUM_TOO_MANY);
    assert_int_equal(count_of("weir/others"), num_refused);
    assert_null(weir_counter_get("many", "counter", NULL, 0));
    assert_true(logged_lines(WEIR_LOG_WARNING) >= 1);
    gate_open(&gate);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    assert_true(reported.num_refused_events >= 1);
    char *text = dump_text(&(weir_span_dump_options){ .json = true });
    assert_null(strstr(text, "\"refused_names\": 0"));
    free(text);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
