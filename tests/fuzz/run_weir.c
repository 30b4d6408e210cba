#include "tests/fuzz/run_weir.h"

#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/require.h"
#include "tools/cli/command.h"

enum { MAX_WORDS = 64 };

int weir_main(int argc, char **argv);

/* The linker's names for the sections of command_variables.h. */
extern char __start_command_data[], __stop_command_data[], __start_command_bss[], __stop_command_bss[];

static char *at_start; /* both sections */

/* Between the variables is memory that AddressSanitizer does not let others touch. */
__attribute__((no_sanitize("address"))) static void copy(volatile char *to, const volatile char *from, ptrdiff_t size)
{
    while (size-- > 0)
        *to++ = *from++;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    return where->level > 0 ? remove(path) : 0;
}

void run_weir_clean(void)
{
    nftw(".", remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void run_weir_init(void)
{
    char folder[256];
    const char *parent = getenv("WEIR_FUZZ_DIR");
    snprintf(folder, sizeof folder, "%s/weir-fuzz-XXXXXX", parent ? parent : "/tmp");
    require(mkdtemp(folder) && chdir(folder) == 0);
    setenv("PATH", "/nonexistent", 1); /* no other program */
    for (size_t i = 0; tool_commands[i]; i++)
        if (tool_commands[i]->make)
            tool_commands[i]->make(); /* once: it stays */
    ptrdiff_t data_size = __stop_command_data - __start_command_data;
    ptrdiff_t bss_size = __stop_command_bss - __start_command_bss;
    at_start = malloc((size_t)(data_size + bss_size));
    require(at_start);
    copy(at_start, __start_command_data, data_size);
    copy(at_start + data_size, __start_command_bss, bss_size);
}

void run_weir(const char *command_line, char separator)
{
    static char program[] = "weir";
    char *words[MAX_WORDS + 2] = { program }, *line = strdup(command_line), *rest = line, *word;
    int count = 1;
    while (count <= MAX_WORDS && (word = strsep(&rest, (char[]){ separator, '\0' })))
        words[count++] = word;
    int status = weir_main(count, words);
    require(status >= 0 && status <= 3);
    fflush(stdout);
    free(line);
    ptrdiff_t data_size = __stop_command_data - __start_command_data;
    copy(__start_command_data, at_start, data_size);
    copy(__start_command_bss, at_start + data_size, __stop_command_bss - __start_command_bss);
}
