/* What the parts of the decode bench share: each is a file with one function, called by decode.c. */
#ifndef BENCH_DECODE_H
#define BENCH_DECODE_H

#include <stdbool.h>

#include <weir/video.h>

#include "bench_options.h"
#include "files.h"
#include "report.h"

enum { MAX_RUNS = 1000 };

typedef struct decode_settings {
    const char *dataset_dir;
    const char *glob;
    bench_list concurrency;
    uint32_t threads; /* of weir's pool (0 = the CPUs it may use) */
    uint32_t runs;
    uint32_t width;
    uint32_t height;
    weir_scaler_kind scaler;
    bool verify;
    bool by_class;
    bool price_list;
    bool peers;
    const char *python; /* with the peers */
    const char *script; /* that runs them */
    const char *json_path;
} decode_settings;

/* What a part runs on: the whole folder, or the files of one class. */
typedef struct decode_scope {
    const char *name; /* "h264 <= 360p"; NULL = the whole folder */
    const bench_files *files;
} decode_scope;

/* The parts print a table and add its rows to the report. 0, or -1 after a line on stderr. */

/* weir's pipeline beside the bare loop, at each concurrency of the list; then, over the whole folder, where weir's time has
   gone. */
int decode_beside_bare(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                       const bench_list *concurrency);

/* What each lossy or fast option of the stage saves in CPU time, and what it costs in fidelity. */
int decode_price_list(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                      uint32_t concurrency);

/* weir beside Python libraries: all frames, the first 16, 16 spread over the file. */
int decode_beside_peers(bench_report *report, const decode_settings *settings, const decode_scope *scope,
                        uint32_t concurrency);

/* Which class a row is of, if it is of one. */
void decode_report_scope(bench_report *report, const decode_scope *scope);

/* Shows, on a terminal, which run is on; done == all: that line goes. */
void decode_show_progress(const char *part, uint32_t round, uint32_t num_rounds, size_t done, size_t all);

#endif
