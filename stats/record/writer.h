/*
 * The writer of one pipeline at a time. It is a bounded buffer between the observer calls (writer_buffer.c) and the
 * thread of the store (store.h). That thread writes what all writers of the same file have. sqlite.c opens and closes
 * writers.
 *
 * An entry goes  buffer -> batch -> settled.  The thread sleeps until a flush is due. Then it moves up to a batch of
 * entries out of the buffer, and writes them in one transaction, without the lock. If that fails, the batch is kept
 * and retried after a growing delay, while the buffer accepts more entries. `buffered` counts both, so it bounds the
 * memory.
 *
 * Entries are dropped in two cases only: an observer call has waited retry_limit_ns for a full buffer, or closing has
 * waited as long for the rest. A row that the database refuses permanently is dropped alone. Dropped entries are
 * counted per run. Boundaries (record.h) are always accepted: the start, the stages and the end of a run, and functions of stacks.
 *
 * One lock: the store's. Nothing that blocks or calls back is called with it held, except malloc and free.
 */
#ifndef STATS_RECORD_WRITER_H
#define STATS_RECORD_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "stats/record/insert.h"
#include "stats/record/record.h"
#include "stats/record/store.h"
#include "stats/record/transaction.h"

struct weir_sqlite_writer {
    /* immutable after open */
    weir_record_taker taker;
    weir_store *store;
    char *path;               /* of memory: for messages */
    char memory_name[80];     /* see memory_name.h; "" = a file */
    weir_path_text path_text; /* for messages */
    uint32_t capacity;
    uint32_t flush_at; /* number of entries that triggers a transaction */
    int64_t flush_interval_ns;
    int64_t retry_limit_ns;
    int64_t keep_ns; /* 0 = all laps for ever */
    weir_run_identity identity;

    /* of the observer calls, which never run at the same time; made by open */
    struct weir_stack_recorder *stacks; /* NULL = no samples of functions */

    /* guarded by the store's lock */
    struct weir_sqlite_writer *next; /* of the store */
    weir_record_entry *first;        /* the buffer */
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
    bool was_tried;      /* a transaction with the row of its first run has ended, in whatever way */
    bool closing;
    bool is_closed; /* all of it is written or dropped, and the thread does not know it any more */
    int64_t close_deadline_ns;
    weir_problem loss_reason; /* why the last entry was dropped */
    int file_code;            /* once closed: SQLITE_READONLY_DBMOVED if the file is not at its path any more */

    /* the store's thread only */
    weir_transaction_part batch;
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

/* The writer is that of the parent of this forked process: its thread and locks are not here. */
bool weir__writer_is_of_parent(const weir_sqlite_writer *writer);
/* WEIR_EFORKED */
int weir__writer_report_fork(const weir_sqlite_writer *writer, weir_error *error);

#endif
