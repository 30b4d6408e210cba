/*
 * Operations in child processes. The stand-ins do what a broken decoder does; this program is its own worker program
 * (see main). Each test ends with no child and no shared memory left.
 */
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/isolated.h>
#include <weir/stages.h>

#include "stages/isolate/sandbox.h"
#include "tests/clips.h"

static const char *self_path;                                                /* of this program */
static const char secret[] = "AWS_SECRET_ACCESS_KEY";                        /* set for the program */
static const char interrupted_at_start[] = "WEIR_TEST_INTERRUPTED_AT_START"; /* set for its children */

/* ---- stand-ins: what they do is their input ------------------------------------------------------------------ */

enum { BURNT_MS = 100 }; /* CPU time of "burn" */

static void die_of(int number)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, number);
    signal(number, SIG_DFL); /* a sanitizer may handle it */
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(number);
}

static void touch_memory_until_there_is_none(void)
{
    enum { STEP = 1 << 20 };
    size_t total = 0;
    char *memory;
    while ((memory = mmap(NULL, STEP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED) {
        REQUIRE((total += STEP) < (size_t)1 << 30);
        memset(memory, 1, STEP);
    }
}

/* Tells the test, which reads the FIFO, that it is there; the FIFO stays open until the process ends. */
static void open_fifo(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, "x", 1) == 1);
}

static void hang_in_a_read(void)
{
    int fds[2];
    char byte;
    REQUIRE(pipe(fds) == 0);
    while (read(fds[0], &byte, 1) != 1)
        ;
}

/* What a decoder may try when a file has taken it over. Its answer is "done", or why the call failed. */

static int try_open(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_create(void)
{
    return open("/tmp/weir-test-of-the-sandbox", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_proc(void)
{
    return open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
}

static int try_stat(void)
{
    struct stat info;
    return stat("/etc/passwd", &info);
}

static int try_secret(void)
{
    errno = ENOENT;
    return getenv(secret) ? 0 : -1;
}

static int try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_unix_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_connect(void)
{
    struct sockaddr_in discard = { .sin_family = AF_INET,
                                   .sin_port = htons(9),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? fd : connect(fd, (struct sockaddr *)&discard, sizeof discard);
}

static int try_fork(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child;
}

static int try_exec(void)
{
    return execl("/bin/true", "true", (char *)NULL);
}

static int try_ptrace(void)
{
    return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int try_kill(void)
{
    return kill(getppid(), 0);
}

static int try_memory(void)
{
    char byte;
    struct iovec own = { &byte, 1 }, other = { &byte, 1 };
    return (int)process_vm_readv(getpid(), &own, 1, &other, 1, 0);
}

static int try_dumpable(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* What the program was given on its standard input is not the decoder's. */
static int try_stdin(void)
{
    char byte;
    errno = ENODATA;
    return pread(STDIN_FILENO, &byte, 1, 0) == 1 ? 0 : -1;
}

/* Harmless; TIOCSTI, which types into the terminal that the program runs in, is one like it. */
static int try_ioctl(void)
{
    return ioctl(STDERR_FILENO, FIONCLEX);
}

/* Wants a capability, which root has: so could what changes the network. */
static int try_capability(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? fd : setsockopt(fd, SOL_SOCKET, SO_MARK, &(int){ 1 }, sizeof(int));
}

static int try_terminal(void)
{
    errno = EBADF;
    return (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDWR ? 0 : -1;
}

static const struct attack {
    const char *text;
    int (*run)(void);
    bool is_killed; /* by the sandbox; otherwise the call fails */
    int url_signal; /* where URLs are read: what kills it; 0 = the call fails, -1 = it is allowed */
} attacks[] = {
    { "attack:open", try_open, false, 0 },
    { "attack:create", try_create, false, 0 },
    { "attack:proc", try_proc, false, 0 },
    { "attack:stat", try_stat, false, -1 },
    { "attack:secret", try_secret, false, 0 },
    { "attack:dumpable", try_dumpable, false, 0 },
    { "attack:socket", try_socket, true, -1 },
    { "attack:unix", try_unix_socket, true, 0 },
    { "attack:connect", try_connect, true, -1 },
    { "attack:fork", try_fork, true, SIGSYS },
    { "attack:exec", try_exec, true, SIGSYS },
    { "attack:ptrace", try_ptrace, true, SIGSYS },
    { "attack:kill", try_kill, true, SIGSYS },
    { "attack:memory", try_memory, true, SIGSYS },
    { "attack:stdin", try_stdin, false, -1 },
    { "attack:ioctl", try_ioctl, false, 0 },
    { "attack:capability", try_capability, true, 0 },
    { "attack:terminal", try_terminal, false, -1 },
};

static void attack_wall(const char *text, char *answer, size_t answer_bytes)
{
    for (size_t i = 0; i < LENGTH(attacks); i++)
        if (strcmp(text, attacks[i].text) == 0)
            snprintf(answer, answer_bytes, "%s", attacks[i].run() >= 0 ? "done" : strerror(errno));
}

enum { NUM_COUNTED = 64 }; /* chunks of "count:" */

/* In memory that the test shares with its child. */
static atomic_uint *map_counter(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    atomic_uint *counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(counter != MAP_FAILED);
    close(fd);
    return counter;
}

/* It is too large for one message, and the process has no descriptor for the memory that it would be passed in. */
static int make_text_that_cannot_be_sent(weir_item *out)
{
    enum { TEXT_BYTES = 1 << 20 };
    char *text = malloc(TEXT_BYTES);
    REQUIRE(text && setrlimit(RLIMIT_NOFILE, &(struct rlimit){ .rlim_cur = 4, .rlim_max = 4 }) == 0);
    memset(text, 'x', TEXT_BYTES);
    text[TEXT_BYTES - 1] = '\0';
    *out = (weir_item){ .data = text, .release = weir_release_free };
    return WEIR_OK;
}

static int run_stand_in(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    uint32_t *num_tasks = worker; /* of this process */
    const char *text = in->data;
    static volatile bool spins = true;
    char answer[256];
    *num_tasks += weir_task_num_chunks(task) == 0;
    snprintf(answer, sizeof answer, "%s", text);
    if (strcmp(text, "segv") == 0)
        die_of(SIGSEGV);
    if (strcmp(text, "abort") == 0)
        die_of(SIGABRT);
    if (strcmp(text, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(text, "exit") == 0)
        _exit(7);
    if (strcmp(text, "eat") == 0) {
        touch_memory_until_there_is_none();
        return weir_task_fail(task, WEIR_ENOMEM, 0, "ate all");
    }
    if (strcmp(text, "fill") == 0) {
        int fd = memfd_create("fill", MFD_CLOEXEC); /* its pages are in no address space */
        int filled = fallocate(fd, 0, 0, 256 << 20);
        close(fd);
        return weir_task_fail(task, filled ? WEIR_ENOMEM : WEIR_EDATA, 0, filled ? "refused" : "filled");
    }
    if (strcmp(text, "garbage") == 0 && write(3, "garbage", 7) == 7)
        hang_in_a_read();
    if (strcmp(text, "burn") == 0)
        while (clock() < BURNT_MS * (CLOCKS_PER_SEC / 1000))
            ;
    if (strcmp(text, "spin") == 0)
        while (spins)
            ;
    if (strcmp(text, "hang") == 0)
        hang_in_a_read();
    if (strncmp(text, "fifo:", 5) == 0) {
        open_fifo(text + 5);
        while (spins)
            ;
    }
    if (strcmp(text, "skip") == 0)
        return WEIR_SKIP;
    if (strcmp(text, "fail") == 0)
        return weir_task_fail(task, WEIR_EDATA, 17, "no good: %s", weir_task_label(task));
    if (strcmp(text, "keep") == 0)
        return WEIR_KEPT;
    if (strcmp(text, "none") == 0) {
        *out = (weir_item){ .data = answer, .type = "other" };
        return WEIR_OK;
    }
    if (strcmp(text, "undeclared") == 0) {
        weir_entry *entry = weir_entry_new();
        entry->path = strdup("x");
        *out = (weir_item){ .data = entry, .type = WEIR_TYPE_ENTRY, .release = weir_entry_release };
        return WEIR_OK;
    }
    if (strcmp(text, "large") == 0)
        return make_text_that_cannot_be_sent(out);
    attack_wall(text, answer, sizeof answer);
    if (strncmp(text, "count:", 6) == 0)
        snprintf(answer, sizeof answer, "%d", (int)*map_counter(text + 6));
    if (strcmp(text, "origin") == 0)
        snprintf(answer, sizeof answer, "%d %d %d %s", (int)weir_task_source(task), (int)weir_task_epoch(task),
                 (int)weir_task_seq(task), weir_task_label(task));
    if (strcmp(text, "tasks") == 0)
        snprintf(answer, sizeof answer, "%d", (int)*num_tasks);
    if (strcmp(text, "privileges") == 0)
        snprintf(answer, sizeof answer, "%d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    if (strcmp(text, "log") == 0)
        weir_log(WEIR_LOG_WARNING, "a line of the stand-in");
    bool is_more = weir_task_num_chunks(task) < (strcmp(text, "chunks") == 0       ? 4U
                                                 : strncmp(text, "count:", 6) == 0 ? NUM_COUNTED - 1U
                                                                                   : 0U);
    *out = (weir_item){ .data = strdup(answer), .release = weir_release_free };
    return is_more ? WEIR_MORE : WEIR_OK;
}

static const weir_op stand_in = {
    .name = "stand_in",
    .takes = WEIR_TYPE_TEXT,
    .makes = WEIR_TYPE_TEXT,
    .worker_size = sizeof(uint32_t),
    .run = run_stand_in,
};

static int refuse_config(void *config, weir_error *error)
{
    const int *number = config;
    return *number == 13 ? weir_error_set(error, WEIR_EINVAL, 0, "13 is refused") : WEIR_OK;
}

static int run_config(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    const int *number = weir_task_config(task);
    char text[16];
    snprintf(text, sizeof text, "%d", *number);
    *out = (weir_item){ .data = strdup(text), .release = weir_release_free };
    return WEIR_OK;
}

static const weir_op configured = {
    .name = "configured",
    .takes = WEIR_TYPE_TEXT,
    .makes = WEIR_TYPE_TEXT,
    .config_size = sizeof(int),
    .config_init = refuse_config,
    .run = run_config,
};

/* What a decoder that a file has broken may return; or, for "device", one that decodes on a GPU. */
static int run_broken(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    bool is_device = strcmp(in->data, "device") == 0;
    (void)worker;
    (void)task;
    weir_frames *frames = calloc(1, sizeof *frames);
    REQUIRE(frames);
    *frames = (weir_frames){
        .data = calloc(1, 12),
        .num_frames = 1,
        .width = 2,
        .height = 2,
        .channels = 3,
        .frame_bytes = 12,
        .scaler = WEIR_SCALER_EXACT,
        .time_base_num = 1,
        .time_base_den = 25,
        .memory = { is_device ? WEIR_MEMORY_CUDA : WEIR_MEMORY_HOST, is_device },
    };
    frames->pts = calloc(1, sizeof *frames->pts);
    memset(frames->codec, 'x', sizeof frames->codec);
    memset(frames->cost.codec, 'x', sizeof frames->cost.codec);
    *out = (weir_item){ .data = frames, .release = weir_frames_release };
    return WEIR_OK;
}

static const weir_op broken = {
    .name = "broken", .takes = WEIR_TYPE_TEXT, .makes = WEIR_TYPE_FRAMES, .run = run_broken
};

static const weir_op *const stand_ins[] = { &stand_in, &configured, &broken };

/* ---- running them --------------------------------------------------------------------------------------------- */

typedef struct outcome {
    char *texts[16]; /* results, in the order of their inputs */
    size_t num_texts;
    failure_record *failures;
    uint64_t num_failures;
} outcome;

static uint64_t count_shared_mappings(void)
{
    char line[1024];
    uint64_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:weir") != NULL;
    fclose(maps);
    return count;
}

static void assert_nothing_is_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(count_shared_mappings(), 0);
}

static weir_pipeline *build_isolated(const weir_isolated_config *config, const char *const *texts, size_t num_texts,
                                     int64_t deadline_ns, const weir_observer *observer)
{
    weir_builder *builder = weir_builder_new();
    weir_list_config list = { .paths = texts, .num_paths = num_texts };
    weir_source_list(builder, &list, NULL);
    weir_pipe_isolated(builder, config,
                       &(weir_stage_options){ .output_order = WEIR_ORDER_INPUT, .task_deadline_ns = deadline_ns });
    weir_builder_sink(builder, NULL);
    return build(builder, &(weir_pipeline_options){ .observers = observer, .num_observers = observer != NULL });
}

/* Runs the texts through one slot; the run must go on to its end. */
static outcome run_config_on(const weir_isolated_config *config, const char *const *texts, size_t num_texts,
                             int64_t deadline_ns)
{
    static test_recorder recorder;
    outcome seen = { 0 };
    weir_item item;
    int status;
    recorder_init(&recorder);
    weir_pipeline *pipeline = build_isolated(config, texts, num_texts, deadline_ns, &recorder.observer);
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        assert_string_equal(item.type, WEIR_TYPE_TEXT);
        seen.texts[seen.num_texts++] = strdup(item.data);
        weir_item_release(&item);
    }
    assert_int_equal(status, WEIR_EOF);
    weir_pipeline_free(pipeline);
    seen.num_failures = recorder.num_failures;
    seen.failures = calloc(recorder.num_failures + 1, sizeof *seen.failures);
    assert_non_null(seen.failures);
    for (uint64_t i = 0; i < recorder.num_failures; i++)
        seen.failures[i] = recorder.failures[i];
    recorder_free(&recorder);
    assert_nothing_is_left();
    return seen;
}

static outcome run_texts(const char *const *texts, size_t num_texts, int64_t deadline_ns, uint64_t max_memory_bytes)
{
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .max_memory_bytes = max_memory_bytes };
    return run_config_on(&config, texts, num_texts, deadline_ns);
}

static void outcome_free(outcome *seen)
{
    for (size_t i = 0; i < seen->num_texts; i++)
        free(seen->texts[i]);
    free(seen->failures);
}

/* What a text is expected to become. */
typedef struct expected_failure {
    const char *text;
    int status;
    const char *message;
} expected_failure;

/* Each text is one failure; the texts before and after them are echoed. */
static void expect_failures(const expected_failure *expected, size_t num_expected, uint64_t max_memory_bytes)
{
    const char *texts[8] = { "before" };
    for (size_t i = 0; i < num_expected; i++)
        texts[i + 1] = expected[i].text;
    texts[num_expected + 1] = "after";
    outcome seen = run_texts(texts, num_expected + 2, 0, max_memory_bytes);
    assert_int_equal(seen.num_texts, 2);
    assert_string_equal(seen.texts[0], "before");
    assert_string_equal(seen.texts[1], "after");
    assert_int_equal(seen.num_failures, num_expected);
    for (size_t i = 0; i < num_expected; i++)
        if (!strstr(seen.failures[i].message, expected[i].message) ||
            seen.failures[i].failure.status != expected[i].status)
            fail_msg("%s: %s (%s)", expected[i].text, seen.failures[i].message,
                     weir_status_name(seen.failures[i].failure.status));
    outcome_free(&seen);
}

TEST_CASE(a_crash_is_one_failure_with_the_signals_name)
{
    static const expected_failure crashes[] = {
        { "segv", WEIR_EDATA, "killed by SIGSEGV" },
        { "abort", WEIR_EDATA, "killed by SIGABRT" },
    };
    expect_failures(crashes, LENGTH(crashes), 0);
}

typedef struct streams {
    int input, error, terminal;
} streams;

/* Standard input is a file, and standard error a terminal. */
static streams begin_streams(void)
{
    streams saved = { dup(STDIN_FILENO), dup(STDERR_FILENO), posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };
    int input = memfd_create("input", MFD_CLOEXEC);
    assert_int_equal(write(input, "x", 1), 1);
    assert_int_equal(grantpt(saved.terminal), 0);
    assert_int_equal(unlockpt(saved.terminal), 0);
    int terminal = open(ptsname(saved.terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0 && dup2(terminal, STDERR_FILENO) >= 0 && dup2(input, STDIN_FILENO) >= 0);
    close(terminal);
    close(input);
    return saved;
}

static void end_streams(const streams *saved)
{
    assert_true(dup2(saved->error, STDERR_FILENO) >= 0 && dup2(saved->input, STDIN_FILENO) >= 0);
    close(saved->error);
    close(saved->input);
    close(saved->terminal);
}

TEST_CASE(the_sandbox_stops_every_attack)
{
    setenv(secret, "hunter2", 1);
    for (size_t i = 0; i < LENGTH(attacks); i++) {
        streams saved = begin_streams();
        outcome seen = run_texts((const char *[]){ attacks[i].text, "after" }, 2, 0, 0);
        end_streams(&saved);
        if (attacks[i].is_killed) {
            assert_int_equal(seen.num_failures, 1);
            if (!strstr(seen.failures[0].message, "killed by SIGSYS: it made a system call that the sandbox forbids"))
                fail_msg("%s: %s", attacks[i].text, seen.failures[0].message);
        } else if (seen.num_texts != 2 || strcmp(seen.texts[0], "done") == 0) {
            fail_msg("%s: %s", attacks[i].text, seen.num_texts > 0 ? seen.texts[0] : "no answer");
        }
        assert_string_equal(seen.texts[seen.num_texts - 1], "after");
        outcome_free(&seen);
    }
    unsetenv(secret);
}

/* Without it (Linux before 5.13) such a child can read files. */
static bool has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* the version */) > 0;
}

static void run_attack_beside_urls(const struct attack *attack)
{
    weir__sandbox_limit_thread(SANDBOX_URLS, NULL);
    if (!weir__sandbox_enter(SANDBOX_URLS))
        _exit(3);
    _exit(attack->run() >= 0 ? 0 : 1);
}

/* The attackers are forked, not started: they have the descriptors of this program. */
TEST_CASE(where_urls_are_read_the_sandbox_allows_the_network_only)
{
    for (size_t i = 0; i < LENGTH(attacks); i++) {
        int status;
        bool is_read = attacks[i].run == try_open || attacks[i].run == try_proc;
        if (is_read && !has_landlock())
            continue;
        streams saved = begin_streams();
        pid_t child = fork();
        if (child == 0)
            run_attack_beside_urls(&attacks[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        end_streams(&saved);
        int expected = attacks[i].url_signal > 0 ? SIGSYS : W_EXITCODE(attacks[i].url_signal < 0 ? 0 : 1, 0);
        if ((status & ~0x80) != expected)
            fail_msg("%s: wait status %#x", attacks[i].text, (unsigned)status);
    }
}

/* So the attacks above fail because of the sandbox, and not by themselves. */
TEST_CASE(without_the_sandbox_the_attacks_succeed)
{
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .no_sandbox = true };
    setenv(secret, "hunter2", 1);
    for (size_t i = 0; i < LENGTH(attacks); i++) {
        streams saved = begin_streams();
        outcome seen = run_config_on(&config, &attacks[i].text, 1, 0);
        end_streams(&saved);
        bool is_done = seen.num_texts == 1 && strcmp(seen.texts[0], "done") == 0;
        bool has_ended =
            seen.num_failures == 1 && !strstr(seen.failures[0].message, "SIGSYS"); /* another program runs */
        bool is_impossible =
            (attacks[i].run == try_capability && try_capability() < 0) || attacks[i].run == try_terminal;
        if (!is_impossible && (attacks[i].run == try_exec ? !has_ended : !is_done))
            fail_msg("%s: %s", attacks[i].text, seen.num_texts > 0 ? seen.texts[0] : seen.failures[0].message);
        outcome_free(&seen);
    }
    unsetenv(secret);
    unlink("/tmp/weir-test-of-the-sandbox");
}

TEST_CASE(an_exit_and_a_broken_connection_are_one_failure)
{
    static const expected_failure ends[] = {
        { "exit", WEIR_ESYSTEM, "ended with exit status 7" },
        { "garbage", WEIR_ESYSTEM, "the connection to the process" },
        { "kill", WEIR_ESYSTEM, "killed by SIGKILL" },
    };
    expect_failures(ends, LENGTH(ends), 0);
}

/* Ctrl-C reaches the children, too, and they take a while to start. */
TEST_CASE(an_interrupt_while_children_start_does_not_end_them)
{
    setenv(interrupted_at_start, "1", 1);
    expect_failures(NULL, 0, 0);
    unsetenv(interrupted_at_start);
}

TEST_CASE(a_program_that_ignores_its_children_is_told)
{
    static const expected_failure unknown[] = { { "exit", WEIR_ESYSTEM, "the program ignores SIGCHLD" } };
    signal(SIGCHLD, SIG_IGN);
    expect_failures(unknown, LENGTH(unknown), 0);
    signal(SIGCHLD, SIG_DFL);
}

TEST_CASE(memory_over_the_limit_is_one_failure)
{
    expect_failures(&(expected_failure){ "eat", WEIR_ENOMEM, "ate all" }, 1, 64 << 20);
    expect_failures(&(expected_failure){ "fill", WEIR_ENOMEM, "refused" }, 1, 64 << 20);
}

TEST_CASE(failures_and_skips_of_the_operation_are_its_own)
{
    static const expected_failure failures[] = {
        { "fail", WEIR_EDATA, "no good: fail" },           { "keep", WEIR_EUNSUPPORTED, "WEIR_KEPT" },
        { "none", WEIR_EUNSUPPORTED, "\"other\"" },        { "undeclared", WEIR_EUNSUPPORTED, "\"weir.entry\"" },
        { "large", WEIR_ESYSTEM, "cannot pass a result" },
    };
    expect_failures(failures, LENGTH(failures), 0);
    outcome seen = run_texts((const char *[]){ "skip", "a" }, 2, 0, 0);
    assert_int_equal(seen.num_texts, 1);
    assert_int_equal(seen.num_failures, 0);
    outcome_free(&seen);
}

TEST_CASE(what_spins_or_hangs_is_killed_at_its_deadline)
{
    outcome seen = run_texts((const char *[]){ "spin", "hang" }, 2, 100 * WEIR_MILLISECOND, 0);
    assert_int_equal(seen.num_texts, 0);
    assert_int_equal(seen.num_failures, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(seen.failures[i].failure.status, WEIR_ETIMEDOUT);
    outcome_free(&seen);
}

typedef struct used_cpu {
    int64_t task_ns, process_ns, pool_ns;
} used_cpu;

static void add_lap(void *self, const weir_subject_lap *lap)
{
    used_cpu *used = self;
    if (lap->subject == WEIR_SUBJECT_STAGE || lap->subject == WEIR_SUBJECT_FLOW)
        used->task_ns += lap->metrics.task.cpu_ns;
    if (lap->subject == WEIR_SUBJECT_PROCESS) {
        used->process_ns += lap->metrics.process.cpu_ns;
        used->pool_ns += lap->metrics.process.pool_cpu_ns;
    }
}

TEST_CASE(the_cpu_time_of_children_counts)
{
    enum { LEAST_NS = BURNT_MS * WEIR_MILLISECOND * 9 / 10 };
    weir_item item;
    used_cpu used = { 0 };
    weir_observer observer = { .self = &used, .lap = add_lap };
    weir_isolated_config config = { .op = &stand_in, .program = self_path };
    weir_pipeline *pipeline = build_isolated(&config, (const char *[]){ "burn" }, 1, 0, &observer);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    assert_true(used.task_ns > LEAST_NS);
    assert_true(used.process_ns > LEAST_NS);
    assert_true(used.pool_ns > LEAST_NS);
}

static void note_memory(void *self, const weir_subject_lap *lap)
{
    if (lap->subject == WEIR_SUBJECT_PROCESS && lap->metrics.process.child_resident_bytes > 0)
        gate_open(self);
}

/* The first lap ends after a second; until then the consumer keeps the child from its end. */
TEST_CASE(the_memory_of_children_is_in_the_laps)
{
    enum { NUM_TEXTS = 30 };
    const char *texts[NUM_TEXTS];
    weir_item item;
    test_gate is_seen = GATE;
    weir_observer observer = { .self = &is_seen, .lap = note_memory };
    weir_isolated_config config = { .op = &stand_in, .program = self_path };
    for (int i = 0; i < NUM_TEXTS; i++)
        texts[i] = "a";
    weir_pipeline *pipeline = build_isolated(&config, texts, NUM_TEXTS, 0, &observer);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    gate_pass(&is_seen);
    do
        weir_item_release(&item);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK);
    weir_pipeline_free(pipeline);
    assert_nothing_is_left();
}

TEST_CASE(a_child_serves_many_items_in_several_chunks)
{
    outcome seen = run_texts((const char *[]){ "a", "chunks", "origin", "tasks", "privileges" }, 5, 0, 0);
    assert_int_equal(seen.num_failures, 0);
    assert_int_equal(seen.num_texts, 9);
    assert_string_equal(seen.texts[5], "chunks");
    assert_string_equal(seen.texts[6], "0 0 2 origin");
    assert_string_equal(seen.texts[7], "4");
    assert_string_equal(seen.texts[8], "1");
    outcome_free(&seen);
}

TEST_CASE(a_child_makes_no_chunks_that_nobody_has_room_for)
{
    enum { MAX_AHEAD = 16 }; /* in queues, in the slot and in the consumer */
    char text[4096] = "count:";
    const char *path = clips_path("counter"), *texts[] = { text };
    weir_item item;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && ftruncate(fd, sizeof(atomic_uint)) == 0);
    close(fd);
    snprintf(text + 6, sizeof text - 6, "%s", path);
    atomic_uint *num_taken = map_counter(path);
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .no_sandbox = true };
    weir_pipeline *pipeline = build_isolated(&config, texts, 1, 0, NULL);
    for (int i = 0; i < NUM_COUNTED; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        int num_taken_before = atoi(item.data);
        if (i > num_taken_before + MAX_AHEAD)
            fail_msg("chunk %d was made when %d had been taken", i, num_taken_before);
        weir_item_release(&item);
        atomic_fetch_add(num_taken, 1);
    }
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_pipeline_free(pipeline);
    munmap(num_taken, sizeof *num_taken);
    assert_nothing_is_left();
}

TEST_CASE(log_lines_are_passed_on)
{
    char line[256];
    outcome seen = run_texts((const char *[]){ "log" }, 1, 0, 0);
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_string_equal(line, "a line of the stand-in");
    outcome_free(&seen);
}

/* ---- stop, and the end of the parent ---------------------------------------------------------------------------- */

/* The path is "fifo:PATH", for the stand-in. */
static const char *make_fifo(const char *name)
{
    static char text[4096];
    snprintf(text, sizeof text, "fifo:%s", clips_path(name));
    assert_int_equal(mkfifo(text + 5, 0600), 0);
    return text;
}

static int await_fifo(const char *text)
{
    char byte;
    int fd = open(text + 5, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, &byte, 1), 1);
    return fd;
}

/* Waits until the process that has opened the FIFO has ended. */
static void await_end(int fd)
{
    char byte;
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

TEST_CASE(a_stop_kills_what_spins)
{
    const char *text = make_fifo("stop.fifo");
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .no_sandbox = true };
    weir_pipeline *pipeline = build_isolated(&config, &text, 1, 0, NULL);
    int fd = await_fifo(text);
    assert_int_equal(weir_pipeline_stop(pipeline), WEIR_OK);
    weir_pipeline_free(pipeline);
    await_end(fd);
    assert_nothing_is_left();
}

/* Takes at most `most` results, from *text on if there is one, and stops; then *text is the checkpoint. Returns how
   many there were. */
static uint64_t take_chunks(const char *const *texts, size_t num_texts, char **text, uint64_t most)
{
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .no_sandbox = true };
    weir_pipeline_options options = { .checkpoints = WEIR_CHECKPOINTS_DELIVERED,
                                      .resume = (const char *const *)text,
                                      .num_resume = *text != NULL };
    weir_list_config list = { .paths = texts, .num_paths = num_texts };
    weir_builder *builder = weir_builder_new();
    weir_item item;
    uint64_t num = 0;
    weir_source_list(builder, &list, NULL);
    weir_pipe_isolated(builder, &config, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_pipeline *pipeline = build(builder, &options);
    for (; num < most && weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; num++)
        weir_item_release(&item);
    free(*text);
    assert_int_equal(weir_pipeline_checkpoint(pipeline, text), WEIR_OK);
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
    assert_nothing_is_left();
    return num;
}

/* Stopped after each chunk of the first two of three items, and resumed. Held constant: one slot, five chunks an item. */
TEST_CASE(a_stop_between_chunks_of_a_child_loses_and_doubles_none)
{
    enum { NUM_CHUNKS = 5 };
    const char *texts[] = { "chunks", "chunks", "chunks" };
    for (uint64_t stopped_at = 0; stopped_at <= 2 * NUM_CHUNKS; stopped_at++) {
        char *text = NULL;
        assert_int_equal(take_chunks(texts, 3, &text, stopped_at), stopped_at);
        assert_int_equal(take_chunks(texts, 3, &text, UINT64_MAX), 3 * NUM_CHUNKS - stopped_at);
        free(text);
    }
}

/* Kills a parent, which is this program again (see main()), and awaits the end of its child, which spins. A byte from
   the socket says that a process that the parent has forked holds all its descriptors; it ends with the socket. */
static void kill_parent(const char *fifo, bool forks)
{
    int sockets[2];
    char byte, number[16];
    const char *text = make_fifo(fifo);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
    snprintf(number, sizeof number, "%d", forks ? sockets[1] : -1);
    pid_t parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this test is killed, too */
        execl(self_path, self_path, "--parent", text, number, (char *)NULL);
        _exit(9);
    }
    close(sockets[1]);
    int fd = await_fifo(text);
    if (forks)
        assert_int_equal(read(sockets[0], &byte, 1), 1);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    await_end(fd);
    close(sockets[0]);
    assert_nothing_is_left();
}

TEST_CASE(children_end_with_a_killed_parent)
{
    kill_parent("parent.fifo", false);
}

TEST_CASE(children_end_with_a_killed_parent_that_has_forked)
{
    kill_parent("forking.fifo", true);
}

/* They open nothing that the test could wait for, so they become its own children. */
TEST_CASE(children_in_the_sandbox_end_with_a_killed_parent)
{
    int sockets[2];
    char byte, number[16];
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    fcntl(sockets[0], F_SETFD, FD_CLOEXEC);
    snprintf(number, sizeof number, "%d", sockets[1]);
    pid_t parent = fork();
    if (parent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(self_path, self_path, "--parent", "spin", number, (char *)NULL);
        _exit(9);
    }
    close(sockets[1]);
    assert_int_equal(read(sockets[0], &byte, 1), 1);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_true(waitpid(-1, NULL, 0) > 0); /* the one that spins */
    close(sockets[0]);                     /* with it the process ends that the parent has forked */
    assert_true(waitpid(-1, NULL, 0) > 0);
    assert_nothing_is_left();
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

static int run_parent(const char *text, int holder_fd)
{
    char byte = 'x';
    weir_isolated_config config = { .op = &stand_in, .program = self_path, .no_sandbox = strcmp(text, "spin") != 0 };
    weir_item item;
    weir_pipeline *pipeline = build_isolated(&config, (const char *[]){ "first", text }, 2, 0, NULL);
    int status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER);
    if (holder_fd >= 0 && fork() == 0) /* there is a child by now */
        _exit(write(holder_fd, &byte, 1) == 1 && read(holder_fd, &byte, 1) == 0 ? 0 : 9);
    return status == WEIR_OK ? weir_pipeline_next(pipeline, &item, WEIR_FOREVER) : status;
}

/* ---- the config ------------------------------------------------------------------------------------------------- */

static void expect_refusal(const weir_isolated_config *config, int status, const char *message)
{
    weir_error error = { 0 };
    weir_isolated_config copy = *config;
    assert_int_equal(weir_isolated.config_init(&copy, &error), status);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
}

TEST_CASE(mistakes_in_the_config_are_refused)
{
    weir_op flushing = stand_in;
    flushing.flush = (int (*)(void *, weir_item *, weir_task *))abort;
    expect_refusal(&(weir_isolated_config){ 0 }, WEIR_EINVAL, "op is missing");
    expect_refusal(&(weir_isolated_config){ .op = &flushing }, WEIR_EUNSUPPORTED, "flush");
    expect_refusal(&(weir_isolated_config){ .op = &stand_in, .config = "x", .config_size = 1 }, WEIR_EUNSUPPORTED,
                   "not copied");
    expect_refusal(&(weir_isolated_config){ .op = &configured, .config = &(int){ 13 }, .config_size = sizeof(int) },
                   WEIR_EINVAL, "13 is refused");
    expect_refusal(&(weir_isolated_config){ .op = &stand_in, .program = "/no/such/program" }, WEIR_ENOTFOUND,
                   "/no/such/program");
}

TEST_CASE(the_config_reaches_the_child)
{
    const char *text = "a";
    weir_item item;
    weir_isolated_config config = {
        .op = &configured, .config = &(int){ 12 }, .config_size = sizeof(int), .program = self_path
    };
    weir_pipeline *pipeline = build_isolated(&config, &text, 1, 0, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    assert_string_equal(item.data, "12");
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    assert_nothing_is_left();
}

TEST_CASE(an_operation_that_the_worker_does_not_know_fails_each_item)
{
    weir_op unknown = stand_in;
    const char *texts[] = { "a", "b" };
    weir_error error = { 0 };
    weir_item item;
    unknown.name = "unknown";
    weir_pipeline *pipeline =
        build_isolated(&(weir_isolated_config){ .op = &unknown, .program = self_path }, texts, 2, 0, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    assert_int_equal(weir_pipeline_error(pipeline, "isolated", &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "no operation \"unknown\""));
    weir_pipeline_free(pipeline);
    assert_nothing_is_left();
}

TEST_CASE(a_process_that_is_not_a_child_goes_on)
{
    char *arguments[] = { (char[]){ "x" }, (char[]){ "--weir-isolated" }, NULL };
    assert_int_equal(weir_isolated_serve(1, arguments, NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_isolated_serve(2, arguments, NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_isolated_serve(2, NULL, NULL, 0), WEIR_EINVAL);
}

/* ---- real operations ---------------------------------------------------------------------------------------------- */

static const char *make_video(void)
{
    return clips_make("clip.mp4", "-f lavfi -i testsrc2=s=96x64:d=2:r=10 -f lavfi -i sine=r=8000:d=2 "
                                  "-c:v mpeg4 -c:a aac");
}

/* All results of the paths, in order. The pipeline is freed first: results outlive it, and the children. */
static size_t results_of(const weir_op *op, const void *config, const char *const *paths, size_t num_paths,
                         weir_item *results)
{
    size_t num_results = 0;
    weir_builder *builder = weir_builder_new();
    weir_list_config list = { .paths = paths, .num_paths = num_paths };
    weir_source_list(builder, &list, NULL);
    weir_builder_pipe(builder, op, config, op->config_size, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    while (weir_pipeline_next(pipeline, &results[num_results], WEIR_FOREVER) == WEIR_OK)
        num_results++;
    weir_pipeline_free(pipeline);
    return num_results;
}

static void assert_same_frames(const weir_frames *a, const weir_frames *b)
{
    assert_int_equal(a->num_frames, b->num_frames);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->first_frame, b->first_frame);
    assert_int_equal(a->is_last_chunk, b->is_last_chunk);
    assert_int_equal(a->time_base_den, b->time_base_den);
    assert_string_equal(a->codec, b->codec);
    assert_memory_equal(a->pts, b->pts, a->num_frames * sizeof *a->pts);
    assert_memory_equal(a->data, b->data, a->num_frames * a->frame_bytes);
}

enum { MAX_RESULTS = 16 };

static void expect_same_frames(const weir_op *op, const void *config, const char *path)
{
    weir_item plain[MAX_RESULTS], isolated[MAX_RESULTS];
    const char *paths[] = { path, path };
    weir_isolated_config around = { .op = op, .config = config, .config_size = op->config_size };
    size_t num_plain = results_of(op, config, paths, 2, plain);
    assert_true(num_plain >= 2);
    assert_int_equal(results_of(&weir_isolated, &around, paths, 2, isolated), num_plain);
    assert_int_equal(count_shared_mappings(), num_plain);
    for (size_t i = 0; i < num_plain; i++) {
        assert_string_equal(isolated[i].type, plain[i].type);
        assert_string_equal(isolated[i].label, path);
        assert_int_equal(isolated[i].seq, plain[i].seq);
        assert_same_frames(plain[i].data, isolated[i].data);
        weir_item_release(&plain[i]);
        weir_item_release(&isolated[i]);
    }
    assert_nothing_is_left();
}

TEST_CASE(frames_are_the_same_as_without_isolation)
{
    const char *path = make_video();
    const int64_t indices[] = { 7, 3, 3, -1 };
    expect_same_frames(&weir_video_decode, NULL, path);
    expect_same_frames(
        &weir_video_decode,
        &(weir_video_config){ WEIR_WITH_PICTURE(.width = 32, .height = 32, .filter = "hflip"), .chunk_frames = 7 },
        path);
    expect_same_frames(&weir_video_decode,
                       &(weir_video_config){ .seed = 3, .sampling = { .what = WEIR_SAMPLE_RANDOM, .count = 5 } },
                       path);
    expect_same_frames(
        &weir_video_decode,
        &(weir_video_config){ .sampling = { .what = WEIR_SAMPLE_INDICES, .indices = indices, .num_indices = 4 } },
        path);
}

TEST_CASE(a_filter_that_reads_a_file_is_told_of_the_sandbox)
{
    char filter[512];
    const char *path = make_video(), *table = clips_path("same.cube");
    weir_item item[MAX_RESULTS];
    clips_write_text(table, "LUT_3D_SIZE 2\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 0 1\n1 0 1\n0 1 1\n1 1 1\n");
    snprintf(filter, sizeof filter, "lut3d=file=%s", table);
    weir_video_config video = { WEIR_WITH_PICTURE(.filter = filter) };
    weir_isolated_config config = { .op = &weir_video_decode, .config = &video, .config_size = sizeof video };
    weir_builder *builder = weir_builder_new();
    weir_error error;
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_isolated(builder, &config, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, item, WEIR_FOREVER), WEIR_EOF);
    assert_int_equal(weir_pipeline_error(pipeline, "isolated", &error), WEIR_EACCESS);
    assert_non_null(strstr(error.message, "see no_sandbox (--no-sandbox)"));
    weir_pipeline_free(pipeline);
    config.no_sandbox = true;
    assert_int_equal(results_of(&weir_isolated, &config, &path, 1, item), 1);
    weir_item_release(item);
    assert_nothing_is_left();
}

TEST_CASE(pictures_and_samples_are_the_same_as_without_isolation)
{
    const char *path = make_video();
    weir_item plain[MAX_RESULTS], isolated[MAX_RESULTS];
    weir_isolated_config around = { .op = &weir_audio_decode };
    expect_same_frames(&weir_image_decode, NULL,
                       clips_make("picture.png", "-f lavfi -i testsrc2=s=64x48 -frames:v 1"));
    assert_int_equal(results_of(&weir_audio_decode, NULL, &path, 1, plain), 1);
    assert_int_equal(results_of(&weir_isolated, &around, &path, 1, isolated), 1);
    const weir_audio *a = plain[0].data, *b = isolated[0].data;
    assert_true(a->num_samples > 0);
    assert_int_equal(a->num_samples, b->num_samples);
    assert_int_equal(a->sample_rate, b->sample_rate);
    assert_memory_equal(a->data, b->data, a->num_samples * a->channels * sizeof *a->data);
    weir_item_release(&plain[0]);
    weir_item_release(&isolated[0]);
    assert_nothing_is_left();
}

static void expect_broken_result(const char *path, int status, const char *message)
{
    weir_item item;
    weir_error error;
    weir_isolated_config around = { .op = &broken, .program = self_path };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_isolated(builder, &around, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    assert_int_equal(weir_pipeline_error(pipeline, "isolated", &error), status);
    if (!strstr(error.message, message))
        fail_msg("%s", error.message);
    weir_pipeline_free(pipeline);
}

TEST_CASE(a_result_of_a_broken_child_is_a_failure_that_names_the_field)
{
    expect_broken_result("x", WEIR_ESYSTEM, "makes no sense (frames.codec)");
}

TEST_CASE(frames_in_memory_of_a_device_do_not_leave_a_child)
{
    expect_broken_result("device", WEIR_EUNSUPPORTED, "isolated: the values are in CUDA memory (device 1)");
}

/* One item, made by the test. */
static int give_item(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    weir_item *item = *(weir_item *const *)weir_task_config(task);
    if (!item->data)
        return WEIR_EOF;
    out->type = item->type;
    out->data = item->data;
    out->release = item->release;
    item->data = NULL;
    return WEIR_OK;
}

static const weir_op give_op = {
    .name = "give", .makes = WEIR_TYPE_ANY, .config_size = sizeof(void *), .run = give_item
};

static weir_frames *decode_item(const weir_op *op, weir_item *input)
{
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &give_op, &input, sizeof(void *), NULL);
    weir_pipe_isolated(builder, &(weir_isolated_config){ .op = op }, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    weir_pipeline_free(pipeline);
    return item.data;
}

TEST_CASE(files_in_memory_and_entries_are_decoded)
{
    const char *path = make_video();
    struct stat info;
    FILE *file = fopen(path, "rb");
    assert_true(file && stat(path, &info) == 0);
    weir_bytes *bytes = weir_bytes_new((size_t)info.st_size, "clip.mp4");
    bytes->next = weir_bytes_new(5, "label.txt");
    assert_int_equal(fread(bytes->data, 1, bytes->size_bytes, file), bytes->size_bytes);
    fclose(file);
    weir_frames *frames = decode_item(
        &weir_video_decode, &(weir_item){ .data = bytes, .type = WEIR_TYPE_BYTES, .release = weir_bytes_release });
    assert_int_equal(frames->num_frames, 20);
    assert_string_equal(frames->sidecars->name, "label.txt");
    weir_frames_free(frames);

    const char *picture = clips_make("picture.png", "-f lavfi -i testsrc2=s=64x48 -frames:v 1");
    for (int i = 0; i < 2; i++) {
        weir_entry *entry = weir_entry_new();
        entry->path = strdup(i ? picture : path);
        entry->number = 77;
        frames = decode_item(i ? &weir_image_decode : &weir_video_decode,
                             &(weir_item){ .data = entry, .type = WEIR_TYPE_ENTRY, .release = weir_entry_release });
        assert_int_equal(frames->num_frames, i ? 1 : 20);
        assert_true(frames->is_last_chunk);
        assert_non_null(frames->entry);
        assert_int_equal(frames->entry->number, 77);
        weir_frames_free(frames);
    }
    assert_nothing_is_left();
}

int main(int argc, char *argv[])
{
    static char path[4096];
    if (getenv(interrupted_at_start) && argc == 2)
        raise(SIGINT);
    weir_isolated_serve(argc, argv, stand_ins, LENGTH(stand_ins));
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return 9;
    self_path = path;
    if (argc == 4 && strcmp(argv[1], "--parent") == 0)
        return run_parent(argv[2], atoi(argv[3]));

    cmocka_set_skip_filter(getenv("WEIR_SKIP_TEST"));
    return test_cases_run(test_setup, test_teardown, clips_set_up, clips_tear_down);
}
