/* An item of a dataset, as the input of a decode stage: a path, and what the dataset knows about the file. */
#ifndef WEIR_ENTRY_H
#define WEIR_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

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

    /* the file's packet table, as weir_probe makes it: frames can be selected without reading the whole file first.
       Allocated; NULL = unknown */
    uint8_t *packets;
    size_t packets_bytes;

    /* A member of an uncompressed tar archive: the path is "ARCHIVE!NAME"; its first archive_length bytes are the
       archive's path (0 = it is not in an archive). mtime_ns is the archive's; the data is size_bytes long, from
       `offset` on. */
    uint64_t archive_length;
    int64_t offset;
} weir_entry;

/* The type of items whose data is a weir_entry. */
#define WEIR_TYPE_ENTRY "weir.entry"

/* All-zero, except class_id and size_bytes, which are unknown. NULL = out of memory. Any thread. */
WEIR_API weir_entry *weir_entry_new(void);

/* Its memory in bytes. NULL is 0. Any thread. */
WEIR_API size_t weir_entry_memory(const weir_entry *entry);

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
