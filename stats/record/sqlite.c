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
    OPEN_RETRY_MS = 20,
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

/* The first run gets its row here: this tests that the database is writable, and gives the run its id. */
static int insert_first_run(weir_sqlite_writer *writer)
{
    int code = weir__transaction_write(&writer->rows, NULL, writer->runs);
    writer->runs->visible_id = writer->runs->run_id;
    return code;
}

static int open_writer_database(weir_sqlite_writer *writer, weir_error *error)
{
    int64_t deadline_ns = weir_clock_ns() + writer->retry_limit_ns;
    int status = *writer->memory_name
                     ? weir__database_make_memory(writer->memory_name, &writer->db, writer->path, error)
                     : weir__database_open_writer(writer->path, deadline_ns, &writer->db, error);
    if (status != WEIR_OK)
        return status;
    sqlite3_wal_hook(writer->db, weir__writer_checkpoint, writer);
    int code = weir__insert_prepare(&writer->rows, writer->db, &writer->identity);
    if (code == SQLITE_OK)
        code = weir__rolls_prepare(&writer->rows);
    if (code == SQLITE_OK)
        code = insert_first_run(writer);
    while ((code & 0xff) == SQLITE_BUSY && weir_clock_ns() < deadline_ns) {
        uv_sleep(OPEN_RETRY_MS); /* a lock has no notification */
        code = insert_first_run(writer);
    }
    if (code == SQLITE_OK)
        return WEIR_OK;
    return weir__database_error(error, writer->db, code, "cannot write to", writer->path);
}

static void close_writer_database(weir_sqlite_writer *writer)
{
    weir__rolls_finalize(&writer->rows);
    weir__insert_finalize(&writer->rows);
    weir__database_close(writer->db);
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

static int make_lock(weir_sqlite_writer *writer)
{
    int code = uv_mutex_init(&writer->lock);
    if (code != 0)
        return code;
    code = uv_cond_init(&writer->wake);
    if (code != 0)
        goto fail_wake;
    code = uv_cond_init(&writer->settled);
    if (code != 0)
        goto fail_settled;
    return 0;

fail_settled:
    uv_cond_destroy(&writer->wake);
fail_wake:
    uv_mutex_destroy(&writer->lock);
    return code;
}

static void destroy_lock(weir_sqlite_writer *writer)
{
    uv_cond_destroy(&writer->settled);
    uv_cond_destroy(&writer->wake);
    uv_mutex_destroy(&writer->lock);
}

int weir_sqlite_open_sized(const char *path, const weir_sqlite_options *given, size_t given_size,
                           weir_sqlite_writer **result, weir_error *error)
{
    if (!result)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_sqlite_options options;
    *result = NULL;
    int code, status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_sqlite_options", error);
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
        goto fail_memory;
    }
    code = make_lock(writer);
    if (code != 0) {
        status = weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a lock: %s", uv_strerror(code));
        goto fail_memory;
    }
    status = open_writer_database(writer, error);
    if (status != WEIR_OK)
        goto fail_database;
    status = start_stacks(writer, options.stacks, error);
    if (status != WEIR_OK)
        goto fail_run;
    code = weir__writer_start(writer);
    if (code != 0) {
        status = weir_error_set(error, WEIR_ESYSTEM, code, "cannot start the writer's thread: %s", uv_strerror(code));
        goto fail_run;
    }
    *result = writer;
    return WEIR_OK;

fail_run:
    weir__stack_recorder_free(writer->stacks);
    weir__insert_remove_run(&writer->rows, writer->runs);
fail_database:
    close_writer_database(writer);
    destroy_lock(writer);
fail_memory:
    free_memory(writer);
    return status;
}

const char *weir__writer_memory_name(const weir_sqlite_writer *writer, const char **path)
{
    *path = writer->path;
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
    int status = weir_struct_copy(&options, sizeof options, given, given_size, "weir_sqlite_items", error);
    if (status != WEIR_OK)
        return status;
    if (options.num_slowest > MAX_CHOSEN || options.num_sampled > MAX_CHOSEN)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_slowest and num_sampled must not be above %d", MAX_CHOSEN);
    weir_item_sampler *items = weir__item_sampler_new(writer, &options);
    if (!items)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    uv_mutex_lock(&writer->lock);
    items->next = writer->items;
    writer->items = items;
    uv_mutex_unlock(&writer->lock);
    *hook = (weir_task_hook){ .self = items, .end = weir__item_sampler_end };
    return WEIR_OK;
}

int64_t weir_sqlite_run_id(weir_sqlite_writer *writer)
{
    if (!writer)
        return 0;
    uv_mutex_lock(&writer->lock);
    weir_run *run = writer->runs;
    if (run->visible_id == 0)
        weir__buffer_flush_locked(writer);
    int64_t run_id = run->visible_id;
    uv_mutex_unlock(&writer->lock);
    return run_id;
}

int weir_sqlite_flush(weir_sqlite_writer *writer, weir_error *error)
{
    if (!writer)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    uv_mutex_lock(&writer->lock);
    bool done = weir__buffer_flush_locked(writer);
    weir_problem found = writer->problem;
    uint32_t buffered = writer->buffered;
    uv_mutex_unlock(&writer->lock);
    if (done)
        return WEIR_OK;
    int status = found.code ? weir__database_status(found.code) : WEIR_ETIMEDOUT;
    return weir_error_set(error, status, found.code, "database %s: %s: %" PRIu32 " entries wait%s",
                          writer->path_text.text, found.code ? found.text : "it is too slow", buffered,
                          weir__database_hint(found.code));
}

/* What was written before is gone from the path, too. */
static int report_missing_file(const weir_sqlite_writer *writer, weir_error *error)
{
    const int code = SQLITE_READONLY_DBMOVED;
    return weir_error_set(error, weir__database_status(code), code,
                          "database %s: %s: %" PRId64 " of %" PRIu64
                          " entries could not be written, and the others are in the file that was there before%s",
                          writer->path_text.text, weir__database_text(writer->db, code), writer->num_lost,
                          writer->num_seen, weir__database_hint(code));
}

static int report_losses(const weir_sqlite_writer *writer, weir_error *error)
{
    if (writer->num_seen > 0 && weir__transaction_check_file(writer->db) != SQLITE_OK)
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
    weir__stack_recorder_free(writer->stacks);
    weir__writer_stop(writer);
    assert(!writer->first && !writer->batch && writer->buffered == 0);
    if (writer->num_seen == 0)
        weir__insert_remove_run(&writer->rows, writer->runs); /* no pipeline has run */
    int status = report_losses(writer, error);
    close_writer_database(writer);
    destroy_lock(writer);
    free_memory(writer);
    return status;
}
