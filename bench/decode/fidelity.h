/* How faithful the decode stage's pictures are, option by option, compared with those of bicubic_reference.h. */
#ifndef BENCH_FIDELITY_H
#define BENCH_FIDELITY_H

#include <weir/video.h>

#include "files.h"

enum { MAX_FIDELITIES = 16 };

typedef struct fidelity_job {
    const bench_files *files; /* at most FIDELITY_CLIPS of them are looked at, spread over the list */
    int width;                /* of the pictures, which are stretched */
    int height;
    uint32_t concurrency;
    const weir_video_config *videos[MAX_FIDELITIES]; /* without sampling */
    size_t num_videos;
} fidelity_job;

/* Of each clip every 32nd picture, the first eight of these. */
enum { FIDELITY_CLIPS = 64, FIDELITY_EVERY = 32, FIDELITY_PICTURES = 8 };

typedef struct fidelity {
    double psnr_db;       /* of all pictures together; INFINITY = the same bytes, NAN = none came */
    double worst_clip_db; /* of the clip with the lowest */
} fidelity;

/* A plain struct, so that a run can hand it on. */
typedef struct fidelity_result {
    uint64_t num_clips; /* that were compared: whole ones, of a kind of picture that bicubic_reference.h knows */
    uint64_t num_pictures;
    fidelity of[MAX_FIDELITIES]; /* for each of the job's videos */
} fidelity_result;

/* The work of a bench_measure(): *argument is a fidelity_job, *result a fidelity_result. */
int fidelity_measure(const void *argument, void *result);

#endif
