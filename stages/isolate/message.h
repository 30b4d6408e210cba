/*
 * Messages between weir_isolated and its children, over a socket that keeps their boundaries. Both ends are the same
 * version of weir on the same machine, so numbers and structs are sent as they are in memory. The receiver checks
 * everything: the other side may be a decoder that a file has broken. Internal.
 */
#ifndef STAGES_ISOLATE_MESSAGE_H
#define STAGES_ISOLATE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/item.h>

#include "stages/isolate/message_head.h"
#include "stages/isolate/message_rules.h"
#include "stages/memory/shared_data.h"

/* The descriptor of the socket in a child, and its first argument. */
#define ISOLATED_FD       3
#define ISOLATED_ARGUMENT "--weir-isolated"

typedef struct isolated_message {
    isolated_head head;
    char *body;             /* head.body_bytes */
    size_t room;            /* of body, while it is written */
    size_t position;        /* of the next part to be read */
    bool is_bad;            /* no memory for a part, or a part is missing */
    weir_shared_data *data; /* NULL = none */
    bool data_is_borrowed;  /* not freed with the message */
    int file_fd;            /* if head.has_file; the receiver closes it, the sender keeps its own */
    char complaint[48];     /* what makes no sense: "frames.time_base_den"; "" = it cannot be said */
} isolated_message;

/* Appends a part; failures set is_bad. A text may be NULL. */
void weir__isolated_put(isolated_message *message, const void *part, size_t size_bytes);
void weir__isolated_put_text(isolated_message *message, const char *text);

/* Copies the next part to *part. False, with is_bad set and *part zeroed, if the body ends before. */
bool weir__isolated_get(isolated_message *message, void *part, size_t size_bytes);
/* The next text, in the body; NULL = it was NULL, or with is_bad set. */
const char *weir__isolated_get_text(isolated_message *message);

/* The same for a struct: only fields that have a rule are sent, and only those that obey it are taken. Otherwise false, with
   is_bad set, the complaint, and *to zeroed. */
void weir__isolated_put_struct(isolated_message *message, const struct_rules *rules, const void *from);
bool weir__isolated_get_struct(isolated_message *message, const struct_rules *rules, void *to);

/* Sets is_bad and, unless there is a complaint already, what it is about. */
void weir__isolated_complain(isolated_message *message, const char *about);

/* Has all of the body been read? False sets is_bad, too. */
bool weir__isolated_is_read(isolated_message *message);

/* Puts an item, or takes the next one, which the caller releases. False, with errno set: no memory, the type of the
   item cannot be sent (ENOTSUP), or the message makes no sense (EPROTO). An item is the last part of its message. */
bool weir__isolated_put_item(isolated_message *message, const weir_item *item);
bool weir__isolated_get_item(isolated_message *message, weir_item *item);

/* The data of the message. What is not in shared memory yet (shared = NULL) is copied. False: no memory. */
bool weir__isolated_put_data(isolated_message *message, const void *data, size_t size_bytes,
                             weir_shared_data *shared);

/* Sends it; the receiver then releases the data. False, with errno set: EPIPE or ECONNRESET if the other side is gone,
   ENOMEM also if is_bad. */
bool weir__isolated_send(int fd, const isolated_message *message);

/* Who sends, and what the receiver takes from it. */
typedef struct isolated_sender {
    isolated_side side;
    /* The blocks that it has sent, WEIR_SHARED_BLOCKS of them (NULL = it reuses none). The caller drops them. */
    weir_shared_data **blocks;
    uint64_t max_body_bytes; /* of a result or a request (0 = ISOLATED_MAX_BODY_BYTES) */
} isolated_sender;

/* Waits for a message and receives it; free it in any case. False, with errno set: EPIPE if the other side is gone, EPROTO if
   the message makes no sense. */
bool weir__isolated_receive(int fd, const isolated_sender *sender, isolated_message *message);

void weir__isolated_message_free(isolated_message *message);

#endif
