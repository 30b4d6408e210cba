/* Storage is fixed: a part costs no allocation. */
#include "engine/run/task_parts.h"

#include <string.h>

#include "common/redact.h"
#include "common/utf8.h"

void weir__parts_continue(weir_task *slot)
{
    for (uint32_t i = 0; i < slot->num_parts; i++)
        slot->reported.before[i] = slot->reported.parts[i].number;
}

static bool is_named(const weir_part_info *info)
{
    return info->name && *info->name && strnlen(info->name, WEIR_PART_NAME_BYTES) < WEIR_PART_NAME_BYTES;
}

/* The index of this part; num_parts = it was not told yet. */
static uint32_t find_part(const weir_task *slot, const weir_part_info *info)
{
    const weir_item_part *parts = slot->reported.parts;
    uint32_t i = 0;
    while (i < slot->num_parts && parts[i].info != info)
        i++;
    for (uint32_t j = 0; i == slot->num_parts && j < slot->num_parts; j++)
        if (strcmp(parts[j].info->name, info->name) == 0)
            return j;
    return i;
}

/* WEIR_OK: *place is the index of its value, which is empty if the part is new. */
static int place_of(weir_task *slot, const weir_part_info *info, uint32_t *place)
{
    if (!is_named(info))
        return WEIR_EINVAL;
    *place = find_part(slot, info);
    if (*place < slot->num_parts)
        return slot->reported.parts[*place].info->kind == info->kind ? WEIR_OK : WEIR_EINVAL;
    if (*place == WEIR_MAX_ITEM_PARTS)
        return WEIR_ELIMIT;
    slot->reported.parts[*place] = (weir_item_part){ .info = info };
    slot->reported.before[*place] = 0;
    slot->num_parts++;
    return WEIR_OK;
}

int weir_task_set_part(weir_task *task, const weir_part_info *part, int64_t number)
{
    uint32_t place;
    if (!task || !part || number < 0)
        return WEIR_EINVAL;
    if (part->kind != WEIR_PART_TIME && part->kind != WEIR_PART_COUNT && part->kind != WEIR_PART_BYTES)
        return WEIR_EINVAL;
    int status = place_of(task, part, &place);
    if (status == WEIR_OK)
        task->reported.parts[place].number = number;
    return status;
}

/* Whole characters of it. */
static void copy_start(char *to, size_t size_bytes, const char *from)
{
    size_t length = strnlen(from, size_bytes);
    if (length == size_bytes)
        for (length--; length > 0 && weir__utf8_continues((unsigned char)from[length]);)
            length--;
    memcpy(to, from, length);
    to[length] = '\0';
}

int weir_task_set_text(weir_task *task, const weir_part_info *part, const char *text)
{
    char shown[512]; /* a secret is hidden before it is cut, so that it does not lose what shows that it is one */
    uint32_t place;
    if (!task || !part || !text || part->kind != WEIR_PART_TEXT)
        return WEIR_EINVAL;
    int status = place_of(task, part, &place);
    if (status != WEIR_OK)
        return status;
    copy_start(shown, sizeof shown, text);
    weir__text_redact(shown);
    copy_start(task->reported.texts[place], WEIR_PART_TEXT_BYTES, shown);
    task->reported.parts[place].text = task->reported.texts[place];
    return WEIR_OK;
}
