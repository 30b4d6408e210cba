#include "commands.h"

const tool_command *const tool_commands[] = {
    &tool_summary, &tool_watch, &tool_plot, &tool_export, NULL,
};
