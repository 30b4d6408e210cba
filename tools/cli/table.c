#include "tools/cli/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/format.h"
#include "common/text_escape.h"
#include "common/text_fill.h"
#include "common/utf8.h"
#include "tools/cli/memory.h"
#include "tools/cli/tty.h"

enum {
    SCREENFUL = 200, /* rows that are aligned together */
    GAP = 2,
    LONG_WORDS = 24, /* a column of such words goes below the rows if the terminal is too narrow */
};

/* Where a column is written. */
typedef enum place {
    IN_ROW,
    IN_SENTENCE, /* above the rows of a screenful: the same in all of them */
    BELOW_ROW,
    NOWHERE, /* not for people, or empty in all rows */
} place;

struct table {
    FILE *out;
    table_format format;
    const table_column *columns;
    size_t num_columns;
    size_t column; /* of the next cell */
    size_t num_rows;

    /* text only */
    char **cells; /* of the rows that are not written yet, row by row; NULL = nothing */
    size_t num_cells;
    size_t *widths;
    place *places;
    size_t num_keys;
    bool has_few_keys; /* all of them would leave no room: only the first and the last are repeated */
    size_t limit;      /* columns of the terminal; 0 = none */
    bool coloured;
    bool titled;
};

/* -- JSON and CSV */

static void json_character(FILE *out, unsigned char c)
{
    if (c == '"' || c == '\\')
        fprintf(out, "\\%c", c);
    else if (c == '\n')
        fputs("\\n", out);
    else if (c == '\t')
        fputs("\\t", out);
    else if (c < 0x20 || c == 0x7f)
        fprintf(out, "\\u%04x", c);
    else
        fputc(c, out);
}

/* How many bytes need no escape. */
static size_t plain_length(const unsigned char *text)
{
    size_t length = 0;
    while (text[length] >= 0x20 && text[length] < 0x7f && text[length] != '"' && text[length] != '\\')
        length++;
    return length;
}

static void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t plain = plain_length(s), length = plain ? plain : weir__utf8_length((const char *)s);
        if (length == 0)
            fprintf(out, "\\\\x%02x", *s++); /* readers refuse a file with half a surrogate */
        else if (length == 1 && !plain)
            json_character(out, *s++);
        else {
            fwrite(s, 1, length, out);
            s += length;
        }
    }
    fputc('"', out);
}

/* A decimal form that reads back as the same number, almost always the shortest; "" if there is none. */
static void format_number(char text[40], double number)
{
    text[0] = '\0';
    if (!isfinite(number))
        return;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            return;
    }
}

/* The value of a conversion: its letters without the percent sign. */
static void json_value(FILE *out, const char *conversion, size_t length, va_list *values)
{
    char text[40];
    const char *words;
    bool is_long = conversion[0] == 'l', is_truth = conversion[0] == 'h';
    switch (conversion[length - 1]) {
    case 's':
        words = va_arg(*values, const char *);
        words ? json_string(out, words) : (void)fputs("null", out);
        break;
    case 'g':
        format_number(text, va_arg(*values, double));
        fputs(text[0] ? text : "null", out);
        break;
    case 'u': fprintf(out, "%" PRIu64, is_long ? va_arg(*values, uint64_t) : va_arg(*values, unsigned)); break;
    default: {
        int64_t number = is_long ? va_arg(*values, int64_t) : va_arg(*values, int);
        is_truth ? fputs(number ? "true" : "false", out) : fprintf(out, "%" PRId64, number);
    }
    }
}

void json_print(FILE *out, const char *template, ...)
{
    va_list values;
    va_start(values, template);
    for (const char *c = template; *c; c++)
        if (*c == '%') {
            size_t length = strspn(c + 1, "lh") + 1;
            json_value(out, c + 1, length, &values);
            c += length;
        } else
            fputc(*c == '\'' ? '"' : *c, out);
    va_end(values);
}

void csv_text(FILE *out, const char *text)
{
    bool is_quoted = text[strcspn(text, ",\"\r\n")];
    fputs(is_quoted ? "\"" : "", out);
    for (size_t length; *text; text += length ? length : 1) {
        length = weir__utf8_length(text);
        if (length == 0)
            fprintf(out, "\\x%02x", (unsigned char)*text); /* readers refuse a file with one byte that is not UTF-8 */
        else
            fwrite(*text == '"' ? "\"\"" : text, 1, *text == '"' ? 2 : length, out);
    }
    fputs(is_quoted ? "\"" : "", out);
}

static void csv_titles(table *t)
{
    for (size_t i = 0; i < t->num_columns; i++) {
        fputs(i ? "," : "", t->out);
        csv_text(t->out, t->columns[i].name);
    }
    fputs("\r\n", t->out);
}

/* The caller frees it. */
static char *in_one_line(const char *text)
{
    size_t size = 4 * strlen(text) + 1;
    char *line = memory_get(size, 1);
    weir__text_escape(text, line, size);
    return line;
}

void html_text(FILE *out, const char *text)
{
    char *clean = in_one_line(text);
    for (const char *c = clean; *c; c++)
        switch (*c) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        case '"': fputs("&quot;", out); break;
        default: fputc(*c, out);
        }
    free(clean);
}

static void html_titles(table *t)
{
    fputs("<div class=\"wide\"><table>\n<tr>", t->out);
    for (size_t i = 0; i < t->num_columns; i++)
        if (t->columns[i].title) {
            fputs(t->columns[i].kind == TABLE_WORDS ? "<th class=\"words\">" : "<th>", t->out);
            html_text(t->out, t->columns[i].title);
            fputs("</th>", t->out);
        }
    fputs("</tr>\n", t->out);
}

static void html_cell(table *t, const char *text)
{
    const table_column *column = &t->columns[t->column];
    if (t->column == 0)
        fputs("<tr>", t->out);
    if (!column->title)
        return;
    fputs(column->kind == TABLE_WORDS || column->kind == TABLE_VERDICT ? "<td class=\"words\">" : "<td>", t->out);
    html_text(t->out, text);
    fputs("</td>", t->out);
}

/* Writes what precedes a cell. */
static void open_cell(table *t)
{
    if (t->format == TABLE_CSV) {
        fputs(t->column ? "," : "", t->out);
        return;
    }
    if (t->column == 0)
        fputs(t->num_rows ? ",\n  {" : "\n  {", t->out);
    fputs(t->column ? ", " : "", t->out);
    json_string(t->out, t->columns[t->column].name);
    fputs(": ", t->out);
}

/* -- text */

/* The width of a text in terminal columns: one per character. */
static size_t width_of(const char *text)
{
    return weir__text_columns(text, strlen(text));
}

static void pad(FILE *out, size_t width)
{
    for (size_t i = 0; i < width; i++)
        fputc(' ', out);
}

static bool is_words(const table *t, size_t column)
{
    table_kind kind = t->columns[column].kind;
    return kind == TABLE_WORDS || kind == TABLE_VERDICT || kind == TABLE_PICTURE;
}

static bool is_in_row(const table *t, size_t column)
{
    return t->places[column] == IN_ROW;
}

static const char *colour_of(const char *cell)
{
    static const char *const bad[] = { "worse", "FAULT", "failed", "killed" }, *const good[] = { "better", "ok" };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (strcmp(cell, bad[i]) == 0)
            return "\033[31m";
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (strcmp(cell, good[i]) == 0)
            return "\033[32m";
    return "\033[33m";
}

/* The columns of a section: the keys, and those from `first` to before `end`. */
typedef struct section {
    size_t first, end;
} section;

static bool is_key(const table *t, size_t column)
{
    if (column >= t->num_keys || !t->has_few_keys)
        return column < t->num_keys;
    size_t first = 0, last = t->num_keys - 1;
    while (first < last && !is_in_row(t, first))
        first++;
    while (last > first && !is_in_row(t, last))
        last--;
    return column == first || column == last;
}

static bool is_in(const table *t, const section *s, size_t column)
{
    return is_in_row(t, column) && ((column >= s->first && column < s->end) || is_key(t, column));
}

/* The text of a row's cell, or, if cells is NULL, the title. */
static const char *cell_text(const table *t, char *const *cells, size_t column)
{
    return !cells ? t->columns[column].title : cells[column] ? cells[column] : "";
}

static void write_coloured(const table *t, size_t column, const char *cell, bool is_title)
{
    bool is_picture = t->columns[column].kind == TABLE_PICTURE;
    bool is_marked = t->coloured && (is_title || is_picture || t->columns[column].kind == TABLE_VERDICT);
    if (is_marked)
        fputs(is_title ? "\033[1m" : is_picture ? "\033[32m" : colour_of(cell), t->out);
    fputs(cell, t->out);
    fputs(is_marked ? "\033[0m" : "", t->out);
}

/* The cells that are too long for the row, or their titles. */
static void write_below(const table *t, char *const *cells)
{
    for (size_t i = 0; i < t->num_columns; i++) {
        const char *cell = cell_text(t, cells, i);
        if (t->places[i] != BELOW_ROW || (cells && !*cell))
            continue;
        pad(t->out, GAP);
        weir__text_fill(t->out, cell, cell + strlen(cell), GAP, GAP, t->limit);
    }
}

/* A row, or, if cells is NULL, the titles. */
static void write_line(table *t, const section *s, char *const *cells)
{
    size_t waiting = 0; /* spaces that are only written if something follows */
    for (size_t i = 0; i < t->num_columns; i++) {
        if (!is_in(t, s, i))
            continue;
        const char *cell = cell_text(t, cells, i);
        size_t width = width_of(cell), space = t->widths[i] > width ? t->widths[i] - width : 0;
        if (*cell) {
            pad(t->out, waiting + (is_words(t, i) ? 0 : space));
            write_coloured(t, i, cell, !cells);
            waiting = is_words(t, i) ? space : 0;
        } else
            waiting += space;
        waiting += GAP;
    }
    fputc('\n', t->out);
    if (s->first == 0)
        write_below(t, cells);
}

static void widen(table *t, char *const *cells)
{
    for (size_t i = 0; i < t->num_columns; i++) {
        size_t width = cells[i] ? width_of(cells[i]) : 0;
        t->widths[i] = width > t->widths[i] ? width : t->widths[i];
    }
}

static size_t width_of_columns(const table *t, const section *s)
{
    size_t width = 0;
    for (size_t i = 0; i < t->num_columns; i++)
        width += is_in(t, s, i) ? t->widths[i] + GAP : 0;
    return width > GAP ? width - GAP : 0;
}

/* Extends the section by the columns that fit; at least one. */
static void fill_section(table *t, section *s)
{
    bool has_any = false;
    for (s->end = s->first; s->end < t->num_columns; s->end++) {
        section wider = { s->first, s->end + 1 };
        if (has_any && t->limit && is_in_row(t, s->end) && width_of_columns(t, &wider) > t->limit)
            return;
        has_any |= is_in_row(t, s->end) && !is_key(t, s->end);
    }
}

static void write_sections(table *t)
{
    const section all = { 0, t->num_columns };
    if (t->limit && width_of_columns(t, &all) > t->limit)
        t->titled = false; /* each section has its own titles */
    for (section s = { 0, 0 }; s.first < t->num_columns; s.first = s.end) {
        fill_section(t, &s);
        if (s.first > 0)
            fputc('\n', t->out);
        if (!t->titled)
            write_line(t, &s, NULL);
        for (size_t i = 0; i < t->num_cells; i += t->num_columns)
            write_line(t, &s, t->cells + i);
    }
}

/* "run 1, stage decode, …": the cells of a row that are in one of these places. */
static void write_sentence(table *t, const char *start, char *const *cells, place where)
{
    char *text;
    size_t size;
    FILE *memory = memory_file_open(&text, &size);
    fputs(start, memory);
    for (size_t i = 0, count = 0; i < t->num_columns; i++)
        if ((t->places[i] == where || (where == IN_ROW && t->places[i] == BELOW_ROW)) && cells[i] && *cells[i])
            fprintf(memory, "%s%s%s%s", count++ ? ", " : "", t->columns[i].title, *t->columns[i].title ? " " : "",
                    cells[i]);
    memory_file_close(memory);
    if (strlen(text) > strlen(start))
        weir__text_fill(t->out, text, text + strlen(text), GAP, 0, t->limit);
    free(text);
}

/* How many rows have the same cell as the first one. */
static size_t count_same(const table *t, size_t column)
{
    size_t count = 0;
    const char *first = t->cells[column] ? t->cells[column] : "";
    for (size_t i = column; i < t->num_cells; i += t->num_columns)
        count += strcmp(t->cells[i] ? t->cells[i] : "", first) == 0;
    return count;
}

/* One key stays in the rows. is_alone: rows behind these need not have the same columns. */
static void place_columns(table *t, bool is_alone)
{
    size_t num_rows = t->num_cells / t->num_columns, key = 0, num_varied = 0;
    for (size_t i = 0; i < t->num_columns; i++) {
        const table_column *column = &t->columns[i];
        bool is_same = is_alone && column->title && count_same(t, i) == num_rows;
        bool is_empty = is_same && !(t->cells[i] && *t->cells[i]);
        bool is_reported = is_same && t->limit && num_rows > 1 && *t->columns->name && *column->title &&
                           column->kind != TABLE_VERDICT;
        t->places[i] = !column->title || is_empty ? NOWHERE : is_reported ? IN_SENTENCE : IN_ROW;
        key = i < t->num_keys && t->places[i] != NOWHERE ? i : key;
        num_varied += i < t->num_keys && is_in_row(t, i);
    }
    if (num_varied == 0 && t->places[key] == IN_SENTENCE)
        t->places[key] = IN_ROW;
}

/* Takes the longest words from the rows until these fit. */
static void place_long_words(table *t)
{
    const section all = { 0, t->num_columns }, keys = { 0, 0 };
    t->has_few_keys = false;
    while (width_of_columns(t, &all) > t->limit) {
        size_t longest = t->num_columns;
        for (size_t i = t->num_keys; i < t->num_columns; i++)
            if (is_in_row(t, i) && is_words(t, i) && t->widths[i] > LONG_WORDS &&
                (longest == t->num_columns || t->widths[i] > t->widths[longest]))
                longest = i;
        if (longest == t->num_columns)
            break;
        t->places[longest] = BELOW_ROW;
    }
    t->has_few_keys = width_of_columns(t, &keys) > t->limit / 2;
}

/* Whether a column does not fit beside the keys. */
static bool is_too_narrow(const table *t)
{
    for (size_t i = 0; i < t->num_columns; i++)
        if (is_in_row(t, i) && width_of_columns(t, &(section){ i, i + 1 }) > t->limit)
            return true;
    return false;
}

/* Whether two cells of times, one below the other, differ in milliseconds only. */
static bool needs_milliseconds(const table *t, size_t column)
{
    for (size_t i = column; i + t->num_columns < t->num_cells; i += t->num_columns) {
        const char *one = t->cells[i], *next = t->cells[i + t->num_columns];
        size_t length = one ? strcspn(one, ".") : 0;
        if (one && next && strncmp(one, next, length + 1) == 0 && strcmp(one, next) != 0)
            return true;
    }
    return false;
}

/* Milliseconds are left out, except in keys that would be the same without. */
static void shorten_times(table *t)
{
    for (size_t column = 0; column < t->num_columns; column++) {
        bool is_time = t->columns[column].kind == TABLE_WHEN;
        if (!is_time || (column < t->num_keys && needs_milliseconds(t, column)))
            continue;
        for (size_t i = column; i < t->num_cells; i += t->num_columns)
            if (t->cells[i])
                t->cells[i][strcspn(t->cells[i], ".")] = '\0';
    }
}

static void write_rows(table *t, bool is_last)
{
    if (t->num_cells == 0)
        return;
    shorten_times(t);
    bool has_all = is_last && !t->titled, is_one = has_all && t->num_cells == t->num_columns && *t->columns->name;
    if (t->limit && t->titled) { /* each screenful stands for itself */
        fputc('\n', t->out);
        t->titled = false;
    }
    place_columns(t, has_all || t->limit);
    for (size_t i = 0; i < t->num_columns; i++)
        t->widths[i] = t->columns[i].title ? width_of(t->columns[i].title) : 0;
    for (size_t i = 0; i < t->num_cells; i += t->num_columns)
        widen(t, t->cells + i);
    write_sentence(t, has_all ? "In all rows: " : "In these rows: ", t->cells, IN_SENTENCE);
    if (t->limit)
        place_long_words(t);
    if (t->limit && ((is_one && width_of_columns(t, &(section){ 0, t->num_columns }) > t->limit) || is_too_narrow(t)))
        for (size_t i = 0; i < t->num_cells; i += t->num_columns)
            write_sentence(t, "", t->cells + i, IN_ROW);
    else
        write_sections(t);
    t->titled = true;
    for (size_t i = 0; i < t->num_cells; i++)
        free(t->cells[i]);
    t->num_cells = 0;
}

static void format_when(char figure[WEIR_FORMAT_BYTES], double unix_time)
{
    time_t whole = (time_t)unix_time;
    struct tm local;
    size_t length = 0;
    if (fabs(unix_time) < 1e12 && localtime_r(&whole, &local))
        length = strftime(figure, WEIR_FORMAT_BYTES, "%Y-%m-%d %H:%M:%S", &local);
    if (length)
        snprintf(figure + length, WEIR_FORMAT_BYTES - length, ".%03.0f",
                 fmin(fabs(1000 * (unix_time - (double)whole)), 999));
    else
        snprintf(figure, WEIR_FORMAT_BYTES, "%.0f", unix_time);
}

static void format_figure(char figure[WEIR_FORMAT_BYTES], table_kind kind, double number)
{
    switch (kind) {
    case TABLE_TIME: tty_format_time(figure, number); break;
    case TABLE_BYTES: weir__text_format_bytes(figure, number); break;
    case TABLE_SHARE: snprintf(figure, WEIR_FORMAT_BYTES, "%.1f %%", 100 * number); break;
    case TABLE_CHANGE:
    case TABLE_POINTS: /* adding 0 makes -0 positive */
        snprintf(figure, WEIR_FORMAT_BYTES, "%+.1f%s", round(1000 * number) / 10 + 0.0,
                 kind == TABLE_CHANGE ? " %" : " points");
        break;
    case TABLE_WHEN: format_when(figure, number); break;
    case TABLE_TRUTH: snprintf(figure, WEIR_FORMAT_BYTES, "%s", number != 0 ? "yes" : "no"); break;
    case TABLE_COUNT: snprintf(figure, WEIR_FORMAT_BYTES, "%.0f", number); break;
    case TABLE_VALUE: snprintf(figure, WEIR_FORMAT_BYTES, "%.6g", number); break;
    case TABLE_REAL:
    case TABLE_VERDICT:
    case TABLE_PICTURE:
    case TABLE_WORDS: {
        bool fits = number == 0 || (fabs(number) >= 0.01 && fabs(number) < 1e12);
        snprintf(figure, WEIR_FORMAT_BYTES, fits ? "%.2f" : "%.3g", number);
        break;
    }
    }
}

/* -- the table */

static void free_table(table *t)
{
    free(t->cells);
    free(t->widths);
    free(t->places);
    free(t);
}

table *table_begin(FILE *out, table_format format, const table_column *columns, size_t num_columns)
{
    table *t = memory_get(1, sizeof *t);
    t->out = out;
    t->format = format;
    t->columns = columns;
    t->num_columns = num_columns;
    t->num_keys = 1;
    if (format == TABLE_TEXT) {
        t->cells = memory_get(SCREENFUL * num_columns, sizeof *t->cells);
        t->widths = memory_get(num_columns, sizeof *t->widths);
        t->places = memory_get(num_columns, sizeof *t->places);
    }
    t->limit = format == TABLE_TEXT ? (size_t)tty_width() : 0;
    t->coloured = format == TABLE_TEXT && out == stdout && tty_has_colours();
    if (format == TABLE_JSON)
        fputc('[', out);
    if (format == TABLE_CSV)
        csv_titles(t);
    if (format == TABLE_HTML)
        html_titles(t);
    return t;
}

void table_set_keys(table *t, size_t num_keys)
{
    t->num_keys = num_keys;
}

void table_set_coloured(table *t)
{
    t->coloured = true;
}

static void next_cell(table *t)
{
    if (++t->column < t->num_columns)
        return;
    t->column = 0;
    t->num_rows++;
    if (t->format == TABLE_TEXT) {
        if (t->num_cells == SCREENFUL * t->num_columns)
            write_rows(t, false);
    } else
        fputs(t->format == TABLE_JSON ? "}" : t->format == TABLE_CSV ? "\r\n" : "</tr>\n", t->out);
}

/* A cell that needs no escapes; NULL = nothing. */
static void put_plain(table *t, const char *text)
{
    if (t->format == TABLE_HTML)
        html_cell(t, text ? text : "");
    else if (t->format != TABLE_TEXT) {
        open_cell(t);
        fputs(text ? text : t->format == TABLE_JSON ? "null" : "", t->out);
    } else
        t->cells[t->num_cells++] = text ? memory_copy(text) : NULL;
    next_cell(t);
}

static bool is_for_people(const table *t)
{
    return t->format == TABLE_TEXT || t->format == TABLE_HTML;
}

void table_words(table *t, const char *text)
{
    if (t->format == TABLE_TEXT)
        t->cells[t->num_cells++] = in_one_line(text);
    else if (t->format == TABLE_HTML)
        html_cell(t, text);
    else {
        open_cell(t);
        (t->format == TABLE_JSON ? json_string : csv_text)(t->out, text);
    }
    next_cell(t);
}

void table_number_as(table *t, double number, table_kind kind)
{
    char text[40] = "";
    if (isfinite(number) && is_for_people(t))
        format_figure(text, kind, number);
    else
        format_number(text, number);
    put_plain(t, *text ? text : NULL);
}

void table_number(table *t, double number)
{
    table_number_as(t, number, t->columns[t->column].kind);
}

void table_count(table *t, int64_t count)
{
    char text[40];
    if (is_for_people(t) && t->columns[t->column].kind != TABLE_COUNT)
        format_figure(text, t->columns[t->column].kind, (double)count);
    else
        snprintf(text, sizeof text, "%" PRId64, count);
    put_plain(t, text);
}

void table_known(table *t, int64_t count)
{
    if (count)
        table_count(t, count);
    else
        table_nothing(t);
}

/* Seconds are stored as doubles, which hold Unix time to less than a microsecond: digits beyond that are omitted. */
void table_when(table *t, int64_t unix_ns)
{
    double seconds = round((double)unix_ns / 1e3) / 1e6;
    table_number(t, unix_ns ? seconds : NAN);
}

void table_duration(table *t, int64_t ns)
{
    table_number(t, ns < 0 ? NAN : (double)ns / 1e9);
}

void table_truth(table *t, bool truth)
{
    if (t->format == TABLE_JSON)
        put_plain(t, truth ? "true" : "false");
    else
        table_count(t, truth);
}

void table_nothing(table *t)
{
    put_plain(t, NULL);
}

size_t table_rows(const table *t)
{
    return t ? t->num_rows : 0;
}

void table_end(table *t)
{
    if (!t)
        return;
    if (t->format == TABLE_TEXT)
        write_rows(t, true);
    if (t->format == TABLE_JSON)
        fputs(t->num_rows ? "\n]" : "]", t->out);
    if (t->format == TABLE_HTML)
        fputs("</table></div>\n", t->out);
    free_table(t);
}

void table_end_alone(table *t)
{
    FILE *out = t && t->format == TABLE_JSON ? t->out : NULL;
    table_end(t);
    if (out)
        fputc('\n', out);
}
