#include "engine/measure/failure_text.h"

#include <string.h>

#include "common/unix_clock.h"

size_t weir__failure_text_bytes(const weir_task *slot)
{
    return strlen(slot_label(slot)) + strlen(slot->error.message) +
           strlen(weir_item_identity(&slot->core.in).address) + 3;
}

/* For labels, identities and messages, which have no secrets. */
static const char *append_text(char **texts, const char *text)
{
    size_t size = strlen(text) + 1;
    char *added = memcpy(*texts, text, size);
    *texts += size;
    return added;
}

void weir__failure_fill(weir_failure *failure, char *texts, const weir_task *slot)
{
    const weir_identity identity = weir_item_identity(&slot->core.in);
    *failure = (weir_failure){
        .unix_ns = unix_clock_ns(),
        .name = slot->node->name,
        .source = slot->core.in.source,
        .epoch = slot->core.in.epoch,
        .seq = slot->core.in.seq,
        .label = append_text(&texts, slot_label(slot)),
        .status = slot->error.status,
        .library_code = slot->error.library_code,
        .message = append_text(&texts, slot->error.message),
        .run_ns = slot->core.run_ns + slot->core.step_run_ns,
        .identity = { append_text(&texts, identity.address), identity.occurrence },
    };
}
