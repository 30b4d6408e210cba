/* The histogram: its buckets, the accuracy of its quantiles, merging, and the encoded form. */
#include "tests/support.h"

enum { NUM_VALUES = 20000 };

/* xorshift64*: the same values in every run. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* Durations of every order of magnitude that the histogram distinguishes. */
static int64_t random_duration(uint64_t *state)
{
    return (int64_t)(next_random(state) >> (17 + next_random(state) % 47));
}

static weir_histogram *histogram_new(void)
{
    weir_histogram *histogram = calloc(1, sizeof *histogram);
    assert_non_null(histogram);
    return histogram;
}

static void fill(weir_histogram *histogram, uint64_t seed, int num_values)
{
    for (int i = 0; i < num_values; i++)
        weir_histogram_record(histogram, random_duration(&seed));
}

static void assert_same(const weir_histogram *one, const weir_histogram *other)
{
    assert_int_equal(one->count, other->count);
    assert_memory_equal(one->buckets, other->buckets, sizeof one->buckets);
    for (int eighths = 0; eighths <= 8; eighths++)
        assert_int_equal(weir_histogram_quantile_ns(one, eighths / 8.0),
                         weir_histogram_quantile_ns(other, eighths / 8.0));
}

static uint32_t only_bucket(int64_t duration_ns)
{
    weir_histogram *histogram = histogram_new();
    weir_histogram_record(histogram, duration_ns);
    uint32_t index = histogram->first;
    assert_int_equal(histogram->last, index);
    assert_int_equal(histogram->buckets[index], 1);
    free(histogram);
    return index;
}

/* ---- buckets ------------------------------------------------------------------------------------------------ */

TEST_CASE(buckets_cover_all_durations_without_gap)
{
    int64_t expected_ns = 0;
    for (uint32_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
        int64_t low_ns, high_ns;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        assert_int_equal(low_ns, expected_ns);
        assert_true(high_ns >= low_ns);
        expected_ns = high_ns + 1;
    }
    assert_int_equal(expected_ns, INT64_C(1) << 47);
}

TEST_CASE(both_ends_of_a_bucket_fall_into_it)
{
    for (uint32_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
        int64_t low_ns, high_ns;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        assert_int_equal(only_bucket(low_ns), i);
        assert_int_equal(only_bucket(high_ns), i);
    }
}

TEST_CASE(what_is_out_of_range_falls_into_the_end_buckets)
{
    assert_int_equal(only_bucket(-1), 0);
    assert_int_equal(only_bucket(INT64_MIN), 0);
    assert_int_equal(only_bucket(INT64_C(1) << 47), WEIR_HISTOGRAM_BUCKETS - 1);
    assert_int_equal(only_bucket(INT64_MAX), WEIR_HISTOGRAM_BUCKETS - 1);
}

TEST_CASE(one_value_comes_back_within_a_128th)
{
    uint64_t seed = 1;
    for (int i = 0; i < NUM_VALUES; i++) {
        int64_t value_ns = random_duration(&seed), low_ns, high_ns;
        weir_histogram_bucket_range(only_bucket(value_ns), &low_ns, &high_ns);
        int64_t error_ns = llabs(low_ns + (high_ns - low_ns) / 2 - value_ns);
        assert_true(low_ns <= value_ns && value_ns <= high_ns);
        assert_true(128 * error_ns <= value_ns);
    }
}

/* ---- quantiles ---------------------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static void assert_quantiles_match(int num_values, uint64_t seed)
{
    static const double quantiles[] = { 0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1 };
    int64_t *values_ns = calloc((size_t)num_values, sizeof *values_ns);
    weir_histogram *histogram = histogram_new();
    for (int i = 0; i < num_values; i++)
        weir_histogram_record(histogram, values_ns[i] = random_duration(&seed));
    qsort(values_ns, (size_t)num_values, sizeof *values_ns, compare);

    for (size_t i = 0; i < LENGTH(quantiles); i++) {
        double wanted = quantiles[i] * num_values;
        int rank = (int)wanted + ((double)(int)wanted < wanted); /* rounded up */
        int64_t exact_ns = values_ns[rank ? rank - 1 : 0];
        int64_t answer_ns = weir_histogram_quantile_ns(histogram, quantiles[i]);
        assert_true(128 * llabs(answer_ns - exact_ns) <= exact_ns);
    }
    free(histogram);
    free(values_ns);
}

TEST_CASE(quantiles_are_those_of_the_sorted_values_within_a_128th)
{
    static const int sizes[] = { 1, 2, 3, 10, 100, 101, NUM_VALUES };
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (uint64_t seed = 1; seed <= 10; seed++)
            assert_quantiles_match(sizes[i], seed);
}

TEST_CASE(an_empty_histogram_answers_zero)
{
    weir_histogram *histogram = histogram_new();
    assert_int_equal(weir_histogram_quantile_ns(histogram, 0.5), 0);
    weir_histogram_record(histogram, 12345);
    weir_histogram_clear(histogram);
    assert_int_equal(weir_histogram_quantile_ns(histogram, 0.5), 0);
    assert_same(histogram, &(weir_histogram){ 0 });
    free(histogram);
}

TEST_CASE(a_cleared_histogram_is_as_new)
{
    weir_histogram *used = histogram_new(), *fresh = histogram_new();
    fill(used, 1, 1000);
    weir_histogram_clear(used);
    fill(used, 2, 1000);
    fill(fresh, 2, 1000);
    assert_same(used, fresh);
    free(used);
    free(fresh);
}

/* ---- merging ------------------------------------------------------------------------------------------------ */

TEST_CASE(merged_histograms_equal_one_that_saw_everything)
{
    weir_histogram *whole = histogram_new(), *sum = histogram_new(), *reverse = histogram_new();
    weir_histogram *parts[7];
    for (uint64_t i = 0; i < LENGTH(parts); i++) {
        parts[i] = histogram_new();
        fill(parts[i], i + 1, 500);
        fill(whole, i + 1, 500);
        weir_histogram_add(sum, parts[i]);
    }
    for (size_t i = LENGTH(parts); i-- > 0;)
        weir_histogram_add(reverse, parts[i]);
    assert_same(sum, whole);
    assert_same(reverse, whole);

    weir_histogram_add(sum, &(weir_histogram){ 0 });
    assert_same(sum, whole);
    for (size_t i = 0; i < LENGTH(parts); i++)
        free(parts[i]);
    free(whole);
    free(sum);
    free(reverse);
}

/* Ten million items a second, all in one bucket: an hour of laps of a minute. */
TEST_CASE(an_hour_of_do_nothing_items_is_added_up_exactly)
{
    weir_histogram *lap = histogram_new(), *hour = histogram_new(), *stored = histogram_new();
    uint8_t bytes[16];
    weir_histogram_record(lap, 100);
    lap->count = lap->buckets[lap->first] = 600000000;
    size_t size = weir_histogram_encode(lap, bytes, sizeof bytes);
    for (int i = 0; i < 60; i++) {
        weir_histogram_add(hour, lap);
        assert_int_equal(weir_histogram_add_encoded(stored, bytes, size), WEIR_OK);
    }
    assert_int_equal(hour->count, UINT64_C(36000000000));
    assert_int_equal(hour->buckets[hour->first], UINT64_C(36000000000));
    assert_same(stored, hour);
    size = weir_histogram_encode(hour, bytes, sizeof bytes);
    weir_histogram_clear(stored);
    assert_int_equal(weir_histogram_add_encoded(stored, bytes, size), WEIR_OK);
    assert_same(stored, hour);
    free(lap);
    free(hour);
    free(stored);
}

TEST_CASE(a_full_bucket_stops_instead_of_starting_anew)
{
    weir_histogram *full = histogram_new(), *more = histogram_new();
    weir_histogram_record(full, 10);
    full->count = full->buckets[10] = WEIR_HISTOGRAM_MAX_COUNT;
    fill(more, 1, 100);
    weir_histogram_record(more, 10);
    uint64_t others = more->count - more->buckets[10];
    weir_histogram_add(full, more);
    weir_histogram_record(full, 10);
    assert_int_equal(full->buckets[10], WEIR_HISTOGRAM_MAX_COUNT);
    assert_int_equal(full->count, WEIR_HISTOGRAM_MAX_COUNT + others);
    free(full);
    free(more);
}

/* ---- the stored form ---------------------------------------------------------------------------------------- */

static void assert_round_trip(const weir_histogram *histogram)
{
    size_t size = weir_histogram_encode(histogram, NULL, 0);
    assert_true(size > 0 && size <= WEIR_HISTOGRAM_ENCODED_MAX);
    uint8_t *bytes = malloc(size);
    memset(bytes, 0xee, size);
    assert_int_equal(weir_histogram_encode(histogram, bytes, size - 1), size);
    assert_int_equal(bytes[0], 0xee); /* nothing is written where it does not fit */
    assert_int_equal(weir_histogram_encode(histogram, bytes, size), size);

    weir_histogram *back = histogram_new();
    assert_int_equal(weir_histogram_add_encoded(back, bytes, size), WEIR_OK);
    assert_same(back, histogram);
    free(back);
    free(bytes);
}

TEST_CASE(the_stored_form_brings_everything_back)
{
    weir_histogram *histogram = histogram_new();
    assert_round_trip(histogram);
    weir_histogram_record(histogram, INT64_MAX);
    assert_round_trip(histogram);
    for (uint64_t seed = 1; seed <= 20; seed++) {
        weir_histogram_clear(histogram);
        fill(histogram, seed, (int)(seed * seed * 7));
        assert_round_trip(histogram);
    }
    for (uint32_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        histogram->buckets[i] = WEIR_HISTOGRAM_MAX_COUNT;
    histogram->first = 0;
    histogram->last = WEIR_HISTOGRAM_BUCKETS - 1;
    histogram->count = WEIR_HISTOGRAM_MAX_COUNT * WEIR_HISTOGRAM_BUCKETS;
    assert_round_trip(histogram);
    free(histogram);
}

TEST_CASE(the_stored_form_is_the_same_bytes_everywhere)
{
    static const uint8_t expected[] = { 1, 5, 2, 0xbb, 0x01, 1 };
    uint8_t bytes[16];
    weir_histogram *histogram = histogram_new();
    weir_histogram_record(histogram, 5);
    weir_histogram_record(histogram, 5);
    weir_histogram_record(histogram, 256); /* bucket 192 = 5 + 0xbb */
    assert_int_equal(weir_histogram_encode(histogram, bytes, sizeof bytes), sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
    free(histogram);
}

TEST_CASE(a_stored_form_adds_to_what_is_there)
{
    weir_histogram *one = histogram_new(), *other = histogram_new(), *whole = histogram_new();
    static uint8_t bytes[WEIR_HISTOGRAM_ENCODED_MAX];
    fill(one, 1, 300);
    fill(other, 2, 300);
    fill(whole, 1, 300);
    fill(whole, 2, 300);
    size_t size = weir_histogram_encode(other, bytes, sizeof bytes);
    assert_int_equal(weir_histogram_add_encoded(one, bytes, size), WEIR_OK);
    assert_same(one, whole);
    free(one);
    free(other);
    free(whole);
}

static void assert_refused(const uint8_t *bytes, size_t size)
{
    weir_histogram *histogram = histogram_new(), *before = histogram_new();
    fill(histogram, 1, 10);
    fill(before, 1, 10);
    uint8_t *exact = malloc(size ? size : 1); /* so that a read beyond its end is noticed */
    memcpy(exact, bytes, size);
    assert_int_equal(weir_histogram_add_encoded(histogram, exact, size), WEIR_EDATA);
    assert_same(histogram, before);
    free(exact);
    free(histogram);
    free(before);
}

TEST_CASE(damaged_bytes_are_refused_and_change_nothing)
{
    static const struct {
        size_t size;
        uint8_t bytes[16];
    } damaged[] = {
        { 0, { 0 } },                                                    /* nothing */
        { 1, { 0 } },                                                    /* another version */
        { 3, { 2, 0, 1 } },                                              /* another version */
        { 2, { 1, 5 } },                                                 /* a bucket without its count */
        { 3, { 1, 5, 0 } },                                              /* a count of 0 */
        { 4, { 1, 0x80, 0x80, 0x80 } },                                  /* a number without an end */
        { 3, { 1, 5, 0x80 } },                                           /* the same in a count */
        { 4, { 1, 0x80, 0x15, 1 } },                                     /* bucket 2688: one too far */
        { 7, { 1, 0xff, 0x14, 1, 1, 1, 1 } },                            /* beyond the last one by a second step */
        { 7, { 1, 0x80, 0x80, 0x80, 0x80, 0x10, 1 } },                   /* a step of more than 32 bits */
        { 10, { 1, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1 } },   /* a count of more than 49 bits */
        { 10, { 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1 } },   /* a number of eight bytes */
        { 12, { 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1, 1, 0x80 } } /* a step that would wrap around */
    };
    for (size_t i = 0; i < LENGTH(damaged); i++)
        assert_refused(damaged[i].bytes, damaged[i].size);
}

TEST_CASE(random_bytes_never_do_harm)
{
    uint64_t seed = 1;
    weir_histogram *histogram = histogram_new();
    for (int i = 0; i < NUM_VALUES; i++) {
        size_t size = next_random(&seed) % 24;
        uint8_t *bytes = malloc(size + 1);
        for (size_t j = 0; j < size; j++)
            bytes[j] = (uint8_t)next_random(&seed);
        bytes[0] = 1;
        int status = weir_histogram_add_encoded(histogram, bytes, size);
        assert_true(status == WEIR_OK || status == WEIR_EDATA);
        free(bytes);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        sum += histogram->buckets[i];
    assert_int_equal(sum, histogram->count);
    free(histogram);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
