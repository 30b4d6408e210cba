#include "dataset/sampler/rank_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t num_left(const weir_rank_share *share)
{
    return share->num_rest + (share->total - share->from);
}

/* The place of the n-th of what is left, which begins again at its end. */
static uint64_t place_of(const weir_rank_share *share, uint64_t n)
{
    n = num_left(share) ? n % num_left(share) : n;
    return n < share->num_rest ? share->rest[n] : share->from + (n - share->num_rest);
}

uint64_t weir__rank_share_place(const weir_rank_share *share, const weir_world *world, uint64_t position)
{
    return place_of(share, position * world->size + world->rank);
}

uint64_t weir__rank_share_count(const weir_rank_share *share, const weir_world *world)
{
    uint64_t rest = num_left(share) % world->size;
    bool has_one_more = share->share == WEIR_SHARE_PAD    ? rest > 0
                        : share->share == WEIR_SHARE_DROP ? false
                                                          : world->rank < rest;
    return num_left(share) / world->size + has_one_more;
}

/* Without what is repeated, and with what is left out. */
static uint64_t count_left(const weir_rank_share *share, const weir_world *world)
{
    return num_left(share) / world->size + (world->rank < num_left(share) % world->size);
}

uint64_t weir__rank_share_position(const weir_rank_share *share, const weir_world *world, uint64_t place)
{
    uint64_t n = 0;
    for (uint64_t high = share->num_rest; n < high;) {
        uint64_t middle = n + (high - n) / 2;
        if (share->rest[middle] < place)
            n = middle + 1;
        else
            high = middle;
    }
    return n < share->num_rest && n % world->size == world->rank && share->rest[n] == place ? n / world->size
                                                                                            : UINT64_MAX;
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

static int add_place(weir_rank_share *to, uint64_t *capacity, uint64_t place)
{
    if (to->num_rest == *capacity) {
        uint64_t larger = *capacity ? 2 * *capacity : 64;
        uint64_t *rest = realloc(to->rest, larger * sizeof *rest);
        if (!rest)
            return WEIR_ENOMEM;
        to->rest = rest;
        *capacity = larger;
    }
    to->rest[to->num_rest++] = place;
    return WEIR_OK;
}

int weir__rank_share_again(weir_rank_share *share, const weir_rank_share *old, const weir_world *ranks,
                           const weir_checkpoint *const *checkpoints, size_t num_checkpoints, size_t source)
{
    uint64_t capacity = 0, low, end;
    int status = WEIR_OK;
    *share = *old;
    share->rest = NULL;
    share->num_rest = 0;
    for (size_t i = 0; i < num_checkpoints; i++) {
        uint64_t count = count_left(old, &ranks[i]);
        weir_checkpoint_range(checkpoints[i], source, old->epoch, &low, &end);
        end = end < count ? end : count;
        uint64_t from = end ? weir__rank_share_place(old, &ranks[i], end - 1) + 1 : 0;
        share->from = from > share->from ? from : share->from;
    }
    for (size_t i = 0; i < num_checkpoints && status == WEIR_OK; i++) {
        uint64_t count = count_left(old, &ranks[i]);
        weir_checkpoint_range(checkpoints[i], source, old->epoch, &low, &end);
        for (uint64_t p = low; p < count && status == WEIR_OK; p++) {
            uint64_t place = weir__rank_share_place(old, &ranks[i], p);
            if (place >= share->from)
                break;
            if (!weir_checkpoint_is_done(checkpoints[i], source, old->epoch, p))
                status = add_place(share, &capacity, place);
        }
    }
    if (share->num_rest)
        qsort(share->rest, share->num_rest, sizeof *share->rest, compare_places);
    if (status != WEIR_OK)
        weir__rank_share_free(share);
    return status;
}

char *weir__rank_share_text(const weir_rank_share *share)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    fprintf(file, "dealt %" PRIu64 " %" PRIu32 " %" PRIu64, share->epoch, share->num_ranks, share->from);
    for (uint64_t i = 0, last, place = 0; i < share->num_rest; i = last + 1) {
        last = i;
        while (last + 1 < share->num_rest && share->rest[last + 1] == share->rest[last] + 1)
            last++;
        fprintf(file, last > i ? " %" PRIu64 "+%" PRIu64 : " %" PRIu64, share->rest[i] - place, last - i);
        place = share->rest[last] + 1;
    }
    bool is_whole = !ferror(file);
    if (fclose(file) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

int weir__rank_share_read(weir_rank_share *share, const char *line)
{
    uint64_t capacity = 0, place = 0;
    int length = 0, status = WEIR_OK;
    *share = (weir_rank_share){ 0 };
    if (sscanf(line, "dealt %" SCNu64 " %" SCNu32 " %" SCNu64 "%n", &share->epoch, &share->num_ranks, &share->from,
               &length) != 3 ||
        share->num_ranks == 0)
        return WEIR_EDATA;
    for (line += length; *line && status == WEIR_OK; line += length) {
        uint64_t gap = 0, more = 0;
        int num_read = sscanf(line, " %" SCNu64 "%n+%" SCNu64 "%n", &gap, &length, &more, &length);
        if (num_read < 1 || gap >= share->from - place || more >= share->from - place - gap)
            status = WEIR_EDATA;
        place += gap;
        for (uint64_t i = 0; status == WEIR_OK && i <= more; i++)
            status = add_place(share, &capacity, place++);
    }
    if (status != WEIR_OK)
        weir__rank_share_free(share);
    return status;
}

void weir__rank_share_free(weir_rank_share *share)
{
    free(share->rest);
    *share = (weir_rank_share){ 0 };
}
