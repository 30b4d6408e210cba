/* The probe stage: makes an index of a file's packets, and a table of the index. A worker belongs to one slot. */
#include <weir/probe.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/clock.h>

#include "stages/config/decoder_fields.h"
#include "stages/config/input_fields.h"
#include "stages/decoder/decoder.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/probe/missing_frames.h"
#include "stages/reader/file_packets.h"
#include "stages/reader/packet_table.h"

static const AVRational nanoseconds = { 1, (int)WEIR_SECOND };

typedef struct probe_worker {
    weir_decoder decoder;
    weir_file_packets file;
    weir_ffmpeg_log log;
    weir_task *task; /* the running one */
} probe_worker;

void weir_probe_result_release(void *data, void *self)
{
    weir_probe_result *result = data;
    (void)self;
    if (!result)
        return;
    free(result->packets);
    free(result->path);
    free(result->validator);
    free(result);
}

static void probe_config_free(void *config)
{
    weir_probe_config *probe = config;
    weir__input_config_free(probe->input);
    weir__decoder_config_free(probe->decoder);
}

static int probe_config_init(void *config, weir_error *error)
{
    weir_probe_config *probe = config;
    if ((unsigned)probe->check > WEIR_PROBE_ALL)
        return weir_error_set(error, WEIR_EINVAL, 0, "check %d is none of WEIR_PROBE_…", (int)probe->check);
    int rc = weir__input_config_own(&probe->input, &probe->input_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__decoder_config_own(&probe->decoder, &probe->decoder_size, error);
    if (rc != WEIR_OK)
        weir__input_config_free(probe->input);
    weir__ffmpeg_log_install();
    return rc;
}

static bool is_probe_stopped(void *self)
{
    const probe_worker *worker = self;
    return weir_task_should_stop(worker->task);
}

static int probe_worker_init(void *self, const void *config, weir_task *task)
{
    probe_worker *worker = self;
    const weir_probe_config *probe = config;
    worker->decoder = (weir_decoder){
        .should_stop = is_probe_stopped,
        .self = worker,
        .config = probe->decoder,
        .input.config = probe->input,
    };
    worker->file = (weir_file_packets){ .decoder = &worker->decoder };
    if (weir__decoder_init(&worker->decoder) == WEIR_OK)
        return WEIR_OK;
    weir__decoder_free(&worker->decoder);
    return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
}

static void probe_worker_free(void *self)
{
    probe_worker *worker = self;
    weir__decoder_free(&worker->decoder);
}

/* Before the file is opened: if it changes meanwhile, the next build detects that. 0, or why it cannot be known. */
static int note_file(const char *path, const weir_bytes *bytes, const weir_entry *member, weir_probe_result *result)
{
    struct stat file;
    result->size_bytes = -1;
    if (member) {
        result->size_bytes = member->size_bytes;
        result->mtime_ns = member->mtime_ns;
        result->archive_length = member->archive_length;
        result->offset = member->offset;
    } else if (bytes) {
        result->size_bytes = (int64_t)bytes->size_bytes;
    } else if (stat(path, &file) == 0) {
        result->size_bytes = file.st_size;
        result->mtime_ns = file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
    } else {
        return errno;
    }
    return 0;
}

/* What the server has said, also if the file cannot be used. */
static int note_url(const weir_input *input, weir_probe_result *result)
{
    if (!input->has_version)
        return WEIR_OK;
    result->size_bytes = input->version.size_bytes;
    bool has_validator = input->version.validator[0] != '\0';
    result->validator = has_validator ? strdup(input->version.validator) : NULL;
    return has_validator && !result->validator ? weir_error_set(&result->error, WEIR_ENOMEM, 0, "out of memory")
                                               : WEIR_OK;
}

/* The version that the index has. */
static void read_known(const weir_item *in, weir_url_version *known, weir_input *input)
{
    const weir_entry *entry = strcmp(in->type, WEIR_TYPE_ENTRY) == 0 ? in->data : NULL;
    bool is_known = entry && entry->validator && strlen(entry->validator) < sizeof known->validator;
    if (!is_known)
        return;
    known->size_bytes = entry->size_bytes;
    snprintf(known->validator, sizeof known->validator, "%s", entry->validator);
    input->known = known;
}

static int64_t stream_duration(const weir_decoder *decoder, const weir_index *index)
{
    const AVStream *stream = decoder->stream;
    bool is_known;
    if (!index->distrust)
        return weir__ticks_ns(weir__index_end_ticks(index, stream, &is_known), stream->time_base);
    if (stream->duration > 0)
        return av_rescale_q(stream->duration, stream->time_base, nanoseconds);
    return decoder->format->duration > 0 ? av_rescale_q(decoder->format->duration, AV_TIME_BASE_Q, nanoseconds) : 0;
}

/* After a restart of the clock packets cannot be found by their times: a reader must count them from the beginning. */
static int describe_video(const weir_file_packets *file, bool with_packets, weir_probe_result *result)
{
    const weir_decoder *decoder = file->decoder;
    const weir_index *index = &file->index;
    snprintf(result->codec, sizeof result->codec, "%s", avcodec_get_name(decoder->stream->codecpar->codec_id));
    result->width = (uint32_t)decoder->stream->codecpar->width;
    result->height = (uint32_t)decoder->stream->codecpar->height;
    result->num_frames = index->num_frames;
    for (size_t i = 0; i < index->num_packets; i++)
        result->num_keyframes += index->packets[i].flags & WEIR_PACKET_KEY ? 1 : 0;
    result->duration_ns = stream_duration(decoder, index);
    result->num_missing = weir__missing_frames(decoder, index);
    if (!with_packets || index->distrust || file->packet_clock.num_restarts > 0)
        return WEIR_OK;
    return weir__packet_table_pack(index, decoder->stream->time_base, &result->packets, &result->packets_bytes);
}

static int read_packets(weir_file_packets *file, bool with_packets, weir_probe_result *result, weir_error *error)
{
    int rc = weir__file_packets_scan(file, error);
    if (rc == WEIR_OK)
        rc = describe_video(file, with_packets, result);
    if (rc == WEIR_OK && file->index.num_packets == 0)
        rc = weir_error_set(error, WEIR_EDATA, 0, "the video stream is empty or truncated");
    else if (rc == WEIR_ENOMEM)
        rc = weir_error_set(error, rc, 0, "out of memory");
    return rc;
}

static int decode_video(weir_file_packets *file, weir_probe_check check, weir_error *error)
{
    weir_decoder *decoder = file->decoder;
    uint64_t num_frames = 0;
    int rc = weir__file_packets_reopen(file, error);
    decoder->num_errors = 0;
    decoder->first_averror = 0;
    while (rc == WEIR_OK && (rc = weir__decoder_next(decoder, error)) == WEIR_OK)
        if (++num_frames && check == WEIR_PROBE_FIRST)
            return WEIR_OK;
    if (rc == WEIR_EOF && num_frames > 0)
        return WEIR_OK;
    return rc == WEIR_EOF ? weir_error_set(error, WEIR_EDATA, decoder->first_averror, "no frame could be decoded")
                          : rc;
}

/* Reads the file that was opened. */
static int read_file(probe_worker *worker, weir_probe_result *result)
{
    const weir_probe_config *config = weir_task_config(worker->task);
    weir_decoder *decoder = &worker->decoder;
    weir_error *error = &result->error;
    int rc = read_packets(&worker->file, !config->no_packets, result, error);
    result->num_errors = decoder->num_errors;
    if (rc == WEIR_OK && config->check != WEIR_PROBE_PACKETS) {
        decoder->input.known = NULL;
        rc = decode_video(&worker->file, config->check, error);
        result->num_errors = decoder->num_errors > result->num_errors ? decoder->num_errors : result->num_errors;
    }
    return rc;
}

static int probe_file(probe_worker *worker, const char *path, weir_probe_result *result)
{
    weir_decoder *decoder = &worker->decoder;
    weir_error *error = &result->error;
    int unknown = note_file(path, decoder->input.bytes, decoder->input.member, result);
    worker->file.path = path;
    worker->file.max_packets = UINT64_MAX;
    int rc = weir__file_packets_open(&worker->file, error);
    result->is_unchanged = rc == WEIR_SKIP;
    int noted = note_url(&decoder->input, result);
    rc = noted != WEIR_OK ? noted : rc;
    if (rc == WEIR_OK && unknown && !decoder->input.is_url)
        rc = weir_error_set(error, WEIR_EIO, -unknown, "its size and time are not known: %s", strerror(unknown));
    if (rc == WEIR_OK)
        rc = read_file(worker, result);
    weir__file_packets_reset(&worker->file);
    return rc;
}

static int probe_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    probe_worker *worker = self;
    weir_url_version known = { 0 };
    const char *path = weir__input_choose(&worker->decoder.input, in);
    const char *label = weir_task_label(task);
    weir_probe_result *result = calloc(1, sizeof *result);
    if (result)
        result->path = strdup(path);
    if (!result || !result->path) {
        weir_probe_result_free(result);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }

    worker->task = task;
    read_known(in, &known, &worker->decoder.input);
    weir__ffmpeg_log_begin(&worker->log, label[0] ? label : path, path);
    int rc = probe_file(worker, path, result);
    weir__ffmpeg_log_end();
    worker->decoder.input.known = NULL;
    if (rc == WEIR_ENOMEM || rc == WEIR_ESTOPPED) {
        (void)weir_task_fail(task, rc, result->error.library_code, "%s", result->error.message);
        weir_probe_result_free(result);
        return rc;
    }
    *out = (weir_item){
        .data = result,
        .release = weir_probe_result_release,
        .size_bytes = sizeof *result + result->packets_bytes + strlen(path) + 1,
    };
    return WEIR_OK;
}

const weir_op weir_probe = {
    .name = "probe",
    .takes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
    .makes = WEIR_TYPE_PROBE,
    .config_size = sizeof(weir_probe_config),
    .config_init = probe_config_init,
    .config_free = probe_config_free,
    .worker_size = sizeof(probe_worker),
    .worker_init = probe_worker_init,
    .run = probe_run,
    .worker_free = probe_worker_free,
};
