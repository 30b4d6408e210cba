/* brightness DIR [LEAST]: prints the mean brightness of every video below a folder that is not darker than LEAST. */
#include <stdio.h>
#include <stdlib.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "brightness.h"

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = { .root = argc > 1 ? argv[1] : ".", .glob = WEIR_VIDEO_FILES, .sorted = true };
    weir_video_config gray = { WEIR_WITH_PICTURE(.width = 64, .height = 64, .pixel = WEIR_PIXEL_GRAY8,
                                                 .resize = WEIR_RESIZE_STRETCH) };
    brightness_config limit = { .least = argc > 2 ? strtod(argv[2], NULL) : 0 };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_video(builder, &gray, &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    pipe_brightness(builder, &limit, &(weir_stage_options){ .concurrency = 2, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "brightness: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const brightness *result = item.data;
        printf("%s: %u frames, mean %.1f\n", item.label, result->num_frames, result->mean);
        weir_item_release(&item);
    }
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "brightness: %s\n", error.message);
    }
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF ? 0 : 1;
}
