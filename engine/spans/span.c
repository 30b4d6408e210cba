/* Spans, frames and markers as they are recorded: on the thread, with its own lock. See spans.h. */
#include "engine/spans/spans.h"
#include "engine/state/thread.h"

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

/* The time spent in pauses. While recording is paused it is below 0: the clock's time at the stop, minus
   INT64_MAX. */
static _Atomic int64_t pauses;
static _Atomic int64_t pauses_before; /* while recording is paused: without this pause */

int64_t weir__span_now_ns(void)
{
    int64_t state = atomic_load_explicit(&pauses, memory_order_relaxed);
    return state < 0 ? state + INT64_MAX : step_clock_ns(&own_clock) - state;
}

int64_t weir__span_since_ns(int64_t start_ns)
{
    int64_t now_ns = weir__span_now_ns();
    return now_ns > start_ns ? now_ns - start_ns : 0;
}

bool weir__span_is_paused(void)
{
    return atomic_load_explicit(&pauses, memory_order_relaxed) < 0;
}

int64_t weir__span_clock_ns(int64_t span_ns)
{
    int64_t state = atomic_load(&pauses);
    return span_ns + (state < 0 ? atomic_load(&pauses_before) : state);
}

void weir__span_clock_pause_locked(bool is_paused)
{
    int64_t before_ns = weir__span_now_ns(), clock_ns = step_clock_ns(&own_clock);
    if (is_paused && !weir__span_is_paused()) {
        atomic_store(&pauses_before, atomic_load(&pauses));
        atomic_store(&pauses, before_ns - INT64_MAX);
    } else if (!is_paused && weir__span_is_paused()) {
        atomic_store(&pauses, clock_ns > before_ns ? clock_ns - before_ns : 0);
    }
}

/* ---- threads ------------------------------------------------------------------------------------------------ */

static void end_thread(void *thread)
{
    this_thread = NULL;
    weir__span_thread_remove(thread);
}

static void make_key(void)
{
    key_made = pthread_key_create(&thread_key, end_thread) == 0;
}

/* NULL = out of memory. */
static span_thread *add_span_thread(void)
{
    static uv_once_t key_once = UV_ONCE_INIT;
    uv_once(&key_once, make_key);
    span_thread *thread = key_made ? calloc(1, sizeof *thread) : NULL;
    if (!thread || pthread_setspecific(thread_key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->pipeline = (weir_pipeline *)(uintptr_t)weir__pipeline_of_thread;
    thread->tid = (int)syscall(SYS_gettid);
    weir__span_thread_add(thread);
    return this_thread = thread;
}

static inline span_thread *get_thread(void)
{
    return this_thread ? this_thread : add_span_thread();
}

span_thread *weir__span_this_thread(void)
{
    return get_thread();
}

span_thread *weir__span_thread_of_child(void)
{
    if (this_thread)
        this_thread->tid = (int)syscall(SYS_gettid);
    return this_thread;
}

static _Atomic uint64_t others_lap; /* of threads of no pipeline */

/* The current lap of the thread's pipeline. */
static inline uint64_t lap_of_thread(const weir_pipeline *pipeline)
{
    return atomic_load_explicit(pipeline ? &pipeline->lap_id : &others_lap, memory_order_relaxed);
}

uint64_t weir__span_lap_of_thread(const weir_pipeline *pipeline)
{
    return lap_of_thread(pipeline);
}

void weir__span_set_lap(weir_pipeline *pipeline, uint64_t lap_id)
{
    atomic_store_explicit(&pipeline->lap_id, lap_id, memory_order_relaxed);
    if (atomic_load_explicit(&pipeline->has_others_spans, memory_order_relaxed))
        atomic_store_explicit(&others_lap, lap_id, memory_order_relaxed);
}

/* Makes the cell the first one of its name: that of the lap, an empty one, or a new one. */
static span_cell *find_cell_locked(span_cell **cells, uint64_t lap_id)
{
    span_cell **link = cells, *cell;
    while (*link && (*link)->lap_id != lap_id && (*link)->count)
        link = &(*link)->next;
    if ((cell = *link))
        *link = cell->next;
    else if (!(cell = calloc(1, sizeof *cell)))
        return NULL;
    cell->next = *cells;
    cell->lap_id = lap_id;
    if (!cell->count)
        cell->min_ns = INT64_MAX;
    return *cells = cell;
}

/* Without memory, the span is not counted. */
static inline void record_locked(span_thread *thread, const weir_span_name *name, int64_t span_ns)
{
    span_cell *cell = thread->cells[name->id];
    uint64_t lap_id = lap_of_thread(thread->pipeline);
    if (!cell || cell->lap_id != lap_id)
        if (!(cell = find_cell_locked(&thread->cells[name->id], lap_id)))
            return;
    cell->count++;
    cell->total_ns += span_ns;
    if (span_ns < cell->min_ns)
        cell->min_ns = span_ns;
    if (span_ns > cell->max_ns)
        cell->max_ns = span_ns;
    live_histogram_record(&cell->times, span_ns, 1);
}

/* ---- prefixes ----------------------------------------------------------------------------------------------- */

static weir_span_name *prefix_name(span_thread *thread, weir_span_name *name)
{
    uint32_t levels = thread->prefix_levels < SPAN_PREFIX_LEVELS ? thread->prefix_levels : SPAN_PREFIX_LEVELS;
    size_t slot = (name->id + 31 * thread->level_id) % SPAN_CACHED_NAMES;
    if (thread->cache[slot].level_id == thread->level_id && thread->cache[slot].name == name)
        return thread->cache[slot].prefixed;
    weir_span_name *found = weir__span_name_with_prefix(name, &thread->prefixes[(levels - 1) * SPAN_PREFIX_BYTES]);
    thread->cache[slot].level_id = thread->level_id;
    thread->cache[slot].name = name;
    return thread->cache[slot].prefixed = found ? found : name;
}

static inline weir_span_name *resolve_name(span_thread *thread, weir_span_name *name)
{
    return thread->level_id ? prefix_name(thread, name) : name;
}

void weir_span_prefix_push(const char *prefix, bool append)
{
    span_thread *thread = get_thread();
    if (!thread)
        return;
    uint32_t level = thread->prefix_levels++;
    if (level >= SPAN_PREFIX_LEVELS)
        return;
    append |= !prefix; /* it is a level, too */
    prefix = prefix ? prefix : "";
    const char *before = level && append ? &thread->prefixes[(level - 1) * SPAN_PREFIX_BYTES] : "";
    char *text = &thread->prefixes[level * SPAN_PREFIX_BYTES];
    size_t length = strlen(before), room = SPAN_PREFIX_BYTES - 1;
    memcpy(text, before, length);
    if (*prefix && length && length < room)
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

static inline int64_t start_now(void)
{
    return weir__span_is_paused() ? SPAN_NOT_RECORDED : weir__span_now_ns();
}

void weir__span_trace(span_thread *thread, const weir_span_name *name, weir_trace_record record)
{
    record.item = (uintptr_t)name->text;
    record.node = (uint16_t)name->category_bytes;
    thread->reported_ns = record.time_ns =
        record.time_ns > thread->reported_ns ? record.time_ns : thread->reported_ns;
    if (record.kind != WEIR_TRACE_COUNTER && (record.detail != SPAN_IS_FRAME || record.kind == WEIR_TRACE_MARKER))
        record.number = (uint32_t)thread->tid;
    weir__user_trace_add(thread->pipeline, &record);
}

/* The begin or end of a span inside `depth` others; `at` on the clock of spans. */
static inline void trace_nested(span_thread *thread, const weir_span_name *name, weir_trace_kind kind, int64_t at,
                                uint32_t depth)
{
    if (span_is_traced())
        weir__span_trace(
            thread, name,
            (weir_trace_record){ .kind = (uint8_t)kind, .time_ns = weir__span_clock_ns(at), .value = depth });
}

void weir_span_begin(weir_span_name *name)
{
    span_thread *thread = get_thread();
    if (!thread) {
        num_unrecorded++;
        return;
    }
    name = name ? resolve_name(thread, name) : NULL;
    span_lock(thread);
    uint32_t depth = thread->depth++;
    int64_t start = start_now();
    if (depth < SPAN_MAX_DEPTH) {
        thread->open[depth].name = name;
        thread->open[depth].start = start;
    }
    span_unlock(thread);
    if (depth < SPAN_MAX_DEPTH && name && start != SPAN_NOT_RECORDED)
        trace_nested(thread, name, WEIR_TRACE_SPAN_BEGIN, start, depth);
}

void weir_span_end(void)
{
    span_thread *thread = this_thread;
    if (num_unrecorded) {
        num_unrecorded--;
        return;
    }
    if (!thread || thread->depth == 0)
        return;
    span_lock(thread);
    uint32_t depth = --thread->depth;
    const weir_span_name *name = depth < SPAN_MAX_DEPTH ? thread->open[depth].name : NULL;
    int64_t start = name ? thread->open[depth].start : SPAN_NOT_RECORDED;
    int64_t span_ns = start != SPAN_NOT_RECORDED ? weir__span_since_ns(start) : 0;
    if (start != SPAN_NOT_RECORDED)
        record_locked(thread, name, span_ns);
    span_unlock(thread);
    if (start != SPAN_NOT_RECORDED)
        trace_nested(thread, name, WEIR_TRACE_SPAN_END, start + span_ns, depth);
}

/* ---- spans that may end on another thread, frames -------------------------------------------------------------- */

/* Tokens contain the id of the span in traces, which is 0 if its begin is in none, and the number of the frame. */
static void trace_token(span_thread *thread, const weir_span_token *token, bool is_frame, weir_trace_kind kind,
                        int64_t at)
{
    weir__span_trace(thread, token->name,
                     (weir_trace_record){ .kind = (uint8_t)kind,
                                          .time_ns = weir__span_clock_ns(at),
                                          .value = (int64_t)token->place[1],
                                          .number = (uint32_t)token->place[0],
                                          .detail = is_frame ? SPAN_IS_FRAME : SPAN_OVERLAPS });
}

/* For a span that may overlap others. */
static uint64_t new_trace_id(void)
{
    static _Atomic uint64_t last_id;
    return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

static weir_span_token start_token(weir_span_name *name, bool is_frame, int64_t number)
{
    span_thread *thread = name ? get_thread() : NULL;
    weir_span_token token = { .start = start_now(), .place = { (uint32_t)number, 0 } };
    if (!thread)
        return token;
    token.name = is_frame ? name : resolve_name(thread, name);
    if (span_is_traced() && token.start != SPAN_NOT_RECORDED) {
        token.place[1] = new_trace_id();
        trace_token(thread, &token, is_frame, WEIR_TRACE_SPAN_BEGIN, token.start);
    }
    return token;
}

weir_span_token weir_span_start(weir_span_name *name)
{
    return start_token(name, false, 0);
}

static void finish_token(weir_span_token *token, bool is_frame, int64_t end)
{
    bool is_recorded = token->name && token->start != SPAN_NOT_RECORDED;
    span_thread *thread = is_recorded ? get_thread() : NULL;
    if (thread) {
        int64_t span_ns = end > token->start ? end - token->start : 0;
        span_lock(thread);
        record_locked(thread, token->name, span_ns);
        span_unlock(thread);
        if (span_is_traced() && token->place[1])
            trace_token(thread, token, is_frame, WEIR_TRACE_SPAN_END, token->start + span_ns);
    }
    token->name = NULL;
}

void weir_span_finish(weir_span_token *token)
{
    if (token)
        finish_token(token, false, weir__span_now_ns());
}

static void change_frame(weir_span_name *name, bool begins, int64_t number)
{
    if (!name)
        return;
    atomic_store_explicit(&name->kind, SPAN_KIND_FRAME, memory_order_relaxed);
    weir_span_token next = begins ? start_token(name, true, number) : (weir_span_token){ .name = NULL };
    weir__spans_lock();
    weir_span_token before = name->frame;
    name->frame = next;
    weir__spans_unlock();
    /* it ends where the next one begins, so that they do not overlap */
    finish_token(&before, true, next.name && next.start != SPAN_NOT_RECORDED ? next.start : weir__span_now_ns());
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
    if (!thread || weir__span_is_paused())
        return;
    name = resolve_name(thread, name);
    atomic_store_explicit(&name->kind, SPAN_KIND_MARKER, memory_order_relaxed);
    span_lock(thread);
    record_locked(thread, name, 0);
    span_unlock(thread);
    if (span_is_traced())
        weir__span_trace(
            thread, name,
            (weir_trace_record){ .kind = WEIR_TRACE_MARKER, .time_ns = weir_clock_ns(), .detail = (int8_t)scope });
}
