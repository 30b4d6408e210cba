/* What must hold whatever the input of a fuzz target is. */
#ifndef TESTS_FUZZ_REQUIRE_H
#define TESTS_FUZZ_REQUIRE_H

#include <stdbool.h>
#include <stdlib.h>

/* Aborts the target, so that libFuzzer keeps the input. */
static inline void require(bool condition)
{
    if (!condition)
        abort();
}

#endif
