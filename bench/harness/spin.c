/* Each iteration is a multiplication that depends on the previous one. */
#include "bench/harness/spin.h"

#include <weir/clock.h>

void bench_spin(uint64_t turns)
{
    uint64_t value = turns;
    for (uint64_t turn = 0; turn < turns; turn++) {
        value = value * UINT64_C(6364136223846793005) + 1;
        __asm__ volatile("" : "+r"(value));
    }
}

double bench_spins_per_us(void)
{
    static const uint64_t turns = 50000;
    int64_t shortest_ns = INT64_MAX; /* shortest of many short rounds: in some of them no other thread used the CPU */
    for (int round = 0; round < 200; round++) {
        int64_t start_ns = weir_clock_ns();
        bench_spin(turns);
        int64_t took_ns = weir_clock_ns() - start_ns;
        if (took_ns < shortest_ns)
            shortest_ns = took_ns;
    }
    return (double)turns * 1000 / (double)shortest_ns;
}
