/* weir watch: shows the current state of a run, live. */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>

#include "common/text_fill.h"
#include "common/unix_clock.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"
#include "tools/commands/command_table.h"
#include "tools/view/full_screen_load.h"
#include "tools/view/watch_screen.h"

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

static watch_view view;

/* Opens the database again, so that the data is current. Returns the exit status. */
static int write_screen(const tool_call *call, FILE *out)
{
    weir_recording *recording;
    weir_filter filter;
    weir_error error = { 0 };
    char *text;
    size_t size;
    int exit_status = tool_open(call, call->words[0], &recording, &filter);
    if (exit_status != TOOL_DONE)
        return exit_status;
    FILE *lines = memory_file_open(&text, &size);
    int status = watch_write(lines, recording, &filter, unix_clock_ns(), settings.json ? NULL : &view, &error);
    memory_file_close(lines);
    weir_recording_close(recording);
    if (status == WEIR_OK)
        fwrite(text, 1, size, out);
    free(text);
    return status == WEIR_OK ? TOOL_DONE : tool_fail(call, &error);
}

static int watch_once(const tool_call *call)
{
    int exit_status = write_screen(call, stdout);
    return exit_status == TOOL_DONE ? tool_finish(call) : exit_status;
}

#define KEYS \
    "s sorts the stages, in turn by busy_share, tasks_per_s, ave_time, num_failures and their order in the " \
    "pipeline; " \
    "1 to 9 opens a stage with all its measures, 0 shows all again; p stops and resumes the updates; h shows the " \
    "keys; " \
    "q quits."

static const char keys[] = KEYS;
static bool shows_help, is_paused;

static void show_text(const full_screen *screen, const char *text)
{
    screen->show(text,
                 is_paused ? "paused: p goes on, h help, q quits" : "s sort, 1-9 open, p pause, h help, q quit");
}

/*
 * Waits for the next screen, even if the run has ended: another run may start. If reading takes long (a
 * database with millions of laps), at most a tenth of the time is spent reading.
 */
static int pause_ms(int64_t took_ns)
{
    double took_s = (double)took_ns / (double)WEIR_SECOND;
    double pause_s = settings.interval_s > 9 * took_s ? settings.interval_s : 9 * took_s;
    return is_paused ? -1 : pause_s < 1e6 ? (int)(1000 * pause_s) : 1000000000;
}

/* False = the user quits. */
static bool take_key(int key)
{
    if (key == 's')
        view.sort = watch_sorts[view.sort + 1] ? view.sort + 1 : 0;
    if (key >= '0' && key <= '9')
        view.opened = key - '0';
    if (key == 'p' || key == ' ')
        is_paused = !is_paused;
    shows_help = (key == 'h' || key == '?') && !shows_help;
    if (key == 27 && view.opened) /* Esc goes back first */
        return view.opened = 0, true;
    return key != 'q' && key != 'Q' && key != 27;
}

/* Runs until the user quits. */
static int show_screens(const tool_call *call, const full_screen *screen)
{
    view.has_keys = true;
    for (bool goes_on = true; goes_on;) {
        char *text = NULL;
        size_t size;
        int64_t began_ns = weir_clock_ns();
        FILE *lines = memory_file_open(&text, &size);
        int exit_status = TOOL_DONE;
        if (shows_help)
            weir__text_fill(lines, keys, keys + strlen(keys), 0, 0, (size_t)screen->columns());
        else {
            tty_set_width(screen->columns());
            view.num_rows = (size_t)screen->rows();
            exit_status = write_screen(call, lines);
        }
        memory_file_close(lines);
        if (exit_status == TOOL_DONE)
            show_text(screen, text);
        free(text);
        if (exit_status != TOOL_DONE)
            return exit_status;
        goes_on = take_key(screen->wait_key(pause_ms(weir_clock_ns() - began_ns)));
    }
    return TOOL_DONE;
}

/* Names are UTF-8 in any locale, as in the other commands. */
static void use_utf8(void)
{
    setlocale(LC_ALL, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

/* Reports what is wrong with the database before the screen is taken over. */
static int check_database(const tool_call *call)
{
    FILE *nowhere = fopen("/dev/null", "w");
    int exit_status = nowhere ? write_screen(call, nowhere) : TOOL_FAILED;
    if (nowhere)
        fclose(nowhere);
    return exit_status;
}

static int watch(const tool_call *call)
{
    char problem[512];
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return tool_refuse(call, "stdout is not a terminal: use --once");
    int exit_status = check_database(call);
    if (exit_status != TOOL_DONE)
        return exit_status;
    const full_screen *screen = full_screen_load(problem, sizeof problem);
    if (!screen)
        return tool_refuse(call, "%s; --once prints the state without it", problem);
    use_utf8();
    if (!screen->open())
        return tool_refuse(call, "unknown terminal (TERM=%s): use --once", getenv("TERM") ? getenv("TERM") : "");
    exit_status = show_screens(call, screen);
    screen->close();
    return exit_status;
}

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
    .words = "[DB]",
    .max_words = 1,
    .summary = "show the state of a run, live",
    .help =
        "Shows what a run does now, in the lines of weir summary: how far it is, items and frames per second, CPUs, "
        "memory, and what limits the latest 24 laps (see weir explain); the last minute, or these laps if they took "
        "longer, as lines of bars; and each stage and queue; then tasks "
        "that have run for long, and the slowest file. Rows that the terminal has no room for are counted. The data "
        "is updated after each lap, whose length the "
        "program sets (--log-interval of weir record). If the program has recorded how many items it expects (an "
        "event \"expected_items\"), the remaining time is estimated. Frames per second are known if the "
        "program counts frames, as weir record does (weir/span.h). Without --run, the display switches to a new "
        "run when one starts in the same database.\n\n"
        "input, thread, turn and room are the shares of the time in which the slots of a stage waited for these. "
        "weir fleet shows the ranks of a job.\n\n"
        "Keys: " KEYS,
    .examples = "weir watch\n"
                "weir watch --db pipeline_stats.rank3.db\n"
                "weir watch --once --json | jq '{done, expected, remaining}'\n",
    .shared = TOOL_DB | TOOL_RUN,
    .default_run = WEIR_LAST_RUN,
    .options = rows,
    .settings = &settings,
    .run = run,
};
