/* The operation that runs in a child, and its config, in the first message to it. Internal. */
#ifndef STAGES_ISOLATE_ISOLATED_CONFIG_H
#define STAGES_ISOLATE_ISOLATED_CONFIG_H

#include <weir/op.h>

#include "message.h"

/* The decode stages of weir, which every worker program knows; NULL at the end. */
extern const weir_op *const weir__isolated_own_ops[];

/* Puts the config, op->config_size bytes, as it was given by the user. */
void weir__isolated_put_config(isolated_message *message, const weir_op *op, const void *config);

/* Where a config of op has its ca_file; NULL = it has none. */
const char **weir__isolated_ca_file(const weir_op *op, void *config);

/* The config that was put, never freed; NULL, with is_bad set, if it is not one of op. */
void *weir__isolated_get_config(isolated_message *message, const weir_op *op);

#endif
