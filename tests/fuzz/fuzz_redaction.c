/*
 * libFuzzer's target: the redactor of URLs, which reads every label, message, log line and recorded command line. The first
 * byte of the input chooses: any text, or a URL with a secret in a known place. In the URL only the parts that may be
 * anything come from the input. The secret is known by its mark, so the test needs no second reader of URLs to judge
 * the first.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/redact.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text without NUL in memory of just its size: AddressSanitizer sees the first byte beyond it. */
static char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    require(text);
    for (size_t i = 0; i < size; i++)
        text[i] = data[i] ? (char)data[i] : '0';
    text[size] = '\0';
    return text;
}

/* The result is no longer, and nothing in it is hidden once more. */
static void redact_any_text(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    weir__text_redact(text);
    require(strlen(text) <= size);
    char *again = strdup(text);
    require(again);
    weir__text_redact(again);
    require(strlen(again) <= strlen(text));
    free(again);
    free(text);
}

/* At most that many characters of the input that mean nothing in a URL. The mark has none of them. */
static size_t take_plain(char *to, size_t max, const uint8_t **data, const uint8_t *end)
{
    size_t length = 0;
    while (length < max && *data < end) {
        unsigned char character = *(*data)++;
        if (character == 0)
            break;
        to[length++] = "abcdefghijklmnopqrstuvwxyz012345"[character % 32];
    }
    to[length] = '\0';
    return length;
}

static const char mark[] = "SECRETMARK";

static void redact_marked_url(uint8_t kind, const uint8_t *data, const uint8_t *end)
{
    static const char *const forms[] = {
        "%s://%s:SECRETMARK%s@host%s/%s",      "%s://SECRETMARK%s@%s.org/%s%s",
        "%s://%s/%s?a=%s&token=SECRETMARK%s",  "%s://%s/%s?%s&X-Amz-Signature=SECRETMARK%s&b=1",
        "%s://%s/%s;password=SECRETMARK%s#%s", "open %s://%s:SECRETMARK%s@%s/%s: failed",
    };
    static const char *const schemes[] = { "http", "https", "ftp", "rtsp", "sftp", "tls" };
    char parts[4][24], text[256];
    for (size_t i = 0; i < 4; i++)
        take_plain(parts[i], sizeof parts[i] - 1, &data, end);
    const char *scheme = schemes[kind / 8 % (sizeof schemes / sizeof *schemes)];
    const char *form = forms[kind % (sizeof forms / sizeof *forms)];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, form, scheme, parts[0], parts[1], parts[2], parts[3]);
#pragma GCC diagnostic pop
    weir__text_redact(text);
    require(!strstr(text, mark));
    require(strstr(text, "***") && strstr(text, scheme)); /* the rest can be read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return -1;
    if (data[0] % 2)
        redact_marked_url(data[1], data + 2, data + size);
    else
        redact_any_text(data + 1, size - 1);
    return 0;
}
