#include "stages/reader/reader_sound.h"

#include <stdlib.h>

#include "stages/audio/audio_config.h"
#include "stages/reader/frame_reader.h"

/* ---- another opening of the source ------------------------------------------------------------------------------ */

/* *user must live as long as the input. */
static void share_source(const weir_input *from, weir_input *input, weir_user_file *user)
{
    input->bytes = from->bytes;
    input->kept = from->kept; /* the data of a pipe; it stays the video's */
    input->is_read_again = true;
    input->version = from->version;
    input->has_version = from->has_version;
    *user = (weir_user_file){ .position = -1 };
    if (from->user) {
        user->functions = from->user->functions;
        user->place = from->user->place;
        input->user = user;
    }
}

static void unshare_source(weir_input *input)
{
    input->kept = (weir_local_file){ 0 };
}

/* ---- the time of the first frame -------------------------------------------------------------------------------- */

static int read_first_time(weir_picture_reader *first, const char *path, int64_t *time_ns, weir_error *error)
{
    static const weir_sampling one = { .what = WEIR_SAMPLE_ALL, .count = 1 };
    first->frames.sampling = &one;
    int rc = weir__picture_reader_open(first, path, error);
    if (rc == WEIR_OK)
        rc = weir__frame_reader_select(&first->frames, 0, error);
    if (rc == WEIR_OK)
        rc = weir__frame_reader_next(&first->frames, error);
    if (rc == WEIR_EOF)
        return weir__decoder_fail_empty(&first->decoder, "no frame: the video stream is empty or truncated", error);
    if (rc != WEIR_OK)
        return rc;
    const weir_timeline timeline = {
        .time_base = first->decoder.stream->time_base,
        .first_pts = weir__frame_reader_pts(&first->frames),
    };
    *time_ns = weir__timeline_start_ns(&timeline);
    return WEIR_OK;
}

/* Decodes it by an opening of its own: no request is disturbed, and no index is needed. */
static int find_first_time(const weir_reader_sound *sound, int64_t *time_ns, weir_error *error)
{
    const weir_picture_reader *video = sound->video;
    weir_user_file user;
    weir_picture_reader *first = calloc(1, sizeof *first);
    if (!first || weir__picture_reader_init(first, video->config, video->decoder.should_stop, NULL,
                                            video->decoder.self) != WEIR_OK) {
        free(first);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    share_source(&video->decoder.input, &first->decoder.input, &user);
    weir__picture_reader_enter(first, sound->path, sound->path);
    int rc = read_first_time(first, sound->path, time_ns, error);
    weir__picture_reader_close(first);
    weir__picture_reader_leave(first);
    unshare_source(&first->decoder.input);
    weir__picture_reader_free(first);
    free(first);
    return rc;
}

static int find_origin(weir_reader_sound *sound, weir_error *error)
{
    const weir_frame_reader *frames = &sound->video->frames;
    int rc = WEIR_OK;
    if (sound->has_origin)
        return WEIR_OK;
    if (frames->has_timeline && frames->timeline.num_frames > 0)
        sound->origin_ns = weir__timeline_start_ns(&frames->timeline);
    else
        rc = find_first_time(sound, &sound->origin_ns, error);
    sound->has_origin = rc == WEIR_OK;
    return rc;
}

/* Have all packets of the video been read, without a restart of the clock? */
static bool is_continuous(const weir_picture_reader *video)
{
    return video->frames.is_whole && video->frames.file.packet_clock.num_restarts == 0;
}

/* ---- windows --------------------------------------------------------------------------------------------------- */

static void close_sound_file(weir_reader_sound *sound)
{
    if (!sound->config)
        return;
    weir__sound_reader_close(&sound->sound);
    unshare_source(&sound->sound.sound.decoder.input);
    weir__sound_reader_free(&sound->sound);
    weir__audio_config_free(sound->config);
    sound->sound = (weir_sound_reader){ 0 };
    sound->config = NULL;
}

void weir__reader_sound_reset(weir_reader_sound *sound)
{
    close_sound_file(sound);
    sound->has_origin = false;
}

/* The same stream, with the same limits; a decoder of sound has no other options. */
static bool is_same_sound(const weir_audio_config *one, const weir_audio_config *other)
{
    return one->stream == other->stream && one->decoder->max_pixels == other->decoder->max_pixels &&
           one->decoder->max_decoder_bytes == other->decoder->max_decoder_bytes &&
           one->decoder->max_all_decoder_bytes == other->decoder->max_all_decoder_bytes;
}

/* *is_kept: the open file was made with that config, and owns it. */
static int choose_sound(weir_reader_sound *sound, const weir_audio_config *config, bool *is_kept, weir_error *error)
{
    const weir_picture_reader *video = sound->video;
    *is_kept = false;
    if (!sound->config || !is_same_sound(sound->config, config)) {
        close_sound_file(sound);
        if (weir__sound_reader_init(&sound->sound, config, video->config->input, NULL, NULL) != WEIR_OK)
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        sound->config = config;
        *is_kept = true;
        share_source(&video->decoder.input, &sound->sound.sound.decoder.input, &sound->user);
    }
    sound->sound.sound.decoder.should_stop = video->decoder.should_stop;
    sound->sound.sound.decoder.self = video->decoder.self;
    return WEIR_OK;
}

int weir__reader_sound_window(weir_reader_sound *sound, const weir_audio_config *config, int64_t start_ns,
                              int64_t end_ns, weir_audio **audio, weir_error *error)
{
    bool is_kept = false;
    int rc = find_origin(sound, error);
    if (rc == WEIR_OK)
        rc = choose_sound(sound, config, &is_kept, error);
    if (rc == WEIR_OK) {
        weir_sound_window window = { .config = config,
                                     .is_continuous = is_continuous(sound->video),
                                     .origin_ns = sound->origin_ns,
                                     .start_ns = start_ns,
                                     .end_ns = end_ns };
        weir__ffmpeg_log_begin(&sound->log, sound->path, sound->path);
        rc = weir__sound_reader_window(&sound->sound, sound->path, &window, audio, error);
        weir__ffmpeg_log_end();
    }
    if (!is_kept)
        weir__audio_config_free(config);
    return rc;
}
