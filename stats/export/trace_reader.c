#include "stats/export/trace_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/export/trace_text.h"

#ifdef WEIR_HAVE_ZLIB
#include <zlib.h> /* reads files that are not compressed, too */
#else
typedef FILE *gzFile;
#define gzopen  fopen
#define gzgetc  getc
#define gzclose fclose
#endif

enum { MAX_EVENT = 1 << 26 };

struct weir_trace_reader {
    gzFile file;
    weir_trace_text text; /* of the last value */
    bool has_ended, is_cut;
};

/* The failure of what has been read. Damage in a compressed file counts as a cut. */
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

static int next_token(weir_trace_reader *reader)
{
    int c;
    do
        c = gzgetc(reader->file);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    return c;
}

/* Reads the rest of the string, object or array that began with this character into reader->text. False = the file ends
   in it. */
static bool read_value(weir_trace_reader *reader, int c)
{
    int depth = 0;
    bool in_string = false, is_escaped = false;
    reader->text.length = 0;
    for (; c != EOF && reader->text.length < MAX_EVENT; c = gzgetc(reader->file)) {
        weir__trace_put(&reader->text, &(char){ (char)c }, 1);
        if (c == '"' && !is_escaped)
            in_string = !in_string;
        else if (!in_string)
            depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        is_escaped = in_string && c == '\\' && !is_escaped;
        if (!in_string && depth == 0) {
            weir__trace_put(&reader->text, "", 1);
            return !reader->text.no_memory;
        }
    }
    return false;
}

/* Goes to the array of events. */
static bool find_events(weir_trace_reader *reader)
{
    int c = next_token(reader);
    bool is_object = c == '{';
    while (is_object && (c = next_token(reader)) == '"' && read_value(reader, c) && next_token(reader) == ':') {
        bool is_found = strcmp(reader->text.data, "\"traceEvents\"") == 0;
        c = next_token(reader);
        if (is_found)
            break;
        if ((c == '{' || c == '[' || c == '"') && read_value(reader, c))
            c = next_token(reader);
        while (c != ',' && c != EOF)
            c = gzgetc(reader->file);
    }
    return c == '[';
}

const char *weir__trace_reader_next(weir_trace_reader *reader)
{
    int c = reader->has_ended ? EOF : next_token(reader);
    if (c == ',')
        c = next_token(reader);
    if (c == '{' && read_value(reader, c))
        return reader->text.data;
    reader->is_cut |= !reader->has_ended && c != ']';
    reader->has_ended = true;
    return NULL;
}

bool weir__trace_reader_is_cut(const weir_trace_reader *reader)
{
    return reader->is_cut;
}

int weir__trace_reader_open(const char *path, weir_trace_reader **opened)
{
    weir_trace_reader *reader = *opened = calloc(1, sizeof *reader);
    if (!reader)
        return ENOMEM;
    errno = 0;
    reader->file = gzopen(path, "rb");
    int failure = reader->file ? 0 : errno ? errno : ENOMEM;
    if (reader->file && !find_events(reader))
        failure = errno == EISDIR ? EISDIR : reader->text.no_memory ? ENOMEM : EBADMSG;
    if (failure == 0)
        return 0;
    weir__trace_reader_close(reader);
    *opened = NULL;
    return failure;
}

int weir__trace_reader_close(weir_trace_reader *reader)
{
    int failure = 0;
    if (reader && reader->file) {
        failure = reader->text.no_memory ? ENOMEM : read_failure(reader->file);
        gzclose(reader->file);
    }
    if (reader)
        weir__trace_text_free(&reader->text);
    free(reader);
    return failure;
}
