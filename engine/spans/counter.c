/* Counters. Each has a lock, held for some nanoseconds; its values are integrated over the time of spans. */
#include "engine/spans/spans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 16 };

typedef struct counter_value {
    bool is_known;
    double current;
    int64_t since; /* both metrics include the value up to this time */
    weir_counter_metrics lap, total;
} counter_value;

struct weir_counter {
    /* immutable after init */
    weir_span_name *names[MAX_VALUES];
    size_t num_values;
    uint32_t base_bytes; /* of "category/name" in the names of its values; 0 = a single one without a name */
    bool is_total;

    uv_mutex_t lock;

    /* guarded by lock */
    counter_value values[MAX_VALUES];
};

/* For a total, value x time is not known, and stays so. */
static void settle_value_locked(counter_value *value)
{
    int64_t span_ns = weir__span_since_ns(value->since);
    if (value->is_known) {
        value->lap.known_ns += span_ns;
        value->lap.value_ns += value->current * (double)span_ns;
        value->total.known_ns += span_ns;
        value->total.value_ns += value->current * (double)span_ns;
    }
    value->since = value->is_known ? value->since + span_ns : weir__span_now_ns();
}

/* change: since the value before. */
static void note_value(const weir_counter *counter, weir_counter_metrics *metrics, double value, double change)
{
    bool is_level = !counter->is_total;
    weir_counter_metrics one = { .last = value,
                                 .min = is_level ? value : NAN,
                                 .max = is_level ? value : NAN,
                                 .increase = is_level ? NAN : change };
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_COUNTER), metrics, &one);
}

/* Begins anew with the current value. */
static void restart_locked(const weir_counter *counter, const counter_value *value, weir_counter_metrics *metrics)
{
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), metrics);
    metrics->value_ns = counter->is_total ? NAN : 0;
    if (value->is_known)
        note_value(counter, metrics, value->current, 0);
}

/* Sets, or adds to, the value: *now. False = a total would become smaller. */
static bool change_value_locked(const weir_counter *counter, counter_value *value, bool adds, double number,
                                double *now)
{
    *now = adds && value->is_known ? value->current + number : number;
    double change = *now - value->current;
    if (counter->is_total && !(isfinite(*now) && change >= 0))
        return false;
    settle_value_locked(value);
    value->current = *now;
    value->is_known = true;
    value->lap.num_updates++;
    value->total.num_updates++;
    note_value(counter, &value->lap, *now, change);
    note_value(counter, &value->total, *now, change);
    return true;
}

static void update_value(weir_counter *counter, size_t which, bool adds, double number)
{
    double now;
    if (!counter || which >= counter->num_values || weir__span_is_paused())
        return;
    uv_mutex_lock(&counter->lock);
    bool is_changed = change_value_locked(counter, &counter->values[which], adds, number, &now);
    uv_mutex_unlock(&counter->lock);
    bool is_traced = is_changed && span_is_traced() && counter->names[which];
    span_thread *thread = is_traced ? weir__span_this_thread() : NULL;
    if (thread) {
        int64_t bits;
        memcpy(&bits, &now, sizeof bits);
        weir__span_trace(thread, counter->names[which],
                         (weir_trace_record){ .kind = WEIR_TRACE_COUNTER,
                                              .time_ns = weir_clock_ns(),
                                              .value = bits,
                                              .number = counter->base_bytes });
    }
}

void weir_counter_set(weir_counter *counter, size_t which, double value)
{
    update_value(counter, which, false, value);
}

void weir_counter_add(weir_counter *counter, size_t which, double change)
{
    update_value(counter, which, true, change);
}

span_kind weir__counter_kind(const weir_counter *counter)
{
    return counter->is_total ? SPAN_KIND_TOTAL : SPAN_KIND_LEVEL;
}

bool weir__counter_take(const weir_span_name *name, bool of_lap, bool restart, weir_counter_metrics *metrics)
{
    counter_value *value = &name->counter->values[name->value];
    uv_mutex_lock(&name->counter->lock);
    settle_value_locked(value);
    weir_counter_metrics *wanted = of_lap ? &value->lap : &value->total;
    bool is_known = value->is_known;
    *metrics = *wanted;
    if (restart)
        restart_locked(name->counter, value, wanted);
    uv_mutex_unlock(&name->counter->lock);
    return is_known;
}

/* A value that one of those threads was setting may be set in part. */
void weir__counters_reset_child(void)
{
    uint32_t count;
    weir_span_name *const *names = weir__span_names(&count);
    for (uint32_t id = 0; id < count; id++)
        if (names[id]->counter && names[id]->value == 0)
            uv_mutex_init(&names[id]->counter->lock);
}

/* -- making one */

/* A total has a value from the beginning. */
static weir_counter *counter_new(size_t num_values, bool is_total)
{
    weir_counter *counter = calloc(1, sizeof *counter);
    if (!counter || uv_mutex_init(&counter->lock) != 0) {
        free(counter);
        return NULL;
    }
    counter->num_values = num_values;
    counter->is_total = is_total;
    for (size_t i = 0; i < num_values; i++) {
        counter_value *value = &counter->values[i];
        value->is_known = is_total;
        value->since = weir__span_now_ns();
        restart_locked(counter, value, &value->lap);
        restart_locked(counter, value, &value->total);
    }
    return counter;
}

/* Whether an existing counter is of this kind, with these values; `offset`: where they begin in its names. */
static bool is_same_counter(const weir_counter *counter, bool is_total, const char *const *values, size_t num_values,
                            size_t offset)
{
    if (counter->is_total != is_total || counter->num_values != (num_values ? num_values : 1))
        return false;
    for (size_t i = 0; i < num_values; i++)
        if (counter->names[i] && strcmp(counter->names[i]->text + offset, values[i]) != 0)
            return false;
    return true;
}

static void free_counter(weir_counter *counter)
{
    uv_mutex_destroy(&counter->lock);
    free(counter);
}

/* A value whose name is refused is not reported. */
static weir_counter *get_counter_locked(const char *category, const char *name, bool is_total,
                                        const char *const *values, size_t num_values)
{
    size_t offset = category && name ? strlen(category) + strlen(name) + 2 : 0; /* of a value */
    weir_counter *counter = counter_new(num_values ? num_values : 1, is_total);
    if (!counter)
        return NULL;
    weir_span_name *first = weir__span_name_of_value_locked(category, name, num_values ? values[0] : "", counter, 0);
    weir_counter *found = first ? first->counter : NULL;
    if (found != counter) {
        free_counter(counter);
        return found && is_same_counter(found, is_total, values, num_values, offset) ? found : NULL;
    }
    counter->names[0] = first;
    counter->base_bytes = num_values ? (uint32_t)(offset - 1) : 0;
    for (size_t i = 1; i < num_values; i++) {
        weir_span_name *next = weir__span_name_of_value_locked(category, name, values[i], counter, (uint32_t)i);
        counter->names[i] = next && next->counter == counter ? next : NULL;
    }
    return counter;
}

static weir_counter *get_counter(const char *category, const char *name, bool is_total, const char *const *values,
                                 size_t num_values)
{
    if (!values != !num_values || num_values > MAX_VALUES)
        return NULL;
    for (size_t i = 0; i < num_values; i++)
        if (!values[i] || !*values[i])
            return NULL;
    weir__spans_lock();
    weir_counter *counter = get_counter_locked(category, name, is_total, values, num_values);
    weir__span_names_unlock();
    return counter;
}

weir_counter *weir_counter_get(const char *category, const char *name, const char *const *values, size_t num_values)
{
    return get_counter(category, name, false, values, num_values);
}

weir_counter *weir_counter_get_total(const char *category, const char *name, const char *const *values,
                                     size_t num_values)
{
    return get_counter(category, name, true, values, num_values);
}
