/*
 * The writer: a bounded buffer between the observer calls (writer_buffer.c) and a thread that owns the database
 * (writer.c); sqlite.c opens and closes both.
 *
 * An entry goes  buffer -> batch -> settled.  The thread sleeps until a flush is due, moves up to a batch of entries
 * out of the buffer, and writes them in one transaction, without the lock. If that fails, the batch is kept and
 * retried after a growing delay, while the buffer accepts more entries. `buffered` counts both, so it bounds the
 * memory.
 *
 * Entries are dropped in two cases only: an observer call has waited retry_limit_ns for a full buffer, or closing has
 * waited as long for the rest. A row that the database refuses permanently is dropped alone. Dropped entries are
 * counted per run. The start and the end of a run are always accepted.
 *
 * One lock. Nothing that blocks or calls back is called with it held, except malloc and free.
 */
#ifndef STATS_RECORD_WRITER_H
#define STATS_RECORD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "stats/record/insert.h"
#include "stats/record/record.h"
#include "stats/schema/database_path.h"

/* The last error of the database. */
typedef struct weir_problem {
    int code; /* SQLITE_OK = none */
    char text[200];
} weir_problem;

struct weir_sqlite_writer {
    /* immutable after open */
    weir_record_taker taker;
    char *path;               /* of memory: for messages */
    char memory_name[80];     /* see memory_name.h; "" = a file */
    weir_path_text path_text; /* for messages */
    uint32_t capacity;
    uint32_t flush_at; /* number of entries that triggers a transaction */
    int64_t flush_interval_ns;
    int64_t retry_limit_ns;
    int64_t keep_ns; /* 0 = all laps for ever */
    weir_run_identity identity;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake; /* the first entry or the flush_at-th arrived, or a flush was requested, or closing; with lock */
    uv_cond_t settled; /* num_settled has increased; with lock */

    /* of the observer calls, which never run at the same time; made by open */
    struct weir_stack_recorder *stacks; /* NULL = no samples of functions */

    /* guarded by lock */
    weir_record_entry *first; /* the buffer */
    weir_record_entry **end;
    uint32_t in_buffer;
    uint32_t buffered;               /* in_buffer and the batch */
    uint64_t num_seen;               /* entries from observer calls */
    uint64_t num_taken;              /* of these, accepted into the buffer */
    uint64_t num_settled;            /* of these, written or dropped */
    uint64_t flush_to;               /* all entries up to this number must be written now */
    weir_run *runs;                  /* latest first */
    struct weir_item_sampler *items; /* samplers; their addresses are stable until close */
    bool attached;                   /* a pipeline is being recorded */
    bool run_started;                /* the latest run has started: the next start is a new run */
    int64_t num_lost;                /* of all runs */
    bool losses_unwritten;           /* some run's row lacks its number of lost entries */
    bool wait_timed_out; /* the buffer was full for retry_limit_ns: calls do not wait again until there is room */
    bool closing;
    int64_t close_deadline_ns;
    weir_problem problem;     /* the current problem */
    weir_problem loss_reason; /* why the last entry was dropped */
    int64_t retry_at_ns;      /* when the batch is retried; 0 = no problem */

    /* writer thread only (before it starts: open; after it has ended: close) */
    sqlite3 *db;
    weir_insert rows;
    weir_record_entry *batch;
    int64_t delay_ns;
    int64_t outage_since_ns; /* 0 = none */
    bool outage_told;
    int wait_at_pages; /* of the log: then it waits for the readers, to begin the log again */
};

/* writer_buffer.c */

/* The function of the writer's taker. */
void weir__buffer_take_record(void *self, const weir_record *record);

/* The observer's functions, with the writer as self. */
weir_observer weir__buffer_observer(weir_sqlite_writer *writer);

/* Adds a run and makes it the current one; NULL = out of memory. */
weir_run *weir__buffer_add_run_locked(weir_sqlite_writer *writer);

/* Takes ownership of the entry, or counts it as lost if there is no room. Never waits. NULL = it could not be
   allocated. Any thread, no lock held. */
void weir__buffer_offer(weir_sqlite_writer *writer, weir_record_entry *entry);

/* Counts entries of a run as dropped. */
void weir__buffer_count_lost_locked(weir_sqlite_writer *writer, weir_run *run, int64_t count,
                                    const weir_problem *reason);

/* Waits until all accepted entries are settled; false if the retry limit passed first. */
bool weir__buffer_flush_locked(weir_sqlite_writer *writer);

/* writer.c */

/* SQLite's hook after each commit. Moves what the log (-wal) holds into the database, as SQLite's own hook does, every 1,000
   pages. Readers that follow each other without a gap keep the log from being begun again: at twice as many, waits for
   them, as long as for any lock, and if that is not enough, at twice as many again. */
int weir__writer_checkpoint(void *writer, sqlite3 *db, const char *name, int num_pages);

/* Starts the thread; returns a UV_ code, 0 is success. */
int weir__writer_start(weir_sqlite_writer *writer);

/* Lets the thread write the rest, and joins it. Afterwards nothing is buffered. */
void weir__writer_stop(weir_sqlite_writer *writer);

#endif
