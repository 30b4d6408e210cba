/*
 * The packets of an open file's video stream: read once into an index, cached if they are not too many, and read again from any
 * of them on. What a packet gives to the decoder, and what comes out, passes here, so that frames the container hides are
 * dropped in one place. Internal. One thread at a time.
 */
#ifndef STAGES_READER_FILE_PACKETS_H
#define STAGES_READER_FILE_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stages/decoder/decoder.h"
#include "stages/reader/frame_clock.h"
#include "stages/reader/frame_index.h"
#include "stages/reader/listed_packets.h"

typedef struct weir_file_packets {
    /* immutable after init */
    weir_decoder *decoder;
    size_t max_cached_bytes; /* limit of the packet cache; larger files are read twice */
    int64_t far_bytes;       /* seek only if it saves reading this much */

    /* of the open file */
    const char *path;     /* the caller's, until the close */
    uint64_t max_packets; /* that may be indexed */
    weir_packet_clock packet_clock;
    weir_hidden_packets hidden; /* in the decoder */
    weir_index index;
    weir_listed_packets listed; /* its packets, if the header lists them */
    AVPacket **cache;           /* the packets in decode order; NULL = not cached */
    size_t num_cached;
    size_t max_cached; /* capacity */
    size_t cached_bytes;
    size_t next;     /* not cached: the demuxer's next packet */
    AVPacket **held; /* packets held_first, …, for a run; NULL = in the cache, or not in memory */
    size_t held_first, num_held, max_held;
    size_t held_bytes;
    bool is_read; /* the first packets were looked at, and there are no others */
    bool cannot_seek;
} weir_file_packets;

/* Fills *error, and returns WEIR_ENOMEM. */
int weir__reader_fail_memory(weir_error *error);

/* All functions that return an int: WEIR_OK, or the failure with *error filled, if no others are named. */

/* Opens file->path, at its beginning. */
int weir__file_packets_open(weir_file_packets *file, weir_error *error);

/* Reads all packets into the index. */
int weir__file_packets_scan(weir_file_packets *file, weir_error *error);

/* Reads packets into the index until the first `count` frames are among them. If that fails, the index is not
   trusted, and the packets read so far are in the cache. */
int weir__file_packets_look_ahead(weir_file_packets *file, uint32_t count, weir_error *error);

/* Reads packets into the cache up to the first one of the second group (group_cut.h), if the first one has at most
   max_packets. Then *is_found; otherwise the packets read so far are in the cache, too. They are the first ones that
   weir__file_packets_send() gives. */
int weir__file_packets_look_for_group(weir_file_packets *file, uint64_t max_packets, bool *is_found,
                                      weir_error *error);

/* Goes back to the opening: as if no packet had been looked at. */
int weir__file_packets_forget_look(weir_file_packets *file, weir_error *error);

/* Makes the index from what the header lists, if that is possible: packets are read where they are needed. Otherwise reads all. */
int weir__file_packets_list_or_scan(weir_file_packets *file, weir_error *error);

/* Makes the index without reading the file: from a table (packet_table.h), which must live until the close. WEIR_EDATA: the table
   cannot be used; the index is empty. */
int weir__file_packets_use_table(weir_file_packets *file, const uint8_t *table, size_t table_bytes,
                                 weir_error *error);

/* The packet of that frame. Only for a trusted index. */
size_t weir__file_packets_of_frame(const weir_file_packets *file, uint64_t frame);

/* The next packet of the file is in decoder->packet, with continued times. WEIR_EOF: there is none. */
int weir__file_packets_read(weir_file_packets *file, weir_error *error);

/* Without a cache: goes to packet `at` before a run; it is then in decoder->packet. This may replace the codec. */
int weir__file_packets_go_to(weir_file_packets *file, size_t at, weir_error *error);

/* The same, and the packets up to `last` are in memory until the next call, if they are no more than
   max_cached_bytes. The packets of an earlier call stay if these are among them. If one cannot be read, none are
   held: the failure comes when it is sent. */
int weir__file_packets_hold(weir_file_packets *file, size_t first, size_t last, weir_error *error);

/* Forgets an index, and makes one of all packets. */
int weir__file_packets_scan_again(weir_file_packets *file, weir_error *error);

/* Goes to the beginning, with a new codec state: in the cache if there is one, else in the file. */
int weir__file_packets_start_over(weir_file_packets *file, weir_error *error);

/* Goes to the beginning of the file, with a new codec state; the file is opened again. */
int weir__file_packets_reopen(weir_file_packets *file, weir_error *error);

/* Goes to the beginning of the file, as it was opened: without packets that were looked at, unless they are all. */
int weir__file_packets_begin_again(weir_file_packets *file, weir_error *error);

/* Can its packets be read once more? */
bool weir__file_packets_can_repeat(const weir_file_packets *file);

/* The packet, if its bytes are in memory; NULL = they are not. */
const AVPacket *weir__file_packets_cached(weir_file_packets *file, size_t at);

/* Gives packet `at` of the index to the decoder. Without a cache, it must be the next one, or after it. */
int weir__file_packets_send(weir_file_packets *file, size_t at, weir_error *error);

/* Gives any packet to the decoder; NULL = the end. */
int weir__file_packets_decode(weir_file_packets *file, const AVPacket *packet, weir_error *error);

/* The next frame is in decoder->frame. WEIR_MORE: it needs a packet. WEIR_EOF: no more. */
int weir__file_packets_receive(weir_file_packets *file, weir_error *error);

/* The bytes of the index, the cache, and the packets that are held. */
size_t weir__file_packets_bytes(const weir_file_packets *file);

/* Closes the file. */
void weir__file_packets_reset(weir_file_packets *file);

#endif
