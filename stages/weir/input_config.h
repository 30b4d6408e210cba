/*
 * Where the bytes of a file come from, and what that may cost. Every stage that opens files takes this struct by pointer and
 * size:
 *
 *     weir_video_config video = { WEIR_WITH_INPUT(.io_timeout_ns = 5 * WEIR_SECOND) };
 */
#ifndef WEIR_INPUT_CONFIG_H
#define WEIR_INPUT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Inputs that decode stages refuse unless weir_input_config.allow has the flag: an untrusted list could
 * use them to wait for ever, or to be read from an untrusted server. Files that name others (HLS, DASH, ffconcat, SDP,
 * patterns) and other protocols than http, https, ftp, sftp, tcp and tls are always refused.
 */
enum {
    /* Paths of pipes, terminals and other devices (/dev/stdin), and "pipe:0" for an inherited descriptor. For MP4,
       GIF and PNG, and where frames are selected, the file is not read from front to back: all data from the pipe is
       kept in an unnamed temporary file (in TMPDIR, or /tmp). */
    WEIR_ALLOW_PIPES = 1,
    /* Servers (https, tls) whose certificate is not trusted, or is of another host. Otherwise it is checked, also after
       redirections; where FFmpeg cannot check names (with OpenSSL), these protocols are refused. */
    WEIR_ALLOW_INSECURE = 2,
};

/* Setting this struct to all-zero is equivalent to defaults. Copied, with its strings. */
typedef struct weir_input_config {
    uint32_t allow;    /* WEIR_ALLOW_… flags (0 = none) */
    int32_t io_thread; /* read local files on a separate thread: 0 = those on a network file system or on FUSE,
                          positive = all, negative = none. A stop or a deadline abandons that thread when the
                          kernel does not end a read, up to 64 times */
    /* of a URL: this long without data fails the task with WEIR_ETIMEDOUT (0 = 30 s, negative = never).
       weir_stage_options.task_deadline_ns limits the whole task */
    int64_t io_timeout_ns;
    /* A file of certificates (PEM) that are trusted for https (NULL = the system's). */
    const char *ca_file;
    uint64_t max_pipe_bytes; /* kept of a pipe, for MP4, GIF and PNG or where frames are selected (0 = 4 GiB) */
} weir_input_config;

/* The members .input and .input_size of another config, as C initialisers. The struct that they point to lives as long as the
   block around it. */
#define WEIR_WITH_INPUT(...) \
    .input = &(const weir_input_config){ __VA_ARGS__ }, .input_size = sizeof(weir_input_config)

#ifdef __cplusplus
}
#endif

#endif
