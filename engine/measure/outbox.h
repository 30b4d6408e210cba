/*
 * Messages for the observers: a bounded list between the threads of the pipeline and its observer thread. Adding
 * never waits. Call these functions without the lock of the pipeline; the outbox has its own.
 */
#ifndef ENGINE_MEASURE_OUTBOX_H
#define ENGINE_MEASURE_OUTBOX_H

#include "engine/measure/reporting.h"

struct weir__lap;

typedef enum message_kind {
    MESSAGE_START,
    MESSAGE_LAP,
    MESSAGE_FAILURE,
    MESSAGE_STALL,
    MESSAGE_EVENT,
    MESSAGE_ASKED, /* a request: all that was measured before it has been reported */
} message_kind;

struct weir_message {
    weir_message *next;
    message_kind kind;
    size_t size_bytes; /* of a failure or event, including its texts stored after the struct */
    union {
        struct weir__lap *lap;
        weir_failure failure;
        weir_event event;
        uint64_t asked; /* the number of the request */
    };
};

int weir__outbox_init(weir_outbox *outbox);
void weir__outbox_destroy(weir_outbox *outbox);

/* Adds the start of the run: once, before anything else. */
void weir__outbox_add_start(weir_outbox *outbox);

/* Adds the failure of the slot's task, unless no observer wants failures. */
void weir__outbox_add_failure(weir_pipeline *pipeline, const weir_task *slot);

/* WEIR_OK, also if no observer wants events or it was dropped; WEIR_ENOMEM. category and detail may be NULL. */
int weir__outbox_add_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail);

/* An event that is logged, too: a task of the stage has run very long. */
void weir__outbox_add_stall(weir_pipeline *pipeline, const char *stage, const char *text);

/* Takes ownership of `lap`, and joins it to the newest lap if too many are waiting. False = out of memory: the
   caller keeps `lap`. */
bool weir__outbox_add_lap(weir_pipeline *pipeline, struct weir__lap *lap);

/* ---- requests for what was measured up to now (lap_request.c) ---- */

/* A new request; its number. 0 = this is the observer thread, which must not wait for itself. */
uint64_t weir__outbox_ask(weir_outbox *outbox);

/* The number of the last request. */
uint64_t weir__outbox_last_asked(weir_outbox *outbox);

/* What was measured before that request is in the outbox. False = out of memory. */
bool weir__outbox_add_asked(weir_outbox *outbox, uint64_t asked);

/* Observer thread. All messages before this one are delivered. */
void weir__outbox_answer(weir_outbox *outbox, uint64_t asked);

/* Waits for the answer. WEIR_OK, WEIR_ETIMEDOUT, or WEIR_EOF: the outbox was closed. */
int weir__outbox_await(weir_outbox *outbox, uint64_t asked, int64_t timeout_ns);

/* After this call, only events that observers report are added (at most 64), and all other messages are dropped. */
void weir__outbox_close(weir_outbox *outbox);

/* Observer thread only. Waits for the oldest message and takes it, at most timeout_ns (WEIR_FOREVER) or until
   weir__outbox_wake(): then *message is NULL. False = closed and empty. */
bool weir__outbox_take(weir_outbox *outbox, int64_t timeout_ns, weir_message **message);
void weir__message_free(weir_message *message);

/* The observer thread looks what there is to do. */
void weir__outbox_wake(weir_outbox *outbox);

/* The number of messages dropped since the last call. */
void weir__outbox_take_dropped(weir_outbox *outbox, uint64_t *failures, uint64_t *events);

#endif
