/* The decode stage's options: which can be combined, and what 0 means. */
#include "stages/video/video_stage.h"

#include <inttypes.h>

#include <weir/struct_copy.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/reader/frame_selection.h"
#include "stages/scale/scaler.h"
#include "stages/video/frame_filter.h"

/* swscale's limit. */
enum { MAX_SIDE_PIXELS = INT16_MAX };

static int pixels_init(weir_video_config *video, weir_error *error)
{
    if (video->width > MAX_SIDE_PIXELS || video->height > MAX_SIDE_PIXELS)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%" PRIu32 "×%" PRIu32 " is too large: at most %d pixels each way", video->width,
                              video->height, MAX_SIDE_PIXELS);
    if ((unsigned)video->resize > WEIR_RESIZE_CROP)
        return weir_error_set(error, WEIR_EINVAL, 0, "resize %d is none of WEIR_RESIZE_…", (int)video->resize);
    if ((unsigned)video->loop_filter > WEIR_LOOP_FILTER_NONE)
        return weir_error_set(error, WEIR_EINVAL, 0, "loop_filter %d is none of WEIR_LOOP_FILTER_…",
                              (int)video->loop_filter);
    if (video->lowres > WEIR_MAX_LOWRES)
        return weir_error_set(error, WEIR_EINVAL, 0, "lowres %d: at most %d, an eighth of the width and height",
                              video->lowres, WEIR_MAX_LOWRES);
    int rc = weir__scaler_check(video, error);
    if (rc != WEIR_OK)
        return rc;
    if (video->max_pixels == 0)
        video->max_pixels = UINT64_C(1) << 26;
    if (video->max_pixels > INT32_MAX)
        video->max_pixels = INT32_MAX; /* FFmpeg's own limit */
    if (video->max_bytes == 0)
        video->max_bytes = UINT64_C(8) << 30;
    if (video->max_decoder_bytes == 0)
        video->max_decoder_bytes = WEIR_FRAME_MEMORY_BYTES;
    if (video->max_all_decoder_bytes == 0)
        video->max_all_decoder_bytes = weir__frame_memory_default_all();
    return WEIR_OK;
}

static int input_init(weir_video_config *video, weir_error *error)
{
    if (video->io_timeout_ns == 0)
        video->io_timeout_ns = WEIR_INPUT_TIMEOUT_NS;
    return weir__input_config_init(video->allow, &video->ca_file, error);
}

static int sampling_init(weir_video_config *video, weir_error *error)
{
    if ((unsigned)video->damage > WEIR_DAMAGE_STRICT)
        return weir_error_set(error, WEIR_EINVAL, 0, "damage %d is none of WEIR_DAMAGE_…", (int)video->damage);
    if (!(video->min_share >= 0 && video->min_share <= 1))
        return weir_error_set(error, WEIR_EINVAL, 0, "min_share %g is not between 0 and 1", video->min_share);
    if (video->max_duration_ns < 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "max_duration_ns is negative; use 0 for any");
    if (video->chunk_frames && !weir_sampling_is_rising(&video->sampling))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "chunk_frames needs indices or times that increase, and that do not count some from "
                              "the start and some from the end");
    if (video->max_frames == 0)
        video->max_frames = UINT64_C(1) << 22;
    if (video->max_duration_ns == 0)
        video->max_duration_ns = INT64_MAX;
    return weir__sampling_init(&video->sampling, error);
}

static int filter_init(weir_video_config *video, weir_error *error)
{
    bool has_filter = video->filter && video->filter[0];
    if (has_filter && !weir_sampling_is_rising(&video->sampling))
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "filter \"%s\" gets frames in presentation order: indices or times must increase, and not "
            "count some from the start and some from the end",
            video->filter);
    return weir__frame_filter_config_init(video, error);
}

static int audio_init(weir_video_config *video, weir_error *error)
{
    if (!video->audio)
        return WEIR_OK;
    if (video->audio_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "audio is given, but audio_size is 0: pass sizeof *audio");
    weir_audio_config *own = malloc(sizeof *own);
    if (!own)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir_struct_copy(own, sizeof *own, video->audio, video->audio_size, "weir_audio_config", error);
    own->ca_file = NULL;
    if (rc == WEIR_OK)
        rc = weir_audio_decode.config_init(own, error);
    if (rc == WEIR_OK)
        video->audio = own;
    else
        free(own);
    return rc;
}

int weir__video_config_check(weir_video_config *video, weir_error *error)
{
    int rc = pixels_init(video, error);
    if (rc == WEIR_OK)
        rc = input_init(video, error);
    if (rc != WEIR_OK)
        return rc;
    rc = sampling_init(video, error);
    if (rc != WEIR_OK) {
        weir__input_config_free(&video->ca_file);
        return rc;
    }
    weir__ffmpeg_log_install();
    rc = filter_init(video, error);
    if (rc == WEIR_OK) {
        rc = audio_init(video, error);
        if (rc != WEIR_OK)
            weir__frame_filter_config_free(video);
    }
    if (rc != WEIR_OK) {
        weir__sampling_free(&video->sampling);
        weir__input_config_free(&video->ca_file);
    }
    return rc;
}

void weir__video_config_free(weir_video_config *video)
{
    weir__sampling_free(&video->sampling);
    weir__frame_filter_config_free(video);
    weir__input_config_free(&video->ca_file);
    free((void *)(uintptr_t)video->audio);
}
