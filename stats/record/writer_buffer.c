/* The buffer: the side of the observer calls. See writer.h. */
#include "stats/record/writer.h"

#include <stdlib.h>

#include <weir/log.h>

#include "stats/record/item_sampler.h"
#include "stats/record/stack_recorder.h"
#include "stats/schema/database.h"

weir_run *weir__buffer_add_run_locked(weir_sqlite_writer *writer)
{
    weir_run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->identity = &writer->identity;
    run->next = writer->runs;
    writer->runs = run;
    return run;
}

void weir__buffer_count_lost_locked(weir_sqlite_writer *writer, weir_run *run, int64_t count,
                                    const weir_problem *reason)
{
    if (count == 0)
        return;
    run->lost += count;
    writer->num_lost += count;
    writer->losses_unwritten = true;
    writer->loss_reason = *reason;
}

/* Waits on `condition` until deadline_ns; false if that has passed. */
static bool wait_until_locked(weir_sqlite_writer *writer, uv_cond_t *condition, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - weir_clock_ns();
    if (left_ns <= 0)
        return false;
    uv_cond_timedwait(condition, &writer->store->lock, (uint64_t)left_ns);
    return true;
}

static void want_flush_locked(weir_sqlite_writer *writer)
{
    writer->flush_to = writer->num_taken;
    uv_cond_signal(&writer->store->wake);
}

bool weir__buffer_flush_locked(weir_sqlite_writer *writer)
{
    int64_t deadline_ns = weir_clock_ns() + writer->retry_limit_ns;
    uint64_t wanted = writer->num_taken;
    want_flush_locked(writer);
    while (writer->num_settled < wanted)
        if (!wait_until_locked(writer, &writer->store->settled, deadline_ns))
            return false;
    return true;
}

static bool make_room_locked(weir_sqlite_writer *writer)
{
    int64_t deadline_ns = weir_clock_ns() + writer->retry_limit_ns;
    while (writer->buffered >= writer->capacity && !writer->wait_timed_out) {
        want_flush_locked(writer);
        if (!wait_until_locked(writer, &writer->store->settled, deadline_ns))
            writer->wait_timed_out = true;
    }
    return writer->buffered < writer->capacity;
}

static void append_locked(weir_sqlite_writer *writer, weir_record_entry *entry)
{
    entry->run = writer->runs;
    entry->arrived_ns = weir_clock_ns();
    *writer->end = entry;
    writer->end = &entry->next;
    writer->in_buffer++;
    writer->buffered++;
    writer->num_taken++;
    if (writer->in_buffer == 1 || writer->in_buffer == writer->flush_at)
        uv_cond_signal(&writer->store->wake);
}

/* True if the entry was accepted; otherwise *reason says why not. */
static bool take_locked(weir_sqlite_writer *writer, weir_record_entry *entry, weir_problem *reason)
{
    writer->num_seen++;
    if (entry && (weir__record_entry_is_boundary(entry) || make_room_locked(writer))) {
        append_locked(writer, entry);
        return true;
    }
    if (!entry)
        *reason = (weir_problem){ SQLITE_NOMEM, "out of memory" };
    else if (writer->store->problem.code != SQLITE_OK)
        *reason = writer->store->problem;
    else
        *reason = (weir_problem){ SQLITE_IOERR, "too slow" };
    weir__buffer_count_lost_locked(writer, writer->runs, 1, reason);
    return false;
}

/* Takes ownership of the entry; NULL = it could not be allocated. */
static void take_entry(weir_sqlite_writer *writer, weir_record_entry *entry)
{
    weir_problem reason;
    uv_mutex_lock(&writer->store->lock);
    bool known = writer->wait_timed_out;
    bool taken = take_locked(writer, entry, &reason);
    uv_mutex_unlock(&writer->store->lock);

    if (taken)
        return;
    free(entry);
    if (!known) /* logged once per outage of the database */
        weir_log(WEIR_LOG_ERROR, "database %s: %s: entries are dropped%s", writer->path_text.text, reason.text,
                 weir__database_hint(reason.code));
}

void weir__buffer_offer(weir_sqlite_writer *writer, weir_record_entry *entry)
{
    static const weir_problem full = { SQLITE_FULL, "items came faster than they could be written" };
    static const weir_problem no_memory = { SQLITE_NOMEM, "out of memory" };
    uv_mutex_lock(&writer->store->lock);
    writer->num_seen++;
    bool taken = entry && writer->buffered < writer->capacity;
    if (taken)
        append_locked(writer, entry);
    else
        weir__buffer_count_lost_locked(writer, writer->runs, 1, entry ? &full : &no_memory);
    uv_mutex_unlock(&writer->store->lock);
    if (!taken)
        free(entry);
}

/* Flushes the samplers of a stage (NULL = all stages). Samplers are added before a pipeline is built, so the list
   does not change. */
static void flush_items(weir_sqlite_writer *writer, const char *stage)
{
    uv_mutex_lock(&writer->store->lock);
    weir_item_sampler *items = writer->items;
    uv_mutex_unlock(&writer->store->lock);
    for (; items; items = items->next)
        weir__item_sampler_flush(items, stage);
}

bool weir__writer_is_of_parent(const weir_sqlite_writer *writer)
{
    return writer->store->fork_number != weir__store_fork_number();
}

int weir__writer_report_fork(const weir_sqlite_writer *writer, weir_error *error)
{
    return weir_error_set(error, WEIR_EFORKED, 0,
                          "database %s: its writer belongs to the parent process: open one after fork()",
                          writer->path_text.text);
}

static int buffer_attach(void *self, weir_error *error)
{
    weir_sqlite_writer *writer = self;
    if (weir__writer_is_of_parent(writer))
        return weir__writer_report_fork(writer, error);
    uv_mutex_lock(&writer->store->lock);
    bool in_use = writer->attached;
    writer->attached = true;
    uv_mutex_unlock(&writer->store->lock);
    if (in_use)
        return weir_error_set(error, WEIR_EBUSY, 0, "database %s: its writer already records another pipeline",
                              writer->path_text.text);
    return WEIR_OK;
}

static void buffer_detach(void *self)
{
    weir_sqlite_writer *writer = self;
    uv_mutex_lock(&writer->store->lock);
    writer->attached = false;
    uv_mutex_unlock(&writer->store->lock);
}

/* The first run has its row since open. Without memory for another run, its entries go to the previous one. */
static void begin_next_run(weir_sqlite_writer *writer)
{
    uv_mutex_lock(&writer->store->lock);
    if (writer->run_started)
        weir__buffer_add_run_locked(writer);
    writer->run_started = true;
    uv_mutex_unlock(&writer->store->lock);
}

void weir__buffer_take_record(void *self, const weir_record *record)
{
    weir_sqlite_writer *writer = self;
    bool ends = record->kind == WEIR_RECORD_RUN && record->run.has_ended;
    if (ends)
        flush_items(writer, NULL);
    else if (record->kind == WEIR_RECORD_RUN)
        begin_next_run(writer);
    take_entry(writer, weir__record_entry_of(record));
    if (record->kind == WEIR_RECORD_TASK || record->kind == WEIR_RECORD_FLOW)
        flush_items(writer, record->lap.name);
    if (ends) {
        uv_mutex_lock(&writer->store->lock);
        want_flush_locked(writer);
        uv_mutex_unlock(&writer->store->lock);
    }
}

/* ---- with samples of functions ---------------------------------------------------------------------------------- */

static void start_sampled_run(void *self, const weir_run_info *info)
{
    weir_sqlite_writer *writer = self;
    weir__stack_recorder_start(writer->stacks);
    weir__record_observer(&writer->taker).run_start(self, info);
}

static void end_sampled_lap(void *self, const weir_lap *lap)
{
    weir__stack_recorder_end_lap(((weir_sqlite_writer *)self)->stacks, lap);
}

static void end_sampled_run(void *self, const weir_run_end *end)
{
    weir_sqlite_writer *writer = self;
    weir__stack_recorder_end(writer->stacks);
    weir__record_observer(&writer->taker).run_end(self, end);
}

weir_observer weir__buffer_observer(weir_sqlite_writer *writer)
{
    weir_observer observer = weir__record_observer(&writer->taker);
    observer.attach = buffer_attach;
    observer.detach = buffer_detach;
    if (writer->stacks) {
        observer.run_start = start_sampled_run;
        observer.lap_end = end_sampled_lap;
        observer.run_end = end_sampled_run;
    }
    return observer;
}
