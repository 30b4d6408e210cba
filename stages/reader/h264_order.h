/*
 * The order of presentation of H.264 pictures, where the container does not store it (AVI, bare streams): from the picture order
 * counts of their headers, without decoding. Internal. One thread at a time for each.
 *
 * What is promised: the frames that FFmpeg's decoder returns when it decodes all packets, in its order. Their times
 * are those that the clock of frames (frame_clock.h) then gives them. The decoder returns a frame when more frames
 * wait than the stream's delay. So a frame has the time of decoding of a later packet. The last frames have none.
 *
 * Where that is known: the decoder's buffer is followed picture by picture. This includes its delay, which of the
 * waiting pictures is shown next, and when the decoder finds that the delay is too short. The order is trusted if
 * each packet is a frame, and each frame comes out. The frames of a sequence (from an IDR picture to the next one)
 * must come before those of the next sequence. Within a sequence they must come in the order of their counts, which
 * differ. Then a decoder that begins at a keyframe, and has no other pictures, returns the same frames in the same
 * order. It is not trusted, and the frames are counted by decoding, if
 * - the headers cannot be followed (h264_headers.h), because of pictures that are fields or of damage, for example;
 * - frames are missing: a frame number is skipped, or the first picture is not an IDR picture. Then what comes out
 *   first depends on more than the headers;
 * - the decoder would drop frames, or return them in another order, as where the delay in the stream is too short, or missing;
 * - packets have no time of decoding but others have one, or these do not rise: they are how packets are found again.
 */
#ifndef STAGES_READER_H264_ORDER_H
#define STAGES_READER_H264_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include <libavformat/avformat.h>

#include "stages/reader/packet_entry.h"

typedef struct weir_h264_order weir_h264_order;

/* The order of the stream's packets, from the first one on. NULL = out of memory. */
weir_h264_order *weir__h264_order_new(const AVStream *stream);

/* The next packet in decode order. WEIR_OK or WEIR_ENOMEM. */
int weir__h264_order_add(weir_h264_order *order, const AVStream *stream, const AVPacket *packet);

/*
 * All packets are in; `packets` are those of the index, with their times of decoding. If the order is trusted, sets their pts and
 * which are keyframes, and *why is NULL; otherwise *why says why it is not. *has_times: the stream stores times; otherwise the pts
 * count from 0. WEIR_OK or WEIR_ENOMEM.
 */
int weir__h264_order_end(weir_h264_order *order, const AVStream *stream, weir_packet_entry *packets,
                         size_t num_packets, bool *has_times, const char **why);

void weir__h264_order_free(weir_h264_order *order);

#endif
