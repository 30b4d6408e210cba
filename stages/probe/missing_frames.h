/* How much of a video its file lacks, by its header. Internal. */
#ifndef STAGES_PROBE_MISSING_FRAMES_H
#define STAGES_PROBE_MISSING_FRAMES_H

#include <stdint.h>

#include "stages/decoder/decoder.h"
#include "stages/reader/frame_index.h"

/* The number of frames that are missing in the index after all packets were read. The header of the open file counts
   these frames, or has time for them. 0 = none, or the header does not tell. */
uint64_t weir__missing_frames(const weir_decoder *decoder, const weir_index *index);

#endif
