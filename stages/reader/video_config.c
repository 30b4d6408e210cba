/* Which options can be combined, and what 0 means. */
#include "stages/reader/video_config.h"

#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/config/picture_fields.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/memory/block_pool.h"
#include "stages/picture/filter_graph.h"
#include "stages/reader/frame_selection.h"
#include "stages/reader/sampling_fields.h"

/* Each has a descriptor. */
enum { MAX_KEPT_OPEN = 1 << 16 };

#define VIDEO_FIELDS(FIELD, type) \
    FIELD(type, input, CONFIG, &weir__input_fields, input_size) \
    FIELD(type, input_size, OURS, 0, 0) \
    FIELD(type, decoder, CONFIG, &weir__decoder_fields, decoder_size) \
    FIELD(type, decoder_size, OURS, 0, 0) \
    FIELD(type, picture, CONFIG, &weir__picture_fields, picture_size) \
    FIELD(type, picture_size, OURS, 0, 0) \
    FIELD(type, sampling, STRUCT, &weir__sampling_fields, 0) \
    FIELD(type, seed, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, stream, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, chunk_frames, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, clip_items, UNSIGNED, false, true) \
    FIELD(type, damage, ENUM, "WEIR_DAMAGE_…", WEIR_DAMAGE_STRICT) \
    FIELD(type, min_share, REAL, 0, 1) \
    FIELD(type, max_frames, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, max_duration_ns, SIGNED, 0, INT64_MAX) \
    FIELD(type, max_bytes, UNSIGNED, 0, UINT64_MAX) \
    FIELD(type, audio, OURS, 0, 0) /* not across processes */ \
    FIELD(type, audio_size, OURS, 0, 0) \
    FIELD(type, allocator, OURS, 0, 0) /* nor this */ \
    FIELD(type, keep_open, UNSIGNED, 0, MAX_KEPT_OPEN) \
    FIELD(type, kept, OURS, 0, 0)

DEFINE_STRUCT_RULES(weir__video_fields, weir_video_config, "weir_video_config", VIDEO_FIELDS);

int weir__video_filter_check(const weir_picture_config *picture, const weir_sampling *sampling, weir_error *error)
{
    const char *filter = picture->filter;
    if (!filter)
        return WEIR_OK;
    if (sampling->what == WEIR_SAMPLE_CLIPS)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "filter \"%s\" may change the number of frames, so it cannot be combined with clips",
                              filter);
    if (!weir_sampling_is_rising(sampling))
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "filter \"%s\" needs frames in presentation order: indices or times must increase, and count "
            "either all from the start or all from the end",
            filter);
    return weir__filter_check(filter, error);
}

int weir__video_clips_check(const weir_sampling *sampling, weir_error *error)
{
    if (sampling->what == WEIR_SAMPLE_CLIPS)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "clip_items: the sampling takes no clips (WEIR_SAMPLE_CLIPS)");
}

int weir__video_chunks_check(const weir_sampling *sampling, weir_error *error)
{
    if (weir_sampling_is_rising(sampling))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0,
                          "chunk_frames needs indices or times that increase, and that count either all from "
                          "the start or all from the end; and a single clip, without WEIR_SHORT_LOOP");
}

static int sampling_init(weir_video_config *video, weir_error *error)
{
    int rc = WEIR_OK;
    if (video->clip_items && video->chunk_frames)
        rc = weir_error_set(error, WEIR_EINVAL, 0, "clip_items and chunk_frames: a clip is not split into chunks");
    else if (video->clip_items)
        rc = weir__video_clips_check(&video->sampling, error);
    else if (video->chunk_frames)
        rc = weir__video_chunks_check(&video->sampling, error);
    if (rc != WEIR_OK)
        return rc;
    if (video->max_frames == 0)
        video->max_frames = UINT64_C(1) << 22;
    if (video->max_duration_ns == 0)
        video->max_duration_ns = INT64_MAX;
    if (video->max_bytes == 0)
        video->max_bytes = UINT64_C(8) << 30;
    return weir__sampling_init(&video->sampling, error);
}

static int own_configs(weir_video_config *video, weir_error *error)
{
    int rc = weir__input_config_own(&video->input, &video->input_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__decoder_config_own(&video->decoder, &video->decoder_size, error);
    if (rc != WEIR_OK)
        goto no_decoder;
    rc = weir__picture_config_own(&video->picture, &video->picture_size, error);
    if (rc != WEIR_OK)
        goto no_picture;
    return WEIR_OK;
no_picture:
    weir__decoder_config_free(video->decoder);
no_decoder:
    weir__input_config_free(video->input);
    return rc;
}

static void free_configs(weir_video_config *video)
{
    weir__input_config_free(video->input);
    weir__decoder_config_free(video->decoder);
    weir__picture_config_free(video->picture);
}

int weir__video_config_check(weir_video_config *video, weir_error *error)
{
    int rc = weir__rules_check(&weir__video_fields, video, error);
    if (rc == WEIR_OK)
        rc = own_configs(video, error);
    if (rc != WEIR_OK)
        return rc;
    rc = sampling_init(video, error);
    if (rc != WEIR_OK)
        goto no_sampling;
    weir__ffmpeg_log_install();
    rc = weir__video_filter_check(video->picture, &video->sampling, error);
    if (rc == WEIR_OK)
        rc = weir__allocator_use(video->allocator, "decode", error);
    if (rc == WEIR_OK)
        return WEIR_OK;
    weir__sampling_free(&video->sampling);
no_sampling:
    free_configs(video);
    return rc;
}

void weir__video_config_free(weir_video_config *video)
{
    weir__sampling_free(&video->sampling);
    free_configs(video);
    weir_allocator_free(video->allocator);
}
