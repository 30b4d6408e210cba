/*
 * Finds the frames of a temporal unit of AV1, the reference slots that each reads and writes, and the bytes of each. It reads
 * only the headers, as section 5.9 of the AV1 specification (2019) describes them, and decodes nothing. Internal. Pure; safe for
 * any bytes.
 *
 * A frame takes data of earlier frames only from slots that its header names. These data are pictures, motion
 * vectors, probabilities, segments, loop filter deltas and film grain. primary_ref_frame is one of its references,
 * and the source of its film grain must be one of them, too.
 */
#ifndef STAGES_READER_AV1_FRAMES_H
#define STAGES_READER_AV1_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What headers of frames need of the sequence header. */
typedef struct weir_av1_sequence {
    uint32_t checksum; /* of all of it; 0 = the next one may differ in what is not here */
    uint16_t point_idc;
    bool is_known;
    bool is_reduced_still;
    bool equal_picture_interval;
    bool has_decoder_model;
    bool has_model_of_point; /* of the only operating point */
    uint8_t removal_time_bits, presentation_time_bits;
    uint8_t order_hint_bits;            /* 0 = it has none */
    uint8_t screen_content, integer_mv; /* 2 = each frame says it */
} weir_av1_sequence;

/* A frame, or the header that shows one which a slot has. */
typedef struct weir_av1_frame {
    bool is_shown;
    bool is_key;
    bool shows_slot; /* it is what the slot that it reads has */
    uint8_t reads;   /* slots, a bit each */
    uint8_t writes;
} weir_av1_frame;

enum { WEIR_AV1_MAX_FRAMES = 16, WEIR_AV1_MAX_UNITS = 64, WEIR_AV1_NO_FRAME = UINT8_MAX };

/* An open bitstream unit (OBU) with its header. */
typedef struct weir_av1_unit {
    uint32_t begin, end; /* bytes of the temporal unit */
    uint8_t frame;       /* whose it is; WEIR_AV1_NO_FRAME = of none */
} weir_av1_unit;

/* A temporal unit. */
typedef struct weir_av1_look {
    weir_av1_frame frames[WEIR_AV1_MAX_FRAMES];
    weir_av1_unit units[WEIR_AV1_MAX_UNITS];
    unsigned num_frames, num_units;
    unsigned num_shown;
    bool is_open; /* the last frame's tiles are missing so far */
} weir_av1_look;

/* The next temporal unit in decode order; *sequence is that of the last sequence header, all-zero before the first
   one. False: it is not understood, or has something that this does not follow. That is several operating points or
   spatial layers, frames that are of no operating point, frame ids, a new sequence, or a frame without tiles. */
bool weir__av1_look(weir_av1_sequence *sequence, const uint8_t *data, size_t size_bytes, weir_av1_look *look);

#endif
