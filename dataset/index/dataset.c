/* An index that is open for reading. Without conditions each clip is looked up by its number, and no memory per clip
   is used. */
#include <weir/dataset.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>

#include "common/hash.h"
#include "dataset/index/addresses.h"
#include "dataset/index/index_file.h"
#include "dataset/index/memory_index.h"
#include "dataset/index/user_columns.h"

typedef struct named_class {
    const char *name;
    uint32_t class_id;
} named_class;

static int compare_classes(const void *a, const void *b)
{
    return strcmp(((const named_class *)a)->name, ((const named_class *)b)->name);
}

struct weir_dataset {
    /* immutable after init */
    sqlite3 *db;
    char *path; /* of the index; of memory: for messages */
    char *root; /* with a trailing slash, or "" */
    bool ignores_mtime;
    uint64_t count;
    uint64_t fingerprint;
    int64_t *rows;        /* the clip_id of each number; NULL = use the column `number` */
    char **classes;       /* sorted, unless the user chose them */
    named_class *by_name; /* the same, sorted */
    uint32_t num_classes;
    known_addresses addresses;
    user_columns columns;
    char *broken_condition; /* "WHERE …" for the clips that cannot be used */

    /* used by one thread at a time */
    sqlite3_stmt *find;
    int64_t *broken; /* the clip_id of each broken clip; NULL = not read yet */
    uint64_t num_broken;
    sqlite3_stmt *find_broken;
    char *broken_texts; /* of the last one that was read; NULL = none */
};

static int fail_read(const weir_dataset *dataset, int code, weir_error *error)
{
    return weir__index_error(error, dataset->db, code, "read the index", dataset->path);
}

static int fail_changed(const weir_dataset *dataset, int code, weir_error *error)
{
    return weir_error_set(error, WEIR_EDATA, code, "the index %s was changed while it was in use", dataset->path);
}

static int fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

static const char order_by[] = " ORDER BY number";

/* "WHERE …" for all statements that scan the clips that are chosen of `all`, in that order. The caller frees it. */
static char *make_condition(const weir_dataset_options *options, const char *all, const char *order)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    fprintf(to, "WHERE %s", all);
    if (options->where)
        fprintf(to, " AND (%s\n)", options->where);
    for (size_t i = 0; i < options->num_classes; i++) {
        char *quoted = sqlite3_mprintf("%Q", options->classes[i]);
        fprintf(to, "%s%s", i ? ", " : " AND label IN (", quoted ? quoted : "''");
        sqlite3_free(quoted);
    }
    fprintf(to, "%s%s", options->num_classes ? ")" : "", order);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* The condition comes from the user, so an SQL error is an invalid argument; and it must be read-only. */
static int prepare_items(const weir_dataset *dataset, const char *columns, const char *condition,
                         sqlite3_stmt **statement, weir_error *error)
{
    char *sql = sqlite3_mprintf("SELECT %s FROM clip %s", columns, condition);
    const char *tail = "";
    *statement = NULL;
    int code = sql ? sqlite3_prepare_v2(dataset->db, sql, -1, statement, &tail) : SQLITE_NOMEM;
    int rc = WEIR_OK;
    if (code == SQLITE_ERROR)
        rc = weir_error_set(error, WEIR_EINVAL, code, "the condition is not valid for %s: %s", dataset->path,
                            sqlite3_errmsg(dataset->db));
    else if (code == SQLITE_OK && (*tail || !sqlite3_stmt_readonly(*statement)))
        rc = weir_error_set(error, WEIR_EINVAL, 0, "the condition must be a single expression");
    else if (code != SQLITE_OK)
        rc = fail_read(dataset, code, error);
    sqlite3_free(sql);
    if (rc != WEIR_OK) {
        sqlite3_finalize(*statement);
        *statement = NULL;
    }
    return rc;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Scans the clips that the condition selects, and appends their clip_ids. *rows is NULL: there is none yet. */
static int read_rows(weir_dataset *dataset, const char *condition, int64_t **rows, uint64_t *num_rows,
                     weir_error *error)
{
    sqlite3_stmt *all;
    uint64_t max_rows = 0;
    int code = SQLITE_DONE;
    int rc = prepare_items(dataset, "clip_id", condition, &all, error);
    while (rc == WEIR_OK && (code = sqlite3_step(all)) == SQLITE_ROW) {
        if (*num_rows == max_rows) {
            max_rows = max_rows ? max_rows * 2 : 1024;
            int64_t *more = realloc(*rows, max_rows * sizeof *more);
            if (!more) {
                rc = fail_memory(error);
                break;
            }
            *rows = more;
        }
        (*rows)[(*num_rows)++] = sqlite3_column_int64(all, 0);
    }
    if (rc == WEIR_OK && code != SQLITE_DONE)
        rc = fail_read(dataset, code, error);
    sqlite3_finalize(all);
    return rc;
}

/* Reads the build's metadata, and applies the conditions. */
static int read_facts(weir_dataset *dataset, const char *condition, bool is_chosen, weir_error *error)
{
    char *count = weir__index_get(dataset->db, "num_clips");
    char *fingerprint = weir__index_get(dataset->db, "fingerprint");
    dataset->count = count && !is_chosen ? strtoull(count, NULL, 10) : 0;
    dataset->fingerprint = fingerprint ? strtoull(fingerprint, NULL, 16) : 0;
    if (is_chosen)
        dataset->fingerprint = weir__hash(dataset->fingerprint, condition, strlen(condition));
    free(count);
    free(fingerprint);
    return is_chosen ? read_rows(dataset, condition, &dataset->rows, &dataset->count, error) : WEIR_OK;
}

static int add_class(weir_dataset *dataset, const char *name, weir_error *error)
{
    char **classes = realloc(dataset->classes, (dataset->num_classes + 1) * sizeof *classes);
    if (!classes)
        return fail_memory(error);
    dataset->classes = classes;
    classes[dataset->num_classes] = strdup(name);
    return classes[dataset->num_classes++] ? WEIR_OK : fail_memory(error);
}

static int read_labels(weir_dataset *dataset, const char *condition, bool is_chosen, weir_error *error)
{
    sqlite3_stmt *labels = NULL;
    int code = SQLITE_DONE;
    int rc = WEIR_OK;
    if (is_chosen) {
        char *grouped = sqlite3_mprintf("%.*s AND label IS NOT NULL GROUP BY label ORDER BY label",
                                        (int)(strstr(condition, order_by) - condition), condition);
        rc = grouped ? prepare_items(dataset, "label", grouped, &labels, error) : fail_memory(error);
        sqlite3_free(grouped);
    } else {
        code = sqlite3_prepare_v2(dataset->db, "SELECT name FROM class ORDER BY name", -1, &labels, NULL);
        rc = code == SQLITE_OK ? WEIR_OK : fail_read(dataset, code, error);
    }
    while (rc == WEIR_OK && (code = sqlite3_step(labels)) == SQLITE_ROW)
        rc = add_class(dataset, weir__index_text(labels, 0), error);
    if (rc == WEIR_OK && code != SQLITE_DONE)
        rc = fail_read(dataset, code, error);
    sqlite3_finalize(labels);
    return rc;
}

static int compare_names(const void *name, const void *element)
{
    return strcmp(name, *(char *const *)element);
}

/* The user's classes in the user's order, each of which must have clips. */
static int order_classes(weir_dataset *dataset, const weir_dataset_options *options, weir_error *error)
{
    for (size_t i = 0; i < options->num_classes; i++)
        if (!bsearch(options->classes[i], dataset->classes, dataset->num_classes, sizeof(char *), compare_names))
            return weir_error_set(error, WEIR_ENOTFOUND, 0, "the class \"%s\" has no clips in %s",
                                  options->classes[i], dataset->path);
    while (dataset->num_classes > 0 && options->num_classes > 0)
        free(dataset->classes[--dataset->num_classes]);
    for (size_t i = 0; i < options->num_classes; i++) {
        int rc = add_class(dataset, options->classes[i], error);
        if (rc != WEIR_OK)
            return rc;
    }
    dataset->by_name = malloc((dataset->num_classes + 1) * sizeof *dataset->by_name);
    if (!dataset->by_name)
        return fail_memory(error);
    for (uint32_t i = 0; i < dataset->num_classes; i++)
        dataset->by_name[i] = (named_class){ dataset->classes[i], i };
    qsort(dataset->by_name, dataset->num_classes, sizeof *dataset->by_name, compare_classes);
    return WEIR_OK;
}

static int find_dataset_root(weir_dataset *dataset, const weir_dataset_options *options, weir_error *error)
{
    char *built = weir__index_get(dataset->db, "root");
    const char *root = options->root ? options->root : built ? built : "";
    int rc = WEIR_OK;
    if (*root && access(root, F_OK) != 0)
        rc = weir_error_set(error, WEIR_ENOTFOUND, 0,
                            "the folder %s of the index %s does not exist: mount it, or set root to its location",
                            root, dataset->path);
    bool has_slash = !*root || root[strlen(root) - 1] == '/';
    dataset->root = malloc(strlen(root) + 2);
    if (dataset->root)
        sprintf(dataset->root, "%s%s", root, has_slash ? "" : "/");
    free(built);
    return rc == WEIR_OK && !dataset->root ? fail_memory(error) : rc;
}

static int check_complete(const weir_dataset *dataset, weir_error *error)
{
    char *complete = weir__index_get(dataset->db, "complete");
    bool is_complete = complete && strcmp(complete, "1") == 0;
    free(complete);
    return is_complete ? WEIR_OK
                       : weir_error_set(error, WEIR_EDATA, 0,
                                        "the index %s is incomplete: weir index continues where it was stopped",
                                        dataset->path);
}

/* The index does not have the secrets of URLs: fails if a clip that may be drawn is one whose address is not known. */
static int check_addresses(const weir_dataset *dataset, const char *condition, weir_error *error)
{
    char *number = weir__index_get(dataset->db, "num_redacted");
    bool has_any = number && strtoull(number, NULL, 10) > 0;
    free(number);
    if (!has_any)
        return WEIR_OK;
    sqlite3_stmt *all = NULL;
    char *redacted =
        sqlite3_mprintf("%.*s AND is_redacted <> 0", (int)(strstr(condition, order_by) - condition), condition);
    int rc = redacted ? prepare_items(dataset, "identity, path", redacted, &all, error) : fail_memory(error);
    int code = SQLITE_DONE;
    while (rc == WEIR_OK && (code = sqlite3_step(all)) == SQLITE_ROW)
        if (!weir__addresses_find(&dataset->addresses, weir__index_text(all, 0)))
            rc = weir_error_set(error, WEIR_ENOTFOUND, 0,
                                "%s: an index does not store the secrets of URLs: set weir_dataset_options.paths to "
                                "the list, and include the address of this URL%s",
                                weir__index_text(all, 1),
                                dataset->addresses.num ? " (and weir_identity_set_key() as for the build)" : "");
    if (rc == WEIR_OK && code != SQLITE_DONE)
        rc = fail_read(dataset, code, error);
    sqlite3_finalize(all);
    sqlite3_free(redacted);
    return rc;
}

static const char find_columns[] =
    "path, size_bytes, mtime_ns, label, (SELECT packets FROM packets JOIN clip AS first USING (clip_id)"
    " WHERE first.identity = clip.identity AND first.occurrence = 0), archive_length, offset, start, end, identity,"
    " is_redacted, occurrence, start_frame, end_frame";

enum { NUM_FIND_COLUMNS = 14 };

static int prepare_find(weir_dataset *dataset, weir_error *error)
{
    int rc = weir__user_columns_read(&dataset->columns, dataset->db, dataset->path, error);
    if (rc != WEIR_OK)
        return rc;
    char *columns = sqlite3_mprintf("%s%s", find_columns, dataset->columns.sql);
    rc = columns ? prepare_items(dataset, columns, dataset->rows ? "WHERE clip_id = ?" : "WHERE number = ?",
                                 &dataset->find, error)
                 : fail_memory(error);
    sqlite3_free(columns);
    return rc;
}

/* Of files that are all broken, it says why the first one is. */
static int fail_empty(weir_dataset *dataset, bool is_chosen, weir_error *error)
{
    weir_broken_clip first = { 0 };
    if (is_chosen)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no clip in %s matches the conditions", dataset->path);
    if (weir_dataset_read_broken(dataset, 0, &first, NULL) != WEIR_OK)
        return weir_error_set(error, WEIR_ENOTFOUND, 0, "no clip in %s can be used", dataset->path);
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "no clip in %s can be used; the first of %" PRIu64 ", %s: %s",
                          dataset->path, dataset->num_broken, first.path, first.message);
}

static int open_index(weir_dataset *dataset, const weir_dataset_options *options, weir_error *error)
{
    bool is_chosen = options->where || options->num_classes;
    char *condition = make_condition(options, "number IS NOT NULL", order_by);
    dataset->broken_condition = make_condition(options, "status <> 0", " ORDER BY identity, occurrence");
    int rc = condition && dataset->broken_condition ? WEIR_OK : fail_memory(error);
    if (rc == WEIR_OK)
        rc = options->memory ? weir__memory_index_open(options->memory, &dataset->db, error)
                             : weir__index_open_reader(dataset->path, &dataset->db, error);
    if (rc == WEIR_OK)
        rc = check_complete(dataset, error);
    if (rc == WEIR_OK)
        rc = find_dataset_root(dataset, options, error);
    if (rc == WEIR_OK)
        rc = weir__addresses_read(&dataset->addresses, options->paths, options->num_paths, error);
    if (rc == WEIR_OK)
        rc = check_addresses(dataset, condition, error);
    if (rc == WEIR_OK)
        rc = read_facts(dataset, condition, is_chosen, error);
    if (rc == WEIR_OK)
        rc = read_labels(dataset, condition, is_chosen, error);
    if (rc == WEIR_OK)
        rc = order_classes(dataset, options, error);
    if (rc == WEIR_OK && dataset->count == 0 && !options->may_be_empty)
        rc = fail_empty(dataset, is_chosen, error);
    if (rc == WEIR_OK)
        rc = prepare_find(dataset, error);
    free(condition);
    return rc;
}

int weir_dataset_open_sized(const char *path, const weir_dataset_options *given, size_t given_size, weir_dataset **to,
                            weir_error *error)
{
    weir_dataset_options options;
    if (to)
        *to = NULL;
    if (!to)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = weir_struct_copy(&options, sizeof options, given, given_size, "weir_dataset_options", error);
    if (rc == WEIR_OK && !path == !options.memory)
        rc = weir_error_set(error, WEIR_EINVAL, 0, "an index needs either a path or weir_dataset_options.memory");
    weir_dataset *dataset = rc == WEIR_OK ? calloc(1, sizeof *dataset) : NULL;
    if (!dataset)
        return rc == WEIR_OK ? fail_memory(error) : rc;
    dataset->ignores_mtime = options.ignore_mtime;
    dataset->path = strdup(path ? path : WEIR__MEMORY_INDEX_NAME);
    rc = dataset->path ? open_index(dataset, &options, error) : fail_memory(error);
    if (rc == WEIR_OK)
        *to = dataset;
    else
        weir_dataset_close(dataset);
    return rc;
}

void weir_dataset_close(weir_dataset *dataset)
{
    if (!dataset)
        return;
    for (uint32_t i = 0; i < dataset->num_classes; i++)
        free(dataset->classes[i]);
    free(dataset->classes);
    free(dataset->by_name);
    weir__addresses_free(&dataset->addresses);
    weir__user_columns_free(&dataset->columns);
    sqlite3_finalize(dataset->find);
    sqlite3_finalize(dataset->find_broken);
    sqlite3_close(dataset->db);
    free(dataset->broken);
    free(dataset->broken_texts);
    free(dataset->broken_condition);
    free(dataset->rows);
    free(dataset->root);
    free(dataset->path);
    free(dataset);
}

uint64_t weir_dataset_count(const weir_dataset *dataset)
{
    return dataset ? dataset->count : 0;
}

uint64_t weir_dataset_fingerprint(const weir_dataset *dataset)
{
    return dataset ? dataset->fingerprint : 0;
}

uint32_t weir_dataset_num_classes(const weir_dataset *dataset)
{
    return dataset ? dataset->num_classes : 0;
}

const weir_column *weir_dataset_columns(const weir_dataset *dataset, size_t *num_columns)
{
    if (num_columns)
        *num_columns = dataset ? dataset->columns.num : 0;
    return dataset ? dataset->columns.all : NULL;
}

const char *weir_dataset_class_name(const weir_dataset *dataset, uint32_t class_id)
{
    return dataset && class_id < dataset->num_classes ? dataset->classes[class_id] : NULL;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static int64_t class_of(const weir_dataset *dataset, const char *label)
{
    const named_class wanted = { .name = label };
    const named_class *found =
        label && dataset->num_classes
            ? bsearch(&wanted, dataset->by_name, dataset->num_classes, sizeof wanted, compare_classes)
            : NULL;
    return found ? (int64_t)found->class_id : -1;
}

static char *join_path(const char *root, const char *path)
{
    char *joined = malloc(strlen(root) + strlen(path) + 1);
    if (joined)
        sprintf(joined, "%s%s", root, path);
    return joined;
}

/* NULL is 0, as is what a damaged index has. */
static int64_t read_seconds(sqlite3_stmt *row, int column)
{
    double seconds = sqlite3_column_double(row, column);
    return seconds > 0 && seconds < 9e9 ? (int64_t)(seconds * (double)WEIR_SECOND + 0.5) : 0;
}

static uint64_t read_frame(sqlite3_stmt *row, int column)
{
    int64_t frame = sqlite3_column_int64(row, column);
    return frame > 0 ? (uint64_t)frame : 0;
}

static int make_path(const weir_dataset *dataset, sqlite3_stmt *row, char **path, weir_error *error)
{
    bool is_redacted = sqlite3_column_int(row, 10) != 0;
    const char *address = weir__addresses_find(&dataset->addresses, weir__index_text(row, 9));
    if (is_redacted && !address)
        return fail_changed(dataset, 0, error);
    *path = is_redacted ? strdup(address) : join_path(dataset->root, weir__index_text(row, 0));
    return *path ? WEIR_OK : fail_memory(error);
}

static int fill_from_row(weir_dataset *dataset, weir_entry *entry, weir_error *error)
{
    sqlite3_stmt *row = dataset->find;
    int rc = make_path(dataset, row, &entry->path, error);
    if (rc != WEIR_OK)
        return rc;
    entry->size_bytes = sqlite3_column_int64(row, 1);
    entry->mtime_ns = dataset->ignores_mtime ? 0 : sqlite3_column_int64(row, 2);
    int64_t archive_length = sqlite3_column_int64(row, 5);
    entry->archive_length = archive_length > 0 ? strlen(dataset->root) + (uint64_t)archive_length : 0;
    entry->offset = sqlite3_column_int64(row, 6);
    entry->window = (weir_clip_window){
        .start_ns = read_seconds(row, 7),
        .end_ns = read_seconds(row, 8),
        .start_frame = read_frame(row, 12),
        .end_frame = read_frame(row, 13),
    };
    entry->occurrence = (uint64_t)sqlite3_column_int64(row, 11);
    entry->class_id = class_of(dataset, (const char *)sqlite3_column_text(row, 3));
    const void *packets = sqlite3_column_blob(row, 4);
    entry->packets_bytes = packets ? (size_t)sqlite3_column_bytes(row, 4) : 0;
    entry->packets = packets ? malloc(entry->packets_bytes) : NULL;
    if (packets && !entry->packets)
        return fail_memory(error);
    if (packets)
        memcpy(entry->packets, packets, entry->packets_bytes);
    rc = weir__user_columns_fill(&dataset->columns, row, NUM_FIND_COLUMNS, entry);
    return rc == WEIR_OK ? rc : fail_memory(error);
}

static int fill_entry(void *self, weir_entry *entry, weir_error *error)
{
    weir_dataset *dataset = self;
    if (entry->number >= dataset->count)
        return weir_error_set(error, WEIR_EINVAL, 0, "there is no clip %" PRIu64 " in %s, which has %" PRIu64,
                              entry->number, dataset->path, dataset->count);
    int64_t key = dataset->rows ? dataset->rows[entry->number] : (int64_t)entry->number;
    sqlite3_bind_int64(dataset->find, 1, key);
    int code = sqlite3_step(dataset->find);
    int rc = WEIR_OK;
    if (code == SQLITE_ROW)
        rc = fill_from_row(dataset, entry, error);
    else if (code == SQLITE_DONE)
        rc = fail_changed(dataset, 0, error);
    else
        rc = fail_read(dataset, code, error);
    sqlite3_reset(dataset->find);
    return rc;
}

weir_sampler_items weir_dataset_items(weir_dataset *dataset)
{
    return (weir_sampler_items){ .self = dataset, .fill = dataset ? fill_entry : NULL };
}

/* Reads the class of each clip, in the order of the numbers. */
static int read_label_classes(weir_dataset *dataset, uint32_t *classes, weir_error *error)
{
    sqlite3_stmt *all = NULL;
    char *sql = dataset->rows ? NULL : sqlite3_mprintf("WHERE number IS NOT NULL ORDER BY number");
    int rc = prepare_items(dataset, "label", sql ? sql : "WHERE clip_id = ?", &all, error);
    int code = SQLITE_ROW;
    for (uint64_t i = 0; rc == WEIR_OK && i < dataset->count; i++) {
        if (dataset->rows) {
            sqlite3_reset(all);
            sqlite3_bind_int64(all, 1, dataset->rows[i]);
        }
        code = sqlite3_step(all);
        if (code != SQLITE_ROW)
            rc = fail_changed(dataset, code, error);
        else
            classes[i] = (uint32_t)class_of(dataset, (const char *)sqlite3_column_text(all, 0));
        if (rc == WEIR_OK && classes[i] == UINT32_MAX)
            rc = weir_error_set(error, WEIR_ENOTFOUND, 0, "clip %" PRIu64 " of %s has no label", i, dataset->path);
    }
    sqlite3_finalize(all);
    sqlite3_free(sql);
    return rc;
}

int weir_dataset_read_classes(weir_dataset *dataset, uint32_t **classes, weir_error *error)
{
    if (!dataset || !classes)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *classes = malloc(dataset->count * sizeof **classes);
    int rc = *classes ? read_label_classes(dataset, *classes, error) : fail_memory(error);
    if (rc != WEIR_OK) {
        free(*classes);
        *classes = NULL;
    }
    return rc;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* A value for each item, which take() stores: WEIR_OK, or WEIR_EINVAL if it is not one. */
static int read_all(weir_dataset *dataset, const char *expression,
                    int (*take)(sqlite3_stmt *row, uint64_t i, void *to), void *to, weir_error *error)
{
    sqlite3_stmt *all = NULL;
    int rc =
        prepare_items(dataset, expression,
                      dataset->rows ? "WHERE clip_id = ?" : "WHERE number IS NOT NULL ORDER BY number", &all, error);
    for (uint64_t i = 0; rc == WEIR_OK && i < dataset->count; i++) {
        if (dataset->rows) {
            sqlite3_reset(all);
            sqlite3_bind_int64(all, 1, dataset->rows[i]);
        }
        int code = sqlite3_step(all);
        if (code != SQLITE_ROW)
            rc = fail_changed(dataset, code, error);
        else if (take(all, i, to) != WEIR_OK)
            rc = weir_error_set(error, WEIR_EINVAL, 0, "%s is not a number for clip %" PRIu64 " of %s", expression, i,
                                dataset->path);
    }
    sqlite3_finalize(all);
    return rc;
}

static int take_size(sqlite3_stmt *row, uint64_t i, void *to)
{
    int type = sqlite3_column_type(row, 0);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        return WEIR_EINVAL;
    ((double *)to)[i] = sqlite3_column_double(row, 0);
    return WEIR_OK;
}

static int take_file(sqlite3_stmt *row, uint64_t i, void *to)
{
    ((uint64_t *)to)[i] = (uint64_t)sqlite3_column_int64(row, 0);
    return WEIR_OK;
}

int weir_dataset_read_sizes(weir_dataset *dataset, const char *expression, double **sizes, weir_error *error)
{
    if (sizes)
        *sizes = NULL;
    if (!dataset || !sizes)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    double *read = calloc(dataset->count, sizeof *read);
    int rc = read ? read_all(dataset, expression ? expression : WEIR__CLIP_DURATION, take_size, read, error)
                  : fail_memory(error);
    if (rc == WEIR_OK)
        *sizes = read;
    else
        free(read);
    return rc;
}

int weir_dataset_read_files(weir_dataset *dataset, uint64_t **files, weir_error *error)
{
    /* the row of its first clip, also if that was not chosen */
    static const char file[] =
        "(SELECT first.clip_id FROM clip AS first WHERE first.identity = clip.identity AND first.occurrence = 0)";
    if (files)
        *files = NULL;
    if (!dataset || !files)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    uint64_t *read = calloc(dataset->count, sizeof *read);
    int rc = read ? read_all(dataset, file, take_file, read, error) : fail_memory(error);
    if (rc == WEIR_OK)
        *files = read;
    else
        free(read);
    return rc;
}

/* ---- broken clips ------------------------------------------------------------------------------------------------- */

static int read_broken(weir_dataset *dataset, weir_error *error)
{
    if (dataset->find_broken)
        return WEIR_OK;
    int rc = read_rows(dataset, dataset->broken_condition, &dataset->broken, &dataset->num_broken, error);
    if (rc == WEIR_OK)
        rc = prepare_items(dataset, "path, label, status, library_code, message, occurrence", "WHERE clip_id = ?",
                           &dataset->find_broken, error);
    if (rc != WEIR_OK) {
        free(dataset->broken);
        dataset->broken = NULL;
        dataset->num_broken = 0;
    }
    return rc;
}

int weir_dataset_count_broken(weir_dataset *dataset, uint64_t *num_broken, weir_error *error)
{
    if (num_broken)
        *num_broken = 0;
    if (!dataset || !num_broken)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = read_broken(dataset, error);
    *num_broken = dataset->num_broken;
    return rc;
}

/* The row's texts end with it. */
static int keep_broken_texts(weir_dataset *dataset, sqlite3_stmt *row, weir_broken_clip *clip, weir_error *error)
{
    const struct {
        const char **text;
        int column;
    } parts[] = { { &clip->path, 0 }, { &clip->label, 1 }, { &clip->message, 4 } };
    size_t size = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        size += strlen(weir__index_text(row, parts[i].column)) + 1;
    char *texts = realloc(dataset->broken_texts, size);
    if (!texts)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    dataset->broken_texts = texts;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        *parts[i].text = strcpy(texts, weir__index_text(row, parts[i].column));
        texts += strlen(texts) + 1;
    }
    return WEIR_OK;
}

int weir_dataset_read_broken_sized(weir_dataset *dataset, uint64_t number, weir_broken_clip *clip, size_t clip_size,
                                   weir_error *error)
{
    if (!dataset || !clip)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_broken_clip own = { 0 };
    int rc = read_broken(dataset, error);
    if (rc == WEIR_OK && number >= dataset->num_broken)
        rc = weir_error_set(error, WEIR_ERANGE, 0,
                            "there is no broken clip %" PRIu64 " in %s, which has %" PRIu64 " of them", number,
                            dataset->path, dataset->num_broken);
    if (rc != WEIR_OK)
        return rc;
    sqlite3_stmt *row = dataset->find_broken;
    sqlite3_reset(row);
    sqlite3_bind_int64(row, 1, dataset->broken[number]);
    int code = sqlite3_step(row);
    if (code != SQLITE_ROW)
        return code == SQLITE_DONE ? fail_changed(dataset, 0, error) : fail_read(dataset, code, error);
    own.status = sqlite3_column_int(row, 2);
    own.library_code = sqlite3_column_int(row, 3);
    own.occurrence = (uint64_t)sqlite3_column_int64(row, 5);
    rc = keep_broken_texts(dataset, row, &own, error);
    sqlite3_reset(row); /* else it would keep the index as it is now */
    if (rc == WEIR_OK)
        weir_struct_fill(clip, clip_size, &own, sizeof own);
    return rc;
}
