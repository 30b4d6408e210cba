/*
 * The child's side of weir_isolated: a pipeline of one slot, whose source waits for requests. The operation's results
 * are sent within its task; what else becomes of a task is sent by a hook at its end. The source has a thread of its
 * own, which always waits for the next request or the end of the parent. So the child ends together with the parent,
 * whatever its operation does.
 */
#include <weir/isolated.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weir/allocator.h>
#include <weir/engine.h>
#include <weir/video.h>

#include "stages/ffmpeg/io_thread.h"
#include "stages/isolate/isolated_config.h"
#include "stages/isolate/message.h"
#include "stages/isolate/sandbox.h"
#include "stages/memory/shared_data.h"

/* One per process. */
static const weir_op *inner; /* the operation; written before the pipeline runs */
static weir_op outer;        /* it, with run_inner(); the same */

/* The numbers of the request. The source writes them before it returns the item; the item's task reads them. The
   parent sends the next request only when that task has sent its last answer. */
static _Atomic uint64_t seq, epoch;
static _Atomic uint32_t source;

static sem_t is_continued; /* the parent has room for the next chunk */

static sandbox_kind sandbox; /* written before the pipeline runs */

static const isolated_sender parent = { .side = ISOLATED_PARENT };

static int parent_fd = -1; /* readable when the parent has ended; -1 = this kernel cannot tell */

static bool is_answered;              /* the task has sent its last result; its thread only */
static _Thread_local bool is_in_task; /* the operation logs, and not the engine */

/* False, with errno set: there is no memory, or no descriptor, for it. */
static bool try_answer(const isolated_message *message)
{
    bool is_sent = weir__isolated_send(ISOLATED_FD, message);
    if (!is_sent && (errno == EPIPE || errno == ECONNRESET))
        _exit(0); /* the parent has ended */
    return is_sent;
}

static void send_answer(const isolated_message *message)
{
    if (!try_answer(message))
        _exit(1); /* the parent would wait for ever */
}

static void answer_text(isolated_kind kind, int status, int library_code, const char *text)
{
    isolated_message message = { .head = { .kind = kind, .status = status, .library_code = library_code } };
    weir__isolated_put_text(&message, text);
    if (message.is_bad) /* no memory for it */
        message = (isolated_message){ .head = message.head };
    send_answer(&message);
    weir__isolated_message_free(&message);
}

/* Failures are logged by the parent, as those of its own tasks. */
static void send_log(void *self, weir_log_level level, const char *line)
{
    (void)self;
    if (is_in_task)
        answer_text(ISOLATED_LOG, (int)level, 0, line);
}

/* -- the pipeline */

/* The socket does not always show that the parent has ended: a process that the parent has forked holds it open,
   too. */
static void await_request(void)
{
    struct pollfd fds[] = { { .fd = ISOLATED_FD, .events = POLLIN }, { .fd = parent_fd, .events = POLLIN } };
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    if (fds[1].revents)
        _exit(0);
}

/* The file that the parent has opened. A child that reads URLs gets none, and opens what it may. */
static bool take_file(isolated_message *request)
{
    struct stat info;
    int fd;
    const char *path = weir__isolated_get_text(request);
    weir__isolated_get(request, &fd, sizeof fd);
    weir__isolated_get(request, &info, sizeof info);
    if (sandbox != SANDBOX_FILES || request->is_bad)
        return !request->is_bad;
    return weir__io_give(path, request->head.has_file ? request->file_fd : fd, &info);
}

static int receive_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    isolated_message request;
    for (;;) {
        await_request();
        if (!weir__isolated_receive(ISOLATED_FD, &parent, &request))
            _exit(errno == EPIPE ? 0 : 1);
        if (request.head.kind == ISOLATED_CONTINUE) {
            sem_post(&is_continued);
            weir__isolated_message_free(&request);
            continue;
        }
        const char *label = weir__isolated_get_text(&request);
        bool is_whole = label && weir_task_set_label(task, label) == WEIR_OK && take_file(&request) &&
                        weir__isolated_get_item(&request, out);
        seq = request.head.seq;
        epoch = request.head.epoch;
        source = request.head.source;
        weir__isolated_message_free(&request);
        if (is_whole)
            return WEIR_OK;
        answer_text(ISOLATED_FAILURE, WEIR_ENOMEM, 0, "out of memory in the process that decodes");
    }
}

static const weir_op receive_op = {
    .name = "receive",
    .makes = WEIR_TYPE_ANY,
    .run = receive_run,
};

/* Values are sent in shared memory, where the CPU copies them to. */
static int check_result(const weir_item *result, weir_error *error)
{
    bool is_frames = result->data && result->type && strcmp(result->type, WEIR_TYPE_FRAMES) == 0;
    return is_frames ? weir_memory_check(((const weir_frames *)result->data)->memory, "isolated", error) : WEIR_OK;
}

static int send_result(weir_item *result, int status, weir_task *task)
{
    isolated_message message = { .head = { .kind = ISOLATED_RESULT, .status = status } };
    weir_error error = { 0 };
    if (!result->type && inner->makes && !strchr(inner->makes, ' '))
        result->type = inner->makes;
    if (check_result(result, &error) != WEIR_OK)
        return weir_task_fail(task, error.status, 0, "%s", error.message);
    bool is_sent = weir__isolated_put_item(&message, result) && try_answer(&message);
    int failure = errno;
    weir__isolated_message_free(&message);
    if (is_sent)
        return status;
    return weir_task_fail(task,
                          failure == ENOTSUP  ? WEIR_EUNSUPPORTED
                          : failure == ENOMEM ? WEIR_ENOMEM
                                              : WEIR_ESYSTEM,
                          -failure, "cannot pass a result of type \"%s\" to another process: %s",
                          result->type ? result->type : "not declared", strerror(failure));
}

/* The results are sent, so the rest of the pipeline gets none; but WEIR_MORE needs an item. */
static int run_inner(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    static char sent[] = "sent";
    weir_item result = { 0 };
    /* no chunk is made before there is room for it; and the parent has read the last one, whose memory may be reused */
    while (weir_task_num_chunks(task) > 0 && sem_wait(&is_continued) != 0)
        ;
    in->seq = seq;
    in->epoch = epoch;
    in->source = source;
    is_in_task = true;
    int rc = inner->run(worker, in, &result, task);
    is_in_task = false;
    if (rc == WEIR_OK || rc == WEIR_MORE)
        rc = send_result(&result, rc, task);
    weir_item_release(&result);
    if (rc == WEIR_MORE)
        *out = (weir_item){ .data = sent };
    is_answered = rc == WEIR_OK;
    if (rc == WEIR_OK)
        return WEIR_SKIP;
    if (rc == WEIR_PENDING || rc == WEIR_KEPT)
        return weir_task_fail(task, WEIR_EUNSUPPORTED, 0, "%s returned %s: it cannot be isolated", inner->name,
                              weir_status_name(rc));
    return rc;
}

static int begin_task(void *self, void *state, weir_task *task, const weir_item *in)
{
    (void)self;
    (void)state;
    (void)task;
    (void)in;
    is_answered = false;
    return WEIR_OK;
}

static int end_task(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)self;
    (void)state;
    (void)task;
    bool is_refused = end->status == WEIR_EACCESS && sandbox == SANDBOX_FILES;
    weir_error error = { 0 };
    if (is_refused)
        weir_error_set(&error, end->status, end->error->library_code,
                       "%s; in the sandbox an operation or a filter can open no files: see no_sandbox (--no-sandbox)",
                       end->error->message);
    if (end->status < 0)
        answer_text(ISOLATED_FAILURE, end->status, end->error->library_code,
                    is_refused ? error.message : end->error->message);
    else if (!is_answered)
        send_answer(&(isolated_message){ .head = { .kind = ISOLATED_SKIPPED } });
    return WEIR_OK;
}

static int build_pipeline(const void *config, weir_pipeline **pipeline, weir_error *error)
{
    static const weir_task_hook hook = { .begin = begin_task, .end = end_task };
    weir_builder *builder = weir_builder_new();
    outer = *inner;
    outer.run = run_inner;
    outer.makes = NULL;
    weir_builder_source(builder, &receive_op, NULL, 0, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &outer, config, outer.config_size,
                      &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    return weir_builder_build(builder,
                              &(weir_pipeline_options){ .threads = 1,
                                                        .stats_interval_ns = WEIR_FOREVER,
                                                        .stall_warning_ns = WEIR_FOREVER,
                                                        .no_statistics = true },
                              pipeline, error);
}

/* -- the process */

static bool is_child(int argc, char *const argv[])
{
    int type = 0;
    socklen_t size = sizeof type;
    return argc == 2 && argv && argv[1] && strcmp(argv[1], ISOLATED_ARGUMENT) == 0 &&
           getsockopt(ISOLATED_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* The process that has made the socket. */
static void watch_parent(void)
{
#ifdef SYS_pidfd_open
    struct ucred maker;
    socklen_t size = sizeof maker;
    if (getsockopt(ISOLATED_FD, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0)
        parent_fd = (int)syscall(SYS_pidfd_open, maker.pid, 0);
    if (parent_fd < 0 && errno == ESRCH)
        _exit(0);
#endif
}

/* What is usually open for reading, too: what the user types is for others. */
static void close_terminal_for_reading(void)
{
    int fd = isatty(STDERR_FILENO) ? open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        dup2(fd, STDERR_FILENO);
        close(fd);
    }
}

static void prepare_process(void)
{
    static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ };
    sigset_t none;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* weir__isolated_process_start() has blocked all */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifdef SYS_close_range
    (void)syscall(SYS_close_range, ISOLATED_FD + 1, ~0U, 0); /* those that the program did not mark close-on-exec */
#endif
    fcntl(ISOLATED_FD, F_SETFD, FD_CLOEXEC);
    watch_parent();
    close_terminal_for_reading();
    dup2(STDERR_FILENO, STDOUT_FILENO);
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1); /* each one reserves address space */
#endif
    FILE *badness = fopen("/proc/self/oom_score_adj", "w"); /* without memory, rather the child than the program */
    if (badness) {
        fputs("500", badness);
        fclose(badness);
    }
    weir__shared_data_enable();
}

/* Address space: beyond what the process has now. A file in memory (memfd) is in none until it is mapped: each has the
   limit for itself. */
static bool limit_memory(uint64_t max_bytes)
{
    unsigned long long num_pages = 0;
    struct rlimit limit;
    if (max_bytes == 0)
        return true;
    FILE *file = fopen("/proc/self/statm", "r");
    bool is_known = file && fscanf(file, "%llu", &num_pages) == 1 && getrlimit(RLIMIT_AS, &limit) == 0;
    if (file)
        fclose(file);
    if (!is_known)
        return false;
    rlim_t bytes = num_pages * (rlim_t)sysconf(_SC_PAGESIZE);
    bytes = max_bytes < RLIM_INFINITY - bytes ? bytes + max_bytes : RLIM_INFINITY;
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    limit.rlim_max = limit.rlim_cur;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0)
        return false;
    limit.rlim_cur = limit.rlim_max = max_bytes < limit.rlim_max ? max_bytes : limit.rlim_max;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static const weir_op *find_op(const char *name, const weir_op *const *ops, size_t num_ops)
{
    for (size_t i = 0; name && i < num_ops; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    for (size_t i = 0; name && weir__isolated_own_ops[i]; i++)
        if (strcmp(weir__isolated_own_ops[i]->name, name) == 0)
            return weir__isolated_own_ops[i];
    return NULL;
}

static int configure_pipeline(isolated_message *message, const weir_op *const *ops, size_t num_ops,
                              weir_pipeline **pipeline, weir_error *error)
{
    const char *version = weir__isolated_get_text(message);
    if (message->head.kind != ISOLATED_CONFIG || !version || strcmp(version, WEIR_VERSION) != 0)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "the program has weir %s, but its child program %s",
                              version ? version : "?", WEIR_VERSION);
    const char *name = weir__isolated_get_text(message);
    inner = find_op(name, ops, num_ops);
    if (!inner)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "the child program has no operation \"%s\"",
                              name ? name : "?");
    void *config = weir__isolated_get_config(message, inner);
    if (!config)
        return weir_error_set(error, WEIR_EINVAL, 0, "the child program has another config of \"%s\"", name);
    sandbox = (sandbox_kind)message->head.sandbox;
    const weir_input_config *input = weir__isolated_input(inner, config);
    weir__sandbox_limit_thread(sandbox, input ? input->ca_file : NULL);
    weir_log_set_function(send_log, NULL);
    weir_log_set_level((weir_log_level)message->head.status);
    int rc = build_pipeline(inner->config_size ? config : NULL, pipeline, error);
    if (rc == WEIR_OK && !limit_memory(message->head.max_memory_bytes))
        return weir_error_set(error, WEIR_ESYSTEM, -errno, "cannot limit the memory: %s", strerror(errno));
    if (rc == WEIR_OK && !weir__sandbox_enter(sandbox))
        return weir_error_set(error, WEIR_EUNSUPPORTED, -errno,
                              "cannot enter the sandbox (seccomp): %s; no_sandbox (--no-sandbox) decodes without it",
                              weir__sandbox_complaint(errno));
    return rc;
}

int weir_isolated_serve(int argc, char *const argv[], const weir_op *const *ops, size_t num_ops)
{
    isolated_message message;
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_item item;
    if (!is_child(argc, argv) || (!ops && num_ops > 0))
        return WEIR_EINVAL;
    weir_standard_files_open();
    prepare_process();
    sem_init(&is_continued, 0, 0);
    if (!weir__isolated_receive(ISOLATED_FD, &parent, &message))
        _exit(1);
    int rc = configure_pipeline(&message, ops, num_ops, &pipeline, &error);
    weir__isolated_message_free(&message);
    answer_text(rc == WEIR_OK ? ISOLATED_READY : ISOLATED_FAILURE, error.status, error.library_code, error.message);
    while (rc == WEIR_OK && (rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK)
        weir_item_release(&item);
    _exit(1);
}
