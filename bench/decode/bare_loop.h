/*
 * What the decode bench compares with: plain threads that take files from a common counter and decode and scale each
 * with FFmpeg's libraries, as one would write it without a pipeline. Its pictures are the same as the stage's with its
 * defaults: padded with black, rgb24. No code is shared with the stage.
 */
#ifndef BENCH_BARE_LOOP_H
#define BENCH_BARE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bare_job {
    char *const *paths;
    size_t num_paths;
    unsigned num_threads;
    int width;
    int height;
    bool hash; /* also hash every picture */
} bare_job;

typedef struct bare_result {
    uint64_t num_clips; /* decoded */
    uint64_t num_failures;
    uint64_t num_frames;
    uint64_t hash; /* the sum of the clips' hashes */
} bare_result;

struct AVFormatContext;
struct AVCodecContext;

/* Opens the best video stream of the file, with one decoder thread. 0, or negative; the caller closes both in any case. */
int bare_open(const char *path, struct AVFormatContext **format, struct AVCodecContext **codec, int *stream);

/* 0, or -1 if a thread could not be started. */
int bare_loop(const bare_job *job, bare_result *result);

/* Of a clip's pictures, one after the other. */
uint64_t bare_hash(const uint8_t *bytes, size_t size_bytes);

#endif
