/* What a recording writes must not replace what it reads. */
#ifndef TOOLS_RECORD_RECORD_OUTPUTS_H
#define TOOLS_RECORD_RECORD_OUTPUTS_H

#include "tools/cli/output_check.h"
#include "tools/record/record_inputs.h"
#include "tools/record/record_settings.h"

/* Checks every output before anything is opened. The files that are decoded are inputs, too. NULL; or the option that is
   refused, with *error filled. */
const char *record_outputs_check(const record_settings *settings, const record_inputs *inputs, weir_error *error);

/* Whether the path is one of the files that are decoded, by any link. This lists the folders where it may be one. */
bool record_is_clip(const record_settings *settings, const record_inputs *inputs, const char *path);

#endif
