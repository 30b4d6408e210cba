/* Reads what a writer of this process records. */
#include <weir/query.h>

#include "stats/read/open_recording.h"
#include "stats/record/memory_name.h"

int weir_recording_open_writer(weir_sqlite_writer *writer, weir_recording **opened, weir_error *error)
{
    if (!writer || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *opened = NULL;
    const char *path, *memory_name = weir__writer_memory_name(writer, &path);
    int status = weir_sqlite_flush(writer, error);
    return status == WEIR_OK ? weir__recording_open_database(path, memory_name, opened, error) : status;
}
