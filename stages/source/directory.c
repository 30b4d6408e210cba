/* The directory source: the walk as an operation. It has one slot, so the worker has one user at a time. */
#include <weir/files.h>

#include <weir/log.h>
#include <weir/struct_copy.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stages/source/directory_walk.h"

typedef struct directory_worker {
    weir_walk *walk;
    weir_directory_counts *counts; /* the config's, or our own */
    weir_directory_counts own_counts;
    uint64_t number; /* of the next file that matches */
    weir_unread_folder unread;
    weir_task *task; /* the running one */
} directory_worker;

static void directory_config_free(void *config)
{
    weir_directory_config *directory = config;
    free((char *)directory->root);
    free((char *)directory->glob);
}

static int directory_config_init(void *config, weir_error *error)
{
    weir_directory_config *directory = config;
    int rc = weir__walk_check(directory, error);
    if (rc != WEIR_OK)
        return rc;

    const char *glob = directory->glob;
    directory->root = strdup(directory->root);
    directory->glob = glob ? strdup(glob) : NULL;
    if (!directory->root || (glob && !directory->glob)) {
        directory_config_free(directory);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    return WEIR_OK;
}

static void note_unreadable(void *self, const char *path, int errno_code)
{
    directory_worker *worker = self;
    weir__unread_folder_keep(&worker->unread, path, errno_code);
    worker->counts->unreadable_folders++;
    weir_log(WEIR_LOG_ERROR, "cannot read folder: %s: %s", strerror(errno_code), path); /* which may be cut */
    /* may fail: the folder is counted and logged anyway */
    (void)weir_task_event(worker->task, "unreadable_folder", path);
}

static bool should_stop(void *self)
{
    const directory_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

static int directory_worker_init(void *self, const void *config, weir_task *task)
{
    directory_worker *worker = self;
    const weir_directory_config *directory = config;
    weir_error error = { 0 };
    if (weir__walk_check(directory, &error) != WEIR_OK)
        return weir_task_fail(task, error.status, error.library_code, "%s", error.message);

    worker->counts = directory->counts ? directory->counts : &worker->own_counts;
    *worker->counts = (weir_directory_counts){ 0 };
    weir_walk_listener listener = { .self = worker, .unreadable = note_unreadable, .should_stop = should_stop };
    worker->walk = weir__walk_open(directory, &listener);
    return worker->walk ? WEIR_OK : weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
}

static bool is_accepted(const weir_directory_config *directory, const char *path, uint64_t number)
{
    return !directory->accept || directory->accept(directory->accept_self, path, number);
}

/* As weir__walk_next(), without the files that are not accepted. *number is that of the next file that matches. */
static int next_accepted(weir_walk *walk, const weir_directory_config *directory, uint64_t *number, const char **path)
{
    int rc;
    do
        rc = weir__walk_next(walk, path);
    while (rc == WEIR_OK && !is_accepted(directory, *path, (*number)++));
    return rc;
}

/* The end of a listing in which num_matched files match. WEIR_OK, or the failure if no file matches what the user
   meant. The share of the matching files that `accept` takes may be empty. */
static int check_end(const weir_directory_config *directory, uint64_t num_matched, const weir_unread_folder *unread,
                     const weir_walk_listener *listener, weir_error *error)
{
    if (num_matched > 0 || directory->may_be_empty)
        return WEIR_OK;
    if (unread->errno_code)
        return weir_error_set(error, unread->errno_code == EACCES ? WEIR_EACCESS : WEIR_EIO, -unread->errno_code,
                              "cannot read folder %s: %s", unread->path, strerror(unread->errno_code));
    return weir__directory_refuse_empty(directory, listener, error);
}

static int end_listing(directory_worker *worker, const weir_directory_config *directory, weir_task *task)
{
    weir_error error = { 0 };
    const weir_walk_listener listener = { .self = worker, .should_stop = should_stop };
    int rc = check_end(directory, worker->number, &worker->unread, &listener, &error);
    return rc == WEIR_OK ? WEIR_EOF : weir_task_fail(task, rc, error.library_code, "%s", error.message);
}

static int directory_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    directory_worker *worker = self;
    const weir_directory_config *directory = weir_task_config(task);
    const char *path;
    worker->task = task;
    int rc = next_accepted(worker->walk, directory, &worker->number, &path);
    worker->counts->folders = weir__walk_num_folders(worker->walk);
    if (rc == WEIR_EOF)
        return end_listing(worker, directory, task);
    if (rc == WEIR_ESTOPPED)
        return weir_task_fail(task, rc, 0, "stopped");
    if (rc == WEIR_EIO) {
        int code = weir__walk_root_errno(worker->walk);
        return weir_task_fail(task, rc, -code, "cannot read folder %s: %s", directory->root, strerror(code));
    }

    char *copy = rc == WEIR_OK ? strdup(path) : NULL;
    if (!copy)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    worker->counts->files++;
    *out = (weir_item){ .data = copy, .release = weir_release_free, .label = copy };
    uint64_t occurrence = directory->occurrence ? directory->occurrence(directory->accept_self, copy) : 0;
    if (occurrence == 0 || weir_item_set_address(out, copy, occurrence) == WEIR_OK)
        return WEIR_OK;
    weir_item_release(out);
    return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
}

static void directory_worker_free(void *self)
{
    directory_worker *worker = self;
    weir__walk_close(worker->walk);
}

const weir_op weir_directory_source = {
    .name = "directory",
    .makes = WEIR_TYPE_TEXT,
    .config_size = sizeof(weir_directory_config),
    .config_init = directory_config_init,
    .config_free = directory_config_free,
    .worker_size = sizeof(directory_worker),
    .worker_init = directory_worker_init,
    .run = directory_run,
    .worker_free = directory_worker_free,
};

static void keep_first(void *self, const char *path, int errno_code)
{
    weir__unread_folder_keep(self, path, errno_code);
}

int weir_directory_count_sized(const weir_directory_config *given, size_t config_size, uint64_t at_most,
                               uint64_t *count, weir_error *error)
{
    weir_directory_config own;
    const weir_directory_config *config = &own;
    if (!given || !count)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *count = 0;
    int rc = weir_struct_copy(&own, sizeof own, given, config_size, "weir_directory_config", error);
    if (rc == WEIR_OK)
        rc = weir__walk_check(config, error);
    if (rc != WEIR_OK)
        return rc;
    weir_unread_folder unread = { 0 };
    weir_walk *walk = weir__walk_open(config, &(weir_walk_listener){ .self = &unread, .unreadable = keep_first });
    if (!walk)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");

    const char *path;
    uint64_t number = 0;
    while (*count < at_most && (rc = next_accepted(walk, config, &number, &path)) == WEIR_OK)
        ++*count;
    weir__walk_close(walk);
    if (rc == WEIR_EIO)
        return weir_error_set(error, rc, 0, "cannot read folder %s", config->root);
    if (rc == WEIR_EOF)
        return check_end(config, number, &unread, NULL, error);
    return rc == WEIR_ENOMEM ? weir_error_set(error, rc, 0, "out of memory") : WEIR_OK;
}
