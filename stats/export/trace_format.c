/* The row of traces in the table of formats. */
#include <weir/trace_file.h>

#include "stats/export/formats.h"

static int open_trace(const char *path, const weir_export_options *options, void **state, weir_error *error)
{
    bool has_triggers = options->last_ns > 0;
    const weir_trace_options own = {
        .node_id = options->node_id,
        .rank = options->rank,
        .local_rank = options->local_rank,
        .world_size = options->world_size,
        .overwrite = true,
        .force = options->force,
        .max_bytes = options->max_bytes,
        .on_stall = has_triggers,
        .on_failure = has_triggers,
        .on_request = has_triggers,
        .last_ns = options->last_ns,
    };
    weir_trace_file *file = NULL;
    int status = weir_trace_open(path, &own, &file, error);
    *state = file;
    return status;
}

static weir_observer observe_trace(void *state)
{
    return weir_trace_observer(state);
}

static void request_trace(void *state)
{
    weir_trace_request(state);
}

static int close_trace(void *state, weir_error *error)
{
    return weir_trace_close(state, error);
}

static const weir_export_setting trace_settings[] = {
    { .name = "trace-size",
      .argument = "BYTES",
      .value = WEIR_EXPORT_BYTES,
      .preset = 256 << 20,
      .offset = offsetof(weir_export_options, max_bytes),
      .help = "keep about the last BYTES of the trace, such as 64M (default 256M)" },
    { .name = "trace-last",
      .argument = "DURATION",
      .value = WEIR_EXPORT_DURATION,
      .offset = offsetof(weir_export_options, last_ns),
      .help = "write the trace only when a file stalls or fails, or on SIGUSR2: what happened in the last DURATION" },
    { 0 },
};

const weir_export_format weir__trace_format = {
    .name = "trace",
    .kind = WEIR_OUTPUT_TRACE,
    .settings = trace_settings,
    .live_help =
        "also write to FILE what each slot, queue and file did, and when, for the Perfetto UI and weir trace; "
        "compressed if the name ends in .gz; {run}, {node}, {rank}, {local_rank}, {world_size}, {step}, {batch} and "
        "{epoch} in the name are replaced",
    .expands_path = true,
    .old_suffix = ".old",
    .place_event = "trace_file",
    .open = open_trace,
    .observer = observe_trace,
    .request = request_trace,
    .close = close_trace,
};
