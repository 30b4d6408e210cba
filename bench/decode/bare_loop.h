/*
 * The baseline of the decode bench: plain threads that take files from a common counter, and decode and scale each
 * one with the FFmpeg libraries, as a hand-written program would. Its pictures are the same as those of the decode
 * stage with its defaults: padded with black, rgb24. It shares no code with the stage.
 *
 * If frames are chosen, it decodes only what they need. It reads the times of all packets, and seeks to the keyframe
 * of each group of pictures with a chosen frame. It decodes up to the last chosen frame of the group, without those
 * frames that no other one needs.
 */
#ifndef BENCH_DECODE_BARE_LOOP_H
#define BENCH_DECODE_BARE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bare_job {
    char *const *paths;
    size_t num_paths;
    unsigned num_threads;
    int width;
    int height;
    bool stretch; /* pictures fill the width and height, instead of being padded */
    bool hash;    /* also hash every picture */
    /* The numbers of the frames that are decoded, in ascending order, into `numbers` (MOST_CHOSEN); returns how many.
       NULL = all. For containers that store the times of frames, such as MP4. */
    size_t (*choose)(size_t num_frames, size_t *numbers);
} bare_job;

enum { MOST_CHOSEN = 64 };

typedef struct bare_result {
    uint64_t num_clips; /* decoded */
    uint64_t num_failures;
    uint64_t num_frames;
    uint64_t hash; /* sum of the hashes of all clips */
} bare_result;

struct AVFormatContext;
struct AVCodecContext;

/* Opens the best video stream of the file, with one decoder thread. Returns 0, or negative; the caller closes both
   in either case. */
int bare_open(const char *path, struct AVFormatContext **format, struct AVCodecContext **codec, int *stream);

/* Returns 0, or -1 if a thread could not be started. */
int bare_loop(const bare_job *job, bare_result *result);

/* Hash of the pictures of a clip, in order. */
uint64_t bare_hash(const uint8_t *bytes, size_t size_bytes);

#endif
