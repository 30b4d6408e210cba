/* OpenMetrics text from a database: final sums, or the sums after each lap. */
#include <weir/openmetrics.h>

#include <stdlib.h>

#include "array.h"
#include "database_reader.h"
#include "exposition.h"
#include "record.h"

/* The exported data, and what owns the texts of its runs. */
struct contents {
    weir_exposition all;
    weir_record_entry *entries;
};

static void free_contents(struct contents *contents)
{
    for (weir_record_entry *entry = contents->entries, *next; entry; entry = next) {
        next = entry->next;
        free(entry);
    }
    free(contents->all.runs);
    weir__exposition_clear(&contents->all);
}

static int add_exported_run(void *self, const weir_record *record, weir_error *error)
{
    struct contents *contents = self;
    weir_run_record *runs = weir__array_grow(contents->all.runs, contents->all.num_runs, sizeof *runs);
    weir_record_entry *entry = weir__record_entry_of(record);
    contents->all.runs = runs ? runs : contents->all.runs;
    if (!runs || !entry) {
        free(entry);
        return weir__reader_out_of_memory(error);
    }
    entry->next = contents->entries;
    contents->entries = entry;
    runs[contents->all.num_runs++] = entry->record.run;
    return WEIR_OK;
}

static int read_contents(weir_reader *reader, const weir_filter *filter, struct contents *contents, weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_RUN | WEIR_BY_NAME };
    int status = weir_reader_each(reader, WEIR_RECORD_RUN, filter, add_exported_run, contents, error);
    if (status == WEIR_OK && contents->all.num_runs == 0)
        status =
            weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters", weir_reader_path(reader));
    if (status == WEIR_OK)
        status = weir_totals_read(reader, filter, &grouping, &contents->all.totals, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_EVENT, filter, weir__exposition_take, &contents->all, error);
    if (status == WEIR_OK)
        status = weir_reader_each(reader, WEIR_RECORD_PHASE, filter, weir__exposition_take, &contents->all, error);
    return status;
}

int weir_openmetrics_export(weir_reader *reader, const weir_filter *filter, bool by_lap, FILE *out, weir_error *error)
{
    if (!reader || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter in_order = filter ? *filter : (weir_filter){ 0 };
    in_order.descending = in_order.longest_first = false;
    in_order.limit = in_order.after_id = 0;
    struct contents contents = { .all = { .history = by_lap ? reader : NULL, .filter = &in_order, .error = error } };
    int status = weir_reader_hold(reader, error);
    if (status != WEIR_OK)
        return status;
    status = read_contents(reader, &in_order, &contents, error);
    if (status == WEIR_OK) {
        weir__exposition_write(out, &contents.all);
        status = contents.all.status;
    }
    if (status == WEIR_OK)
        status = weir__check_written(out, "cannot write the metrics", error);
    weir_reader_release(reader);
    free_contents(&contents);
    return status;
}
