#include "stats/schema/tables.h"

#include <stdio.h>
#include <string.h>

#include "stats/schema/schema.h"

static const weir_record_kind record_kinds[] = { WEIR_RECORD_STAGE, WEIR_RECORD_EVENT, WEIR_RECORD_FAILURE,
                                                 WEIR_RECORD_ITEM,  WEIR_RECORD_STACK, WEIR_RECORD_SAMPLES };
enum { NUM_RECORD_KINDS = sizeof record_kinds / sizeof record_kinds[0] };

static void add_column(weir_table *table, const char *name, const char *type, bool is_optional)
{
    table->columns[table->num_columns].name = name;
    table->columns[table->num_columns].type = type;
    table->columns[table->num_columns++].is_optional = is_optional;
}

static void fill_record_table(weir_record_kind kind, weir_table *table)
{
    const weir_record_table *record = weir__record_table_of(kind);
    table->name = record->name;
    table->may_lack = kind >= WEIR_RECORD_STACK;
    for (size_t i = 0; i < record->num_columns; i++)
        if (!record->columns[i].expression)
            add_column(table, record->columns[i].name, weir__record_column_type(&record->columns[i]),
                       table->may_lack);
}

/* All of a table of rolls may be missing: rolls are only sums of what is there. */
static void fill_lap_table(weir_subject subject, bool of_rolls, weir_table *table)
{
    const weir_metric_table *metrics = weir_subject_metrics(subject);
    const char *columns[WEIR_MAX_COLUMNS];
    size_t count = of_rolls ? weir__roll_table_columns(subject, columns) : weir__lap_table_columns(subject, columns);
    table->name = of_rolls ? weir__lap_tables[subject].rolls : weir__lap_tables[subject].name;
    table->kind = of_rolls ? WEIR_TABLE_ROLLS : WEIR_TABLE_LAPS;
    table->may_lack = true;
    for (size_t i = 0; i < count; i++) {
        bool is_optional = of_rolls || strcmp(columns[i], "roll") == 0;
        for (size_t k = 0; k < metrics->num_metrics; k++)
            is_optional |= strcmp(metrics->metrics[k].name, columns[i]) == 0;
        add_column(table, columns[i], weir__lap_column_type(subject, columns[i]), is_optional);
    }
}

/* Each number of a roll in a run, with the times of its laps: the start of the first, the first and the last end, the last
   start. */
static void fill_roll_numbers(weir_table *table)
{
    static const char *const times[] = { "start_time", "first_time", "last_start_time", "timestamp" };
    table->name = "roll";
    table->kind = WEIR_TABLE_ROLL_NUMBERS;
    table->may_lack = true;
    add_column(table, "run_id", WEIR_RUN_REFERENCE, true);
    add_column(table, "roll", "INTEGER NOT NULL", true);
    add_column(table, "num_laps", "INTEGER NOT NULL", true);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        add_column(table, times[i], "REAL NOT NULL", true);
}

bool weir__table_at(size_t index, weir_table *table)
{
    enum { FIRST_ROLLS = NUM_RECORD_KINDS + WEIR_NUM_SUBJECTS, ROLL_NUMBERS = FIRST_ROLLS + WEIR_NUM_SUBJECTS };
    table->num_columns = 0;
    table->kind = WEIR_TABLE_RECORDS;
    if (index < NUM_RECORD_KINDS)
        fill_record_table(record_kinds[index], table);
    else if (index < FIRST_ROLLS)
        fill_lap_table((weir_subject)(index - NUM_RECORD_KINDS), false, table);
    else if (index < ROLL_NUMBERS)
        fill_lap_table((weir_subject)(index - FIRST_ROLLS), true, table);
    else if (index == ROLL_NUMBERS)
        fill_roll_numbers(table);
    return table->num_columns > 0;
}

/* ---- what a database has ------------------------------------------------------------------------------------------- */

bool weir__has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

char *weir__table_columns(sqlite3 *db, const char *schema, const char *table, int *code)
{
    sqlite3_stmt *row;
    sqlite3_str *text = sqlite3_str_new(db);
    *code = sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?, ?)", -1, &row, NULL);
    if (*code == SQLITE_OK)
        *code = sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    if (*code == SQLITE_OK)
        *code = sqlite3_bind_text(row, 2, schema, -1, SQLITE_STATIC);
    while (*code == SQLITE_OK && (*code = sqlite3_step(row)) == SQLITE_ROW) {
        sqlite3_str_appendf(text, " %s", (const char *)sqlite3_column_text(row, 0));
        *code = SQLITE_OK;
    }
    *code = *code == SQLITE_DONE ? SQLITE_OK : *code;
    sqlite3_finalize(row);
    if (*code == SQLITE_OK)
        *code = sqlite3_str_errcode(text); /* out of memory is not "no such table" */
    char *columns = sqlite3_str_finish(text);
    if (*code == SQLITE_OK)
        return columns; /* NULL = no column, no table */
    sqlite3_free(columns);
    return NULL;
}

/* ---- what it lacks -------------------------------------------------------------------------------------------------- */

/* By time and by name and time: SPDL's queries and the plots. By run: one pass over a run, in the order of rowid. Stages
   are in the order of the pipeline, by rowid; they and the functions of stacks are found by run and name or number. Rolls are found
   by their number, from the first or from the last on. */
static void put_table(sqlite3_str *sql, const weir_table *table)
{
    const char *name = table->name;
    bool has_id = strcmp(table->columns[0].name, "id") == 0, is_lap_table = table->kind == WEIR_TABLE_LAPS;
    sqlite3_str_appendf(sql, "CREATE TABLE %s (", name);
    for (size_t i = 0; i < table->num_columns; i++)
        sqlite3_str_appendf(sql, "%s%s %s", i ? ", " : "", table->columns[i].name, table->columns[i].type);
    if (has_id)
        sqlite3_str_appendall(sql, ");");
    else
        sqlite3_str_appendf(sql, ", PRIMARY KEY (%s, %s));", table->columns[0].name, table->columns[1].name);
    if (has_id)
        sqlite3_str_appendf(sql, "CREATE INDEX %s_by_run ON %s(run_id%s);", name, name,
                            table->kind == WEIR_TABLE_ROLLS ? ", roll" : "");
    if (is_lap_table || strcmp(name, "event_stats") == 0)
        sqlite3_str_appendf(sql, "CREATE INDEX %s_by_time ON %s(timestamp);", name, name);
    if (is_lap_table)
        sqlite3_str_appendf(sql, "CREATE INDEX %s_by_name ON %s(name, timestamp);", name, name);
}

int weir__tables_put_missing(sqlite3 *db, sqlite3_str *sql)
{
    weir_table table;
    int code = SQLITE_OK;
    for (size_t index = 0; code == SQLITE_OK && weir__table_at(index, &table); index++) {
        char *there = weir__table_columns(db, "main", table.name, &code);
        if (!there && code == SQLITE_OK)
            put_table(sql, &table);
        for (size_t i = 0; there && i < table.num_columns; i++)
            if (!weir__has_word(there, table.columns[i].name))
                sqlite3_str_appendf(sql, "ALTER TABLE %s ADD COLUMN %s %s;", table.name, table.columns[i].name,
                                    table.columns[i].type);
        sqlite3_free(there);
    }
    return code;
}

/* A table without rowid would lose the order of stages. */
static int make_view(sqlite3 *db, const weir_table *table, const char *from, const char *lacking, bool is_there)
{
    bool has_id = strcmp(table->columns[0].name, "id") == 0;
    char *sql = is_there
                    ? sqlite3_mprintf("CREATE TEMP VIEW %s AS SELECT %s*%s FROM %s", table->name,
                                      has_id ? "" : "rowid, ", lacking, from)
                    : sqlite3_mprintf("CREATE TEMP VIEW %s AS SELECT 0 AS rowid%s WHERE 0", table->name, lacking);
    int code = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return code;
}

int weir__tables_complete(sqlite3 *db, const char *schema, const char *prefix)
{
    weir_table table;
    int code = SQLITE_OK;
    for (size_t index = 0; code == SQLITE_OK && weir__table_at(index, &table); index++) {
        char from[64];
        snprintf(from, sizeof from, "%s%s", prefix, table.name);
        char *there = weir__table_columns(db, schema, from, &code);
        sqlite3_str *text = sqlite3_str_new(db);
        for (size_t i = 0; i < table.num_columns; i++)
            if (!weir__has_word(there, table.columns[i].name))
                sqlite3_str_appendf(text, ", NULL AS %s", table.columns[i].name);
        bool is_whole = sqlite3_str_length(text) == 0;
        if (code == SQLITE_OK)
            code = sqlite3_str_errcode(text);
        char *lacking = sqlite3_str_finish(text);
        snprintf(from, sizeof from, "%s.%s%s", schema, prefix, table.name);
        bool is_damaged = !there && !*prefix && !table.may_lack;
        if (code == SQLITE_OK && !is_damaged && (!is_whole || *prefix))
            code = make_view(db, &table, from, lacking ? lacking : "", there);
        sqlite3_free(lacking);
        sqlite3_free(there);
    }
    return code;
}
