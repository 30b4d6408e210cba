/*
 * Pipelines with a known trouble, to learn what its figures look like: docs/reading-the-figures.md explains them one by
 * one. Nothing is decoded here; stages wait, as disks and networks do, or compute, as decoders do.
 *
 *     simulate --pattern source|decode|sink|threads|slow-file [--seconds 3] [--db-path simulated.db]
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

/* How long an item keeps a stage busy. */
typedef struct work_load {
    double wait_s;     /* without a CPU */
    double compute_s;  /* with one */
    uint64_t slow_one; /* the number of an item that takes 200 times as long; 0 = none */
} work_load;

typedef struct pattern {
    const char *name;
    const char *what;
    work_load source, decode, sink;
    uint32_t concurrency; /* of the decode stage */
    uint32_t threads;
    weir_order order;
} pattern;

static const pattern patterns[] = {
    { .name = "source",
      .what = "the source is the limit: a slow disk or network",
      .source = { .wait_s = 0.010 },
      .decode = { .compute_s = 0.002 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "decode",
      .what = "the decode stage is the limit: more slots, or cheaper work, would help",
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4 },
    { .name = "sink",
      .what = "the consumer is the limit: the pipeline waits for who takes its results",
      .decode = { .compute_s = 0.001 },
      .sink = { .wait_s = 0.010 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "threads",
      .what = "the pool is the limit: ten slots share one thread",
      .decode = { .compute_s = 0.005 },
      .concurrency = 10,
      .threads = 1 },
    { .name = "slow-file",
      .what = "one file takes 200 times as long as the others, which wait behind it: the order is that of the input",
      .decode = { .wait_s = 0.005, .slow_one = 150 },
      .concurrency = 4,
      .threads = 4,
      .order = WEIR_ORDER_INPUT },
};

enum { NUM_PATTERNS = sizeof patterns / sizeof patterns[0] };

/* ---- work --------------------------------------------------------------------------------------------------- */

static void wait_for(double seconds)
{
    struct timespec span = { .tv_sec = (time_t)seconds };
    span.tv_nsec = (long)((seconds - (double)span.tv_sec) * 1e9);
    nanosleep(&span, NULL);
}

static void compute_for(double seconds)
{
    int64_t end_ns = weir_clock_ns() + (int64_t)(seconds * (double)WEIR_SECOND);
    while (weir_clock_ns() < end_ns) {
    }
}

static void do_work(const work_load *load, uint64_t number)
{
    double times = load->slow_one && number == load->slow_one ? 200 : 1;
    if (load->wait_s > 0)
        wait_for(times * load->wait_s);
    if (load->compute_s > 0)
        compute_for(times * load->compute_s);
}

/* ---- stages ------------------------------------------------------------------------------------------------- */

typedef struct source_config {
    work_load work;
    int64_t end_ns; /* when it ends */
} source_config;

static int list_files(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    const source_config *config = weir_task_config(task);
    if (weir_clock_ns() >= config->end_ns)
        return WEIR_EOF;
    do_work(&config->work, weir_task_seq(task));
    char path[64];
    snprintf(path, sizeof path, "videos/clip-%06llu.mp4", (unsigned long long)weir_task_seq(task));
    out->data = strdup(path);
    out->release = weir_release_free;
    out->label = out->data;
    return out->data ? WEIR_OK : WEIR_ENOMEM;
}

static int decode(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    do_work(weir_task_config(task), weir_task_seq(task));
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op list_op = { .name = "list", .config_size = sizeof(source_config), .run = list_files };
static const weir_op decode_op = { .name = "decode", .config_size = sizeof(work_load), .run = decode };

static int simulate(const pattern *chosen, double seconds, const char *db_path, weir_error *error)
{
    weir_sqlite_writer *writer;
    weir_pipeline *pipeline;
    weir_task_hook items; /* the slowest of each lap, for weir slowest */
    int status = weir_sqlite_open(db_path, NULL, &writer, error);
    if (status != WEIR_OK)
        return status;
    status = weir_sqlite_item_hook(writer, NULL, &items, error);
    if (status != WEIR_OK) {
        weir_sqlite_close(writer, NULL);
        return status;
    }

    source_config source = { .work = chosen->source };
    source.end_ns = weir_clock_ns() + (int64_t)(seconds * (double)WEIR_SECOND);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &list_op, &source, &(weir_stage_options){ .threads = 1 });
    weir_builder_pipe(builder, &decode_op, &chosen->decode,
                      &(weir_stage_options){ .concurrency = chosen->concurrency,
                                             .output_order = chosen->order,
                                             .task_hooks = &items,
                                             .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_pipeline_options options = {
        .threads = chosen->threads, .stats_interval_ns = WEIR_SECOND / 10, .observers = &observer, .num_observers = 1
    };
    status = weir_builder_build(builder, &options, &pipeline, error);
    if (status == WEIR_OK) {
        weir_item item;
        while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
            do_work(&chosen->sink, item.seq);
            weir_item_release(&item);
        }
        weir_pipeline_free(pipeline);
    }
    int closed = weir_sqlite_close(writer, error);
    return status == WEIR_EOF ? closed : status;
}

/* ---- the command line --------------------------------------------------------------------------------------- */

static const pattern *find_pattern(const char *name)
{
    for (size_t i = 0; name && i < NUM_PATTERNS; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    return NULL;
}

static int show_usage(FILE *to, int status)
{
    fprintf(to, "usage: simulate --pattern PATTERN [--seconds 3] [--db-path simulated.db]\n\n");
    for (size_t i = 0; i < NUM_PATTERNS; i++)
        fprintf(to, "  %-10s %s\n", patterns[i].name, patterns[i].what);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = { { "pattern", required_argument, NULL, 'p' },
                                                  { "seconds", required_argument, NULL, 's' },
                                                  { "db-path", required_argument, NULL, 'd' },
                                                  { "help", no_argument, NULL, 'h' },
                                                  { 0 } };
    const char *name = NULL, *db_path = "simulated.db";
    char *rest = NULL;
    double seconds = 3;
    for (int option; (option = getopt_long(argc, argv, "", long_options, NULL)) != -1;)
        switch (option) {
        case 'p': name = optarg; break;
        case 's': seconds = strtod(optarg, &rest); break;
        case 'd': db_path = optarg; break;
        case 'h': return show_usage(stdout, 0);
        default: return 2;
        }

    const pattern *chosen = find_pattern(name);
    if (!chosen) {
        fprintf(stderr, "simulate: %s%s\n", name ? "no such pattern: " : "--pattern is missing", name ? name : "");
        return show_usage(stderr, 2);
    }
    if (!(seconds > 0 && seconds <= 3600) || (rest && *rest)) {
        fprintf(stderr, "simulate: --seconds is a number above 0 and at most 3600\n");
        return 2;
    }
    weir_error error = { 0 };
    if (simulate(chosen, seconds, db_path, &error) != WEIR_OK) {
        fprintf(stderr, "simulate: %s\n", error.message);
        return 1;
    }
    printf("%s: %s\n%s\n", chosen->name, chosen->what, db_path);
    return 0;
}
