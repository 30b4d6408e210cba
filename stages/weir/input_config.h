/*
 * Where the bytes of a file come from, and the limits of time and memory for that. Every stage that opens files takes this
 * struct by pointer and size:
 *
 *     weir_video_config video = { WEIR_WITH_INPUT(.io_timeout_ns = 5 * WEIR_SECOND) };
 */
#ifndef WEIR_INPUT_CONFIG_H
#define WEIR_INPUT_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Inputs that decode stages refuse unless weir_input_config.allow has the flag. With them, an untrusted list could make a stage
 * wait for ever, or read from an untrusted server. Always refused are files that name other files (HLS, DASH, ffconcat, SDP,
 * patterns), and all protocols except http, https, ftp, sftp, tcp and tls.
 */
enum {
    /* Paths of pipes, terminals and other devices (/dev/stdin), and "pipe:0" for an inherited descriptor. MP4, GIF
       and PNG, and files of which frames are selected, are not read from front to back. So all data from the pipe is
       kept in an unnamed temporary file (in TMPDIR, or /tmp). */
    WEIR_ALLOW_PIPES = 1,
    /* Servers (https, tls) whose certificate is not trusted, or is for another host. Without this flag, certificates are
       checked, also after redirections. If FFmpeg cannot check host names (with OpenSSL), these protocols are refused. */
    WEIR_ALLOW_INSECURE = 2,
};

/* Setting this struct to all-zero is equivalent to defaults. Copied, with its strings. */
typedef struct weir_input_config {
    uint32_t allow;    /* WEIR_ALLOW_… flags (0 = none) */
    int32_t io_thread; /* read local files on a separate thread: 0 = those on a network file system or on FUSE,
                          positive = all, negative = none. If the kernel does not end a read, a stop or a deadline
                          abandons that thread, up to 64 times */
    /* The task fails with WEIR_ETIMEDOUT if a URL sends no data for this long (0 = 30 s, negative = never).
       weir_stage_options.task_deadline_ns limits the whole task. */
    int64_t io_timeout_ns;
    /* A file of certificates (PEM) that are trusted for https (NULL = weir_certificates_find()). */
    const char *ca_file;
    /* The most bytes that are kept of a pipe, for MP4, GIF and PNG, or if frames are selected (0 = 4 GiB). */
    uint64_t max_pipe_bytes;
} weir_input_config;

/* Sets the members .input and .input_size in the initialiser of another config (C only). The struct that .input points to lives
   as long as the enclosing block. */
#define WEIR_WITH_INPUT(...) \
    .input = &(const weir_input_config){ __VA_ARGS__ }, .input_size = sizeof(weir_input_config)

/*
 * The file of certificates (PEM) that hosts are checked with where ca_file is NULL: the system's (of Debian, Fedora, openSUSE,
 * Alpine and what derives from them), else that of weir_certificates_set_fallback(). NULL: there is none. Any thread. The text
 * lives as long as the process.
 */
WEIR_API const char *weir_certificates_find(void);

/*
 * A file of certificates (PEM) for systems that have none, such as one that a package of another language brings along. It holds
 * for the whole process, and is set once. Any thread. The path is copied.
 * WEIR_OK, also if it is that path already; WEIR_EINVAL: it cannot be read, or another path was set before;
 * WEIR_ENOMEM.
 */
WEIR_API int weir_certificates_set_fallback(const char *path, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
