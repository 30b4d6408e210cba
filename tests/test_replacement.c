/*
 * Files without a name until they are whole, and those beside a database: what is there afterwards, and what is said. What
 * programs leave when they are ended, test_outputs.c looks at. Held constant: the program is alone.
 *
 * A file system that has no nameless files, and a system without /proc, are played: the linker puts the functions here in the
 * place of open() and access() (see CMakeLists.txt).
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/replacement.h"
#include "tests/program.h"
#include "tests/test_case.h"

static char *folder;

/* ---- what the system has ------------------------------------------------------------------------------------------- */

typedef enum way { NAMELESS, WITHOUT_TMPFILE, WITHOUT_PROC, NUM_WAYS } way;
static way played;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (played != WITHOUT_TMPFILE || (flags & O_TMPFILE) != O_TMPFILE)
        return __real_open(path, flags, mode);
    errno = EOPNOTSUPP;
    return -1;
}

int __wrap_access(const char *path, int mode)
{
    if (played != WITHOUT_PROC || strncmp(path, "/proc/", 6) != 0)
        return __real_access(path, mode);
    errno = ENOENT;
    return -1;
}

/* Whether the file system of the test's folder has them. */
static bool has_nameless(void)
{
    int fd = __real_open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Of the test's folder, one call for each `at`, 0 to 3. */
static const char *in(int at, const char *name)
{
    static char *paths[4];
    free(paths[at]);
    return paths[at] = path_in(folder, name);
}

/* The names in the folder, hidden ones too, in order. */
static const char *names_there(void)
{
    static char names[1000];
    char command[600];
    snprintf(command, sizeof command, "ls -A '%s'", folder);
    FILE *list = popen(command, "r");
    names[fread(names, 1, sizeof names - 1, list)] = '\0';
    pclose(list);
    for (char *at = names; (at = strchr(at, '\n'));)
        *at = ' ';
    return names;
}

static void expect_text(const char *path, const char *wanted)
{
    char *text = read_file(path);
    assert_string_equal(text, wanted);
    free(text);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static int write_whole(const char *path, const char *text, bool keep)
{
    weir__replacement file;
    int failure = weir__replacement_open(&file, path);
    if (failure)
        return failure;
    fputs(text, file.file);
    failure = weir__replacement_close(&file, keep);
    assert_true(!file.file && !file.path && !file.path_before);
    return failure;
}

static void replace_and_keep(const char *path)
{
    mode_t mask = umask(0027);
    assert_int_equal(write_whole(path, "one", false), 0);
    assert_string_equal(names_there(), "");
    assert_int_equal(write_whole(path, "one", true), 0);
    expect_text(path, "one");
    assert_int_equal(mode_of(path), 0640);
    assert_int_equal(write_whole(path, "two", false), 0);
    expect_text(path, "one");
    umask(0);
    assert_int_equal(write_whole(path, "two", true), 0);
    umask(mask);
    expect_text(path, "two");
    assert_int_equal(mode_of(path), 0666);
    assert_string_equal(names_there(), "a ");
    assert_int_equal(unlink(path), 0);
}

TEST_CASE(a_file_appears_whole_and_replaces_only_if_it_is_kept)
{
    for (played = 0; played < NUM_WAYS; played++)
        replace_and_keep(in(0, "a"));
}

TEST_CASE(until_it_is_closed_the_old_file_is_there)
{
    weir__replacement one, other;
    const char *path = in(0, "a");
    write_file(path, "old");
    assert_int_equal(weir__replacement_open(&one, path), 0);
    assert_int_equal(weir__replacement_open(&other, path), 0);
    assert_false(one.is_direct);
    assert_true(fileno(one.file) > STDERR_FILENO);
    assert_true(fcntl(fileno(one.file), F_GETFD) & FD_CLOEXEC);
    fputs("one", one.file);
    fputs("other", other.file);
    expect_text(path, "old");
    assert_int_equal(weir__replacement_close(&other, true), 0);
    expect_text(path, "other");
    assert_int_equal(weir__replacement_close(&one, true), 0);
    expect_text(path, "one");
    assert_string_equal(names_there(), "a ");
}

TEST_CASE(a_link_is_replaced_and_what_it_leads_to_stays)
{
    write_file(in(0, "a"), "mine");
    assert_int_equal(symlink("a", in(1, "b")), 0);
    assert_int_equal(write_whole(in(1, "b"), "new", true), 0);
    expect_text(in(0, "a"), "mine");
    expect_text(in(1, "b"), "new");
}

TEST_CASE(what_cannot_be_written_is_told_and_leaves_nothing)
{
    assert_int_equal(mkdir(in(0, "folder"), 0777), 0);
    assert_int_equal(write_whole(in(0, "folder"), "x", true), EISDIR);
    assert_int_equal(write_whole(in(1, "missing/a"), "x", true), ENOENT);
    write_file(in(2, "file"), "mine");
    assert_int_equal(write_whole(in(3, "file/a"), "x", true), ENOTDIR);
    assert_string_equal(names_there(), "file folder ");
    assert_int_equal(write_whole("/dev/full", "x", true), ENOSPC);
}

TEST_CASE(pipes_and_devices_are_written_directly)
{
    weir__replacement file;
    char got[8] = "";
    assert_int_equal(mkfifo(in(0, "pipe"), 0666), 0);
    int reader = open(in(0, "pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(weir__replacement_open(&file, in(0, "pipe")), 0);
    assert_true(file.is_direct);
    fputs("x", file.file);
    assert_int_equal(weir__replacement_close(&file, true), 0);
    assert_int_equal(read(reader, got, sizeof got), 1);
    assert_string_equal(got, "x");
    close(reader);
    assert_string_equal(names_there(), "pipe ");
    assert_int_equal(write_whole("/dev/null", "x", true), 0);
}

/* A limit of the size of files is like a full disk. Unbuffered, the write that fails is an earlier one. */
TEST_CASE(a_file_that_did_not_get_whole_leaves_the_old_one_and_the_reason)
{
    static char bytes[100000], buffer[200000];
    struct rlimit before, small;
    const char *path = in(0, "a");
    write_file(path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int is_buffered = 0; is_buffered < 2; is_buffered++) {
        weir__replacement file;
        assert_int_equal(weir__replacement_open(&file, path), 0);
        assert_int_equal(setvbuf(file.file, buffer, is_buffered ? _IOFBF : _IONBF, sizeof buffer), 0);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        size_t written = fwrite(bytes, 1, sizeof bytes, file.file);
        int failure = weir__replacement_close(&file, true);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(written == sizeof bytes, is_buffered);
        assert_int_equal(failure, EFBIG);
        expect_text(path, "old");
        assert_string_equal(names_there(), "a ");
    }
    signal(SIGXFSZ, handler);
}

/* ---- parts --------------------------------------------------------------------------------------------------------- */

/* Until then it has no name, or a hidden one that says whose it is. */
static void expect_part(const char *path_before)
{
    bool has_name = played != NAMELESS || !has_nameless();
    assert_int_equal(path_before != NULL, has_name);
    assert_int_equal(strstr(names_there(), ".a.") != NULL, has_name);
    if (has_name)
        assert_memory_equal(path_before, in(3, ".a."), strlen(folder) + 4);
}

static void place_twice(const char *path)
{
    for (int i = 0; i < 2; i++) {
        char *path_before;
        int fd = weir__part_create(path, &path_before);
        assert_true(fd > STDERR_FILENO);
        expect_part(path_before);
        assert_int_equal(write(fd, i ? "two" : "one", 3), 3);
        assert_int_equal(weir__part_place(fd, path_before, path), 0);
        close(fd);
        free(path_before);
        expect_text(path, i ? "two" : "one");
        assert_string_equal(names_there(), "a ");
    }
    assert_int_equal(unlink(path), 0);
}

TEST_CASE(a_part_gets_its_name_and_an_earlier_file_makes_way)
{
    for (played = 0; played < NUM_WAYS; played++)
        place_twice(in(0, "a"));
}

TEST_CASE(a_part_with_a_hidden_name_is_renamed)
{
    const char *path = in(0, "a"), *hidden = in(1, ".a.tmp");
    write_file(path, "old");
    write_file(hidden, "new");
    int fd = open(hidden, O_RDWR | O_CLOEXEC);
    assert_int_equal(weir__part_place(fd, hidden, path), 0);
    expect_text(path, "new");
    assert_string_equal(names_there(), "a ");
    assert_int_equal(weir__part_place(fd, hidden, path), ENOENT); /* it has no such name any more */
    close(fd);
    expect_text(path, "new");
}

TEST_CASE(a_part_that_cannot_be_placed_leaves_nothing)
{
    char *path_before;
    assert_int_equal(mkdir(in(0, "folder"), 0777), 0);
    int fd = weir__part_create(in(0, "folder"), &path_before);
    assert_true(fd >= 0);
    assert_int_equal(weir__part_place(fd, path_before, in(0, "folder")), EISDIR);
    assert_int_equal(weir__part_place(fd, path_before, in(1, "missing/a")), ENOENT);
    close(fd);
    if (path_before)
        unlink(path_before);
    free(path_before);
    assert_string_equal(names_there(), "folder ");
    errno = 0;
    assert_int_equal(weir__part_create(in(1, "missing/a"), &path_before), -1);
    assert_int_equal(errno, ENOENT);
    assert_null(path_before);
}

static void expect_spool(void)
{
    struct stat info;
    char got[2] = "";
    int fd = weir__spool_open();
    assert_true(fd > STDERR_FILENO);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(info.st_nlink, 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(pread(fd, got, 1, 0), 1);
    assert_string_equal(got, "x");
    close(fd);
}

/* The folder that TMPDIR names; where there is none, that of the C library. */
TEST_CASE(a_spool_has_no_name)
{
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    unsetenv("TMPDIR");
    expect_spool();
    setenv("TMPDIR", folder, 1);
    for (played = 0; played < NUM_WAYS; played++) {
        expect_spool();
        assert_string_equal(names_there(), "");
    }
    played = NAMELESS;
    setenv("TMPDIR", "", 1);
    expect_spool();
    setenv("TMPDIR", in(0, "missing"), 1);
    expect_spool();
    write_file(in(1, "file"), "");
    setenv("TMPDIR", in(1, "file"), 1);
    assert_int_equal(weir__spool_open(), -1);
    assert_int_equal(errno, ENOTDIR);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
}

/* ---- who has put it there ------------------------------------------------------------------------------------------ */

TEST_CASE(only_links_pipes_and_devices_of_others_are_planted)
{
    write_file(in(0, "file"), "");
    assert_int_equal(symlink("file", in(1, "link")), 0);
    assert_int_equal(mkfifo(in(2, "pipe"), 0666), 0);
    assert_false(weir__is_planted(in(0, "file")));
    assert_false(weir__is_planted(in(1, "link")));
    assert_false(weir__is_planted(in(2, "pipe")));
    assert_false(weir__is_planted(in(3, "missing")));
    assert_false(weir__is_planted(folder));
    assert_false(weir__is_planted("/dev/null"));
    const struct passwd *nobody = getpwnam("nobody");
    if (geteuid() != 0 || !nobody)
        return; /* CI runs this as root, too */
    assert_int_equal(chown(in(0, "file"), nobody->pw_uid, nobody->pw_gid), 0);
    assert_int_equal(lchown(in(1, "link"), nobody->pw_uid, nobody->pw_gid), 0);
    assert_int_equal(chown(in(2, "pipe"), nobody->pw_uid, nobody->pw_gid), 0);
    assert_false(weir__is_planted(in(0, "file")));
    assert_true(weir__is_planted(in(1, "link")));
    assert_true(weir__is_planted(in(2, "pipe")));
    errno = 0;
    assert_int_equal(write_whole(in(2, "pipe"), "x", true), EPERM);
    assert_int_equal(chown(folder, nobody->pw_uid, nobody->pw_gid), 0); /* it is the owner's of the folder */
    assert_false(weir__is_planted(in(1, "link")));
    assert_false(weir__is_planted(in(2, "pipe")));
}

/* ---- databases ----------------------------------------------------------------------------------------------------- */

static const char *stray(void)
{
    const char *ending = weir__stray_beside(in(3, "a.db"));
    return ending ? ending : "none";
}

TEST_CASE(a_file_beside_a_database_may_be_of_another)
{
    static const char *const endings[] = { "-wal", "-shm", "-journal" };
    assert_string_equal(stray(), "none");
    for (int i = 0; i < 3; i++) {
        char name[32];
        bool is_log = i != 1;
        snprintf(name, sizeof name, "a.db%s", endings[i]);
        write_file(in(0, name), "");
        assert_string_equal(stray(), "none");
        write_file(in(0, name), "x");
        assert_string_equal(stray(), is_log ? endings[i] : "none"); /* a log without its database */
        write_file(in(1, "a.db"), "");
        assert_string_equal(stray(), "none");
        assert_int_equal(link(in(0, name), in(2, "more")), 0);
        assert_string_equal(stray(), endings[i]);
        assert_int_equal(link(in(1, "a.db"), in(0, "database")), 0); /* as many names as it */
        assert_string_equal(stray(), "none");
        assert_int_equal(unlink(in(1, "a.db")) | unlink(in(0, "database")), 0);
        assert_string_equal(stray(), endings[i]);
        assert_int_equal(unlink(in(2, "more")) | unlink(in(0, name)), 0);
    }
}

static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU };
static bool was_made;

/* None of the signals that wait comes in between. */
static int make_all(void *self, const char *path_before)
{
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    was_made = true;
    assert_false(weir__signal_waits());
    for (int i = 0; i < 4; i++) {
        char *path = NULL;
        assert_true(asprintf(&path, "%s%s", path_before, endings[i]) > 0);
        write_file(path, "made");
        free(path);
    }
    if (self) {
        assert_int_equal(raise(*(int *)self), 0);
        assert_int_equal(weir__signal_waits(), true);
        signal(*(int *)self, SIG_IGN); /* which takes it away */
        assert_false(weir__signal_waits());
        return 7;
    }
    return 0;
}

TEST_CASE(a_database_gets_its_name_when_it_is_made_and_nothing_else_is_left)
{
    sigset_t blocked;
    const char *path = in(0, "a.db");
    assert_int_equal(weir__make_beside(path, make_all, NULL), 0);
    expect_text(path, "made");
    assert_string_equal(names_there(), "a.db ");
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        int number = held[i];
        void (*handler)(int) = signal(number, SIG_DFL);
        assert_int_equal(weir__make_beside(in(1, "b.db"), make_all, &number), 7);
        signal(number, handler);
        assert_string_equal(names_there(), "a.db ");
        assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
        assert_int_equal(sigismember(&blocked, number), 0);
    }
    assert_int_equal(weir__make_beside(path, make_all, NULL), EEXIST);
    was_made = false;
    assert_int_equal(weir__make_beside(in(1, "missing/b.db"), make_all, NULL), ENOENT);
    assert_false(was_made);
    assert_string_equal(names_there(), "a.db ");
}

static int set_up(void **state)
{
    (void)state;
    played = NAMELESS;
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
