/*
 * Files in memory: what a source that has the bytes, and no path, hands to a decode stage, and what the tar stage makes.
 * Decode stages take them as well as paths.
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
 * What decode stages refuse unless their config's `allow` names it, because a file or a list of files from somebody else could
 * use it to read other files, or to wait for ever. Flags.
 */
enum {
    /* Pipes, terminals and other devices that a path names (/dev/stdin), and "pipe:0" for an inherited descriptor. Of
       MP4, and where frames are chosen, all that comes out is kept in a temporary file without a name (below TMPDIR, or
       /tmp), as it is not read from front to back. */
    WEIR_ALLOW_PIPES = 1,
    /* Files that name others: playlists and manifests (HLS, DASH, ffconcat, SDP), patterns of many names ("%d"); and all of
       FFmpeg's protocols, not just http, https, ftp, sftp, tcp and tls. FFmpeg opens what they name, wherever it is; up to
       256 of it before the first frame, 16384 in all. A pipe that ffconcat names is waited for without an end. */
    WEIR_ALLOW_REFERENCES = 2,
};

/* A file's bytes. One owner at a time; freed, with all that hangs on it, by weir_bytes_free(). */
typedef struct weir_bytes {
    uint8_t *data;
    size_t size_bytes;
    char *name; /* what the file is called, for messages and as a hint to its format; NULL = nothing. Not its owner's
                   to free */
    void (*release)(void *owner); /* frees data; NULL = nothing to free; runs on any thread */
    void *owner;

    struct weir_bytes *next; /* other files of the same sample (a label, a caption), owned by this one; NULL = none.
                                Decode stages hand them on unread */
} weir_bytes;

/* The type of items whose data is a weir_bytes. */
#define WEIR_TYPE_BYTES "weir.bytes"

/* A file of that size and name (may be NULL, is copied) for the caller to fill, in one block of memory. NULL = out of
   memory. Any thread. */
WEIR_API weir_bytes *weir_bytes_new(size_t size_bytes, const char *name);

/* A file that lies at `data` already, which is not copied: `release`(owner), which may be NULL, frees it. NULL = out of
   memory; then the data stays the caller's. Any thread. */
WEIR_API weir_bytes *weir_bytes_wrap(const void *data, size_t size_bytes, const char *name,
                                     void (*release)(void *owner), void *owner);

/* All the memory it takes, with all that hangs on it: for weir_item.size_bytes. NULL is 0. Any thread. */
WEIR_API size_t weir_bytes_memory(const weir_bytes *bytes);

/* Frees it with all that hangs on it. NULL is fine. Any thread. */
WEIR_API void weir_bytes_free(weir_bytes *bytes);

/* The same for weir_item.release; self is not used. */
WEIR_API void weir_bytes_release(void *data, void *self);

#ifdef __cplusplus
}
#endif

#endif
