/*
 * The parts of an item: what an operation tells of it besides its time. How long the steps of its task took, how much there
 * was to do, what kind of thing it is. The engine does not know what a part means: it shows times inside the task in traces,
 * and gives all parts to task hooks (weir_task_end), of which one records them (weir_sqlite_item_hook()).
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
    WEIR_MAX_ITEM_PARTS = 24,  /* of an item */
    WEIR_PART_NAME_BYTES = 32, /* the largest name, with its NUL */
    WEIR_PART_TEXT_BYTES = 32, /* the largest text, with its NUL; longer ones are cut */
};

/* What a part is: a row of a static table. It and its texts must live as long as the process. Two rows with one name are the
   same part. */
typedef struct weir_part_info {
    const char *name; /* "upload" */
    weir_part_kind kind;
    const char *unit;    /* of what is stored and shown: "s", "frames"; "" = none */
    const char *meaning; /* for help texts and documentation */
} weir_part_info;

typedef struct weir_item_part {
    const weir_part_info *info;
    int64_t number;   /* 0 or more; of a text 0 */
    const char *text; /* of WEIR_PART_TEXT; else NULL */
} weir_item_part;

#ifdef __cplusplus
}
#endif

#endif
