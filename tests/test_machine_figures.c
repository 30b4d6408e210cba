/*
 * The figures of the process and the machine, from invented files of the kernel whose numbers all differ.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/clock.h>
#include <weir/metrics.h>
#include <weir/op.h>

#include "engine/base/kernel_files.h"
#include "engine/base/readings.h"
#include "engine/measure/child_processes.h"
#include "engine/measure/machine_stats.h"

/* ---- invented files ---------------------------------------------------------------------------------------------- */

static struct {
    const char *path, *text; /* NULL = there is none */
} files[] = {
    { "/proc/self/status", "Name:\tVmRSS: 1\nVmPeak:\t 900 kB\nVmHWM:\t 500 kB\nVmRSS:\t 300 "
                           "kB\nThreads:\t17\nvoluntary_ctxt_switches:\t5\n" },
    { "/proc/self/io", "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n" },
    { "/proc/stat", "cpu  1000 200 30 40000 500 6 7 80 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n" },
    { "/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\nfull avg10=0.00 total=99\n" },
    { "/proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=22\nfull avg10=0.00 total=99\n" },
    { "/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=33\nfull avg10=0.00 total=99\n" },
    { "/proc/self/net/dev", "Inter-|   Receive                            |  Transmit\n"
                            " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
                            "    lo: 7000000    1    0    0    0     0          0         0  8000000    1    0\n"
                            "  eth0:    1000    2    3    4    5     6          7         8     200    1    0\n"
                            " vlelo:      30    2    3    4    5     6          7         8       4    1    0\n" },
    { "/proc/4242/statm", "900 30 20 1 0 5 0\n" },
    { "/proc/4242/smaps_rollup",
      "5590-7fff ---p 00000000 00:00 0  [rollup]\nRss:  120 kB\nPss:   70 kB\nPss_Dirty: 1 kB\n" },
    { "/proc/4343/statm", "900 5 20 1 0 5 0\n" },
    { "/group/cpu.stat", "usage_usec 5\nnr_periods 6\nnr_throttled 7\nthrottled_usec 8\n" },
    { "/proc/sys/kernel/task_delayacct", NULL },
};

enum { NUM_FILES = sizeof files / sizeof files[0] };

static size_t read_invented(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < NUM_FILES; i++)
        if (files[i].text && strcmp(files[i].path, path) == 0)
            snprintf(text, size, "%s", files[i].text);
    return strlen(text);
}

static const char **text_of(const char *path)
{
    for (int i = 0; i < NUM_FILES; i++)
        if (strcmp(files[i].path, path) == 0)
            return &files[i].text;
    fail_msg("%s", path);
    return NULL;
}

static weir_machine_reading read_all(void)
{
    static const weir_machine_sources sources = { .cpu_stat_path = "/group/cpu.stat" };
    weir_machine_reading reading;
    weir__machine_read(&sources, &reading);
    return reading;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

TEST_CASE(each_figure_is_the_kernels)
{
    weir_machine_reading r = read_all();
    assert_int_equal(r.process.resident_bytes, 300 * 1024);
    assert_int_equal(r.process.peak_bytes, 500 * 1024);
    assert_int_equal(r.process.num_open_threads, 17);
    assert_int_equal(r.process.read_bytes, 4096);
    assert_int_equal(r.process.written_bytes, 8192);
    int64_t tick_ns = WEIR_SECOND / sysconf(_SC_CLK_TCK);
    assert_int_equal(r.machine.other_cpu_ns, (1000 + 200 + 30 + 6 + 7) * tick_ns);
    assert_int_equal(r.machine.idle_ns, 40000 * tick_ns);
    assert_int_equal(r.machine.disk_idle_ns, 500 * tick_ns);
    assert_int_equal(r.machine.stolen_ns, 80 * tick_ns);
    assert_int_equal(r.machine.cpu_pressure_ns, 11 * WEIR_MICROSECOND);
    assert_int_equal(r.machine.io_pressure_ns, 22 * WEIR_MICROSECOND);
    assert_int_equal(r.machine.memory_pressure_ns, 33 * WEIR_MICROSECOND);
    assert_int_equal(r.machine.received_bytes, 1030); /* without the loopback, with what only ends like it */
    assert_int_equal(r.machine.sent_bytes, 204);
    assert_int_equal(r.machine.num_throttled, 7);
    assert_int_equal(r.machine.throttled_ns, 8 * WEIR_MICROSECOND);
    assert_int_equal(r.process.pool_cpu_ns, -1); /* what the pools know is not read here */
    assert_int_equal(r.process.run_delay_ns, -1);
}

static void read_children(weir_process_metrics *process)
{
    weir__child_memory memory = { .due_ns = 0 };
    weir__child_processes_read(&memory, process);
}

/* The second one is of another user, or in a sandbox: its PSS must not be read. The third one has ended. */
TEST_CASE(the_memory_of_child_processes_is_that_of_all_that_work)
{
    const int64_t page_bytes = sysconf(_SC_PAGESIZE);
    weir_process_metrics process = { .resident_bytes = 7 };
    read_children(&process);
    assert_int_equal(process.child_resident_bytes, 0);
    assert_int_equal(process.child_pss_bytes, 0);
    assert_int_equal(weir_child_process_begin(4242), WEIR_OK);
    assert_int_equal(weir_child_process_begin(4444), WEIR_OK);
    read_children(&process);
    assert_int_equal(process.child_resident_bytes, 30 * page_bytes);
    assert_int_equal(process.child_pss_bytes, 70 * 1024);
    assert_int_equal(weir_child_process_begin(4343), WEIR_OK);
    read_children(&process);
    assert_int_equal(process.child_resident_bytes, 35 * page_bytes);
    assert_int_equal(process.child_pss_bytes, -1);
    for (int32_t pid = 4242; pid < 4500; pid++)
        weir_child_process_end(pid);
    read_children(&process);
    assert_int_equal(process.child_resident_bytes, 0);
    assert_int_equal(process.resident_bytes, 7);
    assert_int_equal(weir_child_process_begin(0), WEIR_EINVAL);
}

static bool use_much(weir__process_usage *usage)
{
    *usage = (weir__process_usage){
        .cpu_ns = 1, .num_minor_faults = 2, .num_major_faults = 3, .num_voluntary = 4, .num_involuntary = 5
    };
    return true;
}

static int64_t count_files(void)
{
    return 6;
}

TEST_CASE(the_process_is_as_its_usage_says)
{
    weir__readings_set(&(weir__readings){ .file = read_invented, .usage = use_much, .num_files = count_files });
    weir_machine_reading r = read_all();
    weir__readings_set(&(weir__readings){ .file = read_invented });
    assert_int_equal(r.process.cpu_ns, 1);
    assert_int_equal(r.process.num_minor_faults, 2);
    assert_int_equal(r.process.num_major_faults, 3);
    assert_int_equal(r.process.num_voluntary, 4);
    assert_int_equal(r.process.num_involuntary, 5);
    assert_int_equal(r.process.num_open_files, 6);
}

/* The real ones, on a thread that works: two readings of the kernel around ours. */
TEST_CASE(the_real_usage_is_getrusages)
{
    struct rusage before, after;
    weir__process_usage used;
    getrusage(RUSAGE_SELF, &before);
    assert_true(weir__readings_get()->usage(&used));
    getrusage(RUSAGE_SELF, &after);
    int64_t low_ns = (before.ru_utime.tv_sec + before.ru_stime.tv_sec) * WEIR_SECOND +
                     (before.ru_utime.tv_usec + before.ru_stime.tv_usec) * WEIR_MICROSECOND;
    int64_t high_ns = (after.ru_utime.tv_sec + after.ru_stime.tv_sec) * WEIR_SECOND +
                      (after.ru_utime.tv_usec + after.ru_stime.tv_usec) * WEIR_MICROSECOND;
    assert_in_range(used.cpu_ns, low_ns, high_ns);
    assert_in_range(used.num_minor_faults, before.ru_minflt, after.ru_minflt);
    assert_in_range(used.num_major_faults, before.ru_majflt, after.ru_majflt);
    assert_in_range(used.num_voluntary, before.ru_nvcsw, after.ru_nvcsw);
    assert_in_range(used.num_involuntary, before.ru_nivcsw, after.ru_nivcsw);
}

/* Version 1 of control groups has nanoseconds under another name. */
TEST_CASE(an_older_control_group_counts_nanoseconds)
{
    const char **text = text_of("/group/cpu.stat"), *before = *text;
    *text = "nr_periods 6\nnr_throttled 7\nthrottled_time 9\n";
    weir_machine_reading r = read_all();
    *text = before;
    assert_int_equal(r.machine.num_throttled, 7);
    assert_int_equal(r.machine.throttled_ns, 9);
    *text = "nr_throttled 0\nthrottled_usec 0\n";
    r = read_all();
    *text = before;
    assert_int_equal(r.machine.num_throttled, 0);
    assert_int_equal(r.machine.throttled_ns, 0);
}

/* A part of a file would be too small a sum. */
TEST_CASE(a_file_that_is_longer_than_the_buffer_is_not_known)
{
    enum { LINE_BYTES = 80, FITS = 8190 / LINE_BYTES };
    static char longer[FITS * LINE_BYTES + 2 * LINE_BYTES];
    const char **text = text_of("/proc/self/net/dev"), *before = *text;
    *text = longer;
    for (int lines = FITS; lines <= FITS + 1; lines++) {
        longer[0] = '\0';
        for (int i = 0; i < lines; i++)
            snprintf(longer + i * LINE_BYTES, LINE_BYTES + 1, "%*s%3d: 2 0 0 0 0 0 0 0 3 0\n", LINE_BYTES - 25, "eth",
                     i);
        assert_int_equal(strlen(longer), lines * LINE_BYTES);
        weir_machine_reading r = read_all();
        assert_int_equal(r.machine.received_bytes, lines == FITS ? 2 * FITS : -1);
        assert_int_equal(r.machine.sent_bytes, lines == FITS ? 3 * FITS : -1);
    }
    *text = before;
}

/* Not 0: that would be a figure. */
TEST_CASE(what_the_system_does_not_tell_is_not_known)
{
    const char *before[NUM_FILES];
    for (int i = 0; i < NUM_FILES; i++) {
        before[i] = files[i].text;
        files[i].text = NULL;
    }
    weir_machine_reading r = read_all();
    *text_of("/proc/stat") = "cpu  0 0 0 0 0 0 0 0 0 0\n"; /* in some sandboxes */
    weir_machine_reading zeros = read_all();
    for (int i = 0; i < NUM_FILES; i++)
        files[i].text = before[i];
    const int64_t unknown[] = { r.process.resident_bytes,   r.process.peak_bytes,       r.process.num_open_threads,
                                r.process.read_bytes,       r.process.written_bytes,    r.machine.other_cpu_ns,
                                r.machine.idle_ns,          r.machine.disk_idle_ns,     r.machine.stolen_ns,
                                r.machine.cpu_pressure_ns,  r.machine.io_pressure_ns,   r.machine.memory_pressure_ns,
                                r.machine.received_bytes,   r.machine.sent_bytes,       r.machine.num_throttled,
                                r.machine.throttled_ns,     zeros.machine.other_cpu_ns, zeros.machine.idle_ns,
                                zeros.machine.disk_idle_ns, zeros.machine.stolen_ns };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        if (unknown[i] != -1)
            fail_msg("figure %zu is %lld", i, (long long)unknown[i]);
    assert_true(r.process.cpu_ns > 0);
}

/* A kernel without the switch always counts. */
TEST_CASE(waiting_for_reads_is_counted_unless_the_kernel_says_no)
{
    static const struct {
        const char *text;
        bool counts;
    } switches[] = { { NULL, true }, { "1\n", true }, { "0\n", false } };
    for (int i = 0; i < 3; i++) {
        weir_machine_sources sources;
        *text_of("/proc/sys/kernel/task_delayacct") = switches[i].text;
        weir__machine_sources_init(&sources);
        assert_int_equal(sources.counts_read_delay, switches[i].counts);
    }
}

/* ---- between two readings ------------------------------------------------------------------------------------------ */

TEST_CASE(sums_are_subtracted_and_levels_are_the_last)
{
    weir_machine_reading before = read_all(), now = before, counted;
    now.process.cpu_ns = before.process.cpu_ns + 30;
    now.machine.other_cpu_ns += 100;
    now.process.read_bytes += 5;
    now.process.resident_bytes -= 7;     /* a level may fall */
    now.machine.received_bytes -= 1;     /* it was reset */
    now.machine.sent_bytes += 0;         /* nothing was sent */
    before.machine.io_pressure_ns = -1;  /* was not known */
    now.machine.memory_pressure_ns = -1; /* is not known any more */
    weir__machine_subtract(&now, &before, &counted);
    assert_int_equal(counted.process.cpu_ns, 30);
    assert_int_equal(counted.machine.other_cpu_ns, 70); /* without this process */
    assert_int_equal(counted.process.read_bytes, 5);
    assert_int_equal(counted.process.written_bytes, 0);
    assert_int_equal(counted.process.resident_bytes, 300 * 1024 - 7);
    assert_int_equal(counted.process.num_open_threads, 17);
    assert_int_equal(counted.machine.received_bytes, -1);
    assert_int_equal(counted.machine.sent_bytes, 0);
    assert_int_equal(counted.machine.io_pressure_ns, -1);
    assert_int_equal(counted.machine.memory_pressure_ns, -1);

    now.machine.other_cpu_ns = before.machine.other_cpu_ns + 30; /* two clocks: never below 0 */
    weir__machine_subtract(&now, &before, &counted);
    assert_int_equal(counted.machine.other_cpu_ns, 0);
    now.machine.other_cpu_ns = before.machine.other_cpu_ns + 20;
    weir__machine_subtract(&now, &before, &counted);
    assert_int_equal(counted.machine.other_cpu_ns, 0);
    now.process.cpu_ns = -1;
    weir__machine_subtract(&now, &before, &counted);
    assert_int_equal(counted.machine.other_cpu_ns, -1);
    now.process.cpu_ns = before.process.cpu_ns;
    now.machine.other_cpu_ns = -1;
    weir__machine_subtract(&now, &before, &counted);
    assert_int_equal(counted.machine.other_cpu_ns, -1);
}

static int invent_files(void **state)
{
    static const weir__readings invented = { .file = read_invented };
    (void)state;
    weir__readings_set(&invented);
    return 0;
}

TEST_MAIN(invent_files, NULL, NULL, NULL)
