/*
 * The parent's side of weir_isolated. While a child works, the thread of the task waits for its answer, so as many
 * children work at the same time as the pool has threads.
 */
#include <weir/isolated.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/audio.h>
#include <weir/clock.h>
#include <weir/log.h>
#include <weir/struct_copy.h>
#include <weir/version.h>
#include <weir/video.h>

#include "stages/decoder/cost_parts.h"
#include "stages/ffmpeg/input.h"
#include "stages/isolate/child_process.h"
#include "stages/isolate/isolated_config.h"
#include "stages/isolate/message.h"
#include "stages/isolate/sandbox.h"

/* How often a waiting task asks if it should stop. */
enum { ASK_INTERVAL_MS = 50 };

/* What weir_isolated_config.config points to, once it has been copied. */
typedef struct isolated_setup {
    isolated_message message; /* the first one to each child */
    isolated_shape shape;     /* of the results */
    weir_input_config input;  /* as which this process opens files for the child; without its strings */
    char *worker;
} isolated_setup;

typedef struct isolated_worker {
    isolated_process process;
    bool is_midway;                               /* the child has more results of the last item */
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS]; /* of this child; the items that use them hold them, too */
    uint64_t num_frames;                          /* of this item, in its chunks so far */
    int64_t begin_ns;                             /* of this item */
    weir_local_host host;                         /* opens files that may hang */
    sandbox_kind sandbox;                         /* of the process */
} isolated_worker;

/* -- config */

/* weir-worker lies in a folder beside the library; or, if the library is part of a program, near that or where it was
   installed. */
static char *find_worker(const char *given)
{
    static const char *const places[] = { WEIR_WORKER, "../" WEIR_LIBDIR "/" WEIR_WORKER };
    static const char inside;
    Dl_info info;
    const char *path = given ? given : secure_getenv("WEIR_WORKER");
    if (path)
        return strdup(path);
    const char *slash = dladdr(&inside, &info) ? strrchr(info.dli_fname, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        char *near;
        if (asprintf(&near, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, places[i]) < 0)
            return NULL;
        if (access(near, X_OK) == 0)
            return near;
        free(near);
    }
    return strdup(WEIR_INSTALLED_LIBDIR "/" WEIR_WORKER);
}

/* What config_init() of the operation makes of its config is freed again: the child makes it anew. */
static int check_config(const weir_op *op, const void *config, isolated_setup *setup, weir_error *error)
{
    if (!op->config_init)
        return WEIR_OK;
    void *copy = malloc(op->config_size);
    if (!copy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    memcpy(copy, config, op->config_size);
    int rc = op->config_init(copy, error);
    const weir_input_config *input = rc == WEIR_OK ? weir__isolated_input(op, copy) : NULL;
    if (input)
        setup->input = *input;
    setup->input.ca_file = NULL;
    if (rc == WEIR_OK)
        setup->shape = weir__isolated_shape_of(op, copy);
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
static int copy_config(const weir_isolated_config *given, void **own, isolated_setup *setup, weir_error *error)
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
        rc = weir_error_set(error, WEIR_EUNSUPPORTED, 0, "audio together with video: not in a child process");
    return rc == WEIR_OK ? check_config(op, *own, setup, error) : rc;
}

static void setup_free(isolated_setup *setup)
{
    weir__isolated_message_free(&setup->message);
    free(setup->worker);
    free(setup);
}

static int isolated_config_init(void *self, weir_error *error)
{
    weir_isolated_config *config = self;
    int rc = check_op(config->op, config->config, error);
    if (rc != WEIR_OK)
        return rc;
    void *own;
    isolated_setup checked = { 0 };
    rc = copy_config(config, &own, &checked, error);
    isolated_setup *setup = rc == WEIR_OK ? calloc(1, sizeof *setup) : NULL;
    if (rc == WEIR_OK && !setup)
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (rc != WEIR_OK) {
        free(own);
        return rc;
    }
    *setup = checked;
    setup->worker = find_worker(config->worker);
    setup->message.head.kind = ISOLATED_CONFIG;
    setup->message.head.status = (int)weir_log_get_level();
    setup->message.head.max_memory_bytes = config->max_memory_bytes;
    weir__isolated_put_text(&setup->message, WEIR_VERSION);
    weir__isolated_put_text(&setup->message, config->op->name);
    weir__isolated_put_config(&setup->message, config->op, own);
    free(own);
    if (!setup->worker || setup->message.is_bad)
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    else if (access(setup->worker, X_OK) != 0)
        rc = weir_error_set(error, WEIR_ENOTFOUND, -errno,
                            "%s, which runs isolated operations: %s; WEIR_WORKER can name another", setup->worker,
                            strerror(errno));
    config->config = setup;
    config->worker = setup->worker;
    if (rc != WEIR_OK)
        setup_free(setup);
    return rc;
}

static void isolated_config_free(void *self)
{
    weir_isolated_config *config = self;
    setup_free((isolated_setup *)config->config);
}

/* -- the child */

static void drop_blocks(isolated_worker *worker)
{
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++) {
        weir__shared_data_drop(worker->blocks[i]);
        worker->blocks[i] = NULL;
    }
}

static void end_child(isolated_worker *worker)
{
    weir__isolated_process_end(&worker->process);
    drop_blocks(worker);
}

/* A child that says what makes no sense is not asked again. */
static int fail_nonsense(isolated_worker *worker, weir_task *task, const char *about)
{
    end_child(worker);
    return weir_task_fail(task, WEIR_ESYSTEM, -EPROTO,
                          "the process that decodes sent a message that makes no sense (%s): it was ended",
                          about[0] ? about : "an item");
}

static int fail_lost(isolated_worker *worker, weir_task *task, int failure)
{
    const weir_isolated_config *config = weir_task_config(task);
    char text[256];
    if (failure == EPIPE || failure == ECONNRESET) {
        int status = weir__isolated_process_tell_end(&worker->process, config->worker, text, sizeof text);
        drop_blocks(worker);
        return weir_task_fail(task, status, 0, "%s", text);
    }
    end_child(worker);
    return weir_task_fail(task, failure == ENOMEM ? WEIR_ENOMEM : WEIR_ESYSTEM, -failure,
                          "the connection to the process that decodes: %s", strerror(failure));
}

/* The only part of a message. A child that had no memory for it sends none. */
static bool get_line(isolated_message *message, const char **text)
{
    *text = message->head.body_bytes > 0 ? weir__isolated_get_text(message) : NULL;
    return weir__isolated_is_read(message);
}

static bool pass_on_log(isolated_message *message)
{
    const char *text;
    if (!get_line(message, &text))
        return false;
    if (text)
        weir_log((weir_log_level)message->head.status, "%s", text);
    return true;
}

/* The child's next message that is not for the log. WEIR_OK, or the failure of the task; free it in any case. */
static int await_message(isolated_worker *worker, weir_task *task, isolated_message *message)
{
    const weir_isolated_config *config = weir_task_config(task);
    const isolated_setup *setup = config->config;
    const isolated_sender child = { ISOLATED_CHILD, worker->blocks, weir__isolated_max_body(&setup->shape) };
    for (;;) {
        struct pollfd readable = { .fd = worker->process.fd, .events = POLLIN };
        *message = (isolated_message){ 0 };
        int num_ready = poll(&readable, 1, ASK_INTERVAL_MS);
        weir_task_add_cpu_time(task, weir__isolated_process_cpu_ns(&worker->process));
        weir_task_add_run_delay(task, weir__isolated_process_delay_ns(&worker->process));
        if (weir_task_should_stop(task)) {
            end_child(worker);
            return weir_task_fail(task, WEIR_ESTOPPED, 0, "stopped: the process that decodes was killed");
        }
        if (num_ready <= 0)
            continue;
        if (!weir__isolated_receive(worker->process.fd, &child, message))
            return message->complaint[0] ? fail_nonsense(worker, task, message->complaint)
                                         : fail_lost(worker, task, errno);
        if (message->head.kind != ISOLATED_LOG)
            return WEIR_OK;
        if (!pass_on_log(message))
            return fail_nonsense(worker, task, message->complaint);
        weir__isolated_message_free(message);
    }
}

/* A failure that the child has reported. */
static int pass_on_failure(isolated_worker *worker, isolated_message *message, weir_task *task)
{
    const char *text;
    if (!get_line(message, &text))
        return fail_nonsense(worker, task, message->complaint);
    return weir_task_fail(task, message->head.status, message->head.library_code, "%s", text ? text : "failed");
}

static int start_child(isolated_worker *worker, sandbox_kind sandbox, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    const isolated_setup *setup = config->config;
    isolated_message answer = { 0 };
    isolated_message first = setup->message;
    first.head.sandbox = (uint32_t)sandbox;
    worker->sandbox = sandbox;
    int failure = weir__isolated_process_start(&worker->process, config->worker, sandbox);
    if (failure)
        return weir_task_fail(task, WEIR_ESYSTEM, -failure, "cannot start %s: %s", config->worker, strerror(failure));
    worker->is_midway = false;
    int rc = weir__isolated_send(worker->process.fd, &first) ? await_message(worker, task, &answer)
                                                             : fail_lost(worker, task, errno);
    if (rc == WEIR_OK && answer.head.kind == ISOLATED_FAILURE) {
        rc = pass_on_failure(worker, &answer, task);
        end_child(worker);
    } else if (rc == WEIR_OK && answer.head.kind != ISOLATED_READY) {
        rc = fail_nonsense(worker, task, "head.kind");
    }
    weir__isolated_message_free(&answer);
    return rc;
}

static int ask_task(void *task)
{
    return weir_task_should_stop(task);
}

static bool is_own(const weir_op *op)
{
    for (size_t i = 0; weir__isolated_own_ops[i]; i++)
        if (op == weir__isolated_own_ops[i])
            return true;
    return false;
}

/* Opens the file of the item for the child, and puts what the child must know of it. */
static sandbox_kind put_file(isolated_worker *worker, isolated_message *request, weir_local_file *file,
                             const weir_item *in, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    const isolated_setup *setup = config->config;
    AVIOInterruptCB interrupt = { .callback = ask_task, .opaque = task };
    char *path = NULL;
    bool is_url = false;
    worker->host.config = &setup->input;
    if (!config->no_sandbox && is_own(config->op))
        is_url = weir__input_pass(file, &worker->host, in, interrupt, &path);
    request->head.has_file = file->is_open;
    request->file_fd = file->fd;
    weir__isolated_put_text(request, path);
    weir__isolated_put(request, &file->fd, sizeof file->fd);
    weir__isolated_put(request, &file->info, sizeof file->info);
    free(path);
    return config->no_sandbox ? SANDBOX_NONE : is_url ? SANDBOX_URLS : SANDBOX_FILES;
}

/* A child cannot look at files, so this is done here. */
static int check_input(const weir_item *in, weir_task *task)
{
    const weir_isolated_config *config = weir_task_config(task);
    const weir_entry *entry;
    weir_error error = { 0 };
    if (config->no_sandbox || !is_own(config->op) || weir__input_check(in, &entry, &error) == WEIR_OK)
        return WEIR_OK;
    return weir_task_fail(task, error.status, error.library_code, "%s", error.message);
}

/* Sends the item to a child. One that has died since the last item, or has another sandbox, is replaced. */
static int begin_item(isolated_worker *worker, const weir_item *in, weir_task *task)
{
    weir_local_file file = { 0 };
    isolated_message request = {
        .head = { .kind = ISOLATED_REQUEST,
                  .source = weir_task_source(task),
                  .seq = weir_task_seq(task),
                  .epoch = weir_task_epoch(task) },
    };
    int rc = check_input(in, task);
    if (rc != WEIR_OK)
        return rc;
    worker->num_frames = 0;
    worker->begin_ns = weir_clock_ns();
    weir__isolated_put_text(&request, weir_task_label(task));
    sandbox_kind sandbox = put_file(worker, &request, &file, in, task);
    if (worker->is_midway || worker->sandbox != sandbox)
        end_child(worker);
    bool is_sent = false;
    if (!weir__isolated_put_item(&request, in))
        rc = weir_task_fail(task, WEIR_ENOMEM, -errno, "cannot pass the item to a process: %s", strerror(errno));
    if (rc == WEIR_OK && worker->process.pid) {
        is_sent = weir__isolated_send(worker->process.fd, &request);
        if (!is_sent)
            end_child(worker);
    }
    if (rc == WEIR_OK && !is_sent)
        rc = start_child(worker, sandbox, task);
    if (rc == WEIR_OK && !is_sent && !weir__isolated_send(worker->process.fd, &request))
        rc = fail_lost(worker, task, errno);
    weir__local_file_close(&file);
    weir__isolated_message_free(&request);
    return rc;
}

/* The entry and the sidecars of the input stay in the parent; the result gets them as if it had been made here. */
static void join_input(weir_item *in, weir_item *out)
{
    if (strcmp(out->type, WEIR_TYPE_FRAMES) == 0) {
        weir_frames *frames = out->data;
        if (frames->is_last_chunk) {
            weir__input_take_sidecars(in, &frames->sidecars, &frames->memory_bytes);
            weir__input_take_entry(in, &frames->entry, &frames->memory_bytes);
        }
        out->size_bytes = frames->memory_bytes;
    } else if (strcmp(out->type, WEIR_TYPE_AUDIO) == 0) {
        weir_audio *audio = out->data;
        weir__input_take_sidecars(in, &audio->sidecars, &audio->memory_bytes);
        weir__input_take_entry(in, &audio->entry, &audio->memory_bytes);
        out->size_bytes = audio->memory_bytes;
    }
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
    end_child(worker);
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
    const isolated_setup *setup = config->config;
    bool is_more = answer->head.status == WEIR_MORE;
    if (!weir__isolated_get_item(answer, out))
        return fail_nonsense(worker, task, answer->complaint);
    if (!is_declared(config->op->makes, out->type) || !is_declared(weir_isolated.makes, out->type))
        return refuse_type(worker, out, task);
    const char *misfit = weir__isolated_find_misfit(&setup->shape, out, worker->num_frames, is_more,
                                                    weir_clock_ns() - worker->begin_ns);
    if (misfit) {
        weir_item_release(out);
        return fail_nonsense(worker, task, misfit);
    }
    const weir_decode_cost *cost = weir__isolated_cost_of(out);
    if (cost)
        weir__cost_tell(task, cost);
    count_work(worker, out, task);
    join_input(in, out);
    worker->is_midway = is_more;
    return is_more ? WEIR_MORE : WEIR_OK;
}

static int continue_item(isolated_worker *worker, weir_task *task)
{
    bool is_sent =
        weir__isolated_send(worker->process.fd, &(isolated_message){ .head = { .kind = ISOLATED_CONTINUE } });
    return is_sent ? WEIR_OK : fail_lost(worker, task, errno);
}

static int isolated_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    isolated_worker *worker = self;
    isolated_message answer = { 0 };
    int rc = weir_task_num_chunks(task) == 0 ? begin_item(worker, in, task) : continue_item(worker, task);
    if (rc == WEIR_OK)
        rc = await_message(worker, task, &answer);
    if (rc == WEIR_OK) {
        worker->is_midway = false;
        switch (answer.head.kind) {
        case ISOLATED_RESULT: rc = take_result(worker, &answer, in, out, task); break;
        case ISOLATED_SKIPPED: rc = WEIR_SKIP; break;
        case ISOLATED_FAILURE: rc = pass_on_failure(worker, &answer, task); break;
        default: rc = fail_nonsense(worker, task, "head.kind"); break;
        }
    }
    weir__isolated_message_free(&answer);
    return rc;
}

static void isolated_worker_free(void *self)
{
    isolated_worker *worker = self;
    end_child(worker);
    weir__local_host_free(&worker->host);
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
