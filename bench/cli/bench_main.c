/* weir-bench: measures weir, beside what it compares with. Each bench is a subcommand; see bench.h. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

typedef struct bench_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} bench_command;

static const bench_command commands[] = {
#ifdef WEIR_BENCH_STAGES
    { "decode", bench_decode, "a folder of videos through the pipeline, beside a bare FFmpeg loop" },
    { "peers", bench_decode_peers, "the same beside SPDL, PyAV, decord, OpenCV and torchcodec" },
#endif
    { "engine", bench_engine, "what it costs to pass an item on, beside other libraries" },
    { "size", bench_size, "what a pipeline, a stage and a slot take before there is any item" },
    { "stop", bench_stop, "how long it takes to stop 64 slots" },
    { NULL, NULL, NULL },
};

static int show_usage(FILE *to, int status)
{
    fprintf(to, "usage: weir-bench COMMAND [OPTIONS]\n\n");
    for (const bench_command *command = commands; command->name; command++)
        fprintf(to, "  %-10s%s\n", command->name, command->summary);
    fprintf(to, "\nweir-bench COMMAND --help tells a command's options.\n");
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return show_usage(stderr, 2);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_usage(stdout, 0);
    for (const bench_command *command = commands; command->name; command++) {
        if (strcmp(command->name, argv[1]) == 0)
            return command->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "weir-bench: unknown command: %s\n", argv[1]);
    return show_usage(stderr, 2);
}
