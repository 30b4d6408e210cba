/* The audio decode stage: the whole sound of each file. A worker belongs to one slot. */
#include <weir/audio.h>

#include "stages/audio/audio_config.h"
#include "stages/audio/audio_stage.h"
#include "stages/audio/sound.h"
#include "stages/decoder/cost_parts.h"
#include "stages/ffmpeg/ffmpeg_log.h"

typedef struct audio_worker {
    weir_sound sound;
    weir_ffmpeg_log log;
    const weir_audio_config *config;
    weir_task *task; /* the running one */
    bool is_part;    /* of a video stage, which reports what it holds */
} audio_worker;

static int audio_config_init(void *config, weir_error *error)
{
    return weir__audio_config_check(config, error);
}

static void audio_config_free(void *config)
{
    weir__audio_config_clear(config);
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
    const AVFrame *frame = worker->sound.decoder.frame;
    if (worker->is_part)
        return;
    if (frame->nb_samples > 0)
        weir_task_advance(worker->task, "samples", (uint64_t)frame->nb_samples);
    weir_task_set_held(worker->task, WEIR_HOLDER_WORKER, weir__sound_bytes(&worker->sound));
}

static int audio_worker_init(void *self, const void *config, weir_task *task)
{
    audio_worker *worker = self;
    const weir_audio_config *audio = worker->config = config;
    if (weir__sound_init(&worker->sound, audio, audio->input, is_audio_stopped, count_samples, worker) != WEIR_OK)
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    return WEIR_OK;
}

static void audio_worker_free(void *self)
{
    audio_worker *worker = self;
    weir__sound_free(&worker->sound);
}

int weir__audio_decode_bytes(void *self, const weir_bytes *bytes, weir_task *task, weir_audio **audio,
                             weir_decode_cost *cost, weir_error *error)
{
    audio_worker *worker = self;
    worker->task = task;
    worker->is_part = true;
    worker->sound.decoder.cost = (weir_decode_cost){ 0 };
    worker->sound.decoder.input.bytes = bytes;
    int rc = weir__sound_decode(&worker->sound, worker->config, bytes->name ? bytes->name : "(memory)", audio, error);
    *cost = worker->sound.decoder.cost;
    return rc;
}

static int audio_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    audio_worker *worker = self;
    const char *path = weir__input_choose(&worker->sound.decoder.input, in);
    const char *label = weir_task_label(task);
    weir_audio *audio = NULL;
    weir_error error = { 0 };

    worker->task = task;
    worker->sound.decoder.cost = (weir_decode_cost){ 0 };
    weir__ffmpeg_log_begin(&worker->log, label[0] ? label : path, path);
    int rc = weir__input_check_whole(in, &error);
    if (rc == WEIR_OK)
        rc = weir__sound_decode(&worker->sound, worker->config, path, &audio, &error);
    weir__ffmpeg_log_end();
    weir__cost_tell(task, &worker->sound.decoder.cost);
    weir_task_set_held(task, WEIR_HOLDER_WORKER, weir__sound_bytes(&worker->sound));
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
