/* The options of a weir_decoder_config, the same in all programs that decode. */
#ifndef TOOLS_RECORD_DECODER_OPTIONS_H
#define TOOLS_RECORD_DECODER_OPTIONS_H

#include "tools/cli/options.h"

/* The offsets are those of weir_decoder_config. */
extern const option_row decoder_rows[];

#endif
