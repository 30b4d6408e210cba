/*
 * The CPU budget: what this process may use, not what the machine has. The affinity mask comes from the kernel, the
 * quota from the control group: cpu.max (version 2) of the process's group and of every group above it, or
 * cpu.cfs_quota_us and cpu.cfs_period_us (version 1).
 */
#include "engine/measure/cpu_budget.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/pipeline.h>

#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"

enum { MAX_PATH = 4096, MAX_TEXT = 16384 };

static bool read_line(const char *path, char *line, size_t size)
{
    bool is_read = weir__read_start(path, line, size) > 0;
    line[strcspn(line, "\n")] = '\0';
    return is_read;
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

/* A walk over the groups of the process: the lowest quota, and the group that has it, or the first one. */
typedef struct budget_walk {
    uint32_t cpus;
    char folder[MAX_PATH]; /* "" = none yet */
} budget_walk;

static void note_quota(budget_walk *walk, const char *folder, double quota, double period)
{
    uint32_t cpus = limit_by(walk->cpus, quota, period);
    if (cpus < walk->cpus || !*walk->folder)
        snprintf(walk->folder, sizeof walk->folder, "%s", folder);
    walk->cpus = cpus;
}

static void walk_v2(budget_walk *walk, const char *root, const char *group)
{
    char folder[MAX_PATH - 16], path[MAX_PATH], line[128];
    for (size_t length = strlen(group);;) {
        double quota = 0, period = 0; /* "max" is not a number */
        snprintf(folder, sizeof folder, "%s%.*s", root, (int)length, group);
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (read_line(path, line, sizeof line)) {
            int found = sscanf(line, "%lf %lf", &quota, &period);
            note_quota(walk, folder, found == 2 ? quota : 0, period);
        }
        if (length == 0)
            return;
        do
            length--;
        while (length > 0 && group[length] != '/');
    }
}

static void walk_v1(budget_walk *walk, const char *root, const char *controllers, const char *group)
{
    char folder[MAX_PATH - 32], path[MAX_PATH], quota[64], period[64];
    snprintf(folder, sizeof folder, "%s/%s%s", root, controllers, group);
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    bool found = read_line(path, quota, sizeof quota);
    if (!found) { /* inside a container the group's own folder is the root */
        snprintf(folder, sizeof folder, "%s/%s", root, controllers);
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        found = read_line(path, quota, sizeof quota);
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (found && read_line(path, period, sizeof period))
        note_quota(walk, folder, strtod(quota, NULL), strtod(period, NULL));
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

static void walk_groups(budget_walk *walk, const char *groups_file, const char *root)
{
    char text[MAX_TEXT], *next = NULL;
    weir__read_start(groups_file, text, sizeof text);
    for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        /* "hierarchy:controllers:group" */
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0)
            group = "";
        if (*controllers == '\0')
            walk_v2(walk, root, group);
        else if (has_cpu_controller(controllers))
            walk_v1(walk, root, controllers, group);
    }
}

uint32_t weir__cpu_budget_of_groups(uint32_t cpus, const char *groups_file, const char *root)
{
    budget_walk walk = { .cpus = cpus };
    walk_groups(&walk, groups_file, root);
    return walk.cpus;
}

void weir__cpu_stat_path(char *path, size_t size, const char *groups_file, const char *root)
{
    budget_walk walk = { .cpus = UINT32_MAX };
    walk_groups(&walk, groups_file, root);
    int length = *walk.folder ? snprintf(path, size, "%s/cpu.stat", walk.folder) : 0;
    if (length <= 0 || (size_t)length >= size)
        *path = '\0';
}

uint32_t weir_cpu_budget(void)
{
    return weir__cpu_budget_of_groups(weir__readings_get()->num_cpus(), "/proc/self/cgroup", "/sys/fs/cgroup");
}
