/* The descriptor for event loops; without the pipeline's lock. */
#ifndef ENGINE_RUN_POLL_FD_H
#define ENGINE_RUN_POLL_FD_H

#include "run_state.h"

/* Returns a libuv status. */
int weir__poll_fd_init(weir_pipeline *pipeline);
void weir__poll_fd_destroy(weir_pipeline *pipeline);

/* Updates the descriptor, after poll_dirty was set. */
void weir__poll_fd_apply(weir_pipeline *pipeline);

#endif
