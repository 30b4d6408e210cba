#include "stats/export/trace_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/utf8.h"

void weir__trace_text_free(weir_trace_text *text)
{
    free(text->data);
    *text = (weir_trace_text){ 0 };
}

void weir__trace_put(weir_trace_text *text, const char *data, size_t length)
{
    if (text->length + length > text->room) {
        size_t room = text->room ? 2 * text->room : 4096;
        while (room < text->length + length)
            room *= 2;
        char *grown = realloc(text->data, room);
        text->no_memory |= !grown;
        if (!grown)
            return;
        text->data = grown;
        text->room = room;
    }
    if (length)
        memcpy(text->data + text->length, data, length);
    text->length += length;
}

uint64_t weir__trace_hash(const void *data, size_t length, uint64_t seed)
{
    return weir__hash(WEIR__HASH_START ^ seed, data, length);
}

void weir__trace_puts(weir_trace_text *text, const char *string)
{
    weir__trace_put(text, string, strlen(string));
}

/* printf would take most of the time of a trace. */
static char *format_int(char *end, uint64_t number, int least_digits)
{
    for (; number || least_digits > 0; number /= 10, least_digits--)
        *--end = (char)('0' + number % 10);
    return end;
}

void weir__trace_put_int(weir_trace_text *text, int64_t number)
{
    char digits[24], *end = digits + sizeof digits;
    char *begin = format_int(end, number < 0 ? -(uint64_t)number : (uint64_t)number, 1);
    if (number < 0)
        *--begin = '-';
    weir__trace_put(text, begin, (size_t)(end - begin));
}

static void put_us(weir_trace_text *text, int64_t ns)
{
    char digits[32], *end = digits + sizeof digits;
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    char *begin = format_int(end, size % 1000, 3);
    *--begin = '.';
    begin = format_int(begin, size / 1000, 1);
    if (ns < 0)
        *--begin = '-';
    weir__trace_put(text, begin, (size_t)(end - begin));
}

static void put_real(weir_trace_text *text, double number)
{
    char digits[40];
    int length = snprintf(digits, sizeof digits, "%.17g", number);
    char *comma = strchr(digits, ','); /* in some locales */
    if (comma)
        *comma = '.';
    weir__trace_put(text, digits, (size_t)length);
}

/* Bytes that are not UTF-8 become U+FFFD: viewers reject a file that contains anything else. */
static void put_json(weir_trace_text *text, const char *string)
{
    char escaped[8];
    weir__trace_put(text, "\"", 1);
    while (*string) {
        size_t plain = 0, length;
        while (string[plain] && string[plain] != '"' && string[plain] != '\\' &&
               (unsigned char)string[plain] >= ' ' && (length = weir__utf8_length(string + plain)) > 0)
            plain += length;
        weir__trace_put(text, string, plain);
        string += plain;
        unsigned char byte = (unsigned char)*string;
        if (byte == 0)
            break;
        if (byte >= 0x80)
            weir__trace_puts(text, "\\ufffd");
        else
            weir__trace_put(text, escaped,
                            (size_t)snprintf(escaped, sizeof escaped, byte < ' ' ? "\\u%04x" : "\\%c", byte));
        string++;
    }
    weir__trace_put(text, "\"", 1);
}

void weir__trace_putf(weir_trace_text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    for (;; format += 2) {
        size_t plain = (size_t)(strchrnul(format, '%') - format);
        weir__trace_put(text, format, plain);
        format += plain;
        if (!*format)
            break;
        switch (format[1]) {
        case 'd': weir__trace_put_int(text, va_arg(values, int64_t)); break;
        case 'u': put_us(text, va_arg(values, int64_t)); break;
        case 'f': put_real(text, va_arg(values, double)); break;
        case 'j': put_json(text, va_arg(values, const char *)); break;
        default: weir__trace_puts(text, va_arg(values, const char *)); break; /* s */
        }
    }
    va_end(values);
}

int weir__trace_text_write(const weir_trace_text *text, int file, int64_t at)
{
    for (size_t done = 0; done < text->length;) {
        ssize_t written = pwrite(file, text->data + done, text->length - done, at + (off_t)done);
        if (written < 0 && errno != EINTR)
            return errno;
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}
