#include "tests/fault_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>
#include <uv.h>

#include <weir/log.h>

static struct {
    atomic_bool is_armed;
    atomic_long calls;
    long failing_call; /* from 1 */
    bool stays;        /* all later ones fail, too */
} faults;

bool fault_hits(void)
{
    if (!atomic_load(&faults.is_armed))
        return false;
    long call = atomic_fetch_add(&faults.calls, 1) + 1;
    return call == faults.failing_call || (faults.stays && call > faults.failing_call);
}

void fault_arm(bool is_armed)
{
    atomic_store(&faults.is_armed, is_armed);
}

void fault_choose(long failing_call, bool stays)
{
    atomic_store(&faults.calls, 0);
    faults.failing_call = failing_call;
    faults.stays = stays;
}

static void drop_line(void *self, weir_log_level level, const char *line)
{
    (void)self;
    (void)level;
    (void)line;
}

void fault_drop_log(void)
{
    weir_log_set_function(drop_line, NULL);
}

/* ---- what may fail -------------------------------------------------------------------------------------------- */

WRAP(void *, malloc, (size_t size), (size), NULL)
WRAP(void *, calloc, (size_t count, size_t size), (count, size), NULL)
WRAP(void *, realloc, (void *block, size_t size), (block, size), NULL)
WRAP(int, posix_memalign, (void **block, size_t alignment, size_t size), (block, alignment, size), ENOMEM)
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL)
WRAP(char *, strdup, (const char *text), (text), NULL)
WRAP(char *, strndup, (const char *text, size_t size), (text, size), NULL)
WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL)

#define WRAP_PRINT(function, parameters) \
    int __wrap_##function parameters; \
    int __wrap_##function parameters \
    { \
        va_list arguments; \
        if (fault_hits()) \
            return -1; \
        va_start(arguments, format); \
        int length = vasprintf(text, format, arguments); \
        va_end(arguments); \
        return length; \
    }

WRAP_PRINT(asprintf, (char **text, const char *format, ...))
WRAP_PRINT(__asprintf_chk, (char **text, __attribute__((unused)) int flag, const char *format, ...))

static int with_errno(int code)
{
    errno = code;
    return -1;
}

WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), (with_errno(EMFILE), NULL))
WRAP(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), with_errno(EIO))
WRAP(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), with_errno(EIO))
WRAP(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), with_errno(ENOSPC))
WRAP(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), with_errno(ENOSPC))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list arguments;
    va_start(arguments, flags);
    if (flags & (O_CREAT | __O_TMPFILE))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    return fault_hits() ? with_errno(EMFILE) : __real_open(path, flags, mode);
}

WRAP(int, pthread_create, (pthread_t * thread, const pthread_attr_t *attributes, void *(*main)(void *), void *self),
     (thread, attributes, main, self), EAGAIN)
WRAP(int, uv_thread_create, (uv_thread_t * thread, uv_thread_cb main, void *self), (thread, main, self), UV_EAGAIN)
WRAP(int, uv_mutex_init, (uv_mutex_t * mutex), (mutex), UV_ENOMEM)
WRAP(int, uv_cond_init, (uv_cond_t * condition), (condition), UV_ENOMEM)

WRAP(int, sqlite3_step, (sqlite3_stmt * statement), (statement), SQLITE_IOERR)
WRAP(int, sqlite3_prepare_v2, (sqlite3 * db, const char *sql, int size, sqlite3_stmt **statement, const char **rest),
     (db, sql, size, statement, rest), (*statement = NULL, SQLITE_NOMEM))
WRAP(int, sqlite3_prepare_v3,
     (sqlite3 * db, const char *sql, int size, unsigned flags, sqlite3_stmt **statement, const char **rest),
     (db, sql, size, flags, statement, rest), (*statement = NULL, SQLITE_NOMEM))
WRAP(int, sqlite3_exec,
     (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **), void *self, char **message),
     (db, sql, row, self, message), SQLITE_IOERR)

/* ---- the loop --------------------------------------------------------------------------------------------------- */

enum { RESULT_BYTES = 1 << 20 };

static char result[RESULT_BYTES], expected[RESULT_BYTES];

static int run_with_fault(fault_attempt *attempt, long failing_call, bool stays, weir_error *error)
{
    memset(result, 0, strlen(result) + 1);
    FILE *out = fmemopen(result, sizeof result, "w");
    assert_non_null(out);
    *error = (weir_error){ 0 };
    fault_choose(failing_call, stays);
    fault_arm(true);
    int status = attempt(out, error);
    fault_arm(false);
    fclose(out);
    return status;
}

static void check_outcome(const char *name, int status, const weir_error *error, long failing_call, bool stays)
{
    const char *later = stays ? " and later ones" : "";
    size_t same = 0;
    while (result[same] && result[same] == expected[same])
        same++;
    if (status == WEIR_OK && result[same] != expected[same])
        fail_msg("%s: call %ld%s: WEIR_OK, but the result ends with:\n%.400s\n-- instead of:\n%.400s", name,
                 failing_call, later, &result[same], &expected[same]);
    if (status != WEIR_OK && (error->status != status || !error->message[0]))
        fail_msg("%s: call %ld%s: %s, the error says %s: %s", name, failing_call, later, weir_status_name(status),
                 weir_status_name(error->status), error->message);
}

void fault_loop(const char *name, fault_attempt *attempt)
{
    weir_error error;
    const char *most = getenv("WEIR_FAULTS");
    int status = run_with_fault(attempt, 0, false, &error);
    if (status == WEIR_EUNSUPPORTED) {
        fprintf(stderr, "skipped: %s: %s\n", name, error.message);
        return;
    }
    if (status != WEIR_OK)
        fail_msg("%s: without a fault: %s", name, error.message);
    strcpy(expected, result);
    long num_calls = atomic_load(&faults.calls), num_faults = most ? atol(most) : 8;
    assert_true(num_calls > 0); /* else the linker has not put the functions in place */
    long num_errors = 0;
    num_faults = num_calls < num_faults ? num_calls : num_faults;
    for (long i = 0; i < 2 * num_faults; i++) {
        long failing_call = 1 + i / 2 * num_calls / num_faults;
        status = run_with_fault(attempt, failing_call, i % 2, &error);
        check_outcome(name, status, &error, failing_call, i % 2);
        num_errors += status != WEIR_OK;
    }
    if (most)
        fprintf(stderr, "%s: %ld faults, %ld errors\n", name, 2 * num_faults, num_errors);
}
