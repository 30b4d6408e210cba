/* Where the decode stage's time goes, by codec and size: sums of what it says each item has cost. */
#ifndef BENCH_CLASS_COSTS_H
#define BENCH_CLASS_COSTS_H

#include <weir/cost.h>

#include "report.h"

enum { MAX_COST_CLASSES = 40 };

/* In the order of their names. A plain struct, so that a run can hand it on; all-0 is empty. */
typedef struct class_costs {
    size_t num_classes;
    uint64_t num_unsorted; /* clips for whose class there was no room */
    struct class_cost {
        char name[64]; /* "h264 <= 360p", "hevc > 1080p": of the smaller side */
        uint64_t num_clips;
        weir_item_cost sums;
    } classes[MAX_COST_CLASSES];
} class_costs;

void class_costs_add(class_costs *costs, const weir_item_cost *cost);
void class_costs_add_all(class_costs *costs, const class_costs *more);

/* A table, of the sums of that many runs, and a row for each class. */
void class_costs_tell(bench_report *report, const class_costs *costs, uint32_t num_runs);

#endif
