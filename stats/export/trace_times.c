/* Count, total and self time of the spans in a trace. SQLite adds up. */
#include <weir/trace_file.h>

#include "stats/export/trace_tables.h"

/* Before the first event is time 0. */
static const char shift[] = "UPDATE event SET at = at - (SELECT min(at) FROM event WHERE phase <> 'M')";

/* ?1, ?2: the interval, in which events count. */
static const char find_facts[] =
    "SELECT total(counts), coalesce(max(stop), 0), total(counts AND category = 'failure'),"
    " total(counts AND category = 'stall'), total(counts AND category = 'lost') FROM"
    " (SELECT at + length AS stop, category, at + length >= ?1 AND at <= ?2 AS counts FROM event WHERE phase <> 'M')";

/* tid of a process's name: '' */
static const char find_tracks[] =
    "CREATE TABLE track(pid, tid, name, PRIMARY KEY(pid, tid));"
    "INSERT OR REPLACE INTO track SELECT pid, iif(name = 'process_name', '', tid), label FROM event"
    " WHERE name IN ('thread_name', 'process_name') AND phase = 'M' ORDER BY seq";

#define PROCESS "coalesce((SELECT name FROM track t WHERE t.pid = e.pid AND t.tid = ''), e.pid)"
#define TRACK   "coalesce((SELECT name FROM track t WHERE t.pid = e.pid AND t.tid = e.tid), e.tid)"
#define SUMS(process, track, group) \
    "SELECT " process ", " track ", e.name || iif(e.category = 'part', ' (part)', '') AS shown, count(*)," \
    " total(stop - start), total(self) FROM span JOIN event e USING (seq) GROUP BY " group \
    "shown ORDER BY 6 DESC, 3"

static const char *const sums[] = {
    [WEIR_TRACE_BY_NAME] = SUMS("''", "''", ""),
    [WEIR_TRACE_BY_TRACK] = SUMS(PROCESS, TRACK, "e.pid, e.tid, "),
    [WEIR_TRACE_BY_PROCESS] = SUMS(PROCESS, "''", "e.pid, "),
};

static void read_facts(weir_trace_tables *tables, const weir_trace_interval *interval, weir_trace_facts *facts)
{
    weir__trace_tables_run(tables, shift);
    sqlite3_stmt *row = weir__trace_tables_prepare(tables, find_facts);
    sqlite3_bind_int64(row, 1, interval->since_ns);
    sqlite3_bind_int64(row, 2, interval->until_ns ? interval->until_ns : INT64_MAX);
    if (weir__trace_tables_step(tables, row)) {
        int64_t end_ns = sqlite3_column_int64(row, 1);
        int64_t until_ns = interval->until_ns && interval->until_ns < end_ns ? interval->until_ns : end_ns;
        *facts = (weir_trace_facts){
            .length_ns = until_ns > interval->since_ns ? until_ns - interval->since_ns : 0,
            .num_events = (uint64_t)sqlite3_column_int64(row, 0),
            .num_failures = (uint64_t)sqlite3_column_int64(row, 2),
            .num_stalls = (uint64_t)sqlite3_column_int64(row, 3),
            .num_gaps = (uint64_t)sqlite3_column_int64(row, 4),
            .is_complete = !tables->is_cut,
        };
        weir__trace_tables_nest(tables, interval->since_ns, until_ns);
    }
    sqlite3_finalize(row);
}

static void visit_sums(weir_trace_tables *tables, weir_trace_by by,
                       void (*each)(void *self, const weir_trace_time *time), void *self)
{
    weir__trace_tables_run(tables, find_tracks);
    sqlite3_stmt *row = weir__trace_tables_prepare(tables, sums[by]);
    while (weir__trace_tables_step(tables, row)) {
        const weir_trace_time time = {
            .process = weir__trace_tables_text(tables, row, 0),
            .track = weir__trace_tables_text(tables, row, 1),
            .name = weir__trace_tables_text(tables, row, 2),
            .count = (uint64_t)sqlite3_column_int64(row, 3),
            .total_ns = sqlite3_column_int64(row, 4),
            .self_ns = sqlite3_column_int64(row, 5),
        };
        if (tables->code == SQLITE_OK)
            each(self, &time);
    }
    sqlite3_finalize(row);
}

int weir_trace_times_read(const char *path, const weir_trace_interval *interval, weir_trace_by by,
                          weir_trace_facts *facts, void (*each)(void *self, const weir_trace_time *time), void *self,
                          weir_error *error)
{
    if (!path || !facts || !each || by > WEIR_TRACE_BY_PROCESS ||
        (interval && (interval->since_ns < 0 || interval->until_ns < 0)))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "path, facts and each must not be NULL, by must be a weir_trace_by, and since_ns and "
                              "until_ns must not be negative");
    weir_trace_tables tables;
    *facts = (weir_trace_facts){ 0 };
    int status = weir__trace_tables_open(&tables, &path, 1, false, error);
    if (status == WEIR_OK) {
        read_facts(&tables, interval ? interval : &(weir_trace_interval){ 0 }, facts);
        visit_sums(&tables, by, each, self);
        if (tables.code)
            status = weir__trace_tables_fail(&tables, "cannot read", path, error);
    }
    weir__trace_tables_close(&tables);
    return status;
}
