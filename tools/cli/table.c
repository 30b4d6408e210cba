#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format.h"
#include "memory.h"
#include "text_escape.h"
#include "tty.h"
#include "utf8.h"

enum {
    SCREENFUL = 200, /* rows that are aligned together */
    GAP = 2,
    SHORTEST_WORDS = 24, /* words are not cut shorter, unless the terminal is too narrow */
};

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
    bool *hidden; /* columns that are empty in all rows; only known if the table fits the screen */
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

void json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t plain = plain_length(s), length = plain ? plain : weir__utf8_length((const char *)s);
        if (length == 0)
            fprintf(out, "\\udc%02x", *s++);
        else if (length == 1 && !plain)
            json_character(out, *s++);
        else {
            fwrite(s, 1, length, out);
            s += length;
        }
    }
    fputc('"', out);
}

void json_string_or_null(FILE *out, const char *text)
{
    if (text)
        json_string(out, text);
    else
        fputs("null", out);
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

void json_number(FILE *out, double number)
{
    char text[40];
    format_number(text, number);
    fputs(text[0] ? text : "null", out);
}

void csv_text(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
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

/* Its width in terminal columns: one per character. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void pad(FILE *out, size_t width)
{
    for (size_t i = 0; i < width; i++)
        fputc(' ', out);
}

static bool is_words(const table *t, size_t column)
{
    return t->columns[column].kind == TABLE_WORDS || t->columns[column].kind == TABLE_VERDICT;
}

static bool is_shown(const table *t, size_t column)
{
    return t->columns[column].title && !t->hidden[column];
}

/* The position after `count` characters. */
static const char *skip_characters(const char *text, size_t count)
{
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80 && count-- == 0)
            break;
    return text;
}

/* A cell that is too wide keeps its start; a path keeps its end. */
static void put_cut(FILE *out, const char *cell, size_t width)
{
    size_t whole = width_of(cell);
    const char *mark = tty_has_utf8() ? "…" : "~";
    if (whole <= width)
        fputs(cell, out);
    else if (strchr(cell, '/'))
        fprintf(out, "%s%s", mark, skip_characters(cell, whole - width + 1));
    else
        fprintf(out, "%.*s%s", (int)(skip_characters(cell, width - 1) - cell), cell, mark);
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
    return column < t->num_keys && (!t->has_few_keys || column == 0 || column + 1 == t->num_keys);
}

static bool is_in(const table *t, const section *s, size_t column)
{
    return is_shown(t, column) && ((column >= s->first && column < s->end) || is_key(t, column));
}

/* A row, or, if cells is NULL, the titles. */
static void write_line(table *t, const section *s, char *const *cells)
{
    bool is_title = !cells;
    size_t waiting = 0; /* spaces that are only written if something follows */
    for (size_t i = 0; i < t->num_columns; i++) {
        if (!is_in(t, s, i))
            continue;
        const char *cell = is_title ? t->columns[i].title : cells[i] ? cells[i] : "";
        size_t width = width_of(cell), space = t->widths[i] > width ? t->widths[i] - width : 0;
        if (*cell) {
            bool is_marked = t->coloured && (is_title || t->columns[i].kind == TABLE_VERDICT);
            pad(t->out, waiting + (is_words(t, i) ? 0 : space));
            if (is_marked)
                fputs(is_title ? "\033[1m" : colour_of(cell), t->out);
            put_cut(t->out, cell, t->widths[i]);
            fputs(is_marked ? "\033[0m" : "", t->out);
            waiting = is_words(t, i) ? space : 0;
        } else
            waiting += space;
        waiting += GAP;
    }
    fputc('\n', t->out);
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

/* Shortens the widest words until all columns fit, or no words are longer than SHORTEST_WORDS. */
static void shorten_words(table *t, const section *s, size_t shortest)
{
    for (size_t width; (width = width_of_columns(t, s)) > t->limit;) {
        size_t widest = t->num_columns;
        for (size_t i = 0; i < t->num_columns; i++)
            if (is_in(t, s, i) && is_words(t, i) && t->widths[i] > shortest &&
                (widest == t->num_columns || t->widths[i] > t->widths[widest]))
                widest = i;
        if (widest == t->num_columns)
            return;
        size_t excess = width - t->limit, spare = t->widths[widest] - shortest;
        t->widths[widest] -= excess < spare ? excess : spare;
    }
}

/* Extends the section by the columns that fit; at least one. */
static void fill_section(table *t, section *s)
{
    bool has_any = false;
    for (s->end = s->first; s->end < t->num_columns; s->end++) {
        section wider = { s->first, s->end + 1 };
        if (has_any && t->limit && is_shown(t, s->end) && width_of_columns(t, &wider) > t->limit)
            return;
        has_any |= is_shown(t, s->end) && !is_key(t, s->end);
    }
}

static void write_section(table *t, const section *s, bool with_titles)
{
    if (with_titles)
        write_line(t, s, NULL);
    for (size_t i = 0; i < t->num_cells; i += t->num_columns)
        write_line(t, s, t->cells + i);
}

static void write_sections(table *t)
{
    section all = { 0, t->num_columns };
    if (t->limit) {
        shorten_words(t, &all, SHORTEST_WORDS);
        if (width_of_columns(t, &all) > t->limit)
            t->titled = false; /* each section has its own titles */
        t->has_few_keys = width_of_columns(t, &(section){ 0, 0 }) > t->limit / 2;
    }
    for (section s = { 0, 0 }; s.first < t->num_columns; s.first = s.end) {
        fill_section(t, &s);
        if (s.first > 0)
            fputc('\n', t->out);
        if (t->limit)
            shorten_words(t, &s, 8);
        write_section(t, &s, !t->titled);
    }
}

static void hide_empty_columns(table *t)
{
    for (size_t i = 0; i < t->num_columns; i++) {
        size_t cell = i;
        while (cell < t->num_cells && (!t->cells[cell] || !*t->cells[cell]))
            cell += t->num_columns;
        t->hidden[i] = cell >= t->num_cells;
    }
}

static void write_rows(table *t, bool is_last)
{
    if (t->num_cells == 0)
        return;
    if (is_last && !t->titled)
        hide_empty_columns(t);
    for (size_t i = 0; i < t->num_columns; i++)
        t->widths[i] = t->columns[i].title ? width_of(t->columns[i].title) : 0;
    for (size_t i = 0; i < t->num_cells; i += t->num_columns)
        widen(t, t->cells + i);
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
    if (!(fabs(unix_time) < 1e12) || !localtime_r(&whole, &local) ||
        !strftime(figure, WEIR_FORMAT_BYTES, "%Y-%m-%d %H:%M:%S", &local))
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
    free(t->hidden);
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
        t->hidden = memory_get(num_columns, sizeof *t->hidden);
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
