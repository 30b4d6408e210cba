/* A recorded run, given to an observer as if it happened now: an observer that was written for live laps also reads
   databases. */
#ifndef WEIR_REPLAY_H
#define WEIR_REPLAY_H

#include <weir/export.h>
#include <weir/observer.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Calls run_start, then for each lap stage_lap, queue_lap, pool_lap, process_lap and lap_end, those that are set, on
 * this thread. filter->run_id is one run (NULL = the last); laps are those that match. The run's information has the
 * stages and their connections; hosts, commands and versions are not given. WEIR_OK; WEIR_EUNSUPPORTED if the run does
 * not say which stages it had; other failures of weir/query.h, with *error (may be NULL) set.
 */
WEIR_API int weir_replay(weir_reader *reader, const weir_filter *filter, const weir_observer *observer,
                         weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
