/*
 * What decode stages and readers take in addition to paths. These are files in memory, files that the program reads
 * itself, and items of a dataset. A file is in memory if the source has the bytes; the tar stage also outputs such
 * files.
 */
#ifndef WEIR_BYTES_H
#define WEIR_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/clip_window.h>
#include <weir/columns.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Makes a file of that size, in one block of memory, for the caller to fill. The name is copied and may be NULL. NULL = out
   of memory. Any thread. */
WEIR_API weir_bytes *weir_bytes_new(size_t size_bytes, const char *name);

/* Makes a file of the bytes at `data`, without a copy. release(owner) frees them (NULL = nothing to free). NULL = out of
   memory; the caller then still owns the data. Any thread. */
static inline weir_bytes *weir_bytes_wrap(const void *data, size_t size_bytes, const char *name,
                                          void (*release)(void *owner), void *owner)
{
    weir_bytes *bytes = data || !size_bytes ? weir_bytes_new(0, name) : NULL;
    union {
        const void *given;
        uint8_t *kept;
    } bytes_at = { data }; /* weir never writes to it */
    if (bytes) {
        bytes->data = bytes_at.kept;
        bytes->size_bytes = size_bytes;
        bytes->release = release;
        bytes->owner = owner;
    }
    return bytes;
}

/* The memory of the file and of the files in `next`, in bytes: for weir_item.size_bytes. NULL is 0. Any thread. */
static inline size_t weir_bytes_memory(const weir_bytes *bytes)
{
    size_t memory_bytes = 0;
    for (; bytes; bytes = bytes->next)
        memory_bytes += sizeof *bytes + bytes->size_bytes + (bytes->name ? strlen(bytes->name) + 1 : 0);
    return memory_bytes;
}

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_bytes_release(void *data, void *self);

/* Frees it and the files in `next`. NULL is fine. Any thread. */
static inline void weir_bytes_free(weir_bytes *bytes)
{
    weir_bytes_release(bytes, NULL);
}

/*
 * A file that the program reads itself: a file-like object, or another kind of storage. The functions are called on the thread
 * that uses the reader, only during calls of the reader, and never two at once. If the program is stopped inside a
 * function, the function returns WEIR_ESTOPPED.
 */
typedef struct weir_file_functions {
    void *self;

    /* Reads up to num_bytes from the current position, which moves on. Returns the number of bytes, at least 1; 0 at the
       end of the file; or a negative WEIR_E…, which fails the request. */
    int64_t (*read)(void *self, uint8_t *data, size_t num_bytes);

    /* Moves the position to that byte of the file, from 0 to its size. WEIR_OK, or a negative WEIR_E…. NULL = the file cannot
       seek: it is read into memory first, up to weir_input_config.max_pipe_bytes. */
    int (*seek)(void *self, int64_t position);

    /* The size of the file in bytes (0 = unknown). If it is unknown, containers with the header at their end cannot be
       opened, unless seek is NULL. */
    int64_t size_bytes;

    /* The last call: when the reader is freed, or could not be opened. NULL = none. */
    void (*close)(void *self);
} weir_file_functions;

/* -- an item of a dataset: a path, and what the dataset knows about the file -- */

/*
 * The data of weir_sampler_source's items. One owner at a time; freed with all it holds by weir_entry_free(). A decode
 * stage opens the path and passes the entry on in its result (weir_frames.entry), so that a batch has ids and labels.
 */
typedef struct weir_entry {
    char *path;       /* allocated */
    uint64_t number;  /* in the dataset */
    uint64_t epoch;   /* in which it was drawn */
    int64_t class_id; /* -1 = unknown */

    /* The file when it was indexed: a decode stage fails with WEIR_EDATA if it has changed since. */
    int64_t size_bytes; /* -1 = unknown */
    int64_t mtime_ns;   /* since 1970; 0 = unknown */

    /* The file's packet table, as weir_probe makes it: frames can be selected without reading the whole file first.
       Allocated; NULL = unknown */
    uint8_t *packets;
    size_t packets_bytes;

    /* A member of an uncompressed tar archive has the path "ARCHIVE!NAME". Its first archive_length bytes are the
       archive's path (0 = it is not in an archive). mtime_ns is the archive's. The data is size_bytes long, from
       `offset` on. */
    uint64_t archive_length;
    int64_t offset;

    bool stands_in; /* in the place of an item that failed, which is to be masked (WEIR_FAILED_MASK) */

    /* The clip is this window of the file. weir_video_decode samples it as if it were a file. Where that is not
       possible the item fails with WEIR_EUNSUPPORTED. It is not possible for sound, images, and explicit indices or
       times. It is also not possible if the window of the sampling is in frames and this one is in time, or the other
       way round. */
    weir_clip_window window;

    /* The version of the file at a URL, as its server reported it (weir_probe_result.validator): weir_probe does not read
       a file that is still the same. Allocated; NULL = the file is read */
    char *validator;

    /* The number of the item among those of the dataset with the same path; see weir_item_identity(). */
    uint64_t occurrence;

    /* The user's columns: what the list or the index says of the item beside that. Set by weir_entry_set_values(). */
    weir_value *values;
    size_t num_values;
    size_t values_bytes; /* of their memory, texts included */
} weir_entry;

/* The type of items whose data is a weir_entry. */
#define WEIR_TYPE_ENTRY "weir.entry"

/* All-zero, except class_id and size_bytes, which are unknown. NULL = out of memory. Any thread. */
WEIR_API weir_entry *weir_entry_new(void);

/* The memory of an entry in bytes; 0 for NULL. Any thread. */
static inline size_t weir_entry_memory(const weir_entry *entry)
{
    if (!entry)
        return 0;
    size_t texts_bytes =
        (entry->path ? strlen(entry->path) + 1 : 0) + (entry->validator ? strlen(entry->validator) + 1 : 0);
    return sizeof *entry + texts_bytes + entry->packets_bytes + entry->values_bytes;
}

/* Replaces the entry's values by copies of these. WEIR_OK; WEIR_ENOMEM: it has its old ones. */
WEIR_API int weir_entry_set_values(weir_entry *entry, const weir_value *values, size_t num_values);

/* The weir_item.release of such an item; self is not used. */
WEIR_API void weir_entry_release(void *data, void *self);

/* NULL is fine. Any thread. */
static inline void weir_entry_free(weir_entry *entry)
{
    weir_entry_release(entry, NULL);
}

#ifdef __cplusplus
}
#endif

#endif
