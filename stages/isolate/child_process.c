#include "stages/isolate/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/op.h>
#include <weir/status.h>

#include "common/above_standard.h"
#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"
#include "stages/isolate/message.h"

extern char **environ;

/* The threads of a pipeline block all signals, and programs ignore some. The child ignores none but those that it
   chooses itself; until then all are blocked: Ctrl-C, which reaches it too, must not end it while it starts. */
static int set_signals(posix_spawnattr_t *attributes)
{
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &all);
    posix_spawnattr_setsigdefault(attributes, &all);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* 0, or -1 with errno set. */
static int make_socket_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        fds[i] = weir__above_standard(fds[i]);
    if (fds[0] >= 0 && fds[1] >= 0)
        return 0;
    int failure = errno;
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    errno = failure;
    return -1;
}

int weir__isolated_process_start(isolated_process *process, const char *program, sandbox_kind sandbox)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int fds[2];
    *process = (isolated_process){ 0 };
    if (make_socket_pair(fds) != 0)
        return errno;
    char **environment = weir__sandbox_environment(environ, sandbox);
    int rc = environment ? posix_spawn_file_actions_init(&actions) : ENOMEM;
    if (rc != 0)
        goto no_actions;
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0)
        goto no_attributes;
    rc = posix_spawn_file_actions_adddup2(&actions, fds[1], ISOLATED_FD);
    if (rc == 0 && sandbox != SANDBOX_NONE)
        rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = set_signals(&attributes);
    if (rc == 0)
        rc = posix_spawn(&process->pid, program, &actions, &attributes,
                         (char *const[]){ (char *)program, (char[]){ ISOLATED_ARGUMENT }, NULL }, environment);
    posix_spawnattr_destroy(&attributes);
no_attributes:
    posix_spawn_file_actions_destroy(&actions);
no_actions:
    free(environment);
    close(fds[1]);
    if (rc != 0) {
        close(fds[0]);
        return rc;
    }
    process->fd = fds[0];
    if (weir_child_process_begin(process->pid) == WEIR_OK)
        return 0;
    weir__isolated_process_end(process);
    return ENOMEM;
}

int64_t weir__isolated_process_cpu_ns(isolated_process *process)
{
    clockid_t clock;
    int64_t cpu_ns = clock_getcpuclockid(process->pid, &clock) == 0 ? weir__readings_get()->cpu_ns(clock) : -1;
    if (cpu_ns < 0)
        return 0;
    int64_t before_ns = process->cpu_ns;
    process->cpu_ns = cpu_ns;
    return process->cpu_ns - before_ns;
}

int64_t weir__isolated_process_delay_ns(isolated_process *process)
{
    char task[40];
    weir__schedule schedule;
    int64_t before_ns = process->delay_ns;
    snprintf(task, sizeof task, "/proc/%d", (int)process->pid);
    if (weir__schedule_read(task, &schedule))
        process->delay_ns = schedule.delay_ns;
    return process->delay_ns - before_ns;
}

static void *wait_for(void *pid)
{
    while (waitpid((pid_t)(intptr_t)pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return NULL;
}

static void leave_to_thread(pid_t pid)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_create(&thread, &attributes, wait_for, (void *)(intptr_t)pid);
    pthread_attr_destroy(&attributes);
}

/* Returns its wait status; -1 = not known. */
static int kill_and_wait(isolated_process *process)
{
    enum { WAIT_MS = 1000 };
    int status = 0;
    pid_t ended = 0;
    weir_child_process_end(process->pid);
    close(process->fd);
    kill(process->pid, SIGKILL);
    for (int i = 0; ended == 0 && i < WAIT_MS; i++) {
        do
            ended = waitpid(process->pid, &status, WNOHANG);
        while (ended < 0 && errno == EINTR);
        if (ended == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    if (ended == 0)
        leave_to_thread(process->pid);
    *process = (isolated_process){ 0 };
    return ended > 0 ? status : -1;
}

void weir__isolated_process_end(isolated_process *process)
{
    if (process->pid)
        kill_and_wait(process);
}

static const char *name_of_signal(int number, char text[32])
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        { SIGABRT, "SIGABRT" }, { SIGALRM, "SIGALRM" }, { SIGBUS, "SIGBUS" },   { SIGFPE, "SIGFPE" },
        { SIGILL, "SIGILL" },   { SIGKILL, "SIGKILL" }, { SIGSEGV, "SIGSEGV" }, { SIGSYS, "SIGSYS" },
        { SIGTRAP, "SIGTRAP" }, { SIGXCPU, "SIGXCPU" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    snprintf(text, 32, "signal %d", number);
    return text;
}

/* The child has closed its socket, so it is at its end already. Our SIGKILL does not change how it ended. */
int weir__isolated_process_tell_end(isolated_process *process, const char *program, char *text, size_t text_bytes)
{
    char number[32];
    int status = kill_and_wait(process);
    if (status < 0) {
        snprintf(text, text_bytes,
                 "%s ended, and it is not known how: the program ignores SIGCHLD, or waits for processes of others",
                 program);
    } else if (WIFSIGNALED(status)) {
        bool is_outside = WTERMSIG(status) == SIGKILL;
        snprintf(text, text_bytes, "the process that decodes was killed by %s%s",
                 name_of_signal(WTERMSIG(status), number),
                 is_outside                   ? " (out of memory?)"
                 : WTERMSIG(status) == SIGSYS ? ": it made a system call that the sandbox forbids"
                                              : "");
        return is_outside ? WEIR_ESYSTEM : WEIR_EDATA;
    } else {
        snprintf(text, text_bytes, "%s ended with exit status %d", program, WEXITSTATUS(status));
    }
    return WEIR_ESYSTEM;
}
