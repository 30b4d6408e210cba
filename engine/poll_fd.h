/* The descriptor for event loops; without the pipeline's lock. */
#ifndef WEIR_POLL_FD_H
#define WEIR_POLL_FD_H

#include "state.h"

/* A libuv status. */
int weir_poll_fd_init(weir_pipeline *pipeline);
void weir_poll_fd_destroy(weir_pipeline *pipeline);

/* After poll_dirty was found set. */
void weir_poll_fd_apply(weir_pipeline *pipeline);

#endif
