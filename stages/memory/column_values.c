/* A block has the columns, then their arrays, then the texts. It is measured, allocated, and filled by the same code. */
#include "stages/memory/column_values.h"

#include <math.h>
#include <stdalign.h>
#include <stdlib.h>

int weir__columns_check(const weir_column *columns, size_t num_columns, size_t num_rows, weir_error *error)
{
    if (num_columns && !columns)
        return weir_error_set(error, WEIR_EINVAL, 0, "columns is NULL, but num_columns is not 0");
    for (size_t i = 0; i < num_columns; i++) {
        const weir_column *column = &columns[i];
        if (!column->name || !*column->name || weir_column_find(columns, i, column->name))
            return weir_error_set(error, WEIR_EINVAL, 0, "column %zu has %s", i,
                                  column->name && *column->name ? "the name of another one" : "no name");
        const void *const arrays[] = { column->integers, column->reals, column->texts };
        if ((unsigned)column->kind > WEIR_COLUMN_TEXT || (num_rows && !arrays[column->kind]))
            return weir_error_set(error, WEIR_EINVAL, 0, "the column \"%s\" has no values of its kind", column->name);
        for (size_t row = 0; column->kind == WEIR_COLUMN_TEXT && row < num_rows; row++)
            if (!column->texts[row] && (!column->is_there || column->is_there[row]))
                return weir_error_set(error, WEIR_EINVAL, 0, "the column \"%s\" has NULL in row %zu", column->name,
                                      row);
    }
    return WEIR_OK;
}

weir_value weir__column_value(const weir_column *column, size_t row)
{
    weir_value value = {
        .name = column->name,
        .kind = column->kind,
        .is_there = !column->is_there || column->is_there[row],
        .real = NAN,
        .text = "",
    };
    if (!value.is_there)
        return value;
    switch (column->kind) {
    case WEIR_COLUMN_INTEGER: value.integer = column->integers[row]; break;
    case WEIR_COLUMN_REAL: value.real = column->reals[row]; break;
    case WEIR_COLUMN_TEXT: value.text = column->texts[row]; break;
    }
    return value;
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

/* Where the next part of a block goes. start NULL: it is only measured. */
typedef struct block {
    uint8_t *start;
    size_t used;
} block;

static void *take_bytes(block *from, size_t num_bytes)
{
    enum { ALIGNMENT = alignof(max_align_t) };
    size_t at = from->used;
    from->used += (num_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return from->start ? from->start + at : NULL;
}

static const char *take_text(block *from, const char *text)
{
    size_t num_bytes = strlen(text) + 1;
    char *copy = take_bytes(from, num_bytes);
    return copy ? memcpy(copy, text, num_bytes) : NULL;
}

/* The arrays of a column. */
typedef struct arrays {
    uint8_t *is_there;
    int64_t *integers;
    double *reals;
    const char **texts;
} arrays;

static arrays take_arrays(block *from, weir_column *column, size_t num_rows)
{
    arrays to = { .is_there = take_bytes(from, num_rows) };
    switch (column->kind) {
    case WEIR_COLUMN_INTEGER: to.integers = take_bytes(from, num_rows * sizeof *to.integers); break;
    case WEIR_COLUMN_REAL: to.reals = take_bytes(from, num_rows * sizeof *to.reals); break;
    case WEIR_COLUMN_TEXT: to.texts = take_bytes(from, num_rows * sizeof *to.texts); break;
    }
    column->is_there = to.is_there;
    column->integers = to.integers;
    column->reals = to.reals;
    column->texts = to.texts;
    return to;
}

/* An integer may become an element of reals. */
static void put_value(block *from, const arrays *to, size_t row, const weir_value *value, weir_column_kind kind)
{
    const char *text = kind == WEIR_COLUMN_TEXT ? take_text(from, value->is_there ? value->text : "") : NULL;
    if (!to->is_there) /* it is only measured */
        return;
    to->is_there[row] = value->is_there;
    if (kind == WEIR_COLUMN_INTEGER)
        to->integers[row] = value->is_there ? value->integer : 0;
    else if (kind == WEIR_COLUMN_TEXT)
        to->texts[row] = text;
    else
        to->reals[row] = !value->is_there                     ? NAN
                         : value->kind == WEIR_COLUMN_INTEGER ? (double)value->integer
                                                              : value->real;
}

/* Fills a block, or measures it: what fill() takes. NULL = out of memory. */
static void *make_block(void (*fill)(block *from, const void *self), const void *self)
{
    block made = { 0 };
    fill(&made, self);
    made.start = calloc(1, made.used ? made.used : 1);
    made.used = 0;
    if (made.start)
        fill(&made, self);
    return made.start;
}

/* ---- a copy ------------------------------------------------------------------------------------------------------ */

typedef struct table {
    const weir_column *columns;
    size_t num_columns, num_rows;
} table;

static void fill_copy(block *from, const void *self)
{
    const table *given = self;
    weir_column *copies = take_bytes(from, given->num_columns * sizeof *copies), unused = { 0 };
    for (size_t i = 0; i < given->num_columns; i++) {
        weir_column *copy = copies ? &copies[i] : &unused;
        *copy = (weir_column){ .name = take_text(from, given->columns[i].name), .kind = given->columns[i].kind };
        arrays to = take_arrays(from, copy, given->num_rows);
        for (size_t row = 0; row < given->num_rows; row++) {
            weir_value value = weir__column_value(&given->columns[i], row);
            put_value(from, &to, row, &value, copy->kind);
        }
    }
}

weir_column *weir__columns_copy(const weir_column *columns, size_t num_columns, size_t num_rows)
{
    return make_block(fill_copy, &(table){ columns, num_columns, num_rows });
}

/* ---- of rows ----------------------------------------------------------------------------------------------------- */

typedef struct rows {
    const weir_value *const *values;
    const size_t *num_values;
    size_t num_rows;
    const weir_column *columns; /* their names and kinds */
    size_t num_columns;
} rows;

static const weir_value *find_value(const rows *given, size_t row, size_t at, const char *name)
{
    const weir_value *values = given->values[row];
    size_t num_values = given->num_values[row];
    if (at < num_values && strcmp(values[at].name, name) == 0) /* mostly all rows have the same columns */
        return &values[at];
    for (size_t i = 0; i < num_values; i++)
        if (strcmp(values[i].name, name) == 0)
            return &values[i];
    return NULL;
}

static void fill_rows(block *from, const void *self)
{
    static const weir_value nothing = { .text = "" };
    const rows *given = self;
    weir_column *made = take_bytes(from, given->num_columns * sizeof *made), unused = { 0 };
    for (size_t i = 0; i < given->num_columns; i++) {
        weir_column *column = made ? &made[i] : &unused;
        *column = (weir_column){ .name = take_text(from, given->columns[i].name), .kind = given->columns[i].kind };
        arrays to = take_arrays(from, column, given->num_rows);
        for (size_t row = 0; row < given->num_rows; row++) {
            const weir_value *value = find_value(given, row, i, given->columns[i].name);
            put_value(from, &to, row, value ? value : &nothing, column->kind);
        }
    }
}

static int add_kind(weir_column *columns, size_t *num_columns, const weir_value *value, weir_error *error)
{
    weir_column *column = (weir_column *)(uintptr_t)weir_column_find(columns, *num_columns, value->name);
    if (!column) {
        columns[(*num_columns)++] = (weir_column){ .name = value->name, .kind = value->kind };
        return WEIR_OK;
    }
    if ((column->kind == WEIR_COLUMN_TEXT) != (value->kind == WEIR_COLUMN_TEXT))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "the column \"%s\" has a text in one item and a number in another", value->name);
    column->kind = value->kind > column->kind ? value->kind : column->kind;
    return WEIR_OK;
}

int weir__columns_of_rows(const weir_value *const *values, const size_t *num_values, size_t num_rows,
                          weir_column **columns, size_t *num_columns, weir_error *error)
{
    size_t most = 0;
    int rc = WEIR_OK;
    *columns = NULL;
    *num_columns = 0;
    for (size_t row = 0; row < num_rows; row++)
        most += num_values[row];
    if (most == 0)
        return WEIR_OK;
    weir_column *kinds = calloc(most, sizeof *kinds);
    if (!kinds)
        return WEIR_ENOMEM;
    for (size_t row = 0; row < num_rows; row++)
        for (size_t i = 0; rc == WEIR_OK && i < num_values[row]; i++)
            rc = add_kind(kinds, num_columns, &values[row][i], error);
    if (rc == WEIR_OK)
        *columns = make_block(fill_rows, &(rows){ values, num_values, num_rows, kinds, *num_columns });
    free(kinds);
    return rc == WEIR_OK && !*columns ? WEIR_ENOMEM : rc;
}
