/* Secrets of URLs are neither stored nor shown: every output and every file of programs that read such URLs is searched. */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_case.h"

#include "common/redact.h"
#include "tests/clips.h"
#include "tests/program.h"

static FILE *server; /* its stdout */
static FILE *server_stdin;
static pid_t server_pid;
static int port;

/* Runs a line of the shell in the test's folder, where `weir` is the program and $at the server with a password. */
static int shell(const char *line)
{
    char text[8192];
    snprintf(text, sizeof text,
             "cd '%s' && weir() { '%s' \"$@\"; } && at=http://peter:s3cr3t-1@127.0.0.1:%d && "
             "signed='X-Amz-Signature=s3cr3t-2&x=1;X-Amz-Credential=s3cr3t-3#ACCESS%%5Ftoken=s3cr3t-4' && { %s; }",
             clips_path(""), program_path("WEIR_TOOL"), port, line);
    int status = system(text);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(int status, const char *line)
{
    int got = shell(line);
    if (got != status)
        fail_msg("%s: exit status %d, not %d", line, got, status);
}

/* ---- the function ------------------------------------------------------------------------------------------------- */

TEST_CASE(only_the_secrets_of_a_url_are_hidden)
{
    static const struct {
        const char *text, *shown;
    } all[] = {
        { "", "" },
        { "/data/a:b?c&d;e#f%.mp4", "/data/a:b?c&d;e#f%.mp4" },
        { "http://host:8080/a.mp4?x=1&y=2#z", "http://host:8080/a.mp4?x=1&y=2#z" },
        { "http://bob:pass@host/a", "http://***@host/a" },
        { "http://b@host/a", "http://*@host/a" },
        { "http:/bob:pass@host/a", "http:/***@host/a" },
        { "HTTPS:bob:pass@host/a", "HTTPS:***@host/a" },
        { "http: b@c; http:/a/b@c; x:bob:pass@host", "http: b@c; http:/a/b@c; x:bob:pass@host" },
        { "h?user[password]=abc&a%5Bkey%5D=abc&token[]=abc", "h?user[password]=***&a%5Bkey%5D=***&token[]=***" },
        { "http://ghp_token@host/a?b@c", "http://***@host/a?b@c" },
        { "http://bob:p@ss@host", "http://***@host" },
        { "http://bob:p/a?s#s@host/x", "http://***@host/x" },
        { "http://bob:cut-o", "http://***" },
        { "http://host: refused; ftp://host:21: refused", "http://host: refused; ftp://host:21: refused" },
        { "http://[::1]:80/a?sig=abc", "http://[::1]:80/a?sig=***" },
        { "h?X-Amz-Signature=0a&x=1", "h?X-Amz-Signature=**&x=1" },
        { "h?x=1&X-Goog-Credential=a%2Fb&y=2", "h?x=1&X-Goog-Credential=***&y=2" },
        { "h?sv=2&SIG=abc%3D;token=abc", "h?sv=2&SIG=***;token=***" },
        { "h#access_token=abc&state=1", "h#access_token=***&state=1" },
        { "h?t%6Fken=abc&api-key=abc&apiKey=abc", "h?t%6Fken=***&api-key=***&apiKey=***" },
        { "h?u=http%3A%2F%2Fg%2F%3Ftoken%3Dabc&y=1", "h?u=http%3A%2F%2Fg%2F%3Ftoken%3D***&y=1" },
        { "h?u=http%3A%2F%2Fbob%3Ap%2540ss%40g%2Fa%40b&y=1", "h?u=http%3A%2F%2F***%40g%2Fa%40b&y=1" },
        { "h?u=http%3a%2f%2fbob:abc%40g&y=c@d", "h?u=http%3a%2f%2f***%40g&y=c@d" },
        { "h?u=http%3A%2F%2Fg%2Fa%40b", "h?u=http%3A%2F%2Fg%2Fa%40b" },
        { "h?monkey=1&tokens=2&xsig=3&token", "h?monkey=1&tokens=2&xsig=3&token" },
        { "h?token=ab;cd: no such file", "h?token=***: no such file" },
        { "open 'h?token=abc', then \"g?token=abc\"", "open 'h?token=***', then \"g?token=***\"" },
        { "h?token=***&key=***", "h?token=***&key=***" },
        { "h?token=%", "h?token=*" },
        { "h?token=", "h?token=" },
        { "h?%", "h?%" },
        { "://", "://" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int again = 0; again < 2; again++) {
            char text[128];
            snprintf(text, sizeof text, "%s", again ? all[i].shown : all[i].text);
            weir__text_redact(text);
            assert_string_equal(text, all[i].shown);
        }
    weir__text_redact(NULL);
}

/* ---- the programs ------------------------------------------------------------------------------------------------- */

static int start_server(void **state)
{
    int from[2], to[2];
    clips_set_up(state);
    assert_non_null(clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v mpeg4"));
    assert_int_equal(pipe(from) | pipe(to), 0);
    server_pid = fork();
    if (server_pid == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]);
        execl(program_path("BAD_SERVER"), "bad_server", clips_path(""), (char *)NULL);
        _exit(127);
    }
    close(from[1]);
    close(to[0]);
    server = fdopen(from[0], "r");
    server_stdin = fdopen(to[1], "w");
    return fscanf(server, "%d", &port) == 1 ? 0 : -1;
}

static int stop_server(void **state)
{
    fclose(server_stdin);
    fclose(server);
    waitpid(server_pid, NULL, 0);
    return clips_tear_down(state);
}

/* What the test itself writes may hold them. */
static bool is_input(const char *name)
{
    return strcmp(name, "urls.txt") == 0 || strcmp(name, "list.m3u8") == 0 || strncmp(name, "index.weir", 10) == 0;
}

/* Fails if a file of the test's folder holds a secret. Compressed ones have been unpacked. */
static void expect_no_secret(void)
{
    DIR *folder = opendir(clips_path(""));
    char *failures = calloc(1, 65536);
    assert_non_null(folder);
    assert_non_null(failures);
    for (struct dirent *entry; (entry = readdir(folder));) {
        FILE *file = entry->d_type == DT_REG ? fopen(clips_path(entry->d_name), "rb") : NULL;
        char bytes[1 << 16] = "";
        size_t kept = 0, got;
        bool is_searched = file && !is_input(entry->d_name);
        while (is_searched && (got = fread(bytes + kept, 1, sizeof bytes - kept, file)) > 0) {
            char *found = memmem(bytes, kept + got, "s3cr3t", 6);
            if (found && strlen(failures) < 60000)
                sprintf(failures + strlen(failures), "%s: %.60s\n", entry->d_name,
                        found - bytes > 20 ? found - 20 : found);
            size_t end = kept + got;
            kept = end > 6 ? 6 : end;
            memmove(bytes, bytes + end - kept, kept);
            if (found)
                break;
        }
        if (file)
            fclose(file);
    }
    closedir(folder);
    if (*failures)
        fail_msg("%s", failures);
    free(failures);
}

TEST_CASE(no_secret_is_stored_or_shown)
{
    /* an item that succeeds, some that fail, a redirection, a playlist; and the command line */
    expect(0, "printf '%s\\n' \"$at/404/clip.mp4?$signed\" \"$at/page/clip.mp4?$signed\" \"$at/to-secret/clip.mp4\" "
              "\"$at/to-file/clip.mp4?token=s3cr3t-5\" >urls.txt");
    expect(0, "printf '#EXTM3U\\n#EXT-X-TARGETDURATION:1\\n#EXTINF:1,\\n%s\\n#EXTINF:1,\\n%s\\n#EXT-X-ENDLIST\\n' "
              "\"$at/404/clip.ts?$signed\" 'local.ts?token=s3cr3t-6' >list.m3u8");
    expect(0, "weir record \"$at/good/clip.mp4?$signed\" list.m3u8 --list urls.txt --verbose --all-items "
              "--db-path run.db --trace trace.json --openmetrics run.prom >record.out 2>record.err");
    expect(0, "weir record \"$at/good/clip.mp4?$signed\" --list urls.txt --isolate --db-path isolated.db "
              "--trace packed.json.gz >isolated.out 2>isolated.err && gzip -dc packed.json.gz >unpacked.json");
    expect(0, "weir record \"$at/good/clip.mp4?$signed\" --dry-run >dry.out 2>dry.err");
    expect(0, "weir frames \"$at/good/clip.mp4?$signed\" >frames.out 2>frames.err");
    expect(0, "weir frames \"$at/good/clip.mp4?$signed\" --json >frames.json 2>>frames.err");
    expect(2, "weir frames \"$at/404/clip.mp4?$signed\" >>frames.out 2>>frames.err");
    expect(1, "weir frames \"$at/to-secret/clip.mp4\" >>frames.out 2>>frames.err");
    expect(2, "weir frames \"$at/good/clip.mp4?$signed\" --no-such-option \"$at\" >>frames.out 2>>frames.err");
    expect(0, "weir index urls.txt \"$at/good/clip.mp4?$signed\" -o index.weir >index.out 2>index.err || true");
    expect(0, "weir index \"$at/good/clip.mp4?$signed\" \"$at/404/clip.mp4?$signed\" -o index.weir >>index.out "
              "2>>index.err");
    expect(
        0,
        "weir index index.weir --list clips --json >clips.json && weir index index.weir --list broken >broken.out");
    expect(0, "weir summary run.db >summary.out");
    expect(0,
           "for list in items failures events runs laps contents; do weir query run.db --list $list --json || true; "
           "done >query.json 2>query.err");
    expect(0, "weir failures run.db >failures.out && weir failures run.db --json >failures.json");
    expect(0, "weir slowest run.db >slowest.out && weir slowest isolated.db --json >slowest.json");
    expect(0, "weir report run.db -o report.html 2>report.err && { weir watch run.db --once >watch.out || true; }");
    expect(0, "weir trace trace.json >trace.out 2>trace.err; weir explain run.db >explain.out 2>explain.err; "
              "weir export run.db -o export.prom 2>export.err; true");
    expect_no_secret();
    /* and what is left still tells the items apart */
    expect(
        0,
        "grep -q '/good/clip.mp4?X-Amz-Signature=\\*\\*\\*&x=1;X-Amz-Credential=\\*\\*\\*#' record.err trace.json");
    expect(0, "grep -q 'http://\\*\\*\\*@127.0.0.1:[0-9]*/404/clip.mp4?X-Amz-Signature=\\*\\*\\*' failures.json");
    expect(0, "grep -q '2 files: 2 read' index.err && grep -q '\"codec\": \"mpeg4\"' clips.json");
}

TEST_CASE(a_refused_redirection_is_told)
{
    expect(2, "weir frames $at/to-file/clip.mp4 >redirected.out 2>redirected.err");
    expect(0, "grep -q 'it is redirected to a URL that is not of http or https' redirected.err");
}

/* A later run has other signatures; but URLs that differ only in what is hidden may be different files. */
TEST_CASE(a_resumed_run_finds_signed_urls)
{
    expect(0, "weir record $at/good/clip.mp4?sig=s3cr3t-1 $at/404/clip.mp4?sig=s3cr3t-1 --db-path first.db "
              ">resume.out 2>&1");
    expect(0,
           "weir record $at/good/clip.mp4?sig=s3cr3t-2 $at/old/clip.mp4?sig=s3cr3t-2 $at/404/clip.mp4?sig=s3cr3t-2 "
           "--resume first.db --dry-run >left.out 2>>resume.out");
    expect(0, "grep -q '/old/clip.mp4' left.out && ! grep -q '/good/' left.out && ! grep -q '/404/' left.out");
    expect(0, "weir record $at/good/clip.mp4?sig=s3cr3t-2 $at/404/clip.mp4?sig=s3cr3t-2 --resume first.db "
              "--retry-failed --dry-run >left.out 2>>resume.out");
    expect(0, "grep -q '/404/clip.mp4' left.out && ! grep -q '/good/' left.out");
    expect(0, "weir record $at/good/clip.mp4?key=s3cr3t-1 --db-path key.db >>resume.out 2>&1");
    expect(0, "weir record $at/good/clip.mp4?key=s3cr3t-1 $at/good/clip.mp4?key=s3cr3t-2 --resume key.db --dry-run "
              ">left.out 2>>resume.out");
    expect(0, "test $(grep -c '/good/clip.mp4' left.out) = 2");
    expect_no_secret();
}

TEST_MAIN(NULL, NULL, start_server, stop_server)
