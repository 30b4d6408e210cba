/*
 * weir-bench decode: a folder of videos through the decode stage, beside a bare loop over FFmpeg's libraries; what the
 * stage's options save and cost; and beside other libraries. Each part has a file of its own.
 */
#include "decode_bench.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libavutil/avutil.h>

#include <weir/engine.h>

#include "background_load.h"
#include "bench.h"
#include "file_classes.h"

/* ---- what the parts share ----------------------------------------------------------------------------------- */

void decode_report_scope(bench_report *report, const decode_scope *scope)
{
    if (scope->name)
        bench_report_text(report, "class", scope->name);
}

void decode_show_progress(const char *part, uint32_t round, uint32_t num_rounds, size_t done, size_t all)
{
    if (!isatty(STDERR_FILENO))
        return;
    if (done == all)
        fputs("\r\033[K", stderr);
    else
        fprintf(stderr, "\r\033[K%s: round %" PRIu32 " of %" PRIu32 ", run %zu of %zu", part, round + 1, num_rounds,
                done + 1, all);
    fflush(stderr);
}

/* ---- the parts ---------------------------------------------------------------------------------------------- */

/* Where one concurrency has to do: the largest of the list that the CPUs can run at once. */
static uint32_t main_concurrency(const decode_settings *settings)
{
    const bench_list *list = &settings->concurrency;
    uint32_t best = 0;
    for (size_t i = 0; i < list->num_values; i++) {
        if (list->values[i] <= weir_cpu_budget() && list->values[i] > best)
            best = list->values[i];
    }
    return best ? best : list->values[0];
}

/* What is done with the whole folder, and with the files of each class. */
typedef int run_scope(bench_report *report, const decode_settings *settings, const decode_scope *scope);

static int run_parts(bench_report *report, const decode_settings *settings, const decode_scope *scope)
{
    bench_list one = { .values = { main_concurrency(settings) }, .num_values = 1 };
    int rc = decode_beside_bare(report, settings, scope, scope->name ? &one : &settings->concurrency);
    if (rc == 0 && settings->price_list)
        rc = decode_price_list(report, settings, scope, one.values[0]);
    if (rc == 0 && settings->peers)
        rc = decode_beside_peers(report, settings, scope, one.values[0]);
    return rc;
}

static int run_all_peers(bench_report *report, const decode_settings *settings, const decode_scope *scope)
{
    const bench_list *concurrency = &settings->concurrency;
    int rc = 0;
    for (size_t i = 0; i < concurrency->num_values && rc == 0; i++)
        rc = decode_beside_peers(report, settings, scope, concurrency->values[i]);
    return rc;
}

static int run_classes(bench_report *report, const decode_settings *settings, const bench_files *files,
                       run_scope *run)
{
    bench_groups groups = { 0 };
    int rc = bench_classify(files, &groups);
    for (size_t i = 0; i < groups.num_groups && rc == 0; i++) {
        const bench_group *group = &groups.groups[i];
        char name[64];
        bench_class_name(&group->kind, name, sizeof name);
        printf("\n== %s: %zu files%s\n\n", name, group->files.num_paths, *group->kind.codec ? "" : ", left out");
        if (*group->kind.codec)
            rc = run(report, settings, &(decode_scope){ .name = name, .files = &group->files });
    }
    bench_groups_free(&groups);
    return rc;
}

static int run_scopes(bench_report *report, const decode_settings *settings, const bench_files *files,
                      const char *fitted, run_scope *run)
{
    printf("%zu files below %s to %" PRIu32 "×%" PRIu32 " rgb24, %s; medians (smallest..largest) of %" PRIu32
           " runs in turn%s\n\n",
           files->num_paths, settings->dataset_dir, settings->width, settings->height, fitted, settings->runs,
           settings->verify ? ", pixels compared" : "");
    int rc = run(report, settings, &(decode_scope){ .files = files });
    if (rc == 0 && settings->by_class)
        rc = run_classes(report, settings, files, run);
    return rc;
}

static int run_decode(bench_report *report, const decode_settings *settings, const bench_files *files)
{
    return run_scopes(report, settings, files, "padded", run_parts);
}

static int run_peers(bench_report *report, const decode_settings *settings, const bench_files *files)
{
    return run_scopes(report, settings, files, "stretched", run_all_peers);
}

/* ---- the command line --------------------------------------------------------------------------------------- */

static const char *const scaler_names[] = { "default", "exact", "zimg", "fast", NULL }; /* as weir_scaler_kind */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(decode_settings, what)

static const option_row folder_rows[] = {
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR", .help = "the folder of videos (required)" },
    { ROW("glob", glob, option_text), .argument = "PATTERN", .help = "names of the files to decode (default *.mp4)" },
    { ROW("concurrency", concurrency, bench_counts), .argument = "LIST",
      .help = "files processed concurrently (default 1,2,4,10; for peers 2)" },
    { ROW("runs", runs, option_count32), .argument = "N", .max = MAX_RUNS,
      .help = "runs of each, in turn (default 5)" },
    { ROW("width", width, option_count32), .argument = "N", .max = INT16_MAX,
      .help = "width of the result in pixels (default 128)" },
    { ROW("height", height, option_count32), .argument = "N", .max = INT16_MAX,
      .help = "height of the result in pixels (default 128)" },
    { ROW("by-class", by_class, option_flag), .help = "repeat everything for the files of each codec and size" },
    { ROW("python", python, option_file), .argument = "FILE",
      .help = "Python with the peers (default build/peers/bin/python, or python3)" },
    { ROW("script", script, option_file), .argument = "FILE",
      .help = "program that runs the peers (default: the one that comes with weir-bench)" },
    { 0 },
};

static const option_row decode_rows[] = {
    { ROW("threads", threads, option_count32), .argument = "N",
      .help = "threads of weir's pool (default: the CPUs this process may use)" },
    { ROW("scaler", scaler, option_choice), .argument = "NAME", .choices = scaler_names,
      .help = "weir's: exact, like the bare loop's (the default), zimg, fast or default" },
    { ROW("verify", verify, option_flag), .help = "also compare the pixels; costs both the same CPU time" },
    { ROW("price-list", price_list, option_flag), .help = "also what each lossy or fast option saves and costs" },
    { ROW("peers", peers, option_flag), .help = "also what weir-bench peers does" },
    { 0 },
};

/* In the repository, or where it was installed: beside the program, in ../share. */
static const char *default_script(void)
{
    static const char in_repository[] = "bench/peers/decode.py";
    static char installed[PATH_MAX + 64];
    ssize_t length = readlink("/proc/self/exe", installed, PATH_MAX);
    while (length > 0 && installed[length - 1] != '/')
        length--;
    if (length <= 0 || access(in_repository, R_OK) == 0)
        return in_repository;
    snprintf(installed + length, sizeof installed - (size_t)length, "../share/weir/peers/decode.py");
    return access(installed, R_OK) == 0 ? installed : in_repository;
}

static decode_settings defaults(void)
{
    static const char python[] = "build/peers/bin/python";
    return (decode_settings){
        .glob = "*.mp4",
        .concurrency = { .values = { 1, 2, 4, 10 }, .num_values = 4 },
        .runs = 5,
        .width = 128,
        .height = 128,
        .scaler = WEIR_SCALER_EXACT,
        .python = access(python, X_OK) == 0 ? python : "python3",
        .script = default_script(),
    };
}

/* The exit status. */
static int run_on_files(const decode_settings *settings,
                        int (*run)(bench_report *report, const decode_settings *settings, const bench_files *files))
{
    bench_files files = { 0 };
    if (settings->verify && settings->scaler != WEIR_SCALER_EXACT)
        return bench_refuse("--verify compares the pixels of --scaler exact only", "");
    if (!settings->dataset_dir)
        return bench_refuse("--dataset-dir DIR is missing", " (see --help)");
    if (bench_files_find(&files, settings->dataset_dir, settings->glob) != 0)
        return 2;
    bench_report *report = bench_report_new();
    bench_report_machine(report, "ffmpeg", av_version_info());
    bench_others start = bench_others_now();
    int rc = run(report, settings, &files);
    if (rc == 0)
        bench_tell_others(NULL, &start); /* the report is past its machine */
    if (bench_report_end(report, settings->json_path) != 0)
        rc = -1;
    bench_files_free(&files);
    return rc == 0 ? 0 : 1;
}

/* `more`: the options that only one of the two has; NULL = none. */
static int parse_and_run(int argc, char **argv, decode_settings settings, const option_row *more, const char *usage,
                         int (*run)(bench_report *report, const decode_settings *settings, const bench_files *files))
{
    const option_set sets[] = { { folder_rows, &settings }, { more, &settings } };
    bench_parsed parsed = bench_parse(argc, argv, sets, 2, &settings.json_path, usage);
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    return run_on_files(&settings, run);
}

int bench_decode(int argc, char **argv)
{
    return parse_and_run(argc, argv, defaults(), decode_rows, "decode --dataset-dir DIR [options]", run_decode);
}

int bench_decode_peers(int argc, char **argv)
{
    decode_settings settings = defaults();
    settings.concurrency = (bench_list){ .values = { 2 }, .num_values = 1 };
    return parse_and_run(argc, argv, settings, NULL, "peers --dataset-dir DIR [options]", run_peers);
}
