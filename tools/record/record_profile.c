#include "record_profile.h"

#include <stdio.h>
#include <string.h>

#include "record_pipeline.h"
#include "record_run.h"

static void print_header(void)
{
    printf("%-12s %6s  %12s  %10s  %6s  %10s  %9s\n", "stage", "slots", "tasks/s", "efficiency", "CPUs", "memory",
           "failures");
}

static void print_point(const weir_profile_point *point)
{
    printf("%-12s %6u  %12.1f  %8.0f %%  %6.2f  %7.1f MB  %9llu%s\n", point->stage, point->concurrency,
           point->tasks_per_s, point->efficiency * 100, point->cpus, (double)point->memory_bytes / 1e6,
           (unsigned long long)point->num_failures, point->is_best ? "  <" : "");
}

/* What each number of slots brings, as bars: at full width a stage that grows with its slots. */
static void print_bars(const weir_profile_report *report)
{
    enum { WIDTH = 50 };
    const weir_profile_point *first = report->points;
    puts("\nTasks per second: # measured, . if every slot added as much as the first:");
    for (size_t i = 0; i < report->num_points; i++) {
        const weir_profile_point *point = &report->points[i], *last = point;
        bool is_first = i == 0 || strcmp(point[-1].stage, point->stage) != 0;
        first = is_first ? point : first;
        while (last + 1 < report->points + report->num_points && strcmp(last[1].stage, point->stage) == 0)
            last++;
        double most = first->tasks_per_s * last->concurrency / first->concurrency;
        for (const weir_profile_point *p = first; p <= last; p++)
            most = p->tasks_per_s > most ? p->tasks_per_s : most;
        int full = most > 0 ? (int)(WIDTH * point->tasks_per_s / most + 0.5) : 0;
        int ideal =
            most > 0 ? (int)(WIDTH * first->tasks_per_s * point->concurrency / first->concurrency / most + 0.5) : 0;
        printf("%-12s %6u  ", is_first ? point->stage : "", point->concurrency);
        for (int k = 0; k < (full > ideal ? full : ideal); k++)
            putchar(k < full ? '#' : '.');
        putchar('\n');
    }
}

static void print_json(const weir_profile_report *report)
{
    printf("[");
    for (size_t i = 0; i < report->num_points; i++) {
        const weir_profile_point *point = &report->points[i];
        printf(
            "%s\n  {\"stage\": \"%s\", \"concurrency\": %u, \"is_best\": %s, \"num_tasks\": %llu, "
            "\"num_failures\": %llu, \"elapsed\": %.9g, \"tasks_per_s\": %.9g, \"cpu_time\": %.9g, \"cpus\": %.9g, "
            "\"efficiency\": %.9g, \"memory_bytes\": %llu}",
            i ? "," : "", point->stage, point->concurrency, point->is_best ? "true" : "false",
            (unsigned long long)point->num_tasks, (unsigned long long)point->num_failures, point->elapsed_s,
            point->tasks_per_s, point->cpu_time_s, point->cpus, point->efficiency,
            (unsigned long long)point->memory_bytes);
    }
    printf("\n]\n");
}

static void show_progress(void *self, const weir_profile_point *point)
{
    (void)self;
    fprintf(stderr, "%s, %u slot%s: %.1f tasks/s\n", point->stage, point->concurrency,
            point->concurrency == 1 ? "" : "s", point->tasks_per_s);
}

int record_profile(const record_settings *settings, const record_inputs *inputs)
{
    weir_profile_report *report;
    weir_error error = { 0 };
    weir_profile_options options = { .progress = settings->quiet ? NULL : show_progress };
    weir_sqlite_writer *writer;
    if (weir_sqlite_open(settings->db_path, NULL, &writer, &error) != WEIR_OK) /* before any work */
        return record_refuse(settings, "--db-path: %s", error.message);
    weir_sqlite_close(writer, NULL);
    int exit_status = record_pipeline_profile(settings, inputs, &options, &report);
    if (exit_status != RECORD_DONE)
        return exit_status;
    if (settings->json) {
        print_json(report);
    } else {
        print_header();
        for (size_t i = 0; i < report->num_points; i++)
            print_point(&report->points[i]);
        print_bars(report);
        puts("\nEach stage alone, each slot with its own thread. < marks the best number of slots: with twice as "
             "many\nit is less than 10 % faster.");
    }
    if (weir_profile_record(report, settings->db_path, &error) != WEIR_OK) {
        record_refuse(settings, "--db-path: %s", error.message);
        exit_status = RECORD_FAILED;
    }
    weir_profile_free(report);
    return exit_status;
}
