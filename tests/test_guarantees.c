/* docs/guarantees.md: every promise names the tests that attack it, and they are there. */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/named_tests.h"
#include "tests/test_case.h"

static const char document[] = "docs/guarantees.md";

/* Looks for each "torture: part" of a line; returns how many there are. ctest has to run them. */
static int check_parts(const char *line, const char *build, const char *script)
{
    int num_parts = 0;
    for (const char *at = line; (at = strstr(at, "torture: ")); num_parts++) {
        char part[32], test[48], function[48];
        at += strlen("torture: ");
        snprintf(part, sizeof part, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyz"), at);
        snprintf(function, sizeof function, "part_%s()", part);
        snprintf(test, sizeof test, "NAME torture_%s\n", part);
        bool is_part = strstr(script, function);
        bool is_test = strstr(build, test);
        for (const char *list = strstr(build, "foreach(part IN ITEMS"); list && is_part && !is_test; list = NULL) {
            char *words = strndup(list, strcspn(list, ")")), *rest = words, *word;
            while ((word = strsep(&rest, " ")))
                is_test |= strcmp(word, part) == 0;
            free(words);
        }
        if (!is_test)
            fail_msg("%s: ctest does not run torture_%s", document, part);
    }
    return num_parts;
}

/* Rows of promises have four columns, the third of which names a test or says why there is none. */
TEST_CASE(every_promise_names_tests_that_are_there)
{
    char *text = named_tests_read(document), *build = named_tests_read("tests/CMakeLists.txt");
    char *script = named_tests_read("tests/torture/run");
    bool promises = false;
    int num_promises = 0, num_tests = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        int named = named_tests_check(document, line) + check_parts(line, build, script);
        num_tests += named;
        if (strncmp(line, "| promise |", 11) == 0)
            promises = true;
        else if (line[0] != '|')
            promises = false;
        else if (promises && strncmp(line, "| ---", 5) != 0) {
            num_promises++;
            if (named == 0 && !strstr(line, "| no test: "))
                fail_msg("%s: no test in: %s", document, line);
        }
    }
    assert_true(num_promises >= 30);
    assert_true(num_tests >= 60);
    free(script);
    free(build);
    free(text);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
