/* The bottleneck of a run, found from where its slots spend their time. */
#ifndef WEIR_BOTTLENECK_H
#define WEIR_BOTTLENECK_H

#include <stddef.h>

#include <weir/export.h>
#include <weir/query.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_bottleneck_kind {
    WEIR_BOTTLENECK_UNKNOWN, /* not enough was recorded */
    WEIR_BOTTLENECK_STAGE,   /* the slots of a stage are almost always busy */
    WEIR_BOTTLENECK_THREADS, /* slots wait for a thread of their pool */
    WEIR_BOTTLENECK_SOURCE,
    WEIR_BOTTLENECK_SINK,  /* the consumer */
    WEIR_BOTTLENECK_ORDER, /* results wait for earlier ones (output in input order) */
} weir_bottleneck_kind;

typedef struct weir_bottleneck {
    weir_bottleneck_kind kind;
    const char *name; /* of the stage, or of the stage whose slots wait for threads; else NULL. Owned by the totals */
    double share;     /* of the slot time */
} weir_bottleneck;

/* Totals by name, of one run or of runs of the same pipeline. */
WEIR_API weir_bottleneck weir_bottleneck_find(const weir_totals *totals);

/* "stage", "threads", … */
WEIR_API const char *weir_bottleneck_word(weir_bottleneck_kind kind);

/* Writes a noun with a reason: "0:1:decode[10] (its slots are busy for 93% of their time)". */
WEIR_API void weir_bottleneck_describe(const weir_bottleneck *bottleneck, char *text, size_t size);

/* The queue that the consumer takes from; NULL = none. */
WEIR_API const weir_total *weir_totals_sink_queue(const weir_totals *totals);

#ifdef __cplusplus
}
#endif

#endif
