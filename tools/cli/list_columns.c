#include "tools/cli/list_columns.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/memory.h"

static read_column *find_column(list_columns *to, const char *name)
{
    for (size_t i = 0; i < to->num; i++)
        if (strcmp(to->read[i].name, name) == 0)
            return &to->read[i];
    to->read = memory_grow(to->read, to->num, sizeof *to->read);
    to->read[to->num] = (read_column){ .name = memory_copy(name) };
    return &to->read[to->num++];
}

static void fill_up(read_column *column, size_t num_rows)
{
    while (column->num_rows < num_rows) {
        column->texts = memory_grow(column->texts, column->num_rows, sizeof *column->texts);
        column->texts[column->num_rows++] = NULL;
    }
}

void list_columns_put(list_columns *to, const char *name, size_t row, const char *text, bool is_word)
{
    read_column *column = find_column(to, name);
    fill_up(column, row + 1);
    free(column->texts[row]);
    column->texts[row] = text && *text ? memory_copy(text) : NULL;
    column->has_words |= is_word && column->texts[row];
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* "007" is a name. */
static bool has_leading_zero(const char *text)
{
    text += *text == '-';
    return text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

static bool is_integer(const char *text, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *number = value;
    return *end == '\0' && errno == 0 && (*text == '-' || (*text >= '0' && *text <= '9')) && !has_leading_zero(text);
}

static bool is_real(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return *end == '\0' && strspn(text, "+-.0123456789eE") == strlen(text) && isfinite(*number) &&
           !has_leading_zero(text);
}

static weir_column_kind kind_of(const read_column *column)
{
    weir_column_kind kind = column->has_words ? WEIR_COLUMN_TEXT : WEIR_COLUMN_INTEGER;
    int64_t integer;
    double real;
    for (size_t row = 0; row < column->num_rows && kind != WEIR_COLUMN_TEXT; row++) {
        const char *text = column->texts[row];
        if (text && kind == WEIR_COLUMN_INTEGER && !is_integer(text, &integer))
            kind = WEIR_COLUMN_REAL;
        if (text && kind == WEIR_COLUMN_REAL && !is_real(text, &real))
            kind = WEIR_COLUMN_TEXT;
    }
    return kind;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static weir_column make_column(const read_column *from)
{
    weir_column_kind kind = kind_of(from);
    uint8_t *is_there = memory_get(from->num_rows, sizeof *is_there);
    int64_t *integers = memory_get(from->num_rows, sizeof *integers);
    double *reals = memory_get(from->num_rows, sizeof *reals);
    for (size_t row = 0; row < from->num_rows; row++) {
        const char *text = from->texts[row];
        is_there[row] = text != NULL;
        if (text && kind == WEIR_COLUMN_INTEGER)
            is_integer(text, &integers[row]);
        else if (text && kind == WEIR_COLUMN_REAL)
            is_real(text, &reals[row]);
    }
    return (weir_column){ .name = from->name,
                          .kind = kind,
                          .is_there = is_there,
                          .integers = integers,
                          .reals = reals,
                          .texts = (const char *const *)from->texts };
}

void list_columns_end(list_columns *to, size_t num_rows)
{
    to->columns = memory_get(to->num, sizeof *to->columns);
    for (size_t i = 0; i < to->num; i++) {
        fill_up(&to->read[i], num_rows);
        to->columns[i] = make_column(&to->read[i]);
    }
}

void list_columns_free(list_columns *columns)
{
    for (size_t i = 0; i < columns->num; i++) {
        for (size_t row = 0; row < columns->read[i].num_rows; row++)
            free(columns->read[i].texts[row]);
        free(columns->read[i].texts);
        free(columns->read[i].name);
        if (!columns->columns)
            continue;
        free((void *)(uintptr_t)columns->columns[i].is_there);
        free((void *)(uintptr_t)columns->columns[i].integers);
        free((void *)(uintptr_t)columns->columns[i].reals);
    }
    free(columns->read);
    free(columns->columns);
    *columns = (list_columns){ 0 };
}
