/*
 * Runs a program from a test: its output goes to files in the folder of the test, and it must end within a time
 * limit. Errors of this code fail the test immediately.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct program {
    pid_t pid;
    int status; /* after program_wait(): exit status, or minus the signal that killed it */
    char *out;  /* its output on stdout */
    char *err;  /* its output on stderr; both NUL-terminated, freed by program_free() */
};

/*
 * Starts argv[0]; argv ends with NULL. stderr_fd: where its stderr goes (-1 = a file, like stdout). stdin is empty.
 * One program at a time for each folder.
 */
void program_start(struct program *program, const char *folder, char *const argv[], int stderr_fd);

/* Whether it has ended by itself, for loops that wait for something that it does. */
bool program_has_ended(const struct program *program);

/* Waits for its end and reads its output. */
void program_wait(struct program *program, const char *folder);

/* Kills a program that was started and not waited for, for example after a failed test. For teardowns. */
void program_end_left(void);

/* Starts it and waits for its end. */
void program_run(struct program *program, const char *folder, char *const argv[]);

void program_free(struct program *program);

/* Whether the process has an incomplete file open in the folder: one without a name, or with a hidden one. */
bool program_has_part_in(pid_t pid, const char *folder);

/* For loops that wait for what a program writes. A wait ends as soon as a file in the folder is made, renamed or
   written to. That counts from the beginning of the watch, or the end of the last wait. It ends after a second, too,
   as the program may end instead. close() ends the watch. */
int folder_watch_begin(const char *folder);
void folder_watch_wait(int watch);

/* Makes a new folder below TMPDIR or /tmp; remove_folder() removes it with all its contents and frees the path. */
char *make_folder(void);
void remove_folder(char *folder);

/* "folder/name"; the caller frees it. */
char *path_in(const char *folder, const char *name);

/* Reads the whole file, NUL-terminated; the caller frees it. */
char *read_file(const char *path);

/* Writes a file. */
void write_file(const char *path, const char *text);

/* The environment variable that weir_test(… PROGRAMS …) sets. */
const char *program_path(const char *variable);

#endif
