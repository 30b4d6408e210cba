#include "engine/resume/tracker.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/label.h"
#include "engine/resume/checkpoint_parsed.h"

enum {
    MARKS_PER_BLOCK = 4096,
    NUM_BLOCKS = 4096,
    INDEX_BITS = 24,
    INDEX_MASK = (1 << INDEX_BITS) - 1,
};

typedef struct tracked_mark {
    /* owned by the list that the mark is in */
    uint32_t next; /* 0 = the last; also of the free list */

    /* guarded by lock */
    uint32_t refs;
    uint32_t parent; /* 0 = a root */
    uint32_t chunks; /* of a root: its done chunks */

    /* immutable from the making of the mark to its end */
    uint32_t root;
    uint32_t source;
    uint64_t epoch;
    uint64_t seq;
    uint64_t path; /* of a root: UINT64_MAX */

    uint8_t generation; /* of the handle, so that a stale one is recognised */
} tracked_mark;

/* A ring of bits, one for each item from `low` on. */
typedef struct done_set {
    uint64_t epoch;
    uint64_t low;
    uint64_t total; /* of items; UINT64_MAX = the source has not ended this epoch */
    uint64_t *words;
    uint64_t num_words; /* a power of 2 */
    struct done_set *next;
} done_set;

/* Guarded by lock, except the first line. */
typedef struct tracked_source {
    weir_node *node;
    done_set *sets;          /* by epoch; only the source's thread adds one */
    weir_done_chunk *chunks; /* done in an earlier run, of items that have not been made again */
    size_t num_chunks;
    uint64_t begun_before, num_left_over; /* as in weir_done_source, of all checkpoints that were given */
} tracked_source;

struct weir_tracker {
    /* immutable after init */
    bool acknowledged; /* WEIR_CHECKPOINTS_DONE */
    bool retry_failed; /* failed items are not done */
    bool lock_made;
    tracked_source *sources;
    uint32_t num_sources;

    uv_mutex_t lock;

    /* guarded by lock; a block does not move once it is there */
    tracked_mark **blocks;
    uint32_t num_blocks;
    uint32_t free;         /* list of marks */
    uint64_t num_recorded; /* chunks in lists of roots */
    uint64_t epochs_delivered;
};

/* The slot whose step this thread runs. */
static _Thread_local weir_slot *step_slot;

/* ---- marks ---------------------------------------------------------------------------------------------------- */

static tracked_mark *mark_at(const weir_tracker *tracker, uint32_t handle)
{
    uint32_t index = handle & INDEX_MASK;
    return &tracker->blocks[index / MARKS_PER_BLOCK][index % MARKS_PER_BLOCK];
}

static uint32_t handle_of(uint32_t index, const tracked_mark *mark)
{
    return index | (uint32_t)mark->generation << INDEX_BITS;
}

/* The handle, or 0 if it is of another pipeline, or of an item that has ended. */
static uint32_t check_handle(const weir_tracker *tracker, uint32_t handle)
{
    uint32_t index = handle & INDEX_MASK;
    bool is_known = handle && tracker->blocks[index / MARKS_PER_BLOCK];
    return is_known && mark_at(tracker, handle)->generation == handle >> INDEX_BITS ? handle : 0;
}

static uint32_t join_lists(const weir_tracker *tracker, uint32_t list, uint32_t other)
{
    if (!list || !other)
        return list ? list : other;
    tracked_mark *last = mark_at(tracker, list);
    while (last->next)
        last = mark_at(tracker, last->next);
    last->next = other;
    return list;
}

static void add_block_locked(weir_tracker *tracker, tracked_mark *block)
{
    static atomic_uint num_made; /* consecutive pipelines have different generations */
    uint8_t generation = (uint8_t)(atomic_fetch_add(&num_made, 41) % 255 + 1);
    uint32_t first = tracker->num_blocks * MARKS_PER_BLOCK;
    tracker->blocks[tracker->num_blocks++] = block;
    uint32_t lowest = first == 0 ? 1 : 0; /* index 0 stands for no mark */
    for (uint32_t i = MARKS_PER_BLOCK; i-- > lowest;) {
        block[i].generation = generation;
        block[i].next = tracker->free;
        tracker->free = handle_of(first + i, &block[i]);
    }
}

/* Allocates without the lock. WEIR_OK with the lock held, or WEIR_ENOMEM without. */
static int lock_with_free_marks(weir_tracker *tracker)
{
    uv_mutex_lock(&tracker->lock);
    if (tracker->free)
        return WEIR_OK;
    uv_mutex_unlock(&tracker->lock);
    tracked_mark *block = calloc(MARKS_PER_BLOCK, sizeof *block);
    uv_mutex_lock(&tracker->lock);
    if (block && tracker->num_blocks < NUM_BLOCKS) {
        add_block_locked(tracker, block);
        return WEIR_OK;
    }
    uv_mutex_unlock(&tracker->lock);
    free(block);
    return WEIR_ENOMEM;
}

static uint32_t mark_new_locked(weir_tracker *tracker, tracked_mark values)
{
    uint32_t handle = tracker->free;
    tracked_mark *mark = mark_at(tracker, handle);
    tracker->free = mark->next;
    values.generation = mark->generation;
    *mark = values;
    mark->root = mark->parent ? mark->root : handle;
    return handle;
}

static void mark_free_locked(weir_tracker *tracker, uint32_t handle)
{
    tracked_mark *mark = mark_at(tracker, handle);
    mark->generation = (uint8_t)(mark->generation % 255 + 1);
    mark->chunks = 0;
    mark->next = tracker->free;
    tracker->free = handle_of(handle & INDEX_MASK, mark);
}

/* ---- done items ------------------------------------------------------------------------------------------------- */

static uint64_t *word_of(const done_set *set, uint64_t seq)
{
    return &set->words[seq / 64 & (set->num_words - 1)];
}

static bool has_room(const done_set *set, uint64_t seq)
{
    return seq / 64 - set->low / 64 < set->num_words;
}

static bool is_done(const done_set *set, uint64_t seq)
{
    return seq < set->low || (has_room(set, seq) && *word_of(set, seq) >> seq % 64 & 1);
}

static void set_done(done_set *set, uint64_t seq)
{
    *word_of(set, seq) |= UINT64_C(1) << seq % 64;
    while (*word_of(set, set->low) >> set->low % 64 & 1) {
        *word_of(set, set->low) &= ~(UINT64_C(1) << set->low % 64);
        set->low++;
    }
}

static done_set *find_done_set(const tracked_source *source, uint64_t epoch)
{
    done_set *set = source->sets;
    while (set && set->epoch != epoch)
        set = set->next;
    return set;
}

static done_set *done_set_new(uint64_t epoch)
{
    done_set *set = calloc(1, sizeof *set);
    if (set)
        *set =
            (done_set){ .epoch = epoch, .total = UINT64_MAX, .num_words = 1, .words = calloc(1, sizeof *set->words) };
    if (set && set->words)
        return set;
    free(set);
    return NULL;
}

static void done_set_free(done_set *set)
{
    if (set)
        free(set->words);
    free(set);
}

/* Adds the set of the epoch, unless it is there. On the source's thread. */
static int add_set(weir_tracker *tracker, tracked_source *source, uint64_t epoch, done_set **added)
{
    uv_mutex_lock(&tracker->lock);
    *added = find_done_set(source, epoch);
    uv_mutex_unlock(&tracker->lock);
    if (*added)
        return WEIR_OK;
    *added = done_set_new(epoch);
    if (!*added)
        return WEIR_ENOMEM;
    uv_mutex_lock(&tracker->lock);
    done_set **end = &source->sets;
    while (*end)
        end = &(*end)->next;
    *end = *added;
    uv_mutex_unlock(&tracker->lock);
    return WEIR_OK;
}

/* Only the source's thread adds room, before it makes the item. */
static int make_room(weir_tracker *tracker, done_set *set, uint64_t seq)
{
    uv_mutex_lock(&tracker->lock);
    uint64_t needed = seq < set->low ? 0 : seq / 64 - set->low / 64 + 1;
    uv_mutex_unlock(&tracker->lock);
    if (needed <= set->num_words)
        return WEIR_OK;
    uint64_t num_words = set->num_words;
    while (num_words < needed)
        num_words *= 2;
    uint64_t *words = calloc(num_words, sizeof *words);
    if (!words)
        return WEIR_ENOMEM;
    uv_mutex_lock(&tracker->lock);
    uint64_t *old = set->words;
    done_set larger = { .words = words, .num_words = num_words };
    for (uint64_t i = 0; i < set->num_words; i++) {
        uint64_t at = (set->low / 64 + i) * 64;
        *word_of(&larger, at) = *word_of(set, at);
    }
    set->words = words;
    set->num_words = num_words;
    uv_mutex_unlock(&tracker->lock);
    free(old);
    return WEIR_OK;
}

/* ---- finishing ------------------------------------------------------------------------------------------------ */

static void root_done_locked(weir_tracker *tracker, uint32_t handle)
{
    tracked_mark *root = mark_at(tracker, handle);
    for (uint32_t chunk = root->chunks, next; chunk; chunk = next) {
        next = mark_at(tracker, chunk)->next;
        mark_free_locked(tracker, chunk);
        tracker->num_recorded--;
    }
    done_set *set = find_done_set(&tracker->sources[root->source], root->epoch);
    set_done(set, root->seq);
    mark_free_locked(tracker, handle);
}

static void finish_locked(weir_tracker *tracker, uint32_t handle)
{
    while (handle) {
        tracked_mark *mark = mark_at(tracker, handle);
        if (--mark->refs)
            return;
        if (!mark->parent) {
            root_done_locked(tracker, handle);
            return;
        }
        uint32_t parent = mark->parent;
        if (mark->path) {
            tracked_mark *root = mark_at(tracker, mark->root);
            mark->next = root->chunks;
            root->chunks = handle;
            tracker->num_recorded++;
        } else {
            mark_free_locked(tracker, handle);
        }
        handle = parent;
    }
}

static void finish_list_locked(weir_tracker *tracker, uint32_t list)
{
    while (list) {
        uint32_t next = mark_at(tracker, list)->next;
        finish_locked(tracker, list);
        list = next;
    }
}

static void finish_list(weir_tracker *tracker, uint32_t list)
{
    if (!list)
        return;
    uv_mutex_lock(&tracker->lock);
    finish_list_locked(tracker, list);
    uv_mutex_unlock(&tracker->lock);
}

static weir_batch *batch_in(const weir_item *item)
{
    return item->release == weir_batch_release ? item->data : NULL;
}

/* The item itself, and the items of a batch. */
static void finish_item_locked(weir_tracker *tracker, weir_item *item)
{
    weir_batch *batch = batch_in(item);
    finish_list_locked(tracker, check_handle(tracker, item->marks));
    item->marks = 0;
    for (size_t i = 0; batch && i < batch->num_items; i++)
        finish_item_locked(tracker, &batch->items[i]);
}

static void finish_item(weir_tracker *tracker, weir_item *item)
{
    uv_mutex_lock(&tracker->lock);
    finish_item_locked(tracker, item);
    uv_mutex_unlock(&tracker->lock);
}

void weir__tracker_delivered(weir_tracker *tracker, weir_item *item)
{
    if (!tracker->acknowledged)
        finish_item(tracker, item);
}

void weir__tracker_epoch_delivered(weir_tracker *tracker)
{
    uv_mutex_lock(&tracker->lock);
    tracker->epochs_delivered++;
    uv_mutex_unlock(&tracker->lock);
}

int weir_item_done(weir_pipeline *pipeline, weir_item *item)
{
    if (!pipeline || !item)
        return WEIR_EINVAL;
    if (is_of_parent(pipeline))
        return WEIR_EFORKED;
    if (!pipeline->tracker || !pipeline->tracker->acknowledged)
        return WEIR_EUNSUPPORTED;
    finish_item(pipeline->tracker, item);
    return WEIR_OK;
}

/* ---- moving ----------------------------------------------------------------------------------------------------- */

static void marks_released(weir_item *item)
{
    weir_slot *slot = step_slot;
    weir_tracker *tracker = slot ? slot->node->pipeline->tracker : NULL;
    if (!tracker)
        return; /* the consumer's item, or one that was dropped */
    if (item->marks == slot->in_marks)
        slot->in_marks_back = true;
    else
        slot->released_marks = join_lists(tracker, check_handle(tracker, item->marks), slot->released_marks);
}

static void marks_move(weir_item *to, weir_item *from, bool is_kept)
{
    if (step_slot && from == &step_slot->core.in && !(is_kept && step_slot->node->op->flush))
        return;
    to->marks = from->marks;
    from->marks = 0;
}

static const weir_item_watcher watcher = { .marks_released = marks_released, .marks_move = marks_move };

/* ---- sources ---------------------------------------------------------------------------------------------------- */

/* Marks for the results of this item that are done since an earlier run. */
static int remember_chunks(weir_tracker *tracker, tracked_source *source, uint32_t root, uint64_t epoch, uint64_t seq)
{
    for (size_t i = 0; i < source->num_chunks;) {
        weir_done_chunk *chunk = &source->chunks[i];
        if (chunk->epoch != epoch || chunk->seq != seq) {
            i++;
            continue;
        }
        if (lock_with_free_marks(tracker) != WEIR_OK)
            return WEIR_ENOMEM;
        tracked_mark *from = mark_at(tracker, root);
        tracked_mark values = { .parent = root, .root = root, .path = chunk->path, .next = from->chunks };
        from->chunks = mark_new_locked(tracker, values);
        tracker->num_recorded++;
        *chunk = source->chunks[--source->num_chunks];
        uv_mutex_unlock(&tracker->lock);
    }
    return WEIR_OK;
}

static int made_item(weir_tracker *tracker, weir_slot *slot)
{
    tracked_source *source = &tracker->sources[slot->node->core.source_index];
    tracked_mark root = { .refs = 1,
                          .source = slot->node->core.source_index,
                          .epoch = slot->core.in.epoch,
                          .seq = slot->core.in.seq,
                          .path = UINT64_MAX };
    uv_mutex_lock(&tracker->lock);
    done_set *set = find_done_set(source, root.epoch);
    bool was_done = set && is_done(set, root.seq);
    while (!was_done && (!set || !has_room(set, root.seq) || !tracker->free)) {
        uv_mutex_unlock(&tracker->lock);
        int status = add_set(tracker, source, root.epoch, &set);
        if (status == WEIR_OK)
            status = make_room(tracker, set, root.seq);
        if (status == WEIR_OK)
            status = lock_with_free_marks(tracker);
        if (status != WEIR_OK)
            return status;
    }
    slot->core.out.marks = was_done ? 0 : mark_new_locked(tracker, root);
    uv_mutex_unlock(&tracker->lock);
    slot->core.in.seq += was_done;
    return was_done             ? WEIR_SKIP
           : source->num_chunks ? remember_chunks(tracker, source, slot->core.out.marks, root.epoch, root.seq)
                                : WEIR_OK;
}

static uint64_t find_done_end(const done_set *set)
{
    uint64_t end = (set->low / 64 + set->num_words) * 64;
    while (end > set->low && !is_done(set, end - 1))
        end--;
    return end;
}

/* Only an earlier run, of other items, can have done more than there are. */
int weir__tracker_source_ended(weir_slot *slot, int status)
{
    weir_tracker *tracker = slot->node->pipeline->tracker;
    uint64_t total = slot->core.in.seq;
    done_set *set;
    if (add_set(tracker, &tracker->sources[slot->node->core.source_index], slot->core.in.epoch, &set) != WEIR_OK)
        return status; /* the epoch will not count as complete */
    uv_mutex_lock(&tracker->lock);
    uint64_t end = find_done_end(set);
    set->total = total;
    uv_mutex_unlock(&tracker->lock);
    if (end <= total)
        return status;
    slot->error = (weir_error){ 0 };
    return weir_error_set(&slot->error, WEIR_EDATA, 0,
                          "the checkpoint says that %" PRIu64 " items of epoch %" PRIu64
                          " have been begun, but there are only %" PRIu64
                          ": it is of another dataset; use that one, or start without it",
                          end, slot->core.in.epoch, total);
}

/* An indexed source makes the next item that is not done. */
static void seek_path(weir_tracker *tracker, weir_slot *slot)
{
    uv_mutex_lock(&tracker->lock);
    const done_set *set = find_done_set(&tracker->sources[slot->node->core.source_index], slot->core.in.epoch);
    while (set && is_done(set, slot->core.in.seq))
        slot->core.in.seq = slot->core.in.seq < set->low ? set->low : slot->core.in.seq + 1;
    uv_mutex_unlock(&tracker->lock);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

void weir__tracker_step_begins(weir_slot *slot)
{
    step_slot = slot;
    if (slot->node->core.num_ins == 0) {
        if (slot->node->op->resume && !slot->core.finishing)
            seek_path(slot->node->pipeline->tracker, slot);
    } else if (slot->core.starts_task) {
        slot->in_marks = slot->core.in.marks;
        slot->in_marks_back = false;
    }
}

static uint64_t path_of(const weir_slot *slot, uint64_t parent)
{
    uint64_t path = parent ^ ((uint64_t)slot->node->core.index << 32 | slot->core.num_chunks);
    path = (path ^ (path >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    path = (path ^ (path >> 27)) * UINT64_C(0x94d049bb133111eb);
    path ^= path >> 31;
    return path ? path : 1;
}

static bool is_recorded_locked(const weir_tracker *tracker, uint32_t root, uint64_t path)
{
    uint32_t chunk = mark_at(tracker, root)->chunks;
    while (chunk && mark_at(tracker, chunk)->path != path)
        chunk = mark_at(tracker, chunk)->next;
    return chunk != 0;
}

/* Adds a chunk of this mark to the list. */
static int add_chunk(weir_tracker *tracker, uint32_t parent, uint64_t path, uint32_t *list)
{
    int status = lock_with_free_marks(tracker);
    if (status != WEIR_OK)
        return status;
    tracked_mark *of = mark_at(tracker, parent);
    if (path && is_recorded_locked(tracker, of->root, path)) {
        status = WEIR_SKIP;
    } else {
        of->refs++;
        *list = mark_new_locked(
            tracker, (tracked_mark){ .refs = 1, .parent = parent, .root = of->root, .path = path, .next = *list });
    }
    uv_mutex_unlock(&tracker->lock);
    return status;
}

static int add_blind_chunks(weir_tracker *tracker, uint32_t parents, uint32_t *list)
{
    int status = WEIR_OK;
    for (uint32_t parent = parents; parent && status == WEIR_OK; parent = mark_at(tracker, parent)->next)
        status = add_chunk(tracker, parent, 0, list);
    return status;
}

/* Marks the result as a chunk of the task's input. WEIR_SKIP: it is done. */
static int make_chunk(weir_tracker *tracker, weir_slot *slot)
{
    weir_batch *batch = batch_in(&slot->core.in);
    int status = add_blind_chunks(tracker, slot->carried_marks, &slot->core.out.marks);
    for (size_t i = 0; batch && i < batch->num_items && status == WEIR_OK; i++)
        status = add_blind_chunks(tracker, check_handle(tracker, batch->items[i].marks), &slot->core.out.marks);
    if (!slot->in_marks || status != WEIR_OK)
        return status;
    const tracked_mark *in = mark_at(tracker, slot->in_marks);
    bool is_alone = !slot->core.out.marks && !in->next && in->path;
    return is_alone ? add_chunk(tracker, slot->in_marks, path_of(slot, in->path), &slot->core.out.marks)
                    : add_blind_chunks(tracker, slot->in_marks, &slot->core.out.marks);
}

/* What the result got by weir_item_move(). */
static uint32_t moved_marks(weir_tracker *tracker, weir_slot *slot)
{
    uint32_t moved = check_handle(tracker, slot->core.out.marks);
    slot->core.out.marks = 0;
    if (moved != slot->in_marks)
        return moved;
    slot->in_marks_back = true;
    return 0;
}

/* What the task still has when it ends. An operation without flush cannot keep its input. */
static uint32_t own_marks(weir_tracker *tracker, weir_slot *slot)
{
    bool has_in = slot->in_marks_back || !slot->node->op->flush;
    uint32_t own = join_lists(tracker, slot->released_marks, slot->carried_marks);
    own = has_in ? join_lists(tracker, slot->in_marks, own) : own;
    slot->in_marks = slot->released_marks = slot->carried_marks = 0;
    return own;
}

static int made_one_of_several(weir_tracker *tracker, weir_slot *slot)
{
    uint32_t moved = moved_marks(tracker, slot);
    uint32_t released = slot->released_marks;
    slot->released_marks = 0;
    if (slot->node->op->flush) {
        moved = join_lists(tracker, moved, released);
    } else {
        slot->carried_marks = join_lists(tracker, released, slot->carried_marks); /* until the last result */
    }
    slot->core.out.marks = moved;
    return moved ? WEIR_OK : make_chunk(tracker, slot);
}

static int made_last(weir_tracker *tracker, weir_slot *slot)
{
    slot->core.out.marks = moved_marks(tracker, slot);
    slot->out_is_chunk = slot->core.num_chunks && slot->in_marks && !slot->core.out.marks && !slot->released_marks &&
                         !slot->carried_marks && !slot->node->op->flush;
    return slot->out_is_chunk ? make_chunk(tracker, slot) : WEIR_OK;
}

int weir__tracker_made(weir_slot *slot, int status)
{
    weir_tracker *tracker = slot->node->pipeline->tracker;
    int result = slot->node->core.num_ins == 0 ? made_item(tracker, slot)
                 : status == WEIR_MORE         ? made_one_of_several(tracker, slot)
                                               : made_last(tracker, slot);
    if (result != WEIR_OK)
        item_drop(&slot->core.out);
    slot->core.passed_over = result == WEIR_SKIP && status == WEIR_MORE;
    if (result < 0) {
        slot->error = (weir_error){ 0 };
        return weir_error_set(&slot->error, result, 0, "no memory for the checkpoint of another item");
    }
    return result == WEIR_SKIP && status == WEIR_OK ? WEIR_SKIP : status;
}

/* Asked to stop, it has dropped its input; or the pipeline fails because of it. */
static bool was_dropped(const weir_tracker *tracker, const weir_slot *slot, int status)
{
    return status < 0 &&
           (tracker->retry_failed || slot->core.place == WEIR__PLACE_LOST ||
            (status != WEIR_ETIMEDOUT && atomic_load_explicit(&slot->should_stop, memory_order_relaxed)));
}

/* The task runs again with another input, which has the marks of the one that failed. */
static void input_replaced(const weir_tracker *tracker, weir_slot *slot)
{
    slot->carried_marks = join_lists(tracker, slot->released_marks, slot->carried_marks);
    slot->released_marks = 0;
    slot->core.in.marks = slot->in_marks_back || !slot->node->op->flush ? slot->in_marks : 0;
}

static void task_step_ends(weir_tracker *tracker, weir_slot *slot, int status)
{
    if (status == WEIR_MORE || status == WEIR_PENDING)
        return;
    if (status < 0 && slot->core.place == WEIR__PLACE_FILLED) {
        input_replaced(tracker, slot);
        return;
    }
    uint32_t own = own_marks(tracker, slot);
    if (status == WEIR_KEPT)
        slot->carried_marks = own;
    else if (status == WEIR_OK && !slot->out_is_chunk)
        slot->core.out.marks = join_lists(tracker, slot->core.out.marks, own);
    else if (!was_dropped(tracker, slot, status))
        finish_list(tracker, own); /* the input of chunks waits for them */
}

void weir__tracker_step_ends(weir_slot *slot, int status)
{
    weir_tracker *tracker = slot->node->pipeline->tracker;
    if (slot->node->core.num_ins)
        task_step_ends(tracker, slot, status);
    step_slot = NULL;
}

/* ---- the text --------------------------------------------------------------------------------------------------- */

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

static bool is_set_complete(const done_set *set)
{
    return set->low >= set->total;
}

/* The epoch with which a resumed pipeline must begin. */
static uint64_t resume_epoch_locked(const weir_tracker *tracker)
{
    uint64_t epoch = tracker->epochs_delivered;
    for (uint32_t i = 0; i < tracker->num_sources; i++)
        for (const done_set *set = tracker->sources[i].sets; set && tracker->sources[i].node->core.epochs;
             set = set->next)
            if (!is_set_complete(set) && set->epoch < epoch)
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
    uint64_t end = (set->low / 64 + set->num_words) * 64;
    print_text(to, "done %" PRIu64 " %" PRIu64, set->epoch, set->low);
    for (uint64_t first = set->low + 1, last; first < end; first = last + 1) {
        last = first;
        if (!is_done(set, first))
            continue;
        while (is_done(set, last + 1))
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
    for (uint32_t i = 1; num_left && i < tracker->num_blocks * MARKS_PER_BLOCK; i++) {
        const tracked_mark *root = mark_at(tracker, i);
        if (root->path != UINT64_MAX || !root->chunks)
            continue;
        if (root->source == source)
            print_text(to, "chunks %" PRIu64 " %" PRIu64, root->epoch, root->seq);
        for (uint32_t chunk = root->chunks; chunk; chunk = mark_at(tracker, chunk)->next, num_left--)
            if (root->source == source)
                print_text(to, " %" PRIx64, mark_at(tracker, chunk)->path);
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
        done_set_free(old);
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

/* ---- start and end ---------------------------------------------------------------------------------------------- */

static int fail_tracker_memory(weir_error *error)
{
    return weir_error_set(error, WEIR_ENOMEM, 0, "no memory for checkpoints");
}

static int load_sets(weir_tracker *tracker, tracked_source *source, const weir_done_source *from)
{
    for (size_t i = 0; i < from->num_sets; i++) {
        const weir_done_set *given = &from->sets[i];
        done_set *set;
        if (add_set(tracker, source, given->epoch, &set) != WEIR_OK)
            return WEIR_ENOMEM;
        set->low = given->low;
        if (given->num_runs && make_room(tracker, set, given->runs[given->num_runs - 1].last) != WEIR_OK)
            return WEIR_ENOMEM;
        for (size_t j = 0; j < given->num_runs; j++)
            for (uint64_t seq = given->runs[j].first; seq <= given->runs[j].last; seq++)
                set_done(set, seq);
    }
    return WEIR_OK;
}

/* is_new: the source has renumbered its items (weir_op.renumber). */
static int load_chunks(tracked_source *source, const weir_done_source *from, size_t checkpoint, bool is_new)
{
    if (from->num_chunks == 0)
        return WEIR_OK;
    weir_done_chunk *chunks = realloc(source->chunks, (source->num_chunks + from->num_chunks) * sizeof *chunks);
    if (!chunks)
        return WEIR_ENOMEM;
    source->chunks = chunks;
    for (size_t i = 0; i < from->num_chunks; i++) {
        weir_done_chunk chunk = from->chunks[i];
        if (is_new)
            chunk.seq = source->node->op->renumber(source->node->config, checkpoint, chunk.epoch, chunk.seq);
        if (chunk.seq != UINT64_MAX)
            chunks[source->num_chunks++] = chunk;
    }
    return WEIR_OK;
}

static int resume_source(weir_tracker *tracker, uint32_t index, weir_checkpoint *const *given, size_t num_given,
                         weir_error *error)
{
    tracked_source *source = &tracker->sources[index];
    assert(source->node);
    const weir_op *op = source->node->op;
    const weir_done_source *from = index < given[0]->num_sources ? &given[0]->sources[index] : NULL;
    if (!from || given[0]->num_sources != tracker->num_sources || strcmp(from->name, source->node->short_name) != 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the checkpoint is of another pipeline: source %" PRIu32
                              " is \"%s\", here it is \"%s\"",
                              index, from ? from->name : "", source->node->short_name);
    int status =
        op->resume ? op->resume(source->node->config, (const weir_checkpoint *const *)given, num_given, index, error)
                   : WEIR_OK;
    if (!op->renumber && num_given > 1)
        return weir_error_set(
            error, WEIR_EINVAL, 0,
            "source \"%s\" can be resumed from one checkpoint, but there are %zu: only a sampler can "
            "divide its rest again",
            source->node->short_name, num_given);
    if (status == WEIR_SKIP && !op->renumber)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "source \"%s\" has renumbered its items (WEIR_SKIP), but its operation has no renumber",
                              source->node->short_name);
    if (status < 0)
        return status;
    int loaded = status == WEIR_OK ? load_sets(tracker, source, from) : WEIR_OK;
    for (size_t i = 0; i < num_given && loaded == WEIR_OK; i++)
        loaded = index < given[i]->num_sources
                     ? load_chunks(source, &given[i]->sources[index], i, status == WEIR_SKIP)
                     : WEIR_OK;
    return loaded == WEIR_OK ? WEIR_OK : fail_tracker_memory(error);
}

static void set_epoch(weir_tracker *tracker, uint64_t epoch)
{
    tracker->epochs_delivered = epoch;
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        weir_node *node = tracker->sources[i].node;
        if (node->core.epochs == 0)
            continue;
        node->core.epochs_ended =
            node->core.epochs == WEIR_ENDLESS || epoch < node->core.epochs ? epoch : node->core.epochs;
        node->core.exhausted = node->core.epochs_ended == node->core.epochs;
    }
}

/* Items before the last one that is done. */
static uint64_t count_left_over(const weir_done_set *set)
{
    uint64_t end = set->num_runs ? set->runs[set->num_runs - 1].last + 1 : set->low, num = end - set->low;
    for (size_t i = 0; i < set->num_runs; i++)
        num -= set->runs[i].last - set->runs[i].first + 1;
    return num;
}

static void add_begun(tracked_source *source, uint64_t end_epoch)
{
    if (end_epoch > source->begun_before)
        source->begun_before = end_epoch;
}

/* What the checkpoint says about epochs, or a source without any, that an earlier run has begun. Returns how many items
   before the last done ones are not done. */
static uint64_t find_begun(tracked_source *source, const weir_done_source *from)
{
    uint64_t num_left_over = 0;
    add_begun(source, from->begun_before);
    for (size_t i = 0; i < from->num_sets; i++) {
        const weir_done_set *set = &from->sets[i];
        if (set->low == 0 && set->num_runs == 0)
            continue;
        add_begun(source, set->epoch + 1);
        num_left_over += count_left_over(set);
    }
    for (size_t i = 0; i < from->num_chunks; i++)
        add_begun(source, from->chunks[i].epoch + 1);
    return num_left_over;
}

/* Tells the core, too, for which a source without epochs belongs to the first epoch of the run. */
static void note_begun(weir__graph *graph, tracked_source *source, weir_checkpoint *const *given, size_t num_given,
                       size_t index, uint64_t first)
{
    uint64_t counted = 0, noted = 0;
    bool has_epochs = source->node->core.epochs != 0;
    for (size_t i = 0; i < num_given; i++) {
        if (index >= given[i]->num_sources)
            continue;
        const weir_done_source *from = &given[i]->sources[index];
        if (has_epochs)
            add_begun(source, given[i]->epoch);
        counted += find_begun(source, from);
        noted += from->num_left_over;
    }
    source->num_left_over =
        counted > noted ? counted : noted; /* those that were noted before may be among the others */
    graph->num_left_over += source->num_left_over;
    uint64_t begun_before = has_epochs ? source->begun_before : first + (source->begun_before > 0);
    if (begun_before > first && begun_before - first > graph->num_part_epochs)
        graph->num_part_epochs = begun_before - first;
}

static int resume_sources(weir_tracker *tracker, weir__graph *graph, weir_checkpoint *const *given, size_t num_given,
                          weir_error *error)
{
    uint64_t epoch = UINT64_MAX;
    int status = WEIR_OK;
    for (size_t i = 0; i < num_given; i++)
        epoch = given[i]->epoch < epoch ? given[i]->epoch : epoch;
    for (uint32_t i = 0; i < tracker->num_sources && status == WEIR_OK; i++)
        status = resume_source(tracker, i, given, num_given, error);
    set_epoch(tracker, epoch);
    for (uint32_t i = 0; i < tracker->num_sources && status == WEIR_OK; i++)
        note_begun(graph, &tracker->sources[i], given, num_given, i, epoch);
    return status;
}

static int resume_from_texts(weir_tracker *tracker, weir__graph *graph, const weir_pipeline_options *options,
                             weir_error *error)
{
    size_t num_read = 0;
    weir_checkpoint **given = calloc(options->num_resume, sizeof *given);
    int status = WEIR_OK;
    if (!given)
        return fail_tracker_memory(error);
    while (status == WEIR_OK && num_read < options->num_resume) {
        status = weir_checkpoint_read(options->resume[num_read], &given[num_read], error);
        num_read += status == WEIR_OK;
    }
    if (status == WEIR_OK)
        status = resume_sources(tracker, graph, given, num_read, error);
    while (num_read)
        weir_checkpoint_free(given[--num_read]);
    free(given);
    return status;
}

static int check_checkpoint_options(const weir_pipeline_options *options, weir_error *error)
{
    if ((unsigned)options->checkpoints > WEIR_CHECKPOINTS_DONE)
        return weir_error_set(error, WEIR_EINVAL, 0, "checkpoints is not a weir_checkpoints");
    if (options->num_resume && !options->resume)
        return weir_error_set(error, WEIR_EINVAL, 0, "num_resume is %zu, but resume is NULL", options->num_resume);
    if (options->num_resume && !options->checkpoints)
        return weir_error_set(error, WEIR_EINVAL, 0, "resume is given, but checkpoints is WEIR_CHECKPOINTS_OFF");
    if (options->retry_failed && !options->checkpoints)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "retry_failed is given, but checkpoints is WEIR_CHECKPOINTS_OFF");
    return WEIR_OK;
}

static int init_tracker(weir_tracker *tracker, const weir_pipeline *pipeline, weir_error *error)
{
    int code = uv_mutex_init(&tracker->lock);
    if (code)
        return weir_error_set(error, WEIR_ESYSTEM, code, "cannot create a lock: %s", uv_strerror(code));
    tracker->lock_made = true;
    tracker->sources = calloc(pipeline->num_sources, sizeof *tracker->sources);
    tracker->blocks = calloc(NUM_BLOCKS, sizeof *tracker->blocks);
    if (!tracker->sources || !tracker->blocks)
        return fail_tracker_memory(error);
    for (uint32_t i = 0; i < pipeline->core.num_nodes; i++)
        if (pipeline->nodes[i]->core.num_ins == 0)
            tracker->sources[tracker->num_sources++].node = pipeline->nodes[i];
    return WEIR_OK;
}

int weir__tracker_new(weir_pipeline *pipeline, const weir_pipeline_options *options, weir_tracker **to,
                      weir_error *error)
{
    int status = check_checkpoint_options(options, error);
    if (status != WEIR_OK || !options->checkpoints)
        return status;
    *to = calloc(1, sizeof **to);
    if (!*to)
        return fail_tracker_memory(error);
    atomic_store_explicit(&weir__item_watcher, &watcher, memory_order_release);
    (*to)->acknowledged = options->checkpoints == WEIR_CHECKPOINTS_DONE;
    (*to)->retry_failed = options->retry_failed;
    status = init_tracker(*to, pipeline, error);
    return status == WEIR_OK && options->num_resume ? resume_from_texts(*to, &pipeline->core, options, error)
                                                    : status;
}

void weir__tracker_free(weir_tracker *tracker)
{
    if (!tracker)
        return;
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        while (tracker->sources[i].sets) {
            done_set *set = tracker->sources[i].sets;
            tracker->sources[i].sets = set->next;
            done_set_free(set);
        }
        free(tracker->sources[i].chunks);
    }
    for (uint32_t i = 0; i < tracker->num_blocks; i++)
        free(tracker->blocks[i]);
    free(tracker->blocks);
    free(tracker->sources);
    if (tracker->lock_made)
        uv_mutex_destroy(&tracker->lock);
    free(tracker);
}
