#include "tools/view/run_history.h"

#include <math.h>
#include <string.h>

#include <weir/clock.h>

#include "tools/cli/tty.h"
#include "tools/view/run_lines.h"

int run_history_read(weir_recording *recording, int64_t run_id, int64_t end_unix_ns, int64_t lap_ns, int num_laps,
                     size_t num_cells, run_history *history, weir_error *error)
{
    int64_t span_ns = num_laps * lap_ns > 60 * WEIR_SECOND ? num_laps * lap_ns : 60 * WEIR_SECOND;
    *history = (run_history){ .start_unix_ns = end_unix_ns - span_ns, .span_ns = span_ns, .num_cells = num_cells };
    int64_t cell_ns = (span_ns + (int64_t)num_cells - 1) / (int64_t)num_cells;
    weir_filter filter = { .run_id = run_id, .start_unix_ns = history->start_unix_ns + lap_ns / 2 };
    weir_grouping grouping = { .by = WEIR_BY_NAME | WEIR_BY_TIME,
                               .subjects = (1u << WEIR_SUBJECT_SPAN) - 1,
                               .bin_ns = cell_ns > lap_ns ? cell_ns : lap_ns };
    return weir_totals_read(recording, &filter, &grouping, &history->bins, error);
}

void run_history_free(run_history *history)
{
    weir_totals_free(&history->bins);
}

/* The values of the bins that have the subject, the latest ones if there are more than cells. Returns their number. */
static size_t collect_values(const run_history *history, weir_subject subject, const char *name, const char *measure,
                             double values[RUN_HISTORY_CELLS])
{
    const weir_total_list *list = &history->bins.of[subject];
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->all[i].key.name, name) != 0)
            continue;
        if (count == history->num_cells)
            memmove(values, values + 1, --count * sizeof *values);
        values[count++] = run_value(&list->all[i], measure);
    }
    return count;
}

double run_history_line(const run_history *history, weir_subject subject, const char *name, const char *measure,
                        double top, char text[RUN_HISTORY_BYTES])
{
    static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char plain[] = "_.-:=+*#";
    double values[RUN_HISTORY_CELLS], largest = NAN;
    size_t count = collect_values(history, subject, name, measure, values);
    *text = '\0';
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, values[i]); /* of a number and NAN it is the number */
    if (isnan(largest))
        return NAN;
    double highest = top > 0 ? top : largest;
    for (size_t i = 0, length = 0; i < count; i++) {
        double share = highest > 0 && values[i] > 0 ? fmin(values[i] / highest, 1) : 0;
        size_t level = (size_t)lround(share * 7);
        length += (size_t)snprintf(text + length, RUN_HISTORY_BYTES - length, tty_has_utf8() ? "%s" : "%.1s",
                                   tty_has_utf8() ? bars[level] : plain + level);
    }
    return largest;
}
