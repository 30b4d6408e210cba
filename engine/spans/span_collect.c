/* From the threads to the sums of the process and to the laps of the pipelines. See spans.h. */
#include <pthread.h>
#include <stdlib.h>

#include "engine/spans/spans.h"
#include "engine/state/lock.h"

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;

/* guarded by registry */
span_thread *weir__span_threads;
static weir_span_store *stores; /* of running pipelines, oldest first */
static weir_span_store process; /* the sums for weir_span_dump() */

static void free_thread(span_thread *thread)
{
    for (size_t id = 0; id < WEIR_SPAN_MAX_NAMES; id++)
        for (span_cell *cell = thread->cells[id], *next; cell; cell = next) {
            next = cell->next;
            free(cell);
        }
    free(thread);
}

static void free_store(weir_span_store *store)
{
    for (size_t id = 0; store && id < WEIR_SPAN_MAX_NAMES; id++)
        for (span_sum *sum = store->sums[id], *next; sum; sum = next) {
            next = sum->next;
            free(sum);
        }
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
    weir__user_trace_reset_child();
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
static span_sum *sum_of(weir_span_store *store, uint32_t id, uint64_t lap_id)
{
    span_sum **sum = &store->sums[id];
    while (*sum && (*sum)->lap_id != lap_id)
        sum = &(*sum)->next;
    if (!*sum && (*sum = calloc(1, sizeof **sum))) {
        weir_metrics_clear(weir_subject_metrics(WEIR_SUBJECT_SPAN), &(*sum)->metrics);
        (*sum)->lap_id = lap_id;
    }
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
    span_sum *of_process = cell->count ? sum_of(&process, id, 0) : NULL;
    span_sum *of_lap = of_process && store ? sum_of(store, id, cell->lap_id) : NULL;
    if (!of_process || (store && !of_lap))
        return;
    weir_span_metrics metrics = { cell->count, cell->total_ns, cell->min_ns, cell->max_ns, NULL };
    add_metrics(of_process, &metrics, &cell->times);
    if (of_lap)
        add_metrics(of_lap, &metrics, &cell->times);
    *cell = (span_cell){ .next = cell->next, .lap_id = cell->lap_id, .min_ns = INT64_MAX };
}

/* One cell of each name remains. */
static void collect_cells(weir_span_store *store, span_cell *first, uint32_t id)
{
    for (span_cell *cell = first; cell; cell = cell->next)
        collect_cell(store, cell, id);
    for (span_cell *cell; first && (cell = first->next) && !cell->count;) {
        first->next = cell->next;
        free(cell);
    }
}

static void collect_thread(span_thread *thread)
{
    uint32_t count;
    weir_span_store *store = store_of(thread->pipeline);
    weir__span_names(&count);
    for (uint32_t id = 0; id < count; id++) {
        span_lock(thread);
        collect_cells(store, thread->cells[id], id);
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

/* The spans of threads of no pipeline are in the laps of the oldest one. */
static void assign_others(void)
{
    if (!stores || atomic_exchange(&stores->pipeline->has_others_spans, true))
        return;
    weir__engine_lock(stores->pipeline); /* marks set it, too */
    weir__span_set_lap(stores->pipeline, atomic_load(&stores->pipeline->lap_id));
    weir__engine_unlock(stores->pipeline);
}

int weir__span_store_open(weir_pipeline *pipeline)
{
    weir_span_store *store = calloc(1, sizeof *store), **end = &stores;
    if (!store)
        return WEIR_ENOMEM;
    store->pipeline = pipeline;
    store->refused_reported = weir__span_names_refused();
    weir__spans_lock();
    collect_all();
    if (!stores)
        restart_counters();
    while (*end)
        end = &(*end)->next;
    *end = store;
    assign_others();
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
    atomic_store(&pipeline->has_others_spans, false);
    assign_others();
    weir__spans_unlock();
    free_store(found);
}

weir_span_name *weir__span_name_of_steps(void)
{
    weir_span_name *name = weir_span_name_get("weir", "step");
    if (name)
        atomic_store_explicit(&name->kind, SPAN_KIND_FRAME, memory_order_relaxed);
    return name;
}

void weir__span_add_step(int64_t step_ns)
{
    const weir_span_name *name = step_ns >= 0 ? weir__span_name_of_steps() : NULL;
    if (!name)
        return;
    weir__spans_lock();
    span_sum *sum = sum_of(&process, name->id, 0);
    const weir_span_metrics one = { 1, step_ns, step_ns, step_ns, NULL };
    if (sum) {
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_SPAN), &sum->metrics, &one);
        weir_histogram_record(&sum->times, step_ns);
    }
    weir__spans_unlock();
}

bool weir__span_store_has_more(const weir_pipeline *pipeline)
{
    uint32_t count;
    bool has_more = false;
    weir__spans_lock();
    weir_span_store *store = find_store(pipeline);
    if (store)
        collect_all();
    weir_span_name *const *names = weir__span_names(&count);
    for (uint32_t id = 0; store && id < count && !has_more; id++) {
        weir_counter_metrics counter;
        has_more = store->sums[id] != NULL ||
                   (names[id]->counter && store == stores && weir__counter_take(names[id], true, false, &counter) &&
                    counter.num_updates > 0);
    }
    weir__spans_unlock();
    return has_more;
}

/* Takes the sums of one name. */
static void take_sums(weir_span_store *store, const weir_span_name *name, weir__span_taker *take, void *self)
{
    for (span_sum **link = &store->sums[name->id], *sum; (sum = *link);) {
        sum->metrics.times = &sum->times;
        if (take(self, name, sum->lap_id, &sum->metrics)) {
            *link = sum->next;
            free(sum);
        } else {
            link = &sum->next;
        }
    }
}

uint64_t weir__span_store_take(const weir_pipeline *pipeline, weir__span_taker *take, void *self)
{
    uint32_t count;
    uint64_t refused = 0;
    weir__spans_lock();
    weir_span_store *store = find_store(pipeline);
    if (store) {
        collect_all();
        weir_span_name *const *names = weir__span_names(&count);
        for (uint32_t id = 0; id < count; id++) {
            weir_counter_metrics counter;
            take_sums(store, names[id], take, self);
            if (names[id]->counter && store == stores && weir__counter_take(names[id], true, true, &counter))
                take(self, names[id], 0, &counter);
        }
        refused = weir__span_names_refused() - store->refused_reported;
        store->refused_reported += refused;
    }
    weir__spans_unlock();
    return refused;
}
