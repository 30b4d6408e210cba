/*
 * The SQLite writer: an observer that records runs in a database, on a separate thread.
 *
 *     weir_sqlite_open("pipeline_stats.db", NULL, &writer, &error);
 *     weir_observer observer = weir_sqlite_observer(writer);
 *     weir_builder_build(b, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 }, &p, &error);
 *     …
 *     weir_pipeline_free(p);
 *     run_id = weir_sqlite_run_id(writer);
 *     if (weir_sqlite_close(writer, &error) != WEIR_OK) …   says how many entries are missing
 *
 * An entry (a lap of a stage or a queue, a failure, an event) goes into a bounded buffer. All buffered entries are
 * written to the database in one transaction. This happens when a quarter of the buffer is used, or when the oldest
 * entry has waited for flush_interval_ns. Meanwhile readers may follow the run, and other writers may write to the
 * same file. After a crash, everything up to the last flush is kept.
 *
 * Writers that a process opens for the same file, one for each of its pipelines, share one thread, one connection and its
 * transactions. Each has its own buffer, limits and runs. A writer stays with the process that has opened it. In a
 * forked child, its functions return WEIR_EFORKED and do nothing. The child records into another file, or into
 * memory. SQLite allows no use of a file that its parent had open at the fork, and weir_sqlite_open() refuses it. The
 * locks that SQLite has for the process are held during a fork, so a child gets them free.
 *
 * If the database is locked, full or failing, writes are retried while the buffer has room. Entries that are dropped
 * in the end are counted and logged. weir_sqlite_close() reports them (WEIR_ENOTFOUND: the file was deleted or
 * replaced while it was open). Their number is in the column `entries_lost` of `run` as soon as anything can be
 * written.
 */
#ifndef WEIR_SQLITE_H
#define WEIR_SQLITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/clock.h>
#include <weir/item.h>
#include <weir/observer.h>
#include <weir/op.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_sqlite_writer weir_sqlite_writer;

/* Setting this struct to all-zero is equivalent to defaults. Strings are copied. */
typedef struct weir_sqlite_options {
    uint32_t buffer_entries;   /* capacity of the buffer, in entries (0 = 4096) */
    int64_t flush_interval_ns; /* longest time an entry waits to be batched (0 = 1 s) */
    /* if the database accepts nothing for this long, entries are dropped. An observer call waits for up to this time
       if the buffer is full, and weir_sqlite_close() does so for what is left (0 = 10 s). Once one wait has timed
       out, observer calls do not wait again until the database accepts something */
    int64_t retry_limit_ns;
    const char *command; /* for `run` (NULL = this process's command line, if the system reports it) */
    const char *node_id; /* for `run` (NULL = the host's name) */
    int32_t rank;        /* for `run` */
    uint32_t world;      /* for `run`: the number of ranks (0 = 1) */
    const char *job;     /* for `run`: a name that all ranks of a job share (NULL = "") */
    /* also record which functions take the CPU time: the stack of each thread of the process, 99 times in each second of
       its CPU time. Uses the signal SIGPROF; WEIR_EBUSY if the program does. WEIR_STACKS=1 in the environment asks for
       the same of each recording, but then only a warning is logged */
    bool stacks;
    /* how long single laps and items of the runs of this writer are kept (0 = for ever). Older laps are joined, up to
       64 in one, which has their sums. Older items are deleted. Samples of functions, events and failures stay. The
       room is used again; the file does not become smaller */
    int64_t keep_ns;
    /* Record in memory instead of a file; the path is NULL. weir_recording_open_writer() reads it. The memory is
       freed when the writer and its readers are closed. It grows by about 2 kB with each lap of three stages, up to
       SQLite's limit, 1 GiB unless the program has changed that. What does not fit is lost, and counted (default: a
       file). */
    bool in_memory;
} weir_sqlite_options;

/* For the inline function below. */
WEIR_API int weir_sqlite_open_sized(const char *path, const weir_sqlite_options *options, size_t options_size,
                                    weir_sqlite_writer **writer, weir_error *error);

/*
 * Opens the database, creates the file and the folders of its path if missing, and starts the thread. If this process
 * has writers for the file already, it joins them. Any thread. An empty file is used as it is. Fails, without
 * changing anything, if the file is not a database, belongs to another program, or cannot be written. It also fails
 * if the schema is newer than this library knows. Then *error (may be NULL) holds one line that names the path, and
 * *writer is NULL. options may be NULL. With in_memory, path must be NULL.
 */
static inline int weir_sqlite_open(const char *path, const weir_sqlite_options *options, weir_sqlite_writer **writer,
                                   weir_error *error)
{
    return weir_sqlite_open_sized(path, options, sizeof *options, writer, error);
}

/*
 * The observer to give to a pipeline; valid until weir_sqlite_close(). All-zero for NULL. One pipeline at a time:
 * attaching a second one fails with WEIR_EBUSY; each pipeline that starts is a separate run.
 */
WEIR_API weir_observer weir_sqlite_observer(weir_sqlite_writer *writer);

/* Which items are recorded in the table item_stats, besides those with damage: lost frames, or errors. Setting this
   struct to all-zero is equivalent to defaults. */
typedef struct weir_sqlite_items {
    uint32_t num_slowest; /* slowest items recorded per lap (0 = 10) */
    uint32_t num_sampled; /* other items recorded per lap, a uniform random sample (0 = 10) */
    bool all;             /* every item, as it ends */
} weir_sqlite_items;

/* For the inline function below. */
WEIR_API int weir_sqlite_item_hook_sized(weir_sqlite_writer *writer, const weir_sqlite_items *options,
                                         size_t options_size, weir_task_hook *hook, weir_error *error);

/*
 * A task hook that records single items of tasks that succeeded (failed ones are in task_failures): their time, and the parts
 * that the operation reports (weir_task_set_part()). The parts of decode stages (WEIR_DECODE_PARTS) have columns. All other
 * parts are in the column `parts`, as a JSON object with their names; times are in seconds, as NAME_time. Add the hook to the
 * task_hooks of a stage. Stages that share a hook also share its slowest items and its sample, so give each
 * stage its own. Valid until weir_sqlite_close(); create it before the pipeline is built. A task never waits for the
 * database: if the buffer is full, items are counted as lost. options may be NULL. WEIR_OK, or WEIR_EINVAL or
 * WEIR_ENOMEM with *error (may be NULL) filled.
 */
static inline int weir_sqlite_item_hook(weir_sqlite_writer *writer, const weir_sqlite_items *options,
                                        weir_task_hook *hook, weir_error *error)
{
    return weir_sqlite_item_hook_sized(writer, options, sizeof *options, hook, error);
}

/*
 * The id of the run, or of the last one started if the writer has served several. The id of the first run is known
 * immediately. Otherwise waits, up to the retry limit, until the run's row is written; 0 if that failed. Any thread.
 */
WEIR_API int64_t weir_sqlite_run_id(weir_sqlite_writer *writer);

/*
 * Writes what has been observed so far, and returns WEIR_OK when it is in the database. After the retry limit it
 * returns the reason (WEIR_EBUSY, WEIR_EIO, …), and the entries stay in the buffer. Any thread.
 */
WEIR_API int weir_sqlite_flush(weir_sqlite_writer *writer, weir_error *error);

/*
 * Writes the rest, and frees the writer, even on failure; the last writer of the file joins the thread. If the database
 * does not accept writes, it waits no longer than the retry limit (plus the current system call). Call it after the pipeline
 * has been freed.
 * NULL is fine.
 *
 * WEIR_OK: the database holds everything that was observed. Otherwise *error (may be NULL) says how many entries had
 * to be dropped, and why.
 */
WEIR_API int weir_sqlite_close(weir_sqlite_writer *writer, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
