/*
 * The key that keeps identities of hidden values the same from one run to the next: where it is kept, for whom, and what is
 * said where it cannot be kept. Held constant: one process at a time, but in one test.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/item.h>
#include <weir/status.h>

#include "tests/program.h"
#include "tools/record/identity_key.h"

#define ADDRESS "http://h/a?key=1"

static char *folder;

/* Of the test's folder; the last four stay. */
static const char *in(const char *name)
{
    static char *paths[4];
    static int at;
    at = (at + 1) % 4;
    free(paths[at]);
    return paths[at] = path_in(folder, name);
}

/* What is said on stderr while the key for these addresses is loaded; to be freed. */
static char *load(const char *const *addresses, size_t count)
{
    const char *said = in("said");
    int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10),
        to = open(said, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fflush(stderr);
    assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
    close(to);
    identity_key_load(addresses, count);
    fflush(stderr);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    char *text = read_file(said);
    assert_int_equal(unlink(said), 0);
    return text;
}

static void expect_said(const char *wanted)
{
    const char *const addresses[] = { "a.mp4", ADDRESS };
    char *said = load(addresses, 2);
    if (*wanted ? !strstr(said, wanted) : *said)
        fail_msg("\"%s\" is not in \"%s\"", wanted, said);
    free(said);
}

/* The identity with the key that is set now. */
static void expect_identity(const char *wanted)
{
    char *identity = weir_identity_of(ADDRESS);
    assert_string_equal(identity, wanted);
    free(identity);
}

static void set_other_key(void)
{
    unsigned char other[WEIR_IDENTITY_KEY_BYTES] = "another one";
    assert_int_equal(weir_identity_set_key(other, sizeof other), WEIR_OK);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode & 0777;
}

static void write_key(const char *path, size_t num_bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < num_bytes; i++)
        fputc((int)i, file);
    fclose(file);
}

/* The next descriptor: the same again if none was left open. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

static void make_folders(const char *names)
{
    char command[1000];
    snprintf(command, sizeof command, "cd '%s' && mkdir -p %s", folder, names);
    assert_int_equal(system(command), 0); /* NOLINT */
}

/* The first test: this process has no key yet, so that each child makes its own. */
TEST_CASE(without_a_key_that_is_kept_each_process_has_its_own)
{
    char text[2][64] = { "", "" };
    for (int i = 0; i < 2; i++) {
        int answer[2], status;
        assert_int_equal(pipe(answer), 0);
        pid_t child = fork();
        if (child == 0) {
            char *identity = weir_identity_of(ADDRESS);
            _exit(write(answer[1], identity, strlen(identity)) != (ssize_t)strlen(identity));
        }
        close(answer[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(read(answer[0], text[i], sizeof text[i] - 1), strlen(ADDRESS) - 1 + 16);
        close(answer[0]);
    }
    assert_string_not_equal(text[0], text[1]);
}

TEST_CASE(a_key_is_made_once_for_the_owner_only_and_then_stays)
{
    mode_t mask = umask(0);
    int next = next_descriptor();
    setenv("XDG_STATE_HOME", in("state/of mine"), 1);
    expect_said("");
    umask(mask);
    assert_int_equal(next_descriptor(), next);
    char *made = weir_identity_of(ADDRESS);
    assert_int_equal(mode_of(in("state")), 0700);
    assert_int_equal(mode_of(in("state/of mine/weir")), 0700);
    assert_int_equal(mode_of(in("state/of mine/weir/identity-key")), 0600);
    set_other_key();
    char *other = weir_identity_of(ADDRESS);
    assert_string_not_equal(made, other);
    expect_said("");
    expect_identity(made);
    assert_int_equal(next_descriptor(), next);
    struct stat info;
    assert_int_equal(stat(in("state/of mine/weir/identity-key"), &info), 0);
    assert_int_equal(info.st_size, WEIR_IDENTITY_KEY_BYTES);
    assert_int_equal(info.st_nlink, 1); /* its first name is gone */
    assert_int_equal(unlink(in("state/of mine/weir/identity-key")), 0);
    assert_int_equal(rmdir(in("state/of mine/weir")), 0); /* nothing else is there */
    free(made);
    free(other);
}

/* The digest is that of a key of 0, 1, 2, …; see test_secrets.c. */
TEST_CASE(the_key_of_the_file_is_used)
{
    make_folders("state/weir home/.local/state/weir");
    setenv("XDG_STATE_HOME", in("state"), 1);
    write_key(in("state/weir/identity-key"), WEIR_IDENTITY_KEY_BYTES);
    expect_said("");
    expect_identity("http://h/a?key=3943c8fcfccf7ce0");

    static const char *const no_state[] = { "", "relative", NULL };
    setenv("HOME", in("home"), 1);
    write_key(in("home/.local/state/weir/identity-key"), WEIR_IDENTITY_KEY_BYTES);
    for (int i = 0; i < 3; i++) {
        set_other_key();
        if (no_state[i])
            setenv("XDG_STATE_HOME", no_state[i], 1);
        else
            unsetenv("XDG_STATE_HOME");
        expect_said("");
        expect_identity("http://h/a?key=3943c8fcfccf7ce0");
    }
}

TEST_CASE(where_no_value_is_hidden_no_key_is_made)
{
    static const char *const addresses[] = { "a?key=1.mp4", "http://h/a?v=1", "http://u@h/a?token=1",
                                             "file:a?key=1" };
    setenv("XDG_STATE_HOME", in("state"), 1);
    setenv("HOME", in("home"), 1);
    char *said = load(addresses, 4);
    assert_string_equal(said, "");
    assert_int_not_equal(access(in("state"), F_OK), 0);
    assert_int_not_equal(access(in("home"), F_OK), 0);
    free(said);
}

TEST_CASE(a_hidden_value_before_a_secret_needs_the_key_too)
{
    static const char *const addresses[] = { "http://h/a?key=1&token=2", "a.mp4" };
    setenv("XDG_STATE_HOME", in("state"), 1);
    char *said = load(addresses, 2);
    assert_string_equal(said, "");
    assert_int_equal(access(in("state/weir/identity-key"), R_OK), 0);
    free(said);
}

TEST_CASE(a_key_that_cannot_be_kept_is_told_with_the_place_and_the_reason)
{
    char *before;
    set_other_key();
    before = weir_identity_of(ADDRESS);
    setenv("XDG_STATE_HOME", in("state"), 1);
    make_folders("state/weir");
    write_key(in("state/weir/identity-key"), WEIR_IDENTITY_KEY_BYTES - 1);
    expect_said("state/weir/identity-key: Invalid argument; a later run reads these files again, also with --resume "
                "(set XDG_STATE_HOME");
    write_key(in("state/weir/identity-key"), 0);
    expect_said("state/weir/identity-key: Invalid argument");
    assert_int_equal(unlink(in("state/weir/identity-key")), 0);
    assert_int_equal(symlink(in("key"), in("state/weir/identity-key")), 0); /* perhaps somebody else's */
    write_key(in("key"), WEIR_IDENTITY_KEY_BYTES);
    expect_said("state/weir/identity-key: Too many levels");
    assert_int_equal(unlink(in("state/weir/identity-key")), 0);
    assert_int_equal(mkdir(in("state/weir/identity-key"), 0700), 0);
    expect_said("state/weir/identity-key: Is a directory");
    setenv("XDG_STATE_HOME", in("key"), 1);
    expect_said("~/.local/state/weir: Not a directory");
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", "relative", 1);
    expect_said("~/.local/state/weir: No such file or directory");
    unsetenv("HOME");
    expect_said("~/.local/state/weir: No such file or directory");
    expect_identity(before);
    free(before);
}

/* The first one's key is all of theirs. */
TEST_CASE(processes_that_begin_at_once_have_one_key)
{
    enum { COUNT = 8 };
    setenv("XDG_STATE_HOME", in("state"), 1);
    pid_t children[COUNT];
    int gate[2], answers[2];
    assert_int_equal(pipe(gate) | pipe(answers), 0);
    for (int i = 0; i < COUNT; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            const char *address = ADDRESS;
            char byte;
            close(gate[1]);
            bool is_begun = read(gate[0], &byte, 1) == 0;
            identity_key_load(&address, 1);
            char *identity = weir_identity_of(ADDRESS);
            bool is_reported = write(answers[1], identity, strlen(identity)) == (ssize_t)strlen(identity);
            _exit(!is_begun || !is_reported);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < COUNT; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    char text[COUNT * 64 + 1] = "";
    size_t length = strlen(ADDRESS) - 1 + 16;
    assert_int_equal(read(answers[0], text, sizeof text - 1), COUNT * length);
    for (int i = 1; i < COUNT; i++)
        assert_memory_equal(text, text + (size_t)i * length, length);
    close(answers[0]);
    close(answers[1]);
}

static int set_up(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
