#include "stages/decoder/cost_parts.h"

#define ROW(field, name, kind, unit, meaning) \
    { { name, WEIR_PART_##kind, unit, meaning }, offsetof(weir_decode_cost, field) },

const weir_cost_part weir__cost_parts[] = { WEIR_DECODE_PARTS(ROW) };
const size_t weir__num_cost_parts = sizeof weir__cost_parts / sizeof weir__cost_parts[0];

_Static_assert(sizeof weir__cost_parts / sizeof weir__cost_parts[0] <= WEIR_MAX_ITEM_PARTS, "a task takes them all");

void weir__cost_tell(weir_task *task, const weir_decode_cost *cost)
{
    for (size_t i = 0; i < weir__num_cost_parts; i++) {
        const weir_cost_part *part = &weir__cost_parts[i];
        const void *field = (const char *)cost + part->offset;
        if (part->info.kind == WEIR_PART_TEXT && *(const char *)field)
            weir_task_set_text(task, &part->info, field);
        else if (part->info.kind != WEIR_PART_TEXT && *(const int64_t *)field > 0)
            weir_task_set_part(task, &part->info, *(const int64_t *)field);
    }
}

void weir__cost_add(weir_decode_cost *to, const weir_decode_cost *from)
{
    for (size_t i = 0; i < weir__num_cost_parts; i++)
        if (weir__cost_parts[i].info.kind == WEIR_PART_TIME)
            *(int64_t *)((char *)to + weir__cost_parts[i].offset) +=
                *(const int64_t *)((const char *)from + weir__cost_parts[i].offset);
    to->num_errors += from->num_errors;
}
