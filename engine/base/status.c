#include <weir/status.h>

#include <stdarg.h>
#include <stdio.h>

#include "common/redact.h"
#include "engine/base/message_text.h"

const char *weir_status_name(int status)
{
    switch (status) {
#define WEIR_STATUS_NAME(name, value, text) \
    case value: return "WEIR_" #name;
        WEIR_STATUS_TABLE(WEIR_STATUS_NAME)
#undef WEIR_STATUS_NAME
    default: return "WEIR_?";
    }
}

const char *weir_status_text(int status)
{
    switch (status) {
#define WEIR_STATUS_TEXT(name, value, text) \
    case value: return text;
        WEIR_STATUS_TABLE(WEIR_STATUS_TEXT)
#undef WEIR_STATUS_TEXT
    default: return "unknown status";
    }
}

int(weir_error_set)(weir_error *error, int status, int library_code, const char *format, ...)
{
    if (!format)
        return WEIR_EINVAL;
    if (!error || error->status)
        return status;

    va_list arguments;
    va_start(arguments, format);
    weir__message_format(error->message, sizeof error->message, NULL, format, arguments);
    va_end(arguments);
    error->status = status;
    error->library_code = library_code;
    return status;
}

int weir_error_format(const weir_error *error, char *line, size_t size)
{
    if (!error || !line)
        return WEIR_EINVAL;
    if (!error->status)
        return snprintf(line, size, "%s", "");
    return snprintf(line, size, "%s%s%s%s%s (%s)", error->stage, error->stage[0] ? ": " : "", error->label,
                    error->label[0] ? ": " : "", error->message, weir_status_name(error->status));
}

enum { MAX_MESSAGE = 4096 };

void weir__message_format(char *message, size_t size_bytes, const char *about, const char *format, va_list arguments)
{
    char whole[MAX_MESSAGE];
    vsnprintf(whole, sizeof whole, format, arguments);
    weir__text_redact_about(whole, &about, about != NULL);
    snprintf(message, size_bytes, "%s", whole);
}
