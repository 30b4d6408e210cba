/* Spans, frames and markers as they are recorded: on the thread, without a lock. See spans.h. */
#include "spans.h"
#include "trace_ring.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local span_thread *this_thread;
static _Thread_local uint32_t num_unrecorded; /* open spans, for lack of memory */
static pthread_key_t thread_key;
static bool key_made;

/* ---- the clock ---------------------------------------------------------------------------------------------- */

static _Thread_local weir_step_clock own_clock;

/* The time spent in pauses; while recording is paused, the clock's time when it stopped, minus INT64_MAX. */
static _Atomic int64_t pauses;

int64_t weir_span_now_ns(void)
{
    int64_t state = atomic_load_explicit(&pauses, memory_order_relaxed);
    return state < 0 ? state + INT64_MAX : step_clock_ns(&own_clock) - state;
}

int64_t weir_span_since_ns(int64_t start_ns)
{
    int64_t now_ns = weir_span_now_ns();
    return now_ns > start_ns ? now_ns - start_ns : 0;
}

bool weir_span_is_paused(void)
{
    return atomic_load_explicit(&pauses, memory_order_relaxed) < 0;
}

void weir_span_pause(void)
{
    weir_spans_lock();
    if (!weir_span_is_paused())
        atomic_store(&pauses, weir_span_now_ns() - INT64_MAX);
    weir_spans_unlock();
}

void weir_span_resume(void)
{
    weir_spans_lock();
    int64_t stopped_ns = weir_span_now_ns(), now_ns = step_clock_ns(&own_clock);
    if (weir_span_is_paused())
        atomic_store(&pauses, now_ns > stopped_ns ? now_ns - stopped_ns : 0);
    weir_spans_unlock();
}

/* ---- threads ------------------------------------------------------------------------------------------------ */

static void end_thread(void *thread)
{
    this_thread = NULL;
    weir_span_thread_remove(thread);
}

static void make_key(void)
{
    key_made = pthread_key_create(&thread_key, end_thread) == 0;
}

/* NULL = out of memory. */
static span_thread *add_thread(void)
{
    static uv_once_t key_once = UV_ONCE_INIT;
    uv_once(&key_once, make_key);
    span_thread *thread = key_made ? calloc(1, sizeof *thread) : NULL;
    if (!thread || pthread_setspecific(thread_key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->pipeline = (weir_pipeline *)(uintptr_t)weir_pipeline_of_thread;
    thread->tid = (int)syscall(SYS_gettid);
    weir_span_thread_add(thread);
    return this_thread = thread;
}

static inline span_thread *get_thread(void)
{
    return this_thread ? this_thread : add_thread();
}

static span_cell *add_cell(span_thread *thread, const weir_span_name *name)
{
    span_cell *cell = calloc(1, sizeof *cell);
    if (cell)
        cell->halves[0].min_ns = cell->halves[1].min_ns = INT64_MAX;
    atomic_store_explicit(&thread->cells[name->id], cell, memory_order_release);
    return cell;
}

/* A collector, or weir_span_trace_close(), waits for the end. */
static inline unsigned enter(span_thread *thread)
{
    unsigned active = atomic_load_explicit(&thread->active, memory_order_relaxed) + 1;
    atomic_exchange(&thread->active, active);
    return active;
}

static inline void leave(span_thread *thread, unsigned active)
{
    atomic_store_explicit(&thread->active, active + 1, memory_order_release);
}

void weir_span_trace(const weir_span_name *name, weir_trace_kind kind, int64_t value, int8_t detail)
{
    span_thread *thread = get_thread();
    if (!thread)
        return;
    unsigned active = enter(thread);
    weir_pipeline *pipeline = thread->pipeline ? thread->pipeline : atomic_load(&weir_span_traced);
    if (pipeline && weir_trace_is_on(pipeline))
        weir_trace_add_user(pipeline, &(weir_trace_record){
                                          .time_ns = weir_clock_ns(),
                                          .item = (uintptr_t)name->text,
                                          .value = value,
                                          .number = (uint32_t)thread->tid,
                                          .node = (uint16_t)name->category_bytes,
                                          .detail = detail,
                                          .kind = (uint8_t)kind,
                                      });
    leave(thread, active);
}

static void record(span_thread *thread, const weir_span_name *name, int64_t span_ns)
{
    span_cell *cell = atomic_load_explicit(&thread->cells[name->id], memory_order_relaxed);
    if (!cell && !(cell = add_cell(thread, name)))
        return;
    unsigned active = enter(thread);
    span_half *half = &cell->halves[atomic_load(&thread->generation)];
    half->count++;
    half->total_ns += span_ns;
    if (span_ns < half->min_ns)
        half->min_ns = span_ns;
    if (span_ns > half->max_ns)
        half->max_ns = span_ns;
    live_histogram_record(&half->times, span_ns);
    leave(thread, active);
}

/* ---- prefixes ----------------------------------------------------------------------------------------------- */

static weir_span_name *prefixed(span_thread *thread, weir_span_name *name)
{
    uint32_t slot = (name->id + 31 * thread->level_id) % SPAN_CACHED_NAMES, level = thread->prefix_levels - 1;
    if (thread->cache[slot].level_id == thread->level_id && thread->cache[slot].name == name)
        return thread->cache[slot].prefixed;
    weir_span_name *found = weir_span_name_with_prefix(name, &thread->prefixes[level * SPAN_PREFIX_BYTES]);
    thread->cache[slot].level_id = thread->level_id;
    thread->cache[slot].name = name;
    return thread->cache[slot].prefixed = found ? found : name;
}

static inline weir_span_name *resolve(span_thread *thread, weir_span_name *name)
{
    return thread->level_id ? prefixed(thread, name) : name;
}

void weir_span_prefix_push(const char *prefix, bool append)
{
    span_thread *thread = get_thread();
    if (!thread || !prefix)
        return;
    uint32_t level = thread->prefix_levels++;
    if (level >= SPAN_PREFIX_LEVELS)
        return;
    const char *before = level && append ? &thread->prefixes[(level - 1) * SPAN_PREFIX_BYTES] : "";
    char *text = &thread->prefixes[level * SPAN_PREFIX_BYTES];
    size_t length = strlen(before), room = SPAN_PREFIX_BYTES - 1;
    memcpy(text, before, length);
    if (length && length < room)
        text[length++] = '/';
    size_t added = strnlen(prefix, room - length);
    memcpy(text + length, prefix, added);
    text[length + added] = '\0';
    thread->level_ids[level] = thread->level_id;
    thread->level_id = ++thread->next_level_id;
}

void weir_span_prefix_pop(void)
{
    span_thread *thread = this_thread;
    if (!thread || !thread->prefix_levels)
        return;
    if (--thread->prefix_levels < SPAN_PREFIX_LEVELS)
        thread->level_id = thread->level_ids[thread->prefix_levels];
}

/* ---- spans -------------------------------------------------------------------------------------------------- */

/* The start of a span that is not recorded. */
#define NOT_RECORDED INT64_MIN

static inline int64_t start_now(void)
{
    return weir_span_is_paused() ? NOT_RECORDED : weir_span_now_ns();
}

/* overlaps: it may not be nested in the other spans of the thread. */
static inline void finish(span_thread *thread, const weir_span_name *name, int64_t start, bool overlaps)
{
    if (start == NOT_RECORDED)
        return;
    int64_t span_ns = weir_span_since_ns(start);
    record(thread, name, span_ns);
    if (span_is_traced())
        weir_span_trace(name, WEIR_TRACE_SPAN, weir_clock_ns() - span_ns, overlaps);
}

void weir_span_begin(weir_span_name *name)
{
    span_thread *thread = get_thread();
    if (!thread) {
        num_unrecorded++;
        return;
    }
    uint32_t depth = thread->depth++;
    if (depth >= SPAN_MAX_DEPTH)
        return;
    thread->open[depth].name = name ? resolve(thread, name) : NULL;
    thread->open[depth].start = start_now();
}

void weir_span_end(void)
{
    span_thread *thread = this_thread;
    if (num_unrecorded) {
        num_unrecorded--;
        return;
    }
    if (!thread || !thread->depth || --thread->depth >= SPAN_MAX_DEPTH)
        return;
    if (thread->open[thread->depth].name)
        finish(thread, thread->open[thread->depth].name, thread->open[thread->depth].start, false);
}

weir_span_token weir_span_start(weir_span_name *name)
{
    span_thread *thread = name ? get_thread() : NULL;
    return (weir_span_token){ .name = thread ? resolve(thread, name) : NULL, .start = start_now() };
}

void weir_span_finish(weir_span_token *token)
{
    span_thread *thread = token && token->name ? get_thread() : NULL;
    if (thread)
        finish(thread, token->name, token->start, true);
    if (token)
        token->name = NULL;
}

/* ---- frames and markers ------------------------------------------------------------------------------------- */

static void change_frame(weir_span_name *name, bool begins, int64_t number)
{
    span_thread *thread = name ? get_thread() : NULL;
    if (!thread)
        return;
    atomic_store_explicit(&name->kind, SPAN_KIND_FRAME, memory_order_relaxed);
    int64_t before = atomic_exchange(&name->frame_start, begins ? start_now() : 0);
    atomic_store_explicit(&name->frame_number, number, memory_order_relaxed);
    if (before)
        finish(thread, name, before, true);
}

void weir_frame_begin(weir_span_name *name, int64_t number)
{
    change_frame(name, true, number);
}

void weir_frame_end(weir_span_name *name)
{
    change_frame(name, false, 0);
}

void weir_marker(weir_span_name *name, weir_marker_scope scope)
{
    span_thread *thread = name ? get_thread() : NULL;
    if (!thread || weir_span_is_paused())
        return;
    name = resolve(thread, name);
    atomic_store_explicit(&name->kind, SPAN_KIND_MARKER, memory_order_relaxed);
    record(thread, name, 0);
    if (span_is_traced())
        weir_span_trace(name, WEIR_TRACE_MARKER, 0, (int8_t)scope);
}
