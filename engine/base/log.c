#include <weir/log.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/text_escape.h"
#include "engine/base/message_text.h"

enum { MAX_LINE = 4096 };

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static void log_to_stderr(void *self, weir_log_level level, const char *line)
{
    (void)self;
    char escaped[4 * MAX_LINE]; /* file names may contain newlines and terminal control sequences */
    weir__text_escape(line, escaped, sizeof escaped);
    /* a single call: several threads may log at the same time */
    fprintf(stderr, "weir: %s: %s\n", level_names[level], escaped);
}

/* Where lines go. `lock` guards log_function and log_self. It is held during fork(), and no other lock is taken under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weir_log_function *log_function = log_to_stderr;
static void *log_self;

static atomic_int max_level = WEIR_LOG_INFO;

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(take_lock, give_lock, give_lock);
}

static void begin_access(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    take_lock();
}

void weir_log_set_function(weir_log_function *function, void *self)
{
    begin_access();
    log_function = function ? function : log_to_stderr;
    log_self = self;
    give_lock();
}

static void put_line(weir_log_level level, const char *line)
{
    begin_access();
    weir_log_function *function = log_function;
    void *self = log_self;
    give_lock();
    function(self, level, line);
}

void weir_log_set_level(weir_log_level level)
{
    atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

weir_log_level weir_log_get_level(void)
{
    return (weir_log_level)atomic_load_explicit(&max_level, memory_order_relaxed);
}

void weir_log(weir_log_level level, const char *format, ...)
{
    if (!format)
        return;
    if (level > weir_log_get_level())
        return;

    char line[MAX_LINE];
    va_list arguments;
    va_start(arguments, format);
    weir__message_format(line, sizeof line, NULL, format, arguments);
    va_end(arguments);
    put_line(level, line);
}

void weir__log_shown(weir_log_level level, const char *format, ...)
{
    if (level > weir_log_get_level())
        return;
    char line[MAX_LINE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    put_line(level, line);
}
