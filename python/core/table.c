#include "python/core/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most rows of a chunk, and the most text in one of its columns: offsets have 32 bits. */
enum { MAX_ROWS = 8192, MAX_TEXT_BYTES = 64 << 20 };

int weirpy_table_open(weirpy_table *table, const char *path, const weir_filter *filter, const char *sql)
{
    *table = (weirpy_table){ 0 };
    int status = weir_recording_open(path, &table->recording, &table->error);
    return status == WEIR_OK ? weir_rows_begin(table->recording, filter, sql, NULL, &table->rows, &table->error)
                             : status;
}

void weirpy_table_close(weirpy_table *table)
{
    weir_rows_end(table->rows);
    weir_recording_close(table->recording);
    table->rows = NULL;
    table->recording = NULL;
}

/* ---- the schema ----------------------------------------------------------------------------------------------------- */

static void release_schema(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct ArrowSchema *child = schema->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    free(schema->children);
    free(schema->private_data); /* the name */
    schema->release = NULL;
}

static bool fill_schema(struct ArrowSchema *schema, const char *format, const char *name, int64_t num_children)
{
    char *copy = strdup(name);
    *schema = (struct ArrowSchema){ .format = format,
                                    .name = copy,
                                    .flags = num_children ? 0 : ARROW_FLAG_NULLABLE,
                                    .n_children = num_children,
                                    .children =
                                        num_children ? calloc((size_t)num_children, sizeof *schema->children) : NULL,
                                    .release = release_schema,
                                    .private_data = copy };
    if (num_children && !schema->children)
        schema->n_children = 0;
    return copy && (num_children == 0 || schema->children);
}

int weirpy_table_schema(const weirpy_table *table, struct ArrowSchema *schema)
{
    static const char *const formats[] = {
        [WEIR_ROW_INT] = "l", [WEIR_ROW_REAL] = "g", [WEIR_ROW_TEXT] = "u", [WEIR_ROW_BYTES] = "n"
    };
    size_t count;
    const weir_row_column *columns = weir_rows_columns(table->rows, &count);
    bool is_made = fill_schema(schema, "+s", "", (int64_t)count);
    for (size_t i = 0; i < count && is_made; i++) {
        schema->children[i] = calloc(1, sizeof *schema->children[i]);
        is_made =
            schema->children[i] && fill_schema(schema->children[i], formats[columns[i].type], columns[i].name, 0);
    }
    if (!is_made)
        release_schema(schema);
    return is_made ? WEIR_OK : WEIR_ENOMEM;
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

/* An array, and room for it. The array of a column without a form has no buffers. */
typedef struct column {
    struct ArrowArray array; /* first: an array is its column */
    const void *buffers[3];
    uint8_t *valid;
    union {
        int64_t *whole;
        double *real;
        int32_t *offsets;
        void *values;
    };
    char *text;
    size_t text_bytes, text_room;
} column;

static void release_column(struct ArrowArray *array)
{
    column *of = array->private_data;
    free(of->valid);
    free(of->values);
    free(of->text);
    array->release = NULL;
    free(of);
}

static column *make_column(weir_row_type type)
{
    size_t value_bytes = type == WEIR_ROW_TEXT ? sizeof(int32_t) : sizeof(int64_t);
    column *of = calloc(1, sizeof *of);
    if (!of)
        return NULL;
    of->array.private_data = of;
    of->valid = calloc(MAX_ROWS / 8, 1);
    of->values = calloc(MAX_ROWS + 1, value_bytes);
    if (of->valid && of->values)
        return of;
    release_column(&of->array);
    return NULL;
}

/* The length of the UTF-8 character at text; 0 = it is none. */
static size_t character_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char mask, mark;
        uint32_t least;
    } forms[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };
    for (size_t length = 1; length <= 4; length++) {
        if ((text[0] & forms[length - 1].mask) != forms[length - 1].mark)
            continue;
        uint32_t code = text[0] & (unsigned char)~forms[length - 1].mask;
        for (size_t i = 1; i < length; i++) {
            if ((text[i] & 0xc0) != 0x80) /* also the NUL at the end */
                return 0;
            code = code << 6 | (text[i] & 0x3f);
        }
        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        return code >= forms[length - 1].least && code <= 0x10ffff && !is_surrogate ? length : 0;
    }
    return 0;
}

static bool make_room(column *of, size_t more)
{
    if (of->text_bytes + more <= of->text_room)
        return true;
    size_t room = 2 * of->text_room + more + 4096;
    char *grown = realloc(of->text, room);
    if (!grown)
        return false;
    of->text = grown;
    of->text_room = room;
    return true;
}

/* Each byte that belongs to no character becomes the text \xff, as in exports. */
static bool add_text(column *of, const char *text)
{
    enum { ESCAPED_BYTES = 4 };
    if (!make_room(of, ESCAPED_BYTES * strlen(text) + 1))
        return false;
    for (size_t bytes; *text; text += bytes) {
        bytes = character_bytes((const unsigned char *)text);
        if (bytes) {
            memcpy(of->text + of->text_bytes, text, bytes);
            of->text_bytes += bytes;
            continue;
        }
        snprintf(of->text + of->text_bytes, ESCAPED_BYTES + 1, "\\x%02x", (unsigned char)*text);
        of->text_bytes += ESCAPED_BYTES;
        bytes = 1;
    }
    return true;
}

static bool add_value(column *of, weir_row_type type, const weir_row *cell, int64_t at)
{
    if (cell->is_null || type == WEIR_ROW_BYTES)
        of->array.null_count++;
    else
        of->valid[at / 8] = (uint8_t)(of->valid[at / 8] | 1u << (at % 8));
    switch (type) {
    case WEIR_ROW_INT: of->whole[at] = cell->whole; break;
    case WEIR_ROW_REAL: of->real[at] = cell->is_null ? 0 : cell->real; break;
    case WEIR_ROW_TEXT:
        if (!cell->is_null && !add_text(of, cell->text))
            return false;
        of->offsets[at + 1] = (int32_t)of->text_bytes;
        break;
    case WEIR_ROW_BYTES: break;
    }
    of->array.length = at + 1;
    return true;
}

/* The array as others see it. Text must not be NULL, even if there is none. */
static bool finish_column(column *of, weir_row_type type)
{
    bool is_made = type != WEIR_ROW_TEXT || make_room(of, 1);
    of->buffers[0] = of->valid;
    of->buffers[1] = of->values;
    of->buffers[2] = of->text;
    of->array.n_buffers = type == WEIR_ROW_BYTES ? 0 : type == WEIR_ROW_TEXT ? 3 : 2;
    of->array.buffers = of->buffers;
    of->array.release = release_column;
    return is_made;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------------- */

static const void *no_buffers[1]; /* all rows are valid */

/* A consumer may have moved a child: it is marked as released here, and its column is freed by the consumer. The struct in
   `children` is a copy for that reason. */
static void release_chunk(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        if (child && child->release)
            child->release(child);
        free(child);
    }
    free(array->children);
    array->release = NULL;
}

static void free_columns(column **columns, size_t count)
{
    for (size_t i = 0; columns && i < count; i++)
        if (columns[i])
            release_column(&columns[i]->array);
    free(columns);
}

static column **make_columns(const weir_row_column *types, size_t count)
{
    column **columns = calloc(count + 1, sizeof *columns);
    for (size_t i = 0; columns && i < count; i++) {
        columns[i] = make_column(types[i].type);
        if (columns[i])
            continue;
        free_columns(columns, count);
        return NULL;
    }
    return columns;
}

/* The arrays, as children of the chunk. Columns that are passed on are NULL afterwards. */
static bool pass_on(column **columns, const weir_row_column *types, size_t count, int64_t length,
                    struct ArrowArray *array)
{
    *array = (struct ArrowArray){ .length = length,
                                  .n_buffers = 1,
                                  .n_children = (int64_t)count,
                                  .buffers = no_buffers,
                                  .children = calloc(count + 1, sizeof *array->children),
                                  .release = release_chunk };
    if (!array->children)
        array->n_children = 0;
    bool is_made = array->children;
    for (size_t i = 0; i < count && is_made; i++) {
        array->children[i] = malloc(sizeof *array->children[i]);
        is_made = array->children[i] && finish_column(columns[i], types[i].type);
        if (array->children[i])
            *array->children[i] = is_made ? columns[i]->array : (struct ArrowArray){ 0 };
        if (is_made)
            columns[i] = NULL;
    }
    if (!is_made)
        release_chunk(array);
    return is_made;
}

/* WEIR_OK, also if the rows end behind the first one. */
static int read_rows(weirpy_table *table, column **columns, const weir_row_column *types, size_t count,
                     int64_t *length)
{
    const weir_row *row;
    bool has_room = true;
    int status = WEIR_OK;
    for (*length = 0; has_room && *length < MAX_ROWS; ++*length) {
        status = weir_rows_next(table->rows, &row, &table->error);
        if (status != WEIR_OK)
            break;
        for (size_t i = 0; i < count; i++) {
            if (!add_value(columns[i], types[i].type, &row[i], *length))
                return weir_error_set(&table->error, WEIR_ENOMEM, 0, "out of memory");
            has_room &= columns[i]->text_bytes < MAX_TEXT_BYTES;
        }
    }
    return status == WEIR_EOF && *length ? WEIR_OK : status;
}

int weirpy_table_next(weirpy_table *table, struct ArrowArray *array)
{
    size_t count;
    int64_t length;
    const weir_row_column *types = weir_rows_columns(table->rows, &count);
    column **columns = make_columns(types, count);
    if (!columns)
        return weir_error_set(&table->error, WEIR_ENOMEM, 0, "out of memory");
    int status = read_rows(table, columns, types, count, &length);
    if (status == WEIR_OK && !pass_on(columns, types, count, length, array))
        status = weir_error_set(&table->error, WEIR_ENOMEM, 0, "out of memory");
    free_columns(columns, count);
    return status;
}

/* ---- the stream ------------------------------------------------------------------------------------------------------ */

static int code_of(int status)
{
    return status == WEIR_OK ? 0 : status == WEIR_ENOMEM ? ENOMEM : EIO;
}

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    return code_of(weirpy_table_schema(stream->private_data, schema));
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    *array = (struct ArrowArray){ 0 }; /* released: the end */
    int status = weirpy_table_next(stream->private_data, array);
    return status == WEIR_EOF ? 0 : code_of(status);
}

static const char *stream_error(struct ArrowArrayStream *stream)
{
    const weirpy_table *table = stream->private_data;
    return *table->error.message ? table->error.message : NULL;
}

static void stream_release(struct ArrowArrayStream *stream)
{
    weirpy_table_close(stream->private_data);
    free(stream->private_data);
    stream->release = NULL;
}

int weirpy_table_stream(weirpy_table *table, struct ArrowArrayStream *stream)
{
    weirpy_table *kept = malloc(sizeof *kept);
    if (!kept)
        return WEIR_ENOMEM;
    *kept = *table;
    *table = (weirpy_table){ 0 };
    *stream = (struct ArrowArrayStream){ .get_schema = stream_schema,
                                         .get_next = stream_next,
                                         .get_last_error = stream_error,
                                         .release = stream_release,
                                         .private_data = kept };
    return WEIR_OK;
}
