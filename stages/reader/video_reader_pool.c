/*
 * A reader of the pool is in use (list `used`) or idle (list `idle`, the most recently used first). take() moves an
 * idle one of that path to `used`, or opens one. give_back() moves it to `idle`, or frees it.
 *
 * The mutex guards the lists and the figures. It is not held while a file is opened, looked at, or closed. Whoever
 * does that has taken the reader out of both lists, or put it into `used`, so that it has one user. num_used also
 * counts those being opened.
 *
 * A kept reader answers from what it has read. So the file must be the same when the reader is opened, when it is
 * given back, and when it is taken. `opened` says which file was opened. look() opens the path again and does not use
 * stat(). A stat() of a network file system may hang and show an old state, whereas an opening can be interrupted.
 */
#include <weir/video_reader_pool.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <libavutil/error.h>

#include <weir/clock.h>
#include <weir/struct_copy.h>

#include "common/unix_clock.h"
#include "stages/reader/kept_reader.h"
#include "stages/reader/remote_reader.h"
#include "stages/reader/video_config.h"

typedef struct pooled {
    struct pooled *next;
    weir_video_reader *reader;
    uint8_t *table;     /* a copy of the source's packets */
    bool may_be_kept;   /* what was opened has an identity: */
    struct stat opened; /* … this one */
    uint64_t bytes;     /* while it is idle */
} pooled;

struct weir_video_reader_pool {
    /* immutable */
    uint32_t max_open;
    uint64_t max_bytes;
    weir_video_config video;

    pthread_mutex_t mutex;
    /* guarded by it */
    pooled *used;
    pooled *idle; /* the most recently used first */
    weir_video_reader_pool_figures figures;
};

static int fail_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
}

/* ---- readers that are in no list ------------------------------------------------------------------------------ */

static void free_pooled(pooled *one)
{
    if (!one)
        return;
    weir_video_reader_free(one->reader);
    free(one->table);
    free(one);
}

static void free_all(pooled *first)
{
    while (first) {
        pooled *next = first->next;
        free_pooled(first);
        first = next;
    }
}

static int64_t modified_ns(const struct stat *file)
{
    return (int64_t)file->st_mtim.tv_sec * WEIR_SECOND + file->st_mtim.tv_nsec;
}

/* The coarsest unit in which file systems store times (FAT). A change within it after the opening may not show. */
static bool is_settled(const struct stat *file, int64_t opened_ns)
{
    return modified_ns(file) + 2 * WEIR_SECOND <= opened_ns;
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

/* Is the file that the path names the one that was opened? */
static bool is_current(const pooled *one)
{
    struct stat open, named;
    return one->may_be_kept && weir__video_reader_file(one->reader, &open) && is_same_file(&open, &one->opened) &&
           weir__video_reader_look(one->reader, &named) && is_same_file(&named, &one->opened);
}

static int copy_table(pooled *one, weir_video_source *source, weir_error *error)
{
    if (!source->packets || source->packets_bytes == 0)
        return WEIR_OK;
    one->table = malloc(source->packets_bytes);
    if (!one->table)
        return fail_memory(error);
    memcpy(one->table, source->packets, source->packets_bytes);
    source->packets = one->table;
    return WEIR_OK;
}

static int open_reader(const weir_video_reader_pool *pool, pooled *one, const weir_video_source *source,
                       weir_error *error)
{
    int64_t opened_ns = unix_clock_ns();
    int rc = weir_video_reader_open(&one->reader, source, sizeof *source, &pool->video, sizeof pool->video, error);
    one->may_be_kept =
        rc == WEIR_OK && weir__video_reader_file(one->reader, &one->opened) && is_settled(&one->opened, opened_ns);
    one->bytes = 0;
    return rc;
}

/* ---- the lists: with the mutex -------------------------------------------------------------------------------- */

static void unlink_at(pooled **at)
{
    *at = (*at)->next;
}

static void take_from_idle(weir_video_reader_pool *pool, pooled **at)
{
    pool->figures.num_idle--;
    pool->figures.idle_bytes -= (*at)->bytes;
    unlink_at(at);
}

static pooled *take_idle(weir_video_reader_pool *pool, const char *path)
{
    for (pooled **at = &pool->idle; *at; at = &(*at)->next) {
        pooled *one = *at;
        if (strcmp(weir__video_reader_path(one->reader), path) != 0)
            continue;
        take_from_idle(pool, at);
        return one;
    }
    return NULL;
}

static pooled *take_used(weir_video_reader_pool *pool, const weir_video_reader *reader)
{
    for (pooled **at = &pool->used; *at; at = &(*at)->next) {
        pooled *one = *at;
        if (one->reader != reader)
            continue;
        unlink_at(at);
        return one;
    }
    return NULL;
}

static void put_used(weir_video_reader_pool *pool, pooled *one)
{
    one->next = pool->used;
    pool->used = one;
}

/* Returns those to be freed: the least recently used, until the others are within the limits. */
static pooled *take_surplus(weir_video_reader_pool *pool)
{
    uint64_t num_open = pool->figures.num_used;
    uint64_t bytes = 0;
    pooled **at = &pool->idle;
    while (*at && num_open < pool->max_open && bytes + (*at)->bytes <= pool->max_bytes) {
        num_open++;
        bytes += (*at)->bytes;
        at = &(*at)->next;
    }
    pooled *surplus = *at;
    *at = NULL;
    for (const pooled *one = surplus; one; one = one->next) {
        pool->figures.num_idle--;
        pool->figures.idle_bytes -= one->bytes;
        pool->figures.num_closed++;
    }
    return surplus;
}

/* ---- taking and giving back ----------------------------------------------------------------------------------- */

/* An idle reader of the path that can be used, or NULL. It counts as one in use; if there is none, the one to be opened does. */
static pooled *reuse(weir_video_reader_pool *pool, const weir_video_source *source)
{
    pthread_mutex_lock(&pool->mutex);
    pool->figures.num_taken++;
    pool->figures.num_used++;
    pooled *one = take_idle(pool, source->path);
    pthread_mutex_unlock(&pool->mutex);
    if (!one)
        return NULL;
    weir__video_reader_bind(one->reader, source->should_stop, source->self);
    bool is_stopped = source->should_stop && source->should_stop(source->self); /* then opening fails as ever */
    bool is_usable = !is_stopped && is_current(one);
    pthread_mutex_lock(&pool->mutex);
    pool->figures.num_reused += is_usable;
    pool->figures.num_replaced += !is_usable && !is_stopped;
    if (is_usable)
        put_used(pool, one);
    pthread_mutex_unlock(&pool->mutex);
    if (is_usable)
        return one;
    free_pooled(one);
    return NULL;
}

static void close_surplus(weir_video_reader_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pooled *surplus = take_surplus(pool);
    pthread_mutex_unlock(&pool->mutex);
    free_all(surplus);
}

/* Idle readers must not make an opening fail. Can it be tried again? */
static bool make_room(weir_video_reader_pool *pool, const weir_error *error)
{
    int code = error->library_code;
    pthread_mutex_lock(&pool->mutex);
    bool has_idle = pool->idle;
    pthread_mutex_unlock(&pool->mutex);
    if (!has_idle || (code != AVERROR(EMFILE) && code != AVERROR(ENFILE) && code != AVERROR(ENOMEM)))
        return false;
    weir_video_reader_pool_drop(pool);
    return true;
}

static int open_new(weir_video_reader_pool *pool, weir_video_source *source, pooled *one, weir_error *error)
{
    weir_error failure = { 0 };
    close_surplus(pool);
    int rc = copy_table(one, source, error);
    if (rc != WEIR_OK)
        return rc;
    rc = open_reader(pool, one, source, &failure);
    if (rc != WEIR_OK && make_room(pool, &failure)) {
        failure = (weir_error){ 0 };
        rc = open_reader(pool, one, source, &failure);
    }
    if (rc != WEIR_OK && error)
        *error = failure;
    return rc;
}

int weir_video_reader_pool_take(weir_video_reader_pool *pool, const weir_video_source *source, size_t source_size,
                                weir_video_reader **reader, weir_error *error)
{
    weir_video_source own;
    if (reader)
        *reader = NULL;
    if (!pool || !source || !source_size || !reader)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "weir_video_reader_pool_take(): pool, source, source_size or reader is missing");
    int rc = weir_struct_copy(&own, sizeof own, source, source_size, "weir_video_source", error);
    if (rc != WEIR_OK)
        return rc;
    if (!own.path || own.bytes || own.functions)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "a pool of readers opens paths: set path, not bytes or functions");
    pooled *one = reuse(pool, &own);
    if (one) {
        *reader = one->reader;
        return WEIR_OK;
    }
    one = calloc(1, sizeof *one);
    rc = one ? open_new(pool, &own, one, error) : fail_memory(error);
    pthread_mutex_lock(&pool->mutex);
    if (rc == WEIR_OK)
        put_used(pool, one);
    else
        pool->figures.num_used--;
    pthread_mutex_unlock(&pool->mutex);
    if (rc == WEIR_OK)
        *reader = one->reader;
    else
        free_pooled(one);
    return rc;
}

void weir_video_reader_pool_give_back(weir_video_reader_pool *pool, weir_video_reader *reader)
{
    if (!pool || !reader)
        return;
    pthread_mutex_lock(&pool->mutex);
    pooled *one = take_used(pool, reader);
    pthread_mutex_unlock(&pool->mutex);
    if (!one)
        return;
    bool is_kept = is_current(one) && weir__video_reader_rest(reader);
    if (is_kept) {
        weir__video_reader_bind(reader, NULL, NULL);
        one->bytes = weir__video_reader_bytes(reader);
    } else {
        free_pooled(one);
    }
    pthread_mutex_lock(&pool->mutex);
    pool->figures.num_used--;
    if (is_kept) {
        one->next = pool->idle;
        pool->idle = one;
        pool->figures.num_idle++;
        pool->figures.idle_bytes += one->bytes;
    }
    pooled *surplus = take_surplus(pool);
    pthread_mutex_unlock(&pool->mutex);
    free_all(surplus);
}

void weir_video_reader_pool_drop(weir_video_reader_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pooled *all = pool->idle;
    pool->idle = NULL;
    pool->figures.num_closed += pool->figures.num_idle;
    pool->figures.num_idle = 0;
    pool->figures.idle_bytes = 0;
    pthread_mutex_unlock(&pool->mutex);
    free_all(all);
}

int weir_video_reader_pool_figures_get(weir_video_reader_pool *pool, weir_video_reader_pool_figures *figures,
                                       size_t figures_size)
{
    if (!pool || !figures)
        return WEIR_EINVAL;
    pthread_mutex_lock(&pool->mutex);
    weir_video_reader_pool_figures now = pool->figures;
    pthread_mutex_unlock(&pool->mutex);
    return weir_struct_fill(figures, figures_size, &now, sizeof now);
}

/* ---- the pool ------------------------------------------------------------------------------------------------- */

static uint32_t default_max_open(void)
{
    enum { MOST = 256, SHARE = 4 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / SHARE > MOST)
        return MOST;
    return limit.rlim_cur < SHARE ? 1 : (uint32_t)(limit.rlim_cur / SHARE);
}

int weir_video_reader_pool_new(weir_video_reader_pool **made, const weir_video_reader_pool_config *config,
                               size_t config_size, weir_error *error)
{
    weir_video_reader_pool_config given;
    if (made)
        *made = NULL;
    if (!made || (config && config_size == 0))
        return weir_error_set(error, WEIR_EINVAL, 0, "weir_video_reader_pool_new(): pool or config_size is missing");
    int rc = weir_struct_copy(&given, sizeof given, config, config_size, "weir_video_reader_pool_config", error);
    if (rc != WEIR_OK)
        return rc;
    weir_video_reader_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return fail_memory(error);
    rc = weir__video_reader_config(&pool->video, given.video, given.video_size, error);
    if (rc != WEIR_OK) {
        free(pool);
        return rc;
    }
    pool->max_open = given.max_open ? given.max_open : default_max_open();
    pool->max_bytes = given.max_bytes ? given.max_bytes : UINT64_C(256) << 20;
    pthread_mutex_init(&pool->mutex, NULL);
    *made = pool;
    return WEIR_OK;
}

void weir_video_reader_pool_free(weir_video_reader_pool *pool)
{
    if (!pool)
        return;
    free_all(pool->idle);
    weir__video_config_free(&pool->video);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}
