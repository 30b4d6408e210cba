/* External text in formats that only allow UTF-8. */
#ifndef COMMON_UTF8_H
#define COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the byte continues a character. */
static inline bool weir__utf8_continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The second byte's range excludes overlong forms, surrogates and code points above U+10FFFF. */
static inline bool weir__utf8_second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xe0: return second >= 0xa0 && second <= 0xbf;
    case 0xed: return second >= 0x80 && second <= 0x9f;
    case 0xf0: return second >= 0x90 && second <= 0xbf;
    case 0xf4: return second >= 0x80 && second <= 0x8f;
    default: return weir__utf8_continues(second);
    }
}

/* The number of bytes of the character at `text`, which is NUL-terminated; 0 = not valid UTF-8. */
static inline size_t weir__utf8_length(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c < 0x80)
        return 1;
    size_t length = *c >= 0xc2 && *c <= 0xdf ? 2 : (*c & 0xf0) == 0xe0 ? 3 : *c >= 0xf0 && *c <= 0xf4 ? 4 : 0;
    if (length == 0 || !weir__utf8_second_fits(c[0], c[1]))
        return 0;
    for (size_t i = 2; i < length; i++)
        if (!weir__utf8_continues(c[i]))
            return 0;
    return length;
}

/* The code point of a valid character of this length. */
static inline unsigned long weir__utf8_decode(const char *text, size_t length)
{
    const unsigned char *c = (const unsigned char *)text;
    unsigned long character = length == 1 ? c[0] : c[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        character = character << 6 | (c[i] & 0x3fu);
    return character;
}

#endif
