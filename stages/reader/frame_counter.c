#include "stages/reader/frame_counter.h"

#include "stages/ffmpeg/ffmpeg_log.h"

void weir__frame_counter_begin(weir_frame_counter *counter)
{
    counter->packet = 0;
    counter->num_frames = 0;
    weir__frame_clock_begin(&counter->clock, counter->file->decoder->stream);
}

/* The next of all frames, from packet counter->packet on. */
static int next_of_all(weir_frame_counter *counter, weir_error *error)
{
    int rc;
    while ((rc = weir__file_packets_receive(counter->file, error)) == WEIR_MORE) {
        bool is_end = counter->packet >= counter->file->index.num_packets;
        rc = is_end ? weir__file_packets_decode(counter->file, NULL, error)
                    : weir__file_packets_send(counter->file, counter->packet++, error);
        if (rc != WEIR_OK)
            return rc;
    }
    return rc;
}

static bool is_key(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
    return frame->flags & AV_FRAME_FLAG_KEY;
#else
    return frame->key_frame;
#endif
}

static void give_up_kept(void *self)
{
    weir__kept_frames_drop(self);
}

static void keep_frame(weir_frame_counter *counter, uint64_t number)
{
    enum {
        MAX_KEPT_BYTES = 64 << 20
    }; /* 20 frames of 1920x1080; with more, a second pass costs less than their memory */
    weir_kept_frame facts = { .number = number, .pts = counter->clock.pts, .ticks = counter->clock.ticks };
    weir__kept_frames_add(&counter->kept, counter->file->decoder, &facts, MAX_KEPT_BYTES);
}

int weir__frame_counter_count(weir_frame_counter *counter, weir_timeline *timeline, weir_error *error)
{
    weir_decoder *decoder = counter->file->decoder;
    weir_frame_clock *clock = &counter->clock;
    int rc = counter->file->cache ? WEIR_OK : weir__file_packets_reopen(counter->file, error);
    weir__frame_clock_begin(clock, decoder->stream);
    decoder->memory.give_up = give_up_kept;
    decoder->memory.keeper = &counter->kept;
    while (rc == WEIR_OK && (rc = next_of_all(counter, error)) == WEIR_OK) {
        weir__frame_clock_add(clock, decoder->frame);
        keep_frame(counter, timeline->num_frames);
        if (weir__timeline_add(timeline, clock->ticks, is_key(decoder->frame)) != WEIR_OK)
            rc = weir__reader_fail_memory(error);
    }
    decoder->memory.give_up = NULL;
    timeline->time_base = clock->time_base;
    timeline->first_pts = clock->first_pts;
    timeline->end_ticks = clock->end_ticks;
    timeline->has_end = clock->has_end;
    weir__timeline_end(timeline, weir__timeline_step(timeline), clock->rate, decoder->stream->r_frame_rate);
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

int weir__frame_counter_go_to(weir_frame_counter *counter, weir_error *error)
{
    counter->has_kept = weir__kept_frames_have(&counter->kept, counter->targets);
    if (counter->has_kept)
        return WEIR_OK;
    weir__kept_frames_reset(&counter->kept);
    if (counter->is_running && counter->targets->all[0].frame >= counter->num_frames)
        return WEIR_OK;
    counter->is_running = true;
    weir__frame_counter_begin(counter);
    return weir__file_packets_start_over(counter->file, error);
}

static int take_kept(weir_frame_counter *counter)
{
    const weir_frame_targets *targets = counter->targets;
    if (targets->next == targets->num)
        return WEIR_EOF;
    const weir_kept_frame *taken =
        weir__kept_frames_take(&counter->kept, targets->all[targets->next].frame, counter->file->decoder);
    counter->clock.pts = taken->pts;
    counter->clock.ticks = taken->ticks;
    return WEIR_OK;
}

int weir__frame_counter_select(weir_frame_counter *counter, weir_error *error)
{
    int rc = WEIR_EOF;
    if (counter->has_kept)
        return take_kept(counter);
    while (counter->targets->next < counter->targets->num && (rc = next_of_all(counter, error)) == WEIR_OK) {
        weir__frame_clock_add(&counter->clock, counter->file->decoder->frame);
        if (counter->num_frames++ == counter->targets->all[counter->targets->next].frame)
            return WEIR_OK;
    }
    if (rc == WEIR_EOF) {
        counter->targets->num_missing += counter->targets->num - counter->targets->next;
        counter->targets->next = counter->targets->num;
    }
    return counter->targets->next == counter->targets->num ? WEIR_EOF : rc;
}

/* The next packet; cached ones are used first. */
static int send_next(weir_frame_counter *counter, weir_error *error)
{
    weir_decoder *decoder = counter->file->decoder;
    if (counter->packet < counter->file->num_cached)
        return weir__file_packets_decode(counter->file, counter->file->cache[counter->packet++], error);
    int rc = weir__file_packets_read(counter->file, error);
    if (rc == WEIR_OK || rc == WEIR_EOF)
        rc = weir__file_packets_decode(counter->file, rc == WEIR_OK ? decoder->packet : NULL, error);
    av_packet_unref(decoder->packet);
    return rc;
}

/* The next of all frames. */
static int decode_next(weir_frame_counter *counter, weir_error *error)
{
    int rc;
    if (counter->file->is_read)
        return next_of_all(counter, error);
    while ((rc = weir__file_packets_receive(counter->file, error)) == WEIR_MORE &&
           (rc = send_next(counter, error)) == WEIR_OK)
        continue;
    return rc;
}

static uint64_t count_trouble(const weir_frame_counter *counter)
{
    const weir_decoder *decoder = counter->file->decoder;
    const weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    return decoder->num_errors + (log ? log->num_trouble : 0) + weir__decoder_thread_trouble(decoder);
}

static void free_pool(weir_frame_counter *counter)
{
    weir__group_pool_free(counter->pool);
    counter->pool = NULL;
}

static void forget_errors(weir_decoder *decoder)
{
    decoder->num_errors = 0;
    decoder->first_averror = 0;
}

int weir__frame_counter_use_threads(weir_frame_counter *counter, const weir_group_pictures *pictures,
                                    weir_error *error)
{
    weir_decoder *decoder = counter->file->decoder;
    bool can_repeat = weir__file_packets_can_repeat(counter->file);
    uint64_t trouble = count_trouble(counter);
    int rc = can_repeat ? weir__group_pool_open(&counter->pool, counter->file, pictures, error) : WEIR_OK;
    bool is_damaged = count_trouble(counter) > trouble; /* it is met again, at its place */
    if (is_damaged) {
        free_pool(counter);
        forget_errors(decoder);
        rc = rc == WEIR_OK ? weir__file_packets_forget_look(counter->file, error) : rc;
    }
    if (rc == WEIR_OK)
        rc = weir__decoder_use_threads(decoder, can_repeat && !is_damaged && !counter->pool, error);
    counter->trouble = count_trouble(counter);
    return rc;
}

static int take_next(weir_frame_counter *counter, weir_error *error)
{
    int rc = counter->pool ? weir__group_pool_next(counter->pool, error) : decode_next(counter, error);
    if (rc == WEIR_EOF && count_trouble(counter) == counter->trouble)
        free_pool(counter);
    if (rc != WEIR_OK)
        return rc;
    counter->num_frames++;
    weir__frame_clock_add(&counter->clock, counter->file->decoder->frame);
    return WEIR_OK;
}

/* Decoders conceal damage in another way if they have threads. The frames before the first sign of it are the same. */
static bool is_doubtful(const weir_frame_counter *counter, int rc)
{
    const weir_decoder *decoder = counter->file->decoder;
    bool is_marked =
        rc == WEIR_OK && ((decoder->frame->flags & AV_FRAME_FLAG_CORRUPT) || decoder->frame->decode_error_flags);
    bool has_threads = counter->pool || decoder->is_threaded;
    return has_threads &&
           (rc == WEIR_MORE || rc == WEIR_ELIMIT || is_marked || count_trouble(counter) > counter->trouble);
}

/* Begins again with one thread, and passes over the first num_done frames. */
static int decode_alone(weir_frame_counter *counter, uint64_t num_done, weir_error *error)
{
    weir_decoder *decoder = counter->file->decoder;
    if (error)
        *error = (weir_error){ 0 };
    free_pool(counter);
    forget_errors(decoder);
    int rc = weir__decoder_use_threads(decoder, false, error);
    if (rc == WEIR_OK)
        rc = weir__file_packets_begin_again(counter->file, error);
    if (rc == WEIR_OK)
        weir__frame_counter_begin(counter);
    while (rc == WEIR_OK && counter->num_frames <= num_done)
        rc = take_next(counter, error);
    return rc;
}

int weir__frame_counter_next(weir_frame_counter *counter, weir_error *error)
{
    uint64_t num_done = counter->num_frames;
    int rc = take_next(counter, error);
    return is_doubtful(counter, rc) ? decode_alone(counter, num_done, error) : rc;
}

void weir__frame_counter_reset(weir_frame_counter *counter)
{
    free_pool(counter);
    weir__kept_frames_reset(&counter->kept);
}
