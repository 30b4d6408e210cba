#include <weir/sampler.h>

#include <stdlib.h>

#include "common/random.h"

typedef struct shuffle_worker {
    weir_item *items;
    size_t num_items;
    uint64_t state; /* of the random draws at the end */
} shuffle_worker;

static int check_shuffle(void *config, weir_error *error)
{
    const weir_shuffle_config *shuffle = config;
    if (shuffle->num_items == 0 || shuffle->num_items > SIZE_MAX / sizeof(weir_item))
        return weir_error_set(error, WEIR_EINVAL, 0, "num_items is %zu; a shuffle buffer holds at least 1",
                              shuffle->num_items);
    return WEIR_OK;
}

static int init_shuffle(void *self, const void *config, weir_task *task)
{
    shuffle_worker *worker = self;
    const weir_shuffle_config *shuffle = config;
    worker->items = calloc(shuffle->num_items, sizeof *worker->items);
    if (worker->items)
        return WEIR_OK;
    return weir_task_fail(task, WEIR_ENOMEM, 0, "no memory for a buffer of %zu items", shuffle->num_items);
}

static void pass_item(shuffle_worker *worker, size_t at, weir_item *out)
{
    weir_item_pass(out, &worker->items[at]);
    weir_item_release(&worker->items[at]);
}

static int run_shuffle(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    shuffle_worker *worker = self;
    const weir_shuffle_config *config = weir_task_config(task);
    uint64_t state = weir__random_seed(weir__random_seed(config->seed, weir_task_epoch(task)), weir_task_seq(task));
    worker->state = state;
    if (worker->num_items < config->num_items) {
        weir_item_keep(&worker->items[worker->num_items++], in);
        return WEIR_KEPT;
    }
    size_t at = (size_t)weir__random_below(&state, worker->num_items);
    pass_item(worker, at, out);
    weir_item_keep(&worker->items[at], in);
    return WEIR_OK;
}

static int flush_shuffle(void *self, weir_item *out, weir_task *task)
{
    (void)task;
    shuffle_worker *worker = self;
    if (worker->num_items == 0)
        return WEIR_SKIP;
    size_t at = (size_t)weir__random_below(&worker->state, worker->num_items--);
    pass_item(worker, at, out);
    worker->items[at] = worker->items[worker->num_items];
    worker->items[worker->num_items] = (weir_item){ 0 };
    return worker->num_items ? WEIR_MORE : WEIR_OK;
}

static void free_shuffle(void *self)
{
    shuffle_worker *worker = self;
    for (size_t i = 0; i < worker->num_items; i++)
        weir_item_release(&worker->items[i]);
    free(worker->items);
}

const weir_op weir_shuffle = {
    .name = "shuffle",
    .makes = WEIR_TYPE_ANY,
    .config_size = sizeof(weir_shuffle_config),
    .config_init = check_shuffle,
    .worker_size = sizeof(shuffle_worker),
    .worker_init = init_shuffle,
    .run = run_shuffle,
    .flush = flush_shuffle,
    .worker_free = free_shuffle,
};
