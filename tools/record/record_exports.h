/* What a recording writes beside its database: the live formats of weir/export.h, each with an option of its name. */
#ifndef TOOLS_RECORD_RECORD_EXPORTS_H
#define TOOLS_RECORD_RECORD_EXPORTS_H

#include "tools/record/record_settings.h"

/* The format of record_settings.exports[index]; NULL behind the last one. */
const weir_export_format *record_export_format(size_t index);

/* The options of all formats; the offsets are those of record_settings. They live as long as the program. */
const option_row *record_export_rows(void);

/* What weir_export_open() gets: the options that were given, the presets, and the rank. */
weir_export_options record_export_options(const record_settings *settings, size_t index);

/* The path of a rank: "weir.rank3.prom", "log/rank3"; to be freed. NULL = as given: it has {rank}, which the format replaces. */
char *record_export_rank_path(size_t index, const char *path, const char *rank);

/* Whether a format that is written can be asked to write now (SIGUSR2). */
bool record_exports_take_requests(const record_settings *settings);

/* Tells the recording where the formats that say so were written, relative to the folder (NULL = not known). */
void record_exports_report(const record_settings *settings, const char *folder, weir_pipeline *pipeline);

#endif
