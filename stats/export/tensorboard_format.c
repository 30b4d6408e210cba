/* The row of TensorBoard in the table of formats. */
#include <weir/tensorboard.h>

#include "stats/export/formats.h"

static int open_log(const char *path, const weir_export_options *options, void **state, weir_error *error)
{
    const weir_tensorboard_options own = { .node_id = options->node_id, .limit_rules = options->limit_rules };
    weir_tensorboard_log *log = NULL;
    int status = weir_tensorboard_open(path, &own, &log, error);
    *state = log;
    return status;
}

static weir_observer observe_log(void *state)
{
    return weir_tensorboard_observer(state);
}

static int close_log(void *state, weir_error *error)
{
    return weir_tensorboard_close(state, error);
}

static int export_log(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                      const char *folder, weir_error *error)
{
    return weir__tensorboard_export(recording, filter, folder, options->limit_rules, error);
}

const weir_export_format weir__tensorboard_format = {
    .name = "tensorboard",
    .kind = WEIR_OUTPUT_FOLDER,
    .live_help = "also write the metrics of each lap to an event file in DIR, for TensorBoard",
    .open = open_log,
    .observer = observe_log,
    .close = close_log,
    .help = "tensorboard: an event file for each run, in a separate folder below DIR, with scalars and histograms of "
            "each stage and queue by lap. Programs can also write them while they run: see weir/tensorboard.h.",
    .examples = "weir export --format tensorboard -o logs\n"
                "tensorboard --logdir logs\n",
    .write_folder = export_log,
};
