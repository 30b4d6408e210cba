#include "engine/state/kernel_stats.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/clock.h>

#include "engine/base/kernel_files.h"

enum { MAX_TEXT = 4096 };

static bool read_file(const char *task, const char *name, char text[MAX_TEXT])
{
    char path[80];
    snprintf(path, sizeof path, "%s/%s", task, name);
    return weir__read_start(path, text, MAX_TEXT) > 0;
}

void weir__kernel_stats_of_thread(int tid, weir_thread_kernel_stats *stats)
{
    char text[MAX_TEXT], task[64];
    long long first, second;
    weir__schedule schedule;
    *stats = (weir_thread_kernel_stats){ { 0, 0, -1, -1, -1, -1, -1, -1 }, -1 };
    tid = tid ? tid : (int)syscall(SYS_gettid);

    snprintf(task, sizeof task, "/proc/self/task/%d", tid);
    if (weir__schedule_read(task, &schedule)) {
        stats->counted.cpu_ns = schedule.cpu_ns;
        stats->counted.run_delay_ns = schedule.delay_ns;
    }
    if (read_file(task, "status", text)) {
        stats->counted.num_voluntary = weir__number_after(text, "\nvoluntary_ctxt_switches:");
        stats->counted.num_involuntary = weir__number_after(text, "\nnonvoluntary_ctxt_switches:");
    }
    /* "tid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt …", the 42nd is delayacct_blkio_ticks;
       the name may contain any character */
    const char *fields = read_file(task, "stat", text) ? strrchr(text, ')') : NULL;
    if (fields && sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %lld %*d %lld", &first, &second) == 2) {
        stats->counted.num_minor_faults = first;
        stats->counted.num_major_faults = second;
    }
    for (int i = 2; fields && i < 42; i++)
        fields = strchr(fields + 1, ' ');
    if (fields && sscanf(fields, "%lld", &first) == 1)
        stats->read_delay_ns = first * (WEIR_SECOND / sysconf(_SC_CLK_TCK));
}
