#include "trace_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_text.h"

#ifdef WEIR_HAVE_ZLIB
#include <zlib.h> /* reads files that are not compressed, too */
#else
typedef FILE *gzFile;
#define gzopen          fopen
#define gzread(f, d, n) ((int)fread(d, 1, n, f))
#define gzclose         fclose
#endif

enum { BLOCK = 1 << 16, MAX_EVENT = 1 << 26 };

struct weir_trace_reader {
    gzFile file;
    char block[BLOCK];
    int length, position; /* in the block */
    weir_trace_text event;
    bool ended, is_cut;
    int failure;
};

/* Of what has been read; damage in a compressed file is a cut. */
static int read_failure(gzFile file)
{
#ifdef WEIR_HAVE_ZLIB
    int code;
    gzerror(file, &code);
    return code == Z_MEM_ERROR ? ENOMEM : code != Z_ERRNO ? 0 : errno ? errno : EIO;
#else
    return ferror(file) ? EIO : 0;
#endif
}

static int next_char(weir_trace_reader *reader)
{
    if (reader->position == reader->length) {
        reader->length = gzread(reader->file, reader->block, BLOCK);
        reader->position = 0;
        if (reader->length <= 0) {
            reader->failure = read_failure(reader->file);
            reader->length = 0;
            return EOF;
        }
    }
    return (unsigned char)reader->block[reader->position++];
}

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int next_token(weir_trace_reader *reader)
{
    int c;
    do
        c = next_char(reader);
    while (is_space(c));
    return c;
}

/* Reads the rest of the string, object or array that began with this character into reader->event. False = the file
   ends in it. */
static bool read_value(weir_trace_reader *reader, int c)
{
    int depth = 0;
    bool in_string = false;
    reader->event.length = 0;
    for (; c != EOF && reader->event.length < MAX_EVENT; c = next_char(reader)) {
        char byte = (char)c;
        weir_trace_put(&reader->event, &byte, 1);
        if (in_string && c == '\\') {
            byte = (char)next_char(reader);
            weir_trace_put(&reader->event, &byte, 1);
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
        if (!in_string && depth == 0) {
            weir_trace_put(&reader->event, "", 1);
            return !reader->event.no_memory;
        }
    }
    return false;
}

/* Goes to the array of events. */
static bool find_events(weir_trace_reader *reader)
{
    int c = next_token(reader);
    if (c == '[')
        return true;
    if (c != '{')
        return false;
    for (c = next_token(reader); c == '"'; c = next_token(reader)) {
        if (!read_value(reader, c) || next_token(reader) != ':')
            return false;
        bool found = strcmp(reader->event.data, "\"traceEvents\"") == 0;
        c = next_token(reader);
        if (found)
            return c == '[';
        if (c == '{' || c == '[' || c == '"') {
            if (!read_value(reader, c))
                return false;
            c = next_token(reader);
        }
        while (c != ',' && c != '}' && c != EOF)
            c = next_char(reader);
    }
    return false;
}

const char *weir_trace_reader_next(weir_trace_reader *reader)
{
    if (reader->ended)
        return NULL;
    int c = next_token(reader);
    if (c == ',')
        c = next_token(reader);
    if (c == '{' && read_value(reader, c))
        return reader->event.data;
    reader->ended = true;
    reader->is_cut = c != ']';
    return NULL;
}

bool weir_trace_reader_is_cut(const weir_trace_reader *reader)
{
    return reader->is_cut;
}

int weir_trace_reader_failure(const weir_trace_reader *reader)
{
    return reader->event.no_memory ? ENOMEM : reader->failure;
}

int weir_trace_reader_open(const char *path, weir_trace_reader **opened)
{
    weir_trace_reader *reader = *opened = calloc(1, sizeof *reader);
    if (!reader)
        return ENOMEM;
    errno = 0;
    reader->file = gzopen(path, "rb");
    int failure = reader->file ? 0 : errno ? errno : ENOMEM;
    if (failure == 0 && !find_events(reader))
        failure = errno == EISDIR ? EISDIR : EBADMSG;
    if (failure == 0)
        return 0;
    weir_trace_reader_close(reader);
    *opened = NULL;
    return failure;
}

void weir_trace_reader_close(weir_trace_reader *reader)
{
    if (!reader)
        return;
    if (reader->file)
        gzclose(reader->file);
    weir_trace_text_free(&reader->event);
    free(reader);
}

/* ---- values -------------------------------------------------------------------------------------------------- */

static const char *skip_space(const char *text)
{
    while (is_space((unsigned char)*text))
        text++;
    return text;
}

static const char *skip_string(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        text += *text == '\\' && text[1];
    return *text ? text + 1 : text;
}

static const char *skip_value(const char *text)
{
    int depth = 0;
    do {
        if (*text == '"') {
            text = skip_string(text);
            continue;
        }
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        text++;
    } while (*text && (depth > 0 || !strchr(",}]", *text)));
    return text;
}

weir_trace_value weir_trace_member(const char *object, const char *key)
{
    size_t length = strlen(key);
    const char *text = object ? skip_space(object) : "";
    text += *text == '{';
    while (*(text = skip_space(text)) == '"') {
        const char *name = text + 1;
        text = skip_space(skip_string(text));
        bool found = strncmp(name, key, length) == 0 && name[length] == '"';
        text = skip_space(text + (*text == ':'));
        const char *end = skip_value(text);
        if (found)
            return (weir_trace_value){ text, (size_t)(end - text) };
        text = skip_space(end);
        text += *text == ',';
    }
    return (weir_trace_value){ 0 };
}

int64_t weir_trace_value_ns(weir_trace_value value)
{
    const int64_t limit = WEIR_TRACE_MAX_NS;
    char *end;
    if (!value.text)
        return 0;
    int64_t us = strtoll(value.text, &end, 10), ns = 0, unit = 100;
    bool negative = *value.text == '-';
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
            ns += (*end - '0') * unit;
    if (*end == 'e' || *end == 'E') {
        double real_ns = strtod(value.text, NULL) * 1000;
        return real_ns > -(double)limit && real_ns < (double)limit ? (int64_t)real_ns : 0;
    }
    return us < limit / 1000 && us > -limit / 1000 ? us * 1000 + (negative ? -ns : ns) : 0;
}

int64_t weir_trace_value_int(weir_trace_value value)
{
    return value.text ? strtoll(value.text + (*value.text == '"'), NULL, 10) : 0;
}

const char *weir_trace_value_string(weir_trace_value value, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 1; value.text && *value.text == '"' && i + 1 < value.length && length + 1 < size; i++) {
        char c = value.text[i];
        if (c == '\\' && ++i + 1 < value.length) {
            const char *found = strchr("n\nt\tr\rb\bf\f", value.text[i]);
            c = found ? found[1] : value.text[i];
            if (c == 'u') { /* written for control characters only */
                c = '?';
                i += 4;
            }
        }
        text[length++] = c;
    }
    text[length] = '\0';
    return text;
}

bool weir_trace_value_is(weir_trace_value value, const char *string)
{
    size_t length = strlen(string);
    return value.text && value.length == length + 2 && value.text[0] == '"' &&
           strncmp(value.text + 1, string, length) == 0;
}
