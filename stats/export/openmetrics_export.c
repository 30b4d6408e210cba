/* OpenMetrics text from a database: final sums, or the sums after each lap. */
#include <weir/openmetrics.h>

#include <stdlib.h>

#include "stats/export/exposition.h"
#include "stats/export/formats.h"
#include "stats/read/open_recording.h"

static int read_exposition(weir_recording *recording, const weir_filter *filter, weir_exposition *all,
                           weir_error *error)
{
    weir_grouping grouping = { .by = WEIR_BY_RUN | WEIR_BY_NAME };
    int status = weir_records_read(recording, WEIR_RECORD_RUN, filter, &all->runs, error);
    if (status == WEIR_OK && all->runs.count == 0)
        status = weir_error_set(error, WEIR_ENOTFOUND, 0, "no run in %s matches the filters",
                                weir_recording_path(recording));
    if (status == WEIR_OK)
        status = weir_totals_read(recording, filter, &grouping, &all->totals, error);
    if (status == WEIR_OK)
        status = weir_recording_each(recording, WEIR_RECORD_EVENT, filter, weir__exposition_take, all, error);
    if (status == WEIR_OK)
        status = weir_recording_each(recording, WEIR_RECORD_PHASE, filter, weir__exposition_take, all, error);
    return status;
}

static int read_overviews(weir_recording *recording, const weir_filter *filter, const weir_limit_rules *rules,
                          const weir_records *runs, weir_overview **overviews, weir_error *error)
{
    int status = WEIR_OK;
    *overviews = calloc(runs->count, sizeof **overviews);
    if (!*overviews)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory for the metrics");
    for (size_t i = 0; i < runs->count && status == WEIR_OK; i++) {
        weir_filter of_run = *filter;
        of_run.run_id = runs->all[i]->run.run_id;
        status = weir__overview_read(recording, &of_run, rules, &(*overviews)[i], error);
    }
    return status;
}

int weir__openmetrics_export(weir_recording *recording, const weir_filter *filter, bool by_lap,
                             const weir_limit_rules *rules, FILE *out, weir_error *error)
{
    if (!recording || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter in_order = filter ? *filter : (weir_filter){ 0 };
    in_order.descending = in_order.longest_first = false;
    in_order.limit = in_order.after_id = 0;
    weir_exposition all = { .history = by_lap ? recording : NULL, .filter = &in_order, .error = error };
    weir_overview *overviews = NULL;
    int status = weir__limit_rules_check(rules, error);
    if (status == WEIR_OK)
        status = weir_recording_hold(recording, error);
    if (status != WEIR_OK)
        return status;
    status = read_exposition(recording, &in_order, &all, error);
    if (status == WEIR_OK && !by_lap && !in_order.name) /* a part of the stages has no rate and no limit */
        status = read_overviews(recording, &in_order, rules, &all.runs, &overviews, error);
    all.overviews = overviews;
    if (status == WEIR_OK) {
        weir__exposition_write(out, &all);
        status = all.status;
    }
    if (status == WEIR_OK)
        status = weir__check_written(out, "cannot write the metrics", error);
    weir_recording_release(recording);
    weir_records_free(&all.runs);
    weir__exposition_clear(&all);
    free(overviews);
    return status;
}

int weir_openmetrics_export(weir_recording *recording, const weir_filter *filter, bool by_lap, FILE *out,
                            weir_error *error)
{
    return weir__openmetrics_export(recording, filter, by_lap, NULL, out, error);
}
