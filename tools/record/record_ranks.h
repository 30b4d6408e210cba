/*
 * A recording on several processes, started by mpirun, srun or torchrun: which rank this is, and the end of the job.
 * Rank 0 waits for the other ranks' databases, merges them and prints one summary. Ranks do not communicate
 * otherwise.
 */
#ifndef TOOLS_RECORD_RECORD_RANKS_H
#define TOOLS_RECORD_RECORD_RANKS_H

#include "tools/record/record_inputs.h"
#include "tools/record/record_settings.h"

typedef struct record_ranks {
    weir_world world;                                           /* size 1: this process decodes everything */
    const char *job_path;                                       /* the database of the job, as given by the user */
    char job[200];                                              /* what the launcher calls the job; "" = nothing */
    int64_t since_unix_ns;                                      /* runs that started before are of another job */
    char *program, *db_path, *export_paths[RECORD_MAX_EXPORTS]; /* of this rank */
} record_ranks;

/* Finds rank and world, and replaces what differs between ranks in *settings: database, other outputs, the name in
   messages. RECORD_DONE, or RECORD_REFUSED after a line on stderr. Free in any case, after the last use of *settings. */
int record_ranks_find(record_settings *settings, record_ranks *ranks);
void record_ranks_free(record_ranks *ranks);

/*
 * The end of the job, after this rank's database has been closed. On rank 0: waits for the others (only briefly after
 * a signal), merges their databases, and prints the summary. Names ranks that did not end and the files that they
 * left. On other ranks: prints a line. Returns the exit status; exit_status is that of this rank's run.
 */
int record_ranks_end(const record_settings *settings, const record_ranks *ranks, const record_inputs *inputs,
                     int exit_status, uint64_t num_files, uint64_t num_failures);

/* Merges the databases of all ranks beside that of the job into it. This includes those of higher ranks that an
   earlier part of the job with more ranks has left. */
int record_ranks_merge(const record_settings *settings, const char *job_path);

#endif
