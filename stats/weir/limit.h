/*
 * What names the limit of a run for exports (weir/openmetrics.h, weir/tensorboard.h, weir/export.h). Exports have no rules of
 * their own; the library weir-advice has them, and the program passes them on:
 *
 *     weir_export_options options = { .limit_rules = weir_verdict_limit_rules() };   (weir/verdict.h)
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <weir/query.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Filled by the rules. It keeps its size. */
typedef struct weir_named_limit {
    const char *kind; /* one word: "slots"; it lives as long as the program */
    int number;       /* of the kind, for what shows numbers only */
    char stage[256];  /* or the source or queue; "" = none */
} weir_named_limit;

/* All members are required, except those that are reserved. They may be called on any thread. */
typedef struct weir_limit_rules {
    const char *(*word)(int number); /* the kind of a number; "" = there is none, nor any above it */
    /* The limit in the time that the totals (by name) are of. stages: all of the run. WEIR_OK or WEIR_ENOMEM. */
    int (*judge)(const weir_totals *totals, const weir_records *stages, weir_named_limit *limit, weir_error *error);
    /* The limit of the records that match the filter, which may be NULL. Results are those of queries. */
    int (*read)(weir_recording *recording, const weir_filter *filter, weir_named_limit *limit, weir_error *error);
    const void *reserved[4]; /* NULL */
} weir_limit_rules;

#ifdef __cplusplus
}
#endif

#endif
