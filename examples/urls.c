/*
 * urls: decodes videos directly from URLs (http, https and other protocols that FFmpeg supports). Downloads mostly
 * wait, so the stage has more slots than there are CPUs, and separate threads that may block. A server that stops
 * sending, or a download that takes too long, fails only its item.
 *
 *     urls URL...
 */
#include <stdio.h>

#include <weir/weir.h>

enum { CONCURRENT_DOWNLOADS = 16 };

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_list_config urls = { .paths = (const char *const *)argv + 1, .num_paths = (size_t)argc - 1 };
    weir_video_config clip = {
        WEIR_WITH_PICTURE(.width = 128, .height = 128),
        WEIR_WITH_INPUT(.io_timeout_ns = 10 * WEIR_SECOND), /* without any data */
        .sampling = { .count = 16 },                        /* the rest of the file is not downloaded */
    };
    weir_stage_options decode = {
        .concurrency = CONCURRENT_DOWNLOADS,
        .threads = CONCURRENT_DOWNLOADS,
        .task_deadline_ns = 60 * WEIR_SECOND, /* for the whole download */
    };

    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &urls, NULL);
    weir_pipe_video(builder, &clip, &decode);
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "urls: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_frames *frames = item.data;
        printf("%s: %u frames of %s\n", item.label, frames->num_frames, frames->codec);
        weir_item_release(&item);
    }
    weir_account account = { 0 };
    weir_pipeline_account(pipeline, NULL, &account);
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "urls: %s\n", error.message);
    }
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF && account.failed == 0 ? 0 : 1;
}
