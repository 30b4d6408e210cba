#include "stages/isolate/isolated_child.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/version.h>

/* How often one who waits is asked whether to stop. */
enum { ASK_INTERVAL_MS = 50 };

/* -- what a child is started with */

/* weir-child lies in a folder beside the library; or, if the library is part of a program, near that or where it was
   installed. */
static char *find_program(const char *given)
{
    static const char *const places[] = { WEIR_CHILD, "../" WEIR_LIBDIR "/" WEIR_CHILD };
    static const char inside;
    Dl_info info;
    const char *path = given ? given : secure_getenv("WEIR_CHILD");
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
    return strdup(WEIR_INSTALLED_LIBDIR "/" WEIR_CHILD);
}

static int check_program(const isolated_setup *setup, weir_error *error)
{
    if (!setup->program || setup->message.is_bad)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (access(setup->program, X_OK) == 0)
        return WEIR_OK;
    return weir_error_set(error, WEIR_ENOTFOUND, -errno,
                          "%s, which runs isolated operations: %s; WEIR_CHILD can name another", setup->program,
                          strerror(errno));
}

int weir__isolated_setup_new(const weir_isolated_config *isolated, const weir_op *op, const void *config,
                             isolated_setup **made, weir_error *error)
{
    isolated_setup *setup = calloc(1, sizeof *setup);
    if (!setup)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    setup->num_holders = 1;
    setup->no_sandbox = isolated->no_sandbox;
    setup->program = find_program(isolated->program);
    setup->message.head.kind = ISOLATED_CONFIG;
    setup->message.head.status = (int)weir_log_get_level();
    setup->message.head.max_memory_bytes = isolated->max_memory_bytes;
    weir__isolated_put_text(&setup->message, WEIR_VERSION);
    weir__isolated_put_text(&setup->message, op->name);
    weir__isolated_put_config(&setup->message, op, config);
    int rc = check_program(setup, error);
    if (rc == WEIR_OK)
        *made = setup;
    else
        weir__isolated_setup_free(setup);
    return rc;
}

void weir__isolated_setup_hold(isolated_setup *setup)
{
    atomic_fetch_add(&setup->num_holders, 1);
}

void weir__isolated_setup_free(isolated_setup *setup)
{
    if (!setup || atomic_fetch_sub(&setup->num_holders, 1) > 1)
        return;
    weir__isolated_message_free(&setup->message);
    free(setup->program);
    free(setup);
}

/* -- failures */

static void drop_blocks(isolated_child *child)
{
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++) {
        weir__shared_data_drop(child->blocks[i]);
        child->blocks[i] = NULL;
    }
}

void weir__isolated_child_end(isolated_child *child)
{
    weir__isolated_process_end(&child->process);
    drop_blocks(child);
}

void weir__isolated_child_free(isolated_child *child)
{
    weir__isolated_child_end(child);
    weir__local_host_free(&child->host);
}

/* The child has sent a message that makes no sense. It is not asked again. */
int weir__isolated_child_nonsense(isolated_child *child, const char *about, weir_error *error)
{
    weir__isolated_child_end(child);
    return weir_error_set(error, WEIR_ESYSTEM, -EPROTO,
                          "the process that decodes sent a message that makes no sense (%s): it was ended",
                          about[0] ? about : "an item");
}

int weir__isolated_child_lost(isolated_child *child, const isolated_setup *setup, int failure, weir_error *error)
{
    char text[256];
    if (failure == EPIPE || failure == ECONNRESET) {
        int status = weir__isolated_process_tell_end(&child->process, setup->program, text, sizeof text);
        drop_blocks(child);
        return weir_error_set(error, status, 0, "%s", text);
    }
    weir__isolated_child_end(child);
    return weir_error_set(error, failure == ENOMEM ? WEIR_ENOMEM : WEIR_ESYSTEM, -failure,
                          "the connection to the process that decodes: %s", strerror(failure));
}

/* -- answers */

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

static bool should_stop(const isolated_waiter *waiter)
{
    return waiter->should_stop && waiter->should_stop(waiter->self);
}

static void tell_time(isolated_child *child, const isolated_waiter *waiter)
{
    int64_t cpu_ns = weir__isolated_process_cpu_ns(&child->process);
    int64_t delay_ns = weir__isolated_process_delay_ns(&child->process);
    if (waiter->on_time)
        waiter->on_time(waiter->self, cpu_ns, delay_ns);
}

int weir__isolated_child_await(isolated_child *child, const isolated_setup *setup, const isolated_waiter *waiter,
                               isolated_message *message, weir_error *error)
{
    const isolated_sender sender = { ISOLATED_CHILD, child->blocks, weir__isolated_max_body(&setup->shape) };
    for (;;) {
        struct pollfd readable = { .fd = child->process.fd, .events = POLLIN };
        *message = (isolated_message){ 0 };
        int num_ready = poll(&readable, 1, ASK_INTERVAL_MS);
        tell_time(child, waiter);
        if (should_stop(waiter)) {
            weir__isolated_child_end(child);
            return weir_error_set(error, WEIR_ESTOPPED, 0, "stopped: the process that decodes was killed");
        }
        if (num_ready <= 0)
            continue;
        if (!weir__isolated_receive(child->process.fd, &sender, message))
            return message->complaint[0] ? weir__isolated_child_nonsense(child, message->complaint, error)
                                         : weir__isolated_child_lost(child, setup, errno, error);
        if (message->head.kind != ISOLATED_LOG)
            return WEIR_OK;
        if (!pass_on_log(message))
            return weir__isolated_child_nonsense(child, message->complaint, error);
        weir__isolated_message_free(message);
    }
}

int weir__isolated_child_reported(isolated_child *child, isolated_message *message, weir_error *error)
{
    const char *text;
    if (!get_line(message, &text))
        return weir__isolated_child_nonsense(child, message->complaint, error);
    return weir_error_set(error, message->head.status, message->head.library_code, "%s", text ? text : "failed");
}

/* -- starting */

int weir__isolated_child_start(isolated_child *child, const isolated_setup *setup, sandbox_kind sandbox,
                               const isolated_waiter *waiter, weir_error *error)
{
    isolated_message answer = { 0 };
    isolated_message first = setup->message;
    if (child->process.pid)
        return WEIR_OK;
    first.head.sandbox = (uint32_t)sandbox;
    child->sandbox = sandbox;
    int failure = weir__isolated_process_start(&child->process, setup->program, sandbox);
    if (failure)
        return weir_error_set(error, WEIR_ESYSTEM, -failure, "cannot start %s: %s", setup->program,
                              strerror(failure));
    int rc = weir__isolated_send(child->process.fd, &first)
                 ? weir__isolated_child_await(child, setup, waiter, &answer, error)
                 : weir__isolated_child_lost(child, setup, errno, error);
    if (rc == WEIR_OK && answer.head.kind == ISOLATED_FAILURE) {
        rc = weir__isolated_child_reported(child, &answer, error);
        weir__isolated_child_end(child);
    } else if (rc == WEIR_OK && answer.head.kind != ISOLATED_READY) {
        rc = weir__isolated_child_nonsense(child, "head.kind", error);
    }
    weir__isolated_message_free(&answer);
    return rc;
}

static int ask_waiter(void *self)
{
    return should_stop(self);
}

sandbox_kind weir__isolated_put_file(isolated_child *child, const isolated_setup *setup, isolated_message *request,
                                     weir_local_file *file, const weir_item *named, const isolated_waiter *waiter)
{
    AVIOInterruptCB interrupt = { .callback = ask_waiter, .opaque = (void *)(uintptr_t)waiter };
    char *path = NULL;
    bool is_url = false;
    child->host.config = &setup->input;
    if (named)
        is_url = weir__input_pass(file, &child->host, named, interrupt, &path);
    request->head.has_file = file->is_open;
    request->file_fd = file->fd;
    weir__isolated_put_text(request, path);
    weir__isolated_put(request, &file->fd, sizeof file->fd);
    weir__isolated_put(request, &file->info, sizeof file->info);
    free(path);
    return setup->no_sandbox ? SANDBOX_NONE : is_url ? SANDBOX_URLS : SANDBOX_FILES;
}
