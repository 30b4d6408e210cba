/* The module weir-ncurses.so: the whole terminal by ncurses. */
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <string.h>

#include "tools/screen/full_screen.h"

static bool open_screen(void)
{
    if (!newterm(NULL, stdout, stdin))
        return false;
    cbreak();
    noecho();
    curs_set(0);
    return true;
}

static int screen_columns(void)
{
    return COLS;
}

static void show_text(const char *text, const char *last_line)
{
    erase();
    int row = 0;
    for (const char *line = text; *line && row < LINES - 1; row++) {
        size_t length = strcspn(line, "\n");
        mvaddnstr(row, 0, line, (int)length);
        line += length + (line[length] == '\n');
    }
    mvaddstr(LINES - 1, 0, last_line);
    refresh();
}

static int wait_key(int timeout_ms)
{
    timeout(timeout_ms);
    return getch();
}

static void close_screen(void)
{
    endwin();
}

const full_screen weir_full_screen = {
    .open = open_screen, .columns = screen_columns, .show = show_text, .wait_key = wait_key, .close = close_screen
};
