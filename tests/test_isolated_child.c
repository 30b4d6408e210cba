/*
 * What passes between weir_isolated and its children: messages that are cut or make no sense, and a child by itself. The
 * child is forked, as the parent speaks to it by hand; it has no sandbox, or is where the kernel refuses one, so that its
 * lines are counted.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/stages.h>

#include "child_process.h"
#include "clips.h"
#include "isolated_config.h"
#include "message.h"
#include "sandbox.h"
#include "scaler.h"

static const char broken_answer[] = "WEIR_TEST_BROKEN_ANSWER"; /* set for a worker program that answers so */

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* The message as it arrives. */
static isolated_message pass(const isolated_message *sent)
{
    isolated_message received;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    assert_true(weir__isolated_send(fds[0], sent));
    assert_true(weir__isolated_receive(fds[1], NULL, &received));
    close(fds[0]);
    close(fds[1]);
    return received;
}

static weir_item pass_item(const weir_item *item)
{
    isolated_message sent = { .head = { .kind = ISOLATED_RESULT } };
    weir_item result;
    assert_true(weir__isolated_put_item(&sent, item));
    isolated_message received = pass(&sent);
    assert_true(weir__isolated_get_item(&received, &result));
    assert_string_equal(result.type, item->type);
    weir__isolated_message_free(&sent);
    weir__isolated_message_free(&received);
    return result;
}

/* A message whose body is that one's first size_bytes, with as much data. */
static isolated_message cut_message(const isolated_message *whole, size_t size_bytes)
{
    isolated_message cut = { .head = whole->head };
    cut.head.body_bytes = 0;
    weir__isolated_put(&cut, whole->body, size_bytes);
    if (whole->data)
        cut.data = weir__shared_data_new(whole->data->size_bytes);
    return cut;
}

static void expect_nonsense(isolated_message *message)
{
    weir_item item;
    assert_false(weir__isolated_get_item(message, &item));
    assert_int_equal(errno, EPROTO);
    assert_null(item.data);
    weir__isolated_message_free(message);
}

/* No cut of the message is taken for an item. */
static void expect_all_parts_are_needed(const weir_item *item)
{
    isolated_message whole = { .head = { .kind = ISOLATED_RESULT } };
    assert_true(weir__isolated_put_item(&whole, item));
    for (size_t size_bytes = 0; size_bytes < whole.head.body_bytes; size_bytes++) {
        isolated_message cut = cut_message(&whole, size_bytes);
        expect_nonsense(&cut);
    }
    weir__isolated_message_free(&whole);
}

static uint8_t samples[96];
static int64_t times[2] = { 7, 9 };

static weir_frames some_frames(weir_pixel pixel)
{
    weir_frames frames = { .data = samples, .num_frames = 2, .width = 4, .height = 4, .pixel = pixel, .pts = times };
    frames.channels = pixel == WEIR_PIXEL_RGB24 ? 3 : pixel == WEIR_PIXEL_GRAY8 ? 1 : 0;
    frames.frame_bytes = weir__scaler_picture_bytes(pixel, 4, 4);
    return frames;
}

static weir_audio some_audio(void)
{
    static float values[6] = { 0.5F, -0.5F, 0.25F, 0, 0, 1 };
    return (weir_audio){ .data = values, .num_samples = 3, .channels = 2 };
}

TEST_CASE(items_of_all_types_arrive)
{
    char path[] = "clip.mp4";
    uint8_t packets[] = { 1, 2, 3 };
    size_t size_bytes = 100 << 10; /* goes through shared memory */
    char *long_text = malloc(size_bytes);
    memset(long_text, 'x', size_bytes - 1);
    long_text[size_bytes - 1] = '\0';
    weir_item item = pass_item(&(weir_item){ .type = WEIR_TYPE_TEXT, .data = long_text });
    assert_string_equal(item.data, long_text);
    weir_item_release(&item);
    free(long_text);

    weir_entry entry = { .path = path, .number = 7, .packets = packets, .packets_bytes = sizeof packets };
    item = pass_item(&(weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry });
    assert_string_equal(((weir_entry *)item.data)->path, path);
    assert_int_equal(((weir_entry *)item.data)->number, 7);
    assert_memory_equal(((weir_entry *)item.data)->packets, packets, sizeof packets);
    weir_item_release(&item);

    weir_bytes bytes = { .data = samples, .size_bytes = sizeof samples, .name = path };
    for (int i = 0; i < 2; i++, bytes.size_bytes = 0) {
        item = pass_item(&(weir_item){ .type = WEIR_TYPE_BYTES, .data = &bytes });
        assert_int_equal(((weir_bytes *)item.data)->size_bytes, bytes.size_bytes);
        weir_item_release(&item);
    }
    for (weir_pixel pixel = WEIR_PIXEL_RGB24; pixel <= WEIR_PIXEL_YUV420P; pixel++) {
        weir_frames frames = some_frames(pixel);
        item = pass_item(&(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames });
        assert_memory_equal(((weir_frames *)item.data)->pts, times, sizeof times);
        weir_item_release(&item);
    }
    weir_audio audio = some_audio();
    item = pass_item(&(weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio });
    assert_memory_equal(((weir_audio *)item.data)->data, audio.data, 6 * sizeof(float));
    weir_item_release(&item);
}

TEST_CASE(an_item_of_another_type_is_not_sent)
{
    isolated_message message = { 0 };
    char text[] = "x";
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .type = "other", .data = text }));
    assert_int_equal(errno, ENOTSUP);
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .data = text }));
    assert_false(weir__isolated_put_item(&message, &(weir_item){ .type = WEIR_TYPE_TEXT }));
    weir__isolated_message_free(&message);
}

TEST_CASE(a_cut_item_makes_no_sense)
{
    char path[] = "clip.mp4";
    uint8_t packets[] = { 1, 2, 3 };
    weir_entry entry = { .path = path, .packets = packets, .packets_bytes = sizeof packets };
    weir_bytes bytes = { .data = samples, .size_bytes = sizeof samples, .name = path };
    weir_frames frames = some_frames(WEIR_PIXEL_GRAY8);
    weir_audio audio = some_audio();
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_TEXT, .data = path });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_BYTES, .data = &bytes });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_FRAMES, .data = &frames });
    expect_all_parts_are_needed(&(weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio });
}

/* The whole message of the item, in which one number, at `offset` of the struct behind the type, is another. */
static void expect_number_is_checked(const weir_item *item, size_t offset, size_t size_bytes, uint64_t number)
{
    isolated_message whole = { .head = { .kind = ISOLATED_RESULT } };
    assert_true(weir__isolated_put_item(&whole, item));
    isolated_message changed = cut_message(&whole, (size_t)whole.head.body_bytes);
    memcpy(changed.body + sizeof(uint32_t) + offset, &number,
           size_bytes); /* little-endian machines only, as weir is */
    expect_nonsense(&changed);
    weir__isolated_message_free(&whole);
}

#define EXPECT_CHECKED(item, type, field, number) \
    expect_number_is_checked(item, offsetof(type, field), sizeof((type *)NULL)->field, number)

TEST_CASE(frames_and_samples_that_make_no_sense_are_refused)
{
    weir_frames frames = some_frames(WEIR_PIXEL_RGB24);
    weir_item item = { .type = WEIR_TYPE_FRAMES, .data = &frames };
    EXPECT_CHECKED(&item, weir_frames, pixel, 99);
    EXPECT_CHECKED(&item, weir_frames, layout, 99);
    EXPECT_CHECKED(&item, weir_frames, scaler, 99);
    EXPECT_CHECKED(&item, weir_frames, full_range, 2);
    EXPECT_CHECKED(&item, weir_frames, is_last_chunk, 2);
    EXPECT_CHECKED(&item, weir_frames, width, 0);
    EXPECT_CHECKED(&item, weir_frames, width, UINT32_MAX);
    EXPECT_CHECKED(&item, weir_frames, height, 0);
    EXPECT_CHECKED(&item, weir_frames, height, UINT32_MAX);
    EXPECT_CHECKED(&item, weir_frames, channels, 4);
    EXPECT_CHECKED(&item, weir_frames, frame_bytes, 47);
    EXPECT_CHECKED(&item, weir_frames, num_frames, 3);
    weir_audio audio = some_audio();
    item = (weir_item){ .type = WEIR_TYPE_AUDIO, .data = &audio };
    EXPECT_CHECKED(&item, weir_audio, planar, 2);
    EXPECT_CHECKED(&item, weir_audio, channels, 0);
    EXPECT_CHECKED(&item, weir_audio, channels, 257);
    EXPECT_CHECKED(&item, weir_audio, num_samples, 4);
    EXPECT_CHECKED(&item, weir_audio, num_samples, UINT64_MAX);
    weir_entry entry = { .path = (char[]){ "x" }, .packets = samples, .packets_bytes = 5 };
    item = (weir_item){ .type = WEIR_TYPE_ENTRY, .data = &entry };
    EXPECT_CHECKED(&item, weir_entry, packets_bytes, 6);
    isolated_message message = { 0 };
    weir__isolated_put(&message, &(uint32_t){ 99 }, sizeof(uint32_t)); /* no type has that number */
    expect_nonsense(&message);
    weir__isolated_put(&message, &(uint32_t){ 0 }, sizeof(uint32_t));
    weir__isolated_put(&message, &(uint32_t){ 0 }, sizeof(uint32_t)); /* a text without its end */
    expect_nonsense(&message);
}

/* Sends the head, a body, and as many descriptors of an empty file, as it is. */
static void send_raw(int fd, const isolated_head *head, size_t head_bytes, size_t body_bytes, size_t num_fds)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(4 * sizeof(int))];
    } control = { 0 };
    char body[64] = { 0 };
    isolated_head copy = *head;
    int file = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int fds[4] = { file, file, file, file };
    struct iovec parts[] = { { &copy, head_bytes }, { body, body_bytes } };
    struct msghdr packet = { .msg_iov = parts, .msg_iovlen = 2 };
    assert_true(file >= 0 && body_bytes <= sizeof body && num_fds <= 4);
    if (num_fds > 0) {
        packet.msg_control = &control;
        packet.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, num_fds * sizeof(int));
    }
    assert_true(sendmsg(fd, &packet, MSG_NOSIGNAL) >= 0);
    close(file);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST_CASE(packets_that_make_no_sense_are_refused_and_leave_no_descriptor)
{
    static const struct {
        isolated_head head;
        size_t head_bytes, body_bytes, num_fds;
    } cases[] = {
        { { .kind = ISOLATED_RESULT }, 3, 0, 0 }, /* shorter than its head */
        { { .kind = ISOLATED_RESULT, .has_file = 2 }, sizeof(isolated_head), 0, 2 },
        { { .kind = ISOLATED_RESULT, .has_file = 1 }, sizeof(isolated_head), 0, 0 },
        { { .kind = ISOLATED_RESULT }, sizeof(isolated_head), 0, 1 }, /* nobody asked for it */
        { { .kind = ISOLATED_RESULT }, sizeof(isolated_head), 0, 4 }, /* more than there is room for */
        { { .kind = ISOLATED_RESULT, .body_bytes = 5 }, sizeof(isolated_head), 4, 0 },
        { { .kind = ISOLATED_RESULT, .body_bytes = 1 << 20 }, sizeof(isolated_head), 0, 1 }, /* not in the file */
        { { .kind = ISOLATED_RESULT, .body_bytes = UINT64_MAX }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .data_room = 9 }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .data_room = UINT64_MAX }, sizeof(isolated_head), 0, 1 },
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .is_data_known = 1 },
          sizeof(isolated_head),
          0,
          0 }, /* it is not */
        { { .kind = ISOLATED_RESULT, .data_bytes = 9, .is_data_known = 1, .data_number = 8 },
          sizeof(isolated_head),
          0,
          0 },
    };
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS] = { NULL };
    isolated_message message;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    int before = count_descriptors();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        send_raw(fds[0], &cases[i].head, cases[i].head_bytes, cases[i].body_bytes, cases[i].num_fds);
        if (weir__isolated_receive(fds[1], blocks, &message) || errno != EPROTO)
            fail_msg("case %zu: %s", i, strerror(errno));
        weir__isolated_message_free(&message);
        if (count_descriptors() != before)
            fail_msg("case %zu: a descriptor is left", i);
    }
    close(fds[0]);
    assert_false(weir__isolated_receive(fds[1], blocks, &message));
    assert_int_equal(errno, EPIPE);
    close(fds[1]);
}

TEST_CASE(what_is_too_long_is_not_sent)
{
    isolated_message message = { 0 };
    char byte = 0;
    weir__isolated_put(&message, &byte, SIZE_MAX);
    assert_true(message.is_bad);
    assert_false(weir__isolated_send(-1, &message));
    assert_int_equal(errno, ENOMEM);
    weir__isolated_message_free(&message);
}

/* ---- configs -------------------------------------------------------------------------------------------------- */

/* What a cut config leaves is not freed: its process ends. So this is done in one of its own. */
static void in_another_process(void (*run)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void cut_configs(void)
{
    static const int64_t indices[] = { 3, 7 };
    const weir_video_config video = {
        .filter = "hflip",
        .ca_file = "/etc/own.pem",
        .sampling = { .indices = indices, .num_indices = 2, .times_ns = indices, .num_times = 2 }
    };
    isolated_message whole = { 0 };
    weir__isolated_put_config(&whole, &weir_video_decode, &video);
    for (size_t size_bytes = 0; size_bytes <= whole.head.body_bytes; size_bytes++) {
        isolated_message cut = cut_message(&whole, size_bytes);
        const weir_video_config *got = weir__isolated_get_config(&cut, &weir_video_decode);
        REQUIRE((got != NULL) == (size_bytes == whole.head.body_bytes));
        REQUIRE(cut.is_bad == !got);
        REQUIRE(!got || (strcmp(got->filter, "hflip") == 0 && strcmp(got->ca_file, "/etc/own.pem") == 0 &&
                         got->sampling.indices[1] == 7 && got->sampling.times_ns[0] == 3));
    }
    isolated_message other = { 0 };
    weir__isolated_put_config(&other, &weir_image_decode, &(weir_image_config){ .ca_file = "own.pem" });
    REQUIRE(!weir__isolated_get_config(&other, &weir_video_decode) && other.is_bad);
    isolated_message long_list = { 0 };
    weir_video_config many = video;
    many.sampling.num_indices = SIZE_MAX;
    weir__isolated_put(&long_list, &weir_video_decode.config_size, sizeof(size_t));
    weir__isolated_put(&long_list, &many, sizeof many);
    weir__isolated_put_text(&long_list, NULL);
    weir__isolated_put_text(&long_list, NULL);
    const weir_video_config *got = weir__isolated_get_config(&long_list, &weir_video_decode);
    REQUIRE(!got || !got->sampling.indices);
}

TEST_CASE(a_config_arrives_whole_or_not_at_all)
{
    in_another_process(cut_configs);
}

/* ---- a child -------------------------------------------------------------------------------------------------- */

static int run_told(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    const char *text = in->data;
    char answer[64];
    struct rlimit memory = { 0 };
    getrlimit(RLIMIT_AS, &memory);
    snprintf(answer, sizeof answer, "%s %d %d %s", text, (int)weir_task_source(task), (int)weir_task_seq(task),
             memory.rlim_cur == RLIM_INFINITY ? "unlimited" : "limited");
    if (strcmp(text, "skip") == 0)
        return WEIR_SKIP;
    if (strcmp(text, "fail") == 0)
        return weir_task_fail(task, WEIR_EDATA, 17, "no good");
    if (strcmp(text, "keep") == 0)
        return WEIR_KEPT;
    if (strcmp(text, "log") == 0)
        weir_log(WEIR_LOG_WARNING, "a line");
    if (strcmp(text, "other") == 0)
        out->type = "other";
    out->data = strdup(answer);
    out->release = weir_release_free;
    return strcmp(text, "chunks") == 0 && weir_task_num_chunks(task) < 2 ? WEIR_MORE : WEIR_OK;
}

static const weir_op told = { .name = "told", .takes = WEIR_TYPE_TEXT, .makes = WEIR_TYPE_TEXT, .run = run_told };
static const weir_op *const ops[] = { &told };

typedef struct worker_child {
    pid_t pid;
    int fd;
    weir_shared_data *blocks[WEIR_SHARED_BLOCKS];
} worker_child;

static worker_child child_start(void (*prepare)(void))
{
    worker_child made = { 0 };
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    made.pid = fork();
    assert_true(made.pid >= 0);
    if (made.pid == 0) {
        dup2(fds[1], ISOLATED_FD);
        if (prepare)
            prepare();
        weir_isolated_serve(2, (char *[]){ (char[]){ "x" }, (char[]){ ISOLATED_ARGUMENT }, NULL }, ops, LENGTH(ops));
        _exit(9);
    }
    close(fds[1]);
    made.fd = fds[0];
    return made;
}

/* The child ends, by itself if it fails, or else with its parent. */
static void child_end(worker_child *child, int expected)
{
    int status;
    if (expected == 0) {
        close(child->fd);
        child->fd = -1;
    }
    for (int i = 0; i < WEIR_SHARED_BLOCKS; i++)
        weir__shared_data_drop(child->blocks[i]);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), expected);
    if (child->fd >= 0)
        close(child->fd);
}

static void child_send(worker_child *child, isolated_message *message)
{
    assert_true(weir__isolated_send(child->fd, message));
    weir__isolated_message_free(message);
}

static isolated_message child_answer(worker_child *child, isolated_kind kind)
{
    isolated_message answer;
    assert_true(weir__isolated_receive(child->fd, child->blocks, &answer));
    assert_int_equal(answer.head.kind, kind);
    return answer;
}

/* Expects an answer with that text in it. */
static isolated_head expect_text(worker_child *child, isolated_kind kind, const char *expected)
{
    isolated_message answer = child_answer(child, kind);
    isolated_head head = answer.head;
    const char *text = weir__isolated_get_text(&answer);
    if (!text || !strstr(text, expected))
        fail_msg("\"%s\" is not in: %s", expected, text ? text : "nothing");
    weir__isolated_message_free(&answer);
    return head;
}

static isolated_message config_of(const weir_op *op, const void *config, uint64_t max_memory_bytes)
{
    isolated_message message = {
        .head = { .kind = ISOLATED_CONFIG, .status = WEIR_LOG_WARNING, .max_memory_bytes = max_memory_bytes }
    };
    weir__isolated_put_text(&message, WEIR_VERSION);
    weir__isolated_put_text(&message, op->name);
    weir__isolated_put_config(&message, op, config);
    return message;
}

static worker_child child_of(const weir_op *op, const void *config, uint64_t max_memory_bytes)
{
    worker_child made = child_start(NULL);
    isolated_message message = config_of(op, config, max_memory_bytes);
    child_send(&made, &message);
    message = child_answer(&made, ISOLATED_READY);
    weir__isolated_message_free(&message);
    return made;
}

static void child_ask(worker_child *child, const char *text)
{
    struct stat info = { 0 };
    isolated_message request = { .head = { .kind = ISOLATED_REQUEST, .source = 3, .seq = 41 } };
    weir__isolated_put_text(&request, "label");
    weir__isolated_put_text(&request, text);
    weir__isolated_put(&request, &(int){ -1 }, sizeof(int));
    weir__isolated_put(&request, &info, sizeof info);
    assert_true(
        weir__isolated_put_item(&request, &(weir_item){ .type = WEIR_TYPE_TEXT, .data = (void *)(uintptr_t)text }));
    child_send(child, &request);
}

static weir_item child_result(worker_child *child, int status)
{
    weir_item item;
    isolated_message answer = child_answer(child, ISOLATED_RESULT);
    assert_int_equal(answer.head.status, status);
    assert_true(weir__isolated_get_item(&answer, &item));
    weir__isolated_message_free(&answer);
    return item;
}

static void expect_result(worker_child *child, int status, const char *expected)
{
    weir_item item = child_result(child, status);
    assert_string_equal(item.data, expected);
    weir_item_release(&item);
}

TEST_CASE(each_request_has_its_answer)
{
    worker_child child = child_of(&told, NULL, 0);
    child_ask(&child, "a");
    expect_result(&child, WEIR_OK, "a 3 41 unlimited");
    child_ask(&child, "skip");
    isolated_message skipped = child_answer(&child, ISOLATED_SKIPPED);
    weir__isolated_message_free(&skipped);
    child_ask(&child, "fail");
    isolated_head head = expect_text(&child, ISOLATED_FAILURE, "no good");
    assert_int_equal(head.status, WEIR_EDATA);
    assert_int_equal(head.library_code, 17);
    child_ask(&child, "keep");
    expect_text(&child, ISOLATED_FAILURE, "it cannot be isolated");
    child_ask(&child, "other");
    expect_text(&child, ISOLATED_FAILURE, "cannot pass a result of type \"other\" to another process");
    child_ask(&child, "log");
    assert_int_equal(expect_text(&child, ISOLATED_LOG, "a line").status, WEIR_LOG_WARNING);
    expect_result(&child, WEIR_OK, "log 3 41 unlimited");
    child_ask(&child, "chunks");
    for (int i = 0; i < 2; i++) {
        expect_result(&child, WEIR_MORE, "chunks 3 41 unlimited");
        child_send(&child, &(isolated_message){ .head = { .kind = ISOLATED_CONTINUE } });
    }
    expect_result(&child, WEIR_OK, "chunks 3 41 unlimited");
    child_end(&child, 0);
}

TEST_CASE(a_request_that_makes_no_sense_is_a_failure_of_its_own)
{
    worker_child child = child_of(&told, NULL, 0);
    child_send(&child, &(isolated_message){ .head = { .kind = ISOLATED_REQUEST } });
    assert_int_equal(expect_text(&child, ISOLATED_FAILURE, "the process that decodes").status, WEIR_ENOMEM);
    child_ask(&child, "a");
    expect_result(&child, WEIR_OK, "a 3 41 unlimited");
    child_end(&child, 0);
}

TEST_CASE(a_child_whose_parent_leaves_before_the_answer_ends)
{
    worker_child child = child_of(&told, NULL, 0);
    child_ask(&child, "a");
    child_end(&child, 0);
}

TEST_CASE(a_child_has_the_limit_of_memory)
{
    worker_child limited = child_of(&told, NULL, 1 << 30);
    child_ask(&limited, "a");
    expect_result(&limited, WEIR_OK, "a 3 41 limited");
    child_end(&limited, 0);
    worker_child unlimited = child_of(&told, NULL, UINT64_MAX);
    child_ask(&unlimited, "a");
    expect_result(&unlimited, WEIR_OK, "a 3 41 unlimited");
    child_end(&unlimited, 0);
}

TEST_CASE(configs_that_a_child_cannot_have_are_told)
{
    static const struct {
        isolated_kind kind;
        const char *version, *op;
        size_t config_size;
        const char *expected;
    } cases[] = {
        { ISOLATED_CONFIG, "0.0.1", "told", 0, "the program has weir 0.0.1, but its worker program " WEIR_VERSION },
        { ISOLATED_CONFIG, NULL, "told", 0, "the program has weir ?" },
        { ISOLATED_REQUEST, WEIR_VERSION, "told", 0, "the program has weir" },
        { ISOLATED_CONFIG, WEIR_VERSION, "stranger", 0, "no operation \"stranger\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, NULL, 0, "no operation \"?\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, "told", 8, "another config of \"told\"" },
        { ISOLATED_CONFIG, WEIR_VERSION, "decode", 8, "another config of \"decode\"" },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        worker_child child = child_start(NULL);
        isolated_message message = { .head = { .kind = cases[i].kind } };
        weir__isolated_put_text(&message, cases[i].version);
        weir__isolated_put_text(&message, cases[i].op);
        weir__isolated_put(&message, &cases[i].config_size, sizeof cases[i].config_size);
        child_send(&child, &message);
        expect_text(&child, ISOLATED_FAILURE, cases[i].expected);
        child_end(&child, 1);
    }
    worker_child child = child_start(NULL); /* no config at all */
    close(child.fd);
    child.fd = -1;
    child_end(&child, 1);
}

static const char *make_video(void)
{
    return clips_make("clip.mp4", "-f lavfi -i testsrc2=s=96x64:d=2:r=10 -f lavfi -i sine=r=8000:d=2 "
                                  "-c:v mpeg4 -c:a aac");
}

/* Also of blocks that are sent once and reused. */
TEST_CASE(real_decoders_answer_in_shared_memory)
{
    static const int64_t indices[] = { 1, 5 };
    weir_video_config video = { .filter = "hflip",
                                .sampling = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 2 } };
    worker_child decoder = child_of(&weir_video_decode, &video, 0);
    for (int i = 0; i < 3; i++) {
        child_ask(&decoder, make_video());
        weir_item item = child_result(&decoder, WEIR_OK);
        assert_int_equal(((weir_frames *)item.data)->num_frames, 2);
        weir_item_release(&item);
    }
    child_ask(&decoder, "/no/such/file.mp4");
    assert_int_equal(expect_text(&decoder, ISOLATED_FAILURE, "No such file").status, WEIR_ENOTFOUND);
    child_end(&decoder, 0);
    decoder = child_of(&weir_audio_decode, &(weir_audio_config){ 0 }, 0);
    child_ask(&decoder, make_video());
    weir_item item = child_result(&decoder, WEIR_OK);
    assert_true(((weir_audio *)item.data)->num_samples > 0);
    weir_item_release(&item);
    child_end(&decoder, 0);
}

/* ---- where there is no sandbox, no descriptor, no program --------------------------------------------------------- */

/* A container may refuse these calls. */
static void refuse_walls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 1, 0),
#ifdef SYS_landlock_restrict_self
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_restrict_self, 0, 1),
#else
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = LENGTH(steps), .filter = steps };
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

TEST_CASE(a_kernel_that_refuses_the_sandbox_is_told)
{
    const char *ca_file = clips_path("own.pem");
    clips_write_text(ca_file, "none");
    for (sandbox_kind kind = SANDBOX_FILES; kind <= SANDBOX_URLS; kind++) {
        worker_child child = child_start(refuse_walls);
        isolated_message message = config_of(&weir_video_decode, &(weir_video_config){ .ca_file = ca_file }, 0);
        message.head.sandbox = kind;
        child_send(&child, &message);
        expect_text(&child, ISOLATED_FAILURE, "no_sandbox (--no-sandbox) decodes without it");
        child_end(&child, 1);
    }
}

static void start_without_descriptors(void)
{
    isolated_process process;
    REQUIRE(weir__isolated_process_start(&process, "/no/such/program", SANDBOX_NONE) == ENOENT);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, 4096 }) == 0);
    REQUIRE(weir__isolated_process_start(&process, "/bin/true", SANDBOX_NONE) == EMFILE);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4096, 4096 }) == 0);
}

TEST_CASE(a_child_that_cannot_be_started_says_why)
{
    in_another_process(start_without_descriptors);
}

TEST_CASE(a_child_gets_only_what_it_needs_of_the_environment)
{
    static char texts[][16] = { "LANG=C", "LD_X=1", "LANGUAGE=de", "SECRET=1", "http_proxy=p" };
    char *environment[] = { texts[0], texts[1], texts[2], texts[3], texts[4], NULL };
    static const size_t expected[] = { [SANDBOX_NONE] = 5, [SANDBOX_FILES] = 2, [SANDBOX_URLS] = 3 };
    for (sandbox_kind kind = SANDBOX_NONE; kind <= SANDBOX_URLS; kind++) {
        size_t count = 0;
        char **kept = weir__sandbox_environment(environment, kind);
        while (kept[count])
            count++;
        assert_int_equal(count, expected[kind]);
        free(kept);
    }
}

/* ---- worker programs that answer what makes no sense ------------------------------------------------------------- */

/* A stand-in for weir-worker. */
static void answer_nonsense(const char *what)
{
    isolated_message message, answer = { .head = { .kind = 99 } };
    REQUIRE(weir__isolated_receive(ISOLATED_FD, NULL, &message));
    weir__isolated_message_free(&message);
    REQUIRE(weir__isolated_send(ISOLATED_FD, &(isolated_message){ .head = { .kind = ISOLATED_READY } }));
    REQUIRE(weir__isolated_receive(ISOLATED_FD, NULL, &message));
    weir__isolated_message_free(&message);
    if (strcmp(what, "item") == 0)
        answer.head.kind = ISOLATED_RESULT;
    if (strcmp(what, "failure") == 0)
        answer.head = (isolated_head){ .kind = ISOLATED_FAILURE, .status = 5 };
    REQUIRE(weir__isolated_send(ISOLATED_FD, &answer));
    (void)weir__isolated_receive(ISOLATED_FD, NULL, &message);
}

TEST_CASE(answers_that_make_no_sense_are_failures)
{
    static const char *const cases[][2] = { { "kind", "the connection to the process that decodes: Protocol error" },
                                            { "item", "the connection to the process that decodes: Protocol error" },
                                            { "failure", "failed" } };
    const char *path = make_video();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        weir_error error;
        weir_item item;
        weir_builder *builder = weir_builder_new();
        setenv(broken_answer, cases[i][0], 1);
        weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
        weir_pipe_isolated(builder, &(weir_isolated_config){ .op = &weir_video_decode, .worker = "/proc/self/exe" },
                           NULL);
        weir_builder_sink(builder, NULL);
        weir_pipeline *pipeline = build(builder, NULL);
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        assert_int_equal(weir_pipeline_error(pipeline, "isolated", &error), WEIR_ESYSTEM);
        assert_non_null(strstr(error.message, cases[i][1]));
        weir_pipeline_free(pipeline);
        unsetenv(broken_answer);
    }
}

TEST_CASE(the_worker_program_by_itself_says_what_it_is)
{
    char command[512], line[256];
    snprintf(command, sizeof command, "%s 2>&1 >/dev/null </dev/null", getenv("WEIR_WORKER"));
    FILE *output = popen(command, "r");
    assert_non_null(output);
    assert_non_null(fgets(line, sizeof line, output));
    assert_non_null(strstr(line, "decodes for weir_isolated"));
    assert_int_equal(WEXITSTATUS(pclose(output)), 2);
}

int main(int argc, char *argv[])
{
    const char *what = getenv(broken_answer);
    if (what && argc == 2 && strcmp(argv[1], ISOLATED_ARGUMENT) == 0)
        answer_nonsense(what);
    return what ? 1 : test_cases_run(test_setup, test_teardown, clips_set_up, clips_tear_down);
}
