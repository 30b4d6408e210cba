/*
 * stderr shared by the log and a status line: the line stands at the bottom of a terminal, is taken away for each line of
 * the log and put back below it. Where stderr is no terminal there is no status line, and the log is plain.
 */
#ifndef RECORD_TERMINAL_H
#define RECORD_TERMINAL_H

#include <stdbool.h>

#include <weir/log.h>

/* Takes weir's log over. with_status: a status line is wanted, where it is possible. */
void terminal_start(bool with_status);

/* True if terminal_show() shows anything. */
bool terminal_has_status(void);

/* Replaces the status line; "" takes it away. ASCII, cut at the terminal's width. Any thread. */
void terminal_show(const char *status);

/* Writes lines above the status line. They end with a newline. Any thread. */
void terminal_print(const char *lines);

#endif
