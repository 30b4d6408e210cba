#include "stages/audio/audio_config.h"

#include <stdint.h>
#include <stdlib.h>

#include <weir/struct_copy.h>

#include "stages/audio/resampler.h"
#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/ffmpeg/ffmpeg_log.h"

#define AUDIO_CONFIG_FIELDS(FIELD, type) \
    FIELD(type, input, CONFIG, &weir__input_fields, input_size) \
    FIELD(type, input_size, OURS, 0, 0) \
    FIELD(type, decoder, CONFIG, &weir__decoder_fields, decoder_size) \
    FIELD(type, decoder_size, OURS, 0, 0) \
    FIELD(type, sample_rate, UNSIGNED, 0, MAX_RATE_HZ) \
    FIELD(type, channels, UNSIGNED, 0, WEIR_RESAMPLER_MAX_CHANNELS) \
    FIELD(type, planar, UNSIGNED, false, true) \
    FIELD(type, stream, UNSIGNED, 0, UINT32_MAX) \
    FIELD(type, max_bytes, UNSIGNED, 0, UINT64_MAX)

enum { MAX_RATE_HZ = 1 << 22 };

DEFINE_STRUCT_RULES(weir__audio_config_fields, weir_audio_config, "weir_audio_config", AUDIO_CONFIG_FIELDS);

void weir__audio_config_clear(weir_audio_config *audio)
{
    weir__input_config_free(audio->input);
    weir__decoder_config_free(audio->decoder);
}

int weir__audio_config_check(weir_audio_config *audio, weir_error *error)
{
    int rc = weir__rules_check(&weir__audio_config_fields, audio, error);
    if (rc == WEIR_OK)
        rc = weir__input_config_own(&audio->input, &audio->input_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__decoder_config_own(&audio->decoder, &audio->decoder_size, error);
    if (rc != WEIR_OK)
        goto no_decoder;
    rc = weir__decoder_config_check_sound(audio->decoder, error);
    if (rc != WEIR_OK)
        goto no_sound;
    if (audio->max_bytes == 0)
        audio->max_bytes = UINT64_C(8) << 30;
    weir__ffmpeg_log_install();
    return WEIR_OK;
no_sound:
    weir__decoder_config_free(audio->decoder);
no_decoder:
    weir__input_config_free(audio->input);
    return rc;
}

int weir__audio_config_own(const weir_audio_config **audio, size_t audio_size, weir_error *error)
{
    if (*audio && audio_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "a weir_audio_config is given, but its size is 0: pass its sizeof");
    weir_audio_config *own = malloc(sizeof *own);
    if (!own)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir_struct_copy(own, sizeof *own, *audio, audio_size, "weir_audio_config", error);
    own->input = NULL;
    own->input_size = 0;
    if (rc == WEIR_OK)
        rc = weir__audio_config_check(own, error);
    if (rc == WEIR_OK)
        *audio = own;
    else
        free(own);
    return rc;
}

void weir__audio_config_free(const weir_audio_config *audio)
{
    weir_audio_config *own = (weir_audio_config *)(uintptr_t)audio;
    if (own)
        weir__audio_config_clear(own);
    free(own);
}
