/* The text of a list file. */
#ifndef TOOLS_CLI_LIST_TEXT_H
#define TOOLS_CLI_LIST_TEXT_H

#include <stdio.h>

/* Reads all of it; the caller frees it. An empty file is "". A NUL byte would hide what follows it, so it is refused.
   NULL: *problem says why, without the file's name. */
char *list_text_read(FILE *file, char problem[256]);

#endif
