#include "tests/named_tests.h"

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

char *named_tests_read(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    static char text[1 << 18];
    size_t size = fread(text, 1, sizeof text - 1, file);
    assert_true(size < sizeof text - 1);
    fclose(file);
    text[size] = '\0';
    return strdup(text);
}

static bool is_registered(const char *path, const char *test)
{
    char *source = named_tests_read(path);
    char entry[160];
    bool found = false;
    static const char *const heads[] = { "\nTEST_CASE(%s)\n", "cmocka_unit_test(%s)" };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        snprintf(entry, sizeof entry, heads[i], test);
        found = found || strstr(source, entry);
    }
    free(source);
    return found;
}

int named_tests_check(const char *document, const char *line)
{
    regex_t test;
    regmatch_t found[3];
    int num_tests = 0;
    assert_int_equal(regcomp(&test, "(tests/test_[a-z_]+\\.cp*): ([a-z0-9_]+)", REG_EXTENDED), 0);
    for (; regexec(&test, line, sizeof found / sizeof found[0], found, 0) == 0; line += found[0].rm_eo) {
        char path[128], name[128];
        snprintf(path, sizeof path, "%.*s", (int)(found[1].rm_eo - found[1].rm_so), line + found[1].rm_so);
        snprintf(name, sizeof name, "%.*s", (int)(found[2].rm_eo - found[2].rm_so), line + found[2].rm_so);
        if (!is_registered(path, name))
            fail_msg("%s: %s has no test %s", document, path, name);
        num_tests++;
    }
    regfree(&test);
    return num_tests;
}
