/*
 * The parts of an item are figures that an operation reports about it, in addition to its run time. They say what its task spent
 * time on, how much work there was, and what kind of item it is. The engine does not know what a part means. In traces, it shows
 * the times inside the task. It passes all parts to task hooks (weir_task_end); weir_sqlite_item_hook() is one that records
 * them.
 *
 *     static const weir_part_info upload = { "upload", WEIR_PART_TIME, "s", "copying to the device" };
 *     …
 *     weir_task_set_part(task, &upload, weir_clock_ns() - start_ns);
 */
#ifndef WEIR_ITEM_PART_H
#define WEIR_ITEM_PART_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_part_kind {
    WEIR_PART_TIME = 1, /* a duration inside the task, in nanoseconds */
    WEIR_PART_COUNT = 2,
    WEIR_PART_BYTES = 3,
    WEIR_PART_TEXT = 4,
} weir_part_kind;

enum {
    WEIR_MAX_ITEM_PARTS = 24,  /* the most parts of one item */
    WEIR_PART_NAME_BYTES = 32, /* of the longest name, with its NUL */
    WEIR_PART_TEXT_BYTES = 32, /* of the longest text, with its NUL; longer texts are cut */
};

/* Describes a part: a row of a static table. The row and its texts must live as long as the process. Two rows with the same name
   are the same part. */
typedef struct weir_part_info {
    const char *name; /* "upload" */
    weir_part_kind kind;
    const char *unit;    /* in which values are stored and shown: "s", "frames"; "" = none */
    const char *meaning; /* for help texts and documentation */
} weir_part_info;

typedef struct weir_item_part {
    const weir_part_info *info;
    int64_t number;   /* 0 or more; always 0 for WEIR_PART_TEXT */
    const char *text; /* of WEIR_PART_TEXT; otherwise NULL */
} weir_item_part;

#ifdef __cplusplus
}
#endif

#endif
