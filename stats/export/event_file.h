/*
 * An event file of TensorBoard: records of TFRecord (length, its checksum, bytes, their checksum; crc32c, masked) with
 * protocol buffers: Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; },
 * Summary { repeated Value { string tag = 1; float simple_value = 2; HistogramProto histo = 5;
 * SummaryMetadata metadata = 9; } value = 1; }, SummaryMetadata { PluginData { string plugin_name = 1; } plugin_data = 1;
 * string summary_description = 3; },
 * HistogramProto { double min = 1, max = 2, num = 3, sum = 4, sum_squares = 5; repeated double bucket_limit = 6,
 * bucket = 7; }. Records are buffered in memory and written together: all of them or, if writing fails, none. One thread
 * at a time.
 */
#ifndef STATS_EXPORT_EVENT_FILE_H
#define STATS_EXPORT_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/query.h>

typedef struct weir_event_file weir_event_file;

/* Creates the file at `path`, which must not exist, and writes its first record. Returns 0, or an errno with *file
   NULL. */
int weir__event_file_open(const char *path, int64_t unix_ns, weir_event_file **file);

/* All measures and histograms of a lap. */
void weir__event_file_lap(weir_event_file *file, const weir_lap_record *lap, int64_t step);

/* With the time and step of the last lap. description: what TensorBoard shows beside it (NULL = none). */
void weir__event_file_scalar(weir_event_file *file, const char *tag, double value, const char *description);

/* The number of buffered bytes. */
size_t weir__event_file_pending(const weir_event_file *file);

/* Writes the buffered records, or drops them. Returns 0 or an errno; ENOMEM if memory ran out and records were lost. */
int weir__event_file_flush(weir_event_file *file);

/* Writes the rest and frees. Returns 0 or an errno. NULL is fine. */
int weir__event_file_close(weir_event_file *file);

#endif
