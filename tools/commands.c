#include "commands.h"

/* clang-format off */
const tool_command *const tool_commands[] = {
    &tool_summary,
    &tool_query,
    &tool_failures,
    &tool_slowest,
    &tool_watch,
    &tool_plot,
    &tool_export,
    NULL,
};
/* clang-format on */
