/*
 * An HTTP server that behaves badly, each way under a path of its own: /BEHAVIOUR/FILE. The part `server` of
 * tests/torture/run reads from it.
 *
 *     bad_server FOLDER      first prints its port, then a line "BEHAVIOUR OUTCOME" for each, then an empty line; serves the
 *                            files of FOLDER until stdin ends
 *
 * OUTCOME is what a strict reader has to make of it: whole (every frame), fails, either, or less (it may seem whole, but is not).
 */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_REQUEST = 8192, MAX_FILE = 4 << 20 };

typedef struct exchange {
    int fd;
    const char *path;    /* of the request */
    const char *bytes;   /* of the file */
    size_t size, start;  /* the range that was asked for begins at start */
    unsigned number;     /* of the request for this behaviour, from 1 */
    const char *version; /* lines of the head that say which version of the file it is; NULL = none */
} exchange;

typedef struct behaviour {
    const char *name, *outcome;
    void (*answer)(const exchange *);
} behaviour;

static const char *folder;

/* ---- parts of answers; false = the reader has gone --------------------------------------------------------------- */

static _Bool put(const exchange *to, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(to->fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return 0;
        done += (size_t)sent;
    }
    return 1;
}

static _Bool say(const exchange *to, const char *text)
{
    return put(to, text, strlen(text));
}

/* The head of a usual answer, with the length and the range that are given. */
static _Bool head(const exchange *to, size_t from, size_t length, size_t size)
{
    char text[512], range[640];
    const char *kind = "HTTP/1.1 200 OK\r\n";
    snprintf(text, sizeof text, "%sContent-Length: %zu\r\nAccept-Ranges: bytes\r\nConnection: close\r\n\r\n",
             to->version ? to->version : "", length);
    if (from == 0)
        return say(to, kind) && say(to, text);
    snprintf(range, sizeof range, "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n%s", from,
             size - 1, size, text);
    return say(to, range);
}

static _Bool body(const exchange *to, size_t from, size_t until)
{
    return from >= until || put(to, to->bytes + from, until - from);
}

static size_t half(const exchange *to)
{
    return to->start + (to->size - to->start) / 2;
}

/* Waits until the reader has had enough. */
static void hold(const exchange *to)
{
    char byte;
    while (recv(to->fd, &byte, 1, 0) > 0)
        ;
}

/* The server is slow on purpose: clients must bear it, and nothing depends on how long it takes. */
static void doze(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
}

static void drip(const exchange *to, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size && put(to, bytes + i, 1); i++)
        doze();
}

/* ---- behaviours ------------------------------------------------------------------------------------------------------ */

static void answer_well(const exchange *to)
{
    (void)(head(to, to->start, to->size - to->start, to->size) && body(to, to->start, to->size));
}

static void answer_with_version(const exchange *to, const char *version)
{
    exchange with = *to;
    with.version = version;
    answer_well(&with);
}

static const char date[] = "last-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

/* The tag is another one for each content, but the date is not. They come in any order. */
static void answer_with_tag(const exchange *to)
{
    char version[256];
    uint64_t hash = 0;
    for (size_t i = 0; i < to->size; i++)
        hash = (hash ^ (unsigned char)to->bytes[i]) * 0x100000001b3u;
    snprintf(version, sizeof version, "%sETag: \"%llx\"\r\n%s", to->number % 2 ? date : "", (unsigned long long)hash,
             to->number % 2 ? "" : date);
    answer_with_version(to, version);
}

static void answer_with_date(const exchange *to)
{
    answer_with_version(to, date);
}

static void redirect_to_date(const exchange *to)
{
    char text[MAX_REQUEST + 256];
    snprintf(text, sizeof text,
             "HTTP/1.1 302 Found\r\nETag: \"%u\"\r\nLocation: /dated%s\r\nContent-Length: 0\r\n\r\n", to->number,
             strchr(to->path + 1, '/'));
    say(to, text);
}

static void answer_old(const exchange *to)
{
    (void)(say(to, "HTTP/1.0 200 OK\r\n\r\n") && body(to, 0, to->size));
}

static void answer_without_length(const exchange *to)
{
    (void)(say(to, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") && body(to, 0, to->size));
}

static void answer_never(const exchange *to)
{
    hold(to);
}

static void drip_head(const exchange *to)
{
    drip(to, "HTTP/1.1 200 OK\r\nServer: a very slow one, of which nothing is known but that it is slow\r\n\r\n", 86);
}

static void drip_body(const exchange *to)
{
    if (head(to, to->start, to->size - to->start, to->size))
        drip(to, to->bytes + to->start, to->size - to->start);
}

static void stall(const exchange *to)
{
    if (head(to, to->start, to->size - to->start, to->size) && body(to, to->start, half(to)))
        hold(to);
}

static void close_midway(const exchange *to)
{
    (void)(head(to, to->start, to->size - to->start, to->size) && body(to, to->start, half(to)));
}

static void reset_midway(const exchange *to)
{
    close_midway(to);
    setsockopt(to->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
}

static void reset_at_once(const exchange *to)
{
    setsockopt(to->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
}

static void tell_too_much(const exchange *to)
{
    (void)(head(to, to->start, to->size - to->start + 100000, to->size + 100000) && body(to, to->start, to->size));
}

static void tell_too_little(const exchange *to)
{
    (void)(head(to, to->start, half(to) - to->start, to->size) && body(to, to->start, to->size));
}

static void tell_absurdly_much(const exchange *to)
{
    (void)(say(to, "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n") && body(to, 0, to->size));
}

static void tell_nonsense(const exchange *to)
{
    (void)(say(to, "HTTP/1.1 200 OK\r\nContent-Length: -17\r\n\r\n") && body(to, 0, half(to)));
}

static _Bool begin_chunk(const exchange *to)
{
    char text[128];
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", to->size);
    return say(to, text);
}

static void chunk_well(const exchange *to)
{
    (void)(begin_chunk(to) && body(to, 0, to->size) && say(to, "\r\n0\r\n\r\n"));
}

static void cut_chunk(const exchange *to)
{
    (void)(begin_chunk(to) && body(to, 0, to->size / 2));
}

static void spoil_chunk(const exchange *to)
{
    char text[128];
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", to->size / 2);
    (void)(say(to, text) && body(to, 0, to->size / 2) && say(to, "\r\nzz; no number\r\n") &&
           body(to, to->size / 2, to->size));
}

static void redirect(const exchange *to, const char *where)
{
    char text[MAX_REQUEST + 128];
    snprintf(text, sizeof text, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", where);
    say(to, text);
}

static void redirect_to_itself(const exchange *to)
{
    redirect(to, to->path);
}

static void redirect_to_a_file(const exchange *to)
{
    char where[MAX_REQUEST];
    snprintf(where, sizeof where, "file://%s/%s", folder, strrchr(to->path, '/') + 1);
    redirect(to, where);
}

/* With a password and a signature in the URL: see test_secrets.c. */
static void redirect_to_a_secret(const exchange *to)
{
    redirect(to, "http://peter:s3cr3t-8@127.0.0.1:1/gone.mp4?X-Amz-Signature=s3cr3t-9");
}

static void redirect_to_nowhere(const exchange *to)
{
    redirect(to, "http://127.0.0.1:1/nothing-listens-here");
}

static void deny(const exchange *to)
{
    say(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nnever\n");
}

static void break_down(const exchange *to)
{
    say(to, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
}

static void recover(const exchange *to)
{
    if (to->number % 2)
        say(to, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
    else
        answer_well(to);
}

/* Says that it has ranges, and begins at the beginning. */
static void ignore_range(const exchange *to)
{
    (void)(head(to, 0, to->size, to->size) && body(to, 0, to->size));
}

static void give_another_range(const exchange *to)
{
    size_t from = to->start / 2;
    (void)(head(to, from, to->size - from, to->size) && body(to, from, to->size));
}

/* Says that it is the range that was asked for. */
static void forge_range(const exchange *to)
{
    (void)(head(to, to->start, to->size - to->start, to->size) && body(to, 0, to->size - to->start));
}

static void change_size(const exchange *to)
{
    size_t size = to->start ? to->size * 2 / 3 : to->size;
    if (to->start >= size)
        say(to, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
    else
        (void)(head(to, to->start, size - to->start, size) && body(to, to->start, size));
}

static void babble(const exchange *to)
{
    put(to, "\0\xff\x01\x80: \r\n\x1b[31m: \r\rHTTP/9.9 -5\r\n\n\n\xfe garbage", 41);
    body(to, 0, to->size);
}

static void garble_head(const exchange *to)
{
    (void)(say(to, "HTTP/1.1 200 OK\r\n: no name\r\nno value\r\nContent-Type: \x1b[31m\x07\r\nContent-Range: bytes "
                   "x-y/z\r\n"
                   "Location: \x1b]0;title\x07\r\nSet-Cookie: a=;;;=\r\nContent-Encoding: gzip, what\r\n\r\n") &&
           body(to, 0, to->size));
}

static void send_a_page(const exchange *to)
{
    say(to, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 35\r\n\r\n<html><body>Log "
            "in</body></html>\r\n\r\n");
}

static void send_nothing(const exchange *to)
{
    say(to, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

static void send_endless_head(const exchange *to)
{
    char line[1024];
    memset(line, 'x', sizeof line);
    memcpy(line, "Name: ", 6);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    _Bool goes_on = say(to, "HTTP/1.1 200 OK\r\n");
    while (goes_on)
        goes_on = put(to, line, sizeof line);
}

static void send_endless_line(const exchange *to)
{
    char bytes[1024];
    memset(bytes, 'x', sizeof bytes);
    _Bool goes_on = say(to, "HTTP/1.1 200 OK\r\nName: ");
    while (goes_on)
        goes_on = put(to, bytes, sizeof bytes);
}

static void send_endless_body(const exchange *to)
{
    static const char zeros[4096];
    _Bool goes_on = say(to, "HTTP/1.1 200 OK\r\n\r\n") && body(to, 0, to->size / 2);
    while (goes_on)
        goes_on = put(to, zeros, sizeof zeros);
}

static const behaviour behaviours[] = {
    { "good", "whole", answer_well },
    { "tagged", "whole", answer_with_tag },
    { "to-dated", "whole", redirect_to_date },
    { "dated", "whole", answer_with_date },
    { "chunked", "whole", chunk_well },
    { "old", "whole", answer_old },
    { "no-length", "either", answer_without_length },
    { "silent", "fails", answer_never },
    { "slow-head", "fails", drip_head },
    { "slow", "fails", drip_body },
    { "stall", "fails", stall },
    { "close", "fails", close_midway },
    { "reset", "fails", reset_midway },
    { "reset-at-once", "fails", reset_at_once },
    { "too-long", "either", tell_too_much },
    { "too-short", "less", tell_too_little },
    { "absurd-length", "either", tell_absurdly_much },
    { "negative-length", "either", tell_nonsense },
    { "cut-chunk", "either", cut_chunk },
    { "bad-chunk", "less", spoil_chunk },
    { "loop", "fails", redirect_to_itself },
    { "to-file", "fails", redirect_to_a_file },
    { "to-nowhere", "fails", redirect_to_nowhere },
    { "to-secret", "fails", redirect_to_a_secret },
    { "404", "fails", deny },
    { "500", "fails", break_down },
    { "503-once", "either", recover },
    { "no-ranges", "either", ignore_range },
    { "other-ranges", "either", give_another_range },
    { "forged-ranges", "either", forge_range },
    { "changes", "either", change_size },
    { "garbage", "fails", babble },
    { "garbage-head", "either", garble_head },
    { "page", "fails", send_a_page },
    { "empty", "fails", send_nothing },
    { "endless-head", "fails", send_endless_head },
    { "endless-line", "fails", send_endless_line },
    { "endless", "fails", send_endless_body },
};
enum { NUM_BEHAVIOURS = sizeof behaviours / sizeof *behaviours };
static atomic_uint num_requests[NUM_BEHAVIOURS];

/* ---- connections ----------------------------------------------------------------------------------------------------- */

/* The head of the request, as text. */
static _Bool read_request(int fd, char *request)
{
    size_t length = 0;
    while (length < MAX_REQUEST - 1) {
        ssize_t got = recv(fd, request + length, MAX_REQUEST - 1 - length, 0);
        if (got <= 0)
            return 0;
        length += (size_t)got;
        request[length] = 0;
        if (strstr(request, "\r\n\r\n"))
            return 1;
    }
    return 0;
}

/* NULL = there is none. */
static char *read_file(const char *name, size_t *size)
{
    char path[MAX_REQUEST];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    char *bytes = file ? malloc(MAX_FILE) : NULL;
    *size = bytes ? fread(bytes, 1, MAX_FILE, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void serve(int fd)
{
    char request[MAX_REQUEST], path[MAX_REQUEST], name[32], file[256];
    if (!read_request(fd, request) || sscanf(request, "GET %8191s", path) != 1 ||
        sscanf(path, "/%31[^/]/%255[^/?]", name, file) != 2)
        return;
    exchange to = { .fd = fd, .path = path };
    const char *range = strstr(request, "\r\nRange: bytes=");
    char *bytes = read_file(file, &to.size);
    if (bytes) {
        to.bytes = bytes;
        to.start = range ? strtoul(range + strlen("\r\nRange: bytes="), NULL, 10) : 0;
        to.start = to.start < to.size ? to.start : 0;
        for (int i = 0; i < NUM_BEHAVIOURS; i++)
            if (strcmp(behaviours[i].name, name) == 0) {
                to.number = atomic_fetch_add(&num_requests[i], 1) + 1;
                behaviours[i].answer(&to);
            }
    }
    free(bytes);
}

static void *connection_main(void *argument)
{
    int fd = (int)(intptr_t)argument;
    serve(fd);
    close(fd);
    return NULL;
}

static void *listener_main(void *argument)
{
    int listener = *(int *)argument, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, connection_main, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t thread;
    folder = argv[1];
    if (argc != 2 || listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(&thread, NULL, listener_main, &listener) != 0) {
        perror("bad_server FOLDER");
        return 1;
    }
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    for (int i = 0; i < NUM_BEHAVIOURS; i++)
        printf("%s %s\n", behaviours[i].name, behaviours[i].outcome);
    puts("");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
