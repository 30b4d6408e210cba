#include "tests/trace_totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include <weir/status.h>

#include "stats/export/trace_reader.h"

/* ---- values -------------------------------------------------------------------------------------------------- */

/* A value in the text of an event. */
typedef struct json_value {
    const char *text; /* NULL = there is none */
    size_t length;
} json_value;

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_space(const char *text)
{
    while (is_space((unsigned char)*text))
        text++;
    return text;
}

static const char *skip_string(const char *text)
{
    for (text++; *text && *text != '"'; text++)
        text += *text == '\\' && text[1];
    return *text ? text + 1 : text;
}

static const char *skip_value(const char *text)
{
    int depth = 0;
    do {
        if (*text == '"') {
            text = skip_string(text);
            continue;
        }
        depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
        text++;
    } while (*text && (depth > 0 || !strchr(",}]", *text)));
    return text;
}

static json_value member_of(const char *object, const char *key)
{
    size_t length = strlen(key);
    const char *text = object ? skip_space(object) : "";
    text += *text == '{';
    while (*(text = skip_space(text)) == '"') {
        const char *name = text + 1;
        text = skip_space(skip_string(text));
        bool found = strncmp(name, key, length) == 0 && name[length] == '"';
        text = skip_space(text + (*text == ':'));
        const char *end = skip_value(text);
        if (found)
            return (json_value){ text, (size_t)(end - text) };
        text = skip_space(end);
        text += *text == ',';
    }
    return (json_value){ 0 };
}

static int64_t value_ns(json_value value)
{
    const int64_t limit = INT64_MAX / 4;
    char *end;
    if (!value.text)
        return 0;
    int64_t us = strtoll(value.text, &end, 10), ns = 0, unit = 100;
    bool negative = *value.text == '-';
    if (*end == '.')
        for (end++; *end >= '0' && *end <= '9'; end++, unit /= 10)
            ns += (*end - '0') * unit;
    if (*end == 'e' || *end == 'E') {
        double real_ns = strtod(value.text, NULL) * 1000;
        return real_ns > -(double)limit && real_ns < (double)limit ? (int64_t)real_ns : 0;
    }
    return us < limit / 1000 && us > -limit / 1000 ? us * 1000 + (negative ? -ns : ns) : 0;
}

static int64_t value_int(json_value value)
{
    return value.text ? strtoll(value.text + (*value.text == '"'), NULL, 10) : 0;
}

static const char *value_string(json_value value, char *text, size_t size)
{
    size_t length = 0;
    for (size_t i = 1; value.text && *value.text == '"' && i + 1 < value.length && length + 1 < size; i++) {
        char c = value.text[i];
        if (c == '\\' && ++i + 1 < value.length) {
            const char *found = strchr("n\nt\tr\rb\bf\f", value.text[i]);
            c = found ? found[1] : value.text[i];
            if (c == 'u') { /* written for control characters only */
                c = '?';
                i += 4;
            }
        }
        text[length++] = c;
    }
    text[length] = '\0';
    return text;
}

static bool value_is(json_value value, const char *string)
{
    size_t length = strlen(string);
    return value.text && value.length == length + 2 && value.text[0] == '"' &&
           strncmp(value.text + 1, string, length) == 0;
}

/* ---- totals -------------------------------------------------------------------------------------------------- */

static trace_total *total_named(trace_totals *totals, const char *name)
{
    for (size_t i = 0; i < totals->num_totals; i++)
        if (strcmp(totals->totals[i].name, name) == 0)
            return &totals->totals[i];
    if (totals->num_totals == TOTALS_MAX_TRACKS)
        abort();
    trace_total *added = &totals->totals[totals->num_totals++];
    strncpy(added->name, name, TOTALS_NAME - 1);
    return added;
}

const trace_total *trace_totals_of(const trace_totals *totals, const char *name)
{
    static const trace_total none;
    for (size_t i = 0; i < totals->num_totals; i++)
        if (strcmp(totals->totals[i].name, name) == 0)
            return &totals->totals[i];
    return &none;
}

static void learn_track(trace_totals *totals, const char *event, int64_t id)
{
    json_value name = member_of(member_of(event, "args").text, "name");
    for (size_t i = 0; i < totals->num_tracks; i++)
        if (totals->tracks[i].id == id)
            return;
    if (totals->num_tracks == TOTALS_MAX_TRACKS)
        abort();
    totals->tracks[totals->num_tracks].id = id;
    char *text = totals->tracks[totals->num_tracks++].name;
    value_string(name, text, TOTALS_NAME);
    if (strstr(text, " #"))
        *strstr(text, " #") = '\0';
    if (strstr(text, " waits"))
        *strstr(text, " waits") = '\0';
}

static const char *track_name(const trace_totals *totals, int64_t id)
{
    for (size_t i = 0; i < totals->num_tracks; i++)
        if (totals->tracks[i].id == id)
            return totals->tracks[i].name;
    return "";
}

static void add_outcome(trace_total *total, json_value args)
{
    char outcome[64];
    value_string(member_of(args.text, "outcome"), outcome, sizeof outcome);
    bool flush = member_of(args.text, "flush").text;
    bool failed = strncmp(outcome, "WEIR_E", 6) == 0, skipped = strcmp(outcome, "skipped") == 0;
    bool done = strcmp(outcome, "ok") == 0 || strcmp(outcome, "kept") == 0 || skipped;
    total->num_tasks += failed || (done && !flush);
    total->num_failures += failed;
    total->num_skipped += skipped && !flush;
}

/* The time of a category; NULL = it is none of a slot's. */
static int64_t *sum_of(trace_total *total, json_value category)
{
    const struct {
        const char *category;
        int64_t *sum_ns;
    } sums[] = { { "busy", &total->busy_ns },
                 { "wait_in", &total->wait_in_ns },
                 { "wait_thread", &total->wait_thread_ns },
                 { "ended", &total->ended_ns },
                 { "wait_turn", &total->wait_turn_ns },
                 { "wait_out", &total->wait_out_ns } };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        if (value_is(category, sums[i].category))
            return sums[i].sum_ns;
    return NULL;
}

static void begin_span(trace_totals *totals, const char *event, int64_t track, int64_t at_ns)
{
    if (totals->num_open == TOTALS_MAX_OPEN)
        abort();
    trace_total *total = total_named(totals, track_name(totals, track));
    int64_t *sum_ns = sum_of(total, member_of(event, "cat"));
    totals->open[totals->num_open++] = (trace_open){ track, at_ns, 0, total, sum_ns };
}

/* Adds the time that is not in inner spans. An end without a beginning is ignored, as viewers do. */
static void end_span(trace_totals *totals, const char *event, int64_t track, int64_t at_ns)
{
    size_t place = totals->num_open;
    while (place > 0 && totals->open[place - 1].track != track)
        place--;
    if (place-- == 0)
        return;
    trace_open span = totals->open[place];
    totals->num_open--;
    memmove(&totals->open[place], &totals->open[place + 1], (totals->num_open - place) * sizeof span);
    if (span.sum_ns)
        *span.sum_ns += at_ns - span.begin_ns - span.inner_ns;
    add_outcome(span.total, member_of(event, "args"));
    while (place > 0 && totals->open[place - 1].track != track)
        place--;
    if (place > 0)
        totals->open[place - 1].inner_ns += at_ns - span.begin_ns;
}

static void settle_level(trace_total *total, int64_t now_ns)
{
    if (total->level > 0) {
        total->occupied_ns += now_ns - total->level_since_ns;
        total->depth_ns += (double)(now_ns - total->level_since_ns) * (double)total->level;
    }
    total->level_since_ns = now_ns;
}

static void add_level(trace_totals *totals, const char *event, int64_t at_ns)
{
    char name[TOTALS_NAME];
    json_value items = member_of(member_of(event, "args").text, "items");
    if (!items.text)
        return;
    value_string(member_of(event, "name"), name, sizeof name);
    trace_total *total = total_named(totals, name);
    settle_level(total, at_ns);
    total->level = value_int(items);
    if (total->level > total->max_level)
        total->max_level = total->level;
}

static void add_event(trace_totals *totals, const char *event)
{
    char phase[8];
    int64_t at_ns = value_ns(member_of(event, "ts"));
    int64_t track = value_int(member_of(event, "tid"));
    value_string(member_of(event, "ph"), phase, sizeof phase);
    totals->num_events++;
    totals->num_lost += value_is(member_of(event, "cat"), "lost");
    if (*phase != 'M' && at_ns > totals->end_ns)
        totals->end_ns = at_ns;
    totals->num_labels += member_of(member_of(event, "args").text, "label").text != NULL;
    switch (*phase) {
    case 'M':
        if (value_is(member_of(event, "name"), "thread_name"))
            learn_track(totals, event, track);
        break;
    case 'B': begin_span(totals, event, track, at_ns); break;
    case 'E': end_span(totals, event, track, at_ns); break;
    case 'C': add_level(totals, event, at_ns); break;
    case 's': totals->num_flow_begins++; break;
    case 'f': totals->num_flow_ends++; break;
    default: break;
    }
}

bool trace_totals_read(const char *path, trace_totals *totals)
{
    weir_trace_reader *reader;
    const char *event;
    memset(totals, 0, sizeof *totals);
    if (weir__trace_reader_open(path, &reader) != 0)
        return false;
    while ((event = weir__trace_reader_next(reader)))
        add_event(totals, event);
    totals->is_cut = weir__trace_reader_is_cut(reader);
    weir__trace_reader_close(reader);
    for (size_t i = 0; i < totals->num_totals; i++)
        settle_level(&totals->totals[i], totals->end_ns);
    return true;
}

/* ---- the format ---------------------------------------------------------------------------------------------- */

/* SQLite checks the JSON; an event without a known phase, or without what its phase needs, is named. */
static const char check_sql[] =
    "SELECT CASE WHEN NOT json_valid(?1) THEN 'it is not JSON' WHEN json_type(?1) <> 'array' THEN 'it is not an "
    "array'"
    " ELSE (SELECT 'not an event: ' || value FROM json_each(?1) WHERE type <> 'object' OR"
    "   coalesce(instr('MBEbeXCistfnP', value->>'ph'), 0) = 0 OR value->>'pid' IS NULL OR value->>'tid' IS NULL OR"
    "   value->>'ts' IS NULL OR (value->>'name' IS NULL AND value->>'ph' <> 'E') OR"
    "   (value->>'id' IS NULL AND instr('stfben', value->>'ph') > 0) LIMIT 1) END";

const char *trace_format_mistake(const char *text, size_t length)
{
    static char mistake[400];
    sqlite3 *db;
    sqlite3_stmt *row;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0xf8)
            return "a byte that is not UTF-8";
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_prepare_v2(db, check_sql, -1, &row, NULL) != SQLITE_OK)
        abort();
    sqlite3_bind_text(row, 1, text, (int)length, SQLITE_STATIC);
    if (sqlite3_step(row) != SQLITE_ROW)
        abort();
    const char *found = (const char *)sqlite3_column_text(row, 0);
    snprintf(mistake, sizeof mistake, "%s", found ? found : "");
    sqlite3_finalize(row);
    sqlite3_close(db);
    return *mistake ? mistake : NULL;
}
