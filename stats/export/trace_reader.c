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
        weir__trace_put(&reader->event, &byte, 1);
        if (in_string && c == '\\') {
            byte = (char)next_char(reader);
            weir__trace_put(&reader->event, &byte, 1);
        } else if (c == '"') {
            in_string = !in_string;
        } else if (!in_string) {
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        }
        if (!in_string && depth == 0) {
            weir__trace_put(&reader->event, "", 1);
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

const char *weir__trace_reader_next(weir_trace_reader *reader)
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

bool weir__trace_reader_is_cut(const weir_trace_reader *reader)
{
    return reader->is_cut;
}

int weir__trace_reader_failure(const weir_trace_reader *reader)
{
    return reader->event.no_memory ? ENOMEM : reader->failure;
}

int weir__trace_reader_open(const char *path, weir_trace_reader **opened)
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
    weir__trace_reader_close(reader);
    *opened = NULL;
    return failure;
}

void weir__trace_reader_close(weir_trace_reader *reader)
{
    if (!reader)
        return;
    if (reader->file)
        gzclose(reader->file);
    weir__trace_text_free(&reader->event);
    free(reader);
}
