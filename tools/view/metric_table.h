/* Totals and laps as rows of tables: the group keys first, then all measures of their subject. */
#ifndef TOOLS_VIEW_METRIC_TABLE_H
#define TOOLS_VIEW_METRIC_TABLE_H

#include <weir/query.h>
#include <weir/verdict.h>

#include "tools/cli/table.h"

/* Which columns of the key a table has. */
typedef struct metric_keys {
    bool run, node, time, steps, mode, phase, share, kind, name;
    weir_recording *recording; /* of laps: when these ended, after the start of their run; NULL = not shown */
} metric_keys;

enum { METRIC_MAX_COLUMNS = 160 };

/* The column of a measure. */
table_column metric_column(const weir_measure *measure);

/* Begins such a table. Fills in the columns, which must outlive the table. */
table *metric_table_begin(FILE *out, table_format format, table_column columns[METRIC_MAX_COLUMNS],
                          weir_subject subject, const metric_keys *keys);

/* One row. */
void metric_put_row(table *t, const metric_keys *keys, const weir_total *total);

/* Whether its p90 or p99 is its largest value, because it has so few. */
bool metric_has_few_values(const weir_total *total);

/* Says that on a terminal, behind a text table in which any row has; scripts count lines. */
void metric_put_few_note(void);

/* Only the cells of the measures. */
void metric_put_measures(table *t, const weir_total *total);

/* A table of one subject; as text, nothing is printed if it is empty. */
void metric_put_list(FILE *out, table_format format, weir_subject subject, const weir_total_list *list);

/*
 * A row for each measure that has a title and is not always 0, with its meaning. A column with this title for each of
 * up to METRIC_MAX_UPRIGHT totals of one subject (NULL = not known). Tables as wide as all measures do not fit a
 * page.
 */
enum { METRIC_MAX_UPRIGHT = 6 };
void metric_put_upright(FILE *out, table_format format, const weir_total *const *totals, const char *const *titles,
                        size_t count);

/* All subjects, as members of a JSON object: "stages": [...], "flow": ... */
void metric_put_totals(FILE *out, const weir_totals *totals);

/* {"kind": "slots", "stage": "0:1:decode", "sentence": "…", "confidence": 0.93}; null if there is no verdict. */
void metric_put_limit(FILE *out, const weir_verdict *verdict);

/* "stage", "node", "queue", "pool" */
const char *metric_subject_name(weir_subject subject);

/* "Stages": a heading. */
const char *metric_subject_title(weir_subject subject);

#endif
