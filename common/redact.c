/*
 * Hides the secrets of URLs. A scan goes through the text once, from left to right, and finds one secret after the
 * other. A secret is replaced by at most as many bytes. So the text is changed in place, behind the scan.
 *
 * In doubt more is hidden: a text from which a host is missing can be completed, a secret that was shown cannot be
 * taken back.
 */
#include "common/redact.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_NAME = 32, MIN_QUOTED = 4 };

/* ---- names ------------------------------------------------------------------------------------------------------ */

/*
 * Parameters whose values give access, in lower case and without "-", "_", "." and brackets:
 *   Amazon S3     Signature Version 4 ("Authenticating requests: using query parameters") and 2; S3 Express sessions
 *   Google Cloud  V4 and V2 signed URLs; Media CDN and Cloud CDN
 *   Azure         shared access signatures ("Create a service SAS": sig)
 *   CloudFront    signed URLs (Signature, Key-Pair-Id); Akamai (hdnts, hdnea), Alibaba (auth_key, OSS), Tencent COS (q-…)
 *   OAuth         RFC 6749, 6750, 7521, 7636, 5849
 * and the usual names of tokens, keys and passwords. Another value of one of these leads to the same object.
 */
static const char *const access_names[] = {
    "xamzsignature",
    "xamzcredential",
    "xamzsecuritytoken",
    "xamzs3sessiontoken",
    "awsaccesskeyid",
    "awssecretaccesskey",
    "xgoogsignature",
    "xgoogcredential",
    "xgoogsecuritytoken",
    "googleaccessid",
    "keyname",
    "edgecachetoken",
    "sign",
    "keypairid",
    "hdnts",
    "hdnea",
    "hdntl",
    "authkey",
    "verify",
    "xosssignature",
    "xosscredential",
    "xosssecuritytoken",
    "ossaccesskeyid",
    "securitytoken",
    "qsignature",
    "qak",
    "xcossecuritytoken",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "oauthtoken",
    "oauthsignature",
    "oauthverifier",
    "clientassertion",
    "assertion",
    "codeverifier",
    "privatetoken",
    "jobtoken",
    "deploytoken",
    "token",
    "authtoken",
    "apitoken",
    "xplextoken",
    "sessiontoken",
    "authorization",
    "auth",
    "bearer",
    "jwt",
    "hmac",
    "apikey",
    "xapikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "subscriptionkey",
    "sessionkey",
    "passphrase",
    "pass",
};

/* Names that end like this give access, too. */
static const char *const access_endings[] = {
    "secret", "password", "passwd", "pwd", "signature", "sig", "credential", "credentials",
};

/* The values of these names may be secret. They may also say which object is meant: "?key=clips/1.mp4",
   "?filetoken=7". */
static const char *const object_names[] = { "code", "session", "sessionid", "sid", "ticket" };
static const char *const object_endings[] = { "token", "key", "auth" };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_in(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool ends_in(const char *name, const char *const *endings, size_t count)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (length >= strlen(endings[i]) && strcmp(name + length - strlen(endings[i]), endings[i]) == 0)
            return true;
    return false;
}

/* The number of "token2" or "key[0]" is not a part of the name. */
static weir_secret_kind kind_of_name(const char *numbered)
{
    char name[MAX_NAME] = "";
    size_t length = strlen(numbered);
    while (length > 0 && isdigit((unsigned char)numbered[length - 1]))
        length--;
    memcpy(name, numbered, length);
    if (is_in(name, access_names, COUNT(access_names)) || ends_in(name, access_endings, COUNT(access_endings)))
        return WEIR__SECRET_ACCESS;
    if (is_in(name, object_names, COUNT(object_names)) || ends_in(name, object_endings, COUNT(object_endings)))
        return WEIR__SECRET_OBJECT;
    return WEIR__SECRET_NONE;
}

/* Schemes behind which FFmpeg opens "http:host/" and "http:/host/" like "http://host/". */
static const char *const network_schemes[] = {
    "http",        "https", "httpproxy", "ftp",     "ftps",   "sftp",    "ssh",     "rtsp",   "rtsps",
    "rtspu",       "rtspt", "rtmp",      "rtmps",   "rtmpe",  "rtmpt",   "rtmpte",  "rtmpts", "ffrtmphttp",
    "ffrtmpcrypt", "tcp",   "udp",       "udplite", "tls",    "dtls",    "rtp",     "srtp",   "srt",
    "rist",        "mms",   "mmsh",      "mmst",    "gopher", "gophers", "icecast", "ws",     "wss",
    "smb",         "s3",    "gs",        "hdfs",    "webdav", "webdavs", "dav",     "davs",
};

/* Schemes of FFmpeg in front of another address, or without a host. */
static const char *const other_schemes[] = { "async", "cache", "concat", "concatf", "crypto", "data", "hls",
                                             "ipfs",  "ipns",  "amqp",   "zmq",     "tee",    "md5" };

static bool is_slash(int character)
{
    return character == '/' || character == '\\';
}

/* Such a URL has no secrets. */
static bool is_local(const char *address)
{
    return strncasecmp(address, "file:", strlen("file:")) == 0;
}

bool weir__is_url(const char *address)
{
    if (!address || !isalpha((unsigned char)*address))
        return false;
    size_t length = 0;
    while (isalnum((unsigned char)address[length]) || (address[length] && strchr("+-.", address[length])))
        length++;
    if (strncmp(address, "subfile,", strlen("subfile,")) == 0)
        return true;
    if (address[length] != ':')
        return false;
    if (is_local(address))
        return true;
    if (is_slash(address[length + 1]) && is_slash(address[length + 2]))
        return true;
    char scheme[MAX_NAME] = "";
    size_t start = length;
    while (start > 0 && address[start - 1] != '+') /* "hls+http:" */
        start--;
    for (size_t i = start; i < length && i - start < sizeof scheme - 1; i++)
        scheme[i - start] = (char)tolower((unsigned char)address[i]);
    return is_in(scheme, network_schemes, COUNT(network_schemes)) ||
           is_in(scheme, other_schemes, COUNT(other_schemes));
}

/* ---- the scan --------------------------------------------------------------------------------------------------- */

typedef struct scan {
    const char *text;
    size_t at, end;
    bool is_text;        /* an address ends at a blank or a quote; else at the end */
    bool is_url;         /* a scheme was found */
    char quote;          /* that would end the address; '\0' = none */
    char name[MAX_NAME]; /* the end of the name before `at`, as kind_of_name() wants it */
    size_t name_length, name_at;
    int before_name;     /* the character before the name */
    char word[MAX_NAME]; /* the letters and digits before `at`, in lower case; cut if it is too long for a scheme */
    size_t word_length;
    /* results that are asked for often, so that a scan takes a time in proportion to the text */
    size_t known_end;               /* of the address around `at`; 0 = not known */
    size_t searched_end, last_sign; /* the last "@" before this end; SIZE_MAX = none */
} scan;

/* The character at `at`, percent-decoded as often as it was encoded ("%2574" is "t"), and its length in bytes. '\0': the
   end. */
static int decode_character(const scan *s, size_t at, size_t *length)
{
    const char *text = s->text;
    *length = 1;
    if (at >= s->end)
        return '\0';
    if (text[at] != '%')
        return (unsigned char)text[at];
    size_t hex = at + 1;
    while (s->end - hex >= 4 && text[hex] == '2' && text[hex + 1] == '5' && isxdigit((unsigned char)text[hex + 2]) &&
           isxdigit((unsigned char)text[hex + 3]))
        hex += 2;
    if (s->end - hex < 2 || !isxdigit((unsigned char)text[hex]) || !isxdigit((unsigned char)text[hex + 1]))
        return '%';
    *length = hex + 2 - at;
    return (int)strtoul((char[]){ text[hex], text[hex + 1], '\0' }, NULL, 16);
}

static void begin_name(scan *s, int before, size_t at)
{
    s->name_length = 0;
    s->name_at = at;
    s->before_name = before;
}

static void add_to_name(scan *s, int character)
{
    if (s->name_length == MAX_NAME - 1)
        memmove(s->name, s->name + 1, --s->name_length);
    s->name[s->name_length++] = (char)tolower(character);
}

/* In a text, an address ends at a blank, or at the quote before it. */
static void note_quote(scan *s, int character)
{
    if (character <= ' ') {
        s->quote = '\0';
        s->is_url = false;
        s->known_end = 0;
    } else if (!s->quote && character < 128 && strchr("'\"`<", character)) {
        s->quote = (char)(character == '<' ? '>' : character);
        s->known_end = 0;
    }
}

/* The separators of parameters, and what cannot be in a name. "user[password]": the part in brackets. */
static void note_character(scan *s, int character, size_t at, size_t length)
{
    bool is_letter = character < 128 && isalnum(character);
    if (is_letter)
        add_to_name(s, character);
    else if (character <= ' ' || strchr("?&;#,|/\\:=@'\"<>(){}`^!$", character) || character == 127)
        begin_name(s, character, at + length);
    else if (character == '[') {
        int next = decode_character(s, at + length, &(size_t){ 0 });
        s->name_length = next == ']' || isdigit(next & 127) ? s->name_length : 0;
    }
    if (!is_letter)
        s->word_length = 0;
    else if (s->word_length < MAX_NAME - 1)
        s->word[s->word_length++] = (char)tolower(character);
    if (s->is_text)
        note_quote(s, character);
}

/* A quote inside a secret is not followed by the end of a word. */
static bool is_closing(const scan *s, size_t at)
{
    return s->text[at] == s->quote &&
           (at + 1 >= s->end || (unsigned char)s->text[at + 1] <= ' ' || strchr(",.;:)]}>'\"", s->text[at + 1]));
}

static size_t find_end(const scan *s, size_t at)
{
    for (size_t i = at; s->quote && i < s->end && s->text[i] != '\n'; i++)
        if (is_closing(s, i))
            return i;
    while (at < s->end && (unsigned char)s->text[at] > ' ')
        at++;
    return at;
}

/* Where the address ends in which `at` is. */
static size_t address_end(scan *s, size_t at)
{
    if (!s->is_text)
        return s->end;
    if (s->known_end < at)
        s->known_end = find_end(s, at);
    return s->known_end;
}

/* Without the punctuation of the sentence around it. */
static size_t trim_end(const scan *s, size_t at, size_t end)
{
    while (s->is_text && end > at && strchr(":,.)'\";>]", s->text[end - 1]))
        end--;
    return end;
}

/* ---- user names and passwords ---- */

/* What the first part of an authority holds, up to a slash or the like. */
typedef struct authority {
    size_t end;               /* where that part ends */
    size_t colon, behind, at; /* the first colon, what follows it, and the last "@" in it; SIZE_MAX = none */
} authority;

static authority read_authority(const scan *s, size_t start, size_t end)
{
    authority a = { .end = end, .colon = SIZE_MAX, .behind = SIZE_MAX, .at = SIZE_MAX };
    size_t length;
    for (size_t at = start; at < end; at += length) {
        int character = decode_character(s, at, &length);
        if (is_slash(character) || character == '?' || character == '#') {
            a.end = at;
            return a;
        }
        if (character == ':' && a.colon == SIZE_MAX) {
            a.colon = at;
            a.behind = at + length;
        }
        if (character == '@')
            a.at = at;
    }
    return a;
}

/* The last "@" of the address, at or after `start`. */
static size_t last_sign(scan *s, size_t start, size_t end)
{
    if (s->searched_end != end) {
        size_t length;
        s->searched_end = end;
        s->last_sign = SIZE_MAX;
        for (size_t at = start; at < end; at += length)
            if (decode_character(s, at, &length) == '@')
                s->last_sign = at;
    }
    return s->last_sign != SIZE_MAX && s->last_sign >= start ? s->last_sign : SIZE_MAX;
}

static bool is_port(const scan *s, size_t at, size_t end)
{
    while (at < end && isdigit((unsigned char)s->text[at]))
        at++;
    return at >= end;
}

/*
 * The user name and password at `start`, without the "@". A password that is not encoded may contain "/", "?" and "@",
 * so it ends at the last "@" of the address; that may be too much. The text may have been cut before the "@".
 */
static weir_secret find_user(scan *s, size_t start, size_t end)
{
    const authority a = read_authority(s, start, end);
    bool has_password = a.colon != SIZE_MAX && (a.at == SIZE_MAX || a.colon < a.at);
    size_t to = has_password ? last_sign(s, start, end) : a.at;
    if (a.at == SIZE_MAX && start < end && s->text[start] == '[') /* an IPv6 address */
        return (weir_secret){ 0 };
    size_t cut = trim_end(s, start, a.end);
    if (to == SIZE_MAX && has_password && s->text[a.colon] == ':' && !is_port(s, a.behind, cut))
        to = cut;
    if (to == SIZE_MAX || to <= start)
        return (weir_secret){ 0 };
    return (weir_secret){
        .kind = to == a.at ? WEIR__SECRET_USER : WEIR__SECRET_OBJECT, /* perhaps it is a part of the path */
        .at = start,
        .length = to - start,
        .name_at = start,
    };
}

/* Behind a colon: the start of an authority, or SIZE_MAX. */
static size_t find_authority(const scan *s, size_t after_colon)
{
    size_t at = after_colon, num_slashes = 0, length;
    int first = decode_character(s, at, &length);
    while (is_slash(decode_character(s, at, &length))) {
        num_slashes++;
        at += length;
    }
    char word[MAX_NAME] = "";
    memcpy(word, s->word, s->word_length);
    if (strcmp(word, "file") == 0)
        return SIZE_MAX;
    if (num_slashes >= 2 || is_in(word, network_schemes, COUNT(network_schemes)))
        return s->is_text && (unsigned char)first <= ' ' ? SIZE_MAX : at;
    return SIZE_MAX;
}

/* ---- one after the other ---- */

static weir_secret find_value(scan *s, size_t start)
{
    char name[MAX_NAME] = "";
    memcpy(name, s->name, s->name_length);
    weir_secret secret = { .kind = kind_of_name(name), .at = start, .name_at = s->name_at };
    bool is_parameter = s->before_name != '\0' && strchr("?&;#", s->before_name);
    if (secret.kind == WEIR__SECRET_NONE || (!s->is_url && !(s->is_text && is_parameter)))
        return (weir_secret){ 0 };
    size_t limit = address_end(s, start), end = start;
    while (end < limit && s->text[end] != '&')
        end++;
    end = end < limit ? end : trim_end(s, start, end);
    secret.length = end - start;
    secret.is_azure = strcmp(name, "sig") == 0;
    return secret;
}

/* Behind a colon: the user name and password, if an authority begins there. */
static weir_secret find_user_behind(scan *s, size_t after_colon, bool is_encoded)
{
    size_t host = find_authority(s, after_colon);
    if (host == SIZE_MAX)
        return (weir_secret){ 0 };
    size_t limit = address_end(s, host), end = host;
    while (end < limit && !(is_encoded && s->text[end] == '&'))
        end++;
    s->is_url = true;
    return find_user(s, host, end);
}

/*
 * What was taken for a password up to an "@" may be a port, a path and parameters. The "@" may then be a part of a
 * value. The password and the value may both be secret, so the secret extends to the end of that value.
 */
static void add_values(scan *s, weir_secret *secret)
{
    size_t length;
    for (size_t at = secret->at; at < secret->at + secret->length; at += length) {
        int character = decode_character(s, at, &length);
        weir_secret value = { 0 };
        if (character == '=')
            value = find_value(s, at + length);
        if (value.at + value.length > secret->at + secret->length)
            secret->length = value.at + value.length - secret->at;
        note_character(s, character, at, length);
    }
}

/* The next secret that is not empty. The scan is behind it then. */
static weir_secret scan_secret(scan *s)
{
    while (s->at < s->end) {
        size_t length, start = s->at;
        int character = decode_character(s, start, &length);
        weir_secret secret = { 0 };
        if (character == ':')
            secret = find_user_behind(s, start + length, length > 1);
        else if (character == '=')
            secret = find_value(s, start + length);
        note_character(s, character, start, length);
        s->at = start + length;
        if (secret.length == 0)
            continue;
        if (character == ':' && secret.kind == WEIR__SECRET_OBJECT)
            add_values(s, &secret);
        s->at = secret.at + secret.length;
        begin_name(s, '@', s->at);
        s->word_length = 0;
        return secret;
    }
    return (weir_secret){ 0 };
}

void weir__secrets_each(const char *address, void (*take)(void *self, const weir_secret *secret), void *self)
{
    scan s = { .text = address, .end = strlen(address) };
    weir_secret secret;
    while (!is_local(address) && (secret = scan_secret(&s)).kind != WEIR__SECRET_NONE)
        take(self, &secret);
}

/* ---- hiding ----------------------------------------------------------------------------------------------------- */

/* Moves the first `num_shown` of the bytes to `to`, without their secrets. Returns how many are left. */
static size_t hide_secrets(char *to, const char *from, size_t length, size_t num_shown, bool is_text)
{
    scan s = { .text = from, .end = length, .is_text = is_text };
    size_t done = 0, kept = 0;
    weir_secret secret;
    while ((secret = scan_secret(&s)).kind != WEIR__SECRET_NONE && secret.at < num_shown) {
        size_t end = secret.at + secret.length < num_shown ? secret.at + secret.length : num_shown;
        memmove(to + kept, from + done, secret.at - done);
        kept += secret.at - done;
        for (size_t i = secret.at; i < end && i < secret.at + 3; i++)
            to[kept++] = '*';
        done = end;
    }
    memmove(to + kept, from + done, num_shown - done);
    return kept + num_shown - done;
}

static void hide_all(char *text, bool is_text)
{
    size_t length = strlen(text);
    text[hide_secrets(text, text, length, length, is_text)] = '\0';
}

void weir__address_redact(char *address)
{
    if (address && !is_local(address))
        hide_all(address, false);
}

void weir__text_redact(char *text)
{
    if (text)
        hide_all(text, true);
}

/* How many bytes of the text are the address, or its start at the end of the text; 0 = none. */
static size_t quoted_length(const char *text, const char *address)
{
    size_t length = 0;
    while (address[length] && text[length] == address[length])
        length++;
    return !address[length] || (!text[length] && length > 2 * MIN_QUOTED) ? length : 0;
}

/* A piece of the text, and an address that it may quote in part. */
typedef struct quoting {
    char *piece;
    size_t length;
    const char *address;
} quoting;

/* Replaces each occurrence of the secret by stars. Short ones would be found in any text. */
static void hide_quoted_secret(void *self, const weir_secret *secret)
{
    quoting *q = self;
    char *at = q->piece, *found;
    while (secret->length >= MIN_QUOTED &&
           (found = memmem(at, q->length - (size_t)(at - q->piece), q->address + secret->at, secret->length))) {
        size_t behind = (size_t)(q->piece + q->length - found) - secret->length;
        memset(found, '*', 3);
        memmove(found + 3, found + secret->length, behind);
        q->length -= secret->length - 3;
        at = found + 3;
    }
}

/* A piece that quotes none of the addresses as a whole. Returns how many bytes are left, at `to`. */
static size_t hide_piece(char *to, char *piece, size_t length, const char *const *addresses, size_t num_addresses)
{
    quoting q = { piece, length, NULL };
    for (size_t i = 0; i < num_addresses; i++) {
        q.address = addresses[i];
        if (q.address)
            weir__secrets_each(q.address, hide_quoted_secret, &q);
    }
    return hide_secrets(to, q.piece, q.length, q.length, true);
}

/* The longest of the addresses that begins here. */
static size_t find_quoted(const char *text, const char *const *addresses, size_t num_addresses, const char **found)
{
    size_t longest = 0;
    for (size_t i = 0; i < num_addresses; i++) {
        size_t length = addresses[i] && *addresses[i] ? quoted_length(text, addresses[i]) : 0;
        if (length > longest) {
            longest = length;
            *found = addresses[i];
        }
    }
    return longest;
}

void weir__text_redact_about(char *text, const char *const *addresses, size_t num_addresses)
{
    if (!text)
        return;
    char *to = text, *from = text;
    while (*from) {
        char *quoted = from;
        const char *address = "";
        size_t length = 0;
        while (*quoted && !(length = find_quoted(quoted, addresses, num_addresses, &address)))
            quoted++;
        to += hide_piece(to, from, (size_t)(quoted - from), addresses, num_addresses);
        if (!is_local(address))
            to += hide_secrets(to, address, strlen(address), length, false);
        else
            to = (char *)memmove(to, quoted, length) + length;
        from = quoted + length;
    }
    *to = '\0';
}
