/* The table of formats: a line for each, in the order of the help. `name` is that of the row weir__<name>_format, which the
   format's own file defines (see weir/export.h). */
#ifndef STATS_EXPORT_FORMATS_H
#define STATS_EXPORT_FORMATS_H

#include <weir/export.h>

/* clang-format off */
#define WEIR_EXPORT_FORMATS(ROW) \
    ROW(openmetrics) \
    ROW(tensorboard) \
    ROW(trace)
/* clang-format on */

#define WEIR_DECLARE_FORMAT(name) extern const weir_export_format weir__##name##_format;
WEIR_EXPORT_FORMATS(WEIR_DECLARE_FORMAT)

/* What the public functions without `weir__` do, with rules for the limit (NULL = without it). */
int weir__openmetrics_export(weir_recording *recording, const weir_filter *filter, bool by_lap,
                             const weir_limit_rules *rules, FILE *out, weir_error *error);
int weir__tensorboard_export(weir_recording *recording, const weir_filter *filter, const char *log_dir,
                             const weir_limit_rules *rules, weir_error *error);

#endif
