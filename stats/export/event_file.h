/*
 * An event file of TensorBoard: records of TFRecord (length, its checksum, bytes, their checksum; crc32c, masked) with
 * messages of tensorboard.proto. Records gather in memory and are written together: all of them or, where the disk
 * refuses, none. One thread at a time.
 */
#ifndef WEIR_EVENT_FILE_H
#define WEIR_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/histogram.h>
#include <weir/query.h>

typedef struct weir_event_file weir_event_file;

/* Makes the file at `path`, which must not exist, and writes its first record. Returns 0 or an errno; *file is NULL then. */
int weir_event_file_open(const char *path, int64_t unix_ns, weir_event_file **file);

/* When and at which step what follows was. */
void weir_event_file_at(weir_event_file *file, int64_t unix_ns, int64_t step);

/* All measures and histograms of a lap. */
void weir_event_file_lap(weir_event_file *file, const weir_lap_record *lap);

void weir_event_file_scalar(weir_event_file *file, const char *tag, double value);

/* The text is Markdown. */
void weir_event_file_text(weir_event_file *file, const char *tag, const char *text);

/* What a run was, its events and failures. */
void weir_event_file_run(weir_event_file *file, const weir_run_record *run);
void weir_event_file_event(weir_event_file *file, const weir_event_record *event);
void weir_event_file_failure(weir_event_file *file, const weir_failure_record *failure);

/* How many bytes have gathered. */
size_t weir_event_file_pending(const weir_event_file *file);

/* Writes what has gathered, or gives it up. Returns 0 or an errno, ENOMEM if anything was lost for want of memory. */
int weir_event_file_flush(weir_event_file *file);

/* Writes what is left and frees. Returns 0 or an errno. NULL is fine. */
int weir_event_file_close(weir_event_file *file);

#endif
