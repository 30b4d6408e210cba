/* weir watch: shows the current state of a run, live. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef WEIR_HAVE_NCURSES
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#endif

#include <weir/clock.h>

#include "command_table.h"
#include "tty.h"
#include "watch_screen.h"

static struct settings {
    bool once, json;
    double interval_s;
} settings = { .interval_s = 1 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("once", once, option_flag), .help = "print the state once and exit, for scripts" },
    { ROW("json", json, option_flag), .help = "with --once: print JSON: full precision, seconds, bytes, Unix time" },
    { ROW("interval", interval_s, option_span), .argument = "SPAN", .help = "time between two updates (default 1s)" },
    { 0 },
};

/* Opens a database again, so that the data is current. Returns the exit status. sum: NULL = it is the only one. */
static int write_one(const tool_call *call, const char *path, FILE *out, int width, frame_sum *sum)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    int exit_status = tool_open(call, path, &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    int64_t now_unix_ns = weir_clock_unix_ns();
    int status = settings.json ? frame_write_json(out, reader, &filter, now_unix_ns, &error)
                 : sum         ? frame_write_row(out, reader, &filter, now_unix_ns, width, sum, &error)
                               : frame_write(out, reader, &filter, now_unix_ns, width, &error);
    if (status != WEIR_OK)
        exit_status = tool_fail(call, &error);
    weir_reader_close(reader);
    return exit_status;
}

/* Of several databases: an array, or a line for each below their sum. */
static int write_frame(const tool_call *call, FILE *out, int width)
{
    frame_sum sum = { 0 };
    char *text = NULL;
    size_t size;
    bool is_one = call->num_words == 1;
    int exit_status = TOOL_DONE;
    FILE *lines = open_memstream(&text, &size);
    if (!lines)
        return tool_refuse(call, "out of memory"), TOOL_FAILED;
    for (int i = 0; i < call->num_words && exit_status == TOOL_DONE; i++) {
        if (settings.json && !is_one)
            fputs(i ? ",\n " : "[", lines);
        exit_status = write_one(call, call->words[i], lines, width, is_one ? NULL : &sum);
    }
    fclose(lines);
    if (exit_status == TOOL_DONE && !settings.json && !is_one)
        frame_write_sum(out, &sum, width);
    if (exit_status == TOOL_DONE)
        fprintf(out, "%s%s", text, !settings.json ? "" : is_one ? "\n" : "]\n");
    free(text);
    return exit_status;
}

static int watch_once(const tool_call *call)
{
    int width = tty_width() ? tty_width() : 4096;
    int exit_status = write_frame(call, stdout, width);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

#ifdef WEIR_HAVE_NCURSES
static void show(const char *text)
{
    erase();
    int row = 0;
    for (const char *line = text; *line && row < LINES - 1; row++) {
        size_t length = strcspn(line, "\n");
        mvaddnstr(row, 0, line, (int)length);
        line += length + (line[length] == '\n');
    }
    mvaddstr(LINES - 1, 0, "q quits");
    refresh();
}

/*
 * Waits for the next frame, even if the run has ended: another run may start. If reading a frame takes long (a
 * database with millions of laps), at most a tenth of the time is spent reading.
 */
static int pause_ms(int64_t took_ns)
{
    double took_s = (double)took_ns / (double)WEIR_SECOND;
    double pause_s = settings.interval_s > 9 * took_s ? settings.interval_s : 9 * took_s;
    return pause_s < 1e6 ? (int)(1000 * pause_s) : 1000000000;
}

/* Runs until the user quits. */
static int show_frames(const tool_call *call)
{
    for (;;) {
        char *text = NULL;
        size_t size;
        int64_t began_ns = weir_clock_ns();
        FILE *lines = open_memstream(&text, &size);
        if (!lines)
            return TOOL_FAILED;
        int exit_status = write_frame(call, lines, COLS);
        fclose(lines);
        if (exit_status == TOOL_DONE)
            show(text);
        free(text);
        if (exit_status != TOOL_DONE)
            return exit_status;
        timeout(pause_ms(weir_clock_ns() - began_ns));
        int key = getch();
        if (key == 'q' || key == 'Q' || key == 27)
            return TOOL_DONE;
    }
}

static int watch(const tool_call *call)
{
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return tool_refuse(call, "stdout is not a terminal: use --once");
    FILE *nowhere = fopen("/dev/null", "w"); /* reports database errors before the screen is taken over */
    int exit_status = nowhere ? write_frame(call, nowhere, 80) : TOOL_FAILED;
    if (nowhere)
        fclose(nowhere);
    if (exit_status != TOOL_DONE)
        return exit_status;
    setlocale(LC_ALL, "");
    if (!newterm(NULL, stdout, stdin))
        return tool_refuse(call, "unknown terminal (TERM=%s): use --once", getenv("TERM") ? getenv("TERM") : "");
    cbreak();
    noecho();
    curs_set(0);
    exit_status = show_frames(call);
    endwin();
    return exit_status;
}
#else
static int watch(const tool_call *call)
{
    return tool_refuse(call, "weir was built without ncurses (libncurses-dev): use --once");
}
#endif

static int run(tool_call *call)
{
    if (call->shared.run_given && call->shared.run_id == WEIR_ALL_RUNS)
        return tool_refuse(call, "--run all: one run is shown at a time; --run last follows the latest");
    if (settings.json && !settings.once)
        return tool_refuse(call, "--json: only with --once");
    return settings.once ? watch_once(call) : watch(call);
}

const tool_command tool_watch = {
    .name = "watch",
    .words = "DB...",
    .min_words = 1,
    .max_words = -1,
    .summary = "show the state of a run, or of the ranks of a job, live",
    .help =
        "Shows each stage and queue of a run: its totals so far, then the metrics of its latest lap, and a bar for "
        "each earlier lap. The data is updated after each lap, whose length the program sets (--log-interval of weir "
        "record). If the program has recorded how many items it expects (an event \"expected_items\"), the remaining "
        "time is estimated. Without --run, the display switches to a new run when one starts in the same "
        "database.\n\n"
        "Given several databases, such as those of the ranks of a job, it shows their sum, and below it one line for "
        "each, with bars for the results that its consumer took; --json prints an array. ready is the share of the "
        "latest lap in which a result was available. input, thread and room are the shares of the time in which the "
        "slots of a stage waited for these.\n\n"
        "Press q to quit.",
    .examples = "weir watch pipeline_stats.db\n"
                "weir watch pipeline_stats.rank*.db\n"
                "weir watch pipeline_stats.db --once --json | jq '{done, expected, remaining}'\n",
    .shared = TOOL_RUN,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
