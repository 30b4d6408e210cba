/*
 * Looking after databases: checking one, bringing one up to the schema of this library, and putting the runs of
 * several into one. Statuses are those of weir/query.h.
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
    WEIR_FINDING_OK,    /* was checked and holds */
    WEIR_FINDING_NOTE,  /* good to know: the run has not ended, an older schema */
    WEIR_FINDING_FAULT, /* does not hold: the figures are not to be trusted without a look */
} weir_finding_level;

typedef struct weir_finding {
    weir_finding_level level;
    const char *check; /* "schema", "integrity", "references", "run", "histograms", "laps", "slots", "failures",
                          "queues" */
    int64_t run_id;    /* 0 = of the database */
    const char *text;  /* a sentence, without its full stop */
} weir_finding;

/* Told each finding; valid during the call. */
typedef void weir_finding_function(void *self, const weir_finding *finding);

/*
 * Checks, in this order: that every table has its columns; that the file is intact (quick: without comparing each index
 * with its table); that no row belongs to a run that is not there; and for each run that its figures agree with each
 * other: the histograms with the numbers of tasks and items, busy and waiting time with slots × time, laps with those
 * before them, failed tasks with their records, what was put into a queue with what was taken out. Reads only.
 * Memory does not depend on how many laps there are. Of many faults of one kind in one run the first few are told, and
 * how many more there are.
 *
 * WEIR_OK if it could be checked, whatever was found.
 */
WEIR_API int weir_database_check(weir_reader *reader, bool quick, weir_finding_function *tell, void *self,
                                 weir_error *error);

/* -- schemas -- */

/* The schema that this library writes. */
WEIR_API int weir_schema_version(void);

/* The schema of an open database: it may be older than that. */
WEIR_API int weir_reader_schema(const weir_reader *reader);

/*
 * Brings a database up to the schema of this library; nothing is lost, and runs that are being recorded go on. It must
 * exist and be ours. *from is what it had before; WEIR_OK also if there was nothing to do.
 */
WEIR_API int weir_database_migrate(const char *path, int *from, weir_error *error);

/* -- merging -- */

typedef struct weir_merged {
    int64_t added;    /* runs that were not there */
    int64_t replaced; /* runs of which there was less than now */
    int64_t present;  /* runs that were there already, just so, or with more */
    int64_t skipped;  /* runs that never started */
    uint64_t reserved[4];
} weir_merged;

/*
 * Copies all runs of the database at `from` into the one at `to`, which is made if it is missing; in one transaction. A
 * run is known by its node, rank, process, start and command: one that is there already is left as it is, or replaced
 * by what is newer (it had not ended when it was copied before), so that nothing counts twice. Runs get new numbers.
 * `from` may be in use by a writer: what had been written is copied. WEIR_EINVAL if both are one file.
 */
WEIR_API int weir_database_merge(const char *to, const char *from, weir_merged *merged, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
