/*
 * What every test program includes first of cmocka: its headers in the order that it wants, and the head of a test.
 */
#ifndef TESTS_TEST_CASE_H
#define TESTS_TEST_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The head of a test's function; its body follows. A test that wants cmocka's state writes the head in full. */
#define TEST_CASE(name) static void name(__attribute__((unused)) void **state)

#endif
