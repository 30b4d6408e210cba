#include <weir/log.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Where lines go. Function and self change together, and a thread that logs may hold the one before: so none is freed. */
typedef struct log_target {
    weir_log_function *function;
    void *self;
    struct log_target *next;
} log_target;

static log_target to_stderr = { .function = log_to_stderr };
static _Atomic(log_target *) all_targets = &to_stderr; /* each pair once, or nearly so */
static _Atomic(log_target *) target = &to_stderr;

static atomic_int max_level = WEIR_LOG_INFO;

void weir_log_set_function(weir_log_function *function, void *self)
{
    if (!function) {
        atomic_store(&target, &to_stderr);
        return;
    }
    log_target *made = atomic_load(&all_targets);
    while (made && (made->function != function || made->self != self))
        made = made->next;
    if (!made) {
        made = malloc(sizeof *made);
        if (!made)
            return;
        *made = (log_target){ function, self, atomic_load(&all_targets) };
        while (!atomic_compare_exchange_weak(&all_targets, &made->next, made))
            continue;
    }
    atomic_store(&target, made);
}

static void put_line(weir_log_level level, const char *line)
{
    const log_target *to = atomic_load(&target);
    to->function(to->self, level, line);
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
