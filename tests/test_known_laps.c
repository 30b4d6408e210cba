/*
 * What laps say of pools, the process and the machine, in virtual time with invented figures of the kernel: all of it
 * is known to the nanosecond. Held constant: one pool whose threads are resized, and one of the source; tasks that
 * wait.
 */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/readings.h"
#include "tests/virtual_time.h"

#define MS WEIR_MILLISECOND

enum { NUM_ITEMS = 4, MOST_LAPS = 256, TASK_MS = 30, SOURCE_MS = 100, CHILD_MS = 17 };

/* ---- what is observed --------------------------------------------------------------------------------------------- */

typedef struct known_laps {
    int64_t elapsed_ns[MOST_LAPS], suspended_ns;
    weir_pool_metrics pool[MOST_LAPS], source; /* source: of all laps */
    weir_process_metrics process;              /* of all laps */
    weir_machine_metrics machine;
    uint32_t num;
} known_laps;

static void on_lap(void *self, const weir_subject_lap *lap)
{
    known_laps *all = self;
    REQUIRE(all->num < MOST_LAPS);
    if (lap->subject == WEIR_SUBJECT_POOL && strstr(lap->name, "src"))
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_POOL), &all->source, &lap->metrics.pool);
    else if (lap->subject == WEIR_SUBJECT_POOL)
        all->pool[all->num] = lap->metrics.pool;
    else if (lap->subject == WEIR_SUBJECT_PROCESS)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &all->process, &lap->metrics.process);
    else if (lap->subject == WEIR_SUBJECT_MACHINE)
        weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &all->machine, &lap->metrics.machine);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    known_laps *all = self;
    all->suspended_ns += lap->suspended_ns;
    all->elapsed_ns[all->num++] = lap->elapsed_ns;
}

/* ---- the pipeline -------------------------------------------------------------------------------------------------- */

static atomic_int num_made;
static int64_t started_ns;
static _Atomic int64_t end_ns;     /* of the last task, and so of the work */
static _Atomic int64_t surplus_ns; /* for which threads were busy that are surplus from 10 ms on */

static void note_end(void)
{
    int64_t now_ns = virtual_time_ns() - started_ns, before_ns = atomic_load(&end_ns);
    while (before_ns < now_ns && !atomic_compare_exchange_weak(&end_ns, &before_ns, now_ns))
        continue;
}

/* Four items at once, then none until its last task ends. */
static int make_items(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)task;
    if (atomic_fetch_add(&num_made, 1) >= NUM_ITEMS) {
        virtual_time_sleep(SOURCE_MS * MS);
        note_end();
        return WEIR_EOF;
    }
    out->data = &num_made;
    return WEIR_OK;
}

static int work_and_let_work(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    char name[32] = "";
    int64_t begin_ns = virtual_time_ns() - started_ns;
    (void)worker;
    virtual_time_sleep(TASK_MS * MS);
    note_end();
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (begin_ns <= 10 * MS && !strstr(name, "/0"))
        atomic_fetch_add(&surplus_ns, virtual_time_ns() - started_ns - 10 * MS);
    weir_task_add_cpu_time(task, CHILD_MS * MS);
    weir_item_move(out, in);
    return WEIR_OK;
}

static void *consume(void *argument)
{
    weir_item item;
    virtual_time_consumes();
    while (weir_pipeline_next(argument, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    return NULL;
}

/* Runs it to its end, in SOURCE_MS; from 0 on, 4 threads, from 10 ms on 1 of them, from 60 ms on 3. */
static void run(known_laps *all, int64_t interval_ns, bool has_parts)
{
    static const weir_op source = { .name = "src", .run = make_items };
    static const weir_op work = { .name = "work", .run = work_and_let_work };
    weir_observer observer = { .self = all, .lap = on_lap, .lap_end = on_lap_end };
    atomic_store(&num_made, 0);
    atomic_store(&surplus_ns, 0);
    atomic_store(&end_ns, 0);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source, NULL, 0, &(weir_stage_options){ .threads = 1, .queue_items = NUM_ITEMS });
    weir_builder_pipe(builder, &work, NULL, 0, &(weir_stage_options){ .concurrency = NUM_ITEMS });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .threads = NUM_ITEMS,
                                                                       .observers = &observer,
                                                                       .num_observers = 1,
                                                                       .stats_interval_ns = interval_ns });
    pthread_t consumer = thread_start(consume, pipeline);
    virtual_time_drive(pipeline);
    virtual_time_sleep(10 * MS);
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 1), WEIR_OK);
    for (int i = 0; i < 50; i++) {
        if (has_parts && i % 7 == 3)
            weir_pipeline_mark_phase(pipeline, i % 2 ? "a" : "b");
        virtual_time_sleep(MS);
    }
    assert_int_equal(weir_pipeline_set_threads(pipeline, NULL, 3), WEIR_OK);
    virtual_time_sleep(60 * MS);
    thread_join(consumer);
    virtual_time_let_go();
    weir_pipeline_free(pipeline);
    virtual_time_end();
}

/* ---- known figures -------------------------------------------------------------------------------------------------- */

/* The process uses half a CPU, and the machine 3 of 8. */
static bool use_half_a_cpu(weir__process_usage *usage)
{
    *usage = (weir__process_usage){ .cpu_ns = (virtual_time_ns() - started_ns) / 2 };
    return true;
}

static size_t read_machine(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    int64_t ticks = (virtual_time_ns() - started_ns) / (WEIR_SECOND / sysconf(_SC_CLK_TCK)) + 1000;
    if (strcmp(path, "/proc/stat") == 0)
        snprintf(text, size, "cpu %lld 0 0 %lld 0 0 0 0\n", 3LL * ticks, 5LL * ticks);
    return strlen(text);
}

static void begin(known_laps *all)
{
    memset(all, 0, sizeof *all);
    virtual_time_begin();
    weir__readings invented = *weir__readings_get();
    invented.usage = use_half_a_cpu;
    invented.file = read_machine;
    weir__readings_set(&invented);
    started_ns = virtual_time_ns();
}

/* 4 threads for 10 ms, then 1, from 60 ms on 3; and the surplus ones until their tasks end. */
static void assert_threads(const known_laps *all)
{
    int64_t busy_ns = 0, idle_ns = 0, elapsed_ns = 0;
    for (uint32_t i = 0; i < all->num; i++) {
        busy_ns += all->pool[i].busy_ns;
        idle_ns += all->pool[i].idle_ns;
        elapsed_ns += all->elapsed_ns[i];
        assert_true(all->pool[i].busy_ns + all->pool[i].idle_ns <= NUM_ITEMS * all->elapsed_ns[i]);
        assert_true(all->pool[i].busy_ns + all->pool[i].idle_ns >= all->elapsed_ns[i]);
    }
    int64_t at_end_ns = atomic_load(&end_ns);
    assert_int_equal(elapsed_ns, at_end_ns);
    assert_int_equal(busy_ns, NUM_ITEMS * TASK_MS * MS);
    assert_int_equal(busy_ns + idle_ns, 4 * 10 * MS + 50 * MS + 3 * (at_end_ns - 60 * MS) + atomic_load(&surplus_ns));
    assert_int_equal(all->source.busy_ns + all->source.idle_ns, at_end_ns);
    assert_int_equal(all->source.busy_ns, SOURCE_MS * MS);
}

TEST_CASE(busy_and_idle_time_are_threads_times_elapsed_time)
{
    static known_laps all;
    static const int64_t intervals_ns[] = { 5 * MS, 10 * MS, 15 * MS, 40 * MS, WEIR_FOREVER };
    for (size_t i = 0; i < sizeof intervals_ns / sizeof intervals_ns[0]; i++)
        for (int has_parts = 0; has_parts <= 1; has_parts++) {
            begin(&all);
            run(&all, intervals_ns[i], has_parts);
            assert_threads(&all);
        }
}

/* Child processes have worked for the tasks: that is CPU time of the process, and not of other programs. */
TEST_CASE(the_process_others_and_idle_cpus_are_all_cpus)
{
    static known_laps all;
    begin(&all);
    run(&all, WEIR_FOREVER, false); /* shorter laps are not so precise: the machine counts in ticks */
    int64_t tick_ns = WEIR_SECOND / sysconf(_SC_CLK_TCK),
            read_ns = 2 * (all.process.cpu_ns - NUM_ITEMS * CHILD_MS * MS);
    assert_in_range(read_ns, atomic_load(&end_ns), 130 * MS);
    assert_int_equal(all.process.cpu_ns + all.machine.other_cpu_ns, 3 * (read_ns / tick_ns) * tick_ns);
    assert_int_equal(all.machine.idle_ns, 5 * (read_ns / tick_ns) * tick_ns);
}

/* Each lap ends as late as the service thread wakes up, and the next one no later. */
TEST_CASE(laps_do_not_drift)
{
    static known_laps all;
    begin(&all);
    virtual_time_be_late(3 * MS);
    run(&all, 10 * MS, false);
    int64_t reported_ns = 0;
    assert_in_range(all.num, 10, 14);
    for (uint32_t i = 0; i + 1 < all.num; i++) {
        reported_ns += all.elapsed_ns[i];
        int64_t known_ns = (10 * (i + 1) + 3) * MS, at_end_ns = atomic_load(&end_ns);
        assert_int_equal(reported_ns, known_ns < at_end_ns ? known_ns : at_end_ns);
    }
    assert_threads(&all);
    assert_int_equal(all.suspended_ns, 0);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
