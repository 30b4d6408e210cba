/* WEIR_RECORD and WEIR_TRACE: each pipeline has a writer and a trace file of its own, which are closed when it is freed; the
   writers of a process share a thread. */
#include "stats/export/autostart.h"

#include <errno.h>
#include <stdlib.h>

#include <weir/log.h>
#include <weir/sqlite.h>
#include <weir/trace_file.h>

#include "stats/export/trace_path.h"

static void log_failure(const char *variable, const weir_error *error)
{
    weir_log(WEIR_LOG_WARNING, "%s: %s", variable, error->message);
}

static void end_recording(void *writer)
{
    weir_error error = { 0 };
    if (weir_sqlite_close(writer, &error) != WEIR_OK)
        log_failure("WEIR_RECORD", &error);
}

static int start_recording(const char *path, weir_observer *observer, weir_error *error)
{
    weir_sqlite_writer *writer;
    int status = weir_sqlite_open(path, NULL, &writer, error);
    *observer = weir_sqlite_observer(writer);
    observer->attach = NULL;
    observer->detach = end_recording;
    return status;
}

static void end_trace(void *file)
{
    weir_error error = { 0 };
    if (weir_trace_close(file, &error) != WEIR_OK)
        log_failure("WEIR_TRACE", &error);
}

/* A file that exists stays: the next one is "trace.2.json". */
static int open_free_trace(const char *path, weir_trace_file **file, weir_error *error)
{
    int status = weir_trace_open(path, NULL, file, error);
    for (unsigned number = 2; status != WEIR_OK && error->library_code == -EEXIST; number++) {
        char *numbered = weir__trace_numbered(path, number);
        if (!numbered)
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        *error = (weir_error){ 0 };
        status = weir_trace_open(numbered, NULL, file, error);
        free(numbered);
    }
    return status;
}

static int start_trace(const char *path, weir_observer *observer, weir_error *error)
{
    weir_trace_file *file;
    int status = open_free_trace(path, &file, error);
    *observer = weir_trace_observer(file);
    observer->attach = NULL;
    observer->detach = end_trace;
    return status;
}

size_t weir__autostart_observers(weir_observer *observers, size_t room)
{
    static const struct {
        const char *variable;
        int (*start)(const char *path, weir_observer *observer, weir_error *error);
    } recorders[] = { { "WEIR_RECORD", start_recording }, { "WEIR_TRACE", start_trace } };
    size_t count = 0;
    for (size_t i = 0; observers && i < sizeof recorders / sizeof recorders[0] && count < room; i++) {
        const char *path = secure_getenv(recorders[i].variable);
        weir_error error = { 0 };
        if (!path || !*path)
            continue;
        if (recorders[i].start(path, &observers[count], &error) == WEIR_OK)
            count++;
        else
            log_failure(recorders[i].variable, &error);
    }
    return count;
}
