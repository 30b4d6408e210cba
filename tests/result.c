/* See result.h. */
#include "tests/result.h"

#include <stddef.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>

void *result_of(const weir_op *source, const void *source_config, const weir_op *op, const void *config,
                uint64_t *size_bytes, weir_error *error)
{
    weir_pipeline *pipeline = NULL;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, source, source_config, source->config_size, NULL);
    weir_builder_pipe(builder, op, config, op->config_size, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, error) != WEIR_OK)
        fail_msg("%s", error->message);

    void *result = NULL;
    weir_item item;
    int rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    if (rc == WEIR_OK) {
        result = item.data;
        *size_bytes = item.size_bytes;
        item.data = NULL;
        weir_item_release(&item);
        rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    }
    assert_true(rc == WEIR_EOF || (rc == WEIR_EFAILED && source->needs_results)); /* its only item has failed */
    weir_pipeline_error(pipeline, op->name, error);
    weir_pipeline_free(pipeline);
    return result;
}

void *result_of_path(const char *path, const weir_op *op, const void *config, uint64_t *size_bytes, weir_error *error)
{
    return result_of(&weir_list_source, &(weir_list_config){ .paths = &path, .num_paths = 1 }, op, config, size_bytes,
                     error);
}
