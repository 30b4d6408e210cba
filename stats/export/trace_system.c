#include "trace_system.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

static void number_in(const char *path, const char *format, int64_t *number)
{
    char line[256];
    long long value;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, format, &value) == 1)
            *number = value;
    if (file)
        fclose(file);
}

/* All interfaces except loopback, in the network namespace of this process. */
static void read_network(weir_trace_system *now)
{
    char line[512];
    long long received, sent;
    FILE *file = fopen("/proc/self/net/dev", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strstr(line, " lo:") ||
            sscanf(colon + 1, "%lld %*d %*d %*d %*d %*d %*d %*d %lld", &received, &sent) != 2)
            continue;
        now->received_bytes += received;
        now->sent_bytes += sent;
    }
    if (file)
        fclose(file);
}

static const struct {
    const char *name, *unit;
    double size; /* of the unit */
} rates[] = {
    { "CPU", "cores", WEIR_SECOND },     { "disk reads", "MiB/s", 1 << 20 },  { "disk writes", "MiB/s", 1 << 20 },
    { "network in", "MiB/s", 1 << 20 },  { "network out", "MiB/s", 1 << 20 }, { "minor page faults", "per s", 1 },
    { "major page faults", "per s", 1 },
};
enum { NUM_RATES = sizeof rates / sizeof rates[0] };

static void put_rates(weir_trace_events *events, int64_t at_ns, const int64_t changes[NUM_RATES], double seconds)
{
    for (size_t i = 0; i < NUM_RATES; i++)
        weir_trace_counter(events, at_ns, rates[i].name, rates[i].unit, (double)changes[i] / rates[i].size / seconds);
}

void weir_trace_system_add(weir_trace_system *last, weir_trace_events *events, int64_t now_ns)
{
    weir_trace_system now = { .at_ns = now_ns };
    struct timespec cpu;
    struct rusage usage;
    int64_t pages = 0;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    now.cpu_ns = (int64_t)cpu.tv_sec * WEIR_SECOND + cpu.tv_nsec;
    number_in("/proc/self/io", "read_bytes: %lld", &now.read_bytes);
    number_in("/proc/self/io", "write_bytes: %lld", &now.written_bytes);
    read_network(&now);
    number_in("/proc/self/statm", "%*d %lld", &pages);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        now.minor_faults = usage.ru_minflt;
        now.major_faults = usage.ru_majflt;
    }
    const int64_t changes[NUM_RATES] = {
        now.cpu_ns - last->cpu_ns,
        now.read_bytes - last->read_bytes,
        now.written_bytes - last->written_bytes,
        now.received_bytes - last->received_bytes,
        now.sent_bytes - last->sent_bytes,
        now.minor_faults - last->minor_faults,
        now.major_faults - last->major_faults,
    };
    weir_trace_counter(events, now_ns, "memory", "MiB", (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20));
    if (last->at_ns && now_ns > last->at_ns) /* viewers draw a value from its time on */
        put_rates(events, last->at_ns, changes, (double)(now_ns - last->at_ns) / WEIR_SECOND);
    *last = now;
}

void weir_trace_system_end(weir_trace_system *last, weir_trace_events *events, int64_t now_ns)
{
    if (last->at_ns) {
        weir_trace_system_add(last, events, now_ns);
        put_rates(events, now_ns, (const int64_t[NUM_RATES]){ 0 }, 1);
    }
    *last = (weir_trace_system){ 0 };
}
