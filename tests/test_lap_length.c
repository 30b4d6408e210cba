/*
 * No derived figure changes with the length of the laps. One run is recorded with laps of 20 ms. The same laps are
 * joined into laps of 1 s, and into one for each phase. Held constant: one pipeline of three nodes, phases that
 * change on whole seconds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/recording.h"

#include "common/random.h"

enum { NUM_LAPS = 270, LAPS_PER_S = 50, SOURCE_ENDS = 103, NUM_HISTOGRAMS = 3 };

#define LAP_NS (INT64_C(1000000000) / LAPS_PER_S)

/* ---- joining ------------------------------------------------------------------------------------------------------ */

static const struct {
    weir_subject subject;
    const char *name, *kind;
} subjects[] = {
    { WEIR_SUBJECT_FLOW, "0:0:src", "source" },        { WEIR_SUBJECT_QUEUE, "0:0:src_queue", "queue" },
    { WEIR_SUBJECT_STAGE, "0:1:decode[10]", "stage" }, { WEIR_SUBJECT_QUEUE, "0:1:decode[10]_queue", "queue" },
    { WEIR_SUBJECT_FLOW, "0:2:sink", "sink" },         { WEIR_SUBJECT_QUEUE, "0:2:sink_queue", "queue" },
    { WEIR_SUBJECT_PROCESS, "0:process", "process" },  { WEIR_SUBJECT_SPAN, "wire/read", "span" },
    { WEIR_SUBJECT_SPAN, "weir/step", "span" },        { WEIR_SUBJECT_SPAN, "zero/now", "marker" },
    { WEIR_SUBJECT_COUNTER, "user/loss", "level" },    { WEIR_SUBJECT_COUNTER, "user/bytes", "total" },
};

enum { NUM_SUBJECTS = sizeof subjects / sizeof subjects[0] };

typedef struct joined {
    weir_subject_lap lap;
    weir_histogram times[NUM_HISTOGRAMS];
    bool is_there; /* in the laps since the last one that was written */
} joined;

/* A database, and the laps that are not in it yet. */
typedef struct recording {
    weir_sqlite_writer *writer;
    joined all[NUM_SUBJECTS];
    weir_lap lap;
    unsigned num; /* laps in it */
} recording;

static const char *phase_of(unsigned lap)
{
    return lap < 2 * LAPS_PER_S ? "warm" : lap < 4 * LAPS_PER_S ? "train" : "late";
}

static void point_to_times(joined *to)
{
    weir_metrics *m = &to->lap.metrics;
    switch (to->lap.subject) {
    case WEIR_SUBJECT_STAGE:
    case WEIR_SUBJECT_FLOW: m->task.run_times = &to->times[0]; break;
    case WEIR_SUBJECT_SPAN: m->span.times = &to->times[0]; break;
    case WEIR_SUBJECT_QUEUE:
        m->queue.put_times = &to->times[0];
        m->queue.get_times = &to->times[1];
        m->queue.latencies = &to->times[2];
        break;
    default: break;
    }
}

static void join(recording *to, size_t i, const joined *from)
{
    joined *all = &to->all[i];
    if (!all->is_there) {
        *all = *from;
    } else {
        weir_metrics_add(weir_subject_metrics(from->lap.subject), &all->lap.metrics, &from->lap.metrics);
        for (int j = 0; j < NUM_HISTOGRAMS; j++)
            weir_histogram_add(&all->times[j], &from->times[j]);
    }
    point_to_times(all);
    all->is_there = true;
}

static void write_laps(recording *to)
{
    weir_observer observer = weir_sqlite_observer(to->writer);
    for (size_t i = 0; i < NUM_SUBJECTS; i++) {
        to->all[i].lap.lap = &to->lap;
        if (to->all[i].is_there)
            observer.lap(observer.self, &to->all[i].lap);
        to->all[i].is_there = false;
    }
    if (observer.lap_end)
        observer.lap_end(observer.self, &to->lap);
    to->num = 0;
    to->lap.elapsed_ns = 0;
}

/* ---- the run ------------------------------------------------------------------------------------------------------ */

static int64_t below(uint64_t *draw, int64_t limit)
{
    return (int64_t)(weir__random_next(draw) % (uint64_t)limit);
}

static void draw_times(uint64_t *draw, uint64_t num, weir_histogram *times, int64_t *sum_ns, int64_t *min_ns,
                       int64_t *max_ns)
{
    for (uint64_t i = 0; i < num; i++) {
        int64_t time_ns = 1 + below(draw, 5000000);
        weir_histogram_record(times, time_ns);
        *sum_ns += time_ns;
        *min_ns = time_ns < *min_ns ? time_ns : *min_ns;
        *max_ns = time_ns > *max_ns ? time_ns : *max_ns;
    }
}

static void draw_task(uint64_t *draw, unsigned lap, bool is_source, int64_t slots, weir_task_metrics *m,
                      weir_histogram *times)
{
    int64_t left_ns = slots * LAP_NS;
    if (is_source && lap >= SOURCE_ENDS) {
        m->ended_ns = left_ns;
        return;
    }
    m->busy_ns = below(draw, left_ns);
    m->wait_in_ns = is_source ? 0 : below(draw, left_ns - m->busy_ns + 1);
    m->wait_thread_ns = below(draw, left_ns - m->busy_ns - m->wait_in_ns + 1);
    m->wait_out_ns = left_ns - m->busy_ns - m->wait_in_ns - m->wait_thread_ns;
    m->cpu_ns = below(draw, m->busy_ns + 1);
    m->num_tasks = (uint64_t)below(draw, 8);
    m->num_failures = m->num_tasks ? (uint64_t)below(draw, 2) : 0;
    m->failed_ns = (int64_t)m->num_failures * 1000;
    m->num_work = 3 * m->num_tasks;
    draw_times(draw, m->num_tasks - m->num_failures, times, &m->success_ns, &m->min_ns, &m->max_ns);
}

static void draw_queue(uint64_t *draw, unsigned lap, bool is_first, weir_queue_metrics *m, weir_histogram *times)
{
    bool has_ended = is_first && lap > SOURCE_ENDS;
    m->ended_ns = has_ended ? LAP_NS : is_first && lap == SOURCE_ENDS ? LAP_NS / 3 : 0;
    if (has_ended)
        return;
    m->num_put = m->num_items = (uint64_t)below(draw, 8);
    m->occupied_ns = below(draw, LAP_NS - m->ended_ns);
    m->depth_ns = 2.0 * (double)m->occupied_ns;
    m->bytes_ns = 1000.0 * (double)m->occupied_ns;
    m->max_depth = 2;
    m->max_bytes = 2000;
    draw_times(draw, m->num_put, &times[0], &m->put_ns, &m->min_put_ns, &m->max_put_ns);
    draw_times(draw, m->num_items, &times[1], &m->get_ns, &m->min_get_ns, &m->max_get_ns);
    draw_times(draw, m->num_items, &times[2], &m->latency_ns, &m->min_latency_ns, &m->max_latency_ns);
}

/* False: it does not occur in that lap. */
static bool draw_span(uint64_t *draw, unsigned lap, size_t i, weir_span_metrics *m, weir_histogram *times)
{
    const char *name = subjects[i].name;
    bool occurs = strcmp(name, "wire/read") == 0  ? lap == 120
                  : strcmp(name, "zero/now") == 0 ? lap == 220
                                                  : lap % 3 == 0 && lap >= 20;
    if (!occurs)
        return false;
    m->num_spans = strcmp(name, "weir/step") == 0 ? 1 + (uint64_t)below(draw, 3) : 1;
    draw_times(draw, m->num_spans, times, &m->total_ns, &m->min_ns, &m->max_ns);
    return true;
}

static bool draw_counter(uint64_t *draw, unsigned lap, weir_counter_metrics *m)
{
    if (lap < 30)
        return false;
    double value = (double)below(draw, 100);
    m->num_updates = 1 + (uint64_t)below(draw, 4);
    m->last = m->min = m->max = value;
    m->known_ns = LAP_NS;
    m->value_ns = value * (double)LAP_NS;
    m->increase = (double)below(draw, 10);
    return true;
}

static bool draw_subject(uint64_t *draw, unsigned lap, size_t i, joined *to)
{
    weir_metrics *m = &to->lap.metrics;
    memset(to, 0, sizeof *to);
    to->lap =
        (weir_subject_lap){ .subject = subjects[i].subject, .name = subjects[i].name, .kind = subjects[i].kind };
    weir_metrics_clear(weir_subject_metrics(to->lap.subject), m);
    to->lap.capacity = 2;
    switch (to->lap.subject) {
    case WEIR_SUBJECT_STAGE: draw_task(draw, lap, false, 10, &m->task, &to->times[0]); return true;
    case WEIR_SUBJECT_FLOW: draw_task(draw, lap, i == 0, 1, &m->task, &to->times[0]); return true;
    case WEIR_SUBJECT_QUEUE: draw_queue(draw, lap, i == 1, &m->queue, to->times); return true;
    case WEIR_SUBJECT_SPAN: return draw_span(draw, lap, i, &m->span, &to->times[0]);
    case WEIR_SUBJECT_COUNTER: return draw_counter(draw, lap, &m->counter);
    default: m->process.cpu_ns = below(draw, LAP_NS); return true;
    }
}

static void add_lap(recording *to, const joined *laps, const bool *is_there, unsigned lap, unsigned per_row)
{
    bool changes = to->num && strcmp(phase_of(lap), to->lap.position.phase) != 0;
    if (to->num == per_row || changes)
        write_laps(to);
    for (size_t i = 0; i < NUM_SUBJECTS; i++)
        if (is_there[i])
            join(to, i, &laps[i]);
    to->num++;
    to->lap.position = (weir_lap_position){ .mode = "", .phase = phase_of(lap), .first_step = 0, .last_step = -1 };
    to->lap.end_unix_ns = NS(1000) + (lap + 1) * LAP_NS;
    to->lap.elapsed_ns += LAP_NS;
    to->lap.num_joined = 1;
}

enum { FINE, COARSE, WHOLE, NUM_RECORDINGS };

static const unsigned laps_per_row[] = { 1, LAPS_PER_S, NUM_LAPS };

static void record_all(char paths[NUM_RECORDINGS][4096])
{
    recording *all = calloc(NUM_RECORDINGS, sizeof *all);
    joined *laps = calloc(NUM_SUBJECTS, sizeof *laps);
    uint64_t draw = 11;
    for (int i = 0; i < NUM_RECORDINGS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", in_folder((const char *[]){ "fine.db", "coarse.db", "one.db" }[i]));
        remove(paths[i]); /* of the test before */
        all[i].writer = recording_begin(paths[i], "node", 0, 1000);
    }
    for (unsigned lap = 0; lap < NUM_LAPS; lap++) {
        bool is_there[NUM_SUBJECTS];
        for (size_t i = 0; i < NUM_SUBJECTS; i++)
            is_there[i] = draw_subject(&draw, lap, i, &laps[i]);
        for (int i = 0; i < NUM_RECORDINGS; i++)
            add_lap(&all[i], laps, is_there, lap, laps_per_row[i]);
    }
    for (int i = 0; i < NUM_RECORDINGS; i++) {
        write_laps(&all[i]);
        recording_end(all[i].writer, 1000 + NUM_LAPS / (double)LAPS_PER_S);
    }
    free(laps);
    free(all);
}

/* ---- the figures -------------------------------------------------------------------------------------------------- */

static void assert_same_total(const weir_total *one, const weir_total *other)
{
    size_t count;
    const weir_measure *measures = weir_subject_measures(one->subject, &count);
    for (size_t i = 0; i < count; i++) {
        double value = weir_total_value(one, &measures[i]), expected = weir_total_value(other, &measures[i]);
        if (isnan(value) != isnan(expected) || fabs(value - expected) > 1e-9 * fmax(1, fabs(expected)))
            fail_msg("%s, phase \"%s\": %s is %.12g with longer laps, %.12g with short ones", one->key.name,
                     one->key.phase, measures[i].name, value, expected);
    }
}

/* Spans come in the order in which they occurred first. */
static const weir_total *find_same(const weir_total_list *list, const weir_total *wanted)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->all[i].key.name, wanted->key.name) == 0 &&
            strcmp(list->all[i].key.phase, wanted->key.phase) == 0)
            return &list->all[i];
    fail_msg("no %s in phase \"%s\"", wanted->key.name, wanted->key.phase);
    return NULL;
}

static void read_totals(const char *path, unsigned by, weir_totals *totals)
{
    weir_recording *opened;
    weir_error error = { 0 };
    if (weir_recording_open(path, &opened, &error) != WEIR_OK ||
        weir_totals_read(opened, NULL, &(weir_grouping){ .by = by }, totals, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_recording_close(opened);
}

TEST_CASE(no_measure_changes_with_the_length_of_the_laps)
{
    static const unsigned groupings[] = { WEIR_BY_NAME, WEIR_BY_NAME | WEIR_BY_PHASE, WEIR_BY_NAME | WEIR_BY_RUN,
                                          WEIR_BY_NAME | WEIR_BY_JOB_PHASE };
    static char paths[NUM_RECORDINGS][4096];
    record_all(paths);
    for (size_t g = 0; g < sizeof groupings / sizeof groupings[0]; g++) {
        weir_totals fine, other;
        read_totals(paths[FINE], groupings[g], &fine);
        for (int i = COARSE; i < NUM_RECORDINGS; i++) {
            read_totals(paths[i], groupings[g], &other);
            for (weir_subject s = 0; s < WEIR_NUM_SUBJECTS; s++) {
                assert_int_equal(other.of[s].count, fine.of[s].count);
                for (size_t j = 0; j < fine.of[s].count; j++)
                    assert_same_total(find_same(&other.of[s], &fine.of[s].all[j]), &fine.of[s].all[j]);
            }
            weir_totals_free(&other);
        }
        weir_totals_free(&fine);
    }
}

static double value_of(const weir_totals *totals, weir_subject subject, const char *name, const char *measure)
{
    for (size_t i = 0; i < totals->of[subject].count; i++)
        if (strcmp(totals->of[subject].all[i].key.name, name) == 0)
            return total_value(&totals->of[subject].all[i], measure);
    fail_msg("no %s", name);
    return NAN;
}

/* What the issue of it was: a span of one lap had the rate of that lap, and a source that has ended waited. */
TEST_CASE(rates_are_over_the_life_of_their_subject)
{
    static char paths[NUM_RECORDINGS][4096];
    const double whole_s = NUM_LAPS / (double)LAPS_PER_S;
    weir_totals totals;
    record_all(paths);
    read_totals(paths[FINE], WEIR_BY_NAME, &totals);
    double one = value_of(&totals, WEIR_SUBJECT_SPAN, "zero/now", "spans_per_s");
    assert_true(fabs(one - 1 / whole_s) < 1e-9);
    double share = value_of(&totals, WEIR_SUBJECT_SPAN, "wire/read", "total_share");
    double total_s = value_of(&totals, WEIR_SUBJECT_SPAN, "wire/read", "total_time");
    if (fabs(share - total_s / whole_s) > 1e-9)
        fail_msg("%g of the time, which are %g s of %g", share, total_s, whole_s);
    assert_true(value_of(&totals, WEIR_SUBJECT_FLOW, "0:0:src", "wait_in_share") == 0);
    double rate = value_of(&totals, WEIR_SUBJECT_FLOW, "0:0:src", "tasks_per_s");
    double num = value_of(&totals, WEIR_SUBJECT_FLOW, "0:0:src", "num_tasks");
    assert_true(fabs(rate - num / (SOURCE_ENDS / (double)LAPS_PER_S)) < 1e-6 * rate);
    weir_totals_free(&totals);
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

/* Takes out what is about laps, and the path. */
static void drop_laps(char *text, const char *path)
{
    char *to = text;
    for (char *line = text, *end; *line; line = end) {
        end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        char kept = *end;
        *end = '\0';
        bool is_exempt = strstr(line, "Number of log entries") || strstr(line, path);
        *end = kept;
        if (is_exempt)
            continue;
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    *to = '\0';
}

/* Members of JSON that are about laps. */
static void drop_member(char *text, const char *key)
{
    for (char *at = text; (at = strstr(at, key));) {
        char *end = strstr(at, ", ");
        memmove(at, end ? end + 2 : at + strlen(at), end ? strlen(end + 2) + 1 : 1);
    }
}

/* What it prints, without what is about laps; the caller frees it. */
static char *run_tool(const char *arguments, const char *path)
{
    char command[9000], formatted[4300];
    snprintf(formatted, sizeof formatted, arguments, path);
    snprintf(command, sizeof command, "'%s' %s 2>&1", getenv("WEIR_TOOL"), formatted);
    FILE *program = popen(command, "r"); /* NOLINT: the test's own command */
    char *out = calloc(1, 1 << 20);
    assert_true(program && out);
    size_t length = fread(out, 1, (1 << 20) - 1, program);
    if (pclose(program) != 0)
        fail_msg("%s: %s", command, out);
    drop_laps(out, path);
    drop_member(out, "\"num_laps\": ");
    drop_member(out, "\"start_time\": "); /* of a span: of the laps in which it occurs */
    drop_member(out, "\"end_time\": ");
    assert_true(length > 100);
    return out;
}

/* The same texts, but for the last digits of numbers: doubles were added in another order. */
static void assert_same_text(const char *command, const char *out, const char *fine)
{
    const char *one = out, *other = fine;
    while (*one && *other) {
        char *one_end, *other_end;
        double value = strtod(one, &one_end), expected = strtod(other, &other_end);
        bool are_numbers = one_end > one && other_end > other;
        if (are_numbers ? fabs(value - expected) > 1e-9 * fmax(1, fabs(expected)) : *one != *other)
            break;
        one = are_numbers ? one_end : one + 1;
        other = are_numbers ? other_end : other + 1;
    }
    if (*one || *other)
        fail_msg("%s: \"%.60s\", and \"%.60s\" with short laps, after %.80s", command, one, other,
                 one - out > 80 ? one - 80 : out);
}

TEST_CASE(no_figure_of_a_command_changes_with_the_length_of_the_laps)
{
    static const char *const commands[] = {
        "summary --full '%s'",
        "query '%s' --by stage --json",
        "query '%s' --by flow --json",
        "query '%s' --by queue --json",
        "query '%s' --by span --json",
        "query '%s' --by counter --json",
        "query '%s' --by flow,phase --json",
        "query '%s' --by queue,phase --json",
        "query '%s' --by span,phase --json",
        "query '%s' --by span,job-phase --json",
        "query '%s' --by process --json",
        "export '%s' --format openmetrics -o -",
    };
    static char paths[NUM_RECORDINGS][4096];
    if (!getenv("WEIR_TOOL"))
        skip();
    record_all(paths);
    for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
        char *fine = run_tool(commands[c], paths[FINE]);
        for (int i = COARSE; i < NUM_RECORDINGS; i++) {
            char *out = run_tool(commands[c], paths[i]);
            assert_same_text(commands[c], out, fine);
            free(out);
        }
        free(fine);
    }
}

int main(void)
{
    return test_cases_run(NULL, NULL, make_folder, remove_folder);
}
