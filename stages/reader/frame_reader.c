/*
 * How a file is read is decided when it is opened. To read all frames no index is needed (plain). For the first few
 * frames, packets are read until they certainly contain these frames, so that nothing else is decoded; if the dts do
 * not show when that is, or the packets exceed the cache, the reading is plain, too.
 *
 * Otherwise all packets are read once and indexed, and cached if they are not too many. If the index is trusted,
 * decoding goes in runs: from a clean start to the last packet that the run's targets need, without disposable
 * packets. A new run starts where that costs less than decoding on: where there is a clean start after all packets
 * sent so far. If the index is not trusted, everything is decoded twice: once to count, once to select.
 *
 * A target that is missing without an error shows that the index is wrong; and if packets are damaged, decoders
 * conceal the damage with frames from before the run, or with skipped ones. Then, as a last resort, the file is
 * decoded from its beginning without skipping anything, which gives the same frames as decoding all.
 *
 * A file that stays open (stays_open) keeps the index, the cache, the timeline, and the decoder's state for the next request.
 * - Indexed: the last run of a request does not end with its last target. The decoder is not drained; it gets the packets that
 *   follow, until that target comes out. Invariants of a run: packets run_start to run_packet - 1 have been sent, except
 *   disposable ones, none of which is shown after run_skipped_pts; frames from run_front on have not come out. Disposable
 *   packets that are shown after the request's last target are not skipped. The next run goes on where this one stands if its
 *   first target is not before run_front, is shown after run_skipped_pts, and no clean start between saves anything. All others
 *   begin anew at a clean start, also after a drained decoder, except at the end of the file: what it holds comes out then.
 *   Packets that a request does not need (is_beyond) must not change its result: if there is damage after the first of them, the
 *   run begins anew; then, and if frames come in another order than the index says, it is drained at its end, and all further
 *   ones, too (must_drain).
 * - Counted: the decoder stands before frame num_counted (is_running). If all targets are from there on, it goes on, otherwise it
 *   starts over. The frames are not counted again.
 */
#include "stages/reader/frame_reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include <weir/clock.h>

#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/reader/bitstream.h"
#include "stages/reader/packet_table.h"

/* At least this many packets may be indexed, even if the limit on frames is lower. */
static const uint64_t min_limit_packets = UINT64_C(1) << 22;

/* More first frames than this are read plainly: the few extra decoded frames cost little then. */
static const uint32_t max_first_frames = 1024;

/* The first frames, in decode order. */
typedef struct first_frames {
    uint32_t count;
    uint32_t num_shown;
    int64_t last_pts; /* the highest pts of these */
} first_frames;

static int fail_reader_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

static int check_duration(const weir_frame_reader *reader, int64_t duration_ns, weir_error *error)
{
    if (duration_ns <= reader->max_duration_ns)
        return WEIR_OK;
    return weir_error_set(error, WEIR_ELIMIT, 0,
                          "the video is longer than the limit of %.3f s: raise max_duration_ns",
                          (double)reader->max_duration_ns / (double)WEIR_SECOND);
}

/* ---- packets ------------------------------------------------------------------------------------------------- */

static int open_file(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    int rc = weir__decoder_open(decoder, reader->path, error);
    if (rc == WEIR_OK)
        weir__packet_clock_begin(&reader->packet_clock, decoder->format, decoder->stream);
    reader->hidden.num = 0;
    return rc;
}

/* The next packet is in decoder->packet, with continued times. */
static int read_packet(weir_frame_reader *reader, weir_error *error)
{
    int rc = weir__decoder_read(reader->decoder, error);
    if (rc == WEIR_OK)
        weir__packet_clock_run(&reader->packet_clock, reader->decoder->packet);
    return rc;
}

/* NULL = the end. */
static int decode_packet(weir_frame_reader *reader, const AVPacket *packet, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    if (packet && weir__hidden_packets_add(&reader->hidden, decoder->codec->codec, packet) != WEIR_OK)
        return fail_reader_memory(error);
    return weir__decoder_send(decoder, packet, error);
}

static int receive_frame(weir_frame_reader *reader, weir_error *error)
{
    int rc;
    do
        rc = weir__decoder_receive(reader->decoder, error);
    while (rc == WEIR_OK && weir__hidden_packets_take(&reader->hidden, reader->decoder->frame));
    return rc;
}

static void drop_cache(weir_frame_reader *reader)
{
    while (reader->num_cached > 0)
        av_packet_free(&reader->cache[--reader->num_cached]);
    free(reader->cache);
    reader->cache = NULL;
    reader->max_cached = 0;
}

/* The size of the cache with that packet. */
static size_t cached_bytes_with(const weir_frame_reader *reader, const AVPacket *packet)
{
    return reader->cached_bytes + (size_t)packet->size + sizeof *packet;
}

/* Caches decoder->packet, or drops the cache if it gets too large; then the file is read again. */
static void keep_packet(weir_frame_reader *reader)
{
    AVPacket *packet = reader->decoder->packet;
    reader->cached_bytes = cached_bytes_with(reader, packet);
    if (reader->cached_bytes > reader->max_cached_bytes) {
        drop_cache(reader);
        return;
    }
    if (reader->num_cached == reader->max_cached) {
        size_t max_cached = reader->max_cached ? reader->max_cached * 2 : 512;
        AVPacket **cache = realloc(reader->cache, max_cached * sizeof(AVPacket *));
        if (!cache) {
            reader->cached_bytes = reader->max_cached_bytes;
            drop_cache(reader);
            return;
        }
        reader->cache = cache;
        reader->max_cached = max_cached;
    }
    reader->cache[reader->num_cached] = av_packet_alloc();
    if (reader->cache[reader->num_cached]) {
        av_packet_move_ref(reader->cache[reader->num_cached++], packet);
    } else {
        reader->cached_bytes = reader->max_cached_bytes;
        drop_cache(reader);
    }
}

/* Adds decoder->packet to the index and the cache. */
static int add_packet(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    uint64_t limit = reader->max_frames > min_limit_packets ? reader->max_frames : min_limit_packets;
    int rc = WEIR_OK;
    if (reader->index.num_packets >= limit)
        rc = weir_error_set(error, WEIR_ELIMIT, 0, "more than %" PRIu64 " packets: raise max_frames", limit);
    else if (weir__index_add(&reader->index, decoder->stream, decoder->packet) != WEIR_OK)
        rc = fail_reader_memory(error);
    else
        keep_packet(reader);
    av_packet_unref(decoder->packet);
    return rc;
}

/*
 * Are the first frames among the packets read so far? A frame is not shown before it is decoded: after a packet whose
 * dts is above their highest pts, no packet is shown before them. Continues from the previous call.
 */
static bool has_first(const weir_frame_reader *reader, first_frames *first)
{
    const weir_packet_entry *entry = &reader->index.packets[reader->index.num_packets - 1];
    if ((entry->flags & WEIR_PACKET_SHOWN) && first->num_shown < first->count) {
        first->num_shown++;
        first->last_pts = FFMAX(first->last_pts, entry->pts);
    }
    return first->num_shown >= first->count && entry->dts != AV_NOPTS_VALUE && entry->dts >= first->last_pts;
}

static int end_scan(weir_frame_reader *reader, weir_error *error)
{
    reader->file_packet = reader->index.num_packets;
    reader->cannot_seek |= reader->packet_clock.num_restarts > 0;
    return weir__index_end(&reader->index, reader->decoder->stream) == WEIR_OK ? WEIR_OK : fail_reader_memory(error);
}

/* Reads all packets into the index. */
static int scan_file(weir_frame_reader *reader, weir_error *error)
{
    int rc = WEIR_OK;
    while (rc == WEIR_OK && (rc = read_packet(reader, error)) == WEIR_OK)
        rc = add_packet(reader, error);
    return rc == WEIR_EOF ? end_scan(reader, error) : rc;
}

/* Are few first frames requested, and do the packets show which they are? */
static bool can_look_ahead(const weir_frame_reader *reader)
{
    uint32_t count = reader->sampling->count;
    return count > 0 && count <= max_first_frames &&
           weir__bitstream_is_known(reader->decoder->stream->codecpar->codec_id) &&
           weir__decoder_has_dts(reader->decoder);
}

/* May decoder->packet be indexed? Only while packets are cached: some sources cannot be read twice. */
static bool may_look_on(const weir_frame_reader *reader, uint32_t count)
{
    enum { MAX_FURTHER = 64 };
    return reader->index.num_packets < (size_t)count + MAX_FURTHER &&
           cached_bytes_with(reader, reader->decoder->packet) <= reader->max_cached_bytes;
}

/* Reads packets into the index until the first `count` frames are among them. If that fails, the index is not
   trusted, and the packets read so far are in the cache. */
static int look_ahead(weir_frame_reader *reader, uint32_t count, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    first_frames first = { .count = count, .last_pts = INT64_MIN };
    bool is_enough = false;
    int rc = WEIR_OK;
    while (rc == WEIR_OK && !is_enough && (rc = weir__decoder_read(decoder, error)) == WEIR_OK) {
        if (!may_look_on(reader, count)) {
            reader->index.distrust = "the first frames cannot be determined";
            rc = weir__decoder_unread(decoder, error);
            break;
        }
        weir__packet_clock_run(&reader->packet_clock, decoder->packet);
        rc = add_packet(reader, error);
        is_enough = rc == WEIR_OK && has_first(reader, &first);
    }
    if (rc != WEIR_OK && rc != WEIR_EOF)
        return rc;
    reader->is_read = rc == WEIR_EOF;
    return end_scan(reader, error);
}

/* Goes to the beginning of the file, with a new codec state; if the container cannot seek, reopens the file. */
static int reopen_file(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    uint64_t num_errors = decoder->num_errors;
    int first_averror = decoder->first_averror;
    weir__decoder_close(decoder);
    int rc = open_file(reader, error);
    decoder->num_errors = num_errors;
    decoder->first_averror = first_averror;
    reader->file_packet = 0;
    return rc;
}

/* Is decoder->packet packet `at`? */
static bool is_packet(const weir_frame_reader *reader, size_t at)
{
    const AVPacket *packet = reader->decoder->packet;
    const weir_packet_entry *entry = &reader->index.packets[at];
    return entry->pts == packet->pts && entry->size_bytes == packet->size;
}

/* Finds the position after a seek, by the first packet that is recognised; it is in decoder->packet. WEIR_EOF: the
   position is not before packet `at`. */
static int find_packet(weir_frame_reader *reader, size_t at, weir_error *error)
{
    enum { MAX_TRIES = 256 };
    for (unsigned try = 0; try < MAX_TRIES; try++) {
        size_t frame;
        av_packet_unref(reader->decoder->packet);
        int rc = read_packet(reader, error);
        if (rc != WEIR_OK)
            return rc;
        if (!weir__index_find(&reader->index, reader->decoder->packet->pts, &frame))
            continue;
        size_t packet = reader->index.frames[frame];
        if (packet > at)
            return WEIR_EOF;
        if (!is_packet(reader, packet))
            continue;
        reader->file_packet = packet + 1;
        return WEIR_OK;
    }
    return WEIR_EOF;
}

/*
 * Seeks to packet `at` or before it; that packet is in decoder->packet. WEIR_EOF: seeking does not work. The first
 * packets after a seek may be split differently (MPEG-TS) and are not recognised; then a second seek goes further
 * back.
 */
static int seek_frame(weir_frame_reader *reader, size_t at, weir_error *error)
{
    enum { FURTHER = 16 };
    weir_decoder *decoder = reader->decoder;
    uint64_t num_errors = decoder->num_errors;
    int rc = WEIR_EOF;
    for (size_t back = 0; rc == WEIR_EOF && back <= FURTHER && back <= at; back += FURTHER) {
        const weir_packet_entry *entry = &reader->index.packets[at - back];
        int64_t time = entry->dts != AV_NOPTS_VALUE ? entry->dts : entry->pts;
        weir__packet_clock_seek(&reader->packet_clock);
        if (weir__decoder_seek(decoder, time))
            rc = find_packet(reader, at, error);
    }
    decoder->num_errors = num_errors; /* do not count the errors of the scan twice */
    return rc;
}

/* Does seeking save enough? */
static bool is_far(const weir_frame_reader *reader, size_t at)
{
    int64_t bytes = 0;
    for (size_t i = reader->file_packet; i < at && bytes < reader->far_bytes; i++)
        bytes += reader->index.packets[i].size_bytes;
    return bytes >= reader->far_bytes;
}

/* Reads up to packet `at`, which is then in decoder->packet. */
static int read_on(weir_frame_reader *reader, size_t at, weir_error *error)
{
    while (reader->file_packet <= at) {
        av_packet_unref(reader->decoder->packet);
        int rc = read_packet(reader, error);
        if (rc != WEIR_OK)
            return rc;
        reader->file_packet++;
    }
    return WEIR_OK;
}

static int fail_changed(weir_error *error)
{
    return weir_error_set(error, WEIR_EDATA, 0, "the file changed between two reads");
}

/* Goes to packet `at` before a run; it is then in decoder->packet. This may replace the codec. */
static int go_to(weir_frame_reader *reader, size_t at, weir_error *error)
{
    int rc = WEIR_EOF;
    bool is_behind = at < reader->file_packet;
    bool seeks = !reader->cannot_seek && (is_behind || is_far(reader, at));
    if (seeks) {
        rc = seek_frame(reader, at, error);
        reader->cannot_seek = rc == WEIR_EOF;
    }
    if (rc == WEIR_OK || (!seeks && !is_behind))
        rc = read_on(reader, at, error);
    if (rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(reader, at))) {
        rc = reopen_file(reader, error);
        if (rc == WEIR_OK)
            rc = read_on(reader, at, error);
    }
    return rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(reader, at)) ? fail_changed(error) : rc;
}

/* Reads packet `at` into decoder->packet, unless it is there. */
static int fetch_frame(weir_frame_reader *reader, size_t at, weir_error *error)
{
    int rc = read_on(reader, at, error);
    return rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(reader, at)) ? fail_changed(error) : rc;
}

static int send_packet(weir_frame_reader *reader, size_t at, weir_error *error)
{
    if (reader->cache)
        return decode_packet(reader, reader->cache[at], error);
    int rc = fetch_frame(reader, at, error);
    if (rc == WEIR_OK)
        rc = decode_packet(reader, reader->decoder->packet, error);
    av_packet_unref(reader->decoder->packet);
    return rc;
}

/* ---- counting ------------------------------------------------------------------------------------------------ */

/* The next of all frames, from packet run_packet on. */
static int next_of_all(weir_frame_reader *reader, weir_error *error)
{
    int rc;
    while ((rc = receive_frame(reader, error)) == WEIR_MORE) {
        bool is_end = reader->run_packet >= reader->index.num_packets;
        rc = is_end ? decode_packet(reader, NULL, error) : send_packet(reader, reader->run_packet++, error);
        if (rc != WEIR_OK)
            return rc;
    }
    return rc;
}

static int start_over(weir_frame_reader *reader, weir_error *error)
{
    reader->run_packet = 0;
    reader->num_counted = 0;
    reader->hidden.num = 0;
    weir__frame_clock_begin(&reader->clock, reader->decoder->stream);
    return reader->cache ? weir__decoder_restart(reader->decoder, error) : reopen_file(reader, error);
}

static bool is_key(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
    return frame->flags & AV_FRAME_FLAG_KEY;
#else
    return frame->key_frame;
#endif
}

/* Decodes everything to build the timeline. */
static int count_frames(weir_frame_reader *reader, weir_timeline *timeline, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    weir_frame_clock *clock = &reader->clock;
    int rc = reader->cache ? WEIR_OK : reopen_file(reader, error);
    weir__frame_clock_begin(clock, decoder->stream);
    while (rc == WEIR_OK && (rc = next_of_all(reader, error)) == WEIR_OK) {
        weir__frame_clock_add(clock, decoder->frame);
        if (weir__timeline_add(timeline, clock->ticks, is_key(decoder->frame)) != WEIR_OK)
            rc = fail_reader_memory(error);
    }
    timeline->time_base = clock->time_base;
    timeline->first_pts = clock->first_pts;
    timeline->end_ticks = clock->end_ticks;
    timeline->has_end = clock->has_end;
    weir__timeline_end(timeline, clock->rate, decoder->stream->r_frame_rate);
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

/* Before the first target, at the beginning if necessary. */
static int go_to_counted(weir_frame_reader *reader, weir_error *error)
{
    if (reader->is_running && reader->targets[0].frame >= reader->num_counted)
        return WEIR_OK;
    reader->is_running = true;
    return start_over(reader, error);
}

static int next_counted(weir_frame_reader *reader, weir_error *error)
{
    int rc = WEIR_EOF;
    while (reader->next_target < reader->num_targets && (rc = next_of_all(reader, error)) == WEIR_OK) {
        weir__frame_clock_add(&reader->clock, reader->decoder->frame);
        if (reader->num_counted++ == reader->targets[reader->next_target].frame)
            return WEIR_OK;
    }
    if (rc == WEIR_EOF) {
        reader->num_missing += reader->num_targets - reader->next_target;
        reader->next_target = reader->num_targets;
    }
    return reader->next_target == reader->num_targets ? WEIR_EOF : rc;
}

/* ---- runs ---------------------------------------------------------------------------------------------------- */

static size_t packet_of(const weir_frame_reader *reader, size_t target)
{
    return reader->index.frames[reader->targets[target].frame];
}

/*
 * After a start that is not an IDR picture FFmpeg's H.264 decoder considers frames corrupt until a complete one was
 * output, and if it is drained before, it outputs none. The index knows that they are complete, so they are
 * requested.
 */
static void show_unsure(AVCodecContext *codec)
{
    if (codec->codec_id == AV_CODEC_ID_H264)
        codec->flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;
}

/* Signs of damage: packets that cannot be decoded, and errors and patched pictures in FFmpeg's log. */
static uint64_t count_trouble(const weir_frame_reader *reader)
{
    const weir_ffmpeg_log *log = weir__ffmpeg_log_current();
    return reader->decoder->num_errors + (log ? log->num_trouble : 0);
}

static size_t start_of(const weir_frame_reader *reader, size_t target)
{
    return weir__index_start_of(&reader->index, (size_t)reader->targets[target].frame);
}

static int64_t pts_of(const weir_frame_reader *reader, size_t target)
{
    return reader->index.packets[packet_of(reader, target)].pts;
}

/* Can the run go on to the next target, and does that cost no more than a new run? */
static bool can_go_on(const weir_frame_reader *reader)
{
    size_t target = reader->next_target;
    bool is_drained = reader->decoder->draining && reader->run_packet < reader->index.num_packets;
    return reader->stays_open && reader->is_running && !reader->must_drain && !is_drained &&
           reader->targets[target].frame >= reader->run_front && pts_of(reader, target) > reader->run_skipped_pts &&
           start_of(reader, target) <= reader->run_packet;
}

/* Which packets the next targets need, up to the next clean start that saves some. */
static void set_run(weir_frame_reader *reader)
{
    size_t target = reader->next_target;
    reader->run_last = packet_of(reader, target);
    if (reader->run_packet > reader->run_start)
        reader->run_last = FFMAX(reader->run_last, reader->run_packet - 1);
    for (target++; target < reader->num_targets; target++) {
        if (start_of(reader, target) > reader->run_last + 1)
            break;
        reader->run_last = FFMAX(reader->run_last, packet_of(reader, target));
    }
    reader->run_end = target;
    reader->is_running = true;
    reader->is_beyond = false;
}

static int begin_run(weir_frame_reader *reader, weir_error *error)
{
    if (can_go_on(reader)) {
        set_run(reader);
        reader->run_trouble = count_trouble(reader);
        return WEIR_OK;
    }
    reader->run_start = start_of(reader, reader->next_target);
    reader->run_packet = reader->run_start;
    reader->run_front = reader->targets[reader->next_target].frame;
    reader->run_skipped_pts = INT64_MIN;
    set_run(reader);
    weir__decoder_flush(reader->decoder);
    reader->hidden.num = 0;
    int rc = reader->cache ? WEIR_OK : go_to(reader, reader->run_start, error);
    if (rc == WEIR_OK)
        show_unsure(reader->decoder->codec);
    reader->run_trouble = count_trouble(reader);
    return rc;
}

/* Used if the index is wrong, or the file damaged. Errors of earlier runs will be counted again. */
static int begin_last_resort(weir_frame_reader *reader, weir_error *error)
{
    reader->decoder->num_errors = reader->scan_errors;
    reader->is_last_resort = true;
    reader->is_running = true;
    reader->is_beyond = false;
    reader->run_start = 0;
    reader->run_last = reader->index.num_packets - 1;
    reader->run_end = reader->num_targets;
    return start_over(reader, error);
}

/* Is it disposable, and not wanted? */
static bool is_spare(const weir_frame_reader *reader, size_t at)
{
    unsigned flags = reader->index.packets[at].flags;
    return !reader->is_last_resort && (flags & WEIR_PACKET_DISPOSABLE) && !(flags & WEIR_PACKET_WANTED);
}

/* And will the next request not want it, if it goes on here? */
static bool can_skip(const weir_frame_reader *reader, size_t at)
{
    bool may_go_on = reader->stays_open && !reader->must_drain;
    return is_spare(reader, at) &&
           (!may_go_on || reader->index.packets[at].pts < pts_of(reader, reader->num_targets - 1));
}

/* May the run get packets after those that it needs? No decoder holds back so many frames. */
static bool may_go_beyond(const weir_frame_reader *reader)
{
    enum { MAX_BEYOND = 64 };
    bool is_last = reader->run_end == reader->num_targets && !reader->is_last_resort;
    bool has_trouble = !reader->is_beyond && count_trouble(reader) > reader->run_trouble;
    return reader->stays_open && is_last && !reader->must_drain && !has_trouble &&
           reader->run_packet <= reader->run_last + MAX_BEYOND;
}

/* Is there no further packet for it? */
static bool is_run_over(const weir_frame_reader *reader)
{
    return reader->run_packet >= reader->index.num_packets ||
           (reader->run_packet > reader->run_last && !may_go_beyond(reader));
}

static void skip_packets(weir_frame_reader *reader)
{
    while (!is_run_over(reader) && can_skip(reader, reader->run_packet)) {
        const weir_packet_entry *entry = &reader->index.packets[reader->run_packet++];
        reader->run_skipped_pts = FFMAX(reader->run_skipped_pts, entry->pts);
    }
}

/* Before the first packet that the request does not need: what the others have shown counts for it. */
static void note_beyond(weir_frame_reader *reader)
{
    bool is_needed = reader->run_packet <= reader->run_last && !is_spare(reader, reader->run_packet);
    if (reader->is_beyond || is_needed)
        return;
    reader->is_beyond = true;
    reader->needed_errors = reader->decoder->num_errors;
    reader->needed_averror = reader->decoder->first_averror;
}

/* There may be damage in the packets that the request does not need: the run begins anew, without them. */
static void forget_beyond(weir_frame_reader *reader)
{
    reader->decoder->num_errors = reader->needed_errors;
    reader->decoder->first_averror = reader->needed_averror;
    reader->must_drain = true;
    reader->is_running = false;
}

/* Is it shown before the run's start, so that its references may be missing? */
static bool is_leading(const weir_frame_reader *reader, size_t at)
{
    int64_t start_pts = reader->index.packets[reader->run_start].pts;
    return reader->run_start > 0 && reader->index.packets[at].pts < start_pts;
}

static int feed_run(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    skip_packets(reader);
    if (is_run_over(reader))
        return decode_packet(reader, NULL, error);

    note_beyond(reader);
    uint64_t num_errors = decoder->num_errors;
    uint64_t trouble = count_trouble(reader);
    int first_averror = decoder->first_averror;
    size_t at = reader->run_packet++;
    int rc = send_packet(reader, at, error);
    if (is_leading(reader, at)) {
        reader->run_trouble += count_trouble(reader) - trouble;
        reader->run_trouble -= decoder->num_errors - num_errors;
        decoder->num_errors = num_errors;
        decoder->first_averror = first_averror;
    }
    return rc;
}

/* That frame has come out. After the run's last target, which is missing then, or comes too late, none should. */
static void note_frame(weir_frame_reader *reader, size_t frame)
{
    reader->run_front = FFMAX(reader->run_front, (uint64_t)frame + 1);
    reader->must_drain |= frame > reader->targets[reader->run_end - 1].frame;
}

/* The target of that frame; run_end if none. */
static size_t find_target(const weir_frame_reader *reader, size_t frame)
{
    size_t target = reader->next_target;
    while (target < reader->run_end && reader->targets[target].frame < frame)
        target++;
    return target < reader->run_end && reader->targets[target].frame == frame ? target : reader->run_end;
}

/* The targets up to that one are missing in this run. WEIR_MORE: another run may find them. */
static int pass_over(weir_frame_reader *reader, size_t target, weir_error *error)
{
    if (!reader->is_last_resort) {
        int rc = begin_last_resort(reader, error);
        return rc == WEIR_OK ? WEIR_MORE : rc;
    }
    reader->num_missing += target - reader->next_target;
    reader->next_target = target;
    return WEIR_OK;
}

/* The run has ended without all of its targets. */
static int end_run(weir_frame_reader *reader, weir_error *error)
{
    if (reader->is_beyond && !reader->is_last_resort) {
        forget_beyond(reader);
        return WEIR_MORE;
    }
    int rc = pass_over(reader, reader->run_end, error);
    if (rc != WEIR_OK)
        return rc;
    reader->is_running = false;
    return WEIR_MORE;
}

/* May the run's frames differ from those of decoding everything? */
static bool is_doubtful(const weir_frame_reader *reader)
{
    return !reader->is_last_resort &&
           (count_trouble(reader) > reader->run_trouble || reader->decoder->frame->decode_error_flags);
}

/* WEIR_MORE, or the failure. */
static int decode_again(weir_frame_reader *reader, weir_error *error)
{
    if (!reader->is_beyond) {
        int rc = begin_last_resort(reader, error);
        return rc == WEIR_OK ? WEIR_MORE : rc;
    }
    forget_beyond(reader);
    return WEIR_MORE;
}

/* Accepts the current frame, or skips it (WEIR_MORE). */
static int take_frame(weir_frame_reader *reader, weir_error *error)
{
    if (is_doubtful(reader))
        return decode_again(reader, error);
    size_t frame;
    if (!weir__index_find(&reader->index, reader->decoder->frame->pts, &frame))
        return WEIR_MORE;
    note_frame(reader, frame);
    size_t target = find_target(reader, frame);
    if (target == reader->run_end)
        return WEIR_MORE;
    if (reader->decoder->codec->flags & AV_CODEC_FLAG_OUTPUT_CORRUPT)
        reader->decoder->frame->flags &= ~AV_FRAME_FLAG_CORRUPT;
    return target > reader->next_target ? pass_over(reader, target, error) : WEIR_OK;
}

static int next_indexed(weir_frame_reader *reader, weir_error *error)
{
    while (reader->next_target < reader->num_targets) {
        bool needs_run = !reader->is_running || reader->next_target >= reader->run_end;
        int rc = needs_run ? begin_run(reader, error) : WEIR_OK;
        if (rc != WEIR_OK)
            return rc;
        rc = receive_frame(reader, error);
        if (rc == WEIR_OK)
            rc = take_frame(reader, error);
        else if (rc == WEIR_MORE && (rc = feed_run(reader, error)) == WEIR_OK)
            rc = WEIR_MORE;
        else if (rc == WEIR_EOF)
            rc = end_run(reader, error);
        if (rc != WEIR_MORE)
            return rc;
    }
    return WEIR_EOF;
}

/* ---- targets ------------------------------------------------------------------------------------------------- */

static int compare_targets(const void *a, const void *b)
{
    const weir_target *left = a;
    const weir_target *right = b;
    if (left->frame != right->frame)
        return left->frame < right->frame ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

static int set_targets(weir_frame_reader *reader, const weir_selection *selection, weir_error *error)
{
    reader->targets = calloc(selection->num_indices, sizeof *reader->targets);
    if (!reader->targets)
        return fail_reader_memory(error);
    reader->num_targets = selection->num_indices;
    reader->is_in_order = true;
    for (size_t i = 0; i < selection->num_indices; i++) {
        reader->targets[i] = (weir_target){ .frame = selection->indices[i], .position = i };
        reader->is_in_order &= i == 0 || selection->indices[i] >= selection->indices[i - 1];
    }
    if (!reader->is_in_order)
        qsort(reader->targets, reader->num_targets, sizeof *reader->targets, compare_targets);
    for (size_t i = 0; reader->way == WEIR_READER_INDEXED && i < reader->num_targets; i++)
        reader->index.packets[packet_of(reader, i)].flags |= WEIR_PACKET_WANTED;
    return WEIR_OK;
}

static void forget_timeline(weir_frame_reader *reader)
{
    weir__timeline_reset(&reader->timeline);
    reader->has_timeline = false;
}

/* With the index if it is trusted, otherwise by decoding everything once. */
static int make_timeline(weir_frame_reader *reader, weir_error *error)
{
    int rc = WEIR_OK;
    reader->way = reader->index.distrust ? WEIR_READER_COUNTED : WEIR_READER_INDEXED;
    if (reader->way == WEIR_READER_COUNTED)
        rc = count_frames(reader, &reader->timeline, error);
    else if (weir__index_fill_timeline(&reader->index, reader->decoder->stream, &reader->timeline) != WEIR_OK)
        rc = fail_reader_memory(error);
    reader->has_timeline = rc == WEIR_OK;
    return rc;
}

/* Selects frames by their times and numbers. */
static int choose_frames(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    weir_timeline *timeline = &reader->timeline;
    weir_selection selection = { 0 };
    uint64_t num_errors = decoder->num_errors;
    reader->scan_errors = num_errors;
    int rc = reader->has_timeline ? WEIR_OK : make_timeline(reader, error);
    if (rc == WEIR_OK)
        rc = check_duration(reader, weir__timeline_ns(timeline, timeline->num_frames), error);
    if (rc == WEIR_OK && timeline->num_frames > 0) {
        decoder->num_errors = num_errors; /* the errors of the counting pass are counted again */
        rc =
            weir__select_frames(reader->sampling, timeline, reader->seed, seq, reader->max_frames, &selection, error);
        if (rc == WEIR_OK)
            rc = set_targets(reader, &selection, error);
    }
    if (!reader->stays_open)
        forget_timeline(reader);
    weir__selection_free(&selection);
    return rc;
}

/* Makes the index without reading the file. WEIR_EDATA: the table cannot be used. */
static int use_table(weir_frame_reader *reader, weir_error *error)
{
    int rc = weir__packet_table_unpack(reader->table, reader->table_bytes, reader->decoder->stream, &reader->index);
    return rc == WEIR_ENOMEM ? fail_reader_memory(error) : rc;
}

int weir__frame_reader_open(weir_frame_reader *reader, const char *path, weir_error *error)
{
    reader->path = path;
    int rc = open_file(reader, error);
    if (rc == WEIR_OK)
        weir__frame_clock_begin(&reader->clock, reader->decoder->stream);
    return rc;
}

/* Makes the index: of the first packets if that is enough, else of all. */
static int make_index(weir_frame_reader *reader, bool is_plain, weir_error *error)
{
    if (is_plain)
        return look_ahead(reader, reader->sampling->count, error);
    int rc = reader->table ? use_table(reader, error) : WEIR_EDATA;
    if (rc == WEIR_EDATA)
        rc = scan_file(reader, error);
    reader->is_whole = rc == WEIR_OK;
    return rc;
}

/* What an earlier request has left, except the index, the cache, and where the decoder stands. */
static void forget_targets(weir_frame_reader *reader)
{
    for (size_t i = 0; reader->way == WEIR_READER_INDEXED && i < reader->num_targets; i++)
        reader->index.packets[packet_of(reader, i)].flags &= (uint8_t)~WEIR_PACKET_WANTED;
    free(reader->targets);
    reader->targets = NULL;
    reader->num_targets = 0;
    reader->next_target = 0;
    reader->run_end = 0; /* the run has no target: the next one must begin, or go on */
}

bool weir__frame_reader_can_select(const weir_frame_reader *reader, const weir_sampling *sampling)
{
    if (!reader->is_asked)
        return true;
    bool is_sound = reader->decoder->num_errors == 0 && reader->num_missing == 0 && !reader->is_last_resort;
    return reader->is_whole && reader->has_timeline && is_sound && !weir__sampling_is_plain(sampling);
}

int weir__frame_reader_select(weir_frame_reader *reader, uint64_t seq, weir_error *error)
{
    bool is_plain = weir__sampling_is_plain(reader->sampling);
    bool is_further = reader->is_asked;
    int rc = WEIR_OK;
    reader->is_asked = true;
    if (is_plain && !can_look_ahead(reader))
        return WEIR_OK;
    if (is_further)
        forget_targets(reader);
    else
        rc = make_index(reader, is_plain, error);
    if (rc == WEIR_OK && is_plain && reader->index.distrust)
        return reader->num_cached == reader->index.num_packets ? WEIR_OK : fail_reader_memory(error);
    if (rc == WEIR_OK)
        rc = choose_frames(reader, seq, error);
    if (rc == WEIR_OK && reader->way == WEIR_READER_COUNTED && reader->num_targets > 0)
        rc = go_to_counted(reader, error);
    return rc;
}

/* The next packet; cached ones are used first. */
static int send_next(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    if (reader->run_packet < reader->num_cached)
        return decode_packet(reader, reader->cache[reader->run_packet++], error);
    int rc = read_packet(reader, error);
    if (rc == WEIR_OK || rc == WEIR_EOF)
        rc = decode_packet(reader, rc == WEIR_OK ? decoder->packet : NULL, error);
    av_packet_unref(decoder->packet);
    return rc;
}

static int decode_plain(weir_frame_reader *reader, weir_error *error)
{
    int rc;
    if (reader->is_read)
        return next_of_all(reader, error);
    while ((rc = receive_frame(reader, error)) == WEIR_MORE && (rc = send_next(reader, error)) == WEIR_OK)
        continue;
    return rc;
}

static int next_plain(weir_frame_reader *reader, weir_error *error)
{
    weir_decoder *decoder = reader->decoder;
    uint32_t count = reader->sampling->count;
    if (count && reader->num_counted >= count)
        return WEIR_EOF;
    int rc = decode_plain(reader, error);
    if (rc != WEIR_OK)
        return rc;
    if (reader->num_counted++ >= reader->max_frames)
        return weir_error_set(error, WEIR_ELIMIT, 0,
                              "more frames than the limit of %" PRIu64 ": raise max_frames, or take fewer (sampling)",
                              reader->max_frames);
    weir__frame_clock_add(&reader->clock, decoder->frame);
    return check_duration(reader, weir__ticks_ns(reader->clock.ticks, reader->clock.time_base), error);
}

int weir__frame_reader_next(weir_frame_reader *reader, weir_error *error)
{
    reader->num_repeats = 1;
    if (reader->way == WEIR_READER_PLAIN)
        return next_plain(reader, error);
    int rc = reader->way == WEIR_READER_COUNTED ? next_counted(reader, error) : next_indexed(reader, error);
    if (rc != WEIR_OK)
        return rc;
    size_t first = reader->next_target;
    for (; reader->next_target < reader->num_targets; reader->next_target++) {
        if (reader->targets[reader->next_target].frame != reader->targets[first].frame)
            break;
        reader->targets[reader->next_target].has_come = true;
    }
    reader->num_repeats = (unsigned)(reader->next_target - first);
    return WEIR_OK;
}

int64_t weir__frame_reader_pts(const weir_frame_reader *reader)
{
    const AVFrame *frame = reader->decoder->frame;
    return reader->way == WEIR_READER_INDEXED ? frame->pts : reader->clock.pts;
}

typedef struct placed {
    size_t position;
    size_t number;
} placed;

static int compare_placed(const void *a, const void *b)
{
    const placed *left = a;
    const placed *right = b;
    return left->position < right->position ? -1 : left->position > right->position;
}

int weir__frame_reader_order(const weir_frame_reader *reader, size_t num_frames, size_t **order)
{
    *order = NULL;
    if (!reader->targets || reader->is_in_order)
        return WEIR_OK;
    placed *frames = calloc(num_frames, sizeof *frames);
    *order = calloc(num_frames, sizeof **order);
    size_t num_placed = 0;
    for (size_t i = 0; frames && *order && i < reader->num_targets && num_placed < num_frames; i++) {
        if (reader->targets[i].has_come) {
            frames[num_placed] = (placed){ .position = reader->targets[i].position, .number = num_placed };
            num_placed++;
        }
    }
    if (!frames || !*order) {
        free(frames);
        free(*order);
        *order = NULL;
        return WEIR_ENOMEM;
    }
    qsort(frames, num_placed, sizeof *frames, compare_placed);
    for (size_t i = 0; i < num_placed; i++)
        (*order)[i] = frames[i].number;
    free(frames);
    return WEIR_OK;
}

uint64_t weir__frame_reader_estimate_frames(const weir_frame_reader *reader)
{
    if (reader->num_targets)
        return reader->num_targets;
    uint64_t num_frames = weir__decoder_estimate_frames(reader->decoder);
    uint32_t count = reader->sampling->count;
    return count && (count < num_frames || num_frames == 0) ? count : num_frames;
}

void weir__frame_reader_close(weir_frame_reader *reader)
{
    drop_cache(reader);
    weir__index_reset(&reader->index);
    weir__timeline_reset(&reader->timeline);
    free(reader->targets);
    weir__hidden_packets_reset(&reader->hidden);
    weir__decoder_close(reader->decoder);
    *reader = (weir_frame_reader){
        .decoder = reader->decoder,
        .sampling = reader->sampling,
        .seed = reader->seed,
        .max_frames = reader->max_frames,
        .max_duration_ns = reader->max_duration_ns,
        .max_cached_bytes = reader->max_cached_bytes,
        .far_bytes = reader->far_bytes,
        .stays_open = reader->stays_open,
    };
}
