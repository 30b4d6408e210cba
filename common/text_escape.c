/* Escapes text for a terminal. UTF-8 as defined by RFC 3629: no overlong forms, no surrogates, up to U+10FFFF. */
#include "common/text_escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The character at `text`; returns its length in bytes, 0 = invalid. */
static size_t read_character(const unsigned char *text, uint32_t *character)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t num_bytes = text[0] < 0x80 ? 1 : text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (num_bytes < 2 || text[0] > 0xf4) {
        *character = text[0];
        return num_bytes == 1;
    }
    *character = text[0] & (0x7fu >> num_bytes);
    for (size_t i = 1; i < num_bytes; i++) {
        if (!is_continuation(text[i])) /* the terminating NUL is not one, either */
            return 0;
        *character = *character << 6 | (text[i] & 0x3fu);
    }
    bool is_surrogate = *character >= 0xd800 && *character < 0xe000;
    return *character < least[num_bytes] || *character > 0x10ffff || is_surrogate ? 0 : num_bytes;
}

static bool is_harmless(uint32_t character)
{
    bool is_control = character < 0x20 || (character >= 0x7f && character < 0xa0);
    bool is_direction = character == 0x61c || character == 0x200e || character == 0x200f ||
                        (character >= 0x202a && character <= 0x202e) || (character >= 0x2066 && character <= 0x2069);
    bool is_separator = character == 0x2028 || character == 0x2029;
    return !is_control && !is_direction && !is_separator;
}

/* Writes "\n", "\x1b" or "\u202e" to `to`; returns its length. */
static size_t write_escape(uint32_t character, char to[8])
{
    static const char digits[] = "0123456789abcdef";
    size_t length = 0;
    to[length++] = '\\';
    if (character == '\n') {
        to[length++] = 'n';
        return length;
    }
    to[length++] = character < 0x100 ? 'x' : 'u';
    for (int shift = character < 0x100 ? 4 : 12; shift >= 0; shift -= 4)
        to[length++] = digits[character >> shift & 0xf];
    return length;
}

/* Gets the next character of *text, unchanged or escaped, and returns its length. 0 = the end. */
static size_t next_shown(const unsigned char **text, char escape[8], const char **shown)
{
    uint32_t character;
    const unsigned char *from = *text;
    if (!*from)
        return 0;
    size_t taken = read_character(from, &character);
    *text += taken ? taken : 1;
    if (taken > 0 && is_harmless(character)) {
        *shown = (const char *)from;
        return taken;
    }
    *shown = escape;
    return write_escape(taken ? character : *from, escape);
}

size_t weir__text_escape(const char *text, char *escaped, size_t size_bytes)
{
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    const char *shown;
    char escape[8];
    size_t length = 0, written = 0, given;
    while ((given = next_shown(&from, escape, &shown)) > 0) {
        if (length == written && written + given < size_bytes) {
            memcpy(escaped + written, shown, given);
            written += given;
        }
        length += given;
    }
    if (size_bytes > 0)
        escaped[written] = '\0';
    return length;
}

void weir__text_escape_to(FILE *stream, const char *text)
{
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    const char *shown;
    char escape[8];
    size_t given;
    while (stream && (given = next_shown(&from, escape, &shown)) > 0)
        fwrite(shown, 1, given, stream);
}
