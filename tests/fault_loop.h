/*
 * What a library does when its calls fail, once or from then on: an error comes back with a text, or the result is the
 * same as without a fault. The program contains the library's objects; the linker puts the functions of fault_loop.c
 * (and what WRAP defines elsewhere) in the place of the real ones, see weir_fault_test() in CMakeLists.txt. Only calls
 * from inside the program come there.
 */
#ifndef TESTS_FAULT_LOOP_H
#define TESTS_FAULT_LOOP_H

#include <stdbool.h>
#include <stdio.h>

#include <weir/status.h>

/* Counts the call. True = it must fail. */
bool fault_hits(void);

/* Calls count, and fail, only while it is set. */
void fault_arm(bool is_armed);

/* The next faults: that call, counted from 1 from here on (0 = none), and with `stays` all later ones. */
void fault_choose(long failing_call, bool stays);

/* From here on, log lines are not printed: most faults are logged. */
void fault_drop_log(void);

#define WRAP(type, function, parameters, arguments, failed) \
    type __real_##function parameters; \
    type __wrap_##function parameters; \
    type __wrap_##function parameters \
    { \
        return fault_hits() ? (failed) : __real_##function arguments; \
    }

/* Does something, and writes what comes of it to `out`. Returns the first status that is not WEIR_OK. */
typedef int fault_attempt(FILE *out, weir_error *error);

/* Runs it with faults in up to 8 (WEIR_FAULTS=N: N) of its calls, spread over all. What this build does not support is
   left out. */
#define BEARS_EVERY_FAULT(attempt) fault_loop(#attempt, attempt)
void fault_loop(const char *name, fault_attempt *attempt);

#endif
