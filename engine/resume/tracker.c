#include "engine/resume/tracker.h"

#include <inttypes.h>
#include <stdlib.h>

#include "engine/base/label.h"
#include "engine/resume/tracked.h"
#include "engine/resume/tracker_resume.h"

/* The slot whose step this thread runs. */
static _Thread_local weir_task *step_slot;

/* ---- tickets ---------------------------------------------------------------------------------------------------- */

static uint32_t handle_of(uint32_t index, const tracked_ticket *ticket)
{
    return index | (uint32_t)ticket->generation << INDEX_BITS;
}

/* The handle, or 0 if it is of another pipeline, or of an item that has ended. */
static uint32_t check_handle(const weir_tracker *tracker, uint32_t handle)
{
    uint32_t index = handle & INDEX_MASK;
    bool is_known = handle && tracker->blocks[index / TICKETS_PER_BLOCK];
    return is_known && weir__tracked_ticket_at(tracker, handle)->generation == handle >> INDEX_BITS ? handle : 0;
}

static uint32_t join_lists(const weir_tracker *tracker, uint32_t list, uint32_t other)
{
    if (!list || !other)
        return list ? list : other;
    tracked_ticket *last = weir__tracked_ticket_at(tracker, list);
    while (last->next)
        last = weir__tracked_ticket_at(tracker, last->next);
    last->next = other;
    return list;
}

static void add_block_locked(weir_tracker *tracker, tracked_ticket *block)
{
    static atomic_uint num_made; /* consecutive pipelines have different generations */
    uint8_t generation = (uint8_t)(atomic_fetch_add(&num_made, 41) % 255 + 1);
    uint32_t first = tracker->num_blocks * TICKETS_PER_BLOCK;
    tracker->blocks[tracker->num_blocks++] = block;
    uint32_t lowest = first == 0 ? 1 : 0; /* index 0 stands for no ticket */
    for (uint32_t i = TICKETS_PER_BLOCK; i-- > lowest;) {
        block[i].generation = generation;
        block[i].next = tracker->free;
        tracker->free = handle_of(first + i, &block[i]);
    }
}

/* Allocates without the lock. WEIR_OK with the lock held, or WEIR_ENOMEM without. */
static int lock_with_free_tickets(weir_tracker *tracker)
{
    uv_mutex_lock(&tracker->lock);
    if (tracker->free)
        return WEIR_OK;
    uv_mutex_unlock(&tracker->lock);
    tracked_ticket *block = calloc(TICKETS_PER_BLOCK, sizeof *block);
    uv_mutex_lock(&tracker->lock);
    if (block && tracker->num_blocks < NUM_BLOCKS) {
        add_block_locked(tracker, block);
        return WEIR_OK;
    }
    uv_mutex_unlock(&tracker->lock);
    free(block);
    return WEIR_ENOMEM;
}

static uint32_t ticket_new_locked(weir_tracker *tracker, tracked_ticket values)
{
    uint32_t handle = tracker->free;
    tracked_ticket *ticket = weir__tracked_ticket_at(tracker, handle);
    tracker->free = ticket->next;
    values.generation = ticket->generation;
    *ticket = values;
    ticket->root = ticket->parent ? ticket->root : handle;
    return handle;
}

static void ticket_free_locked(weir_tracker *tracker, uint32_t handle)
{
    tracked_ticket *ticket = weir__tracked_ticket_at(tracker, handle);
    ticket->generation = (uint8_t)(ticket->generation % 255 + 1);
    ticket->chunks = 0;
    ticket->next = tracker->free;
    tracker->free = handle_of(handle & INDEX_MASK, ticket);
}

/* ---- finishing ------------------------------------------------------------------------------------------------ */

static void root_done_locked(weir_tracker *tracker, uint32_t handle)
{
    tracked_ticket *root = weir__tracked_ticket_at(tracker, handle);
    for (uint32_t chunk = root->chunks, next; chunk; chunk = next) {
        next = weir__tracked_ticket_at(tracker, chunk)->next;
        ticket_free_locked(tracker, chunk);
        tracker->num_recorded--;
    }
    done_set *set = weir__tracked_find_set(&tracker->sources[root->source], root->epoch);
    weir__done_set_add(set, root->seq);
    ticket_free_locked(tracker, handle);
}

static void finish_locked(weir_tracker *tracker, uint32_t handle)
{
    while (handle) {
        tracked_ticket *ticket = weir__tracked_ticket_at(tracker, handle);
        if (--ticket->refs)
            return;
        if (!ticket->parent) {
            root_done_locked(tracker, handle);
            return;
        }
        uint32_t parent = ticket->parent;
        if (ticket->path) {
            tracked_ticket *root = weir__tracked_ticket_at(tracker, ticket->root);
            ticket->next = root->chunks;
            root->chunks = handle;
            tracker->num_recorded++;
        } else {
            ticket_free_locked(tracker, handle);
        }
        handle = parent;
    }
}

static void finish_list_locked(weir_tracker *tracker, uint32_t list)
{
    while (list) {
        uint32_t next = weir__tracked_ticket_at(tracker, list)->next;
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
    finish_list_locked(tracker, check_handle(tracker, item->tickets));
    item->tickets = 0;
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

static void tickets_released(weir_item *item)
{
    weir_task *slot = step_slot;
    weir_tracker *tracker = slot ? slot->node->pipeline->tracker : NULL;
    if (!tracker)
        return; /* the consumer's item, or one that was dropped */
    if (item->tickets == slot->in_tickets)
        slot->in_tickets_back = true;
    else
        slot->released_tickets = join_lists(tracker, check_handle(tracker, item->tickets), slot->released_tickets);
}

static void tickets_move(weir_item *to, weir_item *from, bool is_kept)
{
    if (step_slot && from == &step_slot->core.in && !(is_kept && step_slot->node->op->flush))
        return;
    to->tickets = from->tickets;
    from->tickets = 0;
}

static const weir_item_watcher watcher = { .tickets_released = tickets_released, .tickets_move = tickets_move };

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
        if (lock_with_free_tickets(tracker) != WEIR_OK)
            return WEIR_ENOMEM;
        tracked_ticket *from = weir__tracked_ticket_at(tracker, root);
        tracked_ticket values = { .parent = root, .root = root, .path = chunk->path, .next = from->chunks };
        from->chunks = ticket_new_locked(tracker, values);
        tracker->num_recorded++;
        *chunk = source->chunks[--source->num_chunks];
        uv_mutex_unlock(&tracker->lock);
    }
    return WEIR_OK;
}

static int made_item(weir_tracker *tracker, weir_task *slot)
{
    tracked_source *source = &tracker->sources[slot->node->core.source_index];
    tracked_ticket root = { .refs = 1,
                            .source = slot->node->core.source_index,
                            .epoch = slot->core.in.epoch,
                            .seq = slot->core.in.seq,
                            .path = UINT64_MAX };
    uv_mutex_lock(&tracker->lock);
    done_set *set = weir__tracked_find_set(source, root.epoch);
    bool was_done = set && weir__done_set_has(set, root.seq);
    while (!was_done && (!set || !weir__done_set_has_room(set, root.seq) || !tracker->free)) {
        uv_mutex_unlock(&tracker->lock);
        int status = weir__tracked_add_set(tracker, source, root.epoch, &set);
        if (status == WEIR_OK)
            status = weir__tracked_make_room(tracker, set, root.seq);
        if (status == WEIR_OK)
            status = lock_with_free_tickets(tracker);
        if (status != WEIR_OK)
            return status;
    }
    slot->core.out.tickets = was_done ? 0 : ticket_new_locked(tracker, root);
    uv_mutex_unlock(&tracker->lock);
    slot->core.in.seq += was_done;
    return was_done             ? WEIR_SKIP
           : source->num_chunks ? remember_chunks(tracker, source, slot->core.out.tickets, root.epoch, root.seq)
                                : WEIR_OK;
}

/* Only an earlier run, of other items, can have done more than there are. */
int weir__tracker_source_ended(weir_task *slot, int status)
{
    weir_tracker *tracker = slot->node->pipeline->tracker;
    uint64_t total = slot->core.in.seq;
    done_set *set;
    if (weir__tracked_add_set(tracker, &tracker->sources[slot->node->core.source_index], slot->core.in.epoch, &set) !=
        WEIR_OK)
        return status; /* the epoch will not count as complete */
    uv_mutex_lock(&tracker->lock);
    uint64_t end = weir__done_set_find_end(set);
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
static void seek_path(weir_tracker *tracker, weir_task *slot)
{
    uv_mutex_lock(&tracker->lock);
    const done_set *set =
        weir__tracked_find_set(&tracker->sources[slot->node->core.source_index], slot->core.in.epoch);
    while (set && weir__done_set_has(set, slot->core.in.seq))
        slot->core.in.seq = slot->core.in.seq < set->low ? set->low : slot->core.in.seq + 1;
    uv_mutex_unlock(&tracker->lock);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

void weir__tracker_step_begins(weir_task *slot)
{
    step_slot = slot;
    if (slot->node->core.num_ins == 0) {
        if (slot->node->op->resume && !slot->core.finishing)
            seek_path(slot->node->pipeline->tracker, slot);
    } else if (slot->core.starts_task) {
        slot->in_tickets = slot->core.in.tickets;
        slot->in_tickets_back = false;
    }
}

static uint64_t path_of(const weir_task *slot, uint64_t parent)
{
    uint64_t path = parent ^ ((uint64_t)slot->node->core.index << 32 | slot->core.num_chunks);
    path = (path ^ (path >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    path = (path ^ (path >> 27)) * UINT64_C(0x94d049bb133111eb);
    path ^= path >> 31;
    return path ? path : 1;
}

static bool is_recorded_locked(const weir_tracker *tracker, uint32_t root, uint64_t path)
{
    uint32_t chunk = weir__tracked_ticket_at(tracker, root)->chunks;
    while (chunk && weir__tracked_ticket_at(tracker, chunk)->path != path)
        chunk = weir__tracked_ticket_at(tracker, chunk)->next;
    return chunk != 0;
}

/* Adds a chunk of this ticket to the list. */
static int add_chunk(weir_tracker *tracker, uint32_t parent, uint64_t path, uint32_t *list)
{
    int status = lock_with_free_tickets(tracker);
    if (status != WEIR_OK)
        return status;
    tracked_ticket *of = weir__tracked_ticket_at(tracker, parent);
    if (path && is_recorded_locked(tracker, of->root, path)) {
        status = WEIR_SKIP;
    } else {
        of->refs++;
        *list = ticket_new_locked(
            tracker, (tracked_ticket){ .refs = 1, .parent = parent, .root = of->root, .path = path, .next = *list });
    }
    uv_mutex_unlock(&tracker->lock);
    return status;
}

static int add_blind_chunks(weir_tracker *tracker, uint32_t parents, uint32_t *list)
{
    int status = WEIR_OK;
    for (uint32_t parent = parents; parent && status == WEIR_OK;
         parent = weir__tracked_ticket_at(tracker, parent)->next)
        status = add_chunk(tracker, parent, 0, list);
    return status;
}

/* Marks the result as a chunk of the task's input. WEIR_SKIP: it is done. */
static int make_chunk(weir_tracker *tracker, weir_task *slot)
{
    weir_batch *batch = batch_in(&slot->core.in);
    int status = add_blind_chunks(tracker, slot->carried_tickets, &slot->core.out.tickets);
    for (size_t i = 0; batch && i < batch->num_items && status == WEIR_OK; i++)
        status = add_blind_chunks(tracker, check_handle(tracker, batch->items[i].tickets), &slot->core.out.tickets);
    if (!slot->in_tickets || status != WEIR_OK)
        return status;
    const tracked_ticket *in = weir__tracked_ticket_at(tracker, slot->in_tickets);
    bool is_alone = !slot->core.out.tickets && !in->next && in->path;
    return is_alone ? add_chunk(tracker, slot->in_tickets, path_of(slot, in->path), &slot->core.out.tickets)
                    : add_blind_chunks(tracker, slot->in_tickets, &slot->core.out.tickets);
}

/* What the result got by weir_item_move(). */
static uint32_t moved_tickets(weir_tracker *tracker, weir_task *slot)
{
    uint32_t moved = check_handle(tracker, slot->core.out.tickets);
    slot->core.out.tickets = 0;
    if (moved != slot->in_tickets)
        return moved;
    slot->in_tickets_back = true;
    return 0;
}

/* What the task still has when it ends. An operation without flush cannot keep its input. */
static uint32_t own_tickets(weir_tracker *tracker, weir_task *slot)
{
    bool has_in = slot->in_tickets_back || !slot->node->op->flush;
    uint32_t own = join_lists(tracker, slot->released_tickets, slot->carried_tickets);
    own = has_in ? join_lists(tracker, slot->in_tickets, own) : own;
    slot->in_tickets = slot->released_tickets = slot->carried_tickets = 0;
    return own;
}

static int made_one_of_several(weir_tracker *tracker, weir_task *slot)
{
    uint32_t moved = moved_tickets(tracker, slot);
    uint32_t released = slot->released_tickets;
    slot->released_tickets = 0;
    if (slot->node->op->flush) {
        moved = join_lists(tracker, moved, released);
    } else {
        slot->carried_tickets = join_lists(tracker, released, slot->carried_tickets); /* until the last result */
    }
    slot->core.out.tickets = moved;
    return moved ? WEIR_OK : make_chunk(tracker, slot);
}

static int made_last(weir_tracker *tracker, weir_task *slot)
{
    slot->core.out.tickets = moved_tickets(tracker, slot);
    slot->out_is_chunk = slot->core.num_chunks && slot->in_tickets && !slot->core.out.tickets &&
                         !slot->released_tickets && !slot->carried_tickets && !slot->node->op->flush;
    return slot->out_is_chunk ? make_chunk(tracker, slot) : WEIR_OK;
}

int weir__tracker_made(weir_task *slot, int status)
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
static bool was_dropped(const weir_tracker *tracker, const weir_task *slot, int status)
{
    return status < 0 &&
           (tracker->retry_failed || slot->core.place == WEIR__PLACE_LOST ||
            (status != WEIR_ETIMEDOUT && atomic_load_explicit(&slot->should_stop, memory_order_relaxed)));
}

/* The task runs again with another input, which has the tickets of the one that failed. */
static void input_replaced(const weir_tracker *tracker, weir_task *slot)
{
    slot->carried_tickets = join_lists(tracker, slot->released_tickets, slot->carried_tickets);
    slot->released_tickets = 0;
    slot->core.in.tickets = slot->in_tickets_back || !slot->node->op->flush ? slot->in_tickets : 0;
}

static void task_step_ends(weir_tracker *tracker, weir_task *slot, int status)
{
    if (status == WEIR_MORE || status == WEIR_PENDING)
        return;
    if (status < 0 && slot->core.place == WEIR__PLACE_FILLED) {
        input_replaced(tracker, slot);
        return;
    }
    uint32_t own = own_tickets(tracker, slot);
    if (status == WEIR_KEPT)
        slot->carried_tickets = own;
    else if (status == WEIR_OK && !slot->out_is_chunk)
        slot->core.out.tickets = join_lists(tracker, slot->core.out.tickets, own);
    else if (!was_dropped(tracker, slot, status))
        finish_list(tracker, own); /* the input of chunks waits for them */
}

void weir__tracker_step_ends(weir_task *slot, int status)
{
    weir_tracker *tracker = slot->node->pipeline->tracker;
    if (slot->node->core.num_ins)
        task_step_ends(tracker, slot, status);
    step_slot = NULL;
}

/* ---- start and end ---------------------------------------------------------------------------------------------- */

static int check_checkpoint_options(const weir_pipeline_options *options, weir_error *error)
{
    if ((unsigned)options->checkpoints > WEIR_CHECKPOINTS_DONE)
        return weir_error_set(error, WEIR_EINVAL, 0, "checkpoints is %d; give a value of weir_checkpoints",
                              (int)options->checkpoints);
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
        return weir__tracked_fail_memory(error);
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
        return weir__tracked_fail_memory(error);
    atomic_store_explicit(&weir__item_watcher, &watcher, memory_order_release);
    (*to)->acknowledged = options->checkpoints == WEIR_CHECKPOINTS_DONE;
    (*to)->retry_failed = options->retry_failed;
    status = init_tracker(*to, pipeline, error);
    return status == WEIR_OK && options->num_resume ? weir__tracker_resume(*to, &pipeline->core, options, error)
                                                    : status;
}

void weir__tracker_begin_epoch(weir_tracker *tracker, uint64_t epoch)
{
    if (tracker)
        tracker->epochs_delivered = epoch;
}

void weir__tracker_free(weir_tracker *tracker)
{
    if (!tracker)
        return;
    for (uint32_t i = 0; i < tracker->num_sources; i++) {
        while (tracker->sources[i].sets) {
            done_set *set = tracker->sources[i].sets;
            tracker->sources[i].sets = set->next;
            weir__done_set_free(set);
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
