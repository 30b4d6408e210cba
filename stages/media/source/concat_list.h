/*
 * Lists of files for FFmpeg's concat reader. It opens the files by itself, so weir checks them before: opening a pipe
 * would wait for its writer, and a list that names a list may name itself. Internal.
 */
#ifndef STAGES_MEDIA_SOURCE_CONCAT_LIST_H
#define STAGES_MEDIA_SOURCE_CONCAT_LIST_H

#include <stdbool.h>

#include "local_file.h"

/* Does the regular file begin as such a list? */
bool weir__concat_is_list(weir_local_file *file);

/* Checks what the list names: WEIR_OK; WEIR_EUNSUPPORTED for anything but regular files and disks, and for other lists;
   WEIR_ELIMIT for more than max_files. What is missing or cannot be read is left to FFmpeg. */
int weir__concat_check(weir_local_file *list, const char *path, unsigned max_files, weir_error *error);

#endif
