/* The log: one line per call, written to stderr with control characters escaped, unless the program sets its own
   function. */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <stddef.h>
#include <stdint.h>

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_log_level {
    WEIR_LOG_ERROR = 0,
    WEIR_LOG_WARNING = 1,
    WEIR_LOG_INFO = 2, /* the default: this level and all above are written */
    WEIR_LOG_DEBUG = 3,
} weir_log_level;

/* Receives one line without its newline and not escaped: it may contain control characters. Called
   on any thread, several at once, never under a lock of weir. */
typedef void weir_log_function(void *self, weir_log_level level, const char *line);

/* Sets the log function of the whole process; NULL restores stderr. Any thread, at any time. A thread that logs at this
   moment may still call the function before, with its self. */
WEIR_API void weir_log_set_function(weir_log_function *function, void *self);

/*
 * From now on, lines wait in a queue of the process until the program takes them with weir_log_take(). This is for programs that
 * must write their log on a certain thread, such as an interpreter or a notebook. The queue holds max_lines (0 = 1024); further
 * lines are lost, and counted. Call it before any pipeline runs. weir_log_set_function() ends it. Lines that wait then
 * stay in the queue. In a forked child the queue is empty: the parent has these lines.
 */
WEIR_API void weir_log_queue_start(uint32_t max_lines);

/*
 * Takes the oldest line of the queue, without its newline and not escaped. Truncated to size_bytes, including the
 * NUL; 4096 are always enough. *num_lost (may be NULL): lines that were lost since the last line was taken. Any
 * thread. WEIR_OK; WEIR_ETIMEDOUT: there was none within timeout_ns (0 = do not wait; WEIR_FOREVER = wait without
 * limit); or WEIR_EINVAL: size_bytes is 0, or timeout_ns is negative and not WEIR_FOREVER.
 */
WEIR_API int weir_log_take(weir_log_level *level, char *line, size_t size_bytes, uint64_t *num_lost,
                           int64_t timeout_ns);

/* Lines above this level are dropped. Any thread. */
WEIR_API void weir_log_set_level(weir_log_level level);
WEIR_API weir_log_level weir_log_get_level(void);

/* Writes one line. Lines longer than 4095 bytes are truncated. Any thread. */
WEIR_API void weir_log(weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
