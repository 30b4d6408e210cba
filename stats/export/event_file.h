/*
 * An event file of TensorBoard: records of TFRecord (length, its checksum, bytes, their checksum; crc32c, masked)
 * with messages of tensorboard.proto. Records are buffered in memory and written together: all of them or, if writing
 * fails, none. One thread at a time.
 */
#ifndef STATS_EXPORT_EVENT_FILE_H
#define STATS_EXPORT_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/histogram.h>
#include <weir/query.h>

typedef struct weir_event_file weir_event_file;

/* Creates the file at `path`, which must not exist, and writes its first record. Returns 0, or an errno with *file
   NULL. */
int weir__event_file_open(const char *path, int64_t unix_ns, weir_event_file **file);

/* A lap (all measures and histograms), a run (its description), an event or a failure, with its time. */
void weir__event_file_record(weir_event_file *file, const weir_record *record, int64_t step);

/* The time that it is written with. */
int64_t weir__event_file_time_of(const weir_record *record);

/* With the time and step of the last record. */
void weir__event_file_scalar(weir_event_file *file, const char *tag, double value);

/* The number of buffered bytes. */
size_t weir__event_file_pending(const weir_event_file *file);

/* Writes the buffered records, or drops them. Returns 0 or an errno; ENOMEM if memory ran out and records were lost. */
int weir__event_file_flush(weir_event_file *file);

/* Writes the rest and frees. Returns 0 or an errno. NULL is fine. */
int weir__event_file_close(weir_event_file *file);

#endif
