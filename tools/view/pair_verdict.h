/*
 * Two recordings of one pipeline with other slots, threads or queues are an experiment: it shows what these settings bring,
 * whatever was suspected before.
 */
#ifndef TOOLS_VIEW_PAIR_VERDICT_H
#define TOOLS_VIEW_PAIR_VERDICT_H

#include "lap_comparison.h"

/* Writes a sentence for each setting that differs. False = none does, or the throughputs are not known. sink: the queue
   of the consumer; NULL = none. */
bool pair_verdict_describe(const lap_comparison *c, const comparison_pair *sink, char *text, size_t size);

#endif
