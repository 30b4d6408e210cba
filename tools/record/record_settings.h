/* The settings of a recording: inputs, decoding, the pipeline, and where the statistics are written. */
#ifndef TOOLS_RECORD_RECORD_SETTINGS_H
#define TOOLS_RECORD_RECORD_SETTINGS_H

#include <weir/export.h>
#include <weir/pipeline.h>

#include "tools/cli/options.h"
#include "tools/record/video_options.h"

enum { RECORD_MAX_EXPORTS = 16 }; /* formats that can be written while it runs */

/* What is written in the format weir_export_at() of the same index. */
typedef struct record_export {
    const char *path;            /* NULL = nothing */
    weir_export_options options; /* the settings of the format, as given */
} record_export;

typedef struct record_settings {
    const char *program;      /* begins every message: "weir record" */
    const char *weir;         /* how the user calls the command `weir`, for the hints at the end */
    const char *input_option; /* names an input in messages: "--dataset-dir: "; "" = nothing */

    char *const *inputs; /* folders, files, URLs */
    size_t num_inputs;

    /* which files */
    const char *list_path; /* of a file with a path or a URL in each line, "-" = stdin; NULL = none */
    const char *glob;      /* NULL = the default for the type of file */
    bool sorted;
    bool tar; /* the inputs are tar archives, or folders of them */
    const char *tar_glob;

    /* how they are decoded */
    bool audio, images;
    video_settings video;
    uint32_t chunk_frames;
    bool clip_items;
    uint32_t sample_rate, channels; /* of audio */
    bool planar;

    /* the pipeline */
    uint32_t concurrency; /* 0 = a slot for each thread: more of them would only wait for one */
    uint32_t threads;     /* 0 = the CPU budget */
    uint32_t queue_items, source_queue_items, sink_queue_items;
    uint64_t queue_bytes;
    int output_order; /* weir_order */
    uint32_t epochs;
    int64_t deadline_ns;
    bool isolate; /* decode in child processes */
    uint64_t isolate_memory;
    bool no_sandbox;
    weir_max_failures max_failures;
    bool explain;              /* measure by experiment what limits the run */
    bool tune;                 /* change slots and threads while it runs */
    double cpu_share;          /* of the CPUs, for the tuner; 0 = all */
    uint64_t memory_bytes;     /* the same of memory; 0 = no limit */
    int64_t headspace_step_ns; /* measure what loading costs a consumer whose steps take this long; 0 = do not */

    /* the statistics */
    const char *db_path;
    int64_t log_interval_ns; /* 0 = 60 s */
    double keep_s;           /* 0 = for ever */
    int64_t rank;            /* -1 = the launcher's, or 0 */
    uint32_t local_rank;     /* the launcher's, or 0 */
    int64_t world;           /* 0 = the launcher's; or 1 if a rank is given */
    const char *job;         /* of the launcher; NULL = none */
    int64_t wait_ns;         /* how long rank 0 waits for a rank that records nothing; 0 = the default */
    bool all_items;
    bool stacks;                               /* sample the functions */
    const char *resume_path;                   /* skip the files that are recorded here; NULL = none */
    bool retry_failed;                         /* with resume_path: files that failed are not skipped */
    bool dry_run;                              /* print the files instead of decoding them */
    record_export exports[RECORD_MAX_EXPORTS]; /* see record_exports.h */
    bool force;                                /* an output may replace a file of another kind */
    bool quiet;
    bool has_full_summary; /* SPDL's text at the end instead of the short screen */
    bool verbose;
} record_settings;

/* The defaults of everything except `program`, `weir`, `input_option` and the inputs. */
#define RECORD_DEFAULTS \
    { \
        .tar_glob = "*.tar*", .chunk_frames = 512, .db_path = "pipeline_stats.db", .rank = -1, \
    }

/* All options except those of record_settings.video (see video_rows) and of exports (record_export_rows()); the
   offsets are those of record_settings. */
extern const option_row record_rows[];

/* The first of these: which files, and how they are decoded, without the pool, epochs, experiments and statistics. For
   commands with the same files and stages. They live as long as the program. */
const option_row *record_stage_rows(void);

/* "7" is a number of failures, "5%" a share of the tasks: a weir_max_failures. */
extern const option_kind record_max_failures;

#endif
