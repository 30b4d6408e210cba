/*
 * weir_loader: a pipeline as a shared library with four functions, for programs in other languages. Each clip is
 * returned as a DLPack tensor that uses the memory of the frames: nothing is copied. weir_loader.py converts it to a
 * NumPy array.
 */
#include <stdlib.h>

#include <weir/weir.h>

#define LOADER_API __attribute__((visibility("default")))

typedef struct weir_loader {
    weir_pipeline *pipeline;
    weir_error error;
} weir_loader;

LOADER_API weir_loader *weir_loader_open(const char *folder, uint32_t num_frames, uint32_t size);
LOADER_API int weir_loader_next(weir_loader *loader, struct DLManagedTensor **tensor);
LOADER_API const char *weir_loader_error(const weir_loader *loader);
LOADER_API void weir_loader_close(weir_loader *loader);

/* Decodes num_frames evenly spaced frames of each video below the folder, at size x size pixels. NULL = out of memory;
   weir_loader_next() reports all other errors. */
weir_loader *weir_loader_open(const char *folder, uint32_t num_frames, uint32_t size)
{
    weir_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return NULL;
    weir_directory_config files = { .root = folder, .glob = WEIR_VIDEO_FILES, .sorted = true };
    weir_video_config clip = {
        WEIR_WITH_PICTURE(.width = size, .height = size),
        .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = num_frames },
    };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &files, &(weir_stage_options){ .threads = 1 });
    weir_pipe_video(builder, &clip, &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    weir_builder_build(builder, NULL, &loader->pipeline, &loader->error);
    return loader;
}

/* 1 = *tensor is the next clip, to be freed by its deleter; 0 = no more clips; -1 = see weir_loader_error(). */
int weir_loader_next(weir_loader *loader, struct DLManagedTensor **tensor)
{
    weir_item item;
    if (!loader->pipeline)
        return -1;
    loader->error = (weir_error){ 0 }; /* it keeps the first error, which may have been of an earlier clip */
    int status = weir_pipeline_next(loader->pipeline, &item, WEIR_FOREVER);
    if (status == WEIR_EOF)
        return 0;
    if (status != WEIR_OK) {
        weir_pipeline_error(loader->pipeline, NULL, &loader->error);
        return -1;
    }
    status = weir_to_dlpack(&item, WEIR_COLLATED_FRAMES, tensor, &loader->error); /* the tensor owns the frames now */
    weir_item_release(&item);
    return status == WEIR_OK ? 1 : -1;
}

const char *weir_loader_error(const weir_loader *loader)
{
    return loader->error.message;
}

void weir_loader_close(weir_loader *loader)
{
    if (loader)
        weir_pipeline_free(loader->pipeline);
    free(loader);
}
