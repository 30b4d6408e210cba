/* The screen is only changed with the lock held. */
#include "tools/record/terminal.h"
#include "common/text_columns.h"
#include "common/text_escape.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAX_STATUS = 256, MAX_LINE = 4 * 4096 };

#define ERASE_LINE "\r\033[K"

static bool has_status; /* immutable after start */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shown[MAX_STATUS]; /* guarded by lock: the status line on the screen */

static const char *const level_names[] = { "error", "warning", "info", "debug" };

void terminal_print(const char *lines)
{
    pthread_mutex_lock(&lock);
    fprintf(stderr, "%s%s%s", shown[0] ? ERASE_LINE : "", lines, shown);
    pthread_mutex_unlock(&lock);
}

static void write_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    char harmless[MAX_LINE], text[MAX_LINE + 64];
    weir__text_escape(line, harmless, sizeof harmless);
    snprintf(text, sizeof text, "weir: %s: %s\n", level_names[level], harmless);
    terminal_print(text);
}

static size_t columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void terminal_start(bool with_status)
{
    const char *kind = getenv("TERM");
    has_status = with_status && isatty(STDERR_FILENO) && kind && strcmp(kind, "dumb") != 0;
    weir_log_set_function(write_log, NULL);
}

bool terminal_has_status(void)
{
    return has_status;
}

void terminal_show(const char *status)
{
    if (!has_status)
        return;
    size_t width = columns() - 1; /* the last column would wrap on some terminals */
    char text[MAX_STATUS + 16];
    pthread_mutex_lock(&lock);
    snprintf(shown, sizeof shown, "%.*s", (int)weir__text_cut(status, width), status);
    snprintf(text, sizeof text, "%s%s", ERASE_LINE, shown);
    fputs(text, stderr);
    pthread_mutex_unlock(&lock);
}
