#include "engine/measure/wall_clock.h"

#include <stdio.h>

#include "engine/base/readings.h"
#include "engine/measure/outbox.h"
#include "engine/measure/suspension.h"

/* An event tells that the clock was set: to readers of the database the laps do not follow each other. */
static void note_clock_change(weir_pipeline *pipeline, int64_t change_ns)
{
    static const int64_t least_ns = 100 * WEIR_MILLISECOND;
    char detail[32];
    if (change_ns >= -least_ns && change_ns <= least_ns)
        return;
    snprintf(detail, sizeof detail, "%+.3f s", (double)change_ns / WEIR_SECOND);
    weir__outbox_add_event(pipeline, "clock_set", "pipeline", detail);
}

/*
 * Laps are measured by the monotonic clock. If the wall clock was read for each lap, each timestamp would be late by
 * the time that the thread waited before reading it. So only the offset between the two clocks is measured, and it is
 * kept until it changes because the clock was set or has drifted. A wait between the two readings only makes the
 * measurement less precise.
 */
int64_t weir__wall_clock_at_ns(weir__wall_clock *clock, weir_pipeline *pipeline, int64_t at_ns)
{
    static const int64_t tolerance_ns = WEIR_MILLISECOND;
    int64_t before_ns = weir_clock_ns();
    int64_t unix_ns = weir__readings_get()->unix_ns();
    int64_t after_ns = weir_clock_ns();
    int64_t offset_ns = clock->offset_ns, asleep_ns = clock->asleep_ns;
    if (offset_ns >= unix_ns - after_ns - tolerance_ns && offset_ns <= unix_ns - before_ns + tolerance_ns)
        return at_ns + offset_ns;
    clock->offset_ns = unix_ns - before_ns;
    clock->asleep_ns = weir__machine_asleep_ns();
    if (offset_ns != 0)
        note_clock_change(pipeline, clock->offset_ns - clock->asleep_ns - (offset_ns - asleep_ns));
    return at_ns + clock->offset_ns;
}
