/* Hides the secrets of URLs. A secret is replaced by at most as many bytes, so the text is changed in place. */
#include "redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_NAME = 32 };

/* Characters that end a URL in a text. */
#define URL_ENDS " \t\r\n\"<>"

/*
 * Parameters whose values give access, in lower case and without "-", "_", "." and brackets:
 *   Amazon S3     Signature Version 4 ("Authenticating requests: using query parameters") and 2; S3 Express sessions
 *   Google Cloud  V4 and V2 signed URLs; Media CDN and Cloud CDN
 *   Azure         shared access signatures ("Create a service SAS": sig)
 *   CloudFront    signed URLs (Signature, Key-Pair-Id); Akamai (hdnts, hdnea), Alibaba (auth_key, OSS), Tencent COS (q-…)
 *   OAuth         RFC 6749, 6750, 7521, 7636, 5849
 * and the usual names of tokens, keys, passwords and sessions.
 */
static const char *const secret_names[] = {
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
    "signature",
    "sig",
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
    "clientsecret",
    "clientassertion",
    "assertion",
    "code",
    "codeverifier",
    "privatetoken",
    "jobtoken",
    "deploytoken",
    "token",
    "authtoken",
    "authorization",
    "auth",
    "bearer",
    "jwt",
    "hmac",
    "key",
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "secret",
    "subscriptionkey",
    "password",
    "passwd",
    "passphrase",
    "pass",
    "pwd",
    "credential",
    "credentials",
    "session",
    "sessionid",
    "sessiontoken",
    "sessionkey",
    "sid",
    "ticket",
};

static bool is_secret_name(const char *name)
{
    for (size_t i = 0; i < sizeof secret_names / sizeof *secret_names; i++)
        if (strcmp(name, secret_names[i]) == 0)
            return true;
    return false;
}

/* The character at `text`, percent-decoded, and its length. */
static int decode_character(const char *text, size_t *length)
{
    bool is_encoded = text[0] == '%' && isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]);
    *length = is_encoded ? 3 : 1;
    return is_encoded ? (int)strtoul((char[]){ text[1], text[2], '\0' }, NULL, 16) : (unsigned char)text[0];
}

/* The length of "?token=", or of "%3Ftoken%3D"; 0 = no such parameter begins here. */
static size_t secret_name_length(const char *text)
{
    char name[MAX_NAME] = "";
    size_t at = 0, length = 0, width;
    int character = decode_character(text, &width);
    if (character == '\0' || !strchr("?&;#", character))
        return 0;
    for (at = width; (character = decode_character(text + at, &width)) != '='; at += width) {
        if (character == '[' && decode_character(text + at + width, &(size_t){ 0 }) != ']')
            length = 0; /* "user[password]" */
        if (character != '\0' && strchr("-_.[]", character))
            continue;
        if (!isalnum(character) || length == sizeof name - 1)
            return 0;
        name[length++] = (char)tolower(character);
    }
    return is_secret_name(name) ? at + width : 0;
}

/* Without the punctuation of the sentence around it. */
static size_t trim_end(const char *text, size_t length)
{
    while (length > 0 && strchr(":,.)'", text[length - 1]))
        length--;
    return length;
}

/* A semicolon ends a value only if another parameter follows. */
static size_t value_length(const char *value)
{
    size_t length = strcspn(value, URL_ENDS "&#;");
    while (value[length] == ';' && value[length + 1 + strcspn(value + length + 1, URL_ENDS "&#;=")] != '=')
        length += 1 + strcspn(value + length + 1, URL_ENDS "&#;");
    return trim_end(value, length);
}

/* The length of the user name and password at the start of the authority, without the "@"; 0 = none. A password that is
   not encoded may contain a slash, and the text may have been cut before the "@". */
static size_t userinfo_length(const char *authority)
{
    size_t length = strcspn(authority, URL_ENDS "/?#");
    const char *at = memrchr(authority, '@', length);
    if (at)
        return (size_t)(at - authority);
    length = trim_end(authority, length);
    const char *port = *authority == '[' ? NULL : memchr(authority, ':', length);
    if (!port || port + 1 + strspn(port + 1, "0123456789") >= authority + length)
        return 0;
    at = memrchr(authority, '@', strcspn(authority, URL_ENDS));
    return at ? (size_t)(at - authority) : length;
}

/* FFmpeg opens "http:host/" and "http:/host/", too. */
static bool ends_with_scheme(const char *text, size_t length)
{
    static const char *const schemes[] = { "http", "https", "ftp", "sftp", "rtsp", "rtsps", "rtmp", "rtmps" };
    size_t begin = length;
    while (begin > 0 && isalpha((unsigned char)text[begin - 1]))
        begin--;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strlen(schemes[i]) == length - begin && strncasecmp(text + begin, schemes[i], length - begin) == 0)
            return true;
    return false;
}

/* The same after "%3A%2F%2F" in a URL that is percent-encoded in another one; without the "%40". */
static size_t encoded_userinfo_length(const char *authority)
{
    size_t found = 0, width;
    for (size_t at = 0; !strchr(URL_ENDS "&#", authority[at]); at += width) {
        int character = decode_character(authority + at, &width);
        if (character == '/' || character == '?')
            break;
        if (character == '@')
            found = at;
    }
    return found;
}

void weir__text_redact(char *text)
{
    if (!text)
        return;
    char *to = text;
    for (const char *from = text; *from;) {
        size_t kept = strcspn(from, ":?&;#%"), secret = 0;
        size_t name = from[kept] ? secret_name_length(from + kept) : 0;
        if (strncmp(from + kept, "://", 3) == 0)
            secret = userinfo_length(from + (kept += 3));
        else if (strncasecmp(from + kept, "%3A%2F%2F", 9) == 0)
            secret = encoded_userinfo_length(from + (kept += 9));
        else if (from[kept] == ':' && ends_with_scheme(from, kept)) {
            kept += from[kept + 1] == '/' ? 2 : 1;
            secret = strcspn(from + kept, URL_ENDS "/?#@");
            secret = from[kept + secret] == '@' ? userinfo_length(from + kept) : 0;
        } else if (name > 0)
            secret = value_length(from + (kept += name));
        else
            kept += from[kept] != '\0';
        memmove(to, from, kept);
        to += kept;
        from += kept;
        for (size_t i = 0; i < secret && i < 3; i++)
            *to++ = '*';
        from += secret;
    }
    *to = '\0';
}
