/* Shared by the parts of the decode bench. Each part is a file with one function, called by decode_bench.c. */
#ifndef BENCH_DECODE_DECODE_BENCH_H
#define BENCH_DECODE_DECODE_BENCH_H

#include <stdbool.h>

#include "bench/cli/bench_options.h"
#include "bench/harness/clip_files.h"
#include "bench/harness/report.h"

typedef struct decode_settings {
    const char *dataset_dir;
    const char *glob;
    bench_files files; /* found files */
    bench_list concurrency;
    uint32_t threads; /* of weir's pool (0 = the CPU budget) */
    uint32_t runs;
    uint32_t width;
    uint32_t height;
    int scaler; /* a weir_scaler_kind */
    bool verify;
    bool peers;
    const char *python; /* Python interpreter with the peers */
    const char *script; /* script that runs the peers */
    const char *json_path;
} decode_settings;

/* Each part prints a table and adds its rows to the report. Returns 0, or -1 after an error message on stderr. */

/* weir's pipeline compared with the bare loop, at each concurrency. */
int decode_versus_bare(bench_report *report, const decode_settings *settings);

/* weir compared with Python libraries: all frames, the first 16, 16 spread over the file, 16 at stride 4. */
int decode_versus_peers(bench_report *report, const decode_settings *settings, uint32_t concurrency);

#endif
