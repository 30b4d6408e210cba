/* Secrets of URLs are neither stored nor shown: every output and every file of programs that read such URLs is searched. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/dataset.h>
#include <weir/item.h>
#include <weir/status.h>

#include "common/random.h"
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
             "cd '%s' && weir() { '%s' \"$@\"; } && export XDG_STATE_HOME=\"$PWD/state\" && "
             "at=http://peter:s3cr3t-1@127.0.0.1:%d && "
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

typedef struct shown_text {
    const char *text, *shown;
} shown_text;

/* Also that what is shown stays as it is when it is hidden again. */
static void expect_shown(const shown_text *all, size_t count, void (*redact)(char *text))
{
    for (size_t i = 0; i < count; i++)
        for (int again = 0; again < 2; again++) {
            char text[256];
            snprintf(text, sizeof text, "%s", again ? all[i].shown : all[i].text);
            redact(text);
            assert_string_equal(text, all[i].shown);
        }
    redact(NULL);
}

TEST_CASE(only_the_secrets_of_a_url_are_hidden)
{
    static const shown_text all[] = {
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
        { "h?sv=2&SIG=abc%3D;token=abc", "h?sv=2&SIG=***" },
        { "h#access_token=abc&state=1", "h#access_token=***&state=1" },
        { "h?t%6Fken=abc&api-key=abc&apiKey=abc", "h?t%6Fken=***&api-key=***&apiKey=***" },
        { "h?u=http%3A%2F%2Fg%2F%3Ftoken%3Dabc&y=1", "h?u=http%3A%2F%2Fg%2F%3Ftoken%3D***&y=1" },
        { "h?u=http%3A%2F%2Fbob%3Ap%2540ss%40g%2Fa&y=1", "h?u=http%3A%2F%2F***%40g%2Fa&y=1" },
        { "h?u=http%3a%2f%2fbob:abc%40g&y=c@d", "h?u=http%3a%2f%2f***%40g&y=c@d" },
        { "h?u=http%3A%2F%2Fg%2Fa%40b", "h?u=http%3A%2F%2Fg%2Fa%40b" },
        { "h?monkeys=1&tokens=2&signs=3&token&size=4", "h?monkeys=1&tokens=2&signs=3&token&size=4" },
        { "h?token=ab;cd: no such file", "h?token=***: no such file" },
        { "open 'h?token=abc', then \"g?token=abc\"", "open 'h?token=***', then \"g?token=***\"" },
        { "open \"http://h?token=a'b <c\": failed", "open \"http://h?token=***\": failed" },
        { "key=1 token=2 were given", "key=1 token=2 were given" },
        { "h?token=***&key=***", "h?token=***&key=***" },
        { "h?token=%", "h?token=*" },
        { "h?token=", "h?token=" },
        { "http://h/x'http://h/y?token=a b'", "http://h/x'http://h/y?token=***'" },
        { "http://h/x?to%ken=abc", "http://h/x?to%ken=***" },
        { "h?%", "h?%" },
        { "://", "://" },
    };
    expect_shown(all, sizeof all / sizeof *all, weir__text_redact);
}

/* An address ends where it ends, not at the first blank or quote; what is not a URL is a file, whatever it looks
   like. */
TEST_CASE(an_address_is_hidden_to_its_end_and_a_file_is_not)
{
    static const shown_text all[] = {
        { "a?token=b.mp4", "a?token=b.mp4" },
        { "x@y.mp4", "x@y.mp4" },
        { "cam:1@night.mp4", "cam:1@night.mp4" },
        { "/data/u:p@h/a?key=b.mp4", "/data/u:p@h/a?key=b.mp4" },
        { "file:///a:b@c.mp4?token=d", "file:///a:b@c.mp4?token=d" },
        { "FILE:a?token=d", "FILE:a?token=d" },
        { "http:/host/x?token=abc", "http:/host/x?token=***" },
        { "http:\\\\user:abc@host", "http:\\\\***@host" },
        { "hls+http:user:abc@host", "hls+http:***@host" },
        { "http://user:12/abc@host/x", "http://***@host/x" },
        { "http://user:a\"b <c#d@host/x y", "http://***@host/x y" },
        { "http://h/x?X-Plex-Token=a\"b <c#d=e;f&y=1", "http://h/x?X-Plex-Token=***&y=1" },
        { "http://h/x?x-api-key=abc&api_token=abc&my~to+ken=abc",
          "http://h/x?x-api-key=***&api_token=***&my~to+ken=***" },
        { "http://h/x?tok%2565n=abc&token2=abc&assigned=1", "http://h/x?tok%2565n=***&token2=***&assigned=1" },
        { "http://h/x;token=abc/y", "http://h/x;token=***" },
        { "rtmp://h/app playpath=x token=abc live=1", "rtmp://h/app playpath=x token=***" },
        { "subfile,,start,0,end,9,,:http://u:abc@h/x", "subfile,,start,0,end,9,,:http://***@h/x" },
        { "concat:http://h/a?token=abc|http://h/b", "concat:http://h/a?token=***" },
        { "--input=http://u:abc@h/x y?token=abc", "--input=http://***@h/x y?token=***" },
        { "https://host.example/@user/video/1", "https://host.example/@user/video/1" },
        { "http://h/x?to%ken=abc", "http://h/x?to%ken=***" },
        { "http://[bob:abc@host/a", "http://***@host/a" },
        { "http://h:80/x?token=ab@cd&y=1", "http://***&y=1" },
        { "http://h:80/x?token=ab@cd", "http://***" },
    };
    expect_shown(all, sizeof all / sizeof *all, weir__address_redact);
}

TEST_CASE(one_predicate_says_what_a_url_is)
{
    static const char *const urls[] = { "http://h/x",           "http:h/x",   "HTTP:/h",  "http:\\\\h",
                                        "x-y.z+w://h",          "hls+http:h", "concat:a", "crypto:http:h",
                                        "subfile,,start,0,,:a", "s3://b/k",   "file:a",   "FILE:///a" };
    static const char *const files[] = { "",   "a.mp4", "/a://b", "a:b.mp4",   "1http:",
                                         ":a", "://",   "c:\\a",  "./http://h" };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        if (!weir__is_url(urls[i]))
            fail_msg("%s", urls[i]);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (weir__is_url(files[i]))
            fail_msg("%s", files[i]);
    assert_false(weir__is_url(NULL));
}

TEST_CASE(a_text_about_an_address_hides_it_wherever_it_is_quoted)
{
    static const struct {
        const char *about, *text, *shown;
    } all[] = {
        { "http://h/x?token=a b\"c", "open http://h/x?token=a b\"c: refused", "open http://h/x?token=***: refused" },
        { "http://h/x?token=abc def", "GET /x?token=abc def HTTP", "GET /x?token=*** HTTP" },
        { "http://u:a b c@h/x", "no host a b c, http://u:a b", "no host a b c, http://***" },
        { "a?token=b.mp4", "open a?token=b.mp4: refused, h?token=b", "open a?token=b.mp4: refused, h?token=*" },
        { "", "h?token=abc", "h?token=***" },
        { "http://u:abc@h/x", "tttp://u:abc@h/x", "tttp://***@h/x" }, /* another one's secret */
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", all[i].text);
        weir__text_redact_about(text, &all[i].about, 1);
        assert_string_equal(text, all[i].shown);
    }
    weir__text_redact_about(NULL, NULL, 0);
}

/* With a key of 0, 1, 2, … an identity is the same everywhere; the digest is SipHash-2-4's. */
TEST_CASE(an_identity_tells_objects_apart_and_not_signatures)
{
    static const struct {
        const char *address, *identity;
    } all[] = {
        { "a?token=b.mp4", "a?token=b.mp4" },
        { "../x@y.mp4", "../x@y.mp4" },
        { "http://h/a.mp4?v=1", "http://h/a.mp4?v=1" },
        { "http://u:p@h/a.mp4?v=1&token=t", "http://h/a.mp4?v=1" },
        { "http://h/a.mp4?X-Amz-Date=1&X-Amz-Signature=2&v=1&X-Amz-Expires=3", "http://h/a.mp4?v=1" },
        { "http://h/a.mp4?v=1&Expires=1&Signature=2&Key-Pair-Id=3", "http://h/a.mp4?v=1" },
        { "http://h/a.mp4?sv=1&se=2&sp=3&sig=4", "http://h/a.mp4" },
        { "http://h/a.mp4?st=5&se=2&expires=1", "http://h/a.mp4?st=5&se=2&expires=1" }, /* not signed */
        { "http://h/a.mp4?key=01234567", "http://h/a.mp4?key=" },
        { "http://h/a.mp4?filetoken=01234567&x=1", "http://h/a.mp4?filetoken=" },
    };
    unsigned char key[WEIR_IDENTITY_KEY_BYTES];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    assert_int_equal(weir_identity_set_key(key, sizeof key), WEIR_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *identity = weir_identity_of(all[i].address);
        bool has_digest = all[i].identity[strlen(all[i].identity) - 1] == '=';
        assert_memory_equal(identity, all[i].identity, strlen(all[i].identity) + !has_digest);
        assert_null(strstr(identity, "01234567"));
        free(identity);
    }
    char *one = weir_identity_of("http://h/a?key=1"), *other = weir_identity_of("http://h/a?key=2");
    char *again = weir_identity_of("http://u@h/a?key=1&pass=3");
    assert_string_not_equal(one, other);
    assert_string_equal(one, again);
    assert_int_equal(strlen(one), strlen("http://h/a?key=") + 16);
    free(one);
    free(other);
    free(again);
}

/* The digests are from a SipHash-2-4 of its own, which gave the published numbers for the published key. */
TEST_CASE(an_identity_has_every_byte_of_the_address_or_the_digest_of_what_is_hidden)
{
    static const char *const all[][2] = {
        { "http://h/a?key=1", "http://h/a?key=3943c8fcfccf7ce0" },
        { "http://h/a?key=clips/1", "http://h/a?key=cf6bdb807ff835bf" },
        { "http://h/a?key=01234567", "http://h/a?key=bf01f08d01c1cb98" },
        { "http://h/a?key=clips/0001.mp4+", "http://h/a?key=5d47570d22761c09" },
        { "http://h/a?key=0123456789abcdef", "http://h/a?key=f1e5cc3e61b4ecbd" },
        { "http://h/a?filetoken=1&x=1", "http://h/a?filetoken=3943c8fcfccf7ce0&x=1" },
        { "http://h/a?x=1&key=1&y=2&code=01234567&z",
          "http://h/a?x=1&key=3943c8fcfccf7ce0&y=2&code=bf01f08d01c1cb98&z" },
        { "http://u:p/w@h/a", "http://ec8875b2a5ec0d00@h/a" },
        { "http://u@h/a?x=1", "http://h/a?x=1" },
        { "http://u:p@h:80/a?x=1#y", "http://h:80/a?x=1#y" },
        { "http://h/a?token=t", "http://h/a" },
        { "http://h/a?token=t&v=1&w=2", "http://h/a?v=1&w=2" },
        { "http://h/a?v=1&token=t&w=2", "http://h/a?v=1&w=2" },
        { "http://h/a?v=1&w=2&token=t", "http://h/a?v=1&w=2" },
        { "http://h/a?v=1&token=t&pass=u&w=2", "http://h/a?v=1&w=2" },
        { "http://h/a?token=t&key=1&w=2", "http://h/a?key=3943c8fcfccf7ce0&w=2" },
        { "http://h/a?v=1#token=t", "http://h/a?v=1" },
        { "http://h/a?expires=1&v=1&token=t", "http://h/a?v=1" },
        { "http://h/a?token=t&expires=1", "http://h/a" },
        { "http://h/a?token=t&expires=1&v=1", "http://h/a?v=1" },
        { "http://h/a?token=t&expires=1&key=1", "http://h/a?key=3943c8fcfccf7ce0" },
        { "http://h/a?sig=t&se=1&key=1&v=2", "http://h/a?key=3943c8fcfccf7ce0&v=2" },
        { "http://h/a?&token=t&&v=1", "http://h/a?v=1" },
        { "http://h/a?&&v=1", "http://h/a?&&v=1" },
        { "http://h/expires?v=1&token=t", "http://h/expires?v=1" },
        { "http://h/a?expiresin=1&token=t", "http://h/a?expiresin=1" },
        { "http://h/a?v=expires&token=t", "http://h/a?v=expires" },
    };
    unsigned char key[WEIR_IDENTITY_KEY_BYTES];
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)i;
    assert_int_equal(weir_identity_set_key(key, sizeof key), WEIR_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *identity = weir_identity_of(all[i][0]);
        assert_string_equal(identity, all[i][1]);
        free(identity);
    }
    for (size_t i = 0; i < sizeof key; i++)
        key[i]++;
    assert_int_equal(weir_identity_set_key(key, sizeof key), WEIR_OK);
    char *identity = weir_identity_of("http://h/a?key=1");
    assert_string_equal(identity, "http://h/a?key=aa238c97315c2030");
    free(identity);
}

/* Of an address with this parameter, its name with something before it, and others behind it. */
static void expect_left_out(const char *before, const char *name, const char *behind, bool is_left_out)
{
    char address[256], kept[256];
    snprintf(address, sizeof address, "http://h/a?x=1&%s%s=2%s", before, name, behind);
    snprintf(kept, sizeof kept, "http://h/a?x=1&%s%s=2", before, name);
    char *identity = weir_identity_of(address);
    assert_string_equal(identity, is_left_out ? "http://h/a?x=1" : kept);
    free(identity);
}

/* Azure's names are short, and only left out beside "sig"; the others beside any signature; none where nothing is signed. */
TEST_CASE(each_parameter_of_a_signature_is_left_out_where_something_is_signed)
{
    static const char *const azure[] = { "sv",  "se",  "st",  "sp",  "sr",    "spr",   "sip",  "skoid", "sktid",
                                         "skt", "ske", "sks", "skv", "saoid", "suoid", "scid", "ss",    "srt" };
    static const char *const any[] = {
        "X-Amz-Date",  "x-goog-date", "x-oss-expires", "x-cos-any",
        "q-sign-time", "q-key-time",  "q-header-list", "q-url-param-list",
        "Expires",     "Policy",      "URLPrefix",     "x-amz-meta-0123456789-0123456789-0123456789"
    };
    for (size_t i = 0; i < sizeof azure / sizeof *azure; i++) {
        expect_left_out("", azure[i], "&sig=3", true);
        expect_left_out("", azure[i], "&token=3", false);
        expect_left_out("x", azure[i], "&sig=3", false);
    }
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        expect_left_out("", any[i], "&token=3", true);
        expect_left_out("", any[i], "", false);
        expect_left_out("my", any[i], "&token=3", false);
    }
}

/* More than a table of the first size has. */
TEST_CASE(many_identities_are_numbered)
{
    enum { COUNT = 3000, NAMES = 1000 };
    static char names[COUNT][32];
    static const char *list[COUNT];
    static uint64_t got[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%zu.mp4", i % NAMES);
        list[i] = names[i];
    }
    assert_int_equal(weir_identity_number(list, COUNT, got), WEIR_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(got[i], i / NAMES);
    assert_int_equal(weir_identity_number(NULL, 0, NULL), WEIR_OK);
    assert_int_equal(weir_identity_number(list, 1, NULL), WEIR_EINVAL);
    list[1] = NULL;
    assert_int_equal(weir_identity_number(list, 2, got), WEIR_EINVAL);
}

TEST_CASE(the_hash_of_an_object_is_the_same_in_each_process)
{
    const unsigned char keys[2][WEIR_IDENTITY_KEY_BYTES] = { { 1 }, { 2 } };
    uint64_t hashes[2][4];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_identity_set_key(keys[i], WEIR_IDENTITY_KEY_BYTES), WEIR_OK);
        hashes[i][0] = weir_identity_hash("http://h/a?key=1&sig=2&se=3");
        hashes[i][1] = weir_identity_hash("http://h/a?key=2&sig=2&se=3");
        hashes[i][2] = weir_identity_hash("http://h/b?key=1&sig=2&se=3");
        hashes[i][3] = weir_identity_hash("a?key=1&sig=2");
    }
    assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_true(hashes[0][i] != hashes[0][j]);
    assert_true(weir_identity_hash("http://u:p@h/a?key=1&sig=4&se=5") == hashes[0][0]);
    assert_true(weir_identity_hash("a?key=1&sig=3") != hashes[0][3]); /* a file */
}

TEST_CASE(equal_identities_are_numbered_in_the_order_of_the_list)
{
    const char *const list[] = { "a", "http://h/a?sig=1", "a", "http://u@h/a", "a", "http://h/a?key=1" };
    const uint64_t wanted[] = { 0, 0, 1, 1, 2, 0 };
    uint64_t got[6];
    assert_int_equal(weir_identity_number(list, 6, got), WEIR_OK);
    assert_memory_equal(got, wanted, sizeof wanted);
}

/* ---- random URLs ---- */

static const char mark[] = "s3cr3t";

/* A character of a secret. It is any that a URL of a list may hold, except "&", which ends a value. */
static char random_character(uint64_t *random, const char *without)
{
    char character;
    do
        character = (char)(' ' + weir__random_below(random, 127 - ' '));
    while (strchr(without, character));
    return character;
}

/* The mark at a random place among others. */
static void put_secret(FILE *to, uint64_t *random, const char *without)
{
    uint64_t length = weir__random_below(random, 12), at = weir__random_below(random, length + 1);
    for (uint64_t i = 0; i <= length; i++) {
        if (i == at)
            fputs(mark, to);
        if (i < length)
            fputc(random_character(random, without), to);
    }
}

/* In any case, and percent-encoded up to twice here and there. */
static void put_name(FILE *to, uint64_t *random)
{
    static const char *const endings[] = { "token", "key",       "secret", "password",   "passwd",
                                           "pwd",   "signature", "sig",    "credential", "auth" };
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_.~+*";
    static const char *const codes[] = { "%c", "%%%02X", "%%25%02x" };
    char name[128] = "";
    for (uint64_t length = weir__random_below(random, 40); length > 0; length--)
        name[strlen(name)] = others[weir__random_below(random, sizeof others - 1)];
    strcat(name, endings[weir__random_below(random, sizeof endings / sizeof *endings)]);
    for (const char *at = name; *at; at++) {
        int character = weir__random_below(random, 2) ? toupper((unsigned char)*at) : *at;
        fprintf(to, codes[weir__random_below(random, 8) ? 0 : 1 + weir__random_below(random, 2)], character);
    }
}

/*
 * A URL whose secrets are marked by their places: a password, or the value of a parameter. Held constant: a user name
 * without "/", as a name with "/" cannot be distinguished from a path; values end at "&"; schemes whose slashes
 * FFmpeg does not need.
 */
static void make_url(FILE *to, uint64_t *random, const char *host)
{
    static const char *const starts[] = {
        "http://", "http:/", "http:", "http:\\\\", "HTTP:///", "hls+http:", "x://"
    };
    fputs(starts[weir__random_below(random, sizeof starts / sizeof *starts)], to);
    bool has_user = weir__random_below(random, 2);
    if (has_user) {
        fputs("user:", to);
        put_secret(to, random, "");
        fputc('@', to);
    }
    fprintf(to, "%s/good/clip.mp4", host);
    for (uint64_t i = 0, count = weir__random_below(random, 3) + !has_user; i < count; i++) {
        fputc("?&"[i > 0], to);
        put_name(to, random);
        fputc('=', to);
        put_secret(to, random, "&");
    }
}

static char *random_url(uint64_t *random, const char *host)
{
    char *url = NULL;
    size_t size;
    FILE *to = open_memstream(&url, &size);
    make_url(to, random, host);
    fclose(to);
    return url;
}

static void expect_unmarked(const char *shown, const char *url)
{
    if (strstr(shown, mark))
        fail_msg("%s\nshown as %s", url, shown);
}

TEST_CASE(no_form_of_a_random_url_shows_its_secrets)
{
    uint64_t random = 32;
    for (int i = 0; i < 100000; i++) {
        char *url = random_url(&random, "h.example:80");
        char *shown = strdup(url), *identity = weir_identity_of(url), *line = NULL;
        weir__address_redact(shown);
        expect_unmarked(shown, url);
        if (!strchr(strstr(url, "h.example"), '@')) /* it could belong to the password */
            assert_non_null(strstr(shown, "h.example:80/good/clip.mp4"));
        expect_unmarked(identity, url);
        assert_true(asprintf(&line, "cannot open %s: %s (%s)", shown, "refused", url) > 0);
        line[strlen(line) - weir__random_below(&random, strlen(url))] = '\0'; /* a line may be cut */
        weir__text_redact_about(line, (const char *const *)&url, 1);
        expect_unmarked(line, url);
        free(line);
        free(identity);
        free(shown);
        free(url);
    }
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
    return strcmp(name, "urls.txt") == 0 || strcmp(name, "words.txt") == 0 || strcmp(name, "list.m3u8") == 0;
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
    expect(0, "weir record \"$at/good/clip.mp4?$signed\" --list urls.txt " ISOLATE " --db-path isolated.db "
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
              "weir export run.db -f openmetrics -o export.prom 2>export.err; true");
    expect_no_secret();
    /* and what is left still tells the items apart */
    expect(0,
           "grep -q '/good/clip.mp4?X-Amz-Signature=\\*\\*\\*&x=1;X-Amz-Credential=\\*\\*\\*' record.err trace.json");
    expect(0, "grep -q 'http://\\*\\*\\*@127.0.0.1:[0-9]*/404/clip.mp4?X-Amz-Signature=\\*\\*\\*' failures.json");
    expect(0, "grep -q '2 files: 2 read' index.err && grep -q '\"codec\": \"mpeg4\"' clips.json");
}

TEST_CASE(a_refused_redirection_is_reported)
{
    expect(2, "weir frames $at/to-file/clip.mp4 >redirected.out 2>redirected.err");
    expect(0, "grep -q 'it is redirected to a URL that is not of http or https' redirected.err");
}

/* What a run in this folder would leave to a later one: the paths that --dry-run prints. */
static void expect_left(int count, const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "weir record %s --dry-run >left.out 2>>resume.out; test $(wc -l <left.out) = %d",
             command, count);
    expect(0, line);
}

/* A later run has other signatures, dates of signing and tokens, in another order. */
TEST_CASE(a_resumed_run_finds_signed_urls)
{
    expect(0, "weir record $at/good/clip.mp4?sig=s3cr3t-1 $at/404/clip.mp4?sig=s3cr3t-1 --db-path first.db "
              ">resume.out 2>&1");
    expect_left(1, "$at/good/clip.mp4?sig=s3cr3t-2 $at/old/clip.mp4?sig=s3cr3t-2 $at/404/clip.mp4?sig=s3cr3t-2 "
                   "--resume first.db");
    expect(0, "grep -q '/old/clip.mp4' left.out");
    expect_left(1, "$at/good/clip.mp4?sig=s3cr3t-2 $at/404/clip.mp4?sig=s3cr3t-2 --resume first.db --retry-failed");
    expect(0, "grep -q '/404/clip.mp4' left.out");
    expect(0, "weir record \"$at/good/clip.mp4?v=1&X-Amz-Date=20260101T0Z&X-Amz-Expires=9&X-Amz-Credential=s3cr3t-1&"
              "X-Amz-Signature=s3cr3t-1\" --db-path amz.db >>resume.out 2>&1");
    expect_left(0, "\"$at/good/clip.mp4?X-Amz-Signature=s3cr3t-2&X-Amz-Date=20270101T0Z&v=1&X-Amz-Security-Token="
                   "s3cr3t-2\" --resume amz.db");
    expect_left(0, "http://other:s3cr3t-9@${at#*@}/good/clip.mp4?v=1 --resume amz.db");
    expect_left(1, "$at/good/clip.mp4?v=2 --resume amz.db");
    expect_no_secret();
}

/* "key" is hidden as it may be secret, but it may name the object. Its digest is not to be found without the key. */
TEST_CASE(a_resumed_run_tells_object_keys_apart)
{
    expect(0, "weir record $at/good/clip.mp4?key=s3cr3t/1 $at/good/clip.mp4?key=s3cr3t/3 --db-path key.db "
              ">resume.out 2>&1");
    expect_left(1, "$at/good/clip.mp4?key=s3cr3t/3 $at/good/clip.mp4?key=s3cr3t/2 $at/good/clip.mp4?key=s3cr3t/1 "
                   "--resume key.db");
    expect_left(2, "$at/good/clip.mp4?key=s3cr3t/2 $at/good/clip.mp4?key=s3cr3t/4 --resume key.db");
    expect(0, "stat -c %a state/weir state/weir/identity-key >mode.out; printf '700\\n600\\n' | cmp - mode.out");
    expect(0, "mv state state-kept"); /* another user's key */
    expect_left(2, "$at/good/clip.mp4?key=s3cr3t/1 $at/good/clip.mp4?key=s3cr3t/3 --resume key.db");
    expect(0, "rm -r state && : >state"); /* none can be kept: it is said, and nothing is left out */
    expect_left(1, "$at/good/clip.mp4?key=s3cr3t/1 --resume key.db");
    expect(0, "grep -q 'cannot keep a key' resume.out && rm state && mv state-kept state");
    expect_no_secret();
}

/* Each process may get its own list of the same objects, and run for another user. */
TEST_CASE(ranks_share_urls_whatever_each_of_them_signs_them_with)
{
    expect(0, "weir record clip.mp4 --db-path shared.db >resume.out 2>&1");
    expect(0, "for rank in 0 1; do for i in 1 2 3 4 5 6 7 8 9 10 11 12; do "
              "echo \"$at/good/$i.mp4?key=s3cr3t/$i&sig=s3cr3t-$rank&se=$rank\"; done >urls.txt; "
              "XDG_STATE_HOME=\"$PWD/state$rank\" weir record --list urls.txt --resume shared.db --rank $rank "
              "--world 2 --dry-run 2>>resume.out | tee "
              "share$rank; done | sed 's/?.*//' >left.out; test $(sort -u left.out | wc -l) = 12 && test $(wc -l "
              "<left.out) = 12 && "
              "test -s share0 && test -s share1");
    expect_no_secret();
}

/* Files that are listed several times are items of their own: each is finished once. */
TEST_CASE(a_resumed_run_counts_files_that_are_listed_twice)
{
    expect(0, "weir record clip.mp4 clip.mp4 --db-path twice.db >resume.out 2>&1");
    expect_left(1, "clip.mp4 clip.mp4 clip.mp4 --resume twice.db");
    expect_left(0, "clip.mp4 --resume twice.db");
}

/* ---- the index ---- */

enum { NUM_SIGNED = 4 };

static int64_t size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? file.st_size : -1;
}

/* Three objects, one of them twice, in their order in an index. */
static void sign_urls(char urls[NUM_SIGNED][256], const char *paths[NUM_SIGNED], int signature)
{
    static const char *const objects[NUM_SIGNED] = { "404/x.mp4?", "good/clip.mp4?", "old/clip.mp4?part=1&",
                                                     "old/clip.mp4?part=1&" };
    for (int i = 0; i < NUM_SIGNED; i++) {
        snprintf(urls[i], sizeof urls[i],
                 "http://u:s3cr3t@127.0.0.1:%d/%sX-Amz-Date=%dT0&X-Amz-Signature=s3cr3t/%d/x", port, objects[i],
                 signature, signature);
        paths[i] = urls[i];
    }
}

static weir_dataset_progress build_index(const char *const *paths, size_t num_paths)
{
    weir_dataset_progress progress;
    weir_error error = { 0 };
    const weir_dataset_build_options options = { .paths = paths, .num_paths = num_paths };
    if (weir_dataset_build(clips_path("signed.weir"), &options, &progress, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return progress;
}

static int open_index(const char *const *paths, size_t num_paths, weir_dataset **dataset, weir_error *error)
{
    *error = (weir_error){ 0 };
    return weir_dataset_open(clips_path("signed.weir"),
                             &(weir_dataset_options){ .paths = paths, .num_paths = num_paths }, dataset, error);
}

/* The clips are those of the list, by its addresses. */
static uint64_t expect_clips(const char *const *paths, size_t num_paths)
{
    weir_dataset *dataset;
    weir_error error;
    if (open_index(paths, num_paths, &dataset, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(weir_dataset_count(dataset), num_paths - 1); /* without that of /404/ */
    assert_int_equal(weir_dataset_num_classes(dataset), 2);
    assert_string_equal(weir_dataset_class_name(dataset, 0), "good"); /* not a part of a secret */
    assert_string_equal(weir_dataset_class_name(dataset, 1), "old");
    weir_sampler_items items = weir_dataset_items(dataset);
    for (uint64_t i = 0; i + 1 < num_paths; i++) {
        weir_entry *entry = weir_entry_new();
        entry->number = i;
        assert_int_equal(items.fill(items.self, entry, NULL), WEIR_OK);
        assert_string_equal(entry->path, paths[i + 1]);
        weir_entry_free(entry);
    }
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);
    return fingerprint;
}

typedef struct shown_urls {
    int wanted; /* part of their paths that is not secret */
    int num;
} shown_urls;

static int count_urls(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    shown_urls *shown = self;
    char end[32];
    snprintf(end, sizeof end, "?sig=***&se=%d", shown->wanted);
    for (size_t i = 0; i < num_cells; i++)
        if (strcmp(cells[i].name, "path") == 0)
            shown->num += strcmp(strchr(cells[i].text, '?'), end) == 0;
        else if (strcmp(cells[i].name, "size_bytes") == 0)
            assert_int_equal(cells[i].integer, size_of(clips_path("x.mp4")));
    return WEIR_OK;
}

static int count_shown(void *count, const weir_dataset_cell *cells, size_t num_cells)
{
    for (size_t i = 0; i < num_cells; i++)
        *(int *)count += strcmp(cells[i].name, "path") == 0 && strstr(cells[i].text, "http://***@127.0.0.1:") &&
                         strstr(cells[i].text, "X-Amz-Date=2T0&X-Amz-Signature=***");
    return WEIR_OK;
}

TEST_CASE(an_index_has_objects_and_neither_signatures_nor_secrets)
{
    char urls[NUM_SIGNED][256];
    const char *paths[NUM_SIGNED];
    weir_dataset *dataset;
    weir_error error;
    int num_shown = 0;
    sign_urls(urls, paths, 1);
    assert_int_equal(build_index(paths, NUM_SIGNED).num_indexed, 3);
    uint64_t fingerprint = expect_clips(paths, NUM_SIGNED);
    sign_urls(urls, paths, 2);
    weir_dataset_progress progress = build_index(paths, NUM_SIGNED);
    assert_int_equal(progress.num_total, 3);
    assert_int_equal(progress.num_removed, 0);
    assert_int_equal(
        weir_dataset_ask(clips_path("signed.weir"), WEIR_DATASET_CLIPS, NULL, count_shown, &num_shown, &error),
        WEIR_OK);
    assert_int_equal(num_shown, NUM_SIGNED);
    assert_true(expect_clips(paths, NUM_SIGNED) == fingerprint);
    sign_urls(urls, paths, 3);
    assert_true(expect_clips(paths, NUM_SIGNED) == fingerprint); /* signed after the build */
    expect_no_secret();

    assert_int_equal(open_index(NULL, 0, &dataset, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "set weir_dataset_options.paths to the list"));
    assert_int_equal(open_index(paths, 2, &dataset, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "/old/clip.mp4?part=1&X-Amz-Date=2T0&X-Amz-Signature=***: an index"));
    assert_null(strstr(error.message, mark));
    snprintf(urls[3], sizeof urls[3], "http://127.0.0.1:%d/old/clip.mp4?part=2", port); /* another object */
    assert_int_equal(build_index(paths, NUM_SIGNED).num_indexed, 4);
    assert_true(expect_clips(paths, NUM_SIGNED) != fingerprint);
}

/* What a build of signed URLs of a file x.mp4 has to do: one with a tag, two with a date, one with neither. Their signatures
   are always other ones. */
static void expect_read(uint64_t num_indexed, uint64_t num_broken)
{
    static const char *const servers[] = { "tagged", "to-dated", "dated", "good" };
    static int signature = 10;
    char urls[5][128];
    const char *paths[5];
    signature++;
    for (int i = 0; i < 5; i++) { /* the last one again */
        snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%d/%s/x.mp4?sig=s3cr3t%d&se=%d", port,
                 servers[i < 4 ? i : 3], signature, signature);
        paths[i] = urls[i];
    }
    weir_dataset_progress progress;
    weir_error error = { 0 };
    const weir_dataset_build_options options = { .paths = paths, .num_paths = 5, .check = WEIR_PROBE_ALL };
    if (weir_dataset_build(clips_path("versions.weir"), &options, &progress, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    assert_int_equal(progress.num_found, 4);
    assert_int_equal(progress.num_indexed, num_indexed);
    assert_int_equal(progress.num_unchanged, 4 - num_indexed);
    assert_int_equal(progress.num_broken, num_broken);
    assert_int_equal(progress.num_removed, 0);
    shown_urls shown = { .wanted = signature };
    assert_int_equal(
        weir_dataset_ask(clips_path("versions.weir"), WEIR_DATASET_CLIPS, NULL, count_urls, &shown, &error), WEIR_OK);
    assert_int_equal(shown.num, 5);
}

TEST_CASE(a_url_is_read_again_only_if_its_server_has_another_version)
{
    expect(0, "cp clip.mp4 x.mp4");
    expect_read(4, 0);
    expect_read(1, 0);
    expect(0, "printf '\\1' | dd of=x.mp4 bs=1 seek=$(($(stat -c %s x.mp4) - 1)) conv=notrunc status=none");
    expect_read(2, 0); /* the date says that it is the same */
    expect_read(1, 0);
    expect(0, "printf '\\0\\0\\0\\10free' >>x.mp4");
    expect_read(4, 0);
    expect_read(1, 0);
    expect(0, "echo no video >x.mp4");
    expect_read(4, 4);
    expect_read(1, 1); /* so is what cannot be used */
    expect(0, "cp clip.mp4 x.mp4");
    expect_read(4, 0);
    expect_no_secret();
}

/* "key" may name the object; who has the index, but not the user's key, cannot find it. */
TEST_CASE(an_index_tells_object_keys_apart_in_every_run)
{
    expect(0, "weir index $at/good/clip.mp4?key=s3cr3t/1 $at/good/clip.mp4?key=s3cr3t/2 -o keys.weir 2>keys.err");
    expect(0, "weir index $at/good/clip.mp4?key=s3cr3t/2 $at/good/clip.mp4?key=s3cr3t/1 -o keys.weir 2>keys.err");
    expect(0, "grep -q '^keys.weir: 2 files: .* 0 removed$' keys.err && weir index keys.weir --json | "
              "grep -q '\"clips\": 2,'");
    expect(0, "mv state state-kept; weir index $at/good/clip.mp4?key=s3cr3t/2 -o keys.weir 2>keys.err; "
              "rm -r state; mv state-kept state; grep -q ' 1 read, .* 2 removed$' keys.err"); /* another user's key */
    expect_no_secret();
}

/* ---- names of files ---- */

/* A folder twice, one in it, a file in it: each file is an item for each time. */
TEST_CASE(files_of_several_inputs_are_numbered_as_equals)
{
    expect(0, "mkdir -p over/v over/vv && cp clip.mp4 over/v/x.mp4 && cp clip.mp4 over/vv/x.mp4");
    expect(0, "weir record over --db-path over.db >resume.out 2>&1");
    expect_left(0, "over/ --resume over.db");
    expect_left(0, "over/v --resume over.db");
    expect_left(2, "over over --resume over.db");
    expect_left(1, "over over/v --resume over.db");
    expect_left(1, "over/v over --resume over.db");
    expect_left(2, "over over/v/x.mp4 over/v/x.mp4 --resume over.db");
    expect(0, "weir record over over/ over/v over/v/x.mp4 --all-items --db-path over4.db >resume.out 2>&1");
    expect_left(0, "over over/v over/v/x.mp4 over/v/x.mp4 --resume over4.db");
    expect_left(1, "over over/v over/v over/v/x.mp4 over/v/x.mp4 --resume over4.db");
    expect(0, "weir frames over over over/v/x.mp4 --count 1 -o over.out/ 2>frames.err && test $(find over.out -name "
              "'*.npy' | wc -l) = 5 && test -f over.out/over/v/x.mp4~2.npy -a -f over.out/over/vv/x.mp4~1.npy");
}

/* Hidden values, signatures and folders above: what is one item more is one file more. */
TEST_CASE(each_item_is_written_to_a_file_of_its_own)
{
    expect(0, "weir frames $at/good/clip.mp4?key=s3cr3t1 $at/good/clip.mp4?key=s3cr3t2 $at/good/clip.mp4?key=s3cr3t3 "
              "--count 1 -o urls/ 2>frames.err && test $(find urls -name '*.npy' | wc -l) = 3");
    expect(
        0,
        "weir frames $at/good/clip.mp4?sig=s3cr3t1 $at/good/clip.mp4?sig=s3cr3t2 --count 1 -o signed/ 2>frames.err "
        "&& test $(find signed -name '*.npy' | wc -l) = 2 && find urls signed >names.out");
    expect(0, "mkdir -p a/__ a/_ 'a/b%d' a/___ && for at in . __ _ ___ 'b%d'; do cp clip.mp4 \"a/$at/x.mp4\"; done");
    expect(
        0,
        "cd a && for kind in npy png; do weir frames ../clip.mp4 ../a/x.mp4 x.mp4 x.mp4 __/x.mp4 _/x.mp4 ___/x.mp4 "
        "'b%d/x.mp4' ./_/x.mp4 --count 1 --format $kind -o ../paths-$kind/ 2>>../frames.err || exit 1; done; cd .. "
        "&& "
        "test $(find paths-npy -name '*.npy' | wc -l) = 9 && test $(find paths-png -name '*.png' | wc -l) = 9");
    expect(0, "cmp paths-npy/__/a/x.mp4.npy paths-npy/x.mp4~1.npy"); /* ".." is "__", "__" is "____" */
    expect(0,
           "cd a && tar -cf ../twice.tar x.mp4 && tar -rf ../twice.tar x.mp4 && cd .. && weir frames twice.tar --tar "
           "--count 1 -o archive/ 2>tar.err; grep -q 'without libarchive' tar.err || "
           "test $(find archive -name '*.npy' | wc -l) = 2"); /* two members of one name */
    expect(0, "test -f paths-npy/____/x.mp4.npy && test -f 'paths-png/b%d/x.mp4/0000.png'");
    expect_no_secret();
}

TEST_CASE(two_inputs_of_one_name_are_refused_before_any_work)
{
    expect(0, "mkdir -p two/v && cp clip.mp4 two/v/x.mp4");
    expect(2, "weir frames two/v/x.mp4 two//v/x.mp4 --count 1 -o same/ 2>same.err");
    expect(0, "grep -q 'two/*v/x.mp4 and two/*v/x.mp4 would both be written to same/two/v/x.mp4.npy' same.err");
    expect(0, "! test -e same");
}

/* Held constant: the URLs of make_url(); the server answers some, refuses others, and most are not valid
   addresses. */
TEST_CASE(no_output_of_random_urls_shows_a_secret)
{
    uint64_t random = 7;
    char host[64];
    snprintf(host, sizeof host, "127.0.0.1:%d", port);
    FILE *list = fopen(clips_path("urls.txt"), "w");
    assert_non_null(list);
    for (int i = 0; i < 60; i++) {
        make_url(list, &random, host);
        fputc('\n', list);
    }
    fclose(list);
    expect(
        0,
        "weir record --list urls.txt --verbose --all-items --max-failures 1000 --io-timeout 5s --db-path random.db "
        "--trace random.json --openmetrics random.prom >random.out 2>random.err || true");
    expect(0, "weir record --list urls.txt --verbose --max-failures 1000 --io-timeout 5s " ISOLATE
              " --db-path inside.db "
              "--trace inside.json >inside.out 2>inside.err || true");
    expect(0, "weir record --list urls.txt --dry-run >random-dry.out 2>random-dry.err");
    expect(
        0,
        "head -12 urls.txt >words.txt; while IFS= read -r url; do weir record \"$url\" --db-path words.db || true; "
        "weir frames \"$url\" --json || true; done <words.txt >words.out 2>words.err");
    expect(0,
           "weir index urls.txt -o index.weir >index.out 2>index.err; "
           "for list in summary classes codecs durations broken clips; do weir index index.weir --list $list --json "
           ">index-$list.json; weir index index.weir --list $list >index-$list.out; done; true");
    expect(0, "for list in items failures events runs laps contents; do for form in --json --csv ''; do "
              "weir query random.db --list $list $form; done; done >random-query.out 2>&1; true");
    expect(0,
           "{ weir summary random.db --full; weir failures random.db; weir failures random.db --list; weir slowest "
           "random.db; weir slowest random.db --csv; weir trace random.json; weir explain random.db; } "
           ">random-views.out 2>&1; true");
    expect(0, "weir report random.db -o random.html >/dev/null && weir export random.db -f openmetrics -o "
              "exported.prom && weir export "
              "random.db -f trace -o exported.json; true");
    expect(0, "weir frames --files urls.txt --count 1 -o out/ >out.log 2>&1; find out . >names.out; true");
    expect_no_secret();
    expect(0,
           "test $(grep -c 'clip.mp4' random-query.out) -ge 60 && test -s random.html && test -s index-clips.json");
}

TEST_MAIN(NULL, NULL, start_server, stop_server)
