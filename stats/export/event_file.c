#include "stats/export/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/above_standard.h"
#include "common/text_escape.h"
#include "stats/export/trace_text.h"
#include "stats/schema/measures.h"

struct weir_event_file {
    int fd;
    off_t size_bytes; /* end of the last complete record */
    int64_t unix_ns, step;
    bool lacks_memory;       /* a record was lost */
    weir_trace_text pending; /* records that are not written yet */
    weir_trace_text summary; /* of the next record */
    uint32_t crc_table[256]; /* immutable after open */
};

/* -- protocol buffers */

enum { FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

static void put_varint(weir_trace_text *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        weir__trace_put(out, &(char){ (char)(value | 0x80) }, 1);
    weir__trace_put(out, &(char){ (char)value }, 1);
}

static void put_little_endian(weir_trace_text *out, uint64_t value, int size_bytes)
{
    for (int i = 0; i < size_bytes; i++)
        weir__trace_put(out, &(char){ (char)(value >> (8 * i)) }, 1);
}

static void put_double(weir_trace_text *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_little_endian(out, bits, sizeof bits);
}

static void put_double_field(weir_trace_text *out, unsigned field, double value)
{
    put_varint(out, field << 3 | FIXED64);
    put_double(out, value);
}

static void put_bytes_field(weir_trace_text *out, unsigned field, const char *data, size_t length)
{
    put_varint(out, field << 3 | BYTES);
    put_varint(out, length);
    weir__trace_put(out, data, length);
}

/* Adds the message as a field of another one, and frees it. */
static void end_message(weir_trace_text *out, unsigned field, weir_trace_text *message)
{
    put_bytes_field(out, field, message->data ? message->data : "", message->length);
    out->no_memory |= message->no_memory;
    weir__trace_text_free(message);
}

/* -- TFRecord */

/* CRC-32C (Castagnoli), a byte at a time. */
static void fill_crc_table(uint32_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = (table[i] >> 1) ^ (table[i] & 1 ? UINT32_C(0x82f63b78) : 0);
    }
}

/* Writes the CRC of the last bytes. It is masked: a CRC of data that contains CRCs would be weak. */
static void put_crc(weir_event_file *file, size_t size_bytes)
{
    weir_trace_text *out = &file->pending;
    uint32_t crc = UINT32_MAX;
    for (size_t i = out->length - size_bytes; i < out->length; i++)
        crc = (crc >> 8) ^ file->crc_table[(crc ^ (uint8_t)out->data[i]) & 0xff];
    crc = ~crc;
    put_little_endian(out, ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8), 4);
}

/* What is missing for lack of memory is left out as a whole. */
static void end_record(weir_event_file *file, weir_trace_text *event)
{
    weir_trace_text *out = &file->pending;
    size_t start = out->length;
    put_little_endian(out, event->length, 8);
    if (!out->no_memory)
        put_crc(file, 8);
    weir__trace_put(out, event->data, event->length);
    if (!out->no_memory)
        put_crc(file, event->length);
    if (out->no_memory || event->no_memory) {
        out->length = start;
        file->lacks_memory = true;
    }
    out->no_memory = false;
    weir__trace_text_free(event);
}

/* -- values */

/* The tag, valid UTF-8: "GROUP/FIGURE". */
static weir_trace_text begin_value(const char *group, const char *figure)
{
    weir_trace_text value = { 0 };
    char tag[1024], escaped[4 * sizeof tag];
    snprintf(tag, sizeof tag, "%s%s%s", group, *group ? "/" : "", figure);
    weir__text_escape(tag, escaped, sizeof escaped);
    put_bytes_field(&value, 1, escaped, strlen(escaped));
    return value;
}

static void put_description(weir_trace_text *value, const char *description)
{
    weir_trace_text metadata = { 0 }, plugin = { 0 };
    static const char scalars[] = "scalars";
    put_bytes_field(&plugin, 1, scalars, sizeof scalars - 1);
    end_message(&metadata, 1, &plugin);
    put_bytes_field(&metadata, 3, description, strlen(description));
    end_message(value, 9, &metadata);
}

static void add_scalar(weir_event_file *file, const char *group, const char *figure, double number,
                       const char *description)
{
    weir_trace_text value = begin_value(group, figure);
    float rounded = (float)number;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    put_varint(&value, 2 << 3 | FIXED32);
    put_little_endian(&value, bits, sizeof bits);
    if (description)
        put_description(&value, description);
    end_message(&file->summary, 1, &value);
}

/* A bucket for each non-empty one, and an empty one before it if there is a gap. */
static void add_histogram(weir_event_file *file, const char *group, const char *figure, const weir_histogram *times,
                          double sum)
{
    weir_trace_text value = begin_value(group, figure), histogram = { 0 }, limits = { 0 }, counts = { 0 };
    int64_t low_ns, high_ns, covered_ns = -1;
    double sum_squares = 0;
    for (uint32_t i = times->first; i <= times->last; i++) {
        double count = (double)times->buckets[i];
        if (times->buckets[i] == 0)
            continue;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        if (covered_ns >= 0 && low_ns > covered_ns) {
            put_double(&limits, (double)low_ns / 1e9);
            put_double(&counts, 0);
        }
        covered_ns = high_ns + 1;
        put_double(&limits, (double)covered_ns / 1e9);
        put_double(&counts, count);
        double middle = ((double)low_ns + (double)high_ns) / 2e9;
        sum_squares += count * middle * middle;
    }
    weir_histogram_bucket_range(times->first, &low_ns, &high_ns);
    const double sums[] = { (double)low_ns / 1e9, (double)covered_ns / 1e9, (double)times->count, sum, sum_squares };
    for (unsigned i = 0; i < 5; i++)
        put_double_field(&histogram, i + 1, sums[i]);
    end_message(&histogram, 6, &limits);
    end_message(&histogram, 7, &counts);
    end_message(&value, 5, &histogram);
    end_message(&file->summary, 1, &value);
}

/* Writes the values as an event. */
static void end_summary(weir_event_file *file)
{
    weir_trace_text event = { 0 };
    put_double_field(&event, 1, (double)file->unix_ns / 1e9);
    put_varint(&event, 2 << 3);
    put_varint(&event, (uint64_t)file->step);
    end_message(&event, 5, &file->summary);
    end_record(file, &event);
}

/* A lap without successes has no times, which differs from short times: unknown values are omitted. */
void weir__event_file_lap(weir_event_file *file, const weir_lap_record *lap, int64_t step)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count, num_histograms = weir__subject_histograms(lap->subject, histograms);
    const weir_measure *measures = weir_subject_measures(lap->subject, &count);
    weir_metrics metrics = lap->metrics;
    const weir_total total = weir_total_of_lap(lap);
    file->unix_ns = lap->end_unix_ns;
    file->step = step;
    for (size_t i = 0; i < count; i++) {
        double value = weir_total_value(&total, &measures[i]);
        if (isfinite(value))
            add_scalar(file, lap->name, measures[i].name, value, NULL);
    }
    for (size_t i = 0; i < num_histograms; i++) {
        const weir_histogram *times = *weir__metric_histogram_at(histograms[i].metric, &metrics);
        char figure[48];
        snprintf(figure, sizeof figure, "%s_histogram", histograms[i].name);
        if (times && times->count)
            add_histogram(file, lap->name, figure, times,
                          weir_measure_of(lap->subject, histograms[i].sum, &metrics, lap->elapsed_ns));
    }
    end_summary(file);
}

void weir__event_file_scalar(weir_event_file *file, const char *tag, double value, const char *description)
{
    add_scalar(file, "", tag, value, description);
    end_summary(file);
}

/* -- the file */

size_t weir__event_file_pending(const weir_event_file *file)
{
    return file->pending.length;
}

int weir__event_file_flush(weir_event_file *file)
{
    int failure = weir__trace_text_write(&file->pending, file->fd, file->size_bytes);
    if (!failure)
        file->size_bytes += (off_t)file->pending.length;
    else if (ftruncate(file->fd, file->size_bytes) != 0) {
        /* A partial record may stay in the file; readers wait for the rest, and the next flush overwrites it. */
    }
    file->pending.length = 0;
    if (!failure && file->lacks_memory)
        failure = ENOMEM;
    file->lacks_memory = false;
    return failure;
}

int weir__event_file_close(weir_event_file *file)
{
    if (!file)
        return 0;
    int failure = weir__event_file_flush(file);
    if (close(file->fd) != 0 && !failure)
        failure = errno;
    weir__trace_text_free(&file->pending);
    weir__trace_text_free(&file->summary);
    free(file);
    return failure;
}

int weir__event_file_open(const char *path, int64_t unix_ns, weir_event_file **file)
{
    static const char version[] = "brain.Event:2";
    *file = NULL;
    weir_event_file *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ENOMEM;
    opened->fd = weir__above_standard(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (opened->fd < 0) {
        int failure = errno;
        free(opened);
        return failure;
    }
    fill_crc_table(opened->crc_table);
    weir_trace_text event = { 0 };
    put_double_field(&event, 1, (double)unix_ns / 1e9);
    put_bytes_field(&event, 3, version, sizeof version - 1);
    end_record(opened, &event);
    int failure = weir__event_file_flush(opened);
    if (failure) {
        weir__event_file_close(opened);
        unlink(path);
        return failure;
    }
    *file = opened;
    return 0;
}
