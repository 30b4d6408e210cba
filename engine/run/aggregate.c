#include <weir/batch.h>

#include <stdlib.h>

/* The incomplete batch of a slot. */
typedef struct aggregate_worker {
    weir_batch *batch; /* with room for num_items items; NULL = none yet */
    size_t size_bytes; /* of its items */
} aggregate_worker;

static weir_batch *batch_new(size_t num_items)
{
    weir_batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->items = calloc(num_items, sizeof *batch->items);
    if (batch->items)
        return batch;
    free(batch);
    return NULL;
}

static void pass_batch(aggregate_worker *worker, weir_item *out)
{
    weir_batch *batch = worker->batch;
    out->data = batch;
    out->size_bytes = worker->size_bytes;
    out->release = weir_batch_release;
    weir_item_copy_label(out, &batch->items[batch->num_items - 1]);
    *worker = (aggregate_worker){ 0 };
}

static int check_aggregate(void *config, weir_error *error)
{
    const weir_aggregate_config *aggregate = config;
    if (aggregate->num_items == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_items is 0; a batch has at least 1");
    return WEIR_OK;
}

static int run_aggregate(void *state, weir_item *in, weir_item *out, weir_task *task)
{
    aggregate_worker *worker = state;
    const weir_aggregate_config *config = weir_task_config(task);
    if (!worker->batch)
        worker->batch = batch_new(config->num_items);
    if (!worker->batch)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "no memory for a batch of %zu items", config->num_items);

    worker->size_bytes =
        in->size_bytes > SIZE_MAX - worker->size_bytes ? SIZE_MAX : worker->size_bytes + in->size_bytes;
    weir_item_keep(&worker->batch->items[worker->batch->num_items++], in);
    weir_task_set_held(task, WEIR_HOLDER_WORKER, worker->size_bytes);
    if (worker->batch->num_items < config->num_items)
        return WEIR_KEPT;
    pass_batch(worker, out);
    weir_task_set_held(task, WEIR_HOLDER_WORKER, 0);
    return WEIR_OK;
}

static int flush_aggregate(void *state, weir_item *out, weir_task *task)
{
    aggregate_worker *worker = state;
    const weir_aggregate_config *config = weir_task_config(task);
    if (!worker->batch)
        return WEIR_SKIP;
    weir_task_set_held(task, WEIR_HOLDER_WORKER, 0);
    if (!config->drop_last) {
        pass_batch(worker, out);
        return WEIR_OK;
    }
    weir_batch_free(worker->batch);
    *worker = (aggregate_worker){ 0 };
    return WEIR_SKIP;
}

static void free_aggregate(void *state)
{
    aggregate_worker *worker = state;
    weir_batch_free(worker->batch);
}

const weir_op weir_aggregate = {
    .name = "aggregate",
    .makes = WEIR_TYPE_BATCH,
    .config_size = sizeof(weir_aggregate_config),
    .config_init = check_aggregate,
    .worker_size = sizeof(aggregate_worker),
    .run = run_aggregate,
    .flush = flush_aggregate,
    .worker_free = free_aggregate,
};

/* ---- disaggregate ------------------------------------------------------------------------------------------- */

static int run_disaggregate(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    weir_batch *batch = in->data;
    if (batch->num_taken == batch->num_items)
        return WEIR_SKIP;
    weir_item_pass(out, &batch->items[batch->num_taken++]);
    return batch->num_taken < batch->num_items ? WEIR_MORE : WEIR_OK;
}

const weir_op weir_disaggregate = {
    .name = "disaggregate",
    .takes = WEIR_TYPE_BATCH,
    .makes = WEIR_TYPE_ANY,
    .run = run_disaggregate,
};
