/* One run of a decode stage over many files, in a pipeline of source, stage and sink: what the benches measure of weir. */
#ifndef BENCH_STAGE_JOB_H
#define BENCH_STAGE_JOB_H

#include <stdint.h>

#include <weir/item.h>
#include <weir/op.h>

#include "contest.h"
#include "files.h"

typedef struct stage_job {
    const char *root; /* the folder, listed by the pipeline; NULL = the files */
    const char *glob;
    const bench_files *files;
    const weir_op *op;
    const void *config;
    uint32_t concurrency;
    uint32_t threads;                               /* (0 = the CPUs it may use) */
    void (*see)(void *self, const weir_item *item); /* each result, on the caller's thread (NULL = nobody looks) */
    void *self;
} stage_job;

/* To see with: adds the frames of a video to the double that self points to. */
void stage_job_count_frames(void *self, const weir_item *item);

/* Runs it, and adds up clips and failures in *result; failures of files are not logged. 0, or -1 after a line on stderr. */
int stage_job_run(const stage_job *job, contest_result *result);

#endif
