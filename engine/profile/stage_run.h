/* One run for a profile: a pipeline that makes inputs, or one with a single stage, and what is measured of it. */
#ifndef ENGINE_PROFILE_STAGE_RUN_H
#define ENGINE_PROFILE_STAGE_RUN_H

#include <weir/profile.h>

#include "engine/profile/stage_inputs.h"
#include "engine/run/builder.h"

/* When all of it ends. */
typedef struct profile_limits {
    const weir_profile_options *options; /* with defaults */
    int64_t end_ns;                      /* by weir_clock_ns(); INT64_MAX = never */
    int64_t next_look_ns;
} profile_limits;

/* WEIR_OK; or WEIR_ESTOPPED or WEIR_ETIMEDOUT with *error filled. */
int weir__profile_limits_check(profile_limits *limits, weir_error *error);

/* Makes at most num_items inputs for a stage; without options->items, for run_ns at most, but one for each of min_items. */
int weir__stage_inputs_make(stage_inputs *inputs, const weir_builder *builder, uint32_t index, uint64_t num_items,
                            uint64_t min_items, profile_limits *limits, weir_error *error);

/* Runs the stage alone with result->slots and result->threads, and fills what was measured. If it has failed beyond its limit, the
   result has the error, and the status is WEIR_OK. */
int weir__stage_run_alone(stage_inputs *inputs, const weir_node *node, weir_profile_result *result,
                          profile_limits *limits, weir_error *error);

/* The same for a source. */
int weir__source_run_alone(const weir_node *node, weir_profile_result *result, profile_limits *limits,
                           weir_error *error);

#endif
