/*
 * images: decodes every JPEG and PNG below a folder to 224x224, the input of image classifiers, and prints the mean
 * brightness of each.
 *
 *     images DIR
 */
#include <stdio.h>

#include <weir/weir.h>

static double mean_of(const weir_frames *picture)
{
    double sum = 0;
    for (size_t i = 0; i < picture->frame_bytes; i++)
        sum += picture->data[i];
    return sum / (double)picture->frame_bytes;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = {
        .root = argc > 1 ? argv[1] : ".",
        .glob = WEIR_IMAGE_FILES,
        .sorted = true,
    };
    weir_image_config size = { WEIR_WITH_PICTURE(.width = 224, .height = 224, .resize = WEIR_RESIZE_CROP) };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_image(builder, &size, &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "images: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *picture = item.data;
        printf("%s: %s of %ux%u, mean %.1f\n", item.label, picture->codec, picture->source_width,
               picture->source_height, mean_of(picture));
        weir_item_release(&item);
    }
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "images: %s\n", error.message);
    }
    weir_pipeline_free(pipeline); /* files that could not be decoded were logged */
    return status == WEIR_EOF ? 0 : 1;
}
