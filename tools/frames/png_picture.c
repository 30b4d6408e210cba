#include "tools/frames/png_picture.h"

#include <libavcodec/avcodec.h>

/* PNG has the most significant byte first. */
static enum AVPixelFormat png_format(weir_pixel pixel)
{
    switch (pixel) {
    case WEIR_PIXEL_GRAY8: return AV_PIX_FMT_GRAY8;
    case WEIR_PIXEL_RGB48: return AV_PIX_FMT_RGB48BE;
    case WEIR_PIXEL_GRAY16: return AV_PIX_FMT_GRAY16BE;
    case WEIR_PIXEL_RGB24:
    case WEIR_PIXEL_YUV420P:
    case WEIR_PIXEL_YUV420P10: break;
    }
    return AV_PIX_FMT_RGB24;
}

static void copy_row(uint8_t *to, const uint8_t *from, size_t num_values, size_t value_bytes)
{
    for (size_t i = 0; value_bytes == 2 && i < num_values; i++) {
        uint16_t value;
        memcpy(&value, from + 2 * i, sizeof value);
        to[2 * i] = (uint8_t)(value >> 8);
        to[2 * i + 1] = (uint8_t)value;
    }
    if (value_bytes == 1)
        memcpy(to, from, num_values);
}

static AVCodecContext *open_encoder(const weir_frames *frames)
{
    const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
    AVCodecContext *encoder = codec ? avcodec_alloc_context3(codec) : NULL;
    if (!encoder)
        return NULL;
    encoder->width = (int)frames->width;
    encoder->height = (int)frames->height;
    encoder->pix_fmt = png_format(frames->pixel);
    encoder->time_base = (AVRational){ 1, 1 };
    encoder->thread_count = 1;
    if (avcodec_open2(encoder, codec, NULL) < 0)
        avcodec_free_context(&encoder);
    return encoder;
}

static int encode(AVCodecContext *encoder, const weir_frames *frames, uint32_t index, AVPacket *packet)
{
    AVFrame *frame = av_frame_alloc();
    if (!frame)
        return AVERROR(ENOMEM);
    frame->format = encoder->pix_fmt;
    frame->width = encoder->width;
    frame->height = encoder->height;
    int rc = av_frame_get_buffer(frame, 0);
    size_t value_bytes = weir_pixel_value_bytes(frames->pixel), row_values = (size_t)frames->width * frames->channels;
    const uint8_t *rows = frames->data + index * frames->frame_bytes;
    for (uint32_t y = 0; y < frames->height && rc == 0; y++)
        copy_row(frame->data[0] + (ptrdiff_t)y * frame->linesize[0], rows + y * row_values * value_bytes, row_values,
                 value_bytes);
    if (rc == 0)
        rc = avcodec_send_frame(encoder, frame);
    if (rc == 0)
        rc = avcodec_send_frame(encoder, NULL);
    if (rc == 0)
        rc = avcodec_receive_packet(encoder, packet);
    av_frame_free(&frame);
    return rc;
}

int png_picture_write(const weir_frames *frames, uint32_t index, FILE *file, weir_error *error)
{
    AVCodecContext *encoder = open_encoder(frames);
    if (!encoder)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "this FFmpeg has no PNG encoder");
    AVPacket *packet = av_packet_alloc();
    int rc = packet ? encode(encoder, frames, index, packet) : AVERROR(ENOMEM);
    if (rc == 0)
        fwrite(packet->data, 1, (size_t)packet->size, file);
    av_packet_free(&packet);
    avcodec_free_context(&encoder);
    return rc == 0 ? WEIR_OK : weir_error_set(error, WEIR_EIO, rc, "a picture cannot be encoded as PNG");
}
