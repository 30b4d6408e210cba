#include <weir/metrics.h>

#include <stdbool.h>
#include <string.h>

#include <weir/status.h>

#include "engine/base/live_histogram.h"

enum {
    SUB_BUCKETS = HISTOGRAM_SUB_BUCKETS, /* of each power of two */
    FORMAT_VERSION = 1,
    MAX_VARINT = 7,
};

_Static_assert(WEIR_HISTOGRAM_BUCKETS == SUB_BUCKETS * (HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1),
               "a bucket for every value");
_Static_assert(WEIR_HISTOGRAM_MAX_COUNT >> (7 * MAX_VARINT) == 0, "what fits a bucket fits a varint");
_Static_assert(WEIR_HISTOGRAM_MAX_COUNT <= UINT64_MAX / WEIR_HISTOGRAM_BUCKETS, "their sum does not overflow");

void weir_histogram_bucket_range(uint32_t index, int64_t *low_ns, int64_t *high_ns)
{
    if (!low_ns || !high_ns)
        return;
    uint32_t shift = index < 2 * SUB_BUCKETS ? 0 : index / SUB_BUCKETS - 1;
    *low_ns = (int64_t)(index - shift * SUB_BUCKETS) << shift;
    *high_ns = *low_ns + (INT64_C(1) << shift) - 1;
}

static void widen_range(weir_histogram *histogram, uint32_t index)
{
    if (histogram->count == 0) {
        histogram->first = histogram->last = index;
        return;
    }
    if (index < histogram->first)
        histogram->first = index;
    if (index > histogram->last)
        histogram->last = index;
}

static void add_to_bucket(weir_histogram *histogram, uint32_t index, uint64_t count)
{
    widen_range(histogram, index);
    uint64_t room = WEIR_HISTOGRAM_MAX_COUNT - histogram->buckets[index];
    uint64_t added = count < room ? count : room;
    histogram->buckets[index] += added;
    histogram->count += added;
}

void weir_histogram_record(weir_histogram *histogram, int64_t duration_ns)
{
    if (!histogram)
        return;
    add_to_bucket(histogram, histogram_bucket_of(duration_ns), 1);
}

void weir__live_histogram_add_to(weir_histogram *to, const weir_live_histogram *from)
{
    for (uint32_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        if (from->buckets[i])
            add_to_bucket(to, i, from->buckets[i]);
}

void weir_histogram_add(weir_histogram *to, const weir_histogram *from)
{
    if (!to || !from)
        return;
    if (from->count == 0)
        return;
    for (uint32_t i = from->first; i <= from->last; i++)
        if (from->buckets[i])
            add_to_bucket(to, i, from->buckets[i]);
}

int64_t weir_histogram_quantile_ns(const weir_histogram *histogram, double quantile)
{
    if (!histogram)
        return 0;
    if (histogram->count == 0)
        return 0;
    double wanted = quantile * (double)histogram->count;
    uint64_t seen = 0;
    uint32_t i = histogram->first;
    for (; i < histogram->last; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted)
            break;
    }
    int64_t low_ns, high_ns;
    weir_histogram_bucket_range(i, &low_ns, &high_ns);
    return low_ns + (high_ns - low_ns) / 2;
}

static size_t put_varint(uint8_t *bytes, size_t at, size_t capacity, uint64_t value)
{
    do {
        uint8_t low = value & 0x7f;
        value >>= 7;
        if (at < capacity)
            bytes[at] = value ? (uint8_t)(low | 0x80) : low;
        at++;
    } while (value);
    return at;
}

static size_t encode_into(const weir_histogram *histogram, uint8_t *bytes, size_t capacity)
{
    size_t size = put_varint(bytes, 0, capacity, FORMAT_VERSION);
    uint32_t before = 0;
    for (uint32_t i = histogram->first; histogram->count && i <= histogram->last; i++) {
        if (!histogram->buckets[i])
            continue;
        size = put_varint(bytes, size, capacity, i - before);
        size = put_varint(bytes, size, capacity, histogram->buckets[i]);
        before = i;
    }
    return size;
}

size_t weir_histogram_encode(const weir_histogram *histogram, void *bytes, size_t capacity)
{
    if (!histogram)
        return 0;
    size_t size = encode_into(histogram, NULL, 0);
    if (size <= capacity)
        encode_into(histogram, bytes, capacity);
    return size;
}

/* Reads one varint of at most MAX_VARINT bytes, enough for a full bucket, at *at, and advances. */
static bool get_varint(const uint8_t *bytes, size_t size_bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < size_bytes && shift < 7 * MAX_VARINT; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* One pass over the encoded histogram; adds it to `to` unless `to` is NULL. Most of the time of sums is spent here. */
static int read_counts(weir_histogram *to, const uint8_t *bytes, size_t size_bytes)
{
    uint64_t index = 0, first = WEIR_HISTOGRAM_BUCKETS, step, count, total = 0;
    if (size_bytes == 0 || bytes[0] != FORMAT_VERSION)
        return WEIR_EDATA;
    for (size_t at = 1; at < size_bytes;) {
        if (at + 1 < size_bytes && !((bytes[at] | bytes[at + 1]) & 0x80)) { /* nearly all */
            step = bytes[at];
            count = bytes[at + 1];
            at += 2;
        } else if (!get_varint(bytes, size_bytes, &at, &step) || !get_varint(bytes, size_bytes, &at, &count))
            return WEIR_EDATA;
        index += step;
        if (index >= WEIR_HISTOGRAM_BUCKETS || count == 0)
            return WEIR_EDATA;
        first = first < index ? first : index;
        if (!to)
            continue;
        uint64_t room = WEIR_HISTOGRAM_MAX_COUNT - to->buckets[index];
        uint64_t added = count < room ? count : room;
        to->buckets[index] += added;
        total += added;
    }
    if (to && first < WEIR_HISTOGRAM_BUCKETS) {
        widen_range(to, (uint32_t)first);
        to->count += total;
        widen_range(to, (uint32_t)index);
    }
    return WEIR_OK;
}

int weir_histogram_add_encoded(weir_histogram *to, const void *bytes, size_t size_bytes)
{
    if (!to || !bytes)
        return WEIR_EINVAL;
    int status = read_counts(NULL, bytes, size_bytes);
    return status == WEIR_OK ? read_counts(to, bytes, size_bytes) : status;
}
