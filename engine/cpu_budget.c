/*
 * The CPU budget: what this process may use, not what the machine has. The affinity mask comes from the kernel, the
 * quota from the control group: cpu.max (version 2) of the process's group and of every group above it, or
 * cpu.cfs_quota_us and cpu.cfs_period_us (version 1).
 */
#include "cpu_budget.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/pipeline.h>

enum { MAX_PATH = 4096, MAX_LINE = 4096 };

static uint32_t affinity_cpus(void)
{
    for (size_t cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        size_t size = CPU_ALLOC_SIZE(cpus);
        if (!set)
            return 1;
        int result = sched_getaffinity(0, size, set);
        int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
    }
    return 1;
}

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return read;
}

static uint32_t limit_by(uint32_t cpus, double quota, double period)
{
    if (quota <= 0 || period <= 0)
        return cpus;
    double share = quota / period;
    if (share >= (double)cpus)
        return cpus;
    return share < 1 ? 1 : (uint32_t)share;
}

static uint32_t limit_by_v2(uint32_t cpus, const char *root, const char *group)
{
    char path[MAX_PATH], line[128];
    size_t length = strlen(group);
    for (;;) {
        snprintf(path, sizeof path, "%s%.*s/cpu.max", root, (int)length, group);
        double quota, period;
        if (read_line(path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2)
            cpus = limit_by(cpus, quota, period);
        if (length == 0)
            return cpus;
        do
            length--;
        while (length > 0 && group[length] != '/');
    }
}

static uint32_t limit_by_v1(uint32_t cpus, const char *root, const char *controllers, const char *group)
{
    char path[MAX_PATH], quota[64], period[64];
    snprintf(path, sizeof path, "%s/%s%s/cpu.cfs_quota_us", root, controllers, group);
    bool found = read_line(path, quota, sizeof quota);
    if (!found) { /* inside a container the group's own folder is the root */
        group = "";
        snprintf(path, sizeof path, "%s/%s/cpu.cfs_quota_us", root, controllers);
        found = read_line(path, quota, sizeof quota);
    }
    snprintf(path, sizeof path, "%s/%s%s/cpu.cfs_period_us", root, controllers, group);
    if (!found || !read_line(path, period, sizeof period))
        return cpus;
    return limit_by(cpus, strtod(quota, NULL), strtod(period, NULL));
}

static bool has_cpu_controller(const char *controllers)
{
    size_t length;
    for (const char *name = controllers; *name; name += length + (name[length] == ',')) {
        length = strcspn(name, ",");
        if (length == 3 && strncmp(name, "cpu", 3) == 0)
            return true;
    }
    return false;
}

uint32_t weir_cpu_budget_of_groups(uint32_t cpus, const char *groups_file, const char *root)
{
    FILE *file = fopen(groups_file, "re");
    if (!file)
        return cpus;

    char line[MAX_LINE];
    while (fgets(line, sizeof line, file)) { /* "hierarchy:controllers:group" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0)
            group = "";
        if (*controllers == '\0')
            cpus = limit_by_v2(cpus, root, group);
        else if (has_cpu_controller(controllers))
            cpus = limit_by_v1(cpus, root, controllers, group);
    }
    fclose(file);
    return cpus;
}

uint32_t weir_cpu_budget(void)
{
    return weir_cpu_budget_of_groups(affinity_cpus(), "/proc/self/cgroup", "/sys/fs/cgroup");
}
