/*
 * The schema of the database, and how a database of ours is told from others': PRAGMA application_id says that it is
 * one, PRAGMA user_version which schema it has.
 */
#ifndef WEIR_SCHEMA_H
#define WEIR_SCHEMA_H

enum {
    WEIR_SCHEMA_VERSION = 4,
    WEIR_SCHEMA_OLDEST = 1,               /* that can be read, and upgraded */
    WEIR_SCHEMA_WITH_PLACES = 2,          /* laps have a phase and steps */
    WEIR_SCHEMA_WITH_MACHINE = 4,         /* `run` has it */
    WEIR_SCHEMA_SPDL = 1000,              /* a database of SPDL's own, which is only read */
    WEIR_SCHEMA_APPLICATION = 0x77656972, /* "weir" */
};

/* Makes all tables but those of laps in an empty database; runs within a transaction. */
extern const char weir_schema_create[];

/* Adds the column `machine` to `run`. */
extern const char weir_schema_machine[];

/*
 * What makes schema n + 1 of schema n, at [n]; runs within a transaction. Such a step takes no long time, whatever the
 * size of the database, and takes nothing away that another process with an older weir may be using.
 */
extern const char *const weir_schema_upgrades[WEIR_SCHEMA_VERSION];

#endif
