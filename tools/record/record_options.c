#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/record/record_settings.h"

static bool parse_max_failures(const char *text, void *value)
{
    char digits[16];
    uint64_t number;
    size_t length = strlen(text);
    bool is_percent = length > 0 && text[length - 1] == '%';
    if (length >= sizeof digits)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)(is_percent ? length - 1 : length), text);
    if (!option_parse_number(digits, is_percent ? 100 : INT32_MAX, &number))
        return false;
    weir_max_failures count = { .kind = WEIR_FAILURES_COUNT, .count = (int64_t)number };
    weir_max_failures rate = { .kind = WEIR_FAILURES_RATE, .num = (uint32_t)number, .den = 100 };
    *(weir_max_failures *)value = is_percent ? rate : count;
    return true;
}

const option_kind record_max_failures = { .parse = parse_max_failures,
                                          .wanted = "a number of files (7) or a share of them (5%)" };

static const char *const order_names[] = { "completion", "input", NULL }; /* as weir_order */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(record_settings, what)

const option_row record_rows[] = {
    { ROW("glob", glob, option_text), .heading = "Which files", .argument = "PATTERN",
      .help = "pattern for the names of files to decode (default: the extensions of videos, images or audio that "
              "FFmpeg knows, in upper or lower case)" },
    { ROW("sorted", sorted, option_flag), .help = "read the files of a folder in the order of their names" },
    { ROW("list", list_path, option_file), .argument = "FILE",
      .help = "also decode the paths and URLs in FILE, one per line, or a table (.csv, .tsv, .jsonl, or a first line "
              "such as "
              "path,start,end) whose rows are windows of files, in seconds; - is stdin" },
    { ROW("tar", tar, option_flag),
      .help = "the inputs are tar archives, or folders of them; decode the files in them" },
    { ROW("tar-glob", tar_glob, option_text), .argument = "PATTERN", .needs = "tar",
      .help = "with --tar: pattern for the names of archives in a folder (default *.tar*)" },
    { ROW("images", images, option_flag), .help = "decode still images" },
    { ROW("audio", audio, option_flag), .excludes = "images", .help = "decode the audio of each file" },
    { ROW("sample-rate", sample_rate, option_count32), .argument = "HZ", .needs = "audio",
      .help = "with --audio: resample to this rate (default: as in the file)" },
    { ROW("channels", channels, option_count32), .argument = "N", .max = 64, .needs = "audio",
      .help = "with --audio: mix to N channels (default: as in the file)" },
    { ROW("planar", planar, option_flag), .needs = "audio", .help = "with --audio: one channel after the other" },

    { ROW("concurrency", concurrency, option_count32), .heading = "Pipeline", .argument = "N", .max = 65535,
      .help = "files processed concurrently (default: as many as threads)" },
    { ROW("threads", threads, option_count32), .argument = "N", .max = 65535,
      .help = "threads of the pool (default: the CPUs this process may use)" },
    { ROW("chunk-frames", chunk_frames, option_count32), .argument = "N", .excludes = "audio images",
      .help = "split long videos into chunks of N frames, each a separate item downstream (default 512)" },
    { ROW("clip-items", clip_items, option_flag), .excludes = "audio images",
      .help =
          "with --clips: each clip of a file is a separate item downstream, not one array with an axis of clips" },
    { ROW("queue-items", queue_items, option_count32), .argument = "N", .max = 65535,
      .help = "capacity of the queue after decode (default 2)" },
    { ROW("queue-bytes", queue_bytes, option_bytes), .argument = "SIZE",
      .help = "the same in bytes, exceeded by at most one item (default: no limit)" },
    { ROW("source-queue-items", source_queue_items, option_count32), .argument = "N", .max = 65535,
      .help = "capacity of the queue after the source (default 2)" },
    { ROW("sink-queue-items", sink_queue_items, option_count32), .argument = "N", .max = 65535,
      .help = "capacity of the sink's queue (default 3)" },
    { ROW("order", output_order, option_choice), .argument = "ORDER", .choices = order_names,
      .help = "order of the results: completion (the default) or input" },
    { ROW("epochs", epochs, option_count32), .argument = "N",
      .help = "go through the files N times (default 1; with --headspace and --explain, as often as they need)" },
    { ROW("deadline", deadline_ns, option_duration), .argument = "SPAN",
      .help = "a file that takes longer than SPAN fails (default: no limit)" },
    { ROW("isolate", isolate, option_flag),
      .help = "decode in child processes, one per concurrent file: a file that crashes the decoder, or that "
              "--deadline cannot stop otherwise, is one failure" },
    { ROW("isolate-memory", isolate_memory, option_bytes), .argument = "SIZE", .needs = "isolate",
      .help = "with --isolate: address space of each child, beyond that of the program itself (default: no limit)" },
    { ROW("no-sandbox", no_sandbox, option_flag), .needs = "isolate",
      .help = "with --isolate: let the child processes open files, as filters with fonts or tables need" },
    { ROW("max-failures", max_failures, record_max_failures), .argument = "N|P%",
      .help = "stop the run when more than N files, or P percent of the files, have failed (default: never)" },
    { ROW("headspace", headspace_step_ns, option_duration), .argument = "SPAN", .excludes = "resume",
      .help = "measure what loading costs a training loop that takes SPAN for each result: first with this pipeline, "
              "then with results from memory; then stop" },
    { ROW("explain", explain, option_flag), .excludes = "headspace resume tune",
      .help =
          "while it runs, change slots and threads for some seconds and back, measure what that brings, and say what "
          "limits the run. Without --epochs, files are repeated until that is known" },
    { ROW("tune", tune, option_flag), .excludes = "headspace",
      .help =
          "change concurrency and threads while it runs, to decode as much as possible; events \"tuner\" say why" },
    { ROW("cpu", cpu_share, option_share), .argument = "P%", .needs = "tune",
      .help = "with --tune: use at most this share of the CPUs" },
    { ROW("memory", memory_bytes, option_bytes), .argument = "SIZE", .needs = "tune",
      .help = "with --tune: use at most this much memory" },

    { ROW("db-path", db_path, option_file), .heading = "Recording", .argument = "FILE",
      .help = "database to record in, created if missing (default pipeline_stats.db)" },
    { ROW("log-interval", log_interval_ns, option_duration), .argument = "SECONDS",
      .help = "length of one reporting interval (a lap) of the statistics (default 60)" },
    { ROW("keep", keep_s, option_span), .argument = "SPAN", .excludes = "all-items resume",
      .help =
          "join laps that are older than SPAN (12h, 7d), up to 64 in one, and delete records of single files of that "
          "time: the database grows less, and totals stay (default: keep all)" },
    { ROW("rank", rank, option_number), .argument = "N", .max = INT32_MAX,
      .help = "number of this process among several (default: as set by mpirun, srun or torchrun, or 0)" },
    { ROW("world", world, option_count), .argument = "N", .max = INT32_MAX,
      .help = "number of processes that share the files (default: as set by the launcher, or 1)" },
    { ROW("wait", wait_ns, option_duration), .argument = "SPAN",
      .help = "rank 0 waits this long for a rank that records nothing (default: 30 s and two laps)" },
    { ROW("all-items", all_items, option_flag),
      .help = "record the cost of every file (default: damaged files, and of each lap the ten slowest and ten "
              "others; with several processes, every file)" },
    { ROW("stacks", stacks, option_flag),
      .help = "also record which functions take the CPU time, 99 samples in each second of it; weir query --by "
              "function shows them" },
    { ROW("resume", resume_path, option_file), .argument = "DB", .excludes = "tar",
      .help = "skip the files that a run with --all-items has finished, as recorded in DB and in the databases of "
              "the ranks beside it" },
    { ROW("retry-failed", retry_failed, option_flag), .needs = "resume",
      .help = "with --resume: also decode the files that have failed and were not decoded since" },
    { ROW("dry-run", dry_run, option_flag), .help = "print the files that would be decoded, and exit" },
    { ROW("force", force, option_flag),
      .help = "an export replaces a file of another kind, too; but never one that is decoded or read" },
    { ROW("quiet", quiet, option_flag), .letter = 'q',
      .help = "print errors only: no progress, no summary (weir summary prints it later)" },
    { ROW("verbose", verbose, option_flag), .letter = 'v', .excludes = "quiet",
      .help = "log the metrics of each lap" },
    { 0 },
};

/* Names the first option of record_rows that says nothing of a stage; those before it do, but for some. */
static const char end_of_stages[] = "max-failures";
static const char *const not_of_stages[] = { "threads", "epochs" };

const option_row *record_stage_rows(void)
{
    static option_row rows[sizeof record_rows / sizeof record_rows[0]];
    size_t count = 0;
    for (const option_row *row = record_rows; row->name && strcmp(row->name, end_of_stages) != 0; row++) {
        bool is_other = false;
        for (size_t i = 0; i < sizeof not_of_stages / sizeof not_of_stages[0]; i++)
            is_other |= strcmp(row->name, not_of_stages[i]) == 0;
        if (!is_other)
            rows[count++] = *row;
    }
    rows[count] = (option_row){ 0 };
    return rows;
}
