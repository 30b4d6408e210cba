/* One run of a decode stage over many files, in a pipeline of source, stage and sink. */
#ifndef BENCH_DECODE_STAGE_JOB_H
#define BENCH_DECODE_STAGE_JOB_H

#include <stdint.h>

#include <weir/item.h>
#include <weir/op.h>

#include "bench/harness/clip_files.h"
#include "bench/harness/contest.h"

typedef struct stage_job {
    const char *root; /* the folder that the pipeline lists; NULL = use the files */
    const char *glob;
    const bench_files *files;
    const weir_op *op;
    const void *config;
    size_t config_size;
    uint32_t concurrency;
    uint32_t threads; /* (0 = the CPU budget) */
    /* called for each result, on the caller's thread (NULL = not called) */
    void (*see)(void *self, const weir_item *item);
    void *self;
} stage_job;

/* A function for `see`: adds the frames of a video to the double that self points to. */
void stage_job_count_frames(void *self, const weir_item *item);

/* Runs the job, and adds clips and failures to *result; failures of files are not logged. Returns 0, or -1 after
   an error message on stderr. */
int stage_job_run(const stage_job *job, contest_result *result);

#endif
