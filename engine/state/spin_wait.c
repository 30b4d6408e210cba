#include "engine/state/spin_wait.h"

#include <sched.h>

enum { SPINS_PER_YIELD = 16 /* up to a microsecond: cpu_relax() takes 10 to 140 cycles */ };

bool weir__spin(atomic_uint *wanted, int64_t spin_ns)
{
    int64_t end_ns = weir_clock_ns() + spin_ns;
    do {
        for (int look = 0; look < SPINS_PER_YIELD; look++) {
            if (atomic_load_explicit(wanted, memory_order_relaxed))
                return true;
            cpu_relax();
        }
        sched_yield(); /* if all CPUs are busy, the thread that sets *wanted may run now */
    } while (weir_clock_ns() < end_ns);
    return false;
}

int64_t weir__spin_adapt(int64_t spin_ns, int64_t waited_ns)
{
    static const int64_t shortest_ns = 500;
    static const int64_t worth_ns = 50 * WEIR_MICROSECOND; /* most of such a wait was the wake-up */
    int64_t adapted_ns = waited_ns < worth_ns ? 2 * spin_ns : spin_ns / 2;
    if (adapted_ns < shortest_ns)
        return shortest_ns;
    return adapted_ns < LONGEST_SPIN_NS ? adapted_ns : LONGEST_SPIN_NS;
}
