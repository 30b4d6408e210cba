/* The fields of weir_decoder_config, their checks and defaults. Internal. Any thread. */
#ifndef STAGES_CONFIG_DECODER_FIELDS_H
#define STAGES_CONFIG_DECODER_FIELDS_H

#include <weir/decoder_config.h>
#include <weir/status.h>

#include "stages/config/field_rules.h"

extern const struct_rules weir__decoder_fields;

/* Replaces the program's config, which may be NULL, by a copy, to be freed with weir__decoder_config_free(). WEIR_OK,
   or the failure with *error filled and nothing changed. */
int weir__decoder_config_own(const weir_decoder_config **decoder, size_t *decoder_size, weir_error *error);

/* WEIR_OK, or WEIR_EINVAL with *error filled: it asks for what only pictures have. */
int weir__decoder_config_check_sound(const weir_decoder_config *decoder, weir_error *error);

/* NULL is fine. */
void weir__decoder_config_free(const weir_decoder_config *decoder);

#endif
