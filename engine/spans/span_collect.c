/* From the threads to the sums of the process and to the laps of the pipelines. See spans.h. */
#include <pthread.h>
#include <stdlib.h>

#include "outbox.h"
#include "spans.h"
#include "taken_lap.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

/* guarded by registry */
span_thread *weir__span_threads;
static weir_span_store *stores; /* of running pipelines, oldest first */
static weir_span_store process; /* the sums for weir_span_dump() */

static void free_thread(span_thread *thread)
{
    for (size_t id = 0; id < WEIR_SPAN_MAX_NAMES; id++)
        free(thread->cells[id]);
    free(thread);
}

static void free_store(weir_span_store *store)
{
    for (size_t id = 0; store && id < WEIR_SPAN_MAX_NAMES; id++)
        free(store->sums[id]);
    free(store);
}

/* ---- fork --------------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&registry);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&registry);
}

/* The other threads and the pipelines are only in the parent. */
static void begin_child(void)
{
    span_thread *own = weir__span_thread_of_child();
    for (span_thread *thread = weir__span_threads, *next; thread; thread = next) {
        next = thread->next;
        if (thread != own)
            free_thread(thread);
    }
    weir__span_threads = own;
    if (own) {
        own->next = NULL;
        own->link = &weir__span_threads;
    }
    for (weir_span_store *store = stores, *next; store; store = next) {
        next = store->next;
        free_store(store);
    }
    stores = NULL;
    weir__span_trace_reset_child();
    weir__counters_reset_child();
    unlock_after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, unlock_after_fork, begin_child);
}

void weir__spans_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&registry);
}

void weir__spans_unlock(void)
{
    pthread_mutex_unlock(&registry);
}

/* ---- collecting --------------------------------------------------------------------------------------------- */

/* NULL = out of memory. */
static span_sum *sum_of(weir_span_store *store, uint32_t id)
{
    span_sum **sum = &store->sums[id];
    if (!*sum && (*sum = calloc(1, sizeof **sum)))
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &(*sum)->metrics);
    return *sum;
}

static void add_metrics(span_sum *sum, const weir_span_metrics *metrics, const weir_live_histogram *times)
{
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &sum->metrics, metrics);
    weir__live_histogram_add_to(&sum->times, times);
}

/* The store of a thread: of its pipeline, or of the oldest one. NULL = none runs. */
static weir_span_store *store_of(const weir_pipeline *pipeline)
{
    for (weir_span_store *store = stores; store; store = store->next)
        if (store->pipeline == pipeline)
            return store;
    return stores;
}

static weir_span_store *find_store(const weir_pipeline *pipeline)
{
    weir_span_store *store = store_of(pipeline);
    return store && store->pipeline == pipeline ? store : NULL;
}

/* Without memory, what the cell holds stays there. */
static void collect_cell(weir_span_store *store, span_cell *cell, uint32_t id)
{
    if (!cell->count || !sum_of(&process, id) || (store && !sum_of(store, id)))
        return;
    weir_span_metrics metrics = { cell->count, cell->total_ns, cell->min_ns, cell->max_ns, NULL };
    add_metrics(process.sums[id], &metrics, &cell->times);
    if (store)
        add_metrics(store->sums[id], &metrics, &cell->times);
    *cell = (span_cell){ .min_ns = INT64_MAX };
}

static void collect_thread(span_thread *thread)
{
    uint32_t count;
    weir_span_store *store = store_of(thread->pipeline);
    weir__span_names(&count);
    for (uint32_t id = 0; id < count; id++) {
        span_lock(thread);
        if (thread->cells[id])
            collect_cell(store, thread->cells[id], id);
        span_unlock(thread);
    }
}

static void collect_all(void)
{
    for (span_thread *thread = weir__span_threads; thread; thread = thread->next)
        collect_thread(thread);
}

void weir__span_thread_add(span_thread *thread)
{
    weir__spans_lock();
    thread->next = weir__span_threads;
    thread->link = &weir__span_threads;
    if (weir__span_threads)
        weir__span_threads->link = &thread->next;
    weir__span_threads = thread;
    weir__spans_unlock();
}

void weir__span_thread_remove(span_thread *thread)
{
    weir__spans_lock();
    collect_thread(thread);
    *thread->link = thread->next;
    if (thread->next)
        thread->next->link = thread->link;
    weir__spans_unlock();
    free_thread(thread);
}

/* ---- the process -------------------------------------------------------------------------------------------- */

void weir__span_totals_visit(void (*each)(void *self, const weir_span_name *name, const void *metrics), void *self,
                             bool reset)
{
    uint32_t count;
    weir__spans_lock();
    collect_all();
    weir_span_name *const *names = weir__span_names(&count);
    for (uint32_t id = 0; id < count; id++) {
        span_sum *sum = process.sums[id];
        weir_counter_metrics counter;
        if (names[id]->counter && weir__counter_take(names[id], false, reset, &counter))
            each(self, names[id], &counter);
        if (!sum || !sum->metrics.num_spans)
            continue;
        sum->metrics.times = &sum->times;
        each(self, names[id], &sum->metrics);
        if (reset) {
            weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &sum->metrics);
            weir_histogram_clear(&sum->times);
        }
    }
    weir__spans_unlock();
}

/* ---- pipelines ---------------------------------------------------------------------------------------------- */

/* What came before the first pipeline is in no lap. */
static void restart_counters(void)
{
    uint32_t count;
    weir_counter_metrics before;
    weir_span_name *const *names = weir__span_names(&count);
    for (uint32_t id = 0; id < count; id++)
        if (names[id]->counter)
            weir__counter_take(names[id], true, true, &before);
}

int weir__span_store_open(weir_pipeline *pipeline)
{
    weir_span_store *store = calloc(1, sizeof *store), **end = &stores;
    if (!store)
        return WEIR_ENOMEM;
    store->pipeline = pipeline;
    store->refused_told = weir_span_names_refused();
    weir__spans_lock();
    collect_all();
    if (!stores)
        restart_counters();
    while (*end)
        end = &(*end)->next;
    *end = store;
    weir__spans_unlock();
    return WEIR_OK;
}

void weir__span_store_close(weir_pipeline *pipeline)
{
    weir_span_store *found = NULL;
    weir__spans_lock();
    weir_span_store **link = &stores;
    while (*link && (*link)->pipeline != pipeline)
        link = &(*link)->next;
    if ((found = *link))
        *link = found->next;
    weir__spans_unlock();
    free_store(found);
}

void weir__span_store_add(const weir_pipeline *pipeline, const weir_span_name *name, int64_t span_ns)
{
    weir__spans_lock();
    weir_span_store *to[] = { &process, find_store(pipeline) };
    for (int i = 0; i < 2; i++) {
        span_sum *sum = to[i] ? sum_of(to[i], name->id) : NULL;
        weir_span_metrics one = { 1, span_ns, span_ns, span_ns, NULL };
        if (!sum)
            continue;
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &sum->metrics, &one);
        weir_histogram_record(&sum->times, span_ns);
    }
    weir__spans_unlock();
}

static bool take_span(span_sum *sum, const weir_span_name *name, weir_taken_lap *lap)
{
    weir_taken_mark *mark = weir__taken_lap_add_mark(lap, name);
    if (!mark || !weir__stored_histogram_set(&mark->times, &sum->times)) {
        lap->num_marks -= mark != NULL;
        return false;
    }
    mark->span = sum->metrics;
    weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &sum->metrics);
    weir_histogram_clear(&sum->times);
    return true;
}

static bool take_counter(const weir_span_name *name, weir_taken_lap *lap)
{
    weir_taken_mark *mark = weir__taken_lap_add_mark(lap, name);
    if (mark && !weir__counter_take(name, true, true, &mark->counter))
        lap->num_marks--;
    return mark;
}

static bool take_sums(weir_span_store *store, weir_taken_lap *lap)
{
    uint32_t count;
    bool is_complete = true;
    weir_span_name *const *names = weir__span_names(&count);
    for (uint32_t id = 0; id < count && is_complete; id++) {
        if (names[id]->counter && store == stores)
            is_complete = take_counter(names[id], lap);
        else if (store->sums[id] && store->sums[id]->metrics.num_spans)
            is_complete = take_span(store->sums[id], names[id], lap);
    }
    return is_complete;
}

bool weir__span_store_take(weir_pipeline *pipeline, weir_taken_lap *lap)
{
    bool is_complete = true;
    uint64_t refused = 0;
    weir__spans_lock();
    weir_span_store *store = find_store(pipeline);
    if (store) {
        collect_all();
        is_complete = take_sums(store, lap);
        refused = weir_span_names_refused() - store->refused_told;
        store->refused_told += refused;
    }
    weir__spans_unlock();
    if (refused) {
        char detail[40];
        snprintf(detail, sizeof detail, "%llu", (unsigned long long)refused);
        weir__outbox_add_event(pipeline, "span_names_refused", "pipeline", detail);
    }
    return is_complete;
}
