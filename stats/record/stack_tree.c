#include "stats/record/stack_tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/hash.h"

struct weir_stack_place {
    uint32_t number, hash;
};

/* ---- numbers by what they stand for ---------------------------------------------------------------------------- */

/* Whether the thing of this number is the one that is looked for. */
typedef bool is_same(const weir_stack_tree *tree, uint32_t number, const void *key);

static struct weir_stack_place *find_place(const weir_stack_tree *tree, const weir_stack_places *places,
                                           uint32_t hash, is_same *same, const void *key)
{
    size_t mask = places->count - 1, at = hash & mask;
    while (places->all[at].number &&
           !(places->all[at].hash == hash && same && same(tree, places->all[at].number, key)))
        at = (at + 1) & mask;
    return &places->all[at];
}

static bool fits(const weir_stack_tree *tree, size_t more_bytes)
{
    return more_bytes <= WEIR_STACK_TREE_BYTES - tree->size_bytes;
}

/* Room for one more than `count` numbers: half of the places stay empty. */
static bool grow_places(weir_stack_tree *tree, weir_stack_places *places, size_t count)
{
    if (2 * (count + 1) <= places->count)
        return true;
    weir_stack_places larger = { .count = places->count ? 2 * places->count : 64 };
    size_t more_bytes = (larger.count - places->count) * sizeof *larger.all;
    if (!fits(tree, more_bytes) || !(larger.all = calloc(larger.count, sizeof *larger.all)))
        return false;
    for (size_t i = 0; i < places->count; i++)
        if (places->all[i].number)
            *find_place(tree, &larger, places->all[i].hash, NULL, NULL) = places->all[i];
    free(places->all);
    *places = larger;
    tree->size_bytes += more_bytes;
    return true;
}

static uint32_t fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static uint32_t hash_of(const void *key, size_t size)
{
    return fold(weir__hash(WEIR__HASH_START, key, size));
}

/* ---- texts --------------------------------------------------------------------------------------------------------- */

static bool is_same_text(const weir_stack_tree *tree, uint32_t number, const void *key)
{
    return strcmp(tree->texts[number - 1], key) == 0;
}

/* What stands between functions, and between lines, is not in them. */
static void clean_text(char *text)
{
    for (; *text; text++)
        if (*text == ';' || (unsigned char)*text < ' ' || *text == '\x7f')
            *text = '?';
}

static uint32_t add_text(weir_stack_tree *tree, char *text)
{
    size_t size = strlen(text) + 1 + sizeof text;
    char **texts = fits(tree, size) ? weir__array_grow(tree->texts, tree->num_texts, sizeof *texts) : NULL;
    if (!texts)
        return 0;
    tree->texts = texts;
    texts[tree->num_texts++] = text;
    tree->size_bytes += size;
    return (uint32_t)tree->num_texts;
}

uint32_t weir__stack_text(weir_stack_tree *tree, const char *text)
{
    char *copy = strdup(text);
    if (!copy || !grow_places(tree, &tree->text_places, tree->num_texts)) {
        free(copy);
        return 0;
    }
    clean_text(copy);
    uint32_t hash = hash_of(copy, strlen(copy));
    struct weir_stack_place *place = find_place(tree, &tree->text_places, hash, is_same_text, copy);
    uint32_t number = place->number ? 0 : add_text(tree, copy);
    if (!number)
        free(copy);
    else
        *place = (struct weir_stack_place){ number, hash };
    return place->number;
}

const char *weir__stack_text_of(const weir_stack_tree *tree, uint32_t text)
{
    return text && text <= tree->num_texts ? tree->texts[text - 1] : "";
}

/* ---- calls --------------------------------------------------------------------------------------------------------- */

static bool is_same_call(const weir_stack_tree *tree, uint32_t number, const void *key)
{
    return memcmp(&tree->calls[number - 1], key, sizeof *tree->calls) == 0;
}

uint32_t weir__stack_call(weir_stack_tree *tree, uint32_t caller, uint32_t text)
{
    const weir_stack_call call = { caller, text };
    if (!text || !grow_places(tree, &tree->call_places, tree->num_calls))
        return 0;
    uint32_t hash = hash_of(&call, sizeof call);
    struct weir_stack_place *place = find_place(tree, &tree->call_places, hash, is_same_call, &call);
    if (place->number || !fits(tree, sizeof call))
        return place->number;
    weir_stack_call *calls = weir__array_grow(tree->calls, tree->num_calls, sizeof *calls);
    if (!calls)
        return 0;
    tree->calls = calls;
    calls[tree->num_calls++] = call;
    tree->size_bytes += sizeof call;
    *place = (struct weir_stack_place){ (uint32_t)tree->num_calls, hash };
    return place->number;
}

/* ---- counts -------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of_count(const weir_stack_count *count)
{
    uint64_t hash = weir__hash(WEIR__HASH_START, &count->lap_id, sizeof count->lap_id);
    hash = weir__hash(hash, &count->name, sizeof count->name);
    return fold(weir__hash(hash, &count->stack, sizeof count->stack));
}

static bool is_same_count(const weir_stack_tree *tree, uint32_t number, const void *key)
{
    const weir_stack_count *one = &tree->counts[number - 1], *other = key;
    return one->lap_id == other->lap_id && one->name == other->name && one->stack == other->stack;
}

/* The counts have moved. */
static void place_counts(weir_stack_tree *tree)
{
    if (tree->count_places.count)
        memset(tree->count_places.all, 0, tree->count_places.count * sizeof *tree->count_places.all);
    for (size_t i = 0; i < tree->num_counts; i++) {
        uint32_t hash = hash_of_count(&tree->counts[i]);
        *find_place(tree, &tree->count_places, hash, NULL, NULL) = (struct weir_stack_place){ (uint32_t)i + 1, hash };
    }
}

static bool is_among(uint64_t lap_id, const uint64_t *lap_ids, size_t num_ids)
{
    while (num_ids > 0 && lap_ids[num_ids - 1] != lap_id)
        num_ids--;
    return num_ids > 0;
}

/* The counts of these laps go to `taken`; NULL = they are lost. Returns their number. */
static size_t remove_counts(weir_stack_tree *tree, const uint64_t *lap_ids, size_t num_ids, weir_stack_count *taken)
{
    size_t num_taken = 0, num_left = 0;
    for (size_t i = 0; i < tree->num_counts; i++) {
        const weir_stack_count *count = &tree->counts[i];
        if (!is_among(count->lap_id, lap_ids, num_ids))
            tree->counts[num_left++] = *count;
        else if (taken)
            taken[num_taken++] = *count;
        else
            tree->num_lost += count->num_samples;
    }
    tree->size_bytes -= (tree->num_counts - num_left) * sizeof *tree->counts;
    num_taken = tree->num_counts - num_left;
    tree->num_counts = num_left;
    if (num_taken)
        place_counts(tree);
    return num_taken;
}

static bool make_room(weir_stack_tree *tree)
{
    bool has_room = fits(tree, sizeof *tree->counts) && grow_places(tree, &tree->count_places, tree->num_counts);
    if (has_room || !tree->num_counts)
        return has_room;
    const weir_stack_count *stalest = tree->counts;
    for (size_t i = 1; i < tree->num_counts; i++)
        if (tree->counts[i].last_ns < stalest->last_ns)
            stalest = &tree->counts[i];
    uint64_t lap_id = stalest->lap_id;
    remove_counts(tree, &lap_id, 1, NULL);
    return fits(tree, sizeof *tree->counts) && grow_places(tree, &tree->count_places, tree->num_counts);
}

void weir__stack_add(weir_stack_tree *tree, const weir_stack_count *samples)
{
    bool has_room = samples->name && samples->stack && make_room(tree);
    uint32_t hash = hash_of_count(samples);
    struct weir_stack_place *place =
        has_room ? find_place(tree, &tree->count_places, hash, is_same_count, samples) : NULL;
    if (place && place->number) {
        tree->counts[place->number - 1].num_samples += samples->num_samples;
        tree->counts[place->number - 1].last_ns = samples->last_ns;
        return;
    }
    weir_stack_count *counts = place ? weir__array_grow(tree->counts, tree->num_counts, sizeof *counts) : NULL;
    if (!counts) {
        tree->num_lost += samples->num_samples;
        return;
    }
    tree->counts = counts;
    counts[tree->num_counts++] = *samples;
    tree->size_bytes += sizeof *counts;
    *place = (struct weir_stack_place){ (uint32_t)tree->num_counts, hash };
}

size_t weir__stack_take(weir_stack_tree *tree, const uint64_t *lap_ids, size_t num_ids, weir_stack_count **taken)
{
    *taken = tree->num_counts ? malloc(tree->num_counts * sizeof **taken) : NULL;
    return *taken ? remove_counts(tree, lap_ids, num_ids, *taken) : 0;
}

/* ---- end ----------------------------------------------------------------------------------------------------------- */

void weir__stack_tree_clear(weir_stack_tree *tree)
{
    for (size_t i = 0; i < tree->num_texts; i++)
        free(tree->texts[i]);
    free(tree->texts);
    free(tree->calls);
    free(tree->counts);
    free(tree->text_places.all);
    free(tree->call_places.all);
    free(tree->count_places.all);
    *tree = (weir_stack_tree){ 0 };
}
