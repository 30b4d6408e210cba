/* The figures of stages and queues as rows of tables: what they are grouped by first, then the figures. */
#ifndef TOOLS_FIGURES_H
#define TOOLS_FIGURES_H

#include <weir/query.h>

#include "table.h"

/* Which columns of the key a table has. */
typedef struct figures_keys {
    bool run, node, time, steps, phase, share, name;
} figures_keys;

enum { FIGURES_MAX_COLUMNS = 64 };

/* Fills in the columns of such a table and returns how many there are. */
size_t figures_task_columns(table_column columns[FIGURES_MAX_COLUMNS], const figures_keys *keys);
size_t figures_queue_columns(table_column columns[FIGURES_MAX_COLUMNS], const figures_keys *keys);

/* One row. share: of the time of all groups of that name; for keys with a share. */
void figures_put_task(table *t, const figures_keys *keys, const weir_task_totals *task, double share);
void figures_put_queue(table *t, const figures_keys *keys, const weir_queue_totals *queue, double share);

/* Both kinds in one table, for CSV; the first column says which. */
size_t figures_both_columns(table_column columns[FIGURES_MAX_COLUMNS]);
void figures_put_both(table *t, const weir_task_totals *task, const weir_queue_totals *queue); /* one is NULL */

/* A lap as the totals of itself, without histograms. */
weir_task_totals figures_of_task_lap(const weir_task_record *lap);
weir_queue_totals figures_of_queue_lap(const weir_queue_record *lap);

#endif
