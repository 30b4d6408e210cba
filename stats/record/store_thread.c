/* The thread of a store. See store.h. */
#include "stats/record/store.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/log.h>

#include "common/unix_clock.h"
#include "stats/record/rolls.h"
#include "stats/record/transaction.h"
#include "stats/record/writer.h"
#include "stats/schema/database.h"

enum {
    MAX_BATCH = 1024
}; /* of all writers: keeps transactions short, as other processes may write to the same file */

static const int64_t first_delay_ns = 10 * WEIR_MILLISECOND;
static const int64_t last_delay_ns = WEIR_SECOND;
static const int64_t last_delay_awaited_ns = 100 * WEIR_MILLISECOND;
static const int64_t quiet_outage_ns = WEIR_SECOND; /* short conflicts between two writers are not logged */

/* ---- what is due ----------------------------------------------------------------------------------------------------- */

/* Whether a transaction has something to do for it. */
static bool has_work_locked(const weir_sqlite_writer *writer)
{
    return writer->buffered > 0 || writer->losses_unwritten || !(writer->was_tried || writer->closing);
}

static bool has_ended_locked(const weir_sqlite_writer *writer)
{
    return writer->closing && !has_work_locked(writer);
}

/* Time until there is something to do for this writer: 0 = now, WEIR_FOREVER = not before an entry arrives. */
static int64_t writer_due_in_ns(const weir_sqlite_writer *writer, int64_t now_ns)
{
    if (has_ended_locked(writer))
        return 0;
    if (!has_work_locked(writer))
        return WEIR_FOREVER;

    int64_t due_ns = writer->store->retry_at_ns;
    if (due_ns == 0) {
        bool now = writer->closing || writer->in_buffer == 0 || writer->in_buffer >= writer->flush_at ||
                   writer->flush_to > writer->num_settled;
        if (now)
            return 0;
        due_ns = writer->first->arrived_ns + writer->flush_interval_ns;
    }
    return due_ns > now_ns ? due_ns - now_ns : 0;
}

static int64_t store_due_in_ns(const weir_store *store)
{
    int64_t now_ns = weir_clock_ns();
    int64_t least_ns = store->sync_wanted > store->num_synced ? 0 : WEIR_FOREVER;
    for (const weir_sqlite_writer *writer = store->writers; writer; writer = writer->next) {
        int64_t due_ns = writer_due_in_ns(writer, now_ns);
        if (least_ns == WEIR_FOREVER || (due_ns != WEIR_FOREVER && due_ns < least_ns))
            least_ns = due_ns;
    }
    return least_ns;
}

/* True when something is to be done, false when the store ends. */
static bool wait_for_work_locked(weir_store *store)
{
    for (;;) {
        int64_t due_ns = store_due_in_ns(store);
        if (due_ns == 0)
            return true;
        if (due_ns != WEIR_FOREVER)
            uv_cond_timedwait(&store->wake, &store->lock, (uint64_t)due_ns);
        else if (store->is_ending)
            return false;
        else
            uv_cond_wait(&store->wake, &store->lock);
    }
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static void fill_batch_locked(weir_sqlite_writer *writer, uint32_t max_entries)
{
    weir_record_entry **end = &writer->batch.entries;
    uint32_t count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    for (; count < max_entries && writer->first; count++) {
        weir_record_entry *entry = writer->first;
        writer->first = entry->next;
        writer->in_buffer--;
        entry->next = NULL;
        weir__rolls_place(&entry->run->rolls, entry);
        *end = entry;
        end = &entry->next;
    }
    if (!writer->first)
        writer->end = &writer->first;
}

/* Writes the number of entries lost so far by each run with the next batch. */
static void collect_losses_locked(weir_sqlite_writer *writer)
{
    writer->losses_unwritten = false;
    for (weir_run *run = writer->runs; run; run = run->next)
        run->lost_to_write = run->lost;
}

/* Frees the written batch; returns how many entries were refused. */
static uint32_t settle_locked(weir_sqlite_writer *writer)
{
    static const weir_problem refusal = { SQLITE_CONSTRAINT, "refused" };
    uint32_t num_refused = 0;
    for (weir_run *run = writer->batch.runs; run; run = run->next)
        run->visible_id = run->run_id;
    while (writer->batch.entries) {
        weir_record_entry *entry = writer->batch.entries;
        writer->batch.entries = entry->next;
        if (entry->refused) {
            weir__buffer_count_lost_locked(writer, entry->run, 1, &refusal);
            num_refused++;
        }
        writer->buffered--;
        writer->num_settled++;
        free(entry);
    }
    writer->was_tried = true;
    writer->wait_timed_out = false;
    writer->close_deadline_ns = weir_clock_ns() + writer->retry_limit_ns; /* progress extends the deadline */
    return num_refused;
}

static void end_problem_locked(weir_store *store)
{
    store->retry_at_ns = 0;
    store->problem = (weir_problem){ SQLITE_OK, "" };
    uv_cond_broadcast(&store->settled);
}

static void tell_recovery(weir_store *store, int64_t num_lost)
{
    if (store->outage_reported)
        weir_log(WEIR_LOG_INFO, "database %s accepts entries again after %.1f s; %" PRId64 " entries were dropped",
                 store->path_text.text, (double)(weir_clock_ns() - store->outage_since_ns) / (double)WEIR_SECOND,
                 num_lost);
    store->outage_since_ns = 0;
    store->outage_reported = false;
    store->delay_ns = 0;
}

static void tell_outage(weir_store *store, const weir_problem *problem)
{
    int64_t now_ns = weir_clock_ns();
    if (store->outage_since_ns == 0)
        store->outage_since_ns = now_ns;
    if (store->outage_reported || now_ns - store->outage_since_ns < quiet_outage_ns)
        return;
    store->outage_reported = true;
    weir_log(WEIR_LOG_WARNING, "database %s: %s; trying again%s", store->path_text.text, problem->text,
             weir__database_hint(problem->code));
}

static weir_problem problem_of(sqlite3 *db, int code)
{
    weir_problem result = { .code = code };
    snprintf(result.text, sizeof result.text, "%s", weir__database_text(db, code));
    return result;
}

/* Moves what the log holds into the database, so that the log's space can be reused. */
static void reclaim_room(weir_store *store)
{
    sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

int weir__store_checkpoint(void *self, sqlite3 *db, const char *name, int num_pages)
{
    enum { LOG_PAGES = 1000 };
    weir_store *store = self;
    if (num_pages < LOG_PAGES) {
        store->wait_at_pages = 2 * LOG_PAGES;
        return SQLITE_OK;
    }
    bool waits = num_pages >= store->wait_at_pages;
    int mode = waits ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
    if (sqlite3_wal_checkpoint_v2(db, name, mode, NULL, NULL) != SQLITE_OK && waits)
        store->wait_at_pages = num_pages > INT_MAX / 2 ? INT_MAX : 2 * num_pages;
    return SQLITE_OK; /* the commit has succeeded */
}

/* Whether somebody waits for the database, in weir_sqlite_open() or weir_sqlite_close(). */
static bool is_awaited_locked(const weir_store *store)
{
    for (const weir_sqlite_writer *writer = store->writers; writer; writer = writer->next)
        if (writer->closing || (!writer->runs->next && writer->runs->visible_id == 0))
            return true;
    return false;
}

static void plan_retry_locked(weir_store *store, weir_transaction_part *parts, const weir_problem *problem)
{
    int64_t longest_ns = is_awaited_locked(store) ? last_delay_awaited_ns : last_delay_ns;
    store->delay_ns = store->delay_ns ? store->delay_ns * 2 : first_delay_ns;
    if (store->delay_ns > longest_ns)
        store->delay_ns = longest_ns;
    store->retry_at_ns = weir_clock_ns() + store->delay_ns;
    store->problem = *problem;
    for (weir_transaction_part *part = parts; part; part = part->next) {
        part->writer->losses_unwritten = true; /* the batch should have written them */
        part->writer->was_tried = true;
    }
    uv_cond_broadcast(&store->settled);
}

/* Takes the same share of the batch from each writer that has something to write; NULL = none has. */
static weir_transaction_part *collect_parts_locked(weir_store *store)
{
    weir_transaction_part *parts = NULL;
    uint32_t count = 0;
    for (weir_sqlite_writer *writer = store->writers; writer; writer = writer->next) {
        if (!has_work_locked(writer))
            continue;
        writer->batch.writer = writer;
        writer->batch.next = parts;
        parts = &writer->batch;
        count++;
    }
    for (weir_transaction_part *part = parts; part; part = part->next) {
        fill_batch_locked(part->writer, count < MAX_BATCH ? MAX_BATCH / count : 1);
        collect_losses_locked(part->writer);
        part->runs = part->writer->runs;
    }
    return parts;
}

/* What fails now is done after the writer's next batch. */
static void thin_runs(weir_store *store, const weir_transaction_part *part)
{
    int64_t keep_ns = part->writer->keep_ns, before_unix_ns = unix_clock_ns() - keep_ns;
    int code = SQLITE_OK;
    for (weir_run *run = part->runs; run && keep_ns && code == SQLITE_OK; run = run->next)
        if (run->run_id)
            code = weir__rolls_thin(&store->rows, run, before_unix_ns);
}

/* The lock is held before and after, but not in between. */
static void settle_parts(weir_store *store, weir_transaction_part *parts)
{
    uint32_t num_refused = 0;
    int64_t num_lost = 0;
    for (weir_transaction_part *part = parts; part; part = part->next) {
        num_refused += settle_locked(part->writer);
        num_lost += part->writer->num_lost;
    }
    end_problem_locked(store);
    uv_mutex_unlock(&store->lock);
    for (const weir_transaction_part *part = parts; part; part = part->next)
        thin_runs(store, part);
    tell_recovery(store, num_lost);
    if (num_refused)
        weir_log(WEIR_LOG_ERROR, "database %s refused %" PRIu32 " entries, which are dropped", store->path_text.text,
                 num_refused);
    uv_mutex_lock(&store->lock);
}

/* Tries to write one batch of all writers. The lock is held before and after, but not in between. */
static void flush_store(weir_store *store)
{
    if (store->retry_at_ns > weir_clock_ns())
        return;
    weir_transaction_part *parts = collect_parts_locked(store);
    if (!parts)
        return;
    uv_mutex_unlock(&store->lock);

    int code = weir__transaction_write(&store->rows, parts);
    weir_problem found = { SQLITE_OK, "" };
    if (code != SQLITE_OK) {
        found = problem_of(store->db, code);
        tell_outage(store, &found);
        if ((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR)
            reclaim_room(store);
    }

    uv_mutex_lock(&store->lock);
    if (code == SQLITE_OK)
        settle_parts(store, parts);
    else
        plan_retry_locked(store, parts, &found);
}

/* ---- closing ------------------------------------------------------------------------------------------------------- */

/* Drops the entries of the batch, boundaries (record.h) only if that is wanted. */
static void drop_batch_locked(weir_sqlite_writer *writer, bool boundaries_too)
{
    for (weir_record_entry **link = &writer->batch.entries; *link;) {
        weir_record_entry *entry = *link;
        if (weir__record_entry_is_boundary(entry) && !boundaries_too) {
            link = &entry->next;
            continue;
        }
        weir__buffer_count_lost_locked(writer, entry->run, 1, &writer->store->problem);
        *link = entry->next;
        writer->buffered--;
        writer->num_settled++;
        free(entry);
    }
    uv_cond_broadcast(&writer->store->settled);
}

/* Retrying does not help with these. */
static bool is_hopeless(int code)
{
    switch (code & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return true;
    default: return false;
    }
}

static bool out_of_patience_locked(const weir_sqlite_writer *writer)
{
    const weir_problem *problem = &writer->store->problem;
    if (!writer->closing || has_ended_locked(writer) || problem->code == SQLITE_OK)
        return false;
    return is_hopeless(problem->code) || weir_clock_ns() >= writer->close_deadline_ns;
}

/*
 * Called when closing has timed out: drops everything of the writer except boundaries and the numbers of
 * lost entries, which are tried once more. The lock is held before and after, but not in between.
 */
static void give_up(weir_store *store, weir_sqlite_writer *writer)
{
    fill_batch_locked(writer, UINT32_MAX);
    drop_batch_locked(writer, false);
    collect_losses_locked(writer);
    writer->batch.next = NULL;
    writer->batch.runs = writer->runs;
    weir_problem reason = store->problem;
    uv_mutex_unlock(&store->lock);

    int code = weir__transaction_write(&store->rows, &writer->batch);

    uv_mutex_lock(&store->lock);
    if (code == SQLITE_OK) {
        settle_locked(writer);
        end_problem_locked(store);
    } else {
        drop_batch_locked(writer, true);
    }
    writer->losses_unwritten = false; /* no more attempts */
    int64_t num_lost = writer->num_lost;
    uv_mutex_unlock(&store->lock);
    if (num_lost > 0)
        weir_log(WEIR_LOG_ERROR, "database %s: %s: %" PRId64 " entries are dropped%s", store->path_text.text,
                 reason.text, num_lost, weir__database_hint(reason.code));
    uv_mutex_lock(&store->lock);
}

/* Forgets a writer of which nothing is left to write. The lock is held before and after, but not in between. */
static void close_writer(weir_store *store, weir_sqlite_writer *writer)
{
    weir_sqlite_writer **link = &store->writers;
    while (*link != writer)
        link = &(*link)->next;
    *link = writer->next;
    bool was_used = writer->num_seen > 0;
    uv_mutex_unlock(&store->lock);

    int code = SQLITE_OK;
    if (was_used)
        code = weir__transaction_check_file(store->db);
    else if (writer->runs->committed) /* no pipeline has run */
        weir__insert_remove_run(&store->rows, writer->runs);

    uv_mutex_lock(&store->lock);
    writer->file_code = code;
    writer->is_closed = true; /* from now on it may be freed */
    uv_cond_broadcast(&store->settled);
}

static void close_writers(weir_store *store)
{
    for (weir_sqlite_writer *writer = store->writers, *next; writer; writer = next) {
        if (out_of_patience_locked(writer))
            give_up(store, writer);
        next = writer->next;
        if (has_ended_locked(writer))
            close_writer(store, writer);
    }
}

/* For those that leave, and want to know that their rows survive a power failure. */
static void sync_store(weir_store *store)
{
    uint64_t wanted = store->sync_wanted;
    if (wanted == store->num_synced)
        return;
    uv_mutex_unlock(&store->lock);
    int code = weir__database_sync_log(store->db);
    uv_mutex_lock(&store->lock);
    store->num_synced = wanted;
    store->sync_code = code;
    uv_cond_broadcast(&store->settled);
}

void weir__store_run(void *self)
{
    weir_store *store = self;
    uv_mutex_lock(&store->lock);
    while (wait_for_work_locked(store)) {
        flush_store(store);
        close_writers(store);
        sync_store(store);
    }
    uv_mutex_unlock(&store->lock);
}
