/* The list source. It has one slot, so the worker has one user at a time. */
#include <weir/bytes.h>
#include <weir/files.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/memory/clip_window_check.h"
#include "stages/memory/column_values.h"

typedef struct list_worker {
    size_t next;
} list_worker;

static void list_config_free(void *config)
{
    weir_list_config *list = config;
    free((void *)list->paths);
    free((void *)list->occurrences);
    free((void *)list->windows);
    free((void *)(uintptr_t)list->columns);
}

/* Are items more than paths? */
static bool has_entries(const weir_list_config *list)
{
    return list->windows || list->num_columns;
}

static int check_windows(const weir_list_config *list, weir_error *error)
{
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && list->windows && i < list->num_paths; i++) {
        char what[64];
        snprintf(what, sizeof what, "path %zu of the list", i);
        rc = weir__clip_window_check(&list->windows[i], what, error);
    }
    return rc;
}

/* NULL = there are none, or out of memory. */
static weir_clip_window *copy_windows(const weir_list_config *list)
{
    weir_clip_window *copy = list->windows ? calloc(list->num_paths ? list->num_paths : 1, sizeof *copy) : NULL;
    if (copy && list->num_paths)
        memcpy(copy, list->windows, list->num_paths * sizeof *copy);
    return copy;
}

/* Makes copies of the windows and the columns. */
static int own_windows(weir_list_config *list, weir_error *error)
{
    weir_clip_window *windows = copy_windows(list);
    weir_column *columns =
        list->num_columns ? weir__columns_copy(list->columns, list->num_columns, list->num_paths) : NULL;
    if ((list->windows && !windows) || (list->num_columns && !columns)) {
        free(columns);
        free(windows);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    list->windows = windows;
    list->columns = list->num_columns ? columns : NULL;
    return WEIR_OK;
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
    int status = check_windows(list, error);
    if (status == WEIR_OK)
        status = weir__columns_check(list->columns, list->num_columns, list->num_paths, error);
    if (status != WEIR_OK)
        return status;
    size_t total_bytes = list->num_paths * sizeof(char *);
    for (size_t i = 0; i < list->num_paths; i++) {
        if (!list->paths[i])
            return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", i);
        total_bytes += strlen(list->paths[i]) + 1;
    }
    char **copy = malloc(total_bytes ? total_bytes : 1);
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    status = number_paths(list, error);
    if (status != WEIR_OK) {
        free(copy);
        return status;
    }
    status = own_windows(list, error);
    if (status != WEIR_OK) {
        free(copy);
        free((void *)list->occurrences);
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

static int set_values(weir_entry *entry, const weir_list_config *list, size_t at)
{
    weir_value *values = calloc(list->num_columns + 1, sizeof *values);
    for (size_t i = 0; values && i < list->num_columns; i++)
        values[i] = weir__column_value(&list->columns[i], at);
    int status = values ? weir_entry_set_values(entry, values, list->num_columns) : WEIR_ENOMEM;
    free(values);
    return status;
}

static weir_item describe_entry(weir_entry *entry, char *path, const weir_list_config *list, size_t at,
                                uint64_t epoch)
{
    entry->path = path;
    entry->number = at;
    entry->epoch = epoch;
    entry->occurrence = list->occurrences[at];
    if (list->windows)
        entry->window = list->windows[at];
    return (weir_item){ .data = entry, .release = weir_entry_release };
}

static int list_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    list_worker *worker = self;
    const weir_list_config *list = weir_task_config(task);
    if (worker->next == list->num_paths)
        return WEIR_EOF;

    bool is_entry = has_entries(list);
    char *copy = strdup(list->paths[worker->next]);
    weir_entry *entry = copy && is_entry ? weir_entry_new() : NULL;
    if (!copy || (is_entry && (!entry || set_values(entry, list, worker->next) != WEIR_OK))) {
        weir_entry_free(entry);
        free(copy);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    if (is_entry)
        *out = describe_entry(entry, copy, list, worker->next, weir_task_epoch(task));
    else
        *out = (weir_item){ .data = copy, .release = weir_release_free };
    if (weir_item_set_address(out, copy, list->occurrences[worker->next]) != WEIR_OK) {
        weir_item_release(out);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    worker->next++;
    return WEIR_OK;
}

static int paths_config_init(void *config, weir_error *error)
{
    const weir_list_config *list = config;
    if (has_entries(list))
        return weir_error_set(error, WEIR_EINVAL, 0, "a list with windows or columns needs weir_clip_list_source");
    return list_config_init(config, error);
}

const weir_op weir_clip_list_source = {
    .name = "list",
    .makes = WEIR_TYPE_ENTRY,
    .config_size = sizeof(weir_list_config),
    .config_init = list_config_init,
    .config_free = list_config_free,
    .worker_size = sizeof(list_worker),
    .run = list_run,
};

const weir_op weir_list_source = {
    .name = "list",
    .makes = WEIR_TYPE_TEXT,
    .config_size = sizeof(weir_list_config),
    .config_init = paths_config_init,
    .config_free = list_config_free,
    .worker_size = sizeof(list_worker),
    .run = list_run,
};
