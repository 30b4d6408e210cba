/* weir trace: what a trace contains, in the terminal; and merging traces. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(message) (fputs("weir trace: out of memory\n", stderr), exit(TOOL_FAILED))
#include <uthash.h>

#include <weir/escape.h>
#include <weir/trace_file.h>

#include "array.h"
#include "command_table.h"
#include "output_file.h"
#include "trace_reader.h"
#include "trace_text.h"

enum { NAME = 192, MAX_TOP = 1000 };

static struct settings {
    int64_t top, items;
    bool json, force;
    const char *output;
} settings = { .top = 10, .items = 3 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("top", top, option_count), .argument = "N", .max = MAX_TOP,
      .help = "print the N longest spans (default 10)" },
    { ROW("items", items, option_count), .argument = "N", .max = MAX_TOP,
      .help = "print where the time of the N slowest items went (default 3)" },
    { ROW("output", output, option_file), .letter = 'o', .argument = "FILE", .excludes = "top items json",
      .help = "merge the traces into this file instead; with .gz at the end, compressed" },
    { ROW("force", force, option_flag), .needs = "output", .help = OUTPUT_FORCE_HELP },
    { ROW("json", json, option_flag), .help = "print JSON" },
    { 0 },
};

/* ---- what is read -------------------------------------------------------------------------------------------- */

typedef struct track_key {
    int64_t pid, tid;
} track_key;

/* The states of a slot, by category. */
static const char *const categories[] = { "busy", "wait_in", "wait_thread", "wait_turn", "wait_out" };
enum { BUSY, WAIT_IN, WAIT_THREAD, WAIT_TURN, WAIT_OUT, NUM_CATEGORIES };

typedef struct outer_span {
    int64_t begin_ns, end_ns;
} outer_span;

typedef struct track {
    track_key key;
    char name[NAME];
    int64_t time_ns[NUM_CATEGORIES];
    int64_t begin_ns, end_ns; /* of all spans */
    int64_t num_spans;        /* busy ones, or others on tracks that are not slots' */
    int64_t longest_ns, busy_end_ns, longest_gap_ns;
    outer_span *outer; /* of the spans in no category: those that are not inside of others */
    size_t num_outer;
    UT_hash_handle hh;
} track;

typedef struct item_key {
    int64_t pid, source, epoch, seq;
} item_key;

typedef struct item {
    item_key key;
    int64_t begin_ns, end_ns;
    UT_hash_handle hh;
} item;

/* A span that has begun and not ended. The hash has the innermost one of a thread, or of an asynchronous id. */
typedef struct begun {
    struct begun_key {
        int64_t pid, of; /* the thread, or the hash of category and id */
        int64_t is_async;
    } key;
    struct begun *outer;
    UT_hash_handle hh;
    char text[]; /* the event */
} begun;

/* A span to print. */
typedef struct span {
    int64_t begin_ns, duration_ns, pid;
    bool has_item;
    item_key key;
    char track[NAME], what[NAME], label[NAME];
} span;

typedef struct view {
    track *tracks;
    item *items;
    span *longest; /* settings.top of them, sorted */
    size_t num_longest;
    item **slowest;
    size_t num_slowest;
    span *path; /* of the slowest items */
    size_t num_path;
    int64_t begin_ns, end_ns;
    uint64_t num_events, num_lost, num_failures, num_stalls, num_processes;
    bool has_time, is_cut, no_memory;
    begun *begun;
} view;

/* One event. */
typedef struct event {
    const char *text;
    char phase;
    track_key key;
    int64_t at_ns, duration_ns;
    weir_trace_value name, category, args, id;
} event;

static event parse(const char *text)
{
    weir_trace_value phase = weir_trace_member(text, "ph");
    int64_t duration_ns = weir_trace_value_ns(weir_trace_member(text, "dur"));
    return (event){
        .text = text,
        .phase = phase.length == 3 ? phase.text[1] : '\0',
        .key = { weir_trace_value_int(weir_trace_member(text, "pid")),
                 weir_trace_value_int(weir_trace_member(text, "tid")) },
        .at_ns = weir_trace_value_ns(weir_trace_member(text, "ts")),
        .duration_ns = duration_ns > 0 ? duration_ns : 0,
        .name = weir_trace_member(text, "name"),
        .category = weir_trace_member(text, "cat"),
        .args = weir_trace_member(text, "args"),
        .id = weir_trace_member(text, "id"),
    };
}

/* The thread id under which the name of a process is kept. */
#define PROCESS INT64_MIN

static track *find_track(view *v, const track_key *key)
{
    track *found;
    HASH_FIND(hh, v->tracks, key, sizeof *key, found);
    if (found)
        return found;
    found = calloc(1, sizeof *found);
    v->no_memory |= !found;
    if (!found)
        return NULL;
    found->key = *key;
    snprintf(found->name, sizeof found->name, "thread %" PRId64, key->tid);
    HASH_ADD(hh, v->tracks, key, sizeof *key, found);
    return found;
}

static bool item_of(const event *e, item_key *key)
{
    weir_trace_value seq = e->args.text ? weir_trace_member(e->args.text, "seq") : (weir_trace_value){ 0 };
    if (!seq.text)
        return false;
    *key = (item_key){ e->key.pid, weir_trace_value_int(weir_trace_member(e->args.text, "source")),
                       weir_trace_value_int(weir_trace_member(e->args.text, "epoch")), weir_trace_value_int(seq) };
    return true;
}

static void fill_span(span *s, const event *e, const track *on)
{
    *s = (span){ .begin_ns = e->at_ns, .duration_ns = e->duration_ns, .pid = e->key.pid };
    s->has_item = item_of(e, &s->key);
    memcpy(s->track, on->name, sizeof s->track);
    weir_trace_value_string(e->name, s->what, sizeof s->what);
    if (e->args.text)
        weir_trace_value_string(weir_trace_member(e->args.text, "label"), s->label, sizeof s->label);
}

static void add_longest(view *v, const event *e, const track *on)
{
    size_t place = v->num_longest, most = (size_t)settings.top;
    while (place > 0 && v->longest[place - 1].duration_ns < e->duration_ns)
        place--;
    if (place == most)
        return;
    v->num_longest += v->num_longest < most;
    memmove(v->longest + place + 1, v->longest + place, (v->num_longest - place - 1) * sizeof *v->longest);
    fill_span(&v->longest[place], e, on);
}

static void add_item(view *v, const event *e)
{
    item_key key;
    item *found;
    if (weir_trace_value_is(e->category, "consumer") || !item_of(e, &key))
        return;
    HASH_FIND(hh, v->items, &key, sizeof key, found);
    if (!found) {
        found = calloc(1, sizeof *found);
        v->no_memory |= !found;
        if (!found)
            return;
        found->key = key;
        found->begin_ns = e->at_ns;
        HASH_ADD(hh, v->items, key, sizeof key, found);
    }
    if (e->at_ns < found->begin_ns)
        found->begin_ns = e->at_ns;
    if (e->at_ns + e->duration_ns > found->end_ns)
        found->end_ns = e->at_ns + e->duration_ns;
}

static void add_time(int64_t *time_ns, int64_t more_ns)
{
    if (__builtin_add_overflow(*time_ns, more_ns, time_ns))
        *time_ns = INT64_MAX;
}

/* Spans in no category are nested; inner ones come first in traces of weir, later in others. */
static void add_outer(view *v, track *on, const event *e)
{
    int64_t end_ns = e->at_ns + e->duration_ns;
    size_t num_outer = on->num_outer;
    if (num_outer && on->outer[num_outer - 1].begin_ns <= e->at_ns && end_ns <= on->outer[num_outer - 1].end_ns)
        return;
    while (num_outer && on->outer[num_outer - 1].begin_ns >= e->at_ns)
        num_outer--;
    on->num_outer = num_outer;
    outer_span *grown = weir_array_grow(on->outer, on->num_outer, sizeof *grown);
    v->no_memory |= !grown;
    if (!grown)
        return;
    on->outer = grown;
    on->outer[on->num_outer++] = (outer_span){ e->at_ns, end_ns };
}

static int64_t busy_ns_of(const track *on)
{
    int64_t busy_ns = on->time_ns[BUSY];
    for (size_t i = 0; i < on->num_outer; i++)
        add_time(&busy_ns, on->outer[i].end_ns - on->outer[i].begin_ns);
    return busy_ns;
}

static void add_span(view *v, const event *e)
{
    track *on = find_track(v, &e->key);
    int64_t end_ns = e->at_ns + e->duration_ns;
    int category = 0;
    if (!on)
        return;
    while (category < NUM_CATEGORIES && !weir_trace_value_is(e->category, categories[category]))
        category++;
    if (category < NUM_CATEGORIES)
        add_time(&on->time_ns[category], e->duration_ns);
    else
        add_outer(v, on, e);
    on->begin_ns = !on->end_ns || e->at_ns < on->begin_ns ? e->at_ns : on->begin_ns;
    on->end_ns = end_ns > on->end_ns ? end_ns : on->end_ns;
    add_item(v, e);
    if (category != BUSY && category < NUM_CATEGORIES)
        return;
    on->num_spans++;
    if (e->duration_ns > on->longest_ns)
        on->longest_ns = e->duration_ns;
    if (on->busy_end_ns && e->at_ns - on->busy_end_ns > on->longest_gap_ns)
        on->longest_gap_ns = e->at_ns - on->busy_end_ns;
    on->busy_end_ns = end_ns > on->busy_end_ns ? end_ns : on->busy_end_ns;
    if (category == BUSY || !weir_trace_value_is(e->category, "phase"))
        add_longest(v, e, on);
}

static struct begun_key begun_key_of(const event *e)
{
    bool is_async = e->phase == 'b' || e->phase == 'e';
    uint64_t hash = weir_trace_hash(e->category.text, e->category.length, 0);
    hash = weir_trace_hash(e->id.text, e->id.length, hash);
    return (struct begun_key){ e->key.pid, is_async ? (int64_t)hash : e->key.tid, is_async };
}

static void begin_span(view *v, const event *e)
{
    size_t size = strlen(e->text) + 1;
    begun *added = malloc(sizeof *added + size);
    v->no_memory |= !added;
    if (!added)
        return;
    added->key = begun_key_of(e);
    memcpy(added->text, e->text, size);
    HASH_FIND(hh, v->begun, &added->key, sizeof added->key, added->outer);
    if (added->outer)
        HASH_DELETE(hh, v->begun, added->outer);
    HASH_ADD(hh, v->begun, key, sizeof added->key, added);
}

static begun *take_begun(view *v, begun *last)
{
    HASH_DELETE(hh, v->begun, last);
    if (last->outer)
        HASH_ADD(hh, v->begun, key, sizeof last->key, last->outer);
    return last;
}

static void end_span(view *v, const event *e)
{
    begun *last;
    struct begun_key key = begun_key_of(e);
    HASH_FIND(hh, v->begun, &key, sizeof key, last);
    if (!last)
        return;
    event whole = parse(take_begun(v, last)->text);
    whole.duration_ns = e->at_ns > whole.at_ns ? e->at_ns - whole.at_ns : 0;
    track *on = key.is_async ? find_track(v, &whole.key) : NULL;
    if (on)
        add_longest(v, &whole, on);
    else if (!key.is_async)
        add_span(v, &whole);
    free(last);
}

static void add_event(view *v, const event *e)
{
    v->num_events++;
    v->num_failures += weir_trace_value_is(e->category, "failure");
    v->num_stalls += weir_trace_value_is(e->category, "stall");
    v->num_lost += weir_trace_value_is(e->category, "lost");
    bool of_process = weir_trace_value_is(e->name, "process_name");
    if (e->phase == 'M' && (of_process || weir_trace_value_is(e->name, "thread_name"))) {
        track *named = find_track(v, &(track_key){ e->key.pid, of_process ? PROCESS : e->key.tid });
        v->num_processes += of_process;
        if (named)
            weir_trace_value_string(weir_trace_member(e->args.text, "name"), named->name, sizeof named->name);
    }
    if (e->phase == 'M')
        return;
    v->begin_ns = !v->has_time || e->at_ns < v->begin_ns ? e->at_ns : v->begin_ns;
    v->end_ns = e->at_ns + e->duration_ns > v->end_ns ? e->at_ns + e->duration_ns : v->end_ns;
    v->has_time = true;
    if (e->phase == 'X')
        add_span(v, e);
    if (e->phase == 'B' || e->phase == 'b')
        begin_span(v, e);
    if (e->phase == 'E' || e->phase == 'e')
        end_span(v, e);
}

/* ---- the slowest items --------------------------------------------------------------------------------------- */

static void choose_slowest(view *v)
{
    size_t most = (size_t)settings.items;
    for (item *one = v->items; one; one = one->hh.next) {
        size_t place = v->num_slowest;
        int64_t took_ns = one->end_ns - one->begin_ns;
        while (place > 0 && v->slowest[place - 1]->end_ns - v->slowest[place - 1]->begin_ns < took_ns)
            place--;
        if (place == most)
            continue;
        v->num_slowest += v->num_slowest < most;
        memmove(v->slowest + place + 1, v->slowest + place, (v->num_slowest - place - 1) * sizeof *v->slowest);
        v->slowest[place] = one;
    }
}

/* The second time through the file: the spans of the slowest items. */
static void add_to_path(view *v, const event *e)
{
    item_key key;
    bool wanted = false;
    if (e->phase != 'X' || weir_trace_value_is(e->category, "consumer") || !item_of(e, &key))
        return;
    for (size_t i = 0; i < v->num_slowest; i++)
        wanted |= memcmp(&v->slowest[i]->key, &key, sizeof key) == 0;
    track *on = wanted ? find_track(v, &e->key) : NULL;
    if (!on)
        return;
    span *grown = weir_array_grow(v->path, v->num_path, sizeof *grown);
    v->no_memory |= !grown;
    if (!grown)
        return;
    v->path = grown;
    fill_span(&v->path[v->num_path++], e, on);
}

static int earlier_span(const void *one, const void *other)
{
    const span *a = one, *b = other;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static int read_file(const tool_call *call, view *v, void (*add)(view *v, const event *e))
{
    const char *path = call->words[0], *text;
    weir_trace_reader *reader;
    int failure = weir_trace_reader_open(path, &reader);
    if (failure == EBADMSG && tool_file_begins(path, "SQLite format 3"))
        return tool_refuse(call,
                           "%s: a database, not a trace; weir summary and weir explain read databases",
                           path);
    if (failure)
        return tool_refuse(call, "%s: %s", path,
                           failure == EBADMSG ? "not a trace in Chrome's format" : strerror(failure));
    while ((text = weir_trace_reader_next(reader))) {
        event e = parse(text);
        add(v, &e);
    }
    v->is_cut = weir_trace_reader_is_cut(reader);
    failure = weir_trace_reader_failure(reader);
    weir_trace_reader_close(reader);
    if (!failure)
        return TOOL_DONE;
    weir_error error = { 0 };
    weir_error_set(&error, WEIR_EIO, -failure, "cannot read %s: %s", path, strerror(failure));
    return tool_fail(call, &error);
}

static int earlier_track(const track *one, const track *other)
{
    if (one->key.pid != other->key.pid)
        return one->key.pid < other->key.pid ? -1 : 1;
    return one->key.tid < other->key.tid ? -1 : one->key.tid > other->key.tid;
}

/* ---- printing ------------------------------------------------------------------------------------------------ */

static table_format format(void)
{
    return settings.json ? TABLE_JSON : TABLE_TEXT;
}

static void print_title(const char *name, const char *title)
{
    if (settings.json)
        printf(",\n\"%s\": ", name);
    else
        printf("\n%s\n", title);
}

static void print_head(const char *path, const view *v)
{
    double seconds = (double)(v->end_ns - v->begin_ns) / 1e9;
    if (settings.json) {
        fputs("{\"file\": ", stdout);
        json_string(stdout, path);
        printf(", \"elapsed\": %.9f, \"events\": %" PRIu64 ", \"complete\": %s, \"gaps\": %" PRIu64
               ", \"failures\": %" PRIu64 ", \"stalls\": %" PRIu64,
               seconds, v->num_events, v->is_cut ? "false" : "true", v->num_lost, v->num_failures, v->num_stalls);
        return;
    }
    weir_text_escape_to(stdout, path);
    printf(": %.3f s, %" PRIu64 " events, %" PRIu64 " failure%s, %" PRIu64 " stall%s\n", seconds, v->num_events,
           v->num_failures, v->num_failures == 1 ? "" : "s", v->num_stalls, v->num_stalls == 1 ? "" : "s");
    if (v->is_cut)
        printf("The file was cut off; this is what it holds up to there.\n");
    if (v->num_lost)
        printf("Records were lost %" PRIu64 " time%s: they came faster than they were written.\n", v->num_lost,
               v->num_lost == 1 ? "" : "s");
}

/* A column of the text only if there are several. */
static table_column process_column(const view *v)
{
    return (table_column){ "process_name", v->num_processes > 1 ? "process" : NULL, TABLE_WORDS };
}

static void put_process(table *t, const view *v, int64_t pid)
{
    const track *found;
    const track_key key = { pid, PROCESS };
    HASH_FIND(hh, v->tracks, &key, sizeof key, found);
    table_words(t, found ? found->name : "");
}

static bool is_shown(const track *one)
{
    return one->num_spans > 0 || one->end_ns > one->begin_ns;
}

static bool has_tracks(const view *v)
{
    for (const track *one = v->tracks; one; one = one->hh.next)
        if (is_shown(one))
            return true;
    return false;
}

static void print_tracks(view *v)
{
    const table_column columns[] = {
        { "process", NULL, TABLE_COUNT },
        process_column(v),
        { "track", "track", TABLE_WORDS },
        { "spans", "spans", TABLE_COUNT },
        { "busy_time", "busy time", TABLE_TIME },
        { "busy_share", "busy", TABLE_SHARE },
        { "wait_in_share", "input", TABLE_SHARE },
        { "wait_thread_share", "thread", TABLE_SHARE },
        { "wait_turn_share", "turn", TABLE_SHARE },
        { "wait_out_share", "room", TABLE_SHARE },
        { "longest_time", "longest span", TABLE_TIME },
        { "longest_gap", "longest gap", TABLE_TIME },
    };
    print_title("tracks", "Tracks: shares of the time from a track's first to its last span");
    table *t = table_begin(stdout, format(), TABLE_COLUMNS(columns));
    table_set_keys(t, 3);
    HASH_SORT(v->tracks, earlier_track);
    for (const track *one = v->tracks; one; one = one->hh.next) {
        double length_ns = (double)(one->end_ns - one->begin_ns);
        if (!is_shown(one))
            continue;
        int64_t busy_ns = busy_ns_of(one);
        table_count(t, one->key.pid);
        put_process(t, v, one->key.pid);
        table_words(t, one->name);
        table_count(t, one->num_spans);
        table_duration(t, busy_ns);
        table_number(t, (double)busy_ns / length_ns);
        for (int i = WAIT_IN; i < NUM_CATEGORIES; i++)
            table_number(t, (double)one->time_ns[i] / length_ns);
        table_duration(t, one->longest_ns);
        table_duration(t, one->longest_gap_ns);
    }
    table_end(t);
}

static void print_longest(const view *v)
{
    const table_column columns[] = {
        process_column(v),
        { "track", "track", TABLE_WORDS },
        { "name", "span", TABLE_WORDS },
        { "at", "at", TABLE_TIME },
        { "time", "length", TABLE_TIME },
        { "seq", "item", TABLE_COUNT },
        { "label", "label", TABLE_WORDS },
    };
    print_title("spans", "Longest spans");
    table *t = table_begin(stdout, format(), TABLE_COLUMNS(columns));
    for (size_t i = 0; i < v->num_longest; i++) {
        const span *s = &v->longest[i];
        put_process(t, v, s->pid);
        table_words(t, s->track);
        table_words(t, s->what);
        table_duration(t, s->begin_ns - v->begin_ns);
        table_duration(t, s->duration_ns);
        if (s->has_item)
            table_count(t, s->key.seq);
        else
            table_nothing(t);
        table_words(t, s->label);
    }
    table_end(t);
}

static void print_part(table *t, const view *v, const span *s, int64_t begin_ns, int64_t duration_ns,
                       const char *what, const char *label)
{
    put_process(t, v, s->pid);
    table_count(t, s->key.seq);
    table_words(t, label);
    table_words(t, s->track);
    table_words(t, what);
    table_duration(t, begin_ns - v->begin_ns);
    table_duration(t, duration_ns);
}

/* What lies between two spans of an item, it has spent in a queue. */
static void print_item(table *t, const view *v, const item *one)
{
    int64_t end_ns = 0;
    const char *label = "";
    for (size_t i = 0; i < v->num_path; i++)
        if (memcmp(&v->path[i].key, &one->key, sizeof one->key) == 0 && v->path[i].label[0])
            label = v->path[i].label;
    for (size_t i = 0; i < v->num_path; i++) {
        const span *s = &v->path[i];
        if (memcmp(&s->key, &one->key, sizeof one->key) != 0)
            continue;
        if (end_ns && s->begin_ns > end_ns)
            print_part(t, v, s, end_ns, s->begin_ns - end_ns, "in its input queue", label);
        print_part(t, v, s, s->begin_ns, s->duration_ns, s->what, label);
        if (s->begin_ns + s->duration_ns > end_ns)
            end_ns = s->begin_ns + s->duration_ns;
    }
}

static void print_items(const view *v)
{
    const table_column columns[] = {
        process_column(v),
        { "seq", "item", TABLE_COUNT },
        { "label", "label", TABLE_WORDS },
        { "track", "track", TABLE_WORDS },
        { "what", "what", TABLE_WORDS },
        { "at", "at", TABLE_TIME },
        { "time", "length", TABLE_TIME },
    };
    print_title("items", "Slowest items, from the source to the consumer: where their time went");
    table *t = table_begin(stdout, format(), TABLE_COLUMNS(columns));
    for (size_t i = 0; i < v->num_slowest; i++)
        print_item(t, v, v->slowest[i]);
    table_end(t);
}

static void free_view(view *v)
{
    while (v->begun)
        free(take_begun(v, v->begun));
    for (track *one = v->tracks, *next; one; one = next) {
        next = one->hh.next;
        HASH_DELETE(hh, v->tracks, one);
        free(one->outer);
        free(one);
    }
    for (item *one = v->items, *next; one; one = next) {
        next = one->hh.next;
        HASH_DELETE(hh, v->items, one);
        free(one);
    }
    free(v->longest);
    free(v->slowest);
    free(v->path);
}

static int show(const tool_call *call)
{
    view v = { .longest = calloc((size_t)settings.top + 1, sizeof *v.longest),
               .slowest = calloc((size_t)settings.items + 1, sizeof *v.slowest) };
    int exit_status = TOOL_DONE;
    v.no_memory = !v.longest || !v.slowest;
    if (!v.no_memory)
        exit_status = read_file(call, &v, add_event);
    if (exit_status == TOOL_DONE && !v.no_memory) {
        choose_slowest(&v);
        exit_status = read_file(call, &v, add_to_path);
    }
    if (v.no_memory) {
        tool_refuse(call, "out of memory");
        exit_status = TOOL_FAILED;
    } else if (exit_status == TOOL_DONE && !v.has_time) {
        exit_status = tool_nothing(call, "%s: the trace has no events", call->words[0]);
    } else if (exit_status == TOOL_DONE) {
        if (v.num_path)
            qsort(v.path, v.num_path, sizeof *v.path, earlier_span);
        print_head(call->words[0], &v);
        if (settings.json || has_tracks(&v))
            print_tracks(&v);
        else if (!v.num_longest)
            puts("\nIt has no spans, only counters or markers; the Perfetto UI shows them.");
        if (settings.json || v.num_longest)
            print_longest(&v);
        if (settings.json || v.num_slowest)
            print_items(&v);
        if (settings.json)
            puts("}");
        exit_status = tool_finish(call);
    }
    free_view(&v);
    return exit_status;
}

static int merge(const tool_call *call)
{
    weir_error error = { 0 };
    if (output_allow(call, settings.output, OUTPUT_TRACE, settings.force, 0) != TOOL_DONE)
        return TOOL_REFUSED;
    int status = weir_trace_merge(settings.output, (const char *const *)call->words, (size_t)call->num_words, &error);
    if (status == WEIR_OK)
        return TOOL_DONE;
    tool_refuse(call, "%s", error.message);
    return status == WEIR_EIO || status == WEIR_ENOMEM ? TOOL_FAILED : TOOL_REFUSED;
}

static int run(tool_call *call)
{
    if (settings.output)
        return merge(call);
    if (call->num_words > 1)
        return tool_refuse(call, "one trace at a time; -o FILE merges several into one");
    return show(call);
}

const tool_command tool_trace = {
    .name = "trace",
    .words = "FILE...",
    .min_words = 1,
    .max_words = -1,
    .summary = "show what a trace contains, or merge traces",
    .help =
        "Reads a trace that weir record --trace or a program has written (see weir/trace_file.h), compressed or "
        "not, complete or cut off, and prints for each slot how busy it was, what it waited for, and its longest "
        "gap; then the longest spans; and for the slowest items where their time went, wait by wait. Traces of "
        "other programs in Chrome's format can be shown, too.\n\n"
        "With -o the traces are merged into one file, in constant memory: traces of ranks, and of other programs. "
        "The clocks are aligned by the wall time that each trace of weir states.\n\n"
        "To see a trace as a picture, open it in https://ui.perfetto.dev, chrome://tracing or speedscope.",
    .examples = "weir record videos/ --trace trace.json.gz\n"
                "weir trace trace.json.gz\n"
                "weir trace trace.json.gz --items 10 --json | jq .items\n"
                "weir trace rank*.json.gz -o all.json.gz\n",
    .options = rows,
    .settings = &settings,
    .run = run,
};
