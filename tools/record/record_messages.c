#include "tools/record/record_messages.h"
#include "tools/cli/prose.h"
#include "tools/view/run_screen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/summary.h>
#include <weir/verdict.h>

enum { MAX_LISTED_FAILURES = 10 };

int record_refuse(const record_settings *settings, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    prose_say(settings->program, format, values);
    va_end(values);
    return RECORD_REFUSED;
}

int record_tell_useless(const record_settings *settings, uint64_t num_failures)
{
    record_refuse(settings, "nothing could be decoded (%llu failed)", (unsigned long long)num_failures);
    return RECORD_FAILED;
}

void record_tell_failures(const record_settings *settings, uint64_t num_failures, uint64_t num_files,
                          const char *db_path)
{
    if (num_failures > 0)
        record_refuse(settings, "%llu of %llu files failed; weir failures %s says why",
                      (unsigned long long)num_failures, (unsigned long long)num_files, db_path);
}

int record_print_summary(const record_settings *settings, weir_recording *recording, const weir_filter *filter,
                         weir_error *error)
{
    prose text;
    if (!settings->has_full_summary)
        return run_screen_print(recording, filter, NULL, settings->weir, error);
    prose_open(&text);
    int status = weir_summary_write(text.file, recording, filter, NULL, weir_verdict_write_limit, error);
    status = prose_end(&text, status, error);
    if (status == WEIR_OK) /* not as prose: file names stay as they are */
        status = weir_summary_write_failures(stdout, recording, filter, MAX_LISTED_FAILURES, error);
    return status;
}

int record_end_summary(const record_settings *settings, int status, const weir_error *error)
{
    if (status != WEIR_OK)
        record_refuse(settings, "no summary: %s", error->message);
    return status == WEIR_OK ? RECORD_DONE : RECORD_FAILED;
}
