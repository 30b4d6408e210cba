#include "engine/state/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

_Thread_local const struct weir_pipeline *weir__pipeline_of_thread;
_Thread_local const struct weir_pool_thread *weir__own_pool_thread;

int weir__thread_start(uv_thread_t *thread, const char *name, uv_thread_cb run, void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGPROF); /* timers of its CPU time: profilers see it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = uv_thread_create(thread, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) {
        char cut[THREAD_NAME_BYTES];
        snprintf(cut, sizeof cut, "%s", name);
        pthread_setname_np(*thread, cut);
    }
    return code;
}
