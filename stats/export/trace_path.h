/* The paths of trace files, from patterns. */
#ifndef STATS_EXPORT_TRACE_PATH_H
#define STATS_EXPORT_TRACE_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "stats/export/trace_text.h"

/* What replaces {run}, {node}, {rank} and the like. */
typedef struct weir_trace_names {
    const char *run, *node;
    int64_t rank, local_rank, world_size, step, batch, epoch;
    bool for_glob; /* the path is a pattern for glob(): of any step, batch and epoch */
} weir_trace_names;

/* Sets *path, which the caller frees. 0; ENOMEM; EINVAL: the pattern has another word in braces. */
int weir__trace_path(const char *pattern, const weir_trace_names *names, char **path);

/* Sets *found, which the caller frees, to a file that has a path of the pattern, whatever its step, batch and epoch; NULL =
   none. Results as above. */
int weir__trace_find(const char *pattern, weir_trace_names names, char **found);

/* "trace.json.gz" → "trace.2.json.gz": freed by the caller; NULL = out of memory. */
char *weir__trace_numbered(const char *path, unsigned number);

#endif
