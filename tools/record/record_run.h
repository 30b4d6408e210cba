/*
 * One recording: decodes files in a pipeline, records its statistics in a database and prints the summary. Shared by
 * `weir record` and examples/performance_analysis.c. stdout holds the summary; log, progress, errors and hints go to
 * stderr.
 */
#ifndef TOOLS_RECORD_RECORD_RUN_H
#define TOOLS_RECORD_RECORD_RUN_H

#include "tools/record/record_messages.h"

/* A paragraph for help texts. */
#define RECORD_SIGNALS_HELP \
    "Ctrl-C (or SIGTERM) stops the run, and the summary of what was done follows; another one after a second or " \
    "more kills it. The exit " \
    "status is then 130 (143 for SIGTERM). SIGUSR1 prints the current state of every slot, queue and task to " \
    "stderr."

/* Does the whole run, once per process. Returns the exit status. Does not free the settings. */
int record_run(const record_settings *settings);

#endif
