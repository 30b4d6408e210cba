/* How the decode stage spends its time, by codec and size: sums of the costs that it reports for each item. */
#ifndef BENCH_DECODE_CLASS_COSTS_H
#define BENCH_DECODE_CLASS_COSTS_H

#include <weir/item.h>

#include "report.h"

enum { MAX_COST_CLASSES = 40 };

/* Sorted by name. A plain struct, so that a run can return it; all zero = empty. */
typedef struct class_costs {
    size_t num_classes;
    uint64_t num_unsorted; /* clips whose class did not fit into the table */
    struct class_cost {
        char name[64]; /* "h264 <= 360p", "hevc > 1080p": by the smaller side */
        uint64_t num_clips;
        weir_item_cost sums;
    } classes[MAX_COST_CLASSES];
} class_costs;

void class_costs_add(class_costs *costs, const weir_item_cost *cost);
void class_costs_add_all(class_costs *costs, const class_costs *more);

/* Prints a table of the sums of num_runs runs, and adds one row for each class to the report. */
void class_costs_tell(bench_report *report, const class_costs *costs, uint32_t num_runs);

#endif
