/*
 * Files in memory: the input of a decode stage when the source has the bytes and not a path; also the output of the tar
 * stage.
 */
#ifndef WEIR_BYTES_H
#define WEIR_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Inputs that decode stages refuse unless their config's `allow` has the flag: an untrusted list could
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

/* A file's bytes. One owner at a time; weir_bytes_free() frees it and the files in `next`. */
typedef struct weir_bytes {
    uint8_t *data;
    size_t size_bytes;
    char *name; /* the file's name, for messages and as a hint to its format; NULL = none. Freed with the struct */
    void (*release)(void *owner); /* frees data; NULL = nothing to free; runs on any thread */
    void *owner;

    struct weir_bytes *next; /* other files of the same sample (a label, a caption), owned by this one; NULL = none.
                                Decode stages pass them on unread */
} weir_bytes;

/* The type of items whose data is a weir_bytes. */
#define WEIR_TYPE_BYTES "weir.bytes"

/* A file of that size, in one block of memory, for the caller to fill. The name is copied and may be NULL. NULL = out
   of memory. Any thread. */
WEIR_API weir_bytes *weir_bytes_new(size_t size_bytes, const char *name);

/* A file whose bytes are at `data`, without a copy: `release`(owner), which may be NULL, frees them. NULL = out of
   memory; then the data stays the caller's. Any thread. */
WEIR_API weir_bytes *weir_bytes_wrap(const void *data, size_t size_bytes, const char *name,
                                     void (*release)(void *owner), void *owner);

/* Its memory, the files in `next` included: for weir_item.size_bytes. NULL is 0. Any thread. */
WEIR_API size_t weir_bytes_memory(const weir_bytes *bytes);

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_bytes_release(void *data, void *self);

/* Frees it and the files in `next`. NULL is fine. Any thread. */
static inline void weir_bytes_free(weir_bytes *bytes)
{
    weir_bytes_release(bytes, NULL);
}

#ifdef __cplusplus
}
#endif

#endif
