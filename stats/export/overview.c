#include "stats/export/overview.h"

#include <math.h>
#include <stdlib.h>

#include "common/array.h"
#include "stats/export/lap_sums.h"
#include "stats/record/record.h"
#include "stats/schema/record_tables.h"

int weir__limit_rules_check(const weir_limit_rules *rules, weir_error *error)
{
    for (size_t i = 0; rules && i < sizeof rules->reserved / sizeof rules->reserved[0]; i++)
        if (rules->reserved[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "weir_limit_rules has a member that is not known in weir %s", weir_version());
    if (rules && !(rules->word && rules->judge && rules->read))
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_limit_rules: a function is missing");
    return WEIR_OK;
}

static weir_overview rates_of(const weir_totals *totals)
{
    return (weir_overview){ .items_per_s = weir_totals_items_per_s(totals),
                            .frames_per_s = weir_totals_frames_per_s(totals) };
}

int weir__overview_read(weir_recording *recording, const weir_filter *filter, const weir_limit_rules *rules,
                        weir_overview *overview, weir_error *error)
{
    weir_totals totals;
    weir_filter own = *filter;
    own.no_replay = !filter->phase; /* as in the summary */
    int status = weir_totals_read(recording, &own, &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    *overview = rates_of(&totals);
    weir_totals_free(&totals);
    if (rules)
        status = rules->read(recording, filter, &overview->limit, error);
    overview->has_limit = rules && status == WEIR_OK;
    return status;
}

static int add_stage(weir_live_overview *live, const weir_record *stage)
{
    const weir_record **all = weir__array_grow(live->stages.all, live->stages.count, sizeof *all);
    weir_record_entry *entry = all ? weir__record_entry_of(stage) : NULL;
    live->stages.all = all ? all : live->stages.all;
    if (!entry)
        return WEIR_ENOMEM;
    live->stages.all[live->stages.count++] = &entry->record;
    return WEIR_OK;
}

int weir__live_overview_take(weir_live_overview *live, const weir_record *record, weir_error *error)
{
    int status = WEIR_OK;
    if (record->kind == WEIR_RECORD_STAGE)
        status = add_stage(live, record);
    if (weir__record_is_lap(record->kind)) {
        if (record->lap.end_unix_ns != live->lap_unix_ns)
            weir_totals_free(&live->lap);
        live->lap_unix_ns = record->lap.end_unix_ns;
        status = weir__lap_sums_add(&live->lap.of[record->lap.subject], &record->lap);
    }
    return status == WEIR_OK ? status : weir_error_set(error, status, 0, "out of memory for the overview");
}

int weir__live_overview_get(const weir_live_overview *live, weir_overview *overview, weir_error *error)
{
    int status = WEIR_OK;
    *overview = rates_of(&live->lap);
    if (live->rules && live->lap_unix_ns != 0)
        status = live->rules->judge(&live->lap, &live->stages, &overview->limit, error);
    overview->has_limit = live->rules && live->lap_unix_ns != 0 && status == WEIR_OK;
    return status;
}

void weir__live_overview_clear(weir_live_overview *live)
{
    weir_totals_free(&live->lap);
    weir_records_free(&live->stages);
    live->lap_unix_ns = 0;
}
