/* Totals that own what they point to. */
#ifndef STATS_OWNED_TOTAL_H
#define STATS_OWNED_TOTAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir/query.h>

#include "measures.h"

/* Adds `from` to `to`. Histograms of `to` must be its own, not those of a lap. */
void weir__total_add(weir_total *to, const weir_total *from);

static inline void weir__total_forget_histograms(weir_total *total)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(total->subject, histograms);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)*weir__metric_histogram_at(histograms[i].metric, &total->metrics));
}

/* Frees the texts and histograms of a total. */
static inline void weir__total_forget(weir_total *total)
{
    const char *const texts[] = { total->key.name, total->key.node_id, total->key.phase, total->key.mode,
                                  total->kind };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free((void *)(uintptr_t)texts[i]);
    weir__total_forget_histograms(total);
}

/* Replaces the texts and histograms of a total by copies; a histogram that is not known stays NULL. False = out of memory;
   call weir__total_forget() even then. */
static inline bool weir__total_keep(weir_total *total)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count = weir__subject_histograms(total->subject, histograms);
    const char **const texts[] = { &total->key.name, &total->key.node_id, &total->key.phase, &total->key.mode,
                                   &total->kind };
    bool is_complete = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        is_complete &= (*texts[i] = strdup(*texts[i])) != NULL;
    for (size_t i = 0; i < count; i++) {
        const weir_histogram **at = weir__metric_histogram_at(histograms[i].metric, &total->metrics);
        weir_histogram *copy = *at ? malloc(sizeof *copy) : NULL;
        is_complete &= copy || !*at;
        if (copy)
            *copy = **at;
        *at = copy;
    }
    return is_complete;
}

#endif
