/* weir-bench: measures weir, compared with other programs and libraries. Each bench is a subcommand; see bench.h. */
#include <stdio.h>
#include <string.h>

#include <weir/output.h>
#include <weir/version.h>

#include "bench/cli/bench.h"
#include "bench/cli/bench_options.h"
#include "common/similar_word.h"

typedef struct bench_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} bench_command;

static const bench_command commands[] = {
#ifdef WEIR_BENCH_STAGES
    { "decode", bench_decode, "a folder of videos in the pipeline, compared with a bare FFmpeg loop" },
    { "peers", bench_decode_peers, "the same compared with SPDL, PyAV, decord, OpenCV and torchcodec" },
    { "draws", bench_draws, "one random frame of a file: opened, with its packet table, kept open" },
#endif
    { "costs", bench_costs, "of a pipeline, a span, a draw from 10^9 items, a conversion to floats" },
    { "engine", bench_engine, "cost of passing an item on, compared with other libraries" },
    { "stop", bench_stop, "time to stop 64 slots" },
#ifdef WEIR_BENCH_ADVICE
    { "recording", bench_recording, "answers about a day of laps of one second" },
    { "verdict", bench_verdict, "how often weir explain is right about pipelines of known limits" },
#endif
    { NULL, NULL, NULL },
};

static int show_usage(FILE *to, int status)
{
    fprintf(to, "Usage: weir-bench SUBCOMMAND [options]\n\n");
    for (const bench_command *command = commands; command->name; command++)
        fprintf(to, "  %-10s%s\n", command->name, command->summary);
    fprintf(to, "\nweir-bench SUBCOMMAND --help lists its options.\n");
    return status;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    if (argc < 2)
        return show_usage(stderr, 2);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_usage(stdout, 0);
    if (strcmp(argv[1], "--version") == 0)
        return printf("weir-bench %s\n", weir_version()) < 0;
    for (const bench_command *command = commands; command->name; command++) {
        if (strcmp(command->name, argv[1]) == 0)
            return command->run(argc - 1, argv + 1);
    }
    const char *names[sizeof commands / sizeof commands[0]];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        names[i] = commands[i].name;
    const char *similar = weir__most_similar(argv[1], names, sizeof names / sizeof names[0]);
    fprintf(stderr, "weir-bench: %s: no such subcommand%s%s%s (see weir-bench --help)\n", argv[1],
            similar ? "; did you mean " : "", similar ? similar : "", similar ? "?" : "");
    return 2;
}
