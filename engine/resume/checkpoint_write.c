/* The text of a checkpoint: what checkpoint.c reads. */
#include <weir/checkpoint.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/resume/tracked.h"

/* Text in memory that was allocated without the lock; `needed` counts what does not fit, too. */
typedef struct text_room {
    char *text;
    size_t size, needed;
} text_room;

static void print_text(text_room *to, const char *format, ...)
{
    va_list arguments;
    size_t left = to->needed < to->size ? to->size - to->needed : 0;
    va_start(arguments, format);
    int length = vsnprintf(left ? to->text + to->needed : NULL, left, format, arguments);
    va_end(arguments);
    to->needed += (size_t)length;
}

/* The epoch with which a resumed pipeline must begin. */
static uint64_t resume_epoch_locked(const weir_tracker *tracker)
{
    uint64_t epoch = tracker->epochs_delivered;
    for (uint32_t i = 0; i < tracker->num_sources; i++)
        for (const done_set *set = tracker->sources[i].sets; set && tracker->sources[i].node->core.epochs;
             set = set->next)
            if (!weir__done_set_is_complete(set) && set->epoch < epoch)
                epoch = set->epoch;
    return epoch;
}

/* Removes one set of an epoch that no checkpoint needs any more. NULL = no such set. */
static done_set *take_old_locked(weir_tracker *tracker, uint64_t epoch)
{
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        tracked_source *source = &tracker->sources[i];
        done_set *set = source->sets;
        if (!set || !source->node->core.epochs || set->epoch >= epoch)
            continue;
        source->sets = set->next;
        return set;
    }
    return NULL;
}

static void add_set_text_locked(const done_set *set, text_room *to)
{
    uint64_t end = weir__done_set_limit(set);
    print_text(to, "done %" PRIu64 " %" PRIu64, set->epoch, set->low);
    for (uint64_t first = set->low + 1, last; first < end; first = last + 1) {
        last = first;
        if (!weir__done_set_has(set, first))
            continue;
        while (weir__done_set_has(set, last + 1))
            last++;
        print_text(to, last > first ? " %" PRIu64 "-%" PRIu64 : " %" PRIu64, first, last);
    }
    print_text(to, "\n");
}

static void add_chunks_text_locked(const weir_tracker *tracker, uint32_t source, text_room *to)
{
    const tracked_source *from = &tracker->sources[source];
    uint64_t num_left = tracker->num_recorded;
    for (size_t i = 0; i < from->num_chunks; i++)
        print_text(to, "chunks %" PRIu64 " %" PRIu64 " %" PRIx64 "\n", from->chunks[i].epoch, from->chunks[i].seq,
                   from->chunks[i].path);
    for (uint32_t i = 1; num_left && i < tracker->num_blocks * TICKETS_PER_BLOCK; i++) {
        const tracked_ticket *root = weir__tracked_ticket_at(tracker, i);
        if (root->path != UINT64_MAX || !root->chunks)
            continue;
        if (root->source == source)
            print_text(to, "chunks %" PRIu64 " %" PRIu64, root->epoch, root->seq);
        for (uint32_t chunk = root->chunks; chunk; chunk = weir__tracked_ticket_at(tracker, chunk)->next, num_left--)
            if (root->source == source)
                print_text(to, " %" PRIx64, weir__tracked_ticket_at(tracker, chunk)->path);
        if (root->source == source)
            print_text(to, "\n");
    }
}

static void add_indented(text_room *to, const char *lines)
{
    while (lines && *lines) {
        size_t length = strcspn(lines, "\n");
        print_text(to, "  %.*s\n", (int)length, lines);
        lines += length + (lines[length] == '\n');
    }
}

/* Where items have new numbers, the sets of this run do not say what the runs before it had begun. */
static void add_begun_text(const tracked_source *source, text_room *to)
{
    if (source->node->op->renumber && source->begun_before)
        print_text(to, "begun %" PRIu64 " %" PRIu64 "\n", source->begun_before, source->num_left_over);
}

static void write_locked(const weir_tracker *tracker, uint64_t epoch, char *const *saved, text_room *to)
{
    to->needed = 0;
    print_text(to, "weir checkpoint 2\nepoch %" PRIu64 "\n", epoch);
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        print_text(to, "source %" PRIu32 " %s\n", i, tracker->sources[i].node->short_name);
        add_indented(to, saved[i]);
        add_begun_text(&tracker->sources[i], to);
        for (const done_set *set = tracker->sources[i].sets; set; set = set->next)
            add_set_text_locked(set, to);
        add_chunks_text_locked(tracker, i, to);
    }
}

/* The texts that the sources write (weir_op.save). */
static int save_sources(const weir_tracker *tracker, uint64_t epoch, char **saved)
{
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        const weir_node *node = tracker->sources[i].node;
        if (node->op->save && !(saved[i] = node->op->save(node->config, epoch)))
            return WEIR_ENOMEM;
    }
    return WEIR_OK;
}

static uint64_t forget_old_epochs(weir_tracker *tracker)
{
    done_set *old;
    uint64_t epoch;
    do {
        uv_mutex_lock(&tracker->lock);
        epoch = resume_epoch_locked(tracker);
        old = take_old_locked(tracker, epoch);
        uv_mutex_unlock(&tracker->lock);
        weir__done_set_free(old);
    } while (old);
    return epoch;
}

/* Memory is allocated without the lock, until the text fits. */
static int write_text(weir_tracker *tracker, uint64_t epoch, char *const *saved, char **text)
{
    text_room room = { 0 };
    do {
        room.size = room.needed + room.needed / 8 + 256 + WEIR__CHECKPOINT_END;
        free(room.text);
        room.text = malloc(room.size);
        if (!room.text)
            return WEIR_ENOMEM;
        uv_mutex_lock(&tracker->lock);
        write_locked(tracker, epoch, saved, &room);
        uv_mutex_unlock(&tracker->lock);
    } while (room.needed + WEIR__CHECKPOINT_END > room.size);
    weir__checkpoint_end(room.text, room.needed, room.text + room.needed);
    *text = room.text;
    return WEIR_OK;
}

int weir_pipeline_checkpoint(weir_pipeline *pipeline, char **text)
{
    if (text)
        *text = NULL;
    if (!pipeline || !text)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    weir_tracker *tracker = pipeline->tracker;
    if (!tracker)
        return WEIR_EUNSUPPORTED;
    uint64_t epoch = forget_old_epochs(tracker);
    char **saved = calloc(tracker->num_sources, sizeof *saved);
    int status = saved ? save_sources(tracker, epoch, saved) : WEIR_ENOMEM;
    if (status == WEIR_OK)
        status = write_text(tracker, epoch, saved, text);
    for (uint32_t i = 0; saved && i < tracker->num_sources; i++)
        free(saved[i]);
    free(saved);
    return status;
}
