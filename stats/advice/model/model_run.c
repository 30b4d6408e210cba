/* Makes models of runs from their records. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/query.h>

#include "common/array.h"
#include "stats/advice/model/model.h"
#include "stats/read/long_runs.h"

/* ---- the pipeline ------------------------------------------------------------------------------------------- */

static bool add_queue(weir_model *model, size_t node, uint32_t branch, char *name)
{
    model_queue *queues = name ? weir__array_grow(model->queues, model->num_queues, sizeof *queues) : NULL;
    if (!queues) {
        free(name);
        return false;
    }
    model->queues = queues;
    queues[model->num_queues++] = (model_queue){ name, node, branch };
    return true;
}

static bool add_pool(weir_model *model, size_t node, char *name)
{
    model_pool *pools = name ? weir__array_grow(model->pools, model->num_pools, sizeof *pools) : NULL;
    if (!pools) {
        free(name);
        return false;
    }
    model->pools = pools;
    pools[model->num_pools++] = (model_pool){ name, node };
    return true;
}

static size_t find_queue(const weir_model *model, const char *name, size_t length)
{
    size_t i = 0;
    while (i < model->num_queues &&
           (strlen(model->queues[i].name) != length || strncmp(model->queues[i].name, name, length) != 0))
        i++;
    return i;
}

/* The nodes and branches that fill the queues in a list, separated by spaces. Returns how many; -1 = a queue that does
   not exist. */
static int read_inputs(const weir_model *model, const char *list, uint32_t *inputs, uint32_t *branches, uint32_t most)
{
    int count = 0;
    for (; list && *list; list += strspn(list, " ")) {
        size_t length = strcspn(list, " "), queue = find_queue(model, list, length);
        if (queue == model->num_queues || (uint32_t)count == most)
            return -1;
        branches[count] = model->queues[queue].branch;
        inputs[count++] = (uint32_t)model->queues[queue].node;
        list += length;
    }
    return count;
}

/* "arrival", "round_robin", "weighted 3 1", "random", "random 3 1": random draws are shared in the same way */
static weir_merge_order read_merge_order(const char *text, uint32_t *weights, uint32_t num_weights)
{
    bool is_random = text && strncmp(text, "random", 6) == 0;
    if (!text || (strncmp(text, "weighted", 8) != 0 && !is_random))
        return text && strcmp(text, "round_robin") == 0 ? WEIR_MERGE_ROUND_ROBIN : WEIR_MERGE_ARRIVAL;
    text += is_random ? 6 : 8;
    for (uint32_t i = 0; i < num_weights; i++) {
        char *end;
        weights[i] = (uint32_t)strtoul(text, &end, 10);
        weights[i] += weights[i] == 0 && is_random;
        text = end;
    }
    return WEIR_MERGE_WEIGHTED;
}

enum { MAX_INPUTS = 1024 };

static bool add_queues(weir_model *model, const weir_stage_record *info, size_t node, uint32_t num_branches)
{
    bool is_added = true;
    for (uint32_t i = 0; i < num_branches && is_added; i++) {
        char *name = NULL;
        int length = num_branches > 1 ? asprintf(&name, "%s.%" PRIu32 "_queue", info->name, i)
                                      : asprintf(&name, "%s_queue", info->name);
        is_added = add_queue(model, node, i, length < 0 ? NULL : name);
    }
    return is_added;
}

/* The number of branches of a route: those that later nodes take from. */
static uint32_t count_branches(const weir_records *stages, size_t index)
{
    const weir_stage_record *route = &stages->all[index]->stage;
    size_t length = strlen(route->name);
    uint32_t count = 0;
    for (size_t i = index + 1; i < stages->count; i++) {
        const char *inputs = stages->all[i]->stage.inputs;
        for (const char *at = inputs; length && (at = strstr(at, route->name)); at += length)
            count += (at == inputs || at[-1] == ' ') && (at[length] == '.' || at[length] == '_');
    }
    return count;
}

static int add_stage(weir_model *model, const weir_records *stages, size_t index, weir_error *error)
{
    const weir_stage_record *info = &stages->all[index]->stage;
    uint32_t inputs[MAX_INPUTS], branches[MAX_INPUTS], weights[MAX_INPUTS] = { 0 };
    int num_inputs = read_inputs(model, info->inputs, inputs, branches, MAX_INPUTS);
    bool is_route = strcmp(info->kind, "route") == 0, is_merge = strcmp(info->kind, "merge") == 0;
    uint32_t num_branches = is_route ? count_branches(stages, index) : 1;
    static const weir_histogram empty;
    if (num_inputs < 0 || num_branches == 0 || ((is_route || is_merge) && num_inputs == 0))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the recording does not say how %s is connected; record it again", info->name);
    double *shares = calloc(num_branches, sizeof *shares);
    if (!shares)
        return weir__model_no_memory(error);
    weir_model_node node = { .name = info->name,
                             .kind = info->kind,
                             .concurrency = (uint32_t)info->concurrency,
                             .threads = (uint32_t)fmin(fmax((double)info->threads, 0), WEIR_MAX_THREADS),
                             .queue_items = (uint32_t)info->queue_items,
                             .queue_bytes = (uint64_t)info->queue_bytes,
                             .look_ahead_items = (uint32_t)fmin((double)info->look_ahead_items, WEIR_MAX_QUEUE_ITEMS),
                             .num_inputs = (uint32_t)num_inputs,
                             .inputs = inputs,
                             .branches = branches,
                             .output_order =
                                 strcmp(info->output_order, "input") == 0 ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION,
                             .merge_order = read_merge_order(info->merge_order, weights, (uint32_t)num_inputs),
                             .shares = shares,
                             .num_shares = is_route ? num_branches : 0,
                             .times = &empty };
    node.weights = node.merge_order == WEIR_MERGE_WEIGHTED ? weights : NULL;
    char *pool = NULL;
    int status = weir__model_add(model, &node, error);
    if (status == WEIR_OK && !add_queues(model, info, model->num_nodes - 1, num_branches))
        status = weir__model_no_memory(error);
    if (status == WEIR_OK && node.threads &&
        !add_pool(model, model->num_nodes - 1, asprintf(&pool, "%s_pool", info->name) < 0 ? NULL : pool))
        status = weir__model_no_memory(error);
    free(shares);
    return status;
}

int weir__model_begin(weir_model *model, const weir_records *stages, weir_error *error)
{
    char *pool = NULL;
    unsigned pipeline = 0;
    weir__model_clear(model);
    if (stages->count == 0 || strcmp(stages->all[0]->stage.kind, "source") != 0)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the recording does not say which sources it had; record it again");
    sscanf(stages->all[0]->stage.name, "%u", &pipeline);
    int status = WEIR_OK;
    if (!add_pool(model, SIZE_MAX, asprintf(&pool, "%u:pool", pipeline) < 0 ? NULL : pool))
        status = weir__model_no_memory(error);
    for (size_t i = 0; i < stages->count && status == WEIR_OK; i++)
        status = add_stage(model, stages, i, error);
    if (status == WEIR_OK) {
        model->current = weir__model_lap_new(model);
        model->others = weir__model_lap_new(model);
        if (!model->current || !model->others)
            status = weir__model_no_memory(error);
    }
    if (status != WEIR_OK)
        weir__model_clear(model);
    return status;
}

/* ---- laps --------------------------------------------------------------------------------------------------- */

/* After the first results, and before a source ended. The lap of the first results holds the start-up. */
static bool is_steady(const weir_model *model, const model_lap *lap)
{
    bool had_results = model->num_laps > 0 || model->others->queues[model->num_queues - 1].num_items > 0;
    for (size_t i = 0; i < model->num_nodes; i++)
        if (strcmp(model->recorded.nodes[i].kind, "source") == 0 &&
            (lap->tasks[i].ended_ns > 0 || lap->tasks[i].wait_in_ns > 0))
            return false;
    return had_results;
}

/* Joins neighbouring laps to make room for more. */
static void join_laps(weir_model *model)
{
    for (size_t i = 0; i < MODEL_MAX_LAPS / 2; i++) {
        weir__model_lap_add(model, model->laps[2 * i], model->laps[2 * i + 1]);
        free(model->laps[2 * i + 1]);
        model->laps[i] = model->laps[2 * i];
    }
    model->num_laps = MODEL_MAX_LAPS / 2;
    model->laps_joined *= 2;
}

static void keep_lap(weir_model *model, model_lap *lap)
{
    model->laps_joined = model->laps_joined ? model->laps_joined : 1;
    model_lap *last = model->num_laps ? model->laps[model->num_laps - 1] : NULL;
    if (last && last->num_laps < model->laps_joined) {
        weir__model_lap_add(model, last, lap);
        return;
    }
    if (model->num_laps == MODEL_MAX_LAPS)
        join_laps(model);
    model_lap *kept = weir__model_lap_new(model);
    model->lacks_memory |= !kept;
    if (!kept)
        return;
    weir__model_lap_add(model, kept, lap);
    model->laps[model->num_laps++] = kept;
}

void weir__model_learn(weir_model *model)
{
    model_lap *all = weir__model_sum(model, false), *whole = weir__model_sum(model, true);
    if (all && whole) {
        weir__model_figure(model, all, whole, model->recorded.nodes);
        weir__model_show(model);
        model->measured = weir__model_throughput(model, all);
    }
    model->lacks_memory |= !all || !whole;
    free(all);
    free(whole);
    model->baseline = NAN;
    model->knows_background = false;
}

static void take_stage(weir_model *model, const weir_lap_record *lap)
{
    for (size_t i = 0; i < model->num_nodes; i++)
        if (strcmp(model->recorded.nodes[i].name, lap->name) == 0) {
            weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_STAGE), &model->current->tasks[i], &lap->metrics);
            if (lap->metrics.task.run_times)
                weir_histogram_add(&model->current->times[i], lap->metrics.task.run_times);
        }
}

static void take_queue(weir_model *model, const weir_lap_record *lap)
{
    size_t queue = find_queue(model, lap->name, strlen(lap->name));
    if (queue < model->num_queues)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_QUEUE), &model->current->queues[queue], &lap->metrics);
}

static void take_pool(weir_model *model, const weir_lap_record *lap)
{
    for (size_t i = 0; i < model->num_pools; i++)
        if (strcmp(model->pools[i].name, lap->name) == 0) {
            weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_POOL), &model->current->pools[i], &lap->metrics);
            if (i == 0 && lap->capacity > 0)
                model->recorded.threads =
                    fmin((double)lap->capacity, WEIR_MAX_THREADS); /* a database may say anything */
        }
}

void weir__model_end_lap(weir_model *model)
{
    model_lap *lap = model->current;
    if (!lap || lap->num_laps == 0)
        return;
    if (is_steady(model, lap))
        keep_lap(model, lap);
    else
        weir__model_lap_add(model, model->others, lap);
    weir__model_lap_clear(model, lap);
}

int weir__model_take(void *self, const weir_record *record, weir_error *error)
{
    static const int64_t same_ns = 1000; /* times in the database are exact to a quarter of it */
    weir_model *model = self;
    const weir_lap_record *lap = &record->lap;
    (void)error;
    if (lap->subject == WEIR_SUBJECT_PROCESS && lap->capacity > 0)
        model->recorded.cpus = (double)lap->capacity;
    if (!model->current)
        return WEIR_OK;
    if (lap->end_unix_ns > model->end_unix_ns + same_ns)
        weir__model_end_lap(model);
    if (model->current->num_laps == 0) {
        model->current->num_laps = 1;
        model->current->elapsed_ns = lap->elapsed_ns;
        model->end_unix_ns = lap->end_unix_ns;
    }
    switch (lap->subject) {
    case WEIR_SUBJECT_STAGE:
    case WEIR_SUBJECT_FLOW: take_stage(model, lap); break;
    case WEIR_SUBJECT_QUEUE: take_queue(model, lap); break;
    case WEIR_SUBJECT_POOL: take_pool(model, lap); break;
    case WEIR_SUBJECT_PROCESS:
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &model->current->process, &lap->metrics);
        break;
    case WEIR_SUBJECT_MACHINE:
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &model->current->machine, &lap->metrics);
        break;
    default: break;
    }
    return WEIR_OK;
}

static int take_start(void *self, const weir_row *row, weir_error *error)
{
    (void)error;
    *(int64_t *)self = weir_row_int(row, 0);
    return WEIR_OK;
}

/* The last change of a stage's slots or a pool's threads counts. */
static int take_change(void *self, const weir_row *row, weir_error *error)
{
    weir_model *model = self;
    const char *event = weir_row_text(row, 0), *name = weir_row_text(row, 1);
    uint32_t count = 0;
    (void)error;
    if (sscanf(weir_row_text(row, 2), "%*u -> %" SCNu32, &count) != 1 || count == 0 || count > WEIR_MAX_THREADS)
        return WEIR_OK;
    for (size_t i = 0; i < model->num_nodes && strcmp(event, "concurrency") == 0; i++)
        if (strcmp(model->recorded.nodes[i].name, name) == 0)
            model->recorded.nodes[i].concurrency = count;
    for (size_t i = 0; i < model->num_pools && strcmp(event, "threads") == 0; i++)
        if (strcmp(model->pools[i].name, name) == 0 && model->pools[i].node != SIZE_MAX)
            model->recorded.nodes[model->pools[i].node].threads = count;
    return WEIR_OK;
}

int weir__model_settle(weir_recording *recording, weir_filter *filter, weir_error *error)
{
    int64_t start_unix_ns = 0;
    int status =
        weir_recording_query(recording, filter,
                             "SELECT CAST(1e9 * min(timestamp - 0.75 * elapsed) AS INTEGER) FROM queues WHERE "
                             "timestamp - elapsed >= (SELECT max(timestamp) FROM events WHERE event_name = "
                             "'trial')",
                             NULL, take_start, &start_unix_ns, error);
    if (start_unix_ns > filter->start_unix_ns)
        filter->start_unix_ns = start_unix_ns;
    return status;
}

static int read_laps(weir_model *model, weir_recording *recording, const weir_filter *filter, weir_error *error)
{
    weir_records stages;
    weir_error why = { 0 };
    int status =
        weir_records_read(recording, WEIR_RECORD_STAGE, &(weir_filter){ .run_id = filter->run_id }, &stages, error);
    if (status != WEIR_OK)
        return status;
    status = weir__model_begin(model, &stages, &why);
    weir_records_free(&stages);
    if (status != WEIR_OK)
        return weir_error_set(error, status, 0, "run %" PRId64 " of %s: %s", filter->run_id,
                              weir_recording_path(recording), why.message);
    weir_filter until = { .run_id = filter->run_id, .end_unix_ns = filter->end_unix_ns };
    status =
        weir_recording_query(recording, &until,
                             "SELECT event_name, category, detail FROM events WHERE event_name IN ('concurrency', "
                             "'threads') ORDER BY id",
                             NULL, take_change, model, error);
    if (status != WEIR_OK)
        return status;
    status = weir_recording_each_lap(recording, filter, weir__model_take, model, error);
    weir__model_end_lap(model);
    return status;
}

/* Databases of older schemas have no laps of sources. */
static int check_sources(const weir_model *model, int64_t run_id, weir_error *error)
{
    model_lap *whole = weir__model_sum(model, true);
    int status = whole ? WEIR_OK : weir__model_no_memory(error);
    for (size_t i = 0; whole && i < model->num_nodes && status == WEIR_OK; i++) {
        const weir_model_node *node = &model->recorded.nodes[i];
        if (strcmp(node->kind, "source") == 0 && whole->tasks[i].num_tasks == 0)
            status = weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                    "run %" PRId64 " has no task of the source %s to learn from; record it again",
                                    run_id, node->name);
    }
    free(whole);
    return status;
}

/* "Linux 6.1 x86_64, 16 CPUs (…), 64.0 GB" */
static double cpus_of(const char *machine)
{
    const char *comma = strstr(machine, ", ");
    uint32_t count = 0;
    bool is_known = comma && sscanf(comma, ", %u CPUs", &count) == 1 && count > 0;
    return is_known ? count : weir_cpu_budget();
}

int weir__model_read(weir_recording *recording, const weir_filter *filter, weir_model **made, weir_error *error)
{
    if (!recording || !made)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter own = filter ? *filter : (weir_filter){ 0 };
    weir_run_record run;
    own.name = NULL; /* the model needs all nodes */
    own.no_replay = true;
    own.descending = own.longest_first = false;
    own.limit = 0;
    *made = NULL;
    bool was_joined;
    int status =
        weir_recording_find_run(recording, own.run_id == WEIR_ALL_RUNS ? WEIR_LAST_RUN : own.run_id, &run, error);
    if (status == WEIR_OK)
        status = weir__model_new(made, error);
    if (status != WEIR_OK)
        return status;
    own.run_id = run.run_id;
    (*made)->recorded.cpus = cpus_of(run.machine); /* laps may say how many of them the process may use */
    status = weir__recording_join_laps(recording, &own, &was_joined, error);
    if (status == WEIR_OK)
        status = weir__model_settle(recording, &own, error);
    if (status == WEIR_OK)
        status = read_laps(*made, recording, &own, error);
    weir__recording_join_laps_end(recording, was_joined);
    if (status == WEIR_OK && weir__model_num_laps(*made) == 0)
        status = weir_error_set(error, WEIR_ENOTFOUND, 0, "no lap of run %" PRId64 " matches", own.run_id);
    if (status == WEIR_OK)
        status = check_sources(*made, own.run_id, error);
    if (status == WEIR_OK) {
        weir__model_learn(*made);
        status = (*made)->lacks_memory ? weir__model_no_memory(error) : WEIR_OK;
    }
    if (status != WEIR_OK) {
        weir__model_free(*made);
        *made = NULL;
    }
    return status;
}
