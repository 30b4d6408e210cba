/* What a recording says on stderr, and its exit statuses. */
#ifndef TOOLS_RECORD_RECORD_MESSAGES_H
#define TOOLS_RECORD_RECORD_MESSAGES_H

#include <weir/query.h>

#include "tools/record/record_settings.h"

enum {
    RECORD_DONE = 0,
    RECORD_FAILED = 1,  /* the run failed, nothing could be decoded, or the database does not hold all of it */
    RECORD_REFUSED = 2, /* nothing was done: options, inputs, database */
    RECORD_SIGNAL = 128 /* + the number of the signal that stopped the run */
};

/* One line on stderr, after the program's name. Returns RECORD_REFUSED. */
int record_refuse(const record_settings *settings, const char *format, ...) WEIR_PRINTF(2, 3);

/* With --quiet, instead of the summary: says how many files failed, if any did. */
void record_tell_failures(const record_settings *settings, uint64_t num_failures, uint64_t num_files,
                          const char *db_path);

/* Says that nothing could be decoded. Returns RECORD_FAILED. */
int record_tell_useless(const record_settings *settings, uint64_t num_failures);

/* Prints the end screen of the runs that match, or the full summary and the failures. Returns what
   weir_summary_write() returns. */
int record_print_summary(const record_settings *settings, weir_recording *recording, const weir_filter *filter,
                         weir_error *error);

/* Returns RECORD_DONE, or says why there is no summary: RECORD_FAILED. */
int record_end_summary(const record_settings *settings, int status, const weir_error *error);

#endif
