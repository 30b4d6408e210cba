/* Checks parts of files, as lists and indexes take them. Internal. Any thread. */
#ifndef STAGES_MEMORY_PART_CHECK_H
#define STAGES_MEMORY_PART_CHECK_H

#include <weir/clip_part.h>
#include <weir/status.h>

#include "common/sibling.h"

/* WEIR_OK; or WEIR_EINVAL with *error filled: it is none. `what` names the clip. */
WEIR_SIBLING_API int weir__clip_part_check(const weir_clip_part *part, const char *what, weir_error *error);

#endif
