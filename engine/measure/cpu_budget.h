#ifndef ENGINE_MEASURE_CPU_BUDGET_H
#define ENGINE_MEASURE_CPU_BUDGET_H

#include <stddef.h>
#include <stdint.h>

/* `cpus`, or less if the quota of a control group is lower. groups_file has the format of /proc/self/cgroup, root
   the layout of /sys/fs/cgroup. */
uint32_t weir__cpu_budget_of_groups(uint32_t cpus, const char *groups_file, const char *root);

/* The file that counts how often the quota stopped the process: of the group with the lowest quota. "" = none. */
void weir__cpu_stat_path(char *path, size_t size, const char *groups_file, const char *root);

#endif
