/*
 * performance_analysis: decodes every video below a folder, records the statistics of the pipeline in a SQLite
 * database, and prints a summary. It has the options of SPDL's example of the same name, and a few more; `weir
 * record` is the same program with all options. Their common code is in tools/record/; examples/minimal.c shows a
 * minimal pipeline.
 */
#include <stdio.h>
#include <string.h>

#include <weir/output.h>
#include <weir/version.h>

#include "tools/cli/option_help.h"
#include "tools/record/record_run.h"

typedef struct program_settings {
    const char *dataset_dir;
    bool help;
    bool version;
    record_settings record;
} program_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(program_settings, what)

static const option_row rows[] = {
    { ROW("dataset-dir", dataset_dir, option_folder), .argument = "DIR",
      .help = "folder with the videos, or with folders of them (required)" },
    { ROW("db-path", record.db_path, option_file), .argument = "FILE",
      .help = "database to record in, created if missing (default pipeline_stats.db)" },
    { ROW("log-interval", record.log_interval_ns, option_duration), .argument = "SECONDS",
      .help = "length of one reporting interval (a lap) of the statistics (default 60)" },
    { ROW("concurrency", record.concurrency, option_count32), .argument = "N", .max = 65535,
      .help = "files processed concurrently (default 10)" },
    { ROW("threads", record.threads, option_count32), .argument = "N", .max = 65535,
      .help = "threads of the pool (default: the CPUs this process may use)" },
    { ROW("glob", record.glob, option_text), .argument = "PATTERN",
      .help = "names of the files to decode (default *.mp4)" },
    { ROW("width", record.video.picture.width, option_count32), .argument = "PIXELS", .max = VIDEO_MAX_SIDE,
      .help = "width of the decoded frames (default 128)" },
    { ROW("height", record.video.picture.height, option_count32), .argument = "PIXELS", .max = VIDEO_MAX_SIDE,
      .help = "height of the decoded frames (default 128)" },
    { ROW("max-failures", record.max_failures, record_max_failures), .argument = "N|P%",
      .help = "stop the run when more than N files, or P percent of the files, have failed (default: never)" },
    { ROW("quiet", record.quiet, option_flag), .letter = 'q', .help = "print errors only: no progress, no summary" },
    { ROW("verbose", record.verbose, option_flag), .letter = 'v', .help = "log the metrics of each lap" },
    { ROW("help", help, option_flag), .letter = 'h', .help = "print this and exit" },
    { ROW("version", version, option_flag), .help = "print the version and exit" },
    { 0 },
};

static void print_help(const option_set *set)
{
    puts("Usage: performance_analysis --dataset-dir DIR [options]\n");
    help_print_paragraphs(
        "Decodes every video below DIR, records the statistics of the pipeline and prints a summary. "
        "weir record DIR does the same with more options.");
    options_print(set, 1);
    putchar('\n');
    help_print_paragraphs(RECORD_SIGNALS_HELP);
    help_print_line(
        "Exit status: 0 done, even if some files failed; 1 the run or all files failed, or it could not be recorded "
        "completely; "
        "2 wrong option, folder or database, and nothing was done; 130 stopped by Ctrl-C, 143 by SIGTERM.");
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    program_settings settings = { .record = RECORD_DEFAULTS };
    settings.record.glob = "*.mp4"; /* as SPDL's */
    settings.record.concurrency = 10;
    record_settings *record = &settings.record;
    option_set set = { rows, &settings };
    char problem[OPTION_PROBLEM_BYTES];
    record->program = "performance_analysis";
    record->weir = "weir";
    record->has_full_summary = true;
    record->input_option = "--dataset-dir: ";

    int num_words = options_parse(&set, 1, argc, argv, problem);
    if (num_words < 0)
        return record_refuse(record, "%s", problem);
    if (settings.help) {
        print_help(&set);
        return RECORD_DONE;
    }
    if (settings.version) {
        printf("performance_analysis %s\n", weir_version());
        return RECORD_DONE;
    }
    if (num_words > 0)
        return record_refuse(record, "%s: not an option; the folder goes after --dataset-dir",
                             argv[argc - num_words]);
    if (!settings.dataset_dir)
        return record_refuse(record, "--dataset-dir DIR is missing (see --help)");
    record->inputs = (char *const *)&settings.dataset_dir;
    record->num_inputs = 1;
    return record_run(record);
}
