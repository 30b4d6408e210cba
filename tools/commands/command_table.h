/* One line for each subcommand, in the order of the help. */
#ifndef TOOLS_COMMANDS_COMMAND_TABLE_H
#define TOOLS_COMMANDS_COMMAND_TABLE_H

#include "tools/cli/command.h"

extern const tool_command tool_summary;
extern const tool_command tool_explain;
extern const tool_command tool_query;
extern const tool_command tool_failures;
extern const tool_command tool_slowest;
extern const tool_command tool_compare;
extern const tool_command tool_whatif;
extern const tool_command tool_watch;
extern const tool_command tool_plot;
extern const tool_command tool_report;
extern const tool_command tool_export;
extern const tool_command tool_trace;
extern const tool_command tool_fleet;
extern const tool_command tool_merge;
extern const tool_command tool_check;
extern const tool_command tool_record;
extern const tool_command tool_profile;
extern const tool_command tool_frames;
extern const tool_command tool_index;

/* Of commands that need FFmpeg: `weir` lists them without loading it. */
#define TOOL_RECORD_SUMMARY  "decode a dataset and record where the time goes"
#define TOOL_PROFILE_SUMMARY "measure each stage alone, with several numbers of slots"
#define TOOL_FRAMES_SUMMARY  "decode videos to arrays, pictures or raw video, or describe one"
#define TOOL_INDEX_SUMMARY   "index a dataset: sizes, durations, labels, broken files"

#endif
