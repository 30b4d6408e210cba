/*
 * A lap that ends because somebody asks for it: a request has a number, which the service thread finds (lap_taker.c).
 * It passes the laps on, and the number behind them; when the observer thread comes to the number, all observers have
 * got what was measured before.
 */
#include "engine/measure/outbox.h"
#include "engine/state/run_state.h"

int weir_pipeline_end_lap(weir_pipeline *pipeline, int64_t timeout_ns)
{
    if (!pipeline || (timeout_ns < 0 && timeout_ns != WEIR_FOREVER))
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    if (!pipeline->core.measures || !pipeline->reporting->wants_laps)
        return WEIR_OK;
    uint64_t asked = weir__outbox_ask(&pipeline->reporting->outbox);
    if (!asked)
        return WEIR_EBUSY;
    sem_post(&pipeline->service_wake);
    return weir__outbox_await(&pipeline->reporting->outbox, asked, timeout_ns);
}
