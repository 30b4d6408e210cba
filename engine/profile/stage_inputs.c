#include "engine/profile/stage_inputs.h"

#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>

enum { FIRST_ROOM = 64 };

int weir__stage_inputs_add(stage_inputs *inputs, weir_item *item)
{
    if (inputs->num_items == inputs->room) {
        uint64_t room = inputs->room ? 2 * inputs->room : FIRST_ROOM;
        weir_item *items = realloc(inputs->items, room * sizeof *items);
        if (!items)
            return WEIR_ENOMEM;
        inputs->items = items;
        inputs->room = room;
    }
    inputs->bytes += sizeof *item + item->size_bytes;
    inputs->items[inputs->num_items++] = *item;
    memset(item, 0, sizeof *item);
    return WEIR_OK;
}

static int pass_next(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    stage_inputs *inputs = (stage_inputs *)(uintptr_t)weir_task_config(task);
    if (!inputs->start_ns)
        inputs->start_ns = weir_clock_ns();
    if (inputs->next == inputs->num_items)
        return WEIR_EOF;
    weir_item *item = &inputs->items[inputs->next++];
    weir_item_pass(out, item);
    weir_item_release(item);
    return WEIR_OK;
}

void weir__stage_inputs_add_source(stage_inputs *inputs, const char *makes, weir_builder *builder,
                                   const weir_stage_options *options)
{
    inputs->op = (weir_op){ .name = "inputs", .makes = makes, .run = pass_next };
    weir_builder_source(builder, &inputs->op, inputs, 0, options);
}

void weir__stage_inputs_clear(stage_inputs *inputs)
{
    for (; inputs->next < inputs->num_items; inputs->next++)
        weir_item_release(&inputs->items[inputs->next]);
    free(inputs->items);
    *inputs = (stage_inputs){ 0 };
}
