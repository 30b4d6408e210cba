#include "record_ended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "memory.h"
#include "redact.h"

char *record_rank_path(const char *path, const char *rank)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".gz") == 0) /* "trace.json.gz" */
        while (dot > name && *--dot != '.')
            ;
    size_t length = dot && dot > name ? (size_t)(dot - path) : strlen(path);
    return memory_format("%.*s.rank%s%s", (int)length, path, rank, path + length);
}

static int compare_labels(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A row for each record, and one for the laps. A failure has no label if it is not an end. */
static const char sql_of_records[] =
    "SELECT coalesce(label, ''), 1, 0, 0 FROM items"
    " UNION ALL SELECT iif(:text = 'failed', coalesce(label, ''), NULL), 1, 0, 0 FROM failures"
    " UNION ALL SELECT NULL, 0, sum(num_tasks), sum(num_failures) FROM tasks";

static int add_row(void *self, const weir_row *row, weir_error *error)
{
    record_ended *ended = self;
    (void)error;
    ended->num_records += (uint64_t)weir_row_int(row, 1);
    ended->num_tasks += (uint64_t)weir_row_int(row, 2);
    ended->num_failures += (uint64_t)weir_row_int(row, 3);
    if (weir_row_is_null(row, 0))
        return WEIR_OK;
    ended->labels = memory_grow(ended->labels, ended->num_labels, sizeof *ended->labels);
    ended->labels[ended->num_labels++] = memory_copy(weir_row_text(row, 0));
    return WEIR_OK;
}

int record_ended_read(record_ended *ended, weir_reader *reader, const weir_filter *given, weir_error *error)
{
    uint64_t num_tasks = ended->num_tasks, num_records = ended->num_records;
    weir_filter filter = given ? *given : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    filter.name = "decode";
    int status = weir_reader_select(reader, &filter, sql_of_records, ended->leaves_out_failed ? NULL : "failed",
                                    add_row, ended, error);
    num_tasks = ended->num_tasks - num_tasks;
    num_records = ended->num_records - num_records;
    ended->num_unnamed += num_tasks > num_records ? num_tasks - num_records : 0;
    if (ended->num_labels > 0)
        qsort(ended->labels, ended->num_labels, sizeof *ended->labels, compare_labels);
    return status;
}

static int read_database(record_ended *ended, const char *path, weir_error *error)
{
    weir_reader *reader;
    int status = weir_reader_open(path, &reader, error);
    if (status != WEIR_OK)
        return status;
    status = record_ended_read(ended, reader, NULL, error);
    weir_reader_close(reader);
    return status;
}

char *record_escape_pattern(const char *path)
{
    char *text = memory_get(2 * strlen(path) + 1, 1), *to = text;
    for (; *path; *to++ = *path++)
        if (strchr("*?[\\", *path))
            *to++ = '\\';
    return text;
}

int record_rank_databases(const char *path, glob_t *found, weir_error *error)
{
    char *escaped = record_escape_pattern(path);
    char *pattern = record_rank_path(escaped, "*");
    int code = glob(pattern, 0, NULL, found);
    free(escaped);
    free(pattern);
    return code == 0 || code == GLOB_NOMATCH
               ? WEIR_OK
               : weir_error_set(error, WEIR_EIO, 0, "cannot look for the databases of ranks beside %s", path);
}

int record_ended_read_all(record_ended *ended, const char *path, weir_error *error)
{
    glob_t found = { 0 };
    int status = record_rank_databases(path, &found, error);
    if (status == WEIR_OK && (found.gl_pathc == 0 || access(path, F_OK) == 0))
        status = read_database(ended, path, error);
    for (size_t i = 0; i < found.gl_pathc && status == WEIR_OK; i++)
        status = read_database(ended, found.gl_pathv[i], error);
    globfree(&found);
    return status;
}

/* The label that the list source gives to a path. */
static char *label_of_path(const char *path)
{
    char *label = memory_copy(path);
    if (strstr(label, "://"))
        weir__text_redact(label);
    return label;
}

typedef struct labelled_path {
    char *label;
    const char *path;
    size_t place;
} labelled_path;

static int compare_labelled(const void *a, const void *b)
{
    return strcmp(((const labelled_path *)a)->label, ((const labelled_path *)b)->label);
}

/* The first of the equal labels is kept. Equal paths are numbered. */
static void compare_labelled_paths(record_ended *ended, labelled_path *all, size_t count, size_t *occurrences)
{
    for (size_t first = 0, end; first < count; first = end) {
        bool is_doubtful = false;
        occurrences[all[first].place] = 0;
        for (end = first + 1; end < count && strcmp(all[first].label, all[end].label) == 0; end++) {
            is_doubtful |= strcmp(all[first].path, all[end].path) != 0;
            occurrences[all[end].place] = end - first;
        }
        if (is_doubtful) {
            ended->doubtful[ended->num_doubtful++] = all[first].label;
            all[first].label = NULL;
        }
    }
}

void record_ended_compare_inputs(record_ended *ended, const char *const *paths, size_t num_paths, size_t *occurrences)
{
    labelled_path *all = memory_get(num_paths, sizeof *all);
    for (size_t i = 0; i < num_paths; i++)
        all[i] = (labelled_path){ label_of_path(paths[i]), paths[i], i };
    ended->doubtful = memory_get(num_paths, sizeof *ended->doubtful);
    qsort(all, num_paths, sizeof *all, compare_labelled);
    compare_labelled_paths(ended, all, num_paths, occurrences);
    for (size_t i = 0; i < num_paths; i++)
        free(all[i].label);
    free(all);
}

static size_t count_among(const char *label, char *const *labels, size_t count)
{
    char *const *found = count > 0 ? bsearch(&label, labels, count, sizeof *labels, compare_labels) : NULL;
    if (!found)
        return 0;
    char *const *first = found, *const *last = found;
    while (first > labels && strcmp(first[-1], label) == 0)
        first--;
    while (last + 1 < labels + count && strcmp(last[1], label) == 0)
        last++;
    return (size_t)(last - first) + 1;
}

size_t record_ended_count(const record_ended *ended, const char *path)
{
    if (!ended || ended->num_labels == 0)
        return 0;
    char *label = label_of_path(path);
    size_t count = count_among(label, ended->doubtful, ended->num_doubtful)
                       ? 0
                       : count_among(label, ended->labels, ended->num_labels);
    free(label);
    return count;
}

void record_ended_free(record_ended *ended)
{
    for (size_t i = 0; i < ended->num_labels; i++)
        free(ended->labels[i]);
    free(ended->labels);
    for (size_t i = 0; i < ended->num_doubtful; i++)
        free(ended->doubtful[i]);
    free(ended->doubtful);
    *ended = (record_ended){ 0 };
}
