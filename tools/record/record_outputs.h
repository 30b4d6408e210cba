/* What a recording writes must not replace what it reads. */
#ifndef RECORD_OUTPUTS_H
#define RECORD_OUTPUTS_H

#include "record_inputs.h"
#include "record_settings.h"

/* Checks every output before anything is opened. The files that are decoded are inputs, too. RECORD_DONE, or
   RECORD_REFUSED after a line on stderr. */
int record_outputs_check(const record_settings *settings, const record_inputs *inputs);

#endif
