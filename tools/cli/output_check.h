/* What every output of every command has to pass before any work is done (weir/output.h), with the option --force. */
#ifndef TOOLS_CLI_OUTPUT_CHECK_H
#define TOOLS_CLI_OUTPUT_CHECK_H

#include <weir/output.h>

#define OUTPUT_FORCE_HELP "replace a file of another kind, too; but never one that the command reads"

/* As weir_output_check(); the message names --force where that would allow it. */
int output_check(const char *path, weir_output_kind kind, const weir_output_rules *rules, weir_error *error);

#endif
