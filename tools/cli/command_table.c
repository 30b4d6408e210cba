#include "command_table.h"

/* clang-format off */
const tool_command *const tool_commands[] = {
#ifdef WEIR_HAVE_STAGES
    &tool_record,
#endif
    &tool_summary,
    &tool_explain,
    &tool_query,
    &tool_failures,
    &tool_slowest,
    &tool_compare,
    &tool_whatif,
    &tool_watch,
    &tool_plot,
    &tool_report,
    &tool_export,
    &tool_trace,
    &tool_fleet,
    &tool_merge,
    &tool_check,
#ifdef WEIR_HAVE_STAGES
    &tool_frames,
    &tool_index,
#endif
    NULL,
};
/* clang-format on */
