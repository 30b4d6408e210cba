#include "stats/read/sql_functions.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/metrics.h>
#include <weir/status.h>
#include <weir/version.h>

#include "common/array.h"
#include "stats/read/existing_files.h"
#include "stats/read/name_match.h"
#include "stats/schema/sql_sums.h"

/* -- histograms */

/* The middle of a bucket may lie outside of the shortest and longest time. If these are given, no quantile does. */
static void quantile_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    if (num_values < 2 || sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    weir_histogram *times = calloc(1, sizeof *times);
    if (!times)
        sqlite3_result_error_nomem(context);
    else if (weir__sums_add_histogram(context, times, values[0]) && times->count) {
        double time =
            (double)weir_histogram_quantile_ns(times, sqlite3_value_double(values[1])) / (double)WEIR_SECOND;
        double least = num_values > 2 ? sqlite3_value_double(values[2]) : 0,
               most = num_values > 3 ? sqlite3_value_double(values[3]) : 0;
        time = most > 0 && time > most ? most : time;
        sqlite3_result_double(context, time < least ? least : time);
    }
    free(times);
}

/* Each time is known to the width of its bucket, and so is the mean; the last bucket has no upper edge. */
static bool is_mean_of(const weir_histogram *times, double mean)
{
    double least = 0, most = 0, slack = 1e-9 + 1e-6 * mean, count = (double)times->count;
    for (uint32_t i = times->first; i <= times->last; i++) {
        int64_t low_ns, high_ns;
        if (times->buckets[i] == 0)
            continue;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        least += (double)times->buckets[i] * (double)low_ns / 1e9;
        most += i == WEIR_HISTOGRAM_BUCKETS - 1 ? INFINITY : (double)times->buckets[i] * (double)high_ns / 1e9;
    }
    return mean >= least / count - slack && mean <= most / count + slack;
}

/* weir_histogram_fault(column, histogram, count, sum): what is wrong with it; NULL = nothing. */
static void fault_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    const char *column = (const char *)sqlite3_value_text(values[0]);
    const void *bytes = sqlite3_value_blob(values[1]);
    int64_t wanted = sqlite3_value_int64(values[2]);
    double mean = sqlite3_value_type(values[3]) == SQLITE_NULL
                      ? (double)NAN
                      : sqlite3_value_double(values[3]) / (double)(wanted ? wanted : 1);
    weir_histogram *times = calloc(1, sizeof *times);
    bool is_valid =
        times && weir_histogram_add_encoded(times, bytes, (size_t)sqlite3_value_bytes(values[1])) == WEIR_OK;
    bool is_complete = is_valid && (int64_t)times->count == wanted;
    char *fault = !times || (is_complete && (!wanted || is_mean_of(times, mean))) ? NULL
                  : !is_valid   ? sqlite3_mprintf(" has no valid %s", column)
                  : is_complete ? sqlite3_mprintf(": the times of %s are not %g s on the average", column, mean)
                                : sqlite3_mprintf(": %s holds %lld times, and %lld were counted", column,
                                                  (long long)times->count, (long long)wanted);
    if (fault)
        sqlite3_result_text(context, fault, -1, sqlite3_free);
    else if (!is_complete)
        sqlite3_result_error_nomem(context);
    free(times);
}

/* -- runs at the same time */

typedef struct run_extent {
    int64_t run_id;
    double start, end;
} run_extent;

typedef struct run_extents {
    run_extent *all;
    size_t count, last; /* last: of the row before */
    bool has_failed;
} run_extents;

static void concurrency_step(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    run_extents *runs = sqlite3_aggregate_context(context, sizeof *runs);
    int64_t run_id = sqlite3_value_int64(values[0]);
    double start = sqlite3_value_double(values[1]), end = sqlite3_value_double(values[2]);
    if (!runs || runs->has_failed)
        return;
    if (runs->last >= runs->count || runs->all[runs->last].run_id != run_id)
        for (runs->last = 0; runs->last < runs->count && runs->all[runs->last].run_id != run_id; runs->last++)
            ;
    if (runs->last == runs->count) {
        run_extent *grown = weir__array_grow(runs->all, runs->count, sizeof *grown);
        runs->has_failed = !grown;
        if (!grown) {
            sqlite3_result_error_nomem(context);
            return;
        }
        runs->all = grown;
        runs->all[runs->count++] = (run_extent){ run_id, start, end };
    }
    run_extent *run = &runs->all[runs->last];
    run->start = start < run->start ? start : run->start;
    run->end = end > run->end ? end : run->end;
}

static int compare_extents(const void *left, const void *right)
{
    const run_extent *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* weir_concurrency(run, start, end): the time of all runs, by the time in which at least one of them went on. */
static void concurrency_final(sqlite3_context *context)
{
    run_extents *runs = sqlite3_aggregate_context(context, 0);
    double sum = 0, covered = 0, end = -INFINITY;
    if (!runs || runs->count == 0)
        return;
    qsort(runs->all, runs->count, sizeof *runs->all, compare_extents);
    for (size_t i = 0; i < runs->count; i++) {
        const run_extent *run = &runs->all[i];
        double start = run->start > end ? run->start : end;
        sum += run->end - run->start;
        covered += run->end > start ? run->end - start : 0;
        end = run->end > end ? run->end : end;
    }
    sqlite3_result_double(context, runs->count > 1 && covered > 0 && sum > covered ? sum / covered : 1);
    free(runs->all);
}

/* -- failures */

/* weir_reason(message, label): the message with * for the label and # for each number, which differ from item to item. */
static void reason_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    const char *message = (const char *)sqlite3_value_text(values[0]);
    const char *label = (const char *)sqlite3_value_text(values[1]);
    size_t label_bytes = label ? strlen(label) : 0;
    sqlite3_str *reason = sqlite3_str_new(NULL);
    while (message && *message) {
        size_t digits = strspn(message, "0123456789");
        if (label_bytes && strncmp(message, label, label_bytes) == 0) {
            sqlite3_str_appendchar(reason, 1, '*');
            message += label_bytes;
        } else if (digits) {
            sqlite3_str_appendchar(reason, 1, '#');
            message += digits;
        } else
            sqlite3_str_appendchar(reason, 1, *message++);
    }
    sqlite3_str_appendchar(reason, 1, '\0'); /* never empty, so that NULL is out of memory */
    int length = sqlite3_str_length(reason) - 1;
    char *text = sqlite3_str_finish(reason);
    if (text)
        sqlite3_result_text(context, text, length, sqlite3_free);
    else
        sqlite3_result_error_nomem(context);
}

/* weir_status(status): its name. */
static void status_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    sqlite3_result_text(context, weir_status_name(sqlite3_value_int(values[0])), -1, SQLITE_STATIC);
}

/* weir_status_text(status): what it means. */
static void status_text_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    sqlite3_result_text(context, weir_status_text(sqlite3_value_int(values[0])), -1, SQLITE_STATIC);
}

/* weir_folder(path): "/data/clips" of "/data/clips/a.mp4"; "" of a name without a folder. */
static void folder_function(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    const char *path = (const char *)sqlite3_value_text(values[0]), *slash = path ? strrchr(path, '/') : NULL;
    size_t length = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    sqlite3_result_text64(context, path ? path : "", length, SQLITE_TRANSIENT, SQLITE_UTF8);
}

/* -- all of them */

int weir__functions_register(sqlite3 *db)
{
    static const struct {
        const char *name;
        int num_values;
        void (*function)(sqlite3_context *context, int num_values, sqlite3_value **values);
        void (*step)(sqlite3_context *context, int num_values, sqlite3_value **values);
        void (*final)(sqlite3_context *context);
    } functions[] = {
        { "weir_quantile", -1, quantile_function, NULL, NULL },
        { "weir_histogram_fault", 4, fault_function, NULL, NULL },
        { "weir_concurrency", 3, NULL, concurrency_step, concurrency_final },
        { "weir_reason", 2, reason_function, NULL, NULL },
        { "weir_status", 1, status_function, NULL, NULL },
        { "weir_status_text", 1, status_text_function, NULL, NULL },
        { "weir_folder", 1, folder_function, NULL, NULL },
    };
    int code = weir__names_register(db);
    if (code == SQLITE_OK)
        code = weir__sums_register(db);
    if (code == SQLITE_OK)
        code = weir__existing_files_register(db);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && code == SQLITE_OK; i++)
        code = sqlite3_create_function_v2(db, functions[i].name, functions[i].num_values,
                                          SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, functions[i].function,
                                          functions[i].step, functions[i].final, NULL);
    return code;
}

#ifdef WEIR_IS_SHARED
/* What .load and load_extension() call; the name is the library's. */
WEIR_API int sqlite3_weirstats_init(sqlite3 *db, char **message, const void *routines);

int sqlite3_weirstats_init(sqlite3 *db, char **message, const void *routines)
{
    (void)message;
    (void)routines; /* the library uses the same SQLite as the program that loads it */
    return weir__functions_register(db);
}
#endif
