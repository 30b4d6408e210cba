/*
 * Which files a folder or an archive has, by extension: for the message if those that were looked for are not among them.
 * Internal. One thread at a time.
 */
#ifndef STAGES_SOURCE_DIRECTORY_CONTENTS_H
#define STAGES_SOURCE_DIRECTORY_CONTENTS_H

#include <weir/files.h>

typedef struct weir_extension_count {
    char text[14]; /* with the dot; "" = none */
    uint64_t count;
} weir_extension_count;

typedef struct weir_extension_counts {
    weir_extension_count extensions[64]; /* files with further ones are only in num_files */
    size_t num_extensions;
    uint64_t num_files;
} weir_extension_counts;

/* Zeroed = empty. */
typedef struct weir_contents {
    weir_extension_counts files, videos;
} weir_contents;

void weir__contents_add(weir_contents *contents, const char *path);

/* Fills *error: what was looked for in this place, and what is there instead: the videos, or else all files. Sorts
   *contents. Returns WEIR_ENOTFOUND. */
int weir__contents_refuse(weir_contents *contents, const char *pattern, const char *place, weir_error *error);

#endif
