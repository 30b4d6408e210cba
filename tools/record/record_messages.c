#include "record_messages.h"
#include "redact.h"
#include "text_escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_MESSAGE = 8192 };

int record_refuse(const record_settings *settings, const char *format, ...)
{
    char text[MAX_MESSAGE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    weir__text_redact(text);
    fprintf(stderr, "%s: ", settings->program);
    weir__text_escape_to(stderr, text); /* it may name files */
    fputc('\n', stderr);
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

int record_close_summary(prose *text, int status, weir_error *error)
{
    int failure = prose_close(text);
    if (status == WEIR_OK && failure)
        status = weir_error_set(error, WEIR_EIO, -failure, "cannot print: %s", strerror(failure));
    return status;
}

int record_end_summary(const record_settings *settings, int status, const weir_error *error)
{
    if (status != WEIR_OK)
        record_refuse(settings, "no summary: %s", error->message);
    return status == WEIR_OK ? RECORD_DONE : RECORD_FAILED;
}
