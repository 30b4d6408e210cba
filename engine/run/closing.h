/* weir_pipeline_close(): a pipeline whose service thread frees it, so that nobody has to wait for it. */
#ifndef ENGINE_RUN_CLOSING_H
#define ENGINE_RUN_CLOSING_H

#include "engine/run/run_room.h"

/* Made with the pipeline, which owns it until it is closed, so that closing needs no memory. NULL = out of memory. */
weir__closing *weir__closing_new(void);

/* The pipeline was not closed. NULL is accepted. */
void weir__closing_free(weir__closing *closing);

/* Waits until the service thread has freed the pipeline, at most timeout_ns (0 = not at all), and gives up ownership. WEIR_OK: the
   thread was joined; or WEIR_ETIMEDOUT: the pipeline is left behind. */
int weir__closing_wait(weir__closing *closing, uv_thread_t service_thread, int64_t timeout_ns);

/* The last call of the service thread: the pipeline is freed. */
void weir__closing_end(weir__closing *closing);

#endif
