#include "engine/measure/child_processes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/op.h>

#include "engine/base/fork_check.h"
#include "engine/base/kernel_files.h"

/* A child, as the number of forks before it and its pid; 0 = free. */
typedef struct child_place {
    struct child_place *next; /* immutable */
    atomic_uint_fast64_t child;
} child_place;

static _Atomic(child_place *) places;

static uint64_t child_of(int32_t pid)
{
    return (uint64_t)weir__forks_watch() << 32 | (uint32_t)pid;
}

static bool is_own(uint64_t child)
{
    return child != 0 && child >> 32 == forks_now();
}

/* Puts it into a place that is free, or was used before a fork(). */
static bool use_place(child_place *place, uint64_t child)
{
    uint_fast64_t before = atomic_load(&place->child);
    return !is_own(before) && atomic_compare_exchange_strong(&place->child, &before, child);
}

int weir_child_process_begin(int32_t pid)
{
    if (pid <= 0)
        return WEIR_EINVAL;
    uint64_t child = child_of(pid);
    for (child_place *place = atomic_load(&places); place; place = place->next)
        if (use_place(place, child))
            return WEIR_OK;
    child_place *added = calloc(1, sizeof *added);
    if (!added)
        return WEIR_ENOMEM;
    atomic_init(&added->child, child);
    added->next = atomic_load(&places);
    while (!atomic_compare_exchange_weak(&places, &added->next, added))
        ;
    return WEIR_OK;
}

void weir_child_process_end(int32_t pid)
{
    uint64_t child = child_of(pid);
    for (child_place *place = atomic_load(&places); place; place = place->next) {
        uint_fast64_t before = child;
        if (atomic_compare_exchange_strong(&place->child, &before, 0))
            return;
    }
}

/* -1 = not known: the child has ended, or the file cannot be read. */
static int64_t read_resident_bytes(int32_t pid)
{
    char path[40], text[256];
    long long pages;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    weir__read_start(path, text, sizeof text);
    return sscanf(text, "%*d %lld", &pages) == 1 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

static int64_t read_proportional_bytes(int32_t pid)
{
    char path[40], text[2048];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    int64_t kilobytes = weir__read_start(path, text, sizeof text) > 0 ? weir__number_after(text, "\nPss:") : -1;
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

void weir__child_processes_read(weir_process_metrics *process)
{
    process->child_resident_bytes = process->child_pss_bytes = 0;
    for (child_place *place = atomic_load(&places); place; place = place->next) {
        uint64_t child = atomic_load(&place->child);
        int64_t resident = is_own(child) ? read_resident_bytes((int32_t)(uint32_t)child) : 0;
        if (resident <= 0)
            continue; /* it has ended */
        int64_t proportional = read_proportional_bytes((int32_t)(uint32_t)child);
        process->child_resident_bytes += resident;
        if (proportional < 0)
            process->child_pss_bytes = -1;
        else if (process->child_pss_bytes >= 0)
            process->child_pss_bytes += proportional;
    }
}
