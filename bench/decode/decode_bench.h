/* What the parts of the decode bench share: each is a file with one function, called by decode_bench.c. */
#ifndef BENCH_DECODE_H
#define BENCH_DECODE_H

#include <stdbool.h>

#include "bench_options.h"
#include "files.h"
#include "report.h"

typedef struct decode_settings {
    const char *dataset_dir;
    const char *glob;
    bench_files files; /* that are there */
    bench_list concurrency;
    uint32_t threads; /* of weir's pool (0 = the CPUs it may use) */
    uint32_t runs;
    uint32_t width;
    uint32_t height;
    int scaler; /* a weir_scaler_kind */
    bool verify;
    bool price_list;
    bool peers;
    const char *python; /* with the peers */
    const char *script; /* that runs them */
    const char *json_path;
} decode_settings;

/* The parts print a table and add its rows to the report. 0, or -1 after a line on stderr. */

/* weir's pipeline compared with the bare loop, at each concurrency; then where weir's time has gone. */
int decode_beside_bare(bench_report *report, const decode_settings *settings);

/* What each lossy or fast option of the stage saves in CPU time, and what it costs in fidelity. */
int decode_price_list(bench_report *report, const decode_settings *settings, uint32_t concurrency);

/* weir compared with Python libraries: all frames, the first 16, 16 spread over the file. */
int decode_beside_peers(bench_report *report, const decode_settings *settings, uint32_t concurrency);

#endif
