#include "engine/state/held_bytes.h"

void weir__held_set(weir__held *held, _Atomic int64_t *level, int64_t bytes)
{
    bool is_known = atomic_load_explicit(&held->is_known, memory_order_relaxed);
    if (is_known && atomic_load_explicit(level, memory_order_relaxed) == bytes)
        return;
    int64_t change = bytes - atomic_exchange_explicit(level, bytes, memory_order_relaxed);
    int64_t sum = atomic_fetch_add(&held->bytes, change) + change;
    int64_t most = atomic_load(&held->most);
    while (sum > most && !atomic_compare_exchange_weak(&held->most, &most, sum))
        continue;
    if (!is_known)
        atomic_store(&held->is_known, true);
}

int64_t weir__held_take(weir__held *held)
{
    if (!atomic_load(&held->is_known))
        return -1;
    int64_t now = atomic_load(&held->bytes), most = atomic_exchange(&held->most, now);
    return most > now ? most : now;
}
