/* Which of the streams of a file is decoded. Internal. */
#ifndef STAGES_DECODER_STREAM_CHOICE_H
#define STAGES_DECODER_STREAM_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

#include <weir/status.h>

/* Is it the picture of an album or a title, not a video? */
bool weir__stream_is_cover(const AVStream *stream);

/* The stream's number among those of its kind, from 1. Covers do not count. */
uint32_t weir__stream_number(const AVFormatContext *format, const AVStream *stream);

/*
 * The index of the stream with that number (0 = the best one), and its decoder in *codec; the other streams are not read any more.
 * Negative: the failure, with *error filled.
 */
int weir__stream_choose(AVFormatContext *format, enum AVMediaType media, uint32_t number, const AVCodec **codec,
                        weir_error *error);

#endif
