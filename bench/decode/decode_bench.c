/*
 * weir-bench decode: a folder of videos through the decode stage, beside a bare loop over FFmpeg's libraries; what the
 * stage's options save and cost; and beside other libraries. Each part has a file of its own.
 */
#include "decode_bench.h"

#include <inttypes.h>
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

static bool read_scaler(const char *text, void *to)
{
    static const char *const names[] = {
        [WEIR_SCALER_DEFAULT] = "default",
        [WEIR_SCALER_EXACT] = "exact",
        [WEIR_SCALER_ZIMG] = "zimg",
        [WEIR_SCALER_FAST] = "fast",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0) {
            *(weir_scaler_kind *)to = (weir_scaler_kind)i;
            return true;
        }
    }
    return false;
}

/* Says what is wrong with the settings, if anything is. */
static int check(const decode_settings *settings)
{
    const char *mistake = NULL;
    if (settings->verify && settings->scaler != WEIR_SCALER_EXACT)
        mistake = "--verify compares the pixels of --scaler exact only";
    if (settings->runs > MAX_RUNS)
        mistake = "--runs is at most 1000";
    if (settings->width > INT16_MAX || settings->height > INT16_MAX)
        mistake = "--width and --height are at most 32767";
    if (mistake)
        fprintf(stderr, "weir-bench: %s\n", mistake);
    return mistake ? -1 : 0;
}

/* Where the peers are: from the repository's folder. */
#define BENCH_PEER_OPTIONS(settings) \
    { "python", "FILE", bench_read_text, (void *)&(settings).python, \
      "with the peers (default build/peers/bin/python)" }, \
    { \
        "script", "FILE", bench_read_text, (void *)&(settings).script, "(default bench/peers/decode.py)" \
    }

static decode_settings defaults(void)
{
    return (decode_settings){
        .glob = "*.mp4",
        .concurrency = { .values = { 1, 2, 4, 10 }, .num_values = 4 },
        .runs = 5,
        .width = 128,
        .height = 128,
        .scaler = WEIR_SCALER_EXACT,
        .python = "build/peers/bin/python",
        .script = "bench/peers/decode.py",
    };
}

/* The exit status. */
static int run_on_files(const decode_settings *settings,
                        int (*run)(bench_report *report, const decode_settings *settings, const bench_files *files))
{
    bench_files files = { 0 };
    if (check(settings) != 0 || bench_files_find(&files, settings->dataset_dir, settings->glob) != 0)
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

int bench_decode(int argc, char **argv)
{
    decode_settings settings = defaults();
    const bench_option options[] = {
        { "dataset-dir", "DIR", bench_read_text, &settings.dataset_dir, "the folder of videos (needed)" },
        { "glob", "PATTERN", bench_read_text, (void *)&settings.glob, "which files (default *.mp4)" },
        { "concurrency", "LIST", bench_read_list, &settings.concurrency,
          "slots of weir, threads of the bare loop (default 1,2,4,10)" },
        { "threads", "N", bench_read_count, &settings.threads,
          "threads of weir's pool (default: the CPUs it may use)" },
        { "runs", "N", bench_read_count, &settings.runs, "runs of each, in turn (default 5)" },
        { "width", "N", bench_read_count, &settings.width, "of the pictures (default 128)" },
        { "height", "N", bench_read_count, &settings.height, "of the pictures (default 128)" },
        { "scaler", "NAME", read_scaler, &settings.scaler,
          "weir's: exact, as the bare loop's (default), zimg, fast or default" },
        { "verify", NULL, NULL, &settings.verify, "also compare the pixels; costs both the same CPU" },
        { "price-list", NULL, NULL, &settings.price_list, "also what each lossy or fast option saves and costs" },
        { "peers", NULL, NULL, &settings.peers, "also what weir-bench peers does" },
        { "by-class", NULL, NULL, &settings.by_class, "all of it once more for the files of each codec and size" },
        BENCH_PEER_OPTIONS(settings),
        BENCH_JSON_OPTION((void *)&settings.json_path),
        { 0 },
    };
    bench_parsed parsed = bench_parse(argc, argv, options, "decode --dataset-dir DIR [OPTIONS]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    return run_on_files(&settings, run_decode);
}

int bench_decode_peers(int argc, char **argv)
{
    decode_settings settings = defaults();
    settings.concurrency = (bench_list){ .values = { 2 }, .num_values = 1 };
    const bench_option options[] = {
        { "dataset-dir", "DIR", bench_read_text, &settings.dataset_dir, "the folder of videos (needed)" },
        { "glob", "PATTERN", bench_read_text, (void *)&settings.glob, "which files (default *.mp4)" },
        { "concurrency", "LIST", bench_read_list, &settings.concurrency, "files at once (default 2)" },
        { "runs", "N", bench_read_count, &settings.runs, "runs of each, in turn (default 5)" },
        { "width", "N", bench_read_count, &settings.width, "of the pictures (default 128)" },
        { "height", "N", bench_read_count, &settings.height, "of the pictures (default 128)" },
        { "by-class", NULL, NULL, &settings.by_class, "the same once more for the files of each codec and size" },
        BENCH_PEER_OPTIONS(settings),
        BENCH_JSON_OPTION((void *)&settings.json_path),
        { 0 },
    };
    bench_parsed parsed = bench_parse(argc, argv, options, "peers --dataset-dir DIR [OPTIONS]");
    if (parsed != BENCH_RUN)
        return parsed == BENCH_HELP_SHOWN ? 0 : 2;
    return run_on_files(&settings, run_peers);
}
