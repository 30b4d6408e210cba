#include "engine/base/kernel_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/clock.h>

#include "engine/base/readings.h"

size_t weir__read_start(const char *path, char *text, size_t size)
{
    return weir__readings_get()->file(path, text, size);
}

int64_t weir__number_after(const char *text, const char *name)
{
    long long number;
    const char *found = strstr(text, name);
    return found && sscanf(found + strlen(name), "%lld", &number) == 1 ? number : -1;
}

/* ---- threads ------------------------------------------------------------------------------------------------- */

static size_t read_of_task(const char *task, const char *name, char *text, size_t size)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", task, name);
    return weir__read_start(path, text, size);
}

bool weir__schedule_read(const char *task, weir__schedule *schedule)
{
    char text[128];
    return read_of_task(task, "schedstat", text, sizeof text) > 0 &&
           sscanf(text, "%" SCNd64 " %" SCNd64, &schedule->cpu_ns, &schedule->delay_ns) == 2;
}

static bool is_of_pool(const char *task)
{
    char name[64];
    read_of_task(task, "comm", name, sizeof name);
    const char *slash = strrchr(name, '/');
    return slash && slash[1] >= '0' && slash[1] <= '9';
}

bool weir__schedule_read_pools(weir__schedule *sum)
{
    DIR *tasks = opendir("/proc/self/task");
    *sum = (weir__schedule){ 0, 0 };
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char task[300];
        weir__schedule one;
        snprintf(task, sizeof task, "/proc/self/task/%s", entry->d_name);
        if (*entry->d_name == '.' || !is_of_pool(task) || !weir__schedule_read(task, &one))
            continue;
        sum->cpu_ns += one.cpu_ns;
        sum->delay_ns += one.delay_ns;
    }
    if (tasks)
        closedir(tasks);
    return tasks != NULL;
}

/* ---- the machine --------------------------------------------------------------------------------------------- */

/* "cpu user nice system idle iowait irq softirq steal …", in ticks; only zeros in some sandboxes. */
void weir__machine_cpus_read(weir__machine_cpus *cpus)
{
    char text[512]; /* more is not needed: the first line is the sum of all CPUs */
    long long t[8];
    *cpus = (weir__machine_cpus){ -1, -1, -1, -1 };
    weir__read_start("/proc/stat", text, sizeof text);
    if (sscanf(text, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6],
               &t[7]) != 8)
        return;
    int64_t tick_ns = WEIR_SECOND / sysconf(_SC_CLK_TCK), busy = t[0] + t[1] + t[2] + t[5] + t[6];
    if (busy + t[3] > 0)
        *cpus = (weir__machine_cpus){ busy * tick_ns, t[3] * tick_ns, t[4] * tick_ns, t[7] * tick_ns };
}

int64_t weir__resident_bytes_read(const char *process)
{
    char text[128];
    long long size, resident;
    read_of_task(process, "statm", text, sizeof text);
    return sscanf(text, "%lld %lld", &size, &resident) == 2 ? resident * sysconf(_SC_PAGESIZE) : -1;
}

int64_t weir__available_bytes_read(void)
{
    char text[1024];
    weir__read_start("/proc/meminfo", text, sizeof text);
    int64_t kb = weir__number_after(text, "\nMemAvailable:");
    return kb < 0 ? -1 : 1024 * kb;
}

uint64_t weir__group_memory_read(void)
{
    static const char *const paths[] = { "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    uint64_t limit = UINT64_MAX;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char text[64];
        if (weir__read_start(paths[i], text, sizeof text) > 0 && sscanf(text, "%" SCNu64, &limit) != 1)
            limit = UINT64_MAX; /* "max" */
    }
    return limit;
}
