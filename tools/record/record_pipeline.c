#include "tools/record/record_pipeline.h"

#include <string.h>

#include <weir/isolated.h>
#include <weir/stages.h>

#include "tools/record/record_messages.h"

enum { DEFAULT_SIDE = 128 }; /* pixels */

/* -- checking the options */

int record_pipeline_check(const record_settings *settings)
{
    char problem[OPTION_PROBLEM_BYTES];
    weir_video_config video;
    if (settings->world > 1 && (settings->headspace_step_ns || settings->explain))
        return record_refuse(
            settings, "--headspace and --explain: not with several processes (--world 1 runs each of them alone)");
    if (settings->resume_path && settings->epochs > 1)
        return record_refuse(settings, "--resume: not with --epochs");
    if (!video_configure(&settings->video, &video, problem))
        return record_refuse(settings, "%s", problem);
    return RECORD_DONE;
}

/* -- the decode stage */

typedef struct record_decode {
    const weir_op *op;
    union { /* its config */
        weir_video_config video;
        weir_image_config image;
        weir_audio_config audio;
    } config;
    size_t config_size;
} record_decode;

static weir_video_config describe_video(const record_settings *settings)
{
    char problem[OPTION_PROBLEM_BYTES]; /* not used: the options have been checked */
    weir_video_config video = { 0 };
    video_configure(&settings->video, &video, problem);
    if (settings->video.config.resize != VIDEO_RESIZE_NONE) {
        video.width = video.width ? video.width : DEFAULT_SIDE;
        video.height = video.height ? video.height : DEFAULT_SIDE;
    }
    video.chunk_frames = weir_sampling_is_rising(&video.sampling) ? settings->chunk_frames : 0;
    return video;
}

static record_decode describe_decode(const record_settings *settings)
{
    weir_video_config video = describe_video(settings);
    if (settings->images) {
        weir_image_config image = {
            .width = video.width,
            .height = video.height,
            .resize = video.resize,
            .pixel = video.pixel,
            .layout = video.layout,
            .scaler = video.scaler,
            .no_autorotate = video.no_autorotate,
            .max_pixels = video.max_pixels,
            .max_file_bytes = video.max_bytes,
            .max_decoder_bytes = video.max_decoder_bytes,
            .allow = video.allow,
            .io_timeout_ns = video.io_timeout_ns,
            .ca_file = video.ca_file,
            .lowres = video.lowres,
        };
        return (record_decode){ &weir_image_decode, { .image = image }, sizeof image };
    }
    if (settings->audio) {
        weir_audio_config audio = {
            .sample_rate = settings->sample_rate,
            .channels = settings->channels,
            .planar = settings->planar,
            .max_bytes = video.max_bytes,
            .max_decoder_bytes = video.max_decoder_bytes,
            .stream = video.stream,
            .allow = video.allow,
            .io_timeout_ns = video.io_timeout_ns,
            .ca_file = video.ca_file,
        };
        return (record_decode){ &weir_audio_decode, { .audio = audio }, sizeof audio };
    }
    return (record_decode){ &weir_video_decode, { .video = video }, sizeof video };
}

/* -- upstream of it */

uint32_t record_pipeline_epochs(const record_settings *settings)
{
    return (settings->headspace_step_ns || settings->explain) && !settings->epochs ? WEIR_ENDLESS : settings->epochs;
}

static void add_sources(const record_settings *settings, const record_inputs *inputs, record_rounds *rounds,
                        weir_builder *builder)
{
    /* Listing waits for the disk. With a separate thread it does not also wait for the decoders. */
    weir_stage_options options = {
        .threads = 1,
        .queue_items = settings->source_queue_items,
        .epochs = rounds ? 0 : record_pipeline_epochs(settings),
    };
    for (size_t i = 0; i < inputs->num_folders; i++)
        if (rounds)
            record_rounds_source_directory(builder, &inputs->folders[i], rounds, &options);
        else
            weir_source_directory(builder, &inputs->folders[i], &options);
    if (inputs->num_paths > 0 || inputs->num_folders == 0) {
        weir_list_config list = {
            .paths = inputs->paths,
            .num_paths = inputs->num_paths,
            .may_be_empty = true,
            .occurrences = inputs->occurrences,
        };
        if (rounds)
            record_rounds_source_list(builder, &list, rounds, &options);
        else
            weir_source_list(builder, &list, &options);
    }
    if (inputs->num_folders > 1 || (inputs->num_folders > 0 && inputs->num_paths > 0))
        weir_builder_merge(builder, NULL, NULL);
    if (settings->tar) {
        weir_tar_config tar = { .glob = record_glob(settings) };
        weir_pipe_tar(builder, &tar,
                      &(weir_stage_options){ .threads = 1, .queue_items = settings->source_queue_items });
    }
}

/* -- all of it */

int record_pipeline_build(const record_settings *settings, const record_inputs *inputs,
                          const record_observers *observers, record_rounds *rounds, weir_pipeline **pipeline)
{
    weir_stage_options decode = {
        .name = "decode",
        .concurrency = settings->concurrency,
        .queue_items = settings->queue_items,
        .queue_bytes = settings->queue_bytes,
        .output_order = (weir_order)settings->output_order,
        .task_deadline_ns = settings->deadline_ns,
        .task_hooks = &observers->items,
        .num_task_hooks = 1,
    };
    weir_pipeline_options options = {
        .threads = settings->threads,
        .stats_interval_ns = settings->log_interval_ns,
        .observers = observers->observers,
        .num_observers = observers->num_observers,
        .max_failures = settings->max_failures,
    };
    weir_builder *builder = weir_builder_new();
    add_sources(settings, inputs, rounds, builder);
    record_decode chosen = describe_decode(settings);
    weir_isolated_config isolated = { .op = chosen.op,
                                      .config = &chosen.config,
                                      .config_size = chosen.config_size,
                                      .max_memory_bytes = settings->isolate_memory,
                                      .no_sandbox = settings->no_sandbox };
    if (settings->isolate)
        weir_pipe_isolated(builder, &isolated, &decode);
    else
        weir_builder_pipe(builder, chosen.op, &chosen.config, chosen.config_size, &decode);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = settings->sink_queue_items });

    weir_error error = { 0 };
    if (weir_builder_build(builder, &options, pipeline, &error) != WEIR_OK)
        return record_refuse(settings, "%s%s%s", error.stage, error.stage[0] ? ": " : "", error.message);
    return RECORD_DONE;
}
