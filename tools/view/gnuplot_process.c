/*
 * gnuplot does not notice that it cannot write, for example to a full disk. So it writes to a pipe. Its commands come
 * from a file, because it writes before it has read all of them. Its messages go to a file, too: users see them only if
 * it fails, because it also warns of what does no harm.
 */
#include "tools/view/gnuplot_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tools/cli/memory.h"
#include "tools/view/plot_fonts.h"

const char gnuplot_missing[] = "gnuplot is not installed; plots need it (Debian and Ubuntu: apt install gnuplot-nox)";

static void copy(FILE *from, FILE *to)
{
    char block[1 << 14];
    size_t length;
    while ((length = fread(block, 1, sizeof block, from)) > 0)
        fwrite(block, 1, length, to);
}

/* The user's locale and settings do not change the picture: the commands are UTF-8, and -d ignores ~/.gnuplot. */
static bool run(FILE *commands, FILE *picture, FILE *messages, char *problem, size_t size)
{
    char line[200];
    snprintf(line, sizeof line, "LC_ALL=C.UTF-8 exec gnuplot -d - </dev/fd/%d 2>/dev/fd/%d", fileno(commands),
             fileno(messages));
    FILE *out = popen(line, "r"); /* NOLINT: a fixed command */
    if (!out) {
        snprintf(problem, size, "cannot start gnuplot: %s", strerror(errno));
        return false;
    }
    copy(out, picture);
    int how = pclose(out);
    if (how == 0)
        return true;
    bool is_missing = WIFEXITED(how) && WEXITSTATUS(how) == 127;
    snprintf(problem, size, "%s", is_missing ? gnuplot_missing : "gnuplot failed (see its messages above)");
    if (!is_missing)
        copy(messages, stderr);
    return false;
}

/* The fonts of an SVG are those of who looks at it. */
static void write_commands(FILE *commands, const drawing_plan *plan, const series_set *set)
{
    char *text;
    size_t size;
    FILE *drawing = memory_file_open(&text, &size);
    drawing_write(drawing, plan, set);
    memory_file_close(drawing);
    FILE *from = plan->medium == WEIR_OUTPUT_SVG ? NULL : fmemopen(text, size, "r");
    size_t num_replaced = 0;
    if (from)
        num_replaced = plot_fonts_copy(from, commands);
    else
        fwrite(text, 1, size, commands);
    if (from)
        fclose(from);
    if (num_replaced)
        fprintf(
            stderr,
            "weir: %zu characters in names are drawn as \"?\": no installed font has them (for Chinese, Japanese and "
            "Korean: apt install fonts-noto-cjk), or write a .svg\n",
            num_replaced);
    free(text);
}

bool gnuplot_run(const drawing_plan *plan, const series_set *set, FILE *picture, char *problem, size_t size)
{
    FILE *commands = tmpfile(), *messages = tmpfile();
    bool is_drawn = false;
    if (commands && messages)
        write_commands(commands, plan, set);
    if (commands && messages && fflush(commands) == 0 && !ferror(commands) && fflush(picture) == 0)
        is_drawn = run(commands, picture, messages, problem, size);
    else
        snprintf(problem, size, "cannot write a temporary file: %s", strerror(errno ? errno : EIO));
    if (commands)
        fclose(commands);
    if (messages)
        fclose(messages);
    return is_drawn;
}
