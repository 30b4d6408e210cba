/* Opening, closing and querying the writer. See writer.h. */
#include <weir/log.h>
#include <weir/sqlite.h>
#include <weir/struct_copy.h>

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/record/item_sampler.h"
#include "stats/record/memory_name.h"
#include "stats/record/process_info.h"
#include "stats/record/rolls.h"
#include "stats/record/stack_recorder.h"
#include "stats/record/transaction.h"
#include "stats/record/writer.h"
#include "stats/schema/database.h"

static const int64_t longest_wait_ns = 365 * 24 * 3600 * WEIR_SECOND;

enum {
    DEFAULT_BUFFER_ENTRIES = 4096,
};

static atomic_uint num_memories; /* recordings in memory so far */

static int64_t span_or_default(int64_t span_ns, int64_t default_ns)
{
    if (span_ns == 0)
        return default_ns;
    return span_ns < longest_wait_ns ? span_ns : longest_wait_ns;
}

static void set_options(weir_sqlite_writer *writer, const weir_sqlite_options *options)
{
    writer->capacity = options->buffer_entries ? options->buffer_entries : DEFAULT_BUFFER_ENTRIES;
    writer->flush_at = writer->capacity < 4 ? 1 : writer->capacity / 4;
    writer->flush_interval_ns = span_or_default(options->flush_interval_ns, WEIR_SECOND);
    writer->retry_limit_ns = span_or_default(options->retry_limit_ns, 10 * WEIR_SECOND);
    writer->keep_ns = options->keep_ns;
    writer->identity.rank = options->rank;
    writer->identity.world = options->world ? options->world : 1;
    if (options->in_memory) /* a program may contain several copies of this library: a number alone is not enough */
        snprintf(writer->memory_name, sizeof writer->memory_name, "file:/weir-stats-%p-%u?vfs=memdb",
                 (void *)&num_memories, atomic_fetch_add(&num_memories, 1));
    writer->end = &writer->first;
    writer->taker.take = weir__buffer_take_record;
}

/* Allocates everything that only needs memory. */
static bool set_strings(weir_sqlite_writer *writer, const char *path, const weir_sqlite_options *options)
{
    writer->path = strdup(path);
    writer->path_text = weir__path_for_message(path);
    writer->identity.node_id = options->node_id ? strdup(options->node_id) : weir__host_name();
    writer->identity.command = weir__command_line(options->command);
    writer->identity.machine = weir__machine_text();
    writer->identity.job = strdup(options->job ? options->job : "");
    return writer->path && writer->identity.node_id && writer->identity.command && writer->identity.machine &&
           writer->identity.job && weir__buffer_add_run_locked(writer); /* no other thread exists yet */
}

static void free_memory(weir_sqlite_writer *writer)
{
    while (writer->items) {
        weir_item_sampler *items = writer->items;
        writer->items = items->next;
        weir__item_sampler_free(items);
    }
    while (writer->runs) {
        weir_run *run = writer->runs;
        writer->runs = run->next;
        weir__rolls_forget(&run->rolls);
        free(run);
    }
    free(writer->identity.command);
    free(writer->identity.node_id);
    free(writer->identity.machine);
    free(writer->identity.job);
    free(writer->path);
    free(writer);
}

/* Leaves the store when the rest is written, or dropped after `patience_ns` of failures. Returns SQLite's code of the last
   sync. */
static int leave_store(weir_sqlite_writer *writer, int64_t patience_ns)
{
    weir_store *store = writer->store;
    uv_mutex_lock(&store->lock);
    writer->closing = true;
    writer->close_deadline_ns = weir_clock_ns() + patience_ns;
    if (store->retry_at_ns)
        store->retry_at_ns = weir_clock_ns(); /* immediately */
    uv_cond_signal(&store->wake);
    while (!writer->is_closed)
        uv_cond_wait(&store->settled, &store->lock);
    uv_mutex_unlock(&store->lock);
    return weir__store_leave(store);
}

/* Until the row of the first run is written: this tests that the database is writable, and gives the run its id. It is
   tried once, and while the database is locked, until the deadline. Returns what keeps it from that. */
static weir_problem await_first_row_locked(weir_sqlite_writer *writer, int64_t deadline_ns)
{
    weir_store *store = writer->store;
    while (!writer->was_tried)
        uv_cond_wait(&store->settled, &store->lock);
    while (writer->runs->visible_id == 0) {
        int64_t left_ns = deadline_ns - weir_clock_ns();
        bool is_tried_again = store->problem.code == SQLITE_OK || (store->problem.code & 0xff) == SQLITE_BUSY;
        if (!is_tried_again || left_ns <= 0)
            return store->problem.code ? store->problem : (weir_problem){ SQLITE_BUSY, "it is too slow" };
        uv_cond_timedwait(&store->settled, &store->lock, (uint64_t)left_ns);
    }
    return (weir_problem){ SQLITE_OK, "" };
}

/* A recording in memory has a store of its own. */
static int join_store(weir_sqlite_writer *writer, int64_t deadline_ns, weir_error *error)
{
    if (*writer->memory_name)
        return weir__store_make_memory(writer->memory_name, writer->path, &writer->store, error);
    return weir__store_join(writer->path, deadline_ns, &writer->store, error);
}

/* On failure the store has been left. */
static int enter_store(weir_sqlite_writer *writer, int64_t deadline_ns, weir_error *error)
{
    weir_store *store = writer->store;
    uv_mutex_lock(&store->lock);
    writer->next = store->writers;
    store->writers = writer;
    if (store->retry_at_ns)
        store->retry_at_ns = weir_clock_ns();
    uv_cond_signal(&store->wake);
    weir_problem problem = await_first_row_locked(writer, deadline_ns);
    uv_mutex_unlock(&store->lock);
    if (problem.code == SQLITE_OK)
        return WEIR_OK;
    leave_store(writer, 0);
    return weir_error_set(error, weir__database_status(problem.code), problem.code,
                          "cannot write to database %s: %s%s", writer->path_text.text, problem.text,
                          weir__database_hint(problem.code));
}

/* The environment asks for samples of each recording; if there can be none, it is recorded without. */
static bool is_asked_for_stacks(void)
{
    const char *value = secure_getenv("WEIR_STACKS");
    return value && *value && strcmp(value, "0") != 0;
}

static int start_stacks(weir_sqlite_writer *writer, bool are_wanted, weir_error *error)
{
    weir_error failure = { 0 };
    if (!are_wanted && !is_asked_for_stacks())
        return WEIR_OK;
    writer->stacks = weir__stack_recorder_new(&writer->taker, &failure);
    if (writer->stacks)
        return WEIR_OK;
    if (are_wanted)
        return weir_error_set(error, failure.status, failure.library_code, "%s", failure.message);
    weir_log(WEIR_LOG_WARNING, "WEIR_STACKS: %s", failure.message);
    return WEIR_OK;
}

int weir_sqlite_open_sized(const char *path, const weir_sqlite_options *given, size_t given_size,
                           weir_sqlite_writer **result, weir_error *error)
{
    if (!result)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_sqlite_options options;
    *result = NULL;
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_sqlite_options", error);
    if (status != WEIR_OK)
        return status;
    if (!path == !options.in_memory)
        return weir_error_set(error, WEIR_EINVAL, 0, "a recording needs either the path of a database or in_memory");
    if (options.flush_interval_ns < 0 || options.retry_limit_ns < 0 || options.keep_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "flush_interval_ns, retry_limit_ns and keep_ns must not be negative");

    status = WEIR_ENOMEM;
    weir_sqlite_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return weir_error_set(error, status, 0, "out of memory");
    set_options(writer, &options);
    if (!set_strings(writer, path ? path : WEIR__MEMORY_PATH, &options)) {
        weir_error_set(error, status, 0, "out of memory");
        goto fail;
    }
    int64_t deadline_ns = weir_clock_ns() + writer->retry_limit_ns;
    status = join_store(writer, deadline_ns, error);
    if (status != WEIR_OK)
        goto fail;
    status = start_stacks(writer, options.stacks, error);
    if (status != WEIR_OK) {
        weir__store_leave(writer->store);
        goto fail;
    }
    status = enter_store(writer, deadline_ns, error);
    if (status != WEIR_OK)
        goto fail;
    *result = writer;
    return WEIR_OK;

fail:
    weir__stack_recorder_free(writer->stacks);
    free_memory(writer);
    return status;
}

const char *weir__writer_memory_name(const weir_sqlite_writer *writer, const char **path)
{
    *path = writer->store->file_name ? writer->store->file_name : writer->path;
    return writer->memory_name;
}

weir_observer weir_sqlite_observer(weir_sqlite_writer *writer)
{
    return writer ? weir__buffer_observer(writer) : (weir_observer){ 0 };
}

int weir_sqlite_item_hook_sized(weir_sqlite_writer *writer, const weir_sqlite_items *given, size_t given_size,
                                weir_task_hook *hook, weir_error *error)
{
    if (!writer || !hook)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    enum { MAX_CHOSEN = 1 << 16 };
    weir_sqlite_items options;
    *hook = (weir_task_hook){ 0 };
    if (weir__writer_is_of_parent(writer))
        return weir__writer_report_fork(writer, error);
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_sqlite_items", error);
    if (status != WEIR_OK)
        return status;
    if (options.num_slowest > MAX_CHOSEN || options.num_sampled > MAX_CHOSEN)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_slowest and num_sampled must not be above %d", MAX_CHOSEN);
    weir_item_sampler *items = weir__item_sampler_new(writer, &options);
    if (!items)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    uv_mutex_lock(&writer->store->lock);
    items->next = writer->items;
    writer->items = items;
    uv_mutex_unlock(&writer->store->lock);
    *hook = (weir_task_hook){ .self = items, .end = weir__item_sampler_end };
    return WEIR_OK;
}

int64_t weir_sqlite_run_id(weir_sqlite_writer *writer)
{
    if (!writer || weir__writer_is_of_parent(writer))
        return 0;
    uv_mutex_lock(&writer->store->lock);
    weir_run *run = writer->runs;
    if (run->visible_id == 0)
        weir__buffer_flush_locked(writer);
    int64_t run_id = run->visible_id;
    uv_mutex_unlock(&writer->store->lock);
    return run_id;
}

int weir_sqlite_flush(weir_sqlite_writer *writer, weir_error *error)
{
    if (!writer)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if (weir__writer_is_of_parent(writer))
        return weir__writer_report_fork(writer, error);
    uv_mutex_lock(&writer->store->lock);
    bool done = weir__buffer_flush_locked(writer);
    weir_problem found = writer->store->problem;
    uint32_t buffered = writer->buffered;
    uv_mutex_unlock(&writer->store->lock);
    if (done)
        return WEIR_OK;
    int status = found.code ? weir__database_status(found.code) : WEIR_ETIMEDOUT;
    return weir_error_set(error, status, found.code, "database %s: %s: %" PRIu32 " entries wait%s",
                          writer->path_text.text, found.code ? found.text : "it is too slow", buffered,
                          weir__database_hint(found.code));
}

/* The file is gone from its path, and with it what was written before. */
static int report_missing_file(const weir_sqlite_writer *writer, weir_error *error)
{
    const int code = SQLITE_READONLY_DBMOVED;
    return weir_error_set(error, weir__database_status(code), code,
                          "database %s: %s: %" PRId64 " of %" PRIu64
                          " entries could not be written, and the others are in the file that was there before%s",
                          writer->path_text.text, weir__database_text(NULL, code), writer->num_lost, writer->num_seen,
                          weir__database_hint(code));
}

static int report_losses(const weir_sqlite_writer *writer, weir_error *error)
{
    if (writer->file_code != SQLITE_OK)
        return report_missing_file(writer, error);
    if (writer->num_lost == 0)
        return WEIR_OK;
    const weir_problem *reason = &writer->loss_reason;
    return weir_error_set(error, weir__database_status(reason->code), reason->code,
                          "database %s: %" PRId64 " of %" PRIu64 " entries could not be written: %s%s",
                          writer->path_text.text, writer->num_lost, writer->num_seen, reason->text,
                          weir__database_hint(reason->code));
}

int weir_sqlite_close(weir_sqlite_writer *writer, weir_error *error)
{
    if (!writer)
        return WEIR_OK;
    if (weir__writer_is_of_parent(writer))
        return weir__writer_report_fork(writer, error);
    weir__stack_recorder_free(writer->stacks);
    int code = leave_store(writer, writer->retry_limit_ns);
    assert(!writer->first && !writer->batch.entries && writer->buffered == 0);
    int status = report_losses(writer, error);
    if (status == WEIR_OK && code != SQLITE_OK)
        status = weir_error_set(error, weir__database_status(code), code,
                                "database %s: %s: the last entries may not survive a power failure",
                                writer->path_text.text, weir__database_text(NULL, code));
    free_memory(writer);
    return status;
}
