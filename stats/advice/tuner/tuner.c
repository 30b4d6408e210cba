/*
 * The decisions of the tuner after each lap. The state is the purpose of the current laps:
 *
 *     LOOKING   measures the current settings, then plans
 *     GOING     applies the planned settings, one change at a time; at the end compares them with the best
 *     RESTING   watches whether the load changes
 *
 * Settings are "knobs": the threads of the pool, then the slots of each stage that can be changed. The whole
 * state is in `weir_tuner` and is computed from laps, so the same laps lead to the same decisions.
 */
#include <weir/tuner.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/replay.h>
#include <weir/whatif.h>

#include "struct_copy.h"

enum {
    MAX_KNOBS = 32,
    MAX_LAPS = 3,        /* of a measurement, to get enough results */
    MAX_ROUGH_LAPS = 8,  /* if the laps differ much */
    MAX_EMPTY_LAPS = 24, /* without a result, in a row: one item may take as long */
    MAX_SKIPPED_LAPS = 8,
    MAX_STEADY_LAPS = 16, /* older ones count less */
    MAX_PLANS = 6,
    MIN_PATIENCE = 2,
    MAX_PATIENCE = 32,
    LAPS_AT_REST = 8,
    PREDICTED_ITEMS = 400
};

#define SPARE     0.95 /* of the budget, for changes */
#define ENOUGH    0.99 /* of the highest prediction: a higher one does not justify more slots */
#define NEW_LOAD  (1.0 / 6)
#define NEW_USE   0.25 /* difference of the share of time in which the slots of a node are busy */
#define BUSY      0.85
#define TOLERANCE 1.01 /* of the budget, for the error of clocks */

typedef enum tuner_state { TUNER_LOOKING, TUNER_GOING, TUNER_RESTING } tuner_state;

typedef struct knob {
    char *stage;      /* NULL = threads of the pool */
    size_t node;      /* in the model */
    bool has_threads; /* the stage has private threads: as many as slots */
    bool is_fixed;    /* the engine refuses to change it */
    uint32_t value, best, goal;
    uint32_t most, limit; /* most is lower than the limit after it exceeded the budget, until the load changes */
    uint32_t tried;       /* the value up to which a try had no gain; 0 = none */
    /* of the current lap */
    double busy_s, wait_thread_s;
} knob;

/* The share of time in which the slots of a node of the model are busy. */
typedef struct busy_share {
    double lap, mean, deviation; /* mean deviation from the mean, both of the laps at rest */
} busy_share;

struct weir_tuner {
    weir_tuner_options options;
    _Atomic(weir_pipeline *) pipeline;
    bool is_replay;
    weir_model *costs;
    weir_observer model;   /* fills the model */
    knob knobs[MAX_KNOBS]; /* the first is the pool's threads */
    size_t num_knobs;

    tuner_state state;
    unsigned num_to_skip; /* laps: they contain the transition after a change */
    size_t moved;         /* the knob that was changed last */
    uint32_t moved_from;
    unsigned num_plans;    /* since the load changed */
    bool is_probe;         /* the change is not planned, only a try */
    double predicted;      /* of the goal */
    double best_rate;      /* of knob.best; 0 = not measured */
    unsigned patience;     /* laps in a row that must differ before a restart; doubles each time */
    double noise;          /* relative difference of neighbouring laps with the same settings: moving average */
    unsigned num_compared; /* pairs of laps in noise */
    double lap_rate;       /* of the lap before; negative = other settings */
    unsigned num_empty;    /* laps without a result, in a row */
    bool is_late;          /* some of them did not count, not long ago: a source may be that uneven */
    unsigned num_rested;   /* laps at rest */
    unsigned num_strange;  /* laps at rest with another load, in a row */
    busy_share shares[MAX_KNOBS];
    unsigned num_shares;    /* laps in the means */
    uint64_t memory_before; /* the last change of slots; 0 = not known */
    int64_t slots_added;
    double slot_bytes, other_bytes; /* estimated: of a slot, and without slots; 0 = not known */

    /* of the measurement */
    unsigned num_laps;
    double items, elapsed_s;

    /* of the current lap */
    uint64_t lap_items;
    double lap_s, lap_cpu_s;
    uint64_t lap_bytes; /* resident memory; 0 = not known */
    char sink_queue[128];
    uint64_t lap_number;
};

/* ---- decisions ---------------------------------------------------------------------------------------------- */

static void tell(weir_tuner *tuner, weir_tuner_action action, const knob *own, uint32_t before, const char *format,
                 ...) WEIR_PRINTF(5, 6);

static void tell(weir_tuner *tuner, weir_tuner_action action, const knob *own, uint32_t before, const char *format,
                 ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    int length =
        own ? snprintf(text, sizeof text, "%s %u -> %u: ", own->stage ? own->stage : "threads", before, own->value)
            : 0;
    if ((size_t)length < sizeof text) /* names in a database can be of any length */
        vsnprintf(text + length, sizeof text - (size_t)length, format, arguments);
    va_end(arguments);
    weir_pipeline *pipeline = atomic_load(&tuner->pipeline);
    if (pipeline)
        weir_pipeline_event(pipeline, "tuner", "pipeline", text);
    weir_tuner_decision decision = { .lap = tuner->lap_number,
                                     .action = action,
                                     .stage = own ? own->stage : NULL,
                                     .before = before,
                                     .after = own ? own->value : 0,
                                     .measured = tuner->elapsed_s > 0 ? tuner->items / tuner->elapsed_s : NAN,
                                     .predicted = action <= WEIR_TUNER_REVERTED ? tuner->predicted : NAN,
                                     .text = text };
    if (tuner->options.decided)
        tuner->options.decided(tuner->options.decided_self, &decision);
}

static void start_measuring(weir_tuner *tuner)
{
    tuner->num_laps = 0;
    tuner->items = tuner->elapsed_s = 0;
}

static int apply_threads(weir_pipeline *pipeline, const knob *own, uint32_t value)
{
    int status = weir_pipeline_set_threads(pipeline, own->stage, value);
    if (status == WEIR_ENOMEM || status == WEIR_ESYSTEM) /* some of them may have been started */
        weir_pipeline_set_threads(pipeline, own->stage, own->value);
    return status;
}

static int apply(const weir_tuner *tuner, const knob *own, uint32_t value)
{
    weir_pipeline *pipeline = atomic_load(&tuner->pipeline);
    if (!pipeline)
        return WEIR_OK;
    if (!own->stage)
        return apply_threads(pipeline, own, value);
    int status = weir_pipeline_set_concurrency(pipeline, own->stage, value);
    if (status != WEIR_OK || !own->has_threads)
        return status;
    status = apply_threads(pipeline, own, value);
    if (status != WEIR_OK)
        weir_pipeline_set_concurrency(pipeline, own->stage, own->value);
    return status;
}

/* Tasks that began before the change may last longer than a lap. */
static unsigned laps_to_skip(const weir_tuner *tuner, const knob *own)
{
    const weir_model_node *node = own->stage ? weir_model_node_at(tuner->costs, own->node) : NULL;
    double laps = node && node->time_s > 0 ? ceil(node->time_s / tuner->lap_s) : 1;
    return (unsigned)fmax(1, fmin(laps, MAX_SKIPPED_LAPS));
}

/* False = the engine refuses. */
static bool set_knob(weir_tuner *tuner, knob *own, uint32_t value)
{
    int status = apply(tuner, own, value);
    if (status != WEIR_OK) {
        own->is_fixed = status == WEIR_EUNSUPPORTED;
        own->most = own->goal = own->value; /* without memory or threads, not again until the load changes */
        return false;
    }
    if (own->stage) {
        tuner->memory_before = tuner->lap_bytes;
        tuner->slots_added = (int64_t)value - own->value;
    }
    tuner->moved = (size_t)(own - tuner->knobs);
    tuner->moved_from = own->value;
    own->value = value;
    tuner->num_to_skip = laps_to_skip(tuner, own);
    tuner->is_late = false;
    return true;
}

/* ---- predictions -------------------------------------------------------------------------------------------- */

typedef struct forecast {
    double rate, cpus;
    char limit[200];
} forecast;

static weir_model *model_of(const weir_tuner *tuner)
{
    weir_model *model = NULL;
    char text[32];
    if (weir_model_num_laps(tuner->costs) == 0 || weir_model_new(&model, NULL) != WEIR_OK)
        return NULL;
    for (size_t i = 0; i < weir_model_num_nodes(tuner->costs); i++)
        if (weir_model_add(model, weir_model_node_at(tuner->costs, i), NULL) != WEIR_OK) {
            weir_model_free(model);
            return NULL;
        }
    snprintf(text, sizeof text, "%g", tuner->options.machine_cpus);
    weir_model_set(model, "cpus", text, NULL);
    return model;
}

static void set_in_model(const weir_tuner *tuner, weir_model *model, size_t index, uint32_t value)
{
    const knob *own = &tuner->knobs[index];
    char setting[300], text[16];
    snprintf(text, sizeof text, "%u", value);
    snprintf(setting, sizeof setting, "%s%s", own->stage ? own->stage : "threads", own->stage ? ".concurrency" : "");
    weir_model_set(model, setting, text, NULL);
    if (!own->has_threads)
        return;
    snprintf(setting, sizeof setting, "%s.threads", own->stage);
    weir_model_set(model, setting, text, NULL);
}

static forecast forecast_of(const weir_tuner *tuner, weir_model *model, const uint32_t *values)
{
    weir_prediction *prediction;
    forecast found = { .rate = NAN };
    for (size_t i = 0; i < tuner->num_knobs; i++)
        set_in_model(tuner, model, i, values[i]);
    weir_predict_options options = { .num_items = PREDICTED_ITEMS, .no_range = true };
    if (weir_model_predict(model, &options, &prediction, NULL) != WEIR_OK)
        return found;
    found.rate = prediction->throughput;
    found.cpus = prediction->cpus;
    weir_prediction_describe_limit(prediction, found.limit, sizeof found.limit);
    weir_prediction_free(prediction);
    return found;
}

/* 1, 2, 3, 4, 6, 8, 12, 16, 24, … */
static uint32_t step_up(uint32_t value)
{
    uint32_t power = 1;
    while (power <= value / 2)
        power *= 2;
    uint32_t middle = power + power / 2, next = power <= UINT32_MAX / 2 ? power * 2 : UINT32_MAX;
    return value < 2 ? value + 1 : value < middle ? middle : next;
}

static uint32_t num_slots(const weir_tuner *tuner)
{
    uint32_t count = 0;
    for (size_t i = 1; i < tuner->num_knobs; i++)
        count += tuner->knobs[i].value;
    return count;
}

/* How many slots may be added in total; one, to see what it needs, if that is not known. */
static uint32_t room_for_slots(const weir_tuner *tuner)
{
    if (tuner->lap_bytes == 0 || tuner->options.memory_bytes == 0)
        return UINT32_MAX;
    double room = SPARE * (double)tuner->options.memory_bytes - (double)tuner->lap_bytes;
    double slots = tuner->slot_bytes > 0 ? room / tuner->slot_bytes : 1;
    return room > 0 ? (uint32_t)fmin(slots, UINT32_MAX) : 0;
}

static bool fits(const weir_tuner *tuner, const uint32_t *values, uint32_t room)
{
    uint64_t num_added = 0;
    for (size_t i = 1; i < tuner->num_knobs; i++)
        num_added += values[i] > tuner->knobs[i].value ? values[i] - tuner->knobs[i].value : 0;
    return num_added <= room;
}

/* Finds the best value of each knob, one after the other: if CPUs are short, more slots near the sink take CPU time
   from the stages upstream. Returns the rate. */
static double climb(const weir_tuner *tuner, weir_model *model, uint32_t *values)
{
    double best = forecast_of(tuner, model, values).rate;
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        uint32_t most = values[i], chosen = most;
        for (uint32_t value = tuner->knobs[i].is_fixed ? most : 1; value < most; value = step_up(value)) {
            values[i] = value;
            double rate = forecast_of(tuner, model, values).rate;
            if (rate > best * 1.005) {
                best = rate;
                chosen = value;
            }
        }
        values[i] = chosen;
    }
    return best;
}

/* The smallest value of the knob without a loss of throughput. */
static void trim(const weir_tuner *tuner, weir_model *model, uint32_t *values, size_t index, double wanted)
{
    uint32_t most = values[index];
    for (uint32_t value = 1; value < most; value = step_up(value)) {
        values[index] = value;
        if (forecast_of(tuner, model, values).rate >= wanted)
            return;
    }
    values[index] = most;
}

/*
 * Begins with the largest values that the budget allows, because slots without threads do not help, nor do threads
 * without slots. Then lowers what is not needed. Sets the goals. False = there is no goal.
 */
static bool plan(weir_tuner *tuner, forecast *now, forecast *then)
{
    uint32_t values[MAX_KNOBS] = { 0 }, current[MAX_KNOBS] = { 0 }, room = room_for_slots(tuner);
    weir_model *model = model_of(tuner);
    if (!model)
        return false;
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        const knob *own = &tuner->knobs[i];
        current[i] = own->value;
        values[i] = own->is_fixed ? own->value : own->most;
        if (i > 0 && !own->is_fixed && values[i] - own->value > room && values[i] > own->value)
            values[i] = own->value + room;
    }
    *now = forecast_of(tuner, model, current);
    *then = forecast_of(tuner, model, values);
    while (values[0] > 1 && !tuner->knobs[0].is_fixed && then->cpus > SPARE * tuner->options.cpus &&
           tuner->options.cpus < tuner->options.machine_cpus) {
        values[0]--;
        *then = forecast_of(tuner, model, values);
    }
    double wanted = ENOUGH * climb(tuner, model, values);
    for (size_t i = tuner->num_knobs; i-- > 0;)
        if (!tuner->knobs[i].is_fixed)
            trim(tuner, model, values, i, wanted);
    *then = forecast_of(tuner, model, values);
    bool may_keep = then->cpus <= SPARE * tuner->options.cpus;
    for (size_t i = 0; i < tuner->num_knobs && may_keep; i++) /* lowered only if CPU time is short */
        values[i] = values[i] > tuner->knobs[i].value ? values[i] : tuner->knobs[i].value;
    *then = may_keep ? forecast_of(tuner, model, values) : *then;
    weir_model_free(model);
    if (!(then->rate > now->rate * (1 + tuner->options.min_gain)) || !fits(tuner, values, room))
        return false;
    bool is_new = false;
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        knob *own = &tuner->knobs[i];
        own->goal = values[i];
        is_new |= own->goal < own->value || (own->goal > own->value && own->goal > own->tried);
    }
    for (size_t i = 0; i < tuner->num_knobs && !is_new; i++) /* it has been undone before */
        tuner->knobs[i].goal = tuner->knobs[i].value;
    return is_new;
}

/* ---- states ------------------------------------------------------------------------------------------------- */

/* The gain that a change must have to be distinguished from noise. */
static double least_gain(const weir_tuner *tuner)
{
    return fmax(tuner->options.min_gain, tuner->noise / sqrt(fmax(tuner->num_laps, 1)));
}

static void note_noise(weir_tuner *tuner, double rate)
{
    double mean = (rate + tuner->lap_rate) / 2;
    if (tuner->lap_rate >= 0 && mean > 0) {
        tuner->num_compared += tuner->num_compared < 8;
        tuner->noise += (fabs(rate - tuner->lap_rate) / mean - tuner->noise) / tuner->num_compared;
    }
    tuner->lap_rate = rate;
}

/* The next change on the way to the goal: threads first. False = it is reached. */
static bool go_on(weir_tuner *tuner, const char *reason)
{
    double rate = tuner->items / tuner->elapsed_s;
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        knob *own = &tuner->knobs[i];
        uint32_t before = own->value;
        if (own->goal == own->value || own->is_fixed || !set_knob(tuner, own, own->goal))
            continue;
        if (isnan(tuner->predicted))
            tell(tuner, WEIR_TUNER_CHANGED, own, before, "%s; now %.4g/s", reason, rate);
        else
            tell(tuner, WEIR_TUNER_CHANGED, own, before, "%s; now %.4g/s, predicted %.4g/s with all changes", reason,
                 rate, tuner->predicted);
        tuner->state = TUNER_GOING;
        start_measuring(tuner);
        return true;
    }
    return false;
}

/* One step up, if it has not been tried, and if the budget allows it. */
static bool can_try(const weir_tuner *tuner, const knob *own)
{
    uint32_t next = step_up(own->value);
    bool is_cheap = tuner->lap_cpu_s * next / own->value <= SPARE * tuner->options.cpus * tuner->lap_s ||
                    tuner->options.cpus >= tuner->options.machine_cpus;
    return !own->is_fixed && next <= own->most && next > own->tried && is_cheap;
}

/* A try where everything is in use, in case the model is wrong. If the slots use all threads, both are raised. */
static bool probe(weir_tuner *tuner)
{
    knob *pool = &tuner->knobs[0];
    if (room_for_slots(tuner) == 0)
        return false;
    bool is_pool_busy = pool->busy_s >= BUSY * pool->value * tuner->lap_s;
    tuner->predicted = NAN;
    tuner->is_probe = true;
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        knob *own = &tuner->knobs[i];
        double in_use = i == 0 ? own->wait_thread_s : own->busy_s + own->wait_thread_s;
        double most = i == 0 ? 0.1 * tuner->lap_s : BUSY * own->value * tuner->lap_s;
        if (in_use < most || !can_try(tuner, own))
            continue;
        own->goal = step_up(own->value);
        if (i > 0 && !own->has_threads && is_pool_busy && can_try(tuner, pool))
            pool->goal = step_up(pool->value);
        if (go_on(tuner, i == 0 ? "a try: slots wait for a thread" : "a try: its slots are always in use"))
            return true;
    }
    return false;
}

/* The budget that the lap exceeded, and how many times its use is the budget; NULL = none. */
static const char *exceeded(const weir_tuner *tuner, double *excess)
{
    *excess = tuner->lap_cpu_s / tuner->lap_s / tuner->options.cpus;
    if (*excess > TOLERANCE)
        return "CPU";
    *excess = tuner->options.memory_bytes ? (double)tuner->lap_bytes / (double)tuner->options.memory_bytes : 0;
    return *excess > 1 ? "memory" : NULL;
}

static void rest(weir_tuner *tuner)
{
    double excess;
    const char *what = exceeded(tuner, &excess);
    if (what)
        tell(tuner, WEIR_TUNER_RESTED, NULL, 0,
             "rests at %.4g/s: the %s budget is exceeded by %.0f %%, and there is nothing left to lower",
             tuner->best_rate, what, (excess - 1) * 100);
    else
        tell(tuner, WEIR_TUNER_RESTED, NULL, 0, "rests at %.4g/s: no change promises a gain", tuner->best_rate);
    tuner->state = TUNER_RESTING;
    tuner->num_strange = tuner->num_shares = 0;
    start_measuring(tuner);
}

/* False = the model does not promise more. */
static bool go_where_planned(weir_tuner *tuner)
{
    forecast now = { .rate = NAN }, then = { .rate = NAN };
    char reason[300];
    if (tuner->num_plans == MAX_PLANS || !plan(tuner, &now, &then))
        return false;
    tuner->num_plans++;
    tuner->is_probe = false;
    tuner->predicted = tuner->items / tuner->elapsed_s * (then.rate / now.rate);
    snprintf(reason, sizeof reason, "the limit is %s", now.limit);
    return go_on(tuner, reason);
}

static void look_for_more(weir_tuner *tuner)
{
    if (!go_where_planned(tuner) && !probe(tuner))
        rest(tuner);
}

/* All changes are applied: keeps the settings if they are better, otherwise goes back. */
static void arrive(weir_tuner *tuner)
{
    double rate = tuner->items / tuner->elapsed_s;
    double half_predicted = (tuner->predicted / tuner->best_rate - 1) / 2; /* NAN = not predicted */
    if (rate >= tuner->best_rate * (1 + fmax(tuner->options.min_gain, fmin(half_predicted, least_gain(tuner))))) {
        tell(tuner, WEIR_TUNER_KEPT, NULL, 0, "kept: %.4g/s instead of %.4g/s", rate, tuner->best_rate);
        for (size_t i = 0; i < tuner->num_knobs; i++)
            tuner->knobs[i].best = tuner->knobs[i].value;
        tuner->best_rate = rate;
        look_for_more(tuner);
        return;
    }
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        knob *own = &tuner->knobs[i];
        uint32_t before = own->value;
        own->goal = own->best;
        if (own->value == own->best || !set_knob(tuner, own, own->best))
            continue;
        if (before > own->best && before > own->tried)
            own->tried = before;
        tell(tuner, WEIR_TUNER_REVERTED, own, before, "undone: %.4g/s, not better than %.4g/s", rate,
             tuner->best_rate);
    }
    if (!tuner->is_probe)
        tuner->num_plans = MAX_PLANS; /* the model was wrong */
    tuner->state = TUNER_LOOKING;
    start_measuring(tuner);
}

/* Begins again with the current settings, which have not been measured. */
static void begin_again(weir_tuner *tuner)
{
    for (size_t i = 0; i < tuner->num_knobs; i++)
        tuner->knobs[i].goal = tuner->knobs[i].best = tuner->knobs[i].value;
    tuner->best_rate = 0;
    tuner->state = TUNER_LOOKING;
    start_measuring(tuner);
}

static bool is_other_load(const weir_tuner *tuner, double rate)
{
    return tuner->best_rate > 0 &&
           fabs(rate - tuner->best_rate) > fmax(NEW_LOAD, 2 * tuner->noise) * tuner->best_rate;
}

static size_t num_nodes(const weir_tuner *tuner)
{
    size_t count = weir_model_num_nodes(tuner->costs);
    return count < MAX_KNOBS ? count : MAX_KNOBS;
}

static void note_shares(weir_tuner *tuner)
{
    tuner->num_shares += tuner->num_shares < MAX_STEADY_LAPS;
    for (size_t i = 0; i < num_nodes(tuner); i++) {
        busy_share *share = &tuner->shares[i];
        share->mean = tuner->num_shares == 1 ? share->lap : share->mean;
        share->deviation = tuner->num_shares == 1 ? 0 : share->deviation;
        share->deviation += (fabs(share->lap - share->mean) - share->deviation) / tuner->num_shares;
        share->mean += (share->lap - share->mean) / tuner->num_shares;
    }
}

/* The limit may move without a change of the throughput: the source has become faster, but all slots were in use. NULL
   = it has not. */
static const busy_share *find_other_use(const weir_tuner *tuner, const char **name)
{
    for (size_t i = 0; i < num_nodes(tuner) && tuner->num_shares >= MAX_LAPS; i++) {
        const busy_share *share = &tuner->shares[i];
        if (fabs(share->lap - share->mean) <= fmax(NEW_USE, 4 * share->deviation))
            continue;
        *name = weir_model_node_at(tuner->costs, i)->name;
        return share;
    }
    return NULL;
}

static void restart(weir_tuner *tuner, double rate)
{
    const char *name = NULL;
    const busy_share *share = is_other_load(tuner, rate) ? NULL : find_other_use(tuner, &name);
    if (share)
        tell(tuner, WEIR_TUNER_RESTARTED, NULL, 0,
             "the load has changed: %s is busy for %.0f %% of the time instead of %.0f %%", name, share->lap * 100,
             share->mean * 100);
    else
        tell(tuner, WEIR_TUNER_RESTARTED, NULL, 0, "the load has changed: %.4g/s instead of %.4g/s", rate,
             tuner->best_rate);
    weir_model_forget(tuner->costs);
    for (size_t i = 0; i < tuner->num_knobs; i++) {
        tuner->knobs[i].tried = 0;
        tuner->knobs[i].most = tuner->knobs[i].limit;
    }
    tuner->num_plans = 0;
    tuner->num_rested = 0;
    begin_again(tuner);
}

/* At rest. After 8, 16, 32, … laps the model has more data, and may promise more. */
static void watch(weir_tuner *tuner, double rate)
{
    const char *name;
    bool is_strange = is_other_load(tuner, rate) || find_other_use(tuner, &name);
    tuner->num_strange = is_strange ? tuner->num_strange + 1 : 0;
    if (!is_strange)
        note_shares(tuner);
    if (tuner->num_strange >= tuner->patience) {
        tuner->patience = tuner->patience < MAX_PATIENCE ? 2 * tuner->patience : tuner->patience;
        restart(tuner, rate);
        return;
    }
    if (++tuner->num_rested < LAPS_AT_REST || (tuner->num_rested & (tuner->num_rested - 1)))
        return;
    tuner->patience = tuner->patience > MIN_PATIENCE ? tuner->patience / 2 : tuner->patience;
    tuner->num_plans = 0;
    if (tuner->num_strange == 0 && tuner->elapsed_s > 0)
        tuner->best_rate = tuner->items / tuner->elapsed_s;
    if (!go_where_planned(tuner))
        start_measuring(tuner);
}

/* ---- the budget --------------------------------------------------------------------------------------------- */

/* The setting to lower if the last change is not the cause: for memory the stage with the most slots, for CPU time the
   threads, because a thread cannot use more than one CPU. Sets *wanted. */
static knob *to_lower(weir_tuner *tuner, double excess, bool is_memory, uint32_t *wanted)
{
    knob *own = &tuner->knobs[0];
    uint32_t whole = tuner->options.cpus >= 1 ? (uint32_t)tuner->options.cpus : 1;
    if (!is_memory && !own->is_fixed && own->value > whole) {
        *wanted = whole;
        return own;
    }
    own = NULL;
    for (size_t i = 1; i < tuner->num_knobs; i++)
        if (!tuner->knobs[i].is_fixed && (!own || tuner->knobs[i].value > own->value))
            own = &tuner->knobs[i];
    if (!own)
        return NULL;
    /* The share that slots do not cause; of memory, half of it until it is known. */
    double lap_bytes = (double)tuner->lap_bytes;
    double least = is_memory && lap_bytes > tuner->other_bytes ? tuner->other_bytes / lap_bytes : 0;
    least = is_memory && least <= 0 ? 0.5 : least;
    double share = fmax(0, SPARE / excess - least) / (1 - least);
    *wanted = (uint32_t)fmax(1, fmin(own->value - (1 - share) * num_slots(tuner), own->value - 1.0));
    return own;
}

/* Lowers one setting: the last change if it was an increase. False = there is nothing to lower. */
static bool reduce(weir_tuner *tuner, double excess, const char *what)
{
    knob *own = &tuner->knobs[tuner->moved];
    uint32_t before, wanted = tuner->moved_from;
    bool was_raised = tuner->state == TUNER_GOING && wanted < own->value;
    if (!was_raised)
        own = to_lower(tuner, excess, what[0] == 'm', &wanted);
    if (!own || wanted >= own->value)
        return false;
    before = own->value;
    if (!set_knob(tuner, own, wanted))
        return false;
    if (was_raised) {
        own->most = before - 1;
    } else {
        weir_model_forget(tuner->costs);
        tuner->num_plans = 0;
    }
    tell(tuner, WEIR_TUNER_REDUCED, own, before, "the %s budget was exceeded by %.0f %%", what, (excess - 1) * 100);
    begin_again(tuner);
    return true;
}

static bool keep_budget(weir_tuner *tuner)
{
    double excess;
    if (tuner->num_to_skip && tuner->slots_added > 0 && tuner->memory_before > 0 &&
        tuner->lap_bytes > tuner->memory_before) {
        tuner->slot_bytes = (double)(tuner->lap_bytes - tuner->memory_before) / (double)tuner->slots_added;
        tuner->other_bytes = fmax(0, (double)tuner->lap_bytes - tuner->slot_bytes * num_slots(tuner));
    }
    const char *what = exceeded(tuner, &excess);
    return what && reduce(tuner, excess, what);
}

/* More changes of the plan follow, so the present throughput need not be known exactly. */
static bool is_on_the_way(const weir_tuner *tuner)
{
    for (size_t i = 0; i < tuner->num_knobs; i++)
        if (tuner->knobs[i].goal != tuner->knobs[i].value && !tuner->knobs[i].is_fixed)
            return true;
    return false;
}

/* The laps differ so much that the measurement must be longer. */
static bool is_rough(const weir_tuner *tuner)
{
    return least_gain(tuner) > fmax(tuner->options.min_gain, NEW_LOAD / 2);
}

static bool is_measured(const weir_tuner *tuner)
{
    if (tuner->items <= 0 && tuner->num_laps <= MAX_LAPS)
        return false;
    bool is_short = tuner->items < tuner->options.min_items || tuner->num_compared < 2;
    return (!is_short || tuner->num_laps >= MAX_LAPS) && (!is_rough(tuner) || tuner->num_laps >= MAX_ROUGH_LAPS);
}

/* Counts the lap. False = it does not count: in input order, one slow item holds all results back for a while. */
static bool count_lap(weir_tuner *tuner)
{
    bool is_held_back = tuner->num_empty >= MAX_LAPS && tuner->num_empty < MAX_EMPTY_LAPS && !tuner->is_late;
    tuner->num_empty = tuner->lap_items > 0 ? 0 : tuner->num_empty + 1;
    if (is_held_back) {
        tuner->is_late = tuner->num_empty == 0;
        start_measuring(tuner);
        return false;
    }
    tuner->is_late &= tuner->num_laps < MAX_ROUGH_LAPS;
    note_noise(tuner, (double)tuner->lap_items / tuner->lap_s);
    tuner->items += (double)tuner->lap_items;
    tuner->elapsed_s += tuner->lap_s;
    tuner->num_laps++;
    return true;
}

static void decide(weir_tuner *tuner)
{
    if (keep_budget(tuner))
        return;
    if (tuner->num_to_skip > 0) {
        tuner->num_to_skip--;
        tuner->lap_rate = -1;
        return;
    }
    if (!count_lap(tuner))
        return;
    if (tuner->state == TUNER_RESTING) {
        watch(tuner, (double)tuner->lap_items / tuner->lap_s);
        return;
    }
    if (!is_measured(tuner) && (tuner->state != TUNER_GOING || !is_on_the_way(tuner)))
        return;
    if (tuner->state == TUNER_GOING) {
        if (!go_on(tuner, "the next change of the plan"))
            arrive(tuner);
        return;
    }
    double rate = tuner->items / tuner->elapsed_s;
    if (is_other_load(tuner, rate)) { /* it changed during a try */
        restart(tuner, rate);
        return;
    }
    tuner->best_rate = rate;
    for (size_t i = 0; i < tuner->num_knobs; i++)
        tuner->knobs[i].best = tuner->knobs[i].goal = tuner->knobs[i].value;
    look_for_more(tuner);
}

/* ---- the observer ------------------------------------------------------------------------------------------- */

static void free_knobs(weir_tuner *tuner)
{
    for (size_t i = 0; i < tuner->num_knobs; i++)
        free(tuner->knobs[i].stage);
    tuner->num_knobs = 0;
}

static void on_run_start(void *self, const weir_run_info *info)
{
    weir_tuner *tuner = self;
    uint32_t num_private = 0;
    free_knobs(tuner);
    tuner->model.run_start(tuner->model.self, info);
    tuner->num_knobs = 1;
    for (uint32_t i = 0; i < info->num_stages; i++) {
        const weir_stage_info *stage = &info->stages[i];
        num_private += (uint32_t)stage->threads;
        if (strcmp(stage->kind, "sink") == 0)
            snprintf(tuner->sink_queue, sizeof tuner->sink_queue, "%s", stage->queue_name);
        if (strcmp(stage->kind, "stage") != 0 || tuner->num_knobs == MAX_KNOBS)
            continue;
        knob *own = &tuner->knobs[tuner->num_knobs];
        uint32_t most = tuner->options.max_slots > stage->concurrency ? tuner->options.max_slots : stage->concurrency;
        *own = (knob){ .stage = strdup(stage->name), .node = i, .has_threads = stage->threads > 0 };
        own->value = own->best = own->goal = stage->concurrency;
        own->most = own->limit = most;
        tuner->num_knobs += own->stage != NULL;
    }
    uint32_t threads = info->threads > num_private ? info->threads - num_private : 1;
    uint32_t most = tuner->options.max_threads > threads ? tuner->options.max_threads : threads;
    tuner->knobs[0] = (knob){ .value = threads, .best = threads, .goal = threads, .most = most, .limit = most };
    tuner->state = TUNER_LOOKING;
    tuner->num_to_skip = 1; /* the start-up */
    tuner->predicted = NAN;
    tuner->best_rate = 0;
    tuner->num_plans = 0;
    tuner->patience = MIN_PATIENCE;
    tuner->noise = 0;
    tuner->lap_rate = -1;
    tuner->num_compared = tuner->num_rested = tuner->num_empty = 0;
    tuner->is_late = false;
    start_measuring(tuner);
}

static void take_stage(weir_tuner *tuner, const weir_subject_lap *lap)
{
    const weir_task_metrics *m = &lap->metrics.task;
    double wait_thread_s = (double)m->wait_thread_ns / 1e9;
    int64_t all_ns = m->busy_ns + m->wait_in_ns + m->wait_thread_ns + m->wait_turn_ns + m->wait_out_ns;
    for (size_t i = 0; i < num_nodes(tuner); i++)
        if (strcmp(weir_model_node_at(tuner->costs, i)->name, lap->name) == 0)
            tuner->shares[i].lap = all_ns > 0 ? (double)m->busy_ns / (double)all_ns : 0;
    for (size_t i = 1; i < tuner->num_knobs; i++) {
        knob *own = &tuner->knobs[i];
        if (strcmp(own->stage, lap->name) != 0)
            continue;
        own->busy_s += (double)m->busy_ns / 1e9;
        own->wait_thread_s += wait_thread_s;
        if (own->has_threads)
            continue;
        tuner->knobs[0].wait_thread_s += wait_thread_s;
        tuner->knobs[0].busy_s += (double)m->busy_ns / 1e9;
    }
}

static void take_process(weir_tuner *tuner, const weir_process_metrics *m)
{
    tuner->lap_cpu_s = m->pool_cpu_ns > 0 ? (double)m->pool_cpu_ns / 1e9 : 0;
    tuner->lap_bytes = m->resident_bytes > 0 ? (uint64_t)m->resident_bytes : 0;
#ifdef __GLIBC__
    if (tuner->options.memory_bytes && tuner->lap_bytes > tuner->options.memory_bytes && !tuner->is_replay)
        malloc_trim(0); /* otherwise the memory of removed slots is kept */
#endif
}

static void on_lap(void *self, const weir_subject_lap *lap)
{
    weir_tuner *tuner = self;
    tuner->model.lap(tuner->model.self, lap);
    if (lap->subject == WEIR_SUBJECT_STAGE || lap->subject == WEIR_SUBJECT_FLOW)
        take_stage(tuner, lap);
    else if (lap->subject == WEIR_SUBJECT_QUEUE && strcmp(lap->name, tuner->sink_queue) == 0)
        tuner->lap_items += lap->metrics.queue.num_items;
    else if (lap->subject == WEIR_SUBJECT_PROCESS)
        take_process(tuner, &lap->metrics.process);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    weir_tuner *tuner = self;
    bool decides = atomic_load(&tuner->pipeline) || tuner->is_replay || tuner->options.decided;
    tuner->model.lap_end(tuner->model.self, lap);
    tuner->lap_number = lap->number;
    tuner->lap_s = (double)lap->elapsed_ns / 1e9;
    if (decides && tuner->lap_s > 0 && strcmp(lap->position.phase ? lap->position.phase : "", "finish") != 0)
        decide(tuner);
    for (size_t i = 0; i < tuner->num_knobs; i++)
        tuner->knobs[i].busy_s = tuner->knobs[i].wait_thread_s = 0;
    tuner->lap_items = 0;
    tuner->lap_cpu_s = 0;
    tuner->lap_bytes = 0;
}

weir_observer weir_tuner_observer(weir_tuner *tuner)
{
    if (!tuner)
        return (weir_observer){ 0 };
    return (weir_observer){ .self = tuner, .run_start = on_run_start, .lap = on_lap, .lap_end = on_lap_end };
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

int weir_tuner_new_sized(const weir_tuner_options *options, size_t options_size, weir_tuner **tuner,
                         weir_error *error)
{
    if (!tuner)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_tuner *made = *tuner = calloc(1, sizeof *made);
    if (!made)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    weir_tuner_options *set = &made->options;
    int status = weir__struct_copy(set, sizeof *set, options, options_size, "weir_tuner_options", error);
    if (status == WEIR_OK && (!(set->cpus >= 0) || !(set->machine_cpus >= 0) || !(set->min_gain >= 0)))
        status = weir_error_set(error, WEIR_EINVAL, 0, "cpus, machine_cpus and min_gain must not be negative");
    if (status == WEIR_OK)
        status = weir_model_new(&made->costs, error);
    if (status != WEIR_OK) {
        weir_tuner_free(made);
        *tuner = NULL;
        return status;
    }
    set->machine_cpus = set->machine_cpus > 0 ? set->machine_cpus : weir_cpu_budget();
    set->cpus = set->cpus > 0 && set->cpus < set->machine_cpus ? set->cpus : set->machine_cpus;
    double most_threads = set->max_threads ? set->max_threads : fmax(8, ceil(4 * set->cpus));
    set->max_threads = (uint32_t)fmin(most_threads, WEIR_MAX_THREADS);
    set->max_slots = set->max_slots == 0 ? 64 : set->max_slots < WEIR_MAX_SLOTS ? set->max_slots : WEIR_MAX_SLOTS;
    set->min_gain = set->min_gain > 0 ? set->min_gain : 0.03;
    set->min_items = set->min_items ? set->min_items : 20;
    made->model = weir_model_observer(made->costs);
    return WEIR_OK;
}

int weir_tuner_attach(weir_tuner *tuner, weir_pipeline *pipeline)
{
    if (!tuner || !pipeline)
        return WEIR_EINVAL;
    atomic_store(&tuner->pipeline, pipeline);
    return WEIR_OK;
}

int weir_tuner_replay_sized(weir_reader *reader, int64_t run_id, const weir_tuner_options *options,
                            size_t options_size, weir_error *error)
{
    weir_tuner *tuner;
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = weir_tuner_new_sized(options, options_size, &tuner, error);
    if (status != WEIR_OK)
        return status;
    weir_observer observer = weir_tuner_observer(tuner);
    tuner->is_replay = true;
    status = weir_replay(reader, &(weir_filter){ .run_id = run_id }, &observer, error);
    weir_tuner_free(tuner);
    return status;
}

void weir_tuner_free(weir_tuner *tuner)
{
    if (!tuner)
        return;
    free_knobs(tuner);
    weir_model_free(tuner->costs);
    free(tuner);
}
