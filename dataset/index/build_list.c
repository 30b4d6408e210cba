#include "dataset/index/build_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/bytes.h>
#include <weir/clock.h>
#include <weir/item.h>

#include "common/redact.h"
#include "dataset/index/index_file.h"
#include "stages/memory/clip_window_check.h"

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
    int order = strcmp(one->identity, other->identity);
    return order ? order : (one->place > other->place) - (one->place < other->place);
}

static int check_row(const listed_row *row, bool is_archive, weir_error *error)
{
    if (!row->path)
        return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", row->place);
    int rc = weir__clip_window_check(&row->window, row->path, error);
    if (rc != WEIR_OK)
        return rc;
    if (is_archive && weir__is_url(row->path))
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "%s: archives are not read from URLs: download it first (if it is the name of a file, write ./NAME)",
            row->path);
    return WEIR_OK;
}

/* Only what differs needs memory. NULL = out of memory. */
static const char *keep_text(char *text, const char *path)
{
    bool is_same = text && strcmp(text, path) == 0;
    if (is_same)
        free(text);
    return is_same ? path : text;
}

static void free_text(const char *text, const char *path)
{
    if (text != path)
        free((void *)(uintptr_t)text);
}

static int read_rows(path_groups *groups, const weir_dataset_build_options *options, weir_error *error)
{
    for (size_t i = 0; i < options->num_paths; i++) {
        const char *label = options->labels ? options->labels[i] : NULL;
        listed_row row = { .path = options->paths[i], .label = label ? label : "", .place = i };
        if (options->windows)
            row.window = options->windows[i];
        int rc = check_row(&row, options->tar, error);
        if (rc != WEIR_OK)
            return rc;
        row.identity = options->tar ? row.path : keep_text(weir_identity_of(row.path), row.path);
        if (!row.identity)
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        groups->rows[groups->num_rows++] = row;
    }
    qsort(groups->rows, groups->num_rows, sizeof *groups->rows, compare_rows);
    return WEIR_OK;
}

static const char *hide_path(const char *path)
{
    char *copy = strdup(path);
    weir__address_redact(copy);
    return keep_text(copy, path);
}

static int add_group(path_groups *groups, size_t start, bool is_archive, weir_error *error)
{
    const char *path = groups->rows[start].path;
    const char *shown = is_archive ? path : hide_path(path);
    if (!shown)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    groups->paths[groups->num_groups] = path;
    groups->shown[groups->num_groups] = shown;
    groups->starts[groups->num_groups++] = start;
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
    groups->shown = malloc((num_rows + 1) * sizeof *groups->shown);
    if (!groups->rows || !groups->starts || !groups->paths || !groups->shown)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = read_rows(groups, options, error);
    for (size_t i = 0; rc == WEIR_OK && i < num_rows; i++)
        if (i == 0 || strcmp(groups->rows[i - 1].identity, groups->rows[i].identity) != 0)
            rc = add_group(groups, i, options->tar, error);
    groups->starts[groups->num_groups] = num_rows;
    return rc;
}

void weir__path_groups_free(path_groups *groups)
{
    for (size_t i = 0; i < groups->num_rows; i++)
        free_text(groups->rows[i].identity, groups->rows[i].path);
    for (size_t i = 0; i < groups->num_groups; i++)
        free_text(groups->shown[i], groups->paths[i]);
    free(groups->rows);
    free(groups->starts);
    free(groups->paths);
    free(groups->shown);
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

/* Are the files addresses of a list, which may be signed? */
static bool has_addresses(const build_look *look)
{
    return look->groups.rows && !look->options->tar;
}

clip_name weir__build_name(const build_look *look, uint64_t group, const char *path)
{
    const path_groups *groups = &look->groups;
    if (!has_addresses(look))
        return (clip_name){ .identity = path + look->root_length, .path = path + look->root_length };
    return (clip_name){ .identity = groups->rows[groups->starts[group]].identity,
                        .path = groups->shown[group],
                        .is_redacted = groups->shown[group] != groups->paths[group] };
}

/* ---- what is unchanged ------------------------------------------------------------------------------------------ */

/* Does the row of the index say the same as the list? */
static bool is_same_row(const build_look *self, const listed_row *listed)
{
    return (!self->options->labels || strcmp(listed->label, weir__index_text(self->find, 3)) == 0) &&
           weir__index_seconds(listed->window.start_ns) == sqlite3_column_double(self->find, 6) &&
           weir__index_seconds(listed->window.end_ns) == sqlite3_column_double(self->find, 7) &&
           listed->window.start_frame == (uint64_t)sqlite3_column_int64(self->find, 12) &&
           listed->window.end_frame == (uint64_t)sqlite3_column_int64(self->find, 13);
}

/* Whether only another file gives another status. Limits, permissions and the storage can change without it; the memory
   of all decoders also depends on the clips that are read at the same time. */
static bool is_lasting(int status)
{
    return status == WEIR_OK || status == WEIR_EDATA || status == WEIR_EUNSUPPORTED;
}

typedef enum file_change { FILE_CHANGED, FILE_UNCHANGED, FILE_ASK_SERVER } file_change;

/* A member that a later one of the same name replaces needs no reading either. */
static file_change find_change(sqlite3_stmt *find, const char *path, const weir_entry *member)
{
    struct stat file;
    int64_t size_bytes = sqlite3_column_int64(find, 1), mtime_ns = sqlite3_column_int64(find, 2);
    int64_t offset = sqlite3_column_int64(find, 4);
    bool is_same = false;
    if (member)
        is_same = mtime_ns == member->mtime_ns &&
                  (offset > member->offset || (offset == member->offset && size_bytes == member->size_bytes));
    else if (stat(path, &file) == 0)
        is_same = size_bytes == file.st_size && mtime_ns == file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
    else if (*weir__index_text(find, 10))
        return FILE_ASK_SERVER;
    return is_same ? FILE_UNCHANGED : FILE_CHANGED;
}

/* Is the row stored under the same path? If not, the file is listed under another signature, of which the path shows the
   date; or the index has been changed. */
static bool has_same_path(sqlite3_stmt *find, const clip_name *name)
{
    return strcmp(weir__index_text(find, 8), name->path) == 0 && sqlite3_column_int(find, 9) == name->is_redacted;
}

static void note_renamed(build_look *self, uint64_t group)
{
    renamed_groups *renamed = &self->renamed;
    bool is_full = (renamed->num_groups & (renamed->num_groups - 1)) == 0; /* a power of two, or 0 */
    size_t max_groups = renamed->num_groups ? 2 * renamed->num_groups : 1;
    uint64_t *groups = is_full ? realloc(renamed->groups, max_groups * sizeof *groups) : renamed->groups;
    self->is_out_of_memory |= !groups;
    if (!groups)
        return;
    groups[renamed->num_groups++] = group;
    renamed->groups = groups;
}

/* NULL = it is a file. */
static const weir_entry *member_of(const weir_item *item)
{
    return strcmp(item->type, WEIR_TYPE_ENTRY) == 0 ? item->data : NULL;
}

static const char *path_of(const weir_item *item)
{
    const weir_entry *member = member_of(item);
    const char *path = member ? member->path : item->data;
    assert(path);
    return path;
}

/* What the index says of a file. All of its rows are of one version. */
typedef struct look_result {
    size_t num_unchanged, num_renamed;
    char *validator; /* that decides whether they are unchanged; NULL = none */
    int64_t size_bytes;
} look_result;

static void look_at_row(build_look *self, const weir_item *in, size_t occurrence, look_result *to)
{
    const weir_entry *member = member_of(in);
    const clip_name name = weir__build_name(self, in->seq, path_of(in));
    bool is_renamed = !has_same_path(self->find, &name);
    file_change change = find_change(self->find, path_of(in), member);
    self->is_out_of_memory |= !weir__seen_rows_add(&self->seen, sqlite3_column_int64(self->find, 0));
    to->num_renamed += is_renamed;
    to->num_unchanged += !self->takes_all && (!is_renamed || has_addresses(self)) &&
                         is_lasting(sqlite3_column_int(self->find, 5)) && change != FILE_CHANGED &&
                         is_same_row(self, weir__path_groups_row(&self->groups, in->seq, occurrence));
    if (change != FILE_ASK_SERVER || to->validator)
        return;
    to->validator = strdup(weir__index_text(self->find, 10));
    to->size_bytes = sqlite3_column_int64(self->find, 1);
    self->is_out_of_memory |= !to->validator;
}

/* A URL that is read unless its server has the same version. */
static int make_question(look_result *from, const weir_item *in, weir_item *out)
{
    weir_entry *entry = weir_entry_new();
    char *path = strdup(in->data);
    if (!entry || !path) {
        weir_entry_free(entry);
        free(path);
        return WEIR_ENOMEM;
    }
    entry->path = path;
    entry->validator = from->validator;
    entry->size_bytes = from->size_bytes;
    from->validator = NULL;
    *out = (weir_item){
        .data = entry, .release = weir_entry_release, .size_bytes = weir_entry_memory(entry), .type = WEIR_TYPE_ENTRY
    };
    return WEIR_OK;
}

static int pass_on(build_look *self, look_result *from, weir_item *in, weir_item *out)
{
    bool is_unchanged = from->num_unchanged == weir__path_groups_count(&self->groups, in->seq);
    if (is_unchanged && from->num_renamed > 0)
        note_renamed(self, in->seq); /* if its server has another version, its rows are written anyway */
    if (is_unchanged)
        return from->validator ? make_question(from, in, out) : WEIR_SKIP;
    weir_item_move(out, in);
    return WEIR_OK;
}

static void look_at_file(build_look *self, const weir_item *in, look_result *found)
{
    const clip_name name = weir__build_name(self, in->seq, path_of(in));
    size_t num_rows = weir__path_groups_count(&self->groups, in->seq);
    sqlite3_bind_text(self->find, 1, name.identity, -1, SQLITE_STATIC);
    while (sqlite3_step(self->find) == SQLITE_ROW) {
        uint64_t occurrence = (uint64_t)sqlite3_column_int64(self->find, 11);
        if (occurrence < num_rows) /* the others are not in the list any more */
            look_at_row(self, in, occurrence, found);
    }
    sqlite3_reset(self->find);
}

static int run_look(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    build_look *self = (build_look *)(uintptr_t)weir_task_config(task);
    look_result found = { 0 };
    if (self->find)
        look_at_file(self, in, &found);
    int rc = pass_on(self, &found, in, out);
    free(found.validator);
    return rc == WEIR_ENOMEM ? weir_task_fail(task, rc, 0, "out of memory") : rc;
}

#define BOTH WEIR_TYPE_TEXT " " WEIR_TYPE_ENTRY
const weir_op weir__build_look_op = { .name = "look", .takes = BOTH, .makes = BOTH, .run = run_look };
