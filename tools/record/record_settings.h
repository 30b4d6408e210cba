/* The settings of a recording: inputs, decoding, the pipeline, and where the statistics are written. */
#ifndef RECORD_SETTINGS_H
#define RECORD_SETTINGS_H

#include <weir/pipeline.h>

#include "options.h"
#include "video_options.h"

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
    uint32_t piece_frames;
    uint32_t sample_rate, channels; /* of audio */
    bool planar;

    /* the pipeline */
    uint32_t concurrency;
    uint32_t threads;
    uint32_t queue_items, source_queue_items, sink_queue_items;
    uint64_t queue_bytes;
    int output_order; /* weir_order */
    uint32_t epochs;
    int64_t deadline_ns;
    weir_max_failures max_failures;

    /* the statistics */
    const char *db_path;
    int64_t log_interval_ns;
    int64_t rank;
    bool all_items;
    const char *openmetrics_path;
    const char *tensorboard_dir;
    const char *trace_path;
    uint64_t trace_bytes;
    int64_t trace_last_ns; /* only when something happens, this much of the past */
    bool quiet;
    bool verbose;
} record_settings;

/* The defaults of everything except `program`, `weir`, `input_option` and the inputs. */
#define RECORD_DEFAULTS \
    { \
        .tar_glob = "*.tar*", .piece_frames = 512, .concurrency = 10, .db_path = "pipeline_stats.db", \
        .log_interval_ns = 60 * WEIR_SECOND, .trace_bytes = 256 << 20, \
    }

/* All options except those of record_settings.video (see video_rows); the offsets are those of record_settings. */
extern const option_row record_rows[];

/* "7" is a number of failures, "5%" a share of the tasks: a weir_max_failures. */
extern const option_kind record_max_failures;

#endif
