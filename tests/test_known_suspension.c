/*
 * Shortage of CPU is not a suspension: what was recorded on busy machines is replayed. Held constant: heartbeats of
 * 250 ms.
 *
 * The recording has a thread of nice 15 that wakes up each 250 ms, works for 2 ms and reads its schedstat. Beside it,
 * 12 processes computed, on two CPUs that others used too.
 */
#include "tests/test_case.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/readings.h"
#include "engine/measure/suspension.h"

typedef struct heartbeat {
    int64_t due_ns, woke_ns, cpu_ns, delay_ns; /* cpu, delay: of schedstat, since the thread began */
} heartbeat;

static const heartbeat beside_12[] = {
    { 250000101, 271088632, 3798979, 2040585097 },       { 2210044594, 3875867952, 5805393, 3704440601 },
    { 4125928135, 5734039412, 5884821, 5310351204 },     { 5984112708, 6759269285, 8529945, 6084826714 },
    { 7009329478, 7593912483, 8693119, 6667579785 },     { 7843973587, 8502728586, 10696619, 7562133255 },
    { 8752843521, 8978059527, 10800122, 7785237964 },    { 9228145868, 11479874494, 14337413, 10035354589 },
    { 11729956848, 11773258019, 14917555, 10076642599 }, { 12023313412, 13517853772, 16428844, 11569040320 },
};

static const heartbeat beside_12_again[] = {
    { 250000080, 465145634, 2395069, 254965462 },        { 5991218272, 7667920815, 10010416, 5897865457 },
    { 7917987289, 10065196207, 10901128, 8042896055 },   { 10315285985, 12305204960, 13009191, 10030589595 },
    { 12555305838, 14457153194, 15146950, 11930265454 }, { 14707221681, 20003449439, 18884202, 17223821672 },
};

static const heartbeat *current; /* what schedstat says */

static size_t read_schedstat(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    if (strstr(path, "/schedstat"))
        snprintf(text, size, "%lld %lld 17\n", (long long)current->cpu_ns, (long long)current->delay_ns);
    return strlen(text);
}

/* From the first heartbeat on: how long the process is said to have been suspended. */
static int64_t suspended_ns(const heartbeat *beats, size_t num)
{
    weir__suspension own = { .noted_ns = beats[0].woke_ns };
    weir__readings_set(&(weir__readings){ .file = read_schedstat });
    current = &beats[0];
    weir__kernel_stats_of_thread(0, &own.service);
    own.service_read_ns = beats[0].woke_ns;
    for (size_t i = 1; i < num; i++) {
        current = &beats[i];
        weir__suspension_note_at(&own, beats[i].due_ns, beats[i].woke_ns);
    }
    weir__readings_set(NULL);
    return own.suspended_ns;
}

#define SUSPENDED(beats) suspended_ns(beats, sizeof(beats) / sizeof(beats)[0])

TEST_CASE(shortage_of_cpu_is_no_suspension)
{
    assert_int_equal(SUSPENDED(beside_12), 0);
    assert_int_equal(SUSPENDED(beside_12_again), 0);
}

/* The same, and between the fifth and the sixth heartbeat the process was stopped, for so long. */
TEST_CASE(a_stop_beside_other_programs_is_told)
{
    static const int64_t stops_ns[] = { 2 * WEIR_SECOND, 10 * WEIR_SECOND, 3600 * WEIR_SECOND };
    for (size_t i = 0; i < sizeof stops_ns / sizeof stops_ns[0]; i++) {
        heartbeat beats[sizeof beside_12 / sizeof beside_12[0]];
        memcpy(beats, beside_12, sizeof beats);
        for (size_t j = 5; j < sizeof beats / sizeof beats[0]; j++) {
            beats[j].due_ns += j > 5 ? stops_ns[i] : 0;
            beats[j].woke_ns += stops_ns[i];
        }
        int64_t reported_ns = SUSPENDED(beats), error_ns = reported_ns - stops_ns[i];
        if (error_ns < -WEIR_SECOND || error_ns > WEIR_HEARTBEAT_NS)
            fail_msg("%.3f s instead of %.3f s", 1e-9 * (double)reported_ns, 1e-9 * (double)stops_ns[i]);
    }
}

/* A kernel that does not count how long threads wait for a CPU: then a late thread was stopped. */
TEST_CASE(without_schedstat_a_late_thread_was_stopped)
{
    heartbeat beats[] = { { 250000000, 250000000, 0, -1 },
                          { 500000000, 500000000, 0, -1 },
                          { 750000000, 3750000000, 0, -1 } };
    assert_in_range(SUSPENDED(beats), 2900 * WEIR_MILLISECOND, 3100 * WEIR_MILLISECOND);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
