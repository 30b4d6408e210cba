/* The options of a weir_input_config, the same in all programs that read files. */
#ifndef TOOLS_RECORD_INPUT_OPTIONS_H
#define TOOLS_RECORD_INPUT_OPTIONS_H

#include "tools/cli/options.h"

/* The offsets are those of weir_input_config. */
extern const option_row input_rows[];

#endif
