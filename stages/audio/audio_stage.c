/* The audio decode stage: runs the decoder and the resampler for each file. A worker belongs to one slot. */
#include <assert.h>
#include <weir/audio.h>

#include <inttypes.h>
#include <stdio.h>

#include <weir/clock.h>

#include "stages/audio/audio_stage.h"
#include "stages/audio/resampler.h"
#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/decoder/cost_parts.h"
#include "stages/decoder/decoder.h"
#include "stages/ffmpeg/ffmpeg_log.h"

typedef struct audio_worker {
    weir_decoder decoder;
    weir_resampler resampler;
    weir_ffmpeg_log log;
    const weir_audio_config *config;
    weir_task *task; /* the running one */
} audio_worker;

#define AUDIO_CONFIG_FIELDS(FIELD, type) \
    FIELD(type, input, CONFIG, &weir__input_fields, input_size) \
    FIELD(type, input_size, OURS, 0, 0) \
    FIELD(type, decoder, CONFIG, &weir__decoder_fields, decoder_size) \
    FIELD(type, decoder_size, OURS, 0, 0) \
    FIELD(type, sample_rate, UNSIGNED, 0, MAX_RATE_HZ) \
    FIELD(type, channels, UNSIGNED, 0, WEIR_RESAMPLER_MAX_CHANNELS) \
    FIELD(type, planar, UNSIGNED, false, true) \
    FIELD(type, stream, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, max_bytes, UNSIGNED, 0, UINT64_MAX)

enum { MAX_RATE_HZ = 1 << 22 };

DEFINE_STRUCT_RULES(weir__audio_config_fields, weir_audio_config, "weir_audio_config", AUDIO_CONFIG_FIELDS);

static void audio_config_free(void *config)
{
    weir_audio_config *audio = config;
    weir__input_config_free(audio->input);
    weir__decoder_config_free(audio->decoder);
}

static int audio_config_init(void *config, weir_error *error)
{
    weir_audio_config *audio = config;
    int rc = weir__rules_check(&weir__audio_config_fields, audio, error);
    if (rc == WEIR_OK)
        rc = weir__input_config_own(&audio->input, &audio->input_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__decoder_config_own(&audio->decoder, &audio->decoder_size, error);
    if (rc != WEIR_OK)
        goto no_decoder;
    rc = weir__decoder_config_check_sound(audio->decoder, error);
    if (rc != WEIR_OK)
        goto no_sound;
    if (audio->max_bytes == 0)
        audio->max_bytes = UINT64_C(8) << 30;
    weir__ffmpeg_log_install();
    return WEIR_OK;
no_sound:
    weir__decoder_config_free(audio->decoder);
no_decoder:
    weir__input_config_free(audio->input);
    return rc;
}

static bool is_audio_stopped(void *self)
{
    const audio_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

/* A task of the video stage counts frames, and does not take samples. */
static void count_samples(void *self)
{
    const audio_worker *worker = self;
    if (worker->decoder.frame->nb_samples > 0)
        weir_task_advance(worker->task, "samples", (uint64_t)worker->decoder.frame->nb_samples);
}

static int audio_worker_init(void *self, const void *config, weir_task *task)
{
    audio_worker *worker = self;
    const weir_audio_config *audio = worker->config = config;
    worker->decoder = (weir_decoder){
        .should_stop = is_audio_stopped,
        .on_frame = count_samples,
        .self = worker,
        .config = audio->decoder,
        .media = AVMEDIA_TYPE_AUDIO,
        .stream_number = audio->stream,
        .input.config = audio->input,
    };
    if (weir__decoder_init(&worker->decoder) != WEIR_OK) {
        weir__decoder_free(&worker->decoder);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    return WEIR_OK;
}

static void audio_worker_free(void *self)
{
    audio_worker *worker = self;
    weir__resampler_abort(&worker->resampler);
    weir__decoder_free(&worker->decoder);
}

static int begin_samples(audio_worker *worker, const weir_audio_config *config, weir_error *error)
{
    const weir_decoder *decoder = &worker->decoder;
    const AVFrame *frame = decoder->frame;
    int rc = weir__resampler_begin(&worker->resampler, config, frame, error);
    if (rc != WEIR_OK)
        return rc;
    const AVRational nanosecond = { 1, 1000000000 };
    int64_t pts = frame->best_effort_timestamp;
    weir_audio *audio = worker->resampler.audio;
    audio->start_ns = pts == AV_NOPTS_VALUE ? INT64_MIN : av_rescale_q(pts, decoder->stream->time_base, nanosecond);
    audio->stream = weir__decoder_stream_number(decoder);
    audio->stream_index = (uint32_t)decoder->stream->index;
    snprintf(audio->codec, sizeof audio->codec, "%s", avcodec_get_name(decoder->codec->codec_id));
    return WEIR_OK;
}

static int add_frame(audio_worker *worker, const weir_audio_config *config, weir_error *error)
{
    int64_t start_ns = weir_clock_ns();
    int rc = worker->resampler.audio ? WEIR_OK : begin_samples(worker, config, error);
    if (rc == WEIR_OK)
        rc = weir__resampler_add(&worker->resampler, worker->decoder.frame, error);
    worker->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

/* All samples of one file. */
static int decode_file(audio_worker *worker, const char *path, weir_audio **audio, weir_error *error)
{
    const weir_audio_config *config = worker->config;
    weir_decoder *decoder = &worker->decoder;
    weir_resampler *resampler = &worker->resampler;
    int rc = weir__decoder_open(decoder, path, error);
    while (rc == WEIR_OK) {
        rc = weir__decoder_next(decoder, error);
        if (rc == WEIR_OK)
            rc = add_frame(worker, config, error);
    }
    if (rc == WEIR_EOF)
        rc = resampler->audio
                 ? weir__resampler_end(resampler, audio, error)
                 : weir__decoder_fail_empty(decoder, "no samples: the audio stream is empty or truncated", error);
    decoder->cost.num_errors = decoder->num_errors;
    if (rc == WEIR_OK) {
        assert(*audio);
        (*audio)->num_errors = decoder->num_errors;
        (*audio)->cost = decoder->cost;
    }
    weir__resampler_abort(resampler);
    weir__decoder_close(decoder);
    return rc;
}

int weir__audio_decode_bytes(void *self, const weir_bytes *bytes, weir_task *task, weir_audio **audio,
                             weir_decode_cost *cost, weir_error *error)
{
    audio_worker *worker = self;
    worker->task = task;
    worker->decoder.cost = (weir_decode_cost){ 0 };
    worker->decoder.input.bytes = bytes;
    int rc = decode_file(worker, bytes->name ? bytes->name : "(memory)", audio, error);
    *cost = worker->decoder.cost;
    return rc;
}

static int audio_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    audio_worker *worker = self;
    const char *path = weir__input_choose(&worker->decoder.input, in);
    const char *label = weir_task_label(task);
    weir_audio *audio = NULL;
    weir_error error = { 0 };

    worker->task = task;
    worker->decoder.cost = (weir_decode_cost){ 0 };
    weir__ffmpeg_log_begin(&worker->log, label[0] ? label : path, path);
    int rc = weir__input_check_whole(in, &error);
    if (rc == WEIR_OK)
        rc = decode_file(worker, path, &audio, &error);
    weir__ffmpeg_log_end();
    weir__cost_tell(task, &worker->decoder.cost);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);

    if (weir__input_give(in, true, &audio->entry, &audio->sidecars, &audio->memory_bytes) != WEIR_OK) {
        weir_audio_free(audio);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    *out = (weir_item){ .data = audio, .release = weir_audio_release, .size_bytes = audio->memory_bytes };
    return WEIR_OK;
}

const weir_op weir_audio_decode = {
    .name = "audio",
    .takes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
    .makes = WEIR_TYPE_AUDIO,
    .config_size = sizeof(weir_audio_config),
    .config_init = audio_config_init,
    .config_free = audio_config_free,
    .worker_size = sizeof(audio_worker),
    .worker_init = audio_worker_init,
    .run = audio_run,
    .worker_free = audio_worker_free,
};
