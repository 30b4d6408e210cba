/*
 * A screen of text that takes the whole terminal, and keys. It is in a module of its own, weir-ncurses.so, which
 * full_screen_load() loads: of all that weir does, only `weir watch` needs ncurses. One thread, one screen.
 */
#ifndef TOOLS_SCREEN_FULL_SCREEN_H
#define TOOLS_SCREEN_FULL_SCREEN_H

#include <stdbool.h>

typedef struct full_screen {
    /* Takes over the terminal that is stdin and stdout; false = it is of a type that is not known (TERM). The other functions
       are called only after it was true. */
    bool (*open)(void);
    int (*columns)(void);
    int (*rows)(void); /* for the lines of a text */
    /* Shows the lines of the text, as many as fit, and below them one line more. Of the codes of a terminal, those for bold
       (1), red (31), green (32), yellow (33) and none (0) are understood. */
    void (*show)(const char *text, const char *last_line);
    int (*wait_key)(int timeout_ms); /* the key; a negative number if the time is over; -1 waits for ever */
    void (*close)(void);             /* gives the terminal back */
} full_screen;

/* What the module defines. */
extern const full_screen weir_full_screen;
#define FULL_SCREEN_SYMBOL "weir_full_screen"

#endif
