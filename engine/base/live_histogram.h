/*
 * The histogram that records during a lap: the buckets of weir_histogram with 32 bits each. The service thread
 * empties it at least once a minute (lap.h), long before a bucket can overflow.
 */
#ifndef ENGINE_CORE_LIVE_HISTOGRAM_H
#define ENGINE_CORE_LIVE_HISTOGRAM_H

#include <stdint.h>

#include <weir/metrics.h>

enum { HISTOGRAM_SUB_BITS = 6, HISTOGRAM_SUB_BUCKETS = 1 << HISTOGRAM_SUB_BITS, HISTOGRAM_MAX_BITS = 47 };

typedef struct weir_live_histogram {
    uint32_t buckets[WEIR_HISTOGRAM_BUCKETS];
} weir_live_histogram;

static inline uint32_t histogram_bucket_of(int64_t duration_ns)
{
    if (duration_ns < HISTOGRAM_SUB_BUCKETS)
        return duration_ns < 0 ? 0 : (uint32_t)duration_ns;
    if (duration_ns >> HISTOGRAM_MAX_BITS)
        return WEIR_HISTOGRAM_BUCKETS - 1;
    /* Dropping `shift` low bits leaves a value of 64 to 127: 64 buckets for this power of two. */
    uint32_t shift = 63 - HISTOGRAM_SUB_BITS - (uint32_t)__builtin_clzll((unsigned long long)duration_ns);
    return shift * HISTOGRAM_SUB_BUCKETS + (uint32_t)(duration_ns >> shift);
}

/* `num` times this duration. NULL = not recorded. */
static inline void live_histogram_record(weir_live_histogram *histogram, int64_t duration_ns, uint32_t num)
{
    if (histogram)
        histogram->buckets[histogram_bucket_of(duration_ns)] += num;
}

/* Adds the recorded counts to `to`. */
void weir__live_histogram_add_to(weir_histogram *to, const weir_live_histogram *from);

#endif
