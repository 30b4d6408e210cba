/*
 * What tasks sleep for, by the system calls of their threads. Each stage sleeps in one kind of call until enough looks have found
 * it there. Held constant: one thread for each stage.
 */
#include "tests/support.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/measure/wait_call.h"

enum { LOOKS = 5 };

/* What a task of the stage "sleeper" does, and how the test ends it. */
typedef struct sleeper {
    void (*sleep)(struct sleeper *self);
    int ends[2];
    test_gate gate;
    const char *path;
    atomic_bool is_over;
} sleeper;

static int run_sleeper(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    sleeper *self = *(sleeper *const *)weir_task_config(task);
    (void)worker;
    self->sleep(self);
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op sleeper_op = { .name = "sleeper", .run = run_sleeper, .config_size = sizeof(sleeper *) };

static void read_end(sleeper *self)
{
    char byte;
    REQUIRE(read(self->ends[0], &byte, 1) == 1);
}

static void poll_end(sleeper *self)
{
    struct pollfd end = { .fd = self->ends[0], .events = POLLIN };
    REQUIRE(poll(&end, 1, -1) == 1);
    read_end(self);
}

static void wait_at_gate(sleeper *self)
{
    gate_pass(&self->gate);
}

static void nap(sleeper *self)
{
    while (!atomic_load(&self->is_over))
        nanosleep(&(struct timespec){ .tv_nsec = 30 * WEIR_MILLISECOND }, NULL);
}

static void wait_for_child(sleeper *self)
{
    char byte;
    pid_t child = fork();
    if (child == 0)
        _exit(read(self->ends[0], &byte, 1) != 1);
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void open_fifo(sleeper *self)
{
    int file = open(self->path, O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    close(file);
}

/* The end by which each kind goes on. */
static void wake_sleeper(sleeper *self)
{
    atomic_store(&self->is_over, true);
    gate_open(&self->gate);
    if (self->ends[1] > 0)
        REQUIRE(write(self->ends[1], "x", 1) == 1);
    if (self->path) {
        int file = open(self->path, O_WRONLY | O_CLOEXEC);
        REQUIRE(file >= 0);
        close(file);
    }
}

static weir_stage_snapshot look_at_sleeper(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_non_null(strstr(snapshot->stages[1].name, "sleeper"));
    weir_stage_snapshot seen = snapshot->stages[1];
    weir_snapshot_free(snapshot);
    sched_yield();
    return seen;
}

/* A run of one item whose task sleeps like that: all but a few looks find it so. */
static void expect_wait(sleeper *self, weir_wait expected)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &sleeper_op, &self, sizeof self, NULL);
    weir_builder_sink(builder, NULL);
    gate_init(&self->gate);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_stage_snapshot seen;
    do
        seen = look_at_sleeper(pipeline);
    while (seen.num_waits[expected] < LOOKS);
    wake_sleeper(self);
    assert_int_equal(drain_all(pipeline), 1);
    uint64_t asleep = 0;
    for (int i = 0; i < WEIR_NUM_WAITS; i++)
        asleep += seen.num_waits[i];
    assert_int_equal(asleep, seen.num_waits[expected]);
    assert_true(seen.num_looks >= asleep); /* awake: before and between its sleeps */
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

static void expect_wait_and_close(sleeper *self, weir_wait expected)
{
    expect_wait(self, expected);
    close(self->ends[0]);
    close(self->ends[1]);
}

TEST_CASE(a_lock_or_a_condition)
{
    expect_wait(&(sleeper){ .sleep = wait_at_gate }, WEIR_WAIT_LOCK);
}

TEST_CASE(a_sleep)
{
    expect_wait(&(sleeper){ .sleep = nap }, WEIR_WAIT_SLEEP);
}

TEST_CASE(a_pipe_read_or_polled)
{
    void (*const ways[])(sleeper * self) = { read_end, poll_end };
    for (size_t i = 0; i < LENGTH(ways); i++) {
        sleeper self = { .sleep = ways[i] };
        assert_int_equal(pipe(self.ends), 0);
        expect_wait_and_close(&self, WEIR_WAIT_PROCESS);
    }
}

TEST_CASE(a_local_socket)
{
    sleeper self = { .sleep = read_end };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, self.ends), 0);
    expect_wait_and_close(&self, WEIR_WAIT_PROCESS);
}

TEST_CASE(a_child_process)
{
    sleeper self = { .sleep = wait_for_child };
    assert_int_equal(pipe(self.ends), 0);
    expect_wait_and_close(&self, WEIR_WAIT_PROCESS);
}

TEST_CASE(a_connection_read_or_polled)
{
    void (*const ways[])(sleeper * self) = { read_end, poll_end };
    for (size_t i = 0; i < LENGTH(ways); i++) {
        sleeper self = { .sleep = ways[i] };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof address;
        int server = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(server, (struct sockaddr *)&address, size), 0);
        assert_int_equal(listen(server, 1), 0);
        assert_int_equal(getsockname(server, (struct sockaddr *)&address, &size), 0);
        self.ends[1] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(self.ends[1], (struct sockaddr *)&address, size), 0);
        self.ends[0] = accept(server, NULL, NULL);
        assert_true(self.ends[0] >= 0);
        expect_wait_and_close(&self, WEIR_WAIT_NETWORK);
        close(server);
    }
}

TEST_CASE(opening_a_file)
{
    char folder[] = "/tmp/weir-wait-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_wait(&(sleeper){ .sleep = open_fifo, .path = path }, WEIR_WAIT_FILE);
    unlink(path);
    rmdir(folder);
}

/* A task that computes is awake, however long it takes: it is stopped when it has been looked at often enough. */
static void compute(sleeper *self)
{
    while (!atomic_load(&self->is_over))
        continue;
}

TEST_CASE(a_task_that_computes_is_awake)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    sleeper own = { .sleep = compute }, *self = &own;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe(builder, &sleeper_op, &self, sizeof self, NULL);
    weir_builder_sink(builder, NULL);
    gate_init(&own.gate);
    weir_pipeline *pipeline = build(builder, NULL);
    weir_stage_snapshot seen;
    do
        seen = look_at_sleeper(pipeline);
    while (seen.num_looks < 2 * LOOKS);
    wake_sleeper(self);
    assert_int_equal(drain_all(pipeline), 1);
    for (int i = 0; i < WEIR_NUM_WAITS; i++)
        assert_int_equal(seen.num_waits[i], 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(texts_of_the_kernel)
{
    assert_int_equal(weir__wait_of_call("running\n"), WEIR_NUM_WAITS);
    assert_int_equal(weir__wait_of_call(""), WEIR_NUM_WAITS);
    assert_int_equal(weir__wait_of_call("-1 0x7ffc0a0 0x7f12"), WEIR_WAIT_FILE); /* a page */
    assert_int_equal(weir__wait_of_call("99999 0x0 0x0"), WEIR_WAIT_OTHER);
    assert_int_equal(weir__wait_of_descriptor(-1), WEIR_WAIT_OTHER);
    assert_int_equal(weir__wait_of_descriptor(1 << 20), WEIR_WAIT_OTHER);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
