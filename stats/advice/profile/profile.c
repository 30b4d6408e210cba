/*
 * One point is one short pipeline: a source that lends the recorded inputs, the stage, a sink. A task hook counts tasks
 * and takes the times of the first and the last one that count, so the result does not depend on when the pipeline is
 * built or noticed to be done.
 */
#include <weir/profile.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/pipeline.h>

#include "kept_items.h"
#include "profile_rows.h"

enum { TASKS_PER_SLOT = 3, PATIENCE = 10 };

/* Tasks of one point: until the first one of each slot has ended nothing counts. */
typedef struct task_meter {
    /* immutable */
    uint64_t num_warmup, num_wanted;
    int64_t time_ns;
    int64_t memory_before;

    pthread_mutex_t lock;
    /* guarded by lock */
    uint64_t num_ended; /* those of the warm-up, too */
    uint64_t num_failures;
    int64_t begin_ns, end_ns;
    int64_t begin_cpu_ns, end_cpu_ns;
    int64_t memory_ns; /* when memory was last read */
    int64_t peak_memory;
    bool done;
    weir_error first_failure;
} task_meter;

typedef struct profiler {
    weir_profile_options options;
    const weir_profile_stage *stages;
    weir_profile_report *report;
    weir_kept_items inputs; /* of the stage that is being measured */
    weir_error *error;
} profiler;

static int64_t cpu_time_ns(void)
{
    struct timespec time = { 0 };
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * WEIR_SECOND + time.tv_nsec;
}

/* Resident memory in bytes; 0 = not known. */
static int64_t memory_of_process(void)
{
    long long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lld %lld", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void meter_init(task_meter *meter, const profiler *own, uint32_t concurrency)
{
#ifdef __GLIBC__
    malloc_trim(0); /* what an earlier point freed would hide what this one needs */
#endif
    *meter = (task_meter){
        .num_warmup = concurrency,
        .num_wanted = (uint64_t)TASKS_PER_SLOT * concurrency,
        .time_ns = own->options.time_ns,
        .memory_before = memory_of_process(),
    };
    pthread_mutex_init(&meter->lock, NULL);
}

static void note_memory_locked(task_meter *meter, int64_t now_ns)
{
    static const int64_t interval_ns = 10 * WEIR_MILLISECOND; /* reading it takes microseconds */
    if (meter->memory_ns && now_ns - meter->memory_ns < interval_ns)
        return;
    meter->memory_ns = now_ns;
    int64_t memory = memory_of_process();
    if (memory > meter->peak_memory)
        meter->peak_memory = memory;
}

/* A task has ended. Returns whether enough have. */
static bool meter_count(task_meter *meter, bool failed)
{
    pthread_mutex_lock(&meter->lock);
    int64_t now_ns = weir_clock_ns();
    note_memory_locked(meter, now_ns);
    if (!meter->done && ++meter->num_ended <= meter->num_warmup) {
        meter->begin_ns = meter->end_ns = now_ns;
        meter->begin_cpu_ns = meter->end_cpu_ns = cpu_time_ns();
    } else if (!meter->done) {
        int64_t elapsed_ns = now_ns - meter->begin_ns;
        meter->num_failures += failed;
        meter->end_ns = now_ns;
        meter->end_cpu_ns = cpu_time_ns();
        meter->done = elapsed_ns >= meter->time_ns && (meter->num_ended - meter->num_warmup >= meter->num_wanted ||
                                                       elapsed_ns >= PATIENCE * meter->time_ns);
    }
    bool done = meter->done;
    pthread_mutex_unlock(&meter->lock);
    return done;
}

static int count_task(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    (void)state;
    (void)task;
    task_meter *meter = self;
    if (end->error) {
        pthread_mutex_lock(&meter->lock);
        if (meter->first_failure.status == WEIR_OK)
            meter->first_failure = *end->error;
        pthread_mutex_unlock(&meter->lock);
    }
    meter_count(meter, end->status < 0);
    return WEIR_OK;
}

/* ---- the pipeline of a point -------------------------------------------------------------------------------- */

typedef struct lend_config {
    weir_kept_items *inputs;
    task_meter *meter; /* ends the source when enough has been measured; NULL = each input once */
} lend_config;

static int lend_input(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    const lend_config *lend = weir_task_config(task);
    bool done = lend->meter == NULL && weir_task_seq(task) == lend->inputs->num_items;
    if (lend->meter) {
        pthread_mutex_lock(&lend->meter->lock);
        done = lend->meter->done;
        pthread_mutex_unlock(&lend->meter->lock);
    }
    if (done)
        return WEIR_EOF;
    weir_kept_items_lend(lend->inputs, out);
    return WEIR_OK;
}

static const weir_op lend_op = {
    .name = "recorded", .makes = WEIR_TYPE_ANY, .config_size = sizeof(lend_config), .run = lend_input
};

/* The stage alone; the meter may be NULL. */
static int build_stage(profiler *own, const weir_profile_stage *stage, uint32_t concurrency, task_meter *meter,
                       weir_pipeline **pipeline)
{
    weir_task_hook hook = { .self = meter, .end = count_task };
    weir_stage_options options = {
        .name = stage->name,
        .concurrency = concurrency,
        .threads = concurrency,
        .task_hooks = &hook,
        .num_task_hooks = meter != NULL,
    };
    lend_config lend = { .inputs = &own->inputs, .meter = meter };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &lend_op, &lend, &(weir_stage_options){ .threads = 1, .queue_items = 2 });
    weir_builder_pipe(builder, stage->op, stage->config, &options);
    weir_builder_sink(builder, NULL);
    return weir_builder_build(builder, &(weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER },
                              pipeline, own->error);
}

/* Takes and counts or keeps all results. */
static int drain(weir_pipeline *pipeline, task_meter *counted, weir_kept_items *kept)
{
    weir_item item;
    int status;
    bool enough = false;
    while ((status = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH)
            continue;
        if (kept && weir_kept_items_has_room(kept) && !weir_kept_items_add(kept, &item))
            enough = true; /* out of memory: what there is must do */
        weir_item_release(&item);
        enough = (counted && meter_count(counted, false)) || (!counted && kept && !weir_kept_items_has_room(kept)) ||
                 enough;
        if (enough)
            weir_pipeline_stop(pipeline);
    }
    return status == WEIR_ESTOPPED && enough ? WEIR_EOF : status;
}

/* ---- points ------------------------------------------------------------------------------------------------- */

static const char *name_of(const weir_profile_stage *stage)
{
    return stage->name ? stage->name : stage->op->name;
}

static int add_point(profiler *own, const weir_profile_stage *stage, uint32_t concurrency, const task_meter *meter)
{
    weir_profile_report *report = own->report;
    weir_profile_point *points = realloc(report->points, (report->num_points + 1) * sizeof *points);
    if (!points)
        return weir_error_set(own->error, WEIR_ENOMEM, 0, "out of memory");
    report->points = points;
    weir_profile_point *point = &points[report->num_points++];
    uint64_t num_counted = meter->num_ended > meter->num_warmup ? meter->num_ended - meter->num_warmup : 0;
    *point = (weir_profile_point){
        .stage = name_of(stage),
        .concurrency = concurrency,
        .num_tasks = num_counted,
        .num_failures = meter->num_failures,
        .elapsed_s = (double)(meter->end_ns - meter->begin_ns) / (double)WEIR_SECOND,
        .cpu_time_s = (double)(meter->end_cpu_ns - meter->begin_cpu_ns) / (double)WEIR_SECOND,
    };
    weir_profile_derive(report, report->num_points - 1);
    if (meter->peak_memory > meter->memory_before)
        point->memory_bytes = (uint64_t)(meter->peak_memory - meter->memory_before);
    return WEIR_OK;
}

static int measure_stage_at(profiler *own, const weir_profile_stage *stage, uint32_t concurrency)
{
    weir_pipeline *pipeline;
    task_meter meter;
    meter_init(&meter, own, concurrency);
    int status = build_stage(own, stage, concurrency, &meter, &pipeline);
    if (status == WEIR_OK) {
        drain(pipeline, NULL, NULL);
        weir_pipeline_free(pipeline);
        bool all_failed = meter.num_ended > 0 && meter.num_failures == meter.num_ended - meter.num_warmup;
        if (all_failed && meter.first_failure.status != WEIR_OK) {
            status = meter.first_failure.status;
            weir_error_set(own->error, status, meter.first_failure.library_code, "every task of %s fails: %s",
                           name_of(stage), meter.first_failure.message);
        } else {
            status = add_point(own, stage, concurrency, &meter);
        }
    }
    pthread_mutex_destroy(&meter.lock);
    return status;
}

static void tell(const profiler *own, const weir_profile_point *point)
{
    if (own->options.progress)
        own->options.progress(own->options.progress_self, point);
}

/* 1, 2, 4, … slots. Sets *best. */
static int measure_stage(profiler *own, const weir_profile_stage *stage, uint32_t *best)
{
    size_t first = own->report->num_points, best_point = first;
    for (uint64_t concurrency = 1; concurrency <= own->options.max_concurrency; concurrency *= 2) {
        int status = measure_stage_at(own, stage, (uint32_t)concurrency);
        if (status != WEIR_OK)
            return status;
        weir_profile_point *points = own->report->points, *point = &points[own->report->num_points - 1];
        tell(own, point);
        bool pays =
            concurrency == 1 || point->tasks_per_s > points[best_point].tasks_per_s * (1 + own->options.min_gain);
        if (pays)
            best_point = own->report->num_points - 1;
        else
            break;
    }
    own->report->points[best_point].is_best = true;
    *best = own->report->points[best_point].concurrency;
    return WEIR_OK;
}

static int fail_empty(profiler *own, const weir_profile_stage *stage)
{
    return weir_error_set(own->error, WEIR_ENOTFOUND, 0, "%s gives no items to feed the next stage with",
                          name_of(stage));
}

/* Replaces the inputs with what the stage makes of them, each once. */
static int record_results(profiler *own, const weir_profile_stage *stage, uint32_t concurrency)
{
    weir_pipeline *pipeline;
    weir_kept_items results = { .max_items = own->inputs.max_items, .max_bytes = own->inputs.max_bytes };
    int status = build_stage(own, stage, concurrency, NULL, &pipeline);
    if (status != WEIR_OK)
        return status;
    drain(pipeline, NULL, &results);
    weir_pipeline_free(pipeline);
    weir_kept_items_free(&own->inputs);
    own->inputs = results;
    return results.num_items > 0 ? WEIR_OK : fail_empty(own, stage);
}

/* The source: measured and recorded in one run. */
static int measure_source(profiler *own)
{
    weir_pipeline *pipeline;
    task_meter meter;
    const weir_profile_stage *source = &own->stages[0];
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, source->op, source->config,
                        &(weir_stage_options){ .name = source->name, .threads = 1 });
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(
        builder, &(weir_pipeline_options){ .threads = 1, .stats_interval_ns = WEIR_FOREVER }, &pipeline, own->error);
    if (status != WEIR_OK)
        return status;
    meter_init(&meter, own, 1);
    status = drain(pipeline, &meter, &own->inputs);
    if (status == WEIR_EFAILED)
        status = weir_pipeline_error(pipeline, own->error);
    else
        status = own->inputs.num_items > 0 ? add_point(own, source, 1, &meter) : fail_empty(own, source);
    weir_pipeline_free(pipeline);
    pthread_mutex_destroy(&meter.lock);
    if (status != WEIR_OK)
        return status;
    weir_profile_point *point = &own->report->points[0];
    point->is_best = true;
    tell(own, point);
    return WEIR_OK;
}

static int check(const weir_profile_stage *stages, size_t num_stages, weir_error *error)
{
    if (!stages || num_stages == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "no stages to profile");
    for (size_t i = 0; i < num_stages; i++)
        if (!stages[i].op)
            return weir_error_set(error, WEIR_EINVAL, 0, "stage %zu has no operation", i);
    return WEIR_OK;
}

static int set_options(profiler *own, const weir_profile_options *options, size_t options_size)
{
    weir_profile_options *set = &own->options;
    int status = weir_options_copy(set, sizeof *set, options, options_size, own->error);
    if (status != WEIR_OK)
        return status;
    if (set->time_ns < 0 || !(set->min_gain >= 0))
        return weir_error_set(own->error, WEIR_EINVAL, 0, "time_ns and min_gain must not be negative");
    set->time_ns = set->time_ns ? set->time_ns : WEIR_SECOND;
    set->max_concurrency = set->max_concurrency ? set->max_concurrency : 64;
    set->min_gain = set->min_gain > 0 ? set->min_gain : 0.1;
    own->inputs.max_items = set->max_inputs ? set->max_inputs : 64;
    own->inputs.max_bytes = set->max_input_bytes ? set->max_input_bytes : UINT64_C(1) << 30;
    return WEIR_OK;
}

int weir_profile_sized(const weir_profile_stage *stages, size_t num_stages, const weir_profile_options *options,
                       size_t options_size, weir_profile_report **report, weir_error *error)
{
    profiler own = { .stages = stages, .error = error };
    if (!report)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *report = NULL;
    int status = check(stages, num_stages, error);
    if (status == WEIR_OK)
        status = set_options(&own, options, options_size);
    if (status != WEIR_OK)
        return status;
    own.report = calloc(1, sizeof *own.report);
    if (!own.report)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    own.report->start_unix_ns = weir_clock_unix_ns();
    status = measure_source(&own);
    for (size_t i = 1; i < num_stages && status == WEIR_OK; i++) {
        uint32_t best = 1;
        status = measure_stage(&own, &stages[i], &best);
        if (status == WEIR_OK && i + 1 < num_stages)
            status = record_results(&own, &stages[i], best);
    }
    weir_kept_items_free(&own.inputs);
    own.report->end_unix_ns = weir_clock_unix_ns();
    if (status == WEIR_OK)
        *report = own.report;
    else
        weir_profile_free(own.report);
    return status;
}

void weir_profile_free(weir_profile_report *report)
{
    if (!report)
        return;
    free(report->points);
    free(report);
}
