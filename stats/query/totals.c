/*
 * Sums over groups of laps, in one pass over each table. What is summed are sums: a lap's means times what they are
 * means of; ratios are derived when all is added. Groups are found by a hash of small numbers: names, nodes and phases
 * are texts that have been given one.
 */
#include <weir/query.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "database_path.h"
#include "database_reader.h"
#include "sql_select.h"
#include "string_table.h"

enum { MAX_GROUPS = 100000, FIRST_ROOM = 16 };

#define DEFAULT_BIN_S 60.0
/* A lap that ends with its bin is in it, also if its timestamp is above by the last digit. */
#define TOUCHING_S 1e-6

/* What tells groups apart; all-zero before it is filled, so that it can be compared as bytes. */
typedef struct group_id {
    int64_t run_id, bin_step, bin_time;
    int32_t name, node, phase; /* numbers of texts */
    int32_t unused;
} group_id;

/* The groups of one table; elements are weir_task_totals or weir_queue_totals, which begin with their key. */
typedef struct groups {
    char *elements;
    size_t element_bytes;
    group_id *ids;
    uint32_t *slots; /* open hashing: element + 1, 0 = none; twice the room */
    size_t count, room;
} groups;

/* What a pass over a table knows. */
typedef struct pass {
    weir_reader *reader;
    const weir_filter *filter; /* resolved */
    weir_grouping grouping;    /* without zeros */
    const char *table;         /* for messages */
    groups groups;
    weir_texts *texts;
    weir_marks marks;
    sqlite3_stmt *node_of_run; /* NULL = not needed yet */
    int64_t node_run_id;       /* whose node is known; 0 = none's */
    int32_t node;
    weir_error *error;
} pass;

static bool is_by(const pass *p, weir_group_by what)
{
    return p->grouping.by & what;
}

/* -- groups */

static weir_group_key *key_at(const groups *g, size_t index)
{
    return (weir_group_key *)(void *)(g->elements + index * g->element_bytes);
}

static uint64_t hash_of(const group_id *id)
{
    const int64_t parts[] = { id->run_id, id->bin_step, id->bin_time, id->name, id->node, id->phase };
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        hash = (hash ^ (uint64_t)parts[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The slot that holds the group, or that is free for it. */
static uint32_t *slot_of(const groups *g, const group_id *id)
{
    uint64_t mask = 2 * g->room - 1;
    for (uint64_t i = hash_of(id) & mask;; i = (i + 1) & mask)
        if (!g->slots[i] || memcmp(&g->ids[g->slots[i] - 1], id, sizeof *id) == 0)
            return &g->slots[i];
}

static bool grow(groups *g)
{
    size_t room = g->room ? 2 * g->room : FIRST_ROOM;
    void *elements = realloc(g->elements, room * g->element_bytes);
    if (!elements)
        return false;
    g->elements = elements;
    group_id *ids = realloc(g->ids, room * sizeof *ids);
    if (!ids)
        return false;
    g->ids = ids;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (!slots)
        return false;
    free(g->slots);
    g->slots = slots;
    g->room = room;
    for (size_t i = 0; i < g->count; i++)
        *slot_of(g, &g->ids[i]) = (uint32_t)(i + 1);
    return true;
}

static int out_of_groups(pass *p)
{
    return weir_error_set(p->error, WEIR_ELIMIT, 0,
                          "more than %d groups; group by less, by wider bins, or look at a part", MAX_GROUPS);
}

/* The index of the group with that id; it is made, all-zero, if there is none. */
static int find_group(pass *p, const group_id *id, size_t *index)
{
    groups *g = &p->groups;
    if (g->count == MAX_GROUPS && (!*slot_of(g, id)))
        return out_of_groups(p);
    if (g->count == g->room && !grow(g))
        return weir_reader_out_of_memory(p->error);
    uint32_t *slot = slot_of(g, id);
    if (!*slot) {
        memset(g->elements + g->count * g->element_bytes, 0, g->element_bytes);
        g->ids[g->count] = *id;
        key_at(g, g->count)->last_step = -1;
        *slot = (uint32_t)++g->count;
    }
    *index = *slot - 1;
    return WEIR_OK;
}

/* -- what a lap is grouped by. Rows begin with id, run_id, timestamp, elapsed, name, phase, first_step, last_step */

static int number_of(pass *p, const char *text, int32_t *number)
{
    *number = weir_texts_number(p->texts, text);
    return *number >= 0 ? WEIR_OK : weir_reader_out_of_memory(p->error);
}

static int find_node(pass *p, int64_t run_id, int32_t *node)
{
    int code = SQLITE_OK, status = WEIR_OK;
    if (p->node_run_id != run_id) {
        if (!p->node_of_run)
            code = sqlite3_prepare_v2(p->reader->db, "SELECT node_id FROM run WHERE run_id = ?", -1, &p->node_of_run,
                                      NULL);
        if (code == SQLITE_OK)
            code = sqlite3_bind_int64(p->node_of_run, 1, run_id);
        if (code == SQLITE_OK)
            code = sqlite3_step(p->node_of_run);
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            return weir_reader_error(p->reader, code, p->error);
        status = number_of(p, code == SQLITE_ROW ? weir_column_text(p->node_of_run, 0) : "", &p->node);
        sqlite3_reset(p->node_of_run);
        p->node_run_id = run_id;
    }
    *node = p->node;
    return status;
}

static const char *job_phase_of(const char *phase)
{
    return !*phase || strcmp(phase, "startup") == 0 || strcmp(phase, "finish") == 0 ? phase : "loop";
}

static int find_phase(pass *p, sqlite3_stmt *row, int64_t run_id, int32_t *number)
{
    const char *phase = weir_column_text(row, 5);
    bool is_marked = false;
    int status = *phase ? WEIR_OK : weir_marks_of(&p->marks, run_id, &is_marked, p->error);
    if (status != WEIR_OK)
        return status;
    if (is_marked)
        phase = "startup";
    return number_of(p, is_by(p, WEIR_BY_PHASE) ? phase : job_phase_of(phase), number);
}

static int64_t floor_to(int64_t value, int64_t bin)
{
    int64_t rest = value % bin;
    return value - (rest < 0 ? rest + bin : rest);
}

static int identify(pass *p, sqlite3_stmt *row, group_id *id)
{
    int64_t run_id = sqlite3_column_int64(row, 1);
    int status = WEIR_OK;
    memset(id, 0, sizeof *id);
    if (is_by(p, WEIR_BY_RUN))
        id->run_id = run_id;
    if (is_by(p, WEIR_BY_STEP))
        id->bin_step = floor_to(sqlite3_column_int64(row, 6), p->grouping.bin_steps);
    if (is_by(p, WEIR_BY_TIME))
        id->bin_time = (int64_t)floor((sqlite3_column_double(row, 2) - TOUCHING_S) / p->grouping.bin_time);
    if (is_by(p, WEIR_BY_NAME))
        status = number_of(p, weir_column_text(row, 4), &id->name);
    if (status == WEIR_OK && is_by(p, WEIR_BY_NODE))
        status = find_node(p, run_id, &id->node);
    if (status == WEIR_OK && (is_by(p, WEIR_BY_PHASE) || is_by(p, WEIR_BY_JOB_PHASE)))
        status = find_phase(p, row, run_id, &id->phase);
    return status;
}

/* A new group's key says what it is grouped by; what it covers grows with each lap. */
static void fill_key(const pass *p, const group_id *id, weir_group_key *key)
{
    key->name = is_by(p, WEIR_BY_NAME) ? weir_texts_at(p->texts, id->name) : "";
    key->node_id = is_by(p, WEIR_BY_NODE) ? weir_texts_at(p->texts, id->node) : "";
    key->phase = is_by(p, WEIR_BY_PHASE) || is_by(p, WEIR_BY_JOB_PHASE) ? weir_texts_at(p->texts, id->phase) : "";
    key->run_id = id->run_id;
    key->bin_step = id->bin_step;
    key->bin_time = is_by(p, WEIR_BY_TIME) ? (double)id->bin_time * p->grouping.bin_time : 0;
}

static void cover(weir_group_key *key, sqlite3_stmt *row)
{
    double end = sqlite3_column_double(row, 2);
    double start = end - sqlite3_column_double(row, 3);
    if (key->num_laps == 0 || start < key->start_time)
        key->start_time = start;
    if (key->num_laps == 0 || end > key->end_time)
        key->end_time = end;
    key->num_laps++;
    if (sqlite3_column_type(row, 6) == SQLITE_NULL)
        return;
    int64_t first = sqlite3_column_int64(row, 6), last = sqlite3_column_int64(row, 7);
    bool has_none = key->last_step < key->first_step;
    if (has_none || first < key->first_step)
        key->first_step = first;
    if (has_none || last > key->last_step)
        key->last_step = last;
}

/* -- laps */

/* Reads one varint behind *at and moves on; false if there is none. */
static bool read_varint(const uint8_t *bytes, size_t size_bytes, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < size_bytes && shift < 49; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/*
 * weir_histogram_add_encoded() in one pass instead of two, for it is what most of the time goes to: what has been added
 * when the bytes turn out to be none does not count here, because then there are no totals.
 */
static bool add_stored(weir_histogram *to, const uint8_t *bytes, size_t size_bytes)
{
    uint64_t index = 0, first = WEIR_HISTOGRAM_BUCKETS, step, count, total = 0;
    if (size_bytes == 0 || bytes[0] != 1)
        return false;
    for (size_t at = 1; at < size_bytes;) {
        if (at + 1 < size_bytes && !((bytes[at] | bytes[at + 1]) & 0x80)) { /* nearly all */
            step = bytes[at];
            count = bytes[at + 1];
            at += 2;
        } else if (!read_varint(bytes, size_bytes, &at, &step) || !read_varint(bytes, size_bytes, &at, &count))
            return false;
        index += step;
        if (index >= WEIR_HISTOGRAM_BUCKETS || count == 0)
            return false;
        uint64_t room = WEIR_HISTOGRAM_MAX_COUNT - to->buckets[index];
        uint64_t added = count < room ? count : room;
        to->buckets[index] += added;
        total += added;
        first = first < index ? first : index;
    }
    if (first < WEIR_HISTOGRAM_BUCKETS) {
        to->first = to->count && to->first < first ? to->first : (uint32_t)first;
        to->last = to->count && to->last > index ? to->last : (uint32_t)index;
    }
    to->count += total;
    return true;
}

/* Adds a stored histogram to *to, which is made where it is NULL. */
static int add_histogram(pass *p, sqlite3_stmt *row, int column, const weir_histogram **to)
{
    const void *bytes = sqlite3_column_blob(row, column);
    int size = sqlite3_column_bytes(row, column);
    weir_histogram *sum = *to ? (weir_histogram *)(uintptr_t)*to : calloc(1, sizeof *sum); /* it is ours */
    *to = sum;
    if (!sum)
        return weir_reader_out_of_memory(p->error);
    if (add_stored(sum, bytes, bytes ? (size_t)size : 0))
        return WEIR_OK;
    return weir_error_set(p->error, WEIR_EDATA, 0, "database %s is damaged: row %lld of %s has no valid %s",
                          weir_path_for_message(p->reader->path).text, sqlite3_column_int64(row, 0), p->table,
                          sqlite3_column_name(row, column));
}

static void take_max(double *max, double value)
{
    *max = value > *max ? value : *max;
}

static void take_max_count(int64_t *max, int64_t value)
{
    *max = value > *max ? value : *max;
}

#define LAP_COLUMNS "t.id, t.run_id, t.timestamp, t.elapsed, t.name, t.phase, t.first_step, t.last_step, "

static const weir_selection tasks_selection = {
    .kind = WEIR_ROWS_LAPS,
    .table = "task_stats",
    .columns =
        LAP_COLUMNS "t.num_tasks, t.num_failures, t.num_skipped, t.ave_time, t.failed_time, t.max_time, "
                    "t.busy_time, t.wait_in_time, t.wait_thread_time, t.wait_out_time, t.cpu_time, t.histogram",
    .name_column = "t.name",
    .unordered = true,
};

static int add_task_lap(pass *p, sqlite3_stmt *row, void *element)
{
    weir_task_totals *task = element;
    int64_t num_tasks = sqlite3_column_int64(row, 8);
    int64_t num_failures = sqlite3_column_int64(row, 9);
    task->elapsed += sqlite3_column_double(row, 3);
    task->num_tasks += num_tasks;
    task->num_failures += num_failures;
    task->num_skipped += sqlite3_column_int64(row, 10);
    task->success_time += sqlite3_column_double(row, 11) * (double)(num_tasks - num_failures);
    task->failed_time += sqlite3_column_double(row, 12);
    take_max(&task->max_time, sqlite3_column_double(row, 13));
    task->busy_time += sqlite3_column_double(row, 14);
    task->wait_in_time += sqlite3_column_double(row, 15);
    task->wait_thread_time += sqlite3_column_double(row, 16);
    task->wait_out_time += sqlite3_column_double(row, 17);
    task->cpu_time += sqlite3_column_double(row, 18);
    return add_histogram(p, row, 19, &task->times);
}

static const weir_selection queues_selection = {
    .kind = WEIR_ROWS_LAPS,
    .table = "queue_stats",
    .columns = LAP_COLUMNS "t.num_items, t.num_put, t.ave_put_time, t.ave_get_time, t.occupancy_rate, t.capacity, "
                           "t.ave_depth, t.max_depth, t.ave_bytes, t.max_bytes, t.put_histogram, t.get_histogram",
    .name_column = "t.name",
    .unordered = true,
};

static int add_queue_lap(pass *p, sqlite3_stmt *row, void *element)
{
    weir_queue_totals *queue = element;
    double elapsed = sqlite3_column_double(row, 3);
    int64_t num_items = sqlite3_column_int64(row, 8);
    int64_t num_put = sqlite3_column_int64(row, 9);
    queue->elapsed += elapsed;
    queue->num_items += num_items;
    queue->num_put += num_put;
    queue->put_time += sqlite3_column_double(row, 10) * (double)num_put;
    queue->get_time += sqlite3_column_double(row, 11) * (double)num_items;
    queue->occupied += sqlite3_column_double(row, 12) * elapsed;
    if (sqlite3_column_double(row, 2) >= queue->key.end_time) /* the latest so far */
        queue->capacity = sqlite3_column_int64(row, 13);
    queue->depth_time += sqlite3_column_double(row, 14) * elapsed;
    take_max_count(&queue->max_depth, sqlite3_column_int64(row, 15));
    queue->bytes_time += sqlite3_column_double(row, 16) * elapsed;
    take_max_count(&queue->max_bytes, sqlite3_column_int64(row, 17));
    int status = add_histogram(p, row, 18, &queue->put_times);
    return status == WEIR_OK ? add_histogram(p, row, 19, &queue->get_times) : status;
}

/* -- the pass */

static int add_row(pass *p, sqlite3_stmt *row, int (*add)(pass *p, sqlite3_stmt *row, void *element))
{
    group_id id;
    size_t index = 0;
    if (is_by(p, WEIR_BY_STEP) && sqlite3_column_type(row, 6) == SQLITE_NULL)
        return WEIR_OK;
    int status = identify(p, row, &id);
    if (status == WEIR_OK)
        status = find_group(p, &id, &index);
    if (status != WEIR_OK)
        return status;
    weir_group_key *key = key_at(&p->groups, index);
    if (!key->name)
        fill_key(p, &id, key);
    cover(key, row);
    return add(p, row, key);
}

static int add_rows(pass *p, const weir_selection *selection, int (*add)(pass *p, sqlite3_stmt *row, void *element))
{
    sqlite3_stmt *rows;
    int code = SQLITE_DONE;
    p->table = selection->table;
    int status = weir_select(p->reader, selection, p->filter, &rows, p->error);
    while (status == WEIR_OK && (code = sqlite3_step(rows)) == SQLITE_ROW)
        status = add_row(p, rows, add);
    if (status == WEIR_OK && code != SQLITE_DONE)
        status = weir_reader_error(p->reader, code, p->error);
    sqlite3_finalize(rows);
    return status;
}

/* -- order */

/* Gives the names numbers in the order of the pipelines, before the laps do in that of their coming. */
static int number_stages(pass *p)
{
    weir_query *query;
    const weir_record *record;
    weir_filter filter = *p->filter;
    int32_t number;
    filter.name = NULL;
    filter.descending = false;
    filter.limit = 0;
    int status = weir_query_begin(p->reader, WEIR_RECORD_STAGE, &filter, &query, p->error);
    while (status == WEIR_OK && (status = weir_query_next(query, &record, p->error)) == WEIR_OK) {
        status = number_of(p, record->stage.name, &number);
        if (status == WEIR_OK)
            status = number_of(p, record->stage.queue_name, &number);
    }
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

typedef struct place_in_order {
    const group_id *id;
    const weir_texts *texts;
    size_t index;
} place_in_order;

static int order_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_places(const void *left, const void *right)
{
    const place_in_order *l = left, *r = right;
    const group_id *a = l->id, *b = r->id;
    int order = order_of(a->run_id, b->run_id);
    if (order == 0 && a->node != b->node)
        order = strcmp(weir_texts_at(l->texts, a->node), weir_texts_at(l->texts, b->node));
    if (order == 0)
        order = order_of(a->bin_time, b->bin_time);
    if (order == 0)
        order = order_of(a->bin_step, b->bin_step);
    if (order == 0)
        order = order_of(a->phase, b->phase); /* the order in which they began */
    return order ? order : order_of(a->name, b->name);
}

static int sort_groups(pass *p)
{
    groups *g = &p->groups;
    char *sorted = malloc(g->count * g->element_bytes + 1);
    place_in_order *places = malloc((g->count + 1) * sizeof *places);
    int status = sorted && places ? WEIR_OK : weir_reader_out_of_memory(p->error);
    if (status == WEIR_OK) {
        for (size_t i = 0; i < g->count; i++)
            places[i] = (place_in_order){ &g->ids[i], p->texts, i };
        qsort(places, g->count, sizeof *places, compare_places);
        for (size_t i = 0; i < g->count; i++)
            memcpy(sorted + i * g->element_bytes, g->elements + places[i].index * g->element_bytes, g->element_bytes);
        memcpy(g->elements, sorted, g->count * g->element_bytes);
    }
    free(sorted);
    free(places);
    return status;
}

/* -- what is derived */

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0.0;
}

/* A bucket's middle may lie above the longest time in it: no percentile is above max_time. */
static double quantile(const weir_histogram *times, double share, double max_time)
{
    double time = (double)weir_histogram_quantile_ns(times, share) / 1e9;
    return time < max_time ? time : max_time;
}

static void derive_task(weir_task_totals *task)
{
    task->ave_time = ratio(task->success_time, (double)(task->num_tasks - task->num_failures));
    task->p50_time = quantile(task->times, 0.5, task->max_time);
    task->p90_time = quantile(task->times, 0.9, task->max_time);
    task->p99_time = quantile(task->times, 0.99, task->max_time);
}

static void derive_queue(weir_queue_totals *queue)
{
    queue->ave_put_time = ratio(queue->put_time, (double)queue->num_put);
    queue->p50_put_time = quantile(queue->put_times, 0.5, INFINITY);
    queue->p90_put_time = quantile(queue->put_times, 0.9, INFINITY);
    queue->p99_put_time = quantile(queue->put_times, 0.99, INFINITY);
    queue->ave_get_time = ratio(queue->get_time, (double)queue->num_items);
    queue->p50_get_time = quantile(queue->get_times, 0.5, INFINITY);
    queue->p90_get_time = quantile(queue->get_times, 0.9, INFINITY);
    queue->p99_get_time = quantile(queue->get_times, 0.99, INFINITY);
    queue->occupancy_rate = ratio(queue->occupied, queue->elapsed);
    queue->ave_depth = ratio(queue->depth_time, queue->elapsed);
    queue->ave_bytes = ratio(queue->bytes_time, queue->elapsed);
}

/* -- all of it */

/* One table's groups go to *elements, also those of a pass that failed. */
static int add_table(pass *p, const weir_selection *selection, size_t element_bytes,
                     int (*add)(pass *p, sqlite3_stmt *row, void *element), void **elements, size_t *count)
{
    p->groups = (groups){ .element_bytes = element_bytes };
    int status = add_rows(p, selection, add);
    if (status == WEIR_OK && p->groups.count)
        status = sort_groups(p);
    *elements = p->groups.elements;
    *count = p->groups.count;
    free(p->groups.ids);
    free(p->groups.slots);
    return status;
}

static int add_tables(pass *p, weir_totals *totals)
{
    void *elements;
    int status = is_by(p, WEIR_BY_NAME) ? number_stages(p) : WEIR_OK;
    if (status != WEIR_OK)
        return status;
    status = add_table(p, &tasks_selection, sizeof *totals->tasks, add_task_lap, &elements, &totals->num_tasks);
    totals->tasks = elements;
    if (status != WEIR_OK)
        return status;
    status = add_table(p, &queues_selection, sizeof *totals->queues, add_queue_lap, &elements, &totals->num_queues);
    totals->queues = elements;
    return status;
}

int weir_totals_read(weir_reader *reader, const weir_filter *filter, const weir_grouping *grouping,
                     weir_totals *totals, weir_error *error)
{
    if (!reader || !totals)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    weir_filter resolved = filter ? *filter : (weir_filter){ .run_id = WEIR_ALL_RUNS };
    pass p = { .reader = reader, .filter = &resolved, .marks = { .reader = reader }, .error = error };
    if (grouping)
        p.grouping = *grouping;
    p.grouping.bin_steps = p.grouping.bin_steps > 0 ? p.grouping.bin_steps : 1;
    p.grouping.bin_time = p.grouping.bin_time > 0 ? p.grouping.bin_time : DEFAULT_BIN_S;
    *totals = (weir_totals){ .texts = p.texts = weir_texts_new() };
    if (!p.texts)
        return weir_reader_out_of_memory(error);

    /* So that all of it is of one moment, also while a writer is at work. */
    int status = weir_reader_hold(reader, error);
    if (status == WEIR_OK) {
        status = weir_reader_resolve_run(reader, &resolved.run_id, error);
        if (status == WEIR_OK)
            status = add_tables(&p, totals);
        sqlite3_finalize(p.node_of_run);
        weir_marks_free(&p.marks);
        weir_reader_release(reader);
    }
    if (status != WEIR_OK) {
        weir_totals_free(totals);
        return status;
    }
    for (size_t i = 0; i < totals->num_tasks; i++)
        derive_task(&totals->tasks[i]);
    for (size_t i = 0; i < totals->num_queues; i++)
        derive_queue(&totals->queues[i]);
    return WEIR_OK;
}

void weir_totals_free(weir_totals *totals)
{
    if (!totals)
        return;
    for (size_t i = 0; i < totals->num_tasks; i++)
        free((void *)(uintptr_t)totals->tasks[i].times);
    for (size_t i = 0; i < totals->num_queues; i++) {
        free((void *)(uintptr_t)totals->queues[i].put_times);
        free((void *)(uintptr_t)totals->queues[i].get_times);
    }
    free(totals->tasks);
    free(totals->queues);
    weir_texts_free(totals->texts);
    *totals = (weir_totals){ .num_tasks = 0 };
}
