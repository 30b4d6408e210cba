/* The program weir within a fuzz target: its sources, with main() renamed. */
#ifndef TESTS_FUZZ_RUN_WEIR_H
#define TESTS_FUZZ_RUN_WEIR_H

/* Once: goes to a new folder in $WEIR_FUZZ_DIR, or in /tmp. */
void run_weir_init(void);

/* Removes what is in that folder. */
void run_weir_clean(void);

/* Runs a command line; its words are separated by `separator`. What it prints is for run's -close_fd_mask. Every run finds
   the variables of the program as they were at its start. */
void run_weir(const char *command_line, char separator);

#endif
