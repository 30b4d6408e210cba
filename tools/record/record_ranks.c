#include "tools/record/record_ranks.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/query.h>
#include <weir/summary.h>
#include <weir/verdict.h>

#include "common/redact.h"
#include "common/text_escape.h"
#include "common/unix_clock.h"
#include "tools/cli/memory.h"
#include "tools/record/record_exports.h"
#include "tools/record/record_messages.h"

enum { MAX_LISTED = 10 };

/* -- the rank */

/* What identifies a job, and its restarts. torchrun sets "none" if it was not given. */
static const char *const job_variables[][2] = {
    { "WEIR_JOB", NULL },
    { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT" },
    { "PMIX_NAMESPACE", NULL },
    { "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

static void find_job(char job[200])
{
    *job = '\0';
    for (size_t i = 0; i < sizeof job_variables / sizeof job_variables[0] && !*job; i++) {
        const char *name = getenv(job_variables[i][0]);
        const char *part = job_variables[i][1] ? getenv(job_variables[i][1]) : NULL;
        if (name && strcmp(name, "none") != 0)
            snprintf(job, 200, "%.160s%s%.30s", name, part ? "." : "", part ? part : "");
    }
}

static int find_world(const record_settings *settings, weir_world *world)
{
    weir_error error = { 0 };
    *world = (weir_world){ .rank = settings->rank > 0 ? (uint32_t)settings->rank : 0, .size = 1 };
    if (settings->world > 0)
        world->size = (uint32_t)settings->world;
    else if (settings->rank < 0 && weir_world_find(world, NULL, &error) != WEIR_OK)
        return record_refuse(settings, "%s; or use --world 1 to decode everything in this process", error.message);
    if (settings->rank >= 0 && settings->world <= 0)
        return record_refuse(settings, "--rank %" PRId64 ": give --world, too: how many processes share the files",
                             settings->rank);
    if (settings->world > 1 && settings->rank < 0)
        return record_refuse(settings, "--world: give the --rank of this process, too");
    if (settings->world > 1 && settings->rank >= settings->world)
        return record_refuse(settings, "--rank: with --world %" PRId64 ", ranks are 0 to %" PRId64, settings->world,
                             settings->world - 1);
    return RECORD_DONE;
}

int record_ranks_find(record_settings *settings, record_ranks *ranks)
{
    *ranks = (record_ranks){ .job_path = settings->db_path };
    int exit_status = find_world(settings, &ranks->world);
    settings->rank = ranks->world.rank;
    settings->world = ranks->world.size;
    settings->local_rank = ranks->world.local_rank;
    settings->job = ranks->job;
    if (exit_status != RECORD_DONE || ranks->world.size == 1) {
        ranks->world.rank = 0;
        return exit_status;
    }
    /* Ranks may start at slightly different times; without a job's name, an earlier job must not be taken for this. */
    find_job(ranks->job);
    ranks->since_unix_ns = unix_clock_ns() - (*ranks->job ? 300 : 60) * WEIR_SECOND;

    char number[16];
    snprintf(number, sizeof number, "%" PRIu32, ranks->world.rank);
    ranks->program = memory_format("%s: rank %s", settings->program, number);
    ranks->db_path = record_rank_path(settings->db_path, number);
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++)
        if (settings->exports[i].path) {
            ranks->export_paths[i] = record_export_rank_path(i, settings->exports[i].path, number);
            settings->exports[i].path = ranks->export_paths[i] ? ranks->export_paths[i] : settings->exports[i].path;
        }
    settings->program = ranks->program;
    settings->db_path = ranks->db_path;
    settings->all_items = true; /* so that unfinished files are known */
    return RECORD_DONE;
}

void record_ranks_free(record_ranks *ranks)
{
    free(ranks->program);
    free(ranks->db_path);
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++)
        free(ranks->export_paths[i]);
}

/* -- the other ranks, as rank 0 sees them */

typedef struct rank_view {
    char *path; /* of its database */
    int64_t run_id;
    weir_run_state state; /* if it has a run */
    int64_t started_unix_ns;
    char process[300];              /* "process 123 on node a" */
    bool is_settled;                /* it will not change any more, or has been given up */
    int64_t written_ns, changed_ns; /* when its database was last written (wall), and when we saw that */
} rank_view;

typedef struct rank_search {
    const record_ranks *ranks;
    rank_view *view;
    int64_t started_unix_ns; /* of the latest run so far */
} rank_search;

/* The latest run of the rank in this job; merged runs are not numbered in the order of their starts. */
static int keep_latest_run(void *self, const weir_record *record, weir_error *error)
{
    rank_search *search = self;
    const weir_run_record *run = &record->run;
    rank_view *view = search->view;
    (void)error;
    if (run->world != search->ranks->world.size || strcmp(run->job, search->ranks->job) != 0 ||
        run->started_unix_ns < search->started_unix_ns)
        return WEIR_OK;
    search->started_unix_ns = run->started_unix_ns;
    view->run_id = run->run_id;
    view->started_unix_ns = run->started_unix_ns;
    view->state = weir_run_state_of(run);
    view->is_settled = run->has_ended || view->state == WEIR_RUN_KILLED;
    snprintf(view->process, sizeof view->process, "process %" PRId64 " on %s", run->pid, run->node_id);
    return WEIR_OK;
}

static void read_view(const record_ranks *ranks, uint32_t rank, rank_view *view, weir_recording *recording)
{
    const weir_filter filter = { .by_rank = true, .rank = (int32_t)rank };
    rank_search search = { ranks, view, ranks->since_unix_ns };
    weir_recording_each(recording, WEIR_RECORD_RUN, &filter, keep_latest_run, &search, NULL);
}

/* The time of the last write to the database or its log: a sign of life, also from another node. */
static int64_t last_write_ns(const char *path)
{
    struct stat info;
    char log[4200];
    int64_t last_ns = stat(path, &info) == 0 ? (int64_t)info.st_mtim.tv_sec * WEIR_SECOND + info.st_mtim.tv_nsec : 0;
    snprintf(log, sizeof log, "%s-wal", path);
    int64_t log_ns = stat(log, &info) == 0 ? (int64_t)info.st_mtim.tv_sec * WEIR_SECOND + info.st_mtim.tv_nsec : 0;
    return log_ns > last_ns ? log_ns : last_ns;
}

static void look(const record_ranks *ranks, uint32_t rank, rank_view *view, int64_t limit_ns)
{
    weir_recording *recording;
    int64_t written_ns = last_write_ns(view->path), now_ns = weir_clock_ns();
    if (written_ns != view->written_ns || !view->changed_ns)
        view->changed_ns = now_ns;
    view->written_ns = written_ns;
    if (written_ns && weir_recording_open(view->path, &recording, NULL) == WEIR_OK) {
        read_view(ranks, rank, view, recording);
        weir_recording_close(recording);
    }
    bool is_running = view->run_id && view->state == WEIR_RUN_RUNNING; /* its process is there */
    if (!is_running && now_ns - view->changed_ns > limit_ns)
        view->is_settled = true;
}

static volatile sig_atomic_t was_interrupted;

static void note_signal(int number)
{
    was_interrupted = number;
}

/* Until all others have ended or are given up; after a signal, for a moment. */
static void wait_for_ranks(const record_settings *settings, const record_ranks *ranks, rank_view *views)
{
    static const int64_t patience_ns = 400 * WEIR_MILLISECOND; /* launchers kill soon after a signal */
    int64_t lap_ns = settings->log_interval_ns ? settings->log_interval_ns : 60 * WEIR_SECOND;
    int64_t limit_ns = settings->wait_ns ? settings->wait_ns : 30 * WEIR_SECOND + 2 * lap_ns;
    int64_t deadline_ns = INT64_MAX, began_ns = weir_clock_ns();
    bool is_reported = settings->quiet;
    for (uint32_t num_open = 1; num_open > 0 && weir_clock_ns() < deadline_ns;) {
        int64_t start_ns = weir_clock_ns();
        num_open = 0;
        for (uint32_t rank = 1; rank < ranks->world.size && weir_clock_ns() < deadline_ns; rank++) {
            if (!views[rank].is_settled)
                look(ranks, rank, &views[rank], limit_ns);
            num_open += !views[rank].is_settled;
        }
        if (was_interrupted && deadline_ns == INT64_MAX)
            deadline_ns = weir_clock_ns() + patience_ns;
        if (num_open > 0 && start_ns - began_ns > WEIR_SECOND && !is_reported) {
            fprintf(stderr, "%s: done; waiting for %" PRIu32 " of %" PRIu32 " ranks\n", settings->program, num_open,
                    ranks->world.size);
            is_reported = true;
        }
        int64_t pass_ns = weir_clock_ns() - start_ns;
        /* Reading many databases over a network takes longer, and should not be all that this does. */
        int64_t pause_ns = pass_ns * 10 > 50 * WEIR_MILLISECOND ? pass_ns * 10 : 50 * WEIR_MILLISECOND;
        if (was_interrupted)
            pause_ns = 50 * WEIR_MILLISECOND;
        if (num_open > 0)
            nanosleep(&(struct timespec){ pause_ns / WEIR_SECOND, pause_ns % WEIR_SECOND }, NULL);
    }
}

/* -- the end */

int record_ranks_merge(const record_settings *settings, const char *job_path)
{
    int exit_status = RECORD_DONE;
    glob_t found = { 0 };
    weir_error error = { 0 };
    if (record_rank_databases(job_path, &found, &error) != WEIR_OK)
        return record_refuse(settings, "%s", error.message), RECORD_FAILED;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        weir_merged merged;
        error = (weir_error){ 0 };
        if (weir_database_merge(job_path, found.gl_pathv[i], &merged, &error) == WEIR_OK)
            continue;
        record_refuse(settings, "the database %s is not in the summary: %s", found.gl_pathv[i], error.message);
        exit_status = RECORD_FAILED;
    }
    globfree(&found);
    return exit_status;
}

static int summarize(const record_settings *settings, const record_ranks *ranks, const rank_view *views,
                     record_ended *ended)
{
    weir_recording *recording;
    weir_error error = { 0 };
    weir_filter job = { .start_unix_ns = INT64_MAX };
    for (uint32_t rank = 0; rank < ranks->world.size; rank++)
        if (views[rank].run_id && views[rank].started_unix_ns < job.start_unix_ns)
            job.start_unix_ns = views[rank].started_unix_ns;
    int status = weir_recording_open(ranks->job_path, &recording, &error);
    if (status == WEIR_OK && !settings->quiet)
        status = record_print_summary(settings, recording, &job, &error);
    if (status == WEIR_OK)
        status = record_ended_read(ended, recording, &job, &error);
    weir_recording_close(recording);
    return record_end_summary(settings, status, &error);
}

typedef struct unfinished {
    uint64_t count;
    bool prints;
} unfinished;

static void take_unfinished(void *self, const char *path, uint64_t occurrence)
{
    unfinished *files = self;
    (void)occurrence;
    if (files->count++ >= MAX_LISTED || !files->prints)
        return;
    char *shown = memory_copy(path);
    weir__address_redact(shown);
    fputs("  ", stderr);
    weir__text_escape_to(stderr, shown);
    fputc('\n', stderr);
    free(shown);
}

/* What rank 0 tells about a rank that has no complete run; NULL = nothing. */
static const char *fate_of(const rank_view *view)
{
    if (!view->run_id)
        return "has no run in its database";
    switch (view->state) {
    case WEIR_RUN_FINISHED: return NULL;
    case WEIR_RUN_STOPPED: return "was stopped";
    case WEIR_RUN_FAILED: return "failed";
    case WEIR_RUN_KILLED: return "was killed";
    case WEIR_RUN_RUNNING: return "is still running";
    case WEIR_RUN_OPEN: break;
    }
    return "has not ended, but records nothing any more";
}

/* Lists the files of the share that no rank has finished. True if there are any. `rank` begins the line; NULL =
   they are of finished ranks. */
static bool tell_unfinished(const record_settings *settings, const record_inputs *inputs, const record_share *share,
                            const char *rank)
{
    unfinished files = { 0 };
    record_inputs_each(inputs, share, take_unfinished, &files);
    if (files.count == 0)
        return false;
    fprintf(stderr, "%s: %s%s%" PRIu64 " file%s not finished%s\n", settings->program, rank ? rank : "",
            rank ? ": " : "", files.count, files.count == 1 ? " is" : "s are",
            rank ? ":" : ": the folder has changed, or the ranks see different folders:");
    files = (unfinished){ .prints = true };
    record_inputs_each(inputs, share, take_unfinished, &files);
    if (files.count > MAX_LISTED)
        fprintf(stderr, "  and %" PRIu64 " more\n", files.count - MAX_LISTED);
    return true;
}

/* Names the ranks that did not finish, and their files. Returns the exit status. */
static int tell_ranks(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                      const rank_view *views, const record_ended *ended)
{
    bool can_list = !was_interrupted && !settings->tar; /* listing may take a while; archives have other names */
    int exit_status = RECORD_DONE;
    record_share share = { .by_identity = inputs->share.by_identity,
                           .world = ranks->world,
                           .ended = *ended,
                           .ended_before = &inputs->share.ended };
    for (uint32_t rank = 0; rank < ranks->world.size; rank++) {
        const rank_view *view = &views[rank];
        const char *fate = fate_of(view);
        char whose[32];
        if (!fate)
            continue;
        exit_status = RECORD_FAILED;
        snprintf(whose, sizeof whose, "rank %" PRIu32, rank);
        if (rank > 0)
            fprintf(stderr, "%s: %s %s (%s%s%s)\n", settings->program, whose, fate, view->process,
                    *view->process ? ", " : "", view->path);
        share.world.rank = rank;
        if (can_list)
            tell_unfinished(settings, inputs, &share, whose);
    }
    share.world = (weir_world){ .size = 1 };
    if (exit_status == RECORD_DONE && can_list && tell_unfinished(settings, inputs, &share, NULL))
        exit_status = RECORD_FAILED;
    if (exit_status != RECORD_DONE && !settings->quiet)
        fprintf(stderr,
                "%s: to decode what is not finished, run the same command with --resume %s (--dry-run lists it)\n",
                settings->program, ranks->job_path);
    return exit_status;
}

static int end_job(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                   int exit_status, rank_view *views)
{
    record_ended ended = { 0 };
    struct sigaction note = { .sa_handler = note_signal };
    sigaction(SIGINT, &note, NULL);
    sigaction(SIGTERM, &note, NULL);
    if (exit_status > RECORD_SIGNAL)
        was_interrupted = exit_status - RECORD_SIGNAL;
    if (was_interrupted && !settings->quiet) /* the launcher may kill this process before the summary is complete */
        fprintf(stderr, "%s: every rank has recorded its part; weir merge %s DB... joins them\n", settings->program,
                ranks->job_path);
    look(ranks, 0, &views[0], 0);
    wait_for_ranks(settings, ranks, views);
    int job_status = record_ranks_merge(settings, ranks->job_path);
    if (summarize(settings, ranks, views, &ended) != RECORD_DONE)
        job_status = RECORD_FAILED;
    if (tell_ranks(settings, ranks, inputs, views, &ended) != RECORD_DONE)
        job_status = RECORD_FAILED;
    if (settings->quiet)
        record_tell_failures(settings, ended.num_failures, ended.num_tasks, ranks->job_path);
    if (job_status == RECORD_DONE && ended.num_failures > 0 && ended.num_failures == ended.num_tasks)
        job_status = record_tell_useless(settings, ended.num_failures);
    record_ended_free(&ended);
    if (exit_status == RECORD_DONE && was_interrupted)
        exit_status = RECORD_SIGNAL + was_interrupted;
    return exit_status == RECORD_DONE ? job_status : exit_status;
}

int record_ranks_end(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                     int exit_status, uint64_t num_files, uint64_t num_failures)
{
    if (ranks->world.rank > 0) {
        if (!settings->quiet)
            fprintf(stderr, "%s of %" PRIu32 ": %" PRIu64 " files, %" PRIu64 " failed; recorded in %s\n",
                    settings->program, ranks->world.size, num_files, num_failures, settings->db_path);
        return exit_status;
    }
    rank_view *views = memory_get(ranks->world.size, sizeof *views);
    for (uint32_t rank = 0; rank < ranks->world.size; rank++) {
        char number[16];
        snprintf(number, sizeof number, "%" PRIu32, rank);
        views[rank].path = record_rank_path(ranks->job_path, number);
    }
    exit_status = end_job(settings, ranks, inputs, exit_status, views);
    for (uint32_t rank = 0; rank < ranks->world.size; rank++)
        free(views[rank].path);
    free(views);
    return exit_status;
}
