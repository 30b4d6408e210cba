#include "tools/cli/list_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/memory.h"

static size_t count_lines(const char *text)
{
    size_t count = 1;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

char *list_text_read(FILE *file, char problem[256])
{
    char *text = NULL;
    size_t size = 0;
    ssize_t length = getdelim(&text, &size, '\0', file);
    if (ferror(file) || (length < 0 && !feof(file))) /* getdelim() returns what it has if a later read fails */
        snprintf(problem, 256, "%s", strerror(errno));
    else if (length > 0 && text[length - 1] == '\0')
        snprintf(problem, 256, "line %zu: it has a NUL byte; write one path per line, as plain text",
                 count_lines(text));
    else if (length >= 0)
        return text;
    else {
        free(text);
        return memory_copy("");
    }
    free(text);
    return NULL;
}
