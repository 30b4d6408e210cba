/*
 * The widths are those of the C library, which follows Unicode: wcwidth() in the locale C.UTF-8, which glibc (Debian's libc-bin)
 * and musl always have. Programs run in any locale, the plain C locale included, and libraries must not change it: the
 * locale is that of the calling thread, for the time of a call. Without C.UTF-8 every character has one column.
 */
#include "common/text_columns.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#include "common/utf8.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t unicode; /* written once, never freed; 0 = there is none */

static void make_locale(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* The columns of the character at the text, and its length in bytes, at least 1. */
static size_t measure_character(const char *text, size_t *length)
{
    *length = weir__utf8_length(text);
    if (*length <= 1 || !unicode) {
        *length += *length == 0;
        return 1;
    }
    int columns = wcwidth((wchar_t)weir__utf8_decode(text, *length));
    return columns < 0 ? 1 : (size_t)columns; /* newer than the C library */
}

/* The first bytes need `columns` at most; *used: how many. */
static size_t measure_text(const char *text, size_t length, size_t columns, size_t *used)
{
    size_t at = 0, next;
    *used = 0;
    while (at < length) {
        size_t more = measure_character(text + at, &next);
        if (*used + more > columns)
            break;
        *used += more;
        at += next;
    }
    return at < length ? at : length;
}

static bool is_ascii(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && (unsigned char)text[at] < 0x80)
        at++;
    return at == length;
}

static size_t measure_unicode(const char *text, size_t length, size_t columns, size_t *used)
{
    pthread_once(&once, make_locale);
    locale_t before = unicode ? uselocale(unicode) : (locale_t)0;
    size_t fitting = measure_text(text, length, columns, used);
    if (unicode)
        uselocale(before);
    return fitting;
}

size_t weir__text_columns(const char *text, size_t length)
{
    size_t used = length;
    if (!is_ascii(text, length))
        measure_unicode(text, length, (size_t)-1, &used);
    return used;
}

size_t weir__text_cut(const char *text, size_t columns)
{
    size_t used, length = strlen(text);
    if (is_ascii(text, length))
        return length < columns ? length : columns;
    return measure_unicode(text, length, columns, &used);
}
