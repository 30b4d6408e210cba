#include "lap_comparison.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "student_t.h"

enum { FEWEST_BATCHES = 4 /* with fewer, no confidence interval can be computed */ };

/* A quantile is the middle of a bucket; the true value can be anywhere in it: ±1/128 of the value. */
#define BUCKET_VARIANCE (1.0 / 128 / 128 / 3)

/* -- names */

/* "0:1:decode[10]_queue" and "0:1:decode[4]_queue" are the same queue; the caller frees it. */
static char *key_of(const char *name)
{
    char *key = memory_copy(name), *bracket = strrchr(key, '[');
    if (bracket) {
        size_t digits = strspn(bracket + 1, "0123456789");
        char *rest = bracket + 1 + digits;
        bool ends = rest[0] == ']' && (!rest[1] || strcmp(rest + 1, "_queue") == 0 || strcmp(rest + 1, "_pool") == 0);
        if (digits && ends)
            memmove(bracket, rest + 1, strlen(rest + 1) + 1);
    }
    return key;
}

static comparison_pair *find_pair(lap_comparison *c, const char *name, weir_subject subject)
{
    char *key = key_of(name);
    for (size_t i = 0; i < c->num_pairs; i++)
        if (c->pairs[i].subject == subject && strcmp(c->pairs[i].key, key) == 0) {
            free(key);
            return &c->pairs[i];
        }
    c->pairs = memory_grow(c->pairs, c->num_pairs, sizeof *c->pairs);
    c->pairs[c->num_pairs] = (comparison_pair){ .key = key, .subject = subject };
    return &c->pairs[c->num_pairs++];
}

/* -- batches. Only stages keep histograms: those of queues would need too much memory */

static weir_histogram *times_of(const batch *b)
{
    return (weir_histogram *)(uintptr_t)b->metrics.task.run_times; /* owned by the batch */
}

static bool has_times(weir_subject subject)
{
    return subject == WEIR_SUBJECT_STAGE || subject == WEIR_SUBJECT_FLOW;
}

static void add_batch(weir_subject subject, batch *to, const batch *from)
{
    weir_metrics_add(weir_subject_metrics(subject), &to->metrics, &from->metrics);
    if (has_times(subject) && times_of(to) && times_of(from))
        weir_histogram_add(times_of(to), times_of(from));
    to->elapsed_ns += from->elapsed_ns;
    to->num_laps += from->num_laps;
}

static void free_times(weir_subject subject, batch *b)
{
    if (has_times(subject))
        free(times_of(b));
}

/* All batches are in use: merges them in pairs. */
static void halve(weir_subject subject, comparison_side *side)
{
    for (size_t i = 0; i < COMPARISON_BATCHES / 2; i++) {
        batch *left = &side->batches[2 * i], *right = &side->batches[2 * i + 1];
        add_batch(subject, left, right);
        free_times(subject, right);
        batch kept = *left;
        *left = *right = (batch){ .num_laps = 0 };
        side->batches[i] = kept;
    }
    side->num_batches = COMPARISON_BATCHES / 2;
    side->laps_per_batch *= 2;
}

static void begin_batch(weir_subject subject, batch *b)
{
    *b = (batch){ .num_laps = 0 };
    weir_metrics_clear(weir_subject_metrics(subject), &b->metrics);
    if (has_times(subject))
        b->metrics.task.run_times = memory_get(1, sizeof *b->metrics.task.run_times);
}

/* The batch that the next lap belongs to. */
static batch *batch_for_lap(weir_subject subject, comparison_side *side)
{
    size_t last = side->num_batches - 1;
    if (side->num_batches && side->batches[last].num_laps < side->laps_per_batch)
        return &side->batches[last];
    if (side->num_batches == COMPARISON_BATCHES)
        halve(subject, side);
    begin_batch(subject, &side->batches[side->num_batches]);
    return &side->batches[side->num_batches++];
}

static comparison_side *side_of(lap_comparison *c, int side, const char *name, const char *kind, weir_subject subject)
{
    comparison_pair *pair = find_pair(c, name, subject);
    comparison_side *found = &pair->sides[side];
    if (!found->name) {
        snprintf(pair->kind, sizeof pair->kind, "%s", kind);
        found->laps_per_batch = 1;
        found->name = memory_copy(name);
        begin_batch(subject, &found->all);
    }
    return found;
}

/* One of the two recordings, while it is read. */
typedef struct reading {
    lap_comparison *c;
    int side;
} reading;

static int add_lap(void *self, const weir_record *record, weir_error *error)
{
    const reading *from = self;
    const weir_lap_record *lap = &record->lap;
    comparison_side *found = side_of(from->c, from->side, lap->name, lap->kind, lap->subject);
    batch *b = batch_for_lap(lap->subject, found);
    (void)error;
    found->capacity = lap->capacity;
    batch one = { .metrics = lap->metrics, .elapsed_ns = lap->elapsed_ns, .num_laps = 1 };
    add_batch(lap->subject, b, &one);
    return WEIR_OK;
}

static void free_settings(comparison_settings *built)
{
    free(built->output_order);
    free(built->merge_order);
}

/* Of several runs, those of the last one. */
static void keep_settings(comparison_settings *built, const weir_stage_record *stage)
{
    free_settings(built);
    *built = (comparison_settings){ .concurrency = stage->concurrency,
                                    .threads = stage->threads,
                                    .queue_items = stage->queue_items,
                                    .queue_bytes = stage->queue_bytes,
                                    .output_order = memory_copy(stage->output_order),
                                    .merge_order = memory_copy(stage->merge_order) };
}

/* Stages are read first, so that the pairs are in the order of the pipeline. */
static int add_stage(void *self, const weir_record *record, weir_error *error)
{
    const reading *from = self;
    const weir_stage_record *stage = &record->stage;
    bool is_stage = strcmp(stage->kind, "stage") == 0, is_route = strcmp(stage->kind, "route") == 0;
    comparison_pair *pair = find_pair(from->c, stage->name, is_stage ? WEIR_SUBJECT_STAGE : WEIR_SUBJECT_FLOW);
    (void)error;
    keep_settings(&pair->sides[from->side].built, stage);
    if (!is_route) /* which has several queues */
        find_pair(from->c, stage->queue_name, WEIR_SUBJECT_QUEUE);
    return WEIR_OK;
}

static void add_up(weir_subject subject, comparison_side *side)
{
    for (size_t i = 0; i < side->num_batches; i++)
        add_batch(subject, &side->all, &side->batches[i]);
}

/* -- stages whose position differs between the pipelines, because one has more stages */

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
    return pair->sides[side].name && !pair->sides[!side].name;
}

/* The pair that only this side has, with the same name except for its position; NULL if there are none or several. */
static comparison_pair *find_only(const lap_comparison *c, int side, const comparison_pair *like)
{
    comparison_pair *found = NULL;
    for (size_t i = 0; i < c->num_pairs; i++) {
        comparison_pair *pair = &c->pairs[i];
        if (!is_only_of(pair, side) || pair->subject != like->subject ||
            strcmp(name_in(pair->key), name_in(like->key)) != 0)
            continue;
        if (found)
            return NULL;
        found = pair;
    }
    return found;
}

/* Moves A's side of a pair into B's pair; A's pair must not be used afterwards. */
static void join(lap_comparison *c, comparison_pair *a, comparison_pair *b)
{
    size_t behind = c->num_pairs - (size_t)(a - c->pairs) - 1;
    free_settings(&b->sides[0].built); /* of nodes without laps */
    free_settings(&a->sides[1].built);
    b->sides[0] = a->sides[0];
    memcpy(b->kind, a->kind, sizeof b->kind);
    memmove(b->key, name_in(b->key), strlen(name_in(b->key)) + 1);
    free(a->key);
    memmove(a, a + 1, behind * sizeof *a);
    c->num_pairs--;
}

/* Pairs that only B has are last, so joined pairs stay in the order of both pipelines. */
static void join_moved(lap_comparison *c)
{
    for (size_t i = 0; i < c->num_pairs;) {
        comparison_pair *a = &c->pairs[i], *b = is_only_of(a, 0) ? find_only(c, 1, a) : NULL;
        if (b && find_only(c, 0, b) == a)
            join(c, a, b);
        else
            i++;
    }
}

int comparison_read(lap_comparison *c, int side, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    reading from = { c, side };
    weir_filter own = *filter;
    weir_run_record run;
    own.no_replay = true;
    if (weir_reader_find_run(reader, filter->run_id ? filter->run_id : WEIR_LAST_RUN, &run, NULL) == WEIR_OK)
        c->commands[side] = memory_copy(run.command ? run.command : "");
    int status = weir_reader_each(reader, WEIR_RECORD_STAGE, filter, add_stage, &from, error);
    for (weir_subject subject = 0; subject < WEIR_NUM_SUBJECTS && status == WEIR_OK; subject++)
        status = weir_reader_each(reader, weir_record_kind_of(subject), &own, add_lap, &from, error);
    for (size_t i = 0; i < c->num_pairs; i++)
        add_up(c->pairs[i].subject, &c->pairs[i].sides[side]);
    if (side == 1)
        join_moved(c);
    return status;
}

void comparison_free(lap_comparison *c)
{
    free(c->commands[0]);
    free(c->commands[1]);
    for (size_t i = 0; i < c->num_pairs; i++) {
        free(c->pairs[i].key);
        for (int side = 0; side < 2; side++) {
            comparison_side *s = &c->pairs[i].sides[side];
            free(s->name);
            free_settings(&s->built);
            free_times(c->pairs[i].subject, &s->all);
            for (size_t j = 0; j < s->num_batches; j++)
                free_times(c->pairs[i].subject, &s->batches[j]);
        }
    }
    free(c->pairs);
    *c = (lap_comparison){ .num_pairs = 0 };
}

/* -- measures */

bool comparison_is_share(const weir_measure *measure)
{
    return strcmp(measure->unit, "share") == 0;
}

bool comparison_has(const weir_measure *measure)
{
    return !measure->metric &&
           (comparison_is_share(measure) || strcmp(measure->unit, "s") == 0 || strcmp(measure->unit, "1/s") == 0);
}

static double value_of(const batch *b, const weir_measure *measure)
{
    return weir_measure_value(measure, &b->metrics, b->elapsed_ns);
}

double comparison_value(const comparison_pair *pair, int side, const char *name)
{
    const weir_measure *measure = weir_measure_find(pair->subject, name);
    return pair->sides[side].name && measure ? value_of(&pair->sides[side].all, measure) : NAN;
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

/* The totals without one batch. The histogram is the caller's. */
static void without(weir_subject subject, batch *rest, const batch *all, const batch *one, weir_histogram *times)
{
    *rest = *all;
    subtract(weir_subject_metrics(subject), &rest->metrics, &one->metrics);
    rest->elapsed_ns -= one->elapsed_ns;
    if (!has_times(subject))
        return;
    *times = *times_of(all);
    times->count -= times_of(one)->count;
    for (uint32_t i = times_of(one)->first; times_of(one)->count && i <= times_of(one)->last; i++)
        times->buckets[i] -= times_of(one)->buckets[i];
    rest->metrics.task.run_times = times;
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

static estimate estimate_of(const comparison_pair *pair, int which, const weir_measure *measure, bool as_log)
{
    const comparison_side *side = &pair->sides[which];
    weir_histogram times;
    batch rest;
    estimate e = { .value = as_compared(value_of(&side->all, measure), as_log), .error = NAN };
    double sum = 0, sum_of_squares = 0, k = 0;
    for (size_t i = 0; i < side->num_batches; i++) {
        without(pair->subject, &rest, &side->all, &side->batches[i], &times);
        double value = as_compared(value_of(&rest, measure), as_log) - e.value;
        if (!isfinite(value))
            continue;
        sum += value;
        sum_of_squares += value * value;
        k++;
    }
    e.num_batches = k;
    bool is_quantile = measure->name[0] == 'p' && measure->name[1] >= '0' && measure->name[1] <= '9';
    if (k >= FEWEST_BATCHES)
        e.error = sqrt(fmax(0, (sum_of_squares - sum * sum / k) * (k - 1) / k) + (is_quantile ? BUCKET_VARIANCE : 0));
    return e;
}

/* Of Student's t with so many degrees of freedom, two-sided (Wallace's approximation, 1959). */
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

static comparison_verdict verdict_of(const weir_measure *measure, const comparison_difference *d)
{
    if (isnan(d->low) || isnan(d->high))
        return VERDICT_UNKNOWN;
    if (d->low <= 0 && d->high >= 0)
        return VERDICT_SAME;
    if (measure->better == 0)
        return VERDICT_DIFFERENT;
    return (d->change > 0) == (measure->better > 0) ? VERDICT_BETTER : VERDICT_WORSE;
}

comparison_difference comparison_compare(const comparison_pair *pair, const weir_measure *measure)
{
    bool as_log = !comparison_is_share(measure);
    comparison_difference d = { comparison_value(pair, 0, measure->name),
                                comparison_value(pair, 1, measure->name),
                                NAN,
                                NAN,
                                NAN,
                                NAN,
                                VERDICT_UNKNOWN };
    if (isnan(d.a) || isnan(d.b))
        return d;
    estimate a = estimate_of(pair, 0, measure, as_log), b = estimate_of(pair, 1, measure, as_log);
    double error, freedom, change = b.value - a.value, margin = margin_of(&a, &b, &error, &freedom);
    d.change = as_log ? expm1(change) : change;
    d.low = as_log ? expm1(change - margin) : change - margin;
    d.high = as_log ? expm1(change + margin) : change + margin;
    d.chance = isnan(error) ? (margin == 0 && change != 0 ? 0 : NAN) : chance_of(change / error, freedom);
    d.verdict = verdict_of(measure, &d);
    return d;
}

static int by_chance(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double comparison_most_chance(const lap_comparison *c)
{
    double *chances = NULL, most = 0;
    size_t num_chances = 0, count;
    for (size_t i = 0; i < c->num_pairs; i++) {
        const weir_measure *measures = weir_subject_measures(c->pairs[i].subject, &count);
        for (size_t j = 0; j < count; j++) {
            double chance =
                comparison_has(&measures[j]) ? comparison_compare(&c->pairs[i], &measures[j]).chance : NAN;
            if (isnan(chance))
                continue;
            chances = memory_grow(chances, num_chances, sizeof *chances);
            chances[num_chances++] = chance;
        }
    }
    if (chances)
        qsort(chances, num_chances, sizeof *chances, by_chance);
    for (size_t i = 0; i < num_chances && chances[i] <= 0.05 / (double)(num_chances - i); i++)
        most = chances[i];
    free(chances);
    return most;
}

comparison_difference comparison_compare_named(const comparison_pair *pair, const char *name)
{
    return comparison_compare(pair, weir_measure_find(pair->subject, name));
}

const comparison_pair *comparison_find(const lap_comparison *c, int side, const char *name)
{
    for (size_t i = 0; i < c->num_pairs && name; i++)
        if (c->pairs[i].sides[side].name && strcmp(c->pairs[i].sides[side].name, name) == 0)
            return &c->pairs[i];
    return NULL;
}
