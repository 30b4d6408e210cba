/* The end of a run in at most twenty lines: `weir record` and `weir summary` print it. */
#ifndef TOOLS_VIEW_RUN_SCREEN_H
#define TOOLS_VIEW_RUN_SCREEN_H

#include <weir/query.h>

/*
 * Prints to stdout, of the runs that match the filter, what happened, rates, the limit and what helps. Then come
 * stages, queues, failures with their reasons, and the commands that tell more. Figures that were not recorded are
 * left out. totals: those of the filter (WEIR_BY_NAME), or NULL. weir: how the user calls the command. Nothing is
 * printed unless all could be read. WEIR_OK; WEIR_EIO if it cannot be printed; errors are those of
 * weir_totals_read().
 */
int run_screen_print(weir_recording *recording, const weir_filter *filter, const weir_totals *totals,
                     const char *weir, weir_error *error);

#endif
