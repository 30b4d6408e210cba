/* Reads /proc/stat of Linux; elsewhere the load is unknown. */
#include "bench/harness/background_load.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double idle_s(void)
{
    unsigned long long user, nice, system, idle, iowait;
    FILE *file = fopen("/proc/stat", "r");
    int found = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait) : 0;
    if (file)
        fclose(file);
    return found == 5 ? (double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double used_s(int who)
{
    struct rusage used;
    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

bench_background_load bench_background_load_now(void)
{
    return (bench_background_load){
        .idle_s = idle_s(),
        .own_s = used_s(RUSAGE_SELF) + used_s(RUSAGE_CHILDREN),
        .wall_s = bench_seconds(CLOCK_MONOTONIC),
    };
}

double bench_others_cpus(const bench_background_load *start)
{
    bench_background_load now = bench_background_load_now();
    double wall_s = now.wall_s - start->wall_s, all = (double)sysconf(_SC_NPROCESSORS_ONLN);
    bool is_known = start->idle_s >= 0 && now.idle_s >= 0 && wall_s > 0;
    return is_known ? fmax(0, all - (now.idle_s - start->idle_s + now.own_s - start->own_s) / wall_s) : NAN;
}

void bench_report_background_load(bench_report *report, const bench_background_load *start)
{
    double share = bench_others_cpus(start) / (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (isnan(share))
        return;
    printf("\nother programs used %.0f %% of the CPU time meanwhile%s\n", share * 100,
           share > 0.05 ? ": repeat this on a quiet machine" : "");
    if (report)
        bench_report_number(report, "others_cpu_share", share);
}
