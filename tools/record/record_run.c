#include "tools/record/record_run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <weir/headspace.h>
#include <weir/log.h>
#include <weir/query.h>
#include <weir/span.h>
#include <weir/tuner.h>
#include <weir/verdict.h>
#include <weir/video.h>

#include "common/redact.h"
#include "tools/cli/memory.h"
#include "tools/cli/prose.h"
#include "tools/record/record_explain.h"
#include "tools/record/record_exports.h"
#include "tools/record/record_pipeline.h"
#include "tools/record/record_progress.h"
#include "tools/record/record_ranks.h"
#include "tools/record/terminal.h"

/* What the tuner has decided so far. */
typedef struct record_tuned {
    uint32_t slots, threads; /* of decode, and of the pool; 0 = not changed */
    weir_tuner_action last;  /* 0 = none yet */
} record_tuned;

/* What the database does not tell. */
typedef struct record_outcome {
    uint64_t num_files, num_failures;
    bool is_useless; /* nothing was delivered, because everything failed */
    weir_headspace_result headspace;
    record_explain *explain; /* NULL = not wanted */
    record_rounds rounds;    /* of the experiment; not used with --epochs */
    record_tuned tuned;
} record_outcome;

/* -- the run */

/* One line for each stage, queue and task. */
static void write_snapshot(const weir_snapshot *snapshot, FILE *file)
{
    fprintf(file, "pipeline: %s\n", snapshot->state);
    for (size_t i = 0; i < snapshot->num_stages; i++) {
        const weir_stage_snapshot *stage = &snapshot->stages[i];
        fprintf(file,
                "%s: %s%u of %u slots running, %u pending, waiting: %u for input, %u for a thread, %u for their "
                "turn, %u for room",
                stage->name, stage->ended ? "ended; " : "", stage->running, stage->slots, stage->pending,
                stage->waiting_in, stage->waiting_thread, stage->waiting_turn, stage->waiting_out);
        fprintf(file, "; %llu tasks, %llu failed\n", (unsigned long long)stage->num_tasks,
                (unsigned long long)stage->num_failures);
    }
    for (size_t i = 0; i < snapshot->num_queues; i++) {
        const weir_queue_snapshot *queue = &snapshot->queues[i];
        fprintf(file, "%s: %u of %u items, %llu bytes, %u waiting to put; %llu in, %llu out\n", queue->name,
                queue->depth, queue->capacity, (unsigned long long)queue->bytes, queue->waiting_to_put,
                (unsigned long long)queue->num_put, (unsigned long long)queue->num_items);
    }
    for (size_t i = 0; i < snapshot->num_tasks; i++) {
        const weir_task_snapshot *task = &snapshot->tasks[i];
        fprintf(file, "task: %s %s %.3f s %s\n", task->stage, task->pending ? "pending" : "running",
                (double)task->age_ns / (double)WEIR_SECOND, task->label);
    }
}

static void print_snapshot(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    char *text = NULL;
    size_t size;
    if (weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
        return;
    FILE *file = memory_file_open(&text, &size);
    write_snapshot(snapshot, file);
    memory_file_close(file);
    terminal_print(text);
    free(text);
    weir_snapshot_free(snapshot);
}

/* Waits for a result, for a signal (which it handles), or until the progress line must be redrawn; not at all if
   timeout_ms is 0. */
static void wait_for_results(weir_pipeline *pipeline, int results_fd, int signal_fd,
                             const record_observers *observers, int timeout_ms)
{
    struct signalfd_siginfo signal;
    struct pollfd fds[] = { { .fd = results_fd, .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };
    if (poll(fds, 2, timeout_ms) <= 0 || !fds[1].revents || read(signal_fd, &signal, sizeof signal) <= 0)
        return;
    if (signal.ssi_signo == SIGUSR1)
        print_snapshot(pipeline);
    else
        record_observers_request(observers);
}

/* A training step. */
static void use_result(weir_pipeline *pipeline, int64_t step_ns)
{
    static const int64_t slice_ns = 100 * WEIR_MILLISECOND; /* Ctrl-C ends a long step */
    int64_t end_ns = weir_clock_ns() + step_ns;
    for (int64_t rest_ns = step_ns; rest_ns > 0 && !weir_pipeline_stop_signal(pipeline);
         rest_ns = end_ns - weir_clock_ns())
        nanosleep(&(struct timespec){ .tv_nsec = rest_ns < slice_ns ? rest_ns : slice_ns }, NULL);
}

static bool is_complete(const weir_headspace *headspace)
{
    weir_headspace_result result = { 0 };
    weir_headspace_report(headspace, &result);
    return result.is_complete;
}

static uint64_t num_delivered(weir_pipeline *pipeline)
{
    weir_account account = { 0 };
    weir_pipeline_account(pipeline, NULL, &account);
    return account.passed_on;
}

/* Counts the frames, since the laps have files only; not those of results that the headspace has kept. */
static int next_result(weir_headspace *headspace, weir_pipeline *pipeline, weir_item *item, weir_counter *frames)
{
    uint64_t before = headspace ? num_delivered(pipeline) : 0;
    int status =
        headspace ? weir_headspace_next(headspace, pipeline, item, 0) : weir_pipeline_next(pipeline, item, 0);
    if (status == WEIR_OK && item->type && strcmp(item->type, WEIR_TYPE_FRAMES) == 0 &&
        (!headspace || num_delivered(pipeline) > before))
        weir_counter_add(frames, 0, ((const weir_frames *)item->data)->num_frames);
    return status;
}

/* Takes all results; returns the last status of weir_pipeline_next(). Your program would use the results here.
   Without --epochs the headspace is measured in as many as it takes, unless one of them has no result. With an
   experiment the run ends with the epoch in which that is done. */
static int drain(weir_pipeline *pipeline, int signal_fd, const record_observers *observers, int64_t step_ns,
                 weir_headspace *headspace, record_outcome *outcome)
{
    int results_fd;
    weir_item item;
    weir_counter *frames = weir_counter_get_total(WEIR_FRAMES_CATEGORY, WEIR_FRAMES_NAME, NULL, 0);
    int status = weir_pipeline_poll_fd(pipeline, &results_fd);
    bool has_result = false, is_over = false;
    while (status == WEIR_OK || status == WEIR_EPOCH || status == WEIR_ETIMEDOUT) {
        /* The consumer asks first: the pipeline counts a wait only after its consumer has asked and found nothing. */
        status = next_result(headspace, pipeline, &item, frames);
        if (status == WEIR_OK || status == WEIR_ETIMEDOUT)
            wait_for_results(pipeline, results_fd, signal_fd, observers,
                             status == WEIR_OK ? 0 : record_progress_interval_ms());
        if (status == WEIR_OK) {
            has_result = true;
            atomic_store(&outcome->rounds.has_result, true);
            use_result(pipeline, step_ns);
            weir_item_release(&item);
        }
        bool is_explained =
            outcome->explain && status == WEIR_EPOCH && (!has_result || record_explain_is_done(outcome->explain));
        bool is_measured = headspace && (is_complete(headspace) || (status == WEIR_EPOCH && !has_result));
        if (!is_over && (is_explained || is_measured)) {
            is_over = true;
            weir_pipeline_stop(pipeline);
        }
        has_result &= status != WEIR_EPOCH;
        record_progress_update(pipeline);
    }
    record_progress_end();
    if (status == WEIR_ESTOPPED && !is_over)
        weir_log(WEIR_LOG_WARNING, "stopped; everything so far is recorded");
    return status;
}

static int tell_failure(const record_settings *settings, weir_pipeline *pipeline, int status)
{
    weir_error error = { 0 };
    char line[WEIR_ERROR_LINE];
    if (weir_pipeline_error(pipeline, NULL, &error) == WEIR_OK)
        weir_error_set(&error, status, 0, "%s", weir_status_text(status));
    weir_error_format(&error, line, sizeof line);
    record_refuse(settings, "the run failed: %s", line);
    return RECORD_FAILED;
}

static void log_decision(void *self, const weir_tuner_decision *decision)
{
    record_tuned *tuned = self;
    weir_log(WEIR_LOG_INFO, "tuner: %s", decision->text);
    tuned->last = decision->action;
    if (!decision->before)
        return;
    if (decision->stage && strstr(decision->stage, ":decode") && decision->slots)
        tuned->slots = decision->slots;
    if (decision->threads)
        tuned->threads = decision->threads;
}

/* NULL = not wanted, or not possible, which was logged. */
static weir_tuner *start_tuner(const record_settings *settings, weir_pipeline *pipeline, record_tuned *tuned)
{
    weir_tuner *tuner = NULL;
    weir_error error = { 0 };
    weir_tuner_options tuning = { .cpus = settings->cpu_share * weir_cpu_budget(),
                                  .memory_bytes = settings->memory_bytes,
                                  .decided = log_decision,
                                  .decided_self = tuned };
    if (settings->tune && weir_tuner_start(pipeline, &tuning, &tuner, &error) != WEIR_OK)
        weir_log(WEIR_LOG_ERROR, "--tune: %s", error.message);
    return tuner;
}

/* Drains the pipeline, with the measurement of the headspace if it is wanted. Returns as drain(). */
static int use_pipeline(const record_settings *settings, weir_pipeline *pipeline, int signal_fd,
                        const record_observers *observers, record_outcome *outcome)
{
    weir_headspace *measuring = NULL;
    if (settings->headspace_step_ns && weir_headspace_new(NULL, &measuring, NULL) != WEIR_OK)
        weir_log(WEIR_LOG_ERROR, "out of memory: --headspace is not measured");
    outcome->explain = settings->explain ? record_explain_start(pipeline, &outcome->rounds) : NULL;
    weir_tuner *tuner = start_tuner(settings, pipeline, &outcome->tuned);
    int status = drain(pipeline, signal_fd, observers, settings->headspace_step_ns, measuring, outcome);
    weir_tuner_free(tuner);
    record_explain_join(outcome->explain);
    weir_headspace_report(measuring, &outcome->headspace);
    weir_headspace_free(measuring);
    return status;
}

static atomic_bool is_built;           /* the pipeline takes signals */
static atomic_int early_signal;        /* came before that, for it to take; 0 = none */
static _Atomic int64_t repeats_end_ns; /* until then a signal may repeat one that the pipeline has taken */

static void await_repeats(void)
{
    atomic_store(&repeats_end_ns, weir_clock_ns() + WEIR_SIGNAL_REPEATS_NS);
}

/* The action behind that of the pipeline: while it is built, and while the summary is printed. */
static void end_unless_repeated(int signal_number)
{
    int none = 0;
    if (!atomic_load(&is_built) && atomic_compare_exchange_strong(&early_signal, &none, signal_number))
        await_repeats();
    if (weir_clock_ns() < atomic_load(&repeats_end_ns))
        return;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* For commands that run in another folder: where relative paths begin, and exports such as the trace. */
static void report_places(const record_settings *settings, weir_pipeline *pipeline)
{
    char *folder = getcwd(NULL, 0);
    if (folder)
        weir_pipeline_event(pipeline, "working_directory", "pipeline", folder);
    record_exports_report(settings, folder, pipeline);
    free(folder);
}

static int run_pipeline(const record_settings *settings, const record_inputs *inputs,
                        const record_observers *observers, int signal_fd, record_outcome *outcome)
{
    weir_pipeline *pipeline;
    struct sigaction action = { .sa_handler = end_unless_repeated, .sa_flags = SA_RESTART };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    bool has_rounds = settings->explain && !settings->epochs;
    int exit_status =
        record_pipeline_build(settings, inputs, observers, has_rounds ? &outcome->rounds : NULL, &pipeline);
    if (exit_status != RECORD_DONE)
        return exit_status;

    uint32_t epochs = record_pipeline_epochs(settings);
    record_progress_start(settings->tar || epochs == WEIR_ENDLESS ? NULL : inputs, epochs);
    report_places(settings, pipeline);
    weir_pipeline_stop_on_signals(pipeline);
    atomic_store(&is_built, true);
    if (atomic_load(&early_signal))
        raise(atomic_load(&early_signal));
    int status = use_pipeline(settings, pipeline, signal_fd, observers, outcome);
    int signal_number = weir_pipeline_stop_signal(pipeline);
    if (signal_number)
        exit_status = RECORD_SIGNAL + signal_number;
    if (status != WEIR_EOF && status != WEIR_ESTOPPED)
        exit_status = tell_failure(settings, pipeline, status);
    weir_account account = { 0 };
    weir_pipeline_account(pipeline, "decode", &account);
    outcome->num_files = account.taken - account.failed;
    weir_pipeline_account(pipeline, NULL, &account);
    outcome->num_files += account.failed; /* with archives that could not be read */
    outcome->num_failures = account.failed;
    outcome->is_useless = account.failed > 0 && account.passed_on == 0 && account.skipped == 0;
    await_repeats(); /* also of a signal that comes between stop_signal() and the end of free() */
    weir_pipeline_free(pipeline);
    await_repeats();
    return record_inputs_tell_unreadable(settings, inputs, exit_status);
}

/* -- the report */

static int report(const record_settings *settings, int64_t run_id)
{
    weir_error error = { 0 };
    weir_recording *recording;
    int status = weir_recording_open(settings->db_path, &recording, &error);
    if (status == WEIR_OK)
        status = weir_recording_hold(recording, &error);
    if (status == WEIR_OK)
        status = record_print_summary(settings, recording, &(weir_filter){ .run_id = run_id }, &error);
    weir_recording_close(recording);
    return record_end_summary(settings, status, &error);
}

static int report_headspace(const record_settings *settings, const weir_headspace_result *headspace)
{
    const char *text = headspace->text;
    if (headspace->is_complete) {
        printf("%sHeadspace: %s\n", settings->quiet ? "" : "\n", text);
        return RECORD_DONE;
    }
    record_refuse(settings, "--headspace: the run was too short: %s%s", text,
                  settings->epochs ? " (without --epochs, the files are repeated as often as needed)" : "");
    return RECORD_FAILED;
}

static int report_explained(const record_settings *settings, const record_explain *explain)
{
    weir_error error = { 0 };
    const char *reason;
    const weir_verdict *verdict = record_explain_verdict(explain, &reason);
    prose text;
    if (!verdict && record_explain_had_too_little(explain)) {
        printf("%sLimit: not measured: %s. weir explain %s says what the recording shows\n",
               settings->quiet ? "" : "\n", reason, settings->db_path);
        return RECORD_DONE;
    }
    if (!verdict) {
        record_refuse(settings, "--explain: %s", reason);
        return RECORD_FAILED;
    }
    prose_open(&text);
    if (!settings->quiet)
        fputc('\n', text.file);
    weir_verdict_write(verdict, settings->verbose ? WEIR_VERDICT_ALL : 0, text.width, text.file);
    return record_end_summary(settings, prose_end(&text, WEIR_OK, &error), &error);
}

static void report_tuned(const record_settings *settings, const record_tuned *tuned)
{
    uint32_t threads = settings->threads ? settings->threads : weir_cpu_budget();
    printf("%sTuner: ", settings->quiet ? "" : "\n");
    if (!tuned->slots && !tuned->threads)
        puts("nothing was changed");
    else
        printf("the settings at the end were --concurrency %u --threads %u%s\n",
               tuned->slots ? tuned->slots : settings->concurrency, tuned->threads ? tuned->threads : threads,
               tuned->last == WEIR_TUNER_RESTED ? "" : "; the tuner was not done");
}

/* -- the whole run */

/* What the tuner, the headspace and the experiments found, after the summary. */
static int report_experiments(const record_settings *settings, const record_outcome *outcome)
{
    int status = RECORD_DONE;
    if (settings->tune)
        report_tuned(settings, &outcome->tuned);
    if (settings->headspace_step_ns && report_headspace(settings, &outcome->headspace) != RECORD_DONE)
        status = RECORD_FAILED;
    if (settings->explain && report_explained(settings, outcome->explain) != RECORD_DONE)
        status = RECORD_FAILED;
    return status;
}

/* Reports a run of one process. exit_status is the exit status so far. Returns that of the program. */
static int report_run(const record_settings *settings, const record_outcome *outcome, int64_t run_id,
                      bool has_database, int exit_status)
{
    if (settings->quiet)
        record_tell_failures(settings, outcome->num_failures, outcome->num_files, settings->db_path);
    else if (!has_database || report(settings, run_id) != RECORD_DONE)
        exit_status = RECORD_FAILED;
    if (outcome->is_useless)
        return exit_status == RECORD_DONE ? record_tell_useless(settings, outcome->num_failures) : exit_status;
    int status = report_experiments(settings, outcome);
    return exit_status == RECORD_DONE ? status : exit_status;
}

/* A job that goes on in its own database has what earlier ranks recorded, too. */
static bool goes_on_in_place(const record_settings *settings)
{
    return settings->resume_path && strcmp(settings->resume_path, settings->db_path) == 0;
}

/* Runs, closes the database in any case, and prints the report from it. */
static int record(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                  int signal_fd)
{
    record_observers observers;
    record_outcome outcome = { 0 };
    int exit_status = record_observers_open(settings, &observers);
    if (exit_status == RECORD_DONE)
        exit_status = run_pipeline(settings, inputs, &observers, signal_fd, &outcome);
    bool was_run = exit_status != RECORD_REFUSED;

    int64_t run_id = was_run ? weir_sqlite_run_id(observers.database) : 0;
    if (record_observers_close(settings, &observers) != RECORD_DONE)
        exit_status = was_run ? RECORD_FAILED : exit_status;
    if (was_run && ranks->world.size > 1)
        return record_ranks_end(settings, ranks, inputs, exit_status, outcome.num_files, outcome.num_failures);
    if (was_run && goes_on_in_place(settings) && record_ranks_merge(settings, settings->db_path) != RECORD_DONE)
        exit_status = RECORD_FAILED;
    if (was_run)
        exit_status = report_run(settings, &outcome, run_id, !observers.has_lost_database, exit_status);
    record_explain_free(outcome.explain);
    return exit_status;
}

/* -- what is left */

/* Reads which files are finished. */
static int read_ended(const record_settings *settings, record_share *share)
{
    weir_error error = { 0 };
    if (!settings->resume_path)
        return RECORD_DONE;
    share->ended.leaves_out_failed = settings->retry_failed;
    if (record_ended_read_all(&share->ended, settings->resume_path, &error) != WEIR_OK)
        return record_refuse(settings, "--resume: %s", error.message);
    share->by_identity = true;
    if (share->ended.num_unnamed > 0 && share->world.rank == 0) /* some may have been decoded again since */
        fprintf(stderr,
                "%s: up to %llu finished files are not recorded by name (see --all-items): they are decoded again\n",
                settings->program, (unsigned long long)share->ended.num_unnamed);
    if (!settings->quiet && share->world.rank == 0)
        fprintf(stderr, "%s: --resume: leaves out the files that are recorded as %s: %zu\n", settings->program,
                settings->retry_failed ? "decoded" : "finished", record_ended_count(&share->ended));
    return RECORD_DONE;
}

static void print_file(void *self, const char *path, uint64_t occurrence)
{
    (void)self;
    (void)occurrence;
    char *shown = memory_copy(path);
    weir__address_redact(shown);
    puts(shown);
    free(shown);
}

static int open_inputs(const record_settings *settings, const record_ranks *ranks, record_inputs *inputs)
{
    inputs->share.world = ranks->world;
    int exit_status = record_pipeline_check(settings);
    if (exit_status == RECORD_DONE)
        exit_status = read_ended(settings, &inputs->share);
    return exit_status == RECORD_DONE ? record_inputs_open(settings, inputs) : exit_status;
}

static int run(const record_settings *settings, const record_ranks *ranks, record_inputs *inputs)
{
    int exit_status = open_inputs(settings, ranks, inputs);
    if (exit_status != RECORD_DONE)
        return exit_status;
    if (settings->dry_run) {
        record_inputs_each(inputs, &inputs->share, print_file, NULL);
        return RECORD_DONE;
    }

    weir_error error = { 0 };
    const char *refused = record_outputs_check(settings, inputs, &error);
    if (refused)
        return record_refuse(settings, "--%s: %s", refused, error.message);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, which is reported */
    signal(SIGPIPE, SIG_IGN); /* a run does not end because nobody reads its log */
    /* Before any thread is started: all threads inherit the blocked signals. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    if (record_exports_take_requests(settings))
        sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return record_refuse(settings, "cannot wait for SIGUSR1: %s", strerror(errno));
    terminal_start(!settings->quiet && ranks->world.rank == 0);
    if (settings->quiet)
        weir_log_set_level(WEIR_LOG_ERROR);
    exit_status = record(settings, ranks, inputs, signal_fd);
    close(signal_fd);
    return exit_status;
}

int record_run(const record_settings *given)
{
    static record_inputs inputs; /* static: the counting thread may use it until the process ends */
    record_settings settings = *given;
    record_ranks ranks;
    if (!settings.concurrency)
        settings.concurrency = settings.threads ? settings.threads : weir_cpu_budget();
    int exit_status = record_ranks_find(&settings, &ranks);
    if (exit_status == RECORD_DONE)
        exit_status = run(&settings, &ranks, &inputs);
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && exit_status == RECORD_DONE) {
        record_refuse(&settings, "cannot print: %s", strerror(errno ? errno : EIO));
        exit_status = RECORD_FAILED;
    }
    record_ranks_free(&ranks);
    return exit_status;
}
