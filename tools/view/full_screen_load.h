/* Loads the module with ncurses, which only `weir watch` needs. */
#ifndef TOOLS_VIEW_FULL_SCREEN_LOAD_H
#define TOOLS_VIEW_FULL_SCREEN_LOAD_H

#include <stddef.h>

#include "tools/screen/full_screen.h"

/* The screen, valid until the process ends; NULL = it cannot be loaded, and `problem` says why, with the package that may be
   missing. */
const full_screen *full_screen_load(char *problem, size_t problem_bytes);

#endif
