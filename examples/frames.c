/*
 * frames: prints the times and mean values of a few frames, spread over a video, without a pipeline.
 *
 *     frames VIDEO [COUNT]
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

static double mean_of(const weir_frames *frames, uint32_t frame)
{
    double sum = 0;
    for (size_t i = 0; i < frames->frame_bytes; i++)
        sum += frames->data[frame * frames->frame_bytes + i];
    return sum / (double)frames->frame_bytes;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    char *end = "";
    unsigned long count = argc > 2 ? strtoul(argv[2], &end, 10) : 8;
    if (argc < 2 || argc > 3 || !*argv[argc - 1] || *end || count == 0 || count > 10000 ||
        (argc > 2 && argv[2][0] == '-')) {
        fprintf(stderr, "usage: frames VIDEO [COUNT]; COUNT is from 1 to 10000 (default 8)\n");
        return 2;
    }
    weir_video_source source = { .path = argv[1] };
    weir_sampling spread = { .what = WEIR_SAMPLE_UNIFORM, .count = (uint32_t)count };
    weir_picture_config picture = { .width = 224, .height = 224 };
    weir_video_reader *reader = NULL;
    weir_frames *frames = NULL;
    weir_error error = { 0 };

    int rc = weir_video_reader_open(&reader, &source, sizeof source, NULL, 0, &error);
    if (rc == WEIR_OK)
        rc = weir_video_reader_frames(reader, &spread, sizeof spread, &picture, sizeof picture, &frames, &error);
    for (uint32_t i = 0; rc == WEIR_OK && i < frames->num_frames; i++)
        printf("%8.3f s: mean %.1f\n", (double)frames->times_ns[i] / 1e9, mean_of(frames, i));
    if (rc != WEIR_OK)
        fprintf(stderr, "frames: %s: %s\n", source.path, error.message);
    weir_frames_free(frames);
    weir_video_reader_free(reader);
    return rc == WEIR_OK ? 0 : 1;
}
