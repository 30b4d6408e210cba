#include "tools/cli/output_part.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/memory.h"

/* Also read by the signal handler. NULL = nothing to remove. */
static char *volatile part_path;

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGALRM };
enum { NUM_SIGNALS = sizeof signals / sizeof signals[0] };

static void remove_part_on_signal(int number)
{
    if (part_path)
        unlink(part_path);
    raise(number); /* the default action is restored (SA_RESETHAND) and runs when this handler returns */
}

void output_part_forget(void)
{
    char *path = part_path;
    part_path = NULL;
    free(path);
}

void output_part_begin(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < NUM_SIGNALS; i++)
        sigaddset(&held, signals[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

void output_part_end(const sigset_t *before, const char *path)
{
    output_part_forget();
    part_path = path ? memory_copy(path) : NULL;
    struct sigaction old, ours = { .sa_handler = remove_part_on_signal, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; part_path && i < NUM_SIGNALS; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
