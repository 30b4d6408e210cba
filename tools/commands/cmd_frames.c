/* weir frames: decodes files to arrays, pictures or raw video, or describes one. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video_reader.h>

#include "common/format.h"
#include "common/redact.h"
#include "common/text_escape.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_check.h"
#include "tools/cli/tty.h"
#include "tools/commands/command_table.h"
#include "tools/frames/frame_folder.h"
#include "tools/frames/frame_output.h"
#include "tools/record/video_options.h"

/* Frames per chunk. Few, so that large pictures need little memory too. Larger chunks would only save scaling a
   repeated frame once more in each chunk. */
enum { CHUNK_FRAMES = 8, FORMAT_BY_NAME = FRAME_FORMAT_PNG + 1 };

static const char *const format_names[] = { "npy", "raw", "png", NULL }; /* as frame_format */

static struct settings {
    video_settings video;
    const char *output;
    int format; /* of the output: a frame_format, or FORMAT_BY_NAME */
    bool info;
    bool list;
    bool force;
    record_settings many; /* of several files */
} settings = { .format = FORMAT_BY_NAME, .many = RECORD_DEFAULTS };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "OUT",
      .help = "write the frames: OUT.npy as a NumPy array, OUT.png or OUT-%04d.png as pictures, OUT.raw as raw "
              "video; - is stdout. An older file of that kind is replaced" },
    { ROW("format", format, option_choice), .argument = "NAME", .choices = format_names, .needs = "output",
      .help = "format of the output, whatever its name: npy, png or raw (the default for stdout)" },
    { ROW("force", force, option_flag), .needs = "output", .help = OUTPUT_FORCE_HELP },
    { ROW("info", info, option_flag),
      .help = "print a description of the file, its damage and the decoding times (default without -o)" },
    { ROW("list", list, option_flag), .help = "with --info: also print the time of each frame" },
    { ROW("files", many.list_path, option_file), .argument = "FILE", .heading = "Several files",
      .help = "also the files of this list: a path or a URL in each line; - is stdin" },
    { ROW("glob", many.glob, option_text), .argument = "PATTERN",
      .help = "names of the files in folders and archives (default: all names of videos)" },
    { ROW("tar", many.tar, option_flag), .help = "the inputs are tar archives, or folders of them" },
    { ROW("concurrency", many.concurrency, option_count32), .argument = "N", .max = 65535,
      .help = "files decoded at a time (default: the CPUs this process may use)" },
    { 0 },
};

static const option_set more_sets[] = { VIDEO_SETS(settings.video), { 0 } };

/* ---- what is printed ---------------------------------------------------------------------------------------- */

/* The description, updated with each chunk. */
typedef struct report {
    const tool_call *call;
    const char *path;
    char *shown_path; /* without the secrets of a URL */
    bool has_begun;
    table *frames; /* the list of them; NULL = not wanted */
    uint64_t num_frames;
    uint64_t num_bytes;
    uint64_t num_errors;
    uint64_t num_corrupt_frames;
    uint64_t num_missing_frames;
    weir_decode_cost cost;
    int64_t start_ns;
} report;

static const table_column frame_columns[] = {
    { "frame", "frame", TABLE_COUNT },
    { "pts", "pts", TABLE_COUNT },
    { "time", "time", TABLE_TIME },
};

static void begin_text(const report *r, const weir_frames *frames)
{
    char file_size[WEIR_FORMAT_BYTES];
    weir__text_format_bytes(file_size, (double)frames->cost.size_bytes);
    fputs("file       ", stdout);
    weir__text_escape_to(stdout, r->shown_path);
    printf(frames->cost.size_bytes ? ", %s\n" : "\n", file_size);
    printf("codec      %s, video stream %" PRIu32 " (FFmpeg's stream %" PRIu32 ")\n", frames->codec, frames->stream,
           frames->stream_index);
    printf("size       %" PRIu32 "x%" PRIu32 " in the file, %" PRIu32 "x%" PRIu32 " here\n", frames->source_width,
           frames->source_height, frames->width, frames->height);
    printf("pixels     %s, %s, scaler %s\n", video_pixel_names[frames->pixel], video_layout_names[frames->layout],
           video_scaler_names[frames->scaler]);
    printf("time base  %" PRId32 "/%" PRId32 " s\n%s", frames->time_base_num, frames->time_base_den,
           settings.list ? "\n" : "");
}

static void begin_json(const report *r, const weir_frames *frames)
{
    json_print(stdout, "{'file': %s, 'size_bytes': %g, 'codec': %s, 'stream': %u, 'stream_index': %u, ",
               r->shown_path, frames->cost.size_bytes ? (double)frames->cost.size_bytes : NAN, frames->codec,
               frames->stream, frames->stream_index);
    json_print(stdout, "'source_width': %u, 'source_height': %u, 'width': %u, 'height': %u, 'pix_fmt': %s, ",
               frames->source_width, frames->source_height, frames->width, frames->height,
               video_pixel_names[frames->pixel]);
    json_print(stdout, "'layout': %s, 'scaler': %s, 'time_base': [%d, %d]", video_layout_names[frames->layout],
               video_scaler_names[frames->scaler], frames->time_base_num, frames->time_base_den);
    if (settings.list)
        json_print(stdout, ",\n'frames': ");
}

static void begin_report(report *r, const weir_frames *frames)
{
    table_format format = tool_format(r->call);
    r->has_begun = true;
    if (format == TABLE_TEXT)
        begin_text(r, frames);
    if (format == TABLE_JSON)
        begin_json(r, frames);
    if (settings.list)
        r->frames = table_begin(stdout, format, TABLE_COLUMNS(frame_columns));
}

static void put_frames(report *r, const weir_frames *frames)
{
    if (!r->has_begun)
        begin_report(r, frames);
    if (!r->frames)
        return;
    for (uint32_t i = 0; i < frames->num_frames; i++) {
        bool is_known = frames->pts[i] != WEIR_PTS_UNKNOWN;
        table_count(r->frames, (int64_t)(r->num_frames + i));
        if (!is_known) {
            table_nothing(r->frames);
            table_nothing(r->frames);
            continue;
        }
        table_count(r->frames, frames->pts[i]);
        table_number(r->frames, (double)frames->pts[i] * frames->time_base_num / frames->time_base_den);
    }
}

static double in_seconds(int64_t ns)
{
    return (double)ns / (double)WEIR_SECOND;
}

/* The times of the cost, and their names in item_stats, but for the ending. */
#define TIME_ROW_TIME(field, name) { name, offsetof(weir_decode_cost, field) },
#define TIME_ROW_COUNT(field, name)
#define TIME_ROW_BYTES(field, name)
#define TIME_ROW_TEXT(field, name)
#define TIME_ROW(field, name, kind, unit, meaning) TIME_ROW_##kind(field, name)

static const struct {
    const char *name;
    size_t offset;
} times[] = { WEIR_DECODE_PARTS(TIME_ROW) };

static int64_t time_of(const report *r, size_t index)
{
    return *(const int64_t *)((const char *)&r->cost + times[index].offset);
}

static void end_json(const report *r, double elapsed)
{
    json_print(stdout,
               ",\n'num_frames': %" PRIu64 ", 'num_bytes': %" PRIu64 ", 'num_errors': %" PRIu64
               ", 'num_corrupt_frames': %" PRIu64 ", 'num_missing_frames': %" PRIu64,
               r->num_frames, r->num_bytes, r->num_errors, r->num_corrupt_frames, r->num_missing_frames);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char key[WEIR_PART_NAME_BYTES + sizeof "_time"];
        snprintf(key, sizeof key, "%s_time", times[i].name);
        json_print(stdout, ", %s: %g", key, in_seconds(time_of(r, i)));
    }
    json_print(stdout, ", 'elapsed': %g}\n", elapsed);
}

static void put_damage(FILE *out, const char *start, const report *r)
{
    fprintf(out, "%s%" PRIu64 " packets not decoded, %" PRIu64 " frames patched up, %" PRIu64 " missing\n", start,
            r->num_errors, r->num_corrupt_frames, r->num_missing_frames);
}

static void end_text(const report *r, double elapsed)
{
    char figure[WEIR_FORMAT_BYTES];
    printf("%sframes     %" PRIu64 ", %" PRIu64 " bytes\n", settings.list ? "\n" : "", r->num_frames, r->num_bytes);
    put_damage(stdout, "damage     ", r);
    fputs("time       ", stdout);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        tty_format_time(figure, in_seconds(time_of(r, i)));
        printf("%s%s %s", i ? ", " : "", times[i].name, figure);
    }
    tty_format_time(figure, elapsed);
    printf("\ntook       %s\n", figure);
}

static void end_report(report *r)
{
    double elapsed = in_seconds(weir_clock_ns() - r->start_ns);
    table_end(r->frames);
    if (tool_format(r->call) == TABLE_JSON)
        end_json(r, elapsed);
    else if (tool_format(r->call) == TABLE_TEXT)
        end_text(r, elapsed);
}

/* ---- the reader --------------------------------------------------------------------------------------------- */

static void count(report *r, const weir_frames *frames)
{
    r->num_frames += frames->num_frames;
    r->num_bytes += (uint64_t)frames->num_frames * frames->frame_bytes;
    r->num_corrupt_frames += frames->num_corrupt_frames;
    r->num_errors = frames->num_errors; /* these are of all chunks so far */
    r->num_missing_frames = frames->num_missing_frames;
    r->cost = frames->cost;
}

/* The next frames of the request, or all that are left. WEIR_EOF: none are left. */
static int next_frames(weir_video_reader *reader, bool is_in_chunks, bool *is_done, weir_frames **frames,
                       weir_error *error)
{
    if (is_in_chunks)
        return weir_video_reader_next(reader, frames, error);
    if (*is_done)
        return WEIR_EOF;
    *is_done = true;
    return weir_video_reader_frames(reader, NULL, 0, NULL, 0, frames, error);
}

/* Of what the reader returns: a failure is that of the file, and not of the output. */
static int of_file(int rc, const report *r, weir_error *error)
{
    if (rc < 0)
        snprintf(error->label, sizeof error->label, "%s", r->shown_path);
    return rc;
}

/* Passes all frames to the output and the report; either may be NULL. */
static int take_frames(weir_video_reader *reader, bool is_in_chunks, frame_output *output, report *r,
                       weir_error *error)
{
    weir_frames *frames;
    bool is_done = false;
    int rc = is_in_chunks ? weir_video_reader_begin(reader, NULL, 0, NULL, 0, error) : WEIR_OK;
    rc = of_file(rc, r, error);
    while (rc == WEIR_OK) {
        rc = of_file(next_frames(reader, is_in_chunks, &is_done, &frames, error), r, error);
        if (rc != WEIR_OK)
            break;
        if (output)
            rc = frame_output_add(output, frames, error);
        if (settings.info)
            put_frames(r, frames);
        count(r, frames);
        weir_frames_free(frames);
    }
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

/* The frames of the config, from the path. */
static int read_frames(const weir_video_config *video, frame_output *output, report *r, weir_error *error)
{
    const weir_video_source source = { .path = r->path, .one_request = true };
    weir_video_reader *reader;
    int rc = of_file(weir_video_reader_open(&reader, &source, sizeof source, video, sizeof *video, error), r, error);
    if (rc == WEIR_OK)
        rc = take_frames(reader, video->chunk_frames > 0, output, r, error);
    weir_video_reader_free(reader);
    return rc;
}

/* "FILE: what is wrong with it" */
static int fail_file(const tool_call *call, const weir_error *error)
{
    weir_error named = *error;
    if (error->label[0])
        snprintf(named.message, sizeof named.message, "%.200s: %.290s", error->label, error->message);
    if (error->status == WEIR_ENOTFOUND || error->status == WEIR_ERANGE)
        return tool_refuse(call, "%s", named.message); /* the argument is wrong */
    return tool_fail_early(call, &named);
}

/* What the program's PNG files can hold. */
static bool fits_png(const weir_picture_config *picture)
{
    bool is_planar = picture->pixel == WEIR_PIXEL_YUV420P || picture->pixel == WEIR_PIXEL_YUV420P10;
    return !is_planar && picture->layout != WEIR_LAYOUT_NCHW;
}

static int choose_output_format(const tool_call *call)
{
    frame_format format = (frame_format)settings.format;
    if (settings.format == FORMAT_BY_NAME && !frame_format_of(settings.output, &format))
        return tool_refuse(
            call,
            "%s: weir writes arrays (.npy), pictures (.png) and raw video (.raw); for another name, set "
            "the format with --format",
            settings.output);
    settings.format = (int)format;
    if (settings.format == FRAME_FORMAT_PNG && !fits_png(&settings.video.picture))
        return tool_refuse(
            call, "PNG pictures are rgb24, gray8, rgb48 or gray16, in the layout nhwc (see --pixel and --layout)");
    return TOOL_DONE;
}

static int check_output(const tool_call *call)
{
    bool is_stdout = settings.output && strcmp(settings.output, "-") == 0;
    if (is_stdout && (settings.info || call->shared.json || call->shared.csv))
        return tool_refuse(call, "--info, --json, --csv: not with --output -, which takes stdout");
    if ((call->shared.json || call->shared.csv) && settings.output && !settings.info)
        return tool_refuse(call, "--json, --csv: only with --info");
    if (settings.list && settings.output && !settings.info)
        return tool_refuse(call, "--list: only with --info");
    if (is_stdout && isatty(STDOUT_FILENO))
        return tool_refuse(call, "--output -: stdout is a terminal; write to a pipe or a file");
    return settings.output ? choose_output_format(call) : TOOL_DONE;
}

/* A pipe or a device may never have anything, also one that is named like a video: then a message says so. The
   descriptor is kept open, so that a writer that comes in between does not lose its reader. -1 = it is a file, or
   cannot be opened. */
static int await_pipe(const report *r)
{
    enum { WAIT_MS = 1000 };
    const char *path = strcmp(r->path, "pipe:") == 0 || strcmp(r->path, "pipe:0") == 0 ? "/dev/stdin" : r->path;
    struct stat info;
    if (stat(path, &info) != 0 || !(S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)))
        return -1;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, WAIT_MS) == 0)
        fprintf(stderr, "weir frames: %s is a %s that has nothing yet: waiting for it (Ctrl-C ends that)\n",
                r->shown_path, S_ISFIFO(info.st_mode) ? "pipe" : "device");
    return fd;
}

/* Decodes, writes and prints. WEIR_OK, or the failure with *error filled. */
static int work(const weir_video_config *video, report *r, weir_error *error)
{
    frame_output *output = NULL;
    const char *inputs[] = { r->path, settings.video.input.ca_file };
    const weir_output_rules rules = { .force = settings.force, .inputs = inputs, .num_inputs = inputs[1] ? 2 : 1 };
    int rc = WEIR_OK, pipe_fd = -1;
    if (settings.output)
        rc = frame_output_open(settings.output, (frame_format)settings.format, &rules, &output, error);
    if (rc == WEIR_OK)
        pipe_fd = await_pipe(r);
    if (rc == WEIR_OK)
        rc = read_frames(video, output, r, error);
    if (pipe_fd >= 0)
        close(pipe_fd);
    if (rc == WEIR_OK && output)
        rc = frame_output_close(output, error);
    else
        frame_output_abort(output);
    if (r->has_begun)
        end_report(r);
    return rc;
}

/* Whether there is more than one file to decode. */
static bool is_folder(const tool_call *call)
{
    return settings.many.list_path || settings.many.tar || call->num_words > 1 ||
           (call->num_words == 1 && weir_output_is(call->words[0], WEIR_OUTPUT_FOLDER));
}

static int check_folder(const tool_call *call)
{
    weir_sampling chosen = sampling_choose(&settings.video.sampling);
    struct stat info;
    if (!settings.output)
        return tool_refuse(call, "several files are written to a folder: -o FOLDER is missing");
    if (chosen.what == WEIR_SAMPLE_ALL && chosen.start_ns == 0 && chosen.end_ns == 0 && chosen.count == 0)
        return tool_refuse(
            call, "all frames of several files are too many: choose some of each, for example with --count 16");
    if (settings.info || settings.list || call->shared.json || call->shared.csv)
        return tool_refuse(call, "--info, --list, --json, --csv: only for one file");
    const char *slash = strrchr(settings.output, '/'), *name = slash ? slash + 1 : settings.output;
    bool is_folder = stat(settings.output, &info) == 0 ? S_ISDIR(info.st_mode) : !strchr(name, '.');
    if (!is_folder || strcmp(settings.output, "-") == 0 || settings.format == FRAME_FORMAT_RAW)
        return tool_refuse(call, "%s: several files can only be written as arrays or pictures, to a folder (NAME/)",
                           settings.output);
    return TOOL_DONE;
}

static int run_folder(const tool_call *call)
{
    int exit_status = check_folder(call);
    record_settings *many = &settings.many;
    many->program = "weir frames";
    many->weir = call->program;
    many->input_option = "";
    many->inputs = call->words;
    many->num_inputs = (size_t)call->num_words;
    many->video = settings.video;
    many->chunk_frames = 0;
    const weir_picture_config *size = &settings.video.picture;
    if (!size->width && !size->height && !size->longest && !size->shortest)
        many->video.resize = VIDEO_RESIZE_NONE;
    if (!many->concurrency)
        many->concurrency = weir_cpu_budget();
    frame_folder job = { .settings = many, .path = settings.output, .force = settings.force };
    job.format = settings.format == FORMAT_BY_NAME ? FRAME_FORMAT_NPY : (frame_format)settings.format;
    if (exit_status == TOOL_DONE)
        exit_status = frame_folder_write(&job);
    video_settings_free(&settings.video);
    return exit_status;
}

static int run(tool_call *call)
{
    if (is_folder(call))
        return run_folder(call);
    if (call->num_words == 0)
        return tool_refuse(call, "usage: weir frames %s [options] (see weir frames --help)", call->command->words);
    if (weir_output_is(call->words[0], WEIR_OUTPUT_INDEX))
        return tool_refuse(call, "%s: an index of a dataset, not a video; weir index shows its files",
                           call->words[0]);
    report r = { .call = call, .path = call->words[0], .start_ns = weir_clock_ns() };
    r.shown_path = memory_copy(r.path);
    weir__address_redact(r.shown_path);
    weir_error error = { 0 };
    weir_video_config video;
    weir_picture_config picture;
    char problem[OPTION_PROBLEM_BYTES];
    int exit_status =
        video_configure(&settings.video, &picture, &video, problem) ? TOOL_DONE : tool_refuse(call, "%s", problem);
    if (exit_status == TOOL_DONE)
        exit_status = check_output(call);
    if (exit_status == TOOL_DONE) {
        settings.info |= !settings.output;
        settings.list |= call->shared.csv; /* CSV holds nothing else */
        video.chunk_frames = weir_sampling_is_rising(&video.sampling) ? CHUNK_FRAMES : 0;
        settings.video.input.allow |= WEIR_ALLOW_PIPES; /* reading /dev/stdin was asked for */
        weir_log_set_level(WEIR_LOG_ERROR);             /* the failure is reported below */
        int rc = work(&video, &r, &error);
        exit_status = rc == WEIR_OK ? tool_finish(call) : fail_file(call, &error);
        if (rc == WEIR_OK && !settings.info && r.num_errors + r.num_corrupt_frames + r.num_missing_frames > 0) {
            fprintf(stderr, "weir frames: %s: ", r.shown_path);
            put_damage(stderr, "damaged: ", &r);
        }
    }
    video_settings_free(&settings.video);
    free(r.shown_path);
    return exit_status;
}

const tool_command tool_frames = {
    .name = "frames",
    .words = "FILE|DIR|URL...",
    .max_words = -1,
    .summary = TOOL_FRAMES_SUMMARY,
    .help =
        "Decodes one file, URL or pipe (/dev/stdin, pipe:0), as a pipeline with the same options would. The output "
        "OUT.npy is a file that numpy.load() reads: uint8 (uint16 for pixels of 16 bits), of the shape [frames, "
        "height, width, channels], or "
        "[frames, channels, height, width] with --layout nchw; yuv420p, whose planes differ in size, is [frames, "
        "values]. With --clips, [clips] comes first. OUT.png is one picture; with %d or %04d in its name there is "
        "one "
        "for each frame, numbered from "
        "0. Raw video, to OUT.raw, OUT.rgb, OUT.yuv or stdout, is the bytes of the frames and nothing else.\n\n"
        "--info (the default without -o) prints a description of the file, damaged and missing frames, and where "
        "the time went; --list adds each frame's timestamp and time. As --json it is one object; --csv is the "
        "list alone. Without --info, damage is reported on stderr.\n\n"
        "All frames are decoded, unless one of --at, --frames, --every, --rate, --count, --random, --clip "
        "and --keyframes selects some. --window can be combined with all of these except --at and --frames, and "
        "--first with --every, --rate and --keyframes; both also work alone. Only what the selected frames need "
        "is decoded. Without --width, --height, --longest and --shortest the frames have the file's size.\n\n"
        "Frames are numbered from 0, in presentation order. Times are in seconds or have a unit (250ms, 1.5m, "
        "2h); --at also accepts hours:minutes:seconds. They count from the first frame, which has time 0 "
        "whatever its timestamp is. With --origin stream, they are the file's own timestamps, which --list prints. A "
        "frame number beyond the end is an error. So is a time before the start or after the end, unless it "
        "is within one frame's duration of the video, or --outside clamp is given.\n\n"
        "If damage has cost frames that the file's container lists (as MP4 does), those behind them keep their "
        "numbers and times: --frames 58 is the same frame as in the whole file. If 58 itself is lost, it is left out "
        "and counted as missing; alone, or with --strict, that is an error. --strict does not look at what the "
        "selected frames do not need.\n\n"
        "Of a folder (with its subfolders), a list, archives or several files, -o names a folder: the frames that "
        "were chosen of a/clip.mp4 become FOLDER/a/clip.mp4.npy, or FOLDER/a/clip.mp4/0000.png, ... with --format "
        "png. Several files are decoded at a time. One that cannot be decoded is logged and left out; if all fail, "
        "the exit status is 1.\n\n"
        "Frames of one file are written as they are decoded, so long videos need hardly more memory than short ones. "
        "Only the frames of a list that jumps back (--at 5,1) are kept until the last one is decoded.",
    .examples =
        "weir frames clip.mp4\n"
        "weir frames clip.mp4 --width 128 --height 128 -o clip.npy\n"
        "# 16 frames for a training step, from the whole clip or from two seconds of it\n"
        "weir frames clip.mp4 --count 16 --width 224 --height 224 -o clip.npy\n"
        "weir frames clip.mp4 --random 16 --length 2s --seed 7 -o clip.npy\n"
        "# two clips of 16 frames, every 4th one, from random starts: an array [2, 16, 224, 224, 3]\n"
        "weir frames clip.mp4 --clip 16 --stride 4 --clips 2 --start random --width 224 --height 224 -o clip.npy\n"
        "# 16 frames of each video of a dataset: an array for each\n"
        "weir frames videos/ --count 16 --width 224 --height 224 -o arrays/\n"
        "# what is shown there? one picture a minute, and one moment\n"
        "weir frames film.mkv --rate 1/60 --width 160 -o minute-%04d.png\n"
        "weir frames film.mkv --at 0:01:03.2 -o moment.png\n"
        "weir frames film.mkv --window 10m:11m --every 5 --list\n"
        "# raw video for another program\n"
        "weir frames clip.mp4 --width 320 --height 240 -o - |\n  ffplay -f rawvideo -pixel_format rgb24 "
        "-video_size 320x240 -\n"
        "# is the scaler worth it?\n"
        "weir frames clip.mp4 --width 224 --height 224 --scaler exact -o x.npy --info\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .more = more_sets,
    .run = run,
};
