/* The child works and writes its result into a pipe; the parent reads it and asks the kernel what the child has used. */
#include "measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int write_all(int fd, const void *bytes, size_t size_bytes)
{
    const char *from = bytes;
    while (size_bytes > 0) {
        ssize_t written = write(fd, from, size_bytes);
        if (written < 0 && errno != EINTR)
            return -1;
        from += written > 0 ? written : 0;
        size_bytes -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int read_all(int fd, void *bytes, size_t size_bytes)
{
    char *to = bytes;
    while (size_bytes > 0) {
        ssize_t got = read(fd, to, size_bytes);
        if (got == 0 || (got < 0 && errno != EINTR))
            return -1;
        to += got > 0 ? got : 0;
        size_bytes -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static _Noreturn void run_child(bench_work *work, const void *argument, void *result, size_t result_bytes, int fd)
{
    double start_s = bench_seconds(CLOCK_MONOTONIC);
    int rc = work(argument, result);
    double wall_s = bench_seconds(CLOCK_MONOTONIC) - start_s;
    if (rc == 0)
        rc = write_all(fd, &wall_s, sizeof wall_s);
    if (rc == 0)
        rc = write_all(fd, result, result_bytes);
    _exit(rc == 0 ? 0 : 1);
}

int bench_measure(bench_work *work, const void *argument, void *result, size_t result_bytes, bench_usage *usage)
{
    int ends[2];
    if (pipe(ends) < 0)
        return fail("no pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return fail("no process");
    }
    if (child == 0) {
        close(ends[0]);
        run_child(work, argument, result, result_bytes, ends[1]);
    }
    close(ends[1]);
    int rc = read_all(ends[0], &usage->wall_s, sizeof usage->wall_s);
    if (rc == 0)
        rc = read_all(ends[0], result, result_bytes);
    close(ends[0]);

    int status = 0;
    struct rusage used;
    while (wait4(child, &status, 0, &used) < 0) {
        if (errno != EINTR)
            return fail("wait4");
    }
    if (rc != 0 || status != 0) {
        fprintf(stderr, "weir-bench: the run failed (wait status %d)\n", status);
        return -1;
    }
    usage->cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                   (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
    usage->peak_bytes = (uint64_t)used.ru_maxrss * 1024;
    return 0;
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
