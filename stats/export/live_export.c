#include "live_export.h"

#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "database_path.h"
#include "process_info.h"

static void on_lap_end(void *self, const weir_lap *lap)
{
    ((weir_live_export *)self)->lap_end(self, lap);
}

static void live_take_run(weir_live_export *self)
{
    self->taker.take(self, &(weir_record){ .kind = WEIR_RECORD_RUN, .run = self->run });
}

static void live_run_start(void *pointer, const weir_run_info *info)
{
    weir_live_export *self = pointer;
    self->run = (weir_run_record){
        .node_id = self->node_id,
        .rank = self->run.rank,
        .started_unix_ns = info->start_unix_ns,
        .threads = info->threads,
        .command = self->command,
        .version = weir_version(),
        .machine = "",
    };
    live_take_run(self);
}

static void live_run_end(void *pointer, const weir_run_end *end)
{
    weir_live_export *self = pointer;
    self->run.has_ended = true;
    self->run.ended_unix_ns = end->end_unix_ns;
    self->run.status = end->status;
    live_take_run(self);
}

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

bool weir__live_export_init(weir_live_export *self, const char *path, const char *node_id, const char *command,
                            int32_t rank)
{
    self->path = strdup(path);
    self->node_id = node_id ? strdup(node_id) : weir__host_name();
    self->command = weir__command_line(command);
    self->run.rank = rank;
    atomic_flag_clear(&self->is_attached);
    self->observer = weir__record_observer(&self->taker);
    self->observer.attach = live_attach;
    self->observer.detach = live_detach;
    self->observer.run_start = live_run_start;
    self->observer.lap_end = on_lap_end;
    self->observer.run_end = live_run_end;
    return self->path && self->node_id && self->command;
}

void weir__live_export_free(weir_live_export *self)
{
    free(self->path);
    free(self->node_id);
    free(self->command);
}
