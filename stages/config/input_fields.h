/* The fields of weir_input_config, their checks and defaults. Internal. Any thread. */
#ifndef STAGES_CONFIG_INPUT_FIELDS_H
#define STAGES_CONFIG_INPUT_FIELDS_H

#include <weir/input_config.h>
#include <weir/status.h>

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__input_fields;

/* Replaces the program's config, which may be NULL, by a copy, to be freed with weir__input_config_free(). WEIR_OK, or the failure
   with *error filled and nothing changed. */
int weir__input_config_own(const weir_input_config **input, size_t *input_size, weir_error *error);

/* NULL is fine. */
void weir__input_config_free(const weir_input_config *input);

#endif
