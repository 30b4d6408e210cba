#include "stages/memory/part_check.h"

int weir__clip_part_check(const weir_clip_part *part, const char *what, weir_error *error)
{
    bool has_times = part->start_ns || part->end_ns, has_frames = part->start_frame || part->end_frame;
    bool is_order =
        (!part->end_ns || part->end_ns > part->start_ns) && (!part->end_frame || part->end_frame > part->start_frame);
    if (part->start_ns < 0 || part->end_ns < 0 || !is_order)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s: its start is negative, or not before its end", what);
    if (has_times && has_frames)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%s: it has a start or end in time and in frames: only one of them is possible", what);
    return WEIR_OK;
}
