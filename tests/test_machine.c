/* What laps say about the process and the machine. */
#include "tests/support.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/measure/cpu_budget.h"

/* ---- laps ------------------------------------------------------------------------------------------------------ */

typedef struct reported {
    weir_process_metrics process;
    weir_machine_metrics machine;
    int64_t elapsed_ns;
    uint32_t num_cpus;
    int num_process, num_machine, num_laps;
} reported;

static void add_process(reported *all, const weir_subject_lap *lap)
{
    REQUIRE(strcmp(lap->name, "0:process") == 0 && all->num_process == all->num_laps);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_PROCESS), &all->process, &lap->metrics.process);
    all->num_cpus = (uint32_t)lap->capacity;
    all->num_process++;
}

static void add_machine(reported *all, const weir_subject_lap *lap)
{
    REQUIRE(strcmp(lap->name, "0:machine") == 0 && all->num_machine == all->num_laps);
    weir_metrics_add(weir_subject_metrics(WEIR_SUBJECT_MACHINE), &all->machine, &lap->metrics.machine);
    all->num_machine++;
}

static void on_lap(void *self, const weir_subject_lap *lap)
{
    if (lap->subject == WEIR_SUBJECT_PROCESS)
        add_process(self, lap);
    else if (lap->subject == WEIR_SUBJECT_MACHINE)
        add_machine(self, lap);
}

static void on_lap_end(void *self, const weir_lap *lap)
{
    reported *all = self;
    all->elapsed_ns += lap->elapsed_ns;
    all->num_laps++;
}

/* Fills memory: CPU time, page faults and resident memory. */
static int fill_memory(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    enum { SIZE = 32 << 20 };
    (void)worker;
    (void)task;
    volatile char *memory = malloc(SIZE);
    REQUIRE(memory != NULL);
    for (size_t i = 0; i < SIZE; i += 64)
        memory[i] = 1;
    free((void *)(uintptr_t)memory);
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(every_lap_tells_what_the_process_and_the_machine_did)
{
    static const weir_op fill = { .name = "fill", .run = fill_memory };
    test_ledger ledger = LEDGER;
    reported all = { .num_laps = 0 };
    weir_observer observer = { .self = &all, .lap = on_lap, .lap_end = on_lap_end };
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 8 });
    weir_builder_pipe(builder, &fill, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline =
        build(builder, &(weir_pipeline_options){
                           .stats_interval_ns = WEIR_MILLISECOND, .observers = &observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 8);
    weir_pipeline_free(pipeline);
    assert_true(all.num_laps >= 1);
    assert_int_equal(all.num_process, all.num_laps);
    assert_int_equal(all.num_machine, all.num_laps);
    assert_true(all.process.cpu_ns > 0); /* touching 256 MB takes longer than a tick of any clock */
    assert_true(all.process.num_minor_faults > 0);
    assert_int_equal(all.num_cpus, weir_cpu_budget());
    assert_int_equal(all.process.budget_ns, all.num_cpus * all.elapsed_ns);
    if (access("/proc/self/status", R_OK) == 0) {
        assert_true(all.process.peak_bytes >= 32 << 20);
        assert_true(all.process.resident_bytes > 0 && all.process.resident_bytes <= all.process.peak_bytes);
        assert_true(all.process.num_open_threads >= 1);
    }
    if (access("/proc/pressure/cpu", R_OK) == 0)
        assert_true(all.machine.cpu_pressure_ns >= 0);
    ledger_close(&ledger);
}

static weir_process_metrics run_and_tell(void)
{
    test_ledger ledger = LEDGER;
    reported all = { .num_laps = 0 };
    weir_observer observer = { .self = &all, .lap = on_lap, .lap_end = on_lap_end };
    weir_builder *builder = builder_with(&(test_numbers){ .ledger = &ledger, .count = 8 });
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    assert_int_equal(drain_all(pipeline), 8);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return all.process;
}

/* The child shares its memory with this process. */
TEST_CASE(memory_of_child_processes_is_in_the_laps_while_they_work)
{
    enum { SIZE = 64 << 20 };
    int gate[2];
    char byte;
    char *shared = malloc(SIZE);
    assert_non_null(shared);
    memset(shared, 1, SIZE);
    assert_int_equal(pipe(gate), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(gate[1]);
        _exit((int)read(gate[0], &byte, 1));
    }
    assert_int_equal(weir_child_process_begin(pid), WEIR_OK);
    weir_process_metrics found = run_and_tell();
    weir_child_process_end(pid);
    close(gate[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(gate[0]);
    if (access("/proc/self/statm", R_OK) == 0) {
        assert_true(found.child_resident_bytes >= SIZE);
        assert_true(found.child_pss_bytes < 0 || found.child_pss_bytes <= found.child_resident_bytes - SIZE / 4);
    }
    if (access("/proc/self/smaps_rollup", R_OK) == 0)
        assert_true(found.child_pss_bytes >= SIZE / 4);
    free(shared);
    assert_int_equal(run_and_tell().child_resident_bytes, 0);
}

/* ---- the group whose quota counts ------------------------------------------------------------------------------ */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST_CASE(throttling_is_counted_by_the_group_with_the_lowest_quota)
{
    char folder[] = "/tmp/weir-machine-XXXXXX", command[300], groups[300], path[4096], wanted[300];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "mkdir -p %s/a/b %s/cpu", folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(groups, sizeof groups, "%s/groups", folder);
    write_file(folder, "groups", "0::/a/b\n");
    weir__cpu_stat_path(path, sizeof path, groups, folder);
    assert_string_equal(path, ""); /* no group has a quota file */

    write_file(folder, "a/b/cpu.max", "max 100000\n");
    weir__cpu_stat_path(path, sizeof path, groups, folder);
    snprintf(wanted, sizeof wanted, "%s/a/b/cpu.stat", folder);
    assert_string_equal(path, wanted); /* its own, if none has a quota */

    write_file(folder, "a/cpu.max", "150000 100000\n");
    weir__cpu_stat_path(path, sizeof path, groups, folder);
    snprintf(wanted, sizeof wanted, "%s/a/cpu.stat", folder);
    assert_string_equal(path, wanted);

    write_file(folder, "groups", "3:cpu:/docker/0123\n"); /* version 1, inside a container */
    write_file(folder, "cpu/cpu.cfs_quota_us", "200000\n");
    write_file(folder, "cpu/cpu.cfs_period_us", "100000\n");
    weir__cpu_stat_path(path, sizeof path, groups, folder);
    snprintf(wanted, sizeof wanted, "%s/cpu/cpu.stat", folder);
    assert_string_equal(path, wanted);
    weir__cpu_stat_path(path, 8, groups, folder);
    assert_string_equal(path, ""); /* it would be truncated */
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
