/* The writer's thread. See writer.h. */
#include "stats/record/writer.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/log.h>

#include "common/unix_clock.h"
#include "stats/record/rolls.h"
#include "stats/record/transaction.h"
#include "stats/schema/database.h"

enum { MAX_BATCH = 1024 }; /* keeps transactions short: other processes may write to the same file */

static const int64_t first_delay_ns = 10 * WEIR_MILLISECOND;
static const int64_t last_delay_ns = WEIR_SECOND;
static const int64_t last_delay_closing_ns = 100 * WEIR_MILLISECOND;
static const int64_t quiet_outage_ns = WEIR_SECOND; /* short conflicts between two writers are not logged */

/* Time until there is something to write: 0 = now, WEIR_FOREVER = not before an entry arrives. */
static int64_t due_in_ns(const weir_sqlite_writer *writer)
{
    if (writer->buffered == 0 && !writer->losses_unwritten)
        return WEIR_FOREVER;

    int64_t due_ns = writer->retry_at_ns;
    if (due_ns == 0) {
        bool now = writer->closing || writer->in_buffer == 0 || writer->in_buffer >= writer->flush_at ||
                   writer->flush_to > writer->num_settled;
        if (now)
            return 0;
        due_ns = writer->first->arrived_ns + writer->flush_interval_ns;
    }
    int64_t left_ns = due_ns - weir_clock_ns();
    return left_ns > 0 ? left_ns : 0;
}

/* True when something is to be written, false when everything is done. */
static bool wait_for_work_locked(weir_sqlite_writer *writer)
{
    for (;;) {
        int64_t due_ns = due_in_ns(writer);
        if (due_ns == 0)
            return true;
        if (due_ns != WEIR_FOREVER)
            uv_cond_timedwait(&writer->wake, &writer->lock, (uint64_t)due_ns);
        else if (writer->closing)
            return false;
        else
            uv_cond_wait(&writer->wake, &writer->lock);
    }
}

static void fill_batch_locked(weir_sqlite_writer *writer, uint32_t max_entries)
{
    weir_record_entry **end = &writer->batch;
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
    while (writer->batch) {
        weir_record_entry *entry = writer->batch;
        writer->batch = entry->next;
        entry->run->visible_id = entry->run->run_id;
        if (entry->refused) {
            weir__buffer_count_lost_locked(writer, entry->run, 1, &refusal);
            num_refused++;
        }
        writer->buffered--;
        writer->num_settled++;
        free(entry);
    }
    writer->wait_timed_out = false;
    writer->retry_at_ns = 0;
    writer->close_deadline_ns = weir_clock_ns() + writer->retry_limit_ns; /* progress extends the deadline */
    writer->problem = (weir_problem){ SQLITE_OK, "" };
    uv_cond_broadcast(&writer->settled);
    return num_refused;
}

static void tell_recovery(weir_sqlite_writer *writer, int64_t num_lost)
{
    if (writer->outage_told)
        weir_log(WEIR_LOG_INFO, "database %s accepts entries again after %.1f s; %" PRId64 " entries were dropped",
                 writer->path_text.text, (double)(weir_clock_ns() - writer->outage_since_ns) / (double)WEIR_SECOND,
                 num_lost);
    writer->outage_since_ns = 0;
    writer->outage_told = false;
    writer->delay_ns = 0;
}

static void tell_outage(weir_sqlite_writer *writer, const weir_problem *problem)
{
    int64_t now_ns = weir_clock_ns();
    if (writer->outage_since_ns == 0)
        writer->outage_since_ns = now_ns;
    if (writer->outage_told || now_ns - writer->outage_since_ns < quiet_outage_ns)
        return;
    writer->outage_told = true;
    weir_log(WEIR_LOG_WARNING, "database %s: %s; trying again%s", writer->path_text.text, problem->text,
             weir__database_hint(problem->code));
}

static weir_problem problem_of(sqlite3 *db, int code)
{
    weir_problem result = { .code = code };
    snprintf(result.text, sizeof result.text, "%s", weir__database_text(db, code));
    return result;
}

/* Moves what the log holds into the database, so that the log's space can be reused. */
static void reclaim_room(weir_sqlite_writer *writer)
{
    sqlite3_wal_checkpoint_v2(writer->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

int weir__writer_checkpoint(void *self, sqlite3 *db, const char *name, int num_pages)
{
    enum { LOG_PAGES = 1000 };
    weir_sqlite_writer *writer = self;
    if (num_pages < LOG_PAGES) {
        writer->wait_at_pages = 2 * LOG_PAGES;
        return SQLITE_OK;
    }
    bool waits = num_pages >= writer->wait_at_pages;
    int mode = waits ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
    if (sqlite3_wal_checkpoint_v2(db, name, mode, NULL, NULL) != SQLITE_OK && waits)
        writer->wait_at_pages = num_pages > INT_MAX / 2 ? INT_MAX : 2 * num_pages;
    return SQLITE_OK; /* the commit has succeeded */
}

static void plan_retry_locked(weir_sqlite_writer *writer, const weir_problem *problem)
{
    int64_t longest_ns = writer->closing ? last_delay_closing_ns : last_delay_ns;
    writer->delay_ns = writer->delay_ns ? writer->delay_ns * 2 : first_delay_ns;
    if (writer->delay_ns > longest_ns)
        writer->delay_ns = longest_ns;
    writer->retry_at_ns = weir_clock_ns() + writer->delay_ns;
    writer->losses_unwritten = true; /* the batch should have written them */
    writer->problem = *problem;
}

/* What fails now is done after the next batch. */
static void thin_runs(weir_sqlite_writer *writer, weir_run *runs)
{
    int64_t before_unix_ns = unix_clock_ns() - writer->keep_ns;
    for (weir_run *run = runs; run && writer->keep_ns; run = run->next)
        if (run->run_id)
            weir__rolls_thin(&writer->rows, run, before_unix_ns);
}

/* Tries to write one batch. The lock is held before and after, but not in between. */
static void flush_writer(weir_sqlite_writer *writer)
{
    fill_batch_locked(writer, MAX_BATCH);
    collect_losses_locked(writer);
    weir_run *runs = writer->runs;
    uv_mutex_unlock(&writer->lock);

    int code = weir__transaction_write(&writer->rows, writer->batch, runs);
    weir_problem found = { SQLITE_OK, "" };
    if (code != SQLITE_OK) {
        found = problem_of(writer->db, code);
        tell_outage(writer, &found);
        if ((code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_IOERR)
            reclaim_room(writer);
    }

    uv_mutex_lock(&writer->lock);
    if (code != SQLITE_OK) {
        plan_retry_locked(writer, &found);
        return;
    }
    uint32_t num_refused = settle_locked(writer);
    int64_t num_lost = writer->num_lost;
    uv_mutex_unlock(&writer->lock);
    thin_runs(writer, runs);
    tell_recovery(writer, num_lost);
    if (num_refused)
        weir_log(WEIR_LOG_ERROR, "database %s refused %" PRIu32 " entries, which are dropped", writer->path_text.text,
                 num_refused);
    uv_mutex_lock(&writer->lock);
}

/* Drops the entries of the batch, the starts and ends of runs only if that is wanted. */
static void drop_batch_locked(weir_sqlite_writer *writer, bool boundaries_too)
{
    for (weir_record_entry **link = &writer->batch; *link;) {
        weir_record_entry *entry = *link;
        if (weir__record_entry_is_boundary(entry) && !boundaries_too) {
            link = &entry->next;
            continue;
        }
        weir__buffer_count_lost_locked(writer, entry->run, 1, &writer->problem);
        *link = entry->next;
        writer->buffered--;
        writer->num_settled++;
        free(entry);
    }
    uv_cond_broadcast(&writer->settled);
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
    if (!writer->closing || writer->problem.code == SQLITE_OK)
        return false;
    return is_hopeless(writer->problem.code) || weir_clock_ns() >= writer->close_deadline_ns;
}

/*
 * Called when closing has timed out: drops everything except the starts and ends of runs and the numbers of lost
 * entries, which are tried once more. The lock is held before and after, but not in between.
 */
static void give_up(weir_sqlite_writer *writer)
{
    fill_batch_locked(writer, UINT32_MAX);
    drop_batch_locked(writer, false);
    collect_losses_locked(writer);
    weir_run *runs = writer->runs;
    weir_problem reason = writer->problem;
    uv_mutex_unlock(&writer->lock);

    int code = weir__transaction_write(&writer->rows, writer->batch, runs);

    uv_mutex_lock(&writer->lock);
    if (code == SQLITE_OK)
        settle_locked(writer);
    else
        drop_batch_locked(writer, true);
    int64_t num_lost = writer->num_lost;
    uv_mutex_unlock(&writer->lock);
    weir_log(WEIR_LOG_ERROR, "database %s: %s: %" PRId64 " entries are dropped%s", writer->path_text.text,
             reason.text, num_lost, weir__database_hint(reason.code));
    uv_mutex_lock(&writer->lock);
}

static void run_writer(void *self)
{
    weir_sqlite_writer *writer = self;
    uv_mutex_lock(&writer->lock);
    while (wait_for_work_locked(writer)) {
        flush_writer(writer);
        if (out_of_patience_locked(writer)) {
            give_up(writer);
            break;
        }
    }
    uv_mutex_unlock(&writer->lock);
}

/* Signals are left to the program's own threads. */
int weir__writer_start(weir_sqlite_writer *writer)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* see thread.c */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = uv_thread_create(&writer->thread, run_writer, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void weir__writer_stop(weir_sqlite_writer *writer)
{
    uv_mutex_lock(&writer->lock);
    writer->closing = true;
    writer->close_deadline_ns = weir_clock_ns() + writer->retry_limit_ns;
    if (writer->retry_at_ns)
        writer->retry_at_ns = weir_clock_ns(); /* immediately */
    uv_cond_signal(&writer->wake);
    uv_mutex_unlock(&writer->lock);
    uv_thread_join(&writer->thread);
}
