#include "bench/verdict/scene.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/harness/spin.h"
#include "common/random.h"
#include "tools/cli/memory.h"

/* A resource in use: when each server is free, as a moment in the future. */
typedef struct server_group {
    const scene_resource *of;
    pthread_mutex_t lock, held; /* held: while its owner computes */
    /* guarded by lock */
    int64_t free_ns[16];
    uint32_t num_waiting;
    uint64_t random;
} server_group;

struct scene_run {
    const scene *of;
    weir_pipeline *pipeline;
    server_group resources[2];
    int64_t start_ns, end_ns;
    double spins_per_ms;
    pthread_t consumer;
    atomic_ullong num_taken;
    pid_t load[8];
};

/* The config of a stand-in; one for each stage, source and consumer. */
typedef struct stand_in {
    scene_run *run;
    const scene_work *work, *later;
    uint64_t item_bytes;
    uint32_t epoch_items;
    uint32_t backlog_items;
    atomic_ullong num_tasks;
} stand_in;

static stand_in stand_ins[6]; /* a scene is the only one of its process */

static double random_share(uint64_t seed, uint64_t number)
{
    uint64_t random = weir__random_seed(seed, number);
    return (double)(weir__random_next(&random) >> 11) / 9007199254740992.0;
}

static void sleep_until(int64_t until_ns)
{
    struct timespec until = { .tv_sec = until_ns / WEIR_SECOND, .tv_nsec = until_ns % WEIR_SECOND };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        continue;
}

static void wait_ms(double ms)
{
    if (ms > 0)
        sleep_until(weir_clock_ns() + (int64_t)(1e6 * ms));
}

static void compute_ms(const scene_run *run, double ms)
{
    if (ms > 0)
        bench_spin((uint64_t)(run->spins_per_ms * ms));
}

/* -- resources */

static double service_ms(server_group *group)
{
    const scene_resource *of = group->of;
    double share = (double)(weir__random_next(&group->random) >> 11) / 9007199254740992.0, ms = of->service_ms;
    if (of->exponential)
        ms *= -log1p(-share);
    else
        ms *= 1 + of->jitter * (2 * share - 1);
    return ms * (1 + of->per_waiting * group->num_waiting);
}

/* The end of a request that is made now, and `part` of it. */
static int64_t enqueue(server_group *group, double part)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < group->of->servers; i++)
        first = group->free_ns[i] < group->free_ns[first] ? i : first;
    int64_t now_ns = weir_clock_ns(), start_ns = group->free_ns[first] > now_ns ? group->free_ns[first] : now_ns;
    return group->free_ns[first] = start_ns + (int64_t)(1e6 * part * service_ms(group));
}

static void use_resource(scene_run *run, server_group *group)
{
    uint32_t parts = group->of->parts ? group->of->parts : 1;
    if (group->of->computes) {
        pthread_mutex_lock(&group->held);
        compute_ms(run, group->of->service_ms);
        pthread_mutex_unlock(&group->held);
        return;
    }
    for (uint32_t i = 0; i < parts; i++) {
        pthread_mutex_lock(&group->lock);
        int64_t end_ns = enqueue(group, 1.0 / parts);
        group->num_waiting++;
        pthread_mutex_unlock(&group->lock);
        sleep_until(end_ns);
        pthread_mutex_lock(&group->lock);
        group->num_waiting--;
        pthread_mutex_unlock(&group->lock);
    }
}

/* -- work */

typedef struct own_thread {
    const scene_run *run;
    double ms;
} own_thread;

static void *compute_apart(void *argument)
{
    const own_thread *own = argument;
    compute_ms(own->run, own->ms);
    return NULL;
}

static void compute_in_threads(const scene_run *run, double ms)
{
    own_thread own = { run, ms };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, compute_apart, &own);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* What a child that has ended waited for a CPU. */
static int64_t child_delay_ns(pid_t child)
{
    char path[40];
    long long delay_ns = 0;
    siginfo_t ended;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)child);
    FILE *file = waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) == 0 ? fopen(path, "r") : NULL;
    if (file && fscanf(file, "%*d %lld", &delay_ns) != 1)
        delay_ns = 0;
    if (file)
        fclose(file);
    return delay_ns;
}

/* As an isolated decoder does it: the task waits for another process, and reports its CPU time. */
static void compute_in_child(const scene_run *run, double ms, weir_task *task)
{
    struct rusage used = { 0 };
    int status;
    pid_t child = fork();
    if (child == 0) {
        compute_ms(run, ms);
        _exit(0);
    }
    int64_t delay_ns = child > 0 ? child_delay_ns(child) : 0;
    if (child < 0 || wait4(child, &status, 0, &used) < 0 || !task)
        return;
    weir_task_add_run_delay(task, delay_ns);
    weir_task_add_cpu_time(task, (int64_t)used.ru_utime.tv_sec * WEIR_SECOND + 1000 * (int64_t)used.ru_utime.tv_usec +
                                     1000 * (int64_t)used.ru_stime.tv_usec);
}

static bool has_work(const scene_work *work)
{
    return work->cpu_ms > 0 || work->wait_ms > 0 || work->uses > 0;
}

/* Seconds since the change of the scene; negative = before it. */
static double late_s(const scene_run *run)
{
    double middle_s = 0.5e-9 * (double)(run->end_ns - run->start_ns);
    return 1e-9 * (double)(weir_clock_ns() - run->start_ns) - (run->of->change_s > 0 ? run->of->change_s : middle_s);
}

static const scene_work *work_now(const stand_in *s)
{
    const scene *of = s->run->of;
    if (!s->later || !has_work(s->later))
        return s->work;
    double since_s = late_s(s->run);
    bool is_late = since_s > 0 && !(of->alternates && fmod(since_s, 2 * of->change_s) > of->change_s);
    return is_late ? s->later : s->work;
}

static bool does_fail(const stand_in *s, uint64_t number)
{
    return s->work->fail_share > 0 && random_share((uint64_t)(s - stand_ins) + 30, number) < s->work->fail_share;
}

/* The length of a task, relative to the mean of those that succeed at the start. */
static double relative_length(const stand_in *s, const scene_work *w, uint64_t number)
{
    double length = w->exponential ? -log1p(-random_share((uint64_t)(s - stand_ins) + 10, number)) : 1;
    if (w->growth > 0)
        length *= 1 + w->growth * fmax(0, late_s(s->run));
    return does_fail(s, number) ? length * s->work->fail_length : length;
}

/* The wait that is left to the caller. */
static double do_work(stand_in *s, uint64_t number, weir_task *task)
{
    const scene_work *w = work_now(s);
    uint64_t seed = (uint64_t)(s - stand_ins);
    double factor = relative_length(s, w, number);
    bool is_of_tail = w->every && number % w->every == w->every - 1;
    if (w->burst > 1 && number % w->burst != 0)
        return 0;
    if (w->hit_share > 0 && random_share(seed + 20, number) < w->hit_share)
        return 0.1;
    if (w->uses)
        use_resource(s->run, &s->run->resources[w->uses - 1]);
    if (w->in_child)
        compute_in_child(s->run, w->cpu_ms, task);
    else if (w->in_own_threads)
        compute_in_threads(s->run, w->cpu_ms / 2);
    else
        compute_ms(s->run, is_of_tail ? w->giant_cpu_ms : factor * w->cpu_ms);
    return is_of_tail ? w->tail_ms : factor * w->wait_ms;
}

typedef struct completion {
    weir_task *task;
    double ms;
} completion;

static void *complete_later(void *argument)
{
    completion own = *(completion *)argument;
    free(argument);
    wait_ms(own.ms);
    weir_item out = { .data = &stand_ins[0] };
    weir_task_complete(own.task, WEIR_OK, &out);
    return NULL;
}

static bool pend(weir_task *task, double ms)
{
    pthread_t thread;
    completion *own = memory_get(1, sizeof *own);
    *own = (completion){ task, ms };
    if (pthread_create(&thread, NULL, complete_later, own) != 0) {
        free(own);
        return false;
    }
    pthread_detach(thread);
    return true;
}

static int run_stage(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    stand_in *s = *(stand_in *const *)weir_task_config(task);
    (void)worker;
    (void)in;
    uint64_t number = atomic_fetch_add(&s->num_tasks, 1);
    double ms = do_work(s, number, task);
    if (s->work->pending && pend(task, ms))
        return WEIR_PENDING;
    wait_ms(ms);
    if (does_fail(s, number))
        return WEIR_EDATA;
    out->data = &stand_ins[0];
    out->size_bytes = s->item_bytes;
    return WEIR_OK;
}

static int run_source(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    stand_in *s = *(stand_in *const *)weir_task_config(task);
    (void)worker;
    (void)in;
    if (weir_clock_ns() >= s->run->end_ns)
        return WEIR_EOF;
    if (s->epoch_items && weir_task_seq(task) >= s->epoch_items)
        return WEIR_EPOCH;
    if (s->epoch_items && weir_task_seq(task) == 0)
        wait_ms(s->work->restart_ms);
    if (weir_task_seq(task) >= s->backlog_items)
        wait_ms(do_work(s, atomic_fetch_add(&s->num_tasks, 1), NULL));
    out->data = &stand_ins[0];
    return WEIR_OK;
}

static const weir_op stage_op = { .name = "work", .config_size = sizeof(stand_in *), .run = run_stage },
                     source_op = { .name = "src", .config_size = sizeof(stand_in *), .run = run_source };

static int pick(void *self, const weir_item *item)
{
    (void)self;
    return (int)(item->seq % 2);
}

static void *consume(void *argument)
{
    scene_run *run = argument;
    stand_in *s = &stand_ins[5];
    weir_item item;
    int status;
    while ((status = weir_pipeline_next(run->pipeline, &item, WEIR_FOREVER)) == WEIR_OK || status == WEIR_EPOCH) {
        if (status == WEIR_EPOCH)
            continue;
        weir_item_release(&item);
        uint64_t number = atomic_fetch_add(&run->num_taken, 1);
        if (run->of->marks_steps)
            weir_pipeline_mark_step(run->pipeline, (int64_t)number);
        wait_ms(do_work(s, number, NULL));
    }
    return NULL;
}

/* -- building */

static void add_stage(weir_builder *builder, scene_run *run, uint32_t index, const scene_change *change)
{
    const scene_stage *stage = &run->of->stages[index];
    if (!stage->name)
        return;
    bool is_changed = change && strcmp(change->stage, stage->name) == 0;
    uint32_t threads = is_changed && stage->threads && change->threads ? change->threads : stage->threads;
    stand_ins[index] =
        (stand_in){ .run = run, .work = &stage->work, .later = &stage->later, .item_bytes = run->of->item_bytes };
    stand_in *own = &stand_ins[index];
    weir_builder_pipe(builder, &stage_op, &own, sizeof own,
                      &(weir_stage_options){
                          .name = stage->name,
                          .concurrency = is_changed && change->slots ? change->slots : stage->slots,
                          .threads = threads,
                          .queue_items = stage->queue_items,
                          .output_order = stage->in_order ? WEIR_ORDER_INPUT : WEIR_ORDER_COMPLETION,
                      });
}

static void add_source(weir_builder *builder, scene_run *run, uint32_t index, const scene_work *work)
{
    stand_ins[index] = (stand_in){
        .run = run, .work = work, .epoch_items = run->of->epoch_items, .backlog_items = run->of->backlog_items
    };
    stand_in *own = &stand_ins[index];
    weir_builder_source(builder, &source_op, &own, sizeof own,
                        &(weir_stage_options){ .queue_items = run->of->backlog_items });
}

static void describe(weir_builder *builder, scene_run *run, const scene_change *change)
{
    const scene *of = run->of;
    bool merges = of->shape == SCENE_MERGE || of->shape == SCENE_ROUND_ROBIN;
    add_source(builder, run, 3, &of->source);
    if (merges) {
        add_source(builder, run, 4, &of->stages[2].work);
        weir_builder_merge(builder,
                           &(weir_merge_config){ .order = of->shape == SCENE_ROUND_ROBIN ? WEIR_MERGE_ROUND_ROBIN
                                                                                         : WEIR_MERGE_ARRIVAL },
                           NULL);
    }
    if (of->shape == SCENE_ROUTE)
        weir_builder_route(builder, &(weir_route_config){ .pick = pick, .num_branches = 2 }, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        if (of->shape == SCENE_ROUTE && i < 2)
            weir_builder_branch(builder);
        add_stage(builder, run, i, change);
    }
    if (of->shape == SCENE_ROUTE)
        weir_builder_join(builder, NULL);
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = of->sink_items, .queue_bytes = of->sink_bytes });
}

static void start_load(scene_run *run)
{
    for (uint32_t i = 0; i < run->of->load; i++)
        if ((run->load[i] = fork()) == 0)
            for (;;)
                bench_spin(1000000);
}

static void start_resources(scene_run *run)
{
    for (int i = 0; i < 2; i++) {
        run->resources[i].of = &run->of->resources[i];
        run->resources[i].random = weir__random_seed(7, (uint64_t)i);
        pthread_mutex_init(&run->resources[i].lock, NULL);
        pthread_mutex_init(&run->resources[i].held, NULL);
    }
}

scene_run *scene_start(const scene *of, const scene_change *change, int64_t run_ns, const weir_observer *observers,
                       size_t num_observers)
{
    scene_run *run = memory_get(1, sizeof *run);
    weir_error error = { 0 };
    run->of = of;
    run->spins_per_ms = 1000 * bench_spins_per_us();
    start_load(run);
    setpriority(PRIO_PROCESS, 0, of->nice);
    start_resources(run);
    run->start_ns = weir_clock_ns();
    run->end_ns = run->start_ns + run_ns;
    stand_ins[5] = (stand_in){ .run = run, .work = &of->consumer, .later = &of->consumer_later };
    weir_builder *builder = weir_builder_new();
    describe(builder, run, change);
    bool changes_pool = change && change->threads;
    weir_pipeline_options options = { .threads = changes_pool ? change->threads : of->threads,
                                      .stats_interval_ns = WEIR_SECOND / 8,
                                      .observers = observers,
                                      .num_observers = num_observers };
    if (weir_builder_build(builder, &options, &run->pipeline, &error) != WEIR_OK ||
        pthread_create(&run->consumer, NULL, consume, run) != 0) {
        fprintf(stderr, "weir-bench: %s: %s\n", of->name, error.message);
        weir_pipeline_free(run->pipeline);
        free(run);
        return NULL;
    }
    return run;
}

weir_pipeline *scene_pipeline(scene_run *run)
{
    return run->pipeline;
}

uint64_t scene_num_taken(scene_run *run)
{
    return atomic_load(&run->num_taken);
}

void scene_end(scene_run *run)
{
    pthread_join(run->consumer, NULL);
    weir_pipeline_free(run->pipeline);
    for (uint32_t i = 0; i < run->of->load; i++) {
        kill(run->load[i], SIGKILL);
        waitpid(run->load[i], NULL, 0);
    }
    free(run);
}
