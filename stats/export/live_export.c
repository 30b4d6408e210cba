#include "stats/export/live_export.h"

#include <stdlib.h>
#include <string.h>

#include "stats/record/process_info.h"
#include "stats/schema/database_path.h"

static int live_attach(void *pointer, weir_error *error)
{
    weir_live_export *self = pointer;
    if (!atomic_flag_test_and_set(&self->is_attached))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EBUSY, 0, "%s %s", weir__path_for_message(self->path).text, self->in_use);
}

static void live_detach(void *self)
{
    atomic_flag_clear(&((weir_live_export *)self)->is_attached);
}

bool weir__live_export_init(weir_live_export *self, const char *path, const char *node_id)
{
    self->path = strdup(path);
    self->node_id = node_id ? strdup(node_id) : weir__host_name();
    atomic_flag_clear(&self->is_attached);
    self->observer = self->taker.take ? weir__record_observer(&self->taker) : (weir_observer){ .self = self };
    self->observer.attach = live_attach;
    self->observer.detach = live_detach;
    return self->path && self->node_id;
}

void weir__live_export_free(weir_live_export *self)
{
    free(self->path);
    free(self->node_id);
}
