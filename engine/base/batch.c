#include <weir/batch.h>

#include <stdlib.h>

void weir_batch_release(void *data, void *self)
{
    weir_batch *batch = data;
    (void)self;
    if (!batch)
        return;
    for (size_t i = 0; i < batch->num_items; i++)
        weir_item_release(&batch->items[i]);
    free(batch->items);
    free(batch);
}
