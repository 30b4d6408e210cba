/*
 * The calls of an isolated reader, as items of messages: a request to the child, and facts from it (frames are sent as those of
 * other operations). Internal. The receiver checks facts as if they were a file from outside.
 */
#ifndef STAGES_ISOLATE_READER_MESSAGE_H
#define STAGES_ISOLATE_READER_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/item.h>
#include <weir/video_reader.h>

#include "stages/isolate/message.h"
#include "stages/reader/remote_reader.h"

#define ISOLATED_TYPE_REQUEST "weir.reader_request"
#define ISOLATED_TYPE_FACTS   "weir.reader_facts"

typedef struct isolated_reader_request {
    weir_reader_call call;
    /* The source, with the first call to each child. */
    bool has_source;
    bool one_request;
    const char *path; /* or: */
    const weir_bytes *bytes;
    const uint8_t *packets; /* NULL = none */
    size_t packets_bytes;
} isolated_reader_request;

typedef struct isolated_reader_facts {
    weir_reader_answer answer; /* without frames */
    bool is_end;               /* the request has no more frames */
} isolated_reader_facts;

/* The weir_item.release of facts, without frames. */
void weir__isolated_release_facts(void *data, void *self);

/* As those of the other kinds of items (message_item.c). */
bool weir__isolated_put_request(isolated_message *message, const void *data);
bool weir__isolated_get_request(isolated_message *message, weir_item *item);
bool weir__isolated_put_facts(isolated_message *message, const void *data);
bool weir__isolated_get_facts(isolated_message *message, weir_item *item);

#endif
