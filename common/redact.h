/*
 * Hides the secrets of URLs. Pure functions: no state, no allocation, no locale. Any thread; NULL is fine.
 *
 * This is the only place that knows what a URL is and what in it is secret. Everything that leaves the program (labels,
 * messages, events, command lines, names of files) passes one of these functions first, before anything is escaped.
 */
#ifndef COMMON_REDACT_H
#define COMMON_REDACT_H

#include <stdbool.h>
#include <stddef.h>

/* Is it opened as a URL, and not as the path of a file? "http://h/x", also "http:h/x" and "file:x"; not "a:b.mp4", "/x://y". */
bool weir__is_url(const char *address);

/*
 * Hides the secrets of one address, which may contain any character. Addresses of local files stay as they are, whatever
 * they look like ("a?token=b.mp4", "x@y.mp4"). What stands before a URL ("--option=http://…") stays, too. Changes the
 * text in place, which gets no longer.
 */
void weir__address_redact(char *address);

/*
 * The same for a text that may quote addresses. Where one ends is not known: at a blank, or at the quote that it began
 * with. Parameters are also hidden where only a part of the URL is quoted ("/x?token=***").
 */
void weir__text_redact(char *text);

/*
 * The same for a text about these addresses. The text may quote an address (whole, or cut at the end of the text), or
 * one of its secrets. Each quotation is hidden as weir__address_redact() does it. A local address stays readable in
 * the text.
 */
void weir__text_redact_about(char *text, const char *const *addresses, size_t num_addresses);

/* -- for identities (identity.c) -- */

typedef enum weir_secret_kind {
    WEIR__SECRET_NONE = 0,
    WEIR__SECRET_USER,   /* what is between "://" and "@" */
    WEIR__SECRET_ACCESS, /* the value of a parameter that gives access: another value leads to the same object */
    WEIR__SECRET_OBJECT, /* a value that may also say which object is meant ("?key=clips/1.mp4") */
} weir_secret_kind;

typedef struct weir_secret {
    weir_secret_kind kind;
    size_t at, length; /* in bytes */
    size_t name_at;    /* where the name of the parameter begins */
    bool is_azure;     /* the parameter is "sig" */
} weir_secret;

/* Calls `take` for each secret of an address, from left to right. */
void weir__secrets_each(const char *address, void (*take)(void *self, const weir_secret *secret), void *self);

#endif
