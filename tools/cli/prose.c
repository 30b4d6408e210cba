#include "tools/cli/prose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/redact.h"
#include "common/text_escape.h"
#include "common/text_fill.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"

/* Lines that programs read, or that are copied, stay whole. */
static bool is_prose(const char *line)
{
    static const char *const others[] = { "Stage: ", "Queue: ", "Database: ", "C: " };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(line, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

void prose_put_lines(FILE *out, const char *text, size_t width)
{
    for (const char *next; *text; text = next) {
        size_t length = strcspn(text, "\n"), indent = strspn(text, " ");
        next = text + length + (text[length] != '\0');
        if (weir__text_columns(text, length) <= width || !is_prose(text + indent)) {
            fwrite(text, 1, (size_t)(next - text), out);
            continue;
        }
        fprintf(out, "%*s", (int)indent, "");
        weir__text_fill(out, text + indent, text + length, indent + 2, indent, width);
    }
}

void prose_line(FILE *out, const char *format, ...)
{
    char *text;
    va_list values;
    va_start(values, format);
    text = memory_format_list(format, values);
    va_end(values);
    weir__text_escape_to(out, text);
    fputc('\n', out);
    free(text);
}

static struct {
    const char *const *words;
    size_t num_words;
} command_line;

void prose_set_words(char *const *words, int num_words)
{
    command_line.words = (const char *const *)words;
    command_line.num_words = (size_t)num_words;
}

void prose_say(const char *program, const char *format, va_list values)
{
    char *text = memory_format_list(format, values);
    fflush(stdout); /* keeps the order if stdout and stderr are the same file */
    weir__text_redact_about(text, command_line.words, command_line.num_words);
    prose_line(stderr, "%s: %s", program, text);
    free(text);
}

void prose_open(prose *p)
{
    *p = (prose){ .file = stdout, .width = isatty(STDOUT_FILENO) ? (size_t)tty_width() : 0 };
    if (p->width)
        p->file = memory_file_open(&p->text, &p->size);
}

int prose_end(prose *p, int status, weir_error *error)
{
    if (p->file != stdout)
        memory_file_close(p->file);
    if (p->text)
        prose_put_lines(stdout, p->text, p->width);
    free(p->text);
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != WEIR_OK)
        return status;
    int code = errno ? errno : EIO;
    return weir_error_set(error, WEIR_EIO, -code, "cannot print: %s", strerror(code));
}
