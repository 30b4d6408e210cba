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
#include "terminal.h"

enum { MAX_LISTED_FAILURES = 10, MAX_MESSAGE = 8192 };

const char record_signals_help[] =
    "Ctrl-C (or SIGTERM) stops the run, and the summary of what was done follows; a "
    "second one kills it. SIGUSR1 prints "
    "the current state of every slot, queue and task to stderr; SIGUSR2 writes the trace "
    "(see --trace-last).";

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

/* Waits for a result, for a signal (which it handles), or until the progress line must be redrawn. */
static void wait_for_results(weir_pipeline *pipeline, int results_fd, int signal_fd, weir_trace_file *trace)
{
    struct signalfd_siginfo signal;
    struct pollfd fds[] = { { .fd = results_fd, .events = POLLIN }, { .fd = signal_fd, .events = POLLIN } };
    if (poll(fds, 2, record_progress_interval_ms()) <= 0 || !fds[1].revents ||
        read(signal_fd, &signal, sizeof signal) <= 0)
        return;
    if (signal.ssi_signo == SIGUSR1)
        print_snapshot(pipeline);
    else
        weir_trace_request(trace);
}

/* Takes all results; returns the last status of weir_pipeline_next(). Your program would use the results here. */
static int drain(weir_pipeline *pipeline, int signal_fd, weir_trace_file *trace)
{
    int results_fd;
    weir_item item;
    int status = weir_pipeline_poll_fd(pipeline, &results_fd);
    while (status == WEIR_OK || status == WEIR_EPOCH || status == WEIR_ETIMEDOUT) {
        wait_for_results(pipeline, results_fd, signal_fd, trace);
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

/* Sets *num_failures to the number of files that failed. */
static int run_pipeline(const record_settings *settings, const record_inputs *inputs,
                        const record_observers *observers, int signal_fd, uint64_t *num_failures)
{
    weir_pipeline *pipeline;
    weir_account account = { 0 };
    int exit_status = record_pipeline_build(settings, inputs, observers, &pipeline);
    if (exit_status != RECORD_DONE)
        return exit_status;

    record_progress_start(settings->tar ? NULL : inputs, settings->epochs);
    weir_pipeline_stop_on_signals(pipeline);
    int status = drain(pipeline, signal_fd, observers->trace);
    int signal_number = weir_pipeline_stop_signal(pipeline);
    if (signal_number)
        exit_status = RECORD_SIGNAL + signal_number;
    if (status != WEIR_EOF && status != WEIR_ESTOPPED)
        exit_status = tell_failure(settings, pipeline, status);
    weir_pipeline_account(pipeline, NULL, &account);
    *num_failures = account.failed;
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
static int record(const record_settings *settings, const record_inputs *inputs, int signal_fd)
{
    record_observers observers;
    uint64_t num_failures = 0;
    int exit_status = record_observers_open(settings, &observers);
    if (exit_status == RECORD_DONE)
        exit_status = run_pipeline(settings, inputs, &observers, signal_fd, &num_failures);
    bool was_run = exit_status != RECORD_REFUSED;

    int64_t run_id = was_run ? weir_sqlite_run_id(observers.database) : 0;
    if (record_observers_close(settings, &observers) != RECORD_DONE)
        exit_status = was_run ? RECORD_FAILED : exit_status;
    if (was_run && report(settings, run_id) != RECORD_DONE)
        exit_status = RECORD_FAILED;
    else if (was_run && !settings->quiet)
        print_hints(settings, num_failures);
    return exit_status;
}

int record_run(const record_settings *settings)
{
    static record_inputs inputs; /* static: the counting thread may use it until the process ends */
    int exit_status = record_pipeline_check(settings);
    if (exit_status == RECORD_DONE)
        exit_status = record_inputs_open(settings, &inputs);
    if (exit_status != RECORD_DONE)
        return exit_status;

    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, which is reported */
    /* Before any thread is started: all threads inherit the blocked signals. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    if (settings->trace_path)
        sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd < 0)
        return record_refuse(settings, "cannot wait for SIGUSR1: %s", strerror(errno));
    terminal_start(!settings->quiet);
    if (settings->quiet)
        weir_log_set_level(WEIR_LOG_ERROR);
    exit_status = record(settings, &inputs, signal_fd);
    close(signal_fd);
    return exit_status;
}
