/* The fields of weir_sampling; weir__sampling_init() checks how they go together. Internal. */
#ifndef STAGES_READER_SAMPLING_FIELDS_H
#define STAGES_READER_SAMPLING_FIELDS_H

#include "common/sibling.h"
#include "stages/config/field_rules.h"

WEIR_SIBLING_API extern const struct_rules weir__sampling_fields;

#endif
