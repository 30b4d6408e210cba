/* Which items come, in which order, on which rank. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/sampler.h>

#include "common/random.h"

#include "dataset/sampler/permutation.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static weir_sampler *make(weir_sampler_config config)
{
    weir_sampler *sampler;
    weir_error error = { 0 };
    if (config.world.size == 0)
        config.world.size = 1;
    if (weir_sampler_new(&config, &sampler, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return sampler;
}

/* FNV-1a over the items of an epoch: one number that stands for the order. */
static uint64_t digest(weir_sampler_config config, uint64_t epoch)
{
    weir_sampler *sampler = make(config);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
    for (uint64_t i = 0; i < weir_sampler_count(sampler); i++)
        hash = (hash ^ weir_sampler_at(sampler, i)) * UINT64_C(0x100000001b3);
    weir_sampler_free(sampler);
    return hash;
}

/* How often each item comes on all ranks together; the sum. */
static uint64_t count_items(weir_sampler_config config, uint64_t epoch, uint32_t *counts)
{
    uint64_t sum = 0;
    uint32_t size = config.world.size ? config.world.size : 1;
    memset(counts, 0, config.num_items * sizeof *counts);
    for (uint32_t rank = 0; rank < size; rank++) {
        config.world = (weir_world){ .rank = rank, .size = size };
        weir_sampler *sampler = make(config);
        assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
        sum += weir_sampler_count(sampler);
        for (uint64_t i = 0; i < weir_sampler_count(sampler); i++)
            counts[weir_sampler_at(sampler, i)]++;
        weir_sampler_free(sampler);
    }
    return sum;
}

static void assert_each_once(weir_sampler_config config, uint64_t epoch)
{
    uint32_t *counts = calloc(config.num_items, sizeof *counts);
    assert_non_null(counts);
    assert_int_equal(count_items(config, epoch, counts), config.num_items);
    for (uint64_t i = 0; i < config.num_items; i++)
        if (counts[i] != 1)
            fail_msg("item %" PRIu64 " of %" PRIu64 " comes %u times", i, config.num_items, counts[i]);
    free(counts);
}

/* ---- permutations -------------------------------------------------------------------------------------------- */

TEST_CASE(every_place_has_its_own_number_and_the_way_back)
{
    for (uint64_t count = 1; count < 300; count++) {
        weir__permutation p = weir__permutation_make(count, count * 7);
        bool seen[300] = { false };
        for (uint64_t i = 0; i < count; i++) {
            uint64_t number = weir__permutation_at(&p, i);
            assert_true(number < count && !seen[number]);
            seen[number] = true;
            assert_int_equal(weir__permutation_find(&p, number), i);
        }
    }
}

TEST_CASE(numbers_beyond_32_bits_are_permuted_too)
{
    const uint64_t counts[] = { 1000000000, (UINT64_C(1) << 40) + 3, UINT64_C(1) << 62 };
    for (size_t c = 0; c < LENGTH(counts); c++) {
        weir__permutation p = weir__permutation_make(counts[c], 1);
        for (uint64_t i = 0; i < 10000; i++) {
            uint64_t place = counts[c] / 10000 * i;
            uint64_t number = weir__permutation_at(&p, place);
            assert_true(number < counts[c]);
            assert_int_equal(weir__permutation_find(&p, number), place);
        }
    }
}

/* All 120 permutations of 5 are to be equally frequent: chi-squared of 119 degrees, 99.99 % of it is below 184. */
TEST_CASE(no_permutation_is_more_frequent_than_others)
{
    enum { COUNT = 5, NUM_KEYS = 1 << 18, NUM_CODES = 3125, NUM_ORDERS = 120 };
    static uint32_t frequency[NUM_CODES];
    for (uint64_t key = 0; key < NUM_KEYS; key++) {
        weir__permutation p = weir__permutation_make(COUNT, key);
        uint64_t code = 0;
        for (uint64_t i = 0; i < COUNT; i++)
            code = code * COUNT + weir__permutation_at(&p, i);
        frequency[code]++;
    }
    double expected = (double)NUM_KEYS / NUM_ORDERS;
    double chi_squared = 0;
    unsigned num_orders = 0;
    for (unsigned code = 0; code < NUM_CODES; code++) {
        double difference = (double)frequency[code] - expected;
        chi_squared += frequency[code] ? difference * difference / expected : 0;
        num_orders += frequency[code] > 0;
    }
    assert_int_equal(num_orders, NUM_ORDERS);
    if (chi_squared > 184)
        fail_msg("chi-squared is %g", chi_squared);
}

/* The distance of neighbours is evenly distributed, in 20 classes (19 degrees, 99.99 %: 51). */
TEST_CASE(neighbours_are_spread)
{
    enum { CLASSES = 20 };
    const uint64_t count = 1000003;
    for (uint64_t key = 0; key < 8; key++) {
        uint32_t frequency[CLASSES] = { 0 };
        weir__permutation p = weir__permutation_make(count, key);
        for (uint64_t i = 0; i + 1 < count; i++) {
            uint64_t distance = (weir__permutation_at(&p, i + 1) + count - weir__permutation_at(&p, i)) % count;
            frequency[distance * CLASSES / count]++;
        }
        double expected = (double)count / CLASSES;
        double chi_squared = 0;
        for (unsigned c = 0; c < CLASSES; c++)
            chi_squared += ((double)frequency[c] - expected) * ((double)frequency[c] - expected) / expected;
        if (chi_squared > 51)
            fail_msg("key %" PRIu64 ": chi-squared is %g", key, chi_squared);
    }
}

/* ---- test vectors -------------------------------------------------------------------------------------------- */

static double weight_of(uint64_t item)
{
    return (double)(item % 7) / 3;
}

TEST_CASE(the_order_is_the_same_on_every_machine)
{
    enum { COUNT = 1000 };
    static double weights[COUNT];
    static uint32_t classes[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        weights[i] = weight_of(i);
        classes[i] = i % 10 % 3;
    }
    static const uint64_t ten[] = { 0, 2, 3, 7, 8, 5, 4, 6, 1, 9 };
    weir_sampler *sampler = make((weir_sampler_config){ .num_items = 10, .seed = 1, .order = WEIR_SAMPLER_SHUFFLED });
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(weir_sampler_at(sampler, i), ten[i]);
    weir_sampler_free(sampler);

    static const uint64_t billion[] = { 27879910, 297554611, 814323738, 415563482, 439834373 };
    sampler = make((weir_sampler_config){ .num_items = 1000000000, .seed = 1, .order = WEIR_SAMPLER_SHUFFLED });
    assert_int_equal(weir_sampler_begin(sampler, 3), WEIR_OK);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(weir_sampler_at(sampler, i * 249999999), billion[i]);
    weir_sampler_free(sampler);

    const struct {
        weir_sampler_config config;
        uint64_t epoch, digest;
    } pinned[] = {
        { { .order = WEIR_SAMPLER_SHUFFLED }, 0, UINT64_C(0x1eb13f46c3f47bf7) },
        { { .order = WEIR_SAMPLER_SHUFFLED, .seed = 5, .num_samples = 2500 }, 7, UINT64_C(0xf8f7fe013f6a0be9) },
        { { .order = WEIR_SAMPLER_BLOCKS, .block_items = 64 }, 1, UINT64_C(0xc2f8173e08d7ad23) },
        { { .replacement = true }, 1, UINT64_C(0xa19f8a1be298672b) },
        { { .weights = weights, .replacement = true }, 1, UINT64_C(0xbabb91b2a78ff4d5) },
        { { .weights = weights }, 1, UINT64_C(0xfb428771626108a6) },
        { { .classes = classes, .num_classes = 3 }, 1, UINT64_C(0xe10acac384eac5c9) },
        { { .classes = classes, .num_classes = 3, .replacement = true }, 1, UINT64_C(0xbbd9b19319496917) },
        { { .order = WEIR_SAMPLER_BLOCKS, .block_items = 64, .world = { .rank = 1, .size = 3 } },
          1,
          UINT64_C(0x4d82fb8b5208bada) },
    };
    for (size_t i = 0; i < LENGTH(pinned); i++) {
        weir_sampler_config config = pinned[i].config;
        config.num_items = COUNT;
        uint64_t got = digest(config, pinned[i].epoch);
        if (got != pinned[i].digest)
            fail_msg("vector %zu: 0x%016" PRIx64, i, got);
    }
}

/* ---- orders -------------------------------------------------------------------------------------------------- */

TEST_CASE(each_item_comes_once_on_any_number_of_ranks)
{
    const uint32_t sizes[] = { 1, 2, 3, 7, 64 };
    const uint64_t counts[] = { 1, 2, 6, 7, 64, 1000 };
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t c = 0; c < LENGTH(counts); c++) {
            weir_sampler_config config = { .num_items = counts[c], .world.size = sizes[s] };
            assert_each_once(config, 2);
            config.order = WEIR_SAMPLER_SHUFFLED;
            assert_each_once(config, 2);
            config.order = WEIR_SAMPLER_BLOCKS;
            for (config.block_items = 1; config.block_items < 40; config.block_items += 6)
                assert_each_once(config, 2);
        }
}

static const double *draw_sizes(uint64_t num_items, uint64_t *state)
{
    static double sizes[1000];
    for (uint64_t i = 0; i < num_items; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t drawn = *state >> 40;
        sizes[i] =
            drawn % 5 == 0 ? (double)(drawn % 3) : (double)(drawn % 4000) * 0.25; /* ties, zeros, and long tails */
    }
    return sizes;
}

/* Held constant: up to 1000 items. Numbers of buckets, blocks, ranks and the sizes are random. */
TEST_CASE(in_buckets_each_item_comes_once_on_any_number_of_ranks)
{
    uint64_t chance = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)chance);
    for (int i = 0; i < 300; i++) {
        weir_sampler_config config = { .order = WEIR_SAMPLER_BUCKETS, .seed = chance };
        config.num_items = 1 + (chance >> 33) % (i % 4 ? 60 : 1000);
        config.sizes = draw_sizes(config.num_items, &chance);
        config.num_buckets = 1 + (uint32_t)(chance >> 35) % 12;
        config.block_items = 1 + (chance >> 39) % 20;
        config.world.size = 1 + (uint32_t)(chance >> 43) % 5;
        assert_each_once(config, (chance >> 50) % 3);
    }
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

static const uint64_t *draw_groups(uint64_t num_items, uint64_t *chance)
{
    static uint64_t groups[1000];
    assert_true(num_items <= 1000);
    for (uint64_t i = 0; i < num_items; i++)
        groups[i] = weir__random_next(chance) % 40 * UINT64_C(0x9e3779b97f4a7c15);
    return groups;
}

/* Held constant: up to 1000 items in up to 40 groups. */
TEST_CASE(in_groups_each_item_comes_once_on_any_number_of_ranks)
{
    uint64_t chance = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)chance);
    for (int i = 0; i < 300; i++) {
        weir_sampler_config config = { .order = WEIR_SAMPLER_GROUPS, .seed = chance };
        config.num_items = 1 + (chance >> 33) % (i % 4 ? 60 : 1000);
        config.groups = draw_groups(config.num_items, &chance);
        config.block_items = 1 + (chance >> 39) % (i % 3 ? 50 : 2000);
        config.world.size = 1 + (uint32_t)(chance >> 43) % 5;
        assert_each_once(config, (chance >> 50) % 3);
    }
}

/* Each block has the items of the shuffled order's block, each group once, and its items as they were shuffled. Positions are asked
   for in any order. */
TEST_CASE(within_a_block_the_items_of_a_group_are_neighbours)
{
    enum { COUNT = 500, BLOCK = 64 };
    uint64_t chance = 3;
    weir_sampler_config config = { .num_items = COUNT, .seed = 9, .order = WEIR_SAMPLER_SHUFFLED, .world.size = 1 };
    const uint64_t *groups = draw_groups(COUNT, &chance);
    weir_sampler *shuffled = make(config);
    config.order = WEIR_SAMPLER_GROUPS;
    config.block_items = BLOCK;
    config.groups = groups;
    weir_sampler *grouped = make(config);
    for (uint64_t first = 0; first < COUNT; first += BLOCK) {
        uint64_t num = COUNT - first < BLOCK ? COUNT - first : BLOCK, next = 0;
        bool is_taken[BLOCK] = { false };
        for (uint64_t i = 0; i < num; i++) { /* what an obvious loop makes of the shuffled block */
            uint64_t group = groups[weir_sampler_at(shuffled, first + i)];
            for (uint64_t j = i; j < num && !is_taken[i]; j++) {
                uint64_t item = weir_sampler_at(shuffled, first + j);
                if (groups[item] != group)
                    continue;
                assert_int_equal(weir_sampler_at(grouped, first + next++), item);
                (void)weir_sampler_at(grouped, weir__random_next(&chance) % COUNT);
                is_taken[j] = j != i;
            }
        }
        assert_int_equal(next, num);
    }
    weir_sampler_free(shuffled);
    weir_sampler_free(grouped);
}

/* The sum over blocks of the largest size times the items: what padded batches would hold. */
static double padded_sum(const weir_sampler_config *config, const double *sizes)
{
    weir_sampler *sampler = make(*config);
    double sum = 0, largest = 0;
    for (uint64_t i = 0; i < config->num_items; i++) {
        double size = sizes[weir_sampler_at(sampler, i)];
        largest = i % 16 == 0 || size > largest ? size : largest;
        if (i % 16 == 15)
            sum += 16 * largest;
    }
    weir_sampler_free(sampler);
    return sum;
}

TEST_CASE(buckets_need_little_padding_and_epochs_differ)
{
    uint64_t chance = 5;
    double sum = 0;
    weir_sampler_config config = { .num_items = 960, .order = WEIR_SAMPLER_SHUFFLED, .world.size = 1 };
    const double *sizes = draw_sizes(config.num_items, &chance);
    for (uint64_t i = 0; i < config.num_items; i++)
        sum += sizes[i];
    double shuffled = padded_sum(&config, sizes);
    config.order = WEIR_SAMPLER_BUCKETS;
    config.sizes = sizes;
    config.num_buckets = 8;
    config.block_items = 16;
    double bucketed = padded_sum(&config, sizes);
    if (bucketed > 1.35 * sum || shuffled < 1.8 * sum)
        fail_msg("of %g: %g shuffled, %g in buckets", sum, shuffled, bucketed);
    uint64_t first = digest(config, 0);
    assert_int_not_equal(first, digest(config, 1));
    assert_int_equal(first, digest(config, 0));
}

TEST_CASE(epochs_and_seeds_differ_and_repeat)
{
    weir_sampler_config config = { .num_items = 1000, .seed = 1, .order = WEIR_SAMPLER_SHUFFLED };
    uint64_t first = digest(config, 0);
    assert_int_not_equal(first, digest(config, 1));
    assert_int_equal(first, digest(config, 0));
    config.seed = 2;
    assert_int_not_equal(first, digest(config, 0));
}

TEST_CASE(blocks_hold_neighbours)
{
    enum { COUNT = 1000, BLOCK = 60 };
    weir_sampler *sampler =
        make((weir_sampler_config){ .num_items = COUNT, .order = WEIR_SAMPLER_BLOCKS, .block_items = BLOCK });
    unsigned num_changes = 0;
    for (uint64_t i = 1; i < COUNT; i++)
        num_changes += weir_sampler_at(sampler, i) / BLOCK != weir_sampler_at(sampler, i - 1) / BLOCK;
    assert_int_equal(num_changes, (COUNT + BLOCK - 1) / BLOCK - 1);
    weir_sampler_free(sampler);
}

TEST_CASE(more_samples_than_items_are_passes_of_their_own)
{
    uint32_t counts[10];
    weir_sampler_config config = { .num_items = 10, .num_samples = 25, .order = WEIR_SAMPLER_SHUFFLED };
    assert_int_equal(count_items(config, 0, counts), 25);
    for (int i = 0; i < 10; i++)
        assert_true(counts[i] == 2 || counts[i] == 3);
}

/* In 10^5 draws, each item's share is within five standard deviations. */
TEST_CASE(weights_are_shares)
{
    const double weights[] = { 0, 1, 2, 5, 0.5, 1e-12 };
    uint32_t counts[6];
    weir_sampler_config config = {
        .num_items = 6, .weights = weights, .replacement = true, .num_samples = 100000, .world.size = 4
    };
    assert_int_equal(count_items(config, 0, counts), 100000);
    for (int i = 0; i < 6; i++) {
        double expected = 100000 * weights[i] / 8.5;
        double difference = (double)counts[i] - expected;
        assert_true(difference * difference <= 25 * (expected + 1e-3));
    }
}

/* The first of two without replacement is the one of weight 3 in three of four epochs; both come in each. */
TEST_CASE(weights_without_replacement_decide_what_comes_first)
{
    enum { EPOCHS = 10000 };
    const double weights[] = { 1, 0, 3 };
    weir_sampler *sampler = make((weir_sampler_config){ .num_items = 3, .weights = weights });
    assert_int_equal(weir_sampler_count(sampler), 2);
    unsigned num_heavy = 0;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
        uint64_t first = weir_sampler_at(sampler, 0);
        assert_int_equal(first + weir_sampler_at(sampler, 1), 2);
        num_heavy += first == 2;
    }
    assert_in_range(num_heavy, 7500 - 217, 7500 + 217);
    weir_sampler_free(sampler);
}

TEST_CASE(each_run_of_positions_has_each_class)
{
    enum { COUNT = 100, CLASSES = 4 };
    uint32_t classes[COUNT], counts[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        classes[i] = i < 90 ? 0 : i < 96 ? 1 : i < 99 ? 2 : 3;
    weir_sampler_config config = { .num_items = COUNT, .classes = classes, .num_classes = CLASSES };
    weir_sampler *sampler = make(config);
    for (uint64_t turn = 0; turn < COUNT / CLASSES; turn++) {
        unsigned seen = 0;
        for (uint64_t i = 0; i < CLASSES; i++)
            seen |= 1U << classes[weir_sampler_at(sampler, turn * CLASSES + i)];
        assert_int_equal(seen, 15);
    }
    weir_sampler_free(sampler);
    count_items(config, 0, counts); /* 25 of each class */
    for (uint32_t i = 0; i < COUNT; i++) {
        static const uint32_t least[] = { 0, 4, 8, 25 };
        static const uint32_t most[] = { 1, 5, 9, 25 };
        assert_in_range(counts[i], least[classes[i]], most[classes[i]]);
    }
}

/* ---- shares -------------------------------------------------------------------------------------------------- */

static uint64_t count_of(weir_sampler_config config, uint32_t rank, uint32_t size)
{
    config.world = (weir_world){ .rank = rank, .size = size };
    weir_sampler *sampler = make(config);
    uint64_t count = weir_sampler_count(sampler);
    weir_sampler_free(sampler);
    return count;
}

TEST_CASE(padding_and_dropping_make_counts_equal)
{
    uint32_t counts[10];
    for (int order = WEIR_SAMPLER_LISTED; order <= WEIR_SAMPLER_BLOCKS; order++) {
        weir_sampler_config config = { .num_items = 10,
                                       .order = (weir_sampler_order)order,
                                       .block_items = order == WEIR_SAMPLER_BLOCKS ? 3 : 0 };
        for (uint32_t rank = 0; rank < 4; rank++) {
            config.share = WEIR_SHARE_EXACT;
            assert_int_equal(count_of(config, rank, 4), rank < 2 ? 3 : 2);
            config.share = WEIR_SHARE_PAD;
            assert_int_equal(count_of(config, rank, 4), 3);
            config.share = WEIR_SHARE_DROP;
            assert_int_equal(count_of(config, rank, 4), 2);
        }
        config.world.size = 4;
        config.share = WEIR_SHARE_PAD;
        assert_int_equal(count_items(config, 0, counts), 12);
        for (int i = 0; i < 10; i++)
            assert_in_range(counts[i], 1, 2);
        config.share = WEIR_SHARE_DROP;
        assert_int_equal(count_items(config, 0, counts), 8);
        for (int i = 0; i < 10; i++)
            assert_in_range(counts[i], 0, 1);
    }
}

TEST_CASE(more_ranks_than_items_get_none_or_the_same)
{
    weir_sampler_config config = { .num_items = 3 };
    assert_int_equal(count_of(config, 7, 8), 0);
    config.share = WEIR_SHARE_PAD;
    assert_int_equal(count_of(config, 7, 8), 1);
}

/* ---- the launcher's environment -------------------------------------------------------------------------------- */

static const char *const variables[] = { "RANK",
                                         "WORLD_SIZE",
                                         "OMPI_COMM_WORLD_RANK",
                                         "OMPI_COMM_WORLD_SIZE",
                                         "MV2_COMM_WORLD_RANK",
                                         "MV2_COMM_WORLD_SIZE",
                                         "PMI_RANK",
                                         "PMI_SIZE",
                                         "LOCAL_RANK",
                                         "SLURM_LOCALID",
                                         "PMIX_RANK",
                                         "PMIX_SIZE",
                                         "SLURM_PROCID",
                                         "SLURM_NTASKS",
                                         "SLURM_STEP_NUM_TASKS" };

/* settings: "NAME=VALUE NAME=VALUE" */
static int find(const char *settings, weir_world *world, const char **launcher, weir_error *error)
{
    char text[256];
    char *rest = text;
    for (size_t i = 0; i < LENGTH(variables); i++)
        unsetenv(variables[i]);
    snprintf(text, sizeof text, "%s", settings);
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (value) {
            *value++ = '\0';
            setenv(word, value, 1);
        }
    }
    *error = (weir_error){ 0 };
    return weir_world_find(world, launcher, error);
}

TEST_CASE(launchers_are_recognised)
{
    static const struct {
        const char *settings, *launcher;
        weir_world world;
    } cases[] = {
        { "", "", { 0, 1, 0 } },
        { "RANK=2 WORLD_SIZE=4 LOCAL_RANK=1", "torchrun", { 2, 4, 1 } },
        { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8", "Open MPI", { 3, 8, 0 } },
        { "MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=2", "MVAPICH2", { 1, 2, 0 } },
        { "PMI_RANK=5 PMI_SIZE=6", "PMI", { 5, 6, 0 } },
        { "PMIX_RANK=5 PMIX_SIZE=6", "PMIx", { 5, 6, 0 } },
        { "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_NTASKS=9 SLURM_LOCALID=1", "srun", { 1, 3, 1 } },
        { "SLURM_PROCID=0 SLURM_NTASKS=3", "", { 0, 1, 0 } }, /* a batch script itself */
        { "RANK=6 WORLD_SIZE=8 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", "torchrun", { 6, 8, 0 } },
        { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
          "Open MPI",
          { 3, 8, 0 } },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_world world;
        weir_error error = { 0 };
        const char *launcher;
        assert_int_equal(find(cases[i].settings, &world, &launcher, &error), WEIR_OK);
        assert_string_equal(launcher, cases[i].launcher);
        assert_int_equal(world.rank, cases[i].world.rank);
        assert_int_equal(world.size, cases[i].world.size);
        assert_int_equal(world.local_rank, cases[i].world.local_rank);
    }
}

TEST_CASE(a_bad_environment_is_refused_by_name)
{
    static const struct {
        const char *settings, *named;
    } cases[] = {
        { "RANK=0", "RANK without WORLD_SIZE" },
        { "WORLD_SIZE=4", "WORLD_SIZE without RANK" },
        { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE=0" },
        { "RANK=4 WORLD_SIZE=4", "RANK=4 and WORLD_SIZE=4: ranks are 0 to 3" },
        { "RANK=-1 WORLD_SIZE=4", "RANK is \"-1\"" },
        { "RANK=1 WORLD_SIZE=4x", "WORLD_SIZE is \"4x\"" },
        { "PMI_RANK=0 PMI_SIZE=99999999999", "PMI_SIZE" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_world world;
        weir_error error = { 0 };
        assert_int_equal(find(cases[i].settings, &world, NULL, &error), WEIR_EINVAL);
        if (!strstr(error.message, cases[i].named))
            fail_msg("%s: %s", cases[i].settings, error.message);
    }
    find("", &(weir_world){ 0 }, NULL, &(weir_error){ 0 });
}

TEST_CASE(the_environment_decides_where_the_options_do_not)
{
    weir_world world;
    weir_error error = { 0 };
    weir_sampler *sampler;
    find("RANK=1 WORLD_SIZE=2", &world, NULL, &error);
    assert_int_equal(weir_sampler_new(&(weir_sampler_config){ .num_items = 4 }, &sampler, NULL), WEIR_OK);
    assert_int_equal(weir_sampler_count(sampler), 2);
    assert_int_equal(weir_sampler_at(sampler, 0), 1);
    weir_sampler_free(sampler);
    find("", &world, NULL, &error);
}

/* ---- bad options ------------------------------------------------------------------------------------------------- */

TEST_CASE(options_that_make_no_sense_are_refused)
{
    const double weights[] = { 1, -1, 0 };
    const double zeros[] = { 0, 0, 0 };
    const uint32_t classes[] = { 0, 2, 2 };
    const struct {
        weir_sampler_config config;
        const char *named;
    } cases[] = {
        { { .num_items = 0 }, "no items" },
        { { .num_items = 3, .world = { .rank = 3, .size = 3 } }, "rank 3 is not below the world size 3" },
        { { .num_items = 3, .world = { .rank = 1, .size = 0 } }, "rank 1 is not below the world size 0" },
        { { .num_items = 3, .order = WEIR_SAMPLER_BLOCKS }, "block_items" },
        { { .num_items = 1, .order = WEIR_SAMPLER_BUCKETS, .block_items = 1, .num_buckets = 1 }, "needs sizes" },
        { { .num_items = 1, .order = WEIR_SAMPLER_GROUPS, .block_items = 1 }, "needs groups" },
        { { .num_items = 1, .order = WEIR_SAMPLER_GROUPS, .groups = &(uint64_t){ 1 } }, "block_items" },
        { { .num_items = 1, .groups = &(uint64_t){ 1 } }, "needs groups" },
        { { .num_items = 1, .order = WEIR_SAMPLER_BUCKETS, .block_items = 1, .sizes = &(double){ 1 } },
          "num_buckets" },
        { { .num_items = 1, .sizes = &(double){ 1 } }, "other orders have none" },
        { { .num_items = 1,
            .order = WEIR_SAMPLER_BUCKETS,
            .block_items = 1,
            .num_buckets = 1,
            .sizes = &(double){ -1 } },
          "the size of item 0 is -1" },
        { { .num_items = 3, .block_items = 2 }, "block_items" },
        { { .num_items = 3, .weights = weights }, "weight of item 1 is -1" },
        { { .num_items = 3, .weights = zeros }, "all weights are 0" },
        { { .num_items = 3, .classes = classes, .num_classes = 2 }, "item 1 is of class 2" },
        { { .num_items = 3, .classes = classes, .num_classes = 3 }, "class 1 has no items" },
        { { .num_items = 3, .share = WEIR_SHARE_DROP, .world = { .rank = 0, .size = 4 } }, "no rank gets an item" },
        { { .num_items = UINT64_MAX }, "2^62" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_sampler *sampler;
        weir_error error = { 0 };
        assert_int_equal(weir_sampler_new(&cases[i].config, &sampler, &error), WEIR_EINVAL);
        assert_null(sampler);
        if (!strstr(error.message, cases[i].named))
            fail_msg("case %zu: %s", i, error.message);
    }
}

/* ---- the source -------------------------------------------------------------------------------------------------- */

TEST_CASE(the_source_goes_through_epochs_from_a_position_on)
{
    const char *paths[] = { "a", "b", "c", "d", "e" };
    weir_sampler_source_config config = {
        .sampler = { .num_items = 5, .seed = 9, .order = WEIR_SAMPLER_SHUFFLED, .world.size = 1 },
        .paths = paths,
        .first_epoch = 3,
        .first_position = 2,
    };
    weir_sampler *sampler = make(config.sampler);
    weir_pipeline *pipeline;
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &config, &(weir_stage_options){ .epochs = 2 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    for (uint64_t epoch = 3; epoch < 5; epoch++) {
        assert_int_equal(weir_sampler_begin(sampler, epoch), WEIR_OK);
        for (uint64_t position = epoch == 3 ? 2 : 0; position < 5; position++) {
            weir_item item;
            assert_int_equal(weir_pipeline_next(pipeline, &item, 20 * WEIR_SECOND), WEIR_OK);
            const weir_entry *entry = item.data;
            assert_string_equal(item.type, WEIR_TYPE_ENTRY);
            assert_int_equal(entry->number, weir_sampler_at(sampler, position));
            assert_int_equal(entry->epoch, epoch);
            assert_string_equal(entry->path, paths[entry->number]);
            assert_string_equal(item.label, entry->path);
            weir_item_release(&item);
        }
        weir_item none;
        assert_int_equal(weir_pipeline_next(pipeline, &none, 20 * WEIR_SECOND), WEIR_EPOCH);
    }
    weir_item none;
    assert_int_equal(weir_pipeline_next(pipeline, &none, 20 * WEIR_SECOND), WEIR_EOF);
    weir_pipeline_free(pipeline);
    weir_sampler_free(sampler);
}

/* The program's arrays and paths are gone. What identifies the items is the same: a checkpoint of one fits the other. */
TEST_CASE(a_copy_of_a_description_samples_the_same)
{
    enum { COUNT = 5, TAKEN = 2 };
    const char *names[] = { "a", "b", "c", "d", "e" };
    double *weights = malloc(COUNT * sizeof *weights);
    for (int i = 0; i < COUNT; i++)
        weights[i] = 1 + i;
    weir_sampler_source_config config = {
        .sampler = { .num_items = COUNT, .seed = 3, .weights = weights, .world.size = 1 }, .paths = names
    };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &config, &(weir_stage_options){ .epochs = 1 });
    weir_builder_sink(builder, NULL);
    memset(weights, 0xff, COUNT * sizeof *weights);
    free(weights);
    memset(names, 0, sizeof names);
    weir_builder *copy = weir_builder_copy(builder);
    weir_pipeline *pipelines[2];
    char *text = NULL;
    uint64_t numbers[COUNT];
    weir_pipeline_options options = { .checkpoints = WEIR_CHECKPOINTS_DELIVERED };
    assert_int_equal(weir_builder_build(builder, &options, &pipelines[0], NULL), WEIR_OK);
    for (int i = 0; i < COUNT; i++) {
        weir_item item;
        if (i == TAKEN)
            assert_int_equal(weir_pipeline_checkpoint(pipelines[0], &text), WEIR_OK);
        assert_int_equal(weir_pipeline_next(pipelines[0], &item, 20 * WEIR_SECOND), WEIR_OK);
        numbers[i] = ((const weir_entry *)item.data)->number;
        weir_item_release(&item);
    }
    weir_pipeline_free(pipelines[0]);
    const char *from = text;
    options.resume = &from;
    options.num_resume = 1;
    assert_int_equal(weir_builder_build(copy, &options, &pipelines[1], NULL), WEIR_OK);
    for (int i = TAKEN; i < COUNT; i++) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipelines[1], &item, 20 * WEIR_SECOND), WEIR_OK);
        assert_int_equal(((const weir_entry *)item.data)->number, numbers[i]);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipelines[1]);
    free(text);
}

static int build_source(const char *const *paths, uint64_t num_paths, const char *from, weir_pipeline **to,
                        weir_error *error)
{
    weir_sampler_source_config config = { .sampler = { .num_items = num_paths, .world.size = 1 }, .paths = paths };
    weir_builder *builder = weir_builder_new();
    *error = (weir_error){ 0 };
    weir_source_sampler(builder, &config, &(weir_stage_options){ .epochs = 2 });
    weir_builder_sink(builder, NULL);
    return weir_builder_build(builder,
                              &(weir_pipeline_options){ .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                                        .resume = &from,
                                                        .num_resume = from != NULL },
                              to, error);
}

static void expect_next(weir_pipeline *pipeline, const char *address, uint64_t occurrence)
{
    weir_item item;
    assert_int_equal(weir_pipeline_next(pipeline, &item, 20 * WEIR_SECOND), WEIR_OK);
    assert_string_equal(weir_item_identity(&item).address, address);
    assert_int_equal(weir_item_identity(&item).occurrence, occurrence);
    weir_item_release(&item);
}

/* An object has the same identity, and its checkpoint is accepted, under each signature. */
TEST_CASE(a_list_is_the_same_under_each_signature)
{
    const char *paths[] = { "http://h/a?sig=1", "http://h/b?sig=1", "http://h/a?sig=2" };
    const char *later[] = { "http://h/a?sig=3", "http://u:p@h/b?sig=4", "http://h/a?se=1&sig=3" };
    const char *other[] = { "http://h/a?sig=1", "http://h/c?sig=1", "http://h/a?sig=2" };
    weir_pipeline *pipeline;
    weir_error error;
    char *text;
    assert_int_equal(build_source(paths, 3, NULL, &pipeline, &error), WEIR_OK);
    expect_next(pipeline, "http://h/a", 0);
    expect_next(pipeline, "http://h/b", 0);
    assert_int_equal(weir_pipeline_checkpoint(pipeline, &text), WEIR_OK);
    expect_next(pipeline, "http://h/a", 1);
    weir_pipeline_free(pipeline);
    if (build_source(later, 3, text, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    expect_next(pipeline, "http://h/a", 1);
    weir_pipeline_free(pipeline);
    assert_int_not_equal(build_source(other, 3, text, &pipeline, &error), WEIR_OK);
    free(text);
}

TEST_CASE(the_source_refuses_what_the_sampler_refuses)
{
    const char *paths[] = { "a", NULL };
    const weir_sampler_source_config cases[] = {
        { .sampler = { .num_items = 2, .world.size = 1 } },
        { .sampler = { .num_items = 0, .world.size = 1 }, .paths = paths },
        { .sampler = { .num_items = 2, .world.size = 1 }, .paths = paths },
        { .sampler = { .num_items = 1, .world.size = 1 }, .paths = paths, .first_position = 2 },
    };
    static const char *const named[] = { "either paths or items.fill", "no items", "path 1", "first_position" };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        weir_builder *builder = weir_builder_new();
        weir_source_sampler(builder, &cases[i], NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_EINVAL);
        if (!strstr(error.message, named[i]))
            fail_msg("case %zu: %s", i, error.message);
    }
}

int main(void)
{
    for (size_t i = 0; i < LENGTH(variables); i++)
        unsetenv(variables[i]);
    return test_cases_run(NULL, NULL, NULL, NULL);
}
