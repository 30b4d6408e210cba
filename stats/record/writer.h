/*
 * The writer: a bounded buffer between the observer calls (buffer.c) and a thread that owns the database (writer.c);
 * sqlite.c opens and closes both.
 *
 * An entry goes  buffer -> batch -> settled.  The thread sleeps until a flush is due, moves up to a batch of entries
 * out of the buffer, and writes them in one transaction, without the lock. If that fails, the batch stays, and is
 * tried again after a growing delay; entries go on coming into the buffer. `buffered` counts both, so that it bounds
 * the memory.
 *
 * Giving up happens in two places only: when an observer call has waited retry_limit_ns for a full buffer, and when
 * closing has waited as long for the rest. A row that the database refuses for good is given up alone. Each is
 * counted with its run. The start and the end of a run always find room.
 *
 * One lock; nothing is called under it that waits or calls back, but for malloc and free.
 */
#ifndef WEIR_WRITER_H
#define WEIR_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include <weir/sqlite.h>

#include "database_path.h"
#include "insert.h"
#include "record.h"

/* What the database last said when it did not take something. */
typedef struct weir_problem {
    int code; /* SQLITE_OK = none */
    char text[200];
} weir_problem;

struct weir_sqlite_writer {
    /* immutable after open */
    char *path;
    weir_path_text path_text; /* for messages */
    uint32_t capacity;
    uint32_t flush_at; /* entries in the buffer that are worth a transaction */
    int64_t flush_interval_ns;
    int64_t retry_limit_ns;
    weir_run_identity identity;
    uv_thread_t thread;
    uv_mutex_t lock;
    uv_cond_t wake;    /* the first entry came, or the flush_at-th, or a flush is wanted, or closing; with lock */
    uv_cond_t settled; /* num_settled has grown; with lock */

    /* guarded by lock */
    weir_entry *first; /* the buffer */
    weir_entry **end;
    uint32_t in_buffer;
    uint32_t buffered;               /* in_buffer and the batch */
    uint64_t num_seen;               /* entries that observer calls brought */
    uint64_t num_taken;              /* of these, taken into the buffer */
    uint64_t num_settled;            /* of these, written or given up */
    uint64_t flush_to;               /* all up to this number are to be written now */
    weir_run *runs;                  /* the latest first */
    struct weir_item_sampler *items; /* collectors; each stays where it is until close */
    bool attached;                   /* a pipeline is being recorded */
    bool run_started;                /* the latest has started: the next start is another run's */
    int64_t num_lost;                /* of all runs */
    bool losses_untold;              /* some run's row does not say what was lost */
    bool waited_in_vain; /* the buffer was full for retry_limit_ns: nobody waits again until there is room */
    bool closing;
    int64_t close_deadline_ns;
    weir_problem problem;     /* what is in the way now */
    weir_problem loss_reason; /* why the last entry was given up */
    int64_t retry_at_ns;      /* when the batch is tried again; 0 = nothing is in the way */

    /* writer thread only (before it starts: open; after it has ended: close) */
    sqlite3 *db;
    weir_insert rows;
    weir_entry *batch;
    int64_t delay_ns;
    int64_t outage_since_ns; /* 0 = none */
    bool outage_told;
};

/* buffer.c */

/* The observer's functions, with the writer as self. */
weir_observer weir_buffer_observer(weir_sqlite_writer *writer);

/* Makes another run the current one; NULL = out of memory. */
weir_run *weir_buffer_add_run_locked(weir_sqlite_writer *writer);

/* Takes the entry over, or counts it as lost if there is no room: never waits. NULL is one that found no memory. Any
   thread, no lock held. */
void weir_buffer_offer(weir_sqlite_writer *writer, weir_entry *entry);

/* Counts entries of a run as given up. */
void weir_buffer_count_lost_locked(weir_sqlite_writer *writer, weir_run *run, int64_t count,
                                   const weir_problem *reason);

/* Waits until all that has come in is settled; false if the retry limit passed before. */
bool weir_buffer_flush_locked(weir_sqlite_writer *writer);

/* writer.c */

/* Starts the thread; returns a UV_ code, 0 is success. */
int weir_writer_start(weir_sqlite_writer *writer);

/* Has the thread write what is left, and joins it: afterwards nothing is buffered. */
void weir_writer_stop(weir_sqlite_writer *writer);

#endif
