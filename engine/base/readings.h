/*
 * Where clocks and figures of the kernel come from. Each reading that becomes a metric or an advice goes through one
 * table of functions. So does each sleep that is measured. The functions read a clock, a file below /proc or of a
 * control group, getrusage(), and the affinity mask. Tests fill the table: then they know the right figure.
 * kernel_files.h has what the files say.
 *
 * The step clock (engine/state/step_clock.h) does not ask the table at each reading, but when it is corrected. Timestamps
 * (common/unix_clock.h) do not ask it, and waits for a condition have a real timeout.
 */
#ifndef ENGINE_BASE_READINGS_H
#define ENGINE_BASE_READINGS_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/sibling.h"

/* What this process has used since its start. */
typedef struct weir__process_usage {
    int64_t cpu_ns, num_minor_faults, num_major_faults, num_voluntary, num_involuntary;
} weir__process_usage;

/* Functions for any thread. */
typedef struct weir__readings {
    int64_t (*clock_ns)(void);            /* CLOCK_MONOTONIC: weir_clock_ns() */
    int64_t (*boot_ns)(void);             /* CLOCK_BOOTTIME, in which the machine may have slept; -1 = not known */
    int64_t (*unix_ns)(void);             /* CLOCK_REALTIME */
    int64_t (*cpu_ns)(clockid_t clock);   /* the CPU time of a thread or process; -1 = not known */
    bool (*usage)(weir__process_usage *); /* getrusage(); false = not known */
    uint32_t (*num_cpus)(void);           /* of the affinity mask, at least 1 */
    int64_t (*num_files)(void);           /* open descriptors; -1 = not known */
    /* The beginning of a file, at most size - 1 bytes, with a NUL behind it. Returns its length; 0 = it cannot be read, or is
       empty. */
    size_t (*file)(const char *path, char *text, size_t size);
    void (*sleep)(int64_t ns);
    bool (*wait)(sem_t *woken, int64_t until_ns); /* false = it was not woken until then */
} weir__readings;

WEIR_SIBLING_API const weir__readings *weir__readings_get(void);

/* For tests, while no pipeline exists: a copy of these is used until the next call (NULL = the real ones). Functions that are
   NULL in it are the real ones. */
WEIR_SIBLING_API void weir__readings_set(const weir__readings *readings);

/* Whether the clock is the real one. */
bool weir__clock_is_real(void);

#endif
