#include "tools/view/lap_comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/student_t.h"
#include "tools/cli/memory.h"

enum {
    NUM_BATCHES = 64,
    FEWEST_BATCHES = 4, /* with fewer, no confidence interval can be computed */
    FEWEST_RUNS = 2     /* neighbouring laps are alike, runs are not */
};

/* A quantile is the middle of a bucket; the true value can be anywhere in it: ±1/128 of the value. */
#define BUCKET_VARIANCE (1.0 / 128 / 128 / 3)

/* -- pairs */

/* "0:1:decode[10]_queue" and "0:1:decode[4]_queue" are the same queue, and so is "0:1:decode[4]" of SPDL 0.8, which calls
   queues as their stages. The caller frees it. */
static char *key_of(weir_subject subject, const char *name)
{
    static const char suffix[] = "_queue";
    const size_t length = strlen(name), tail = sizeof suffix - 1;
    const bool has_suffix = length > tail && strcmp(name + length - tail, suffix) == 0;
    char *key = memory_get(length + sizeof suffix, 1);
    memcpy(key, name, length + 1);
    if (subject == WEIR_SUBJECT_QUEUE && !has_suffix)
        memcpy(key + length, suffix, sizeof suffix);
    char *bracket = strrchr(key, '[');
    size_t digits = bracket ? strspn(bracket + 1, "0123456789") : 0;
    char *rest = digits ? bracket + 1 + digits : NULL;
    if (rest && *rest++ == ']' && (!*rest || strcmp(rest, "_queue") == 0 || strcmp(rest, "_pool") == 0))
        memmove(bracket, rest, strlen(rest) + 1);
    return key;
}

static comparison_pair *find_pair(lap_comparison *c, weir_subject subject, const char *name)
{
    char *key = key_of(subject, name);
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].subject == subject && strcmp(c->pairs[i].key, key) == 0) {
            free(key);
            return &c->pairs[i];
        }
    c->pairs = memory_grow(c->pairs, c->num_pairs, sizeof *c->pairs);
    c->pairs[c->num_pairs] = (comparison_pair){ .key = key, .subject = subject };
    return &c->pairs[c->num_pairs++];
}

/* Several runs may have other numbers of slots each. */
static void add_total(weir_total *to, const weir_total *from)
{
    weir_histogram *times = (weir_histogram *)(uintptr_t)to->metrics.task.run_times; /* owned by the total */
    weir_metrics_add(weir_subject_metrics(to->subject), &to->metrics, &from->metrics);
    if (to->subject <= WEIR_SUBJECT_FLOW && times && from->metrics.task.run_times)
        weir_histogram_add(times, from->metrics.task.run_times);
    to->elapsed_ns += from->elapsed_ns;
}

/* Stages come first, so that the pairs are in the order of the pipeline. */
static void add_pairs(lap_comparison *c, int side)
{
    comparison_side *s = &c->sides[side];
    for (size_t i = 0; i < s->stages.count; i++) {
        const weir_stage_record *stage = &s->stages.all[i]->stage;
        find_pair(c, strcmp(stage->kind, "stage") == 0 ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW, stage->name);
        if (strcmp(stage->kind, "route") != 0) /* which has several queues */
            find_pair(c, WEIR_SUBJECT_QUEUE, stage->queue_name);
    }
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++) {
        for (size_t i = 0; i < s->all.of[subject].count; i++) {
            weir_total *total = &s->all.of[subject].all[i];
            comparison_pair *pair = find_pair(c, subject, total->key.name);
            if (pair->sides[side])
                add_total(pair->sides[side], total);
            else
                pair->sides[side] = total;
        }
        for (size_t i = 0; i < s->batches.of[subject].count; i++) {
            const weir_total *batch = &s->batches.of[subject].all[i];
            comparison_pair *pair = find_pair(c, subject, batch->key.name);
            pair->batches[side] = memory_grow(pair->batches[side], pair->num_batches[side], sizeof batch);
            pair->batches[side][pair->num_batches[side]++] = batch;
            pair->fewest[side] = batch->key.run_id ? FEWEST_RUNS : FEWEST_BATCHES;
        }
    }
}

/* "decode" of "0:1:decode" */
static const char *name_in(const char *key)
{
    const char *name = key;
    for (int i = 0; i < 2; i++) {
        const char *colon = strchr(name, ':');
        name = colon ? colon + 1 : name;
    }
    return name;
}

static bool is_only_of(const comparison_pair *pair, int side)
{
    return pair->sides[side] && !pair->sides[!side];
}

/* The pair that only this side has, with the same name except for its position; NULL if there are none or several. */
static comparison_pair *find_only(const lap_comparison *c, int side, const comparison_pair *like)
{
    comparison_pair *found = NULL;
    for (comparison_pair *pair = c->pairs; pair && pair < c->pairs + c->num_pairs; pair++)
        if (is_only_of(pair, side) && pair->subject == like->subject &&
            strcmp(name_in(pair->key), name_in(like->key)) == 0) {
            if (found)
                return NULL;
            found = pair;
        }
    return found;
}

/* Joins stages whose position differs because one pipeline has more of them. Pairs that only B has are last, so joined
   pairs stay in the order of both pipelines. */
static void join_moved(lap_comparison *c)
{
    for (size_t i = 0; i < c->num_pairs;) {
        comparison_pair *a = &c->pairs[i], *b = is_only_of(a, 0) ? find_only(c, 1, a) : NULL;
        if (!b || find_only(c, 0, b) != a) {
            i++;
            continue;
        }
        b->sides[0] = a->sides[0];
        b->batches[0] = a->batches[0];
        b->num_batches[0] = a->num_batches[0];
        b->fewest[0] = a->fewest[0];
        memmove(b->key, name_in(b->key), strlen(name_in(b->key)) + 1);
        free(a->key);
        memmove(a, a + 1, (--c->num_pairs - i) * sizeof *a);
    }
}

const comparison_pair *comparison_find(const lap_comparison *c, int side, const char *name)
{
    for (size_t i = 0; i < c->num_pairs && name; i++)
        if (c->pairs[i].sides[side] && strcmp(c->pairs[i].sides[side]->key.name, name) == 0)
            return &c->pairs[i];
    return NULL;
}

const comparison_pair *comparison_find_sink(const lap_comparison *c)
{
    const weir_records *stages = &c->sides[0].stages;
    const char *name = NULL;
    for (size_t i = 0; i < stages->count && !name; i++)
        name = strcmp(stages->all[i]->stage.kind, "sink") == 0 ? stages->all[i]->stage.queue_name : NULL;
    const comparison_pair *sink = comparison_find(c, 0, name);
    return sink && sink->sides[1] ? sink : NULL;
}

/* -- measures */

static bool is_quantile(const weir_measure *measure)
{
    return measure->name[0] == 'p' && measure->name[1] >= '0' && measure->name[1] <= '9';
}

bool comparison_is_share(const weir_measure *measure)
{
    return strcmp(measure->unit, "share") == 0;
}

/* Of the percentiles, only those of tasks are compared. */
static bool is_compared(weir_subject subject, const weir_measure *measure)
{
    return !measure->metric && (subject <= WEIR_SUBJECT_FLOW || !is_quantile(measure)) &&
           (comparison_is_share(measure) || strcmp(measure->unit, "s") == 0 || strcmp(measure->unit, "1/s") == 0);
}

/* Not weir_total_value(): what was recorded without histograms cannot be computed without a batch. */
static double value_of(const weir_total *total, const weir_measure *measure)
{
    return total && measure ? weir_measure_value(measure, &total->metrics, total->elapsed_ns) : NAN;
}

double comparison_value(const comparison_pair *pair, int side, const char *name)
{
    return value_of(pair->sides[side], weir_measure_find(pair->subject, name));
}

/* -- confidence */

static void subtract(const weir_metric_table *table, void *from, const void *what)
{
    for (size_t i = 0; i < table->num_metrics; i++) {
        void *left = (char *)from + table->metrics[i].offset;
        const void *right = (const char *)what + table->metrics[i].offset;
        switch (table->metrics[i].kind) {
        case WEIR_METRIC_COUNT: *(uint64_t *)left -= *(const uint64_t *)right; break;
        case WEIR_METRIC_SUM:
            if (*(int64_t *)left >= 0)
                *(int64_t *)left -= *(const int64_t *)right;
            break;
        case WEIR_METRIC_LEVEL: *(double *)left -= *(const double *)right; break;
        default: break; /* minimum, maximum: not used by any compared measure */
        }
    }
}

/* The value of all laps without those of one batch. */
static double value_without(const weir_total *all, const weir_total *batch, const weir_measure *measure)
{
    weir_metrics rest = all->metrics;
    weir_histogram times;
    subtract(weir_subject_metrics(all->subject), &rest, &batch->metrics);
    if (all->subject <= WEIR_SUBJECT_FLOW && rest.task.run_times && batch->metrics.task.run_times) {
        const weir_histogram *one = batch->metrics.task.run_times;
        times = *rest.task.run_times;
        times.count -= one->count;
        for (uint32_t i = one->first; one->count && i <= one->last; i++)
            times.buckets[i] -= one->buckets[i];
        rest.task.run_times = &times;
    }
    return weir_measure_value(measure, &rest, all->elapsed_ns - batch->elapsed_ns);
}

typedef struct estimate {
    double value;       /* the compared value: a logarithm, or the value itself */
    double error;       /* standard error; NAN = not known */
    double num_batches; /* batches that have a value */
} estimate;

static double as_compared(double value, bool as_log)
{
    return as_log ? value > 0 ? log(value) : NAN : value;
}

static estimate estimate_of(const comparison_pair *pair, int side, const weir_measure *measure)
{
    const weir_total *all = pair->sides[side];
    bool as_log = !comparison_is_share(measure);
    estimate e = { .value = as_compared(value_of(all, measure), as_log), .error = NAN };
    double sum = 0, sum_of_squares = 0, k = 0;
    for (size_t i = 0; i < pair->num_batches[side]; i++) {
        double value = as_compared(value_without(all, pair->batches[side][i], measure), as_log) - e.value;
        if (!isfinite(value))
            continue;
        sum += value;
        sum_of_squares += value * value;
        k++;
    }
    e.num_batches = k;
    if (k > 0 && k >= (double)pair->fewest[side])
        e.error = sqrt(fmax(0, (sum_of_squares - sum * sum / k) * (k - 1) / k) +
                       (is_quantile(measure) ? BUCKET_VARIANCE : 0));
    return e;
}

/* The two-sided probability of Student's t with df degrees of freedom (Wallace's approximation, 1959). */
static double chance_of(double t, double df)
{
    double z = sqrt(df * log1p(t * t / df)) * (8 * df + 1) / (8 * df + 3);
    return erfc(z / sqrt(2));
}

/* *error: the standard error of the difference, *df: its degrees of freedom. */
static double margin_of(const estimate *a, const estimate *b, double *error, double *freedom)
{
    *error = *freedom = NAN;
    double va = a->error * a->error, vb = b->error * b->error, v = va + vb;
    if (!isfinite(v) || v == 0)
        return v; /* unknown, or no uncertainty */
    double df = v * v / (va * va / (a->num_batches - 1) + vb * vb / (b->num_batches - 1));
    *error = sqrt(v);
    *freedom = df;
    return weir__student_t(df) * *error;
}

static comparison_verdict verdict_of(const comparison_row *d)
{
    if (isnan(d->low) || isnan(d->high))
        return VERDICT_UNKNOWN;
    if (d->low <= 0 && d->high >= 0)
        return VERDICT_SAME;
    if (d->measure->better == 0)
        return VERDICT_DIFFERENT;
    return (d->change > 0) == (d->measure->better > 0) ? VERDICT_BETTER : VERDICT_WORSE;
}

static comparison_row compare(const comparison_pair *pair, const weir_measure *measure)
{
    comparison_row d = { .pair = pair,
                         .measure = measure,
                         .a = value_of(pair->sides[0], measure),
                         .b = value_of(pair->sides[1], measure),
                         .change = NAN,
                         .low = NAN,
                         .high = NAN,
                         .chance = NAN };
    if (isnan(d.a) || isnan(d.b))
        return d;
    estimate a = estimate_of(pair, 0, measure), b = estimate_of(pair, 1, measure);
    bool as_log = !comparison_is_share(measure);
    double error, freedom, change = b.value - a.value, margin = margin_of(&a, &b, &error, &freedom);
    d.change = as_log ? expm1(change) : change;
    d.low = as_log ? expm1(change - margin) : change - margin;
    d.high = as_log ? expm1(change + margin) : change + margin;
    d.chance = isnan(error) ? (margin == 0 && change != 0 ? 0 : NAN) : chance_of(change / error, freedom);
    d.verdict = verdict_of(&d);
    return d;
}

comparison_row comparison_compare(const comparison_pair *pair, const char *measure)
{
    return compare(pair, weir_measure_find(pair->subject, measure));
}

/* -- the rows */

static int by_chance(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Judges all differences together, by Holm's method (1979): at most 5 % of comparisons without any change have a
   clear difference. */
static void judge_rows(lap_comparison *c)
{
    double *chances = memory_get(c->num_rows + 1, sizeof *chances), most = 0;
    size_t count = 0;
    for (size_t i = 0; i < c->num_rows; i++)
        if (!isnan(c->rows[i].chance))
            chances[count++] = c->rows[i].chance;
    qsort(chances, count, sizeof *chances, by_chance);
    for (size_t i = 0; i < count && chances[i] <= 0.05 / (double)(count - i); i++)
        most = chances[i];
    free(chances);
    for (comparison_row *row = c->rows; row && row < c->rows + c->num_rows; row++)
        if (row->verdict >= VERDICT_DIFFERENT && row->chance > most)
            row->verdict = VERDICT_SAME;
}

void comparison_judge(lap_comparison *c)
{
    for (size_t i = 0; i < c->num_pairs; i++) {
        size_t count;
        const weir_measure *measures = weir_subject_measures(c->pairs[i].subject, &count);
        for (size_t j = 0; j < count; j++)
            if (is_compared(c->pairs[i].subject, &measures[j])) {
                comparison_row row = compare(&c->pairs[i], &measures[j]);
                if (isnan(row.a) && isnan(row.b))
                    continue;
                c->rows = memory_grow(c->rows, c->num_rows, sizeof *c->rows);
                c->rows[c->num_rows++] = row;
            }
    }
    judge_rows(c);
}

/* -- reading */

static bool are_several_runs(const weir_totals *by_run)
{
    int64_t run_id = 0;
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
        for (size_t i = 0; i < by_run->of[subject].count; i++) {
            int64_t other = by_run->of[subject].all[i].key.run_id;
            if (run_id && other != run_id)
                return true;
            run_id = other;
        }
    return false;
}

static int read_totals(comparison_side *s, weir_recording *recording, const weir_filter *filter, weir_error *error)
{
    weir_filter own = *filter;
    weir_grouping grouping = { .by = WEIR_BY_NAME };
    own.no_replay = true;
    int status = weir_totals_read(recording, &own, &grouping, &s->all, error);
    if (status == WEIR_OK && filter->run_id == WEIR_ALL_RUNS) {
        grouping.by |= WEIR_BY_RUN;
        status = weir_totals_read(recording, &own, &grouping, &s->batches, error);
        if (status != WEIR_OK || are_several_runs(&s->batches))
            return status;
        weir_totals_free(&s->batches);
        grouping.by = WEIR_BY_NAME;
    }
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++)
        for (size_t i = 0; i < s->all.of[subject].count; i++)
            grouping.bin_ns = s->all.of[subject].all[i].elapsed_ns / NUM_BATCHES > grouping.bin_ns
                                  ? s->all.of[subject].all[i].elapsed_ns / NUM_BATCHES
                                  : grouping.bin_ns;
    grouping.by |= WEIR_BY_TIME;
    return status == WEIR_OK ? weir_totals_read(recording, &own, &grouping, &s->batches, error) : status;
}

int comparison_read(lap_comparison *c, int side, weir_recording *recording, const weir_filter *filter,
                    weir_error *error)
{
    comparison_side *s = &c->sides[side];
    weir_run_record run;
    if (weir_recording_find_run(recording, filter->run_id ? filter->run_id : WEIR_LAST_RUN, &run, NULL) == WEIR_OK) {
        s->run_id = filter->run_id == WEIR_ALL_RUNS ? 0 : run.run_id;
        s->command = memory_copy(run.command ? run.command : "");
    }
    int status = read_totals(s, recording, filter, error);
    if (status == WEIR_OK)
        status = weir_records_read(recording, WEIR_RECORD_STAGE, filter, &s->stages, error);
    if (status == WEIR_OK)
        status = weir_verdict_read(recording, filter, &s->limit, error);
    if (status == WEIR_OK)
        add_pairs(c, side);
    if (status == WEIR_OK && side == 1) {
        join_moved(c);
        comparison_judge(c);
    }
    return status;
}

void comparison_free(lap_comparison *c)
{
    for (int side = 0; side < 2; side++) {
        free(c->sides[side].command);
        weir_totals_free(&c->sides[side].all);
        weir_totals_free(&c->sides[side].batches);
        weir_records_free(&c->sides[side].stages);
        weir_verdict_free(c->sides[side].limit);
    }
    for (size_t i = 0; i < c->num_pairs; i++) {
        free(c->pairs[i].key);
        free(c->pairs[i].batches[0]);
        free(c->pairs[i].batches[1]);
    }
    free(c->pairs);
    free(c->rows);
    *c = (lap_comparison){ .num_pairs = 0 };
}
