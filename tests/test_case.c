#include "tests/test_case.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_TESTS = 128 };

static struct CMUnitTest tests[MAX_TESTS];
static size_t num_tests;

void test_case_add(const char *name, CMUnitTestFunction test)
{
    if (num_tests == MAX_TESTS) {
        fprintf(stderr, "%s: more than %d tests\n", name, (int)MAX_TESTS);
        abort();
    }
    tests[num_tests++] =
        (struct CMUnitTest){ .name = name, .test_func = test, .initial_state = (void *)(uintptr_t)name };
}

bool test_set_comma_locale(void)
{
    char folder[] = "/tmp/weir-locale-XXXXXX", command[128];
    if (setlocale(LC_ALL, "de_DE.UTF-8") || setlocale(LC_ALL, "fr_FR.UTF-8"))
        return true;
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8", folder);
    bool is_made = system(command) == 0; /* NOLINT: the test's own path */
    setenv("LOCPATH", folder, 1);
    is_made = is_made && setlocale(LC_ALL, "de_DE.UTF-8");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && is_made; /* NOLINT: the same */
}

bool test_try_was_right(int number, bool is_right, const char *said)
{
    print_message("try %d of %d: %s: %s\n", number, (int)TEST_TRIES, is_right ? "right" : "not right", said);
    if (!is_right && number >= TEST_TRIES)
        fail_msg("%d tries, none of them right", number);
    return is_right;
}

int test_cases_run(CMFixtureFunction setup, CMFixtureFunction teardown, CMFixtureFunction group_setup,
                   CMFixtureFunction group_teardown)
{
    for (size_t i = 0; i < num_tests; i++) {
        tests[i].setup_func = setup;
        tests[i].teardown_func = teardown;
    }
    cmocka_set_test_filter(getenv("WEIR_TEST"));
    cmocka_set_skip_filter(getenv("WEIR_SKIP_TEST"));
    return _cmocka_run_group_tests("tests", tests, num_tests, group_setup, group_teardown);
}
