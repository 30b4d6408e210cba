/*
 * /proc/self/task/TID/syscall has "running", or the number of the system call and its arguments, "0 0x5 0x7ffe… …".
 * It has -1 for a thread that sleeps outside of any system call. Such a thread waits for a page of a mapped file, or
 * for one that was swapped out.
 *
 * Calls with a descriptor are told apart by what it leads to. poll() has several; the first one counts, which is the only one
 * in most programs.
 */
#include "engine/measure/wait_call.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/base/kernel_files.h"

typedef enum argument {
    ARGUMENT_NONE,
    ARGUMENT_DESCRIPTOR,  /* the first argument */
    ARGUMENT_DESCRIPTORS, /* of poll() */
} argument;

typedef struct wait_call {
    long number;
    weir_wait wait; /* WEIR_WAIT_OTHER: the argument tells */
    argument argument;
} wait_call;

static const wait_call calls[] = {
    { SYS_futex, WEIR_WAIT_LOCK, ARGUMENT_NONE },
    { SYS_flock, WEIR_WAIT_LOCK, ARGUMENT_NONE },
    { SYS_fcntl, WEIR_WAIT_LOCK, ARGUMENT_NONE },
    { SYS_nanosleep, WEIR_WAIT_SLEEP, ARGUMENT_NONE },
    { SYS_clock_nanosleep, WEIR_WAIT_SLEEP, ARGUMENT_NONE },
    { SYS_wait4, WEIR_WAIT_PROCESS, ARGUMENT_NONE },
    { SYS_waitid, WEIR_WAIT_PROCESS, ARGUMENT_NONE },
    { SYS_connect, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_accept4, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_sendto, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_sendmsg, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_recvfrom, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_recvmsg, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_read, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_readv, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_write, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_writev, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTOR },
    { SYS_ppoll, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTORS },
#ifdef SYS_poll
    { SYS_poll, WEIR_WAIT_OTHER, ARGUMENT_DESCRIPTORS },
#endif
#ifdef SYS_open
    { SYS_open, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_stat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_lstat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_access, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_rename, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_unlink, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_mkdir, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_readlink, WEIR_WAIT_FILE, ARGUMENT_NONE },
#endif
#ifdef SYS_newfstatat
    { SYS_newfstatat, WEIR_WAIT_FILE, ARGUMENT_NONE },
#endif
    { SYS_openat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_statx, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_fstat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_faccessat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_readlinkat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_renameat2, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_unlinkat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_mkdirat, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_getdents64, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_pread64, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_preadv, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_pwrite64, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_pwritev, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_fsync, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_fdatasync, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_sync_file_range, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_msync, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_ftruncate, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_fallocate, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_readahead, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_copy_file_range, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_close, WEIR_WAIT_FILE, ARGUMENT_NONE }, /* writes back on network file systems */
    { SYS_io_getevents, WEIR_WAIT_FILE, ARGUMENT_NONE },
    { SYS_io_uring_enter, WEIR_WAIT_FILE, ARGUMENT_NONE },
};

static weir_wait wait_of_socket(int descriptor)
{
    int domain;
    socklen_t size = sizeof domain;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0)
        return WEIR_WAIT_OTHER;
    return domain == AF_UNIX ? WEIR_WAIT_PROCESS : WEIR_WAIT_NETWORK;
}

weir_wait weir__wait_of_descriptor(int descriptor)
{
    char path[64], target[16] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    if (readlink(path, target, sizeof target - 1) < 0)
        return WEIR_WAIT_OTHER; /* closed meanwhile */
    if (strncmp(target, "socket:", 7) == 0)
        return wait_of_socket(descriptor);
    if (strncmp(target, "pipe:", 5) == 0)
        return WEIR_WAIT_PROCESS;
    return *target == '/' ? WEIR_WAIT_FILE : WEIR_WAIT_OTHER;
}

/* The memory is that of this process, but the thread may have left the call, and the memory may be gone: the kernel checks. */
static weir_wait wait_of_poll(unsigned long long address)
{
    struct pollfd first;
    struct iovec to = { &first, sizeof first }, from = { (void *)(uintptr_t)address, sizeof first };
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof first)
        return WEIR_WAIT_OTHER;
    return weir__wait_of_descriptor(first.fd);
}

weir_wait weir__wait_of_call(const char *text)
{
    long number;
    unsigned long long first;
    if (sscanf(text, "%ld %llx", &number, &first) != 2)
        return WEIR_NUM_WAITS;
    if (number < 0)
        return WEIR_WAIT_FILE;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == number)
            return calls[i].argument == ARGUMENT_DESCRIPTOR    ? weir__wait_of_descriptor((int)first)
                   : calls[i].argument == ARGUMENT_DESCRIPTORS ? wait_of_poll(first)
                                                               : calls[i].wait;
    return WEIR_WAIT_OTHER;
}

int weir__wait_call_read(int tid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    return weir__read_start(path, text, size) > 0 ? WEIR_OK : WEIR_ENOTFOUND;
}
