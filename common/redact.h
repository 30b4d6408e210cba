/* Hides the secrets of URLs. */
#ifndef COMMON_REDACT_H
#define COMMON_REDACT_H

/*
 * Hides the secrets of URLs in a text: what is between "://" and "@", and the values of parameters that give access
 * ("?X-Amz-Signature=***"), such as signatures, tokens, keys and passwords (the list is in docs/guarantees.md).
 * Names are compared as a whole, without regard to case, "-", "_" and percent-encoding; parameters are separated by "?",
 * "&", ";" or "#". Other text stays unchanged.
 *
 * weir does this to labels, error messages, log lines, events and the recorded command line. Changes the text in place, which gets no longer; NULL is fine. Any thread.
 */
void weir__text_redact(char *text);

#endif
