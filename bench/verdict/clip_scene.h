/*
 * Real decoding, for `weir-bench verdict`: a source of clips, the decode stage, and a consumer that only takes the results.
 * The bench makes the clips with the ffmpeg program.
 */
#ifndef BENCH_VERDICT_CLIP_SCENE_H
#define BENCH_VERDICT_CLIP_SCENE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/pipeline.h>

#include "bench/harness/clip_files.h"

/* Clips of one size, whose lengths differ. */
typedef struct clip_scene {
    const char *name;
    uint32_t width, height;
    double seconds; /* mean length of a clip */
} clip_scene;

extern const clip_scene clip_scenes[];
extern const size_t num_clip_scenes;

enum { CLIP_MOST_PATH = 4096 };

/* Makes the clips of the scene in a new folder, whose path is stored. Returns 0, or -1 after an error message on stderr; then
   nothing is left. */
int clip_scene_make(const clip_scene *of, char folder[CLIP_MOST_PATH]);
/* Removes the folder and the clips. */
void clip_scene_remove(const char *folder);

typedef struct clip_run clip_run;

/* Starts to decode the files again and again, in one epoch. observer: NULL = none. NULL after an error message on stderr. */
clip_run *clip_run_start(const bench_files *files, uint32_t slots, uint32_t threads, const weir_observer *observer);
weir_pipeline *clip_run_pipeline(clip_run *run);
/* Results that the consumer has taken. */
uint64_t clip_run_num_taken(clip_run *run);
/* Stops it, and frees everything. */
void clip_run_end(clip_run *run);

#endif
