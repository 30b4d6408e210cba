/*
 * training: a data loader for a training loop, on one page.
 *
 *     weir index /data/clips -o clips.weir       # once, and after each change of the clips
 *     training clips.weir 7                      # the seed
 *     mpirun -n 8 training clips.weir 7 run1     # or srun, or torchrun --no-python: each rank reads its share
 *
 * Each epoch has a different order of the clips. Of each clip, 16 consecutive frames from a random position are
 * decoded, cropped and mirrored at random, and normalised. They are collected in batches of 4 as [B, C, N, H, W]. All
 * random choices depend only on the seed, the epoch and the clip, so that runs are reproducible with any number of
 * ranks and threads. The sums stand for the training step; STEP_MS=100 makes it take longer.
 *
 * With "run1", each rank stores its model and its checkpoint after each step, in the file run1.RANK. After a kill, the
 * same command continues. With another number of ranks, give it all files:
 *
 *     mpirun -n 4 training clips.weir 7 run2 run1.*
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/weir.h>

enum { NUM_FRAMES = 16, SIZE = 112, BATCH = 4, EPOCHS = 3, MAX_BYTES = 1 << 20 };

/* What a rank stores: the checkpoint, and the model. Here, the model is only the list of steps. */
typedef struct saved_state {
    char path[4096]; /* "" = nothing is stored */
    char *texts[256];
    size_t num_texts;
    char model[MAX_BYTES];
} saved_state;

static int load(saved_state *to, const char *path, bool is_own, weir_error *error)
{
    void *model;
    int status = weir_checkpoint_load(path, &to->texts[to->num_texts], &model, NULL, error);
    to->num_texts += status == WEIR_OK;
    if (status == WEIR_OK && is_own)
        snprintf(to->model, sizeof to->model, "%s", (const char *)model);
    free(model);
    return status;
}

static int store(const saved_state *from, weir_pipeline *pipeline, weir_error *error)
{
    return from->path[0] ? weir_checkpoint_store(pipeline, from->path, from->model, strlen(from->model), error)
                         : WEIR_OK;
}

static int build(weir_dataset *dataset, uint64_t seed, const saved_state *saved, weir_pipeline **pipeline,
                 weir_error *error)
{
    weir_sampler_source_config clips = {
        .sampler = { .num_items = weir_dataset_count(dataset),
                     .order = WEIR_SAMPLER_SHUFFLED,
                     .seed = seed,
                     .share = WEIR_SHARE_PAD }, /* equal counts, whatever fails, so that no rank waits for ever */
        .items = weir_dataset_items(dataset),
        .dataset = weir_dataset_fingerprint(dataset), /* a checkpoint of other clips is refused */
    };
    weir_pipeline_options options = {
        .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
        .resume = (const char *const *)saved->texts,
        .num_resume = saved->num_texts,
    };
    weir_video_config decode = {
        WEIR_WITH_PICTURE(.width = 171, .height = 128, .resize = WEIR_RESIZE_CROP, .layout = WEIR_LAYOUT_NCHW),
        .sampling = { .what = WEIR_SAMPLE_RANDOM, .count = NUM_FRAMES, .length_frames = NUM_FRAMES },
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
    weir_source_sampler(builder, &clips, &(weir_stage_options){ .threads = 1, .epochs = EPOCHS });
    weir_pipe_video(builder, &decode, &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_pipe_collate(builder, &batches, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 2 });
    return weir_builder_build(builder, &options, pipeline, error);
}

/* weir_to_dlpack() would pass the batch to PyTorch without a copy. */
static void train(const weir_world *world, const weir_collated *batch, saved_state *saved)
{
    const float *values = batch->data;
    const char *step_ms = getenv("STEP_MS");
    double sum = 0;
    for (size_t i = 0; i < batch->data_bytes / sizeof *values; i++)
        sum += (double)values[i];
    size_t length = strlen(saved->model);
    FILE *step = fmemopen(saved->model + length, sizeof saved->model - length, "w");
    if (!step)
        return;
    fprintf(step, "rank %" PRIu32 "/%" PRIu32 ", epoch %" PRIu64 ": batch of %zu, clips", world->rank, world->size,
            batch->epoch, batch->num_items);
    for (size_t i = 0; i < batch->num_items; i++)
        fprintf(step, " %" PRId64 " (class %" PRId64 ")", batch->ids[i], batch->labels[i]);
    fprintf(step, ": sum %.1f\n", sum);
    fclose(step);
    fputs(saved->model + length, stdout);
    fflush(stdout);
    if (step_ms)
        usleep((unsigned)atoi(step_ms) * 1000);
}

static int take_steps(weir_pipeline *pipeline, const weir_world *world, saved_state *saved, weir_error *error)
{
    weir_item item = { 0 };
    int status = store(saved, pipeline, error);
    while (status == WEIR_OK || status == WEIR_EPOCH) {
        status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
        if (status == WEIR_OK) /* WEIR_EPOCH: all of this epoch has been delivered, and nothing of the next one */
            train(world, item.data, saved);
        weir_item_release(&item);
        if (status == WEIR_EFAILED)
            weir_pipeline_error(pipeline, NULL, error);
        else if (status != WEIR_EOF && store(saved, pipeline, error) != WEIR_OK)
            status = error->status;
    }
    return status;
}

static int run(weir_dataset *dataset, uint64_t seed, int num_names, char **names, weir_error *error)
{
    static saved_state saved;
    weir_world world;
    weir_pipeline *pipeline;
    int status = weir_world_find(&world, NULL, error);
    if (status == WEIR_OK && num_names) {
        snprintf(saved.path, sizeof saved.path, "%s.%" PRIu32, names[0], world.rank);
        status = load(&saved, saved.path, true, error);
        if (status == WEIR_ENOTFOUND) { /* the first run, or one of another number of ranks */
            status = WEIR_OK;
            *error = (weir_error){ 0 }; /* keeps the first error: this one would hide all later ones */
        }
        bool has_own = saved.num_texts;
        for (int i = 1; status == WEIR_OK && !has_own && i < num_names && i < 256; i++)
            status = load(&saved, names[i], false, error);
    }
    if (status == WEIR_OK)
        status = build(dataset, seed, &saved, &pipeline, error);
    if (status == WEIR_OK) {
        status = take_steps(pipeline, &world, &saved, error);
        weir_pipeline_free(pipeline);
    }
    while (saved.num_texts)
        free(saved.texts[--saved.num_texts]);
    return status;
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_dataset *dataset;
    weir_error error = { 0 };
    if (argc < 2) {
        fprintf(stderr, "usage: training INDEX [SEED [SAVE [CHECKPOINT...]]]; weir index makes the index\n");
        return 2;
    }
    int status = weir_dataset_open(argv[1], NULL, &dataset, &error);
    if (status == WEIR_OK) {
        status = run(dataset, argc > 2 ? strtoull(argv[2], NULL, 10) : 0, argc > 3 ? argc - 3 : 0, argv + 3, &error);
        weir_dataset_close(dataset);
    }
    if (status != WEIR_EOF)
        fprintf(stderr, "training: %s\n", error.message);
    return status == WEIR_EOF ? 0 : status == WEIR_EFAILED || status == WEIR_EIO ? 1 : 2;
}
