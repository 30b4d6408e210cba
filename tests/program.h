/*
 * Running a program from a test: its output goes to files in the test's folder, its end is waited for with a time limit.
 * What goes wrong with the means themselves fails the test at once.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct program {
    pid_t pid;
    int status; /* after program_wait(): exit status, or minus the signal that killed it */
    char *out;  /* what it wrote to stdout and */
    char *err;  /* stderr; NUL-terminated, freed by program_free() */
};

/*
 * Starts argv[0]; argv ends with NULL. stderr_fd: where its stderr goes (-1 = a file, as stdout). stdin is empty.
 * One program at a time for each folder.
 */
void program_start(struct program *program, const char *folder, char *const argv[], int stderr_fd);

/* Waits for its end and reads its output. One that takes longer than limit_s is killed, and the test fails. */
void program_wait(struct program *program, const char *folder, int limit_s);

/* Kills a program that was started and not waited for, as a test that failed leaves one. For teardowns. */
void program_end_left(void);

/* Starts it and waits for its end. */
void program_run(struct program *program, const char *folder, char *const argv[]);

void program_free(struct program *program);

/* A new folder below TMPDIR or /tmp; freed by remove_folder(), with all that is in it. */
char *make_folder(void);
void remove_folder(char *folder);

/* "folder/name", to be freed. */
char *path_in(const char *folder, const char *name);

/* The whole file, NUL-terminated, to be freed. */
char *read_file(const char *path);

/* Writes a file. */
void write_file(const char *path, const char *text);

/* The environment variable that weir_test(… PROGRAMS …) sets. */
const char *program_path(const char *variable);

#endif
