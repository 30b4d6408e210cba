/* A window is planned in samples of the result, then of the stream; frames are fed to the resampler from there on. */
#include "stages/audio/sound_reader.h"

#include <inttypes.h>
#include <string.h>

#include <libavutil/common.h>
#include <libavutil/mathematics.h>
#include <libavutil/samplefmt.h>

#include <weir/clock.h>

/* Times are rounded to nanoseconds: one that is less than this before a sample is at it. */
enum { ROUNDING_NS = 2 };

/* How much is decoded before a window, at least. The filters of decoders are shorter. */
enum { SHORT_PREROLL_MS = 500 };

/* ---- codecs --------------------------------------------------------------------------------------------------- */

/* How decoders forget what was before a seek. Codecs without a row are decoded from the start. */
static const struct codec_rule {
    enum AVCodecID codec;
    bool has_fixed_size; /* of frames; as a rule */
    int preroll_ms;
} codec_rules[] = {
    { AV_CODEC_ID_AAC, true, SHORT_PREROLL_MS },
    { AV_CODEC_ID_AC3, true, SHORT_PREROLL_MS },
    { AV_CODEC_ID_EAC3, true, SHORT_PREROLL_MS },
    { AV_CODEC_ID_ALAC, true, SHORT_PREROLL_MS },
    { AV_CODEC_ID_FLAC, true, SHORT_PREROLL_MS },
    { AV_CODEC_ID_MP2, true, SHORT_PREROLL_MS },
    /* 511 bytes of earlier frames, which may have 11 bytes each: 47 frames of 24 ms */
    { AV_CODEC_ID_MP3, true, 2000 },
    { AV_CODEC_ID_VORBIS, false, SHORT_PREROLL_MS },
    /* Energies are predicted from frame to frame, and what remains of an error falls below the last bit of a float. */
    { AV_CODEC_ID_OPUS, true, 5000 },
};

static const struct codec_rule *rule_of(const weir_sound_reader *reader)
{
    static const struct codec_rule pcm = { AV_CODEC_ID_NONE, true, SHORT_PREROLL_MS };
    enum AVCodecID codec = reader->sound.decoder.stream->codecpar->codec_id;
    if (codec >= AV_CODEC_ID_FIRST_AUDIO && codec < AV_CODEC_ID_ADPCM_IMA_QT)
        return &pcm;
    for (size_t i = 0; i < sizeof codec_rules / sizeof codec_rules[0]; i++) {
        if (codec_rules[i].codec == codec)
            return &codec_rules[i];
    }
    return NULL;
}

/* Containers whose times after a seek are those without one. */
static bool is_seekable(const AVFormatContext *format)
{
    static const char *const names[] = { "mp4", "matroska", "avi", "flv", "mpegts" };
    if (!format->pb || !(format->pb->seekable & AVIO_SEEKABLE_NORMAL))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(format->iformat->name, names[i]))
            return true;
    }
    return false;
}

static int64_t preroll_of(const weir_sound_reader *reader)
{
    return (int64_t)reader->clock.rate * rule_of(reader)->preroll_ms / 1000;
}

static bool can_seek(const weir_sound_reader *reader)
{
    return !reader->must_count && rule_of(reader) && is_seekable(reader->sound.decoder.format) &&
           weir__sound_clock_can_seek(&reader->clock, reader->is_continuous);
}

/* ---- frames --------------------------------------------------------------------------------------------------- */

static void forget_frames(weir_sound_reader *reader, int num_frames)
{
    for (int i = 0; i < num_frames; i++)
        av_frame_free(&reader->heard[i].frame);
    reader->num_heard -= num_frames;
    reader->next_heard -= FFMIN(num_frames, reader->next_heard);
    memmove(reader->heard, reader->heard + num_frames, (size_t)reader->num_heard * sizeof reader->heard[0]);
}

static int64_t end_of(const weir_heard_frame *heard)
{
    return heard->begin + heard->frame->nb_samples;
}

/* Forgets the frames from more than a second ago. */
static void forget_old_frames(weir_sound_reader *reader)
{
    int num_old = reader->num_heard == WEIR_MAX_HEARD_FRAMES;
    while (num_old < reader->num_heard && end_of(&reader->heard[num_old]) < reader->clock.next - reader->clock.rate)
        num_old++;
    forget_frames(reader, num_old);
}

static int keep_frame(weir_sound_reader *reader, int64_t begin, weir_error *error)
{
    AVFrame *frame = av_frame_alloc();
    if (!frame)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    forget_old_frames(reader);
    av_frame_move_ref(frame, reader->sound.decoder.frame);
    reader->heard[reader->num_heard++] = (weir_heard_frame){ .frame = frame, .begin = begin };
    return WEIR_OK;
}

static int check_rate(const weir_sound_reader *reader, const AVFrame *frame, weir_error *error)
{
    if (frame->sample_rate <= 0)
        return weir_error_set(error, WEIR_EDATA, 0, "the samples have no sample rate");
    if (reader->clock.rate == 0 || frame->sample_rate == reader->clock.rate)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "the sample rate changes from %d to %d Hz: windows of such sound are not supported",
                          reader->clock.rate, frame->sample_rate);
}

/* Decodes the next frame that counts. WEIR_EOF: no more. WEIR_MORE: the times after the seek cannot be trusted. */
static int hear_frame(weir_sound_reader *reader, weir_error *error)
{
    weir_decoder *decoder = &reader->sound.decoder;
    for (;;) {
        int rc = weir__decoder_next(decoder, error);
        if (rc == WEIR_OK && decoder->frame->nb_samples <= 0)
            continue;
        if (rc == WEIR_OK)
            rc = check_rate(reader, decoder->frame, error);
        if (rc != WEIR_OK)
            return rc;
        bool is_anchor = reader->clock.is_sought && reader->clock.num_frames == 1;
        int64_t begin = weir__sound_clock_place(&reader->clock, decoder->frame);
        if (begin == WEIR_SAMPLE_LOST || (is_anchor && begin > reader->settled - preroll_of(reader)))
            return WEIR_MORE;
        if (begin != WEIR_SAMPLE_UNKNOWN && reader->clock.next > reader->settled)
            return keep_frame(reader, begin, error);
        reader->old_errors = decoder->num_errors;
    }
}

static int next_frame(weir_sound_reader *reader, const weir_heard_frame **next, weir_error *error)
{
    int rc = WEIR_OK;
    if (reader->next_heard == reader->num_heard)
        rc = hear_frame(reader, error);
    if (rc == WEIR_OK)
        *next = &reader->heard[reader->next_heard++];
    return rc;
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

int weir__sound_reader_init(weir_sound_reader *reader, const weir_audio_config *config,
                            const weir_input_config *input, bool (*should_stop)(void *self), void *self)
{
    return weir__sound_init(&reader->sound, config, input, should_stop, NULL, self);
}

void weir__sound_reader_close(weir_sound_reader *reader)
{
    forget_frames(reader, reader->num_heard);
    weir__resampler_abort(&reader->sound.resampler);
    weir__decoder_close(&reader->sound.decoder);
    reader->settled = 0;
    reader->old_errors = 0;
    reader->is_open = false;
}

void weir__sound_reader_free(weir_sound_reader *reader)
{
    weir__sound_reader_close(reader);
    weir__sound_free(&reader->sound);
}

/* Opens the file, and decodes the first frames, which the clock needs. */
static int open_sound(weir_sound_reader *reader, const char *path, weir_error *error)
{
    enum { NUM_FIRST_FRAMES = 3 };
    weir_decoder *decoder = &reader->sound.decoder;
    weir__sound_reader_close(reader);
    reader->is_open = true;
    int rc = weir__decoder_open(decoder, path, error);
    if (rc != WEIR_OK)
        return rc;
    const struct codec_rule *rule = rule_of(reader);
    weir__sound_clock_begin(&reader->clock, decoder->stream->time_base, rule && rule->has_fixed_size,
                            decoder->format->iformat->flags & AVFMT_TS_DISCONT);
    while (rc == WEIR_OK && reader->num_heard < NUM_FIRST_FRAMES)
        rc = hear_frame(reader, error);
    if (rc == WEIR_EOF)
        rc = reader->num_heard > 0
                 ? WEIR_OK
                 : weir__decoder_fail_empty(decoder, "no samples: the audio stream is empty or truncated", error);
    reader->next_heard = 0;
    return rc;
}

/* The reading goes on before that sample of the stream, for the samples from `settled` on. */
static int seek_before(weir_sound_reader *reader, int64_t sample, int64_t settled, weir_error *error)
{
    weir_decoder *decoder = &reader->sound.decoder;
    int64_t early = sample - preroll_of(reader) - reader->clock.rate / 2; /* the first frames are dropped */
    forget_frames(reader, reader->num_heard);
    if (!weir__decoder_seek(decoder, weir__sound_clock_pts(&reader->clock, early)))
        return WEIR_MORE;
    weir__sound_clock_seek(&reader->clock);
    reader->settled = settled;
    return weir__decoder_restart(decoder, error);
}

static bool can_seek_before(const weir_sound_reader *reader, int64_t sample)
{
    return can_seek(reader) && sample - preroll_of(reader) > reader->clock.rate;
}

/* After the end of the sound there may be no frame that tells where that is: one before it is sought. */
static int seek_sound(weir_sound_reader *reader, const char *path, int64_t sample, weir_error *error)
{
    int64_t target = sample, step = (int64_t)reader->clock.rate * 10;
    int rc;
    do {
        if (!can_seek_before(reader, target))
            return open_sound(reader, path, error);
        rc = seek_before(reader, target, sample, error);
        if (rc == WEIR_OK)
            rc = hear_frame(reader, error);
        bool is_known = reader->clock.num_frames == 1; /* the time of the dropped frame */
        target = is_known ? FFMIN(target - step, reader->clock.next) : target - step;
        step *= 2;
    } while (rc == WEIR_EOF && reader->clock.num_frames < 2);
    reader->next_heard = 0;
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

/* The next frame is that with that sample of the stream, or one before it. */
static int go_to(weir_sound_reader *reader, const char *path, int64_t sample, weir_error *error)
{
    bool is_heard = reader->num_heard > 0 && reader->heard[0].begin <= sample;
    bool is_near = sample - reader->clock.next <= reader->clock.rate;
    reader->next_heard = 0;
    if (is_heard && (is_near || !can_seek(reader)))
        return WEIR_OK;
    return seek_sound(reader, path, sample, error);
}

/* ---- feeding the resampler ------------------------------------------------------------------------------------- */

typedef struct sample_plan {
    const weir_audio_config *config;
    int64_t rate;  /* of the result */
    int64_t first; /* the sample of the stream that the resampler is fed with first */
    int64_t fed;   /* the sample of the stream after those that it has */
    int64_t begin; /* the first sample of the result, from the first one of the stream at the result's rate */
    uint64_t skip; /* samples from the resampler before it */
    uint64_t most; /* samples of the result */
} sample_plan;

static int fail_range(weir_error *error)
{
    return weir_error_set(error, WEIR_ERANGE, 0, "the sound has no samples in this window");
}

static int64_t first_ns(const weir_sound_reader *reader, const weir_sound_window *window)
{
    const AVRational nanosecond = { 1, WEIR_SECOND };
    if (reader->clock.first_pts == AV_NOPTS_VALUE)
        return 0; /* as if both began together */
    return av_sat_sub64(av_rescale_q(reader->clock.first_pts, reader->clock.time_base, nanosecond),
                        window->origin_ns);
}

/* Resampling begins where the resampler would have been in its first state, and before the window by more than its
   filter is long. */
static void plan_resampling(const weir_sound_reader *reader, sample_plan *plan)
{
    enum { FILTER_SAMPLES = 64 }; /* twice FFmpeg's filter_size, because of its cutoff */
    int64_t source = reader->clock.rate;
    int64_t step = source / av_gcd(source, plan->rate);
    int64_t filter = FILTER_SAMPLES * FFMAX(1, (source + plan->rate - 1) / plan->rate);
    int64_t before = av_rescale_rnd(plan->begin, source, plan->rate, AV_ROUND_DOWN) - filter;
    plan->first = source == plan->rate ? plan->begin : FFMAX(before, 0) / step * step;
    plan->skip = (uint64_t)(plan->begin - av_rescale(plan->first, plan->rate, source));
}

/* The sample at a time is the one that has begun last. */
static int plan_window(const weir_sound_reader *reader, const weir_sound_window *window, sample_plan *plan,
                       weir_error *error)
{
    const weir_audio_config *config = window->config;
    int64_t rate = config->sample_rate ? (int64_t)config->sample_rate : reader->clock.rate;
    int64_t from_ns = av_sat_add64(av_sat_sub64(window->start_ns, first_ns(reader, window)), ROUNDING_NS);
    int64_t num = window->end_ns == INT64_MAX
                      ? INT64_MAX
                      : av_rescale(av_sat_sub64(window->end_ns, window->start_ns), rate, WEIR_SECOND);
    int64_t begin = av_rescale_rnd(from_ns, rate, WEIR_SECOND, AV_ROUND_DOWN);
    int64_t end = av_sat_add64(begin, num);
    if (end <= 0 || num == 0)
        return fail_range(error);
    begin = FFMAX(begin, 0);
    *plan = (sample_plan){ .config = config, .rate = rate, .begin = begin, .most = (uint64_t)(end - begin) };
    plan_resampling(reader, plan);
    return WEIR_OK;
}

static bool is_full(const weir_sound_reader *reader, const sample_plan *plan)
{
    const weir_audio *audio = reader->sound.resampler.audio;
    return audio && audio->num_samples >= plan->skip && audio->num_samples - plan->skip >= plan->most;
}

static int feed_frame(weir_sound_reader *reader, sample_plan *plan, const AVFrame *frame, weir_error *error)
{
    int64_t num_out = av_rescale_rnd(frame->nb_samples, plan->rate, reader->clock.rate, AV_ROUND_UP);
    plan->fed += frame->nb_samples;
    /* what comes before and after the window does not count */
    reader->sound.resampler.spare_samples = plan->skip + 2 * (uint64_t)num_out;
    return weir__sound_add(&reader->sound, plan->config, frame, error);
}

/* Where the stream has no samples. */
static int feed_silence(weir_sound_reader *reader, sample_plan *plan, const AVFrame *like, int64_t end,
                        weir_error *error)
{
    enum { MOST = 1 << 13 };
    int rc = WEIR_OK;
    while (rc == WEIR_OK && plan->fed < end && !is_full(reader, plan)) {
        AVFrame *silence = av_frame_alloc();
        if (!silence)
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        silence->format = like->format;
        silence->sample_rate = like->sample_rate;
        silence->best_effort_timestamp = like->best_effort_timestamp;
        silence->nb_samples = (int)FFMIN(end - plan->fed, MOST);
        if (av_channel_layout_copy(&silence->ch_layout, &like->ch_layout) < 0 || av_frame_get_buffer(silence, 0) < 0)
            rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        if (rc == WEIR_OK) {
            av_samples_set_silence(silence->extended_data, 0, silence->nb_samples, silence->ch_layout.nb_channels,
                                   silence->format);
            rc = feed_frame(reader, plan, silence, error);
        }
        av_frame_free(&silence);
    }
    return rc;
}

/* The frame without its first samples. */
static int feed_rest(weir_sound_reader *reader, sample_plan *plan, const AVFrame *frame, int num_left_out,
                     weir_error *error)
{
    bool is_planar = av_sample_fmt_is_planar(frame->format);
    int channels = frame->ch_layout.nb_channels;
    AVFrame *rest = av_frame_alloc();
    if (!rest || av_frame_ref(rest, frame) < 0) {
        av_frame_free(&rest);
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    int step_bytes = av_get_bytes_per_sample(frame->format) * (is_planar ? 1 : channels);
    for (int i = 0; i < (is_planar ? channels : 1); i++)
        rest->extended_data[i] += num_left_out * step_bytes;
    rest->nb_samples -= num_left_out;
    int rc = feed_frame(reader, plan, rest, error);
    av_frame_free(&rest);
    return rc;
}

/* Without resampling the first frame is fed as a whole: FFmpeg's mixer rounds by the position in the frame. */
static int feed_heard(weir_sound_reader *reader, sample_plan *plan, const weir_heard_frame *heard, weir_error *error)
{
    bool is_begun = reader->sound.resampler.audio;
    int rc = WEIR_OK;
    if (!is_begun)
        plan->fed = plan->first;
    if (end_of(heard) <= plan->fed) {
        reader->old_errors = reader->sound.decoder.num_errors;
        return WEIR_OK;
    }
    if (heard->begin > plan->fed)
        rc = feed_silence(reader, plan, heard->frame, heard->begin, error);
    if (rc != WEIR_OK || is_full(reader, plan))
        return rc;
    if (heard->begin < plan->fed && !is_begun && plan->rate == reader->clock.rate) {
        plan->skip += (uint64_t)(plan->fed - heard->begin);
        plan->fed = heard->begin;
    }
    if (heard->begin < plan->fed)
        return feed_rest(reader, plan, heard->frame, (int)(plan->fed - heard->begin), error);
    return feed_frame(reader, plan, heard->frame, error);
}

/* ---- a window ------------------------------------------------------------------------------------------------- */

static int fill_window(weir_sound_reader *reader, const char *path, const weir_sound_window *window,
                       sample_plan *plan, weir_error *error)
{
    const weir_heard_frame *heard;
    int rc = reader->is_open ? WEIR_OK : open_sound(reader, path, error);
    if (rc == WEIR_OK)
        rc = plan_window(reader, window, plan, error);
    if (rc == WEIR_OK) {
        reader->old_errors = reader->sound.decoder.num_errors;
        rc = go_to(reader, path, plan->first, error);
    }
    while (rc == WEIR_OK && !is_full(reader, plan)) {
        rc = next_frame(reader, &heard, error);
        if (rc == WEIR_OK)
            rc = feed_heard(reader, plan, heard, error);
    }
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

static int end_window(weir_sound_reader *reader, const weir_sound_window *window, const sample_plan *plan,
                      weir_audio **audio, weir_error *error)
{
    weir_decoder *decoder = &reader->sound.decoder;
    weir_audio *made = NULL;
    if (!reader->sound.resampler.audio)
        return fail_range(error);
    int rc = weir__resampler_end(&reader->sound.resampler, plan->skip, plan->most, &made, error);
    if (rc != WEIR_OK)
        return rc;
    if (made->num_samples == 0) {
        weir_audio_free(made);
        return fail_range(error);
    }
    made->start_ns = av_sat_add64(first_ns(reader, window), av_rescale(plan->begin, WEIR_SECOND, plan->rate));
    made->num_errors = decoder->num_errors - reader->old_errors;
    decoder->cost.num_errors = made->num_errors;
    made->cost = decoder->cost;
    *audio = made;
    return WEIR_OK;
}

int weir__sound_reader_window(weir_sound_reader *reader, const char *path, const weir_sound_window *window,
                              weir_audio **audio, weir_error *error)
{
    sample_plan plan = { 0 };
    reader->is_continuous = window->is_continuous;
    if (reader->is_open)
        weir__decoder_begin_cost(&reader->sound.decoder);
    else
        reader->sound.decoder.cost = (weir_decode_cost){ 0 };
    int rc = fill_window(reader, path, window, &plan, error);
    if (rc == WEIR_MORE) { /* once more, from the start */
        reader->must_count = true;
        weir__sound_reader_close(reader);
        rc = fill_window(reader, path, window, &plan, error);
    }
    if (rc == WEIR_OK)
        rc = end_window(reader, window, &plan, audio, error);
    weir__resampler_abort(&reader->sound.resampler);
    bool has_failed = rc != WEIR_OK && rc != WEIR_ERANGE;
    if (has_failed) /* the seek may have failed for the same reason */
        reader->must_count = false;
    if (has_failed || reader->sound.decoder.num_errors > reader->old_errors) /* what ended the reading may be over */
        weir__sound_reader_close(reader);
    return rc;
}
