/* A new tracker goes on where the runs ended that wrote these checkpoints. Private to this room. */
#ifndef ENGINE_RESUME_TRACKER_RESUME_H
#define ENGINE_RESUME_TRACKER_RESUME_H

#include "engine/state/run_state.h"

/* Reads options->resume, before a thread runs: sets what is done in the sources, the epochs of their nodes, and what
   `graph` says of earlier runs. WEIR_OK, or the failure with *error filled. */
int weir__tracker_resume(weir_tracker *tracker, weir__graph *graph, const weir_pipeline_options *options,
                         weir_error *error);

#endif
