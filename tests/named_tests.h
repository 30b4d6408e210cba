/* Documents that name the tests which show what they say: "tests/test_stop.c: stop_at_once". */
#ifndef TESTS_NAMED_TESTS_H
#define TESTS_NAMED_TESTS_H

/* A file of the project, NUL-terminated, to be freed. The working folder is the project's. */
char *named_tests_read(const char *path);

/* Fails the test for one that a line of the document names and that is not registered; returns how many it names. */
int named_tests_check(const char *document, const char *line);

#endif
