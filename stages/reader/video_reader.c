/*
 * The reader owns a picture reader, and what that borrows: the config, the name, the source, and the request. The file is open
 * from weir_video_reader_open() on. It is closed after a failure, and where the open file cannot answer the next request;
 * then that opens it again. FFmpeg's log is taken in each call, as the picture reader wants it.
 *
 * A request: own_request() copies and checks it; begin_request() ends the one before, and hands it to the picture reader;
 * give_chunk() takes the results. Its copy lives until the next one, because the picture reader uses it until then.
 */
#include <weir/video_reader.h>

#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

#include "common/random.h"
#include "stages/audio/audio_config.h"
#include "stages/config/own_config.h"
#include "stages/config/picture_fields.h"
#include "stages/memory/block_pool.h"
#include "stages/memory/pixel_kind.h"
#include "stages/memory/shared_data.h"
#include "stages/reader/frame_selection.h"
#include "stages/reader/kept_reader.h"
#include "stages/reader/picture_reader.h"
#include "stages/reader/reader_sound.h"
#include "stages/reader/reader_source.h"
#include "stages/reader/remote_reader.h"
#include "stages/reader/sampling_fields.h"
#include "stages/reader/video_config.h"
#include "stages/reader/video_info.h"

/* A copy, checked; all-zero owns nothing. */
typedef struct reader_request {
    weir_sampling *sampling;
    const weir_picture_config *picture;
    size_t picture_size;
    uint8_t *into; /* the program's */
    size_t into_bytes;
    bool is_survey; /* wants the facts of all frames */
} reader_request;

typedef enum step_state { NOT_BEGUN = 0, GOING, ENDED } step_state;

struct weir_video_reader {
    /* immutable after open */
    weir_video_config config;
    weir_reader_source source;
    weir_remote_reader remote; /* its self = NULL: this reader does the work itself */
    int64_t user_place;        /* where the program's file is: that of the frames and that of the sound share it */
    weir_video_info info;

    uint64_t epoch, number; /* of the random frames */
    weir_picture_reader reader;
    bool is_open;

    reader_request request;
    step_state step; /* of weir_video_reader_next() */

    weir_reader_sound sound; /* apart from requests */
};

static int fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- the source ----------------------------------------------------------------------------------------------- */

/* A file that cannot be read twice is read into memory. */
static int load_source(weir_video_reader *reader, weir_error *error)
{
    weir_input *input = &reader->reader.decoder.input;
    weir_reader_source *source = &reader->source;
    int rc = WEIR_OK;
    if (source->given.functions && !source->user.functions.seek)
        rc = weir__reader_source_load(source, reader->config.input->max_pipe_bytes, error);
    source->user.position = reader->user_place = -1;
    source->user.place = &reader->user_place;
    input->bytes = source->given.bytes ? source->given.bytes : source->loaded;
    input->user = source->given.functions && !input->bytes ? &source->user : NULL;
    input->is_read_again = !source->given.one_request || !weir__sampling_is_plain(&reader->config.sampling);
    return rc;
}

static int open_file(weir_video_reader *reader, weir_error *error)
{
    reader->reader.frames.table = reader->source.given.packets;
    reader->reader.frames.table_bytes = reader->source.given.packets_bytes;
    reader->is_open = true;
    return weir__picture_reader_open(&reader->reader, reader->source.path, error);
}

static void close_file(weir_video_reader *reader)
{
    weir__picture_reader_close(&reader->reader);
    reader->is_open = false;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

int weir__video_reader_config(weir_video_config *own, const weir_video_config *config, size_t config_size,
                              weir_error *error)
{
    weir_video_config checked;
    if (config && config_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "a weir_video_config is given, but its size is 0: pass its sizeof");
    int rc = weir_struct_copy(&checked, sizeof checked, config, config_size, "weir_video_config", error);
    if (rc == WEIR_OK && checked.audio)
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "audio: a video reader returns sound by weir_video_reader_sound(); set audio to NULL");
    if (rc == WEIR_OK)
        rc = weir__video_config_check(&checked, error);
    if (rc == WEIR_OK)
        *own = checked;
    return rc;
}

static int open_source(weir_video_reader *reader, weir_error *error)
{
    weir__picture_reader_enter(&reader->reader, reader->source.path, reader->source.path);
    int rc = load_source(reader, error);
    if (rc == WEIR_OK)
        rc = open_file(reader, error);
    if (rc == WEIR_OK)
        reader->info = weir__video_info_of(&reader->reader.decoder);
    weir__picture_reader_leave(&reader->reader);
    return rc;
}

static int prepare(weir_video_reader *reader, const weir_video_config *config, size_t config_size, weir_error *error)
{
    const weir_video_source *source = &reader->source.given;
    int rc = weir__video_reader_config(&reader->config, config, config_size, error);
    if (rc != WEIR_OK)
        return rc;
    if (weir__picture_reader_init(&reader->reader, &reader->config, source->should_stop, NULL, source->self) !=
        WEIR_OK) {
        rc = fail_memory(error);
        goto no_reader;
    }
    reader->reader.frames.stays_open = true;
    rc = open_source(reader, error);
    if (rc == WEIR_OK)
        return WEIR_OK;
    weir__picture_reader_free(&reader->reader);
no_reader:
    weir__video_config_free(&reader->config);
    return rc;
}

int weir_video_reader_open(weir_video_reader **made, const weir_video_source *source, size_t source_size,
                           const weir_video_config *config, size_t config_size, weir_error *error)
{
    weir_reader_source own;
    if (made)
        *made = NULL;
    if (!made || !source || source_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_video_reader_open(): reader, source or source_size is missing");
    int rc = weir__reader_source_take(&own, source, source_size, error);
    weir_video_reader *reader = rc == WEIR_OK ? calloc(1, sizeof *reader) : NULL;
    if (!reader) {
        weir__reader_source_free(&own);
        return rc == WEIR_OK ? fail_memory(error) : rc;
    }
    reader->source = own;
    rc = prepare(reader, config, config_size, error);
    if (rc == WEIR_OK) {
        *made = reader;
    } else {
        weir__reader_source_free(&reader->source);
        free(reader);
    }
    return rc;
}

weir_video_reader *weir__video_reader_of_remote(const weir_remote_reader *remote, const weir_video_info *info)
{
    weir_video_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->remote = *remote;
    reader->info = *info;
    return reader;
}

static void free_request(reader_request *request)
{
    if (request->sampling)
        weir__sampling_free(request->sampling);
    free(request->sampling);
    weir__picture_config_free(request->picture);
    *request = (reader_request){ 0 };
}

void weir_video_reader_free(weir_video_reader *reader)
{
    if (!reader)
        return;
    if (reader->remote.self) {
        reader->remote.free(reader->remote.self);
    } else {
        weir__reader_sound_reset(&reader->sound);
        weir__picture_reader_free(&reader->reader);
        free_request(&reader->request);
        weir__video_config_free(&reader->config);
        weir__reader_source_free(&reader->source);
    }
    free(reader);
}

int weir_video_reader_info(const weir_video_reader *reader, weir_video_info *info, size_t info_size)
{
    if (!reader || !info)
        return WEIR_EINVAL;
    return weir_struct_fill(info, info_size, &reader->info, sizeof reader->info);
}

int weir_video_reader_set_number(weir_video_reader *reader, uint64_t epoch, uint64_t number)
{
    if (!reader)
        return WEIR_EINVAL;
    reader->epoch = epoch;
    reader->number = number;
    return WEIR_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

static int own_sampling(const weir_sampling *given, size_t given_size, weir_sampling **own, weir_error *error)
{
    void *copy;
    *own = NULL;
    if (!given)
        return WEIR_OK;
    int rc = weir__config_copy(&weir__sampling_fields, given, given_size, &copy, error);
    if (rc == WEIR_OK && (rc = weir__sampling_init(copy, error)) != WEIR_OK)
        weir__config_free(&weir__sampling_fields, copy);
    else if (rc == WEIR_OK)
        *own = copy;
    return rc;
}

/* WEIR_OK, and *own is to be freed; or the failure with *error filled. */
static int own_request(const weir_sampling *sampling, size_t sampling_size, const weir_picture_config *picture,
                       size_t picture_size, reader_request *own, weir_error *error)
{
    *own = (reader_request){ 0 };
    int rc = own_sampling(sampling, sampling_size, &own->sampling, error);
    if (rc != WEIR_OK || !picture)
        return rc;
    const weir_picture_config *copy = picture;
    rc = weir__picture_config_own(&copy, &picture_size, error);
    if (rc == WEIR_OK)
        own->picture = copy;
    else
        free_request(own);
    return rc;
}

/* What weir_video_reader_next() gives: a clip, or frames. */
static int choose_parts(const weir_video_config *config, weir_picture_request *wanted, weir_error *error)
{
    wanted->clip_items = config->clip_items;
    if (wanted->clip_items)
        return weir__video_clips_check(wanted->sampling, error);
    wanted->chunk_frames = config->chunk_frames ? config->chunk_frames : 1;
    return weir__video_chunks_check(wanted->sampling, error);
}

/* Takes the request over, whatever the result, and makes it the current one. */
static int begin_request(weir_video_reader *reader, reader_request *own, bool is_in_parts, weir_error *error)
{
    weir_picture_request wanted = {
        .sampling = own->sampling ? own->sampling : &reader->config.sampling,
        .picture = own->picture ? own->picture : reader->config.picture,
        .number = weir__random_seed(reader->epoch, reader->number),
        .into = own->into,
        .into_bytes = own->into_bytes,
    };
    int rc = weir__video_filter_check(wanted.picture, wanted.sampling, error);
    if (rc == WEIR_OK && is_in_parts)
        rc = choose_parts(&reader->config, &wanted, error);
    if (rc != WEIR_OK) {
        free_request(own);
        return rc;
    }
    reader->reader.frames.is_survey = own->is_survey;
    if (reader->is_open && !weir__frame_reader_can_select(&reader->reader.frames, wanted.sampling))
        close_file(reader);
    weir__picture_reader_enter(&reader->reader, reader->source.path, reader->source.path);
    rc = reader->is_open ? WEIR_OK : open_file(reader, error);
    if (rc == WEIR_OK)
        rc = weir__picture_reader_ask(&reader->reader, &wanted, error);
    weir__picture_reader_leave(&reader->reader);
    free_request(&reader->request);
    reader->request = *own;
    if (rc != WEIR_OK)
        close_file(reader);
    return rc;
}

/* The next result. WEIR_OK: it is the last one. WEIR_MORE: it is not. */
static int give_chunk(weir_video_reader *reader, weir_frames **frames, weir_error *error)
{
    weir__picture_reader_enter(&reader->reader, reader->source.path, reader->source.path);
    int rc = weir__picture_reader_chunk(&reader->reader, frames, error);
    weir__picture_reader_leave(&reader->reader);
    if (rc < 0)
        close_file(reader);
    return rc;
}

/* Passes a call on, with the request, which is freed. */
static int call_remote(weir_video_reader *reader, weir_reader_verb verb, reader_request *own,
                       weir_reader_answer *answer, weir_error *error)
{
    const weir_reader_call call = {
        .verb = verb,
        .sampling = own ? own->sampling : NULL,
        .picture = own ? own->picture : NULL,
        .epoch = reader->epoch,
        .number = reader->number,
    };
    *answer = (weir_reader_answer){ 0 };
    int rc = reader->remote.call(reader->remote.self, &call, answer, error);
    if (own)
        free_request(own);
    return rc;
}

/* The frames are in the memory of the process that has made them. */
static int move_frames(weir_frames *frames, uint8_t *into, size_t into_bytes, weir_error *error)
{
    size_t num_bytes = frames->num_frames * frames->frame_bytes;
    if (num_bytes > into_bytes)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "the frames need more than the %zu bytes of the memory that was given", into_bytes);
    weir_block *lent = weir__block_lend(into);
    if (!lent)
        return fail_memory(error);
    memcpy(into, frames->data, num_bytes);
    weir__shared_data_free(frames->data, frames->shared);
    frames->memory_bytes -= frames->shared ? frames->shared->size_bytes : num_bytes;
    frames->shared = NULL;
    frames->data = into;
    frames->block = lent;
    return WEIR_OK;
}

static int decode_remotely(weir_video_reader *reader, reader_request *own, weir_frames **frames, weir_error *error)
{
    weir_reader_answer answer;
    uint8_t *into = own->into;
    size_t into_bytes = own->into_bytes;
    int rc = call_remote(reader, WEIR_READER_FRAMES, own, &answer, error);
    if (rc == WEIR_OK && into && (rc = move_frames(answer.frames, into, into_bytes, error)) != WEIR_OK) {
        weir_frames_free(answer.frames);
        answer.frames = NULL;
    }
    *frames = answer.frames;
    return rc;
}

/* into = NULL: the frames have memory of their own. */
static int decode_request(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                          const weir_picture_config *picture, size_t picture_size, uint8_t *into, size_t into_bytes,
                          weir_frames **frames, weir_error *error)
{
    reader_request own;
    *frames = NULL;
    int rc = own_request(sampling, sampling_size, picture, picture_size, &own, error);
    if (rc != WEIR_OK)
        return rc;
    own.into = into;
    own.into_bytes = into_bytes;
    reader->step = NOT_BEGUN;
    if (reader->remote.self)
        return decode_remotely(reader, &own, frames, error);
    rc = begin_request(reader, &own, false, error);
    return rc == WEIR_OK ? give_chunk(reader, frames, error) : rc;
}

int weir_video_reader_frames(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                             const weir_picture_config *picture, size_t picture_size, weir_frames **frames,
                             weir_error *error)
{
    if (!reader || !frames)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_frames(): reader or frames is missing");
    return decode_request(reader, sampling, sampling_size, picture, picture_size, NULL, 0, frames, error);
}

int weir_video_reader_frames_into(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                                  const weir_picture_config *picture, size_t picture_size, void *data,
                                  size_t num_bytes, weir_frames **frames, weir_error *error)
{
    if (!reader || !data || !frames)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_video_reader_frames_into(): reader, data or frames is missing");
    return decode_request(reader, sampling, sampling_size, picture, picture_size, data, num_bytes, frames, error);
}

/* A request for all frames reads without an index: the same frames, selected, are counted. */
static int select_all(const weir_video_reader *reader, reader_request *own, weir_error *error)
{
    const weir_sampling *sampling = own->sampling ? own->sampling : &reader->config.sampling;
    if (!weir__sampling_is_plain(sampling))
        return WEIR_OK;
    weir_sampling *every = calloc(1, sizeof *every);
    if (!every)
        return fail_memory(error);
    *every = (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1, .count = sampling->count };
    free(own->sampling); /* it has no lists */
    own->sampling = every;
    return WEIR_OK;
}

static int measure_remotely(weir_video_reader *reader, reader_request *own, weir_frames_size *size, size_t size_size,
                            weir_error *error)
{
    weir_reader_answer answer;
    int rc = call_remote(reader, WEIR_READER_MEASURE, own, &answer, error);
    return rc == WEIR_OK ? weir_struct_fill(size, size_size, &answer.size, sizeof answer.size) : rc;
}

static int measure_request(const weir_video_reader *reader, weir_frames_size *size, weir_error *error)
{
    const weir_picture_config *picture = reader->reader.wanted.picture;
    *size = (weir_frames_size){ .num_frames = reader->reader.frames.targets.num,
                                .num_clips = reader->reader.wanted.sampling->num_clips };
    int width, height;
    int rc = weir__picture_reader_size(&reader->reader, &width, &height, error);
    if (rc != WEIR_OK)
        return rc;
    size->width = (uint32_t)width;
    size->height = (uint32_t)height;
    if (size->width == 0 || size->height == 0)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "the header does not say the size of the pictures: set a width and a height");
    size->channels = weir__pixel_channels(picture->pixel);
    size->frame_bytes = weir__scaler_picture_bytes(picture->pixel, size->width, size->height);
    size->num_bytes = size->num_frames * size->frame_bytes;
    return WEIR_OK;
}

int weir_video_reader_measure(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                              const weir_picture_config *picture, size_t picture_size, weir_frames_size *size,
                              size_t size_size, weir_error *error)
{
    reader_request own;
    weir_frames_size measured;
    if (!reader || !size)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_measure(): reader or size is missing");
    int rc = own_request(sampling, sampling_size, picture, picture_size, &own, error);
    if (rc != WEIR_OK)
        return rc;
    reader->step = NOT_BEGUN;
    if (reader->remote.self)
        return measure_remotely(reader, &own, size, size_size, error);
    const weir_picture_config *wanted = own.picture ? own.picture : reader->config.picture;
    if (wanted->filter)
        rc = weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                            "the filter \"%s\" may output any number of frames: their size cannot be measured",
                            wanted->filter);
    if (rc == WEIR_OK)
        rc = select_all(reader, &own, error);
    if (rc != WEIR_OK) {
        free_request(&own);
        return rc;
    }
    rc = begin_request(reader, &own, false, error);
    if (rc == WEIR_OK)
        rc = measure_request(reader, &measured, error);
    return rc == WEIR_OK ? weir_struct_fill(size, size_size, &measured, sizeof measured) : rc;
}

static void note_facts(weir_video_reader *reader)
{
    const weir_timeline *timeline = &reader->reader.frames.timeline;
    weir_video_info *info = &reader->info;
    info->is_exact = true;
    info->num_frames = timeline->num_frames;
    info->num_keyframes = 0;
    for (size_t i = 0; i < timeline->num_frames; i++)
        info->num_keyframes += weir__timeline_is_key(timeline, i);
    info->duration_ns = timeline->num_frames ? weir__timeline_ns(timeline, timeline->num_frames) : 0;
    info->start_ns = timeline->num_frames ? weir__timeline_start_ns(timeline) : 0;
}

/* times = NULL: only the facts are wanted. */
static int scan_remotely(weir_video_reader *reader, weir_reader_verb verb, weir_frame_times **times,
                         weir_error *error)
{
    weir_reader_answer answer;
    int rc = call_remote(reader, verb, NULL, &answer, error);
    if (rc == WEIR_OK)
        reader->info = answer.info;
    if (times)
        *times = answer.times;
    return rc;
}

int weir_video_reader_scan(weir_video_reader *reader, weir_error *error)
{
    reader_request own;
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 1 };
    const weir_picture_config coded = { 0 }; /* without a filter */
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_scan(): reader is missing");
    reader->step = NOT_BEGUN;
    if (reader->remote.self)
        return scan_remotely(reader, WEIR_READER_SCAN, NULL, error);
    int rc = own_request(&every, sizeof every, &coded, sizeof coded, &own, error);
    if (rc != WEIR_OK)
        return rc;
    own.is_survey = true;
    rc = begin_request(reader, &own, false, error);
    if (rc == WEIR_OK)
        note_facts(reader);
    return rc;
}

int weir_video_reader_times(weir_video_reader *reader, weir_frame_times **times, weir_error *error)
{
    if (!reader || !times)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_times(): reader or times is missing");
    *times = NULL;
    if (reader->remote.self) {
        reader->step = NOT_BEGUN;
        return scan_remotely(reader, WEIR_READER_TIMES, times, error);
    }
    int rc = weir_video_reader_scan(reader, error);
    if (rc != WEIR_OK)
        return rc;
    const weir_timeline *timeline = &reader->reader.frames.timeline;
    size_t num_frames = timeline->num_frames;
    weir_frame_times *made = calloc(1, sizeof *made);
    if (made) {
        made->times_ns = calloc(num_frames + 1, sizeof *made->times_ns);
        made->is_key = calloc(num_frames + 1, sizeof *made->is_key);
    }
    if (!made || !made->times_ns || !made->is_key) {
        weir_frame_times_free(made);
        return fail_memory(error);
    }
    made->num_frames = num_frames;
    made->end_ns = reader->info.duration_ns;
    for (size_t i = 0; i < num_frames; i++) {
        made->times_ns[i] = weir__timeline_ns(timeline, i);
        made->is_key[i] = weir__timeline_is_key(timeline, i);
    }
    *times = made;
    return WEIR_OK;
}

void weir_frame_times_free(weir_frame_times *times)
{
    if (!times)
        return;
    free(times->times_ns);
    free(times->is_key);
    free(times);
}

int weir_video_reader_begin(weir_video_reader *reader, const weir_sampling *sampling, size_t sampling_size,
                            const weir_picture_config *picture, size_t picture_size, weir_error *error)
{
    reader_request own;
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_begin(): reader is missing");
    int rc = own_request(sampling, sampling_size, picture, picture_size, &own, error);
    if (rc != WEIR_OK)
        return rc;
    reader->step = NOT_BEGUN;
    weir_reader_answer answer;
    if (reader->remote.self)
        rc = call_remote(reader, WEIR_READER_BEGIN, &own, &answer, error);
    else
        rc = begin_request(reader, &own, true, error);
    reader->step = rc == WEIR_OK ? GOING : NOT_BEGUN;
    return rc;
}

/* As give_chunk(). */
static int give_remotely(weir_video_reader *reader, weir_frames **frames, weir_error *error)
{
    weir_reader_answer answer;
    int rc = call_remote(reader, WEIR_READER_NEXT, NULL, &answer, error);
    *frames = answer.frames;
    return rc == WEIR_OK && !answer.frames->is_last_chunk ? WEIR_MORE : rc;
}

int weir_video_reader_next(weir_video_reader *reader, weir_frames **frames, weir_error *error)
{
    if (!reader || !frames)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_next(): reader or frames is missing");
    *frames = NULL;
    if (reader->step == ENDED)
        return WEIR_EOF;
    if (reader->step == NOT_BEGUN)
        return weir_error_set(error, WEIR_EINVAL, 0, "no request has begun: call weir_video_reader_begin() first");
    int rc = reader->remote.self ? give_remotely(reader, frames, error) : give_chunk(reader, frames, error);
    reader->step = rc == WEIR_MORE ? GOING : rc == WEIR_OK ? ENDED : NOT_BEGUN;
    return rc == WEIR_MORE ? WEIR_OK : rc;
}

/* ---- sound ----------------------------------------------------------------------------------------------------- */

/* Takes the config over. */
static int hear_remotely(weir_video_reader *reader, const weir_audio_config *config, int64_t start_ns, int64_t end_ns,
                         weir_audio **audio, weir_error *error)
{
    const weir_reader_call call = {
        .verb = WEIR_READER_SOUND, .sound = config, .start_ns = start_ns, .end_ns = end_ns
    };
    weir_reader_answer answer = { 0 };
    int rc = reader->remote.call(reader->remote.self, &call, &answer, error);
    weir__audio_config_free(config);
    *audio = answer.audio;
    return rc;
}

int weir_video_reader_sound(weir_video_reader *reader, const weir_audio_config *config, size_t config_size,
                            int64_t start_ns, int64_t end_ns, weir_audio **audio, weir_error *error)
{
    if (!reader || !audio)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_sound(): reader or audio is missing");
    *audio = NULL;
    if (start_ns >= end_ns)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the window ends before it begins: end_ns must be after start_ns");
    if (reader->source.given.one_request)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "one_request is set: the source is not read again for its sound");
    const weir_audio_config *own = config;
    int rc = weir__audio_config_own(&own, config_size, error);
    if (rc != WEIR_OK)
        return rc;
    if (reader->remote.self)
        return hear_remotely(reader, own, start_ns, end_ns, audio, error);
    reader->sound.video = &reader->reader;
    reader->sound.path = reader->source.path;
    return weir__reader_sound_window(&reader->sound, own, start_ns, end_ns, audio, error);
}

/* ---- a reader that is kept ------------------------------------------------------------------------------------ */

void weir__video_reader_bind(weir_video_reader *reader, bool (*should_stop)(void *self), void *self)
{
    reader->reader.decoder.should_stop = should_stop;
    reader->reader.decoder.on_frame = NULL;
    reader->reader.decoder.self = self;
}

void weir__video_reader_watch(weir_video_reader *reader, void (*on_frame)(void *self))
{
    reader->reader.decoder.on_frame = on_frame;
    reader->reader.frames.keeps_recent = reader->config.decoder->threads <= 1;
}

const weir_decode_cost *weir__video_reader_cost(const weir_video_reader *reader)
{
    return &reader->reader.decoder.cost;
}

const char *weir__video_reader_path(const weir_video_reader *reader)
{
    return reader->source.path;
}

bool weir__video_reader_file(const weir_video_reader *reader, struct stat *file)
{
    const weir_input *input = &reader->reader.decoder.input;
    if (!reader->source.given.path || !reader->is_open || !input->file.is_open || !S_ISREG(input->file.info.st_mode))
        return false;
    *file = input->file.info;
    return true;
}

static int is_look_interrupted(void *self)
{
    const weir_decoder *decoder = &((weir_video_reader *)self)->reader.decoder;
    return decoder->should_stop && decoder->should_stop(decoder->self);
}

bool weir__video_reader_look(weir_video_reader *reader, struct stat *file)
{
    weir_local_file named;
    AVIOInterruptCB interrupt = { .callback = is_look_interrupted, .opaque = reader };
    int rc = weir__local_file_open(&named, &reader->reader.decoder.input.host, reader->source.path, -1, false,
                                   interrupt, NULL);
    *file = named.info;
    weir__local_file_close(&named);
    return rc == WEIR_OK && S_ISREG(file->st_mode);
}

bool weir__video_reader_rest(weir_video_reader *reader)
{
    static const weir_sampling selected = { .what = WEIR_SAMPLE_EVERY, .every = 1 };
    if (!reader->is_open || !weir__frame_reader_can_select(&reader->reader.frames, &selected))
        return false;
    weir__picture_reader_rest(&reader->reader);
    weir__reader_sound_reset(&reader->sound);
    free_request(&reader->request);
    reader->step = NOT_BEGUN;
    reader->epoch = 0;
    reader->number = 0;
    reader->info = weir__video_info_of(&reader->reader.decoder);
    return true;
}

uint64_t weir__video_reader_bytes(const weir_video_reader *reader)
{
    return sizeof *reader + reader->source.given.packets_bytes + weir__picture_reader_bytes(&reader->reader);
}
