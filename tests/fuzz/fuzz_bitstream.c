/*
 * libFuzzer's target: what is read from a packet's bytes without decoding (bitstream.c, av1_frames.c, av1_plan.c),
 * and the index that is made of a file's packets (frame_index.c). The first bytes of the input choose the codec and
 * its extradata. Every packet is in memory of just its size: FFmpeg pads packets, so that reading beyond one would
 * never be seen in a run of the stage.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include "stages/reader/av1_frames.h"
#include "stages/reader/av1_plan.h"
#include "stages/reader/bitstream.h"
#include "stages/reader/frame_index.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/use_index.h"

enum { HEAD_BYTES = 4, MAX_EXTRADATA = 64, PACKET_HEAD_BYTES = 4, MAX_LAYER = 7, MAX_PLANNED = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum AVCodecID codecs[] = {
    AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_MPEG1VIDEO, AV_CODEC_ID_MPEG2VIDEO, AV_CODEC_ID_MPEG4,
    AV_CODEC_ID_VP8,  AV_CODEC_ID_VP9,  AV_CODEC_ID_AV1,        AV_CODEC_ID_MJPEG,      AV_CODEC_ID_WMV3,
};

static uint8_t *copy_exact(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    require(copy);
    memcpy(copy, data, size);
    return copy;
}

/* The answer depends on nothing but the bytes and what came before. */
static void look_at_packet(const AVCodecParameters *codec, const AVPacket *packet)
{
    weir_packet_past past = { 0 }, past_again = { 0 };
    weir_packet_kind kind = weir__bitstream_look(codec, packet, &past);
    weir_packet_kind again = weir__bitstream_look(codec, packet, &past_again);
    require(past.has_ended == past_again.has_ended && past.shape == past_again.shape && !kind.drops_held);
    require(kind.is_clean == again.is_clean && kind.is_disposable == again.is_disposable);
    require(kind.is_hidden == again.is_hidden && kind.is_unclear == again.is_unclear && kind.layer == again.layer);
    require(kind.layer <= MAX_LAYER);
}

/* Headers of AV1: units lie one after the other in the packet, and each frame's index is that of a frame. */
static void look_at_av1(weir_av1_sequence *sequence, const AVPacket *packet)
{
    weir_av1_look look;
    size_t end = 0;
    if (!weir__av1_look(sequence, packet->data, (size_t)packet->size, &look))
        return;
    require(look.num_frames > 0 && look.num_frames <= WEIR_AV1_MAX_FRAMES && look.num_shown <= look.num_frames);
    for (unsigned i = 0; i < look.num_units; i++) {
        require(look.units[i].begin == end && look.units[i].end > end);
        require(look.units[i].frame == WEIR_AV1_NO_FRAME || look.units[i].frame < look.num_frames);
        end = look.units[i].end;
    }
    require(end == (size_t)packet->size);
}

/* The first packets; those whose time is odd are wanted. */
typedef struct planned {
    AVPacket *packets[MAX_PLANNED];
    size_t num;
} planned;

static const AVPacket *packet_at(void *self, size_t at)
{
    return ((planned *)self)->packets[at];
}

static bool is_wanted(void *self, size_t at)
{
    return ((planned *)self)->packets[at]->pts & 1;
}

/* What is cut out of packets leaves parts of them, and what is skipped is not wanted. */
static void plan_packets(const AVCodecParameters *codec, planned *of)
{
    weir_av1_plan plan = { 0 };
    const weir_av1_run run = { 0, of->num - 1, packet_at, is_wanted, of };
    if (of->num > 0)
        require(weir__av1_plan_make(&plan, codec, &run) == WEIR_OK);
    require(plan.num_needed <= plan.num_all);
    for (size_t i = 0; plan.is_on && i < of->num; i++) {
        if (weir__av1_plan_skips(&plan, i)) {
            require(i > 0 && !is_wanted(of, i));
            continue;
        }
        const AVPacket *cut = weir__av1_plan_cut(&plan, i, of->packets[i]);
        require(cut && cut->size > 0 && cut->size <= of->packets[i]->size && cut->pts == of->packets[i]->pts);
    }
    weir__av1_plan_free(&plan);
}

/* A packet of just that size; free_exact() frees it. */
static AVPacket *make_exact(const uint8_t *head, int64_t time, const uint8_t *bytes, size_t length)
{
    AVPacket *packet = av_packet_alloc();
    require(packet);
    packet->pts = head[2] == UINT8_MAX ? AV_NOPTS_VALUE : time + (int8_t)head[2];
    packet->dts = time;
    packet->duration = head[3] >> 4;
    packet->flags = head[3] & (AV_PKT_FLAG_KEY | AV_PKT_FLAG_CORRUPT | AV_PKT_FLAG_DISCARD);
    packet->data = copy_exact(bytes, length);
    packet->size = (int)length;
    return packet;
}

static void free_exact(AVPacket *packet)
{
    free(packet->data);
    packet->data = NULL;
    packet->size = 0;
    av_packet_free(&packet);
}

/* Packets of the rest of the input: two bytes of its size, one of its time, one of flags, its bytes. */
static void add_packets(weir_index *index, const AVStream *stream, const uint8_t *data, size_t size)
{
    weir_av1_sequence sequence = { 0 };
    planned first = { 0 };
    for (int64_t time = 0; size > PACKET_HEAD_BYTES; time++) {
        size_t length = (size_t)data[0] << 8 | data[1];
        length = length < size - PACKET_HEAD_BYTES ? length : size - PACKET_HEAD_BYTES;
        AVPacket *packet = make_exact(data, time, data + PACKET_HEAD_BYTES, length);
        look_at_packet(stream->codecpar, packet);
        look_at_av1(&sequence, packet);
        require(weir__index_add(index, stream, packet) == WEIR_OK);
        if (first.num < MAX_PLANNED)
            first.packets[first.num++] = packet;
        else
            free_exact(packet);
        data += PACKET_HEAD_BYTES + length;
        size -= PACKET_HEAD_BYTES + length;
    }
    plan_packets(stream->codecpar, &first);
    while (first.num > 0)
        free_exact(first.packets[--first.num]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return -1;
    size_t extradata_bytes = data[1] % MAX_EXTRADATA;
    if (extradata_bytes > size - HEAD_BYTES)
        extradata_bytes = size - HEAD_BYTES;
    AVCodecParameters codec = { .codec_id = codecs[data[0] % (sizeof codecs / sizeof *codecs)] };
    AVStream stream = { .codecpar = &codec, .time_base = { 1, 1 + data[2] } };
    codec.extradata = copy_exact(data + HEAD_BYTES, extradata_bytes);
    codec.extradata_size = (int)extradata_bytes;
    weir_index index = { 0 };
    add_packets(&index, &stream, data + HEAD_BYTES + extradata_bytes, size - HEAD_BYTES - extradata_bytes);
    require(weir__index_end(&index, &stream) == WEIR_OK);
    use_index(&index, &stream);
    weir__index_reset(&index);
    free(codec.extradata);
    return 0;
}
