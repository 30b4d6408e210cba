/*
 * The sampler as a source. Items are drawn on the source's thread. They are also drawn on the threads of failed tasks
 * that want another item in their place. The source may make the next epoch at that time already. So each draw has
 * the lock of the sampler, and begins its epoch. That does nothing unless the draw before was of another epoch.
 */
#include <weir/sampler.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "dataset/sampler/sampler_resume.h"

static void free_arrays(weir_sampler_config *config)
{
    free((void *)(uintptr_t)config->sizes);
    free((void *)(uintptr_t)config->groups);
    free((void *)(uintptr_t)config->weights);
    free((void *)(uintptr_t)config->classes);
}

static void sampler_config_free(void *config)
{
    weir_sampler_source_config *source = config;
    weir_sampler_free(source->made);
    free_arrays(&source->sampler);
    for (uint64_t i = 0; source->paths && i < source->sampler.num_items; i++)
        free((char *)(uintptr_t)source->paths[i]);
    free((void *)(uintptr_t)source->paths);
    free(source->numbers);
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
    uint64_t *numbers = calloc(num_paths, sizeof *numbers);
    source->numbers = numbers;
    if (!numbers || weir_identity_number(source->paths, num_paths, numbers) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    return WEIR_OK;
}

static const void *copy_array(const void *given, uint64_t num_items, size_t size, bool *has_failed)
{
    void *copy = given && !*has_failed ? malloc(num_items * size) : NULL;
    *has_failed |= given && !copy;
    return copy ? memcpy(copy, given, num_items * size) : NULL;
}

/* The sampler has what it needs of them; weir_builder_copy() makes another sampler. After a failure those that are not
   copied are NULL. */
static int copy_arrays(weir_sampler_config *config, weir_error *error)
{
    bool has_failed = false;
    config->sizes = copy_array(config->sizes, config->num_items, sizeof *config->sizes, &has_failed);
    config->groups = copy_array(config->groups, config->num_items, sizeof *config->groups, &has_failed);
    config->weights = copy_array(config->weights, config->num_items, sizeof *config->weights, &has_failed);
    config->classes = copy_array(config->classes, config->num_items, sizeof *config->classes, &has_failed);
    return has_failed ? weir_error_set(error, WEIR_ENOMEM, 0, "out of memory") : WEIR_OK;
}

/* The identities of the paths are part of what identifies the items. */
static int hash_paths(weir_sampler_source_config *source, weir_error *error)
{
    for (uint64_t i = 0; i < source->sampler.num_items; i++) {
        char *identity = weir_identity_of(source->paths[i]);
        if (!identity)
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        source->dataset = weir__hash(source->dataset, identity, strlen(identity) + 1);
        free(identity);
    }
    return WEIR_OK;
}

static int sampler_config_init(void *config, weir_error *error)
{
    weir_sampler_source_config *source = config;
    source->numbers = NULL;
    if (!source->paths == !source->items.fill)
        return weir_error_set(error, WEIR_EINVAL, 0, "the sampler needs either paths or items.fill");
    if ((unsigned)source->failed > WEIR_FAILED_LEAVE_OUT)
        return weir_error_set(error, WEIR_EINVAL, 0, "failed is %d; give a value of weir_sampler_failed",
                              (int)source->failed);
    bool is_copy = source->made; /* of a config that was initialised: its paths are part of `dataset` */
    weir_sampler *sampler;
    int rc = weir_sampler_new(&source->sampler, &sampler, error);
    source->made = sampler;
    if (rc == WEIR_OK && source->first_position > weir_sampler_count(sampler))
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "first_position is %" PRIu64 ", but this rank's share is %" PRIu64 " items",
                            source->first_position, weir_sampler_count(sampler));
    if (rc != WEIR_OK) {
        weir_sampler_free(sampler);
        return rc;
    }
    rc = copy_arrays(&source->sampler, error);
    bool owns_paths = rc == WEIR_OK && source->paths;
    if (owns_paths)
        rc = copy_paths(source, error);
    if (rc == WEIR_OK && owns_paths && !is_copy)
        rc = hash_paths(source, error);
    if (rc == WEIR_OK)
        return rc;
    if (!owns_paths)
        source->paths = NULL;
    sampler_config_free(source);
    return rc;
}

static int fill_sampled_entry(const weir_sampler_source_config *source, weir_entry *entry, weir_error *error)
{
    if (!source->paths)
        return source->items.fill(source->items.self, entry, error);
    entry->path = strdup(source->paths[entry->number]);
    entry->occurrence = ((const uint64_t *)source->numbers)[entry->number];
    return entry->path ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* WEIR_EOF = the share has no such position; with `attempt`: all that could take it have failed. */
static int draw_entry_locked(const weir_sampler_source_config *source, uint64_t position, uint64_t attempt,
                             weir_entry *entry, weir_error *error)
{
    weir_sampler *sampler = source->made;
    if (weir_sampler_begin(sampler, entry->epoch) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (position >= weir_sampler_count(sampler))
        return WEIR_EOF;
    entry->number = weir_sampler_at(sampler, position);
    if (attempt && !weir__sampler_replacement(sampler, position, attempt, &entry->number))
        return WEIR_EOF;
    return fill_sampled_entry(source, entry, error);
}

/* epoch, seq: of the pipeline. */
static int make_sampled_item(const weir_sampler_source_config *source, uint64_t epoch, uint64_t seq, uint64_t attempt,
                             weir_item *out, weir_error *error)
{
    weir_entry *entry = weir_entry_new();
    if (!entry)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    entry->epoch = source->first_epoch + epoch;
    entry->stands_in = attempt && source->failed == WEIR_FAILED_MASK;
    weir__sampler_lock(source->made);
    int rc = draw_entry_locked(source, seq + (epoch == 0 ? source->first_position : 0), attempt, entry, error);
    weir__sampler_unlock(source->made);
    if (rc != WEIR_OK) {
        weir_entry_free(entry);
        return rc;
    }
    *out = (weir_item){
        .data = entry,
        .release = weir_entry_release,
        .size_bytes = weir_entry_memory(entry),
    };
    if (!entry->path || weir_item_set_address(out, entry->path, entry->occurrence) == WEIR_OK)
        return WEIR_OK;
    weir_item_release(out);
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int sampler_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)self;
    (void)in;
    weir_error error = { 0 };
    int rc = make_sampled_item(weir_task_config(task), weir_task_epoch(task), weir_task_seq(task), 0, out, &error);
    return rc < 0 ? weir_task_fail(task, rc, error.library_code, "%s", error.message) : rc;
}

static int sampler_replace(const void *config, uint64_t epoch, uint64_t seq, uint64_t attempt, weir_item *out,
                           weir_error *error)
{
    const weir_sampler_source_config *source = config;
    bool promises = source->failed == WEIR_FAILED_DEFAULT ? source->sampler.share != WEIR_SHARE_EXACT
                                                          : source->failed != WEIR_FAILED_LEAVE_OUT;
    if (!promises || attempt == 0)
        return promises ? WEIR_OK : WEIR_SKIP;
    int rc = make_sampled_item(source, epoch, seq, attempt, out, error);
    return rc == WEIR_EOF
               ? weir_error_set(error, WEIR_EDATA, 0,
                                "all %" PRIu64 " items that could be in this place have failed, so this rank "
                                "cannot keep its number of items",
                                attempt)
               : rc;
}

static char *sampler_save(const void *config, uint64_t epoch)
{
    const weir_sampler_source_config *source = config;
    return weir__sampler_save(source->made, source->dataset, epoch);
}

static int sampler_resume(void *config, const weir_checkpoint *const *checkpoints, size_t num_checkpoints,
                          size_t source, weir_error *error)
{
    const weir_sampler_source_config *own = config;
    if (own->first_epoch || own->first_position)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the sampler has first_epoch or first_position, but is resumed from a checkpoint");
    return weir__sampler_resume(own->made, own->dataset, checkpoints, num_checkpoints, source, error);
}

static uint64_t sampler_renumber(const void *config, size_t checkpoint, uint64_t epoch, uint64_t seq)
{
    const weir_sampler_source_config *source = config;
    return weir__sampler_renumber(source->made, checkpoint, epoch, seq);
}

const weir_op weir_sampler_source = {
    .name = "sampler",
    .makes = WEIR_TYPE_ENTRY,
    .config_size = sizeof(weir_sampler_source_config),
    .config_init = sampler_config_init,
    .config_free = sampler_config_free,
    .run = sampler_run,
    .save = sampler_save,
    .resume = sampler_resume,
    .renumber = sampler_renumber,
    .replace = sampler_replace,
    .needs_results = 1,
};
