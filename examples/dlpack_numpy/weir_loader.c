/*
 * weir_loader: a pipeline as a shared library with a few functions, for programs in other languages. Frames and their times
 * are DLPack tensors that use the memory of the clip: nothing is copied. weir_loader.py makes NumPy arrays of them.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <weir/weir.h>

#define LOADER_API __attribute__((visibility("default")))

typedef struct weir_loader {
    weir_pipeline *pipeline;
    weir_error error;
} weir_loader;

LOADER_API weir_loader *weir_loader_open(const char *folder, uint32_t num_frames, uint32_t size);
LOADER_API int weir_loader_next(weir_loader *loader, weir_item **clip);
LOADER_API void *weir_loader_view(weir_loader *loader, weir_item *clip, bool of_times, bool is_versioned,
                                  const int32_t *device);
LOADER_API void weir_loader_device(const weir_item *clip, bool of_times, int32_t *type, int32_t *number);
LOADER_API void weir_loader_end_clip(weir_item *clip);
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

/* 1 = *clip is the next one, for weir_loader_end_clip(); 0 = no more clips; -1 = see weir_loader_error(). */
int weir_loader_next(weir_loader *loader, weir_item **clip)
{
    if (!loader->pipeline)
        return -1;
    loader->error = (weir_error){ 0 }; /* it keeps the first error, which may have been of an earlier clip */
    weir_item *item = calloc(1, sizeof *item);
    int status = item ? weir_pipeline_next(loader->pipeline, item, WEIR_FOREVER)
                      : weir_error_set(&loader->error, WEIR_ENOMEM, 0, "out of memory");
    if (status == WEIR_OK) {
        *clip = item;
        return 1;
    }
    free(item);
    weir_pipeline_error(loader->pipeline, NULL, &loader->error);
    return status == WEIR_EOF ? 0 : -1;
}

/* The frames of the clip, or their times, as a DLManagedTensorVersioned or, for older consumers, as a DLManagedTensor; NULL = see
   weir_loader_error(). There may be several at once, also after weir_loader_end_clip() and weir_loader_close(). device: DLPack's
   type and number of what the consumer wants (NULL = any). */
void *weir_loader_view(weir_loader *loader, weir_item *clip, bool of_times, bool is_versioned, const int32_t *device)
{
    weir_memory wanted = device ? weir_memory_of_dlpack(device[0], device[1]) : (weir_memory){ WEIR_MEMORY_HOST, 0 };
    weir_part part = of_times ? WEIR_PART_PTS : WEIR_PART_DATA;
    struct DLManagedTensorVersioned *versioned = NULL;
    struct DLManagedTensor *unversioned = NULL;
    loader->error = (weir_error){ 0 };
    if (is_versioned)
        weir_to_dlpack(clip, part, device ? &wanted : NULL, &versioned, &loader->error);
    else
        weir_to_dlpack_unversioned(clip, part, device ? &wanted : NULL, &unversioned, &loader->error);
    return is_versioned ? (void *)versioned : (void *)unversioned;
}

/* Where the values are, in DLPack's numbers: 1, 0 is the CPU. */
void weir_loader_device(const weir_item *clip, bool of_times, int32_t *type, int32_t *number)
{
    weir_memory memory = of_times ? (weir_memory){ WEIR_MEMORY_HOST, 0 } : ((const weir_frames *)clip->data)->memory;
    *type = weir_memory_dlpack_type(memory);
    *number = memory.device;
}

void weir_loader_end_clip(weir_item *clip)
{
    if (clip)
        weir_item_release(clip);
    free(clip);
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
