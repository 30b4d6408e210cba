#include "tests/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test_case.h"

extern char **environ;

static pid_t left; /* started and not yet waited for; 0 = none */
static const char out_name[] = "program.out", err_name[] = "program.err";

const char *program_path(const char *variable)
{
    const char *path = getenv(variable);
    if (!path)
        fail_msg("%s is not set: run this test with ctest", variable);
    return path;
}

char *path_in(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    assert_non_null(path);
    snprintf(path, size, "%s/%s", folder, name);
    return path;
}

int folder_watch_begin(const char *folder)
{
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0 && inotify_add_watch(watch, folder, IN_CREATE | IN_MOVED_TO | IN_MODIFY) >= 0);
    return watch;
}

void folder_watch_wait(int watch)
{
    char events[4096];
    poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1, 1000);
    while (read(watch, events, sizeof events) > 0)
        continue;
}

char *make_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = path_in(base ? base : "/tmp", "weir-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *position)
{
    (void)info;
    (void)kind;
    (void)position;
    return remove(path);
}

void remove_folder(char *folder)
{
    if (folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    size_t size = 0, capacity = 4096, got;
    char *text = malloc(capacity);
    assert_non_null(text);
    while ((got = fread(text + size, 1, capacity - size - 1, file)) > 0) {
        size += got;
        if (capacity - size < 2) {
            capacity *= 2;
            text = realloc(text, capacity);
            assert_non_null(text);
        }
    }
    fclose(file);
    text[size] = '\0';
    return text;
}

void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_not_equal(fputs(text, file), EOF);
    assert_int_equal(fclose(file), 0);
}

/* -- programs */

static void redirect_to_file(posix_spawn_file_actions_t *actions, int fd, const char *path)
{
    assert_int_equal(posix_spawn_file_actions_addopen(actions, fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 0);
}

/* A test runner may ignore or block signals; the program must start with the same signal state as from a shell. */
static void reset_signals(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    sigaddset(&all, SIGPIPE);
    assert_int_equal(posix_spawnattr_setsigdefault(attributes, &all), 0);
    assert_int_equal(posix_spawnattr_setsigmask(attributes, &none), 0);
    assert_int_equal(posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK), 0);
}

void program_start(struct program *program, const char *folder, char *const argv[], int stderr_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    *program = (struct program){ 0 };
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawnattr_init(&attributes), 0);
    reset_signals(&attributes);

    char *out_path = path_in(folder, out_name), *err_path = path_in(folder, err_name);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0), 0);
    redirect_to_file(&actions, STDOUT_FILENO, out_path);
    redirect_to_file(&actions, STDERR_FILENO, err_path);
    if (stderr_fd >= 0)
        assert_int_equal(posix_spawn_file_actions_adddup2(&actions, stderr_fd, STDERR_FILENO), 0);

    int error = posix_spawn(&program->pid, argv[0], &actions, &attributes, argv, environ);
    if (error)
        fail_msg("%s: %s", argv[0], strerror(error));
    left = program->pid;
    free(out_path);
    free(err_path);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

bool program_has_ended(const struct program *program)
{
    siginfo_t info = { .si_pid = 0 };
    return waitid(P_PID, (id_t)program->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* ctest's time limit ends a wait in vain, and the program, too. */
void program_wait(struct program *program, const char *folder)
{
    int wait_status = 0;
    while (waitpid(program->pid, &wait_status, 0) < 0)
        assert_int_equal(errno, EINTR);
    left = 0;
    char *out_path = path_in(folder, out_name), *err_path = path_in(folder, err_name);
    program->out = read_file(out_path);
    program->err = read_file(err_path);
    program->status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -WTERMSIG(wait_status);
    free(out_path);
    free(err_path);
}

void program_end_left(void)
{
    if (left) {
        kill(left, SIGKILL);
        waitpid(left, NULL, 0);
    }
    left = 0;
}

void program_run(struct program *program, const char *folder, char *const argv[])
{
    program_start(program, folder, argv, -1);
    program_wait(program, folder);
}

void program_free(struct program *program)
{
    free(program->out);
    free(program->err);
    *program = (struct program){ 0 };
}

bool program_has_part_in(pid_t pid, const char *folder)
{
    char path[300], target[4096];
    size_t length = strlen(folder);
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    for (struct dirent *entry; fds && (entry = readdir(fds));) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, entry->d_name);
        ssize_t target_bytes = readlink(path, target, sizeof target - 1);
        target[target_bytes > 0 ? target_bytes : 0] = '\0';
        has |= strncmp(target, folder, length) == 0 && target[length] == '/' && strchr("#.", target[length + 1]) &&
               target[length + 1];
    }
    if (fds)
        closedir(fds);
    return has;
}
