/*
 * The schema of the database, and how a database of ours is told from others': PRAGMA application_id says that it is
 * one, PRAGMA user_version which schema it has.
 */
#ifndef WEIR_SCHEMA_H
#define WEIR_SCHEMA_H

enum {
    WEIR_SCHEMA_VERSION = 1,
    WEIR_SCHEMA_APPLICATION = 0x77656972, /* "weir" */
};

/* Makes everything in an empty database; runs within a transaction. */
extern const char weir_schema_create[];

#endif
