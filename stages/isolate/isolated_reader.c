/*
 * A video reader in a child process, from the parent's side: each call is a message to the child, which has the reader
 * (reader_child.c), and its answer. A child that has ended is replaced with the next call, which brings the source, too.
 */
#include <weir/isolated.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>

#include "stages/ffmpeg/input.h"
#include "stages/isolate/isolated_child.h"
#include "stages/isolate/reader_child.h"
#include "stages/isolate/reader_message.h"
#include "stages/reader/reader_source.h"
#include "stages/reader/remote_reader.h"
#include "stages/reader/video_config.h"

typedef struct isolated_reader {
    weir_video_config config;
    weir_reader_source source;
    isolated_setup *setup;
    isolated_child child;
    bool has_source;  /* the child has opened it */
    int64_t begin_ns; /* of the first call to this child: no part of a cost can be longer than since then */

    /* of the request that was begun */
    bool has_request; /* the child works on it */
    isolated_shape shape;
    uint64_t num_frames; /* so far */
} isolated_reader;

static isolated_waiter waiter_of(const isolated_reader *reader)
{
    return (isolated_waiter){ reader->source.given.should_stop, NULL, reader->source.given.self };
}

/* ---- the call ------------------------------------------------------------------------------------------------- */

static weir_item named_by(const isolated_reader *reader)
{
    const weir_bytes *bytes = reader->source.given.bytes ? reader->source.given.bytes : reader->source.loaded;
    union {
        const void *borrowed;
        void *data;
    } item = { bytes ? (const void *)bytes : reader->source.path };
    return (weir_item){ .data = item.data, .type = bytes ? WEIR_TYPE_BYTES : WEIR_TYPE_TEXT };
}

static bool put_call(const isolated_reader *reader, const weir_reader_call *call, isolated_message *message)
{
    const weir_video_source *given = &reader->source.given;
    const weir_bytes *bytes = given->bytes ? given->bytes : reader->source.loaded;
    isolated_reader_request request = {
        .call = *call,
        .has_source = !reader->has_source,
        .one_request = given->one_request,
        .path = bytes ? NULL : reader->source.path,
        .bytes = bytes,
        .packets = given->packets,
        .packets_bytes = given->packets ? given->packets_bytes : 0,
    };
    return weir__isolated_put_item(message, &(weir_item){ .data = &request, .type = ISOLATED_TYPE_REQUEST });
}

static void end_child(isolated_reader *reader)
{
    weir__isolated_child_end(&reader->child);
    reader->has_source = false;
}

/* The message of the call, for the child that there is, or for a new one. WEIR_OK, or the failure with *error filled; free it
   in any case. */
static int make_message(isolated_reader *reader, const weir_reader_call *call, isolated_message *message,
                        weir_local_file *file, weir_error *error)
{
    const isolated_waiter waiter = waiter_of(reader);
    const weir_item named = named_by(reader);
    *message = (isolated_message){ .head = { .kind = ISOLATED_REQUEST } };
    weir__isolated_put_text(message, reader->source.path);
    sandbox_kind sandbox = weir__isolated_put_file(&reader->child, reader->setup, message, file,
                                                   reader->setup->no_sandbox ? NULL : &named, &waiter);
    if (reader->child.process.pid && reader->child.sandbox != sandbox)
        end_child(reader);
    if (!reader->child.process.pid) {
        reader->has_source = false;
        reader->has_request = false;
        reader->begin_ns = weir_clock_ns();
    }
    int rc = weir__isolated_child_start(&reader->child, reader->setup, sandbox, &waiter, error);
    if (rc == WEIR_OK && !put_call(reader, call, message))
        rc = weir_error_set(error, WEIR_ENOMEM, -errno, "cannot pass the request to a process: %s", strerror(errno));
    return rc;
}

/* Sends the call. A child that has ended since the last one is replaced once, unless a request goes on in it. */
static int send_call(isolated_reader *reader, const weir_reader_call *call, weir_error *error)
{
    bool is_new = !reader->child.process.pid;
    for (;;) {
        weir_local_file file = { 0 };
        isolated_message message;
        int rc = make_message(reader, call, &message, &file, error);
        bool is_sent = rc == WEIR_OK && weir__isolated_send(reader->child.process.fd, &message);
        int failure = errno;
        weir__local_file_close(&file);
        weir__isolated_message_free(&message);
        if (rc != WEIR_OK || is_sent)
            return rc;
        if (is_new || call->verb == WEIR_READER_NEXT)
            return weir__isolated_child_lost(&reader->child, reader->setup, failure, error);
        end_child(reader);
        is_new = true;
    }
}

/* ---- the answer ----------------------------------------------------------------------------------------------- */

/* What the call's frames are to be. */
static isolated_shape shape_of(const isolated_reader *reader, const weir_reader_call *call)
{
    weir_video_config wanted = reader->config;
    bool is_in_chunks = call->verb == WEIR_READER_BEGIN;
    wanted.clip_items &= is_in_chunks;
    wanted.chunk_frames = is_in_chunks && !wanted.clip_items ? (wanted.chunk_frames ? wanted.chunk_frames : 1) : 0;
    if (call->sampling)
        wanted.sampling = *call->sampling;
    if (call->picture)
        wanted.picture = call->picture;
    return weir__isolated_shape_of(&weir_video_decode, &wanted);
}

static void begin_answer(isolated_reader *reader, const weir_reader_call *call)
{
    if (call->verb == WEIR_READER_NEXT || call->verb == WEIR_READER_SOUND)
        return;
    reader->shape = shape_of(reader, call);
    reader->num_frames = 0;
}

static const char *find_wrong_frames(const isolated_reader *reader, const weir_item *item)
{
    const weir_frames *frames = item->data;
    return weir__isolated_find_misfit(&reader->shape, item, reader->num_frames, !frames->is_last_chunk,
                                      weir_clock_ns() - reader->begin_ns);
}

static const char *find_wrong_sound(const isolated_reader *reader, const weir_reader_call *call,
                                    const weir_item *item)
{
    const isolated_shape shape = weir__isolated_shape_of(&weir_audio_decode, call->sound);
    return weir__isolated_find_misfit(&shape, item, 0, false, weir_clock_ns() - reader->begin_ns);
}

/* Is it the kind of answer that the call asks for? NULL, or what it lacks. */
static const char *find_wrong_kind(const weir_reader_call *call, const weir_item *item)
{
    bool wants_frames = call->verb == WEIR_READER_FRAMES || call->verb == WEIR_READER_NEXT;
    bool is_facts = strcmp(item->type, ISOLATED_TYPE_FACTS) == 0;
    const isolated_reader_facts *facts = is_facts ? item->data : NULL;
    if (strcmp(item->type, WEIR_TYPE_FRAMES) == 0)
        return wants_frames ? NULL : "an item";
    if (strcmp(item->type, WEIR_TYPE_AUDIO) == 0)
        return call->verb == WEIR_READER_SOUND ? NULL : "an item";
    if (!facts || call->verb == WEIR_READER_SOUND)
        return "an item";
    if (facts->is_end != (call->verb == WEIR_READER_NEXT) || call->verb == WEIR_READER_FRAMES)
        return "facts.is_end";
    return !facts->answer.times != (call->verb != WEIR_READER_TIMES) ? "facts.times" : NULL;
}

static int take_item(isolated_reader *reader, const weir_reader_call *call, weir_item *item,
                     weir_reader_answer *answer, weir_error *error)
{
    bool is_frames = strcmp(item->type, WEIR_TYPE_FRAMES) == 0;
    bool is_sound = strcmp(item->type, WEIR_TYPE_AUDIO) == 0;
    const char *wrong = find_wrong_kind(call, item);
    if (!wrong && is_frames)
        wrong = find_wrong_frames(reader, item);
    if (!wrong && is_sound)
        wrong = find_wrong_sound(reader, call, item);
    if (wrong) {
        weir_item_release(item);
        reader->has_source = false;
        return weir__isolated_child_nonsense(&reader->child, wrong, error);
    }
    if (is_frames) {
        answer->frames = item->data;
        reader->num_frames += answer->frames->num_frames;
        return WEIR_OK;
    }
    if (is_sound) {
        answer->audio = item->data;
        return WEIR_OK;
    }
    isolated_reader_facts *facts = item->data;
    bool is_end = facts->is_end;
    *answer = facts->answer;
    facts->answer.times = NULL;
    weir_item_release(item);
    return is_end ? WEIR_EOF : WEIR_OK;
}

static int take_answer(isolated_reader *reader, const weir_reader_call *call, isolated_message *message,
                       weir_reader_answer *answer, weir_error *error)
{
    weir_item item;
    if (message->head.kind == ISOLATED_FAILURE)
        return weir__isolated_child_reported(&reader->child, message, error);
    if (message->head.kind != ISOLATED_RESULT || message->head.status != WEIR_OK)
        return weir__isolated_child_nonsense(&reader->child, "head.kind", error);
    if (!weir__isolated_get_item(message, &item))
        return weir__isolated_child_nonsense(&reader->child, message->complaint, error);
    return take_item(reader, call, &item, answer, error);
}

static int call_child(void *self, const weir_reader_call *call, weir_reader_answer *answer, weir_error *error)
{
    isolated_reader *reader = self;
    const isolated_waiter waiter = waiter_of(reader);
    isolated_message message;
    if (call->verb == WEIR_READER_NEXT && !(reader->has_request && reader->child.process.pid))
        return weir_error_set(error, WEIR_ESYSTEM, 0, "the process that worked on the request has ended");
    begin_answer(reader, call);
    int rc = send_call(reader, call, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__isolated_child_await(&reader->child, reader->setup, &waiter, &message, error);
    if (rc == WEIR_OK) {
        reader->has_source = true;
        rc = take_answer(reader, call, &message, answer, error);
        reader->has_request |= rc == WEIR_OK && call->verb == WEIR_READER_BEGIN;
    }
    weir__isolated_message_free(&message);
    return rc;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static void free_reader(void *self)
{
    isolated_reader *reader = self;
    weir__isolated_child_free(&reader->child);
    weir__isolated_setup_free(reader->setup);
    weir__video_config_free(&reader->config);
    weir__reader_source_free(&reader->source);
    free(reader);
}

/* The part of the config that says how to start a child. */
static int check_isolated(weir_isolated_config *own, const weir_isolated_config *isolated, size_t isolated_size,
                          weir_error *error)
{
    int rc = weir_struct_copy(own, sizeof *own, isolated, isolated_size, "weir_isolated_config", error);
    if (rc == WEIR_OK && (own->op || own->config || own->config_size))
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "a reader has no operation: op, config and config_size must not be set");
    return rc;
}

static int make_setup(isolated_reader *reader, const weir_isolated_config *isolated, weir_error *error)
{
    const weir_video_config *config = &reader->config;
    if (config->allocator)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                              "an isolated reader with an allocator: a child process has no access to the program's "
                              "memory; remove the allocator");
    int rc = weir__isolated_setup_new(isolated, &weir__isolated_reader_op, config, &reader->setup, error);
    if (rc != WEIR_OK)
        return rc;
    reader->setup->input = *config->input;
    reader->setup->input.ca_file = NULL;
    reader->setup->shape = weir__isolated_shape_of(&weir_video_decode, config);
    return WEIR_OK;
}

/* The reader owns all that was made, also after a failure. */
static int prepare(isolated_reader *reader, const weir_video_config *config, size_t config_size,
                   const weir_isolated_config *isolated, weir_video_info *info, weir_error *error)
{
    const weir_reader_call open = { .verb = WEIR_READER_OPEN };
    weir_reader_answer answer = { 0 };
    int rc = weir__video_reader_config(&reader->config, config, config_size, error);
    if (rc != WEIR_OK)
        return rc;
    rc = make_setup(reader, isolated, error);
    if (rc == WEIR_OK && reader->source.given.functions)
        rc = weir__reader_source_load(&reader->source, reader->config.input->max_pipe_bytes, error);
    if (rc == WEIR_OK)
        rc = call_child(reader, &open, &answer, error);
    *info = answer.info;
    return rc;
}

int weir_isolated_reader_open(weir_video_reader **made, const weir_video_source *source, size_t source_size,
                              const weir_video_config *config, size_t config_size,
                              const weir_isolated_config *isolated, size_t isolated_size, weir_error *error)
{
    weir_reader_source own;
    weir_isolated_config how;
    weir_video_info info;
    if (made)
        *made = NULL;
    if (!made || !source || source_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_isolated_reader_open(): reader, source or source_size is missing");
    int rc = weir__reader_source_take(&own, source, source_size, error);
    isolated_reader *reader = rc == WEIR_OK ? calloc(1, sizeof *reader) : NULL;
    if (!reader) {
        weir__reader_source_free(&own);
        return rc == WEIR_OK ? weir_error_set(error, WEIR_ENOMEM, 0, "out of memory") : rc;
    }
    reader->source = own;
    rc = check_isolated(&how, isolated, isolated_size, error);
    if (rc == WEIR_OK)
        rc = prepare(reader, config, config_size, &how, &info, error);
    if (rc == WEIR_OK) {
        *made = weir__video_reader_of_remote(&(weir_remote_reader){ call_child, free_reader, reader }, &info);
        rc = *made ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    }
    if (rc != WEIR_OK)
        free_reader(reader);
    return rc;
}
