/*
 * Code that looks at each lap of a run, as the verdict does, takes the rolls of a long run (stats/record/rolls.h) as
 * its laps. The run looks as if it had been recorded with longer laps. What a filter selects is long if its rolls
 * hold at least WEIR_ROLL_LAPS * WEIR_ROLL_LAPS laps.
 */
#ifndef STATS_READ_LONG_RUNS_H
#define STATS_READ_LONG_RUNS_H

#include <stdbool.h>

#include <weir/query.h>

#include "common/sibling.h"

/* From now on, rolls are the laps of this recording if what the filter selects is long. Pass *was_joined, which is set even on
   failure, to weir__recording_join_laps_end(). */
WEIR_SIBLING_API int weir__recording_join_laps(weir_recording *recording, const weir_filter *filter, bool *was_joined,
                                               weir_error *error);
WEIR_SIBLING_API void weir__recording_join_laps_end(weir_recording *recording, bool was_joined);

#endif
