#include "engine/base/readings.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/clock.h>

#include "common/unix_clock.h"

/* ---- the real ones ------------------------------------------------------------------------------------------- */

static int64_t read_clock_ns(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time) == 0 ? (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec : -1;
}

static int64_t read_monotonic_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

static int64_t read_boot_ns(void)
{
    return read_clock_ns(CLOCK_BOOTTIME);
}

static int64_t nanoseconds_of(const struct timeval *time)
{
    return (int64_t)time->tv_sec * WEIR_SECOND + (int64_t)time->tv_usec * WEIR_MICROSECOND;
}

static bool read_usage(weir__process_usage *usage)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return false;
    *usage = (weir__process_usage){ .cpu_ns = nanoseconds_of(&used.ru_utime) + nanoseconds_of(&used.ru_stime),
                                    .num_minor_faults = used.ru_minflt,
                                    .num_major_faults = used.ru_majflt,
                                    .num_voluntary = used.ru_nvcsw,
                                    .num_involuntary = used.ru_nivcsw };
    return true;
}

static uint32_t count_affinity_cpus(void)
{
    for (size_t cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        size_t size = CPU_ALLOC_SIZE(cpus);
        if (!set)
            return 1;
        int result = sched_getaffinity(0, size, set);
        int count = result == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return (uint32_t)count;
    }
    return 1;
}

/* Since Linux 6.2 the folder's size is the number of descriptors; counting them is too slow. */
static int64_t count_descriptors(void)
{
    struct stat info;
    return stat("/proc/self/fd", &info) == 0 && info.st_size > 0 ? (int64_t)info.st_size : -1;
}

static size_t read_file_start(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static void sleep_for_ns(int64_t ns)
{
    struct timespec time = { .tv_sec = ns / WEIR_SECOND, .tv_nsec = ns % WEIR_SECOND };
    while (nanosleep(&time, &time) != 0)
        continue;
}

static bool wait_for_post(sem_t *woken, int64_t until_ns)
{
    struct timespec until = { until_ns / WEIR_SECOND, until_ns % WEIR_SECOND };
    int code;
    while ((code = sem_clockwait(woken, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
        ;
    return code == 0;
}

/* ---- the table ----------------------------------------------------------------------------------------------- */

static const weir__readings real = { .clock_ns = read_monotonic_ns,
                                     .boot_ns = read_boot_ns,
                                     .unix_ns = unix_clock_ns,
                                     .cpu_ns = read_clock_ns,
                                     .usage = read_usage,
                                     .num_cpus = count_affinity_cpus,
                                     .num_files = count_descriptors,
                                     .file = read_file_start,
                                     .sleep = sleep_for_ns,
                                     .wait = wait_for_post };

static weir__readings invented; /* of a test, completed */
static const weir__readings *used = &real;

const weir__readings *weir__readings_get(void)
{
    return used;
}

void weir__readings_set(const weir__readings *readings)
{
    used = &real;
    if (!readings)
        return;
#define COMPLETE(function) invented.function = readings->function ? readings->function : real.function
    COMPLETE(clock_ns);
    COMPLETE(boot_ns);
    COMPLETE(unix_ns);
    COMPLETE(cpu_ns);
    COMPLETE(usage);
    COMPLETE(num_cpus);
    COMPLETE(num_files);
    COMPLETE(file);
    COMPLETE(sleep);
    COMPLETE(wait);
#undef COMPLETE
    used = &invented;
}

bool weir__clock_is_real(void)
{
    return used->clock_ns == real.clock_ns;
}
