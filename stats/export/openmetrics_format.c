/* The row of OpenMetrics in the table of formats. */
#include <weir/openmetrics.h>

#include "stats/export/formats.h"

static int open_metrics(const char *path, const weir_export_options *options, void **state, weir_error *error)
{
    const weir_openmetrics_options own = { .node_id = options->node_id,
                                           .rank = options->rank,
                                           .command = options->command,
                                           .force = options->force,
                                           .limit_rules = options->limit_rules };
    weir_openmetrics_file *file = NULL;
    int status = weir_openmetrics_open(path, &own, &file, error);
    *state = file;
    return status;
}

static weir_observer observe_metrics(void *state)
{
    return weir_openmetrics_observer(state);
}

static int close_metrics(void *state, weir_error *error)
{
    return weir_openmetrics_close(state, error);
}

static int export_metrics(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                          FILE *out, weir_error *error)
{
    return weir__openmetrics_export(recording, filter, options->by_lap, options->limit_rules, out, error);
}

static const weir_export_setting metrics_settings[] = {
    { .name = "laps",
      .value = WEIR_EXPORT_FLAG,
      .from_database = true,
      .offset = offsetof(weir_export_options, by_lap),
      .help = "the sums after each lap, with timestamps, instead of the final sums only" },
    { 0 },
};

const weir_export_format weir__openmetrics_format = {
    .name = "openmetrics",
    .kind = WEIR_OUTPUT_METRICS,
    .settings = metrics_settings,
    .live_help = "also write the metrics to FILE after each lap, for Prometheus (a .prom file for node_exporter)",
    .open = open_metrics,
    .observer = observe_metrics,
    .close = close_metrics,
    .help =
        "openmetrics: sums and histograms of each stage and queue as OpenMetrics text, for Prometheus and compatible "
        "tools; promtool check metrics accepts it. --laps exports the history, for promtool tsdb create-blocks-from "
        "openmetrics. Programs can also keep such a file up to date while they run: see weir/openmetrics.h.",
    .examples = "weir export --format openmetrics -o weir.prom\n"
                "weir export --format openmetrics --laps -o weir.om\n"
                "promtool tsdb create-blocks-from openmetrics weir.om data\n",
    .write = export_metrics,
};
