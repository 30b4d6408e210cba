/*
 * Maintaining databases: checking one, and merging the runs of several.
 * Statuses are those of weir/query.h.
 */
#ifndef WEIR_MAINTAIN_H
#define WEIR_MAINTAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- checking -- */

typedef enum weir_finding_level {
    WEIR_FINDING_OK,    /* the check passed */
    WEIR_FINDING_NOTE,  /* information: the run has not ended */
    WEIR_FINDING_FAULT, /* the check failed: do not trust the metrics without looking into it */
} weir_finding_level;

typedef struct weir_finding {
    weir_finding_level level;
    const char *check; /* "schema", "integrity", "references", "run", "histograms", "laps", "slots", "failures",
                          "queues" */
    int64_t run_id;    /* 0 = the whole database */
    const char *text;  /* a sentence without a full stop */
} weir_finding;

/* Called for each finding, which is valid during the call. */
typedef void weir_finding_function(void *self, const weir_finding *finding);

/*
 * Checks, in this order: that every table has its columns; that the file is intact (quick: without comparing each
 * index with its table); that every row belongs to an existing run; and for each run that its metrics are consistent:
 * histograms with the counts of tasks and items, busy and waiting time with slots × time, each lap with the previous
 * one, failed tasks with their records, items put into a queue with items taken out. Only reads. Memory use does not
 * depend on the number of laps. If a run has many faults of one kind, the first few are reported, and the number of
 * others.
 *
 * Returns WEIR_OK if the checks could be run, even if they found faults.
 */
WEIR_API int weir_database_check(weir_reader *reader, bool quick, weir_finding_function *report, void *self,
                                 weir_error *error);

/* -- schemas -- */

/* The schema that this library reads and writes. */
WEIR_API int weir_schema_version(void);

/* -- merging -- */

typedef struct weir_merged {
    int64_t added;    /* new runs */
    int64_t replaced; /* runs that had fewer records before */
    int64_t present;  /* runs that were already there, with the same records or more */
    int64_t skipped;  /* runs that never started */
} weir_merged;

/*
 * Copies all runs of the database at `from` into the one at `to`, which is created if missing, in one transaction. A
 * run is identified by its node, rank, process, start and command. A run that is already there is left as it is, or
 * replaced if the copy is newer (it had not ended when it was copied before), so that nothing counts twice. Runs get
 * new numbers. A writer may be using `from`: what it has written so far is copied. WEIR_EINVAL if both are the same
 * file. If `to` is created, SIGINT, SIGTERM and SIGHUP of this thread wait meanwhile; one that waits ends the merge:
 * WEIR_ESTOPPED.
 */
WEIR_API int weir_database_merge(const char *to, const char *from, weir_merged *merged, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
