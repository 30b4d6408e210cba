/* weir index: builds or updates the index of a dataset, and queries it. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/dataset.h>
#include <weir/item.h>

#include "common/redact.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_file.h"
#include "tools/cli/path_list.h"
#include "tools/commands/command_table.h"
#include "tools/record/identity_key.h"
#include "tools/record/input_options.h"

static struct settings {
    const char *db_path, *glob, *path_column, *label_column, *start_column, *end_column, *where;
    int check, list;
    bool no_packets, tar;
    int64_t concurrency;
    weir_input_config input;
} settings = { .path_column = "path", .label_column = "label", .start_column = "start", .end_column = "end" };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const char *const checks[] = { "packets", "first", "all", NULL };
static const char *const lists[] = { "summary", "classes", "codecs", "durations", "broken", "clips", NULL };

static const option_row rows[] = {
    { ROW("db-path", db_path, option_file), .letter = 'o', .argument = "FILE",
      .help = "path of the index (default: the folder's or list's name with .weir, in the current folder)" },
    { ROW("glob", glob, option_text), .argument = "PATTERN",
      .help = "which files of a folder, or of archives (default: the extensions of videos that FFmpeg knows)" },
    { ROW("tar", tar, option_flag),
      .help =
          "index the members of uncompressed tar archives: of all *.tar files in a folder, or of the files given" },
    { ROW("check", check, option_choice), .argument = "HOW", .choices = checks,
      .help =
          "how to find broken files: read all packets (the default), or also decode the first frame, or all frames" },
    { ROW("no-packets", no_packets, option_flag),
      .help = "omit the tables of packets: the index is smaller, but finding a frame requires reading the file" },
    { ROW("concurrency", concurrency, option_count), .argument = "N",
      .help = "files processed concurrently (default: the CPUs this process may use)" },
    { ROW("path-column", path_column, option_text), .argument = "NAME",
      .help = "column (CSV) or key (JSON) of the path in a list (default \"path\")" },
    { ROW("label-column", label_column, option_text), .argument = "NAME",
      .help = "column (CSV) or key (JSON) of the label in a list (default \"label\")" },
    { ROW("start-column", start_column, option_text), .argument = "NAME",
      .help = "column or key of the second at which a clip starts in its file (default \"start\")" },
    { ROW("end-column", end_column, option_text), .argument = "NAME",
      .help = "column or key of the second at which it ends (default \"end\")" },
    { ROW("list", list, option_choice), .argument = "WHAT", .choices = lists,
      .help = "what to print from an index: the summary (the default), classes, codecs, durations, broken files or "
              "all clips" },
    { ROW("where", where, option_text), .argument = "SQL",
      .help = "only clips that match this condition: \"duration > 10 AND label = 'run'\"" },
    { 0 },
};

static const option_set more_sets[] = { { input_rows, &settings.input }, { 0 } };

/* ---- building -------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

typedef struct meter {
    bool is_shown; /* stderr is a terminal */
    bool has_line;
    int64_t start_ns;
} meter;

static bool show_progress(void *self, const weir_dataset_progress *progress)
{
    meter *m = self;
    if (!m->is_shown)
        return !is_interrupted;
    double elapsed = (double)(weir_clock_ns() - m->start_ns) / (double)WEIR_SECOND;
    uint64_t done = progress->num_unchanged + progress->num_indexed;
    double rate = elapsed > 0 ? (double)done / elapsed : 0;
    fprintf(stderr, "\r%" PRIu64, done);
    if (progress->num_total > 0)
        fprintf(stderr, "/%" PRIu64, progress->num_total);
    fprintf(stderr, " files, %.0f/s", rate);
    if (rate > 0 && progress->num_total > done)
        fprintf(stderr, ", %.0f s left", (double)(progress->num_total - done) / rate);
    fprintf(stderr, ", %" PRIu64 " broken\x1b[K", progress->num_broken);
    m->has_line = true;
    return !is_interrupted;
}

static void tell_result(const char *db_path, const weir_dataset_progress *progress)
{
    uint64_t num_files = progress->num_indexed + progress->num_unchanged;
    if (progress->num_clips > num_files)
        fprintf(stderr, "%s: %" PRIu64 " clips\n", db_path, progress->num_clips);
    fprintf(stderr,
            "%s: %" PRIu64 " file%s: %" PRIu64 " read, %" PRIu64 " unchanged, %" PRIu64
            " broken among those read, %" PRIu64 " removed\n",
            db_path, num_files, num_files == 1 ? "" : "s", progress->num_indexed, progress->num_unchanged,
            progress->num_broken, progress->num_removed);
    if (progress->num_cut)
        fprintf(stderr, "%" PRIu64 " of them lack%s frames that the header announces: cut off?\n", progress->num_cut,
                progress->num_cut == 1 ? "s" : "");
    if (progress->num_broken || progress->num_cut)
        fprintf(stderr, "weir index %s --list broken says why\n", db_path);
}

static int build(const tool_call *call, const char *db_path, weir_dataset_build_options *options)
{
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    struct sigaction before[2];
    meter m = { .is_shown = isatty(STDERR_FILENO), .start_ns = weir_clock_ns() };
    weir_dataset_progress progress;
    weir_error error = { 0 };
    if (output_allow(call, db_path, WEIR_OUTPUT_DATABASE, false, 0) != TOOL_DONE)
        return TOOL_REFUSED;
    options->check = (weir_probe_check)settings.check;
    options->no_packets = settings.no_packets;
    options->glob = settings.glob;
    options->tar = settings.tar;
    options->input = &settings.input;
    options->input_size = sizeof settings.input;
    options->concurrency = (uint32_t)settings.concurrency;
    options->progress = show_progress;
    options->self = &m;
    sigaction(SIGINT, &action, &before[0]);
    sigaction(SIGTERM, &action, &before[1]);
    int status = weir_dataset_build(db_path, options, &progress, &error);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    if (m.has_line)
        fputs("\r\x1b[K", stderr);
    if (status == WEIR_OK || status == WEIR_ESTOPPED)
        tell_result(db_path, &progress);
    if (status == WEIR_ESTOPPED) {
        tool_refuse(call, "stopped: run the same command again to continue");
        return TOOL_FAILED;
    }
    if (status == WEIR_OK && progress.num_unreadable_folders > 0) {
        tool_refuse(call, "%" PRIu64 " folder%s could not be read, so nothing was removed from the index",
                    progress.num_unreadable_folders, progress.num_unreadable_folders == 1 ? "" : "s");
        return TOOL_FAILED;
    }
    if (status == WEIR_OK)
        return TOOL_DONE;
    int exit_status = tool_fail(call, &error);
    return status == WEIR_ENOTFOUND || status == WEIR_EDATA ? TOOL_REFUSED : exit_status;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

enum { NUM_OWN = 18, MAX_COLUMNS = NUM_OWN + 200, MAX_NAME = 128 }; /* those of the index, and the user's */

typedef struct answer {
    const tool_call *call;
    table *t;
    table_column columns[MAX_COLUMNS];
    char names[MAX_COLUMNS][MAX_NAME];
} answer;

static table_kind kind_of(const weir_dataset_cell *cell)
{
    static const struct {
        const char *name;
        table_kind kind;
    } kinds[] = { { "duration", TABLE_TIME },    { "start", TABLE_TIME },     { "end", TABLE_TIME },
                  { "size_bytes", TABLE_BYTES }, { "complete", TABLE_TRUTH }, { "path", TABLE_WORDS },
                  { "label", TABLE_WORDS },      { "codec", TABLE_WORDS },    { "message", TABLE_WORDS },
                  { "status", TABLE_WORDS } };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(cell->name, kinds[i].name) == 0)
            return kinds[i].kind;
    return strstr(cell->name, "_time") ? TABLE_TIME : TABLE_COUNT;
}

static void begin_table(answer *to, const weir_dataset_cell *cells, size_t num_cells)
{
    for (size_t i = 0; i < num_cells; i++) {
        snprintf(to->names[i], sizeof to->names[i], "%s", cells[i].name);
        table_kind kind = i < NUM_OWN                       ? kind_of(&cells[i])
                          : cells[i].kind == WEIR_CELL_TEXT ? TABLE_WORDS
                                                            : TABLE_VALUE;
        to->columns[i] = (table_column){ to->names[i], to->names[i], kind };
    }
    to->t = table_begin(stdout, tool_format(to->call), to->columns, num_cells);
}

/* Names of files in the index are as they are, but may look like URLs. */
static void put_words(table *t, const char *words, bool is_address)
{
    char *shown = memory_copy(words);
    if (is_address)
        weir__address_redact(shown);
    else
        weir__text_redact(shown);
    table_words(t, shown);
    free(shown);
}

static int put_row(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    answer *to = self;
    if (!to->t)
        begin_table(to, cells, num_cells);
    for (size_t i = 0; i < num_cells; i++) {
        const weir_dataset_cell *cell = &cells[i];
        if (strcmp(cell->name, "status") == 0)
            table_words(to->t, weir_status_name((int)cell->integer));
        else if (cell->kind == WEIR_CELL_NOTHING)
            table_nothing(to->t);
        else if (cell->kind == WEIR_CELL_TEXT)
            put_words(to->t, cell->text, strcmp(cell->name, "message") != 0);
        else if (to->columns[i].kind == TABLE_TRUTH)
            table_truth(to->t, cell->integer);
        else if (to->columns[i].kind == TABLE_COUNT || (i >= NUM_OWN && cell->kind == WEIR_CELL_INTEGER))
            table_count(to->t, cell->integer);
        else
            table_number(to->t, cell->kind == WEIR_CELL_REAL ? cell->real : (double)cell->integer);
    }
    return WEIR_OK;
}

static int ask(const tool_call *call, const char *db_path)
{
    answer to = { .call = call };
    weir_error error = { 0 };
    int status =
        weir_dataset_ask(db_path, (weir_dataset_question)settings.list, settings.where, put_row, &to, &error);
    bool is_empty = !to.t;
    table_end_alone(to.t);
    if (status != WEIR_OK)
        return tool_fail_early(call, &error);
    if (is_empty)
        return tool_nothing(call, settings.where ? "no clip of %s matches --where" : "%s has no such clip", db_path);
    return tool_finish(call);
}

/* ---- which of the two ------------------------------------------------------------------------------------------ */

static bool is_list(const char *path)
{
    static const char *const endings[] = { ".txt", ".csv", ".tsv", ".json", ".jsonl", ".list", NULL };
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && endings[i]; i++)
        if (strcmp(dot, endings[i]) == 0)
            return !weir__is_url(path);
    return false;
}

static bool has_ending(const char *path, const char *ending)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ending) == 0;
}

/* "clips.weir" for "/data/clips/" and "lists/clips.csv". That of a URL is made from its identity. */
static void name_index(const char *given, char name[256])
{
    identity_key_load(&given, 1);
    char *word = memory_check(weir_identity_of(given));
    size_t length = strlen(word);
    while (length > 1 && word[length - 1] == '/')
        length--;
    size_t start = length;
    while (start > 0 && word[start - 1] != '/')
        start--;
    snprintf(name, 256, "%.*s", (int)(length - start), word + start);
    if (is_list(name))
        *strrchr(name, '.') = '\0';
    snprintf(name + strlen(name), 256 - strlen(name), ".weir");
    if (strcmp(name, "..weir") == 0 || strcmp(name, "...weir") == 0 || strcmp(name, "/.weir") == 0)
        snprintf(name, 256, "index.weir");
    free(word);
}

static int build_from_paths(const tool_call *call, const char *db_path)
{
    path_list list = { 0 };
    char problem[512] = "";
    bool is_read = true;
    bool has_labels = call->num_words == 1 && is_list(call->words[0]);
    if (has_labels)
        is_read = path_list_read(call->words[0],
                                 &(path_list_names){ .path = settings.path_column,
                                                     .label = settings.label_column,
                                                     .start = settings.start_column,
                                                     .end = settings.end_column,
                                                     .start_frame = "start_frame",
                                                     .end_frame = "end_frame" },
                                 &list, problem);
    for (int i = 0; !has_labels && i < call->num_words; i++)
        path_list_add(&list, call->words[i], NULL);
    identity_key_load((const char *const *)list.paths, list.num_paths);
    weir_dataset_build_options options = {
        .paths = (const char *const *)list.paths,
        .labels = has_labels ? (const char *const *)list.labels : NULL,
        .num_paths = list.num_paths,
        .windows = list.windows,
        .columns = list.others.columns,
        .num_columns = list.others.num,
    };
    int exit_status = is_read ? build(call, db_path, &options) : tool_refuse(call, "%s", problem);
    path_list_free(&list);
    return exit_status;
}

static int run(tool_call *call)
{
    struct stat file;
    char name[256];
    const char *first = call->words[0];
    bool is_there = stat(first, &file) == 0;
    bool is_folder = weir_output_is(first, WEIR_OUTPUT_FOLDER);
    if (call->num_words == 1 && is_there && !is_folder && weir_output_is(first, WEIR_OUTPUT_DATABASE))
        return ask(call, first);
    if (settings.list || settings.where)
        return tool_refuse(call, "--list and --where need an index, and %s is not one", first);
    if (!is_there && !weir__is_url(first))
        return tool_refuse(call, "%s does not exist", first);
    if (is_there && !is_folder && has_ending(first, ".weir"))
        return tool_refuse(call, "%s: not an index, or a damaged one; delete it and give the folder or list", first);
    if (is_folder && call->num_words > 1)
        return tool_refuse(call, "one folder at a time: %s and %s", first, call->words[1]);
    name_index(first, name);
    const char *db_path = settings.db_path ? settings.db_path : name;
    if (stat(db_path, &file) == 0 && !S_ISREG(file.st_mode))
        return tool_refuse(call, "%s: not a regular file, so it cannot be the index (see --db-path)", db_path);
    if (!is_folder)
        return build_from_paths(call, db_path);
    weir_dataset_build_options options = { .root = first };
    return build(call, db_path, &options);
}

const tool_command tool_index = {
    .name = "index",
    .words = "DIR|LIST|FILE...|INDEX",
    .min_words = 1,
    .max_words = -1,
    .summary = TOOL_INDEX_SUMMARY,
    .help = "Given a folder, a list, or files and URLs, weir index builds or updates an index. Files with unchanged "
            "size and modification time are not read again; nor are URLs whose server sends the same ETag or date. "
            "Files that no longer exist are removed from the index. "
            "It can be stopped or killed at any time; the next call continues. The label of a clip is its folder's "
            "name, or its label in the list.\n\n"
            "With --tar, the clips are members of tar archives, which are read in place; the path of a clip is then "
            "ARCHIVE!NAME. Archives that cannot be used are listed as broken.\n\n"
            "A list is a .csv or .tsv file with a header line, a .json or .jsonl file, or a .txt file with one path "
            "per line. Relative paths are relative to the folder of the list. Columns (or keys) with other names "
            "than path, label, start "
            "and end are yours: --where can use them, and each clip has its values in a batch. Each row is a clip, "
            "also if several "
            "rows name the same file. start and end, in seconds, or start_frame and end_frame, are stored, and only "
            "that window is decoded. "
            "A URL is the same clip with any signature. Its secrets are not stored, so a program "
            "that opens the index must pass the list again (weir_dataset_options.paths).\n\n"
            "Given an index, it prints the contents, with sizes in bytes and durations in seconds. The index is an "
            "SQLite file; for other queries, use its table clip.\n\n"
            "examples/training.c shows how a pipeline reads clips from an index, and seeks to single frames without "
            "reading the whole file.",
    .examples = "weir index /data/kinetics/train -o train.weir\n"
                "weir index clips.csv --label-column class\n"
                "weir index /data/shards --tar -o shards.weir\n"
                "weir index train.weir --list classes\n"
                "weir index train.weir --list broken --csv\n"
                "weir index train.weir --list clips --where 'duration < 1' --json\n"
                "sqlite3 train.weir 'SELECT codec, avg(duration) FROM clip GROUP BY codec'\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .more = more_sets,
    .run = run,
};
