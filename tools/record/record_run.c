#include "record_run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <weir/escape.h>
#include <weir/log.h>
#include <weir/summary.h>

#include "record_pipeline.h"
#include "record_progress.h"
#include "record_ranks.h"
#include "terminal.h"

enum { MAX_LISTED_FAILURES = 10, MAX_MESSAGE = 8192 };

const char record_signals_help[] = "Ctrl-C (or SIGTERM) stops the run, and the summary of what was done follows; a "
                                   "second one kills it. SIGUSR1 prints "
                                   "the current state of every slot, queue and task to stderr.";

int record_refuse(const record_settings *settings, const char *format, ...)
{
    char text[MAX_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: ", settings->program);
    weir_text_escape_to(stderr, text); /* it may name files */
    fputc('\n', stderr);
    return RECORD_REFUSED;
}

/* -- the run */

static void print_snapshot(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    char *text = NULL;
    size_t size;
    if (weir_pipeline_snapshot(pipeline, &snapshot) != WEIR_OK)
        return;
    FILE *file = open_memstream(&text, &size);
    if (file) {
        weir_snapshot_print(snapshot, file);
        fclose(file);
        terminal_print(text);
    }
    free(text);
    weir_snapshot_free(snapshot);
}

/* Waits for a result, for SIGUSR1 (which it handles), or until the progress line must be redrawn. */
static void wait_for_results(weir_pipeline *pipeline, int results_fd, int usr1_fd)
{
    struct signalfd_siginfo signal;
    struct pollfd fds[] = { { .fd = results_fd, .events = POLLIN }, { .fd = usr1_fd, .events = POLLIN } };
    if (poll(fds, 2, record_progress_interval_ms()) > 0 && fds[1].revents &&
        read(usr1_fd, &signal, sizeof signal) > 0)
        print_snapshot(pipeline);
}

/* Takes all results; returns the last status of weir_pipeline_next(). Your program would use the results here. */
static int drain(weir_pipeline *pipeline, int usr1_fd)
{
    int results_fd;
    weir_item item;
    int status = weir_pipeline_poll_fd(pipeline, &results_fd);
    while (status == WEIR_OK || status == WEIR_EPOCH || status == WEIR_ETIMEDOUT) {
        wait_for_results(pipeline, results_fd, usr1_fd);
        status = weir_pipeline_next(pipeline, &item, 0);
        if (status == WEIR_OK)
            weir_item_release(&item);
        record_progress_update(pipeline);
    }
    record_progress_end();
    if (status == WEIR_ESTOPPED)
        weir_log(WEIR_LOG_WARNING, "stopped; everything so far is recorded");
    return status;
}

static int tell_failure(const record_settings *settings, weir_pipeline *pipeline, int status)
{
    weir_error error = { 0 };
    char line[WEIR_ERROR_LINE];
    if (weir_pipeline_error(pipeline, &error) == WEIR_OK)
        weir_error_set(&error, status, 0, "%s", weir_status_text(status));
    weir_error_format(&error, line, sizeof line);
    record_refuse(settings, "the run failed: %s", line);
    return RECORD_FAILED;
}

/* Sets *account to that of the decode stage. */
static int run_pipeline(const record_settings *settings, const record_inputs *inputs,
                        const record_observers *observers, int usr1_fd, weir_account *account)
{
    weir_pipeline *pipeline;
    int exit_status = record_pipeline_build(settings, inputs, observers, &pipeline);
    if (exit_status != RECORD_DONE)
        return exit_status;

    record_progress_start(settings->tar ? NULL : inputs, settings->epochs);
    weir_pipeline_stop_on_signals(pipeline);
    int status = drain(pipeline, usr1_fd);
    int signal_number = weir_pipeline_stop_signal(pipeline);
    if (signal_number)
        exit_status = RECORD_SIGNAL + signal_number;
    if (status != WEIR_EOF && status != WEIR_ESTOPPED)
        exit_status = tell_failure(settings, pipeline, status);
    weir_pipeline_account(pipeline, "decode", account);
    weir_pipeline_free(pipeline);
    uint64_t num_unreadable = record_inputs_unreadable(inputs);
    if (num_unreadable > 0) {
        fprintf(stderr, "%s: %llu folder%s could not be read: the list of files is not complete\n", settings->program,
                (unsigned long long)num_unreadable, num_unreadable == 1 ? "" : "s");
        exit_status = exit_status == RECORD_DONE ? RECORD_FAILED : exit_status;
    }
    return exit_status;
}

/* -- the report */

static int report(const record_settings *settings, int64_t run_id)
{
    weir_error error = { 0 };
    if (weir_summary_print(stdout, settings->db_path, run_id, &error) != WEIR_OK ||
        weir_summary_print_failures(stdout, settings->db_path, run_id, MAX_LISTED_FAILURES, &error) != WEIR_OK) {
        record_refuse(settings, "no summary: %s", error.message);
        return RECORD_FAILED;
    }
    return RECORD_DONE;
}

/* Quotes for the shell. */
static void print_path(const char *path)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:=@%,";
    if (path[0] && path[strspn(path, harmless)] == '\0') {
        fputs(path, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *path; path++)
        fputs(*path == '\'' ? "'\\''" : (char[]){ *path, '\0' }, stderr);
    fputc('\'', stderr);
}

static void print_hint(const record_settings *settings, const char *subcommand, const char *more, const char *what)
{
    fprintf(stderr, "  %s %-8s ", settings->weir, subcommand);
    print_path(settings->db_path);
    fprintf(stderr, "%-12s # %s\n", more, what);
}

static void print_hints(const record_settings *settings, uint64_t num_failures)
{
    fflush(stdout);
    fputs("\nNext:\n", stderr);
    print_hint(settings, "slowest", "", "the slowest files, and where their time went");
    if (num_failures > 0)
        print_hint(settings, "failures", "", "failures by reason and by folder");
    print_hint(settings, "plot", " -o run.png", "the run over time");
}

/* -- the whole run */

/* Runs, closes the database in any case, and prints the report from it. */
static int record(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                  int usr1_fd)
{
    record_observers observers;
    weir_account account = { 0 };
    int exit_status = record_observers_open(settings, &observers);
    if (exit_status == RECORD_DONE)
        exit_status = run_pipeline(settings, inputs, &observers, usr1_fd, &account);
    bool was_run = exit_status != RECORD_REFUSED;

    int64_t run_id = was_run ? weir_sqlite_run_id(observers.database) : 0;
    if (record_observers_close(settings, &observers) != RECORD_DONE)
        exit_status = was_run ? RECORD_FAILED : exit_status;
    if (was_run && ranks->world.size > 1)
        return record_ranks_end(settings, ranks, inputs, exit_status, account.taken, account.failed);
    if (was_run && report(settings, run_id) != RECORD_DONE)
        exit_status = RECORD_FAILED;
    else if (was_run && !settings->quiet)
        print_hints(settings, account.failed);
    return exit_status;
}

/* -- what is left */

/* Reads which files are finished. */
static int read_ended(const record_settings *settings, record_share *share)
{
    weir_error error = { 0 };
    if (!settings->resume_path)
        return RECORD_DONE;
    if (record_ended_read_all(&share->ended, settings->resume_path, &error) != WEIR_OK)
        return record_refuse(settings, "--resume: %s", error.message);
    share->by_path = true;
    if (share->ended.num_tasks > share->ended.num_labels && share->world.rank == 0)
        fprintf(stderr,
                "%s: %llu finished files are not recorded by name (see --all-items): they are decoded again\n",
                settings->program, (unsigned long long)(share->ended.num_tasks - share->ended.num_labels));
    return RECORD_DONE;
}

static void print_file(void *self, const char *path)
{
    (void)self;
    puts(path);
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
        return fflush(stdout) == 0 ? RECORD_DONE : (record_refuse(settings, "cannot print"), RECORD_FAILED);
    }

    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, which is reported */
    /* Before any thread is started: all threads inherit the blocked SIGUSR1. */
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    int usr1_fd = signalfd(-1, &usr1, SFD_CLOEXEC | SFD_NONBLOCK);
    if (usr1_fd < 0)
        return record_refuse(settings, "cannot wait for SIGUSR1: %s", strerror(errno));
    terminal_start(!settings->quiet && ranks->world.rank == 0);
    if (settings->quiet)
        weir_log_set_level(WEIR_LOG_ERROR);
    exit_status = record(settings, ranks, inputs, usr1_fd);
    close(usr1_fd);
    return exit_status;
}

int record_run(const record_settings *given)
{
    static record_inputs inputs; /* static: the counting thread may use it until the process ends */
    record_settings settings = *given;
    record_ranks ranks;
    int exit_status = record_ranks_find(&settings, &ranks);
    if (exit_status == RECORD_DONE)
        exit_status = run(&settings, &ranks, &inputs);
    record_ranks_free(&ranks);
    return exit_status;
}
