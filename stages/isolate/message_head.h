/* The head of a message: what comes before its body. Internal. */
#ifndef STAGES_ISOLATE_MESSAGE_HEAD_H
#define STAGES_ISOLATE_MESSAGE_HEAD_H

#include <stdint.h>

/* parent: CONFIG, then REQUESTs, and a CONTINUE for each chunk after the first. child: READY or FAILURE after CONFIG;
   after a REQUEST or CONTINUE any number of LOGs, then a RESULT of status WEIR_MORE or WEIR_OK, a FAILURE, or a
   SKIPPED. */
typedef enum isolated_kind {
    ISOLATED_CONFIG = 1, /* version, name of the operation, its config */
    ISOLATED_READY,
    ISOLATED_REQUEST, /* label, path and stat of the open file, item */
    ISOLATED_CONTINUE,
    ISOLATED_RESULT, /* item */
    ISOLATED_SKIPPED,
    ISOLATED_FAILURE, /* text */
    ISOLATED_LOG,     /* text */
} isolated_kind;

typedef enum isolated_side { ISOLATED_PARENT, ISOLATED_CHILD } isolated_side;

/* A larger message is not sent. */
#define ISOLATED_MAX_BODY_BYTES (INT64_C(1) << 30)

/* Which message uses which field is in message.c; what it may say, in message_rules.c. */
typedef struct isolated_head {
    uint32_t kind;
    int32_t status;       /* RESULT, FAILURE; LOG and CONFIG: weir_log_level */
    int32_t library_code; /* FAILURE */
    uint32_t source;      /* this and the next two: REQUEST */
    uint64_t seq;
    uint64_t epoch;
    uint64_t max_memory_bytes; /* CONFIG */
    uint32_t sandbox;          /* CONFIG: sandbox_kind */
    uint32_t has_file;         /* REQUEST: the descriptor of the input's file comes with it */
    uint64_t body_bytes;
    uint64_t data_bytes;
    uint64_t data_room;     /* of the block that holds the data */
    int32_t data_number;    /* of that block; -1 = it will not be sent again */
    uint32_t is_data_known; /* the descriptor of the block was sent before */
} isolated_head;

#endif
