/*
 * Samples of functions: their shares are those of the CPU time, every filter selects them, and the account of them is exact.
 * What runs is known: functions that use a CPU for a time that is measured. The bound of a share is that of a binomial
 * distribution: with so many standard deviations, one test in a million fails by chance.
 */
#include "tests/stats_fixture.h"
#include "tests/support.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/random.h"
#include "stats/record/stack_tree.h"

#define DEVIATIONS 4.9

/* ---- functions that use a CPU ----------------------------------------------------------------------------------- */

static int64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * WEIR_SECOND + now.tv_nsec;
}

/* Each counts its calls: equal functions would become one. */
#define BUSY_FUNCTION(name) \
    static volatile int64_t calls_of_##name; \
    __attribute__((noinline)) static int64_t name(int64_t cpu_ns) \
    { \
        int64_t start_ns = thread_cpu_ns(), used_ns; \
        while ((used_ns = thread_cpu_ns() - start_ns) < cpu_ns) \
            ; \
        calls_of_##name++; \
        return used_ns; \
    }
BUSY_FUNCTION(work_much)
BUSY_FUNCTION(work_little)
BUSY_FUNCTION(work_in_training)
BUSY_FUNCTION(work_in_evaluation)
BUSY_FUNCTION(work_in_even_steps)
BUSY_FUNCTION(work_in_odd_steps)

/* ---- answers ----------------------------------------------------------------------------------------------------- */

/* What weir query prints, to be freed; the exit status must be this. */
static char *query(int exit_status, const char *path, const char *options)
{
    char command[1024], *text = NULL;
    size_t size = 0;
    const char *tool = getenv("WEIR_TOOL");
    if (!tool)
        fail_msg("WEIR_TOOL is not set: run this test with ctest");
    snprintf(command, sizeof command, "'%s' query '%s' %s 2>&1", tool, path, options);
    FILE *program = popen(command, "r"); /* NOLINT: the test's own command */
    assert_non_null(program);
    ssize_t length = getdelim(&text, &size, '\0', program);
    int status = pclose(program);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != exit_status)
        fail_msg("%s: %d:\n%s", command, status, text ? text : "");
    return length > 0 ? text : strcpy(realloc(text, 1), "");
}

/* The samples of a function, with those of what it calls; 0 = it is not there. */
static int64_t samples_of(const char *path, const char *options, const char *function)
{
    char all[512], start[100];
    long long own = 0, total = 0;
    snprintf(all, sizeof all, "--by function --csv %s", options);
    snprintf(start, sizeof start, "\n%s,", function);
    char *text = query(0, path, all), *row = strstr(text, start);
    if (row)
        assert_int_equal(sscanf(row + strlen(start), "%lld,%*f,%lld", &own, &total), 2);
    free(text);
    return total;
}

static void assert_says(const char *path, const char *options, const char *expected)
{
    char *text = query(0, path, options);
    if (!strstr(text, expected))
        fail_msg("%s is not in:\n%s", expected, text);
    free(text);
}

/* ---- a recording ------------------------------------------------------------------------------------------------ */

typedef struct recorded {
    weir_sqlite_writer *writer;
    weir_pipeline *pipeline;
} recorded;

/* Adds the sink. */
static recorded start_recording(const char *path, weir_builder *builder, int32_t rank, uint32_t steps_per_lap)
{
    recorded r;
    weir_sqlite_options options = { .stacks = true, .rank = rank, .world = 2, .job = "job" };
    r.writer = open_writer(path, &options);
    weir_observer observer = weir_sqlite_observer(r.writer);
    weir_builder_sink(builder, NULL);
    r.pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer,
                                                          .num_observers = 1,
                                                          .threads = 2,
                                                          .steps_per_lap = steps_per_lap,
                                                          .stats_interval_ns = 200 * WEIR_MILLISECOND });
    return r;
}

static void end_recording(const recorded *r)
{
    weir_pipeline_free(r->pipeline);
    close_writer(r->writer);
}

static void assert_is_sound(const char *path)
{
    char command[512];
    snprintf(command, sizeof command, "'%s' check '%s' >/dev/null", getenv("WEIR_TOOL"), path);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own command */
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

typedef struct shared_work {
    uint64_t random;
    int64_t much_ns, little_ns;
} shared_work;

/* Three parts to one; of changing length, since the samples come at regular times. */
static int work(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    shared_work *done = *(shared_work *const *)weir_task_config(task);
    int64_t part_ns = 1 + (int64_t)weir__random_below(&done->random, 4 * WEIR_MILLISECOND);
    (void)worker;
    done->much_ns += work_much(3 * part_ns);
    done->little_ns += work_little(part_ns);
    weir_item_move(out, in);
    return WEIR_OK;
}

static test_gate wait_gate = GATE;

__attribute__((noinline)) static bool wait_for_the_others(void)
{
    gate_pass(&wait_gate);
    return true;
}

static int wait_first(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)task;
    if (item_value(in) == 0)
        wait_for_the_others();
    weir_item_move(out, in);
    return WEIR_OK;
}

static void assert_share(const char *path, const shared_work *done)
{
    int64_t much = samples_of(path, "--name work", "work_much");
    int64_t little = samples_of(path, "--name work", "work_little");
    double count = (double)(much + little), share = (double)done->much_ns / (double)(done->much_ns + done->little_ns);
    double bound = DEVIATIONS * sqrt(count * share * (1 - share));
    print_message("%g samples, %g of them in a share of %g, bound %g\n", count, (double)much, share, bound);
    assert_true(count > 0);
    assert_true(fabs((double)much - count * share) <= bound + 1);
    /* a sample for each period of CPU time */
    double periods = (double)(done->much_ns + done->little_ns) * 99 / 1e9;
    assert_true(fabs(count - periods) <= DEVIATIONS * sqrt(periods) + 1);
}

TEST_CASE(shares_of_functions_are_those_of_their_cpu_time)
{
    enum { NUM_ITEMS = 250 };
    static const weir_op work_op = { .name = "work", .run = work, .config_size = sizeof(shared_work *) };
    static const weir_op wait_op = { .name = "wait", .run = wait_first };
    const char *path = in_folder("shares.db");
    test_ledger ledger = LEDGER;
    shared_work done = { .random = 7 }, *shared = &done;
    gate_init(&wait_gate);
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = NUM_ITEMS });
    weir_builder_pipe(builder, &wait_op, NULL, 0, &(weir_stage_options){ .concurrency = 2 });
    weir_builder_pipe(builder, &work_op, &shared, sizeof shared, NULL);
    recorded r = start_recording(path, builder, 0, 0);
    for (int i = 0; i < NUM_ITEMS - 1; i++)
        next_value(r.pipeline);
    gate_open(&wait_gate);
    next_value(r.pipeline);
    end_recording(&r);
    ledger_close(&ledger);
    assert_share(path, &done);
    assert_true(samples_of(path, "", "wait_for_the_others") <= 1); /* it waits */
    assert_says(path, "--by function", "samples (not calls), one each 10.1 ms of CPU time");
    assert_says(path, "--by function --folded", ";work_much;");
    assert_says(path, "--by function --flame-graph", "<title>work_much: ");
    assert_is_sound(path);
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* More than a period of CPU time, so that each has samples after some. */
static volatile int64_t work_ns = 15 * WEIR_MILLISECOND; /* a constant would make another function of the same */
enum { NUM_TURNS = 10 };

/* Phases that are shorter than a lap. */
TEST_CASE(samples_have_the_mode_and_the_phase_in_which_they_were_taken)
{
    const char *path = in_folder("places.db");
    test_ledger ledger = LEDGER;
    recorded r = start_recording(path, builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 }), 0, 0);
    drain_all(r.pipeline);
    for (int i = 0; i < NUM_TURNS;
         i++) { /* in this order: a sample within a mark is never in "train" and in "score" */
        weir_pipeline_mark_phase(r.pipeline, "forward");
        weir_pipeline_mark_mode(r.pipeline, "train");
        work_in_training(work_ns);
        weir_pipeline_mark_mode(r.pipeline, "eval");
        weir_pipeline_mark_phase(r.pipeline, "score");
        work_in_evaluation(work_ns);
    }
    end_recording(&r);
    ledger_close(&ledger);
    int64_t training = samples_of(path, "", "work_in_training"),
            evaluation = samples_of(path, "", "work_in_evaluation");
    assert_true(training > 0 && evaluation > 0);
    assert_int_equal(samples_of(path, "--phase forward", "work_in_training"), training);
    assert_int_equal(samples_of(path, "--mode train", "work_in_training"), training);
    assert_int_equal(samples_of(path, "--mode eval", "work_in_evaluation"), evaluation);
    assert_int_equal(samples_of(path, "--mode eval --phase score", "work_in_training"), 0);
    assert_int_equal(samples_of(path, "--phase forward", "work_in_evaluation"), 0);
    assert_int_equal(samples_of(path, "--name test_functio*", "work_in_training"), training);
    free(query(3, path, "--by function --phase nowhere"));
    free(query(3, path, "--by function --mode train --phase score"));
    assert_is_sound(path);
}

TEST_CASE(samples_have_the_step_in_which_they_were_taken)
{
    const char *path = in_folder("steps.db");
    test_ledger ledger = LEDGER;
    recorded r = start_recording(path, builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 }), 0, 1);
    drain_all(r.pipeline);
    for (int step = 0; step < 2 * NUM_TURNS; step++) {
        weir_pipeline_mark_step(r.pipeline, step);
        if (step % 2)
            work_in_odd_steps(work_ns);
        else
            work_in_even_steps(work_ns);
    }
    end_recording(&r);
    ledger_close(&ledger);
    int64_t even = 0, odd = 0;
    for (int step = 0; step < 2 * NUM_TURNS; step++) {
        char here[64];
        snprintf(here, sizeof here, "--steps %d --name 'test_*'", step);
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM stack_stats WHERE name LIKE 'test_%%' AND first_step = %d",
                 step);
        if (query_int(path, sql) == 0)
            continue; /* a step may be without samples: then there is nothing to print */
        int64_t even_here = samples_of(path, here, "work_in_even_steps");
        int64_t odd_here = samples_of(path, here, "work_in_odd_steps");
        assert_int_equal(step % 2 ? even_here : odd_here, 0);
        even += even_here;
        odd += odd_here;
    }
    assert_true(even > 0 && odd > 0);
    assert_int_equal(even, samples_of(path, "", "work_in_even_steps"));
    assert_int_equal(odd, samples_of(path, "", "work_in_odd_steps"));
    assert_int_equal(samples_of(path, "--between-steps 0:19 --name 'test_*'", "work_in_odd_steps"), odd);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static void record_rank(const char *path, int32_t rank)
{
    test_ledger ledger = LEDGER;
    recorded r = start_recording(path, builder_with(&(test_numbers){ .ledger = &ledger, .count = 1 }), rank, 0);
    drain_all(r.pipeline);
    weir_pipeline_mark_phase(r.pipeline, "save"); /* else the run ends with its items */
    for (int i = 0; i < NUM_TURNS; i++)
        (rank ? work_in_odd_steps : work_in_even_steps)(work_ns);
    end_recording(&r);
    ledger_close(&ledger);
}

TEST_CASE(ranks_are_merged_with_their_samples)
{
    char path[200], ranks[2][200];
    snprintf(path, sizeof path, "%s", in_folder("job.db"));
    for (int32_t rank = 0; rank < 2; rank++) {
        weir_merged merged;
        weir_error error = { 0 };
        const char *one = ranks[rank];
        snprintf(ranks[rank], sizeof ranks[rank], "%s", in_folder(rank ? "rank1.db" : "rank0.db"));
        record_rank(one, rank);
        if (weir_database_merge(path, one, &merged, &error) != WEIR_OK)
            fail_msg("%s", error.message);
    }
    int64_t first = samples_of(ranks[0], "", "work_in_even_steps");
    int64_t second = samples_of(ranks[1], "", "work_in_odd_steps");
    assert_true(first > 0 && second > 0);
    assert_int_equal(samples_of(path, "--run all", "work_in_even_steps"), first);
    assert_int_equal(samples_of(path, "--run all", "work_in_odd_steps"), second);
    assert_int_equal(samples_of(path, "--run all --rank 1", "work_in_odd_steps"), second);
    assert_int_equal(samples_of(path, "--run all --rank 1", "work_in_even_steps"), 0);
    assert_is_sound(path);
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

enum { NUM_STACKS = 1000 };

static void add_to_lap(weir_stack_tree *tree, uint64_t lap_id)
{
    char function[32];
    for (int i = 0; i < NUM_STACKS; i++) {
        snprintf(function, sizeof function, "function;%d", i);
        weir_stack_count count = { .lap_id = lap_id,
                                   .name = weir__stack_text(tree, "stage"),
                                   .stack = weir__stack_call(tree, 0, weir__stack_text(tree, function)),
                                   .num_samples = 2,
                                   .last_ns = (int64_t)lap_id };
        weir__stack_add(tree, &count);
    }
}

/* Laps that nobody takes, until there is no room: the first one makes it. */
TEST_CASE(samples_that_make_room_are_counted_as_lost)
{
    weir_stack_tree tree = { 0 };
    weir_stack_count *taken;
    uint64_t num_laps = 0, num_taken = 0;
    while (tree.num_lost == 0) {
        assert_true(num_laps < 1000); /* of 40 kB and more */
        add_to_lap(&tree, ++num_laps);
    }
    assert_true(tree.size_bytes <= WEIR_STACK_TREE_BYTES);
    assert_true(num_laps > 2);
    assert_int_equal(tree.num_lost, 2 * NUM_STACKS);
    for (uint64_t lap_id = 1; lap_id <= num_laps; lap_id++) {
        size_t count = weir__stack_take(&tree, &lap_id, 1, &taken);
        assert_int_equal(count, lap_id == 1 ? 0 : NUM_STACKS);
        for (size_t i = 0; i < count; i++)
            num_taken += taken[i].num_samples;
        free(taken);
    }
    assert_int_equal(2 * NUM_STACKS * num_laps, num_taken + tree.num_lost);
    assert_string_equal(weir__stack_text_of(&tree, weir__stack_text(&tree, "function;3")), "function?3");
    weir__stack_tree_clear(&tree);
}

/* Functions stay, so in the end there is no room for another. */
TEST_CASE(samples_of_functions_without_room_are_counted_as_lost)
{
    weir_stack_tree tree = { 0 };
    char function[32];
    uint64_t num_added = 0;
    for (; tree.num_lost == 0; num_added++) {
        snprintf(function, sizeof function, "function %llu", (unsigned long long)num_added);
        weir_stack_count count = { .lap_id = 1,
                                   .name = weir__stack_text(&tree, "stage"),
                                   .stack = weir__stack_call(&tree, 0, weir__stack_text(&tree, function)),
                                   .num_samples = 1 };
        weir__stack_add(&tree, &count);
    }
    assert_true(tree.size_bytes <= WEIR_STACK_TREE_BYTES);
    assert_int_equal(num_added, tree.num_counts + tree.num_lost);
    weir__stack_tree_clear(&tree);
}

TEST_CASE(equal_stacks_of_a_lap_are_one_count)
{
    weir_stack_tree tree = { 0 };
    weir_stack_count *taken;
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t outer = weir__stack_call(&tree, 0, weir__stack_text(&tree, "main"));
        weir_stack_count count = { .lap_id = i % 10 + 1,
                                   .name = weir__stack_text(&tree, "stage"),
                                   .stack = weir__stack_call(&tree, outer, weir__stack_text(&tree, "work")),
                                   .num_samples = 1 };
        weir__stack_add(&tree, &count);
    }
    assert_int_equal(tree.num_calls, 2);
    assert_int_equal(tree.num_texts, 3);
    assert_int_equal(weir__stack_take(&tree, (const uint64_t[]){ 3, 7, 99 }, 3, &taken), 2);
    assert_int_equal(taken[0].num_samples + taken[1].num_samples, 200);
    assert_int_equal(tree.num_counts, 8);
    free(taken);
    weir__stack_tree_clear(&tree);
}

/* ---- databases of others ---------------------------------------------------------------------------------------- */

/* A run with these rows of functions and samples. */
static void make_known(const char *path, const char *calls, const char *samples)
{
    char sql[2000];
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_start(weir_sqlite_observer(writer));
    observe_end(weir_sqlite_observer(writer), WEIR_OK);
    close_writer(writer);
    snprintf(sql, sizeof sql,
             "INSERT INTO stack (run_id, stack, caller, function) VALUES %s;"
             "INSERT INTO stack_stats (timestamp, run_id, elapsed, name, stack, num_samples, cpu_time) VALUES %s",
             calls, samples);
    execute(path, sql);
}

TEST_CASE(functions_are_a_table_folded_or_a_flame_graph)
{
    const char *path = in_folder("known.db");
    make_known(path, "(1,1,0,'main'), (1,2,1,'take'), (1,3,2,'copy'), (1,4,2,'take'), (1,5,0,'run<int>')",
               "(2,1,1,'main',3,3,0.03), (4,1,1,'main',4,2,0.02), (4,1,1,'0:1:decode[10]',5,5,0.05),"
               " (4,1,1,'',0,7,0.07)");
    assert_says(path, "--by function --csv", "take,2,0.2,5,0.5");
    assert_says(path, "--by function --csv", "main,0,0,5,0.5");
    assert_says(path, "--by function", "10 samples (not calls), one each 10.0 ms of CPU time: 0.1 s");
    assert_says(path, "--by function", "7 more samples were lost");
    assert_says(path, "--by function --folded",
                "0:1:decode[10];run<int> 5\nmain;main;take;copy 3\nmain;main;take;take 2\n");
    assert_says(path, "--by function --flame-graph", "<title>run&lt;int&gt;: 5 samples, 50.0 %</title>");
    assert_int_equal(samples_of(path, "--name decode", "run<int>"), 5);
    assert_int_equal(samples_of(path, "--name decode", "main"), 0);
    assert_int_equal(samples_of(path, "--until 2.5", "copy"), 3);
    assert_int_equal(samples_of(path, "--until 2.5", "run<int>"), 0);
    assert_says(path, "--by function --csv --top 1",
                "function,self_samples,self_share,total_samples,total_share\r\n"
                "run<int>,5,0.5,5,0.5\r\n");
}

/* Callers that are not there, or not before what they call; numbers that make no sense; a call that goes on for ever. */
TEST_CASE(functions_that_make_no_sense_are_passed_over)
{
    const char *path = in_folder("odd.db");
    make_known(path, "(1,1,9,'lost'), (1,2,2,'itself'), (1,3,4,'a'), (1,4,3,'b'), (1,-5,-6,'negative')",
               "(2,1,1,'main',1,1,0), (2,1,1,'main',2,2,'x'), (2,1,1,'main',4,3,0), (2,1,1,'main',77,4,0),"
               " (2,1,1,'main',1,-8,0), (2,1,1,'',-5,9223372036854775807,1e300)");
    execute(
        path,
        "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
        " INSERT INTO stack SELECT 1, i, i - 1, 'f' FROM n;"
        " INSERT INTO stack_stats (timestamp, run_id, elapsed, name, stack, num_samples) VALUES (2,1,1,'x',20000,5)");
    assert_int_equal(samples_of(path, "--name main", "itself"), 2);
    assert_int_equal(samples_of(path, "--name main", "b"), 3);
    assert_int_equal(samples_of(path, "--name x", "f"), 5);
    assert_says(path, "--by function --csv --name main", "lost,1,");
    char *text = query(0, path, "--by function --flame-graph");
    free(text);
}

TEST_CASE(a_database_of_before_has_no_samples_and_gets_them)
{
    const char *path = in_folder("before.db");
    make_known(path, "(1,1,0,'main')", "(2,1,1,'main',1,1,0)");
    execute(path, "DROP TABLE stack; DROP TABLE stack_stats");
    char *text = query(3, path, "--by function");
    assert_non_null(strstr(text, "WEIR_STACKS=1"));
    free(text);
    assert_is_sound(path);
    weir_sqlite_writer *writer = open_writer(path, NULL);
    observe_start(weir_sqlite_observer(writer));
    observe_end(weir_sqlite_observer(writer), WEIR_OK);
    close_writer(writer);
    assert_int_equal(query_int(path, "SELECT count(*) FROM stack_stats"), 0);
}

/* ---- refusals, the environment, and an end by force -------------------------------------------------------------- */

static void ignore_signal(int signal_number)
{
    (void)signal_number;
}

TEST_CASE(a_program_that_uses_the_signal_is_left_alone)
{
    weir_sqlite_writer *writer;
    weir_error error = { 0 };
    signal(SIGPROF, ignore_signal);
    assert_int_equal(weir_sqlite_open(in_folder("a.db"), &(weir_sqlite_options){ .stacks = true }, &writer, &error),
                     WEIR_EBUSY);
    assert_non_null(strstr(error.message, "SIGPROF"));
    assert_int_equal(query_int(in_folder("a.db"), "SELECT count(*) FROM run"), 0);
    setenv("WEIR_STACKS", "1", 1);
    writer = open_writer(in_folder("a.db"), NULL); /* only a warning */
    unsetenv("WEIR_STACKS");
    close_writer(writer);
    signal(SIGPROF, SIG_DFL);
}

/* Until it is killed. */
_Noreturn static void record_for_ever(const char *path)
{
    weir_sqlite_writer *writer = NULL;
    weir_pipeline *pipeline = NULL;
    weir_builder *builder = weir_builder_new();
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 1 };
    const weir_sqlite_options options = { .flush_interval_ns = 20 * WEIR_MILLISECOND };
    setenv("WEIR_STACKS", "1", 1);
    REQUIRE(weir_sqlite_open(path, &options, &writer, NULL) == WEIR_OK);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_builder_source(builder, &numbers_op, &numbers, 0, NULL);
    weir_builder_sink(builder, NULL);
    REQUIRE(weir_builder_build(builder,
                               &(weir_pipeline_options){ .observers = &observer,
                                                         .num_observers = 1,
                                                         .stats_interval_ns = 50 * WEIR_MILLISECOND },
                               &pipeline, NULL) == WEIR_OK);
    for (;;)
        work_much(WEIR_SECOND);
}

/* The number of samples of the function so far. */
static int64_t count_samples(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    int64_t count = 0;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "SELECT total(num_samples) FROM stack_stats WHERE stack <> 0", -1, &row, NULL) ==
            SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        count = sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return count;
}

TEST_CASE(what_was_sampled_before_a_kill_is_there)
{
    enum { FEW = 20 };
    const char *path = in_folder("killed.db");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        record_for_ever(path);
    while (count_samples(path) < FEW && waitpid(child, NULL, WNOHANG) == 0)
        sched_yield();
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(samples_of(path, "", "work_much") >= FEW / 2);
    assert_is_sound(path);
}

static int setup(void **state)
{
    return make_folder(state) == 0 ? test_setup(state) : -1;
}

static int teardown(void **state)
{
    int status = test_teardown(state);
    return remove_folder(state) == 0 ? status : -1;
}

TEST_MAIN(setup, teardown, NULL, NULL)
