#include "engine/measure/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "common/redact.h"
#include "common/unix_clock.h"
#include "engine/measure/failure_text.h"
#include "engine/measure/lap.h"
#include "engine/measure/reporting.h"

enum { MAX_LAPS = 64, MAX_BYTES = 16 << 20 };

/* The one whose messages this thread delivers: it is the observer thread. */
static _Thread_local const weir_outbox *taken_here;

/* An observer may report an event for each event that it gets. Without a limit, that would never end. */
enum { MAX_LATE = 64 };

int weir__outbox_init(weir_outbox *outbox)
{
    outbox->end = &outbox->first;
    outbox->start = calloc(1, sizeof *outbox->start);
    if (!outbox->start)
        return UV_ENOMEM;
    outbox->start->kind = MESSAGE_START;
    outbox->lock = WEIR_MUTEX;
    int code = uv_cond_init(&outbox->filled);
    outbox->filled_made = code == 0;
    if (code == 0)
        code = uv_cond_init(&outbox->reported);
    outbox->reported_made = code == 0;
    return code;
}

void weir__outbox_destroy(weir_outbox *outbox)
{
    free(outbox->start);
    while (outbox->first) {
        weir_message *message = outbox->first;
        outbox->first = message->next;
        weir__message_free(message);
    }
    if (outbox->reported_made)
        uv_cond_destroy(&outbox->reported);
    if (outbox->filled_made)
        uv_cond_destroy(&outbox->filled);
}

void weir__message_free(weir_message *message)
{
    if (message->kind == MESSAGE_LAP)
        weir__lap_free(message->lap);
    free(message);
}

/* ---- making messages ---------------------------------------------------------------------------------------- */

static weir_message *message_new(message_kind kind, size_t text_bytes, char **texts)
{
    weir_message *message = calloc(1, sizeof *message + text_bytes);
    if (!message)
        return NULL;
    message->kind = kind;
    message->size_bytes = sizeof *message + text_bytes;
    *texts = (char *)(message + 1);
    return message;
}

/* For texts of events, which the program or an operation has written. */
static const char *copy_redacted(char **texts, const char *text)
{
    size_t size = strlen(text) + 1;
    char *added = memcpy(*texts, text, size);
    *texts += size;
    weir__text_redact(added);
    return added;
}

static weir_message *failure_message(const weir_task *slot)
{
    char *texts;
    weir_message *message = message_new(MESSAGE_FAILURE, weir__failure_text_bytes(slot), &texts);
    if (message)
        weir__failure_fill(&message->failure, texts, slot);
    return message;
}

static weir_message *event_message(message_kind kind, const char *name, const char *category, const char *detail)
{
    char *texts;
    weir_message *message = message_new(kind, strlen(name) + strlen(category) + strlen(detail) + 3, &texts);
    if (!message)
        return NULL;
    message->event = (weir_event){
        .unix_ns = unix_clock_ns(),
        .name = copy_redacted(&texts, name),
        .category = copy_redacted(&texts, category),
        .detail = copy_redacted(&texts, detail),
    };
    return message;
}

/* ---- adding ------------------------------------------------------------------------------------------------- */

static void append_locked(weir_outbox *outbox, weir_message *message)
{
    message->next = NULL;
    *outbox->end = message;
    outbox->end = &message->next;
    outbox->bytes += message->size_bytes;
    outbox->num_laps += message->kind == MESSAGE_LAP;
}

/* Appends the message, or counts it in *dropped. Events that others report after the end are not of the run. */
static void offer_message(weir_outbox *outbox, weir_message *message, bool is_of_observer, uint64_t *dropped)
{
    uv_mutex_lock(&outbox->lock);
    bool is_open = !outbox->closed || (is_of_observer && outbox->num_late++ < MAX_LATE);
    bool fits = message && outbox->bytes + message->size_bytes <= MAX_BYTES && is_open;
    if (fits)
        append_locked(outbox, message);
    else if (!outbox->closed || is_of_observer)
        ++*dropped;
    uv_mutex_unlock(&outbox->lock);
    if (fits)
        uv_cond_signal(&outbox->filled);
    else
        free(message);
}

void weir__outbox_add_start(weir_outbox *outbox)
{
    weir_message *start = outbox->start;
    outbox->start = NULL;
    offer_message(outbox, start, false, &outbox->dropped_events);
}

void weir__outbox_add_failure(weir_pipeline *pipeline, const weir_task *slot)
{
    weir_outbox *outbox = &pipeline->reporting->outbox;
    if (pipeline->reporting->wants_failures)
        offer_message(outbox, failure_message(slot), false, &outbox->dropped_failures);
}

int weir__outbox_add_event(weir_pipeline *pipeline, const char *name, const char *category, const char *detail)
{
    weir_outbox *outbox = &pipeline->reporting->outbox;
    if (!pipeline->reporting->wants_events)
        return WEIR_OK;
    weir_message *message = event_message(MESSAGE_EVENT, name, category ? category : "", detail ? detail : "");
    if (!message)
        return WEIR_ENOMEM;
    offer_message(outbox, message, taken_here == outbox, &outbox->dropped_events);
    return WEIR_OK;
}

void weir__outbox_add_stall(weir_pipeline *pipeline, const char *stage, const char *text)
{
    weir_outbox *outbox = &pipeline->reporting->outbox;
    offer_message(outbox, event_message(MESSAGE_STALL, "stall", stage, text), false, &outbox->dropped_events);
}

/* Removes the newest lap of this mode and phase if laps have to be joined. Failures and events after it keep their
   order. NULL = there is none, or laps need not be joined. */
static weir_message *take_newest_lap_locked(weir_outbox *outbox, const weir__lap *lap)
{
    weir_message **newest = NULL;
    if (outbox->num_laps < MAX_LAPS)
        return NULL;
    for (weir_message **link = &outbox->first; *link; link = &(*link)->next)
        if ((*link)->kind == MESSAGE_LAP && weir__lap_is_at((*link)->lap, lap->mode, lap->phase))
            newest = link;
    if (!newest)
        return NULL;
    weir_message *message = *newest;
    *newest = message->next;
    if (!message->next)
        outbox->end = newest;
    outbox->num_laps--;
    return message;
}

bool weir__outbox_add_lap(weir_pipeline *pipeline, weir__lap *lap)
{
    weir_outbox *outbox = &pipeline->reporting->outbox;
    uv_mutex_lock(&outbox->lock);
    weir_message *message = take_newest_lap_locked(outbox, lap);
    uv_mutex_unlock(&outbox->lock);

    if (message) {
        weir__lap_join(message->lap, lap);
    } else {
        message = calloc(1, sizeof *message);
        if (!message)
            return false;
        message->kind = MESSAGE_LAP;
        message->lap = lap;
        weir__lap_queue(lap);
    }
    uv_mutex_lock(&outbox->lock);
    append_locked(outbox, message);
    uv_mutex_unlock(&outbox->lock);
    uv_cond_signal(&outbox->filled);
    return true;
}

void weir__outbox_close(weir_outbox *outbox)
{
    uv_mutex_lock(&outbox->lock);
    outbox->closed = true;
    uv_mutex_unlock(&outbox->lock);
    uv_cond_signal(&outbox->filled);
    uv_cond_broadcast(&outbox->reported);
}

void weir__outbox_wake(weir_outbox *outbox)
{
    uv_mutex_lock(&outbox->lock);
    outbox->woken = true;
    uv_mutex_unlock(&outbox->lock);
    uv_cond_signal(&outbox->filled);
}

/* ---- taking ------------------------------------------------------------------------------------------------- */

bool weir__outbox_take(weir_outbox *outbox, int64_t timeout_ns, weir_message **taken)
{
    uv_mutex_lock(&outbox->lock);
    bool timed_out = false;
    while (!outbox->first && !outbox->closed && !outbox->woken && !timed_out) {
        if (timeout_ns == WEIR_FOREVER)
            uv_cond_wait(&outbox->filled, &outbox->lock);
        else
            timed_out = uv_cond_timedwait(&outbox->filled, &outbox->lock, (uint64_t)timeout_ns) == UV_ETIMEDOUT;
    }
    weir_message *message = *taken = outbox->first;
    if (message) {
        outbox->first = message->next;
        if (!outbox->first)
            outbox->end = &outbox->first;
        outbox->bytes -= message->size_bytes;
        outbox->num_laps -= message->kind == MESSAGE_LAP;
    }
    outbox->woken = false;
    bool ended = !message && outbox->closed;
    taken_here = ended ? NULL : outbox;
    uv_mutex_unlock(&outbox->lock);
    return !ended;
}

/* ---- requests ------------------------------------------------------------------------------------------------- */

uint64_t weir__outbox_ask(weir_outbox *outbox)
{
    if (taken_here == outbox)
        return 0;
    uv_mutex_lock(&outbox->lock);
    uint64_t asked = ++outbox->num_asked;
    uv_mutex_unlock(&outbox->lock);
    return asked;
}

uint64_t weir__outbox_last_asked(weir_outbox *outbox)
{
    uv_mutex_lock(&outbox->lock);
    uint64_t asked = outbox->num_asked;
    uv_mutex_unlock(&outbox->lock);
    return asked;
}

bool weir__outbox_add_asked(weir_outbox *outbox, uint64_t asked)
{
    weir_message *message = calloc(1, sizeof *message);
    if (!message)
        return false;
    message->kind = MESSAGE_ASKED;
    message->asked = asked;
    uv_mutex_lock(&outbox->lock);
    append_locked(outbox, message);
    uv_mutex_unlock(&outbox->lock);
    uv_cond_signal(&outbox->filled);
    return true;
}

void weir__outbox_answer(weir_outbox *outbox, uint64_t asked)
{
    uv_mutex_lock(&outbox->lock);
    outbox->num_reported = asked;
    uv_mutex_unlock(&outbox->lock);
    uv_cond_broadcast(&outbox->reported);
}

int weir__outbox_await(weir_outbox *outbox, uint64_t asked, int64_t timeout_ns)
{
    const int64_t begin_ns = weir_clock_ns();
    uv_mutex_lock(&outbox->lock);
    while (outbox->num_reported < asked && !outbox->closed) {
        int64_t left_ns = timeout_ns == WEIR_FOREVER ? WEIR_SECOND : timeout_ns - (weir_clock_ns() - begin_ns);
        if (left_ns <= 0)
            break;
        uv_cond_timedwait(&outbox->reported, &outbox->lock, (uint64_t)left_ns);
    }
    int status = outbox->num_reported >= asked ? WEIR_OK : outbox->closed ? WEIR_EOF : WEIR_ETIMEDOUT;
    uv_mutex_unlock(&outbox->lock);
    return status;
}

void weir__outbox_take_dropped(weir_outbox *outbox, uint64_t *failures, uint64_t *events)
{
    uv_mutex_lock(&outbox->lock);
    *failures = outbox->dropped_failures;
    *events = outbox->dropped_events;
    outbox->dropped_failures = outbox->dropped_events = 0;
    uv_mutex_unlock(&outbox->lock);
}
