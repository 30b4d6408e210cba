/* Limits lines of one kind in the log: the first ones are logged at once, after that at most one per second. */
#ifndef ENGINE_STATE_LINE_LIMIT_H
#define ENGINE_STATE_LINE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/clock.h>

enum { WEIR__WHOLE_LINES = 10 };

typedef struct weir__line_limit {
    uint64_t num_logged, num_left_out; /* num_left_out: since the last line */
    int64_t logged_ns;
} weir__line_limit;

/* Whether to log the line. *left_out: how many were not logged since the last one. */
static inline bool weir__line_take(weir__line_limit *limit, int64_t now_ns, uint64_t *left_out)
{
    if (limit->num_logged >= WEIR__WHOLE_LINES && now_ns - limit->logged_ns < WEIR_SECOND) {
        limit->num_left_out++;
        return false;
    }
    *left_out = limit->num_left_out;
    limit->num_left_out = 0;
    limit->num_logged++;
    limit->logged_ns = now_ns;
    return true;
}

#endif
