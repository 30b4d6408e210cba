#include "stats/export/lap_sums.h"

#include <string.h>

#include "common/array.h"
#include "stats/read/lap_rows.h"
#include "stats/schema/measures.h"

bool weir__lap_sum(weir_total *sum, bool is_new, const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    weir_total one = weir_total_of_lap(lap);
    if (is_new) {
        *sum = one;
        return weir__total_keep(sum);
    }
    weir_metrics_add(weir_subject_metrics(lap->subject), &sum->metrics, &one.metrics);
    sum->capacity = lap->capacity;
    if (__builtin_add_overflow(sum->elapsed_ns, lap->elapsed_ns, &sum->elapsed_ns))
        sum->elapsed_ns = INT64_MAX;
    for (size_t i = 0, count = weir__subject_histograms(lap->subject, histograms); i < count; i++) {
        const weir_histogram *times = *weir__metric_histogram_at(histograms[i].metric, &one.metrics);
        const weir_histogram *all = *weir__metric_histogram_at(histograms[i].metric, &sum->metrics);
        if (times && all)
            weir_histogram_add((weir_histogram *)(uintptr_t)all, times); /* the sum's own */
    }
    return true;
}

int weir__lap_sums_add(weir_total_list *list, const weir_lap_record *lap)
{
    size_t at = 0;
    while (at < list->count && strcmp(list->all[at].key.name, lap->name) != 0)
        at++;
    bool is_new = at == list->count;
    weir_total *all = is_new ? weir__array_grow(list->all, list->count, sizeof *all) : list->all;
    if (!all)
        return WEIR_ENOMEM;
    list->all = all;
    if (weir__lap_sum(&all[at], is_new, lap)) {
        list->count += is_new;
        return WEIR_OK;
    }
    weir__total_forget(&all[at]); /* only a new one fails */
    return WEIR_ENOMEM;
}
