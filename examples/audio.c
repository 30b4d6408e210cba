/*
 * audio: decodes the sound of every file below a folder to 16 kHz mono, the input of speech models, and prints its
 * length and loudness.
 *
 *     audio DIR [GLOB]
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include <weir/weir.h>

static double loudness_db(const weir_audio *sound)
{
    double squares = 0;
    for (uint64_t i = 0; i < sound->num_samples; i++)
        squares += (double)sound->data[i] * (double)sound->data[i];
    return 10 * log10(squares / (double)sound->num_samples + 1e-12);
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    weir_directory_config folder = {
        .root = argc > 1 ? argv[1] : ".",
        .glob = argc > 2 ? argv[2] : WEIR_AUDIO_FILES,
        .sorted = true,
    };
    weir_audio_config format = { .sample_rate = 16000, .channels = 1 };

    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, &folder, &(weir_stage_options){ .threads = 1 });
    weir_pipe_audio(builder, &format, &(weir_stage_options){ .concurrency = 4, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);

    weir_pipeline *pipeline;
    weir_error error = { 0 };
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK) {
        fprintf(stderr, "audio: %s\n", error.message);
        return 2;
    }

    weir_item item;
    int status;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_audio *sound = item.data;
        printf("%s: %" PRIu64 " samples at %u Hz (%s at %u Hz), %.1f dB\n", item.label, sound->num_samples,
               sound->sample_rate, sound->codec, sound->source_sample_rate, loudness_db(sound));
        weir_item_release(&item);
    }
    if (status == WEIR_EFAILED) {
        weir_pipeline_error(pipeline, NULL, &error);
        fprintf(stderr, "audio: %s\n", error.message);
    }
    weir_pipeline_free(pipeline);
    return status == WEIR_EOF ? 0 : 1;
}
