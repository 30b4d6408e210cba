/*
 * What every test program includes first of cmocka: its headers in the order that it wants, the head of a test, and the
 * main() of a program. A test registers itself: it is written once.
 */
#ifndef WEIR_TESTS_TEST_CASE_H
#define WEIR_TESTS_TEST_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The head of a test's function; its body follows. */
#define TEST_CASE(name) \
    static void name(void **state); \
    __attribute__((constructor)) static void add_##name(void) \
    { \
        test_case_add(#name, name); \
    } \
    static void name(__attribute__((unused)) void **state)

/* How the tests of other subjects decode in child processes: in the sandbox, unless weir was built without it. */
#ifdef WEIR_HAVE_SECCOMP
#define ISOLATE    "--isolate"
#define NO_SANDBOX false
#else
#define ISOLATE    "--isolate --no-sandbox"
#define NO_SANDBOX true
#endif

void test_case_add(const char *name, CMUnitTestFunction test);

/* Runs the tests in the order of the source; the result is that of main(). setup and teardown (NULL = none) run around
   each test, with its name in *state, the others around all. WEIR_TEST and WEIR_SKIP_TEST, patterns with * and ?, select
   tests. */
int test_cases_run(CMFixtureFunction setup, CMFixtureFunction teardown, CMFixtureFunction group_setup,
                   CMFixtureFunction group_teardown);

/* Sets a locale with a decimal comma, which it makes for this process if none is installed. False = there is none, and it
   cannot be made without localedef and its sources (Debian: locales). */
bool test_set_comma_locale(void);

/*
 * What is measured on a machine that others use may be something else: such a test may try again, so often in all. It
 * prints each try, so that a verdict that is right by luck is seen.
 */
enum { TEST_TRIES = 3 };

/* After each try, numbered from 1. Returns true if it was right; false = try again. After the last one that was not right it
   fails the test. said: what was found. */
bool test_try_was_right(int number, bool is_right, const char *said);

#define TEST_MAIN(...) \
    int main(void) \
    { \
        return test_cases_run(__VA_ARGS__); \
    }

#endif
