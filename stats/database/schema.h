/*
 * The schema of the database, and how weir databases are recognised: by PRAGMA application_id. PRAGMA user_version is
 * the schema's version.
 */
#ifndef WEIR_SCHEMA_H
#define WEIR_SCHEMA_H

enum {
    WEIR_SCHEMA_VERSION = 5,
    WEIR_SCHEMA_OLDEST = 1,               /* oldest version that can be read and upgraded */
    WEIR_SCHEMA_WITH_POSITIONS = 2,       /* first version in which laps have a phase and steps */
    WEIR_SCHEMA_SPDL = 1000,              /* a database recorded by SPDL, which is only read */
    WEIR_SCHEMA_APPLICATION = 0x77656972, /* "weir" */
};

/* How other tables refer to a run. */
#define WEIR_RUN_REFERENCE "INTEGER NOT NULL REFERENCES run(run_id) ON DELETE CASCADE"

/* Creates the tables that no list of columns describes in an empty database; runs within a transaction. */
extern const char weir_schema_create[];

/* Columns that were added to tables of older schemas, with the statement that adds them; table NULL at the end. */
typedef struct weir_late_column {
    const char *table, *column, *add;
} weir_late_column;
extern const weir_late_column weir_schema_late_columns[];

/*
 * [n] upgrades schema n to n + 1; runs within a transaction. Such a step is fast for any size of database, and
 * removes nothing that another process with an older weir may be using.
 */
extern const char *const weir_schema_upgrades[WEIR_SCHEMA_VERSION];

#endif
