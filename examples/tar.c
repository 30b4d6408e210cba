/*
 * tar: reads videos with their labels from tar archives in the layout of WebDataset ("17.mp4" and "17.cls" side by
 * side), without unpacking them. Two archives are read concurrently, as streams; memory use does not depend on their
 * size.
 *
 *     tar DIR
 */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

/* The first line of the sample's file NAME.cls; "" = no such file. */
static const char *class_of(const weir_frames *frames, char *to, size_t size)
{
    to[0] = '\0';
    for (const weir_bytes *file = frames->sidecars; file; file = file->next) {
        const char *end = file->name ? strrchr(file->name, '.') : NULL;
        if (end && strcmp(end, ".cls") == 0)
            snprintf(to, size, "%.*s", (int)file->size_bytes, (const char *)file->data);
    }
    to[strcspn(to, "\r\n")] = '\0';
    return to;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = { .root = argc > 1 ? argv[1] : ".", .glob = "*.tar", .sorted = true };
    weir_tar_config samples = { .glob = WEIR_VIDEO_FILES, .samples = true };
    weir_video_config clip = {
        WEIR_WITH_PICTURE(.width = 128, .height = 128),
        .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 8 },
    };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_tar(builder, &samples, &(weir_stage_options){ .concurrency = 2, .threads = 2 });
    weir_pipe_video(builder, &clip, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "tar: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *frames = item.data;
        char class[64];
        printf("%s: %u frames, class \"%s\"\n", item.label, frames->num_frames,
               class_of(frames, class, sizeof class));
        weir_item_release(&item);
    }
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "tar: %s\n", error.message);
    }
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF ? 0 : 1;
}
