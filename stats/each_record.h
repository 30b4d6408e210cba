/* Reading every record of a query, and writing what was made of them. Also used by the weir command. */
#ifndef STATS_EACH_RECORD_H
#define STATS_EACH_RECORD_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/query.h>

/* Takes a record, which is valid until it returns. WEIR_OK; WEIR_EOF ends the query early; or a failure, with *error
   filled. */
typedef int weir_record_function(void *self, const weir_record *record, weir_error *error);

/* Calls `each` for the records of a kind that match the filter (may be NULL). WEIR_OK, or the first failure. */
static inline int weir__each_record(weir_reader *reader, weir_record_kind kind, const weir_filter *filter,
                                    weir_record_function *each, void *self, weir_error *error)
{
    weir_query *query;
    const weir_record *record;
    int status = weir_query_begin(reader, kind, filter, &query, error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        status = each(self, record, error);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

static inline int weir__note_record(void *self, const weir_record *record, weir_error *error)
{
    (void)record;
    (void)error;
    *(bool *)self = true;
    return WEIR_EOF;
}

/* Whether any record matches. */
static inline int weir__has_records(weir_reader *reader, weir_record_kind kind, const weir_filter *filter,
                                    bool *found, weir_error *error)
{
    *found = false;
    return weir__each_record(reader, kind, filter, weir__note_record, found, error);
}

/* Whether everything has been written: WEIR_OK, or WEIR_EIO with "WHAT: reason". */
static inline int weir__check_written(FILE *out, const char *what, weir_error *error)
{
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return WEIR_OK;
    int failure = errno ? errno : EIO;
    return weir_error_set(error, WEIR_EIO, -failure, "%s: %s", what, strerror(failure));
}

#endif
