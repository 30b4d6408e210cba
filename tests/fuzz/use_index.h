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
        require(weir__index_packet(index, i)->start <= i);
    if (index->distrust)
        return;
    weir__index_set_timeline(index, stream, &timeline);
    for (size_t i = 0; i < index->num_frames; i++) {
        size_t found, packet = weir__index_packet_of(index, i);
        require(packet < index->num_packets);
        if (weir__index_failure(index, NULL) != WEIR_OK)
            break;
        require(weir__index_find(index, weir__index_packet(index, packet)->pts, &found) && found == i);
        require(weir__index_start_of(index, i) <= packet);
        size_t begun = weir__timeline_up_to(&timeline, weir__timeline_ns(&timeline, i));
        require(begun <= index->num_frames);
    }
    weir__timeline_reset(&timeline);
}

#endif
