/* weir record --explain: an experiment while the run goes on, on a thread of its own. */
#ifndef TOOLS_RECORD_RECORD_EXPLAIN_H
#define TOOLS_RECORD_RECORD_EXPLAIN_H

#include <stdbool.h>

#include <weir/pipeline.h>
#include <weir/verdict.h>

#include "tools/record/record_rounds.h"

typedef struct record_explain record_explain;

/* Starts when the first results are there. Its end is that of the rounds. NULL = there is no thread: that was logged. */
record_explain *record_explain_start(weir_pipeline *pipeline, record_rounds *rounds);

/* Whether it has come to its end. NULL = yes. */
bool record_explain_is_done(record_explain *explain);

/* Before weir_pipeline_free(), after the last result: waits for the end, which comes soon once the run has ended. */
void record_explain_join(record_explain *explain);

/* After the join: NULL = there is none, *reason says why. */
const weir_verdict *record_explain_verdict(const record_explain *explain, const char **reason);

/* After the join: whether there is none because the run was too short, or too slow, to measure anything; that is not
   a failure. */
bool record_explain_had_too_little(const record_explain *explain);

/* NULL is fine. */
void record_explain_free(record_explain *explain);

#endif
