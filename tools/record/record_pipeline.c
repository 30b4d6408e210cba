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
    weir_picture_config picture;
    if (settings->world > 1 && (settings->headspace_step_ns || settings->explain))
        return record_refuse(
            settings, "--headspace and --explain: not with several processes (--world 1 runs each of them alone)");
    if (settings->resume_path && settings->epochs > 1)
        return record_refuse(settings, "--resume: not with --epochs");
    if (!video_configure(&settings->video, &picture, &video, problem))
        return record_refuse(settings, "%s", problem);
    if (settings->clip_items && video.sampling.what != WEIR_SAMPLE_CLIPS)
        return record_refuse(settings, "--clip-items: only with --clip, which says how many frames a clip has");
    return RECORD_DONE;
}

/* -- the decode stage */

typedef struct record_decode {
    const weir_op *op;
    weir_picture_config picture; /* that a config points to */
    union {                      /* its config */
        weir_video_config video;
        weir_image_config image;
        weir_audio_config audio;
    } config;
    size_t config_size;
} record_decode;

static void describe_video(const record_settings *settings, weir_picture_config *picture, weir_video_config *video)
{
    char problem[OPTION_PROBLEM_BYTES]; /* not used: the options have been checked */
    video_configure(&settings->video, picture, video, problem);
    bool has_size = picture->width || picture->height || picture->longest || picture->shortest;
    if (settings->video.resize != VIDEO_RESIZE_NONE && !has_size)
        picture->width = picture->height = DEFAULT_SIDE;
    video->clip_items = settings->clip_items;
    bool is_in_chunks = !video->clip_items && weir_sampling_is_rising(&video->sampling);
    video->chunk_frames = is_in_chunks ? settings->chunk_frames : 0;
}

static void describe_decode(const record_settings *settings, record_decode *decode)
{
    weir_video_config video = { 0 };
    describe_video(settings, &decode->picture, &video);
    if (settings->images) {
        decode->op = &weir_image_decode;
        decode->config.image = (weir_image_config){
            .input = video.input,
            .input_size = video.input_size,
            .decoder = video.decoder,
            .decoder_size = video.decoder_size,
            .picture = video.picture,
            .picture_size = video.picture_size,
            .max_file_bytes = video.max_bytes,
        };
        decode->config_size = sizeof decode->config.image;
    } else if (settings->audio) {
        decode->op = &weir_audio_decode;
        decode->config.audio = (weir_audio_config){
            .input = video.input,
            .input_size = video.input_size,
            .decoder = video.decoder,
            .decoder_size = video.decoder_size,
            .sample_rate = settings->sample_rate,
            .channels = settings->channels,
            .planar = settings->planar,
            .stream = video.stream,
            .max_bytes = video.max_bytes,
        };
        decode->config_size = sizeof decode->config.audio;
    } else {
        decode->op = &weir_video_decode;
        decode->config.video = video;
        decode->config_size = sizeof video;
    }
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
            .windows = inputs->has_windows ? inputs->windows : NULL,
            .columns = inputs->columns,
            .num_columns = inputs->columns ? inputs->clips.others.num : 0,
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

weir_builder *record_pipeline_describe(const record_settings *settings, const record_inputs *inputs,
                                       const weir_task_hook *hook, record_rounds *rounds)
{
    weir_stage_options decode = {
        .name = "decode",
        .concurrency = settings->concurrency,
        .queue_items = settings->queue_items,
        .queue_bytes = settings->queue_bytes,
        .output_order = (weir_order)settings->output_order,
        .task_deadline_ns = settings->deadline_ns,
        .task_hooks = hook,
        .num_task_hooks = hook ? 1 : 0,
    };
    weir_builder *builder = weir_builder_new();
    add_sources(settings, inputs, rounds, builder);
    record_decode chosen;
    describe_decode(settings, &chosen);
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
    return builder;
}

int record_pipeline_build(const record_settings *settings, const record_inputs *inputs,
                          const record_observers *observers, record_rounds *rounds, weir_pipeline **pipeline)
{
    weir_pipeline_options options = {
        .threads = settings->threads,
        .stats_interval_ns = settings->log_interval_ns,
        .observers = observers->observers,
        .num_observers = observers->num_observers,
        .max_failures = settings->max_failures,
    };
    weir_builder *builder = record_pipeline_describe(settings, inputs, &observers->items, rounds);
    weir_error error = { 0 };
    if (weir_builder_build(builder, &options, pipeline, &error) != WEIR_OK)
        return record_refuse(settings, "%s%s%s", error.stage, error.stage[0] ? ": " : "", error.message);
    return RECORD_DONE;
}
