/* Spins on a flag for a moment instead of sleeping. */
#ifndef ENGINE_STATE_SPIN_WAIT_H
#define ENGINE_STATE_SPIN_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/clock.h>

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ volatile("yield")
#else
#define cpu_relax() ((void)0)
#endif

#define LONGEST_SPIN_NS (20 * WEIR_MICROSECOND)

/* Checks *wanted for up to spin_ns. True = it is not 0. */
bool weir__spin(atomic_uint *wanted, int64_t spin_ns);

/* How long to spin the next time, after a wait of waited_ns in total, including the sleep. */
int64_t weir__spin_adapt(int64_t spin_ns, int64_t waited_ns);

#endif
