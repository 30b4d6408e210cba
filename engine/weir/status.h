/*
 * Results: one table makes the enum, the names and the texts.
 *
 * One rule for NULL holds for all functions of weir. Functions that free accept it. All others return WEIR_EINVAL also if
 * an argument that may not be NULL is NULL; comments say which may be. A function without a status returns an empty value
 * then: NULL, 0, false or a zeroed struct.
 */
#ifndef WEIR_STATUS_H
#define WEIR_STATUS_H

#include <stddef.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, text). Values never change meaning between versions. */
#define WEIR_STATUS_TABLE(X) \
    X(OK, 0, "success") \
    X(SKIP, 1, "no result") \
    X(MORE, 2, "more to come from the same input") \
    X(PENDING, 3, "the result comes later") \
    X(EOF, 4, "end of stream") \
    X(EPOCH, 5, "end of an epoch") \
    X(KEPT, 6, "kept for a later result") \
    X(EINVAL, -1, "invalid argument") \
    X(ENOMEM, -2, "out of memory") \
    X(EFAILED, -3, "the pipeline failed") \
    X(ESTOPPED, -4, "stopped") \
    X(ETIMEDOUT, -5, "timed out") \
    X(ENOTFOUND, -6, "not found") \
    X(EACCESS, -7, "permission denied") \
    X(EIO, -8, "input/output error") \
    X(EDATA, -9, "damaged or unusable data") \
    X(EUNSUPPORTED, -10, "not supported") \
    X(ELIMIT, -11, "over a limit") \
    X(EHOOK, -12, "a hook failed") \
    X(ESYSTEM, -13, "the system refused a resource") \
    X(EDATABASE, -14, "database error") \
    X(EBUSY, -15, "in use") \
    X(EEXCEPTION, -16, "C++ exception") \
    X(EFORKED, -17, "the pipeline belongs to the parent process: build one after fork()") \
    X(ERANGE, -18, "out of range")

typedef enum weir_status {
#define WEIR_STATUS_ENUM(name, value, text) WEIR_##name = (value),
    WEIR_STATUS_TABLE(WEIR_STATUS_ENUM)
#undef WEIR_STATUS_ENUM
} weir_status;

/* "WEIR_EINVAL", or "WEIR_?" for an unknown number. Any thread; static text. */
WEIR_API const char *weir_status_name(int status);

/* "invalid argument". Any thread; static text. */
WEIR_API const char *weir_status_text(int status);

/*
 * What went wrong, for people and for programs. A zeroed struct means no error. Functions keep an error that is already
 * there: zero the struct before you use it again. Passed by value: nothing to free.
 */
typedef struct weir_error {
    int status;        /* weir_status, negative */
    int library_code;  /* native code of the library (AVERROR, UV_, SQLITE_, -errno); 0 = none */
    char stage[128];   /* the stage's name in the statistics; "" = none */
    char label[1024];  /* the item's label, its end if it is too long; "" = none */
    char message[512]; /* what happened and what to do, one line, no newline */
} weir_error;

/*
 * Sets *error (may be NULL) unless it already holds an error: the first one is kept. Returns status, so that a
 * function can end with `return weir_error_set(…)`.
 */
WEIR_API int weir_error_set(weir_error *error, int status, int library_code, const char *format, ...)
    WEIR_PRINTF(4, 5);
#ifdef __clang_analyzer__ /* which does not see that it returns the status */
#define weir_error_set(error, status, library_code, ...) \
    ((weir_error_set)(error, status, library_code, __VA_ARGS__), (status))
#endif

/*
 * Formats the error as one readable line: "0:1:load: a.mp4: no video in it (WEIR_EDATA)". What is empty is left out;
 * no error gives an empty line. Truncated to size bytes including the NUL; WEIR_ERROR_LINE bytes are always enough.
 * Any thread. Returns the length of the complete line, or WEIR_EINVAL.
 */
WEIR_API int weir_error_format(const weir_error *error, char *line, size_t size);
#define WEIR_ERROR_LINE 1792

#ifdef __cplusplus
}
#endif

#endif
