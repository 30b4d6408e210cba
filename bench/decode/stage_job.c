#include "bench/decode/stage_job.h"

#include <stdio.h>

#include <weir/engine.h>
#include <weir/stages.h>

static void drop_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

static weir_pipeline *build(const stage_job *job)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    if (job->root)
        weir_source_directory(builder, &(weir_directory_config){ .root = job->root, .glob = job->glob }, NULL);
    else
        weir_source_list(builder,
                         &(weir_list_config){ .paths = (const char *const *)job->files->paths,
                                              .num_paths = job->files->num_paths },
                         NULL);
    weir_builder_pipe(builder, job->op, job->config, job->config_size,
                      &(weir_stage_options){ .concurrency = job->concurrency });
    weir_builder_sink(builder, NULL);
    weir_builder_build(builder, &(weir_pipeline_options){ .threads = job->threads }, &pipeline, &error);
    if (!pipeline)
        fprintf(stderr, "weir-bench: %s\n", error.message);
    return pipeline;
}

void stage_job_count_frames(void *self, const weir_item *item)
{
    const weir_frames *frames = item->data;
    *(double *)self += frames->num_frames;
}

int stage_job_run(const stage_job *job, contest_result *result)
{
    /* like the bare loop, which does not report broken files; both count them */
    weir_log_set_function(drop_log, NULL);
    weir_pipeline *pipeline = build(job);
    if (!pipeline)
        return -1;

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        result->clips++;
        if (job->see)
            job->see(job->self, &item);
        weir_item_release(&item);
    }
    weir_account account;
    weir_pipeline_account(pipeline, NULL, &account);
    result->failures += (double)account.failed;
    weir_pipeline_free(pipeline);
    if (status == WEIR_EOF)
        return 0;
    fprintf(stderr, "weir-bench: the pipeline ended with %s\n", weir_status_name(status));
    return -1;
}
