#include "trace_totals.h"

#include <stdlib.h>
#include <string.h>

#include <weir/status.h>

#include "trace_reader.h"

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
    weir_trace_value name = weir_trace_member(weir_trace_member(event, "args").text, "name");
    for (size_t i = 0; i < totals->num_tracks; i++)
        if (totals->tracks[i].id == id)
            return;
    if (totals->num_tracks == TOTALS_MAX_TRACKS)
        abort();
    totals->tracks[totals->num_tracks].id = id;
    char *text = totals->tracks[totals->num_tracks++].name;
    weir_trace_value_string(name, text, TOTALS_NAME);
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

static void add_outcome(trace_total *total, weir_trace_value args)
{
    char outcome[64];
    weir_trace_value_string(weir_trace_member(args.text, "outcome"), outcome, sizeof outcome);
    bool flush = weir_trace_member(args.text, "flush").text;
    bool failed = strncmp(outcome, "WEIR_E", 6) == 0, skipped = strcmp(outcome, "skipped") == 0;
    bool done = strcmp(outcome, "ok") == 0 || strcmp(outcome, "kept") == 0 || skipped;
    total->num_tasks += failed || (done && !flush);
    total->num_failures += failed;
    total->num_skipped += skipped && !flush;
}

/* The time of a category; NULL = it is none of a slot's. */
static int64_t *sum_of(trace_total *total, weir_trace_value category)
{
    const struct {
        const char *category;
        int64_t *sum_ns;
    } sums[] = { { "busy", &total->busy_ns },
                 { "wait_in", &total->wait_in_ns },
                 { "wait_thread", &total->wait_thread_ns },
                 { "wait_turn", &total->wait_turn_ns },
                 { "wait_out", &total->wait_out_ns } };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        if (weir_trace_value_is(category, sums[i].category))
            return sums[i].sum_ns;
    return NULL;
}

static void begin_span(trace_totals *totals, const char *event, int64_t track, int64_t at_ns)
{
    if (totals->num_open == TOTALS_MAX_OPEN)
        abort();
    trace_total *total = total_named(totals, track_name(totals, track));
    int64_t *sum_ns = sum_of(total, weir_trace_member(event, "cat"));
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
    add_outcome(span.total, weir_trace_member(event, "args"));
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
    weir_trace_value items = weir_trace_member(weir_trace_member(event, "args").text, "items");
    if (!items.text)
        return;
    weir_trace_value_string(weir_trace_member(event, "name"), name, sizeof name);
    trace_total *total = total_named(totals, name);
    settle_level(total, at_ns);
    total->level = weir_trace_value_int(items);
    if (total->level > total->max_level)
        total->max_level = total->level;
}

static void add_event(trace_totals *totals, const char *event)
{
    char phase[8];
    int64_t at_ns = weir_trace_value_ns(weir_trace_member(event, "ts"));
    int64_t track = weir_trace_value_int(weir_trace_member(event, "tid"));
    weir_trace_value_string(weir_trace_member(event, "ph"), phase, sizeof phase);
    totals->num_events++;
    totals->num_lost += weir_trace_value_is(weir_trace_member(event, "cat"), "lost");
    if (*phase != 'M' && at_ns > totals->end_ns)
        totals->end_ns = at_ns;
    totals->num_labels += weir_trace_member(weir_trace_member(event, "args").text, "label").text != NULL;
    switch (*phase) {
    case 'M':
        if (weir_trace_value_is(weir_trace_member(event, "name"), "thread_name"))
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
    if (weir_trace_reader_open(path, &reader) != 0)
        return false;
    while ((event = weir_trace_reader_next(reader)))
        add_event(totals, event);
    totals->is_cut = weir_trace_reader_is_cut(reader);
    weir_trace_reader_close(reader);
    for (size_t i = 0; i < totals->num_totals; i++)
        settle_level(&totals->totals[i], totals->end_ns);
    return true;
}

/* ---- the format ---------------------------------------------------------------------------------------------- */

typedef struct checker {
    const char *at, *end;
    const char *mistake;
    bool is_array;
    int depth;
} checker;

static int peek(const checker *c)
{
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

static void skip_space(checker *c)
{
    while (c->at < c->end && *c->at && strchr(" \t\r\n", *c->at))
        c->at++;
}

static bool wrong(checker *c, const char *mistake)
{
    if (!c->mistake)
        c->mistake = mistake;
    return false;
}

static bool check_string(checker *c)
{
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        if ((unsigned char)*c->at < ' ')
            return wrong(c, "a control character in a string");
        if ((unsigned char)*c->at >= 0xf8)
            return wrong(c, "a byte that is not UTF-8");
        if (*c->at != '\\')
            continue;
        c->at++;
        if (peek(c) == 'u')
            for (int i = 0; i < 4; i++)
                if (++c->at >= c->end || !strchr("0123456789abcdefABCDEF", *c->at))
                    return wrong(c, "a \\u without four digits");
        if (peek(c) < 0 || !strchr("\"\\/bfnrtu0123456789abcdefABCDEF", *c->at))
            return wrong(c, "an unknown escape");
    }
    return c->at++ < c->end || wrong(c, "a string without an end");
}

static bool check_digits(checker *c)
{
    const char *begin = c->at;
    while (peek(c) >= '0' && peek(c) <= '9')
        c->at++;
    return c->at > begin || wrong(c, "a number without digits");
}

static bool check_number(checker *c)
{
    c->at += peek(c) == '-';
    if (peek(c) == '0' && c->at + 1 < c->end && c->at[1] >= '0' && c->at[1] <= '9')
        return wrong(c, "a number that begins with 0");
    if (!check_digits(c))
        return false;
    if (peek(c) == '.' && (c->at++, !check_digits(c)))
        return false;
    if (peek(c) != 'e' && peek(c) != 'E')
        return true;
    c->at++;
    c->at += peek(c) == '+' || peek(c) == '-';
    return check_digits(c);
}

static bool check_value(checker *c);

static bool check_members(checker *c, char end, bool has_keys)
{
    c->at++;
    skip_space(c);
    if (peek(c) == end)
        return c->at++, true;
    for (;;) {
        skip_space(c);
        if (has_keys) {
            if (peek(c) != '"' || !check_string(c))
                return wrong(c, "a member without a name");
            skip_space(c);
            if (peek(c) != ':')
                return wrong(c, "a member without a colon");
            c->at++;
        }
        if (!check_value(c))
            return false;
        skip_space(c);
        if (peek(c) == end)
            return c->at++, true;
        if (peek(c) != ',')
            return wrong(c, "a comma or an end is missing");
        c->at++;
    }
}

static bool check_word(checker *c)
{
    static const char *const words[] = { "true", "false", "null" };
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(c->end - c->at) >= length && strncmp(c->at, words[i], length) == 0)
            return c->at += length, true;
    }
    return wrong(c, "a value is missing");
}

static bool check_event(checker *c, const char *event)
{
    static const char phases[] = "MXCistfBEbenP";
    weir_trace_value phase = weir_trace_member(event, "ph"), at = weir_trace_member(event, "ts");
    if (!phase.text || phase.length != 3 || !strchr(phases, phase.text[1]))
        return wrong(c, "an event without a known phase");
    bool named = phase.text[1] == 'E' || weir_trace_member(event, "name").text;
    if (!named || !weir_trace_member(event, "pid").text || !weir_trace_member(event, "tid").text || !at.text)
        return wrong(c, "an event without name, pid, tid or ts");
    if (strchr("stfben", phase.text[1]) && !weir_trace_member(event, "id").text)
        return wrong(c, "an arrow or an asynchronous span without an id");
    return true;
}

static bool check_value(checker *c)
{
    skip_space(c);
    const char *begin = c->at;
    bool right;
    c->depth++;
    switch (peek(c)) {
    case '{': right = check_members(c, '}', true); break;
    case '[': right = check_members(c, ']', false); break;
    case '"': right = check_string(c); break;
    case 't':
    case 'f':
    case 'n': right = check_word(c); break;
    default: right = check_number(c);
    }
    if (right && c->depth == 2 && c->is_array)
        right = *begin == '{' ? check_event(c, begin) : wrong(c, "an element that is not an event");
    c->depth--;
    return right;
}

const char *trace_format_mistake(const char *text, size_t length)
{
    checker c = { .at = text, .end = text + length, .is_array = length > 0 && *text == '[' };
    if (check_value(&c) && !c.is_array)
        return "it is not an array";
    skip_space(&c);
    if (!c.mistake && c.at != c.end)
        return "there is something behind its end";
    return c.mistake;
}
