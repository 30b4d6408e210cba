#include <weir/cache.h>

#include <stdio.h>

#include "stages/memory/kept_items.h"

typedef struct cache_worker {
    weir_kept_items kept;
    uint64_t num_passed;
    uint64_t num_replayed;
    bool is_done; /* the replay has ended */
} cache_worker;

static int check_cache(void *config, weir_error *error)
{
    (void)error;
    weir_cache_config *cache = config;
    cache->num_items = cache->num_items ? cache->num_items : 32;
    cache->max_bytes = cache->max_bytes ? cache->max_bytes : UINT64_C(1) << 30;
    return WEIR_OK;
}

static int init_cache(void *self, const void *config, weir_task *task)
{
    (void)task;
    cache_worker *worker = self;
    const weir_cache_config *cache = config;
    worker->kept = (weir_kept_items){ .max_items = cache->num_items, .max_bytes = cache->max_bytes };
    return WEIR_OK;
}

static void log_cache(weir_task *task, const char *verb, uint64_t number)
{
    char detail[64];
    snprintf(detail, sizeof detail, "%s %llu items", verb, (unsigned long long)number);
    weir_task_event(task, "cache", detail);
}

/* The next replayed item. False = there is none, or there have been enough. */
static bool replay_item(cache_worker *worker, weir_item *out, weir_task *task)
{
    const weir_cache_config *cache = weir_task_config(task);
    if (worker->is_done || worker->kept.num_items == 0)
        return false;
    if (cache->num_replays && worker->num_replayed == cache->num_replays) {
        log_cache(task, "replayed", worker->num_replayed);
        weir__kept_items_free(&worker->kept);
        worker->is_done = true;
        return false;
    }
    if (worker->num_replayed++ == 0)
        log_cache(task, "replaying", worker->kept.num_items);
    weir__kept_items_lend(&worker->kept, out);
    return true;
}

static bool is_time(const cache_worker *worker, const weir_cache_config *cache)
{
    return !weir__kept_items_has_room(&worker->kept) && worker->num_passed >= cache->replay_after;
}

static int run_once(cache_worker *worker, weir_item *in, weir_item *out, weir_task *task)
{
    if (!worker->is_done && is_time(worker, weir_task_config(task)) && replay_item(worker, out, task))
        return WEIR_MORE;
    if (!worker->is_done && weir__kept_items_has_room(&worker->kept) && !weir__kept_items_add(&worker->kept, in))
        return weir_task_fail(task, WEIR_ENOMEM, 0, "no memory to keep an item");
    worker->num_passed++;
    weir_item_move(out, in);
    out->label = in->label;
    return WEIR_OK;
}

static int run_cache(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    cache_worker *worker = self;
    int rc = run_once(worker, in, out, task);
    weir_task_set_held(task, WEIR_HOLDER_WORKER, worker->kept.num_bytes);
    return rc;
}

/* The input has ended. */
static int flush_cache(void *self, weir_item *out, weir_task *task)
{
    cache_worker *worker = self;
    int rc = replay_item(worker, out, task) ? WEIR_MORE : WEIR_SKIP;
    weir_task_set_held(task, WEIR_HOLDER_WORKER, worker->kept.num_bytes);
    return rc;
}

static void free_cache(void *self)
{
    cache_worker *worker = self;
    weir__kept_items_free(&worker->kept);
}

const weir_op weir_cache = {
    .name = "cache",
    .makes = WEIR_TYPE_ANY,
    .config_size = sizeof(weir_cache_config),
    .config_init = check_cache,
    .worker_size = sizeof(cache_worker),
    .worker_init = init_cache,
    .run = run_cache,
    .flush = flush_cache,
    .worker_free = free_cache,
};
