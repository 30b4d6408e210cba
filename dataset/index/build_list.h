/*
 * What a build is asked to index, and which of these files are unchanged in the index: the rows of a list, and the
 * stage that looks them up. Private to this room.
 */
#ifndef DATASET_INDEX_BUILD_LIST_H
#define DATASET_INDEX_BUILD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include <weir/dataset.h>
#include <weir/op.h>

typedef struct seen_rows {
    uint8_t *bits;
    size_t num_bytes;
} seen_rows;

/* What a list says of a clip. */
typedef struct listed_row {
    const char *path;     /* the address */
    const char *identity; /* of it; may be the same text */
    const char *label;    /* "" = none */
    weir_clip_window window;
    size_t place; /* in the list */
} listed_row;

/* The rows of a list, ordered by identity and place. Group i is rows[starts[i]] to before rows[starts[i + 1]]: those of one
   file, perhaps under several signatures. It is read by the address paths[i], that of its first row, and stored as
   shown[i]: the same text, unless that has secrets. A folder has no groups. */
typedef struct path_groups {
    listed_row *rows;
    size_t num_rows;
    size_t *starts;
    const char **paths;
    const char **shown;
    size_t num_groups;
} path_groups;

/* The columns that say which file a clip is. */
typedef struct clip_name {
    const char *identity;
    const char *path;
    bool is_redacted; /* the path lacks the secrets of the address */
} clip_name;

/* Files of a list that are unchanged, but are stored under another path. */
typedef struct renamed_groups {
    uint64_t *groups;
    size_t num_groups;
} renamed_groups;

/* The state of the lookup stage. Used only by its slot's thread until the pipeline has ended. */
typedef struct build_look {
    sqlite3 *db; /* NULL = a new index, which has nothing yet */
    sqlite3_stmt *find;
    size_t root_length; /* of the path, with the slash */
    seen_rows seen;
    const weir_dataset_build_options *options;
    path_groups groups; /* immutable */
    renamed_groups renamed;
    bool takes_all; /* read all files: the index was built with other options */
    bool is_out_of_memory;
} build_look;

/* A bit for a row of the index. False = out of memory. */
bool weir__seen_rows_add(seen_rows *seen, int64_t row);
bool weir__seen_rows_has(const seen_rows *seen, int64_t row);

/* Reads options->paths and what belongs to them; a folder has none. WEIR_OK, or the failure with *error filled. The groups
   point into the options; free them in each case. */
int weir__path_groups_read(path_groups *groups, const weir_dataset_build_options *options, weir_error *error);
void weir__path_groups_free(path_groups *groups);

/* The name of a file that an item of the source has led to. path is that of the file, group is the number of the
   item. The result points into these or into the groups. Files of folders and members of archives are local, so their
   paths have no secrets. */
clip_name weir__build_name(const build_look *look, uint64_t group, const char *path);

/* How many rows a file has, and what the list says of each. In a folder it is one, of the whole file. */
size_t weir__path_groups_count(const path_groups *groups, uint64_t group);
const listed_row *weir__path_groups_row(const path_groups *groups, uint64_t group, size_t occurrence);

/* As the index stores it. */
static inline double weir__index_seconds(int64_t time_ns)
{
    return (double)time_ns / (double)WEIR_SECOND;
}

/* Takes paths and members of archives, passes on those that must be read, and skips the others. Its config is a
   build_look. */
extern const weir_op weir__build_look_op;

#endif
