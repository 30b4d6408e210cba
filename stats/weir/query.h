/*
 * Queries of recorded runs: single records, or aggregated, from a database that is complete or that a run is still
 * writing to; and checking and merging databases. Queries only read: no writer is needed, and writers are
 * not disturbed.
 *
 *     weir_recording_open("pipeline_stats.db", &recording, &error);
 *     weir_query_begin(recording, WEIR_RECORD_TASK, &(weir_filter){ .run_id = WEIR_LAST_RUN, .name = "decode" }, &query,
 *                      &error);
 *     while ((status = weir_query_next(query, &record, &error)) == WEIR_OK)
 *         printf("%s: %.3f s a task\n", record->lap.name,
 *                weir_measure_of(WEIR_SUBJECT_STAGE, "ave_time", &record->lap.metrics, record->lap.elapsed_ns));
 *     weir_query_end(query);
 *     weir_recording_close(recording);
 *
 * All times are nanoseconds: durations end in _ns, points in time in _unix_ns. The database holds seconds in doubles,
 * so points in time are exact to a quarter of a microsecond. Metrics are the structs of weir/metrics.h;
 * weir_subject_measures() lists what is derived from them. A lap covers the time from end_unix_ns - elapsed_ns to
 * end_unix_ns; sums add up exactly, and means are weighted by what they are a mean of, for any grouping.
 *
 * A recording and its queries belong to one thread at a time. Results are WEIR_OK, WEIR_ENOTFOUND (no such file, no
 * such run), WEIR_EDATA (not a weir database, or damaged), WEIR_EUNSUPPORTED (a newer schema), WEIR_EBUSY, WEIR_EIO,
 * WEIR_ENOMEM, … *error (may be NULL) holds one line that names the path.
 */
#ifndef WEIR_QUERY_H
#define WEIR_QUERY_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/metrics.h>
#include <weir/observer.h>
#include <weir/status.h>
#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- measures -------------------------------------------------------------------------------------------------------- */

/*
 * The measures of a lap, or of the sum of several: the stored metrics (weir/metrics.h) and what is derived from them,
 * each described once. Columns of tables, exports, comparisons and plots are generated from these lists, so a metric
 * that is added to weir/metrics.h appears in all of them.
 */

/* The most histograms that the metrics of a subject have: metrics of the kind WEIR_METRIC_HISTOGRAM. */
enum { WEIR_MAX_HISTOGRAMS = 3 };

typedef struct weir_measure {
    const char *name;  /* key of JSON and CSV, column of the database: "ave_time" */
    const char *title; /* heading in text tables; NULL = only in JSON and CSV */
    const char *unit;  /* "s", "share" (0 to 1), "bytes", "1/s", "tasks", … */
    const char *help;
    int better;                /* 1: more is better, -1: less is, 0: neither */
    const weir_metric *metric; /* the stored metric; NULL = derived */
    double (*derive)(const weir_metrics *metrics, int64_t elapsed_ns); /* of derived ones */
} weir_measure;

/* All measures of a subject except its histograms, in the order of tables. *count is their number. */
WEIR_API const weir_measure *weir_subject_measures(weir_subject subject, size_t *count);

/* NULL = no measure of that name. */
WEIR_API const weir_measure *weir_measure_find(weir_subject subject, const char *name);

/*
 * The value of the measure over elapsed_ns (of all laps together), in its unit. NAN = it is not known, or nothing
 * happened (the mean time of no tasks, a share of no time).
 */
WEIR_API double weir_measure_value(const weir_measure *measure, const weir_metrics *metrics, int64_t elapsed_ns);

/* The same by name; NAN if no measure has that name. */
static inline double weir_measure_of(weir_subject subject, const char *name, const weir_metrics *metrics,
                                     int64_t elapsed_ns)
{
    return weir_measure_value(weir_measure_find(subject, name), metrics, elapsed_ns);
}

/* Slots × time of a stage or flow node, up to its end: busy and all kinds of waiting; negative = not known. */
static inline int64_t weir_slots_ns(const weir_task_metrics *task)
{
    if (!task)
        return -1;
    const int64_t times[] = { task->busy_ns, task->wait_in_ns, task->wait_thread_ns, task->wait_turn_ns,
                              task->wait_out_ns };
    int64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        if (times[i] < 0)
            return -1;
        sum = times[i] > INT64_MAX - sum ? INT64_MAX : sum + times[i];
    }
    return sum;
}

/* The time of elapsed_ns in which a stage or flow node had not ended: its slots end together. All of it if task is NULL. */
WEIR_API int64_t weir_task_life_ns(const weir_task_metrics *task, int64_t elapsed_ns);

/* The mean number of slots of a stage; negative = not known. */
WEIR_API double weir_num_slots(const weir_task_metrics *task, int64_t elapsed_ns);

/* -- the database -- */

typedef struct weir_recording weir_recording;

/*
 * Opens; on failure *recording is NULL. SPDL's own databases are read, too: values that these lack are not known, see
 * weir_recording_lacks().
 */
WEIR_API int weir_recording_open(const char *path, weir_recording **recording, weir_error *error);

struct weir_sqlite_writer;

/*
 * Opens what a writer records, in its file or in memory, while the run goes on or after it. First waits until all
 * that the writer has observed is written (weir_sqlite_flush()). Laps are observed when they end
 * (weir_pipeline_options.stats_interval_ns). What is opened is a connection of its own. It may be used on another
 * thread, and works after weir_sqlite_close(), too. While it holds a recording in memory
 * (weir_recording_hold()), or is in the middle of a query of it, the writer keeps entries in its buffer. On
 * failure *recording is NULL, with a status of weir_sqlite_flush() or weir_recording_open(). Any thread.
 */
WEIR_API int weir_recording_open_writer(struct weir_sqlite_writer *writer, weir_recording **recording,
                                        weir_error *error);

/* All queries of the recording must have ended. NULL is accepted. */
WEIR_API void weir_recording_close(weir_recording *recording);

/* The path as it was opened, for messages. */
WEIR_API const char *weir_recording_path(const weir_recording *recording);

/* What the database lacks, as a sentence without a full stop; NULL = nothing. */
WEIR_API const char *weir_recording_lacks(const weir_recording *recording);

/*
 * From hold to release, all reads see one snapshot, even if a writer is active. The writer's log cannot be cleaned up
 * meanwhile, so do not hold for hours. Without a hold, each query and each aggregation sees its own snapshot.
 */
WEIR_API int weir_recording_hold(weir_recording *recording, weir_error *error);
WEIR_API void weir_recording_release(weir_recording *recording);

/*
 * The text of the SQL statement that the last query, or the last subject of a sum, has used, with its values. It is valid
 * until the next query. NULL = none. docs/sql.md says what other programs need to run it.
 */
WEIR_API const char *weir_recording_sql(const weir_recording *recording);

/* -- which records -- */

#define WEIR_ALL_RUNS INT64_C(0)
#define WEIR_LAST_RUN \
    INT64_C(-1) /* the one that started last of those that have laps, or have not ended; or of all */
#define WEIR_PREVIOUS_RUN INT64_C(-2) /* the run before the last one, of the runs that have laps, or have not ended */

/*
 * A zeroed struct selects everything, in the order of time. A record must match all conditions. A kind of record may
 * lack the field of a condition: failures have no phase, for example. Then the record must lie in the time of a lap
 * that matches. For runs, stages and nodes such a condition is ignored. Strings are copied.
 */
typedef struct weir_filter {
    int64_t
        run_id; /* WEIR_ALL_RUNS, WEIR_LAST_RUN, WEIR_PREVIOUS_RUN or its number; WEIR_ENOTFOUND if there is none */
    /* glob (* ? [a-z]) for a stage's, queue's or event's name (NULL = any). A name is compared as a whole, and
       without its numbers, its bracket and "_queue": "decode" matches "0:1:decode[10]" and its queue, "decode*_queue"
       only the queue; "read" also matches the span "io/read" */
    const char *name;
    const char *node_id; /* glob for the node (NULL = any) */
    bool by_rank;        /* only rank `rank` */
    int32_t rank;
    /* records that overlap this range (0 = no limit). A point in time matches if it is at or after the start and
       before the end */
    int64_t start_unix_ns, end_unix_ns;
    bool by_step;                  /* only records that overlap steps first_step to last_step, inclusive */
    int64_t first_step, last_step; /* INT64_MAX = to the end */
    /* globs of phases and modes (NULL = any): "train*". The phase "startup" includes laps that ended before the first mark */
    const char *phase, *mode;
    const char *from_phase; /* in each run, only from the start of its first from_phase (NULL = of the run) */
    /* and only up to the start of the first until_phase after that (NULL or no such phase = the end) */
    const char *until_phase;
    int64_t after_id;   /* only rows with a higher id, in the order of ids: to follow a run that is being written */
    bool descending;    /* latest first */
    bool longest_first; /* laps of stages by max_time, failures and items by run_ns, instead of by time */
    int64_t limit;      /* at most this many records (0 = all) */
    bool no_replay;     /* without laps of WEIR_PHASE_REPLAY, in which nobody takes items */
} weir_filter;

/*
 * Whether the pattern of a filter selects a name. "decode" and "d*" match "0:1:decode[10]" and
 * "0:1:decode[10]_queue", and so do the whole name and globs for it. "decode*_queue" matches only the queue. False
 * for NULL.
 */
WEIR_API bool weir_name_matches(const char *pattern, const char *name);

/* A section of a run: its laps before the first step, or those after the last one. */
typedef enum weir_run_section {
    WEIR_SECTION_ALL = 0,
    WEIR_SECTION_BEFORE_STEPS, /* before the first step was marked */
    WEIR_SECTION_AFTER_STEPS,  /* after the last lap that has a step; a step that no mark ends lasts to the end */
} weir_run_section;

/*
 * Where from_phase and until_phase of filters apply, and positions within steps: phases that a program marks inside a
 * step ("forward", "backward") belong to it, like smdebug's StepPhase. A zeroed struct is the default.
 */
typedef struct weir_selection {
    bool every;   /* each time that from_phase begins, up to the next until_phase, not only the first time */
    bool by_step; /* from_phase not before from_step, until_phase not before until_step. Without phases: from the
                     first lap in from_step, through the last one in until_step. The step of a lap is the last one
                     that was marked */
    int64_t from_step, until_step;
    weir_run_section section; /* not together with the others */
    /* globs of modes, as weir_filter.from_phase and until_phase are of phases (NULL = any). With both, the mode and the phase
       must match. The strings must live as long as the selection is set */
    const char *from_mode, *until_mode;
} weir_selection;

WEIR_API int weir_recording_set_selection_sized(weir_recording *recording, const weir_selection *selection,
                                                size_t selection_size, weir_error *error);

/* Sets the selection of all queries and sums that begin from now on; NULL = the default. Copied. WEIR_OK or
   WEIR_EINVAL. */
static inline int weir_recording_set_selection(weir_recording *recording, const weir_selection *selection,
                                               weir_error *error)
{
    return weir_recording_set_selection_sized(recording, selection, sizeof *selection, error);
}

/*
 * Laps and sums that are read from now on are without histograms, or with them again: percentiles are not known then. Reading
 * many laps takes less time without. NULL is fine.
 */
WEIR_API void weir_recording_skip_histograms(weir_recording *recording, bool skip);

/* -- records -- */

typedef enum weir_record_kind {
    WEIR_RECORD_TASK,    /* a lap of a stage */
    WEIR_RECORD_FLOW,    /* a lap of a source, route, merge or sink */
    WEIR_RECORD_QUEUE,   /* a lap of a queue */
    WEIR_RECORD_POOL,    /* a lap of a pool of threads */
    WEIR_RECORD_EVENT,   /* something that happened once */
    WEIR_RECORD_FAILURE, /* a failed task */
    WEIR_RECORD_ITEM,    /* the cost of one item, if item_stats has it */
    WEIR_RECORD_RUN,     /* by run_id */
    WEIR_RECORD_STAGE,   /* by run and position in the pipeline */
    WEIR_RECORD_NODE,    /* by name */
    WEIR_RECORD_PHASE,   /* consecutive laps of one phase and mode of one run; by run and time */
    WEIR_RECORD_PROCESS, /* a lap of the process */
    WEIR_RECORD_MACHINE, /* a lap of the machine */
    WEIR_RECORD_SPAN,    /* a lap of a span, frame or marker */
    WEIR_RECORD_COUNTER, /* a lap of a counter's value */
    /* What the database holds: by table, name, node, mode and phase. Only run_id and name of a filter count. */
    WEIR_RECORD_CONTENT,
    WEIR_RECORD_STACK,   /* a function that was sampled, with its caller; by run */
    WEIR_RECORD_SAMPLES, /* the samples of a stack in a lap */
    WEIR_NUM_RECORD_KINDS,
} weir_record_kind;

/* The kind of the laps of a subject. */
static inline weir_record_kind weir_record_kind_of(weir_subject subject)
{
    static const weir_record_kind kinds[WEIR_NUM_SUBJECTS] = {
        WEIR_RECORD_TASK,    WEIR_RECORD_FLOW,    WEIR_RECORD_QUEUE, WEIR_RECORD_POOL,
        WEIR_RECORD_PROCESS, WEIR_RECORD_MACHINE, WEIR_RECORD_SPAN,  WEIR_RECORD_COUNTER,
    };
    return kinds[subject];
}

/* Whether its laps are of several kinds (weir_lap_record.kind), such as sources and sinks. */
static inline bool weir_subject_has_kinds(weir_subject subject)
{
    return subject == WEIR_SUBJECT_FLOW || subject == WEIR_SUBJECT_SPAN || subject == WEIR_SUBJECT_COUNTER;
}

/* Where the consumer was; see weir_lap_position. */
typedef struct weir_record_position {
    const char *mode, *phase;      /* "" = the consumer made no such marks */
    int64_t first_step, last_step; /* last < first = none */
} weir_record_position;

/* Percentiles in seconds that were recorded without a histogram, by SPDL. They cannot be added up. */
typedef struct weir_percentiles {
    bool are_known;
    double p90, p99;
} weir_percentiles;

typedef struct weir_lap_record {
    weir_subject subject;
    int64_t id, run_id;
    int64_t end_unix_ns, elapsed_ns;
    int64_t suspended_ns; /* time in which the process did not run; -1 = not known */
    int64_t num_joined;   /* laps joined in this one; 1 = an ordinary lap */
    const char *name;
    const char *kind; /* "stage", "source", "route", "merge", "sink", "queue", "pool", "process", "machine", "span",
                         "frame", "marker", "level" or "total" (counters) */
    weir_record_position position;
    int64_t capacity; /* of queues: items; of pools: threads; of processes: the CPU budget; else 0 */
    weir_metrics metrics;
    weir_percentiles percentiles[WEIR_MAX_HISTOGRAMS]; /* in the order of the histograms in weir_subject_metrics() */
} weir_lap_record;

typedef struct weir_event_record {
    int64_t id, run_id;
    int64_t unix_ns;
    const char *name, *category, *detail;
} weir_event_record;

typedef struct weir_failure_record {
    int64_t id, run_id;
    int64_t unix_ns, run_ns;
    const char *name; /* of the stage */
    int64_t seq;
    const char *label; /* "" = none */
    int status, library_code;
    const char *message;
    const char *identity; /* the address of weir_identity, "" = it is the label; and its number among equals */
    int64_t occurrence;
} weir_failure_record;

/* Numbers below 0 and empty texts mean unknown. */
typedef struct weir_item_record {
    int64_t id, run_id;
    int64_t unix_ns, run_ns;
    const char *name; /* of the stage */
    int64_t seq;
    const char *label;
    const char *codec;
    int64_t width, height, num_frames, size_bytes;
    int64_t open_ns, demux_ns, decode_ns, scale_ns;
    const char *chosen;              /* why it is recorded: "slowest", "sample", "damaged" or "all" */
    int64_t num_missing, num_errors; /* of a damaged item; 0 also means unknown */
    const char *identity; /* the address of weir_identity, "" = it is the label; and its number among equals */
    int64_t occurrence;
    /* Other parts that its stage reported, see weir_sqlite_item_hook(): a JSON object; "" = none. */
    const char *parts;
} weir_item_record;

typedef struct weir_run_record {
    int64_t run_id;
    const char *node_id;
    int32_t rank;
    uint32_t world;  /* the number of ranks; 0 = not known */
    const char *job; /* a name that the ranks of a job share; "" = not known */
    int64_t pid;
    int64_t started_unix_ns;
    bool has_ended;        /* false: running, or killed; see weir_run_state_of() */
    int64_t ended_unix_ns; /* 0 = has not */
    int status;            /* of the end */
    int64_t threads;       /* 0 = never started */
    const char *command, *version;
    const char *machine; /* system, CPUs and memory; "" = not known */
    int64_t entries_lost;
} weir_run_record;

/* The state of a run. */
typedef enum weir_run_state {
    WEIR_RUN_RUNNING,
    WEIR_RUN_KILLED,   /* its process is gone, but the run has not ended */
    WEIR_RUN_OPEN,     /* running or killed: it is on another node, where its process cannot be checked */
    WEIR_RUN_FINISHED, /* everything was delivered */
    WEIR_RUN_STOPPED,
    WEIR_RUN_FAILED,
} weir_run_state;

WEIR_API weir_run_state weir_run_state_of(const weir_run_record *run);
WEIR_API const char *weir_run_state_name(weir_run_state state); /* "running", "killed", "running or killed", … */

typedef struct weir_stage_record {
    int64_t run_id;
    const char *name, *queue_name, *kind, *output_order;
    int64_t concurrency, queue_items, queue_bytes;
    int64_t threads;                  /* private ones; 0 = none, or not known */
    const char *inputs, *merge_order; /* as in weir_stage_info; "" = none, or not known */
    int64_t look_ahead_items;         /* of a route; 0 = none, or not known */
} weir_stage_record;

typedef struct weir_node_record {
    const char *node_id;
    int64_t num_runs;
    int64_t started_unix_ns, ended_unix_ns; /* of the first, of the last; ended 0 = one has not */
} weir_node_record;

typedef struct weir_phase_record {
    int64_t run_id;
    weir_record_position position;
    int64_t start_unix_ns, end_unix_ns;
    int64_t num_laps;
} weir_phase_record;

typedef struct weir_content_record {
    const char *table, *name;
    const char *node_id;
    const char *mode, *phase; /* of laps; "" = no marks, or not of laps */
    const char *path;         /* the database; of "trace", the file that weir record --trace has written */
    int64_t num_records;
    int64_t start_unix_ns, end_unix_ns;
} weir_content_record;

/* A function in one place of the calls: a stack is the function with its callers. */
typedef struct weir_stack_record {
    int64_t run_id;
    int64_t stack;  /* its number in the run, from 1; larger than that of its caller */
    int64_t caller; /* the stack that calls it; 0 = none */
    const char *function;
} weir_stack_record;

/* Samples of CPU time, not calls, of one lap. */
typedef struct weir_samples_record {
    int64_t id, run_id;
    int64_t end_unix_ns, elapsed_ns; /* of the lap */
    const char *name;                /* of the stage, source, … that ran; else of the pool, or of the thread */
    weir_record_position position;
    int64_t stack; /* 0 = samples that were lost */
    int64_t num_samples;
    int64_t cpu_ns; /* that they stand for */
} weir_samples_record;

typedef struct weir_record {
    weir_record_kind kind;
    union {
        weir_lap_record lap; /* of stages, flow nodes, queues, pools, processes, machines */
        weir_event_record event;
        weir_failure_record failure;
        weir_item_record item;
        weir_run_record run;
        weir_stage_record stage;
        weir_node_record node;
        weir_phase_record phase;
        weir_content_record content;
        weir_stack_record stack;
        weir_samples_record samples;
    };
} weir_record;

typedef struct weir_query weir_query;

/* Starts to read; filter may be NULL. On failure *query is NULL. Memory use does not depend on the number of
   records. */
WEIR_API int weir_query_begin(weir_recording *recording, weir_record_kind kind, const weir_filter *filter,
                              weir_query **query, weir_error *error);

/* The next record, valid until the next call for this query. WEIR_EOF after the last one, also if called again. */
WEIR_API int weir_query_next(weir_query *query, const weir_record **record, weir_error *error);

/* NULL is fine. */
WEIR_API void weir_query_end(weir_query *query);

/* Takes a record, which is valid until it returns. WEIR_OK; WEIR_EOF ends the query early; or a failure, with *error
   filled. */
typedef int weir_record_function(void *self, const weir_record *record, weir_error *error);

/* Calls `each` for the records of a kind that match the filter (may be NULL). WEIR_OK, or the first failure. */
static inline int weir_recording_each(weir_recording *recording, weir_record_kind kind, const weir_filter *filter,
                                      weir_record_function *each, void *self, weir_error *error)
{
    weir_query *query = NULL;
    const weir_record *record = NULL;
    int status = each ? weir_query_begin(recording, kind, filter, &query, error) : WEIR_EINVAL;
    while (status == WEIR_OK && (status = weir_query_next(query, &record, error)) == WEIR_OK)
        status = each(self, record, error);
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* Calls `each` for the laps of all subjects that match the filter, in the order of their ends. As weir_recording_each(). */
WEIR_API int weir_recording_each_lap(weir_recording *recording, const weir_filter *filter, weir_record_function *each,
                                     void *self, weir_error *error);

/* Copies of records. */
typedef struct weir_records {
    const weir_record **all;
    size_t count;
} weir_records;

/* Copies the records of a kind that match the filter (may be NULL); laps have no histograms. After success free them with
   weir_records_free(); otherwise there are none. */
WEIR_API int weir_records_read(weir_recording *recording, weir_record_kind kind, const weir_filter *filter,
                               weir_records *records, weir_error *error);
WEIR_API void weir_records_free(weir_records *records);

/* Whether any record matches. */
static inline int weir_recording_has(weir_recording *recording, weir_record_kind kind, const weir_filter *filter,
                                     bool *found, weir_error *error)
{
    weir_query *query = NULL;
    const weir_record *record = NULL;
    int status = found ? weir_query_begin(recording, kind, filter, &query, error) : WEIR_EINVAL;
    if (status == WEIR_OK)
        status = weir_query_next(query, &record, error);
    if (found)
        *found = status == WEIR_OK;
    weir_query_end(query);
    return status == WEIR_EOF ? WEIR_OK : status;
}

/* A row of weir_recording_query(): a cell for each column, its value in each form. */
typedef struct weir_row {
    bool is_null;
    int64_t whole;    /* 0 = NULL */
    double real;      /* NAN = NULL */
    const char *text; /* "" = NULL */
} weir_row;

/* Columns are numbered from 0. */
static inline const char *weir_row_text(const weir_row *row, int column)
{
    return row ? row[column].text : "";
}

static inline int64_t weir_row_int(const weir_row *row, int column)
{
    return row ? row[column].whole : 0;
}

static inline double weir_row_real(const weir_row *row, int column)
{
    return row ? row[column].real : NAN;
}

static inline bool weir_row_is_null(const weir_row *row, int column)
{
    return !row || row[column].is_null;
}

/* Gets a row, which is valid until it returns. WEIR_OK; WEIR_EOF ends early; or a failure, with *error filled. */
typedef int weir_row_function(void *self, const weir_row *row, weir_error *error);

/*
 * Rows of SQL, with weir's functions (docs/sql.md). Its tables are the lists of weir query --list: runs, stages,
 * tasks, flow, queues, pools, process, machine, spans, counters, events, failures and items. Two more are stacks (all
 * of the run) and samples, the functions that were sampled. Each table has the rows that match the filter (its order
 * and limit are ignored). It has the columns of the schema; a column that the database lacks is NULL. `sql` is
 * "SELECT …" or ", another AS (…) SELECT …": it follows a WITH RECURSIVE of these tables. `text` (may be NULL) is its
 * parameter :text. It is one statement. WEIR_OK, or the first failure.
 */
WEIR_API int weir_recording_query(weir_recording *recording, const weir_filter *filter, const char *sql,
                                  const char *text, weir_row_function *each, void *self, weir_error *error);

/* The names of these tables, which are also valid as `sql` of "SELECT * FROM …"; NULL = there are no more. Any thread. */
WEIR_API const char *weir_recording_table(size_t index);

typedef enum weir_row_type {
    WEIR_ROW_INT = 0, /* weir_row.whole */
    WEIR_ROW_REAL,    /* weir_row.real */
    WEIR_ROW_TEXT,    /* weir_row.text; names of files may be no valid UTF-8 */
    WEIR_ROW_BYTES,   /* such as a histogram: no form in a weir_row */
} weir_row_type;

/* A column of rows. The name lives as long as the rows. */
typedef struct weir_row_column {
    const char *name;
    weir_row_type type; /* as the table declares it; of an expression, what all of its values can be read as */
} weir_row_column;

/* The rows of weir_recording_query() one after the other, with names and types of the columns. */
typedef struct weir_rows weir_rows;

/* The arguments are those of weir_recording_query(). The rows are of one snapshot. A statement with expressions may be
   run twice: their types are only known from their values. On success end them with weir_rows_end(), before the
   recording is closed. On failure *rows is NULL. */
WEIR_API int weir_rows_begin(weir_recording *recording, const weir_filter *filter, const char *sql, const char *text,
                             weir_rows **rows, weir_error *error);

/* *count of them, in the order of the cells; valid until weir_rows_end(). NULL and 0 of NULL. */
WEIR_API const weir_row_column *weir_rows_columns(const weir_rows *rows, size_t *count);

/* The next row, valid until the next call for these rows. WEIR_EOF after the last one, also if called again. */
WEIR_API int weir_rows_next(weir_rows *rows, const weir_row **row, weir_error *error);

/* NULL is fine. */
WEIR_API void weir_rows_end(weir_rows *rows);

/* One run: WEIR_LAST_RUN, WEIR_PREVIOUS_RUN or its number. Texts are valid until the next call for this recording. */
WEIR_API int weir_recording_find_run(weir_recording *recording, int64_t run_id, weir_run_record *run,
                                     weir_error *error);

/* -- sums -- */

/* The keys by which records are aggregated, in any combination. Memory use depends on the number of groups (10 to 30
   kB each). */
typedef enum weir_group_by {
    WEIR_BY_NAME = 1, /* stage or queue */
    WEIR_BY_RUN = 2,
    WEIR_BY_NODE = 4,
    WEIR_BY_PHASE = 8,
    /* "startup": up to the first lap that has a step; "finish": after the last one; "loop": between them, whatever its
       phases are called. Without steps, laps in which sinks got items take their place; "" if the sinks are not known */
    WEIR_BY_JOB_PHASE = 16,
    WEIR_BY_STEP = 32, /* bins of steps; a lap counts in the bin of its first step, a lap without steps in none */
    WEIR_BY_TIME = 64, /* bins of time; a lap counts in the bin of its end */
    WEIR_BY_TRANSITION = 128, /* phase, and the phase before it: "eval > train"; the first is "start > …" */
    WEIR_BY_LAP = 256,        /* each lap alone, with its name, run and phase */
    WEIR_BY_MODE = 512,
    WEIR_BY_MODE_TRANSITION = 1024, /* mode, and the mode before it: "train > eval"; the first is "start > …" */
} weir_group_by;

/* A zeroed struct aggregates everything into one group. */
typedef struct weir_grouping {
    uint32_t by;       /* weir_group_by, or-ed */
    uint32_t subjects; /* the subjects to read: 1 << weir_subject, or-ed (0 = all) */
    int64_t bin_steps; /* (0 = 1) */
    int64_t bin_ns;    /* (0 = a minute); bins start at multiples of it, in Unix time */
    /* SQL: groups with the largest value first; its names are the columns of the sums (metrics, elapsed, …), and weir's
       functions (docs/sql.md) are there. NULL = in the order of the keys */
    const char *order_by;
    bool reverse;  /* the smallest, or the last, first */
    int64_t limit; /* only the first groups of each subject (0 = all) */
} weir_grouping;

/* The keys that a group's records share, and the range that they cover. */
typedef struct weir_group_key {
    const char *name;                   /* "" = not grouped by it */
    const char *node_id;                /* "" = not grouped by it */
    const char *phase;                  /* or transition; "" = not grouped by it, or no marks */
    const char *mode;                   /* or transition; "" = not grouped by it, or no marks */
    int64_t run_id;                     /* 0 = not grouped by it */
    int64_t bin_step;                   /* start of the bin; 0 = not grouped by it */
    int64_t bin_unix_ns;                /* start of the bin; 0 = not grouped by it */
    int64_t first_step, last_step;      /* covered; last < first = none */
    int64_t start_unix_ns, end_unix_ns; /* covered */
    int64_t num_laps;                   /* records added */
    double share;                       /* of the time of all groups with the same name, run and node */
} weir_group_key;

/* One group: the sum of its laps. */
typedef struct weir_total {
    weir_group_key key;
    weir_subject subject;
    const char *kind; /* as in weir_lap_record */
    int64_t
        elapsed_ns; /* of all laps together; of spans and counters: of all laps of their runs, also those without it */
    int64_t suspended_ns; /* part of it in which the process did not run; -1 = not known */
    int64_t capacity;     /* of the last lap */
    double concurrency;   /* how many of its runs went on at a time, on the average; up to 1 = a single one */
    weir_metrics metrics; /* histograms NULL = not known */
    weir_percentiles percentiles[WEIR_MAX_HISTOGRAMS]; /* of a single lap */
} weir_total;

/* The time that the rates and shares of the total are over: that in which its subject had not ended. */
static inline int64_t weir_total_life_ns(const weir_total *total)
{
    if (!total)
        return 0;
    if (total->subject == WEIR_SUBJECT_STAGE || total->subject == WEIR_SUBJECT_FLOW)
        return weir_task_life_ns(&total->metrics.task, total->elapsed_ns);
    if (total->subject == WEIR_SUBJECT_COUNTER && total->metrics.counter.known_ns > 0)
        return total->metrics.counter.known_ns; /* it had no value before */
    bool has_ended = total->subject == WEIR_SUBJECT_QUEUE && total->metrics.queue.ended_ns > 0;
    return total->elapsed_ns - (has_ended ? total->metrics.queue.ended_ns : 0);
}

typedef struct weir_total_list {
    weir_total *all;
    size_t count;
} weir_total_list;

/* Sorted by run, node, time, step, mode and phase, then in the order of the pipeline. */
typedef struct weir_totals {
    weir_total_list of[WEIR_NUM_SUBJECTS];
} weir_totals;

/*
 * Aggregates in one pass. filter and grouping may be NULL; the filter's order and limit are ignored. If nothing
 * matches the filter, there are no groups, which is not an error. After success call weir_totals_free(), which also
 * frees what the totals point to. WEIR_ELIMIT if there are more than 100,000 groups.
 */
WEIR_API int weir_totals_read(weir_recording *recording, const weir_filter *filter, const weir_grouping *grouping,
                              weir_totals *totals, weir_error *error);
WEIR_API void weir_totals_free(weir_totals *totals);

/* The value of a measure, as weir_measure_value() has it. Runs may have gone on at the same time, as the ranks of a
   job do. Counts per second and CPUs in use are then those of all runs together. Percentiles of laps without
   histograms are as recorded. */
WEIR_API double weir_total_value(const weir_total *total, const weir_measure *measure);

/* The queue from which the consumer takes items; NULL = none. */
WEIR_API const weir_total *weir_totals_sink_queue(const weir_totals *totals);

/* Items that the consumer got per second. NAN = not known. */
WEIR_API double weir_totals_items_per_s(const weir_totals *totals);

/* Frames that consumers got per second, of all runs in the totals (by name) together: the one source of this figure is the total
   WEIR_FRAMES_CATEGORY/WEIR_FRAMES_NAME (weir/span.h). NAN = the program does not count them. */
WEIR_API double weir_totals_frames_per_s(const weir_totals *totals);

/* A lap as a total; its texts and histograms belong to the lap. */
WEIR_API weir_total weir_total_of_lap(const weir_lap_record *lap);

/* -- checking -- */

typedef enum weir_finding_level {
    WEIR_FINDING_OK,    /* the check passed */
    WEIR_FINDING_NOTE,  /* information: the run has not ended */
    WEIR_FINDING_FAULT, /* the check failed: do not trust the metrics without looking into it */
} weir_finding_level;

typedef struct weir_finding {
    weir_finding_level level;
    const char *check; /* "schema", "integrity", "references", "run", "histograms", "laps", "slots", "failures",
                          "queues", "stacks", "rolls" */
    int64_t run_id;    /* 0 = the whole database */
    const char *text;  /* a sentence without a full stop */
} weir_finding;

/* Called for each finding, which is valid during the call. */
typedef void weir_finding_function(void *self, const weir_finding *finding);

/*
 * Checks, in this order:
 *   - that every table has its columns;
 *   - that the file is intact (quick: without comparing each index with its table);
 *   - that every row belongs to an existing run;
 *   - that the metrics of each run are consistent, as follows.
 * Histograms must agree with the counts of tasks and items, and busy and waiting time with slots × time. Each lap
 * must agree with the previous one, failed tasks with their records, and items put into a queue with items taken out.
 * Only reads. Memory use does not depend on the number of laps. If a run has many faults of one kind, the first few
 * are reported, and then the number of the others.
 *
 * Returns WEIR_OK if the checks could be run, even if they found faults.
 */
WEIR_API int weir_database_check(weir_recording *recording, bool quick, weir_finding_function *report, void *self,
                                 weir_error *error);

/* -- merging -- */

typedef struct weir_merged {
    int64_t added;    /* new runs */
    int64_t replaced; /* runs that had fewer records before */
    int64_t present;  /* runs that were already there, with the same records or more */
    int64_t skipped;  /* runs that never started */
} weir_merged;

/*
 * Copies all runs of the database at `from` into the one at `to`, which is created if missing, in one transaction. A
 * run is identified by its node, rank, process, start and command. A run that is already there is left as it is, so
 * nothing counts twice. It is replaced if the copy is newer, because the run had not ended when it was copied before.
 * Runs get new numbers. A writer may be using `from`: what it has written so far is copied. WEIR_EINVAL if both are
 * the same file. If `to` is created, SIGINT, SIGTERM and SIGHUP of this thread wait meanwhile; one that waits ends
 * the merge: WEIR_ESTOPPED.
 */
WEIR_API int weir_database_merge(const char *to, const char *from, weir_merged *merged, weir_error *error);

#ifdef __cplusplus
}
#endif

#endif
