/*
 * MP4 lists its packets in the header, which a cut file still has if the header comes first. Matroska (as FFmpeg
 * writes it) has the end of each stream. Matroska, FLV and ASF have the end of the whole file. That is the end of the
 * video if the video is the only stream. AVI has a length in ticks, which also counts pictures that are left out
 * because they repeat.
 */
#include "stages/probe/missing_frames.h"

#include <stdio.h>
#include <string.h>

#include <weir/clock.h>

static bool is_format(const weir_decoder *decoder, const char *name)
{
    return strstr(decoder->format->iformat->name, name) != NULL;
}

/* The packets of the header's list that have data. */
static uint64_t count_listed(const weir_decoder *decoder)
{
    int num_entries = avformat_index_get_entries_count(decoder->stream);
    uint64_t num_listed = 0;
    for (int i = 0; i < num_entries; i++)
        num_listed += avformat_index_get_entry(decoder->stream, i)->size > 0;
    return num_listed;
}

/* "00:01:02.500000000"; -1 = there is none. */
static int64_t tagged_end_ns(const AVStream *stream)
{
    const AVDictionaryEntry *tag = av_dict_get(stream->metadata, "DURATION", NULL, 0);
    unsigned hours, minutes;
    double seconds;
    if (!tag || sscanf(tag->value, "%u:%2u:%lf", &hours, &minutes, &seconds) != 3)
        return -1;
    double end_ns = ((double)hours * 3600 + minutes * 60 + seconds) * (double)WEIR_SECOND;
    return end_ns >= 0 && end_ns < (double)INT64_MAX / 4 ? (int64_t)end_ns : -1;
}

/* When the video ends by its header, as the stream counts (these headers count from 0, whenever the first frame is); -1 =
   unknown. */
static int64_t announced_end_ns(const weir_decoder *decoder)
{
    const AVFormatContext *format = decoder->format;
    const AVStream *stream = decoder->stream;
    if (is_format(decoder, "avi"))
        return stream->nb_frames > 0 ? weir__ticks_ns(stream->nb_frames, stream->time_base) : -1;
    bool has_end =
        is_format(decoder, "matroska") || is_format(decoder, "flv") || strcmp(format->iformat->name, "asf") == 0;
    int64_t end_ns = has_end ? tagged_end_ns(stream) : -1;
    if (end_ns >= 0)
        return end_ns;
    bool is_alone = format->nb_streams == 1 && format->duration > 0 && format->duration < INT64_MAX / WEIR_SECOND &&
                    format->duration_estimation_method != AVFMT_DURATION_FROM_BITRATE;
    return has_end && is_alone ? format->duration * (WEIR_SECOND / AV_TIME_BASE) : -1;
}

/* What was read, in the stream's ticks; packets without a time of showing count by their time of decoding. */
typedef struct extent {
    int64_t first;
    int64_t last;
    int64_t end; /* of the last one */
    uint64_t num_frames;
} extent;

static extent find_extent(const weir_index *index)
{
    extent read = { .first = INT64_MAX, .last = INT64_MIN };
    for (size_t i = 0; i < index->num_packets; i++) {
        const weir_packet_entry *packet = &index->packets[i];
        int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
        if (time == AV_NOPTS_VALUE || !(packet->flags & WEIR_PACKET_SHOWN))
            continue;
        read.num_frames++;
        read.first = FFMIN(read.first, time);
        if (time >= read.last) {
            read.last = time;
            read.end = av_sat_add64(time, packet->duration);
        }
    }
    return read;
}

/* The frames that fit between the end of the last one that was read and the announced end. */
static uint64_t count_by_time(const weir_decoder *decoder, const weir_index *index)
{
    const AVRational time_base = decoder->stream->time_base;
    int64_t end_ns = announced_end_ns(decoder);
    extent read = find_extent(index);
    if (end_ns < 0 || read.num_frames < 2)
        return 0;
    int64_t length_ns = weir__ticks_ns(av_sat_sub64(read.last, read.first), time_base);
    int64_t interval_ns = length_ns / (int64_t)(read.num_frames - 1);
    int64_t missing_ns = av_sat_sub64(end_ns, weir__ticks_ns(read.end, time_base));
    /* the durations of the last frames, which headers round or leave out, are not missing */
    return interval_ns > 0 && missing_ns > 2 * interval_ns ? (uint64_t)((missing_ns + interval_ns / 2) / interval_ns)
                                                           : 0;
}

uint64_t weir__missing_frames(const weir_decoder *decoder, const weir_index *index)
{
    uint64_t num_listed = is_format(decoder, "mp4") ? count_listed(decoder) : 0;
    if (num_listed > 0)
        return num_listed > index->num_packets ? num_listed - index->num_packets : 0;
    return count_by_time(decoder, index);
}
