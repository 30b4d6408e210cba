#include "trace_system.h"

#include <stdio.h>
#include <string.h>
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

static void add_rate(weir_trace_events *events, const char *name, int64_t at_ns, int64_t change, int64_t span_ns)
{
    double mib = (double)change / (1 << 20);
    weir_trace_counter(events, at_ns, name, "MiB/s", mib / ((double)span_ns / (double)WEIR_SECOND));
}

void weir_trace_system_add(weir_trace_system *last, weir_trace_events *events, int64_t now_ns)
{
    weir_trace_system now = { .at_ns = now_ns };
    struct timespec cpu;
    int64_t pages = 0, span_ns = now_ns - last->at_ns;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    now.cpu_ns = (int64_t)cpu.tv_sec * WEIR_SECOND + cpu.tv_nsec;
    number_in("/proc/self/io", "read_bytes: %lld", &now.read_bytes);
    number_in("/proc/self/io", "write_bytes: %lld", &now.written_bytes);
    read_network(&now);
    number_in("/proc/self/statm", "%*d %lld", &pages);
    weir_trace_counter(events, now_ns, "memory", "MiB", (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20));
    if (last->at_ns && span_ns > 0) {
        weir_trace_counter(events, now_ns, "CPU", "cores", (double)(now.cpu_ns - last->cpu_ns) / (double)span_ns);
        add_rate(events, "disk reads", now_ns, now.read_bytes - last->read_bytes, span_ns);
        add_rate(events, "disk writes", now_ns, now.written_bytes - last->written_bytes, span_ns);
        add_rate(events, "network in", now_ns, now.received_bytes - last->received_bytes, span_ns);
        add_rate(events, "network out", now_ns, now.sent_bytes - last->sent_bytes, span_ns);
    }
    *last = now;
}
