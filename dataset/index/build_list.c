#include "dataset/index/build_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/bytes.h>
#include <weir/clock.h>

#include "dataset/index/index_file.h"

/* ---- rows of the index that were met ---------------------------------------------------------------------------- */

bool weir__seen_rows_add(seen_rows *seen, int64_t row)
{
    size_t byte = (size_t)row / 8;
    if (byte >= seen->num_bytes) {
        size_t num_bytes = byte * 2 + 1024;
        uint8_t *bits = realloc(seen->bits, num_bytes);
        if (!bits)
            return false;
        memset(bits + seen->num_bytes, 0, num_bytes - seen->num_bytes);
        seen->bits = bits;
        seen->num_bytes = num_bytes;
    }
    seen->bits[byte] |= (uint8_t)(1U << row % 8);
    return true;
}

bool weir__seen_rows_has(const seen_rows *seen, int64_t row)
{
    return (size_t)row / 8 < seen->num_bytes && (seen->bits[row / 8] >> row % 8 & 1);
}

/* ---- the list --------------------------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const listed_row *one = a, *other = b;
    int order = strcmp(one->path, other->path);
    return order ? order : (one->place > other->place) - (one->place < other->place);
}

static int read_rows(const weir_dataset_build_options *options, listed_row *rows, weir_error *error)
{
    for (size_t i = 0; i < options->num_paths; i++) {
        const char *label = options->labels ? options->labels[i] : NULL;
        listed_row row = { options->paths[i], label ? label : "", options->starts_ns ? options->starts_ns[i] : 0,
                           options->ends_ns ? options->ends_ns[i] : 0, i };
        if (!row.path)
            return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", i);
        if (row.start_ns < 0 || row.end_ns < 0 || (row.end_ns && row.end_ns <= row.start_ns))
            return weir_error_set(error, WEIR_EINVAL, 0, "%s: its start is negative, or not before its end",
                                  row.path);
        rows[i] = row;
    }
    qsort(rows, options->num_paths, sizeof *rows, compare_rows);
    return WEIR_OK;
}

int weir__path_groups_read(path_groups *groups, const weir_dataset_build_options *options, weir_error *error)
{
    size_t num_rows = options->num_paths;
    if (!options->paths)
        return WEIR_OK;
    groups->rows = malloc((num_rows + 1) * sizeof *groups->rows);
    groups->starts = malloc((num_rows + 1) * sizeof *groups->starts);
    groups->paths = malloc((num_rows + 1) * sizeof *groups->paths);
    if (!groups->rows || !groups->starts || !groups->paths)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = read_rows(options, groups->rows, error);
    for (size_t i = 0; rc == WEIR_OK && i < num_rows; i++) {
        if (i > 0 && strcmp(groups->rows[i - 1].path, groups->rows[i].path) == 0)
            continue;
        groups->paths[groups->num_groups] = groups->rows[i].path;
        groups->starts[groups->num_groups++] = i;
    }
    groups->starts[groups->num_groups] = num_rows;
    return rc;
}

void weir__path_groups_free(path_groups *groups)
{
    free(groups->rows);
    free(groups->starts);
    free(groups->paths);
}

size_t weir__path_groups_count(const path_groups *groups, uint64_t group)
{
    return groups->rows ? groups->starts[group + 1] - groups->starts[group] : 1;
}

const listed_row *weir__path_groups_row(const path_groups *groups, uint64_t group, size_t occurrence)
{
    static const listed_row whole_file = { .label = "" };
    return groups->rows ? &groups->rows[groups->starts[group] + occurrence] : &whole_file;
}

/* ---- what is unchanged ------------------------------------------------------------------------------------------ */

/* Does the row of the index say the same as the list? */
static bool is_same_row(const build_look *self, const listed_row *listed)
{
    return (!self->options->labels || strcmp(listed->label, weir__index_text(self->find, 3)) == 0) &&
           weir__index_seconds(listed->start_ns) == sqlite3_column_double(self->find, 6) &&
           weir__index_seconds(listed->end_ns) == sqlite3_column_double(self->find, 7);
}

/* Whether only another file gives another status. Limits, permissions and the storage can change without it; the memory
   of all decoders also depends on the clips that are read at the same time. */
static bool is_lasting(int status)
{
    return status == WEIR_OK || status == WEIR_EDATA || status == WEIR_EUNSUPPORTED;
}

/* A member that a later one of the same name replaces needs no reading either. */
static bool is_unchanged(sqlite3_stmt *find, const char *path, const weir_entry *member)
{
    struct stat file;
    if (member)
        return sqlite3_column_int64(find, 2) == member->mtime_ns &&
               (sqlite3_column_int64(find, 4) > member->offset ||
                (sqlite3_column_int64(find, 4) == member->offset &&
                 sqlite3_column_int64(find, 1) == member->size_bytes));
    if (stat(path, &file) != 0)
        return false;
    return sqlite3_column_int64(find, 1) == file.st_size &&
           sqlite3_column_int64(find, 2) == file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
}

static int run_look(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    build_look *self = (build_look *)(uintptr_t)weir_task_config(task);
    const weir_entry *member = strcmp(in->type, WEIR_TYPE_ENTRY) == 0 ? in->data : NULL;
    const char *path = member ? member->path : in->data;
    size_t num_rows = weir__path_groups_count(&self->groups, in->seq), num_unchanged = 0;
    assert(path);
    sqlite3_bind_text(self->find, 1, path + self->root_length, -1, SQLITE_STATIC);
    for (size_t i = 0; i < num_rows && sqlite3_step(self->find) == SQLITE_ROW; i++) {
        self->is_out_of_memory |= !weir__seen_rows_add(&self->seen, sqlite3_column_int64(self->find, 0));
        num_unchanged += !self->takes_all && is_lasting(sqlite3_column_int(self->find, 5)) &&
                         is_same_row(self, weir__path_groups_row(&self->groups, in->seq, i)) &&
                         is_unchanged(self->find, path, member);
    }
    sqlite3_reset(self->find);
    weir_item_move(out, in);
    if (num_unchanged < num_rows)
        return WEIR_OK;
    weir_item_release(out);
    return WEIR_SKIP;
}

#define BOTH WEIR_TYPE_TEXT " " WEIR_TYPE_ENTRY
const weir_op weir__build_look_op = { .name = "look", .takes = BOTH, .makes = BOTH, .run = run_look };
