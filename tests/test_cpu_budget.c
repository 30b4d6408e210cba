/* The CPU budget, computed from made-up files of control groups. */
#include "tests/support.h"

#include <errno.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/measure/cpu_budget.h"

enum { MAX_FILES = 6, CPUS = 16 };

typedef struct group_file {
    const char *path; /* below the made-up root */
    const char *text;
} group_file;

static char folder[] = "/tmp/weir-cpu-budget-XXXXXX";

static void write_file(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    for (char *slash = full + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void remove_files(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static uint32_t budget_of(const char *groups, const group_file *files)
{
    strcpy(strrchr(folder, '-'), "-XXXXXX");
    assert_non_null(mkdtemp(folder));
    write_file("groups", groups);
    for (int i = 0; i < MAX_FILES && files[i].path; i++)
        write_file(files[i].path, files[i].text);
    char groups_file[128];
    snprintf(groups_file, sizeof groups_file, "%s/groups", folder);
    uint32_t budget = weir__cpu_budget_of_groups(CPUS, groups_file, folder);
    remove_files();
    return budget;
}

TEST_CASE(the_quota_of_groups_limits_the_budget)
{
    static const struct {
        const char *what;
        uint32_t budget;
        const char *groups;
        group_file files[MAX_FILES];
    } cases[] = {
        { "no file of a quota", CPUS, "0::/a\n", { { 0 } } },
        { "no quota", CPUS, "0::/a\n", { { "a/cpu.max", "max 100000\n" } } },
        { "a quota of whole CPUs", 4, "0::/a\n", { { "a/cpu.max", "400000 100000\n" } } },
        { "a quota is rounded down", 2, "0::/a\n", { { "a/cpu.max", "299999 100000\n" } } },
        { "at least one CPU", 1, "0::/a\n", { { "a/cpu.max", "1000 100000\n" } } },
        { "more quota than CPUs", CPUS, "0::/a\n", { { "a/cpu.max", "9000000 100000\n" } } },
        { "the root's own", 3, "0::/\n", { { "cpu.max", "300000 100000\n" } } },
        { "the group above is tighter",
          2,
          "0::/a/b/c\n",
          { { "a/b/c/cpu.max", "800000 100000\n" }, { "a/cpu.max", "200000 100000\n" } } },
        { "the group above is looser",
          5,
          "0::/a/b\n",
          { { "a/b/cpu.max", "500000 100000\n" }, { "a/cpu.max", "900000 100000\n" } } },
        { "a group beside does not count", CPUS, "0::/a/b\n", { { "a/c/cpu.max", "100000 100000\n" } } },
        { "a name that starts alike does not count", CPUS, "0::/ab\n", { { "a/cpu.max", "100000 100000\n" } } },
        { "damaged text", CPUS, "0::/a\n", { { "a/cpu.max", "what is this" } } },
        { "an empty file", CPUS, "0::/a\n", { { "a/cpu.max", "" } } },
        { "a period of nothing", CPUS, "0::/a\n", { { "a/cpu.max", "100000 0\n" } } },
        { "a negative quota", CPUS, "0::/a\n", { { "a/cpu.max", "-5 100000\n" } } },
        { "version 1",
          3,
          "4:memory:/x\n3:cpu,cpuacct:/a\n",
          { { "cpu,cpuacct/a/cpu.cfs_quota_us", "350000\n" }, { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } } },
        { "version 1 without a quota",
          CPUS,
          "3:cpu,cpuacct:/a\n",
          { { "cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n" }, { "cpu,cpuacct/a/cpu.cfs_period_us", "100000\n" } } },
        { "version 1 inside a container",
          2,
          "3:cpu:/docker/0123\n",
          { { "cpu/cpu.cfs_quota_us", "200000\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } } },
        { "version 1 without its period", CPUS, "3:cpu:/a\n", { { "cpu/a/cpu.cfs_quota_us", "200000\n" } } },
        { "a controller whose name starts alike",
          CPUS,
          "3:cpuset:/a\n",
          { { "cpuset/a/cpu.cfs_quota_us", "100000\n" }, { "cpuset/a/cpu.cfs_period_us", "100000\n" } } },
        { "both versions: the tighter one",
          2,
          "3:cpu:/a\n0::/a\n",
          { { "cpu/a/cpu.cfs_quota_us", "800000\n" },
            { "cpu/a/cpu.cfs_period_us", "100000\n" },
            { "a/cpu.max", "200000 100000\n" } } },
        { "lines that are none", 7, "\nnothing\n::\n:\n0::/a\n", { { "a/cpu.max", "700000 100000\n" } } },
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        uint32_t budget = budget_of(cases[i].groups, cases[i].files);
        if (budget != cases[i].budget)
            fail_msg("%s: %u instead of %u", cases[i].what, budget, cases[i].budget);
    }
}

TEST_CASE(without_groups_the_budget_is_the_cpus)
{
    assert_int_equal(weir__cpu_budget_of_groups(CPUS, "/nonexistent/groups", "/nonexistent"), CPUS);
}

TEST_CASE(the_budget_of_this_process_obeys_its_affinity_mask)
{
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    uint32_t budget = weir_cpu_budget();
    assert_in_range(budget, 1, CPU_COUNT(&before));

    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    uint32_t alone = weir_cpu_budget();
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(alone, 1);
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
