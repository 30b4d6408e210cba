/* Asks an index all that the reader asks it. */
#ifndef TESTS_FUZZ_USE_INDEX_H
#define TESTS_FUZZ_USE_INDEX_H

#include <weir/status.h>

#include "stages/reader/frame_index.h"
#include "tests/fuzz/require.h"

/* After weir__index_end(). Each frame is found by its time, and begins at a packet up to its own. */
static inline void use_index(const weir_index *index, const AVStream *stream)
{
    weir_timeline timeline = { 0 };
    require(index->num_frames <= index->num_packets);
    for (size_t i = 0; i < index->num_packets; i++)
        require(index->packets[i].start <= i);
    if (index->distrust)
        return;
    for (size_t i = 0; i < index->num_frames; i++) {
        size_t found;
        require(index->frames[i] < index->num_packets);
        require(weir__index_find(index, index->packets[index->frames[i]].pts, &found) && found == i);
        require(weir__index_start_of(index, i) <= index->frames[i]);
    }
    require(weir__index_fill_timeline(index, stream, &timeline) == WEIR_OK);
    weir__timeline_reset(&timeline);
}

#endif
