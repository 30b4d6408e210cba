#include "stages/isolate/message.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/status.h>

/* A larger body goes through shared memory. Three descriptors are sent at most; the kernel aligns the room for them, and
   fills what it has been given. */
enum { MAX_INLINE_BYTES = 32 << 10, MAX_FDS = 4 };
_Static_assert(CMSG_SPACE(MAX_FDS * sizeof(int)) == CMSG_LEN(MAX_FDS * sizeof(int)), "room for MAX_FDS and no more");

static const size_t max_body_bytes = ISOLATED_MAX_BODY_BYTES;
static const uint32_t no_text = UINT32_MAX;

/* -- the body */

void weir__isolated_put(isolated_message *message, const void *part, size_t size_bytes)
{
    size_t used = (size_t)message->head.body_bytes;
    if (message->is_bad || size_bytes > max_body_bytes - used) {
        message->is_bad = true;
        return;
    }
    if (used + size_bytes > message->room) {
        size_t room = 2 * (used + size_bytes);
        char *body = realloc(message->body, room);
        if (!body) {
            message->is_bad = true;
            return;
        }
        message->body = body;
        message->room = room;
    }
    if (size_bytes > 0)
        memcpy(message->body + used, part, size_bytes);
    message->head.body_bytes = used + size_bytes;
}

void weir__isolated_put_text(isolated_message *message, const char *text)
{
    size_t length = text ? strlen(text) + 1 : 0;
    uint32_t prefix = text ? (uint32_t)length : no_text;
    weir__isolated_put(message, &prefix, sizeof prefix);
    weir__isolated_put(message, text, length < max_body_bytes ? length : max_body_bytes);
}

bool weir__isolated_get(isolated_message *message, void *part, size_t size_bytes)
{
    if (message->is_bad || size_bytes > message->head.body_bytes - message->position) {
        if (size_bytes > 0)
            memset(part, 0, size_bytes);
        message->is_bad = true;
        return false;
    }
    if (size_bytes > 0)
        memcpy(part, message->body + message->position, size_bytes);
    message->position += size_bytes;
    return true;
}

const char *weir__isolated_get_text(isolated_message *message)
{
    uint32_t length;
    if (!weir__isolated_get(message, &length, sizeof length) || length == no_text)
        return NULL;
    const char *text = message->body + message->position;
    if (length == 0 || length > message->head.body_bytes - message->position ||
        strnlen(text, length) != (size_t)length - 1) {
        weir__isolated_complain(message, "a text");
        return NULL;
    }
    message->position += length;
    return text;
}

void weir__isolated_complain(isolated_message *message, const char *about)
{
    if (!message->complaint[0])
        snprintf(message->complaint, sizeof message->complaint, "%s", about);
    message->is_bad = true;
}

enum { MAX_STRUCT_BYTES = 1024 };

void weir__isolated_put_struct(isolated_message *message, const struct_rules *rules, const void *from)
{
    _Alignas(max_align_t) char copy[MAX_STRUCT_BYTES];
    assert(rules->size_bytes <= sizeof copy);
    weir__rules_copy(rules, copy, from);
    weir__isolated_put(message, copy, rules->size_bytes);
}

bool weir__isolated_get_struct(isolated_message *message, const struct_rules *rules, void *to)
{
    _Alignas(max_align_t) char sent[MAX_STRUCT_BYTES];
    char about[sizeof message->complaint];
    assert(rules->size_bytes <= sizeof sent);
    memset(to, 0, rules->size_bytes);
    if (!weir__isolated_get(message, sent, rules->size_bytes))
        return false;
    const char *broken = weir__rules_take(rules, to, sent);
    if (!broken)
        return true;
    snprintf(about, sizeof about, "%s.%s", rules->name, broken);
    weir__isolated_complain(message, about);
    memset(to, 0, rules->size_bytes);
    return false;
}

bool weir__isolated_is_read(isolated_message *message)
{
    if (message->position != message->head.body_bytes)
        weir__isolated_complain(message, "what follows its last part");
    return !message->is_bad;
}

/* -- sending */

bool weir__isolated_send(int fd, const isolated_message *message)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
    } control = { 0 };
    size_t body_bytes = (size_t)message->head.body_bytes;
    bool is_inline = body_bytes <= MAX_INLINE_BYTES;
    isolated_head head = message->head;
    struct iovec parts[] = { { &head, sizeof head }, { message->body, is_inline ? body_bytes : 0 } };
    struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
    weir_shared_data *body = NULL;
    int fds[MAX_FDS];
    unsigned num_fds = 0;
    errno = ENOMEM;
    if (message->is_bad)
        return false;
    if (!is_inline) {
        body = weir__shared_data_new(body_bytes);
        if (!body)
            return false;
        memcpy(body->data, message->body, body_bytes);
        fds[num_fds++] = body->fd;
    }
    weir_shared_data *data = message->data;
    if (data) {
        head.data_bytes = data->size_bytes;
        head.data_room = data->room_bytes;
        head.data_number = data->number;
        head.is_data_known = data->is_known;
        if (!data->is_known)
            fds[num_fds++] = data->fd;
    }
    if (head.has_file)
        fds[num_fds++] = message->file_fd;
    if (num_fds > 0) {
        packet.msg_control = &control;
        packet.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, num_fds * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &packet, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    int failure = errno;
    weir__shared_data_release(body);
    if (sent >= 0 && data) {
        data->is_sent = true;
        data->is_known = data->number >= 0;
    }
    errno = failure;
    return sent >= 0;
}

/* -- receiving */

/* The descriptors that came with the packet; returns their number. */
static unsigned take_fds(struct msghdr *packet, int fds[MAX_FDS])
{
    struct cmsghdr *control = CMSG_FIRSTHDR(packet);
    if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
        return 0;
    size_t num_fds = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int); /* the buffer has no room for more */
    memcpy(fds, CMSG_DATA(control), num_fds * sizeof(int));
    return (unsigned)num_fds;
}

static bool take_body(isolated_message *message, const char *inline_body, size_t inline_bytes, int fd)
{
    size_t body_bytes = (size_t)message->head.body_bytes;
    weir_shared_data *shared = NULL;
    if (fd < 0 ? body_bytes != inline_bytes : !(shared = weir__shared_data_receive(fd, body_bytes)))
        return false;
    message->body = body_bytes <= max_body_bytes ? malloc(body_bytes + 1) : NULL;
    if (message->body)
        memcpy(message->body, shared ? shared->data : inline_body, body_bytes);
    weir__shared_data_release(shared);
    return message->body != NULL;
}

/* What a message may use besides its kind, and its status. Any other field of the head is 0. */
enum {
    USES_STATUS = 1 << 0,
    USES_CODE = 1 << 1,
    USES_BODY = 1 << 2,
    USES_DATA = 1 << 3,
    USES_FILE = 1 << 4,
    USES_PLACE = 1 << 5,  /* source, seq, epoch */
    USES_LIMITS = 1 << 6, /* max_memory_bytes, sandbox */
};

static const struct kind_rule {
    isolated_side sender;
    unsigned uses;
    int32_t lowest_status, highest_status;
} kind_rules[] = {
    [ISOLATED_CONFIG] = { ISOLATED_PARENT, USES_STATUS | USES_BODY | USES_LIMITS, INT32_MIN, INT32_MAX },
    [ISOLATED_READY] = { ISOLATED_CHILD, USES_BODY, 0, 0 },
    [ISOLATED_REQUEST] = { ISOLATED_PARENT, USES_BODY | USES_DATA | USES_FILE | USES_PLACE, 0, 0 },
    [ISOLATED_CONTINUE] = { ISOLATED_PARENT, 0, 0, 0 },
    [ISOLATED_RESULT] = { ISOLATED_CHILD, USES_STATUS | USES_BODY | USES_DATA, WEIR_OK, WEIR_MORE },
    [ISOLATED_SKIPPED] = { ISOLATED_CHILD, 0, 0, 0 },
    [ISOLATED_FAILURE] = { ISOLATED_CHILD, USES_STATUS | USES_CODE | USES_BODY, INT32_MIN, -1 },
    [ISOLATED_LOG] = { ISOLATED_CHILD, USES_STATUS | USES_BODY, WEIR_LOG_ERROR, WEIR_LOG_DEBUG },
};

/* Which of them this head uses. */
static unsigned used_fields(const isolated_head *head)
{
    return (head->status ? USES_STATUS : 0U) | (head->library_code ? USES_CODE : 0U) |
           (head->source || head->seq || head->epoch ? USES_PLACE : 0U) |
           (head->max_memory_bytes || head->sandbox ? USES_LIMITS : 0U) | (head->has_file ? USES_FILE : 0U) |
           (head->body_bytes ? USES_BODY : 0U) |
           (head->data_bytes || head->data_room || head->data_number || head->is_data_known ? USES_DATA : 0U);
}

/* A line of the log or of a failure is never shared: a receiver copies no gigabyte for it. */
static uint64_t max_body_of(const struct kind_rule *rule, const isolated_sender *sender)
{
    bool is_line = !(rule->uses & USES_DATA) && rule->sender == ISOLATED_CHILD;
    uint64_t most = sender->max_body_bytes ? sender->max_body_bytes : ISOLATED_MAX_BODY_BYTES;
    return is_line ? MAX_INLINE_BYTES : most;
}

/* Does the sender send such messages, with such fields? */
static bool check_head(isolated_message *message, const isolated_sender *sender)
{
    isolated_head sent = message->head;
    char about[sizeof message->complaint];
    const char *broken = weir__rules_take(&weir__head_rules, &message->head, &sent);
    const struct kind_rule *rule = broken ? NULL : &kind_rules[sent.kind];
    if (rule && (rule->sender != sender->side || (used_fields(&sent) & ~rule->uses)))
        broken = "kind";
    else if (rule && (sent.status < rule->lowest_status || sent.status > rule->highest_status ||
                      (sent.kind == ISOLATED_RESULT && sent.status == WEIR_SKIP)))
        broken = "status";
    else if (rule && sent.body_bytes > max_body_of(rule, sender))
        broken = "body_bytes";
    if (!broken)
        return true;
    snprintf(about, sizeof about, "head.%s", broken);
    weir__isolated_complain(message, about);
    message->head.has_file = 0;
    return false;
}

/* `fd` is -1 for a block that was received before. A block that was sent before, and is still in use here, is not sent
   again. */
static bool receive_data(isolated_message *message, weir_shared_data **blocks, int fd)
{
    const isolated_head *head = &message->head;
    bool is_reused = blocks && head->data_number >= 0;
    weir_shared_data *data = fd >= 0     ? weir__shared_data_receive(fd, (size_t)head->data_room)
                             : is_reused ? blocks[head->data_number]
                                         : NULL;
    bool is_good = data && head->data_room == data->room_bytes && head->data_bytes <= data->room_bytes &&
                   weir__shared_data_take(data);
    if (!is_good) {
        if (fd >= 0)
            weir__shared_data_drop(data);
        weir__isolated_complain(message, "its data");
        return false;
    }
    if (fd >= 0 && is_reused) {
        weir__shared_data_drop(blocks[head->data_number]);
        blocks[head->data_number] = data;
    }
    data->size_bytes = (size_t)head->data_bytes;
    message->data = is_reused ? weir__shared_data_hold(data) : data;
    return true;
}

static bool receive_parts(isolated_message *message, weir_shared_data **blocks, const char *inline_body,
                          size_t inline_bytes, const int *fds, unsigned num_fds, unsigned *num_used)
{
    const isolated_head *head = &message->head;
    bool is_inline = head->body_bytes <= MAX_INLINE_BYTES;
    bool has_data = head->data_bytes > 0;
    bool has_fd = has_data && !head->is_data_known;
    if (num_fds != (unsigned)!is_inline + (unsigned)has_fd + head->has_file) {
        weir__isolated_complain(message, "its descriptors");
        return false;
    }
    if (!take_body(message, inline_body, inline_bytes, is_inline ? -1 : fds[(*num_used)++])) {
        weir__isolated_complain(message, "its body");
        return false;
    }
    return !has_data || receive_data(message, blocks, has_fd ? fds[(*num_used)++] : -1);
}

bool weir__isolated_receive(int fd, const isolated_sender *sender, isolated_message *message)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
    } control = { 0 };
    char inline_body[MAX_INLINE_BYTES];
    *message = (isolated_message){ 0 };
    struct iovec parts[] = { { &message->head, sizeof message->head }, { inline_body, sizeof inline_body } };
    struct msghdr packet = {
        .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t got;
    do
        got = recvmsg(fd, &packet, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        errno = got == 0 || errno == ECONNRESET ? EPIPE : errno;
        return false;
    }

    int fds[MAX_FDS] = { 0 };
    unsigned num_fds = take_fds(&packet, fds), num_used = 0;
    bool is_good = (size_t)got >= sizeof message->head && !(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
                   check_head(message, sender) &&
                   receive_parts(message, sender->blocks, inline_body, (size_t)got - sizeof message->head, fds,
                                 num_fds, &num_used);
    if (is_good && message->head.has_file)
        message->file_fd = fds[num_used++];
    else
        message->head.has_file = 0;
    while (num_used < num_fds)
        close(fds[num_used++]);
    errno = EPROTO;
    return is_good;
}

void weir__isolated_message_free(isolated_message *message)
{
    free(message->body);
    if (!message->data_is_borrowed)
        weir__shared_data_release(message->data);
    *message = (isolated_message){ 0 };
}
