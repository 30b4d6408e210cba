/*
 * Dividing the rest of an epoch among another number of ranks.
 *
 * When an epoch begins, its places 0 … total - 1 are dealt to the ranks of that time, round after round: rank r of w
 * gets r, r + w, r + 2w, …. A share says which places are left (a list below `from`, and all from `from` on). It
 * deals these in the same way to the present ranks. An epoch that was not resumed has the share with from = 0.
 *
 * Where all ranks are to have equal counts, the first of what is left is repeated at the end, or its end is left out. Only
 * the positions before that are counted when the epoch is divided once more: what is repeated is not left twice, and what
 * was left out is left again.
 */
#ifndef STAGES_SAMPLER_RANK_SHARE_H
#define STAGES_SAMPLER_RANK_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/checkpoint.h>
#include <weir/sampler.h>
#include <weir/status.h>

typedef struct weir_rank_share {
    uint64_t epoch;
    uint32_t num_ranks; /* when the epoch began */
    uint64_t total;     /* places of the epoch */
    weir_sampler_share share;
    uint64_t from;
    uint64_t *rest; /* increasing, all below `from` */
    uint64_t num_rest;
} weir_rank_share;

/* The place of a position of this rank, the number of its positions, and the position of a place below `from`:
   UINT64_MAX if it is not this rank's. */
uint64_t weir__rank_share_place(const weir_rank_share *share, const weir_world *world, uint64_t position);
uint64_t weir__rank_share_count(const weir_rank_share *share, const weir_world *world);
uint64_t weir__rank_share_position(const weir_rank_share *share, const weir_world *world, uint64_t place);

/* Deals what was left of `old` by all its ranks; the share replaces *old. ranks: of each checkpoint. */
int weir__rank_share_again(weir_rank_share *share, const weir_rank_share *old, const weir_world *ranks,
                           const weir_checkpoint *const *checkpoints, size_t num_checkpoints, size_t source);

/* As a line of text, to be freed, without a line end; NULL = out of memory. Reading returns WEIR_OK, WEIR_EDATA or
   WEIR_ENOMEM; total and share are not part of the text. */
char *weir__rank_share_text(const weir_rank_share *share);
int weir__rank_share_read(weir_rank_share *share, const char *line);

void weir__rank_share_free(weir_rank_share *share); /* what it points to */

#endif
