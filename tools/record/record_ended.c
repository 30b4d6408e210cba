#include "tools/record/record_ended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/item.h>

#include "common/array.h"
#include "tools/cli/memory.h"

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

static int compare_ends(const void *a, const void *b)
{
    const record_end *one = a, *other = b;
    int order = strcmp(one->address, other->address);
    return order ? order : (one->occurrence > other->occurrence) - (one->occurrence < other->occurrence);
}

/* A row for each record, and one for the laps. A failure has no identity if it is not an end. */
static const char sql_of_records[] =
    "SELECT coalesce(nullif(identity, ''), label, ''), 1, 0, 0, occurrence FROM items"
    " UNION ALL SELECT iif(:text = 'failed', coalesce(nullif(identity, ''), label, ''), NULL), 1, 0, 0, occurrence"
    " FROM failures"
    " UNION ALL SELECT NULL, 0, sum(num_tasks), sum(num_failures), 0 FROM tasks";

static int add_row(void *self, const weir_row *row, weir_error *error)
{
    record_ended *ended = self;
    (void)error;
    ended->num_records += (uint64_t)weir_row_int(row, 1);
    ended->num_tasks += (uint64_t)weir_row_int(row, 2);
    ended->num_failures += (uint64_t)weir_row_int(row, 3);
    if (weir_row_is_null(row, 0))
        return WEIR_OK;
    ended->ends = memory_grow(ended->ends, ended->num_ends, sizeof *ended->ends);
    ended->ends[ended->num_ends++] =
        (record_end){ memory_copy(weir_row_text(row, 0)), (uint64_t)weir_row_int(row, 4) };
    return WEIR_OK;
}

int record_ended_read(record_ended *ended, weir_recording *recording, const weir_filter *given, weir_error *error)
{
    uint64_t num_tasks = ended->num_tasks, num_records = ended->num_records;
    weir_filter filter = given ? *given : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    filter.name = "decode";
    int status = weir_recording_query(recording, &filter, sql_of_records, ended->leaves_out_failed ? NULL : "failed",
                                      add_row, ended, error);
    num_tasks = ended->num_tasks - num_tasks;
    num_records = ended->num_records - num_records;
    ended->num_unnamed += num_tasks > num_records ? num_tasks - num_records : 0;
    if (ended->num_ends > 0)
        qsort(ended->ends, ended->num_ends, sizeof *ended->ends, compare_ends);
    return status;
}

static int read_database(record_ended *ended, const char *path, weir_error *error)
{
    weir_recording *recording;
    int status = weir_recording_open(path, &recording, error);
    if (status != WEIR_OK)
        return status;
    status = record_ended_read(ended, recording, NULL, error);
    weir_recording_close(recording);
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

bool record_ended_has(const record_ended *ended, weir_identity identity)
{
    if (!ended || ended->num_ends == 0)
        return false;
    record_end wanted = { (char *)(uintptr_t)identity.address, identity.occurrence };
    return bsearch(&wanted, ended->ends, ended->num_ends, sizeof *ended->ends, compare_ends) != NULL;
}

size_t record_ended_count(const record_ended *ended)
{
    size_t count = 0;
    for (size_t i = 0; i < ended->num_ends; i++)
        count += i == 0 || compare_ends(&ended->ends[i - 1], &ended->ends[i]) != 0;
    return count;
}

void record_ended_free(record_ended *ended)
{
    for (size_t i = 0; i < ended->num_ends; i++)
        free(ended->ends[i].address);
    free(ended->ends);
    *ended = (record_ended){ 0 };
}
