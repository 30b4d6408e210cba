/* Opening paths, URLs and memory: weir opens the file, checks its format, and lets FFmpeg read from the open file. */
#include "stages/ffmpeg/input.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/avstring.h>
#include <libavutil/opt.h>

#include <weir/clock.h>

#include "common/redact.h"
#include "stages/ffmpeg/ffmpeg_log.h"
#include "stages/memory/copies.h"
#include "stages/memory/growing_bytes.h"

enum { AVIO_BUFFER_BYTES = 32 << 10 };

static weir_bytes *bytes_of(const weir_item *item)
{
    return strcmp(item->type, WEIR_TYPE_BYTES) == 0 ? item->data : NULL;
}

static weir_entry *entry_of(const weir_item *item)
{
    return strcmp(item->type, WEIR_TYPE_ENTRY) == 0 ? item->data : NULL;
}

const char *weir__input_choose(weir_input *input, const weir_item *item)
{
    const weir_entry *entry = entry_of(item);
    weir__input_forget(input);
    input->known = NULL;
    input->has_version = false;
    input->bytes = bytes_of(item);
    input->member = entry && entry->archive_length ? entry : NULL;
    if (entry)
        return entry->path;
    if (!input->bytes)
        return item->data;
    return input->bytes->name ? input->bytes->name : "(memory)";
}

static int give_sidecars(weir_item *item, bool is_last, weir_bytes **sidecars)
{
    weir_bytes *bytes = bytes_of(item);
    *sidecars = bytes && bytes->next && !is_last ? weir__bytes_copy(bytes->next) : bytes ? bytes->next : NULL;
    if (bytes && is_last)
        bytes->next = NULL;
    return *sidecars || !bytes || !bytes->next ? WEIR_OK : WEIR_ENOMEM;
}

static int give_entry(weir_item *item, bool is_last, weir_entry **entry)
{
    weir_entry *given = entry_of(item);
    *entry = NULL;
    if (!given)
        return WEIR_OK;
    if (!is_last || item->release != weir_entry_release) { /* a replayed item has other holders */
        *entry = weir__entry_copy(given);
        return *entry ? WEIR_OK : WEIR_ENOMEM;
    }
    free(given->packets); /* no longer needed */
    given->packets = NULL;
    given->packets_bytes = 0;
    *entry = given;
    item->data = NULL;
    item->release = NULL;
    return WEIR_OK;
}

int weir__input_give(weir_item *item, bool is_last, weir_entry **entry, weir_bytes **sidecars, size_t *memory_bytes)
{
    int rc = give_sidecars(item, is_last, sidecars);
    if (rc == WEIR_OK)
        rc = give_entry(item, is_last, entry);
    *memory_bytes += weir_bytes_memory(*sidecars) + weir_entry_memory(*entry);
    return rc;
}

static bool stat_entry(const weir_entry *entry, struct stat *file)
{
    if (!entry->archive_length)
        return stat(entry->path, file) == 0;
    char *path = strndup(entry->path, entry->archive_length);
    bool is_there = path && stat(path, file) == 0;
    free(path);
    return is_there;
}

int weir__input_check(const weir_item *item, const weir_entry **known, weir_error *error)
{
    const weir_entry *entry = entry_of(item);
    struct stat file;
    *known = entry;
    if (!entry || entry->size_bytes < 0 || !stat_entry(entry, &file)) /* opening will report why */
        return WEIR_OK;
    int64_t mtime_ns = file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
    bool has_size =
        entry->archive_length ? entry->size_bytes <= file.st_size - entry->offset : entry->size_bytes == file.st_size;
    if (has_size && (entry->mtime_ns == 0 || mtime_ns == entry->mtime_ns))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, 0, "the file has changed since it was indexed: run weir index again");
}

int weir__input_check_whole(const weir_item *item, weir_error *error)
{
    const weir_entry *entry;
    int rc = weir__input_check(item, &entry, error);
    if (rc != WEIR_OK || !entry || weir_clip_window_is_whole(&entry->window))
        return rc;
    return weir_error_set(
        error, WEIR_EUNSUPPORTED, 0,
        "the clip is a window of its file (start, end), which only video stages without sound decode");
}

static int fail_input_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

static int memory_read(void *self, uint8_t *to, int max_bytes)
{
    weir_input *input = self;
    size_t left_bytes = input->bytes->size_bytes - input->position;
    size_t num_bytes = left_bytes < (size_t)max_bytes ? left_bytes : (size_t)max_bytes;
    if (num_bytes == 0)
        return AVERROR_EOF;
    memcpy(to, input->bytes->data + input->position, num_bytes);
    input->position += num_bytes;
    return (int)num_bytes;
}

static int64_t memory_seek(void *self, int64_t offset, int whence)
{
    weir_input *input = self;
    int64_t size_bytes = (int64_t)input->bytes->size_bytes;
    int64_t from;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return size_bytes;
    case SEEK_SET: from = 0; break;
    case SEEK_CUR: from = (int64_t)input->position; break;
    case SEEK_END: from = size_bytes; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < -from || offset > size_bytes - from)
        return AVERROR(EINVAL);
    input->position = (size_t)(from + offset);
    return (int64_t)input->position;
}

/* ---- paths ---------------------------------------------------------------------------------------------------- */

/* The protocol of a URL, or "". */
static void get_protocol(const char *path, char *protocol, size_t size_bytes)
{
    size_t length = 0;
    while (isalnum((unsigned char)path[length]) || (path[length] && strchr("+-.", path[length])))
        length++;
    bool is_url = length > 0 && path[length] == ':' && isalpha((unsigned char)path[0]);
    snprintf(protocol, size_bytes, "%.*s", is_url ? (int)FFMIN(length, size_bytes - 1) : 0, path);
}

/* The descriptor in "pipe:", "pipe:3" or "fd:"; -1 = the path is not one of these. */
static int descriptor_of(const char *path, const char *protocol)
{
    bool is_pipe = strcmp(protocol, "pipe") == 0 || strcmp(protocol, "fd") == 0;
    return is_pipe ? (int)strtoul(path + strlen(protocol) + 1, NULL, 10) : -1;
}

static int fail_open(int averror, weir_error *error)
{
    if (averror == AVERROR_EOF)
        return weir_error_set(error, WEIR_EDATA, averror, "cannot open: the file is empty or ends within its header");
    return weir__ffmpeg_error(error, averror, "cannot open");
}

static int fail_protocol(const char *path, const char *protocol, weir_error *error)
{
    const char *name = avio_find_protocol_name(path); /* returns "file" for an unknown protocol */
    bool is_known = (name && strcmp(name, "file") != 0) || av_find_input_format(protocol); /* as rtsp */
    if (is_known)
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_PROTOCOL_NOT_FOUND,
                              "cannot open: protocol %s is none of %s", protocol, weir__input_protocols);
    if (weir__is_url(path))
        return weir_error_set(error, WEIR_EUNSUPPORTED, AVERROR_PROTOCOL_NOT_FOUND,
                              "cannot open: unknown protocol %s", protocol);
    return weir__ffmpeg_error(error, AVERROR(ENOENT), "cannot open");
}

/* Opens a local file in input->file. WEIR_SKIP: the path is a URL. */
static int open_path(weir_input *input, const char *path, AVIOInterruptCB interrupt, weir_error *error)
{
    char protocol[32];
    weir_error failure = { 0 };
    bool allows_pipes = input->config->allow & WEIR_ALLOW_PIPES;
    if (input->file.is_open)
        return WEIR_OK;
    int rc = weir__local_file_open(&input->file, &input->host, path, -1, allows_pipes, interrupt, &failure);
    get_protocol(path, protocol, sizeof protocol);
    if (!input->file.is_open && protocol[0]) { /* a file name may contain a colon */
        int descriptor = descriptor_of(path, protocol);
        bool is_file = strcmp(protocol, "file") == 0;
        if (descriptor < 0 && !is_file)
            return WEIR_SKIP;
        if (descriptor >= 0 && !allows_pipes)
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%s is refused unless WEIR_ALLOW_PIPES is set", path);
        failure = (weir_error){ 0 };
        rc = weir__local_file_open(&input->file, &input->host, is_file ? path + strlen("file:") : NULL, descriptor,
                                   allows_pipes, interrupt, &failure);
    }
    return rc == WEIR_OK ? rc : weir_error_set(error, rc, failure.library_code, "%s", failure.message);
}

bool weir__input_pass(weir_local_file *file, weir_local_host *host, const weir_item *item, AVIOInterruptCB interrupt,
                      char **path)
{
    weir_input input = { 0 };
    char protocol[32];
    weir_error ignored = { 0 }; /* the other process says it */
    const char *name = weir__input_choose(&input, item);
    *file = (weir_local_file){ .fd = AVERROR(ENOENT) };
    *path = input.bytes ? NULL : strndup(name, input.member ? input.member->archive_length : strlen(name));
    if (!*path)
        return false;
    get_protocol(*path, protocol, sizeof protocol);
    weir__local_file_open(file, host, *path, -1, true, interrupt, &ignored);
    if (file->is_open || !protocol[0])
        return false;
    if (strcmp(protocol, "file") != 0)
        return descriptor_of(*path, protocol) < 0;
    memmove(*path, *path + strlen("file:"), strlen(*path + strlen("file:")) + 1);
    weir__local_file_open(file, host, *path, -1, true, interrupt, &ignored);
    return false;
}

static int open_member(weir_input *input, AVIOInterruptCB interrupt, weir_error *error)
{
    const weir_entry *member = input->member;
    char *path = strndup(member->path, member->archive_length);
    int rc = path ? weir__local_file_open(&input->file, &input->host, path, -1, false, interrupt, error)
                  : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    free(path);
    if (rc == WEIR_OK && member->size_bytes <= 0)
        rc = weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "cannot open: the file is empty");
    input->file.offset = member->offset;
    input->file.length = member->size_bytes;
    return rc;
}

/* The same, but reuses the kept descriptor, or keeps it from now on. */
static int open_local(weir_input *input, const char *path, AVIOInterruptCB interrupt, weir_error *error)
{
    if (input->kept.is_open) {
        input->file = input->kept;
        input->file.position = 0;
        return WEIR_OK;
    }
    int rc = open_path(input, path, interrupt, error);
    if (rc != WEIR_OK || !input->file.is_pipe)
        return rc;
    if (!input->is_read_again && !weir__local_file_wants_seeking(&input->file))
        return rc;
    rc = weir__local_file_keep(&input->file, input->config->max_pipe_bytes, error);
    if (rc == WEIR_OK && input->is_read_again)
        input->kept = input->file;
    return rc;
}

/* For an empty file FFmpeg guesses the format from the name, and then complains about a missing header. */
static int check_empty(weir_local_file *file, weir_error *error)
{
    if (file->is_pipe || weir__local_file_seek(file, 0, AVSEEK_SIZE) != 0)
        return WEIR_OK;
    return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "cannot open: the file is empty");
}

/* ---- URLs ----------------------------------------------------------------------------------------------------- */

/*
 * FFmpeg's own timeout is for one read from the network: headers that never end restart it each time. FFmpeg calls this
 * function all the time while it waits; time between two reads is not counted.
 */
static int watch_url(void *self)
{
    enum { LONGEST_PAUSE_NS = 200000000 }; /* between two questions; FFmpeg's is 100 ms */
    weir_input *input = self;
    int64_t received_bytes = input->avio ? input->avio->bytes_read : 0;
    int64_t now_ns = weir_clock_ns();
    if (input->interrupt.callback && input->interrupt.callback(input->interrupt.opaque))
        return 1;
    if (received_bytes != input->received_bytes)
        input->silent_ns = 0;
    else
        input->silent_ns += FFMIN(now_ns - input->asked_ns, LONGEST_PAUSE_NS);
    input->asked_ns = now_ns;
    input->received_bytes = received_bytes;
    input->is_silent |= input->config->io_timeout_ns > 0 && input->silent_ns > input->config->io_timeout_ns;
    return input->is_silent;
}

/* ---- refused certificates ------------------------------------------------------------------------------------- */

/* The host of a URL, with its port; cut to the size. */
static void get_host(const char *url, char *host, size_t size_bytes)
{
    char *shown = av_strdup(url);
    weir__address_redact(shown);
    const char *start = shown ? strchr(shown, ':') : NULL;
    start = start ? start + 1 + strspn(start + 1, "/\\") : "";
    int length = (int)strcspn(start, "/?#\\");
    const char *user_end = memrchr(start, '@', (size_t)length);
    int left_out = user_end ? (int)(user_end + 1 - start) : 0;
    snprintf(host, size_bytes, "%.*s", length - left_out, start + left_out);
    av_free(shown);
}

/* WEIR_OK: that was not the reason. */
static int refuse_url(const char *url, weir_error *error)
{
    const char *reason = weir__ffmpeg_log_reason();
    char host[256];
    if (!strstr(reason, "ertificate"))
        return WEIR_OK;
    get_host(url, host, sizeof host);
    return weir_error_set(
        error, WEIR_EACCESS, AVERROR(EIO),
        "the certificate of %s, or of a host that it refers to, is not trusted: %s; %s--ca-file "
        "(ca_file) or --insecure (WEIR_ALLOW_INSECURE)",
        host, reason,
        weir_certificates_find() ? "" : "this system has no certificates (install ca-certificates), so ");
}

/* ---- opening URLs --------------------------------------------------------------------------------------------- */

/* FFmpeg's option for the timeout of one read or write, which its protocols pass on to each other. */
static int set_timeout(const weir_input *input, AVDictionary **options)
{
    enum { NS_PER_US = 1000 };
    if (input->config->io_timeout_ns <= 0)
        return 0;
    return av_dict_set_int(options, "rw_timeout", FFMAX(input->config->io_timeout_ns / NS_PER_US, 1), 0);
}

/* FFmpeg 5 says nothing; from 6.1 on it connects to the host of file:///x, which is none; from 9 on it names its list. */
static bool is_bad_redirection(const char *url, int averror)
{
    const char *reason = weir__ffmpeg_log_reason();
    bool is_invalid = averror == AVERROR(EINVAL) && (!*reason || strstr(reason, "not on whitelist"));
    return strncmp(url, "http", 4) == 0 && (is_invalid || strstr(reason, "tcp://:"));
}

static int fail_url(const weir_input *input, const char *url, int averror, weir_error *error)
{
    if (averror == AVERROR(ETIMEDOUT) || input->is_silent)
        return weir_error_set(error, WEIR_ETIMEDOUT, AVERROR(ETIMEDOUT),
                              "no data for %.3g s; if it needs longer, raise io_timeout_ns",
                              (double)input->config->io_timeout_ns / 1e9);
    if (is_bad_redirection(url, averror))
        return weir_error_set(error, WEIR_EUNSUPPORTED, averror,
                              "cannot open: it is redirected to a URL that is not of http or https, or is not valid");
    int rc = refuse_url(url, error);
    return rc == WEIR_OK ? fail_open(averror, error) : rc;
}

/* WEIR_SKIP: it is the known one. */
static int note_version(weir_input *input)
{
    weir_url_version version = { .size_bytes = FFMAX(avio_size(input->avio), -1) };
    snprintf(version.validator, sizeof version.validator, "%s", weir__ffmpeg_log_validator());
    if (!input->has_version)
        input->version = version;
    input->has_version = true;
    bool is_known = input->known && version.validator[0] && version.size_bytes == input->known->size_bytes &&
                    strcmp(version.validator, input->known->validator) == 0;
    return is_known ? WEIR_SKIP : WEIR_OK;
}

static int open_url(weir_input *input, const char *path, AVIOInterruptCB interrupt, weir_error *error)
{
    char protocol[32];
    AVDictionary *options = NULL;
    get_protocol(path, protocol, sizeof protocol);
    if (!av_match_name(protocol, weir__input_protocols))
        return fail_protocol(path, protocol, error);
    int status = weir__input_check_protocol(input->config, protocol, error);
    if (status != WEIR_OK)
        return status;
    input->interrupt = interrupt;
    input->asked_ns = weir_clock_ns();
    int rc = set_timeout(input, &options);
    if (rc >= 0)
        rc = weir__input_set_certificates(input->config, &options);
    if (rc >= 0)
        rc = av_dict_set(&options, "protocol_whitelist", weir__input_protocols, 0); /* also for redirections */
    if (rc >= 0)
        rc = avio_open2(&input->avio, path, AVIO_FLAG_READ,
                        &(AVIOInterruptCB){ .callback = watch_url, .opaque = input }, &options);
    av_dict_free(&options);
    input->is_url = rc >= 0;
    return rc < 0 ? fail_url(input, path, rc, error) : note_version(input);
}

int weir__input_error(const weir_input *input, int averror)
{
    uint8_t *version = NULL;
    if (averror < 0 && input->is_silent)
        return AVERROR(ETIMEDOUT);
    if (averror != AVERROR(EIO) || !input->is_url || avio_size(input->avio) >= 0)
        return averror;
    int rc = av_opt_get(input->avio, "http_version", AV_OPT_SEARCH_CHILDREN, &version);
    bool is_end = rc >= 0 && version && strcmp((const char *)version, "1.0") == 0;
    av_free(version);
    return is_end ? AVERROR_EOF : averror;
}

/* ---- the bytes ------------------------------------------------------------------------------------------------ */

static int make_avio(weir_input *input, weir_error *error)
{
    uint8_t *buffer = av_malloc(AVIO_BUFFER_BYTES);
    input->position = 0;
    if (buffer && input->bytes)
        input->avio = avio_alloc_context(buffer, AVIO_BUFFER_BYTES, 0, input, memory_read, NULL, memory_seek);
    else if (buffer && input->user)
        input->avio = avio_alloc_context(buffer, AVIO_BUFFER_BYTES, 0, input->user, weir__user_file_read, NULL,
                                         weir__user_file_seek);
    else if (buffer)
        input->avio = avio_alloc_context(buffer, AVIO_BUFFER_BYTES, 0, &input->file, weir__local_file_read, NULL,
                                         input->file.is_pipe ? NULL : weir__local_file_seek);
    if (input->avio)
        return WEIR_OK;
    av_free(buffer);
    return fail_input_memory(error);
}

static int open_stored(weir_input *input, const char *path, AVIOInterruptCB interrupt, weir_error *error)
{
    int rc = input->member ? open_member(input, interrupt, error) : open_local(input, path, interrupt, error);
    return rc == WEIR_OK ? check_empty(&input->file, error) : rc;
}

/* Opens a path, URL, memory or the program's file as input->avio. */
static int open_bytes(weir_input *input, const char *path, AVIOInterruptCB interrupt, weir_error *error)
{
    if (input->bytes && input->bytes->size_bytes == 0)
        return weir_error_set(error, WEIR_EDATA, AVERROR_EOF, "cannot open: the file is empty");
    int rc = input->bytes  ? WEIR_OK
             : input->user ? weir__user_file_rewind(input->user, error)
                           : open_stored(input, path, interrupt, error);
    if (rc == WEIR_SKIP)
        return open_url(input, path, interrupt, error);
    return rc == WEIR_OK ? make_avio(input, error) : rc;
}

int weir__input_user_failure(const weir_input *input, weir_error *error)
{
    return input->user ? weir__user_file_failure(input->user, error) : WEIR_OK;
}

void weir__input_close(weir_input *input)
{
    if (input->is_url) {
        AVIOContext *avio = input->avio;
        input->avio = NULL; /* FFmpeg frees it before it closes the connection, and asks watch_url() meanwhile */
        avio_close(avio);
    } else if (input->avio) {
        av_freep(&input->avio->buffer);
        avio_context_free(&input->avio);
    }
    if (!input->kept.is_open)
        weir__local_file_close(&input->file);
    input->file = (weir_local_file){ 0 };
    input->is_url = false;
    input->is_silent = false;
    input->received_bytes = 0;
    input->silent_ns = 0;
}

void weir__input_forget(weir_input *input)
{
    weir__local_file_close(&input->kept);
}

void weir__input_free(weir_input *input)
{
    weir__input_close(input);
    weir__input_forget(input);
    weir__local_host_free(&input->host);
}

/* ---- the container -------------------------------------------------------------------------------------------- */

static int refuse_other_file(AVFormatContext *format, AVIOContext **avio, const char *url, int flags,
                             AVDictionary **options)
{
    (void)flags;
    (void)options;
    av_log(format, AV_LOG_ERROR, "the file refers to another file, which is not opened: %s\n", url);
    *avio = NULL;
    return AVERROR(EPERM);
}

/* Only the extension is a hint to the format; the rest of the name could be a pattern. */
static void get_hint(const char *path, char *hint, size_t size_bytes)
{
    const char *dot = strrchr(path, '.');
    const char *end = dot ? dot + 1 : "";
    size_t length = 0;
    while (isalnum((unsigned char)end[length]))
        length++;
    bool is_fit = length > 0 && length < size_bytes - strlen("x.") && (!end[length] || end[length] == '?');
    snprintf(hint, size_bytes, "x%s%.*s", is_fit ? "." : "", is_fit ? (int)length : 0, end);
}

/* "x.tar" or "x.tar.gz" */
static bool is_archive_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *end = strstr(slash ? slash : path, ".tar");
    end = end ? end + strlen(".tar") : "x";
    return *end == '\0' || *end == '.';
}

static int fail_container(const weir_input *input, const char *path, int averror, weir_error *error)
{
    bool is_file = !input->bytes && !input->member && !input->user;
    int rc = weir__input_user_failure(input, error);
    if (rc != WEIR_OK)
        return rc;
    if (is_file && averror == AVERROR_INVALIDDATA && is_archive_name(path))
        return weir_error_set(error, WEIR_EDATA, averror,
                              "cannot open: unknown format; for a tar archive use weir_tar_read, or --tar of weir "
                              "record and weir index");
    return input->is_url ? fail_url(input, path, averror, error) : fail_open(averror, error);
}

static int choose_format(const weir_input *input, AVFormatContext *format, const char *path, const char *hint,
                         const AVInputFormat **kind, weir_error *error)
{
    int rc = av_probe_input_buffer2(input->avio, kind, hint, format, 0, 0);
    if (rc >= 0 &&
        strcmp((*kind)->name, "image2") == 0) { /* chosen by the extension; it would open the name as a pattern */
        *kind = av_find_input_format("image2pipe");
        rc = *kind ? rc : AVERROR_DEMUXER_NOT_FOUND;
    }
    if (rc < 0)
        return fail_container(input, path, rc, error);
    if (strcmp((*kind)->name, "jpeg_pipe") == 0 && av_match_ext(hint, "mjpg,mjpeg")) { /* many pictures */
        const AVInputFormat *video = av_find_input_format("mjpeg");
        *kind = video ? video : *kind;
    }
    bool is_stored = !input->is_url && !input->file.is_pipe;
    if (strcmp((*kind)->name, "mjpeg") == 0 && is_stored && !av_match_ext(hint, "mjpg,mjpeg")) {
        const AVInputFormat *picture = av_find_input_format("jpeg_pipe"); /* followed by a gain map or similar */
        *kind = picture ? picture : *kind;
    }
    if (weir__input_refers_to_files(*kind))
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "a list of other files (%s) is not read; make one file of it: ffmpeg -i LIST -c copy "
                              "FILE.mkv",
                              (*kind)->name);
    return WEIR_OK;
}

static int demux_container(weir_input *input, const char *path, AVFormatContext **format, weir_error *error)
{
    char hint[32];
    const AVInputFormat *kind = NULL;
    AVIOInterruptCB interrupt = (*format)->interrupt_callback;
    (*format)->io_open = refuse_other_file;
    int rc = open_bytes(input, path, interrupt, error);
    if (rc != WEIR_OK)
        return rc;
    (*format)->pb = input->avio;
    (*format)->flags |= AVFMT_FLAG_CUSTOM_IO; /* FFmpeg must not close it */
    get_hint(path, hint, sizeof hint);
    rc = choose_format(input, *format, path, hint, &kind, error);
    if (rc != WEIR_OK)
        return rc;
    int averror = avformat_open_input(format, hint, kind, NULL); /* frees `format` on failure */
    return averror < 0 ? fail_container(input, path, averror, error) : WEIR_OK;
}

int weir__input_open(weir_input *input, const char *path, AVIOInterruptCB interrupt, AVFormatContext **format,
                     weir_error *error)
{
    *format = avformat_alloc_context();
    if (!*format)
        return fail_input_memory(error);
    (*format)->interrupt_callback = interrupt;
    int rc = demux_container(input, path, format, error);
    if (rc != WEIR_OK)
        avformat_close_input(format);
    return rc;
}

/* ---- a whole file ------------------------------------------------------------------------------------------- */

static int fail_file_size(uint64_t max_bytes, weir_error *error)
{
    return weir_error_set(error, WEIR_ELIMIT, 0, "the file is over the limit of %" PRIu64 " bytes", max_bytes);
}

static int fail_read(const weir_input *input, const char *path, int averror, weir_error *error)
{
    if (averror == AVERROR(ETIMEDOUT))
        return fail_url(input, path, averror, error);
    return weir__ffmpeg_error(error, averror, "cannot read");
}

/* Reads once. WEIR_OK; WEIR_EOF: no more; or the failure with *error filled. */
static int read_more(const weir_input *input, const char *path, weir_growing_bytes *growing, weir_error *error)
{
    size_t left_bytes = growing->room_bytes - growing->used_bytes;
    int got = avio_read(input->avio, growing->data + growing->used_bytes, (int)FFMIN(left_bytes, INT32_MAX));
    got = weir__input_error(input, got);
    if (got == 0 || got == AVERROR_EOF)
        return WEIR_EOF;
    if (got < 0)
        return fail_read(input, path, got, error);
    growing->used_bytes += (size_t)got;
    return WEIR_OK;
}

/* The server's size may be wrong or missing; one extra byte detects the end. */
static int read_all(const weir_input *input, const char *path, uint64_t max_bytes, weir_growing_bytes *growing,
                    weir_error *error)
{
    enum { UNKNOWN_BYTES = 1 << 20 };
    AVIOContext *avio = input->avio;
    int64_t reported_bytes = avio_size(avio);
    size_t first_bytes = reported_bytes > 0 ? (size_t)reported_bytes + 1 : UNKNOWN_BYTES;
    int rc = WEIR_OK;
    if (reported_bytes > 0 && (uint64_t)reported_bytes > max_bytes)
        return fail_file_size(max_bytes, error);
    while (rc == WEIR_OK) {
        bool is_full = growing->used_bytes == growing->room_bytes;
        if (growing->used_bytes > max_bytes)
            return fail_file_size(max_bytes, error);
        if (is_full &&
            weir__growing_bytes_grow(growing, first_bytes, (size_t)FFMIN(max_bytes, SIZE_MAX - 1) + 1) != WEIR_OK)
            return fail_input_memory(error);
        rc = read_more(input, path, growing, error);
    }
    if (rc != WEIR_EOF)
        return rc;
    int failure = weir__input_error(input, avio->error);
    return failure < 0 && failure != AVERROR_EOF ? fail_read(input, path, failure, error) : WEIR_OK;
}

int weir__input_load(weir_input *input, const char *path, uint64_t max_bytes, AVIOInterruptCB interrupt,
                     weir_bytes **bytes, weir_error *error)
{
    weir_growing_bytes growing = { 0 };
    *bytes = NULL;
    int rc = open_bytes(input, path, interrupt, error);
    if (rc == WEIR_OK)
        rc = read_all(input, path, max_bytes, &growing, error);
    weir__input_close(input);
    if (rc == WEIR_OK) {
        *bytes = weir__growing_bytes_end(&growing);
        rc = *bytes ? WEIR_OK : fail_input_memory(error);
    }
    weir__growing_bytes_free(&growing);
    return rc;
}
