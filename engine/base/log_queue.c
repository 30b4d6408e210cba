/*
 * Lines of the log that wait for the program. They are allocated and freed without the lock, under which no other lock is
 * taken. A line that finds no room or no memory is lost, and counted: the first lines say what has caused the later ones.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/log.h>
#include <weir/status.h>

enum { DEFAULT_LINES = 1024 };

typedef struct queued_line {
    struct queued_line *next;
    weir_log_level level;
    char text[];
} queued_line;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER; /* a line was added; with lock */
/* guarded by lock */
static queued_line *first, **end = &first;
static uint32_t num_lines, most_lines;
static uint64_t lost;

/* NULL = out of memory. */
static queued_line *make_line(weir_log_level level, const char *text)
{
    size_t size_bytes = strlen(text) + 1;
    queued_line *line = malloc(sizeof *line + size_bytes);
    if (!line)
        return NULL;
    line->next = NULL;
    line->level = level;
    memcpy(line->text, text, size_bytes);
    return line;
}

static void add_line(void *self, weir_log_level level, const char *text)
{
    (void)self;
    queued_line *line = make_line(level, text);
    pthread_mutex_lock(&lock);
    bool has_room = line && num_lines < most_lines;
    if (has_room) {
        *end = line;
        end = &line->next;
        num_lines++;
        pthread_cond_signal(&not_empty);
    } else {
        lost++;
    }
    pthread_mutex_unlock(&lock);
    if (!has_room)
        free(line);
}

/* Held during fork(), so that the child gets it free. */
static void lock_queue(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_queue(void)
{
    pthread_mutex_unlock(&lock);
}

/* No thread waits in the child: what the parent's threads left in the condition variable must not count. */
static void empty_queue(void)
{
    for (queued_line *line = first, *next; line; line = next) {
        next = line->next;
        free(line);
    }
    first = NULL;
    end = &first;
    num_lines = 0;
    lost = 0;
    not_empty = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    unlock_queue();
}

static void watch_forks(void)
{
    pthread_atfork(lock_queue, unlock_queue, empty_queue);
}

void weir_log_queue_start(uint32_t max_lines)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    most_lines = max_lines ? max_lines : DEFAULT_LINES;
    pthread_mutex_unlock(&lock);
    weir_log_set_function(add_line, NULL);
}

/* Waits for a line, with the lock released meanwhile. NULL = none came before until_ns. 0 = it does not wait at all: a
   wait whose time has passed already lets the kernel run another thread. */
static queued_line *take_line_locked(int64_t until_ns)
{
    struct timespec until = { until_ns / WEIR_SECOND, until_ns % WEIR_SECOND };
    int code = until_ns ? 0 : ETIMEDOUT;
    while (!first && code != ETIMEDOUT)
        code = pthread_cond_clockwait(&not_empty, &lock, CLOCK_MONOTONIC, &until);
    queued_line *line = first;
    if (!line)
        return NULL;
    first = line->next;
    if (!first)
        end = &first;
    num_lines--;
    return line;
}

int weir_log_take(weir_log_level *level, char *line, size_t size_bytes, uint64_t *num_lost, int64_t timeout_ns)
{
    if (!level || !line || size_bytes == 0 || (timeout_ns < 0 && timeout_ns != WEIR_FOREVER))
        return WEIR_EINVAL;
    int64_t now_ns = weir_clock_ns();
    bool is_endless = timeout_ns == WEIR_FOREVER || timeout_ns > INT64_MAX - now_ns;
    pthread_mutex_lock(&lock);
    queued_line *taken = take_line_locked(timeout_ns == 0 ? 0 : is_endless ? INT64_MAX : now_ns + timeout_ns);
    if (taken && num_lost)
        *num_lost = lost;
    if (taken)
        lost = 0;
    pthread_mutex_unlock(&lock);
    if (!taken)
        return WEIR_ETIMEDOUT;
    *level = taken->level;
    snprintf(line, size_bytes, "%s", taken->text);
    free(taken);
    return WEIR_OK;
}
