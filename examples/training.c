/*
 * training: what a training loop asks of a loader. Of each clip 16 frames in a row, from a place drawn at random, cropped to
 * 112×112; in batches of 4; again in each epoch, with other places. The sums stand in for the step of a model.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { NUM_FRAMES = 16, SIZE = 112, BATCH = 4, EPOCHS = 2 };

static int build(const char *root, uint64_t seed, weir_pipeline **pipeline, weir_error *error)
{
    weir_directory_config folder = { .root = root, .glob = "*.mp4", .sorted = true };
    weir_video_config clip = {
        .width = SIZE,
        .height = SIZE,
        .resize = WEIR_RESIZE_CROP,
        .layout = WEIR_LAYOUT_NCHW, /* as PyTorch has it: weir_frames_to_dlpack() hands it over without a copy */
        .sampling = { .what = WEIR_SAMPLE_RANDOM, .count = NUM_FRAMES, .stretch_frames = NUM_FRAMES },
        .seed = seed, /* the same seed gives the same frames, however many threads there are */
    };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_directory_source, &folder,
                        &(weir_stage_options){ .threads = 1, .epochs = EPOCHS });
    weir_builder_pipe(builder, &weir_video_decode, &clip,
                      &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_pipe(builder, &weir_aggregate, &(weir_aggregate_config){ .num_items = BATCH }, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 2 });
    return weir_builder_build(builder, NULL, pipeline, error);
}

static void train(const weir_batch *batch)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < batch->num_items; i++) {
        const weir_frames *frames = batch->items[i].data;
        for (size_t byte = 0; byte < frames->num_frames * frames->frame_bytes; byte++)
            sum += frames->data[byte];
    }
    printf("batch of %zu, up to %s: sum %" PRIu64 "\n", batch->num_items, batch->items[batch->num_items - 1].label,
           sum);
}

int main(int argc, char **argv)
{
    const char *root = argc > 1 ? argv[1] : ".";
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (build(root, seed, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "training: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status, epoch = 0;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH) {
            printf("end of epoch %d\n", ++epoch);
            continue;
        }
        train(item.data);
        weir_item_release(&item);
    }
    weir_pipeline_error(pipeline, &error);
    if (error.status != WEIR_OK)
        fprintf(stderr, "training: %s\n", error.message);
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF ? 0 : 1;
}
