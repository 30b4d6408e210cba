/* A reader outputs the pictures of one request after the other; it belongs to one slot, or to one weir_video_reader, so
   everything in it has one user at a time. */
#include "stages/reader/picture_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "stages/decoder/stream_choice.h"
#include "stages/decoder/stream_facts.h"
#include "stages/scale/rotate.h"

/* For selected frames. The packet cache holds about a minute of typical video. Reading a megabyte costs less than a
   seek in most containers. */
enum { MAX_CACHED_BYTES = 16 << 20, FAR_BYTES = 1 << 20 };

int weir__picture_reader_init(weir_picture_reader *reader, const weir_video_config *config,
                              bool (*should_stop)(void *self), void (*on_frame)(void *self), void *self)
{
    reader->config = config;
    reader->decoder = (weir_decoder){
        .should_stop = should_stop,
        .on_frame = on_frame,
        .self = self,
        .config = config->decoder,
        .stream_number = config->stream,
        .input.config = config->input,
    };
    if (weir__decoder_init(&reader->decoder) != WEIR_OK) {
        weir__decoder_free(&reader->decoder);
        return WEIR_ENOMEM;
    }
    reader->frames = (weir_frame_reader){
        .file = { .decoder = &reader->decoder, .max_cached_bytes = MAX_CACHED_BYTES, .far_bytes = FAR_BYTES },
        .seed = config->seed,
        .max_frames = config->max_frames,
        .max_duration_ns = config->max_duration_ns,
    };
    return WEIR_OK;
}

void weir__picture_reader_enter(weir_picture_reader *reader, const char *label, const char *path)
{
    weir__ffmpeg_log_begin(&reader->log, label, path);
}

void weir__picture_reader_leave(weir_picture_reader *reader)
{
    weir__ffmpeg_log_end();
    reader->num_log_errors += reader->log.num_errors;
    reader->log.num_errors = 0;
}

int weir__picture_reader_open(weir_picture_reader *reader, const char *path, weir_error *error)
{
    return weir__frame_reader_open(&reader->frames, path, error);
}

static void end_request(weir_picture_reader *reader)
{
    weir__frame_filter_reset(&reader->frame_filter);
    reader->num_frames = 0;
    reader->num_corrupt = 0;
    reader->num_log_errors = 0;
    reader->picture = NULL;
    reader->num_pictures = 0;
    reader->width = 0;
    reader->height = 0;
    reader->num_done = 0;
    weir_frames_free(reader->clips);
    reader->clips = NULL;
    reader->num_given = 0;
}

/* A filter needs the frames themselves. */
static weir_group_pictures pictures_of(const weir_picture_reader *reader)
{
    const weir_picture_config *config = reader->wanted.picture;
    int width, height;
    if (config->filter || weir__picture_reader_size(reader, &width, &height, NULL) != WEIR_OK)
        return (weir_group_pictures){ 0 };
    return (weir_group_pictures){
        .config = config,
        .picture_bytes = weir__scaler_picture_bytes(config->pixel, (uint32_t)width, (uint32_t)height),
    };
}

int weir__picture_reader_ask(weir_picture_reader *reader, const weir_picture_request *wanted, weir_error *error)
{
    if (reader->frames.is_asked) {
        end_request(reader);
        weir__decoder_begin_cost(&reader->decoder);
    }
    reader->wanted = *wanted;
    reader->frames.sampling = wanted->sampling;
    reader->frames.pictures = pictures_of(reader);
    weir__frame_filter_begin(&reader->frame_filter, wanted->picture);
    return weir__frame_reader_select(&reader->frames, wanted->number, error);
}

int weir__picture_reader_size(const weir_picture_reader *reader, int *width, int *height, weir_error *error)
{
    const weir_picture_config *picture = reader->wanted.picture;
    const AVStream *stream = reader->decoder.stream;
    int lowres = reader->decoder.codec->lowres;
    bool is_turned = !picture->no_autorotate && weir__rotation_of_stream(stream).transposed;
    int coded_width = AV_CEIL_RSHIFT(FFMAX(stream->codecpar->width, 0), lowres);
    int coded_height = AV_CEIL_RSHIFT(FFMAX(stream->codecpar->height, 0), lowres);
    *width = (int)picture->width;
    *height = (int)picture->height;
    if ((picture->width && picture->height) || coded_width == 0 || coded_height == 0)
        return WEIR_OK;
    return weir__scaler_size(picture, is_turned ? coded_height : coded_width, is_turned ? coded_width : coded_height,
                             width, height, error);
}

uint64_t weir__picture_reader_bytes(const weir_picture_reader *reader)
{
    uint64_t open_bytes = reader->decoder.format ? weir__frame_reader_bytes(&reader->frames) : 0;
    return open_bytes + reader->chunk_bytes + (reader->clips ? reader->clips->memory_bytes : 0);
}

void weir__picture_reader_rest(weir_picture_reader *reader)
{
    end_request(reader);
    weir__frame_reader_rest(&reader->frames);
}

void weir__picture_reader_close(weir_picture_reader *reader)
{
    end_request(reader);
    weir__frame_reader_close(&reader->frames);
    reader->decoder.cost = (weir_decode_cost){ 0 };
}

void weir__picture_reader_free(weir_picture_reader *reader)
{
    weir__picture_reader_close(reader);
    weir__scaler_reset(&reader->scaler);
    weir__frame_filter_free(&reader->frame_filter);
    weir__decoder_free(&reader->decoder);
}

static bool is_stopped(const weir_picture_reader *reader)
{
    return reader->decoder.should_stop && reader->decoder.should_stop(reader->decoder.self);
}

/* Which stream the pictures come from, and their coded size. */
static void describe_source(const weir_picture_reader *reader, weir_frames *frames)
{
    const weir_decoder *decoder = &reader->decoder;
    frames->time_base_num = decoder->stream->time_base.num;
    frames->time_base_den = decoder->stream->time_base.den;
    frames->stream = weir__stream_number(decoder->format, decoder->stream);
    frames->stream_index = (uint32_t)decoder->stream->index;
    frames->source_width = (uint32_t)reader->source_width;
    frames->source_height = (uint32_t)reader->source_height;
    snprintf(frames->codec, sizeof frames->codec, "%s", avcodec_get_name(decoder->codec->codec_id));
}

static uint64_t expected_frames(const weir_picture_reader *reader)
{
    uint64_t num_frames = weir__frame_reader_estimate_frames(&reader->frames);
    return reader->wanted.chunk_frames && reader->wanted.chunk_frames < num_frames ? reader->wanted.chunk_frames
                                                                                   : num_frames;
}

/* Called with the first picture, which determines the size of the result and the facts about the file. */
static int begin_frames(weir_picture_reader *reader, weir_frames_builder *builder, weir_error *error)
{
    const weir_picture_config *wanted = reader->wanted.picture;
    const weir_group_picture *made = weir__frame_reader_picture(&reader->frames);
    int rc = WEIR_OK;
    if (made) {
        reader->width = made->width;
        reader->height = made->height;
    }
    if (reader->width == 0)
        rc = weir__scaler_size(wanted, reader->picture->width, reader->picture->height, &reader->width,
                               &reader->height, error);
    if (rc != WEIR_OK)
        return rc;
    weir__scaler_set(&reader->scaler, wanted, reader->width, reader->height);
    rc = weir__frames_begin(builder, wanted, (uint32_t)reader->width, (uint32_t)reader->height,
                            expected_frames(reader), error);
    if (rc == WEIR_OK)
        describe_source(reader, builder->frames);
    return rc;
}

/* Did the decoder conceal errors in it? */
static bool is_concealed(const AVFrame *frame)
{
    return (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags;
}

/* Appends the picture to the result. One that another thread has made is copied; a repeated one is, too, from the
   previous frame. */
static int make_view(weir_picture_reader *reader, const weir_frames_builder *builder, uint8_t *data,
                     weir_error *error)
{
    bool is_first = builder->frames->num_frames == 0;
    const weir_group_picture *made = weir__frame_reader_picture(&reader->frames);
    int64_t start_ns = weir_clock_ns();
    int rc = WEIR_OK;
    if (made)
        memcpy(data, made->data, builder->frame_bytes);
    else if (is_first || !reader->frame_filter.is_again)
        rc = weir__scaler_run(&reader->scaler, reader->picture, data, error);
    else
        memcpy(data, builder->frames->data + (builder->frames->num_frames - 1) * builder->frame_bytes,
               builder->frame_bytes);
    reader->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

static void describe_scaling(const weir_picture_reader *reader, weir_frames *frames)
{
    const weir_group_picture *made = weir__frame_reader_picture(&reader->frames);
    weir_scaled scaled = made ? made->scaled : weir__scaler_last(&reader->scaler);
    frames->scaler = scaled.kind;
    frames->matrix = scaled.matrix;
    frames->full_range = scaled.is_full_range;
}

static int add_picture(weir_picture_reader *reader, weir_frames_builder *builder, weir_error *error)
{
    int rc = builder->frames ? WEIR_OK : begin_frames(reader, builder, error);
    if (rc != WEIR_OK)
        return rc;

    uint8_t *data;
    rc = weir__frames_next(builder, &data, error);
    if (rc == WEIR_OK)
        rc = make_view(reader, builder, data, error);
    if (rc != WEIR_OK)
        return rc;

    weir__frames_commit(builder, reader->facts);
    reader->chunk_bytes += builder->frame_bytes;
    bool is_corrupt = is_concealed(reader->picture);
    builder->frames->num_corrupt_frames += is_corrupt;
    reader->num_corrupt += is_corrupt;
    describe_scaling(reader, builder->frames);
    reader->picture = NULL;
    return WEIR_OK;
}

/* The expected number of frames, known at the end: the selected ones or, if all, the number in the header. */
static uint64_t count_expected(const weir_picture_reader *reader)
{
    /* not for single frames of a long file: counting takes time in proportion to the file */
    bool is_plain = weir__sampling_is_plain(reader->wanted.sampling);
    uint64_t counted = is_plain ? weir__stream_count_frames(reader->decoder.format, reader->decoder.stream) : 0;
    uint32_t count = reader->wanted.sampling->count;
    if (counted == 0)
        return reader->num_frames + reader->frames.targets.num_missing;
    return count && count < counted ? count : counted;
}

/* The number of missing frames among the frames so far or, at the end, among all. A header also counts hidden frames:
   it is used only if there is damage. */
static uint64_t count_missing(const weir_picture_reader *reader, bool is_end)
{
    bool is_damaged = reader->decoder.has_cut_packet || reader->decoder.num_errors + reader->num_corrupt +
                                                            reader->num_log_errors + reader->log.num_errors;
    uint64_t expected = is_end && is_damaged ? count_expected(reader) : 0;
    uint64_t lost = expected > reader->num_frames ? expected - reader->num_frames : 0;
    return lost > reader->frames.targets.num_missing ? lost : reader->frames.targets.num_missing;
}

static int check_strictly(const weir_picture_reader *reader, bool has_frame, weir_error *error)
{
    const weir_decoder *decoder = &reader->decoder;
    if (decoder->num_errors > 0) {
        char what[96];
        snprintf(what, sizeof what, "damage is not tolerated: %" PRIu64 " damaged packet(s)", decoder->num_errors);
        return weir__ffmpeg_error(error, decoder->first_averror, what);
    }
    if (has_frame && is_concealed(decoder->frame))
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: errors in a frame were concealed");
    uint64_t num_missing = count_missing(reader, !has_frame);
    if (num_missing > 0)
        return weir_error_set(error, WEIR_EDATA, 0, "damage is not tolerated: %" PRIu64 " frame(s) are missing",
                              num_missing);
    return WEIR_OK;
}

/* Passes the reader's next frame, or its end, to the frame filter. */
static int put_frame(weir_picture_reader *reader, weir_error *error)
{
    weir_frame_reader *frames = &reader->frames;
    const AVFrame *frame = reader->decoder.frame;
    int rc = weir__frame_reader_next(frames, error);
    if (reader->config->damage == WEIR_DAMAGE_STRICT && (rc == WEIR_OK || rc == WEIR_EOF)) {
        int strict = check_strictly(reader, rc == WEIR_OK, error);
        rc = strict == WEIR_OK ? rc : strict;
    }
    if (rc == WEIR_EOF)
        return weir__frame_filter_put(&reader->frame_filter, reader->decoder.stream, NULL,
                                      (weir_frame_facts){ .pts = AV_NOPTS_VALUE }, 0, error);
    if (rc != WEIR_OK)
        return rc;

    if (reader->num_frames == 0) {
        reader->source_width = frame->width;
        reader->source_height = frame->height;
    }
    reader->num_frames += frames->num_repeats;
    reader->num_copies = 0;
    weir_frame_facts facts = { .pts = weir__frame_reader_pts(frames), .time_ns = weir__frame_reader_ns(frames) };
    if (weir__frame_reader_picture(frames)) {
        weir__frame_filter_pass(&reader->frame_filter, reader->decoder.stream, frame, facts, frames->num_repeats);
        return WEIR_OK;
    }
    int64_t start_ns = weir_clock_ns();
    rc = weir__frame_filter_put(&reader->frame_filter, reader->decoder.stream, frame, facts, frames->num_repeats,
                                error);
    reader->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
    return rc;
}

/* A filter may output pictures without end and without input: the reader's limit does not apply. */
static int check_picture(weir_picture_reader *reader, weir_error *error)
{
    if (reader->wanted.picture->filter && is_stopped(reader))
        return weir_error_set(error, WEIR_ESTOPPED, AVERROR_EXIT, "stopped");
    if (reader->num_pictures >= reader->config->max_frames)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "the filter outputs more frames than the limit of %" PRIu64 ": raise max_frames",
                              reader->config->max_frames);
    reader->num_pictures++;
    return WEIR_OK;
}

/* How far a filter's pictures repeat others is unknown. */
static void begin_picture(weir_picture_reader *reader, const AVFrame *picture)
{
    bool is_repeat =
        !reader->wanted.picture->filter && weir__frame_reader_is_repeat(&reader->frames, reader->num_copies);
    reader->num_copies++;
    reader->picture = picture;
    reader->facts.mask = !is_repeat;
    if (reader->facts.pts == AV_NOPTS_VALUE)
        reader->facts.pts = WEIR_PTS_UNKNOWN;
}

/* The next picture, and its facts. WEIR_EOF: no more. */
static int next_picture(weir_picture_reader *reader, weir_error *error)
{
    for (;;) {
        const AVFrame *picture;
        int64_t start_ns = weir_clock_ns();
        int rc = weir__frame_filter_get(&reader->frame_filter, &picture, &reader->facts, error);
        reader->decoder.cost.scale_ns += weir_clock_ns() - start_ns;
        if (rc == WEIR_OK)
            rc = check_picture(reader, error);
        if (rc == WEIR_OK)
            begin_picture(reader, picture);
        if (rc == WEIR_SKIP && (rc = put_frame(reader, error)) == WEIR_OK)
            continue;
        return rc;
    }
}

/* At the end of the request: are there enough of the requested frames? */
static int check_share(const weir_picture_reader *reader, weir_error *error)
{
    uint64_t expected = reader->frame_filter.is_ended ? count_expected(reader)
                                                      : reader->num_frames + reader->frames.targets.num_missing;
    if (reader->num_frames == 0)
        return weir__decoder_fail_empty(&reader->decoder, "no frame: the stream is empty or truncated", error);
    if (reader->wanted.sampling->what == WEIR_SAMPLE_CLIPS && reader->frames.targets.num_missing > 0)
        return weir_error_set(error, WEIR_EDATA, reader->decoder.first_averror,
                              "%" PRIu64 " frame(s) of the clips are lost to damage",
                              reader->frames.targets.num_missing);
    if ((double)reader->num_frames < reader->config->min_share * (double)expected)
        return weir_error_set(error, WEIR_EDATA, reader->decoder.first_averror,
                              "only %" PRIu64 " of %" PRIu64 " frames could be decoded, min_share is %g",
                              reader->num_frames, expected, reader->config->min_share);
    if (reader->num_pictures == 0)
        return weir_error_set(error, WEIR_EDATA, 0, "the filter \"%s\" dropped all %" PRIu64 " frames",
                              reader->wanted.picture->filter, reader->num_frames);
    return WEIR_OK;
}

/* Builds the next chunk. WEIR_OK: it is the last one. WEIR_MORE: it is not. */
static int fill_chunk(weir_picture_reader *reader, weir_frames_builder *builder, weir_error *error)
{
    for (uint32_t num_added = 0;; num_added++) {
        int rc = reader->picture ? WEIR_OK : next_picture(reader, error);
        if (rc == WEIR_EOF)
            return check_share(reader, error);
        if (rc == WEIR_OK && reader->wanted.chunk_frames && num_added == reader->wanted.chunk_frames)
            return WEIR_MORE;
        if (rc == WEIR_OK)
            rc = add_picture(reader, builder, error);
        if (rc != WEIR_OK)
            return rc;
    }
}

/* Puts the frames into the requested order. */
static int arrange_frames(const weir_picture_reader *reader, weir_frames_builder *builder, weir_error *error)
{
    size_t *from;
    assert(builder->frames); /* a chunk has at least one picture */
    int rc = weir__frame_reader_order(&reader->frames, builder->frames->num_frames, &from);
    if (rc == WEIR_OK && from)
        rc = weir__frames_arrange(builder, from);
    free(from);
    return rc == WEIR_OK ? WEIR_OK : weir_error_set(error, rc, 0, "out of memory");
}

static int make_chunk(weir_picture_reader *reader, weir_frames **frames, weir_error *error)
{
    const weir_video_config *config = reader->config;
    uint8_t *into = reader->wanted.into;
    weir_frames_builder builder = {
        .max_bytes = into ? reader->wanted.into_bytes : config->max_bytes,
        .allocator = into ? NULL : config->allocator,
        .into = into,
    };
    int rc = fill_chunk(reader, &builder, error);
    reader->chunk_bytes = 0;
    int arranged = rc == WEIR_OK ? arrange_frames(reader, &builder, error) : WEIR_OK;
    rc = arranged == WEIR_OK ? rc : arranged;
    if (rc < 0) {
        weir__frames_abort(&builder);
        return rc;
    }
    weir_frames *chunk = weir__frames_end(&builder);
    chunk->num_errors = reader->decoder.num_errors;
    chunk->num_missing_frames = count_missing(reader, rc == WEIR_OK && reader->frame_filter.is_ended);
    chunk->first_frame = reader->num_done;
    if (reader->wanted.sampling->what == WEIR_SAMPLE_CLIPS && !reader->wanted.chunk_frames &&
        !reader->wanted.clip_items)
        chunk->num_clips = reader->wanted.sampling->num_clips;
    chunk->is_last_chunk = rc == WEIR_OK;
    reader->num_done += chunk->num_frames;
    chunk->cost = reader->decoder.cost;
    chunk->cost.num_frames = reader->num_done;
    chunk->cost.num_missing = chunk->num_missing_frames;
    chunk->cost.num_errors = chunk->num_errors + reader->num_corrupt;
    *frames = chunk;
    return rc;
}

/* Clips may share frames, so all are decoded with the first one. */
static int give_clip(weir_picture_reader *reader, weir_frames **frames, weir_error *error)
{
    uint32_t num_clips = reader->wanted.sampling->num_clips, count = reader->wanted.sampling->count;
    if (!reader->clips) {
        int rc = make_chunk(reader, &reader->clips, error);
        if (rc != WEIR_OK)
            return rc;
    }
    uint32_t first = reader->num_given * count;
    weir_frames *clip = weir__frames_slice(reader->clips, first, count, reader->config->allocator);
    if (!clip)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    clip->num_corrupt_frames = reader->clips->num_corrupt_frames < count ? reader->clips->num_corrupt_frames : count;
    reader->clips->num_corrupt_frames -= clip->num_corrupt_frames;
    reader->num_given++;
    clip->first_frame = first;
    clip->is_last_chunk = reader->num_given == num_clips;
    clip->cost.num_frames = first + count;
    *frames = clip;
    if (!clip->is_last_chunk)
        return WEIR_MORE;
    weir_frames_free(reader->clips);
    reader->clips = NULL;
    return WEIR_OK;
}

int weir__picture_reader_chunk(weir_picture_reader *reader, weir_frames **frames, weir_error *error)
{
    bool is_one = reader->wanted.sampling->num_clips <= 1;
    return reader->wanted.clip_items && !is_one ? give_clip(reader, frames, error)
                                                : make_chunk(reader, frames, error);
}
