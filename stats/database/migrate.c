/* Upgrading older databases to the current schema. */
#include <weir/maintain.h>

#include <weir/clock.h>

#include "database.h"
#include "database_path.h"
#include "database_reader.h"
#include "schema.h"

#define LOCK_LIMIT (10 * WEIR_SECOND)

int weir_schema_version(void)
{
    return WEIR_SCHEMA_VERSION;
}

int weir_reader_schema(const weir_reader *reader)
{
    if (!reader)
        return WEIR_EINVAL;
    return reader->schema;
}

int weir_database_migrate(const char *path, int *from, weir_error *error)
{
    if (!path || !from)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    /* Opened as a reader first: a writer would create a missing database. */
    weir_reader *reader;
    int status = weir_reader_open(path, &reader, error);
    if (status != WEIR_OK)
        return status;
    *from = reader->schema;
    bool is_spdl = reader->is_spdl;
    weir_reader_close(reader);
    if (is_spdl)
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "database %s was recorded by SPDL and cannot be upgraded",
                              weir_path_for_message(path).text);
    if (*from == WEIR_SCHEMA_VERSION)
        return WEIR_OK;
    sqlite3 *db;
    status = weir_database_open_writer(path, weir_clock_ns() + LOCK_LIMIT, &db, error);
    weir_database_close(db);
    return status;
}
