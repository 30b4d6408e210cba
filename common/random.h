/* Random numbers determined by seeds, the same on every machine: integers only. Internal. */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood 2014): all seeds are equally good, also consecutive ones. */
static inline uint64_t weir__random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in 0 … bound - 1; draws that would cause a bias are rejected. */
static inline uint64_t weir__random_below(uint64_t *state, uint64_t bound)
{
    uint64_t unfair = (UINT64_MAX - bound + 1) % bound;
    uint64_t value;
    do
        value = weir__random_next(state);
    while (value < unfair);
    return value % bound;
}

/* The seed for item `number`, derived from `seed`. */
static inline uint64_t weir__random_seed(uint64_t seed, uint64_t number)
{
    uint64_t state = seed;
    state = weir__random_next(&state) ^ number;
    return weir__random_next(&state);
}

#endif
