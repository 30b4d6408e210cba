/* A random order of numbers that is computed, not stored. */
#ifndef STAGES_SAMPLER_PERMUTATION_H
#define STAGES_SAMPLER_PERMUTATION_H

#include <stdint.h>

/* A permutation of 0 … count - 1, determined by a key: a Feistel network. Nothing is stored per element. Passed by
   value; the fields are private. */
enum { WEIR__PERMUTATION_MAX_ROUNDS = 24 };
typedef struct weir__permutation {
    uint64_t count;
    uint64_t num_rows, num_columns;
    uint64_t keys[WEIR__PERMUTATION_MAX_ROUNDS];
    int num_rounds;
} weir__permutation;

/* count: up to 2^62. */
weir__permutation weir__permutation_make(uint64_t count, uint64_t key);

/* The number at that place; 0 for places ≥ count. */
uint64_t weir__permutation_at(const weir__permutation *permutation, uint64_t place);

/* The place of that number; 0 for numbers ≥ count. */
uint64_t weir__permutation_find(const weir__permutation *permutation, uint64_t number);

#endif
