/* Counters. Each has a lock, held for some nanoseconds; its values are integrated over the time of spans. */
#include "spans.h"

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

    uv_mutex_t lock;

    /* guarded by lock */
    counter_value values[MAX_VALUES];
};

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

static void note_value(weir_counter_metrics *metrics, double value)
{
    weir_counter_metrics one = { .last = value, .min = value, .max = value };
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_COUNTER), metrics, &one);
}

/* Begins anew with the current value. */
static void restart_locked(counter_value *value, weir_counter_metrics *metrics)
{
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), metrics);
    if (value->is_known)
        note_value(metrics, value->current);
}

/* Sets, or adds to, the value. */
static void update_value(weir_counter *counter, size_t which, bool adds, double number)
{
    if (!counter || which >= counter->num_values || weir__span_is_paused())
        return;
    counter_value *value = &counter->values[which];
    uv_mutex_lock(&counter->lock);
    settle_value_locked(value);
    double now = adds && value->is_known ? value->current + number : number;
    value->current = now;
    value->is_known = true;
    value->lap.num_updates++;
    value->total.num_updates++;
    note_value(&value->lap, now);
    note_value(&value->total, now);
    uv_mutex_unlock(&counter->lock);
    span_thread *thread = span_is_traced() && counter->names[which] ? weir__span_this_thread() : NULL;
    if (thread) {
        int64_t bits;
        memcpy(&bits, &now, sizeof bits);
        weir__span_trace(
            thread, counter->names[which],
            (weir_trace_record){ .kind = WEIR_TRACE_COUNTER, .time_ns = weir_clock_ns(), .value = bits });
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

bool weir__counter_take(const weir_span_name *name, bool of_lap, bool restart, weir_counter_metrics *metrics)
{
    counter_value *value = &name->counter->values[name->value];
    uv_mutex_lock(&name->counter->lock);
    settle_value_locked(value);
    weir_counter_metrics *wanted = of_lap ? &value->lap : &value->total;
    bool is_known = value->is_known;
    *metrics = *wanted;
    if (restart)
        restart_locked(value, wanted);
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

static weir_counter *counter_new(size_t num_values)
{
    weir_counter *counter = calloc(1, sizeof *counter);
    if (!counter || uv_mutex_init(&counter->lock) != 0) {
        free(counter);
        return NULL;
    }
    counter->num_values = num_values;
    for (size_t i = 0; i < num_values; i++) {
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), &counter->values[i].lap);
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_COUNTER), &counter->values[i].total);
    }
    return counter;
}

/* Whether the values of an existing counter are these; `offset`: where they begin in its names. */
static bool has_values(const weir_counter *counter, const char *const *values, size_t num_values, size_t offset)
{
    if (counter->num_values != (num_values ? num_values : 1))
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
static weir_counter *get_counter_locked(const char *category, const char *name, const char *const *values,
                                        size_t num_values)
{
    weir_counter *counter = counter_new(num_values ? num_values : 1);
    if (!counter)
        return NULL;
    weir_span_name *first = weir__span_name_of_value_locked(category, name, num_values ? values[0] : "", counter, 0);
    weir_counter *found = first ? first->counter : NULL;
    if (found != counter) {
        free_counter(counter);
        return found && has_values(found, values, num_values, strlen(category) + strlen(name) + 2) ? found : NULL;
    }
    counter->names[0] = first;
    for (size_t i = 1; i < num_values; i++) {
        weir_span_name *next = weir__span_name_of_value_locked(category, name, values[i], counter, (uint32_t)i);
        counter->names[i] = next && next->counter == counter ? next : NULL;
    }
    return counter;
}

weir_counter *weir_counter_get(const char *category, const char *name, const char *const *values, size_t num_values)
{
    if (!values != !num_values || num_values > MAX_VALUES)
        return NULL;
    for (size_t i = 0; i < num_values; i++)
        if (!values[i] || !*values[i])
            return NULL;
    weir__spans_lock();
    weir_counter *counter = get_counter_locked(category, name, values, num_values);
    weir__span_names_unlock();
    return counter;
}
