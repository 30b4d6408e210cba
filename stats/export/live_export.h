/*
 * The common part of live exports. They serve one pipeline at a time. They get the same records that a database would
 * hold. So an export from a database and a live one use the same code. They need no locks: everything runs on the
 * thread of the pipeline's observers, except opening and closing, which happen before and after.
 */
#ifndef STATS_EXPORT_LIVE_EXPORT_H
#define STATS_EXPORT_LIVE_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/observer.h>
#include <weir/query.h>

#include "stats/record/record.h"

typedef struct weir_live_export {
    /* set by the export before weir__live_export_init() */
    weir_record_taker taker; /* gets the records; NULL = the export sets the observer's functions */
    const char *in_use;      /* "already …", for the error if another pipeline uses it */

    char *path, *node_id;
    weir_observer observer; /* its self is this struct */
    atomic_flag is_attached;
} weir_live_export;

/* Copies the texts; node_id NULL = the host's name. False = out of memory; free it even then. */
bool weir__live_export_init(weir_live_export *self, const char *path, const char *node_id);
void weir__live_export_free(weir_live_export *self);

#endif
