/* The list source. It has one slot, so the worker has one user at a time. */
#include <weir/files.h>

#include <stdlib.h>
#include <string.h>

typedef struct list_worker {
    size_t next;
} list_worker;

static void list_config_free(void *config)
{
    weir_list_config *list = config;
    free((void *)list->paths);
    free((void *)list->occurrences);
}

/* Makes a copy of the numbers, or the numbers. */
static int number_paths(weir_list_config *list, weir_error *error)
{
    uint64_t *numbers = calloc(list->num_paths ? list->num_paths : 1, sizeof *numbers);
    int status = numbers ? WEIR_OK : WEIR_ENOMEM;
    if (numbers && list->occurrences && list->num_paths)
        memcpy(numbers, list->occurrences, list->num_paths * sizeof *numbers);
    else if (numbers && !list->occurrences)
        status = weir_identity_number(list->paths, list->num_paths, numbers);
    if (status == WEIR_OK) {
        list->occurrences = numbers;
        return WEIR_OK;
    }
    free(numbers);
    return weir_error_set(error, status, 0, "out of memory");
}

/* Copies the array and its strings into one block. */
static int list_config_init(void *config, weir_error *error)
{
    weir_list_config *list = config;
    if (list->num_paths == 0 && !list->may_be_empty)
        return weir_error_set(error, WEIR_ENOTFOUND, 0,
                              "the list of files is empty; set may_be_empty if a run without files is fine");
    size_t total_bytes = list->num_paths * sizeof(char *);
    for (size_t i = 0; i < list->num_paths; i++) {
        if (!list->paths[i])
            return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", i);
        total_bytes += strlen(list->paths[i]) + 1;
    }
    char **copy = malloc(total_bytes ? total_bytes : 1);
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int status = number_paths(list, error);
    if (status != WEIR_OK) {
        free(copy);
        return status;
    }

    char *end = (char *)(copy + list->num_paths);
    for (size_t i = 0; i < list->num_paths; i++) {
        size_t path_bytes = strlen(list->paths[i]) + 1;
        copy[i] = memcpy(end, list->paths[i], path_bytes);
        end += path_bytes;
    }
    list->paths = (const char *const *)copy;
    return WEIR_OK;
}

static int list_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    list_worker *worker = self;
    const weir_list_config *list = weir_task_config(task);
    if (worker->next == list->num_paths)
        return WEIR_EOF;

    char *copy = strdup(list->paths[worker->next]);
    if (!copy)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    *out = (weir_item){ .data = copy, .release = weir_release_free };
    if (weir_item_set_address(out, copy, list->occurrences[worker->next]) != WEIR_OK) {
        weir_item_release(out);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    worker->next++;
    return WEIR_OK;
}

const weir_op weir_list_source = {
    .name = "list",
    .makes = WEIR_TYPE_TEXT,
    .config_size = sizeof(weir_list_config),
    .config_init = list_config_init,
    .config_free = list_config_free,
    .worker_size = sizeof(list_worker),
    .run = list_run,
};
