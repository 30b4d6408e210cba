/* In the child: each request is a call of the one reader that the operation's only worker has. */
#include "stages/isolate/reader_child.h"

#include <stdlib.h>

#include "stages/isolate/reader_message.h"
#include "stages/reader/video_config.h"

typedef struct child_reader {
    weir_video_reader *reader;
    weir_item source; /* the request with which it came: the reader borrows from it */
} child_reader;

static int reader_config_init(void *config, weir_error *error)
{
    return weir__video_config_check(config, error);
}

static void reader_config_free(void *config)
{
    weir__video_config_free(config);
}

static void close_reader(child_reader *child)
{
    weir_video_reader_free(child->reader);
    child->reader = NULL;
    weir_item_release(&child->source);
}

static void reader_worker_free(void *self)
{
    close_reader(self);
}

static int open_reader(child_reader *child, weir_item *in, weir_task *task, weir_error *error)
{
    const isolated_reader_request *request = in->data;
    const weir_video_config *config = weir_task_config(task);
    close_reader(child);
    weir_item_move(&child->source, in);
    const weir_video_source source = {
        .path = request->path,
        .bytes = (weir_bytes *)(uintptr_t)request->bytes,
        .one_request = request->one_request,
        .packets = request->packets,
        .packets_bytes = request->packets_bytes,
    };
    return weir_video_reader_open(&child->reader, &source, sizeof source, config, sizeof *config, error);
}

static int do_call(weir_video_reader *reader, const weir_reader_call *call, weir_reader_answer *answer,
                   weir_error *error)
{
    const weir_sampling *sampling = call->sampling;
    const weir_picture_config *picture = call->picture;
    switch (call->verb) {
    case WEIR_READER_OPEN: return WEIR_OK;
    case WEIR_READER_SCAN: return weir_video_reader_scan(reader, error);
    case WEIR_READER_TIMES: return weir_video_reader_times(reader, &answer->times, error);
    case WEIR_READER_FRAMES:
        return weir_video_reader_frames(reader, sampling, sizeof *sampling, picture, sizeof *picture, &answer->frames,
                                        error);
    case WEIR_READER_MEASURE:
        return weir_video_reader_measure(reader, sampling, sizeof *sampling, picture, sizeof *picture, &answer->size,
                                         sizeof answer->size, error);
    case WEIR_READER_BEGIN:
        return weir_video_reader_begin(reader, sampling, sizeof *sampling, picture, sizeof *picture, error);
    case WEIR_READER_NEXT: return weir_video_reader_next(reader, &answer->frames, error);
    case WEIR_READER_SOUND:
        return weir_video_reader_sound(reader, call->sound, sizeof *call->sound, call->start_ns, call->end_ns,
                                       &answer->audio, error);
    }
    return weir_error_set(error, WEIR_EINVAL, 0, "no call of a reader has the number %d", (int)call->verb);
}

static int give_facts(const child_reader *child, weir_reader_answer *answer, bool is_end, weir_item *out,
                      weir_task *task)
{
    isolated_reader_facts *facts = calloc(1, sizeof *facts);
    if (!facts) {
        weir_frame_times_free(answer->times);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    facts->answer = *answer;
    facts->is_end = is_end;
    weir_video_reader_info(child->reader, &facts->answer.info, sizeof facts->answer.info);
    *out = (weir_item){ .data = facts, .type = ISOLATED_TYPE_FACTS, .release = weir__isolated_release_facts };
    return WEIR_OK;
}

static int reader_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    child_reader *child = self;
    const isolated_reader_request *request = in->data;
    const weir_reader_call *call = &request->call;
    weir_reader_answer answer = { 0 };
    weir_error error = { 0 };
    int rc = request->has_source ? open_reader(child, in, task, &error) : WEIR_OK;
    if (rc == WEIR_OK)
        rc = weir_video_reader_set_number(child->reader, call->epoch, call->number);
    if (rc == WEIR_OK)
        rc = do_call(child->reader, call, &answer, &error);
    if (rc < 0)
        return weir_task_fail(task, rc, error.library_code, "%s", error.message);
    if (answer.audio) {
        *out = (weir_item){ .data = answer.audio, .type = WEIR_TYPE_AUDIO, .release = weir_audio_release };
        return WEIR_OK;
    }
    if (!answer.frames)
        return give_facts(child, &answer, rc == WEIR_EOF, out, task);
    *out = (weir_item){ .data = answer.frames, .type = WEIR_TYPE_FRAMES, .release = weir_frames_release };
    return WEIR_OK;
}

const weir_op weir__isolated_reader_op = {
    .name = "video_reader",
    .config_size = sizeof(weir_video_config),
    .config_init = reader_config_init,
    .config_free = reader_config_free,
    .worker_size = sizeof(child_reader),
    .run = reader_run,
    .worker_free = reader_worker_free,
};
