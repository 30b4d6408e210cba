#include "common/text_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_stream {
    char **text;
    size_t *size;
    size_t room;
    bool lacks_memory;
} text_stream;

static bool make_room(text_stream *s, size_t needed)
{
    if (needed <= s->room)
        return true;
    size_t room = 2 * needed;
    char *grown = room > needed ? realloc(*s->text, room) : NULL;
    if (!grown)
        return false;
    *s->text = grown;
    s->room = room;
    return true;
}

static ssize_t append_text(void *cookie, const char *bytes, size_t count)
{
    text_stream *s = cookie;
    if (s->lacks_memory || !make_room(s, *s->size + count + 1)) {
        s->lacks_memory = true;
        return 0;
    }
    memcpy(*s->text + *s->size, bytes, count);
    *s->size += count;
    (*s->text)[*s->size] = '\0';
    return (ssize_t)count;
}

static int close_stream(void *cookie)
{
    text_stream *s = cookie;
    bool lacks_memory = s->lacks_memory;
    if (lacks_memory) {
        free(*s->text);
        *s->text = NULL;
        *s->size = 0;
    }
    free(s);
    return lacks_memory ? EOF : 0;
}

FILE *weir__text_stream(char **text, size_t *size)
{
    text_stream *s = calloc(1, sizeof *s);
    *text = calloc(1, 1);
    *size = 0;
    if (s)
        *s = (text_stream){ .text = text, .size = size, .room = 1 };
    FILE *stream = s && *text
                       ? fopencookie(s, "w", (cookie_io_functions_t){ .write = append_text, .close = close_stream })
                       : NULL;
    if (stream)
        return stream;
    free(*text);
    free(s);
    *text = NULL;
    return NULL;
}
