#include "engine/state/kernel_stats.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/clock.h>

enum { MAX_TEXT = 4096 };

size_t weir__read_start(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static bool read_file(int tid, const char *name, char text[MAX_TEXT])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    return weir__read_start(path, text, MAX_TEXT) > 0;
}

int64_t weir__number_after(const char *text, const char *name)
{
    long long number;
    const char *found = strstr(text, name);
    return found && sscanf(found + strlen(name), "%lld", &number) == 1 ? number : -1;
}

void weir__kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats)
{
    char text[MAX_TEXT];
    long long first, second;
    *stats = (weir_thread_kernel_stats){ { 0, 0, -1, -1, -1, -1, -1, -1 }, -1 };
    tid = tid ? tid : (int)syscall(SYS_gettid);

    if (read_file(tid, "schedstat", text) && sscanf(text, "%lld %lld", &first, &second) == 2) {
        stats->counted.cpu_ns = first;
        stats->counted.run_delay_ns = second;
    }
    if (read_file(tid, "status", text)) {
        stats->counted.num_voluntary = weir__number_after(text, "\nvoluntary_ctxt_switches:");
        stats->counted.num_involuntary = weir__number_after(text, "\nnonvoluntary_ctxt_switches:");
    }
    /* "tid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt …", the 42nd is delayacct_blkio_ticks;
       the name may contain any character */
    const char *fields = read_file(tid, "stat", text) ? strrchr(text, ')') : NULL;
    if (fields && sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %lld %*d %lld", &first, &second) == 2) {
        stats->counted.num_minor_faults = first;
        stats->counted.num_major_faults = second;
    }
    for (int i = 2; fields && i < 42; i++)
        fields = strchr(fields + 1, ' ');
    if (fields && sscanf(fields, "%lld", &first) == 1)
        stats->read_delay_ns = first * (WEIR_SECOND / sysconf(_SC_CLK_TCK));
}
