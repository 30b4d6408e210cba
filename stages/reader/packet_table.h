/*
 * A file's index (frame_index.h) as bytes, to be stored: 4 to 5 per packet. Internal. Any thread.
 */
#ifndef STAGES_READER_PACKET_TABLE_H
#define STAGES_READER_PACKET_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

#include "stages/reader/frame_index.h"

/* From a trusted index, after weir__index_end(). The caller frees *table. WEIR_OK or WEIR_ENOMEM. */
int weir__packet_table_pack(const weir_index *index, AVRational time_base, uint8_t **table, size_t *num_bytes);

/* Into an empty index, whose blocks are read from the table where they are needed: it must live as long as the index. WEIR_OK;
   WEIR_EDATA (damaged, of another version, or of a stream with another time base: the index is empty again); WEIR_ENOMEM. */
int weir__packet_table_open(const uint8_t *table, size_t num_bytes, const AVStream *stream, weir_index *index);

#endif
