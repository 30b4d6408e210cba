/* The last minute of a run as lines of small bars, one for each bin of time; if laps are long, the latest laps. */
#ifndef TOOLS_VIEW_RUN_HISTORY_H
#define TOOLS_VIEW_RUN_HISTORY_H

#include <weir/query.h>

enum { RUN_HISTORY_CELLS = 60, RUN_HISTORY_BYTES = 4 * RUN_HISTORY_CELLS };

typedef struct run_history {
    weir_totals bins; /* by name and time */
    int64_t start_unix_ns, span_ns;
    size_t num_cells;
} run_history;

/* Reads what ended in the last minute before end_unix_ns, or in num_laps laps if these are longer, in up to num_cells
   bins. Results are those of queries; free it in any case. */
int run_history_read(weir_recording *recording, int64_t run_id, int64_t end_unix_ns, int64_t lap_ns, int num_laps,
                     size_t num_cells, run_history *history, weir_error *error);
void run_history_free(run_history *history);

/* The measure of a subject over time, of which `top` is the highest bar (0 = the largest value). Returns the largest value; NAN
   = not known, and the text is "". */
double run_history_line(const run_history *history, weir_subject subject, const char *name, const char *measure,
                        double top, char text[RUN_HISTORY_BYTES]);

#endif
