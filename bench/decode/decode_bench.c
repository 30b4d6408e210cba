/*
 * weir-bench decode: a folder of videos through the decode stage, compared with a bare loop over the FFmpeg libraries
 * and with other libraries. Each part is a separate file.
 */
#include "bench/decode/decode_bench.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <libavutil/avutil.h>

#include <weir/engine.h>
#include <weir/video.h>

#include "bench/cli/bench.h"
#include "bench/harness/background_load.h"
#include "bench/harness/contest.h"

enum { MAX_PATH_BYTES = PATH_MAX + 64 };

/* The concurrency for parts that use only one: the largest of the list that is not above the number of CPUs. */
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

static int run_decode(bench_report *report, const decode_settings *settings)
{
    int rc = decode_versus_bare(report, settings);
    if (rc == 0 && settings->peers)
        rc = decode_versus_peers(report, settings, main_concurrency(settings));
    return rc;
}

static int run_peers(bench_report *report, const decode_settings *settings)
{
    const bench_list *concurrency = &settings->concurrency;
    int rc = 0;
    for (size_t i = 0; i < concurrency->num_values && rc == 0; i++)
        rc = decode_versus_peers(report, settings, concurrency->values[i]);
    return rc;
}

/* ---- the command line --------------------------------------------------------------------------------------- */

static const char *const scaler_names[] = { "default", "exact", "fast", NULL }; /* as weir_scaler_kind */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(decode_settings, what)

static const option_row folder_rows[] = {
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR", .help = "the folder of videos (required)" },
    { ROW("glob", glob, option_text), .argument = "PATTERN", .help = "names of the files to decode (default *.mp4)" },
    { ROW("concurrency", concurrency, bench_counts), .argument = "LIST",
      .help = "files processed concurrently (default 1,2,4,10; for peers 2)" },
    { ROW("runs", runs, option_count32), .argument = "N", .max = MAX_RUNS,
      .help = "runs of each configuration, interleaved (default 5)" },
    { ROW("width", width, option_count32), .argument = "N", .max = INT16_MAX,
      .help = "width of the result in pixels (default 128)" },
    { ROW("height", height, option_count32), .argument = "N", .max = INT16_MAX,
      .help = "height of the result in pixels (default 128)" },
    { ROW("python", python, option_file), .argument = "FILE",
      .help = "Python interpreter with the peers (default: the one of bench/peers/setup, or python3)" },
    { ROW("script", script, option_file), .argument = "FILE",
      .help = "program that runs the peers (default: the one that comes with weir-bench)" },
    { 0 },
};

static const option_row decode_rows[] = {
    { ROW("threads", threads, option_count32), .argument = "N",
      .help = "threads of weir's pool (default: the CPUs this process may use)" },
    { ROW("scaler", scaler, option_choice), .argument = "NAME", .choices = scaler_names,
      .help = "weir's scaler: exact (by default, like the bare loop), fast or default" },
    { ROW("verify", verify, option_flag), .help = "also compare the pixels; adds the same CPU time to both" },
    { ROW("peers", peers, option_flag), .help = "also run weir-bench peers" },
    { 0 },
};

/* The file at this path from the folder of the program, or `otherwise`. The build folder is laid out as the
   installation. */
static const char *find_beside_program(char *path, const char *relative, const char *otherwise)
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length <= 0)
        return otherwise;
    snprintf(path + length, MAX_PATH_BYTES - (size_t)length, "%s", relative);
    return access(path, R_OK) == 0 ? path : otherwise;
}

static decode_settings defaults(void)
{
    static char python[MAX_PATH_BYTES], script[MAX_PATH_BYTES];
    return (decode_settings){
        .glob = "*.mp4",
        .concurrency = { .values = { 1, 2, 4, 10 }, .num_values = 4 },
        .runs = 5,
        .width = 128,
        .height = 128,
        .scaler = WEIR_SCALER_EXACT,
        .python = find_beside_program(python, "../../peers/bin/python", "python3"), /* build/peers */
        .script = find_beside_program(script, "../share/weir/peers/decode.py", "bench/peers/decode.py"),
    };
}

/* The exit status. */
static int run_on_files(decode_settings *settings, const char *fitted,
                        int (*run)(bench_report *report, const decode_settings *settings))
{
    if (settings->verify && settings->scaler != WEIR_SCALER_EXACT)
        return bench_refuse("--verify compares the pixels of --scaler exact only", "");
    if (!settings->dataset_dir)
        return bench_refuse("--dataset-dir DIR is missing", " (see --help)");
    if (bench_files_find(&settings->files, settings->dataset_dir, settings->glob) != 0)
        return 2;
    printf("%zu files below %s to %" PRIu32 "×%" PRIu32 " rgb24, %s; medians (smallest..largest) of %" PRIu32
           " interleaved runs%s\n\n",
           settings->files.num_paths, settings->dataset_dir, settings->width, settings->height, fitted,
           settings->runs, settings->verify ? ", pixels compared" : "");
    bench_report *report = bench_report_new();
    bench_report_text(report, "ffmpeg", av_version_info());
    bench_background_load start = bench_background_load_now();
    int rc = run(report, settings);
    if (rc == 0)
        bench_report_background_load(NULL, &start); /* NULL: the machine data of the report is already written */
    if (bench_report_end(report, settings->json_path) != 0)
        rc = -1;
    bench_files_free(&settings->files);
    return rc == 0 ? 0 : 1;
}

int bench_decode(int argc, char **argv)
{
    decode_settings settings = defaults();
    const option_set sets[] = { { folder_rows, &settings }, { decode_rows, &settings } };
    bench_parsed parsed = bench_parse(argc, argv, sets, 2, &settings.json_path, "decode --dataset-dir DIR [options]");
    return parsed == BENCH_RUN ? run_on_files(&settings, "padded", run_decode) : parsed == BENCH_HELP_SHOWN ? 0 : 2;
}

int bench_decode_peers(int argc, char **argv)
{
    decode_settings settings = defaults();
    settings.concurrency = (bench_list){ .values = { 2 }, .num_values = 1 };
    const option_set set = { folder_rows, &settings };
    bench_parsed parsed = bench_parse(argc, argv, &set, 1, &settings.json_path, "peers --dataset-dir DIR [options]");
    return parsed == BENCH_RUN ? run_on_files(&settings, "stretched", run_peers) : parsed == BENCH_HELP_SHOWN ? 0 : 2;
}
