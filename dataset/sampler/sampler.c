/*
 * Two steps, each a pure function: from the rank's position in its share to a position of the epoch (share), and from
 * that to an item (draw). Only weights without replacement need data that is computed at the start of an epoch.
 */
#include <weir/sampler.h>

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/random.h"
#include "dataset/sampler/buckets.h"
#include "dataset/sampler/groups.h"
#include "dataset/sampler/permutation.h"
#include "dataset/sampler/sampler_resume.h"

/* Independent random streams, all derived from the seed. */
enum { FOR_ORDER = 1, FOR_BLOCKS, FOR_DRAWS, FOR_CLASSES };

static const uint64_t max_items = UINT64_C(1) << 62;

/* Weights are compared as integers, so that all machines agree. */
static const double weight_unit = UINT64_C(1) << 31;

typedef struct class_list {
    uint64_t start;  /* in members */
    uint64_t length; /* at least 1 */
} class_list;

struct weir_sampler {
    pthread_mutex_t lock; /* taken by the source only: its tasks take turns */

    /* immutable after init */
    weir_sampler_config config; /* weights and classes: see below */
    uint32_t *weights;          /* (NULL = none) */
    uint64_t *sums;             /* with replacement: cumulative weights */
    class_list *classes;        /* (NULL = not balanced) */
    uint64_t *members;          /* sorted by class */
    weir_buckets buckets;       /* of BUCKETS */
    weir_groups groups;         /* of GROUPS, with its last block */
    uint64_t num_samples;       /* of an epoch */
    uint64_t count;             /* of this rank */
    uint64_t arrays;            /* hash of weights and classes */
    weir_rank_share *shares;    /* of epochs that were resumed */
    size_t num_shares;
    weir_rank_share *old_shares; /* the same epochs, as the checkpoints' ranks had them */
    weir_world *old_ranks;       /* of each checkpoint */
    weir_checkpoint *done;       /* what this rank had done; NULL = nothing of what its shares are now */
    size_t done_source;          /* in it */

    /* of the epoch */
    bool has_begun;
    uint64_t epoch;
    uint64_t seed;
    uint64_t *drawn;              /* weights without replacement: the items in order */
    const weir_rank_share *share; /* NULL = it was not resumed */

    /* the last permutation: neighbouring positions share it */
    weir__permutation permutation;
    uint64_t permutation_key;
};

/* ---- the order: from positions of the epoch to items ------------------------------------------------------------ */

static uint64_t seed_for(const weir_sampler *sampler, int purpose, uint64_t number)
{
    return weir__random_seed(weir__random_seed(sampler->seed, (uint64_t)purpose), number);
}

static const weir__permutation *permutation_of(weir_sampler *sampler, uint64_t count, uint64_t key)
{
    if (sampler->permutation.count != count || sampler->permutation_key != key) {
        sampler->permutation = weir__permutation_make(count, key);
        sampler->permutation_key = key;
    }
    return &sampler->permutation;
}

static uint64_t draw_weighted(const weir_sampler *sampler, uint64_t *state)
{
    uint64_t low = 0;
    uint64_t high = sampler->config.num_items - 1;
    uint64_t value = weir__random_below(state, sampler->sums[high]);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (sampler->sums[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Every num_classes positions have all classes, in a separate random order. */
static uint64_t draw_balanced(weir_sampler *sampler, uint64_t position)
{
    uint32_t num_classes = sampler->config.num_classes;
    uint64_t turn = position / num_classes;
    weir__permutation turns = weir__permutation_make(num_classes, seed_for(sampler, FOR_CLASSES, turn));
    uint64_t chosen = weir__permutation_at(&turns, position % num_classes);
    const class_list *list = &sampler->classes[chosen];
    uint64_t state = weir__random_seed(seed_for(sampler, FOR_ORDER, chosen), turn / list->length);
    if (sampler->config.replacement) {
        state = seed_for(sampler, FOR_DRAWS, position);
        return sampler->members[list->start + weir__random_below(&state, list->length)];
    }
    weir__permutation items = weir__permutation_make(list->length, state);
    return sampler->members[list->start + weir__permutation_at(&items, turn % list->length)];
}

static uint64_t draw_block(weir_sampler *sampler, uint64_t pass, uint64_t place)
{
    uint64_t num_items = sampler->config.num_items;
    uint64_t length = sampler->config.block_items;
    uint64_t num_blocks = (num_items + length - 1) / length;
    uint64_t lacking = num_blocks * length - num_items; /* the last block may be shorter */
    weir__permutation blocks = weir__permutation_make(num_blocks, seed_for(sampler, FOR_BLOCKS, pass));
    uint64_t short_end = (weir__permutation_find(&blocks, num_blocks - 1) + 1) * length - lacking;
    if (place >= short_end)
        place += lacking;
    uint64_t block = weir__permutation_at(&blocks, place / length);
    if (block == num_blocks - 1)
        length -= lacking;
    uint64_t key = weir__random_seed(seed_for(sampler, FOR_ORDER, pass), block);
    uint64_t within = place % sampler->config.block_items;
    return block * sampler->config.block_items + weir__permutation_at(permutation_of(sampler, length, key), within);
}

static uint64_t draw_grouped(weir_sampler *sampler, uint64_t pass, uint64_t place)
{
    uint64_t key = seed_for(sampler, FOR_ORDER, pass);
    return weir__groups_at(&sampler->groups, place, permutation_of(sampler, sampler->config.num_items, key), key);
}

static uint64_t draw_item(weir_sampler *sampler, uint64_t position)
{
    const weir_sampler_config *config = &sampler->config;
    uint64_t state = seed_for(sampler, FOR_DRAWS, position);
    if (sampler->classes)
        return draw_balanced(sampler, position);
    if (sampler->weights)
        return config->replacement ? draw_weighted(sampler, &state) : sampler->drawn[position];
    if (config->replacement)
        return weir__random_below(&state, config->num_items);

    uint64_t pass = position / config->num_items;
    uint64_t place = position % config->num_items;
    switch (config->order) {
    case WEIR_SAMPLER_BLOCKS: return draw_block(sampler, pass, place);
    case WEIR_SAMPLER_GROUPS: return draw_grouped(sampler, pass, place);
    case WEIR_SAMPLER_BUCKETS:
        return weir__buckets_at(&sampler->buckets, place, seed_for(sampler, FOR_BLOCKS, pass),
                                seed_for(sampler, FOR_ORDER, pass));
    case WEIR_SAMPLER_SHUFFLED:
        return weir__permutation_at(permutation_of(sampler, config->num_items, seed_for(sampler, FOR_ORDER, pass)),
                                    place);
    case WEIR_SAMPLER_LISTED: break;
    }
    return place;
}

/* ---- weights without replacement ---------------------------------------------------------------------------- */

typedef struct arrival {
    uint64_t time;
    uint64_t item;
} arrival;

static int compare_arrivals(const void *a, const void *b)
{
    const arrival *left = a;
    const arrival *right = b;
    if (left->time != right->time)
        return left->time < right->time ? -1 : 1;
    return left->item < right->item ? -1 : left->item > right->item;
}

/* -log2(u / 2^64) with 24 fractional bits; above 0. By squaring, because maths libraries round logarithms
   differently. */
static uint64_t minus_log2(uint64_t u)
{
    enum { BITS = 24 };
    unsigned num_zeros = 0;
    for (u |= 1; !(u >> 63); u <<= 1)
        num_zeros++;
    uint64_t mantissa = u >> 32; /* from 2^31 on, for 1 to 2 */
    uint64_t fraction = 0;
    for (int i = 0; i < BITS; i++) {
        uint64_t square = mantissa * mantissa;
        fraction = fraction << 1 | square >> 63;
        mantissa = square >> (square >> 63 ? 32 : 31);
    }
    return ((uint64_t)(num_zeros + 1) << BITS) - fraction;
}

/* Efraimidis and Spirakis 2006: if each item arrives after an exponentially distributed time, with its weight as the
   rate, the order of arrival is a weighted draw without replacement. */
static int draw_arrivals(weir_sampler *sampler)
{
    uint64_t num_items = sampler->config.num_items;
    arrival *arrivals = malloc(num_items * sizeof *arrivals);
    uint64_t num_arrivals = 0;
    if (!arrivals)
        return WEIR_ENOMEM;
    for (uint64_t i = 0; i < num_items; i++) {
        if (sampler->weights[i])
            arrivals[num_arrivals++] = (arrival){
                .time = (minus_log2(seed_for(sampler, FOR_DRAWS, i)) << 32) / sampler->weights[i],
                .item = i,
            };
    }
    qsort(arrivals, num_arrivals, sizeof *arrivals, compare_arrivals);
    for (uint64_t i = 0; i < sampler->num_samples; i++)
        sampler->drawn[i] = arrivals[i].item;
    free(arrivals);
    return WEIR_OK;
}

/* ---- the share: from positions of this rank to those of the epoch ------------------------------------------------ */

static uint64_t wrap_position(const weir_sampler *sampler, uint64_t position)
{
    return position % sampler->num_samples;
}

/* Rounds of one position per rank, an incomplete last round included. */
static uint64_t num_rounds(const weir_sampler *sampler, uint32_t size)
{
    bool has_rest = sampler->num_samples % size && sampler->config.share != WEIR_SHARE_DROP;
    return sampler->num_samples / size + has_rest;
}

static uint64_t count_of(const weir_sampler *sampler, const weir_world *world)
{
    uint64_t rest = sampler->num_samples % world->size;
    bool lacks_one = sampler->config.share == WEIR_SHARE_EXACT && rest && world->rank >= rest;
    return num_rounds(sampler, world->size) - lacks_one;
}

static uint64_t share_of(const weir_sampler *sampler, const weir_world *world, uint64_t position)
{
    const weir_sampler_config *config = &sampler->config;
    if (config->order != WEIR_SAMPLER_BLOCKS && config->order != WEIR_SAMPLER_GROUPS)
        return wrap_position(sampler, position * world->size + world->rank);
    if (config->share != WEIR_SHARE_EXACT)
        return wrap_position(sampler, world->rank * count_of(sampler, world) + position);
    uint64_t rest = sampler->num_samples % world->size;
    uint64_t each = sampler->num_samples / world->size;
    return world->rank * each + (world->rank < rest ? world->rank : rest) + position;
}

static uint64_t share_position(const weir_sampler *sampler, uint64_t position)
{
    const weir_rank_share *share = sampler->share;
    if (!share)
        return share_of(sampler, &sampler->config.world, position);
    uint64_t place = weir__rank_share_place(share, &sampler->config.world, position);
    weir_world first = { .rank = (uint32_t)(place % share->num_ranks), .size = share->num_ranks };
    return share_of(sampler, &first, place / share->num_ranks);
}

/* ---- making one ------------------------------------------------------------------------------------------------- */

static int refuse_sampler(weir_error *error, const char *what)
{
    return weir_error_set(error, WEIR_EINVAL, 0, "sampler: %s", what);
}

static int check_order(const weir_sampler_config *config, weir_error *error)
{
    bool has_blocks = config->order >= WEIR_SAMPLER_BLOCKS;
    bool has_buckets = config->order == WEIR_SAMPLER_BUCKETS;
    bool is_random = config->weights || config->classes || config->replacement;
    if (has_blocks ? config->block_items == 0 : config->block_items != 0)
        return refuse_sampler(error,
                              "WEIR_SAMPLER_BLOCKS, WEIR_SAMPLER_BUCKETS and WEIR_SAMPLER_GROUPS need block_items "
                              "of at least 1; other orders need 0");
    if (has_buckets ? !config->sizes || !config->num_buckets : config->sizes || config->num_buckets)
        return refuse_sampler(error, "WEIR_SAMPLER_BUCKETS needs sizes and num_buckets; other orders have none");
    if ((config->order == WEIR_SAMPLER_GROUPS) != (config->groups != NULL))
        return refuse_sampler(error, "WEIR_SAMPLER_GROUPS needs groups; other orders have none");
    if (has_blocks && is_random)
        return refuse_sampler(error,
                              "blocks, buckets and groups cannot be combined with weights, classes or replacement");
    return WEIR_OK;
}

static int check_sampler(const weir_sampler_config *config, weir_error *error)
{
    if (config->num_items == 0)
        return refuse_sampler(error, "there are no items to choose from");
    if (config->num_items > max_items || config->num_samples > max_items)
        return refuse_sampler(error, "num_items and num_samples must be at most 2^62");
    if ((unsigned)config->order > WEIR_SAMPLER_GROUPS || (unsigned)config->share > WEIR_SHARE_DROP)
        return refuse_sampler(error, "order or share is not a value of its enum; see weir/sampler.h");
    int status = check_order(config, error);
    if (status != WEIR_OK)
        return status;
    if (config->weights && config->classes)
        return refuse_sampler(error, "weights and classes cannot be combined");
    if (config->classes && config->num_classes == 0)
        return refuse_sampler(error, "num_classes is 0");
    return WEIR_OK;
}

static int find_world(weir_world *world, weir_error *error)
{
    if (world->size == 0 && world->rank == 0)
        return weir_world_find(world, NULL, error);
    if (world->rank >= world->size)
        return weir_error_set(error, WEIR_EINVAL, 0, "sampler: rank %" PRIu32 " is not below the world size %" PRIu32,
                              world->rank, world->size);
    return WEIR_OK;
}

/* In units of 2^-31 of the largest weight; weights above 0 stay above 0. */
static int take_weights(weir_sampler *sampler, const double *weights, uint64_t *num_drawable, weir_error *error)
{
    uint64_t num_items = sampler->config.num_items;
    bool adds_up = sampler->config.replacement;
    double largest = 0;
    sampler->weights = malloc(num_items * sizeof *sampler->weights);
    sampler->sums = adds_up ? malloc(num_items * sizeof *sampler->sums) : NULL;
    if (!sampler->weights || (adds_up && !sampler->sums))
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    for (uint64_t i = 0; i < num_items; i++) {
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            return weir_error_set(error, WEIR_EINVAL, 0,
                                  "sampler: the weight of item %" PRIu64
                                  " is %g; it must be a finite number, 0 or above",
                                  i, weights[i]);
        largest = weights[i] > largest ? weights[i] : largest;
    }
    if (largest <= 0)
        return refuse_sampler(error, "all weights are 0");
    *num_drawable = 0;
    for (uint64_t i = 0, sum = 0; i < num_items; i++) {
        uint32_t weight = (uint32_t)(weights[i] / largest * weight_unit);
        sampler->weights[i] = weights[i] > 0 && weight == 0 ? 1 : weight;
        sum += sampler->weights[i];
        *num_drawable += sampler->weights[i] > 0;
        if (adds_up)
            sampler->sums[i] = sum;
    }
    return WEIR_OK;
}

static int take_classes(weir_sampler *sampler, const uint32_t *classes, weir_error *error)
{
    uint64_t num_items = sampler->config.num_items;
    uint32_t num_classes = sampler->config.num_classes;
    sampler->classes = calloc(num_classes, sizeof *sampler->classes);
    sampler->members = malloc(num_items * sizeof *sampler->members);
    if (!sampler->classes || !sampler->members)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    for (uint64_t i = 0; i < num_items; i++) {
        if (classes[i] >= num_classes)
            return weir_error_set(error, WEIR_EINVAL, 0,
                                  "sampler: item %" PRIu64 " is of class %" PRIu32
                                  "; classes must be below num_classes, %" PRIu32,
                                  i, classes[i], num_classes);
        sampler->classes[classes[i]].length++;
    }
    uint64_t start = 0;
    for (uint32_t c = 0; c < num_classes; c++) {
        if (sampler->classes[c].length == 0)
            return weir_error_set(error, WEIR_EINVAL, 0,
                                  "sampler: class %" PRIu32 " has no items, so classes cannot be balanced", c);
        sampler->classes[c].start = start;
        start += sampler->classes[c].length;
        sampler->classes[c].length = 0;
    }
    for (uint64_t i = 0; i < num_items; i++) {
        class_list *list = &sampler->classes[classes[i]];
        sampler->members[list->start + list->length++] = i;
    }
    return WEIR_OK;
}

static int count_share(weir_sampler *sampler, weir_error *error)
{
    const weir_world *world = &sampler->config.world;
    sampler->count = count_of(sampler, world);
    if (num_rounds(sampler, world->size) == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "sampler: %" PRIu64 " items on %" PRIu32
                              " ranks: no rank gets an item, because the remainder is dropped",
                              sampler->num_samples, world->size);
    return WEIR_OK;
}

static uint64_t hash_arrays(const weir_sampler_config *config)
{
    uint64_t hash = 0;
    if (config->weights)
        hash = weir__hash(hash + 1, config->weights, config->num_items * sizeof *config->weights);
    if (config->classes)
        hash = weir__hash(hash + 2, config->classes, config->num_items * sizeof *config->classes);
    if (config->sizes)
        hash = weir__hash(hash + 2 + config->num_buckets, config->sizes, config->num_items * sizeof *config->sizes);
    if (config->groups)
        hash = weir__hash(hash + 3, config->groups, config->num_items * sizeof *config->groups);
    return hash;
}

static int reserve_order(weir_sampler *sampler, weir_error *error)
{
    bool draws = sampler->weights && !sampler->config.replacement;
    sampler->drawn = draws ? malloc(sampler->num_samples * sizeof *sampler->drawn) : NULL;
    return draws && !sampler->drawn ? weir_error_set(error, WEIR_ENOMEM, 0, "out of memory") : WEIR_OK;
}

static int set_up_sampler(weir_sampler *sampler, const weir_sampler_config *config, weir_error *error)
{
    uint64_t num_drawable = config->num_items;
    sampler->config = *config;
    sampler->arrays = hash_arrays(config);
    sampler->config.weights = NULL;
    sampler->config.classes = NULL;
    sampler->config.sizes = NULL;
    sampler->config.groups = NULL;
    int rc = find_world(&sampler->config.world, error);
    if (rc == WEIR_OK && config->weights)
        rc = take_weights(sampler, config->weights, &num_drawable, error);
    if (rc == WEIR_OK && config->classes)
        rc = take_classes(sampler, config->classes, error);
    if (rc == WEIR_OK && config->sizes)
        rc = weir__buckets_make(&sampler->buckets, config->sizes, config->num_items, config->num_buckets,
                                config->block_items, error);
    if (rc == WEIR_OK && config->groups &&
        weir__groups_make(&sampler->groups, config->groups, config->num_items, config->block_items) != WEIR_OK)
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (rc != WEIR_OK)
        return rc;
    sampler->num_samples = config->num_samples ? config->num_samples : num_drawable;
    if (config->weights && !config->replacement && sampler->num_samples > num_drawable)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "sampler: %" PRIu64 " samples cannot be drawn without replacement from %" PRIu64
                              " items of a weight above 0",
                              sampler->num_samples, num_drawable);
    rc = count_share(sampler, error);
    return rc == WEIR_OK ? reserve_order(sampler, error) : rc;
}

int weir_sampler_new(const weir_sampler_config *config, weir_sampler **to, weir_error *error)
{
    if (to)
        *to = NULL;
    if (!config || !to)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = check_sampler(config, error);
    if (rc != WEIR_OK)
        return rc;
    weir_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    pthread_mutex_init(&sampler->lock, NULL); /* cannot fail */
    rc = set_up_sampler(sampler, config, error);
    if (rc == WEIR_OK && weir_sampler_begin(sampler, 0) != WEIR_OK)
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (rc == WEIR_OK)
        *to = sampler;
    else
        weir_sampler_free(sampler);
    return rc;
}

int weir_sampler_begin(weir_sampler *sampler, uint64_t epoch)
{
    if (!sampler)
        return WEIR_EINVAL;
    if (sampler->has_begun && sampler->epoch == epoch)
        return WEIR_OK;
    sampler->seed = weir__random_seed(sampler->config.seed, epoch);
    sampler->share = NULL;
    for (size_t i = 0; i < sampler->num_shares; i++)
        if (sampler->shares[i].epoch == epoch)
            sampler->share = &sampler->shares[i];
    int rc = sampler->drawn ? draw_arrivals(sampler) : WEIR_OK;
    sampler->has_begun = rc == WEIR_OK;
    sampler->epoch = epoch;
    return rc;
}

uint64_t weir_sampler_count(const weir_sampler *sampler)
{
    if (!sampler)
        return 0;
    return sampler->share ? weir__rank_share_count(sampler->share, &sampler->config.world) : sampler->count;
}

static uint64_t num_done(const weir_sampler *sampler, uint64_t count)
{
    uint64_t low, end;
    weir_checkpoint_range(sampler->done, sampler->done_source, sampler->epoch, &low, &end);
    if (low >= count)
        return count;
    uint64_t num = low;
    for (uint64_t position = low; position < end && position < count; position++)
        num += weir_checkpoint_is_done(sampler->done, sampler->done_source, sampler->epoch, position);
    return num;
}

uint64_t weir_sampler_left(const weir_sampler *sampler)
{
    uint64_t count = weir_sampler_count(sampler);
    return sampler && sampler->done ? count - num_done(sampler, count) : count;
}

uint64_t weir_sampler_batches_left(const weir_sampler *sampler, uint64_t batch_items, bool drop_last)
{
    if (batch_items == 0)
        return 0;
    uint64_t left = weir_sampler_left(sampler);
    return left / batch_items + (left % batch_items && !drop_last);
}

uint64_t weir_sampler_at(weir_sampler *sampler, uint64_t position)
{
    if (!sampler || position >= weir_sampler_count(sampler))
        return 0;
    return draw_item(sampler, share_position(sampler, position));
}

void weir__sampler_lock(weir_sampler *sampler)
{
    pthread_mutex_lock(&sampler->lock);
}

void weir__sampler_unlock(weir_sampler *sampler)
{
    pthread_mutex_unlock(&sampler->lock);
}

/* What is left of a resumed epoch may be few items, which all fail: then the next of the whole epoch are tried. */
bool weir__sampler_replacement(weir_sampler *sampler, uint64_t position, uint64_t attempt, uint64_t *number)
{
    if (attempt >= num_rounds(sampler, sampler->config.world.size) || position >= weir_sampler_count(sampler))
        return false;
    *number = sampler->share ? draw_item(sampler, wrap_position(sampler, share_position(sampler, position) + attempt))
                             : weir_sampler_at(sampler, (position + attempt) % weir_sampler_count(sampler));
    return true;
}

/* ---- resuming --------------------------------------------------------------------------------------------------- */

char *weir__sampler_identity(const weir_sampler *sampler)
{
    const weir_sampler_config *config = &sampler->config;
    char *line;
    int length = asprintf(&line,
                          "items=%" PRIu64 " seed=%" PRIu64 " order=%d block=%" PRIu64
                          " replacement=%d samples=%" PRIu64 " share=%d arrays=%016" PRIx64,
                          config->num_items, config->seed, (int)config->order, config->block_items,
                          config->replacement, sampler->num_samples, (int)config->share, sampler->arrays);
    return length < 0 ? NULL : line;
}

uint64_t weir__sampler_total(const weir_sampler *sampler, uint32_t num_ranks)
{
    return sampler->config.share == WEIR_SHARE_EXACT ? sampler->num_samples
                                                     : num_rounds(sampler, num_ranks) * num_ranks;
}

weir_sampler_share weir__sampler_share(const weir_sampler *sampler)
{
    return sampler->config.share;
}

static void drop_shares(weir_sampler *sampler)
{
    for (size_t i = 0; i < sampler->num_shares; i++) {
        weir__rank_share_free(&sampler->shares[i]);
        weir__rank_share_free(&sampler->old_shares[i]);
    }
    free(sampler->shares);
    free(sampler->old_shares);
    free(sampler->old_ranks);
}

void weir__sampler_deal(weir_sampler *sampler, weir_rank_share *shares, weir_rank_share *old, size_t num_shares,
                        weir_world *old_ranks)
{
    drop_shares(sampler);
    sampler->shares = shares;
    sampler->old_shares = old;
    sampler->old_ranks = old_ranks;
    sampler->num_shares = num_shares;
    sampler->has_begun = false;
}

void weir__sampler_set_done(weir_sampler *sampler, weir_checkpoint *done, size_t source)
{
    weir_checkpoint_free(sampler->done);
    sampler->done = done;
    sampler->done_source = source;
}

uint64_t weir__sampler_renumber(const weir_sampler *sampler, size_t checkpoint, uint64_t epoch, uint64_t position)
{
    for (size_t i = 0; i < sampler->num_shares; i++)
        if (sampler->shares[i].epoch == epoch) {
            uint64_t place =
                weir__rank_share_place(&sampler->old_shares[i], &sampler->old_ranks[checkpoint], position);
            return weir__rank_share_position(&sampler->shares[i], &sampler->config.world, place);
        }
    return UINT64_MAX;
}

const weir_rank_share *weir__sampler_shares(const weir_sampler *sampler, size_t *num_shares)
{
    *num_shares = sampler->num_shares;
    return sampler->shares;
}

weir_world weir__sampler_world(const weir_sampler *sampler)
{
    return sampler->config.world;
}

void weir_sampler_free(weir_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->weights);
    free(sampler->sums);
    free(sampler->classes);
    free(sampler->members);
    weir__buckets_free(&sampler->buckets);
    weir__groups_free(&sampler->groups);
    free(sampler->drawn);
    drop_shares(sampler);
    weir_checkpoint_free(sampler->done);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}
