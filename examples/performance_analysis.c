/*
 * performance_analysis: decodes every video below a folder, records how the data flowed in a SQLite database, and prints
 * a summary of it.
 *
 * From top to bottom: options, progress line, the run, the report. stdout holds the summary and nothing else; log, progress
 * and errors go to stderr. This file is meant to be copied from; what is worth having in other programs, too, stands in
 * common/.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <weir/weir.h>

#include "common/options.h"
#include "common/terminal.h"

#define PROGRAM "performance_analysis"

enum {
    EXIT_OK = 0,
    EXIT_RUN = 1,     /* the run failed, or the database does not hold all of it */
    EXIT_REFUSED = 2, /* nothing was done: options, folder, database */
    EXIT_SIGNAL = 128 /* + the signal that stopped the run */
};

enum { MAX_LISTED_FAILURES = 10 };

/* -- options -------------------------------------------------------------------------------------------------------- */

struct settings {
    const char *dataset_dir;
    const char *db_path;
    int64_t log_interval_ns;
    uint32_t concurrency;
    uint32_t threads;
    const char *glob;
    bool sorted;
    uint32_t width;
    uint32_t height;
    weir_resize resize;
    uint32_t piece_frames;
    uint32_t queue_items;
    weir_max_failures max_failures;
    const char *openmetrics_path;
    const char *tensorboard_dir;
    bool all_items;
    bool quiet;
    bool verbose;
    bool help;
    bool version;
};

static const struct settings default_settings = {
    .db_path = "pipeline_stats.db",
    .log_interval_ns = 60 * WEIR_SECOND,
    .concurrency = 10,
    .glob = "*.mp4",
    .width = 128,
    .height = 128,
    .piece_frames = 512,
};

/* "7" is a count, "5%" a rate. */
static bool parse_failures(const char *text, void *value)
{
    char digits[16];
    uint64_t number;
    size_t length = strlen(text);
    bool percent = length > 0 && text[length - 1] == '%';
    if (length >= sizeof digits)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)(percent ? length - 1 : length), text);
    if (!option_parse_number(digits, percent ? 100 : INT32_MAX, &number))
        return false;

    weir_max_failures count = { .kind = WEIR_FAILURES_COUNT, .count = (int64_t)number };
    weir_max_failures rate = { .kind = WEIR_FAILURES_RATE, .num = (uint32_t)number, .den = 100 };
    *(weir_max_failures *)value = percent ? rate : count;
    return true;
}

static bool parse_resize(const char *text, void *value)
{
    static const char *const names[] = {
        [WEIR_RESIZE_PAD] = "pad",
        [WEIR_RESIZE_STRETCH] = "stretch",
        [WEIR_RESIZE_CROP] = "crop",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *(weir_resize *)value = (weir_resize)i;
            return true;
        }
    }
    return false;
}

static const option_kind failures_kind = { parse_failures, "a number of files (7) or a share of them (5%)" };
static const option_kind resize_kind = { parse_resize, "pad, stretch or crop" };

#define AT(field) offsetof(struct settings, field)

static const option_row option_rows[] = {
    { "dataset-dir", "DIR", &option_text, AT(dataset_dir),
      "folder with the videos, or with folders of them (required)" },
    { "db-path", "FILE", &option_text, AT(db_path),
      "database to record in, made if missing (default pipeline_stats.db)" },
    { "log-interval", "SECONDS", &option_seconds, AT(log_interval_ns),
      "length of a lap of the statistics (default 60)" },
    { "concurrency", "N", &option_count, AT(concurrency), "files in work at the same time (default 10)" },
    { "threads", "N", &option_count, AT(threads), "threads that do it (default: the CPUs this process may use)" },
    { "glob", "PATTERN", &option_text, AT(glob), "names of the files to take (default *.mp4)" },
    { "sorted", NULL, &option_flag, AT(sorted), "take the files in the order of their names" },
    { "width", "PIXELS", &option_count, AT(width), "of the decoded frames (default 128)" },
    { "height", "PIXELS", &option_count, AT(height), "of the decoded frames (default 128)" },
    { "resize", "HOW", &resize_kind, AT(resize), "pad (default), stretch or crop, where the aspect differs" },
    { "piece-frames", "N", &option_count, AT(piece_frames),
      "hand longer videos on in pieces of so many frames, each an item of the queues behind (default 512)" },
    { "queue-items", "N", &option_count, AT(queue_items), "capacity of the queue behind decode (default 2)" },
    { "max-failures", "N|P%", &failures_kind, AT(max_failures),
      "give up beyond so many failed files (default: never)" },
    { "openmetrics", "FILE", &option_text, AT(openmetrics_path),
      "write the figures to FILE after each lap, too, for Prometheus (FILE.prom for node_exporter's textfile "
      "folder)" },
    { "tensorboard", "DIR", &option_text, AT(tensorboard_dir),
      "write the figures of each lap to an event file in DIR, too, for TensorBoard" },
    { "all-items", NULL, &option_flag, AT(all_items),
      "record what each file cost (otherwise the ten slowest of each lap and ten others)" },
    { "quiet", NULL, &option_flag, AT(quiet), "no progress line, no log but for errors" },
    { "verbose", NULL, &option_flag, AT(verbose), "log the figures of each lap" },
    { "help", NULL, &option_flag, AT(help), "print this and exit" },
    { "version", NULL, &option_flag, AT(version), "print the version and exit" },
};

enum { NUM_OPTIONS = sizeof option_rows / sizeof option_rows[0] };

static void print_help(void)
{
    printf("Usage: " PROGRAM " --dataset-dir DIR [options]\n\n"
           "Decodes every video below DIR, records the pipeline's figures and prints a summary.\n\n");
    options_print(option_rows, NUM_OPTIONS);
    printf(
        "\nCtrl-C (or SIGTERM) stops the run, and the summary of what was done follows; a second one kills it.\n"
        "SIGUSR1 prints what every slot, queue and task is at, to stderr.\n"
        "More threads than CPUs pay where files come slowly, from a disk or over a network.\n\n"
        "Exit status: 0 done, whether or not single files failed; 1 the run failed or could not be recorded whole;\n"
        "2 wrong option, folder or database, and nothing was done; 130 stopped by Ctrl-C, 143 by SIGTERM.\n");
}

static int refuse(const char *format, ...) WEIR_PRINTF(1, 2);

/* One line that names what is wrong. */
static int refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(PROGRAM ": ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_REFUSED;
}

static int parse_command_line(struct settings *settings, int argc, char **argv)
{
    *settings = default_settings;
    int num_left = options_parse(PROGRAM, option_rows, NUM_OPTIONS, settings, argc, argv);
    if (num_left < 0)
        return EXIT_REFUSED;
    if (settings->help || settings->version)
        return EXIT_OK;
    if (num_left > 0)
        return refuse("%s: not an option; the folder goes behind --dataset-dir", argv[argc - num_left]);
    if (!settings->dataset_dir)
        return refuse("--dataset-dir DIR is missing (see --help)");
    return EXIT_OK;
}

/* -- progress ------------------------------------------------------------------------------------------------------- */

static const int64_t redraw_interval_ns = 200 * WEIR_MILLISECOND;

struct progress {
    int64_t start_ns;
    int64_t drawn_ns;
    weir_directory_config folder;
    atomic_uint_fast64_t total; /* files there are; 0 = not known yet */
    bool total_told;
};

/* Runs beside the pipeline: a large folder takes a while to count, and its first files need not wait for that. */
static void *count_files(void *argument)
{
    struct progress *progress = argument;
    uint64_t total = 0;
    weir_directory_count(&progress->folder, UINT64_MAX, &total, NULL);
    atomic_store(&progress->total, total);
    return NULL;
}

/* *progress must live as long as the process: nobody waits for the counting to end. */
static void start_progress(struct progress *progress, const weir_directory_config *folder)
{
    progress->start_ns = weir_clock_ns();
    progress->folder = *folder;
    pthread_t counter;
    if (pthread_create(&counter, NULL, count_files, progress) == 0)
        pthread_detach(counter);
}

/* "2:47:55" */
static void format_duration(char *to, size_t capacity, double duration_s)
{
    uint64_t whole = (uint64_t)duration_s;
    snprintf(to, capacity, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, whole / 3600, whole / 60 % 60, whole % 60);
}

static void draw_progress(struct progress *progress, weir_pipeline *pipeline, int64_t now_ns)
{
    weir_account account;
    if (weir_pipeline_account(pipeline, "decode", &account) != WEIR_OK)
        return;
    /* Files, not pieces of them. A piece that waits for room is in flight, as is its file. */
    uint64_t done = account.taken > account.in_flight ? account.taken - account.in_flight : 0;
    uint64_t total = atomic_load(&progress->total);
    double per_second = (double)done / ((double)(now_ns - progress->start_ns) / (double)WEIR_SECOND);

    char of_total[64] = "", eta[64] = "", line[256];
    if (total >= done && total > 0)
        snprintf(of_total, sizeof of_total, " of %" PRIu64 " (%.1f%%)", total, 100 * (double)done / (double)total);
    if (total >= done && done > 0) {
        char duration[32];
        format_duration(duration, sizeof duration, (double)(total - done) / per_second);
        snprintf(eta, sizeof eta, "  ETA %s", duration);
    }
    snprintf(line, sizeof line, "%" PRIu64 "%s files  %.1f/s%s  %" PRIu64 " failed", done, of_total, per_second, eta,
             account.failed);
    terminal_show(line);
}

/* So that `weir watch` can tell how long the rest will take. */
static void tell_total(struct progress *progress, weir_pipeline *pipeline)
{
    uint64_t total = atomic_load(&progress->total);
    if (progress->total_told || total == 0)
        return;
    char detail[32];
    snprintf(detail, sizeof detail, "%" PRIu64, total);
    weir_pipeline_event(pipeline, "expected_items", "pipeline", detail);
    progress->total_told = true;
}

static void update_progress(struct progress *progress, weir_pipeline *pipeline)
{
    tell_total(progress, pipeline);
    int64_t now_ns = weir_clock_ns();
    if (!terminal_has_status() || now_ns - progress->drawn_ns < redraw_interval_ns)
        return;
    progress->drawn_ns = now_ns;
    draw_progress(progress, pipeline, now_ns);
}

/* -- the run -------------------------------------------------------------------------------------------------------- */

/* Who is told of the laps, and of single files. */
struct listeners {
    weir_sqlite_writer *database;
    weir_openmetrics_file *openmetrics;
    weir_tensorboard_log *tensorboard;
    weir_observer observers[4];
    size_t num_observers;
    weir_task_hook items; /* the database's */
};

static int check_folder(const weir_directory_config *folder)
{
    weir_error error = { 0 };
    uint64_t found;
    if (weir_directory_count(folder, 1, &found, &error) != WEIR_OK)
        return refuse("--dataset-dir: %s", error.message);
    if (found == 0)
        return refuse("--dataset-dir: %s: no file in it, or in its folders, is named %s", folder->root, folder->glob);
    return EXIT_OK;
}

static int build(const struct settings *settings, const weir_directory_config *folder,
                 const struct listeners *listeners, weir_pipeline **pipeline)
{
    weir_video_config video = {
        .width = settings->width,
        .height = settings->height,
        .resize = settings->resize,
        .piece_frames = settings->piece_frames,
    };
    weir_stage_options decode = {
        .name = "decode",
        .concurrency = settings->concurrency,
        .queue_items = settings->queue_items,
        .task_hooks = &listeners->items,
        .num_task_hooks = 1,
    };
    weir_pipeline_options options = {
        .threads = settings->threads,
        .stats_interval_ns = settings->log_interval_ns,
        .observers = listeners->observers,
        .num_observers = listeners->num_observers,
        .max_failures = settings->max_failures,
    };

    /* Listing waits for the disk: with a thread of its own it need not wait for the decoders, too. */
    weir_stage_options source = { .threads = 1 };

    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_directory_source, folder, &source);
    weir_builder_pipe(builder, &weir_video_decode, &video, &decode);
    weir_builder_sink(builder, NULL);

    weir_error error = { 0 };
    if (weir_builder_build(builder, &options, pipeline, &error) != WEIR_OK)
        return refuse("%s%s%s", error.stage, error.stage[0] ? ": " : "", error.message);
    return EXIT_OK;
}

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

/* Waits up to timeout_ms for the pipeline, and answers SIGUSR1. */
static void wait_for_results(weir_pipeline *pipeline, int results_fd, int usr1_fd, int timeout_ms)
{
    struct signalfd_siginfo signal;
    struct pollfd fds[] = { { .fd = results_fd, .events = POLLIN }, { .fd = usr1_fd, .events = POLLIN } };
    if (poll(fds, 2, timeout_ms) > 0 && fds[1].revents && read(usr1_fd, &signal, sizeof signal) > 0)
        print_snapshot(pipeline);
}

/* Takes results until there are no more; returns what weir_pipeline_next() ended with. A program of yours would use them here. */
static int drain(weir_pipeline *pipeline, struct progress *progress, int usr1_fd)
{
    int timeout_ms = terminal_has_status() ? (int)(redraw_interval_ns / WEIR_MILLISECOND) : -1;
    int results_fd;
    weir_item item;
    int status = weir_pipeline_poll_fd(pipeline, &results_fd);
    while (status == WEIR_OK || status == WEIR_ETIMEDOUT) {
        wait_for_results(pipeline, results_fd, usr1_fd, timeout_ms);
        status = weir_pipeline_next(pipeline, &item, 0);
        if (status == WEIR_OK)
            weir_item_release(&item);
        update_progress(progress, pipeline);
    }
    terminal_show("");
    if (status == WEIR_ESTOPPED)
        weir_log(WEIR_LOG_WARNING, "stopped; what was done until now is recorded");
    return status;
}

static int run_pipeline(const struct settings *settings, const weir_directory_config *folder,
                        const struct listeners *listeners, int usr1_fd)
{
    static struct progress progress;
    weir_pipeline *pipeline;
    int exit_status = build(settings, folder, listeners, &pipeline);
    if (exit_status != EXIT_OK)
        return exit_status;

    start_progress(&progress, folder);
    weir_pipeline_stop_on_signals(pipeline);
    int status = drain(pipeline, &progress, usr1_fd);
    int signal_number = weir_pipeline_stop_signal(pipeline);
    if (signal_number)
        exit_status = EXIT_SIGNAL + signal_number;
    if (status != WEIR_EOF && status != WEIR_ESTOPPED) {
        weir_error error = { 0 };
        char line[WEIR_ERROR_LINE];
        if (weir_pipeline_error(pipeline, &error) == WEIR_OK)
            weir_error_set(&error, status, 0, "%s", weir_status_text(status));
        weir_error_format(&error, line, sizeof line);
        fprintf(stderr, PROGRAM ": the run failed: %s\n", line);
        exit_status = EXIT_RUN;
    }
    weir_pipeline_free(pipeline);
    return exit_status;
}

/* -- the report ----------------------------------------------------------------------------------------------------- */

static int report(const char *db_path, int64_t run_id)
{
    weir_error error = { 0 };
    if (weir_summary_print(stdout, db_path, run_id, &error) != WEIR_OK ||
        weir_summary_print_failures(stdout, db_path, run_id, MAX_LISTED_FAILURES, &error) != WEIR_OK) {
        fprintf(stderr, PROGRAM ": no summary: %s\n", error.message);
        return EXIT_RUN;
    }
    return EXIT_OK;
}

/* Where nothing is made that would have to be unmade comes first. */
static int open_listeners(struct listeners *listeners, const struct settings *settings)
{
    weir_error error = { 0 };
    if (settings->openmetrics_path &&
        weir_openmetrics_open(settings->openmetrics_path, NULL, &listeners->openmetrics, &error) != WEIR_OK)
        return refuse("--openmetrics: %s", error.message);
    if (settings->tensorboard_dir &&
        weir_tensorboard_open(settings->tensorboard_dir, NULL, &listeners->tensorboard, &error) != WEIR_OK)
        return refuse("--tensorboard: %s", error.message);
    if (weir_sqlite_open(settings->db_path, NULL, &listeners->database, &error) != WEIR_OK)
        return refuse("--db-path: %s", error.message);
    weir_sqlite_items items = { .cost_of = weir_frames_cost, .all = settings->all_items };
    if (weir_sqlite_item_hook(listeners->database, &items, &listeners->items, &error) != WEIR_OK)
        return refuse("--db-path: %s", error.message);

    listeners->observers[listeners->num_observers++] = weir_sqlite_observer(listeners->database);
    if (listeners->openmetrics)
        listeners->observers[listeners->num_observers++] = weir_openmetrics_observer(listeners->openmetrics);
    if (listeners->tensorboard)
        listeners->observers[listeners->num_observers++] = weir_tensorboard_observer(listeners->tensorboard);
    if (settings->verbose)
        listeners->observers[listeners->num_observers++] = weir_console_observer();
    return EXIT_OK;
}

/* Closes all, whatever the result, and says what is missing where. */
static int close_listeners(struct listeners *listeners)
{
    weir_error errors[3] = { 0 };
    weir_sqlite_close(listeners->database, &errors[0]);
    weir_openmetrics_close(listeners->openmetrics, &errors[1]);
    weir_tensorboard_close(listeners->tensorboard, &errors[2]);
    int exit_status = EXIT_OK;
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].status == WEIR_OK)
            continue;
        fprintf(stderr, PROGRAM ": %s\n", errors[i].message);
        exit_status = EXIT_RUN;
    }
    return exit_status;
}

/* Runs, closes the database whatever came of it, and reports from it. */
static int record(const struct settings *settings, const weir_directory_config *folder, int usr1_fd)
{
    struct listeners listeners = { 0 };
    int exit_status = open_listeners(&listeners, settings);
    if (exit_status == EXIT_OK)
        exit_status = run_pipeline(settings, folder, &listeners, usr1_fd);
    bool was_run = exit_status != EXIT_REFUSED;

    int64_t run_id = was_run ? weir_sqlite_run_id(listeners.database) : 0;
    if (close_listeners(&listeners) != EXIT_OK)
        exit_status = was_run ? EXIT_RUN : exit_status;
    if (was_run && report(settings->db_path, run_id) != EXIT_OK)
        exit_status = EXIT_RUN;
    return exit_status;
}

static int analyse(const struct settings *settings)
{
    weir_directory_config folder = {
        .root = settings->dataset_dir,
        .glob = settings->glob,
        .sorted = settings->sorted,
    };
    int exit_status = check_folder(&folder);
    if (exit_status != EXIT_OK)
        return exit_status;

    /* Before any thread is started: they all inherit that SIGUSR1 is not for them. */
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    int usr1_fd = signalfd(-1, &usr1, SFD_CLOEXEC | SFD_NONBLOCK);
    if (usr1_fd < 0)
        return refuse("cannot wait for SIGUSR1: %s", strerror(errno));
    terminal_start(!settings->quiet);
    if (settings->quiet)
        weir_log_set_level(WEIR_LOG_ERROR);
    exit_status = record(settings, &folder, usr1_fd);
    close(usr1_fd);
    return exit_status;
}

int main(int argc, char **argv)
{
    struct settings settings;
    int exit_status = parse_command_line(&settings, argc, argv);
    if (exit_status != EXIT_OK)
        return exit_status;
    if (settings.help) {
        print_help();
        return EXIT_OK;
    }
    if (settings.version) {
        printf(PROGRAM " %s\n", weir_version());
        return EXIT_OK;
    }
    return analyse(&settings);
}
