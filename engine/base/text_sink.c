#include <errno.h>
#include <stdlib.h>

#include <weir/output.h>

typedef struct text_sink {
    weir_text_function *write;
    void *self;
} text_sink;

static ssize_t pass_text(void *cookie, const char *text, size_t size_bytes)
{
    const text_sink *sink = cookie;
    if (size_bytes == 0 || sink->write(sink->self, text, size_bytes) == WEIR_OK)
        return (ssize_t)size_bytes;
    errno = EIO;
    return 0; /* for this kind of stream, a failure */
}

static int free_sink(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *weir_text_open(weir_text_function *write, void *self)
{
    text_sink *sink = write ? malloc(sizeof *sink) : NULL;
    if (!sink)
        return NULL;
    *sink = (text_sink){ write, self };
    FILE *stream = fopencookie(sink, "w", (cookie_io_functions_t){ .write = pass_text, .close = free_sink });
    if (!stream)
        free(sink);
    return stream;
}
