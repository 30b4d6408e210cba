/* weir frames: what the decode stage makes of one file: as an array in a .npy file, as a description, or both. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/list.h>
#include <weir/npy.h>
#include <weir/video.h>

#include "commands.h"

enum { FIT_NONE = WEIR_RESIZE_CROP + 1 };

static const char *const fit_names[] = { "pad", "stretch", "crop", "none", NULL };      /* as weir_resize */
static const char *const pixel_names[] = { "rgb24", "gray8", "yuv420p", NULL };         /* as weir_pixel */
static const char *const layout_names[] = { "nhwc", "nchw", NULL };                     /* as weir_layout */
static const char *const scaler_names[] = { "default", "exact", "zimg", "fast", NULL }; /* as weir_scaler_kind */

static struct settings {
    int64_t width, height; /* 0 = not given */
    int fit, pixel, layout, scaler;
    const char *output;
    bool info;
} settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("output", output, option_file), .letter = 'o', .argument = "OUT.npy",
      .help = "write the frames as NumPy's array; an older file of that name is replaced" },
    { ROW("info", info, option_flag), .help = "print what the file is and each frame's time (default without -o)" },
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
    printf("file       %s\n", r->path);
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

static void end_report(report *r)
{
    double elapsed = (double)(weir_now_ns() - r->start_ns) / (double)WEIR_SECOND;
    table_end(r->frames);
    if (tool_format(r->call) == TABLE_JSON) {
        printf(",\n\"num_frames\": %" PRIu64 ", \"num_bytes\": %" PRIu64 ", \"num_errors\": %" PRIu64
               ", \"num_corrupt_frames\": %" PRIu64 ", \"elapsed\": ",
               r->num_frames, r->num_bytes, r->num_errors, r->num_corrupt_frames);
        json_number(stdout, elapsed);
        puts("}");
    } else if (tool_format(r->call) == TABLE_TEXT) {
        printf("\nframes     %" PRIu64 ", %" PRIu64 " bytes\n", r->num_frames, r->num_bytes);
        printf("damage     %" PRIu64 " packets not decoded, %" PRIu64 " frames patched up\n", r->num_errors,
               r->num_corrupt_frames);
        printf("took       %.3f s\n", elapsed);
    }
}

/* ---- the pipeline ------------------------------------------------------------------------------------------- */

static int build(const char *path, weir_pipeline **pipeline, weir_error *error)
{
    bool keeps_size = settings.fit == FIT_NONE;
    weir_video_config video = {
        .width = (uint32_t)settings.width,
        .height = (uint32_t)settings.height,
        .resize = keeps_size ? WEIR_RESIZE_STRETCH : (weir_resize)settings.fit,
        .pixel = (weir_pixel)settings.pixel,
        .layout = (weir_layout)settings.layout,
        .scaler = (weir_scaler_kind)settings.scaler,
    };
    weir_builder *builder = weir_builder_new();
    weir_source(builder, &weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe(builder, &weir_video_decode, &video, NULL);
    weir_sink(builder, 1);
    return weir_build(builder, &(weir_pipeline_options){ .threads = 1, .no_statistics = true }, pipeline, error);
}

/* All that comes out of the pipeline, into the file and the report; either may be NULL. */
static int take_frames(weir_pipeline *pipeline, weir_npy *npy, report *r, weir_error *error)
{
    weir_item item;
    int rc;
    while ((rc = weir_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *frames = item.data;
        if (npy)
            rc = weir_npy_add_frames(npy, frames, error);
        if (settings.info)
            put_frames(r, frames);
        r->num_frames += frames->num_frames;
        r->num_bytes += (uint64_t)frames->num_frames * frames->frame_bytes;
        r->num_errors = frames->num_errors;
        r->num_corrupt_frames += frames->num_corrupt_frames;
        weir_item_release(&item);
        if (rc != WEIR_OK)
            return rc;
    }
    if (weir_stage_error(pipeline, "decode", error) == WEIR_OK)
        return error->status;
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
    return tool_fail(call, &named);
}

static int check(const tool_call *call)
{
    if (settings.fit == FIT_NONE && (settings.width || settings.height))
        return tool_refuse(call, "--resize none: not with --width or --height");
    if (settings.width > INT16_MAX || settings.height > INT16_MAX)
        return tool_refuse(call, "--width, --height: at most %d pixels", INT16_MAX);
    if ((call->shared.json || call->shared.csv) && settings.output && !settings.info)
        return tool_refuse(call, "--json, --csv: only with --info");
    return TOOL_DONE;
}

static int run(tool_call *call)
{
    report r = { .call = call, .path = call->words[0], .start_ns = weir_now_ns() };
    weir_pipeline *pipeline = NULL;
    weir_npy *npy = NULL;
    weir_error error = { 0 };
    int exit_status = check(call);
    if (exit_status != TOOL_DONE)
        return exit_status;
    settings.info |= !settings.output;
    weir_log_set_level(WEIR_LOG_ERROR); /* the failure is told below */

    int rc = build(r.path, &pipeline, &error);
    if (rc == WEIR_OK && settings.output)
        rc = weir_npy_open(&npy, settings.output, &error);
    if (rc == WEIR_OK)
        rc = take_frames(pipeline, npy, &r, &error);
    weir_free(pipeline);
    if (rc == WEIR_OK && npy)
        rc = weir_npy_close(npy, &error);
    else
        weir_npy_abort(npy);
    if (r.frames)
        end_report(&r);
    return rc == WEIR_OK ? tool_finish(call) : fail_file(call, &error);
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
        "and how long it took; as --json one object, as --csv the frames alone.",
    .examples = "weir frames clip.mp4\n"
                "weir frames clip.mp4 --width 128 --height 128 -o clip.npy\n"
                "# is the scaler worth it?\n"
                "weir frames clip.mp4 --width 224 --height 224 --resize crop --scaler exact -o exact.npy --info\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .run = run,
};
