/* The fields of the still image stage's config. Internal. */
#ifndef STAGES_IMAGE_IMAGE_STAGE_H
#define STAGES_IMAGE_IMAGE_STAGE_H

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__image_fields;

#endif
