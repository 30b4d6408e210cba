/*
 * The isolated stage: each slot has a child (isolated_child.h), which gets the slot's items. So as many children work at the
 * same time as the pool has threads.
 */
#include <weir/isolated.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/audio.h>
#include <weir/clock.h>
#include <weir/struct_copy.h>
#include <weir/video.h>

#include "stages/decoder/cost_parts.h"
#include "stages/ffmpeg/input.h"
#include "stages/isolate/isolated_child.h"
#include "stages/isolate/isolated_config.h"
#include "stages/isolate/message.h"

typedef struct isolated_worker {
    isolated_child child;
    bool is_midway;      /* the child has more results of the last item */
    uint64_t num_frames; /* of this item, in its chunks so far */
    int64_t begin_ns;    /* of this item */
} isolated_worker;

/* -- config */

/* What config_init() of the operation makes of its config is freed again: the child makes it anew. */
static int check_config(const weir_op *op, const void *config, weir_input_config *opens, isolated_shape *shape,
                        weir_error *error)
{
    if (!op->config_init || !config)
        return WEIR_OK;
    void *copy = malloc(op->config_size);
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    memcpy(copy, config, op->config_size);
    int rc = op->config_init(copy, error);
    const weir_input_config *input = rc == WEIR_OK ? weir__isolated_input(op, copy) : NULL;
    if (input)
        *opens = *input;
    opens->ca_file = NULL;
    if (rc == WEIR_OK)
        *shape = weir__isolated_shape_of(op, copy);
    if (rc == WEIR_OK && op->config_free)
        op->config_free(copy);
    free(copy);
    return rc;
}

static int check_op(const weir_op *op, const void *config, weir_error *error)
{
    if (!op || !op->run || !op->name)
        return weir_error_set(error, WEIR_EINVAL, 0, "op is missing");
    if (op->flush || op->cancel)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%s has flush or cancel: it cannot be isolated", op->name);
    if (config && op->config_size == 0)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "the config of %s is not copied: it cannot be isolated",
                              op->name);
    return WEIR_OK;
}

/* *own is the config with this library's size, to be freed with free(); NULL if the operation has none. */
static int copy_config(const weir_isolated_config *given, void **own, weir_error *error)
{
    const weir_op *op = given->op;
    *own = NULL;
    if (op->config_size == 0)
        return WEIR_OK;
    if (given->config && given->config_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "config_size is 0: pass the size of the config of %s", op->name);
    *own = malloc(op->config_size);
    if (!*own)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int rc = weir_struct_copy(*own, op->config_size, given->config, given->config_size, "the isolated config", error);
    if (rc == WEIR_OK && weir__isolated_has_allocator(op, *own))
        rc = weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                            "%s with an allocator: a child process has no access to the program's memory; remove "
                            "the allocator, or give it to a later stage (collate)",
                            op->name);
    if (rc == WEIR_OK && op == &weir_video_decode && ((const weir_video_config *)*own)->audio)
        rc = weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                            "audio together with video: a child process cannot decode both");
    return rc;
}

/* The size of a config of which isolated_config_init() has made a setup; no object has it. */
#define SETUP_SIZE SIZE_MAX

static int isolated_config_init(void *self, weir_error *error)
{
    weir_isolated_config *config = self;
    isolated_setup *setup;
    if (config->config_size == SETUP_SIZE) { /* weir_builder_copy() */
        weir__isolated_setup_hold((isolated_setup *)(uintptr_t)config->config);
        return WEIR_OK;
    }
    weir_input_config opens = { 0 };
    isolated_shape shape = { 0 };
    void *own = NULL;
    int rc = check_op(config->op, config->config, error);
    if (rc == WEIR_OK)
        rc = copy_config(config, &own, error);
    if (rc == WEIR_OK)
        rc = check_config(config->op, own, &opens, &shape, error);
    if (rc == WEIR_OK)
        rc = weir__isolated_setup_new(config, config->op, own, &setup, error);
    free(own);
    if (rc != WEIR_OK)
        return rc;
    setup->input = opens;
    setup->shape = shape;
    config->config = setup;
    config->config_size = SETUP_SIZE;
    config->program = setup->program;
    return WEIR_OK;
}

static void isolated_config_free(void *self)
{
    weir_isolated_config *config = self;
    weir__isolated_setup_free((isolated_setup *)config->config);
}

/* -- for whom a child works: a task */

static bool ask_task(void *task)
{
    return weir_task_should_stop(task);
}

static void tell_task(void *task, int64_t cpu_ns, int64_t delay_ns)
{
    weir_task_add_cpu_time(task, cpu_ns);
    weir_task_add_run_delay(task, delay_ns);
}

static isolated_waiter waiter_of(weir_task *task)
{
    return (isolated_waiter){ ask_task, tell_task, task };
}

static const isolated_setup *setup_of(const weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    return config->config;
}

static int fail(weir_task *task, const weir_error *error)
{
    return weir_task_fail(task, error->status, error->library_code, "%s", error->message);
}

static int fail_nonsense(isolated_worker *worker, weir_task *task, const char *about)
{
    weir_error error = { 0 };
    weir__isolated_child_nonsense(&worker->child, about, &error);
    return fail(task, &error);
}

static int fail_lost(isolated_worker *worker, weir_task *task, int failure)
{
    weir_error error = { 0 };
    weir__isolated_child_lost(&worker->child, setup_of(task), failure, &error);
    return fail(task, &error);
}

/* -- items */

static bool is_own(const weir_op *op)
{
    for (size_t i = 0; weir__isolated_own_ops[i]; i++)
        if (op == weir__isolated_own_ops[i])
            return true;
    return false;
}

/* A child cannot look at files, so this is done here. */
static int check_input(const weir_item *in, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    const weir_entry *entry;
    weir_error error = { 0 };
    if (config->no_sandbox || !is_own(config->op) || weir__input_check(in, &entry, &error) == WEIR_OK)
        return WEIR_OK;
    return fail(task, &error);
}

/* The request of the item. WEIR_OK, or the failure of the task; free it in any case. */
static int make_request(isolated_worker *worker, isolated_message *request, weir_local_file *file,
                        sandbox_kind *sandbox, const weir_item *in, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    const isolated_waiter waiter = waiter_of(task);
    bool is_opened_here = !config->no_sandbox && is_own(config->op);
    *request = (isolated_message){
        .head = { .kind = ISOLATED_REQUEST,
                  .source = weir_task_source(task),
                  .seq = weir_task_seq(task),
                  .epoch = weir_task_epoch(task) },
    };
    weir__isolated_put_text(request, weir_task_label(task));
    *sandbox =
        weir__isolated_put_file(&worker->child, setup_of(task), request, file, is_opened_here ? in : NULL, &waiter);
    if (weir__isolated_put_item(request, in))
        return WEIR_OK;
    return weir_task_fail(task, WEIR_ENOMEM, -errno, "cannot pass the item to a process: %s", strerror(errno));
}

/* Sends the request. A child that has died since the last item, or has another sandbox, is replaced. */
static int send_request(isolated_worker *worker, const isolated_message *request, sandbox_kind sandbox,
                        weir_task *task)
{
    isolated_child *child = &worker->child;
    const isolated_waiter waiter = waiter_of(task);
    weir_error error = { 0 };
    if (worker->is_midway || child->sandbox != sandbox)
        weir__isolated_child_end(child);
    worker->is_midway = false;
    if (child->process.pid && weir__isolated_send(child->process.fd, request))
        return WEIR_OK;
    weir__isolated_child_end(child);
    if (weir__isolated_child_start(child, setup_of(task), sandbox, &waiter, &error) != WEIR_OK)
        return fail(task, &error);
    return weir__isolated_send(child->process.fd, request) ? WEIR_OK : fail_lost(worker, task, errno);
}

static int begin_item(isolated_worker *worker, const weir_item *in, weir_task *task)
{
    weir_local_file file = { 0 };
    isolated_message request;
    sandbox_kind sandbox;
    int rc = check_input(in, task);
    if (rc != WEIR_OK)
        return rc;
    worker->num_frames = 0;
    worker->begin_ns = weir_clock_ns();
    rc = make_request(worker, &request, &file, &sandbox, in, task);
    if (rc == WEIR_OK)
        rc = send_request(worker, &request, sandbox, task);
    weir__local_file_close(&file);
    weir__isolated_message_free(&request);
    return rc;
}

/* The entry and the other files of the input's sample stay in the parent; the result gets them as if it had been made here. */
static int join_input(const isolated_shape *shape, weir_item *in, weir_item *out)
{
    int rc = WEIR_OK;
    if (strcmp(out->type, WEIR_TYPE_FRAMES) == 0) {
        weir_frames *frames = out->data;
        if (frames->is_last_chunk || shape->clip_items)
            rc =
                weir__input_give(in, frames->is_last_chunk, &frames->entry, &frames->sidecars, &frames->memory_bytes);
        out->size_bytes = frames->memory_bytes;
    } else if (strcmp(out->type, WEIR_TYPE_AUDIO) == 0) {
        weir_audio *audio = out->data;
        rc = weir__input_give(in, true, &audio->entry, &audio->sidecars, &audio->memory_bytes);
        out->size_bytes = audio->memory_bytes;
    }
    return rc;
}

/* The type may be wrong: the consumer relies on it. */
static bool is_declared(const char *types, const char *type)
{
    size_t length;
    for (; types && *types; types += length + (types[length] != '\0')) {
        length = strcspn(types, " ");
        if ((length == strlen(type) && memcmp(types, type, length) == 0) ||
            (length == strlen(WEIR_TYPE_ANY) && memcmp(types, WEIR_TYPE_ANY, length) == 0))
            return true;
    }
    return !types;
}

static int refuse_type(isolated_worker *worker, weir_item *out, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    weir__isolated_child_end(&worker->child);
    weir_task_fail(task, WEIR_EUNSUPPORTED, 0, "%s returned an item of type \"%s\", which it does not declare",
                   config->op->name, out->type);
    weir_item_release(out);
    return WEIR_EUNSUPPORTED;
}

/* What the child does inside a result is not known here. */
static void count_work(isolated_worker *worker, const weir_item *out, weir_task *task)
{
    if (strcmp(out->type, WEIR_TYPE_FRAMES) == 0) {
        const weir_frames *frames = out->data;
        worker->num_frames += frames->num_frames;
        weir_task_advance(task, "frames", frames->num_frames);
    } else if (strcmp(out->type, WEIR_TYPE_AUDIO) == 0) {
        weir_task_advance(task, "samples", ((const weir_audio *)out->data)->num_samples);
    }
}

static int take_result(isolated_worker *worker, isolated_message *answer, weir_item *in, weir_item *out,
                       weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    bool is_more = answer->head.status == WEIR_MORE;
    if (!weir__isolated_get_item(answer, out))
        return fail_nonsense(worker, task, answer->complaint);
    if (!is_declared(config->op->makes, out->type) || !is_declared(weir_isolated.makes, out->type))
        return refuse_type(worker, out, task);
    const char *misfit = weir__isolated_find_misfit(&setup_of(task)->shape, out, worker->num_frames, is_more,
                                                    weir_clock_ns() - worker->begin_ns);
    if (misfit) {
        weir_item_release(out);
        return fail_nonsense(worker, task, misfit);
    }
    const weir_decode_cost *cost = weir__isolated_cost_of(out);
    if (cost)
        weir__cost_tell(task, cost);
    count_work(worker, out, task);
    worker->is_midway = is_more;
    if (join_input(&setup_of(task)->shape, in, out) != WEIR_OK) {
        weir_item_release(out);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    return is_more ? WEIR_MORE : WEIR_OK;
}

static int continue_item(isolated_worker *worker, weir_task *task)
{
    bool is_sent =
        weir__isolated_send(worker->child.process.fd, &(isolated_message){ .head = { .kind = ISOLATED_CONTINUE } });
    return is_sent ? WEIR_OK : fail_lost(worker, task, errno);
}

static int isolated_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    isolated_worker *worker = self;
    isolated_message answer = { 0 };
    weir_error error = { 0 };
    const isolated_waiter waiter = waiter_of(task);
    int rc = weir_task_num_chunks(task) == 0 ? begin_item(worker, in, task) : continue_item(worker, task);
    if (rc == WEIR_OK &&
        (rc = weir__isolated_child_await(&worker->child, setup_of(task), &waiter, &answer, &error)) != WEIR_OK)
        rc = fail(task, &error);
    if (rc == WEIR_OK) {
        worker->is_midway = false;
        switch (answer.head.kind) {
        case ISOLATED_RESULT: rc = take_result(worker, &answer, in, out, task); break;
        case ISOLATED_SKIPPED: rc = WEIR_SKIP; break;
        case ISOLATED_FAILURE:
            weir__isolated_child_reported(&worker->child, &answer, &error);
            rc = fail(task, &error);
            break;
        default: rc = fail_nonsense(worker, task, "head.kind"); break;
        }
    }
    weir__isolated_message_free(&answer);
    return rc;
}

static void isolated_worker_free(void *self)
{
    isolated_worker *worker = self;
    weir__isolated_child_free(&worker->child);
}

const weir_op weir_isolated = {
    .name = "isolated",
    .takes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
    .makes = WEIR_TYPE_FRAMES " " WEIR_TYPE_AUDIO " " WEIR_TYPE_BYTES " " WEIR_TYPE_TEXT,
    .config_size = sizeof(weir_isolated_config),
    .config_init = isolated_config_init,
    .config_free = isolated_config_free,
    .worker_size = sizeof(isolated_worker),
    .run = isolated_run,
    .worker_free = isolated_worker_free,
};
