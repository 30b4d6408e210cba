/* Command lines of the benches; they use the option reader of all programs (see options.h). */
#ifndef BENCH_CLI_BENCH_OPTIONS_H
#define BENCH_CLI_BENCH_OPTIONS_H

#include "tools/cli/options.h"

enum { BENCH_MAX_LIST = 16 };

/* "1,2,4,10"; num_values 0 = not given */
typedef struct bench_list {
    uint32_t values[BENCH_MAX_LIST];
    size_t num_values;
} bench_list;

extern const option_kind bench_counts;  /* bench_list, of counts from 1 */
extern const option_kind bench_numbers; /* bench_list, of numbers from 0 */

typedef enum bench_parsed { BENCH_RUN, BENCH_HELP_SHOWN, BENCH_USAGE_ERROR } bench_parsed;

/* Reads the option sets, at most two, and --help and --json FILE (*json_path), which every bench has. `usage`
   follows "weir-bench" in the first line of the help. Errors are reported on stderr. */
bench_parsed bench_parse(int argc, char **argv, const option_set *sets, size_t num_sets, const char **json_path,
                         const char *usage);

/* Prints one line to stderr. Returns the exit status 2. */
int bench_refuse(const char *what, const char *why);

#endif
