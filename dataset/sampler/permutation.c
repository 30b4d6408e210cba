/*
 * A Feistel network over the smallest sufficient grid of rows and columns: each round shifts a place along one
 * coordinate, by a hash of the other. Places of the grid beyond count, fewer than the number of rows, are mapped
 * again until the result is below count (cycle walking).
 *
 * The smaller the grid, the more rounds are needed until all permutations are equally frequent. Chi-squared per
 * degree of freedom over 2^18 keys (ideal: 1): for 5 elements 193 after 6 rounds, 4.4 after 12, 1.02 after 22; for
 * pairs of 100 elements 10 after 4 rounds, 1.1 after 6, 1.00 after 8. A round takes 3 ns.
 */
#include "dataset/sampler/permutation.h"

#include "common/random.h"

/* From this size on 8 rounds are enough. */
static const uint64_t large_count = 1024;

/* A hash of `half` and a key in 0 … range - 1; range is at most 2^32. */
static uint64_t scatter_half(uint64_t half, uint64_t key, uint64_t range)
{
    uint64_t hash = (half ^ key) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 32)) * UINT64_C(0x94d049bb133111eb);
    return ((hash >> 32) * range) >> 32;
}

static uint64_t shift_value(uint64_t value, uint64_t by, uint64_t range)
{
    return value + by < range ? value + by : value + by - range;
}

static uint64_t square_root_up(uint64_t count)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) < count)
            root |= bit;
    return root + 1;
}

weir__permutation weir__permutation_make(uint64_t count, uint64_t key)
{
    weir__permutation made = { .count = count, .num_rows = square_root_up(count) };
    made.num_columns = (count + made.num_rows - 1) / made.num_rows;
    made.num_rounds = count < large_count ? WEIR__PERMUTATION_MAX_ROUNDS : 8;
    for (int i = 0; i < made.num_rounds; i++)
        made.keys[i] = weir__random_next(&key);
    return made;
}

uint64_t weir__permutation_at(const weir__permutation *p, uint64_t place)
{
    if (!p || place >= p->count)
        return 0;
    do {
        uint64_t row = place / p->num_columns;
        uint64_t column = place % p->num_columns;
        for (int i = 0; i < p->num_rounds; i += 2) {
            row = shift_value(row, scatter_half(column, p->keys[i], p->num_rows), p->num_rows);
            column = shift_value(column, scatter_half(row, p->keys[i + 1], p->num_columns), p->num_columns);
        }
        place = row * p->num_columns + column;
    } while (place >= p->count);
    return place;
}

uint64_t weir__permutation_find(const weir__permutation *p, uint64_t number)
{
    if (!p || number >= p->count)
        return 0;
    do {
        uint64_t row = number / p->num_columns;
        uint64_t column = number % p->num_columns;
        for (int i = p->num_rounds - 2; i >= 0; i -= 2) {
            column = shift_value(column, p->num_columns - scatter_half(row, p->keys[i + 1], p->num_columns),
                                 p->num_columns);
            row = shift_value(row, p->num_rows - scatter_half(column, p->keys[i], p->num_rows), p->num_rows);
        }
        number = row * p->num_columns + column;
    } while (number >= p->count);
    return number;
}
