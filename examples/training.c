/*
 * training: a data loader for a training loop, on one page.
 *
 *     weir index /data/clips -o clips.weir       # once, and after each change of the clips
 *     training clips.weir 7                      # the seed
 *     mpirun -n 8 training clips.weir 7          # or srun, or torchrun --no-python: each rank reads its share
 *
 * Each epoch has a different order of the clips. Of each clip, 16 consecutive frames from a random position are
 * decoded, cropped and mirrored at random, normalised, and collected in batches of 4 as [B, C, N, H, W]. All random
 * choices depend only on the seed, the epoch and the clip, so that runs are reproducible with any number of ranks and
 * threads. The sums are a placeholder for the training step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { NUM_FRAMES = 16, SIZE = 112, BATCH = 4, EPOCHS = 2 };

static int build(weir_dataset *dataset, uint64_t seed, weir_pipeline **pipeline, weir_error *error)
{
    weir_sampler_source_config clips = {
        .sampler = { .num_items = weir_dataset_count(dataset),
                     .order = WEIR_SAMPLER_SHUFFLED,
                     .seed = seed,
                     .share = WEIR_SHARE_PAD }, /* equal counts, so that no rank waits for the others for ever */
        .items = weir_dataset_items(dataset),
    };
    weir_video_config decode = {
        .width = 171,
        .height = 128,
        .resize = WEIR_RESIZE_CROP,
        .layout = WEIR_LAYOUT_NCHW,
        .sampling = { .what = WEIR_SAMPLE_RANDOM, .count = NUM_FRAMES, .stretch_frames = NUM_FRAMES },
        .seed = seed,
    };
    weir_collate_config batches = {
        .num_items = BATCH,
        .dtype = WEIR_DTYPE_FLOAT32,
        .layout = WEIR_COLLATE_TIME_SECOND,
        .mean = { 0.485, 0.456, 0.406 },
        .std = { 0.229, 0.224, 0.225 },
        .crop = WEIR_CROP_RANDOM,
        .crop_width = SIZE,
        .crop_height = SIZE,
        .flip = 0.5,
        .seed = seed,
    };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_sampler_source, &clips,
                        &(weir_stage_options){ .threads = 1, .epochs = EPOCHS });
    weir_builder_pipe(builder, &weir_video_decode, &decode,
                      &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_pipe(builder, &weir_collate, &batches, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 2 });
    return weir_builder_build(builder, NULL, pipeline, error);
}

/* weir_collated_to_dlpack() would pass the batch to PyTorch without a copy. */
static void train(const weir_world *world, const weir_collated *batch)
{
    const float *values = batch->data;
    double sum = 0;
    for (size_t i = 0; i < batch->data_bytes / sizeof *values; i++)
        sum += (double)values[i];
    printf("rank %" PRIu32 "/%" PRIu32 ", epoch %" PRIu64 ": batch of %zu, clips", world->rank, world->size,
           batch->epoch, batch->num_items);
    for (size_t i = 0; i < batch->num_items; i++)
        printf(" %" PRId64 " (class %" PRId64 ")", batch->ids[i], batch->labels[i]);
    printf(": sum %.1f\n", sum);
}

static int run(weir_dataset *dataset, uint64_t seed, weir_error *error)
{
    weir_world world;
    weir_pipeline *pipeline;
    weir_item item;
    int status = weir_world_find(&world, NULL, error);
    if (status == WEIR_OK)
        status = build(dataset, seed, &pipeline, error);
    if (status != WEIR_OK)
        return status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH)
            continue; /* all of this epoch has been delivered, and nothing of the next one */
        train(&world, item.data);
        weir_item_release(&item);
    }
    if (status != WEIR_EOF)
        weir_pipeline_error(pipeline, error);
    weir_pipeline_free(pipeline);
    return status;
}

int main(int argc, char **argv)
{
    weir_dataset *dataset;
    weir_error error = { 0 };
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: training INDEX [SEED]; weir index makes the index\n");
        return 2;
    }
    int status = weir_dataset_open(argv[1], NULL, &dataset, &error);
    if (status == WEIR_OK) {
        status = run(dataset, argc > 2 ? strtoull(argv[2], NULL, 10) : 0, &error);
        weir_dataset_close(dataset);
    }
    if (status != WEIR_EOF)
        fprintf(stderr, "training: %s\n", error.message);
    return status == WEIR_EOF ? 0 : status == WEIR_EFAILED ? 1 : 2;
}
