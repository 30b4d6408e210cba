/* Private to the engine: messages, without the secrets of URLs. Any thread. */
#ifndef ENGINE_BASE_MESSAGE_TEXT_H
#define ENGINE_BASE_MESSAGE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* Formats the message. It is cut to size_bytes after secrets have been hidden, so that none loses its name or its "@". */
void weir__message_format(char *message, size_t size_bytes, const char *format, va_list arguments);

#endif
