/*
 * stderr shared by the log and a status line: the status line is at the bottom of the terminal; it is erased before
 * each line of the log and redrawn below it. If stderr is not a terminal, there is no status line and the log is
 * plain.
 */
#ifndef TOOLS_RECORD_TERMINAL_H
#define TOOLS_RECORD_TERMINAL_H

#include <stdbool.h>

#include <weir/log.h>

/* Takes over weir's log. with_status: show a status line if possible. */
void terminal_start(bool with_status);

/* True if terminal_show() shows anything. */
bool terminal_has_status(void);

/* Replaces the status line; "" removes it. ASCII, truncated to the terminal's width. Any thread. */
void terminal_show(const char *status);

/* Writes lines above the status line. They end with a newline. Any thread. */
void terminal_print(const char *lines);

#endif
