/* Computes the numbers of the selected frames from a weir_sampling and a timeline. Internal. Pure: no file;
   the same arguments give the same numbers. */
#ifndef STAGES_READER_FRAME_SELECTION_H
#define STAGES_READER_FRAME_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>
#include <weir/video.h>

#include "stages/reader/frame_clock.h"

/* The frames' numbers, in the order of the result. */
typedef struct weir_selection {
    uint64_t *indices;
    bool *is_repeat; /* of each: see weir_frames.mask */
    size_t num_indices;
} weir_selection;

/* Checks the options and copies the lists. WEIR_OK, or the failure with *error filled and nothing to free. */
int weir__sampling_init(weir_sampling *sampling, weir_error *error);
void weir__sampling_free(weir_sampling *sampling);

/* Does it select all frames from the first one, without gaps? Then no timeline is needed. */
bool weir__sampling_is_plain(const weir_sampling *sampling);

/* The numbers, at least one. WEIR_OK; WEIR_ENOTFOUND (none such), WEIR_ERANGE (beyond the end), WEIR_ELIMIT (more
   than max_frames) or WEIR_ENOMEM with *error filled. *selection is to be freed after success only. */
int weir__select_frames(const weir_sampling *sampling, const weir_timeline *timeline, uint64_t seed, uint64_t seq,
                        uint64_t max_frames, weir_selection *selection, weir_error *error);
void weir__selection_free(weir_selection *selection);

#endif
