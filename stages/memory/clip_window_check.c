#include "stages/memory/clip_window_check.h"

int weir__clip_window_check(const weir_clip_window *window, const char *what, weir_error *error)
{
    bool has_times = window->start_ns || window->end_ns, has_frames = window->start_frame || window->end_frame;
    bool is_order = (!window->end_ns || window->end_ns > window->start_ns) &&
                    (!window->end_frame || window->end_frame > window->start_frame);
    if (window->start_ns < 0 || window->end_ns < 0 || !is_order)
        return weir_error_set(error, WEIR_EINVAL, 0, "%s: its start is negative, or not before its end", what);
    if (has_times && has_frames)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%s: it has a start or end in time and in frames: only one of them is possible", what);
    return WEIR_OK;
}
