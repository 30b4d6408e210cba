/*
 * A descriptor for event loops: readable while weir_pipeline_next() would not wait.
 *
 * A thread that changes pipeline->is_consumable sets poll_dirty. The thread that releases the lock then updates the
 * descriptor, by a system call without the lock. poll_lock serialises these calls; each reads is_consumable again, so
 * the last one leaves the descriptor in the right state, whatever their order.
 */
#include "poll_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "lock.h"

int weir__poll_fd_init(weir_pipeline *pipeline)
{
    pipeline->poll_fd = -1;
    int code = uv_mutex_init(&pipeline->poll_lock);
    pipeline->poll_lock_made = code == 0;
    return code;
}

void weir__poll_fd_destroy(weir_pipeline *pipeline)
{
    if (!pipeline->poll_lock_made)
        return;
    if (pipeline->poll_fd >= 0)
        close(pipeline->poll_fd);
    uv_mutex_destroy(&pipeline->poll_lock);
}

void weir__poll_fd_apply(weir_pipeline *pipeline)
{
    uv_mutex_lock(&pipeline->poll_lock);
    bool wanted = atomic_load_explicit(&pipeline->is_consumable, memory_order_relaxed);
    if (wanted != pipeline->poll_raised) {
        eventfd_t count;
        if (wanted)
            eventfd_write(pipeline->poll_fd, 1);
        else
            eventfd_read(pipeline->poll_fd, &count);
        pipeline->poll_raised = wanted;
    }
    uv_mutex_unlock(&pipeline->poll_lock);
}

int weir_pipeline_poll_fd(weir_pipeline *pipeline, int *fd)
{
    if (!pipeline || !fd)
        return WEIR_EINVAL;
    uv_mutex_lock(&pipeline->poll_lock);
    if (pipeline->poll_fd < 0)
        pipeline->poll_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *fd = pipeline->poll_fd;
    uv_mutex_unlock(&pipeline->poll_lock);
    if (*fd < 0)
        return WEIR_ESYSTEM;

    weir__engine_lock(pipeline);
    pipeline->polls = pipeline->poll_dirty = true;
    weir__engine_unlock(pipeline);
    return WEIR_OK;
}
