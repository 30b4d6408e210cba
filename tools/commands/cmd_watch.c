/* weir watch: a run as it stands, again and again. */
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
    bool once;
    double interval_s;
} settings = { .interval_s = 1 };

static const option_row rows[] = {
    { .name = "once",
      .kind = &option_flag,
      .offset = offsetof(struct settings, once),
      .help = "print one frame and end, for scripts" },
    { .name = "interval",
      .argument = "SPAN",
      .kind = &option_span,
      .offset = offsetof(struct settings, interval_s),
      .help = "time between two frames (default 1s)" },
    { 0 },
};

/* Opens the database anew, so that what is read is of this moment. Returns the exit status. */
static int write_frame(const tool_call *call, FILE *out, int width)
{
    weir_reader *reader;
    weir_filter filter;
    weir_error error = { 0 };
    int exit_status = tool_open(call, call->words[0], &reader, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    if (frame_write(out, reader, &filter, weir_clock_unix_ns(), width, &error) != WEIR_OK)
        exit_status = tool_fail(call, &error);
    weir_reader_close(reader);
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
    mvaddstr(LINES - 1, 0, "q ends");
    refresh();
}

/*
 * Until the next frame, also of a run that has ended: another may begin. Where a frame takes long to read, of a database
 * with millions of laps, no more than a tenth of the time goes into reading.
 */
static int pause_ms(int64_t took_ns)
{
    double took_s = (double)took_ns / (double)WEIR_SECOND;
    double pause_s = settings.interval_s > 9 * took_s ? settings.interval_s : 9 * took_s;
    return pause_s < 1e6 ? (int)(1000 * pause_s) : 1000000000;
}

/* Until the user has had enough. */
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
        return tool_refuse(call, "this is no terminal: use --once");
    FILE *nowhere = fopen("/dev/null", "w"); /* what is wrong with the database is said before the screen is taken */
    int exit_status = nowhere ? write_frame(call, nowhere, 80) : TOOL_FAILED;
    if (nowhere)
        fclose(nowhere);
    if (exit_status != TOOL_DONE)
        return exit_status;
    setlocale(LC_ALL, "");
    if (!newterm(NULL, stdout, stdin))
        return tool_refuse(call, "this terminal (TERM=%s) is not known: use --once",
                           getenv("TERM") ? getenv("TERM") : "");
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
    return settings.once ? watch_once(call) : watch(call);
}

const tool_command tool_watch = {
    .name = "watch",
    .words = "DB",
    .min_words = 1,
    .summary = "a run as it stands, live",
    .help =
        "Shows each stage and queue of a run: its totals, the metrics of its latest lap, and a bar for each of the "
        "laps before. They are as fresh as the last lap, whose length the program sets (performance_analysis: "
        "--log-interval). If the program has said "
        "how many items it expects (an event \"expected_items\"), the time left is estimated. Where another run "
        "begins in the same database, it is shown from then on, without --run.\n\n"
        "q ends it.",
    .examples = "weir watch pipeline_stats.db\n"
                "weir watch pipeline_stats.db --once\n",
    .shared = TOOL_RUN,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
