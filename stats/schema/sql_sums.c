#include "stats/schema/sql_sums.h"

#include <weir/metrics.h>
#include <weir/status.h>

/* -- histograms */

bool weir__sums_add_histogram(sqlite3_context *context, weir_histogram *to, sqlite3_value *value)
{
    const void *bytes = sqlite3_value_blob(value);
    if (weir_histogram_add_encoded(to, bytes, (size_t)sqlite3_value_bytes(value)) == WEIR_OK)
        return true;
    sqlite3_result_error(context, "a histogram is damaged", -1);
    sqlite3_result_error_code(context, SQLITE_CORRUPT);
    return false;
}

typedef struct merged_histogram {
    weir_histogram times; /* SQLite zeroes it */
    bool has_any, is_damaged;
} merged_histogram;

static void merge_step(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    if (sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    merged_histogram *merged = sqlite3_aggregate_context(context, sizeof *merged);
    if (!merged) {
        sqlite3_result_error_nomem(context);
        return;
    }
    merged->has_any = true;
    merged->is_damaged |= !weir__sums_add_histogram(context, &merged->times, values[0]);
}

static void merge_final(sqlite3_context *context)
{
    const merged_histogram *merged = sqlite3_aggregate_context(context, 0);
    if (!merged || !merged->has_any || merged->is_damaged)
        return; /* NULL, or the error of the step */
    size_t size_bytes = weir_histogram_encode(&merged->times, NULL, 0);
    void *bytes = sqlite3_malloc64(size_bytes);
    if (!bytes) {
        sqlite3_result_error_nomem(context);
        return;
    }
    weir_histogram_encode(&merged->times, bytes, size_bytes);
    sqlite3_result_blob64(context, bytes, size_bytes, sqlite3_free);
}

/* -- the last value */

typedef struct last_value {
    sqlite3_value *value; /* NULL = none yet */
    double time;
} last_value;

static void last_step(sqlite3_context *context, int num_values, sqlite3_value **values)
{
    (void)num_values;
    last_value *last = sqlite3_aggregate_context(context, sizeof *last);
    double time = sqlite3_value_double(values[1]);
    if (!last || sqlite3_value_type(values[0]) == SQLITE_NULL || (last->value && time < last->time))
        return;
    sqlite3_value_free(last->value);
    last->value = sqlite3_value_dup(values[0]);
    last->time = time;
    if (!last->value)
        sqlite3_result_error_nomem(context);
}

static void last_final(sqlite3_context *context)
{
    last_value *last = sqlite3_aggregate_context(context, 0);
    if (last && last->value)
        sqlite3_result_value(context, last->value);
    if (last)
        sqlite3_value_free(last->value);
}

/* -- both */

int weir__sums_register(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int code =
        sqlite3_create_function_v2(db, "weir_merge_histogram", 1, flags, NULL, NULL, merge_step, merge_final, NULL);
    return code == SQLITE_OK
               ? sqlite3_create_function_v2(db, "weir_last", 2, flags, NULL, NULL, last_step, last_final, NULL)
               : code;
}
