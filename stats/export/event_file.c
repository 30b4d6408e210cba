#include "event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/escape.h>

#include "tensorboard.pb-c.h"

struct weir_event_file {
    int fd;
    off_t size_bytes; /* end of the last complete record */
    double wall_time;
    int64_t step;

    uint8_t *pending; /* records that are not written yet */
    size_t pending_bytes, pending_room;
    bool lacks_memory; /* a record was lost */

    uint32_t crc_table[256]; /* immutable after open */
};

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

static uint32_t crc32c(const uint32_t table[256], const uint8_t *bytes, size_t size_bytes)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size_bytes; i++)
        crc = (crc >> 8) ^ table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}

/* Masked, as in TFRecord: a CRC of data that contains CRCs would be weak. */
static uint32_t masked_crc32c(const weir_event_file *file, const uint8_t *bytes, size_t size_bytes)
{
    uint32_t crc = crc32c(file->crc_table, bytes, size_bytes);
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

static void put_little_endian(uint8_t *to, uint64_t value, int size_bytes)
{
    for (int i = 0; i < size_bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

enum { HEAD_BYTES = 12, TAIL_BYTES = 4 };

/* Room for a record of this size after the pending ones; NULL = out of memory. */
static uint8_t *make_room(weir_event_file *file, size_t size_bytes)
{
    size_t needed = file->pending_bytes + HEAD_BYTES + size_bytes + TAIL_BYTES;
    if (needed > file->pending_room) {
        uint8_t *pending = realloc(file->pending, 2 * needed);
        if (!pending)
            return NULL;
        file->pending = pending;
        file->pending_room = 2 * needed;
    }
    return file->pending + file->pending_bytes;
}

static void write_event(weir_event_file *file, const Weir__Tensorboard__Event *event)
{
    size_t size_bytes = weir__tensorboard__event__get_packed_size(event);
    uint8_t *record = make_room(file, size_bytes);
    if (!record) {
        file->lacks_memory = true;
        return;
    }
    put_little_endian(record, size_bytes, 8);
    put_little_endian(record + 8, masked_crc32c(file, record, 8), 4);
    weir__tensorboard__event__pack(event, record + HEAD_BYTES);
    put_little_endian(record + HEAD_BYTES + size_bytes, masked_crc32c(file, record + HEAD_BYTES, size_bytes), 4);
    file->pending_bytes += HEAD_BYTES + size_bytes + TAIL_BYTES;
}

/* Freed by the caller; NULL = out of memory. */
static char *escaped(const char *text)
{
    size_t size = 4 * strlen(text) + 1;
    char *line = malloc(size);
    if (line)
        weir_text_escape(text, line, size);
    return line;
}

/* -- summaries */

/* The values of one event. The summary owns them, their tags and what they point to. */
enum { MAX_VALUES = 64 };

typedef struct summary {
    weir_event_file *file;
    char *group; /* prefix of the tags, valid UTF-8 */
    Weir__Tensorboard__Summary__Value values[MAX_VALUES];
    size_t num_values;
} summary;

/* group may be NULL: then tags have no prefix. */
static void begin_summary(summary *s, weir_event_file *file, const char *group)
{
    s->file = file;
    s->num_values = 0;
    s->group = escaped(group ? group : "");
    if (!s->group)
        file->lacks_memory = true;
}

/* The next value, or NULL: out of memory. */
static Weir__Tensorboard__Summary__Value *add_summary_value(summary *s, const char *figure)
{
    if (!s->group || s->num_values == MAX_VALUES)
        return NULL;
    size_t size = strlen(s->group) + strlen(figure) + 2;
    char *tag = malloc(size);
    if (!tag) {
        s->file->lacks_memory = true;
        return NULL;
    }
    snprintf(tag, size, "%s%s%s", s->group, s->group[0] ? "/" : "", figure);
    Weir__Tensorboard__Summary__Value *value = &s->values[s->num_values++];
    weir__tensorboard__summary__value__init(value);
    value->tag = tag;
    return value;
}

static void add_scalar(summary *s, const char *figure, double number)
{
    Weir__Tensorboard__Summary__Value *value = add_summary_value(s, figure);
    if (!value)
        return;
    value->value_case = WEIR__TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    value->simple_value = (float)number;
}

/* A bucket for each non-empty one, and an empty one before it if there is a gap. */
static void fill_histogram(Weir__Tensorboard__HistogramProto *histo, const weir_histogram *times)
{
    int64_t low_ns, high_ns, covered_ns = -1;
    for (uint32_t i = times->first; i <= times->last; i++) {
        double count = (double)times->buckets[i];
        if (times->buckets[i] == 0)
            continue;
        weir_histogram_bucket_range(i, &low_ns, &high_ns);
        if (covered_ns >= 0 && low_ns > covered_ns)
            histo->bucket_limit[histo->n_bucket_limit++] = (double)low_ns / 1e9;
        covered_ns = high_ns + 1;
        histo->bucket_limit[histo->n_bucket_limit++] = (double)covered_ns / 1e9;
        histo->bucket[histo->n_bucket_limit - 1] = count;
        double middle = ((double)low_ns + (double)high_ns) / 2e9;
        histo->sum_squares += count * middle * middle;
    }
    histo->n_bucket = histo->n_bucket_limit;
    weir_histogram_bucket_range(times->first, &low_ns, &high_ns);
    histo->min = (double)low_ns / 1e9;
    histo->max = (double)covered_ns / 1e9;
    histo->num = (double)times->count;
}

static void free_histogram(Weir__Tensorboard__HistogramProto *histo)
{
    if (histo) {
        free(histo->bucket_limit);
        free(histo->bucket);
    }
    free(histo);
}

/* The largest possible one, zeroed; NULL = out of memory. */
static Weir__Tensorboard__HistogramProto *new_histogram(const weir_histogram *times)
{
    size_t room = 2 * ((size_t)times->last - times->first + 1);
    Weir__Tensorboard__HistogramProto *histo = malloc(sizeof *histo);
    if (!histo)
        return NULL;
    weir__tensorboard__histogram_proto__init(histo);
    histo->bucket_limit = calloc(room, sizeof *histo->bucket_limit);
    histo->bucket = calloc(room, sizeof *histo->bucket);
    if (histo->bucket_limit && histo->bucket)
        return histo;
    free_histogram(histo);
    return NULL;
}

/* Adds nothing for an empty one. */
static void add_histogram(summary *s, const char *figure, const weir_histogram *times, double sum)
{
    if (times->count == 0)
        return;
    Weir__Tensorboard__HistogramProto *histo = new_histogram(times);
    Weir__Tensorboard__Summary__Value *value = histo ? add_summary_value(s, figure) : NULL;
    if (!value) {
        s->file->lacks_memory = true;
        free_histogram(histo);
        return;
    }
    fill_histogram(histo, times);
    histo->sum = sum;
    value->value_case = WEIR__TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO;
    value->histo = histo;
}

/* Writes the event and frees what the summary owns. */
static void end_summary(summary *s)
{
    Weir__Tensorboard__Summary__Value *pointers[MAX_VALUES];
    for (size_t i = 0; i < s->num_values; i++)
        pointers[i] = &s->values[i];
    Weir__Tensorboard__Summary message = WEIR__TENSORBOARD__SUMMARY__INIT;
    message.value = pointers;
    message.n_value = s->num_values;
    Weir__Tensorboard__Event event = WEIR__TENSORBOARD__EVENT__INIT;
    event.wall_time = s->file->wall_time;
    event.step = s->file->step;
    event.what_case = WEIR__TENSORBOARD__EVENT__WHAT_SUMMARY;
    event.summary = &message;
    if (s->num_values)
        write_event(s->file, &event);

    for (size_t i = 0; i < s->num_values; i++) {
        free(s->values[i].tag);
        if (s->values[i].value_case == WEIR__TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO)
            free_histogram(s->values[i].histo);
    }
    free(s->group);
}

/* -- laps */

/* A lap without successes has no times, which differs from short times: unknown values are omitted. */
static void put_lap(weir_event_file *file, const weir_lap_record *lap)
{
    weir_metric_histogram histograms[WEIR_MAX_HISTOGRAMS];
    size_t count, num_histograms = weir_subject_histograms(lap->subject, histograms);
    const weir_measure *measures = weir_subject_measures(lap->subject, &count);
    weir_metrics metrics = lap->metrics;
    const weir_total total = weir_total_of_lap(lap);
    summary s;
    begin_summary(&s, file, lap->name);
    for (size_t i = 0; i < count; i++) {
        double value = weir_total_value(&total, &measures[i]);
        if (isfinite(value))
            add_scalar(&s, measures[i].name, value);
    }
    for (size_t i = 0; i < num_histograms; i++) {
        const weir_histogram *times = *weir_metric_histogram_at(histograms[i].metric, &metrics);
        char tag[48];
        snprintf(tag, sizeof tag, "%s_histogram", histograms[i].name);
        if (times)
            add_histogram(&s, tag, times,
                          weir_measure_of(lap->subject, histograms[i].sum, &metrics, lap->elapsed_ns));
    }
    end_summary(&s);
}

void weir__event_file_scalar(weir_event_file *file, const char *tag, double value)
{
    summary s;
    begin_summary(&s, file, NULL);
    add_scalar(&s, tag, value);
    end_summary(&s);
}

/* -- text */

/* The text is Markdown. */
static void add_summary_text(weir_event_file *file, const char *tag, const char *text)
{
    summary s;
    begin_summary(&s, file, NULL);
    Weir__Tensorboard__Summary__Value *value = add_summary_value(&s, tag);

    ProtobufCBinaryData bytes = { .len = strlen(text), .data = (uint8_t *)(uintptr_t)text };
    Weir__Tensorboard__TensorShapeProto shape = WEIR__TENSORBOARD__TENSOR_SHAPE_PROTO__INIT; /* a scalar */
    Weir__Tensorboard__TensorProto tensor = WEIR__TENSORBOARD__TENSOR_PROTO__INIT;
    tensor.dtype = WEIR__TENSORBOARD__DATA_TYPE__DT_STRING;
    tensor.tensor_shape = &shape;
    tensor.string_val = &bytes;
    tensor.n_string_val = 1;
    Weir__Tensorboard__SummaryMetadata__PluginData plugin = WEIR__TENSORBOARD__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    char plugin_name[] = "text";
    plugin.plugin_name = plugin_name;
    Weir__Tensorboard__SummaryMetadata metadata = WEIR__TENSORBOARD__SUMMARY_METADATA__INIT;
    metadata.plugin_data = &plugin;
    if (value) {
        value->metadata = &metadata;
        value->value_case = WEIR__TENSORBOARD__SUMMARY__VALUE__VALUE_TENSOR;
        value->tensor = &tensor;
    }
    end_summary(&s);
}

static void write_text(weir_event_file *file, const char *tag, const char *format, ...) WEIR_PRINTF(3, 4);

/* One line of text, indented so that Markdown shows it unchanged. */
static void write_text(weir_event_file *file, const char *tag, const char *format, ...)
{
    va_list arguments;
    char *text = NULL, *line = NULL, *indented = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        text = NULL;
    else
        line = escaped(text);
    if (line && asprintf(&indented, "    %s", line) >= 0)
        add_summary_text(file, tag, indented);
    else
        file->lacks_memory = true;
    free(text);
    free(line);
    if (line)
        free(indented);
}

static void write_run(weir_event_file *file, const weir_run_record *run)
{
    write_text(file, "run", "%s (weir %s, %" PRId64 " threads, node %s, rank %" PRId32 ")", run->command,
               run->version, run->threads, run->node_id, run->rank);
}

static void put_happening(weir_event_file *file, const weir_event_record *event)
{
    write_text(file, "events", "%s%s%s%s%s", event->category, event->category[0] ? ": " : "", event->name,
               event->detail[0] ? ": " : "", event->detail);
}

static void write_failure(weir_event_file *file, const weir_failure_record *failure)
{
    write_text(file, "failures", "%s: %s%s%s (item %" PRId64 ", %s)", failure->name, failure->label,
               failure->label[0] ? ": " : "", failure->message, failure->seq, weir_status_name(failure->status));
}

int64_t weir__event_file_time_of(const weir_record *record)
{
    switch (record->kind) {
    case WEIR_RECORD_RUN: return record->run.started_unix_ns;
    case WEIR_RECORD_EVENT: return record->event.unix_ns;
    case WEIR_RECORD_FAILURE: return record->failure.unix_ns;
    default: return record->lap.end_unix_ns;
    }
}

void weir__event_file_record(weir_event_file *file, const weir_record *record, int64_t step)
{
    file->wall_time = (double)weir__event_file_time_of(record) / 1e9;
    file->step = step;
    switch (record->kind) {
    case WEIR_RECORD_RUN: write_run(file, &record->run); break;
    case WEIR_RECORD_EVENT: put_happening(file, &record->event); break;
    case WEIR_RECORD_FAILURE: write_failure(file, &record->failure); break;
    default: put_lap(file, &record->lap);
    }
}

/* -- the file */

size_t weir__event_file_pending(const weir_event_file *file)
{
    return file->pending_bytes;
}

/* Returns 0 or an errno. */
static int write_pending(weir_event_file *file)
{
    size_t written = 0;
    while (written < file->pending_bytes) {
        ssize_t got = pwrite(file->fd, file->pending + written, file->pending_bytes - written,
                             file->size_bytes + (off_t)written);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : EIO;
        written += (size_t)got;
    }
    return 0;
}

int weir__event_file_flush(weir_event_file *file)
{
    int failure = write_pending(file);
    if (!failure)
        file->size_bytes += (off_t)file->pending_bytes;
    else if (ftruncate(file->fd, file->size_bytes) != 0) {
        /* A partial record may stay in the file; readers wait for the rest, and the next flush overwrites it. */
    }
    file->pending_bytes = 0;
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
    free(file->pending);
    free(file);
    return failure;
}

int weir__event_file_open(const char *path, int64_t unix_ns, weir_event_file **file)
{
    *file = NULL;
    weir_event_file *opened = calloc(1, sizeof *opened);
    if (!opened)
        return ENOMEM;
    opened->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (opened->fd < 0) {
        int failure = errno;
        free(opened);
        return failure;
    }

    fill_crc_table(opened->crc_table);
    char version[] = "brain.Event:2";
    Weir__Tensorboard__Event event = WEIR__TENSORBOARD__EVENT__INIT;
    event.wall_time = (double)unix_ns / 1e9;
    event.what_case = WEIR__TENSORBOARD__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    write_event(opened, &event);
    int failure = weir__event_file_flush(opened);
    if (failure) {
        weir__event_file_close(opened);
        unlink(path);
        return failure;
    }
    *file = opened;
    return 0;
}
