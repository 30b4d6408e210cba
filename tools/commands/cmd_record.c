/* weir record: decodes videos, images or audio in a pipeline and records its statistics. */
#include <string.h>

#include <weir/files.h>

#include "tools/commands/command_table.h"
#include "tools/record/record_exports.h"
#include "tools/record/record_run.h"

static record_settings settings = RECORD_DEFAULTS;
static const option_set more_sets[] = { VIDEO_SETS(settings.video), { 0 } };

static int run(tool_call *call)
{
    settings.program = "weir record";
    settings.weir = call->program;
    settings.input_option = "";
    settings.inputs = call->words;
    settings.num_inputs = (size_t)call->num_words;
    int exit_status = call->num_words == 0 && !settings.list_path
                          ? tool_refuse(call, "a folder, a file, a URL or --list FILE is missing (see --help)")
                          : record_run(&settings);
    video_settings_free(&settings.video);
    return exit_status;
}

static const tool_made *make_record(void)
{
    static tool_made made;
    made.options = record_export_rows();
    return &made;
}

const tool_command tool_record = {
    .name = "record",
    .words = "DIR|FILE|URL...",
    .max_words = -1,
    .summary = TOOL_RECORD_SUMMARY,
    .help =
        "Decodes all videos in the folders (and their subfolders), files and URLs, several concurrently, and records "
        "the statistics of the pipeline in a database; then prints the summary. The decoded frames are discarded: "
        "the run shows how fast the files can be decoded with these options, what limits the speed, and which files "
        "fail. Frames are 128x128 rgb24 unless --width, --height, --longest, --shortest or --resize none say "
        "otherwise.\n\n"
        "The files are only read. A file that cannot be decoded is counted, logged and recorded with the reason, and "
        "the run continues (see --max-failures). Up to ten failed files are listed at the end. If all files fail, "
        "the exit status is 1.\n\n"
        "In a folder, these extensions are taken as videos, in upper or lower case (--glob selects other "
        "names): " WEIR_VIDEO_EXTENSIONS ".\n\n"
        "Passwords, signatures and tokens in URLs are neither recorded nor shown: http://***@host/a.mp4?token=***. "
        "While it runs, other users may see the command line; URLs in a file (--list) are not in it.\n\n"
        "With --images, still images are decoded; with --audio, the sound of each file. With --tar, the inputs are "
        "tar archives and --glob names the files in them. The pattern *.@(mkv|webm) matches both extensions.\n\n"
        "All frames are decoded, unless one of --at, --frames, --every, --rate, --count, --random, --clip and "
        "--keyframes selects some; these options have the same meaning as in weir frames.\n\n"
        "With --explain the run measures by experiment what limits it. With --tune the run finds concurrency and "
        "threads by itself, within --cpu and --memory. --headspace SPAN says what loading costs a training loop "
        "whose steps take SPAN.\n\n"
        "Under mpirun, srun and torchrun --no-python, each rank decodes its share and records in a database of its "
        "own: pipeline_stats.rank3.db. Rank 0 waits for the others, merges their databases into pipeline_stats.db "
        "and prints one summary. It names ranks that did not finish, and their files; --resume decodes these. See "
        "docs/scale.md.\n\n" RECORD_SIGNALS_HELP " With --trace-last, SIGUSR2 writes a trace.",
    .examples = "weir record videos/\n"
                "weir record videos/ --concurrency 4 --log-interval 10 --db-path run.db\n"
                "# for training: 16 frames of each video, 224x224, in PyTorch's layout\n"
                "weir record videos/ --count 16 --width 224 --height 224 --layout nchw\n"
                "weir record videos/ --explain                  # what limits it, by experiment\n"
                "weir record videos/ --tune --cpu 50%           # finds the settings as it runs\n"
                "weir record videos/ --headspace 50ms           # what loading costs a step\n"
                "weir record pictures/ --images --width 224 --height 224 --resize crop\n"
                "weir record shards/ --tar --glob 'left_*.mp4'\n"
                "weir record https://example.org/clip.mp4 --io-timeout 10s\n"
                "mpirun -n 8 weir record videos/\n"
                "weir record videos/ --resume pipeline_stats.db\n"
                "# for a run of days: a trace of the minute before a file stalls or fails\n"
                "weir record videos/ --trace 'trace-{run}.json.gz' --trace-last 1m\n"
                "find videos/ -name '*.mkv' | weir record --list - --max-failures 5%\n",
    .options = record_rows,
    .settings = &settings,
    .make = make_record,
    .more = more_sets,
    .run = run,
};
