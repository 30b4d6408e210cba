/* weir frames: what the decode stage makes of one file: as an array in a .npy file, as a description, or both. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/escape.h>
#include <weir/list.h>
#include <weir/npy.h>
#include <weir/video.h>

#include "command_table.h"
#include "format.h"
#include "sampling_options.h"

enum { FIT_NONE = WEIR_RESIZE_CROP + 1 };

/* Frames in a piece. As few as cost nothing, so that pictures of any size take little memory: scaling a frame that is
   repeated again in each piece is all there is to be saved with more. */
enum { PIECE_FRAMES = 8 };

static const char *const fit_names[] = { "pad", "stretch", "crop", "none", NULL };      /* as weir_resize */
static const char *const pixel_names[] = { "rgb24", "gray8", "yuv420p", NULL };         /* as weir_pixel */
static const char *const layout_names[] = { "nhwc", "nchw", NULL };                     /* as weir_layout */
static const char *const scaler_names[] = { "default", "exact", "zimg", "fast", NULL }; /* as weir_scaler_kind */

static struct settings {
    int64_t width, height; /* 0 = not given */
    int fit, pixel, layout, scaler;
    const char *filter;
    bool no_autorotate;
    sampling_settings sampling;
    bool strict;
    double min_share; /* 0 = not given */
    int64_t max_frames, max_pixels;
    const char *output;
    bool info;
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "OUT.npy",
      .help = "write the frames as NumPy's array; an older file of that name is replaced" },
    { ROW("info", info, option_flag),
      .help = "print what the file is, each frame's time and what the work cost (default without -o)" },
    { ROW("at", sampling.at, sampling_times), .argument = "TIMES",
      .help = "the frames shown at these times, in this order: 1.5,250ms,2m,0:01:03.2" },
    { ROW("frames", sampling.indices, sampling_indices), .argument = "NUMBERS",
      .help = "the frames of these numbers, in this order: 0,10,20; -1 is the last one" },
    { ROW("every", sampling.every, option_count), .argument = "K", .help = "every K-th frame, the first one first" },
    { ROW("rate", sampling.rate, sampling_rate), .argument = "R",
      .help = "R frames a second (5, 29.97, 30000/1001), repeated or left out as needed" },
    { ROW("count", sampling.count, option_count), .argument = "N",
      .help = "N frames spread evenly: the middles of N equal parts" },
    { ROW("random", sampling.random, option_count), .argument = "N",
      .help = "N different frames at random, in order; the same ones for the same --seed" },
    { ROW("keyframes", sampling.keyframes, option_flag), .help = "the keyframes alone" },
    { ROW("window", sampling.window, sampling_window), .argument = "START:END",
      .help = "look only at the frames from START on and before END: 10:20, 90s:2m, 10: or :2.5" },
    { ROW("first", sampling.first, option_count), .argument = "N",
      .help = "no more than the first N frames of those chosen" },
    { ROW("stretch", sampling.stretch, sampling_stretch), .argument = "LENGTH",
      .help = "with --random: all of them from one stretch, put at random, of so many frames (32f) or so long (2s)" },
    { ROW("seed", sampling.seed, sampling_seed), .argument = "S",
      .help = "with --random: what chance depends on (default 0)" },
    { ROW("width", width, option_count), .argument = "W",
      .help = "of the result, in pixels (default: as in the file)" },
    { ROW("height", height, option_count), .argument = "H", .help = "of the result (default: as in the file)" },
    { ROW("resize", fit, option_choice), .argument = "HOW", .choices = fit_names,
      .help = "pad (with black, the default), stretch, crop, or none: the file's own size" },
    { ROW("pix-fmt", pixel, option_choice), .argument = "FORMAT", .choices = pixel_names,
      .help = "rgb24 (the default), gray8 or yuv420p" },
    { ROW("layout", layout, option_choice), .argument = "ORDER", .choices = layout_names,
      .help = "nhwc (the default) or nchw" },
    { ROW("scaler", scaler, option_choice), .argument = "NAME", .choices = scaler_names,
      .help = "exact (FFmpeg's swscale), zimg, fast, or default" },
    { ROW("filter", filter, option_text), .argument = "DESC",
      .help = "FFmpeg filters that the frames go through before they are scaled: hflip,crop=in_w/2" },
    { ROW("no-autorotate", no_autorotate, option_flag), .help = "leave pictures as they are coded, not upright" },
    { ROW("strict", strict, option_flag),
      .help = "fail on any damage, instead of counting it and giving what can be decoded" },
    { ROW("min-share", min_share, option_real), .argument = "SHARE",
      .help = "fail if damage leaves less than this share, up to 1, of the frames (default: one is enough)" },
    { ROW("max-frames", max_frames, option_count), .argument = "N",
      .help = "fail if the result would be more than N frames (default 4194304)" },
    { ROW("max-pixels", max_pixels, option_count), .argument = "N",
      .help = "fail if the file's pictures have more than N pixels (default 67108864)" },
    { 0 },
};

/* ---- what is printed ---------------------------------------------------------------------------------------- */

/* The description, while the frames come in pieces. */
typedef struct report {
    const tool_call *call;
    const char *path;
    table *frames; /* NULL = not begun */
    uint64_t num_frames;
    uint64_t num_bytes;
    uint64_t num_errors;
    uint64_t num_corrupt_frames;
    uint64_t num_missing_frames;
    weir_item_cost cost;
    int64_t start_ns;
} report;

static const table_column frame_columns[] = {
    { "frame", "frame", TABLE_COUNT },
    { "pts", "pts", TABLE_COUNT },
    { "time", "time", TABLE_TIME },
};

enum { NUM_FRAME_COLUMNS = sizeof frame_columns / sizeof frame_columns[0] };

static void begin_text(const report *r, const weir_frames *frames)
{
    char file_size[WEIR_FIGURE_BYTES];
    weir_text_format_bytes(file_size, (double)frames->cost.size_bytes);
    fputs("file       ", stdout);
    weir_text_escape_to(stdout, r->path);
    printf(frames->cost.size_bytes ? ", %s\n" : "\n", file_size);
    printf("codec      %s\n", frames->codec);
    printf("size       %" PRIu32 "x%" PRIu32 " in the file, %" PRIu32 "x%" PRIu32 " here\n", frames->source_width,
           frames->source_height, frames->width, frames->height);
    printf("pixels     %s, %s, scaler %s\n", pixel_names[frames->pixel], layout_names[frames->layout],
           scaler_names[frames->scaler]);
    printf("time base  %" PRId32 "/%" PRId32 " s\n\n", frames->time_base_num, frames->time_base_den);
}

static void begin_json(const report *r, const weir_frames *frames)
{
    fputs("{\"file\": ", stdout);
    json_string(stdout, r->path);
    fputs(", \"size_bytes\": ", stdout);
    if (frames->cost.size_bytes)
        printf("%" PRIu64, frames->cost.size_bytes);
    else
        fputs("null", stdout);
    fputs(", \"codec\": ", stdout);
    json_string(stdout, frames->codec);
    printf(", \"source_width\": %" PRIu32 ", \"source_height\": %" PRIu32, frames->source_width,
           frames->source_height);
    printf(", \"width\": %" PRIu32 ", \"height\": %" PRIu32, frames->width, frames->height);
    printf(", \"pix_fmt\": \"%s\", \"layout\": \"%s\", \"scaler\": \"%s\"", pixel_names[frames->pixel],
           layout_names[frames->layout], scaler_names[frames->scaler]);
    printf(", \"time_base\": [%" PRId32 ", %" PRId32 "],\n\"frames\": ", frames->time_base_num,
           frames->time_base_den);
}

static void put_frames(report *r, const weir_frames *frames)
{
    table_format format = tool_format(r->call);
    if (!r->frames && format == TABLE_TEXT)
        begin_text(r, frames);
    if (!r->frames && format == TABLE_JSON)
        begin_json(r, frames);
    if (!r->frames)
        r->frames = table_begin(stdout, format, frame_columns, NUM_FRAME_COLUMNS);
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

/* Where the time went, as it is named in item_stats. */
typedef struct phase {
    const char *title;
    const char *name;
    int64_t ns;
} phase;

enum { NUM_PHASES = 4 };

static void list_phases(const report *r, phase phases[NUM_PHASES])
{
    const weir_item_cost *cost = &r->cost;
    const phase all[NUM_PHASES] = {
        { "open", "open_time", cost->open_ns },
        { "demux", "demux_time", cost->demux_ns },
        { "decode", "decode_time", cost->decode_ns },
        { "scale", "scale_time", cost->scale_ns },
    };
    memcpy(phases, all, sizeof all);
}

static double in_seconds(int64_t ns)
{
    return (double)ns / (double)WEIR_SECOND;
}

static void end_json(const report *r, const phase phases[NUM_PHASES], double elapsed)
{
    printf(",\n\"num_frames\": %" PRIu64 ", \"num_bytes\": %" PRIu64 ", \"num_errors\": %" PRIu64
           ", \"num_corrupt_frames\": %" PRIu64 ", \"num_missing_frames\": %" PRIu64,
           r->num_frames, r->num_bytes, r->num_errors, r->num_corrupt_frames, r->num_missing_frames);
    for (size_t i = 0; i < NUM_PHASES; i++) {
        printf(", \"%s\": ", phases[i].name);
        json_number(stdout, in_seconds(phases[i].ns));
    }
    fputs(", \"elapsed\": ", stdout);
    json_number(stdout, elapsed);
    puts("}");
}

static void end_text(const report *r, const phase phases[NUM_PHASES], double elapsed)
{
    char figure[WEIR_FIGURE_BYTES];
    printf("\nframes     %" PRIu64 ", %" PRIu64 " bytes\n", r->num_frames, r->num_bytes);
    printf("damage     %" PRIu64 " packets not decoded, %" PRIu64 " frames patched up, %" PRIu64 " missing\n",
           r->num_errors, r->num_corrupt_frames, r->num_missing_frames);
    fputs("time       ", stdout);
    for (size_t i = 0; i < NUM_PHASES; i++) {
        weir_text_format_time(figure, in_seconds(phases[i].ns));
        printf("%s%s %s", i ? ", " : "", phases[i].title, figure);
    }
    weir_text_format_time(figure, elapsed);
    printf("\ntook       %s\n", figure);
}

static void end_report(report *r)
{
    double elapsed = in_seconds(weir_clock_ns() - r->start_ns);
    phase phases[NUM_PHASES];
    list_phases(r, phases);
    table_end(r->frames);
    if (tool_format(r->call) == TABLE_JSON)
        end_json(r, phases, elapsed);
    else if (tool_format(r->call) == TABLE_TEXT)
        end_text(r, phases, elapsed);
}

/* ---- the file that is written -------------------------------------------------------------------------------- */

static char *part_path; /* what there is of it until it is whole; NULL = nothing */

/* Somebody interrupts us: half an array is of no use. All of this may be called in a signal handler. */
static void end_by_signal(int number)
{
    unlink(part_path);
    raise(number); /* its own effect is back (SA_RESETHAND), and comes when this handler ends */
}

/* Signals wait until it is known what there is to remove. */
static int open_output(weir_npy **npy, weir_error *error)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction before, ours = { .sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND };
    sigset_t waiting, mask;
    sigemptyset(&ours.sa_mask);
    sigemptyset(&waiting);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&waiting, signals[i]);
    pthread_sigmask(SIG_BLOCK, &waiting, &mask);
    int rc = weir_npy_open(npy, settings.output, error);
    part_path = rc == WEIR_OK ? strdup(weir_npy_part(*npy)) : NULL;
    for (size_t i = 0; part_path && i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return rc == WEIR_OK && !part_path ? weir_error_set(error, WEIR_ENOMEM, 0, "out of memory") : rc;
}

/* ---- the pipeline ------------------------------------------------------------------------------------------- */

static weir_video_config describe_video(const weir_sampling *sampling)
{
    bool keeps_size = settings.fit == FIT_NONE;
    return (weir_video_config){
        .width = (uint32_t)settings.width,
        .height = (uint32_t)settings.height,
        .resize = keeps_size ? WEIR_RESIZE_STRETCH : (weir_resize)settings.fit,
        .pixel = (weir_pixel)settings.pixel,
        .layout = (weir_layout)settings.layout,
        .scaler = (weir_scaler_kind)settings.scaler,
        .filter = settings.filter,
        .no_autorotate = settings.no_autorotate,
        .sampling = *sampling,
        .seed = settings.sampling.seed.number,
        .piece_frames = weir_sampling_is_rising(sampling) ? PIECE_FRAMES : 0,
        .damage = settings.strict ? WEIR_DAMAGE_STRICT : WEIR_DAMAGE_TOLERANT,
        .min_share = settings.min_share,
        .max_frames = (uint64_t)settings.max_frames,
        .max_pixels = (uint64_t)settings.max_pixels,
    };
}

static int build(const char *path, const weir_sampling *sampling, weir_pipeline **pipeline, weir_error *error)
{
    weir_video_config video = describe_video(sampling);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_builder_pipe(builder, &weir_video_decode, &video, &(weir_stage_options){ .queue_items = 1 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    return weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1, .no_statistics = true }, pipeline,
                              error);
}

static void count(report *r, const weir_frames *frames)
{
    r->num_frames += frames->num_frames;
    r->num_bytes += (uint64_t)frames->num_frames * frames->frame_bytes;
    r->num_corrupt_frames += frames->num_corrupt_frames;
    r->num_errors = frames->num_errors; /* these are of all pieces so far */
    r->num_missing_frames = frames->num_missing_frames;
    r->cost = frames->cost;
}

/* All that comes out of the pipeline, into the file and the report; either may be NULL. */
static int take_frames(weir_pipeline *pipeline, weir_npy *npy, report *r, weir_error *error)
{
    weir_item item;
    int rc;
    while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *frames = item.data;
        if (npy)
            rc = weir_npy_add_frames(npy, frames, error);
        if (settings.info)
            put_frames(r, frames);
        count(r, frames);
        weir_item_release(&item);
        if (rc != WEIR_OK)
            return rc;
    }
    int failure = weir_pipeline_stage_error(pipeline, "decode", error);
    if (failure != WEIR_OK)
        return failure;
    return rc == WEIR_EOF ? WEIR_OK : weir_error_set(error, rc, 0, "%s", weir_status_text(rc));
}

/* "FILE: what is wrong with it" */
static int fail_file(const tool_call *call, const weir_error *error)
{
    weir_error named = *error;
    if (error->label[0])
        snprintf(named.message, sizeof named.message, "%.200s: %.290s", error->label, error->message);
    if (error->status == WEIR_ENOTFOUND)
        return tool_refuse(call, "%s", named.message); /* the argument is wrong */
    return tool_fail_early(call, &named);
}

static int check(const tool_call *call, weir_sampling *sampling)
{
    char problem[256];
    if (!sampling_choose(&settings.sampling, sampling, problem))
        return tool_refuse(call, "%s", problem);
    if (settings.fit == FIT_NONE && (settings.width || settings.height))
        return tool_refuse(call, "--resize none: not with --width or --height");
    if (settings.width > INT16_MAX || settings.height > INT16_MAX)
        return tool_refuse(call, "--width, --height: at most %d pixels", INT16_MAX);
    if (settings.min_share > 1)
        return tool_refuse(call, "--min-share: a share, so at most 1");
    if (settings.strict && settings.min_share > 0)
        return tool_refuse(call, "--min-share: not with --strict, which allows no damage at all");
    if ((call->shared.json || call->shared.csv) && settings.output && !settings.info)
        return tool_refuse(call, "--json, --csv: only with --info");
    return TOOL_DONE;
}

/* Decodes, writes and prints. WEIR_OK, or the failure with *error filled. */
static int work(const weir_sampling *sampling, report *r, weir_error *error)
{
    weir_pipeline *pipeline = NULL;
    weir_npy *npy = NULL;
    int rc = build(r->path, sampling, &pipeline, error);
    if (rc == WEIR_OK && settings.output)
        rc = open_output(&npy, error);
    if (rc == WEIR_OK)
        rc = take_frames(pipeline, npy, r, error);
    weir_pipeline_free(pipeline);
    if (rc == WEIR_OK && npy)
        rc = weir_npy_close(npy, error);
    else
        weir_npy_abort(npy);
    if (r->frames)
        end_report(r);
    return rc;
}

static int run(tool_call *call)
{
    report r = { .call = call, .path = call->words[0], .start_ns = weir_clock_ns() };
    weir_error error = { 0 };
    weir_sampling sampling;
    int exit_status = check(call, &sampling);
    if (exit_status == TOOL_DONE) {
        settings.info |= !settings.output;
        weir_log_set_level(WEIR_LOG_ERROR); /* the failure is told below */
        int rc = work(&sampling, &r, &error);
        exit_status = rc == WEIR_OK ? tool_finish(call) : fail_file(call, &error);
    }
    sampling_free(&settings.sampling);
    free(part_path);
    return exit_status;
}

const tool_command tool_frames = {
    .name = "frames",
    .words = "FILE",
    .min_words = 1,
    .summary = "the frames of a video, as the decode stage gives them",
    .help =
        "Decodes one file, or URL, as a pipeline with the same options would, and writes the frames to a file that "
        "numpy.load() reads: uint8, of the shape [frames, height, width, channels], or [frames, channels, height, "
        "width] with --layout nchw; yuv420p, whose planes differ in size, as [frames, bytes].\n\n"
        "With --info, or without -o, it prints what the file is, each frame's timestamp and time, what was damaged "
        "or missing, and how the time was spent; as --json one object, as --csv the frames alone.\n\n"
        "All frames are taken, unless one of --at, --frames, --every, --rate, --count, --random and --keyframes "
        "chooses among them. --window goes with all but the first two of these, --first with --every, --rate and "
        "--keyframes; both go without any, too. Only what is needed for the chosen frames is decoded.\n\n"
        "Frames are numbered from 0 on, in the order in which they are shown. Times are in seconds or have a unit "
        "(250ms, 1.5m, 2h); --at takes hours:minutes:seconds as well. They count from the first frame on, which has "
        "time 0 whatever its timestamp; what --info prints are the file's own. What lies beyond the end is an "
        "error.\n\n"
        "Long videos take hardly more memory than short ones: frames are written as they come. Only those of a list "
        "that jumps back (--at 5,1) are all kept until the last one is there.",
    .examples = "weir frames clip.mp4\n"
                "weir frames clip.mp4 --width 128 --height 128 -o clip.npy\n"
                "# 16 frames for a training step, from all over the clip or from two seconds of it\n"
                "weir frames clip.mp4 --count 16 --width 224 --height 224 --resize crop -o clip.npy\n"
                "weir frames clip.mp4 --random 16 --stretch 2s --seed 7 -o clip.npy\n"
                "# what is shown there? one picture a minute, and three moments\n"
                "weir frames film.mkv --rate 1/60 --width 160 -o minutes.npy\n"
                "weir frames film.mkv --at 12.5,0:01:03.2,1:30:00 -o moments.npy\n"
                "weir frames film.mkv --window 10m:11m --every 5 --info\n"
                "# is the scaler worth it?\n"
                "weir frames clip.mp4 --width 224 --height 224 --resize crop --scaler exact -o exact.npy --info\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .run = run,
};
