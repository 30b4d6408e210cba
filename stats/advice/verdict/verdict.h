/* Shared by the parts of the verdict: reading (verdict_read.c), rules (verdict.c), advice (verdict_advice.c). */
#ifndef WEIR_STATS_VERDICT_H
#define WEIR_STATS_VERDICT_H

#include <weir/verdict.h>

/* How a node is connected and built; texts are owned. */
typedef struct verdict_wiring {
    char *name, *kind, *inputs; /* the queues that it takes from, separated by spaces; "" = not known */
    bool selects_input;         /* a merge that waits for the input it has selected */
    bool ordered;
    int64_t queue_bytes; /* 0 = unlimited */
} verdict_wiring;

typedef struct verdict_facts {
    const weir_totals *steady;     /* by name */
    const weir_totals *whole;      /* the start-up and the tail included; may be steady */
    const verdict_wiring *wirings; /* upstream first; NULL = not known */
    size_t num_wirings;
    bool marks_steps; /* the consumer is a training loop */
} verdict_facts;

enum { VERDICT_MAX_EVIDENCE = 16, VERDICT_MAX_ADVICE = 12, VERDICT_TEXT_BYTES = 400 };

/* The public struct and its texts. */
typedef struct full_verdict {
    weir_verdict shown;
    bool is_short; /* few items were delivered */
    bool polls;    /* the consumer does not wait for items */
    char name[VERDICT_TEXT_BYTES], sentence[VERDICT_TEXT_BYTES], other_name[VERDICT_TEXT_BYTES],
        other_sentence[VERDICT_TEXT_BYTES], missing[VERDICT_TEXT_BYTES];
    char lines[VERDICT_MAX_EVIDENCE][VERDICT_TEXT_BYTES];
    const char *evidence[VERDICT_MAX_EVIDENCE];
    weir_verdict_advice advice[VERDICT_MAX_ADVICE];
    char advice_texts[VERDICT_MAX_ADVICE][5][VERDICT_TEXT_BYTES]; /* change, options, code, next, assumes */
} full_verdict;

/* NULL = out of memory. */
full_verdict *weir_verdict_judge(const verdict_facts *facts);

/* Says that the limit was another one in a part of the run. `share`: of the time, before the change. */
void weir_verdict_settle_change(full_verdict *verdict, const full_verdict *before, const full_verdict *after,
                                double share);

/* Adds advice: from the model if it can be made, otherwise without figures. */
int weir_verdict_advise(full_verdict *verdict, weir_reader *reader, const weir_filter *filter, weir_error *error);

#endif
