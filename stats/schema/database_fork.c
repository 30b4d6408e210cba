/*
 * SQLite has some locks for the whole process, around its lists of files, its pages and its counts. A thread that is
 * not in a forked child may have had one of them at the moment of the fork; the child would wait for it for ever. So
 * they are held during fork(), in an order in which SQLite takes several of them itself. SQLite holds them for memory
 * and lists only, not while it reads or writes a file.
 *
 * A process may have several copies of this library with one SQLite: only one of them does this. They see that by the
 * name of a file system of SQLite's, which nobody asks for.
 */
#include "stats/schema/database_fork.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

/* SQLite finds its file system while it has the lock of random numbers. It takes random numbers for the names of
   temporary files while it has the lock of files. It allocates under all of them. */
static const int numbers[] = {
    SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_VFS1, SQLITE_MUTEX_STATIC_VFS2,
    SQLITE_MUTEX_STATIC_VFS3, SQLITE_MUTEX_STATIC_LRU,  SQLITE_MUTEX_STATIC_PMEM,
    SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_MAIN, SQLITE_MUTEX_STATIC_MEM,
};
enum { NUM_LOCKS = sizeof numbers / sizeof *numbers };

static sqlite3_mutex *locks[NUM_LOCKS]; /* immutable when the handlers are there */
static bool is_marked;                  /* this copy of the library does it */

static void take_locks(void)
{
    for (size_t i = 0; i < NUM_LOCKS; i++)
        sqlite3_mutex_enter(locks[i]);
}

static void give_locks(void)
{
    for (size_t i = NUM_LOCKS; i > 0; i--)
        sqlite3_mutex_leave(locks[i - 1]);
}

/* ---- one copy of the library ---------------------------------------------------------------------------------------- */

/* This file system works as SQLite's own, because it becomes the default if a program takes its own default away. */
static sqlite3_vfs marker;
static const char marker_name[] = "weir-forks";

static bool register_marker(void)
{
    const sqlite3_vfs *own = sqlite3_vfs_find("unix");
    marker = own ? *own : *sqlite3_vfs_find(NULL);
    marker.zName = marker_name;
    marker.pNext = NULL;
    return sqlite3_vfs_register(&marker, 0) == SQLITE_OK;
}

/* Is this the first copy that asks? */
static bool mark_process(void)
{
    sqlite3_mutex *lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);
    sqlite3_mutex_enter(lock);
    is_marked = sqlite3_vfs_find(NULL) && !sqlite3_vfs_find(marker_name) && register_marker();
    sqlite3_mutex_leave(lock);
    return is_marked;
}

/* The marker is in this library: without it, SQLite must not find it. Its handlers end with it, too. */
__attribute__((destructor)) static void unmark_process(void)
{
    if (is_marked)
        sqlite3_vfs_unregister(&marker);
}

static void register_handlers(void)
{
    if (sqlite3_initialize() != SQLITE_OK || !mark_process())
        return;
    for (size_t i = 0; i < NUM_LOCKS; i++)
        locks[i] = sqlite3_mutex_alloc(numbers[i]);
    pthread_atfork(take_locks, give_locks, give_locks);
}

void weir__database_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
}
