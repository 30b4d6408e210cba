/* A recorded run, given to an observer as if it happened now. Internal. */
#ifndef WEIR_LAP_REPLAY_H
#define WEIR_LAP_REPLAY_H

#include <weir/observer.h>
#include <weir/query.h>

/* Calls run_start, then for each lap stage_lap, queue_lap, pool_lap and lap_end, which must be set, on this thread; also
   process_lap, if it is set.
   filter->run_id is one run; laps are those that match. WEIR_OK, or the failure with *error set. */
int weir_lap_replay(weir_reader *reader, const weir_filter *filter, const weir_observer *observer, weir_error *error);

#endif
