/* Entries as rows: the prepared statements, and what goes into which column. */
#ifndef STATS_RECORD_INSERT_H
#define STATS_RECORD_INSERT_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "stats/record/record.h"
#include "stats/schema/lap_tables.h"
#include "stats/schema/record_tables.h"

/* The process columns of `run`; the same for each of its runs. */
typedef struct weir_run_identity {
    char *node_id;
    char *command;
    char *machine;
    char *job;
    int32_t rank;
    uint32_t world;
} weir_run_identity;

/* Where the rolls of a run stand (rolls.h). All-zero = no lap has come. */
typedef struct weir_roll_state {
    int64_t number;      /* of the roll of the latest lap */
    uint32_t num_laps;   /* in it, so far */
    int64_t end_unix_ns; /* of the latest lap */
    char *position;      /* its mode and phase; NULL = not known */
} weir_roll_state;

/* One run that a writer records. */
typedef struct weir_run {
    /* immutable */
    struct weir_run *next;             /* the run that this writer recorded before this one */
    const weir_run_identity *identity; /* the writer's */

    /* the store's thread only */
    int64_t run_id;        /* 0 = no row yet */
    bool committed;        /* the row is committed */
    int64_t lost_to_write; /* lost entries, to be written to the row with the next commit */
    int64_t written_lost;  /* lost entries that the row has */
    weir_roll_state rolls;
    int64_t thinned; /* the laps of rolls up to this number have been replaced by them */

    /* guarded by the store's lock */
    int64_t visible_id; /* run_id once it is committed */
    int64_t lost;       /* entries lost */
} weir_run;

enum {
    WEIR_INSERT_BEGIN,
    WEIR_INSERT_COMMIT,
    WEIR_INSERT_ROLLBACK,
    WEIR_INSERT_NEW_RUN,
    WEIR_INSERT_REMOVE_RUN,
    WEIR_INSERT_START_RUN,
    WEIR_INSERT_END_RUN,
    WEIR_INSERT_LOST,
    WEIR_INSERT_STATEMENTS,
};

/* What a row of a lap table has beside its lap. */
typedef enum weir_lap_extra {
    WEIR_EXTRA_NONE,
    WEIR_EXTRA_ROLL,
    WEIR_EXTRA_ID, /* the others: only of rolls */
    WEIR_EXTRA_NUM_LAPS,
    WEIR_EXTRA_START_TIME,
} weir_lap_extra;

typedef struct weir_lap_place {
    int64_t roll;
    int64_t id, num_laps;
    double start_time;
} weir_lap_place;

/* The columns of one lap table, or table of rolls, for which there are values. */
typedef struct weir_lap_insert {
    sqlite3_stmt *statement;
    bool is_of_rolls;
    struct {
        weir_lap_extra extra;        /* if it is none of these: */
        const weir_column *field;    /* NULL = a metric */
        const weir_measure *measure; /* NULL = a histogram */
        size_t histogram;
        bool takes_null;
    } columns[WEIR_MAX_COLUMNS];
    size_t num_columns;
} weir_lap_insert;

/* The statements of rolls.c. */
typedef struct weir_roll_statements {
    sqlite3_stmt *last_number, *new_number, *oldest, *delete_items;
    sqlite3_stmt *sums[WEIR_NUM_SUBJECTS], *delete_laps[WEIR_NUM_SUBJECTS], *copy[WEIR_NUM_SUBJECTS];
} weir_roll_statements;

/* All-zero is empty. One thread at a time. */
typedef struct weir_insert {
    sqlite3 *db;
    sqlite3_stmt *statements[WEIR_INSERT_STATEMENTS];
    sqlite3_stmt *records[WEIR_NUM_RECORD_KINDS]; /* of the kinds that are inserted as they are read */
    weir_lap_insert laps[WEIR_NUM_SUBJECTS], rolls[WEIR_NUM_SUBJECTS];
    weir_roll_statements roll_statements;
    weir_histogram times[WEIR_MAX_HISTOGRAMS]; /* of the lap that is inserted */
} weir_insert;

/* Every function returns a SQLITE_ code; SQLITE_OK is success. */

/* Prepares all statements; call weir__insert_finalize() even on failure. */
int weir__insert_prepare(weir_insert *rows, sqlite3 *db);
void weir__insert_finalize(weir_insert *rows);

/* Runs a statement that has no parameters. */
int weir__insert_run(weir_insert *rows, int statement);

/* Inserts a row for the run, which starts now, unless it has one, and sets its run_id. */
int weir__insert_ensure_run(weir_insert *rows, weir_run *run);

/* Removes the row of a run that never started. */
int weir__insert_remove_run(weir_insert *rows, const weir_run *run);

/* Sets how many entries of the run were lost: lost_to_write. */
int weir__insert_set_lost(weir_insert *rows, const weir_run *run);

/* Inserts a lap, or as a roll; its histograms may be NULL bytes (not known). The record loses its histograms. */
int weir__insert_lap(weir_insert *rows, const weir_lap_insert *insert, weir_record *record,
                     const weir_stored_histogram stored[], const weir_lap_place *place);

/* Inserts one entry; inserts the run's row first if it has none. */
int weir__insert_insert(weir_insert *rows, const weir_record_entry *entry);

#endif
