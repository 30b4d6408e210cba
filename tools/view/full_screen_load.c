#include "tools/view/full_screen_load.h"

#include <stdio.h>

#ifdef WEIR_HAVE_NCURSES
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/cli/memory.h"

/* Beside weir-media, or seen from the folder of weir. */
static const char *const places[] = { WEIR_MODULE, "../" WEIR_MODULE_FOLDER "/" WEIR_MODULE };

/* To be freed; NULL = there is none. */
static char *find_module(void)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    while (length > 0 && program[length - 1] != '/')
        length--;
    for (size_t i = 0; length > 0 && i < sizeof places / sizeof places[0]; i++) {
        char *path = memory_format("%.*s%s", (int)length, program, places[i]);
        if (access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

const full_screen *full_screen_load(char *problem, size_t problem_bytes)
{
    char *path = find_module();
    void *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
    const full_screen *screen = module ? dlsym(module, FULL_SCREEN_SYMBOL) : NULL;
    if (!screen)
        snprintf(problem, problem_bytes, "cannot load the screen with ncurses (Debian: libncursesw6): %s",
                 path ? dlerror() : WEIR_MODULE " is not there; install weir again");
    free(path);
    return screen;
}

#else

const full_screen *full_screen_load(char *problem, size_t problem_bytes)
{
    snprintf(problem, problem_bytes, "weir was built without ncurses (Debian: libncurses-dev)");
    return NULL;
}

#endif
