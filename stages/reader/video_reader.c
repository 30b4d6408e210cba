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
#include "stages/config/own_config.h"
#include "stages/config/picture_fields.h"
#include "stages/memory/pixel_kind.h"
#include "stages/reader/frame_selection.h"
#include "stages/reader/kept_reader.h"
#include "stages/reader/picture_reader.h"
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
    weir_video_source source; /* its pointers are the caller's, except bytes if own_bytes */
    weir_bytes *loaded;       /* the file, if the program's functions cannot seek */
    weir_user_file user;
    char *path; /* to open, and for messages */
    weir_video_info info;

    uint64_t number; /* of the random frames */
    weir_picture_reader reader;
    bool is_open;

    reader_request request;
    step_state step; /* of weir_video_reader_next() */
};

static int fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- the source ----------------------------------------------------------------------------------------------- */

static int check_source(const weir_video_source *source, weir_error *error)
{
    if (!!source->path + !!source->bytes + !!source->functions != 1)
        return weir_error_set(error, WEIR_EINVAL, 0, "set exactly one of path, bytes and functions");
    if (source->own_bytes && !source->bytes)
        return weir_error_set(error, WEIR_EINVAL, 0, "own_bytes is set, but there are no bytes");
    return WEIR_OK;
}

static int own_functions(weir_video_reader *reader, weir_error *error)
{
    const weir_video_source *source = &reader->source;
    weir_file_functions *own = &reader->user.functions;
    if (!source->functions)
        return WEIR_OK;
    if (source->functions_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "functions are given, but functions_size is 0: pass sizeof(weir_file_functions)");
    int rc =
        weir_struct_copy(own, sizeof *own, source->functions, source->functions_size, "weir_file_functions", error);
    if (rc == WEIR_OK && (!own->read || own->size_bytes < 0))
        rc = weir_error_set(error, WEIR_EINVAL, 0, "%s",
                            own->read ? "functions.size_bytes is negative" : "functions.read is missing");
    return rc;
}

static const char *name_of(const weir_video_source *source)
{
    if (source->path)
        return source->path;
    if (source->name)
        return source->name;
    return source->bytes && source->bytes->name ? source->bytes->name : "(memory)";
}

/* A file that cannot be read twice is read into memory. */
static int load_source(weir_video_reader *reader, weir_error *error)
{
    weir_input *input = &reader->reader.decoder.input;
    int rc = WEIR_OK;
    if (reader->source.functions && !reader->user.functions.seek)
        rc = weir__user_file_load(&reader->user, reader->config.input->max_pipe_bytes, &reader->loaded, error);
    reader->user.position = -1;
    input->bytes = reader->source.bytes ? reader->source.bytes : reader->loaded;
    input->user = reader->source.functions && !input->bytes ? &reader->user : NULL;
    input->is_read_again =
        !reader->source.one_request || !weir__sampling_is_plain(&reader->config.sampling);
    return rc;
}

static int open_file(weir_video_reader *reader, weir_error *error)
{
    reader->reader.frames.table = reader->source.packets;
    reader->reader.frames.table_bytes = reader->source.packets_bytes;
    reader->is_open = true;
    return weir__picture_reader_open(&reader->reader, reader->path, error);
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
        rc = weir_error_set(error, WEIR_EINVAL, 0, "audio: a video reader returns no sound; set audio to NULL");
    if (rc == WEIR_OK)
        rc = weir__video_config_check(&checked, error);
    if (rc == WEIR_OK)
        *own = checked;
    return rc;
}

static int open_source(weir_video_reader *reader, weir_error *error)
{
    weir__picture_reader_enter(&reader->reader, reader->path, reader->path);
    int rc = load_source(reader, error);
    if (rc == WEIR_OK)
        rc = open_file(reader, error);
    if (rc == WEIR_OK)
        reader->info = weir__video_info_of(&reader->reader.decoder);
    weir__picture_reader_leave(&reader->reader);
    return rc;
}

static void free_source(weir_video_reader *reader)
{
    weir_bytes_free(reader->loaded);
    if (reader->source.own_bytes)
        weir_bytes_free(reader->source.bytes);
    if (reader->user.functions.close)
        reader->user.functions.close(reader->user.functions.self);
    free(reader->path);
    free(reader);
}

/* Takes the source over. NULL = out of memory. */
/* There is no reader that owns it. */
static void give_up_source(const weir_video_source *source)
{
    weir_file_functions functions;
    weir_bytes_free(source->own_bytes ? source->bytes : NULL);
    int rc = weir_struct_copy(&functions, sizeof functions, source->functions, source->functions_size,
                              "weir_file_functions", NULL);
    if (rc == WEIR_OK && functions.close)
        functions.close(functions.self);
}

static weir_video_reader *reader_new(const weir_video_source *source)
{
    weir_video_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        give_up_source(source);
        return NULL;
    }
    reader->source = *source;
    reader->number = weir__random_seed(0, 0);
    return reader;
}

static int prepare_source(weir_video_reader *reader, weir_error *error)
{
    int rc = own_functions(reader, error);
    if (rc == WEIR_OK)
        rc = check_source(&reader->source, error);
    if (rc == WEIR_OK && !(reader->path = strdup(name_of(&reader->source))))
        rc = fail_memory(error);
    return rc;
}

int weir_video_reader_open(weir_video_reader **made, const weir_video_source *source, size_t source_size,
                           const weir_video_config *config, size_t config_size, weir_error *error)
{
    if (made)
        *made = NULL;
    if (!made || !source || source_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_video_reader_open(): reader, source or source_size is missing");
    weir_video_source own;
    int rc = weir_struct_copy(&own, sizeof own, source, source_size, "weir_video_source", error);
    if (rc != WEIR_OK)
        return rc;
    weir_video_reader *reader = reader_new(&own);
    if (!reader)
        return fail_memory(error);
    rc = prepare_source(reader, error);
    if (rc == WEIR_OK)
        rc = weir__video_reader_config(&reader->config, config, config_size, error);
    if (rc != WEIR_OK)
        goto no_config;
    if (weir__picture_reader_init(&reader->reader, &reader->config, own.should_stop, NULL, own.self) != WEIR_OK) {
        rc = fail_memory(error);
        goto no_reader;
    }
    reader->reader.frames.stays_open = true;
    rc = open_source(reader, error);
    if (rc == WEIR_OK) {
        *made = reader;
        return WEIR_OK;
    }
    weir__picture_reader_free(&reader->reader);
no_reader:
    weir__video_config_free(&reader->config);
no_config:
    free_source(reader);
    return rc;
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
    weir__picture_reader_free(&reader->reader);
    free_request(&reader->request);
    weir__video_config_free(&reader->config);
    free_source(reader);
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
    reader->number = weir__random_seed(epoch, number);
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

/* Takes the request over, whatever the result, and makes it the current one. */
static int begin_request(weir_video_reader *reader, reader_request *own, uint32_t chunk_frames, weir_error *error)
{
    weir_picture_request wanted = {
        .sampling = own->sampling ? own->sampling : &reader->config.sampling,
        .picture = own->picture ? own->picture : reader->config.picture,
        .number = reader->number,
        .chunk_frames = chunk_frames,
        .into = own->into,
        .into_bytes = own->into_bytes,
    };
    int rc = weir__video_filter_check(wanted.picture, wanted.sampling, error);
    if (rc == WEIR_OK && chunk_frames)
        rc = weir__video_chunks_check(wanted.sampling, error);
    if (rc != WEIR_OK) {
        free_request(own);
        return rc;
    }
    reader->reader.frames.is_survey = own->is_survey;
    if (reader->is_open && !weir__frame_reader_can_select(&reader->reader.frames, wanted.sampling))
        close_file(reader);
    weir__picture_reader_enter(&reader->reader, reader->path, reader->path);
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
    weir__picture_reader_enter(&reader->reader, reader->path, reader->path);
    int rc = weir__picture_reader_chunk(&reader->reader, frames, error);
    weir__picture_reader_leave(&reader->reader);
    if (rc < 0)
        close_file(reader);
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
    rc = begin_request(reader, &own, 0, error);
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
    reader->step = NOT_BEGUN;
    rc = begin_request(reader, &own, 0, error);
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

int weir_video_reader_scan(weir_video_reader *reader, weir_error *error)
{
    reader_request own;
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 1 };
    const weir_picture_config coded = { 0 }; /* without a filter */
    if (!reader)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_scan(): reader is missing");
    int rc = own_request(&every, sizeof every, &coded, sizeof coded, &own, error);
    if (rc != WEIR_OK)
        return rc;
    own.is_survey = true;
    reader->step = NOT_BEGUN;
    rc = begin_request(reader, &own, 0, error);
    if (rc == WEIR_OK)
        note_facts(reader);
    return rc;
}

int weir_video_reader_times(weir_video_reader *reader, weir_frame_times **times, weir_error *error)
{
    if (!reader || !times)
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_times(): reader or times is missing");
    *times = NULL;
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
    rc = begin_request(reader, &own, reader->config.chunk_frames ? reader->config.chunk_frames : 1, error);
    reader->step = rc == WEIR_OK ? GOING : NOT_BEGUN;
    return rc;
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
    int rc = give_chunk(reader, frames, error);
    reader->step = rc == WEIR_MORE ? GOING : rc == WEIR_OK ? ENDED : NOT_BEGUN;
    return rc == WEIR_MORE ? WEIR_OK : rc;
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
    return reader->path;
}

bool weir__video_reader_file(const weir_video_reader *reader, struct stat *file)
{
    const weir_input *input = &reader->reader.decoder.input;
    if (!reader->source.path || !reader->is_open || !input->file.is_open || !S_ISREG(input->file.info.st_mode))
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
    int rc =
        weir__local_file_open(&named, &reader->reader.decoder.input.host, reader->path, -1, false, interrupt, NULL);
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
    free_request(&reader->request);
    reader->step = NOT_BEGUN;
    reader->number = weir__random_seed(0, 0);
    reader->info = weir__video_info_of(&reader->reader.decoder);
    return true;
}

uint64_t weir__video_reader_bytes(const weir_video_reader *reader)
{
    return sizeof *reader + reader->source.packets_bytes + weir__frame_reader_bytes(&reader->reader.frames);
}
