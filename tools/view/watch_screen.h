/* One screen of `weir watch`: the current state of a run, as lines of text and tables that fit the terminal. */
#ifndef TOOLS_VIEW_WATCH_SCREEN_H
#define TOOLS_VIEW_WATCH_SCREEN_H

#include <stdio.h>

#include <weir/query.h>

/* What the user has chosen. All-zero at the start. */
typedef struct watch_view {
    bool has_keys;   /* stages are numbered, for the key that opens one */
    int sort;        /* of stages: an index into watch_sorts */
    size_t num_rows; /* of the terminal; 0 = any number of lines */
    int opened;      /* the number of the stage that is shown alone, from 1 in the order of the pipeline; 0 = all */
} watch_view;

/* By what stages are sorted; NULL at the end. The first is the order of the pipeline. */
extern const char *const watch_sorts[];

/*
 * Writes the screen of the run that the filter selects, or, without a view, one JSON object: the totals of the run, and
 * last_lap with those of its latest lap. Lines fit the terminal. now: Unix
 * time. With num_rows, rows of tables that do not fit are counted instead. WEIR_OK; WEIR_ENOTFOUND if there is no such run.
 */
int watch_write(FILE *out, weir_recording *recording, const weir_filter *filter, int64_t now_unix_ns,
                const watch_view *view, weir_error *error);

#endif
