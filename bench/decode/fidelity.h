/* The accuracy of the decode stage's pictures for each option, compared with bicubic_reference.h. */
#ifndef BENCH_FIDELITY_H
#define BENCH_FIDELITY_H

#include <weir/video.h>

#include "files.h"

enum { MAX_FIDELITIES = 16 };

typedef struct fidelity_job {
    const bench_files *files; /* at most FIDELITY_CLIPS of them are used, spread over the list */
    int width;                /* of the pictures, which are stretched */
    int height;
    uint32_t concurrency;
    const weir_video_config *videos[MAX_FIDELITIES]; /* without sampling */
    size_t num_videos;
} fidelity_job;

/* Every 32nd picture of each clip, at most eight. */
enum { FIDELITY_CLIPS = 64, FIDELITY_EVERY = 32, FIDELITY_PICTURES = 8 };

typedef struct fidelity {
    double psnr_db;       /* over all pictures; INFINITY = identical bytes, NAN = no pictures */
    double worst_clip_db; /* of the clip with the lowest value */
    double drift_db;      /* PSNR of pictures in the first half of their group of pictures (from one keyframe to the
                             next, or to the end of the clip), minus PSNR in the second half; NAN = no pictures */
} fidelity;

/* A plain struct, so that a run can return it. */
typedef struct fidelity_result {
    uint64_t num_clips; /* compared clips: complete, with a pixel format that bicubic_reference.h supports */
    uint64_t num_pictures;
    fidelity of[MAX_FIDELITIES]; /* one for each of the videos of the job */
} fidelity_result;

/* A work function for bench_measure(): *argument is a fidelity_job, *result a fidelity_result. */
int fidelity_measure(const void *argument, void *result);

#endif
