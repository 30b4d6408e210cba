/*
 * The profile of a chain of stages: each stage alone, fed from recorded inputs, with 1, 2, 4, 8, … slots that really run
 * at the same time (each has its own thread). So no other stage limits the measured stage. The table shows the gain and
 * the cost of more slots, and from which number on more slots do not help.
 *
 *     weir_profile_stage stages[] = { { .op = &weir_directory_source, .config = &folder },
 *                                     { .op = &weir_video_decode, .config = &video } };
 *     weir_profile(stages, 2, NULL, &report, &error);
 *     for (size_t i = 0; i < report->num_points; i++) use(&report->points[i]);
 *     weir_profile_free(report);
 *
 * Inputs of a stage are recorded from the stage before it: as many as the options allow, so memory is bounded. They are
 * used again and again: an operation must not make lasting changes to the data of its input. Several tasks get
 * the same input at the same time only if there are fewer inputs than slots.
 */
#ifndef WEIR_PROFILE_H
#define WEIR_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>
#include <weir/options.h>
#include <weir/query.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A source, or a stage. The first one is the source, which is measured with one slot, as it runs. */
typedef struct weir_profile_stage {
    const weir_op *op;
    const void *config;
    const char *name;     /* (NULL = the operation's name) */
    uint64_t reserved[4]; /* 0 */
} weir_profile_stage;

/* One stage with one number of slots. */
typedef struct weir_profile_point {
    const char *stage; /* as in weir_profile_stage, not a copy; of weir_profile_read(): belongs to the report */
    uint32_t concurrency;
    bool is_best;       /* more slots raise tasks_per_s by less than min_gain */
    uint64_t num_tasks; /* measured, without the first one of each slot; of a source: items */
    uint64_t num_failures;
    double elapsed_s;
    double tasks_per_s;
    double cpu_time_s;     /* of the process */
    double cpus;           /* CPU time per second */
    double efficiency;     /* tasks per second and slot, relative to one slot */
    uint64_t memory_bytes; /* maximum growth of the process's memory; 0 = not known on this system */
    uint64_t reserved[4];
} weir_profile_point;

typedef struct weir_profile_report {
    weir_profile_point *points; /* stage by stage, upstream first */
    size_t num_points;
    int64_t start_unix_ns, end_unix_ns;
} weir_profile_report;

/* Setting this struct to all-zero is equivalent to defaults. */
typedef struct weir_profile_options {
    int64_t time_ns;          /* minimum time of each point; up to ten times as long if tasks are few (0 = 1 s) */
    uint32_t max_concurrency; /* (0 = 64) */
    double min_gain;          /* stop if twice the slots gain less than this share (0 = 0.1) */
    size_t max_inputs;        /* recorded for each stage (0 = 64) */
    uint64_t max_input_bytes; /* of these; may be exceeded by one (0 = 1 GiB) */
    /* Called after each point, on the calling thread (NULL = no call). */
    void (*progress)(void *self, const weir_profile_point *point);
    void *progress_self;
} weir_profile_options;

/* For the inline function below; see <weir/options.h>. */
WEIR_API int weir_profile_sized(const weir_profile_stage *stages, size_t num_stages,
                                const weir_profile_options *options, size_t options_size,
                                weir_profile_report **report, weir_error *error);

/*
 * Measures; this takes a few seconds for each stage. options may be NULL. WEIR_OK: free *report with
 * weir_profile_free(). Otherwise *report is NULL and *error (may be NULL) says why: a stage that fails for all its
 * inputs, a source without items, WEIR_EINVAL, WEIR_ENOMEM.
 */
static inline int weir_profile(const weir_profile_stage *stages, size_t num_stages,
                               const weir_profile_options *options, weir_profile_report **report, weir_error *error)
{
    return weir_profile_sized(stages, num_stages, options, sizeof *options, report, error);
}

/* Adds the report to a database, in the table profile_stats, as a separate run; the file is created if missing. */
WEIR_API int weir_profile_record(const weir_profile_report *report, const char *path, weir_error *error);

/*
 * Reads the report that a run (WEIR_LAST_RUN: the last one) has recorded. WEIR_OK: free *report with
 * weir_profile_free(). WEIR_ENOTFOUND if there is no such run, or it is not a profile.
 */
WEIR_API int weir_profile_read(weir_reader *reader, int64_t run_id, weir_profile_report **report, weir_error *error);

/* NULL is fine. */
WEIR_API void weir_profile_free(weir_profile_report *report);

#ifdef __cplusplus
}
#endif

#endif
