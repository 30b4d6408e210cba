/*
 * observer: your own program receives the statistics. It prints the metrics of each stage in each lap (two per
 * second), and every failure. An observer is a struct of functions. They are called on a separate thread, never two
 * at once, and the pipeline does not wait for them.
 *
 *     observer DIR
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

/* The state shared by the observer's functions. */
typedef struct lap_printer {
    uint64_t num_tasks; /* since the start */
} lap_printer;

static void print_lap(void *self, const weir_subject_lap *lap)
{
    lap_printer *printer = self;
    const weir_task_metrics *task = &lap->metrics.task;
    if (lap->subject != WEIR_SUBJECT_STAGE)
        return;
    printer->num_tasks += task->num_tasks;
    double elapsed_ns = (double)lap->lap->elapsed_ns;
    printf("%s: %" PRIu64 " tasks in %.1f s, %.1f slots busy on average\n", lap->name, task->num_tasks,
           elapsed_ns / (double)WEIR_SECOND, (double)task->busy_ns / elapsed_ns);
}

static void print_failure(void *self, const weir_failure *failure)
{
    (void)self;
    printf("failed: %s: %s\n", failure->label, failure->message);
}

static void print_end(void *self, const weir_run_end *end)
{
    const lap_printer *printer = self;
    printf("%s after %" PRIu64 " tasks\n", end->status == WEIR_OK ? "done" : weir_status_text(end->status),
           printer->num_tasks);
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = { .root = argc > 1 ? argv[1] : ".", .glob = WEIR_VIDEO_FILES };
    weir_video_config picture = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_video(builder, &picture, &(weir_stage_options){ .concurrency = 4 });
    weir_builder_sink(builder, NULL);

    lap_printer printer = { 0 };
    weir_observer observer = {
        .self = &printer,
        .lap = print_lap,
        .failure = print_failure,
        .run_end = print_end,
    };
    weir_pipeline_options options = {
        .stats_interval_ns = WEIR_SECOND / 2,
        .observers = &observer,
        .num_observers = 1,
    };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "observer: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK)
        weir_item_release(&item);
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "observer: %s\n", error.message);
    }
    weir_pipeline_free(pipeline); /* after this call no function of the observer runs */
    return status == WEIR_EOF ? 0 : 1;
}
