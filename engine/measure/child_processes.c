#include "engine/measure/child_processes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/clock.h>
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
    char path[40];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return weir__resident_bytes_read(path);
}

static int64_t read_proportional_bytes(int32_t pid)
{
    char path[40], text[2048];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    int64_t kilobytes = weir__read_start(path, text, sizeof text) > 0 ? weir__number_after(text, "\nPss:") : -1;
    return kilobytes < 0 ? -1 : kilobytes * 1024;
}

/* The sum of all children; -1 = not known of one of them. */
static int64_t read_all_proportional_bytes(void)
{
    int64_t sum = 0;
    for (child_place *place = atomic_load(&places); place && sum >= 0; place = place->next) {
        uint64_t child = atomic_load(&place->child);
        int32_t pid = (int32_t)(uint32_t)child;
        if (!is_own(child) || read_resident_bytes(pid) <= 0)
            continue; /* it has ended */
        int64_t proportional = read_proportional_bytes(pid);
        sum = proportional < 0 ? -1 : sum + proportional;
    }
    return sum;
}

void weir__child_processes_read(weir__child_memory *memory, weir_process_metrics *process)
{
    enum { COST = 1000 };
    process->child_resident_bytes = 0;
    for (child_place *place = atomic_load(&places); place; place = place->next) {
        uint64_t child = atomic_load(&place->child);
        int64_t resident = is_own(child) ? read_resident_bytes((int32_t)(uint32_t)child) : 0;
        process->child_resident_bytes += resident > 0 ? resident : 0; /* else it has ended */
    }
    int64_t begin_ns = weir_clock_ns();
    if (begin_ns >= memory->due_ns) {
        memory->pss_bytes = read_all_proportional_bytes();
        int64_t end_ns = weir_clock_ns();
        memory->due_ns = end_ns + COST * (end_ns - begin_ns);
    }
    process->child_pss_bytes = process->child_resident_bytes > 0 ? memory->pss_bytes : 0;
}
