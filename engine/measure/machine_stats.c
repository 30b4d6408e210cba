#include "engine/measure/machine_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"
#include "engine/measure/cpu_budget.h"

enum { MAX_TEXT = 8192 };

/* False = it cannot be read, or is longer than the buffer. */
static bool read_text(const char *path, char text[MAX_TEXT])
{
    size_t length = weir__read_start(path, text, MAX_TEXT);
    return length > 0 && length < MAX_TEXT - 1;
}

/* The number after a name, times `unit`; -1 = no such name. */
static int64_t read_figure(const char *text, const char *name, int64_t unit)
{
    int64_t number = weir__number_after(text, name);
    return number < 0 ? -1 : number * unit;
}

void weir__machine_sources_init(weir_machine_sources *sources)
{
    char text[MAX_TEXT];
    weir__cpu_stat_path(sources->cpu_stat_path, sizeof sources->cpu_stat_path, "/proc/self/cgroup", "/sys/fs/cgroup");
    /* Kernels without this switch always count. */
    sources->counts_read_delay = !read_text("/proc/sys/kernel/task_delayacct", text) || text[0] != '0';
}

/* ---- the process -------------------------------------------------------------------------------------------- */

static void read_process(weir_process_metrics *process)
{
    char text[MAX_TEXT];
    weir__process_usage used;
    if (weir__readings_get()->usage(&used)) {
        process->cpu_ns = used.cpu_ns;
        process->num_minor_faults = used.num_minor_faults;
        process->num_major_faults = used.num_major_faults;
        process->num_voluntary = used.num_voluntary;
        process->num_involuntary = used.num_involuntary;
    }
    if (read_text("/proc/self/status", text)) {
        process->resident_bytes = read_figure(text, "\nVmRSS:", 1024);
        process->peak_bytes = read_figure(text, "\nVmHWM:", 1024);
        process->num_open_threads = read_figure(text, "\nThreads:", 1);
    }
    if (read_text("/proc/self/io", text)) {
        process->read_bytes = read_figure(text, "\nread_bytes:", 1);
        process->written_bytes = read_figure(text, "\nwrite_bytes:", 1);
    }
    process->num_open_files = weir__readings_get()->num_files();
}

/* ---- the machine -------------------------------------------------------------------------------------------- */

static void read_cpus(weir_machine_metrics *machine)
{
    weir__machine_cpus cpus;
    weir__machine_cpus_read(&cpus);
    machine->other_cpu_ns = cpus.busy_ns;
    machine->idle_ns = cpus.idle_ns;
    machine->disk_idle_ns = cpus.disk_idle_ns;
    machine->stolen_ns = cpus.stolen_ns;
}

static int64_t read_pressure(const char *path)
{
    char text[MAX_TEXT]; /* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", in microseconds */
    return read_text(path, text) ? read_figure(text, " total=", WEIR_MICROSECOND) : -1;
}

/* All interfaces except the loopback: "  eth0: bytes packets errs drop fifo frame compressed multicast bytes …". */
static void read_network(weir_machine_metrics *machine)
{
    char text[MAX_TEXT];
    int64_t received = 0, sent = 0;
    if (!read_text("/proc/self/net/dev", text))
        return;
    for (char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
        long long in, out;
        bool is_loopback = colon - text >= 2 && strncmp(colon - 2, "lo", 2) == 0 &&
                           (colon - text == 2 || colon[-3] == ' ' || colon[-3] == '\n');
        if (is_loopback || sscanf(colon + 1, "%lld %*d %*d %*d %*d %*d %*d %*d %lld", &in, &out) != 2)
            continue;
        received += in;
        sent += out;
    }
    machine->received_bytes = received;
    machine->sent_bytes = sent;
}

static void read_throttling(const char *path, weir_machine_metrics *machine)
{
    char text[MAX_TEXT];
    if (!*path || !read_text(path, text))
        return;
    machine->num_throttled = read_figure(text, "nr_throttled ", 1);
    machine->throttled_ns = read_figure(text, "throttled_usec ", WEIR_MICROSECOND); /* version 2 */
    if (machine->throttled_ns < 0)
        machine->throttled_ns = read_figure(text, "throttled_time ", 1); /* version 1 */
}

/* ---- both --------------------------------------------------------------------------------------------------- */

/* All metrics are 64 bits wide. */
static void forget_metrics(const weir_metric_table *table, void *metrics)
{
    for (size_t i = 0; i < table->num_metrics; i++)
        *(int64_t *)(void *)((char *)metrics + table->metrics[i].offset) = -1;
}

void weir__machine_read(const weir_machine_sources *sources, weir_machine_reading *reading)
{
    forget_metrics(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &reading->process);
    forget_metrics(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &reading->machine);
    read_process(&reading->process);
    read_cpus(&reading->machine);
    read_throttling(sources->cpu_stat_path, &reading->machine);
    reading->machine.cpu_pressure_ns = read_pressure("/proc/pressure/cpu");
    reading->machine.io_pressure_ns = read_pressure("/proc/pressure/io");
    reading->machine.memory_pressure_ns = read_pressure("/proc/pressure/memory");
    read_network(&reading->machine);
}

/* A counter may have been reset, for example of a network interface. */
void weir__metrics_subtract(const weir_metric_table *table, const void *now, const void *before, void *counted)
{
    for (size_t i = 0; i < table->num_metrics; i++) {
        size_t at = table->metrics[i].offset;
        int64_t last = *(const int64_t *)(const void *)((const char *)now + at);
        int64_t first = *(const int64_t *)(const void *)((const char *)before + at);
        bool is_level = table->metrics[i].kind == WEIR_METRIC_MAX;
        *(int64_t *)(void *)((char *)counted + at) = is_level                                ? last
                                                     : last < 0 || first < 0 || last < first ? -1
                                                                                             : last - first;
    }
}

void weir__machine_subtract(const weir_machine_reading *now, const weir_machine_reading *before,
                            weir_machine_reading *counted)
{
    int64_t *other_ns = &counted->machine.other_cpu_ns;
    weir__metrics_subtract(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &now->process, &before->process,
                           &counted->process);
    weir__metrics_subtract(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &now->machine, &before->machine,
                           &counted->machine);
    if (*other_ns >= 0 && counted->process.cpu_ns >= 0) /* two clocks: the difference may be negative */
        *other_ns = *other_ns > counted->process.cpu_ns ? *other_ns - counted->process.cpu_ns : 0;
    else
        *other_ns = -1;
}
