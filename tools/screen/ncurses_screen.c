/* The module weir-ncurses.so: the whole terminal by ncurses. */
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "tools/screen/full_screen.h"

static bool open_screen(void)
{
    if (!newterm(NULL, stdout, stdin))
        return false;
    cbreak();
    noecho();
    curs_set(0);
    if (has_colors() && start_color() == OK && use_default_colors() == OK)
        for (short colour = COLOR_RED; colour <= COLOR_YELLOW; colour++)
            init_pair(colour, colour, -1);
    return true;
}

static int screen_columns(void)
{
    return COLS;
}

static int screen_rows(void)
{
    return LINES - 1;
}

/* The codes 0, 1, 31, 32 and 33; others are ignored. */
static void set_attribute(const char *code)
{
    long number = strtol(code, NULL, 10);
    if (number == 0)
        attrset(A_NORMAL);
    else if (number == 1)
        attron(A_BOLD);
    else if (number >= 30 + COLOR_RED && number <= 30 + COLOR_YELLOW)
        attron(COLOR_PAIR(number - 30));
}

static void show_line(int row, const char *line, size_t length)
{
    static const char begin[] = "\033[";
    move(row, 0);
    for (const char *end = line + length; line < end;) {
        const char *code = memmem(line, (size_t)(end - line), begin, sizeof begin - 1);
        addnstr(line, (int)((code ? code : end) - line));
        if (code)
            set_attribute(code + sizeof begin - 1);
        line = code ? code + strcspn(code, "m") + 1 : end;
    }
}

static void show_text(const char *text, const char *last_line)
{
    erase();
    int row = 0;
    for (const char *line = text; *line && row < LINES - 1; row++) {
        size_t length = strcspn(line, "\n");
        show_line(row, line, length);
        line += length + (line[length] == '\n');
    }
    attrset(A_NORMAL);
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

const full_screen weir_full_screen = { .open = open_screen,
                                       .columns = screen_columns,
                                       .rows = screen_rows,
                                       .show = show_text,
                                       .wait_key = wait_key,
                                       .close = close_screen };
