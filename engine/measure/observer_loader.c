/*
 * Recording that the environment asks for, of programs that know nothing of it. libweir-export has what records; the engine
 * loads it when it is needed, so programs without it stay without it.
 */
#include "engine/measure/observer_loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

static autostart_function *make_observers; /* NULL = not there */

#ifdef WEIR_EXPORT_LIBRARY
/* Opens the statistics library, which lies beside this library. The loader looks there by itself, unless a sanitizer
   intercepts the call. So the path is given. NULL = the library is not there, see dlerror(). */
static void *open_library(void)
{
    enum { HOW = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };
    Dl_info own;
    char *path = NULL;
    void *library = NULL;
    if (dladdr(&make_observers, &own) && own.dli_fname && strchr(own.dli_fname, '/') &&
        asprintf(&path, "%.*s/%s", (int)(strrchr(own.dli_fname, '/') - own.dli_fname), own.dli_fname,
                 WEIR_EXPORT_LIBRARY) > 0) {
        library = dlopen(path, HOW);
        free(path);
    }
    return library ? library : dlopen(WEIR_EXPORT_LIBRARY, HOW);
}
#endif

static void load_export(void)
{
#ifdef WEIR_EXPORT_LIBRARY
    void *library = open_library();
    void *symbol = library ? dlsym(library, "weir__autostart_observers") : NULL;
    *(void **)(void *)&make_observers = symbol;
    if (!symbol)
        weir_log(WEIR_LOG_WARNING, "WEIR_RECORD or WEIR_TRACE is set, but nothing is recorded: %s", dlerror());
#else
    weir_log(WEIR_LOG_WARNING,
             "WEIR_RECORD or WEIR_TRACE is set, but nothing is recorded: weir is linked statically");
#endif
}

static bool is_set(const char *variable)
{
    const char *value = secure_getenv(variable);
    return value && *value;
}

size_t weir__autostart(weir_observer *observers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!is_set("WEIR_RECORD") && !is_set("WEIR_TRACE"))
        return 0;
    pthread_once(&once, load_export);
    return make_observers ? make_observers(observers, AUTOSTART_OBSERVERS) : 0;
}
