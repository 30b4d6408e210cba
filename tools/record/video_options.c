#include "tools/record/video_options.h"

#include <stdio.h>

const char *const video_resize_names[] = { "pad", "stretch", "crop", "none", NULL }; /* as weir_resize */
const char *const video_pixel_names[] = {
    "rgb24", "gray8", "yuv420p", "rgb48", "gray16", "yuv420p10", NULL
};                                                                             /* as weir_pixel */
const char *const video_layout_names[] = { "nhwc", "nchw", NULL };             /* as weir_layout */
const char *const video_scaler_names[] = { "default", "exact", "fast", NULL }; /* as weir_scaler_kind */

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(video_settings, what)

const option_row video_rows[] = {
    { ROW("at", sampling.at, sampling_times), .heading = "Which frames", .excludes = "audio images",
      .argument = "TIMES", .help = "the frames shown at these times, in this order: 1.5,250ms,2m,0:01:03.2" },
    { ROW("match", sampling.match, option_choice), .needs = "at", .argument = "HOW", .choices = sampling_match_names,
      .help =
          "which frame a time means: the one that is shown then (shown, the default), the nearest one (nearest), or "
          "one at exactly that time (exact)" },
    { ROW("tolerance", sampling.tolerance_ns, sampling_span), .needs = "match", .argument = "SPAN",
      .help =
          "with --match exact: how far the frame may be from the time (default: the rounding of the file's times)" },
    { ROW("outside", sampling.outside, option_choice), .needs = "at", .argument = "HOW",
      .choices = sampling_outside_names,
      .help =
          "what a time before the start or after the end means: the first or last frame, if it is within one frame's "
          "duration (near, the default); always that frame (clamp); or an error (fail)" },
    { ROW("origin", sampling.origin, option_choice), .excludes = "audio images", .argument = "WHAT",
      .choices = sampling_origin_names,
      .help = "the times of --at and --window count from the first frame (first, the default), or are those that the "
              "stream stores (stream)" },
    { ROW("frames", sampling.indices, sampling_indices), .excludes = "audio images at", .argument = "NUMBERS",
      .help = "the frames with these numbers, in this order: 0,10,20; -1 is the last one" },
    { ROW("every", sampling.every, option_count), .excludes = "audio images at frames", .argument = "K",
      .help = "every K-th frame, starting with the first" },
    { ROW("rate", sampling.rate, sampling_rate), .excludes = "audio images at frames every", .argument = "R",
      .help =
          "R frames a second (5, 29.97, 30000/1001); frames are repeated or left out, as by ffmpeg's filter fps" },
    { ROW("count", sampling.count, option_count), .excludes = "audio images at frames every rate", .argument = "N",
      .help = "N evenly spaced frames: the middles of N equal intervals" },
    { ROW("random", sampling.random, option_count), .excludes = "audio images at frames every rate count",
      .argument = "N", .help = "N different random frames, in order; the same ones for the same --seed" },
    { ROW("clip", sampling.clip, option_count), .excludes = "audio images at frames every rate count random",
      .argument = "N",
      .help = "a clip of N frames at a stride, for training; one that the video is too short for is filled up" },
    { ROW("clips", sampling.num_clips, option_count32), .needs = "clip", .argument = "C",
      .help = "with --clip: C clips of each video, as an axis of their own, with --start random or even" },
    { ROW("stride", sampling.stride, sampling_stride), .needs = "clip", .argument = "K|TIME",
      .help = "with --clip: from one frame of a clip to the next, K frames (default 1) or a time (0.2s, 40ms)" },
    { ROW("start", sampling.clip_start, option_choice), .needs = "clip", .argument = "WHERE",
      .choices = sampling_clip_start_names,
      .help =
          "with --clip: where clips start: at the first frame (first, the default; --window moves it), so that they "
          "are in the center, at random, or spread evenly (even)" },
    { ROW("short", sampling.clip_short, option_choice), .needs = "clip", .argument = "HOW",
      .choices = sampling_clip_short_names,
      .help = "with --clip: what fills a clip of a video that is too short: its last frame (last, the default), its "
              "frames again (loop), or nothing: the file fails (fail)" },
    { ROW("keyframes", sampling.keyframes, option_flag),
      .excludes = "audio images at frames every rate count random clip", .help = "only the keyframes" },
    { ROW("window", sampling.window, sampling_window), .excludes = "audio images at frames", .argument = "START:END",
      .help = "only frames from START on and before END: 10:20, 90s:2m, 10: or :2.5" },
    { ROW("first", sampling.first, option_count), .excludes = "audio images at frames count random clip",
      .argument = "N", .help = "at most the first N of the chosen frames" },
    { ROW("length", sampling.interval, sampling_interval), .needs = "random", .argument = "LENGTH",
      .help =
          "with --random: take all frames from one random interval of this many frames (32f) or this length (2s)" },
    { ROW("seed", sampling.seed, sampling_seed), .needs = "random clip", .argument = "S",
      .help = "with --random and --clip: random seed (default 0)" },
    { ROW("width", picture.width, option_count32), .heading = "Pictures", .excludes = "audio", .argument = "W",
      .max = VIDEO_MAX_SIDE, .help = "width of the result in pixels; without --height, the aspect is kept" },
    { ROW("height", picture.height, option_count32), .excludes = "audio", .argument = "H", .max = VIDEO_MAX_SIDE,
      .help = "height of the result in pixels; without --width, the aspect is kept" },
    { ROW("longest", picture.longest, option_count32), .excludes = "audio width height", .argument = "L",
      .max = VIDEO_MAX_SIDE, .help = "the longer side of the result in pixels; the aspect is kept" },
    { ROW("shortest", picture.shortest, option_count32), .excludes = "audio width height longest", .argument = "S",
      .max = VIDEO_MAX_SIDE, .help = "the shorter side of the result in pixels; the aspect is kept" },
    { ROW("resize", resize, option_choice), .excludes = "audio", .argument = "HOW", .choices = video_resize_names,
      .help = "pad (with black, the default), stretch, crop, or none: the file's own size" },
    { ROW("pixel", picture.pixel, option_choice), .excludes = "audio", .alias = "pix-fmt", .argument = "FORMAT",
      .choices = video_pixel_names,
      .help = "rgb24 (the default), gray8, yuv420p; with 16-bit values: rgb48, gray16, yuv420p10" },
    { ROW("layout", picture.layout, option_choice), .excludes = "audio", .argument = "ORDER",
      .choices = video_layout_names, .help = "nhwc (the default) or nchw" },
    { ROW("scaler", picture.scaler, option_choice), .excludes = "audio", .argument = "NAME",
      .choices = video_scaler_names, .help = "exact (FFmpeg's swscale), fast, or default" },
    { ROW("filter", picture.filter, option_text), .excludes = "audio images", .argument = "DESC",
      .help = "FFmpeg filters to apply before scaling: hflip,crop=in_w/2" },
    { ROW("no-autorotate", picture.no_autorotate, option_flag), .excludes = "audio",
      .help = "ignore the file's rotation: return pictures as they are coded" },
    { ROW("strict", strict, option_flag), .heading = "Damage and limits", .excludes = "audio images",
      .help = "fail on any damage, instead of counting it and returning what can be decoded" },
    { ROW("min-share", config.min_share, option_real), .excludes = "audio images strict", .argument = "SHARE",
      .help =
          "fail if damage leaves less than this share of the frames, from 0 to 1 (default: one frame is enough)" },
    { ROW("max-frames", config.max_frames, option_count), .excludes = "audio images", .argument = "N",
      .help = "fail if the result would have more than N frames (default 4194304)" },
    { ROW("max-bytes", config.max_bytes, option_bytes), .argument = "SIZE",
      .help = "fail if one result would take more memory than SIZE (default 8G)" },
    { ROW("max-duration", config.max_duration_ns, option_duration), .excludes = "audio images", .argument = "SPAN",
      .help = "fail if the video is longer than SPAN (default: any length)" },
    { ROW("keep-open", config.keep_open, option_count32), .excludes = "audio images", .argument = "N", .max = 65536,
      .help = "keep up to N files open for further clips of them (default 0)" },
    { ROW("stream", config.stream, option_count32), .excludes = "images", .argument = "N",
      .help = "the N-th video stream of the file, from 1 (default: the one that ffmpeg takes)" },
    { 0 },
};

bool video_configure(const video_settings *settings, weir_picture_config *picture, weir_video_config *config,
                     char problem[OPTION_PROBLEM_BYTES])
{
    bool keeps_size = settings->resize == VIDEO_RESIZE_NONE;
    const weir_picture_config *size = &settings->picture;
    if (keeps_size && (size->width || size->height || size->longest || size->shortest)) {
        snprintf(problem, OPTION_PROBLEM_BYTES, "--resize none: not with --width, --height, --longest or --shortest");
        return false;
    }
    if (settings->config.min_share > 1) {
        snprintf(problem, OPTION_PROBLEM_BYTES, "--min-share: a share is at most 1");
        return false;
    }
    *picture = settings->picture;
    picture->resize = keeps_size ? WEIR_RESIZE_STRETCH : (weir_resize)settings->resize;
    *config = settings->config;
    config->input = &settings->input;
    config->input_size = sizeof settings->input;
    config->decoder = &settings->decoder;
    config->decoder_size = sizeof settings->decoder;
    config->picture = picture;
    config->picture_size = sizeof *picture;
    config->sampling = sampling_choose(&settings->sampling);
    config->seed = settings->sampling.seed;
    config->damage = settings->strict ? WEIR_DAMAGE_STRICT : WEIR_DAMAGE_TOLERANT;
    return true;
}

void video_settings_free(video_settings *settings)
{
    sampling_free(&settings->sampling);
}
