/*
 * Predictions. Simulates the model with its settings, then again with laps drawn at random (the bootstrap over laps).
 * The second part shows how much the prediction depends on random differences between laps.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

#include "common/student_t.h"
#include "stats/advice/model/model.h"
#include "stats/advice/model/simulator.h"

enum {
    MAIN_STEPS = 150000, /* tasks to simulate in the main run, and … */
    MAX_OTHER_STEPS = 15000,
    MAX_DECK = 8192,
    LEAST_DEALS = 4, /* of a deck, in a pipeline of three nodes: its mean is exact only as a whole */
    DEFAULT_RESAMPLES = 20,
    MAX_RESAMPLES = 1000,
};

/* ---- one simulation ----------------------------------------------------------------------------------------- */

/* Task lengths relative to their mean. Each is the mean of an equal part of the histogram. So a deck has exactly the
   mean of all tasks, however rare the long ones are. */
static double *make_deck(const weir_histogram *times, size_t most, size_t *size)
{
    uint64_t count = times ? times->count : 0;
    *size = count == 0 ? 1 : count < most ? (size_t)count : most;
    double *deck = calloc(*size, sizeof *deck), sum = 0;
    if (!deck || count == 0) {
        if (deck)
            deck[0] = 1;
        return deck;
    }
    double part = (double)count / (double)*size, room = part;
    size_t at = 0;
    for (uint32_t i = times->first; i <= times->last; i++) {
        double middle = weir__model_bucket_s(i);
        for (double left = (double)times->buckets[i]; left > 1e-6;) {
            double taken = left < room ? left : room;
            deck[at] += taken * middle / part;
            sum += taken * middle / part;
            left -= taken;
            room -= taken;
            if (room <= 1e-6 && at + 1 < *size) {
                at++;
                room = part;
            }
            if (room <= 1e-6)
                break; /* rounding: the last part is full */
        }
    }
    for (size_t i = 0; i < *size; i++)
        deck[i] = sum > 0 ? deck[i] * (double)*size / sum : 1;
    return deck;
}

/* Tasks of all nodes for each item that the consumer gets, by following the items upstream. */
static double steps_per_item(const weir_model *model, const weir_model_node *nodes)
{
    size_t num_nodes = model->num_nodes;
    double all = 0, *wanted = model->wanted;
    memset(wanted, 0, num_nodes * sizeof *wanted);
    wanted[num_nodes - 1] = 1;
    for (size_t i = num_nodes; i-- > 0;) {
        const weir_model_node *node = &nodes[i];
        double useful = node->results * (1 - node->skip_share - node->failure_share);
        double tasks = useful > 0.001 ? wanted[i] / useful : 1000 * wanted[i];
        all += tasks * (node->results > 1 ? node->results : 1);
        for (uint32_t j = 0; j < node->num_inputs; j++)
            wanted[node->inputs[j]] += tasks / node->num_inputs;
    }
    return all > 1 ? all : 1;
}

/* Enough to fill all slots and queues several times. */
static uint64_t items_for(const weir_model *model, const model_state *state, bool is_main)
{
    double held = 0, per_item = steps_per_item(model, state->nodes);
    double steps = model->num_steps > 0 ? model->num_steps : MAIN_STEPS;
    if (!is_main)
        steps = fmin(steps / 2, MAX_OTHER_STEPS);
    for (size_t i = 0; i < model->num_nodes; i++)
        held += state->nodes[i].concurrency + fmin(state->nodes[i].queue_items, 1000);
    double items = fmax(steps / per_item, fmin(5 * held, 20 * steps / per_item));
    return (uint64_t)fmax(items, 20);
}

typedef struct simulation {
    const weir_model *model;
    const model_state *state;
    uint64_t num_items, seed;
} simulation;

static int simulate_run(const simulation *s, sim_result *result, weir_error *error)
{
    size_t count = s->model->num_nodes;
    double num_steps = (double)s->num_items * steps_per_item(s->model, s->state->nodes);
    size_t most_in_deck = (size_t)fmax(1, fmin(MAX_DECK, num_steps / (3 * LEAST_DEALS)));
    double **decks = calloc(count, sizeof *decks);
    size_t *sizes = calloc(count, sizeof *sizes);
    int status = decks && sizes ? WEIR_OK : weir__model_no_memory(error);
    for (size_t i = 0; i < count && status == WEIR_OK; i++) {
        decks[i] = make_deck(s->state->nodes[i].times, most_in_deck, &sizes[i]);
        status = decks[i] ? WEIR_OK : weir__model_no_memory(error);
    }
    if (status == WEIR_OK)
        status = weir__simulate(&(sim_spec){ .nodes = s->state->nodes,
                                             .num_nodes = count,
                                             .lengths = (const double *const *)decks,
                                             .num_lengths = sizes,
                                             .threads = (uint32_t)s->state->threads,
                                             .cpus = s->state->cpus,
                                             .background = s->state->background,
                                             .num_items = s->num_items,
                                             .num_start = s->num_items / 10,
                                             .most_queued = (uint32_t)fmin(fmax(num_steps, 1000), WEIR_MAX_SLOTS),
                                             .seed = s->seed },
                                result, error);
    for (size_t i = 0; decks && i < count; i++)
        free(decks[i]);
    free(decks);
    free(sizes);
    return status;
}

/* The throughput only. */
static int simulate_throughput(const simulation *s, double *throughput, weir_error *error)
{
    sim_result result = { .nodes = calloc(s->model->num_nodes, sizeof *result.nodes) };
    int status = result.nodes ? simulate_run(s, &result, error) : weir__model_no_memory(error);
    if (status == WEIR_OK)
        *throughput = result.throughput;
    free(result.nodes);
    return status;
}

/* ---- the machine -------------------------------------------------------------------------------------------- */

/* *cpus, if it is not NULL: the CPU time per second. */
static double slowdown_of(const sim_result *result, size_t count, double *cpus)
{
    double used = 0, waiting = 0;
    for (size_t i = 0; i < count; i++) {
        used += result->nodes[i].cpus;
        waiting += result->nodes[i].cpu_wait;
    }
    if (cpus)
        *cpus = used;
    return used > 0 ? 1 + waiting / used : 1;
}

/* What is known of other programs in the laps that count. */
typedef struct other_programs {
    double cpus;     /* that they used; NAN = not known */
    double slowdown; /* of the tasks; NAN = not known */
    double used;     /* CPUs that the tasks used */
} other_programs;

/* Below this there are none: the precision of what is found, as a share of the CPUs. */
static const double others_precision = 0.01;

static bool can_be_none(const model_state *state, const other_programs *known)
{
    const double all_of_them = 0.95;
    bool are_unknown = isnan(known->cpus) && isnan(known->slowdown);
    return are_unknown || known->used >= all_of_them * state->cpus || known->cpus <= others_precision * state->cpus;
}

/* With these others, tasks wait about as long for a CPU as the measured ones did. */
static bool explains_waits(const other_programs *known, double slowdown)
{
    const double error_of_waits = 0.02;
    return isnan(known->slowdown) || slowdown >= known->slowdown - error_of_waits;
}

/*
 * How many threads of other programs competed for the CPUs. Others that used so many CPUs had at least as many
 * threads. With more of them, the simulated tasks wait for a CPU as long as the measured ones did. The kernel does
 * not share CPUs exactly equally, which matters if many tasks want one: so the others never had more CPU time than
 * the recorded tasks left.
 */
static int find_background(weir_model *model, uint64_t seed, weir_error *error)
{
    model_lap *all = weir__model_sum(model, false);
    sim_result result = { .nodes = calloc(model->num_nodes, sizeof *result.nodes) };
    int status = all && result.nodes ? WEIR_OK : weir__model_no_memory(error);
    other_programs known = { NAN, NAN, 0 };
    if (all)
        known = (other_programs){ weir__model_other_cpus(model, all), weir__model_slowdown(model, all),
                                  weir__model_used_cpus(model, all) };
    model_state state = model->recorded;
    double low = 0, high = 0;
    if (!can_be_none(&state, &known)) {
        low = isnan(known.cpus) ? 0 : known.cpus;
        high = low + (fmax(known.slowdown, 1) + 1) * (state.cpus + state.threads); /* more than enough */
    }
    for (bool is_first = true; status == WEIR_OK && high - low > others_precision * (high + state.cpus);
         is_first = false) {
        state.background = is_first ? low : (low + high) / 2;
        simulation s = { model, &state, items_for(model, &state, false), seed };
        status = simulate_run(&s, &result, error);
        double cpus, slowdown = slowdown_of(&result, model->num_nodes, &cpus);
        if (is_first ? explains_waits(&known, slowdown) : slowdown > known.slowdown || cpus < known.used)
            high = state.background;
        else
            low = state.background;
    }
    if (status == WEIR_OK) {
        model->recorded.background = (low + high) / 2;
        model->knows_background = true;
        weir__model_show(model);
    }
    free(result.nodes);
    free(all);
    return status;
}

static int prepare_run(weir_model *model, uint64_t seed, uint64_t num_items, weir_error *error)
{
    int status = WEIR_OK;
    if (!model->knows_background && weir__model_num_laps(model) > 0)
        status = find_background(model, seed, error);
    if (status != WEIR_OK || !isnan(model->baseline) || model->num_settings == 0)
        return status;
    uint64_t chosen = num_items ? num_items : items_for(model, &model->recorded, true);
    return simulate_throughput(&(simulation){ model, &model->recorded, chosen, seed }, &model->baseline, error);
}

/* ---- the range ---------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ (x >> 33);
}

/* All resamples have the same random tasks: only laps differ. */
static int resample_laps(weir_model *model, uint64_t seed, uint32_t number, model_lap *drawn, const model_lap *whole,
                         weir_model_node *nodes, weir_histogram *times, double *throughput, weir_error *error)
{
    model_state state = model->recorded;
    state.nodes = nodes;
    memcpy(nodes, model->recorded.nodes, model->num_nodes * sizeof *nodes);
    for (size_t i = 0; i < model->num_nodes; i++)
        nodes[i].times = &times[i];
    weir__model_lap_clear(model, drawn);
    for (size_t i = 0; i < model->num_laps; i++)
        weir__model_lap_add(model, drawn,
                            model->laps[mix(mix(seed + number + 1) * MODEL_MAX_LAPS + i) % model->num_laps]);
    weir__model_figure(model, drawn, whole, nodes);
    weir__model_apply(model, &state);
    simulation s = { model, &state, items_for(model, &state, false), seed };
    return simulate_throughput(&s, throughput, error);
}

/* How many standard deviations the range has on each side. A run to compare with deviates as much as the recorded one: times
   √2. */
static double times_deviation(size_t num_laps)
{
    double freedom = (double)num_laps - 1;
    return weir__student_t(freedom) * sqrt(2 * (double)num_laps / freedom);
}

/* What a run deviates relatively: by its laps, drawn at random; a single lap, by the number of its items (a run to compare
   with deviates as much). */
static int find_deviation(weir_model *model, const weir_whatif_options *options, const model_lap *whole,
                          double *deviation, weir_error *error)
{
    uint32_t count = options->resamples ? options->resamples : DEFAULT_RESAMPLES;
    double sum = 0, squares = 0;
    double num_items = model->num_queues ? (double)whole->queues[model->num_queues - 1].num_items : 0;
    *deviation = num_items > 0 ? weir__student_t(INFINITY) * sqrt(2 / num_items) : 0;
    if (model->num_laps < 2)
        return WEIR_OK;
    weir_histogram *times = calloc(model->num_nodes, sizeof *times);
    weir_model_node *nodes = calloc(model->num_nodes, sizeof *nodes);
    model_lap *drawn = weir__model_lap_new(model);
    int status = times && nodes && drawn ? WEIR_OK : weir__model_no_memory(error);
    for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
        double throughput = 0;
        status = resample_laps(model, options->seed, i, drawn, whole, nodes, times, &throughput, error);
        sum += throughput;
        squares += throughput * throughput;
    }
    free(nodes);
    free(times);
    free(drawn);
    if (status == WEIR_OK && sum > 0)
        *deviation = times_deviation(model->num_laps) * sqrt(fmax(squares * count / (sum * sum) - 1, 0));
    return status;
}

/* Whether the settings differ from the recorded ones. */
static bool is_changed(const weir_model *model)
{
    return weir__model_num_laps(model) > 0 && model->num_settings > 0;
}

/*
 * The range has one width to either side, p->error: what resampled runs deviate, and by how much the model is off at the recorded
 * settings. What tasks cost was measured with the recorded settings alone: with others, what they wait for (a disk, a lock,
 * shared caches and CPUs) may serve as many per second as before. So the range of a change reaches to "no difference", with
 * the same width. Where the CPUs are full, more tasks at once cost CPU time, and nothing recorded says how much: there the
 * change may bring as much less as it may bring more.
 */
static int find_range(weir_model *model, const weir_whatif_options *options, const model_lap *whole,
                      weir_prediction *p, weir_error *error)
{
    double deviation;
    int status = find_deviation(model, options, whole, &deviation, error);
    if (status != WEIR_OK)
        return status;
    double now = isnan(p->measured) ? p->baseline : p->measured;
    p->deviation = deviation;
    p->error = deviation + (isnan(p->measured) ? 0 : fabs(p->baseline / p->measured - 1));
    bool changes = is_changed(model);
    p->low = (changes ? fmin(p->throughput, now) : p->throughput) * fmax(0, 1 - p->error);
    p->high = (changes ? fmax(p->throughput, now) : p->throughput) * (1 + p->error);
    if (changes && p->limit == WEIR_LIMIT_CPUS)
        p->low = fmin(p->low, now * now / p->high);
    return WEIR_OK;
}

/* ---- the prediction ----------------------------------------------------------------------------------------- */

typedef struct prediction_parts {
    weir_prediction prediction; /* first: what the caller gets */
    weir_predicted_node *nodes;
    char (*names)[512]; /* of the nodes */
    char limit_text[600];
} prediction_parts;

void weir_prediction_free(weir_prediction *prediction)
{
    prediction_parts *parts = (prediction_parts *)prediction;
    if (!parts)
        return;
    free(parts->names);
    free(parts->nodes);
    free(parts);
}

static prediction_parts *new_parts(size_t num_nodes)
{
    prediction_parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return NULL;
    parts->nodes = calloc(num_nodes, sizeof *parts->nodes);
    parts->names = calloc(num_nodes, sizeof *parts->names);
    if (parts->nodes && parts->names)
        return parts;
    weir_prediction_free(&parts->prediction);
    return NULL;
}

/* As the statistics would call it with this number of slots: "0:1:decode[8]" of "0:1:decode[10]". */
static const char *name_with_slots(char *name, size_t size, const weir_model_node *node)
{
    bool has_slots = strcmp(node->kind, "stage") == 0 && strchr(node->name, ':');
    size_t length = has_slots ? strcspn(node->name, "[") : strlen(node->name), most = size - sizeof "[65536]";
    length = length < most ? length : most;
    memcpy(name, node->name, length);
    if (has_slots && node->concurrency > 1)
        snprintf(name + length, size - length, "[%u]", node->concurrency);
    return name;
}

static void fill_nodes(const weir_model *model, const sim_result *result, prediction_parts *parts)
{
    weir_prediction *p = &parts->prediction;
    double bytes = 0;
    bool knows_sizes = false;
    for (size_t i = 0; i < model->num_nodes; i++) {
        const weir_model_node *node = &model->shown.nodes[i];
        const sim_node_result *of = &result->nodes[i];
        double slots_s = node->concurrency * result->elapsed_s;
        double held = (of->time_s[SIM_TURN] + of->time_s[SIM_BLOCKED]) / result->elapsed_s;
        parts->nodes[i] = (weir_predicted_node){
            .name = name_with_slots(parts->names[i], sizeof parts->names[i], node),
            .kind = node->kind, /* static */
            .concurrency = node->concurrency,
            .items_per_s = of->results_per_s,
            .busy_share = (of->time_s[SIM_RUNNING] + of->time_s[SIM_PENDING]) / slots_s,
            .wait_in_share = of->time_s[SIM_IDLE] / slots_s,
            .wait_thread_share = of->time_s[SIM_READY] / slots_s,
            .wait_turn_share = of->time_s[SIM_TURN] / slots_s,
            .wait_out_share = of->time_s[SIM_BLOCKED] / slots_s,
            .cpu_wait_share = of->cpu_wait / node->concurrency,
            .cpus = of->cpus,
            .queue_depth = of->queue_depth,
        };
        p->cpus += of->cpus;
        bytes += (of->queue_depth + held) * node->item_bytes + node->concurrency * node->slot_bytes;
        knows_sizes |= node->item_bytes > 0 || node->slot_bytes > 0;
    }
    p->memory_bytes = knows_sizes ? bytes : NAN;
    p->nodes = parts->nodes;
    p->num_nodes = model->num_nodes;
}

/* A pool of threads in the prediction: that of a node, or the pipeline's (owner = num_nodes). */
typedef struct pool_use {
    double busy_share;
    double waiting; /* the time for which its slots wait for a thread / the time for which its threads are busy */
} pool_use;

static pool_use use_of_pool(const weir_model *model, const sim_result *result, size_t owner)
{
    double busy_s = 0, waiting_s = 0, threads = model->shown.threads;
    for (size_t i = 0; i < model->num_nodes; i++) {
        const weir_model_node *node = &model->shown.nodes[i];
        bool runs = strcmp(node->kind, "merge") != 0 && strcmp(node->kind, "sink") != 0;
        if (!runs || (node->threads ? i : model->num_nodes) != owner)
            continue;
        busy_s += result->nodes[i].time_s[SIM_RUNNING];
        waiting_s += result->nodes[i].time_s[SIM_READY];
        threads = node->threads ? node->threads : threads;
    }
    return (pool_use){ busy_s / result->elapsed_s / threads, waiting_s / (busy_s + 1e-9) };
}

static void set_limit(weir_prediction *p, weir_limit_kind kind, const char *name, double share)
{
    p->limit = kind;
    p->limit_name = name;
    p->limit_share = share;
}

static void limit_by_node(const weir_prediction *p, const weir_predicted_node *node, weir_prediction *to)
{
    double taken = node->busy_share + node->wait_turn_share;
    bool is_order = node->wait_turn_share > node->busy_share;
    weir_limit_kind kind = strcmp(node->kind, "source") == 0 ? WEIR_LIMIT_SOURCE
                           : is_order                        ? WEIR_LIMIT_ORDER
                                                             : WEIR_LIMIT_SLOTS;
    if (strcmp(node->kind, "merge") != 0 && strcmp(node->kind, "sink") != 0 && taken > p->limit_share)
        set_limit(to, kind, node->name, taken);
}

/* From the inside out: slots that wait for threads look taken, and threads that wait for CPUs look busy. */
static void find_predicted_limit(const weir_model *model, const sim_result *result, weir_prediction *p)
{
    const double full = 0.95, waits = 0.1;
    double slowdown = slowdown_of(result, model->num_nodes, NULL);
    double in_use = p->cpus + model->shown.background / slowdown;
    p->cpu_share = p->cpus / model->shown.cpus;
    set_limit(p, WEIR_LIMIT_NONE, "", 0);
    if (in_use / model->shown.cpus >= full && (slowdown > 1 + waits || p->cpu_share >= full)) {
        set_limit(p, WEIR_LIMIT_CPUS, "", fmin(in_use / model->shown.cpus, 1));
        return;
    }
    for (size_t i = 0; i <= model->num_nodes; i++) {
        pool_use use = use_of_pool(model, result, i);
        if (use.busy_share >= full && use.waiting > waits) {
            set_limit(p, WEIR_LIMIT_THREADS, i < model->num_nodes ? p->nodes[i].name : "the pool", use.busy_share);
            return;
        }
    }
    for (size_t i = 0; i < p->num_nodes; i++)
        limit_by_node(p, &p->nodes[i], p);
    if (result->consumer_share > p->limit_share)
        set_limit(p, WEIR_LIMIT_CONSUMER, p->nodes[p->num_nodes - 1].name, result->consumer_share);
    if (p->limit_share < 0.8)
        set_limit(p, WEIR_LIMIT_NONE, "", p->limit_share);
}

/* Whether the sum of the threads or CPUs is above what was recorded. */
static bool is_beyond(const weir_model *model)
{
    double threads = model->shown.threads, recorded = model->recorded.threads;
    bool has_more_slots = false;
    for (size_t i = 0; i < model->num_nodes; i++) {
        threads += model->shown.nodes[i].threads;
        recorded += model->recorded.nodes[i].threads;
        has_more_slots |= model->shown.nodes[i].concurrency > model->recorded.nodes[i].concurrency;
    }
    return has_more_slots || model->shown.cpus > model->recorded.cpus || threads > recorded;
}

/* How many inputs of other nodes are this branch, or, if they do not say which, any branch of the node. */
static uint32_t count_uses(const weir_model *model, size_t index, uint32_t branch)
{
    uint32_t uses = 0;
    for (size_t i = index + 1; i < model->num_nodes; i++) {
        const weir_model_node *node = &model->recorded.nodes[i];
        for (uint32_t j = 0; j < node->num_inputs; j++)
            uses += node->inputs[j] == index && (!node->branches || node->branches[j] == branch);
    }
    return uses;
}

static const char *find_incomplete(const weir_model *model)
{
    if (model->num_nodes < 2 || strcmp(model->recorded.nodes[model->num_nodes - 1].kind, "sink") != 0)
        return "has no source or no sink";
    if (model->num_queues > 0 && weir__model_num_laps(model) == 0)
        return "has no laps yet";
    for (size_t i = 0; i + 1 < model->num_nodes; i++) {
        uint32_t shares = model->recorded.nodes[i].num_shares, branches = shares > 1 ? shares : 1;
        for (uint32_t branch = 0; branch < branches; branch++) {
            uint32_t uses = count_uses(model, i, branch);
            if (uses != 1 && uses != branches)
                return "has a node whose results are not taken once each";
        }
    }
    return NULL;
}

static const char *describe_limit(prediction_parts *parts)
{
    static const char *const texts[] = {
        [WEIR_LIMIT_SOURCE] = "the source ",
        [WEIR_LIMIT_SLOTS] = "the slots of ",
        [WEIR_LIMIT_THREADS] = "the threads of ",
        [WEIR_LIMIT_CPUS] = "the CPUs",
        [WEIR_LIMIT_ORDER] = "the order of the results of ",
        [WEIR_LIMIT_CONSUMER] = "the consumer",
        [WEIR_LIMIT_NONE] = "none alone: the parts wait for each other",
    };
    const weir_prediction *p = &parts->prediction;
    bool has_name = p->limit != WEIR_LIMIT_CONSUMER && p->limit != WEIR_LIMIT_NONE;
    snprintf(parts->limit_text, sizeof parts->limit_text, "%s%s", texts[p->limit], has_name ? p->limit_name : "");
    return parts->limit_text;
}

/* Fills the prediction from one simulation. */
static int fill_parts(weir_model *model, const weir_whatif_options *options, prediction_parts *parts,
                      weir_error *error)
{
    const model_state *state = &model->shown;
    weir_prediction *p = &parts->prediction;
    sim_result result = { .nodes = calloc(model->num_nodes, sizeof *result.nodes) };
    p->num_items = options->num_items ? options->num_items : items_for(model, state, true);
    simulation s = { model, state, p->num_items, options->seed };
    int status = result.nodes ? simulate_run(&s, &result, error) : weir__model_no_memory(error);
    if (status == WEIR_OK) {
        p->throughput = p->low = p->high = result.throughput;
        if (model->num_settings == 0)
            model->baseline = p->throughput;
        p->baseline = model->baseline;
        p->measured = weir__model_measured(model);
        p->beyond_measured = is_beyond(model);
        fill_nodes(model, &result, parts);
        find_predicted_limit(model, &result, p);
        p->limit_text = describe_limit(parts);
        p->threads = state->threads;
        p->available_cpus = state->cpus;
        p->background = state->background;
        p->num_laps = weir__model_num_laps(model);
    }
    free(result.nodes);
    return status;
}

static int predict_run(weir_model *model, const weir_whatif_options *options, prediction_parts *parts,
                       weir_error *error)
{
    weir_prediction *p = &parts->prediction;
    int status = prepare_run(model, options->seed, options->num_items, error);
    if (status == WEIR_OK)
        status = fill_parts(model, options, parts, error);
    model_lap *whole = status == WEIR_OK && !options->no_range ? weir__model_sum(model, true) : NULL;
    if (whole)
        status = find_range(model, options, whole, p, error);
    else if (status == WEIR_OK && !options->no_range)
        status = weir__model_no_memory(error);
    free(whole);
    return status;
}

int weir__model_predict(weir_model *model, const weir_whatif_options *options, weir_prediction **prediction,
                        weir_error *error)
{
    static const weir_whatif_options defaults = { 0 };
    if (!model || !prediction)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *prediction = NULL;
    options = options ? options : &defaults;
    const char *mistake = find_incomplete(model);
    if (mistake || options->resamples > MAX_RESAMPLES)
        return weir_error_set(error, WEIR_EINVAL, 0, mistake ? "the model %s" : "resamples: at most 1000", mistake);
    prediction_parts *parts = new_parts(model->num_nodes);
    int status = parts ? predict_run(model, options, parts, error) : weir__model_no_memory(error);
    if (status == WEIR_OK)
        *prediction = &parts->prediction;
    else
        weir_prediction_free(parts ? &parts->prediction : NULL);
    return status;
}

/* "decode.concurrency=8" */
static int apply_setting(weir_model *model, const char *setting, weir_error *error)
{
    char *name = setting ? strdup(setting) : NULL, *equals = name ? strchr(name, '=') : NULL;
    int status = WEIR_EINVAL;
    if (setting && !name)
        status = weir__model_no_memory(error);
    else if (!equals)
        weir_error_set(error, status, 0, "\"%s\" is not a setting and its value, such as decode.concurrency=8",
                       setting ? setting : "");
    else {
        *equals = '\0';
        status = weir__model_set(model, name, equals + 1, error);
    }
    free(name);
    return status == WEIR_ENOTFOUND ? WEIR_EINVAL : status;
}

int weir_whatif_sized(weir_recording *recording, const weir_filter *filter, const weir_whatif_options *options,
                      size_t options_size, weir_prediction **prediction, weir_error *error)
{
    weir_whatif_options own;
    weir_model *model = NULL;
    if (!recording || !prediction)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *prediction = NULL;
    int status = weir_struct_copy(&own, sizeof own, options, options_size, "weir_whatif_options", error);
    if (status == WEIR_OK)
        status = weir__model_read(recording, filter, &model, error);
    for (size_t i = 0; status == WEIR_OK && own.settings && i < own.num_settings; i++)
        status = apply_setting(model, own.settings[i], error);
    if (status == WEIR_OK)
        status = weir__model_measured(model) == 0
                     ? weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                      "no item was delivered: there is no throughput to predict from")
                     : weir__model_predict(model, &own, prediction, error);
    weir__model_free(model);
    return status;
}
