#include "tools/commands/command_table.h"

#ifdef WEIR_MEDIA /* they are in weir-media, which this program becomes to run them */
const tool_command tool_record = { .name = "record", .summary = TOOL_RECORD_SUMMARY };
const tool_command tool_profile = { .name = "profile", .summary = TOOL_PROFILE_SUMMARY };
const tool_command tool_frames = { .name = "frames", .summary = TOOL_FRAMES_SUMMARY };
const tool_command tool_index = { .name = "index", .summary = TOOL_INDEX_SUMMARY };
#endif

/* clang-format off */
const tool_command *const tool_commands[] = {
#if defined WEIR_HAVE_STAGES || defined WEIR_MEDIA
    &tool_record,
    &tool_profile,
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
#if defined WEIR_HAVE_STAGES || defined WEIR_MEDIA
    &tool_frames,
    &tool_index,
#endif
    NULL,
};
/* clang-format on */
