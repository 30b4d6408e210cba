#include "tools/view/metric_table.h"

#include <math.h>
#include <string.h>

#include "tools/cli/prose.h"
#include "tools/cli/tty.h"

static const struct {
    const char *name, *key, *title;
} subjects[WEIR_NUM_SUBJECTS] = {
    [WEIR_SUBJECT_STAGE] = { "stage", "stages", "Stages" },
    [WEIR_SUBJECT_FLOW] = { "node", "flow", "Sources, routes, merges and sinks" },
    [WEIR_SUBJECT_QUEUE] = { "queue", "queues", "Queues" },
    [WEIR_SUBJECT_POOL] = { "pool", "pools", "Thread pools" },
    [WEIR_SUBJECT_PROCESS] = { "process", "processes", "Process" },
    [WEIR_SUBJECT_MACHINE] = { "machine", "machines", "Machine" },
    [WEIR_SUBJECT_SPAN] = { "span", "spans", "Spans, frames and markers" },
    [WEIR_SUBJECT_COUNTER] = { "counter", "counters", "Counters" },
};

const char *metric_subject_title(weir_subject subject)
{
    return subjects[subject].title;
}

const char *metric_subject_name(weir_subject subject)
{
    return subjects[subject].name;
}

/* -- columns */

static table_kind kind_of(const weir_measure *measure)
{
    bool is_whole = measure->metric && measure->metric->kind < WEIR_METRIC_HISTOGRAM &&
                    measure->metric->kind != WEIR_METRIC_LEVEL;
    if (strcmp(measure->unit, "s") == 0)
        return TABLE_TIME;
    if (strcmp(measure->unit, "share") == 0)
        return TABLE_SHARE;
    if (strncmp(measure->unit, "bytes", 5) == 0)
        return TABLE_BYTES;
    if (strncmp(measure->unit, "units", 5) == 0)
        return TABLE_VALUE;
    return is_whole ? TABLE_COUNT : TABLE_REAL;
}

table_column metric_column(const weir_measure *measure)
{
    return (table_column){ measure->name, measure->title, kind_of(measure) };
}

static size_t key_columns(table_column *columns, weir_subject subject, const metric_keys *keys)
{
    const table_column all[] = {
        { "offset", "after", TABLE_TIME },
        { "time", "time", TABLE_WHEN },
        { "run_id", "run", TABLE_COUNT },
        { "node_id", "node", TABLE_WORDS },
        { "mode", "mode", TABLE_WORDS },
        { "phase", "phase", TABLE_WORDS },
        { "first_step", "from step", TABLE_COUNT },
        { "last_step", "to step", TABLE_COUNT },
        { "name", subjects[subject].name, TABLE_WORDS },
        { "kind", "kind", TABLE_WORDS },
        { "share", "share", TABLE_SHARE },
    };
    const bool wanted[] = { keys->recording != NULL,
                            keys->time,
                            keys->run,
                            keys->node,
                            keys->mode,
                            keys->phase,
                            keys->steps,
                            keys->steps,
                            keys->name,
                            keys->kind,
                            keys->share };
    static const table_column covered[] = {
        { "num_laps", "laps", TABLE_COUNT }, { "start_time", NULL, TABLE_WHEN }, { "end_time", NULL, TABLE_WHEN },
        { "elapsed", NULL, TABLE_TIME },     { "suspended", NULL, TABLE_TIME },
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (wanted[i])
            columns[count++] = all[i];
    memcpy(columns + count, covered, sizeof covered);
    count += sizeof covered / sizeof covered[0];
    if (subject == WEIR_SUBJECT_QUEUE)
        columns[count++] = (table_column){ "capacity", "capacity", TABLE_COUNT };
    if (subject == WEIR_SUBJECT_POOL)
        columns[count++] = (table_column){ "num_threads", "threads", TABLE_COUNT };
    if (subject == WEIR_SUBJECT_PROCESS)
        columns[count++] = (table_column){ "num_cpus", "CPU budget", TABLE_COUNT };
    return count;
}

static size_t metric_columns(table_column columns[METRIC_MAX_COLUMNS], weir_subject subject, const metric_keys *keys)
{
    size_t num_measures, count = key_columns(columns, subject, keys);
    const weir_measure *measures = weir_subject_measures(subject, &num_measures);
    for (size_t i = 0; i < num_measures; i++)
        columns[count++] = metric_column(&measures[i]);
    return count;
}

table *metric_table_begin(FILE *out, table_format format, table_column columns[METRIC_MAX_COLUMNS],
                          weir_subject subject, const metric_keys *keys)
{
    table *t = table_begin(out, format, columns, metric_columns(columns, subject, keys));
    table_set_keys(t, (size_t)(keys->recording != NULL) + keys->time + keys->run + keys->node + keys->mode +
                          keys->phase + 2 * (size_t)keys->steps + keys->name);
    return t;
}

/* -- cells */

static void put_keys(table *t, const metric_keys *keys, const weir_total *total)
{
    const weir_group_key *key = &total->key;
    bool has_steps = key->last_step >= key->first_step;
    weir_run_record run;
    if (keys->recording && weir_recording_find_run(keys->recording, key->run_id, &run, NULL) == WEIR_OK)
        table_duration(t, key->end_unix_ns - run.started_unix_ns);
    else if (keys->recording)
        table_nothing(t);
    if (keys->time)
        table_when(t, key->bin_unix_ns ? key->bin_unix_ns : key->end_unix_ns);
    if (keys->run)
        table_count(t, key->run_id);
    if (keys->node)
        table_words(t, key->node_id);
    if (keys->mode)
        table_words(t, key->mode);
    if (keys->phase)
        table_words(t, key->phase);
    for (int i = 0; i < 2 && keys->steps; i++)
        if (has_steps)
            table_count(t, i == 0 ? key->first_step : key->last_step);
        else
            table_nothing(t);
    if (keys->name)
        table_words(t, key->name);
    if (keys->kind)
        table_words(t, total->kind);
    if (keys->share)
        table_number(t, key->share);
    table_count(t, key->num_laps);
    table_when(t, key->start_unix_ns);
    table_when(t, key->end_unix_ns);
    table_duration(t, total->elapsed_ns);
    table_duration(t, total->suspended_ns);
    if (total->subject >= WEIR_SUBJECT_QUEUE && total->subject <= WEIR_SUBJECT_PROCESS)
        table_known(t, total->capacity);
}

/* Without tasks there is no longest time. */
static double known_value(const weir_measure *measure, const weir_total *total)
{
    double value = weir_total_value(total, measure);
    bool is_extreme = measure->metric && measure->metric->kind == WEIR_METRIC_MAX;
    return is_extreme && value == 0 && strcmp(measure->unit, "s") == 0 ? NAN : value;
}

void metric_put_measures(table *t, const weir_total *total)
{
    size_t num_measures;
    const weir_measure *measures = weir_subject_measures(total->subject, &num_measures);
    for (size_t i = 0; i < num_measures; i++)
        table_number(t, known_value(&measures[i], total));
}

void metric_put_row(table *t, const metric_keys *keys, const weir_total *total)
{
    put_keys(t, keys, total);
    metric_put_measures(t, total);
}

/* The p99 of n values is the largest if n - 1 of them are less than 99 %, see weir_histogram_quantile_ns(). */
bool metric_has_few_values(const weir_total *total)
{
    const weir_metric_table *stored = weir_subject_metrics(total->subject);
    for (size_t i = 0; i < stored->num_metrics; i++) {
        if (stored->metrics[i].kind != WEIR_METRIC_HISTOGRAM)
            continue;
        const void *at = (const char *)&total->metrics + stored->metrics[i].offset;
        const weir_histogram *times = *(const weir_histogram *const *)at;
        if (times && times->count > 0 && times->count < 100)
            return true;
    }
    return false;
}

void metric_put_few_note(void)
{
    const size_t width = (size_t)tty_width();
    if (width)
        prose_put_lines(stdout,
                        "\nThe p90 of fewer than 10 values, and the p99 of fewer than 100, is the largest of them.\n",
                        width);
}

void metric_put_list(FILE *out, table_format format, weir_subject subject, const weir_total_list *list)
{
    const metric_keys keys = { .name = true, .kind = weir_subject_has_kinds(subject) };
    table_column columns[METRIC_MAX_COLUMNS];
    table *t = metric_table_begin(out, format, columns, subject, &keys);
    for (size_t i = 0; i < list->count; i++)
        metric_put_row(t, &keys, &list->all[i]);
    table_end(t);
}

static double upright_value(const weir_total *total, const weir_measure *measure)
{
    return total ? known_value(measure, total) : NAN;
}

void metric_put_upright(FILE *out, table_format format, const weir_total *const *totals, const char *const *titles,
                        size_t count)
{
    size_t num_measures;
    const weir_measure *measures = weir_subject_measures(totals[0]->subject, &num_measures);
    table_column columns[METRIC_MAX_UPRIGHT + 2] = { { "", "", TABLE_WORDS } };
    for (size_t i = 0; i < count; i++)
        columns[i + 1] = (table_column){ "", titles[i], TABLE_REAL };
    columns[count + 1] = (table_column){ "", "", TABLE_WORDS };
    table *t = table_begin(out, format, columns, count + 2);
    for (const weir_measure *m = measures; m < measures + num_measures; m++) {
        bool is_used = false;
        for (size_t i = 0; i < count; i++)
            is_used |= isfinite(upright_value(totals[i], m)) && upright_value(totals[i], m) != 0;
        if (!m->title || !is_used)
            continue;
        table_words(t, m->title);
        for (size_t i = 0; i < count; i++)
            table_number_as(t, upright_value(totals[i], m), metric_column(m).kind);
        table_words(t, m->help);
    }
    table_end(t);
}

void metric_put_totals(FILE *out, const weir_totals *totals)
{
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        json_print(out, subject ? ", %s: " : "%s: ", subjects[subject].key);
        metric_put_list(out, TABLE_JSON, subject, &totals->of[subject]);
    }
}

void metric_put_limit(FILE *out, const weir_verdict *v)
{
    if (!v) {
        fputs("null", out);
        return;
    }
    json_print(out, "{'kind': %s, 'stage': %s, 'sentence': %s, 'confidence': %g}", weir_verdict_word(v->kind),
               *v->name ? v->name : NULL, v->sentence, v->confidence);
}
