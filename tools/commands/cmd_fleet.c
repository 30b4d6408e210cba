/* weir fleet: compares the ranks of a job: which are slow, since when, and why. SQLite compares; this prints. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_escape.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_check.h"
#include "tools/cli/prose.h"
#include "tools/commands/command_table.h"
#include "tools/view/record_table.h"

static struct settings {
    double slower;   /* percent */
    const char *job; /* glob; NULL = any */
} settings = { .slower = 10 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("slower", slower, option_real), .argument = "PERCENT",
      .help = "a rank is a straggler if it is this much slower than the median (default 10)" },
    { ROW("job", job, option_text), .argument = "NAME",
      .help = "the last of the jobs with this name (a pattern; default: of all jobs)" },
    { 0 },
};

/* ---- the statements ---------------------------------------------------------------------------------------------- */

/*
 * For each run of a database that has started: what its state is derived from, and a JSON object. :text is the path.
 * Its laps are those of the sink's queue, [start, end, items, elapsed, occupied], about 200 at most.
 */
static const char runs_of_database[] =
    ", extent AS (SELECT *, coalesce(ended, (SELECT max(timestamp) FROM queues q WHERE q.run_id = t.run_id),"
    " started) AS until, coalesce((SELECT s.queue_name FROM stages s WHERE s.run_id = t.run_id AND s.kind ="
    " 'sink'), (SELECT q.name FROM queues q WHERE q.run_id = t.run_id ORDER BY q.id DESC LIMIT 1)) AS sink FROM"
    " runs t WHERE threads > 0 OR version = 'SPDL'),"
    " course AS (SELECT q.run_id, min(q.timestamp - q.elapsed) AS start, max(q.timestamp) AS end,"
    " total(q.num_items) AS items, sum(q.elapsed) AS elapsed, sum(q.occupied_time) AS occupied FROM queues q JOIN"
    " extent e ON q.run_id = e.run_id AND q.name = e.sink GROUP BY q.run_id, CAST(200 * (q.timestamp -"
    " e.started) / nullif(e.until - e.started, 0) AS INTEGER)),"
    " laps AS (SELECT run_id, json_group_array(json_array(start, end, items, elapsed, occupied)) AS laps FROM"
    " course GROUP BY run_id),"
    " queued AS (SELECT run_id, sum(run_delay_time) AS delay FROM pools GROUP BY run_id),"
    " work AS (SELECT run_id, CAST(total(num_failures) AS INTEGER) AS failures, sum(cpu_time) AS cpu, delay,"
    " max(sum(busy_time) - sum(cpu_time) - coalesce(delay, 0), 0) AS blocked, sum(wait_thread_time) AS thread,"
    " sum(wait_out_time) + sum(wait_turn_time) AS consumer FROM tasks LEFT JOIN queued USING (run_id) GROUP BY"
    " run_id) SELECT node_id, pid, started, ended, status, json_object('rank', rank, 'version', version, 'node',"
    " node_id, 'job', coalesce(job, ''), 'world', world, 'start', started, 'end', until, 'has_ended', ended IS NOT"
    " NULL, 'failures', failures, 'cpu', cpu, 'delay', delay, 'blocked', blocked, 'thread', thread, 'consumer',"
    " consumer, 'laps', json(coalesce(laps, '[]')), 'database', :text) FROM extent LEFT JOIN work USING (run_id)"
    " LEFT JOIN laps USING (run_id)";

enum { RUN_NODE, RUN_PID, RUN_STARTED, RUN_ENDED, RUN_STATUS, RUN_OBJECT };

/*
 * Compares the ranks of one job. :text is {"slower": 0.1, "job": pattern or null, "deviations": 9, "runs": [[state, run],
 * …]}.
 *
 * A job has a name, a number of ranks, and no gap of a minute in which none of its runs goes on. The last job that
 * matches is taken, and of it the last run of each rank. Figure 0 is a rank's rate. Figures 1 to 5 are the parts of
 * the time of an item: it needed a CPU, waited for one, waited in a task, for a thread, or for the consumer. Figures
 * 10 to 29 are the items in each twentieth of the job's time, over which laps are spread. Each figure is compared
 * with that of the median rank. Twentieths in which the rank or most ranks had ended do not count.
 *
 * A straggler has so few items that it is not by chance: items that come at random vary by the root of their number. That
 * any of n ranks is beyond z times that has a probability of at most n * exp(-z * z / 2); deviations is the z * z that
 * makes it 5 %.
 */
static const char comparison[] =
    ", run AS (SELECT iif(value ->> '$[1].version' = 'SPDL', 'ended', value ->> 0) AS state, value ->>"
    " '$[1].rank' AS rank, value ->> '$[1].job' AS job, value ->> '$[1].world' AS world, value ->> '$[1].start'"
    " AS start, value ->> '$[1].end' AS end, value -> 1 AS run FROM json_each(:text, '$.runs')),"
    " gap AS (SELECT *, start > max(end) OVER (PARTITION BY job, world ORDER BY start ROWS BETWEEN UNBOUNDED"
    " PRECEDING AND 1 PRECEDING) + 60 AS is_gap FROM run),"
    " attempt AS (SELECT *, total(is_gap) OVER (PARTITION BY job, world ORDER BY start) AS attempt FROM gap),"
    " chosen AS (SELECT job, world, attempt FROM attempt WHERE job GLOB coalesce(:text ->> '$.job', '*') ORDER"
    " BY start DESC LIMIT 1),"
    " other AS (SELECT DISTINCT job, world, attempt FROM attempt EXCEPT SELECT * FROM chosen),"
    " member AS (SELECT *, max(start) FROM attempt WHERE (job, world, attempt) = (SELECT * FROM chosen) GROUP BY"
    " rank),"
    " extent AS (SELECT min(start) AS first, max(end) AS last, (max(end) - min(start)) / 20 AS width, max(world)"
    " AS world, max(max(iif(world <= 65536, world, 0)), max(iif(rank < 65536, rank + 1, 0))) AS size FROM"
    " member),"
    " lap AS (SELECT rank, l.value ->> 0 AS start, l.value ->> 1 AS end, l.value ->> 2 AS items, l.value ->> 3"
    " AS elapsed, l.value ->> 4 AS occupied FROM member, json_each(run, '$.laps') l),"
    " total AS (SELECT r.*, total(l.items) AS items, coalesce(total(l.items) / nullif(total(l.elapsed), 0), 0)"
    " AS rate, total(l.elapsed) AS elapsed, total(l.occupied) / nullif(total(l.elapsed), 0) AS ready FROM member"
    " r LEFT JOIN lap l USING (rank) GROUP BY rank),"
    " reason AS (SELECT key AS number, value ->> 0 AS name, value ->> 1 AS text FROM json_each('[null, [\"cpu\","
    " \"its CPU: the same work takes more CPU time\"], [\"delay\", \"its CPUs are busy:"
    " threads wait for one\"], [\"blocked\", \"its disk or network: tasks wait while they run\"],"
    " [\"thread\", \"its threads: tasks wait for one\"],"
    " [\"consumer\", \"its consumer: results wait to be taken\"]]') WHERE key),"
    " bin AS (SELECT 0 AS number UNION ALL SELECT number + 1 FROM bin WHERE number < 19),"
    " figure AS (SELECT rank, 0 AS what, rate AS value FROM total UNION ALL SELECT rank, number, (run ->> name)"
    " / items FROM total, reason WHERE items AND run ->> name IS NOT NULL UNION ALL SELECT r.rank, 10 +"
    " b.number, total(l.items * max(min(l.end, e.first + (b.number + 1) * e.width) - max(l.start, e.first +"
    " b.number * e.width), 0) / nullif(l.end - l.start, 0)) FROM member r, bin b, extent e LEFT JOIN lap l ON"
    " l.rank = r.rank GROUP BY r.rank, b.number),"
    " ordered AS (SELECT what, value, row_number() OVER (PARTITION BY what ORDER BY value) AS number, count(*)"
    " OVER (PARTITION BY what) AS count FROM figure),"
    " median AS (SELECT what, avg(value) AS value FROM ordered WHERE number IN ((count + 1) / 2, count / 2 + 1)"
    " GROUP BY what),"
    " since AS (SELECT r.rank, e.first + e.width * coalesce(1 + max(f.what - 10) FILTER (WHERE f.value >="
    " m.value * (1 - (:text ->> '$.slower'))), min(f.what - 10)) AS time FROM member r JOIN extent e JOIN figure"
    " f ON f.rank = r.rank AND f.what >= 10 JOIN median m ON m.what = f.what WHERE m.value > 0 AND r.end >="
    " e.first + (f.what - 9) * e.width - 1e-6 GROUP BY r.rank),"
    " judged AS (SELECT t.*, coalesce(1 - t.rate / nullif(m.value, 0), 0) AS slower, t.elapsed * m.value -"
    " t.items AS lack, t.elapsed * m.value + t.items AS variance, state LIKE 'running%' AND end < e.last - 0.15"
    " * (e.last - e.first) AS is_silent, e.last - end AS silence FROM total t JOIN extent e JOIN median m ON"
    " m.what = 0),"
    " known AS (SELECT *, iif(is_slow, (SELECT r.text FROM figure f JOIN median m USING (what) JOIN reason r ON"
    " r.number = what WHERE f.rank = s.rank AND f.value > m.value ORDER BY f.value - m.value DESC LIMIT 1),"
    " NULL) AS reason, iif(is_slow, (SELECT time FROM since WHERE rank = s.rank), NULL) AS since FROM (SELECT *,"
    " slower >= :text ->> '$.slower' AND lack > 0 AND lack * lack > (:text ->> '$.deviations') * variance AS"
    " is_slow FROM judged) s),"
    " expected AS (SELECT 0 AS rank FROM extent WHERE world > 1 UNION ALL SELECT rank + 1 FROM expected WHERE"
    " rank + 1 < (SELECT size FROM extent)),"
    " missing AS (SELECT rank FROM expected EXCEPT SELECT rank FROM member) ";

/* In the order of the columns of the table. As text, "-267 % slower" is hard to read. */
static const char rows_of_ranks[] =
    "SELECT rank, run ->> 'node', iif(is_silent, 'silent', state), CAST(items AS INTEGER), rate, iif(slower <= 0"
    " AND :text ->> '$.text', NULL, slower), ready, coalesce(run ->> 'failures', 0), end - start, since,"
    " coalesce(reason, ''), run ->> 'database', job FROM known UNION ALL SELECT rank, NULL, 'missing', NULL,"
    " NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM missing ORDER BY 1";

static const char sentences[] =
    "SELECT format('%d rank%s; median %.2f items/s', count(*), iif(count(*) = 1, '', 's'), (SELECT value FROM"
    " median WHERE what = 0)) || iif(count(*) > 1, format('; the slowest rank is %.1f %% slower than the"
    " fastest; the first ended %.1f s before the last', 100 * coalesce(1 - min(rate) / nullif(max(rate), 0), 0),"
    " max(end) - min(end)), '') FROM known UNION ALL SELECT * FROM (SELECT format('rank %d ', rank) || CASE WHEN"
    " state = 'failed' THEN state WHEN state IN ('stopped', 'killed') THEN 'was ' || state ELSE format('is"
    " silent: it has not ended, but has recorded nothing for the last %.0f s', silence) END FROM known WHERE"
    " is_silent OR state IN ('failed', 'stopped', 'killed') ORDER BY rank) UNION ALL SELECT * FROM (SELECT"
    " format('rank %d is %.0f %% slower: %s', rank, 100 * slower, reason) FROM known WHERE reason IS NOT NULL"
    " ORDER BY rank) UNION ALL SELECT * FROM (SELECT iif(count(*) = 1, format('rank %d is missing: no database"
    " has a run of it', min(rank)), format('ranks %d to %d are missing: no database has a run of them',"
    " min(rank), max(rank))) FROM (SELECT rank, rank - row_number() OVER (ORDER BY rank) AS block FROM missing)"
    " GROUP BY block ORDER BY block) UNION ALL SELECT format('%d other job%s in these databases (--job compares"
    " %s)%s', count(*), iif(count(*) = 1, ' is', 's are'), iif(count(*) = 1, 'it', 'one'), coalesce(': ' ||"
    " group_concat(DISTINCT nullif(job, '')), '')) FROM other HAVING count(*)";

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct fleet {
    const tool_call *call;
    weir_recording *recording; /* of the last database that could be read */
    char *runs;                /* of all databases */
    size_t size, num_runs;
    FILE *out, *of_database; /* the second: the runs of one */
} fleet;

static int64_t unix_ns(const weir_row *row, int column)
{
    double seconds = weir_row_real(row, column);
    return fabs(seconds) < 9e9 ? (int64_t)(seconds * 1e9) : 0;
}

static int add_run(void *self, const weir_row *row, weir_error *error)
{
    (void)error;
    fleet *f = self;
    const weir_run_record run = { .node_id = weir_row_text(row, RUN_NODE),
                                  .pid = weir_row_int(row, RUN_PID),
                                  .started_unix_ns = unix_ns(row, RUN_STARTED),
                                  .has_ended = !isnan(weir_row_real(row, RUN_ENDED)),
                                  .status = (int)weir_row_int(row, RUN_STATUS) };
    fprintf(f->of_database, ",[\"%s\",%s]", weir_run_state_name(weir_run_state_of(&run)),
            weir_row_text(row, RUN_OBJECT));
    f->num_runs++;
    return WEIR_OK;
}

/* One that fails in the middle of its runs adds nothing. A folder may have databases of other programs: those are left
   out. */
static int add_database(fleet *f, const char *path, bool may_be_left_out)
{
    weir_recording *recording;
    weir_error error = { 0 };
    char *runs;
    size_t size;
    f->of_database = memory_file_open(&runs, &size);
    int status = weir_recording_open(path, &recording, &error);
    if (status == WEIR_OK)
        status = weir_recording_query(recording, NULL, runs_of_database, path, add_run, f, &error);
    memory_file_close(f->of_database);
    if (status == WEIR_OK)
        fputs(runs, f->out);
    weir_recording_close(status == WEIR_OK ? f->recording : recording);
    f->recording = status == WEIR_OK ? recording : f->recording;
    free(runs);
    if (status != WEIR_OK && may_be_left_out)
        tool_refuse(f->call, "left out: %s", error.message);
    return status == WEIR_OK || may_be_left_out ? TOOL_DONE
           : status == WEIR_ENOTFOUND           ? tool_refuse(f->call, "%s", error.message)
                                                : tool_fail_early(f->call, &error);
}

static int is_database(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".db") == 0;
}

/* Every *.db of a folder; a file as it is. */
static int add_word(fleet *f, const char *word)
{
    struct dirent **entries = NULL;
    int exit_status = TOOL_DONE;
    if (!weir_output_is(word, WEIR_OUTPUT_FOLDER))
        return add_database(f, word, false);
    int count = scandir(word, &entries, is_database, alphasort);
    if (count < 0)
        return tool_refuse(f->call, "cannot read the folder %s: %s", word, strerror(errno));
    if (count == 0)
        exit_status = tool_refuse(f->call, "no *.db file in the folder %s", word);
    for (int i = 0; i < count; i++) {
        char *path = memory_format("%s/%s", word, entries[i]->d_name);
        exit_status = exit_status == TOOL_DONE ? add_database(f, path, true) : exit_status;
        free(path);
        free(entries[i]);
    }
    free(entries);
    return exit_status;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static const table_column columns[] = {
    { "rank", "rank", TABLE_COUNT },       { "node", "node", TABLE_WORDS },
    { "state", "state", TABLE_WORDS },     { "num_items", "items", TABLE_COUNT },
    { "rate", "items/s", TABLE_REAL },     { "slower", "slower", TABLE_SHARE },
    { "readiness", "ready", TABLE_SHARE }, { "num_failures", "failures", TABLE_COUNT },
    { "elapsed", "elapsed", TABLE_TIME },  { "slower_since", "slower since", TABLE_WHEN },
    { "reason", NULL, TABLE_WORDS },       { "database", NULL, TABLE_WORDS },
    { "job", NULL, TABLE_WORDS },
};

static int put_rank(void *ranks, const weir_row *row, weir_error *error)
{
    (void)error;
    record_put_row(ranks, TABLE_COLUMNS(columns), row, 0);
    return WEIR_OK;
}

static int print_sentence(void *out, const weir_row *row, weir_error *error)
{
    (void)error;
    weir__text_escape_to(out, weir_row_text(row, 0));
    fputc('\n', out);
    return WEIR_OK;
}

/* The settings and the runs as one JSON text, for the comparison. */
static char *make_text(const fleet *f)
{
    char *text;
    size_t size;
    FILE *out = memory_file_open(&text, &size);
    json_print(out, "{'text': %d, 'slower': %g, 'deviations': %g, 'job': %s, 'runs': [",
               tool_format(f->call) == TABLE_TEXT, settings.slower / 100, 2 * log(20.0 * (double)f->num_runs),
               settings.job);
    fprintf(out, "%s]}", f->runs + 1);
    memory_file_close(out);
    return text;
}

/* Rows of the comparison. */
static int compare_ranks(const fleet *f, const char *select, const char *text, weir_row_function *each, void *self,
                         weir_error *error)
{
    char *sql = memory_format("%s%s", comparison, select);
    int status = weir_recording_query(f->recording, NULL, sql, text, each, self, error);
    free(sql);
    return status;
}

static int print_fleet(const fleet *f)
{
    weir_error error = { 0 };
    prose all;
    char *text = make_text(f);
    table *ranks = table_begin(stdout, tool_format(f->call), TABLE_COLUMNS(columns));
    int status = compare_ranks(f, rows_of_ranks, text, put_rank, ranks, &error);
    bool is_empty = table_rows(ranks) == 0;
    table_end_alone(ranks);
    prose_open(&all);
    if (status == WEIR_OK && !is_empty && tool_format(f->call) == TABLE_TEXT) {
        fputc('\n', all.file);
        status = compare_ranks(f, sentences, text, print_sentence, all.file, &error);
    }
    status = prose_end(&all, status, &error);
    free(text);
    return status != WEIR_OK ? tool_fail(f->call, &error)
           : is_empty        ? tool_nothing(f->call, "no run of such a job")
                             : tool_finish(f->call);
}

static int run(tool_call *call)
{
    fleet f = { .call = call };
    int exit_status = TOOL_DONE;
    f.out = memory_file_open(&f.runs, &f.size);
    for (int i = 0; i < call->num_words && exit_status == TOOL_DONE; i++)
        exit_status = add_word(&f, call->words[i]);
    memory_file_close(f.out);
    if (exit_status == TOOL_DONE && !f.recording)
        exit_status = tool_refuse(call, "no database of weir in %s", call->words[0]);
    if (exit_status == TOOL_DONE)
        exit_status = *f.runs ? print_fleet(&f) : tool_nothing(call, "no run has started");
    weir_recording_close(f.recording);
    free(f.runs);
    return exit_status;
}

const tool_command tool_fleet = {
    .name = "fleet",
    .words = "[DB...|DIR]",
    .max_words = -1,
    .summary = "compare the ranks of a job: which are slow, since when, why",
    .help =
        "Compares the last run of each rank of the job that started last. The ranks can have a database each, or "
        "share "
        "one; a folder stands for all *.db files in it; files that are not databases of weir are named and left out. "
        "The job may still be running. Ranks of the job without a database are listed as missing. Runs belong to "
        "the "
        "same job if they have the same name of a job (from the launcher) and number of ranks, and less than a "
        "minute "
        "lies between them.\n\n"
        "slower: how many percent fewer items per second than the median rank. ready is the share of the "
        "time in which a result was available "
        "to the consumer: near 100 % the pipeline waits for the consumer, near 0 % the consumer waits for the "
        "pipeline.\n\n"
        "A rank is a straggler if it is slower by --slower and by more than chance explains. A "
        "line says what takes more time per item than on the median rank: CPU time, "
        "waiting for a CPU, blocking in tasks (disk, network), waiting for a thread, or waiting for the consumer. A "
        "rank is silent "
        "if it has not ended and has recorded nothing for 15 % of the job's duration; its process may be gone.",
    .examples = "weir fleet rank*.db\n"
                "weir fleet /shared/job-17 --slower 5\n"
                "weir fleet /shared --job 17 --json\n",
    .shared = TOOL_DB | TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .run = run,
};
