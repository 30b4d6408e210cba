/*
 * The packets of a file in blocks. Only those are loaded that something asks for. So a request for one frame costs
 * the same in a file of a minute and of ten hours. A directory says how many packets and frames are before each
 * block. Internal. One thread at a time.
 *
 * - A block begins with a clean packet, and its frames are shown after those of the blocks before it. So the numbers
 *   of frames and the starts of packets are known without the other blocks.
 * - Asking never fails. If a block cannot be loaded, `rc` and `error` are set. All answers that need the block are
 *   then harmless ones, which the caller must not use. The caller looks at `rc` where it ends a step.
 * - What is loaded stays until the reset; its flags may be changed.
 */
#ifndef STAGES_READER_PACKET_BLOCKS_H
#define STAGES_READER_PACKET_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

#include "stages/reader/packet_entry.h"

typedef struct weir_packet_block {
    /* the directory; one further block has the sums of all */
    uint32_t first_packet;
    uint32_t first_frame;
    int64_t first_time; /* no frame of it is shown before; rises from block to block */
    size_t offset;      /* for the reader of blocks */
    uint32_t checksum;  /* for the reader of blocks */

    /* NULL = not loaded */
    weir_packet_entry *packets;
    uint32_t *frames; /* the numbers of their packets, in presentation order */
} weir_packet_block;

/* Reads the packets of a block, without their starts. WEIR_OK; WEIR_EDATA: the directory is not the file's; or another failure;
   with *error filled. */
typedef int weir_read_block(void *self, const weir_packet_block *block, weir_packet_entry *packets,
                            weir_error *error);

/* All-zero has none. */
typedef struct weir_packet_blocks {
    weir_packet_block *all;
    size_t num;
    bool is_exact; /* first_time is the time of the block's first frame */
    weir_read_block *read;
    void *self;    /* of read; freed with the blocks */
    size_t latest; /* what was asked for last */
    size_t bytes;  /* of the directory and what is loaded */

    int rc; /* of the first block that could not be loaded */
    weir_error error;
    bool is_doubtful;       /* a block that was only tried could not be loaded */
    weir_packet_entry none; /* stands for its packets */
} weir_packet_blocks;

/* Makes room for the directory of num_blocks blocks, to be filled by the caller. WEIR_OK or WEIR_ENOMEM. */
int weir__packet_blocks_init(weir_packet_blocks *blocks, size_t num_blocks);

/* The block with that packet, below the number of all. */
size_t weir__packet_blocks_with(weir_packet_blocks *blocks, size_t packet);

/* Loads a block. False = `rc` is set. */
bool weir__packet_blocks_load(weir_packet_blocks *blocks, size_t block);

/* The same, but WEIR_EDATA is only noted: is_doubtful. */
bool weir__packet_blocks_try(weir_packet_blocks *blocks, size_t block);

/* The packet with that number; never NULL. */
weir_packet_entry *weir__packet_blocks_packet(weir_packet_blocks *blocks, size_t packet);

/* The packet of that frame. */
size_t weir__packet_blocks_packet_of(weir_packet_blocks *blocks, size_t frame);

/* The frame with that pts: in any block if first times are exact, else in the loaded ones. False = none. */
bool weir__packet_blocks_find(weir_packet_blocks *blocks, int64_t pts, size_t *frame);

/* Frames before *begin are shown before `low` or at it, those from *end on after `high`. */
void weir__packet_blocks_narrow(weir_packet_blocks *blocks, int64_t low, int64_t high, size_t *begin, size_t *end);

void weir__packet_blocks_reset(weir_packet_blocks *blocks);

#endif
