/*
 * Pipelines with a known bottleneck, to show their metrics: docs/reading-the-metrics.md explains each of them.
 * Nothing is decoded; stages wait like disks and networks, or compute like decoders.
 *
 * docs/verdict.md shows what weir explain says about each.
 *
 *     simulate --pattern source|decode|… [--seconds 3] [--tune] [--db-path simulated.db]
 *
 * With --tune they begin with one slot and one thread, and the tuner finds the rest (docs/tuning.md).
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/weir.h>

#include "tools/cli/option_help.h"

/* How long an item keeps a stage busy. */
typedef struct work_load {
    double wait_s;        /* without using a CPU */
    double compute_s;     /* using a CPU */
    uint64_t slow_one;    /* the number of an item that takes 200 times as long; 0 = none */
    uint64_t tail_every;  /* one of each tail_every items takes 100 times as long; 0 = none */
    uint64_t burst;       /* of each `burst` items, only the first takes time; 0 = each does */
    bool locked;          /* one item at a time, in all slots */
    uint32_t num_helpers; /* threads that compute for the stage, which waits for them; 0 = none */
    uint64_t item_bytes;  /* of each result */
} work_load;

typedef struct pattern {
    const char *name;
    const char *what;
    work_load source, decode, sink;
    uint32_t concurrency; /* of the decode stage */
    uint32_t threads;
    weir_order order;
    uint32_t source_items;   /* capacity of the source's queue; 0 = the default */
    uint64_t source_bytes;   /* the same in bytes; 0 = no limit */
    bool shares_threads;     /* the source has no thread of its own */
    bool trains;             /* the consumer marks steps */
    work_load second_source; /* merged with the first, round robin, if it takes time */
    work_load second_branch; /* every other item goes there, if it takes time */
} pattern;

static const pattern patterns[] = {
    { .name = "source",
      .what = "the source is the bottleneck: a slow disk or network",
      .source = { .wait_s = 0.010 },
      .decode = { .compute_s = 0.002 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "decode",
      .what = "the decode stage is the bottleneck: more slots or less work per item would help",
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4 },
    { .name = "sink",
      .what = "the consumer is the bottleneck: the pipeline waits for it",
      .decode = { .compute_s = 0.001 },
      .sink = { .wait_s = 0.010 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "threads",
      .what = "the thread pool is the bottleneck: ten slots share one thread",
      .decode = { .compute_s = 0.005 },
      .concurrency = 10,
      .threads = 1 },
    { .name = "slow-file",
      .what = "one file takes 200 times as long as the others, which wait for it because the output keeps the input "
              "order",
      .decode = { .wait_s = 0.005, .slow_one = 150 },
      .concurrency = 4,
      .threads = 4,
      .order = WEIR_ORDER_INPUT },
    { .name = "training",
      .what = "nothing is the bottleneck: finished items wait for the training step",
      .decode = { .compute_s = 0.001 },
      .sink = { .wait_s = 0.010 },
      .concurrency = 4,
      .threads = 4,
      .trains = true },
    { .name = "starved",
      .what = "the source starves: it shares one thread with the stage",
      .source = { .wait_s = 0.001 },
      .decode = { .wait_s = 0.005 },
      .concurrency = 4,
      .threads = 1,
      .shares_threads = true },
    { .name = "cpus",
      .what = "the CPUs are the bottleneck: more slots and threads than CPUs, all computing",
      .decode = { .compute_s = 0.005 },
      .concurrency = 16,
      .threads = 16 },
    { .name = "lock",
      .what = "a lock is the bottleneck: the four slots compute one at a time",
      .decode = { .compute_s = 0.005, .locked = true },
      .concurrency = 4,
      .threads = 4 },
    { .name = "own-threads",
      .what = "the decoder computes in two threads of its own, and its slots wait for them",
      .decode = { .compute_s = 0.005, .num_helpers = 2 },
      .concurrency = 4,
      .threads = 4 },
    { .name = "bursts",
      .what = "the source makes 20 items at once, every 0.2 s, and its queue holds two",
      .source = { .wait_s = 0.200, .burst = 20 },
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4 },
    { .name = "bytes",
      .what = "the same, but the queue has room for 64 items, and only for the bytes of two",
      .source = { .wait_s = 0.200, .burst = 20, .item_bytes = 1000000 },
      .decode = { .wait_s = 0.010 },
      .concurrency = 2,
      .threads = 4,
      .source_items = 64,
      .source_bytes = 2000000 },
    { .name = "tail",
      .what = "one item of 40 takes 100 times as long, and most of the stage's time",
      .decode = { .wait_s = 0.001, .tail_every = 40 },
      .concurrency = 2,
      .threads = 4 },
    { .name = "branch",
      .what = "one branch of a route is the bottleneck: its items take five times as long",
      .decode = { .wait_s = 0.002 },
      .concurrency = 1,
      .threads = 4,
      .second_branch = { .wait_s = 0.010 } },
    { .name = "input",
      .what = "one input of a merge is the bottleneck: its source is slow",
      .source = { .wait_s = 0.001 },
      .decode = { .wait_s = 0.001 },
      .concurrency = 2,
      .threads = 4,
      .second_source = { .wait_s = 0.010 } },
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

/* Threads that compute, as a codec's do; each has at most one job. */
typedef struct helper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double job_s; /* 0 = none */
    bool quit;
    pthread_t thread;
} helper;

enum { MAX_HELPERS = 2 };
static helper helpers[MAX_HELPERS];

static void *help(void *self)
{
    helper *h = self;
    pthread_mutex_lock(&h->lock);
    while (!h->quit) {
        double job_s = h->job_s;
        if (job_s > 0) {
            pthread_mutex_unlock(&h->lock);
            compute_for(job_s);
            pthread_mutex_lock(&h->lock);
            h->job_s = 0;
            pthread_cond_broadcast(&h->changed);
        } else
            pthread_cond_wait(&h->changed, &h->lock);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static bool start_helpers(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_init(&helpers[i].lock, NULL);
        pthread_cond_init(&helpers[i].changed, NULL);
        if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0)
            return false;
    }
    return true;
}

static void stop_helpers(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pthread_mutex_lock(&helpers[i].lock);
        helpers[i].quit = true;
        pthread_cond_broadcast(&helpers[i].changed);
        pthread_mutex_unlock(&helpers[i].lock);
        pthread_join(helpers[i].thread, NULL);
    }
}

static void let_compute(helper *h, double seconds)
{
    pthread_mutex_lock(&h->lock);
    while (h->job_s > 0)
        pthread_cond_wait(&h->changed, &h->lock);
    h->job_s = seconds;
    pthread_cond_broadcast(&h->changed);
    while (h->job_s > 0)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void do_work(const work_load *load, uint64_t number)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    double times = load->slow_one && number == load->slow_one ? 200 : 1;
    if (load->tail_every && number % load->tail_every == load->tail_every - 1)
        times = 100;
    if (load->burst && number % load->burst != 0)
        return;
    if (load->num_helpers) {
        let_compute(&helpers[number % load->num_helpers], times * load->compute_s);
        return;
    }
    if (load->locked)
        pthread_mutex_lock(&lock);
    if (load->wait_s > 0)
        wait_for(times * load->wait_s);
    if (load->compute_s > 0)
        compute_for(times * load->compute_s);
    if (load->locked)
        pthread_mutex_unlock(&lock);
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
    out->size_bytes = config->work.item_bytes;
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
static int every_other(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

static const weir_op decode_op = { .name = "decode", .config_size = sizeof(work_load), .run = decode };

static bool takes_time(const work_load *load)
{
    return load->wait_s > 0 || load->compute_s > 0;
}

static void add_stages(weir_builder *builder, const pattern *chosen, const source_config *source,
                       weir_task_hook *items, bool is_tuned)
{
    weir_stage_options from = { .threads = chosen->shares_threads ? 0 : 1,
                                .queue_items = chosen->source_items,
                                .queue_bytes = chosen->source_bytes };
    weir_stage_options stage = { .concurrency = is_tuned ? 1 : chosen->concurrency,
                                 .output_order = chosen->order,
                                 .task_hooks = items,
                                 .num_task_hooks = 1 };
    weir_builder_source(builder, &list_op, source, sizeof(source_config), &from);
    if (takes_time(&chosen->second_source)) {
        source_config other = { .work = chosen->second_source, .end_ns = source->end_ns };
        from.name = "slow-list";
        weir_builder_source(builder, &list_op, &other, sizeof(source_config), &from);
        weir_builder_merge(builder, &(weir_merge_config){ .order = WEIR_MERGE_ROUND_ROBIN }, NULL);
    }
    if (takes_time(&chosen->second_branch)) {
        weir_builder_route(builder, &(weir_route_config){ .pick = every_other, .num_branches = 2 }, NULL);
        weir_builder_branch(builder);
    }
    weir_builder_pipe(builder, &decode_op, &chosen->decode, sizeof(work_load), &stage);
    if (takes_time(&chosen->second_branch)) {
        stage.name = "decode-large";
        weir_builder_branch(builder);
        weir_builder_pipe(builder, &decode_op, &chosen->second_branch, sizeof(work_load), &stage);
        weir_builder_join(builder, NULL);
    }
    weir_builder_sink(builder, NULL);
}

static int simulate(const pattern *chosen, double seconds, const char *db_path, weir_trace_file *trace, bool tunes,
                    weir_error *error)
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
    add_stages(builder, chosen, &source, &items, tunes);
    weir_observer observers[2] = { weir_sqlite_observer(writer) };
    size_t num_observers = 1;
    if (trace)
        observers[num_observers++] = weir_trace_observer(trace);
    weir_pipeline_options options = { .threads = tunes ? 1 : chosen->threads,
                                      .stats_interval_ns = WEIR_SECOND / 10,
                                      .observers = observers,
                                      .num_observers = num_observers };
    weir_tuner *tuner = NULL;
    status = weir_builder_build(builder, &options, &pipeline, error);
    if (status == WEIR_OK && tunes && (status = weir_tuner_start(pipeline, NULL, &tuner, error)) != WEIR_OK)
        weir_pipeline_free(pipeline);
    if (status == WEIR_OK) {
        weir_item item;
        for (int64_t step = 0; (status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK; step++) {
            if (chosen->trains)
                weir_pipeline_mark_step(pipeline, step);
            do_work(&chosen->sink, item.seq);
            weir_item_release(&item);
        }
        if (status == WEIR_EFAILED)
            weir_pipeline_error(pipeline, NULL, error);
        weir_tuner_free(tuner);
        weir_pipeline_free(pipeline);
    }
    int closed = weir_sqlite_close(writer, error);
    return status == WEIR_EOF ? closed : status;
}

/* ---- the command line --------------------------------------------------------------------------------------- */

enum { MAX_SECONDS = 3600 };

typedef struct simulate_settings {
    const char *pattern_name;
    double seconds;
    const char *db_path, *trace_path;
    bool tune;
    bool help;
} simulate_settings;

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(simulate_settings, what)

static const option_row rows[] = {
    { ROW("pattern", pattern_name, option_text), .argument = "PATTERN", .help = "one of those above (required)" },
    { ROW("seconds", seconds, option_span), .argument = "S", .help = "how long the source lasts (default 3)" },
    { ROW("db-path", db_path, option_file), .argument = "FILE",
      .help = "database to record in (default simulated.db)" },
    { ROW("trace", trace_path, option_file), .argument = "FILE",
      .help = "also write a trace, for weir trace and the Perfetto UI" },
    { ROW("tune", tune, option_flag), .help = "begin with one slot and one thread, and let the tuner change them" },
    { ROW("help", help, option_flag), .letter = 'h', .help = "print this and exit" },
    { 0 },
};

static const pattern *find_pattern(const char *name)
{
    for (size_t i = 0; name && i < NUM_PATTERNS; i++)
        if (strcmp(patterns[i].name, name) == 0)
            return &patterns[i];
    return NULL;
}

static void print_help(const option_set *set)
{
    puts("Usage: simulate --pattern PATTERN [options]\n");
    for (size_t i = 0; i < NUM_PATTERNS; i++)
        printf("  %-12s %s\n", patterns[i].name, patterns[i].what);
    putchar('\n');
    options_print(set, 1);
}

static int refuse(const char *what, const char *why)
{
    fprintf(stderr, "simulate: %s%s\n", what, why);
    return 2;
}

static int refuse_pattern(const char *name)
{
    const char *names[NUM_PATTERNS];
    for (size_t i = 0; i < NUM_PATTERNS; i++)
        names[i] = patterns[i].name;
    const char *similar = option_most_similar(name, names, NUM_PATTERNS);
    char why[128];
    snprintf(why, sizeof why, ": no such pattern%s%s%s (see --help)", similar ? "; did you mean " : "",
             similar ? similar : "", similar ? "?" : "");
    return refuse(name, why);
}

int main(int argc, char **argv)
{
    weir_standard_files_open();
    simulate_settings settings = { .seconds = 3, .db_path = "simulated.db" };
    option_set set = { rows, &settings };
    char problem[OPTION_PROBLEM_BYTES];
    int num_words = options_parse(&set, 1, argc, argv, problem);
    if (num_words < 0)
        return refuse(problem, "");
    if (settings.help) {
        print_help(&set);
        return 0;
    }
    if (num_words > 0)
        return refuse(argv[argc - num_words], ": not an option (see --help)");
    if (!settings.pattern_name)
        return refuse("--pattern PATTERN is missing", " (see --help)");
    const pattern *chosen = find_pattern(settings.pattern_name);
    if (!chosen)
        return refuse_pattern(settings.pattern_name);
    if (settings.seconds > MAX_SECONDS)
        return refuse("--seconds: at most 3600", "");
    weir_error error = { 0 };
    uint32_t num_helpers = chosen->decode.num_helpers;
    if (!start_helpers(num_helpers))
        return refuse("", "cannot start a thread");
    weir_trace_file *trace = NULL;
    weir_trace_options tracing = { .run = chosen->name, .overwrite = true };
    int status = WEIR_OK;
    const weir_output_rules rules = { .inputs = &settings.db_path, .num_inputs = 1 }; /* one file for each */
    if (settings.trace_path)
        status = weir_output_check(settings.trace_path, WEIR_OUTPUT_TRACE, &rules, &error);
    if (settings.trace_path && status == WEIR_OK)
        status = weir_trace_open(settings.trace_path, &tracing, &trace, &error);
    if (status == WEIR_OK)
        status = simulate(chosen, settings.seconds, settings.db_path, trace, settings.tune, &error);
    int closed = weir_trace_close(trace, status == WEIR_OK ? &error : NULL);
    status = status == WEIR_OK ? closed : status;
    stop_helpers(num_helpers);
    if (status != WEIR_OK) {
        fprintf(stderr, "simulate: %s\n", error.message);
        return 1;
    }
    printf("%s: %s\n%s\n", chosen->name, chosen->what, settings.db_path);
    return 0;
}
