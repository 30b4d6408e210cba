/*
 * Tables in four forms: text for a person (aligned, few digits, units); HTML with the same cells; JSON (an array of
 * objects); and CSV (RFC 4180, with a header line). JSON and CSV have full precision in the base unit: seconds,
 * bytes, shares from 0 to 1, Unix time.
 *
 *     static const table_column columns[] = {
 *         { "stage", "stage", TABLE_WORDS }, { "num_tasks", "tasks", TABLE_COUNT }, { "p99_time", "p99", TABLE_TIME },
 *     };
 *     table *t = table_begin(stdout, TABLE_JSON, TABLE_COLUMNS(columns));
 *     table_words(t, "decode[10]");  table_number(t, 12);  table_number(t, 0.31);
 *     table_end(t);
 *
 * Rows are written as they are filled, in constant memory; as text, one screenful at a time, so that columns are
 * aligned. On a terminal, a column with the same value in all rows becomes part of a sentence above them. Where a
 * terminal is too narrow, long words go below their row. The columns are divided into sections that each begin with
 * the key columns. A single row becomes a sentence, and so do all rows if the keys leave no room. Nothing is cut.
 */
#ifndef TOOLS_CLI_TABLE_H
#define TOOLS_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum table_format { TABLE_TEXT, TABLE_JSON, TABLE_CSV, TABLE_HTML } table_format;

/* What a column holds: how a cell is written as text. */
typedef enum table_kind {
    TABLE_WORDS,   /* to the left; all others to the right */
    TABLE_COUNT,   /* whole numbers: 12345 */
    TABLE_TIME,    /* seconds: "41.7 ms" */
    TABLE_SHARE,   /* 0.451: "45.1 %" */
    TABLE_BYTES,   /* "1.50 MB" */
    TABLE_REAL,    /* "3.00" */
    TABLE_VALUE,   /* of a counter, of any size: "0.0526316" */
    TABLE_WHEN,    /* Unix time: "2024-05-01 12:00:03", in local time */
    TABLE_CHANGE,  /* 0.045: "+4.5 %" */
    TABLE_POINTS,  /* the same of a share: "+4.5 points" */
    TABLE_TRUTH,   /* "yes", "no"; JSON true, false; CSV 1, 0 */
    TABLE_VERDICT, /* words, with a colour for good and bad ones */
    TABLE_PICTURE, /* words that are a bar, in a colour of their own */
} table_kind;

typedef struct table_column {
    const char *name;  /* in JSON and CSV; if the first one is "", the columns always stay in the rows */
    const char *title; /* as text; NULL = not shown as text */
    table_kind kind;
} table_column;

typedef struct table table;

/* An array of columns and their number. */
#define TABLE_COLUMNS(array) array, sizeof(array) / sizeof((array)[0])

/* The columns must outlive it. */
table *table_begin(FILE *out, table_format format, const table_column *columns, size_t num_columns);

/* The first columns are repeated in each section of a table that is too wide: by default one of them. Where these need
   more than half of the terminal, only the first and the last are repeated. */
void table_set_keys(table *t, size_t num_keys);

/* Colours, although it is not written to stdout itself. */
void table_set_coloured(table *t);

/* The next cell of the row; a row ends with its last cell. Text is copied. */
void table_words(table *t, const char *text);
void table_count(table *t, int64_t count);
void table_known(table *t, int64_t count);                      /* 0 is not known: an empty cell */
void table_number(table *t, double number);                     /* NAN or infinite: an empty cell */
void table_number_as(table *t, double number, table_kind kind); /* instead of the column's kind */
void table_when(table *t, int64_t unix_ns);                     /* a point in time; 0 = an empty cell */
void table_duration(table *t, int64_t ns);                      /* below 0: an empty cell */
void table_truth(table *t, bool truth);
void table_nothing(table *t); /* "", null */

/* Rows so far; NULL is fine. */
size_t table_rows(const table *t);

/* Writes the remaining rows and frees the table. A table without rows is "[]", or the header line, or nothing.
   NULL is fine. */
void table_end(table *t);

/* The same for a table that is the whole output: JSON ends with a newline. */
void table_end_alone(table *t);

/* -- pieces, for other output formats */

/*
 * JSON of a template, in which ' stands for a quote: "{'file': %s, 'rate': %g}". %s is a text with its quotes, or
 * null. Bytes that are not UTF-8 become the text \xff, as in CSV. %g is a number in a form that reads back as the
 * same number, or null if it is NAN or infinite. %d, %u, with l or not, are whole numbers; %hhd is true or false.
 */
void json_print(FILE *out, const char *template, ...) __attribute__((format(printf, 2, 3)));

/* Text escaped for HTML, with control characters as \n, \x1b, … */
void html_text(FILE *out, const char *text);

/* One cell of CSV, quoted if needed. Bytes that are not UTF-8 become the text \xff: readers would refuse the whole file. */
void csv_text(FILE *out, const char *text);

#endif
