/* The log: one line per call, written to stderr with control characters escaped, unless the program sets its own
   function. */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

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

/* Sets the log function of the whole process; NULL restores stderr. Call it before any pipeline runs. */
WEIR_API void weir_log_set_function(weir_log_function *function, void *self);

/* Lines above this level are dropped. Any thread. */
WEIR_API void weir_log_set_level(weir_log_level level);
WEIR_API weir_log_level weir_log_get_level(void);

/* Writes one line. Lines longer than 4095 bytes are truncated. Any thread. */
WEIR_API void weir_log(weir_log_level level, const char *format, ...) WEIR_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif

#endif
