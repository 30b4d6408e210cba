/*
 * The units of a packet of H.264, HEVC, MPEG-2 or MPEG-4: separated by start codes, or each behind its length; and their payload.
 * Internal. Pure; safe for any bytes.
 */
#ifndef STAGES_READER_NAL_UNITS_H
#define STAGES_READER_NAL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libavcodec/avcodec.h>

typedef struct weir_unit_walk {
    const uint8_t *at;
    const uint8_t *end;
    unsigned length_bytes; /* of the length before each unit; 0 = units are separated by start codes */
    bool is_broken;        /* the lengths do not add up: damage */
} weir_unit_walk;

/* Where the extradata of MP4 say how long the lengths are; WEIR_NO_LENGTHS: the codec has start codes. */
enum { WEIR_AVCC_LENGTH_BYTE = 4, WEIR_HVCC_LENGTH_BYTE = 21, WEIR_NO_LENGTHS = INT32_MAX };

/* Through the units of a packet. */
weir_unit_walk weir__unit_walk_of(const AVCodecParameters *codec, const AVPacket *packet, int length_byte);

/* With start codes, *size_bytes is an upper bound: headers need no more. False: there is none. */
bool weir__unit_walk_next(weir_unit_walk *walk, const uint8_t **unit, size_t *size_bytes);

/* The size of the unit without what is after it, and without the zeros at its end. */
size_t weir__unit_trim(const weir_unit_walk *walk, const uint8_t *unit, size_t size_bytes);

/* Copies the payload of a unit of H.264 after its first byte, up to max_bytes. Leaves out the emulation prevention
   bytes (the 03 of 00 00 03). Returns the number of bytes. */
size_t weir__unit_unescape(const uint8_t *unit, size_t size_bytes, uint8_t *to, size_t max_bytes);

/* Has this SEI unit of H.264 a recovery point? Then *first_byte is the first one of the message. Of start codes, the size is
   trimmed. */
bool weir__unit_has_recovery_point(const uint8_t *unit, size_t size_bytes, uint8_t *first_byte);

#endif
