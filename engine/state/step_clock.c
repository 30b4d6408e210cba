#include "engine/state/step_clock.h"

#include <stdatomic.h>
#include <string.h>

#include <uv.h>

#include <weir/clock.h>

#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"

/* Shorter measurements of the rate are not precise enough. */
static const int64_t shortest_ns = 2 * WEIR_MILLISECOND;
static const int64_t valid_ns = 200 * WEIR_MICROSECOND;

static uv_once_t once = UV_ONCE_INIT;
static atomic_bool usable;

static void check_ticks(void)
{
#if defined(__x86_64__)
    char source[16];
    weir__read_start("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
    atomic_store_explicit(&usable, strcmp(source, "tsc\n") == 0, memory_order_relaxed);
#endif
}

bool weir__ticks_are_usable(void)
{
    uv_once(&once, check_ticks);
    return atomic_load_explicit(&usable, memory_order_relaxed) && weir__clock_is_real();
}

/* The rate since the first reading. If it has changed (another clock source, a suspension, a migration), it is measured
   again. */
static void set_rate(weir_step_clock *clock, int64_t now_ns, uint64_t ticks)
{
    double rate = (double)(now_ns - clock->first_ns) / (double)(ticks - clock->first_ticks) * 4294967296.0;
    double before = (double)clock->ns_per_tick;
    bool is_steady = rate > 4294967296.0 / 20 && rate < 4294967296.0 * 20 &&
                     (!clock->ns_per_tick || (rate > before * 0.9999 && rate < before * 1.0001));
    if (!is_steady && clock->ns_per_tick)
        check_ticks(); /* the kernel may have found the counter to be unstable */
    clock->ns_per_tick = is_steady ? (uint64_t)rate : 0;
    clock->first_ns = is_steady ? clock->first_ns : 0;
}

int64_t weir__step_clock_correct(weir_step_clock *clock)
{
    uint64_t before = tick_count();
    int64_t now_ns = weir_clock_ns();
    uint64_t ticks = tick_count();
    clock->valid_ticks = 0;
    if (!weir__ticks_are_usable() || ticks - before > 1000) /* interrupted: the two readings differ */
        return now_ns;
    if (!clock->first_ns) {
        clock->first_ns = now_ns;
        clock->first_ticks = ticks;
    } else if (now_ns - clock->first_ns >= shortest_ns) {
        set_rate(clock, now_ns, ticks);
    }
    clock->base_ns = now_ns;
    clock->base_ticks = ticks;
    if (clock->ns_per_tick)
        clock->valid_ticks = ((uint64_t)valid_ns << 32) / clock->ns_per_tick;
    return now_ns;
}
