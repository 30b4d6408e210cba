/*
 * Spans, frames, markers and counters of user code in traces: which pipeline's, and since when.
 *
 * Recording is switched by weir_pipeline_trace(), weir_span_pause(), and pipelines and threads that begin and end. A
 * span that is open then is closed and opened again: what there is of it is added to the trace as a record, and its
 * next record begins where recording goes on. Invariants:
 *
 * 1. targets[active & SPAN_TARGET] of a thread is valid. A switch writes the other one and changes the bit by a
 *    compare-and-swap from an `active` without SPAN_ENTERED. So the thread has one target from span_enter() to
 *    span_leave(), and nobody writes it meanwhile.
 * 2. A thread takes spans off its stack only between these calls, which change `active`. So a stack that was read
 *    between two equal values of `active` is that of one moment, except for spans that were begun since.
 * 3. So each part of a span is in exactly one record. Either the thread has ended the span before the bit changed, and
 *    adds the record to its old target; or the switch has seen the span on the stack, and adds the record.
 * 4. Spans that may end on another thread are in `loose` and are added with its lock held, also by switches. If there
 *    are too many, they are recorded when they end, from the start of the recording that goes on then.
 * 5. A pipeline is a target only while it is in the list of traced pipelines.
 *
 * Switches hold the registry's lock. No thread that records waits for one, except for the lock of `loose`.
 */
#include "spans.h"

#include <pthread.h>
#include <string.h>

#include "trace_ring.h"

enum { MAX_LOOSE = 1024 };

_Atomic(weir_pipeline *) weir_span_traced; /* oldest first; changed with the registry's lock */

typedef struct loose_span {
    const weir_span_name *name; /* NULL = free */
    uint64_t serial;            /* of the token */
    int64_t start;
    bool is_frame;
    uint32_t number;          /* of the frame */
    const weir_pipeline *own; /* of the thread that started it */
    span_target target;
    uint32_t tid;
} loose_span;

static pthread_mutex_t loose_lock = PTHREAD_MUTEX_INITIALIZER;

/* guarded by loose_lock */
static loose_span loose[MAX_LOOSE];
static size_t num_loose;
static uint64_t last_serial;

/* ---- records ------------------------------------------------------------------------------------------------ */

static weir_trace_record record_of(const weir_span_name *name, weir_trace_kind kind, int64_t time_ns, int64_t value,
                                   uint32_t tid, int8_t detail)
{
    return (weir_trace_record){
        .time_ns = time_ns,
        .item = (uintptr_t)name->text,
        .value = value,
        .number = tid,
        .node = (uint16_t)name->category_bytes,
        .detail = detail,
        .kind = (uint8_t)kind,
    };
}

/* The part of a span that is in this recording. */
static weir_trace_record span_record(const weir_span_name *name, const span_target *target, int64_t begin_ns,
                                     int64_t end_ns, uint32_t tid, int8_t detail)
{
    begin_ns = begin_ns > target->since_ns ? begin_ns : target->since_ns;
    return record_of(name, WEIR_TRACE_SPAN, end_ns, begin_ns < end_ns ? begin_ns : end_ns, tid, detail);
}

void weir_span_trace(span_thread *thread, unsigned active, const weir_span_name *name, weir_trace_kind kind,
                     int64_t time_ns, int64_t value, int8_t detail)
{
    const span_target *target = &thread->targets[active & SPAN_TARGET];
    uint32_t tid = (uint32_t)thread->tid;
    if (!target->pipeline)
        return;
    int64_t told_ns = atomic_load_explicit(&thread->told_ns, memory_order_relaxed);
    time_ns = time_ns > told_ns ? time_ns : told_ns;
    atomic_store_explicit(&thread->told_ns, time_ns, memory_order_relaxed);
    weir_trace_record record = kind == WEIR_TRACE_SPAN ? span_record(name, target, value, time_ns, tid, detail)
                                                       : record_of(name, kind, time_ns, value, tid, detail);
    weir_trace_add_user(target->pipeline, &record);
}

static weir_trace_record loose_record(const loose_span *span, int64_t begin_ns, int64_t end_ns)
{
    weir_trace_record record = span_record(span->name, &span->target, begin_ns, end_ns, span->tid, 1);
    if (span->is_frame) {
        record.kind = WEIR_TRACE_FRAME;
        record.number = span->number;
    }
    return record;
}

/* ---- spans of a thread -------------------------------------------------------------------------------------- */

typedef struct open_spans {
    int64_t at_ns; /* not before the latest record */
    uint32_t count;
    struct {
        weir_span_name *name;
        int64_t start;
    } all[SPAN_MAX_DEPTH];
} open_spans;

/* Reads the stack at one moment, in which these bits of `active` are changed. SPAN_TARGET among
   them: `next` is the target from then on. Returns `active` as it was. */
static unsigned read_stack(span_thread *thread, unsigned changed, weir_pipeline *next, open_spans *open)
{
    unsigned active;
    do {
        weir_span_await_record(thread);
        active = atomic_load(&thread->active) & ~(unsigned)SPAN_ENTERED;
        uint32_t depth = atomic_load(&thread->depth);
        int64_t now_ns = weir_clock_ns(), told_ns = atomic_load_explicit(&thread->told_ns, memory_order_relaxed);
        open->at_ns = now_ns > told_ns ? now_ns : told_ns;
        if (changed)
            thread->targets[~active & SPAN_TARGET] = (span_target){ next, open->at_ns };
        open->count = 0;
        for (uint32_t i = 0; i < depth && i < SPAN_MAX_DEPTH; i++) {
            open->all[open->count].name = atomic_load_explicit(&thread->open[i].name, memory_order_relaxed);
            open->all[open->count].start = atomic_load_explicit(&thread->open[i].start, memory_order_relaxed);
            open->count += open->all[open->count].name && open->all[open->count].start != SPAN_NOT_RECORDED;
        }
    } while (!atomic_compare_exchange_strong(&thread->active, &(unsigned){ active }, active ^ changed));
    return active;
}

static void retarget(span_thread *thread, weir_pipeline *wanted)
{
    open_spans open;
    const span_target before = thread->targets[atomic_load(&thread->active) & SPAN_TARGET];
    if (before.pipeline == wanted)
        return;
    read_stack(thread, SPAN_TARGET, wanted, &open);
    for (uint32_t i = 0; before.pipeline && i < open.count; i++) {
        weir_trace_record record = span_record(open.all[i].name, &before, weir_span_clock_ns(open.all[i].start),
                                               open.at_ns, (uint32_t)thread->tid, 0);
        weir_trace_add_user(before.pipeline, &record);
    }
}

/* ---- switches ----------------------------------------------------------------------------------------------- */

/* Where records of the threads of this pipeline go; of none (NULL): to the oldest one that records. */
static weir_pipeline *target_of(const weir_pipeline *own)
{
    weir_pipeline *traced = atomic_load(&weir_span_traced);
    while (traced && (own ? traced != own : !traced->traces_users))
        traced = traced->next_traced;
    return traced && traced->traces_users && !weir_span_is_paused() ? traced : NULL;
}

static void retarget_loose(void)
{
    pthread_mutex_lock(&loose_lock);
    int64_t now_ns = weir_clock_ns();
    for (loose_span *span = loose; span < loose + MAX_LOOSE && num_loose > 0; span++) {
        weir_pipeline *wanted = span->name ? target_of(span->own) : NULL;
        if (!span->name || wanted == span->target.pipeline)
            continue;
        if (span->target.pipeline) {
            weir_trace_record record = loose_record(span, weir_span_clock_ns(span->start), now_ns);
            weir_trace_add_user(span->target.pipeline, &record);
        }
        span->target = (span_target){ wanted, now_ns };
    }
    pthread_mutex_unlock(&loose_lock);
}

void weir_span_retarget_locked(void)
{
    for (span_thread *thread = weir_span_threads; thread; thread = thread->next)
        retarget(thread, target_of(thread->pipeline));
    retarget_loose();
}

void weir_span_trace_end_thread_locked(span_thread *thread)
{
    retarget(thread, NULL);
}

void weir_span_trace_switch_locked(weir_pipeline *pipeline, bool on)
{
    pipeline->traces_users = on;
    weir_span_retarget_locked();
}

void weir_span_trace_open(weir_pipeline *pipeline)
{
    weir_spans_lock();
    weir_pipeline *first = atomic_load(&weir_span_traced), **end = &first;
    while (*end)
        end = &(*end)->next_traced;
    *end = pipeline;
    atomic_store(&weir_span_traced, first);
    weir_spans_unlock();
}

void weir_span_trace_close(weir_pipeline *pipeline)
{
    weir_spans_lock();
    weir_pipeline *first = atomic_load(&weir_span_traced), **link = &first;
    while (*link && *link != pipeline)
        link = &(*link)->next_traced;
    if (*link)
        *link = pipeline->next_traced;
    atomic_store(&weir_span_traced, first);
    weir_span_retarget_locked();
    weir_spans_unlock();
}

/* ---- fork --------------------------------------------------------------------------------------------------- */

void weir_span_trace_before_fork(void)
{
    pthread_mutex_lock(&loose_lock);
}

void weir_span_trace_after_fork(void)
{
    pthread_mutex_unlock(&loose_lock);
}

void weir_span_trace_reset_child(span_thread *thread)
{
    atomic_store(&weir_span_traced, NULL);
    if (num_loose > 0)
        memset(loose, 0, sizeof loose);
    num_loose = 0;
    for (int i = 0; thread && i < 2; i++)
        thread->targets[i] = (span_target){ .pipeline = NULL };
}

/* ---- spans that may end on another thread ------------------------------------------------------------------- */

void weir_span_trace_start(const span_thread *thread, weir_span_token *token, bool is_frame, int64_t number)
{
    pthread_mutex_lock(&loose_lock);
    size_t at = last_serial + 1;
    while (num_loose < MAX_LOOSE && loose[at % MAX_LOOSE].name)
        at++;
    if (num_loose < MAX_LOOSE) {
        const span_target *target = &thread->targets[atomic_load(&thread->active) & SPAN_TARGET];
        loose[at % MAX_LOOSE] = (loose_span){
            .name = token->name,
            .serial = token->place[1] = ++last_serial,
            .start = token->start,
            .is_frame = is_frame,
            .number = (uint32_t)number,
            .own = thread->pipeline,
            .target = *target,
            .tid = (uint32_t)thread->tid,
        };
        token->place[0] = at % MAX_LOOSE;
        num_loose++;
    }
    pthread_mutex_unlock(&loose_lock);
}

void weir_span_trace_finish(span_thread *thread, const weir_span_token *token, int64_t begin_ns, int64_t end_ns)
{
    loose_span *span = &loose[token->place[0] % MAX_LOOSE];
    pthread_mutex_lock(&loose_lock);
    bool found = span->name && token->place[1] && span->serial == token->place[1];
    if (found && span->target.pipeline) {
        weir_trace_record record = loose_record(span, begin_ns, end_ns);
        weir_trace_add_user(span->target.pipeline, &record);
    }
    if (found) {
        *span = (loose_span){ .name = NULL };
        num_loose--;
    }
    pthread_mutex_unlock(&loose_lock);
    if (found || !thread)
        return;
    unsigned active = span_enter(thread);
    weir_span_trace(thread, active, token->name, WEIR_TRACE_SPAN, end_ns, begin_ns, 1);
    span_leave(thread, active);
}

weir_span_token weir_span_swap_frame(weir_span_name *name, weir_span_token next)
{
    pthread_mutex_lock(&loose_lock);
    weir_span_token before = name->frame;
    name->frame = next;
    pthread_mutex_unlock(&loose_lock);
    return before;
}

/* ---- what is open ------------------------------------------------------------------------------------------- */

typedef struct open_list {
    weir_trace_record *records;
    size_t room, count;
} open_list;

static void list_one(open_list *list, weir_trace_record record)
{
    record.detail = record.kind == WEIR_TRACE_FRAME ? 2 : record.detail;
    record.kind = WEIR_TRACE_OPEN;
    if (list->count++ < list->room)
        list->records[list->count - 1] = record;
}

size_t weir_span_trace_list(const weir_pipeline *pipeline, weir_trace_record *records, size_t room)
{
    open_spans open;
    open_list list = { records, room, 0 };
    weir_spans_lock();
    for (span_thread *thread = weir_span_threads; thread; thread = thread->next) {
        const span_target *target = &thread->targets[read_stack(thread, 0, NULL, &open) & SPAN_TARGET];
        for (uint32_t i = 0; target->pipeline == pipeline && i < open.count; i++)
            list_one(&list, span_record(open.all[i].name, target, weir_span_clock_ns(open.all[i].start), open.at_ns,
                                        (uint32_t)thread->tid, 0));
    }
    pthread_mutex_lock(&loose_lock);
    int64_t now_ns = weir_clock_ns();
    for (const loose_span *span = loose; span < loose + MAX_LOOSE && num_loose > 0; span++)
        if (span->name && span->target.pipeline == pipeline)
            list_one(&list, loose_record(span, weir_span_clock_ns(span->start), now_ns));
    pthread_mutex_unlock(&loose_lock);
    weir_spans_unlock();
    return list.count;
}
