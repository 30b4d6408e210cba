/*
 * What observers are still to be told: a bounded list between the threads of the pipeline and its observer thread. Adding
 * never waits. Without the pipeline's lock; the outbox has its own.
 */
#ifndef WEIR_OUTBOX_H
#define WEIR_OUTBOX_H

#include "state.h"

struct weir_taken_lap;

typedef enum message_kind { MESSAGE_START, MESSAGE_LAP, MESSAGE_FAILURE, MESSAGE_EVENT } message_kind;

struct weir_message {
    weir_message *next;
    message_kind kind;
    size_t size_bytes; /* of a failure or event, its texts behind the struct included */
    union {
        struct weir_taken_lap *lap;
        weir_failure failure;
        weir_event event;
    };
};

int weir_outbox_init(weir_outbox *outbox);
void weir_outbox_destroy(weir_outbox *outbox);

/* The run begins: once, before anything else is added. */
void weir_outbox_add_start(weir_outbox *outbox);

/* The failure of the slot's task; unless nobody wants to be told. */
void weir_outbox_add_failure(weir_pipeline *pipeline, const weir_slot *slot);

/* WEIR_OK, also if nobody wants to be told or it had to be dropped; WEIR_ENOMEM. category and detail may be NULL. */
int weir_outbox_add_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail);

/* Takes `lap` over, and joins it to the newest lap if too many wait. False = out of memory: `lap` is the caller's. */
bool weir_outbox_add_lap(weir_pipeline *pipeline, struct weir_taken_lap *lap);

/* Nothing will be added any more. */
void weir_outbox_close(weir_outbox *outbox);

/* The observer thread: takes the oldest message, waiting for it. NULL = closed and empty. */
weir_message *weir_outbox_take(weir_outbox *outbox);
void weir_message_free(weir_message *message);

/* How many messages were dropped since the last call. */
void weir_outbox_take_dropped(weir_outbox *outbox, uint64_t *failures, uint64_t *events);

#endif
