#include "lap_comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_BATCHES = 4 /* below that, laps say nothing of how sure a figure is */ };

/* A quantile is a bucket's middle, and the truth is anywhere in it: 1/128 of the value to either side. */
#define BUCKET_VARIANCE (1.0 / 128 / 128 / 3)

/* -- names */

/* "0:1:decode[10]_queue" and "0:1:decode[4]_queue" are the same queue; to be freed. NULL = out of memory. */
static char *key_of(const char *name)
{
    char *key = strdup(name);
    char *bracket = key ? strrchr(key, '[') : NULL;
    if (bracket) {
        size_t digits = strspn(bracket + 1, "0123456789");
        char *rest = bracket + 1 + digits;
        if (digits && *rest == ']' && (rest[1] == '\0' || strcmp(rest + 1, "_queue") == 0))
            memmove(bracket, rest + 1, strlen(rest + 1) + 1);
    }
    return key;
}

static contrast_pair *add_pair(contrast *c, const char *key, bool is_queue)
{
    contrast_pair *grown = realloc(c->pairs, (c->num_pairs + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    c->pairs = grown;
    contrast_pair *pair = &c->pairs[c->num_pairs];
    *pair = (contrast_pair){ .key = strdup(key), .is_queue = is_queue };
    if (!pair->key)
        return NULL;
    c->num_pairs++;
    return pair;
}

static contrast_pair *find_pair(contrast *c, const char *name, bool is_queue)
{
    char *key = key_of(name);
    contrast_pair *pair = NULL;
    for (size_t i = 0; key && i < c->num_pairs && !pair; i++)
        if (c->pairs[i].is_queue == is_queue && strcmp(c->pairs[i].key, key) == 0)
            pair = &c->pairs[i];
    if (key && !pair)
        pair = add_pair(c, key, is_queue);
    free(key);
    return pair;
}

/* -- batches */

static void add_batch(batch *to, const batch *from)
{
    for (size_t i = 0; i < NUM_SUMS; i++)
        to->sums[i] += from->sums[i];
    if (to->times && from->times)
        weir_histogram_add(to->times, from->times);
    to->num_laps += from->num_laps;
}

/* All are in use: two by two become one. */
static void halve(contrast_side *side)
{
    for (size_t i = 0; i < CONTRAST_BATCHES / 2; i++) {
        batch *left = &side->batches[2 * i], *right = &side->batches[2 * i + 1];
        add_batch(left, right);
        free(right->times);
        right->times = NULL;
        batch kept = *left;
        *left = (batch){ .num_laps = 0 };
        side->batches[i] = kept;
    }
    side->num_batches = CONTRAST_BATCHES / 2;
    side->laps_per_batch *= 2;
}

static bool begin_batch(batch *b, bool with_times)
{
    *b = (batch){ .num_laps = 0 };
    b->times = with_times ? calloc(1, sizeof *b->times) : NULL;
    return b->times || !with_times;
}

/* The batch that the next lap belongs to; NULL = out of memory. */
static batch *batch_for_lap(contrast_side *side, bool with_times)
{
    size_t last = side->num_batches - 1;
    if (side->num_batches && side->batches[last].num_laps < side->laps_per_batch)
        return &side->batches[last];
    if (side->num_batches == CONTRAST_BATCHES)
        halve(side);
    if (!begin_batch(&side->batches[side->num_batches], with_times))
        return NULL;
    return &side->batches[side->num_batches++];
}

static contrast_side *side_of(contrast *c, int side, const char *name, bool is_queue)
{
    contrast_pair *pair = find_pair(c, name, is_queue);
    if (!pair)
        return NULL;
    contrast_side *found = &pair->sides[side];
    if (!found->name) {
        found->laps_per_batch = 1;
        found->name = strdup(name);
        if (!found->name || !begin_batch(&found->all, !is_queue))
            return NULL;
    }
    return found;
}

static int out_of_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int add_task_lap(contrast *c, int side, const weir_task_record *lap, weir_error *error)
{
    contrast_side *stage = side_of(c, side, lap->name, false);
    batch *b = stage ? batch_for_lap(stage, true) : NULL;
    if (!b)
        return out_of_memory(error);
    batch one = { .num_laps = 1 };
    one.sums[SUM_ELAPSED] = lap->elapsed;
    one.sums[SUM_COUNT] = (double)lap->num_tasks;
    one.sums[SUM_FAILURES] = (double)lap->num_failures;
    one.sums[SUM_SUCCESS_TIME] = lap->ave_time * (double)(lap->num_tasks - lap->num_failures);
    one.sums[SUM_FAILED_TIME] = lap->failed_time;
    one.sums[SUM_BUSY] = lap->busy_time;
    one.sums[SUM_WAIT_IN] = lap->wait_in_time;
    one.sums[SUM_WAIT_THREAD] = lap->wait_thread_time;
    one.sums[SUM_WAIT_OUT] = lap->wait_out_time;
    one.sums[SUM_CPU] = lap->cpu_time;
    add_batch(b, &one);
    if (weir_histogram_add_encoded(b->times, lap->histogram, lap->histogram_bytes) == WEIR_OK)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, 0, "row %lld of task_stats has no valid histogram", (long long)lap->id);
}

static int add_queue_lap(contrast *c, int side, const weir_queue_record *lap, weir_error *error)
{
    contrast_side *queue = side_of(c, side, lap->name, true);
    batch *b = queue ? batch_for_lap(queue, false) : NULL;
    if (!b)
        return out_of_memory(error);
    batch one = { .num_laps = 1 };
    one.sums[SUM_ELAPSED] = lap->elapsed;
    one.sums[SUM_COUNT] = (double)lap->num_items;
    one.sums[SUM_PUT] = (double)lap->num_put;
    one.sums[SUM_PUT_TIME] = lap->ave_put_time * (double)lap->num_put;
    one.sums[SUM_GET_TIME] = lap->ave_get_time * (double)lap->num_items;
    one.sums[SUM_OCCUPIED] = lap->occupancy_rate * lap->elapsed;
    add_batch(b, &one);
    return WEIR_OK;
}

/* The stages first, in the order of the pipeline, so that the pairs are in it, too. */
static int add_stages(contrast *c, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, WEIR_RECORD_STAGE, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK) {
        bool has_tasks = strcmp(record->stage.kind, "stage") == 0;
        if ((has_tasks && !find_pair(c, record->stage.name, false)) || !find_pair(c, record->stage.queue_name, true))
            status = out_of_memory(error);
    }
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static int add_laps(contrast *c, int side, weir_record_kind kind, weir_reader *reader, const weir_filter *filter,
                    weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, kind, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        status = kind == WEIR_RECORD_TASK ? add_task_lap(c, side, &record->task, error)
                                          : add_queue_lap(c, side, &record->queue, error);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static void add_up(contrast_side *side)
{
    for (size_t i = 0; i < side->num_batches; i++)
        add_batch(&side->all, &side->batches[i]);
}

/* -- stages that have another place in the other pipeline, because it has more of them or fewer */

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

static bool is_only_of(const contrast_pair *pair, int side)
{
    return pair->sides[side].name && !pair->sides[!side].name;
}

/* The one that only that side has, of the same name but for its place; NULL where there are several, or none. */
static contrast_pair *find_only(const contrast *c, int side, const contrast_pair *like)
{
    contrast_pair *found = NULL;
    for (size_t i = 0; i < c->num_pairs; i++) {
        contrast_pair *pair = &c->pairs[i];
        if (!is_only_of(pair, side) || pair->is_queue != like->is_queue ||
            strcmp(name_in(pair->key), name_in(like->key)) != 0)
            continue;
        if (found)
            return NULL;
        found = pair;
    }
    return found;
}

/* Has the pair of A's side only, which must not be used any more, become part of B's. */
static void join(contrast *c, contrast_pair *a, contrast_pair *b)
{
    size_t behind = c->num_pairs - (size_t)(a - c->pairs) - 1;
    b->sides[0] = a->sides[0];
    memmove(b->key, name_in(b->key), strlen(name_in(b->key)) + 1);
    free(a->key);
    memmove(a, a + 1, behind * sizeof *a);
    c->num_pairs--;
}

/* What only B has comes last, so that what is joined with it stays in the order of both pipelines. */
static void join_moved(contrast *c)
{
    for (size_t i = 0; i < c->num_pairs;) {
        contrast_pair *a = &c->pairs[i], *b = is_only_of(a, 0) ? find_only(c, 1, a) : NULL;
        if (b && find_only(c, 0, b) == a)
            join(c, a, b);
        else
            i++;
    }
}

int contrast_read(contrast *c, int side, weir_reader *reader, const weir_filter *filter, weir_error *error)
{
    int status = add_stages(c, reader, filter, error);
    if (status == WEIR_OK)
        status = add_laps(c, side, WEIR_RECORD_TASK, reader, filter, error);
    if (status == WEIR_OK)
        status = add_laps(c, side, WEIR_RECORD_QUEUE, reader, filter, error);
    for (size_t i = 0; i < c->num_pairs; i++)
        add_up(&c->pairs[i].sides[side]);
    if (side == 1)
        join_moved(c);
    return status;
}

void contrast_free(contrast *c)
{
    for (size_t i = 0; i < c->num_pairs; i++) {
        free(c->pairs[i].key);
        for (int side = 0; side < 2; side++) {
            contrast_side *s = &c->pairs[i].sides[side];
            free(s->name);
            free(s->all.times);
            for (size_t j = 0; j < s->num_batches; j++)
                free(s->batches[j].times);
        }
    }
    free(c->pairs);
    *c = (contrast){ .num_pairs = 0 };
}

/* -- figures */

const char *const contrast_figure_names[NUM_FIGURES] = {
    [FIGURE_RATE] = "rate",
    [FIGURE_AVE] = "ave_time",
    [FIGURE_P50] = "p50_time",
    [FIGURE_P90] = "p90_time",
    [FIGURE_P99] = "p99_time",
    [FIGURE_CPU] = "cpu_time_per_task",
    [FIGURE_FAILED] = "failed_share",
    [FIGURE_BUSY] = "busy_share",
    [FIGURE_WAIT_IN] = "wait_in_share",
    [FIGURE_WAIT_THREAD] = "wait_thread_share",
    [FIGURE_WAIT_OUT] = "wait_out_share",
    [FIGURE_PUT] = "ave_put_time",
    [FIGURE_GET] = "ave_get_time",
    [FIGURE_OCCUPIED] = "occupancy_rate",
};

bool contrast_has_figure(const contrast_pair *pair, contrast_figure figure)
{
    if (figure == FIGURE_RATE)
        return true;
    return pair->is_queue == (figure >= FIGURE_PUT);
}

bool contrast_is_share(contrast_figure figure)
{
    return (figure >= FIGURE_FAILED && figure <= FIGURE_WAIT_OUT) || figure == FIGURE_OCCUPIED;
}

bool contrast_is_time(contrast_figure figure)
{
    return figure != FIGURE_RATE && !contrast_is_share(figure);
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static double quantile(const weir_histogram *times, double share)
{
    return times && times->count ? (double)weir_histogram_quantile_ns(times, share) / 1e9 : NAN;
}

static double figure_of(const batch *b, contrast_figure figure)
{
    const double *s = b->sums;
    double slots = s[SUM_BUSY] + s[SUM_WAIT_IN] + s[SUM_WAIT_THREAD] + s[SUM_WAIT_OUT];
    switch (figure) {
    case FIGURE_RATE: return ratio(s[SUM_COUNT], s[SUM_ELAPSED]);
    case FIGURE_AVE: return ratio(s[SUM_SUCCESS_TIME], s[SUM_COUNT] - s[SUM_FAILURES]);
    case FIGURE_P50: return quantile(b->times, 0.5);
    case FIGURE_P90: return quantile(b->times, 0.9);
    case FIGURE_P99: return quantile(b->times, 0.99);
    case FIGURE_CPU: return ratio(s[SUM_CPU], s[SUM_COUNT]);
    case FIGURE_FAILED: return ratio(s[SUM_FAILURES], s[SUM_COUNT]);
    case FIGURE_BUSY: return ratio(s[SUM_BUSY], slots);
    case FIGURE_WAIT_IN: return ratio(s[SUM_WAIT_IN], slots);
    case FIGURE_WAIT_THREAD: return ratio(s[SUM_WAIT_THREAD], slots);
    case FIGURE_WAIT_OUT: return ratio(s[SUM_WAIT_OUT], slots);
    case FIGURE_PUT: return ratio(s[SUM_PUT_TIME], s[SUM_PUT]);
    case FIGURE_GET: return ratio(s[SUM_GET_TIME], s[SUM_COUNT]);
    case FIGURE_OCCUPIED: return ratio(s[SUM_OCCUPIED], s[SUM_ELAPSED]);
    case NUM_FIGURES: break;
    }
    return NAN;
}

double contrast_value(const contrast_side *side, contrast_figure figure)
{
    return side->name ? figure_of(&side->all, figure) : NAN;
}

/* -- how sure */

/* What is left of all without one batch. The histogram is the caller's. */
static void without(batch *rest, const batch *all, const batch *one)
{
    weir_histogram *times = rest->times;
    *rest = *all;
    rest->times = times;
    for (size_t i = 0; i < NUM_SUMS; i++)
        rest->sums[i] -= one->sums[i];
    if (!all->times || !one->times)
        return;
    *times = *all->times;
    times->count -= one->times->count;
    for (uint32_t i = one->times->first; one->times->count && i <= one->times->last; i++)
        times->buckets[i] -= one->times->buckets[i];
}

typedef struct estimate {
    double value;       /* as it is compared: a logarithm, or itself */
    double error;       /* standard error; NAN = not known */
    double num_batches; /* that had anything to say */
} estimate;

static double as_compared(double value, bool as_log)
{
    return as_log ? value > 0 ? log(value) : NAN : value;
}

static estimate estimate_of(const contrast_side *side, contrast_figure figure, bool as_log)
{
    weir_histogram times;
    batch rest = { .times = &times };
    estimate e = { .value = as_compared(contrast_value(side, figure), as_log), .error = NAN };
    double sum = 0, sum_of_squares = 0, k = 0;
    for (size_t i = 0; i < side->num_batches; i++) {
        without(&rest, &side->all, &side->batches[i]);
        if (!side->all.times)
            rest.times = NULL;
        double value = as_compared(figure_of(&rest, figure), as_log) - e.value;
        rest.times = &times;
        if (!isfinite(value))
            continue;
        sum += value;
        sum_of_squares += value * value;
        k++;
    }
    e.num_batches = k;
    bool is_quantile = figure >= FIGURE_P50 && figure <= FIGURE_P99;
    if (k >= FEWEST_BATCHES)
        e.error = sqrt(fmax(0, (sum_of_squares - sum * sum / k) * (k - 1) / k) + (is_quantile ? BUCKET_VARIANCE : 0));
    return e;
}

/* Student's t, two-sided 95 %, for any degrees of freedom from 1 on (Fisher and Cornish's expansion; a table below 4). */
static double t_of(double df)
{
    static const double few[] = { 12.706, 4.303, 3.182, 2.776 };
    if (df < 4) {
        int whole = df < 1 ? 1 : (int)df;
        double part = df < 1 ? 0 : df - whole;
        return few[whole - 1] * (1 - part) + few[whole] * part;
    }
    const double z = 1.959964, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * df) + (5 * z5 + 16 * z3 + 3 * z) / (96 * df * df) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * df * df * df);
}

static double margin_of(const estimate *a, const estimate *b)
{
    double va = a->error * a->error, vb = b->error * b->error, v = va + vb;
    if (!isfinite(v) || v == 0)
        return v; /* not known, or no doubt at all */
    double df = v * v / (va * va / (a->num_batches - 1) + vb * vb / (b->num_batches - 1));
    return t_of(df) * sqrt(v);
}

static contrast_verdict verdict_of(contrast_figure figure, const contrast_difference *d)
{
    if (isnan(d->low) || isnan(d->high))
        return VERDICT_UNKNOWN;
    if (d->low <= 0 && d->high >= 0)
        return VERDICT_SAME;
    bool is_more = d->change > 0;
    if (figure == FIGURE_RATE)
        return is_more ? VERDICT_BETTER : VERDICT_WORSE;
    if (figure <= FIGURE_FAILED)
        return is_more ? VERDICT_WORSE : VERDICT_BETTER;
    return VERDICT_DIFFERENT;
}

contrast_difference contrast_compare(const contrast_pair *pair, contrast_figure figure)
{
    bool as_log = !contrast_is_share(figure);
    contrast_difference d = { contrast_value(&pair->sides[0], figure),
                              contrast_value(&pair->sides[1], figure),
                              NAN,
                              NAN,
                              NAN,
                              VERDICT_UNKNOWN };
    if (isnan(d.a) || isnan(d.b))
        return d;
    estimate a = estimate_of(&pair->sides[0], figure, as_log), b = estimate_of(&pair->sides[1], figure, as_log);
    double change = b.value - a.value, margin = margin_of(&a, &b);
    d.change = as_log ? expm1(change) : change;
    d.low = as_log ? expm1(change - margin) : change - margin;
    d.high = as_log ? expm1(change + margin) : change + margin;
    d.verdict = verdict_of(figure, &d);
    return d;
}
