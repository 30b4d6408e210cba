/* Lists the folder with the source stage of weir. */
#include "bench/harness/clip_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "tools/cli/memory.h"

void bench_files_free(bench_files *files)
{
    for (size_t i = 0; i < files->num_paths; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (bench_files){ 0 };
}

static int check(const char *root, const char *glob)
{
    weir_error error = { 0 };
    uint64_t num_files = 0;
    weir_directory_config directory = { .root = root, .glob = glob };
    int rc = weir_directory_count(&directory, 1, &num_files, &error);
    if (rc != WEIR_OK)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return rc == WEIR_OK ? 0 : -1;
}

static int take_all(bench_files *files, weir_pipeline *pipeline)
{
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) != WEIR_EOF) {
        if (status != WEIR_OK) {
            fprintf(stderr, "weir-bench: the folder cannot be listed: %s\n", weir_status_name(status));
            return -1;
        }
        files->paths = memory_grow(files->paths, files->num_paths, sizeof *files->paths);
        files->paths[files->num_paths++] = memory_copy(item.data);
        weir_item_release(&item);
    }
    return 0;
}

int bench_files_find(bench_files *files, const char *root, const char *glob)
{
    if (check(root, glob) != 0)
        return -1;
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &(weir_directory_config){ .root = root, .glob = glob }, NULL);
    weir_builder_sink(builder, NULL);
    int rc = weir_builder_build(builder, NULL, &pipeline, &error) == WEIR_OK ? take_all(files, pipeline) : -1;
    if (!pipeline)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    weir_pipeline_free(pipeline);
    return rc;
}

static int next_path(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    const bench_files *files = weir_task_config(task);
    uint64_t seq = weir_task_seq(task), step = 7919;
    while (files->num_paths % step == 0)
        step++;
    out->data = files->paths[seq * step % files->num_paths];
    out->label = out->data;
    return WEIR_OK;
}

const weir_op bench_files_op = { .name = "src", .makes = WEIR_TYPE_TEXT, .run = next_path };
