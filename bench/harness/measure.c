/* The child writes its result to shared memory; the parent gets the resource usage of the child from the kernel. */
#include "bench/harness/measure.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double bench_seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int fail(const char *what)
{
    fprintf(stderr, "weir-bench: %s: %s\n", what, strerror(errno));
    return -1;
}

/* The result that the child passes to its parent. */
typedef struct left_behind {
    double wall_s;
    _Alignas(max_align_t) unsigned char result[];
} left_behind;

static _Noreturn void run_child(bench_work *work, const void *argument, left_behind *left)
{
    double start_s = bench_seconds(CLOCK_MONOTONIC);
    int rc = work(argument, left->result);
    left->wall_s = bench_seconds(CLOCK_MONOTONIC) - start_s;
    _exit(rc == 0 ? 0 : 1);
}

int bench_measure(bench_work *work, const void *argument, void *result, size_t result_bytes, bench_usage *usage)
{
    size_t size_bytes = sizeof(left_behind) + result_bytes;
    left_behind *left = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (left == MAP_FAILED)
        return fail("cannot allocate shared memory");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        run_child(work, argument, left);
    int status = 0, rc = 0;
    struct rusage used;
    while (child > 0 && rc == 0 && wait4(child, &status, 0, &used) < 0)
        rc = errno == EINTR ? 0 : -1;
    if (child < 0 || rc != 0)
        rc = fail(child < 0 ? "cannot start a process" : "wait4");
    else if (status != 0) {
        fprintf(stderr, "weir-bench: the run failed (wait status %d)\n", status);
        rc = -1;
    } else {
        memcpy(result, left->result, result_bytes);
        usage->wall_s = left->wall_s;
        usage->cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
        usage->peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    }
    munmap(left, size_bytes);
    return rc;
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

bench_spread bench_spread_of(double *values, size_t num_values)
{
    qsort(values, num_values, sizeof *values, compare_doubles);
    size_t middle = num_values / 2;
    return (bench_spread){
        .median = num_values % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
        .min = values[0],
        .max = values[num_values - 1],
    };
}
