#include "common/name_count.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

struct weir_name_count {
    uint64_t hash;
    uint64_t count; /* 0 = an empty place */
};

static struct weir_name_count *find_place(const weir_name_counts *counts, uint64_t hash)
{
    size_t mask = counts->num_places - 1, at = (size_t)hash & mask;
    while (counts->places[at].count && counts->places[at].hash != hash)
        at = (at + 1) & mask;
    return &counts->places[at];
}

static int grow_table(weir_name_counts *counts)
{
    weir_name_counts larger = { .num_places = counts->num_places ? 2 * counts->num_places : 64,
                                .num_names = counts->num_names };
    larger.places = calloc(larger.num_places, sizeof *larger.places);
    if (!larger.places)
        return -1;
    for (size_t i = 0; i < counts->num_places; i++)
        if (counts->places[i].count)
            *find_place(&larger, counts->places[i].hash) = counts->places[i];
    free(counts->places);
    *counts = larger;
    return 0;
}

uint64_t weir__name_count(weir_name_counts *counts, const char *name)
{
    if (2 * (counts->num_names + 1) > counts->num_places && grow_table(counts) != 0)
        return UINT64_MAX;
    uint64_t hash = weir__hash(WEIR__HASH_START, name, strlen(name));
    struct weir_name_count *place = find_place(counts, hash);
    counts->num_names += place->count == 0;
    place->hash = hash;
    return place->count++;
}

uint64_t weir__name_counted(const weir_name_counts *counts, const char *name)
{
    return counts->num_places ? find_place(counts, weir__hash(WEIR__HASH_START, name, strlen(name)))->count : 0;
}

void weir__name_counts_free(weir_name_counts *counts)
{
    free(counts->places);
    *counts = (weir_name_counts){ 0 };
}
