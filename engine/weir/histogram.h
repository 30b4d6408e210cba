/*
 * A log-linear histogram of durations in nanoseconds.
 *
 * Each power of two is divided into 64 equal buckets (values below 64 ns have a bucket each), and a quantile is the
 * middle of its bucket: the relative error is at most 1/128 = 0.8 %. The buckets are the same in every histogram, so
 * adding two of them is exact: laps, stages, ranks and runs can be merged in any order. This is the layout of
 * HdrHistogram (Gil Tene, hdrhistogram.org) with 7 significant bits.
 *
 * No function here locks: use each histogram on one thread at a time.
 */
#ifndef WEIR_HISTOGRAM_H
#define WEIR_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 64 buckets of 1 ns, then 64 for each power of two up to 2^47 ns (39 hours); longer spans fall into the last one. */
#define WEIR_HISTOGRAM_BUCKETS 2688

/* The largest count of a bucket; it then stops: enough for ten million items per second for 21 months. */
#define WEIR_HISTOGRAM_MAX_COUNT ((UINT64_C(1) << 49) - 1)

typedef struct weir_histogram {
    uint64_t count; /* sum of all buckets */
    uint32_t first; /* no bucket below is used */
    uint32_t last;  /* no bucket above is used */
    uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
} weir_histogram;

/* Empties it. A zeroed struct is empty, too. Touches only the buckets that were used. */
WEIR_API void weir_histogram_clear(weir_histogram *histogram);

/* Adds one duration; negative ones count as 0. */
WEIR_API void weir_histogram_record(weir_histogram *histogram, int64_t duration_ns);

/* Adds every count of `from` to `to`. */
WEIR_API void weir_histogram_add(weir_histogram *to, const weir_histogram *from);

/*
 * The quantile (0 to 1) of the recorded durations in nanoseconds: the smallest value whose rank is at least
 * ceil(quantile × count). 0 when empty.
 */
WEIR_API int64_t weir_histogram_quantile_ns(const weir_histogram *histogram, double quantile);

/* The range of durations in bucket `index`: from *low_ns to *high_ns, both included. */
WEIR_API void weir_histogram_bucket_range(uint32_t index, int64_t *low_ns, int64_t *high_ns);

/*
 * Encodes the histogram for storage: one version byte (1), then for each used bucket, in order, its distance from the
 * previous used bucket (the first: from 0) and its count, both as LEB128 varints. The bytes are the same on every
 * machine. Returns the size in bytes; writes them only if `capacity` is large enough.
 */
WEIR_API size_t weir_histogram_encode(const weir_histogram *histogram, void *bytes, size_t capacity);

/* Adds an encoded histogram to `to`. WEIR_EDATA if the bytes are not a valid encoding; then `to` is unchanged. */
WEIR_API int weir_histogram_add_encoded(weir_histogram *to, const void *bytes, size_t size_bytes);

/* The largest encoded size. */
#define WEIR_HISTOGRAM_ENCODED_MAX (1 + WEIR_HISTOGRAM_BUCKETS * 9)

#ifdef __cplusplus
}
#endif

#endif
