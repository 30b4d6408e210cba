#include "class_costs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(class_costs *costs, const class_cost *more)
{
    size_t place = 0;
    int order = 1;
    while (place < costs->num_classes && (order = bench_class_compare(&costs->classes[place].kind, &more->kind)) < 0)
        place++;
    class_cost *own = &costs->classes[place];
    bool is_new = place == costs->num_classes || order != 0;
    if (is_new && costs->num_classes == MAX_COST_CLASSES) {
        costs->num_unsorted += more->num_clips;
        return;
    }
    if (is_new) {
        memmove(own + 1, own, (costs->num_classes - place) * sizeof *own);
        costs->num_classes++;
        *own = (class_cost){ .kind = more->kind };
    }
    own->num_clips += more->num_clips;
    own->num_frames += more->num_frames;
    own->open_ns += more->open_ns;
    own->demux_ns += more->demux_ns;
    own->decode_ns += more->decode_ns;
    own->scale_ns += more->scale_ns;
}

void class_costs_add(class_costs *costs, const weir_item_cost *cost)
{
    add(costs, &(class_cost){
                   .kind = bench_class_of(cost->codec, cost->width, cost->height),
                   .num_clips = 1,
                   .num_frames = cost->num_frames,
                   .open_ns = cost->open_ns,
                   .demux_ns = cost->demux_ns,
                   .decode_ns = cost->decode_ns,
                   .scale_ns = cost->scale_ns,
               });
}

void class_costs_add_all(class_costs *costs, const class_costs *more)
{
    for (size_t i = 0; i < more->num_classes; i++)
        add(costs, &more->classes[i]);
    costs->num_unsorted += more->num_unsorted;
}

static double total_ns(const class_cost *cost)
{
    return (double)(cost->open_ns + cost->demux_ns + cost->decode_ns + cost->scale_ns);
}

static void tell_class(bench_report *report, const class_cost *cost, double all_ns, uint32_t num_runs)
{
    char name[64];
    double clips = (double)cost->num_clips;
    double frames = cost->num_frames ? (double)cost->num_frames : 1;
    double share = all_ns > 0 ? total_ns(cost) / all_ns : 0;
    bench_class_name(&cost->kind, name, sizeof name);
    printf("%-20s %6.0f %9.0f  %9.0f  %8.1f %8.1f %8.1f %10.3f  %5.1f %%\n", name, clips / num_runs,
           (double)cost->num_frames / num_runs, (double)cost->open_ns / clips / 1e3,
           (double)cost->demux_ns / frames / 1e3, (double)cost->decode_ns / frames / 1e3,
           (double)cost->scale_ns / frames / 1e3, total_ns(cost) / clips / 1e6, share * 100);
    bench_report_row(report, "decode");
    bench_report_text(report, "part", "class_cost");
    bench_report_text(report, "class", name);
    bench_report_number(report, "clips", clips / num_runs);
    bench_report_number(report, "frames", (double)cost->num_frames / num_runs);
    bench_report_number(report, "open_us_per_clip", (double)cost->open_ns / clips / 1e3);
    bench_report_number(report, "demux_us_per_frame", (double)cost->demux_ns / frames / 1e3);
    bench_report_number(report, "decode_us_per_frame", (double)cost->decode_ns / frames / 1e3);
    bench_report_number(report, "scale_us_per_frame", (double)cost->scale_ns / frames / 1e3);
    bench_report_number(report, "ms_per_clip", total_ns(cost) / clips / 1e6);
    bench_report_number(report, "share_of_time", share);
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
        printf("%" PRIu64 " clips are of yet other classes\n", costs->num_unsorted / num_runs);
}
