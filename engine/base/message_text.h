/* Private to the engine: messages, without the secrets of URLs. Any thread. */
#ifndef ENGINE_BASE_MESSAGE_TEXT_H
#define ENGINE_BASE_MESSAGE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#include <weir/log.h>

/* Formats the message. It is cut to size_bytes after secrets have been hidden, so that none loses its name or its "@".
   about: an address that it may quote (NULL = none); that of a local file stays readable. */
void weir__message_format(char *message, size_t size_bytes, const char *about, const char *format, va_list arguments);

/* Logs a line of parts that have no secrets: labels and formatted messages. See weir_log(). */
void weir__log_shown(weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
