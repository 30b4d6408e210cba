/*
 * What two recordings show together if the limit of one of them was ambiguous, and the other is the recording that
 * weir explain asked for: fewer or more slots for a stage, or a faster consumer.
 */
#ifndef TOOLS_EXPERIMENT_H
#define TOOLS_EXPERIMENT_H

#include <weir/verdict.h>

#include "lap_comparison.h"

/* Writes a sentence. False = the recordings are no such experiment. sink: the queue of the consumer; NULL = none. */
bool experiment_describe(const lap_comparison *c, const weir_verdict *const verdicts[2], const comparison_pair *sink,
                         char *text, size_t size);

#endif
