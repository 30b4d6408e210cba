#include "engine/measure/kernel_readings.h"

#include <stdlib.h>
#include <string.h>

#include "engine/measure/child_processes.h"
#include "engine/measure/reporting.h"
#include "engine/measure/thread_cpu.h"
#include "engine/state/lock.h"

uint32_t weir__count_threads(weir_pipeline *pipeline)
{
    uint32_t num_threads = 0;
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        num_threads += pipeline->pools[i]->num_made;
    weir__engine_unlock(pipeline);
    return num_threads;
}

/* Room for the threads that pools have got. Out of memory: they are read in the next lap. */
static void find_new_threads(weir__kernel_readings *own, weir_pipeline *pipeline)
{
    uint32_t num_threads = weir__count_threads(pipeline);
    if (num_threads <= own->num_threads)
        return;
    weir__thread_reading *readings = calloc(num_threads, sizeof *readings), *before = own->threads;
    if (!readings)
        return;
    if (before) /* not at the first time */
        memcpy(readings, before, own->num_threads * sizeof *readings);
    own->threads = readings;
    free(before);
    weir__engine_lock(pipeline);
    for (uint32_t i = 0; i < pipeline->num_pools; i++)
        for (uint32_t *known = &own->num_known[i];
             *known < pipeline->pools[i]->num_made && own->num_threads < num_threads; ++*known)
            readings[own->num_threads++] =
                (weir__thread_reading){ .pool_thread = pipeline->pools[i]->threads[*known] };
    weir__engine_unlock(pipeline);
}

/* Child processes count as if a thread of the pool had waited. */
static void add_child_delays(const weir__kernel_readings *own, weir_pipeline *pipeline)
{
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++) {
        weir_node *node = pipeline->nodes[i];
        uint32_t thread = 0;
        while (thread < own->num_threads && own->threads[thread].pool_thread->pool != node->pool)
            thread++;
        if (thread < own->num_threads)
            weir__add_known(&own->threads[thread].counted.run_delay_ns,
                            atomic_exchange_explicit(&node->outside_delay_ns, 0, memory_order_relaxed));
    }
}

static void read_threads(weir__kernel_readings *own)
{
    for (uint32_t i = 0; i < own->num_threads; i++) {
        weir__thread_reading *reading = &own->threads[i];
        const weir_thread_kernel_stats before = reading->now, *now = &reading->now;
        int tid = atomic_load(&reading->pool_thread->tid);
        reading->cpu_ns = weir__thread_cpu_read_ns(reading->pool_thread);
        if (tid)
            weir__kernel_stats_of_thread(tid, &reading->now);
        weir__metrics_subtract(weir_subject_metrics(WEIR_SUBJECT_POOL), &now->counted, &before.counted,
                               &reading->counted);
        reading->read_delay_ns =
            now->read_delay_ns < 0 || before.read_delay_ns < 0 ? -1 : now->read_delay_ns - before.read_delay_ns;
    }
}

void weir__kernel_readings_sum(weir__kernel_readings *own, const weir_pipeline *pipeline, weir__kernel_counts *counts,
                               int64_t outside_cpu_ns)
{
    weir_process_metrics *process = &counts->counted.process;
    int64_t *other_ns = &counts->counted.machine.other_cpu_ns;
    if (pipeline->reporting->wants_laps)
        weir__machine_subtract(&counts->now, &own->machine, &counts->counted);
    process->read_delay_ns = own->machine_sources.counts_read_delay ? 0 : -1;
    process->pool_cpu_ns = process->run_delay_ns = 0;
    for (uint32_t i = 0; i < own->num_threads; i++) {
        weir__add_known(&process->read_delay_ns, own->threads[i].read_delay_ns);
        weir__add_known(&process->pool_cpu_ns, own->threads[i].counted.cpu_ns);
        weir__add_known(&process->run_delay_ns, own->threads[i].counted.run_delay_ns);
    }
    weir__add_known(&process->cpu_ns, outside_cpu_ns);
    weir__add_known(&process->pool_cpu_ns, outside_cpu_ns);
    if (*other_ns >= 0)
        *other_ns = *other_ns > outside_cpu_ns ? *other_ns - outside_cpu_ns : 0;
    own->machine = counts->now;
}

void weir__kernel_readings_add_share(const weir__kernel_readings *own, weir__lap *lap,
                                     const weir__kernel_counts *counts, int64_t begin_ns, int64_t end_ns,
                                     int64_t whole_ns)
{
    const weir_pipeline *pipeline = lap->pipeline;
    weir_metrics *machine = &lap->figures.metrics[pipeline->laps->subjects.count - 1], *process = machine - 1;
    weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_PROCESS), process, &counts->counted.process, begin_ns,
                            end_ns, whole_ns);
    weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_MACHINE), machine, &counts->counted.machine, begin_ns,
                            end_ns, whole_ns);
    process->process.budget_ns = pipeline->num_cpus * lap->info.elapsed_ns;
    for (uint32_t i = 0; i < pipeline->num_pools; i++) {
        weir_pool_metrics *pool = &lap->figures.metrics[pipeline->pools[i]->subject].pool;
        pool->idle_ns -= pool->busy_ns;
        if (pool->idle_ns < 0)
            pool->idle_ns = 0; /* the clocks of two threads differ by some ns */
    }
    for (uint32_t i = 0; i < own->num_threads; i++) {
        const weir__thread_reading *reading = &own->threads[i];
        weir__metrics_add_share(weir_subject_metrics(WEIR_SUBJECT_POOL),
                                &lap->figures.metrics[reading->pool_thread->pool->subject], &reading->counted,
                                begin_ns, end_ns, whole_ns);
    }
}

/* The figures have to be those of the end of the lap: they are read again if this thread lost its CPU meanwhile. */
static void read_machine(weir__kernel_readings *own, weir_machine_reading *machine)
{
    enum { ATTEMPTS = 3 };
    int64_t start_ns;
    int num_read = 0;
    do {
        start_ns = weir_clock_ns();
        weir__machine_read(&own->machine_sources, machine);
    } while (++num_read < ATTEMPTS && weir_clock_ns() - start_ns > WEIR_MILLISECOND);
    weir__child_processes_read(&own->children, &machine->process);
}

void weir__kernel_readings_read(weir__kernel_readings *own, weir_pipeline *pipeline, weir__kernel_counts *counts)
{
    find_new_threads(own, pipeline);
    read_threads(own);
    add_child_delays(own, pipeline);
    if (pipeline->reporting->wants_laps)
        read_machine(own, &counts->now);
}

void weir__kernel_readings_settle_locked(const weir__kernel_readings *own)
{
    for (uint32_t i = 0; i < own->num_threads; i++)
        weir__thread_cpu_settle_locked(own->threads[i].pool_thread, own->threads[i].cpu_ns);
}

int weir__kernel_readings_init(weir__kernel_readings *own, weir_pipeline *pipeline)
{
    own->num_known = calloc(pipeline->num_pools, sizeof *own->num_known);
    if (!own->num_known)
        return WEIR_ENOMEM;
    find_new_threads(own, pipeline);
    if (!own->threads)
        return WEIR_ENOMEM;
    if (pipeline->reporting->wants_laps) {
        weir__machine_sources_init(&own->machine_sources);
        weir__machine_read(&own->machine_sources, &own->machine);
    }
    return WEIR_OK;
}

void weir__kernel_readings_destroy(weir__kernel_readings *own)
{
    free(own->threads);
    free(own->num_known);
}
