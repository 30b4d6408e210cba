/* Checks windows of files, as lists and indexes take them. Internal. Any thread. */
#ifndef STAGES_MEMORY_CLIP_WINDOW_CHECK_H
#define STAGES_MEMORY_CLIP_WINDOW_CHECK_H

#include <weir/clip_window.h>
#include <weir/status.h>

#include "common/sibling.h"

/* WEIR_OK; or WEIR_EINVAL with *error filled: it is none. `what` names the clip. */
WEIR_SIBLING_API int weir__clip_window_check(const weir_clip_window *window, const char *what, weir_error *error);

#endif
