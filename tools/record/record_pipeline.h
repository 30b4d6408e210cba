#ifndef TOOLS_RECORD_RECORD_PIPELINE_H
#define TOOLS_RECORD_RECORD_PIPELINE_H

#include <weir/pipeline.h>

#include "tools/record/record_inputs.h"
#include "tools/record/record_observers.h"
#include "tools/record/record_rounds.h"

/* Checks the options, without starting anything. RECORD_DONE, or RECORD_REFUSED after a line on stderr. */
int record_pipeline_check(const record_settings *settings);

/* How often it goes through the files; WEIR_ENDLESS for a measurement of the headspace, or an experiment, without
   --epochs. */
uint32_t record_pipeline_epochs(const record_settings *settings);

/* The description: sources, the tar stage if wanted, "decode" with the hook (NULL = none), sink. `rounds`: the
   sources go through the files until it is over (NULL = in epochs). */
weir_builder *record_pipeline_describe(const record_settings *settings, const record_inputs *inputs,
                                       const weir_task_hook *hook, record_rounds *rounds);

/* Builds and starts the pipeline of this description, with the observers' hook. RECORD_DONE; or RECORD_REFUSED after
   a line on stderr. */
int record_pipeline_build(const record_settings *settings, const record_inputs *inputs,
                          const record_observers *observers, record_rounds *rounds, weir_pipeline **pipeline);

#endif
