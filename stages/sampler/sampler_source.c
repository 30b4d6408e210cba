/* The sampler as a source. A source has one slot, so the sampler has one user at a time; a worker exists for one
   epoch. */
#include <weir/sampler.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* State that a source keeps between epochs. */
typedef struct sampler_state {
    weir_sampler *sampler;
    uint64_t num_epochs; /* started */
} sampler_state;

typedef struct sampler_worker {
    weir_sampler *sampler;
    uint64_t epoch;
    uint64_t position; /* of the next item */
} sampler_worker;

static void sampler_config_free(void *config)
{
    weir_sampler_source_config *source = config;
    sampler_state *state = source->made;
    if (state)
        weir_sampler_free(state->sampler);
    free(state);
    for (uint64_t i = 0; source->paths && i < source->sampler.num_items; i++)
        free((char *)(uintptr_t)source->paths[i]);
    free((void *)(uintptr_t)source->paths);
}

static int copy_paths(weir_sampler_source_config *source, weir_error *error)
{
    const char *const *given = source->paths;
    uint64_t num_paths = source->sampler.num_items;
    char **paths = calloc(num_paths, sizeof *paths);
    source->paths = (const char *const *)paths;
    if (!paths)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    for (uint64_t i = 0; i < num_paths; i++) {
        if (!given[i])
            return weir_error_set(error, WEIR_EINVAL, 0, "path %" PRIu64 " of the sampler is NULL", i);
        paths[i] = strdup(given[i]);
        if (!paths[i])
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    return WEIR_OK;
}

static int sampler_config_init(void *config, weir_error *error)
{
    weir_sampler_source_config *source = config;
    if (!source->paths == !source->items.fill)
        return weir_error_set(error, WEIR_EINVAL, 0, "the sampler needs either paths or items.fill");
    sampler_state *state = calloc(1, sizeof *state);
    source->made = state;
    int rc = state ? weir_sampler_new(&source->sampler, &state->sampler, error)
                   : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (rc == WEIR_OK && source->first_position > weir_sampler_count(state->sampler))
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "first_position is %" PRIu64 ", but this rank's share is %" PRIu64 " items",
                            source->first_position, weir_sampler_count(state->sampler));
    bool owns_paths = rc == WEIR_OK && source->paths;
    if (owns_paths)
        rc = copy_paths(source, error);
    if (rc == WEIR_OK)
        return rc;
    if (!owns_paths)
        source->paths = NULL;
    sampler_config_free(source);
    return rc;
}

static int sampler_worker_init(void *self, const void *config, weir_task *task)
{
    sampler_worker *worker = self;
    const weir_sampler_source_config *source = config;
    sampler_state *state = source->made;
    *worker = (sampler_worker){
        .sampler = state->sampler,
        .epoch = source->first_epoch + state->num_epochs,
        .position = state->num_epochs == 0 ? source->first_position : 0,
    };
    int rc = weir_sampler_begin(worker->sampler, worker->epoch);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, 0, "out of memory");
    state->num_epochs++;
    return WEIR_OK;
}

static int fill_entry(const weir_sampler_source_config *source, weir_entry *entry, weir_error *error)
{
    if (!source->paths)
        return source->items.fill(source->items.self, entry, error);
    entry->path = strdup(source->paths[entry->number]);
    return entry->path ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int sampler_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    sampler_worker *worker = self;
    if (worker->position == weir_sampler_count(worker->sampler))
        return WEIR_EOF;

    weir_error error = { 0 };
    weir_entry *entry = weir_entry_new();
    if (!entry)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    entry->number = weir_sampler_at(worker->sampler, worker->position);
    entry->epoch = worker->epoch;
    int rc = fill_entry(weir_task_config(task), entry, &error);
    if (rc != WEIR_OK) {
        weir_entry_free(entry);
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);
    }
    worker->position++;
    *out = (weir_item){
        .data = entry,
        .release = weir_entry_release,
        .size_bytes = weir_entry_memory(entry),
        .label = entry->path,
    };
    return WEIR_OK;
}

const weir_op weir_sampler_source = {
    .name = "sampler",
    .makes = WEIR_TYPE_ENTRY,
    .config_size = sizeof(weir_sampler_source_config),
    .config_init = sampler_config_init,
    .config_free = sampler_config_free,
    .worker_size = sizeof(sampler_worker),
    .worker_init = sampler_worker_init,
    .run = sampler_run,
};
