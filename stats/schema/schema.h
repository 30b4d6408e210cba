/*
 * The schema of the database, and how weir databases are recognised: by PRAGMA application_id. PRAGMA user_version is
 * the schema's version.
 */
#ifndef STATS_SCHEMA_SCHEMA_H
#define STATS_SCHEMA_SCHEMA_H

enum {
    WEIR_SCHEMA_VERSION = 6,              /* older ones are not read */
    WEIR_SCHEMA_SPDL = 1000,              /* a database recorded by SPDL, which is only read */
    WEIR_SCHEMA_APPLICATION = 0x77656972, /* "weir" */
};

/* How other tables refer to a run. 0: a row of a writer of SPDL, for which a trigger finds the run. */
#define WEIR_RUN_REFERENCE "INTEGER NOT NULL DEFAULT 0 REFERENCES run(run_id) ON DELETE CASCADE"

/* Creates the tables that no list of columns describes in an empty database; runs within a transaction. */
extern const char weir__schema_create[];

/* Triggers that give such a row a run and our columns. All its rows are one run, with the version "SPDL". */
extern const char *const weir__schema_foreign[];

/* Views of each lap and of each run, with rates and shares; docs/sql.md describes them. NULL ends the list. */
extern const char *const weir__schema_views[];

#endif
