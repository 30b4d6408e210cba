/*
 * A store: one open database file, with its connection and its thread. All writers (writer.h) of a process that
 * record into the same file share one store. So several pipelines have one transaction at a time between them.
 * Otherwise each would have its own, and wait for the others. store_registry.c finds and makes stores, store_thread.c
 * is the thread.
 *
 *   The file    is known by device and inode: by whatever name it is opened, it is the same store. A database that was
 *               deleted or replaced at its path has another inode, so it gets a store of its own.
 *   Memory      A recording in memory has no inode: its store is of one writer, and nobody else finds it.
 *   Opening     The first writer opens the connection and starts the thread; each later one joins. The thread inserts the
 *               row of a writer's first run; only then has weir_sqlite_open() succeeded.
 *   Writing     Each writer has a buffer and limits of its own. When one is due, a transaction takes what all of them
 *               have, the same share of the batch each. It is committed for all or for none.
 *   Rolls       The statements (rolls.h) are of the connection; where a roll stands is of the run. Each entry gets
 *               the number of its roll once, when it is taken out of the buffer. So the runs of other writers and
 *               retries change nothing about it. A roll is in the transaction of the entry that ends it.
 *   Old laps    After a transaction, each of its writers has the old laps of its own runs replaced, by its own keep_ns.
 *   Failing     The disk fails for all: each writer keeps its batch, and it is tried again for all. Patience is the
 *               writer's own: one that closes after its limit loses its entries, gets an error, and the others go on.
 *   Closing     A writer is closed when all of it is committed or dropped. If others go on, the log is then synced.
 *               The last one ends the thread and closes the connection. This moves the log into the database. If
 *               others have the file open, it leaves the log to them, and the log is synced. Either way the ended run
 *               survives a power failure.
 *   fork()      A store stays with the parent. The child forgets it: weir_sqlite_open() makes another one there, and calls
 *               for a writer of the parent return WEIR_EFORKED. The child inherits SQLite's own table of locks as it was: it
 *               records into another file, not into one that the parent had open.
 *
 * Locks: the registry's, then the store's. Nothing that blocks or calls back is called with either held, except malloc and
 * free.
 */
#ifndef STATS_RECORD_STORE_H
#define STATS_RECORD_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "stats/record/insert.h"
#include "stats/schema/database_path.h"

/* The last error of the database. */
typedef struct weir_problem {
    int code; /* SQLITE_OK = none */
    char text[200];
} weir_problem;

typedef struct weir_store {
    /* guarded by the registry's lock */
    struct weir_store *next;
    uint32_t num_users; /* writers that have joined and not left */

    /* immutable after start */
    dev_t device; /* of a file */
    ino_t inode;
    const char *file_name;    /* absolute; the connection's. NULL = memory */
    char *log_path;           /* of its log (-wal) */
    unsigned fork_number;     /* weir__store_fork_number() of the process to which it belongs */
    weir_path_text path_text; /* for messages */
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;    /* a writer may be due, has joined or closes; a sync is wanted; the last has left; with lock */
    uv_cond_t settled; /* a writer's num_settled, was_tried or is_closed has changed; or num_synced; with lock */

    /* guarded by lock */
    weir_sqlite_writer *writers; /* latest first; added by whoever opens, removed by the thread */
    weir_problem problem;        /* the current problem */
    int64_t retry_at_ns;         /* when the batches are tried again; 0 = no problem */
    uint64_t sync_wanted;        /* syncs of the log that were asked for */
    uint64_t num_synced;         /* and done */
    int sync_code;               /* of the last one */
    bool is_ending;              /* no writer is left */

    /* the thread only (before it starts: whoever makes the store; after it has ended: whoever ends it) */
    sqlite3 *db;
    weir_insert rows;
    int64_t delay_ns;
    int64_t outage_since_ns; /* 0 = none */
    bool outage_reported;
    int wait_at_pages; /* of the log: then it waits for the readers, to begin the log again */
} weir_store;

/* store_registry.c */

/*
 * Joins the store of the database at `path`, or makes one: opens the database until deadline_ns, and starts the thread.
 * The caller leaves it. Any thread.
 */
int weir__store_join(const char *path, int64_t deadline_ns, weir_store **store, weir_error *error);

/* The same for a recording in memory, by its name for SQLite (memory_name.h). `path` is for messages. */
int weir__store_make_memory(const char *name, const char *path, weir_store **store, weir_error *error);

/* What was committed survives a power failure when this returns; the last user ends the store. No writer of the caller may
   be in it. Returns SQLite's code of the sync. */
int weir__store_leave(weir_store *store);

/* How often this process and those before it have forked since the first store; differs between parent and child. */
unsigned weir__store_fork_number(void);

/* store_thread.c */

/* The thread; it ends when is_ending. */
void weir__store_run(void *store);

/* SQLite's hook after each commit. Moves what the log (-wal) holds into the database, as SQLite's own hook does, every 1,000
   pages. Readers that follow each other without a gap keep SQLite from starting the log again. At twice as many pages, the
   hook therefore waits for the readers, as long as for any lock. If that is not enough, it waits again at twice as many
   pages. */
int weir__store_checkpoint(void *store, sqlite3 *db, const char *name, int num_pages);

#endif
