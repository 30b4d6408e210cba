#include "stats/read/lap_rows.h"

#include "stats/read/rolled_laps.h"

int weir__lap_select(weir_recording *recording, weir_subject subject, const weir_filter *filter,
                     const weir_lap_group *group, sqlite3_stmt **statement, weir_error *error)
{
    const weir_lap_table *table = &weir__lap_tables[subject];
    const bool is_rolled = group ? group->is_whole != NULL : recording->joins_laps;
    char *rolled = is_rolled ? weir__rolled_laps(subject, recording->joins_laps ? NULL : group->is_whole) : NULL;
    char *columns = weir__lap_table_expressions(subject, group ? &group->keys : NULL, !recording->skips_histograms);
    char *all = columns ? sqlite3_mprintf("%s%s%s", columns, group ? ", " : "", group ? group->columns : "") : NULL;
    weir_sql_selection selection = {
        .kind = WEIR_ROWS_LAPS,
        .table = is_rolled ? rolled : table->name,
        .columns = all && (rolled || !is_rolled) ? all : "no_such_column", /* an error */
        .condition = group ? group->condition : NULL,
        .name_column = "t.name",
        .length = table->longest,
        .begin = group ? group->begin : NULL,
        .end = group ? group->end : NULL,
    };
    int status = weir__select(recording, &selection, filter, statement, error);
    sqlite3_free(rolled);
    sqlite3_free(all);
    sqlite3_free(columns);
    return status;
}

void weir_recording_skip_histograms(weir_recording *recording, bool skip)
{
    if (recording)
        recording->skips_histograms = skip;
}
