/*
 * libFuzzer's target: everything that reads a database, on a recorded run in which the input has changed values. Each
 * change is 12 bytes: a column of the database, a row, the type of the new value, and the value. Whatever the values
 * are, readers return a result or an error with a text. Damaged files are SQLite's business: tests/torture/run has
 * them.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include <weir/engine.h>
#include <weir/maintain.h>
#include <weir/query.h>
#include <weir/sqlite.h>
#include <weir/summary.h>
#include <weir/verdict.h>

enum { CHANGE_BYTES = 12, MAX_CHANGES = 64, MAX_COLUMNS = 512, NUM_ITEMS = 200 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static sqlite3 *database; /* at that path: for each input a copy of `seed`, which is changed */
static sqlite3 *seed;
static char *columns[MAX_COLUMNS][2]; /* table and column */
static size_t num_columns;
static FILE *nowhere;

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static int make_number(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    uint32_t *count = worker;
    char label[16];
    snprintf(label, sizeof label, "%" PRIu32, *count);
    if (++*count > NUM_ITEMS)
        return WEIR_EOF;
    out->data = strdup(label);
    out->release = weir_release_free;
    return weir_task_set_label(task, label);
}

static int fail_some(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    if (weir_task_seq(task) % 10 == 0)
        return weir_task_fail(task, WEIR_EDATA, 7, "the tenth is bad");
    weir_item_move(out, in);
    return WEIR_OK;
}

static const weir_op source_op = { .name = "source", .worker_size = sizeof(uint32_t), .run = make_number };
static const weir_op stage_op = { .name = "stage", .run = fail_some };

static void record_run(void)
{
    weir_sqlite_writer *writer;
    weir_task_hook hook;
    weir_pipeline *pipeline;
    weir_item item;
    require(weir_sqlite_open(path, NULL, &writer, NULL) == WEIR_OK);
    require(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hook, NULL) == WEIR_OK);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &source_op, NULL, NULL);
    weir_builder_pipe(builder, &stage_op, NULL,
                      &(weir_stage_options){ .concurrency = 2, .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1 };
    require(weir_builder_build(builder, &options, &pipeline, NULL) == WEIR_OK);
    for (int64_t i = 0; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; i++) {
        weir_pipeline_mark_step(pipeline, i);
        if (i % 50 == 0)
            weir_pipeline_mark_phase(pipeline, i % 100 ? "train" : "eval");
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    require(weir_sqlite_close(writer, NULL) == WEIR_OK);
}

static void list_columns(void)
{
    static const char sql[] = "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_info(s.name) c "
                              "WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' ORDER BY s.name, c.cid";
    sqlite3_stmt *statement;
    require(sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW && num_columns < MAX_COLUMNS) {
        for (int i = 0; i < 2; i++)
            columns[num_columns][i] = strdup((const char *)sqlite3_column_text(statement, i));
        num_columns++;
    }
    sqlite3_finalize(statement);
}

static void copy_pages(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    require(backup && sqlite3_backup_step(backup, -1) == SQLITE_DONE && sqlite3_backup_finish(backup) == SQLITE_OK);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    snprintf(path, sizeof path, "/tmp/weir-fuzz-XXXXXX");
    int fd = mkstemp(path);
    require(fd >= 0);
    close(fd);
    weir_log_set_level(WEIR_LOG_ERROR);
    record_run();
    nowhere = fopen("/dev/null", "w");
    require(nowhere && sqlite3_open(path, &database) == SQLITE_OK && sqlite3_open(":memory:", &seed) == SQLITE_OK);
    sqlite3_exec(database, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    copy_pages(seed, database);
    list_columns();
    unlink(path); /* made again by the first input; the end of the process leaves nothing */
    sqlite3_close(database);
    return 0;
}

/* ---- the changes --------------------------------------------------------------------------------------------------- */

static void bind_value(sqlite3_stmt *statement, uint8_t type, const uint8_t bytes[8])
{
    int64_t number;
    double real;
    memcpy(&number, bytes, sizeof number);
    memcpy(&real, bytes, sizeof real);
    switch (type % 8) {
    case 0: sqlite3_bind_int64(statement, 1, number); break;
    case 1: sqlite3_bind_int64(statement, 1, (int8_t)bytes[0]); break;
    case 2: sqlite3_bind_int64(statement, 1, bytes[0] % 2 ? INT64_MAX - bytes[1] : INT64_MIN + bytes[1]); break;
    case 3: sqlite3_bind_double(statement, 1, real); break;
    case 4: sqlite3_bind_double(statement, 1, bytes[0] % 2 ? 1e300 : -1e300); break;
    case 5: sqlite3_bind_text(statement, 1, (const char *)bytes, 8, SQLITE_TRANSIENT); break;
    case 6: sqlite3_bind_blob(statement, 1, bytes, 8, SQLITE_TRANSIENT); break;
    default: break; /* NULL */
    }
}

static void change(const uint8_t bytes[CHANGE_BYTES])
{
    char sql[512];
    sqlite3_stmt *statement;
    size_t column = ((size_t)bytes[0] << 8 | bytes[1]) % num_columns;
    int row = bytes[2] % 16; /* 0 = all */
    snprintf(sql, sizeof sql, "UPDATE OR IGNORE \"%s\" SET \"%s\" = ? WHERE %d IN (0, rowid)", columns[column][0],
             columns[column][1], row);
    if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
        return;
    bind_value(statement, bytes[3], bytes + 4);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
}

/* ---- the readers ----------------------------------------------------------------------------------------------------- */

static void finding(void *self, const weir_finding *found)
{
    (void)self;
    (void)found;
}

/* A status, and a text if it is a failure. */
static int told(int status, weir_error *error)
{
    require(status >= 0 || error->message[0]);
    *error = (weir_error){ 0 };
    return status;
}

static void read_records(weir_reader *reader, const weir_filter *filter)
{
    weir_error error = { 0 };
    for (int kind = 0; kind <= WEIR_RECORD_PHASE; kind++) {
        weir_query *query;
        const weir_record *record;
        if (told(weir_query_begin(reader, (weir_record_kind)kind, filter, &query, &error), &error) != WEIR_OK)
            continue;
        while (told(weir_query_next(query, &record, &error), &error) == WEIR_OK) {
        }
        weir_query_end(query);
    }
}

static void read_totals(weir_reader *reader, const weir_filter *filter)
{
    static const uint32_t groupings[] = { 0,
                                          WEIR_BY_NAME,
                                          WEIR_BY_RUN | WEIR_BY_NODE,
                                          WEIR_BY_NAME | WEIR_BY_PHASE,
                                          WEIR_BY_JOB_PHASE,
                                          WEIR_BY_STEP,
                                          WEIR_BY_TIME };
    for (size_t i = 0; i < sizeof groupings / sizeof groupings[0]; i++) {
        weir_totals totals;
        weir_error error = { 0 };
        weir_grouping grouping = { .by = groupings[i] };
        if (told(weir_totals_read(reader, filter, &grouping, &totals, &error), &error) == WEIR_OK) {
            weir_verdict *verdict = weir_verdict_of_totals(&totals);
            weir_verdict_write(verdict, nowhere);
            weir_verdict_free(verdict);
            for (size_t subject = 0; subject < WEIR_NUM_SUBJECTS; subject++)
                for (size_t j = 1; j < totals.of[subject].count; j++)
                    weir_total_add(&totals.of[subject].all[0], &totals.of[subject].all[j]);
            weir_totals_free(&totals);
        }
    }
}

static void read_all(void)
{
    weir_reader *reader;
    weir_error error = { 0 };
    const weir_filter filter = { .run_id = WEIR_ALL_RUNS };
    told(weir_summary_print(nowhere, path, 0, &error), &error);
    told(weir_summary_print_failures(nowhere, path, 0, 10, &error), &error);
    if (told(weir_reader_open(path, &reader, &error), &error) != WEIR_OK)
        return;
    read_records(reader, &filter);
    read_totals(reader, &filter);
    told(weir_summary_write(nowhere, reader, &filter, &error), &error);
    weir_verdict *verdict;
    if (told(weir_verdict_explain(reader, &filter, &verdict, &error), &error) == WEIR_OK) {
        weir_verdict_write(verdict, nowhere);
        weir_verdict_free(verdict);
    }
    told(weir_database_check(reader, false, finding, NULL, &error), &error);
    weir_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    require(sqlite3_open(path, &database) == SQLITE_OK);
    sqlite3_exec(database, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL, NULL, NULL);
    copy_pages(database, seed);
    sqlite3_exec(database, "BEGIN", NULL, NULL, NULL);
    for (size_t i = 0; i < MAX_CHANGES && size >= CHANGE_BYTES; i++) {
        change(data);
        data += CHANGE_BYTES;
        size -= CHANGE_BYTES;
    }
    sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(database);
    read_all();
    unlink(path);
    return 0;
}
