#include "class_costs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void add(class_costs *costs, const struct class_cost *more)
{
    size_t place = 0;
    int order = 1;
    while (place < costs->num_classes && (order = strverscmp(costs->classes[place].name, more->name)) < 0)
        place++;
    struct class_cost *own = &costs->classes[place];
    bool is_new = place == costs->num_classes || order != 0;
    if (is_new && costs->num_classes == MAX_COST_CLASSES) {
        costs->num_unsorted += more->num_clips;
        return;
    }
    if (is_new) {
        memmove(own + 1, own, (costs->num_classes - place) * sizeof *own);
        costs->num_classes++;
        *own = *more;
        return;
    }
    own->num_clips += more->num_clips;
    own->sums.num_frames += more->sums.num_frames;
    own->sums.open_ns += more->sums.open_ns;
    own->sums.demux_ns += more->sums.demux_ns;
    own->sums.decode_ns += more->sums.decode_ns;
    own->sums.scale_ns += more->sums.scale_ns;
}

void class_costs_add(class_costs *costs, const weir_item_cost *cost)
{
    static const char *const sizes[] = { "<= 360p", "<= 720p", "<= 1080p", "> 1080p" };
    uint32_t lines = cost->width < cost->height ? cost->width : cost->height;
    struct class_cost one = { .num_clips = 1, .sums = *cost };
    snprintf(one.name, sizeof one.name, "%s %s", cost->codec, sizes[(lines > 360) + (lines > 720) + (lines > 1080)]);
    add(costs, &one);
}

void class_costs_add_all(class_costs *costs, const class_costs *more)
{
    for (size_t i = 0; i < more->num_classes; i++)
        add(costs, &more->classes[i]);
    costs->num_unsorted += more->num_unsorted;
}

static double total_ns(const struct class_cost *cost)
{
    const weir_item_cost *sums = &cost->sums;
    return (double)(sums->open_ns + sums->demux_ns + sums->decode_ns + sums->scale_ns);
}

static void tell_class(bench_report *report, const struct class_cost *cost, double all_ns, uint32_t num_runs)
{
    double clips = (double)cost->num_clips;
    double frames = cost->sums.num_frames ? (double)cost->sums.num_frames : 1;
    const struct {
        const char *name;
        double value;
    } values[] = {
        { "clips", clips / num_runs },
        { "frames", (double)cost->sums.num_frames / num_runs },
        { "open_us_per_clip", (double)cost->sums.open_ns / clips / 1e3 },
        { "demux_us_per_frame", (double)cost->sums.demux_ns / frames / 1e3 },
        { "decode_us_per_frame", (double)cost->sums.decode_ns / frames / 1e3 },
        { "scale_us_per_frame", (double)cost->sums.scale_ns / frames / 1e3 },
        { "ms_per_clip", total_ns(cost) / clips / 1e6 },
        { "share_of_time", all_ns > 0 ? total_ns(cost) / all_ns : 0 },
    };
    printf("%-20s %6.0f %9.0f  %9.0f  %8.1f %8.1f %8.1f %10.3f  %5.1f %%\n", cost->name, values[0].value,
           values[1].value, values[2].value, values[3].value, values[4].value, values[5].value, values[6].value,
           values[7].value * 100);
    bench_report_row(report, "decode");
    bench_report_text(report, "part", "class_cost");
    bench_report_text(report, "class", cost->name);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        bench_report_number(report, values[i].name, values[i].value);
}

void class_costs_tell(bench_report *report, const class_costs *costs, uint32_t num_runs)
{
    double all_ns = 0;
    for (size_t i = 0; i < costs->num_classes; i++)
        all_ns += total_ns(&costs->classes[i]);
    printf("class                 clips    frames       open    demux   decode    scale  ms a clip   of all\n");
    for (size_t i = 0; i < costs->num_classes; i++)
        tell_class(report, &costs->classes[i], all_ns, num_runs);
    if (costs->num_unsorted)
        printf("%" PRIu64 " clips are in other classes\n", costs->num_unsorted / num_runs);
}
