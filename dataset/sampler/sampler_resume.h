/* What the sampler writes into checkpoints, and how it continues from them. */
#ifndef STAGES_SAMPLER_SAMPLER_RESUME_H
#define STAGES_SAMPLER_SAMPLER_RESUME_H

#include <weir/sampler.h>

#include "dataset/sampler/rank_share.h"

/* -- in sampler.c -- */

/* Everything that the items of an epoch depend on, as one line; to be freed. NULL = out of memory. */
char *weir__sampler_identity(const weir_sampler *sampler);

/* Several threads use the sampler of a source, one at a time. */
void weir__sampler_lock(weir_sampler *sampler);
void weir__sampler_unlock(weir_sampler *sampler);

/* The item that takes this position of the share when the items of `attempt` others, its own included, have failed there:
   false = there is none. */
bool weir__sampler_replacement(weir_sampler *sampler, uint64_t position, uint64_t attempt, uint64_t *number);

/* The number of items of an epoch on num_ranks ranks together. */
uint64_t weir__sampler_total(const weir_sampler *sampler, uint32_t num_ranks);
weir_sampler_share weir__sampler_share(const weir_sampler *sampler);

/* Replaces the shares of these epochs, as the old ranks had them, by others; takes ownership of the arrays. The
   second function says where a position has gone, as weir_op.renumber. */
void weir__sampler_deal(weir_sampler *sampler, weir_rank_share *shares, weir_rank_share *old, size_t num_shares,
                        weir_world *old_ranks);
/* What this rank had done of its shares as they are now; NULL = nothing. Takes ownership of the checkpoint. */
void weir__sampler_set_done(weir_sampler *sampler, weir_checkpoint *done, size_t source);
uint64_t weir__sampler_renumber(const weir_sampler *sampler, size_t checkpoint, uint64_t epoch, uint64_t position);
const weir_rank_share *weir__sampler_shares(const weir_sampler *sampler, size_t *num_shares);

/* From the environment or the config; see weir_sampler_config.world. */
weir_world weir__sampler_world(const weir_sampler *sampler);

/* -- in sampler_resume.c -- */

/* As weir_op.save and .resume. dataset: identifies the items; 0 = unknown. */
char *weir__sampler_save(const weir_sampler *sampler, uint64_t dataset, uint64_t epoch);
int weir__sampler_resume(weir_sampler *sampler, uint64_t dataset, const weir_checkpoint *const *checkpoints,
                         size_t num_checkpoints, size_t source, weir_error *error);

#endif
