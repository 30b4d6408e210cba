#include "bench/harness/contest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/memory.h"

static void show_progress(const contest *self, uint32_t round, size_t done)
{
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    if (round < self->num_rounds)
        fprintf(stderr, "%s: round %" PRIu32 " of %" PRIu32 ", run %zu of %zu", self->name, round + 1,
                self->num_rounds, done + 1, self->num_entries);
    fflush(stderr);
}

static int run_entry(contest *self, uint32_t round, size_t index, void *result)
{
    const contest_entry *entry = &self->entries[index];
    contest_result *kept = &self->results[round * self->num_entries + index];
    bench_usage usage;
    if (bench_measure(entry->work, entry->argument, result, self->result_bytes, &usage) != 0) {
        fprintf(stderr, "weir-bench: %s: %s failed\n", self->name, entry->name);
        return -1;
    }
    memcpy(kept, result, sizeof *kept);
    kept->wall_s = kept->wall_s > 0 ? kept->wall_s : usage.wall_s;
    kept->cpu_s = kept->cpu_s > 0 ? kept->cpu_s : usage.cpu_s;
    kept->peak_bytes = kept->peak_bytes > 0 ? kept->peak_bytes : (double)usage.peak_bytes;
    if (self->see)
        self->see(self->self, index, result);
    return 0;
}

int contest_run(contest *self)
{
    if (!self->result_bytes)
        self->result_bytes = sizeof(contest_result);
    void *result = memory_get(1, self->result_bytes);
    self->results = memory_get((size_t)self->num_rounds * self->num_entries, sizeof *self->results);
    int rc = 0;
    for (uint32_t round = 0; round < self->num_rounds && rc == 0; round++)
        for (size_t i = 0; i < self->num_entries && rc == 0; i++) {
            size_t index = round % 2 ? self->num_entries - 1 - i : i;
            show_progress(self, round, i);
            if (self->entries[index].work)
                rc = run_entry(self, round, index, result);
        }
    show_progress(self, self->num_rounds, 0);
    free(result);
    return rc;
}

double contest_clips_per_s(const contest_result *result)
{
    return result->clips / result->wall_s;
}

double contest_clips_per_cpu_s(const contest_result *result)
{
    return result->clips / result->cpu_s;
}

double contest_cpu_s(const contest_result *result)
{
    return result->cpu_s;
}

double contest_cpu_s_per_clip(const contest_result *result)
{
    return result->cpu_s / result->clips;
}

double contest_peak_bytes(const contest_result *result)
{
    return result->peak_bytes;
}

bench_spread contest_spread(const contest *self, size_t entry, contest_metric *metric, size_t over)
{
    double values[MAX_RUNS];
    for (uint32_t round = 0; round < self->num_rounds; round++) {
        const contest_result *results = &self->results[round * self->num_entries];
        values[round] = metric(&results[entry]) / (over == CONTEST_NONE ? 1 : metric(&results[over]));
    }
    return bench_spread_of(values, self->num_rounds);
}

const contest_result *contest_last(const contest *self, size_t entry)
{
    return &self->results[(self->num_rounds - 1) * self->num_entries + entry];
}
