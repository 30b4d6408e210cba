/*
 * Spans, frames, markers and counters of user code in traces: which pipeline's. Records of a thread go to its
 * pipeline's trace, those of other threads to the oldest trace that is being recorded.
 *
 * Recording is switched by weir_pipeline_trace(), weir_span_pause(), and pipelines and threads that begin and end. A
 * switch takes the lock of each thread: it ends the thread's open spans in the old trace and begins them in the new one.
 * Spans that may end on another thread, and frames, belong to a recording, whose number is in their token: all of them
 * end with the recording (WEIR_TRACE_SPANS_OFF), and a token that is finished in a later one is added then, from the
 * start of that one on.
 */
#include "spans.h"

#include "trace_ring.h"

_Atomic(weir_pipeline *) weir__span_traced; /* oldest first; changed with the registry's lock */

static uint32_t last_recording; /* guarded by the registry's lock */
static _Atomic int64_t last_id; /* of a span that may end on another thread */

/* ---- records ------------------------------------------------------------------------------------------------ */

static void add_record(weir_pipeline *pipeline, const weir_span_name *name, weir_trace_kind kind, int64_t time_ns,
                       int64_t value, uint32_t number, int8_t detail)
{
    weir__trace_add_user(pipeline, &(weir_trace_record){
                                       .time_ns = time_ns,
                                       .item = (uintptr_t)(name ? name->text : NULL),
                                       .value = value,
                                       .number = number,
                                       .node = (uint16_t)(name ? name->category_bytes : 0),
                                       .detail = detail,
                                       .kind = (uint8_t)kind,
                                   });
}

void weir__span_trace_locked(span_thread *thread, const weir_span_name *name, weir_trace_kind kind, int64_t time_ns,
                             int64_t value, int8_t detail)
{
    if (!thread->target)
        return;
    thread->told_ns = time_ns > thread->told_ns ? time_ns : thread->told_ns;
    add_record(thread->target, name, kind, thread->told_ns, value, (uint32_t)thread->tid, detail);
}

/* ---- switches ----------------------------------------------------------------------------------------------- */

static bool is_recorded(const weir_pipeline *pipeline)
{
    return pipeline->traces_users && !weir__span_is_paused();
}

/* Where records of the threads of this pipeline go; of none (NULL): to the oldest one that records. */
static weir_pipeline *target_of(const weir_pipeline *own)
{
    weir_pipeline *traced = atomic_load(&weir__span_traced);
    while (traced && (own ? traced != own : !is_recorded(traced)))
        traced = traced->next_traced;
    return traced && is_recorded(traced) ? traced : NULL;
}

static void retarget_thread(span_thread *thread, weir_pipeline *wanted)
{
    span_lock(thread);
    uint32_t depth = thread->target == wanted ? 0 : thread->depth < SPAN_MAX_DEPTH ? thread->depth : SPAN_MAX_DEPTH;
    int64_t now_ns = weir_clock_ns();
    if (depth > 0) /* ends all of them */
        weir__span_trace_locked(thread, NULL, WEIR_TRACE_SPAN_END, now_ns, 0, 0);
    thread->target = wanted;
    for (uint32_t i = 0; i < depth; i++)
        if (thread->open[i].name && thread->open[i].start != SPAN_NOT_RECORDED)
            weir__span_trace_locked(thread, thread->open[i].name, WEIR_TRACE_SPAN_BEGIN, now_ns, i, 0);
    span_unlock(thread);
}

void weir__span_retarget_locked(void)
{
    weir_pipeline *traced = atomic_load(&weir__span_traced);
    for (weir_pipeline *one = traced; one; one = one->next_traced)
        if (is_recorded(one) && !one->recording) {
            one->recording = ++last_recording;
            one->recording_ns = weir_clock_ns();
        }
    for (span_thread *thread = weir__span_threads; thread; thread = thread->next)
        retarget_thread(thread, target_of(thread->pipeline));
    for (weir_pipeline *one = traced; one; one = one->next_traced)
        if (!is_recorded(one) && one->recording) {
            one->recording = 0;
            add_record(one, NULL, WEIR_TRACE_SPANS_OFF, weir_clock_ns(), 0, 0, 0);
        }
}

void weir__span_trace_end_thread_locked(span_thread *thread)
{
    retarget_thread(thread, NULL);
}

void weir__span_trace_switch_locked(weir_pipeline *pipeline, bool on)
{
    pipeline->traces_users = on;
    weir__span_retarget_locked();
}

void weir__span_trace_open(weir_pipeline *pipeline)
{
    weir__spans_lock();
    weir_pipeline *first = atomic_load(&weir__span_traced), **end = &first;
    while (*end)
        end = &(*end)->next_traced;
    *end = pipeline;
    atomic_store(&weir__span_traced, first);
    weir__spans_unlock();
}

void weir__span_trace_close(weir_pipeline *pipeline)
{
    weir__spans_lock();
    weir_pipeline *first = atomic_load(&weir__span_traced), **link = &first;
    while (*link && *link != pipeline)
        link = &(*link)->next_traced;
    if (*link)
        *link = pipeline->next_traced;
    atomic_store(&weir__span_traced, first);
    weir__span_retarget_locked();
    weir__spans_unlock();
}

void weir__span_trace_reset_child(span_thread *thread)
{
    atomic_store(&weir__span_traced, NULL);
    if (thread)
        thread->target = NULL;
}

/* ---- spans that may end on another thread ------------------------------------------------------------------- */

enum { OVERLAPS = 1, FRAME = 2 };

void weir__span_trace_start(span_thread *thread, weir_span_token *token, bool is_frame, int64_t number)
{
    token->place[0] = (uint32_t)number; /* and of the recording */
    span_lock(thread);
    if (thread->target) {
        int64_t id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
        token->place[0] |= (uint64_t)thread->target->recording << 32;
        token->place[1] = (uint64_t)id;
        add_record(thread->target, token->name, WEIR_TRACE_SPAN_BEGIN, weir__span_clock_ns(token->start), id,
                   is_frame ? (uint32_t)number : (uint32_t)thread->tid, is_frame ? FRAME : OVERLAPS);
    }
    span_unlock(thread);
}

void weir__span_trace_finish(const span_thread *thread, const weir_span_token *token, bool is_frame, int64_t end_ns)
{
    uint32_t number = is_frame ? (uint32_t)token->place[0] : (uint32_t)thread->tid;
    uint64_t recording = token->place[0] >> 32;
    int8_t detail = is_frame ? FRAME : OVERLAPS;
    weir__spans_lock();
    weir_pipeline *traced = atomic_load(&weir__span_traced);
    while (traced && (!recording || traced->recording != recording))
        traced = traced->next_traced;
    int64_t id = (int64_t)token->place[1];
    if (!traced && (traced = target_of(thread->pipeline))) { /* it started before this recording did */
        int64_t begin_ns = weir__span_clock_ns(token->start);
        begin_ns = begin_ns > traced->recording_ns ? begin_ns : traced->recording_ns;
        id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
        add_record(traced, token->name, WEIR_TRACE_SPAN_BEGIN, begin_ns < end_ns ? begin_ns : end_ns, id, number,
                   detail);
    }
    if (traced)
        add_record(traced, token->name, WEIR_TRACE_SPAN_END, end_ns, id, number, detail);
    weir__spans_unlock();
}

weir_span_token weir__span_swap_frame(weir_span_name *name, weir_span_token next)
{
    weir__spans_lock();
    weir_span_token before = name->frame;
    name->frame = next;
    weir__spans_unlock();
    return before;
}
