/* Copies of what travels with a result, if several results have it. Internal. Any thread. */
#ifndef STAGES_MEMORY_COPIES_H
#define STAGES_MEMORY_COPIES_H

#include <weir/bytes.h>

#include "common/sibling.h"

/* Without the packets and the validator, which a result does not need. NULL = out of memory. */
WEIR_SIBLING_API weir_entry *weir__entry_copy(const weir_entry *entry);

/* With the files in `next`. NULL = out of memory, or bytes is NULL. */
WEIR_SIBLING_API weir_bytes *weir__bytes_copy(const weir_bytes *bytes);

#endif
