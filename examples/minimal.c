/* minimal: decodes every video below a folder, four at a time, and says what came out. */
#include <stdio.h>

#include <weir/weir.h>

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = { .root = argc > 1 ? argv[1] : ".", .glob = WEIR_VIDEO_FILES };
    weir_video_config picture = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_video(builder, &picture, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_observer console = weir_console_observer();
    weir_pipeline_options options = { .observers = &console, .num_observers = 1 };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "minimal: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *frames = item.data;
        printf("%s: %u frames of %ux%u\n", item.label, frames->num_frames, frames->width, frames->height);
        weir_item_release(&item);
    }
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "minimal: %s\n", error.message);
    }
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF ? 0 : 1;
}
