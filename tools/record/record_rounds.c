#include "tools/record/record_rounds.h"

#include <weir/bytes.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct rounds_config {
    union {
        weir_directory_config directory;
        weir_list_config list;
    } of; /* the first member: the operation of one round gets it from weir_task_config() */
    const weir_op *op;
    record_rounds *rounds;
} rounds_config;

typedef struct rounds_worker {
    const weir_op *op;
    void *worker;       /* of the operation, in the present round */
    uint64_t num_items; /* of the present round */
    bool is_first;
    unsigned num_ends; /* ends of epochs made by this source */
} rounds_worker;

static int rounds_config_init(void *config, weir_error *error)
{
    rounds_config *own = config;
    return own->op->config_init(&own->of, error);
}

static void rounds_config_free(void *config)
{
    rounds_config *own = config;
    own->op->config_free(&own->of);
}

static void end_round(rounds_worker *own)
{
    if (own->worker && own->op->worker_free)
        own->op->worker_free(own->worker);
    free(own->worker);
    own->worker = NULL;
}

static int begin_round(rounds_worker *own, const rounds_config *config, weir_task *task)
{
    own->num_items = 0;
    own->worker = calloc(1, own->op->worker_size);
    if (!own->worker)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    int status = own->op->worker_init ? own->op->worker_init(own->worker, &config->of, task) : WEIR_OK;
    if (status == WEIR_OK)
        return WEIR_OK;
    free(own->worker); /* worker_free() is not for what could not be made */
    own->worker = NULL;
    return status;
}

static int rounds_worker_init(void *worker, const void *config, weir_task *task)
{
    rounds_worker *own = worker;
    const rounds_config *of = config;
    own->op = of->op;
    own->is_first = true;
    return begin_round(own, of, task);
}

static void rounds_worker_free(void *worker)
{
    end_round(worker);
}

/* Whether this round ends an epoch: the consumer has nothing yet, or another source has ended one, which waits. */
static bool ends_epoch(rounds_worker *own, record_rounds *rounds)
{
    unsigned most = atomic_load(&rounds->num_ends);
    if (atomic_load(&rounds->has_result) && own->num_ends >= most)
        return false;
    own->num_ends++;
    while (most < own->num_ends && !atomic_compare_exchange_weak(&rounds->num_ends, &most, own->num_ends))
        continue;
    return true;
}

static int rounds_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    rounds_worker *own = worker;
    const rounds_config *config = weir_task_config(task);
    int status = WEIR_EOF;
    while (status == WEIR_EOF) {
        if (!own->is_first && atomic_load(&config->rounds->is_over))
            return WEIR_EOF;
        status = own->op->run(own->worker, in, out, task);
        own->num_items += status == WEIR_OK;
        if (status != WEIR_EOF)
            return status;
        if (own->num_items == 0)
            return WEIR_EOF;
        own->is_first = false;
        end_round(own);
        int begun = begin_round(own, config, task);
        if (begun != WEIR_OK)
            return begun;
        if (ends_epoch(own, config->rounds))
            return WEIR_EPOCH;
    }
    return status;
}

#define ROUNDS_OF(type) \
    { \
        .name = "rounds", .makes = (type), .config_size = sizeof(rounds_config), .config_init = rounds_config_init, \
        .config_free = rounds_config_free, .worker_size = sizeof(rounds_worker), .worker_init = rounds_worker_init, \
        .run = rounds_run, .worker_free = rounds_worker_free, \
    }

static const weir_op rounds_op = ROUNDS_OF(WEIR_TYPE_TEXT);
static const weir_op clip_rounds_op = ROUNDS_OF(WEIR_TYPE_ENTRY);

void record_rounds_source_directory(weir_builder *builder, const weir_directory_config *config, record_rounds *rounds,
                                    const weir_stage_options *options)
{
    rounds_config own = { .of.directory = *config, .op = &weir_directory_source, .rounds = rounds };
    weir_builder_source(builder, &rounds_op, &own, sizeof own, options);
}

void record_rounds_source_list(weir_builder *builder, const weir_list_config *config, record_rounds *rounds,
                               const weir_stage_options *options)
{
    bool is_clips = config->windows || config->num_columns;
    rounds_config own = { .of.list = *config,
                          .op = is_clips ? &weir_clip_list_source : &weir_list_source,
                          .rounds = rounds };
    weir_builder_source(builder, is_clips ? &clip_rounds_op : &rounds_op, &own, sizeof own, options);
}
