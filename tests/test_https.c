/* The certificates of https servers: which are trusted, and what a failure says. Servers are `openssl s_server`. */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/input_config.h>

#include "tests/clips.h"
#include "tests/program.h"
#include "tests/test_case.h"

/* Their certificates are for "localhost" and signed by ca.pem. Each serves one connection at a time. */
enum { GOOD, EXPIRED, NUM_SERVERS };
static const char *const certificates[NUM_SERVERS] = { "good.pem", "expired.pem" };
static FILE *servers[NUM_SERVERS];
static pid_t pids[NUM_SERVERS];
static int ports[NUM_SERVERS];

/* Runs a line of the shell in the test's folder, with the URLs of the servers. */
static int shell(const char *line)
{
    char text[4096];
    snprintf(text, sizeof text,
             "cd '%s' && weir() { '%s' \"$@\"; } && good=https://localhost:%d && wrong=https://127.0.0.1:%d && "
             "expired=https://localhost:%d && { %s; } >out 2>err",
             clips_path(""), program_path("WEIR_TOOL"), ports[GOOD], ports[GOOD], ports[EXPIRED], line);
    int status = system(text);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(int status, const char *line)
{
    int got = shell(line);
    if (got != status)
        fail_msg("%s: exit status %d, not %d:\n%s", line, got, status, read_file(clips_path("err")));
}

static void expect_message(const char *message)
{
    char *text = read_file(clips_path("err"));
    if (!strstr(text, message))
        fail_msg("not \"%s\" in:\n%s", message, text);
    free(text);
}

static void make_certificates(void)
{
    expect(0, "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=weir-test -days 2 && "
              "openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost && "
              "echo subjectAltName=DNS:localhost >names && "
              "sign() { openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names "
              "\"$@\"; } && sign -days 2 -out good.pem && sign -days -1 -out expired.pem");
}

/* The server sends files as they are, so they begin with the answer's head. */
static void make_answers(void)
{
    char text[512];
    clips_make("clip.mkv", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mpeg4");
    clips_make("picture.png", "-f lavfi -i testsrc2=s=64x48:d=1:r=1 -frames:v 1");
    expect(0, "mkdir -p served && for file in clip.mkv picture.png; do { "
              "printf 'HTTP/1.0 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' $(stat -c %s $file) && cat $file; } "
              ">served/$file || exit; done");
    snprintf(text, sizeof text, "HTTP/1.0 302 Found\r\nLocation: https://localhost:%d/clip.mkv\r\n\r\n",
             ports[EXPIRED]);
    write_file(clips_path("served/moved.mkv"), text);
}

static void start_server(int number)
{
    int output[2];
    char line[256];
    assert_int_equal(pipe(output), 0);
    pids[number] = fork();
    if (pids[number] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(output[1], STDOUT_FILENO);
        dup2(output[1], STDERR_FILENO);
        if (chdir(clips_path("served")) == 0)
            execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                   clips_path(certificates[number]), "-key", clips_path("server.key"), "-HTTP", (char *)NULL);
        _exit(127);
    }
    close(output[1]);
    servers[number] = fdopen(output[0], "r");
    assert_non_null(servers[number]);
    while (fgets(line, sizeof line, servers[number]))
        if (sscanf(line, "ACCEPT 127.0.0.1:%d", &ports[number]) == 1)
            return;
    fail_msg("openssl s_server has ended");
}

static int start_servers(void **state)
{
    clips_set_up(state);
    if (shell("command -v openssl") != 0)
        return 0;
    make_certificates();
    clips_make_folder(clips_path("served"));
    for (int i = 0; i < NUM_SERVERS; i++)
        start_server(i);
    make_answers();
    return 0;
}

static int stop_servers(void **state)
{
    for (int i = 0; i < NUM_SERVERS; i++)
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
            fclose(servers[i]);
        }
    return clips_tear_down(state);
}

static void need_servers(void)
{
    if (pids[GOOD] > 0)
        return;
    print_message("openssl is missing: certificates are not tested\n");
    skip();
}

/* ---- tests -------------------------------------------------------------------------------------------------------- */

TEST_CASE(a_certificate_must_be_trusted_valid_and_of_the_host)
{
    need_servers();
    expect(0, "weir frames $good/clip.mkv --ca-file ca.pem");
    expect(2, "weir frames $good/clip.mkv");
    expect_message("the certificate of localhost:");
    expect_message("is not trusted: ");
    expect_message("--ca-file (ca_file) or --insecure");
    expect(2, "weir frames $wrong/clip.mkv --ca-file ca.pem");
    expect_message("127.0.0.1");
    expect_message("is not trusted: ");
    expect(2, "weir frames $expired/clip.mkv --ca-file ca.pem");
    expect_message("is not trusted: ");
    expect(0, "weir frames $good/clip.mkv --insecure && weir frames $wrong/clip.mkv --insecure && "
              "weir frames $expired/clip.mkv --insecure");
    expect(2, "weir frames $good/clip.mkv --insecure --ca-file ca.pem");
    expect(2, "weir frames $good/clip.mkv --ca-file missing.pem");
    expect_message("missing.pem: No such file or directory");
}

TEST_CASE(what_a_url_is_redirected_to_is_checked)
{
    need_servers();
    expect(2, "weir frames $good/moved.mkv --ca-file ca.pem");
    expect_message("is not trusted: ");
    expect(0, "weir frames $good/moved.mkv --insecure");
}

TEST_CASE(every_stage_and_the_index_check_certificates)
{
    need_servers();
    static const char *const kinds[] = { "clip.mkv", "clip.mkv " ISOLATE, "picture.png --images",
                                         "picture.png --images " ISOLATE };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char line[256];
        snprintf(line, sizeof line, "rm -f run.db; weir record $good/%s --db-path run.db --ca-file ca.pem", kinds[i]);
        expect(0, line);
        snprintf(line, sizeof line, "rm -f run.db; weir record $good/%s --db-path run.db", kinds[i]);
        expect(1, line);
        expect_message("is not trusted: ");
        snprintf(line, sizeof line, "rm -f run.db; weir record $expired/%s --db-path run.db --insecure", kinds[i]);
        expect(0, line);
        expect(0, "weir query run.db --list runs --json | grep -e ' --insecure'");
    }
    expect(0, "weir index $good/clip.mkv -o a.weir --ca-file ca.pem && weir index a.weir --list clips | grep mpeg4");
    expect(0, "weir index $good/clip.mkv -o b.weir && weir index b.weir --list broken | grep 'is not trusted'");
    expect(0, "weir index $expired/clip.mkv -o c.weir --insecure && weir index c.weir --list clips | grep mpeg4");
}

/* In a process with mounts of its own, on a system without certificates. */
static int try_fallback(void)
{
    weir_error error = { 0 };
    const char *path = clips_path("fallback.pem");
    if (weir_certificates_find() || weir_certificates_set_fallback("missing.pem", &error) != WEIR_EINVAL ||
        !strstr(error.message, "missing.pem: No such file") || weir_certificates_find())
        return 1;
    if (weir_certificates_set_fallback(path, &error) != WEIR_OK || strcmp(weir_certificates_find(), path) != 0)
        return 2;
    if (weir_certificates_set_fallback(path, &error) != WEIR_OK ||
        weir_certificates_set_fallback("/dev/null", &error) != WEIR_EINVAL ||
        strcmp(weir_certificates_find(), path) != 0)
        return 3;
    return 0;
}

static int hide_system_certificates(void)
{
    static const char *const folders[] = { "/etc/ssl", "/etc/pki" };
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return -1;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (access(folders[i], F_OK) == 0 && mount("none", folders[i], "tmpfs", 0, NULL) != 0)
            return -1;
    return 0;
}

TEST_CASE(a_fallback_is_used_where_the_system_has_no_certificates)
{
    enum { HAS_NO_MOUNTS = 77 };
    int status;
    write_file(clips_path("fallback.pem"), "");
    pid_t child = fork();
    if (child == 0)
        _exit(hide_system_certificates() != 0 ? HAS_NO_MOUNTS : try_fallback());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == HAS_NO_MOUNTS) {
        print_message("no mounts of its own here: the fallback is not tested\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_CASE(the_systems_certificates_come_before_the_fallback)
{
    const char *systems = weir_certificates_find();
    weir_error error = { 0 };
    write_file(clips_path("fallback.pem"), "");
    assert_int_equal(weir_certificates_set_fallback(clips_path("fallback.pem"), &error), WEIR_OK);
    assert_string_equal(weir_certificates_find(), systems ? systems : clips_path("fallback.pem"));
    assert_int_equal(weir_certificates_set_fallback(NULL, &error), WEIR_EINVAL);
}

TEST_MAIN(NULL, NULL, start_servers, stop_servers)
