/*
 * Two recordings of one pipeline with other slots, threads or queues are an experiment: it shows what these settings bring,
 * whatever was suspected before.
 */
#ifndef TOOLS_VIEW_PAIR_VERDICT_H
#define TOOLS_VIEW_PAIR_VERDICT_H

#include "tools/view/lap_comparison.h"

/* Writes a sentence for each setting that differs. False = none does, or the throughputs are not known. is_other_job: see
   setting_changes. */
bool pair_verdict_describe(const lap_comparison *c, bool is_other_job, char *text, size_t size);

#endif
