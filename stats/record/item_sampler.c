/* Sampling items. See item_sampler.h. */
#include "stats/record/item_sampler.h"

#include <stdlib.h>
#include <string.h>

#include "common/random.h"
#include "common/unix_clock.h"
#include "stats/record/parts_text.h"
#include "stats/record/writer.h"

enum { DEFAULT_SLOWEST = 10, DEFAULT_SAMPLED = 10 };

weir_item_sampler *weir__item_sampler_new(weir_sqlite_writer *writer, const weir_sqlite_items *options)
{
    weir_item_sampler *items = calloc(1, sizeof *items);
    if (!items)
        return NULL;
    items->writer = writer;
    items->options = *options;
    if (options->num_slowest == 0)
        items->options.num_slowest = DEFAULT_SLOWEST;
    if (options->num_sampled == 0)
        items->options.num_sampled = DEFAULT_SAMPLED;
    items->slowest = calloc(items->options.num_slowest, sizeof(weir_record_entry *));
    items->sample = calloc(items->options.num_sampled, sizeof(weir_record_entry *));
    if (items->slowest && items->sample && uv_mutex_init(&items->lock) == 0)
        return items;
    free(items->slowest);
    free(items->sample);
    free(items);
    return NULL;
}

static void free_entries(weir_record_entry **entries, uint32_t num_entries)
{
    for (uint32_t i = 0; i < num_entries; i++)
        free(entries[i]);
    free(entries);
}

void weir__item_sampler_free(weir_item_sampler *items)
{
    free_entries(items->slowest, items->num_slowest);
    free_entries(items->sample, items->num_sampled);
    uv_mutex_destroy(&items->lock);
    free(items);
}

/* ---- choosing ----------------------------------------------------------------------------------------------- */

/* The item's index among the slowest; num_slowest = not slow enough. */
static uint32_t slow_place_locked(const weir_item_sampler *items, int64_t elapsed_ns)
{
    uint32_t fastest = 0;
    if (items->num_slowest < items->options.num_slowest)
        return items->num_slowest;
    for (uint32_t i = 1; i < items->num_slowest; i++)
        if (items->slowest[i]->record.item.run_ns < items->slowest[fastest]->record.item.run_ns)
            fastest = i;
    return items->slowest[fastest]->record.item.run_ns < elapsed_ns ? fastest : items->num_slowest;
}

/* The item's index in the sample (reservoir sampling); num_sampled = not in the sample. Each item of a lap is kept
   with the same probability. */
static uint32_t sample_place_locked(weir_item_sampler *items)
{
    items->num_seen++;
    if (items->num_sampled < items->options.num_sampled)
        return items->num_sampled;
    uint64_t place = weir__random_below(&items->random, items->num_seen);
    return place < items->num_sampled ? (uint32_t)place : items->num_sampled;
}

/* Stores a copy of the item at this index, unless it is past the end. */
static void put_locked(weir_record_entry **entries, uint32_t *num_entries, uint32_t max_entries, uint32_t place,
                       const weir_record *item)
{
    weir_record_entry *entry = place < max_entries ? weir__record_entry_of(item) : NULL;
    if (!entry)
        return;
    if (place == *num_entries)
        (*num_entries)++;
    else
        free(entries[place]);
    entries[place] = entry;
}

static void choose_item(weir_item_sampler *items, weir_record *record)
{
    const weir_sqlite_items *options = &items->options;
    uv_mutex_lock(&items->lock);
    record->item.chosen = "slowest";
    put_locked(items->slowest, &items->num_slowest, options->num_slowest,
               slow_place_locked(items, record->item.run_ns), record);
    record->item.chosen = "sample";
    put_locked(items->sample, &items->num_sampled, options->num_sampled, sample_place_locked(items), record);
    uv_mutex_unlock(&items->lock);
}

/* What the operation has reported, in columns. What has no column is written to `others`. */
static void take_parts(weir_record *record, const weir_task_end *end, char others[PARTS_BYTES])
{
    weir_parts_text text = { others, 0 };
    for (uint32_t i = 0; i < end->num_parts; i++)
        if (!weir__record_take_part(record, &end->parts[i]))
            weir__parts_put(&text, &end->parts[i]);
    record->item.parts = weir__parts_end(&text);
}

int weir__item_sampler_end(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)state;
    weir_item_sampler *items = self;
    char others[PARTS_BYTES];
    if (end->status != WEIR_OK || !end->out)
        return WEIR_OK;
    const weir_identity identity = weir_task_identity(task);
    weir_record record = { .kind = WEIR_RECORD_ITEM,
                           .item = { .unix_ns = unix_clock_ns(),
                                     .run_ns = end->run_ns,
                                     .name = weir_task_stage(task),
                                     .seq = (int64_t)weir_task_seq(task),
                                     .label = weir_task_label(task),
                                     .identity = weir__stored_identity(&identity, weir_task_label(task)),
                                     .occurrence = (int64_t)identity.occurrence,
                                     .chosen = "all" } };
    take_parts(&record, end, others);
    bool is_damaged = record.item.num_missing || record.item.num_errors;
    if (is_damaged)
        record.item.chosen = "damaged";
    if (items->options.all || is_damaged)
        weir__buffer_offer(items->writer, weir__record_entry_of(&record));
    else
        choose_item(items, &record);
    return WEIR_OK;
}

/* ---- passing on --------------------------------------------------------------------------------------------- */

/* Moves the entries of that stage out of the array, into the list. */
static void take_out_locked(weir_record_entry **entries, uint32_t *num_entries, const char *stage,
                            weir_record_entry **list)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *num_entries; i++) {
        if (stage && strcmp(entries[i]->record.item.name, stage) != 0) {
            entries[kept++] = entries[i];
            continue;
        }
        entries[i]->next = *list;
        *list = entries[i];
    }
    *num_entries = kept;
}

/* Items of several sources and epochs have the same numbers, so these alone do not tell which item it is. */
static bool is_same_item(const weir_item_record *one, const weir_item_record *other)
{
    return one->seq == other->seq && one->unix_ns == other->unix_ns && one->run_ns == other->run_ns &&
           one->occurrence == other->occurrence && strcmp(one->name, other->name) == 0 &&
           strcmp(one->label, other->label) == 0 && strcmp(one->identity, other->identity) == 0;
}

static bool is_entry_in(const weir_record_entry *list, const weir_record_entry *entry)
{
    while (list && !is_same_item(&list->record.item, &entry->record.item))
        list = list->next;
    return list != NULL;
}

void weir__item_sampler_flush(weir_item_sampler *items, const char *stage)
{
    weir_record_entry *slowest = NULL;
    weir_record_entry *sample = NULL;
    uv_mutex_lock(&items->lock);
    take_out_locked(items->slowest, &items->num_slowest, stage, &slowest);
    take_out_locked(items->sample, &items->num_sampled, stage, &sample);
    if (items->num_sampled == 0)
        items->num_seen = 0;
    uv_mutex_unlock(&items->lock);

    /* an item that is in both is one of the slowest */
    weir_record_entry *const lists[] = { sample, slowest };
    for (int i = 0; i < 2; i++)
        for (weir_record_entry *entry = lists[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = NULL;
            if (i == 0 && is_entry_in(slowest, entry))
                free(entry);
            else
                weir__buffer_offer(items->writer, entry);
        }
}
