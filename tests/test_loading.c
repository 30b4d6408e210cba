/* Where the programs search libraries: not in folders that other users can write to. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/program.h"
#include "tests/test_case.h"

/* A file that is not a library ends a program that finds it before the right one. */
TEST_CASE(nothing_is_loaded_from_the_current_directory)
{
    static const char *const names[] = { "libuv.so.1", "libc.so.6", "libweir-engine.so.0.1", "libweir-stats.so.0.1" };
    char *folder = make_folder(), command[4096];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = path_in(folder, names[i]);
        write_file(path, "not a library");
        free(path);
    }
    snprintf(command, sizeof command, "cd '%s' && '%s' --version >/dev/null", folder, program_path("WEIR_TOOL"));
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    remove_folder(folder);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
