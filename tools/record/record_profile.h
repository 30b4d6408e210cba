/* weir record --profile: each stage alone, as a table, as JSON, and in the database. */
#ifndef RECORD_PROFILE_H
#define RECORD_PROFILE_H

#include "record_inputs.h"

/* Returns the exit status. */
int record_profile(const record_settings *settings, const record_inputs *inputs);

#endif
