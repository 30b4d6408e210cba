/* Which stores there are. See store.h. */
#include "stats/record/store.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/clock.h>

#include "common/replacement.h"
#include "stats/record/rolls.h"
#include "stats/record/transaction.h"
#include "stats/schema/database.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static weir_store *stores;            /* guarded by registry_lock */
static weir_store *stores_of_parents; /* the same; they stay as they were at the fork */
static atomic_uint num_forks;

/* ---- fork() -------------------------------------------------------------------------------------------------------- */

/* Held during fork(), so that the child gets it free and not in the middle of a change. */
static void lock_registry(void)
{
    pthread_mutex_lock(&registry_lock);
}

static void unlock_registry(void)
{
    pthread_mutex_unlock(&registry_lock);
}

/* The threads of the stores are not in the child, and SQLite's connections must not be used or closed there. */
static void forget_stores(void)
{
    weir_store **end = &stores;
    while (*end)
        end = &(*end)->next;
    *end = stores_of_parents;
    stores_of_parents = stores;
    stores = NULL;
    atomic_fetch_add_explicit(&num_forks, 1, memory_order_relaxed);
    unlock_registry();
}

static void register_handlers(void)
{
    pthread_atfork(lock_registry, unlock_registry, forget_stores);
}

static void watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
}

unsigned weir__store_fork_number(void)
{
    return atomic_load_explicit(&num_forks, memory_order_relaxed);
}

/* ---- making and ending --------------------------------------------------------------------------------------------- */

static int make_lock(weir_store *store)
{
    int code = uv_mutex_init(&store->lock);
    if (code != 0)
        return code;
    code = uv_cond_init(&store->wake);
    if (code != 0)
        goto fail_wake;
    code = uv_cond_init(&store->settled);
    if (code != 0)
        goto fail_settled;
    return 0;

fail_settled:
    uv_cond_destroy(&store->wake);
fail_wake:
    uv_mutex_destroy(&store->lock);
    return code;
}

static void destroy_lock(weir_store *store)
{
    uv_cond_destroy(&store->settled);
    uv_cond_destroy(&store->wake);
    uv_mutex_destroy(&store->lock);
}

/* Signals are left to the program's own threads. Returns a UV_ code, 0 is success. */
static int start_thread(weir_store *store)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* see thread.c of the engine */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = uv_thread_create(&store->thread, weir__store_run, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        pthread_setname_np(store->thread, "weir-database");
    return code;
}

/* memory_name: "" = a file, at the path. */
static int open_database(weir_store *store, const char *path, const char *memory_name, int64_t deadline_ns,
                         weir_error *error)
{
    if (*memory_name)
        return weir__database_make_memory(memory_name, &store->db, path, error);
    return weir__database_open_writer(path, deadline_ns, &store->db, error);
}

/* Memory has no device and inode. */
static int note_file(weir_store *store, const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return SQLITE_READONLY_DBMOVED;
    store->device = file.st_dev;
    store->inode = file.st_ino;
    store->file_name = sqlite3_db_filename(store->db, "main");
    if (asprintf(&store->log_path, "%s-wal", store->file_name) < 0) {
        store->log_path = NULL;
        return SQLITE_NOMEM;
    }
    return weir__transaction_check_file(store->db);
}

static int open_connection(weir_store *store, const char *path, const char *memory_name, int64_t deadline_ns,
                           weir_error *error)
{
    int status = open_database(store, path, memory_name, deadline_ns, error);
    if (status != WEIR_OK)
        return status;
    sqlite3_wal_hook(store->db, weir__store_checkpoint, store);
    int code = weir__insert_prepare(&store->rows, store->db);
    if (code == SQLITE_OK)
        code = weir__rolls_prepare(&store->rows);
    if (code == SQLITE_OK && !*memory_name)
        code = note_file(store, path);
    if (code == SQLITE_OK)
        return WEIR_OK;
    return weir__database_error(error, store->db, code, "cannot write to", path);
}

static void close_connection(weir_store *store)
{
    weir__rolls_finalize(&store->rows);
    weir__insert_finalize(&store->rows);
    weir__database_close(store->db);
}

static int make_store(const char *path, const char *memory_name, int64_t deadline_ns, weir_store **result,
                      weir_error *error)
{
    weir_store *store = calloc(1, sizeof *store);
    if (!store)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    store->path_text = weir__path_for_message(path);
    store->fork_number = weir__store_fork_number();
    int status = open_connection(store, path, memory_name, deadline_ns, error);
    if (status != WEIR_OK)
        goto fail_connection;
    int code = make_lock(store);
    if (code != 0) {
        status = weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a lock: %s", uv_strerror(code));
        goto fail_connection;
    }
    code = start_thread(store);
    if (code != 0) {
        status = weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the writer's thread: %s", uv_strerror(code));
        goto fail_thread;
    }
    *result = store;
    return WEIR_OK;

fail_thread:
    destroy_lock(store);
fail_connection:
    close_connection(store);
    free(store->log_path);
    free(store);
    return status;
}

/* Where other connections have the file open, closing leaves the log as it is: it is synced here, and the names of both files. It
   is never locked by itself, so its descriptor may be closed. Returns SQLite's code. */
static int sync_log_that_is_left(const char *log_path)
{
    int file = log_path ? open(log_path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return SQLITE_OK; /* closing has moved it into the database, which is synced */
    int result = fdatasync(file);
    close(file);
    if (result != 0)
        return SQLITE_IOERR_FSYNC;
    return weir__folder_sync(log_path) == 0 ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
}

/* Returns SQLite's code of the sync. */
static int end_store(weir_store *store)
{
    uv_mutex_lock(&store->lock);
    store->is_ending = true;
    uv_cond_signal(&store->wake);
    uv_mutex_unlock(&store->lock);
    uv_thread_join(&store->thread);
    close_connection(store);
    int code = sync_log_that_is_left(store->log_path);
    destroy_lock(store);
    free(store->log_path);
    free(store);
    return code;
}

/* ---- joining and leaving ------------------------------------------------------------------------------------------- */

/* Joins the store of this file; NULL = there is none, and `made` (may be NULL) is the store from now on. */
static weir_store *join_or_add(dev_t device, ino_t inode, weir_store *made)
{
    lock_registry();
    weir_store *store = stores;
    while (store && (store->device != device || store->inode != inode))
        store = store->next;
    if (store) {
        store->num_users++;
    } else if (made) {
        made->num_users = 1;
        made->next = stores;
        stores = made;
    }
    unlock_registry();
    return store;
}

/* SQLite knows the file still, with the locks of a process that this one is not. */
static bool is_open_in_parent(dev_t device, ino_t inode)
{
    lock_registry();
    const weir_store *store = stores_of_parents;
    while (store && (store->device != device || store->inode != inode))
        store = store->next;
    unlock_registry();
    return store != NULL;
}

/* Joins the store of the file that is there, if there is one. */
static int join_existing(const char *path, const struct stat *file, weir_store **result, weir_error *error)
{
    if (is_open_in_parent(file->st_dev, file->st_ino))
        return weir_error_set(error, WEIR_EFORKED, 0,
                              "database %s: the parent process had it open at the fork: record into another file",
                              weir__path_for_message(path).text);
    *result = join_or_add(file->st_dev, file->st_ino, NULL);
    return WEIR_OK;
}

int weir__store_join(const char *path, int64_t deadline_ns, weir_store **result, weir_error *error)
{
    struct stat file;
    watch_forks();
    int status = weir__path_prepare_writing(path, error); /* what may not be opened may not be joined */
    if (status != WEIR_OK)
        return status;
    *result = NULL;
    if (stat(path, &file) == 0)
        status = join_existing(path, &file, result, error);
    if (status != WEIR_OK || *result)
        return status;

    weir_store *made = NULL;
    status = make_store(path, "", deadline_ns, &made, error);
    if (status != WEIR_OK)
        return status;
    *result = join_or_add(made->device, made->inode, made);
    if (*result)
        end_store(made); /* somebody else was faster */
    else
        *result = made;
    return WEIR_OK;
}

int weir__store_make_memory(const char *name, const char *path, weir_store **store, weir_error *error)
{
    watch_forks();
    int status = make_store(path, name, 0, store, error);
    if (status == WEIR_OK)
        (*store)->num_users = 1; /* for ever: nobody finds it */
    return status;
}

/* Returns whether the store has no users any more. With `only_as_last`, a store that has others keeps this one. */
static bool remove_user(weir_store *store, bool only_as_last)
{
    lock_registry();
    bool is_last = store->num_users == 1;
    if (is_last || !only_as_last)
        store->num_users--;
    for (weir_store **link = &stores; is_last && *link; link = &(*link)->next)
        if (*link == store) {
            *link = store->next;
            break;
        }
    unlock_registry();
    return is_last;
}

/* Waits until the thread has synced the log. */
static int await_sync(weir_store *store)
{
    uv_mutex_lock(&store->lock);
    uint64_t wanted = ++store->sync_wanted;
    uv_cond_signal(&store->wake);
    while (store->num_synced < wanted)
        uv_cond_wait(&store->settled, &store->lock);
    int code = store->sync_code;
    uv_mutex_unlock(&store->lock);
    return code;
}

int weir__store_leave(weir_store *store)
{
    int code = SQLITE_OK;
    bool is_last = remove_user(store, true); /* ending it syncs, too */
    if (!is_last) {
        code = await_sync(store);
        is_last = remove_user(store, false);
    }
    return is_last ? end_store(store) : code;
}
