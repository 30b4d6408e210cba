/* Points of a profile, measured or read from a database. */
#ifndef WEIR_PROFILE_ROWS_H
#define WEIR_PROFILE_ROWS_H

#include <weir/profile.h>

/* Computes the rates and the efficiency of a point, which follows those of the same stage. */
void weir_profile_derive(weir_profile_report *report, size_t index);

#endif
