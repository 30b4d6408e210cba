/* The fields of weir_picture_config, their checks and defaults. Internal. Any thread. */
#ifndef STAGES_CONFIG_PICTURE_FIELDS_H
#define STAGES_CONFIG_PICTURE_FIELDS_H

#include <weir/picture_config.h>
#include <weir/status.h>

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__picture_fields;

/* Replaces the program's config, which may be NULL, by a copy, to be freed with weir__picture_config_free(). WEIR_OK,
   or the failure with *error filled and nothing changed. */
int weir__picture_config_own(const weir_picture_config **picture, size_t *picture_size, weir_error *error);

/* NULL is fine. */
void weir__picture_config_free(const weir_picture_config *picture);

#endif
