#include "stages/reader/file_packets.h"

#include <inttypes.h>
#include <stdlib.h>

#include "stages/reader/group_cut.h"
#include "stages/reader/packet_table.h"

/* The first frames, in decode order. */
typedef struct first_frames {
    uint32_t count;
    uint32_t num_shown;
    int64_t last_pts; /* the highest pts of these */
} first_frames;

int weir__reader_fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

int weir__file_packets_open(weir_file_packets *file, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    int rc = weir__decoder_open(decoder, file->path, error);
    if (rc == WEIR_OK)
        weir__packet_clock_begin(&file->packet_clock, decoder->format, decoder->stream);
    file->hidden.num = 0;
    return rc;
}

int weir__file_packets_read(weir_file_packets *file, weir_error *error)
{
    int rc = weir__decoder_read(file->decoder, error);
    if (rc == WEIR_OK)
        weir__packet_clock_run(&file->packet_clock, file->decoder->packet);
    return rc;
}

int weir__file_packets_decode(weir_file_packets *file, const AVPacket *packet, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    if (packet && weir__hidden_packets_add(&file->hidden, decoder->codec->codec, packet) != WEIR_OK)
        return weir__reader_fail_memory(error);
    return weir__decoder_send(decoder, packet, error);
}

int weir__file_packets_receive(weir_file_packets *file, weir_error *error)
{
    int rc;
    do
        rc = weir__decoder_receive(file->decoder, error);
    while (rc == WEIR_OK && weir__hidden_packets_take(&file->hidden, file->decoder->frame));
    return rc;
}

static void drop_cache(weir_file_packets *file)
{
    while (file->num_cached > 0)
        av_packet_free(&file->cache[--file->num_cached]);
    free(file->cache);
    file->cache = NULL;
    file->max_cached = 0;
}

/* The size of the cache with that packet. */
static size_t cached_bytes_with(const weir_file_packets *file, const AVPacket *packet)
{
    return file->cached_bytes + (size_t)packet->size + sizeof *packet;
}

/* Caches decoder->packet, or drops the cache if it gets too large; then the file is read again. */
static void keep_packet(weir_file_packets *file)
{
    AVPacket *packet = file->decoder->packet;
    file->cached_bytes = cached_bytes_with(file, packet);
    if (file->cached_bytes > file->max_cached_bytes) {
        drop_cache(file);
        return;
    }
    if (file->num_cached == file->max_cached) {
        size_t max_cached = file->max_cached ? file->max_cached * 2 : 512;
        AVPacket **cache = realloc(file->cache, max_cached * sizeof(AVPacket *));
        if (!cache) {
            file->cached_bytes = file->max_cached_bytes;
            drop_cache(file);
            return;
        }
        file->cache = cache;
        file->max_cached = max_cached;
    }
    file->cache[file->num_cached] = av_packet_alloc();
    if (file->cache[file->num_cached]) {
        av_packet_move_ref(file->cache[file->num_cached++], packet);
    } else {
        file->cached_bytes = file->max_cached_bytes;
        drop_cache(file);
    }
}

/* Adds decoder->packet to the index and the cache. */
static int add_packet(weir_file_packets *file, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    int rc = WEIR_OK;
    if (file->index.num_packets >= file->max_packets)
        rc = weir_error_set(error, WEIR_ELIMIT, 0, "more than %" PRIu64 " packets: raise max_frames",
                            file->max_packets);
    else if (weir__index_add(&file->index, decoder->stream, decoder->packet) != WEIR_OK)
        rc = weir__reader_fail_memory(error);
    else
        keep_packet(file);
    av_packet_unref(decoder->packet);
    return rc;
}

/*
 * Are the first frames among the packets read so far? A frame is not shown before it is decoded: after a packet whose
 * dts is above their highest pts, no packet is shown before them. Continues from the previous call.
 */
static bool has_first(const weir_file_packets *file, first_frames *first)
{
    const weir_packet_entry *entry = &file->index.packets[file->index.num_packets - 1];
    if ((entry->flags & WEIR_PACKET_SHOWN) && first->num_shown < first->count) {
        first->num_shown++;
        first->last_pts = FFMAX(first->last_pts, entry->pts);
    }
    return first->num_shown >= first->count && entry->dts != AV_NOPTS_VALUE && entry->dts >= first->last_pts;
}

static int end_scan(weir_file_packets *file, weir_error *error)
{
    file->next = file->index.num_packets;
    file->cannot_seek |= file->packet_clock.num_restarts > 0;
    if (weir__index_end(&file->index, file->decoder->stream) != WEIR_OK)
        return weir__reader_fail_memory(error);
    for (size_t i = 0; i < file->num_cached; i++)
        weir__index_set_pts(&file->index, i, file->cache[i]);
    return WEIR_OK;
}

int weir__file_packets_scan(weir_file_packets *file, weir_error *error)
{
    int rc = WEIR_OK;
    while (rc == WEIR_OK && (rc = weir__file_packets_read(file, error)) == WEIR_OK)
        rc = add_packet(file, error);
    return rc == WEIR_EOF ? end_scan(file, error) : rc;
}

/* May decoder->packet be indexed? Only while packets are cached: some sources cannot be read twice. */
static bool may_look_on(const weir_file_packets *file, uint32_t count)
{
    enum { MAX_FURTHER = 64 };
    return file->index.num_packets < (size_t)count + MAX_FURTHER &&
           cached_bytes_with(file, file->decoder->packet) <= file->max_cached_bytes;
}

int weir__file_packets_look_ahead(weir_file_packets *file, uint32_t count, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    first_frames first = { .count = count, .last_pts = INT64_MIN };
    bool is_enough = false;
    int rc = WEIR_OK;
    while (rc == WEIR_OK && !is_enough && (rc = weir__decoder_read(decoder, error)) == WEIR_OK) {
        if (!may_look_on(file, count)) {
            file->index.distrust = "the first frames cannot be determined";
            rc = weir__decoder_unread(decoder, error);
            break;
        }
        weir__packet_clock_run(&file->packet_clock, decoder->packet);
        rc = add_packet(file, error);
        is_enough = rc == WEIR_OK && has_first(file, &first);
    }
    if (rc != WEIR_OK && rc != WEIR_EOF)
        return rc;
    file->is_read = rc == WEIR_EOF;
    weir__index_cut(&file->index);
    return end_scan(file, error);
}

static void drop_held(weir_file_packets *file)
{
    while (file->num_held > 0)
        av_packet_free(&file->held[--file->num_held]);
    file->held_bytes = 0;
}

int weir__file_packets_reopen(weir_file_packets *file, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    uint64_t num_errors = decoder->num_errors;
    int first_averror = decoder->first_averror;
    drop_held(file);
    weir__decoder_close(decoder);
    int rc = weir__file_packets_open(file, error);
    decoder->num_errors = num_errors;
    decoder->first_averror = first_averror;
    file->next = 0;
    file->listed.next = 0;
    return rc;
}

int weir__file_packets_start_over(weir_file_packets *file, weir_error *error)
{
    file->hidden.num = 0;
    return file->cache ? weir__decoder_restart(file->decoder, error) : weir__file_packets_reopen(file, error);
}

int weir__file_packets_begin_again(weir_file_packets *file, weir_error *error)
{
    if (file->is_read)
        return weir__file_packets_start_over(file, error);
    drop_cache(file);
    return weir__file_packets_reopen(file, error);
}

int weir__file_packets_look_for_group(weir_file_packets *file, uint64_t max_packets, bool *is_found,
                                      weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    weir_group_cut cut = { 0 };
    int rc = WEIR_OK;
    *is_found = false;
    while (rc == WEIR_OK && !*is_found && !cut.is_over && cut.num_packets <= max_packets &&
           (rc = weir__decoder_read(decoder, error)) == WEIR_OK) {
        if (cached_bytes_with(file, decoder->packet) > file->max_cached_bytes) {
            rc = weir__decoder_unread(decoder, error);
            break;
        }
        weir__packet_clock_run(&file->packet_clock, decoder->packet);
        *is_found = weir__group_cut_add(&cut, decoder->stream->codecpar, decoder->packet);
        rc = add_packet(file, error);
    }
    if (rc != WEIR_OK && rc != WEIR_EOF)
        return rc;
    file->is_read = rc == WEIR_EOF;
    return file->num_cached == cut.num_packets ? WEIR_OK : weir__reader_fail_memory(error);
}

int weir__file_packets_forget_look(weir_file_packets *file, weir_error *error)
{
    file->is_read = false;
    weir__index_reset(&file->index);
    return weir__file_packets_begin_again(file, error);
}

bool weir__file_packets_can_repeat(const weir_file_packets *file)
{
    const AVIOContext *input = file->decoder->format->pb;
    return file->is_read || (input && (input->seekable & AVIO_SEEKABLE_NORMAL));
}

/* Is decoder->packet packet `at`? */
static bool is_packet(const weir_file_packets *file, size_t at)
{
    return weir__index_is_packet(&file->index, at, file->decoder->packet);
}

/* Finds the position after a seek, by the first packet that is recognised; it is in decoder->packet. WEIR_EOF: the
   position is not before packet `at`. */
static int find_packet(weir_file_packets *file, size_t at, weir_error *error)
{
    enum { MAX_TRIES = 256 };
    for (unsigned try = 0; try < MAX_TRIES; try++) {
        size_t packet;
        av_packet_unref(file->decoder->packet);
        int rc = weir__file_packets_read(file, error);
        if (rc != WEIR_OK)
            return rc;
        if (!weir__index_find_packet(&file->index, file->decoder->packet, &packet))
            continue;
        if (packet > at)
            return WEIR_EOF;
        if (!is_packet(file, packet))
            continue;
        file->next = packet + 1;
        return WEIR_OK;
    }
    return WEIR_EOF;
}

/*
 * Seeks to packet `at` or before it; that packet is in decoder->packet. WEIR_EOF: seeking does not work. The first
 * packets after a seek may be split differently (MPEG-TS) and are not recognised; then a second seek goes further
 * back.
 */
static int seek_frame(weir_file_packets *file, size_t at, weir_error *error)
{
    enum { FURTHER = 16 };
    weir_decoder *decoder = file->decoder;
    uint64_t num_errors = decoder->num_errors;
    int rc = WEIR_EOF;
    for (size_t back = 0; rc == WEIR_EOF && back <= FURTHER && back <= at; back += FURTHER) {
        const weir_packet_entry *entry = weir__index_packet(&file->index, at - back);
        int64_t time = entry->dts != AV_NOPTS_VALUE ? entry->dts : entry->pts;
        weir__packet_clock_seek(&file->packet_clock);
        if (weir__decoder_seek(decoder, time))
            rc = find_packet(file, at, error);
    }
    decoder->num_errors = num_errors; /* do not count the errors of the scan twice */
    return rc;
}

/* Does seeking save enough? */
static bool is_far(const weir_file_packets *file, size_t at)
{
    int64_t bytes = 0;
    for (size_t i = file->next; i < at && bytes < file->far_bytes; i++)
        bytes += weir__index_packet(&file->index, i)->size_bytes;
    return bytes >= file->far_bytes;
}

/* Reads up to packet `at`, which is then in decoder->packet. */
static int read_on(weir_file_packets *file, size_t at, weir_error *error)
{
    while (file->next <= at) {
        av_packet_unref(file->decoder->packet);
        int rc = weir__file_packets_read(file, error);
        if (rc != WEIR_OK)
            return rc;
        file->next++;
    }
    return WEIR_OK;
}

static int fail_changed(weir_error *error)
{
    return weir_error_set(error, WEIR_EDATA, 0, "the file changed between two reads");
}

int weir__file_packets_go_to(weir_file_packets *file, size_t at, weir_error *error)
{
    int rc = WEIR_EOF;
    if (file->listed.blocks)
        return WEIR_OK; /* it is found when it is sent */
    bool is_behind = at < file->next;
    bool has_times = !file->index.is_ordered || weir__index_packet(&file->index, at)->dts != AV_NOPTS_VALUE;
    bool seeks = !file->cannot_seek && has_times && (is_behind || is_far(file, at));
    if (seeks) {
        rc = seek_frame(file, at, error);
        file->cannot_seek = rc == WEIR_EOF;
    }
    if (rc == WEIR_OK || (!seeks && !is_behind))
        rc = read_on(file, at, error);
    if (rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(file, at))) {
        rc = weir__file_packets_reopen(file, error);
        if (rc == WEIR_OK)
            rc = read_on(file, at, error);
    }
    return rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(file, at)) ? fail_changed(error) : rc;
}

/* Reads packet `at` into decoder->packet, unless it is there. */
static int fetch_frame(weir_file_packets *file, size_t at, weir_error *error)
{
    if (file->listed.blocks)
        return weir__listed_packets_read(&file->listed, at, error);
    int rc = read_on(file, at, error);
    return rc == WEIR_EOF || (rc == WEIR_OK && !is_packet(file, at)) ? fail_changed(error) : rc;
}

const AVPacket *weir__file_packets_cached(weir_file_packets *file, size_t at)
{
    if (file->cache)
        return file->cache[at];
    if (at >= file->held_first && at - file->held_first < file->num_held && file->held[at - file->held_first])
        return file->held[at - file->held_first];
    return file->listed.blocks ? weir__listed_packets_cached(&file->listed, at) : NULL;
}

/* Is there memory for the packets? */
static bool may_hold(const weir_file_packets *file, size_t first, size_t last)
{
    size_t num_bytes = 0;
    for (size_t at = first; at <= last && num_bytes <= file->max_cached_bytes; at++)
        num_bytes += (size_t)weir__index_packet(&file->index, at)->size_bytes + sizeof(AVPacket);
    return num_bytes <= file->max_cached_bytes;
}

/* Are these held, and is the demuxer's next packet the one after all that are? */
static bool is_held(const weir_file_packets *file, size_t first, size_t last)
{
    size_t end = file->held_first + file->num_held;
    return first >= file->held_first && last < end && (file->listed.blocks || file->next == end);
}

static int grow_held(weir_file_packets *file, size_t num_packets)
{
    if (num_packets <= file->max_held)
        return WEIR_OK;
    AVPacket **held = realloc(file->held, num_packets * sizeof(AVPacket *));
    if (!held)
        return WEIR_ENOMEM;
    file->held = held;
    file->max_held = num_packets;
    return WEIR_OK;
}

/* What the list of packets keeps is not held once more. */
static int hold_packet(weir_file_packets *file, size_t at)
{
    AVPacket **held = &file->held[file->num_held++];
    *held = NULL;
    if (file->listed.blocks && weir__listed_packets_cached(&file->listed, at))
        return WEIR_OK;
    *held = av_packet_alloc();
    int rc = *held ? fetch_frame(file, at, NULL) : WEIR_ENOMEM;
    if (rc != WEIR_OK)
        return rc;
    av_packet_move_ref(*held, file->decoder->packet);
    file->held_bytes += (size_t)(*held)->size + sizeof(AVPacket);
    return WEIR_OK;
}

static int hold_packets(weir_file_packets *file, size_t first, size_t last)
{
    int rc = grow_held(file, last - first + 1);
    file->held_first = first;
    for (size_t at = first; rc == WEIR_OK && at <= last; at++)
        rc = hold_packet(file, at);
    return rc;
}

int weir__file_packets_hold(weir_file_packets *file, size_t first, size_t last, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    uint64_t num_errors = decoder->num_errors;
    int first_averror = decoder->first_averror;
    if (file->cache || is_held(file, first, last))
        return WEIR_OK;
    drop_held(file);
    int rc = weir__file_packets_go_to(file, first, error);
    if (rc != WEIR_OK || !may_hold(file, first, last))
        return rc;
    if (hold_packets(file, first, last) == WEIR_OK && decoder->num_errors == num_errors)
        return WEIR_OK;
    drop_held(file);
    decoder->num_errors = num_errors; /* they are counted when they are met again */
    decoder->first_averror = first_averror;
    return weir__file_packets_go_to(file, first, error);
}

int weir__file_packets_send(weir_file_packets *file, size_t at, weir_error *error)
{
    const AVPacket *kept = weir__file_packets_cached(file, at);
    if (kept)
        return weir__file_packets_decode(file, kept, error);
    int rc = fetch_frame(file, at, error);
    if (rc == WEIR_OK) {
        weir__index_set_pts(&file->index, at, file->decoder->packet);
        rc = weir__file_packets_decode(file, file->decoder->packet, error);
    }
    av_packet_unref(file->decoder->packet);
    return rc;
}

int weir__file_packets_use_table(weir_file_packets *file, const uint8_t *table, size_t table_bytes, weir_error *error)
{
    int rc = weir__packet_table_open(table, table_bytes, file->decoder->stream, &file->index);
    return rc == WEIR_ENOMEM ? weir__reader_fail_memory(error) : rc;
}

static void forget_list(weir_file_packets *file)
{
    weir__listed_packets_reset(&file->listed);
    weir__index_reset(&file->index);
}

int weir__file_packets_scan_again(weir_file_packets *file, weir_error *error)
{
    forget_list(file);
    int rc = weir__file_packets_reopen(file, error);
    return rc == WEIR_OK ? weir__file_packets_scan(file, error) : rc;
}

int weir__file_packets_list_or_scan(weir_file_packets *file, weir_error *error)
{
    file->listed.max_cached_bytes = file->max_cached_bytes;
    file->listed.far_bytes = file->far_bytes;
    int rc = weir__listed_packets_open(&file->listed, file->decoder, file->max_packets, &file->index);
    if (rc == WEIR_EDATA)
        return weir__file_packets_scan(file, error);
    if (rc == WEIR_OK)
        rc = weir__index_end_blocks(&file->index, file->decoder->stream);
    if (rc == WEIR_EDATA)
        return weir__file_packets_scan_again(file, error);
    if (rc != WEIR_OK && weir__index_failure(&file->index, error) == WEIR_OK)
        weir__reader_fail_memory(error);
    return rc;
}

size_t weir__file_packets_of_frame(const weir_file_packets *file, uint64_t frame)
{
    return weir__index_packet_of(&file->index, frame);
}

size_t weir__file_packets_bytes(const weir_file_packets *file)
{
    size_t cached_bytes = file->cache ? file->cached_bytes : 0;
    return cached_bytes + file->listed.cached_bytes + file->held_bytes +
           (file->max_cached + file->max_held) * sizeof(AVPacket *) + weir__index_bytes(&file->index);
}

void weir__file_packets_reset(weir_file_packets *file)
{
    drop_cache(file);
    drop_held(file);
    free(file->held);
    forget_list(file);
    weir__hidden_packets_reset(&file->hidden);
    weir__decoder_close(file->decoder);
    *file = (weir_file_packets){
        .decoder = file->decoder,
        .max_cached_bytes = file->max_cached_bytes,
        .far_bytes = file->far_bytes,
    };
}
