/* weir fleet: compares the ranks of a job: which are slow, since when, and why. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/escape.h>
#include <weir/verdict.h>

#include "array.h"
#include "command_table.h"
#include "each_record.h"
#include "prose.h"

static struct settings {
    double slower; /* percent */
} settings = { .slower = 10 };

#define ROW(option, what, parser) .name = (option), .kind = &(parser), .offset = offsetof(struct settings, what)

static const option_row rows[] = {
    { ROW("slower", slower, option_real), .argument = "PERCENT",
      .help = "a rank is a straggler if it is this much slower than the median (default 10)" },
    { 0 },
};

/* Where the time of an item goes, in slot seconds per delivered item. */
typedef enum part { PART_CPU, PART_BLOCKED, PART_THREAD, PART_CONSUMER, NUM_PARTS } part;

static const char *const reasons[NUM_PARTS] = {
    [PART_CPU] = "its CPU: the same work takes more CPU time",
    [PART_BLOCKED] = "its disk or network: tasks wait while they run",
    [PART_THREAD] = "its CPUs are busy with something else: tasks wait for a thread",
    [PART_CONSUMER] = "its consumer: results wait to be taken",
};

enum { NUM_BINS = 20, NAME_BYTES = 128 };

/* One rank: the last of its runs. */
typedef struct rank_row {
    char node[NAME_BYTES], database[4096];
    int32_t rank;
    int64_t run_id;
    double started, ended; /* ended: the end of the last lap if the run has not ended */
    bool has_ended;
    int64_t num_items, num_failures;
    double rate, readiness; /* readiness: share of the time in which a result was there for the consumer */
    double parts[NUM_PARTS];
    double bin_items[NUM_BINS];
    double slower;       /* than the median, 0.1 = by a tenth; below 0 = faster */
    double slower_since; /* Unix time; 0 = not slower */
    const char *reason;  /* NULL = none */
    bool is_silent;      /* has not ended, but has recorded nothing for a long time */
} rank_row;

typedef struct fleet {
    rank_row *ranks;
    size_t num_ranks;
    double start, end; /* of all */
    double median_rate;
} fleet;

/* ---- reading --------------------------------------------------------------------------------------------------- */

static double seconds(int64_t ns)
{
    return ns > 0 ? (double)ns / 1e9 : 0;
}

/* Finds or adds the row of a rank; NULL = out of memory. */
static rank_row *row_of(fleet *f, const weir_run_record *run)
{
    for (size_t i = 0; i < f->num_ranks; i++)
        if (f->ranks[i].rank == run->rank)
            return &f->ranks[i];
    rank_row *ranks = weir_array_grow(f->ranks, f->num_ranks, sizeof *ranks);
    if (!ranks)
        return NULL;
    f->ranks = ranks;
    f->ranks[f->num_ranks] = (rank_row){ .rank = run->rank };
    return &f->ranks[f->num_ranks++];
}

/* A database of the fleet, or a rank in it, while it is read. */
typedef struct fleet_reading {
    fleet *f;
    const char *database;
    rank_row *row;
} fleet_reading;

static int add_run(void *self, const weir_record *record, weir_error *error)
{
    const fleet_reading *from = self;
    const weir_run_record *run = &record->run;
    rank_row *row = row_of(from->f, run);
    if (!row)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (seconds(run->started_unix_ns) < row->started || run->threads == 0)
        return WEIR_OK; /* an earlier run of the rank, or one that never started */
    *row = (rank_row){
        .rank = run->rank,
        .run_id = run->run_id,
        .started = seconds(run->started_unix_ns),
        .ended = seconds(run->ended_unix_ns),
        .has_ended = run->has_ended,
    };
    snprintf(row->node, sizeof row->node, "%s", run->node_id);
    snprintf(row->database, sizeof row->database, "%s", from->database);
    return WEIR_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Results wait for the consumer in the sink's queue. */
static void add_totals(rank_row *row, const weir_totals *totals)
{
    const weir_total_list *stages = &totals->of[WEIR_SUBJECT_STAGE];
    for (size_t i = 0; i < stages->count; i++) {
        const weir_task_metrics *tasks = &stages->all[i].metrics.task;
        row->num_failures += (int64_t)tasks->num_failures;
        row->parts[PART_CPU] += seconds(tasks->cpu_ns);
        row->parts[PART_BLOCKED] += seconds(tasks->busy_ns - tasks->cpu_ns);
        row->parts[PART_THREAD] += seconds(tasks->wait_thread_ns);
        row->parts[PART_CONSUMER] += seconds(tasks->wait_out_ns) + seconds(tasks->wait_turn_ns);
    }
    const weir_total *sink = weir_totals_sink_queue(totals);
    if (!sink)
        return;
    row->num_items = (int64_t)sink->metrics.queue.num_items;
    row->readiness = weir_measure_of(sink->subject, "occupancy_rate", &sink->metrics, sink->elapsed_ns);
    row->rate = sink->elapsed_ns > 0 ? (double)row->num_items / seconds(sink->elapsed_ns) : 0;
    if (!row->has_ended)
        row->ended = seconds(sink->key.end_unix_ns);
    for (int p = 0; p < NUM_PARTS && row->num_items > 0; p++)
        row->parts[p] /= (double)row->num_items;
}

static int read_totals(rank_row *row, weir_reader *reader, weir_error *error)
{
    weir_totals totals;
    int status = weir_totals_read(reader, &(weir_filter){ .run_id = row->run_id },
                                  &(weir_grouping){ .by = WEIR_BY_NAME }, &totals, error);
    if (status != WEIR_OK)
        return status;
    add_totals(row, &totals);
    weir_totals_free(&totals);
    return WEIR_OK;
}

/* A lap's items are spread over the bins that it covers. */
static int spread_lap(void *self, const weir_record *record, weir_error *error)
{
    (void)error;
    const fleet_reading *from = self;
    double start = from->f->start, width = (from->f->end - start) / NUM_BINS;
    double to = seconds(record->lap.end_unix_ns), elapsed = seconds(record->lap.elapsed_ns);
    for (int bin = 0; bin < NUM_BINS && width > 0 && elapsed > 0; bin++) {
        double left = fmax(to - elapsed, start + bin * width), right = fmin(to, start + (bin + 1) * width);
        if (right > left)
            from->row->bin_items[bin] += (double)record->lap.metrics.queue.num_items * (right - left) / elapsed;
    }
    return WEIR_OK;
}

static int read_course(fleet *f, rank_row *row, weir_reader *reader, weir_error *error)
{
    fleet_reading from = { f, NULL, row };
    return weir_each_record(reader, WEIR_RECORD_QUEUE, &(weir_filter){ .run_id = row->run_id, .name = "sink*" },
                            spread_lap, &from, error);
}

static int for_each_rank(fleet *f, const char *database, weir_reader *reader, bool course, weir_error *error)
{
    int status = WEIR_OK;
    for (size_t i = 0; status == WEIR_OK && i < f->num_ranks; i++) {
        rank_row *row = &f->ranks[i];
        if (strcmp(row->database, database) == 0)
            status = course ? read_course(f, row, reader, error) : read_totals(row, reader, error);
    }
    return status;
}

/* ---- which databases ------------------------------------------------------------------------------------------- */

typedef struct word_list {
    char **words;
    size_t num_words;
} word_list;

static bool add_word(word_list *list, const char *folder, const char *name)
{
    char **words = weir_array_grow(list->words, list->num_words, sizeof *words);
    if (!words)
        return false;
    list->words = words;
    if (asprintf(&words[list->num_words], "%s%s%s", folder, *folder ? "/" : "", name) < 0)
        return false;
    list->num_words++;
    return true;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every *.db of a folder; a file as it is. */
static int find_databases(const tool_call *call, word_list *list)
{
    for (int i = 0; i < call->num_words; i++) {
        struct stat file;
        const char *word = call->words[i];
        size_t before = list->num_words;
        if (stat(word, &file) != 0 || !S_ISDIR(file.st_mode)) {
            if (!add_word(list, "", word))
                return tool_refuse(call, "out of memory"), TOOL_FAILED;
            continue;
        }
        DIR *folder = opendir(word);
        if (!folder)
            return tool_refuse(call, "cannot read the folder %s", word);
        for (struct dirent *entry; (entry = readdir(folder));)
            if (ends_with(entry->d_name, ".db") && !add_word(list, word, entry->d_name))
                break;
        closedir(folder);
        if (list->num_words == before)
            return tool_refuse(call, "no *.db file in the folder %s", word);
    }
    qsort(list->words, list->num_words, sizeof *list->words, compare_words);
    return TOOL_DONE;
}

typedef enum step { STEP_RUNS, STEP_TOTALS, STEP_COURSE } step;

static int read_all(const tool_call *call, const word_list *list, fleet *f, step which)
{
    for (size_t i = 0; i < list->num_words; i++) {
        weir_reader *reader;
        weir_error error = { 0 };
        int exit_status = tool_open(call, list->words[i], &reader, NULL);
        if (exit_status != TOOL_DONE)
            return exit_status;
        fleet_reading from = { f, list->words[i], NULL };
        int status = which == STEP_RUNS ? weir_each_record(reader, WEIR_RECORD_RUN, NULL, add_run, &from, &error)
                                        : for_each_rank(f, list->words[i], reader, which == STEP_COURSE, &error);
        weir_reader_close(reader);
        if (status != WEIR_OK)
            return tool_fail(call, &error);
    }
    return TOOL_DONE;
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *numbers, size_t count)
{
    if (count == 0)
        return 0;
    qsort(numbers, count, sizeof *numbers, compare_numbers);
    return count % 2 ? numbers[count / 2] : (numbers[count / 2 - 1] + numbers[count / 2]) / 2;
}

/* The median of the value at `offset` in each rank. */
static double median_of(const fleet *f, double *room, size_t offset)
{
    for (size_t i = 0; i < f->num_ranks; i++)
        memcpy(&room[i], (const char *)&f->ranks[i] + offset, sizeof room[i]);
    return median(room, f->num_ranks);
}

static void find_reason(const fleet *f, rank_row *row, double *room)
{
    double most = 0;
    for (int p = 0; p < NUM_PARTS; p++) {
        double excess = row->parts[p] - median_of(f, room, offsetof(rank_row, parts) + (size_t)p * sizeof(double));
        if (excess > most) {
            most = excess;
            row->reason = reasons[p];
        }
    }
}

/* The first bin from which on the rank was slower in every bin. Bins in which it, or most ranks, had ended do not
   count. */
static void find_since(const fleet *f, rank_row *row, double *room)
{
    double width = (f->end - f->start) / NUM_BINS;
    for (int bin = NUM_BINS - 1; bin >= 0; bin--) {
        double middle = median_of(f, room, offsetof(rank_row, bin_items) + (size_t)bin * sizeof(double));
        bool counts = middle > 0 && row->ended >= f->start + (bin + 1) * width;
        if (counts && row->bin_items[bin] >= middle * (1 - settings.slower / 100))
            return;
        if (counts || row->slower_since == 0)
            row->slower_since = f->start + bin * width;
    }
}

static int compare(const tool_call *call, fleet *f)
{
    enum { SILENT_BINS = 3 };
    double *room = calloc(f->num_ranks, sizeof *room);
    if (!room)
        return tool_refuse(call, "out of memory"), TOOL_FAILED;
    f->median_rate = median_of(f, room, offsetof(rank_row, rate));
    for (size_t i = 0; i < f->num_ranks; i++) {
        rank_row *row = &f->ranks[i];
        row->slower = f->median_rate > 0 ? 1 - row->rate / f->median_rate : 0;
        row->is_silent = !row->has_ended && row->ended < f->end - (f->end - f->start) * SILENT_BINS / NUM_BINS;
        if (row->slower * 100 < settings.slower)
            continue;
        find_since(f, row, room);
        find_reason(f, row, room);
    }
    free(room);
    return TOOL_DONE;
}

static int compare_ranks(const void *a, const void *b)
{
    const rank_row *left = a, *right = b;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static const table_column columns[] = {
    { "rank", "rank", TABLE_COUNT },       { "node", "node", TABLE_WORDS },
    { "state", "state", TABLE_WORDS },     { "num_items", "items", TABLE_COUNT },
    { "rate", "items/s", TABLE_REAL },     { "slower", "slower", TABLE_SHARE },
    { "readiness", "ready", TABLE_SHARE }, { "num_failures", "failures", TABLE_COUNT },
    { "elapsed", "elapsed", TABLE_TIME },  { "slower_since", "slower since", TABLE_WHEN },
    { "reason", NULL, TABLE_WORDS },       { "database", NULL, TABLE_WORDS },
};

static void put_ranks(const tool_call *call, const fleet *f)
{
    table *t = table_begin(stdout, tool_format(call), columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        table_count(t, row->rank);
        table_words(t, row->node);
        table_words(t, row->has_ended ? "ended" : row->is_silent ? "silent" : "running");
        table_count(t, row->num_items);
        table_number(t, row->rate);
        table_number(t, row->slower);
        table_number(t, row->readiness);
        table_count(t, row->num_failures);
        table_number(t, row->ended - row->started);
        if (row->slower_since > 0)
            table_number(t, row->slower_since);
        else
            table_nothing(t);
        table_words(t, row->reason ? row->reason : "");
        table_words(t, row->database);
    }
    table_end_alone(t);
}

static void put_reason(FILE *out, const rank_row *row)
{
    fprintf(out, "rank %d is %.0f %% slower: ", row->rank, 100 * row->slower);
    weir_text_escape_to(out, row->reason); /* it names stages */
    fputc('\n', out);
}

static void put_sentences(const fleet *f)
{
    double first = INFINITY, last = 0, least = INFINITY, most = 0;
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        first = fmin(first, row->ended);
        last = fmax(last, row->ended);
        least = fmin(least, row->rate);
        most = fmax(most, row->rate);
    }
    prose text;
    prose_open(&text);
    fprintf(text.file,
            "\n%zu rank%s; median %.2f items/s, slowest to fastest %.1f %% apart; first to last end %.1f s apart\n",
            f->num_ranks, f->num_ranks == 1 ? "" : "s", f->median_rate, most > 0 ? 100 * (1 - least / most) : 0,
            last - first);
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        if (row->is_silent)
            fprintf(text.file, "rank %d is silent: it has not ended, but has recorded nothing for the last %.0f s\n",
                    row->rank, f->end - row->ended);
        if (row->reason)
            put_reason(text.file, row);
    }
    for (int32_t rank = 0, at = 0; f->num_ranks > 0 && rank < f->ranks[f->num_ranks - 1].rank; rank++) {
        if (f->ranks[at].rank == rank)
            at++;
        else
            fprintf(text.file, "rank %d is missing: no database has a run with this rank\n", rank);
    }
    prose_close(&text);
}

static int answer(const tool_call *call, const word_list *list, fleet *f)
{
    int exit_status = read_all(call, list, f, STEP_RUNS);
    for (size_t i = 0; i < f->num_ranks;) {
        if (f->ranks[i].run_id)
            i++;
        else
            f->ranks[i] = f->ranks[--f->num_ranks];
    }
    if (exit_status == TOOL_DONE && f->num_ranks == 0)
        return tool_nothing(call, "no run has started");
    if (exit_status == TOOL_DONE)
        exit_status = read_all(call, list, f, STEP_TOTALS);
    f->start = INFINITY;
    for (size_t i = 0; i < f->num_ranks; i++) {
        f->start = fmin(f->start, f->ranks[i].started);
        f->end = fmax(f->end, f->ranks[i].ended);
    }
    if (exit_status == TOOL_DONE)
        exit_status = read_all(call, list, f, STEP_COURSE);
    if (exit_status == TOOL_DONE)
        exit_status = compare(call, f);
    if (exit_status != TOOL_DONE)
        return exit_status;
    qsort(f->ranks, f->num_ranks, sizeof *f->ranks, compare_ranks);
    put_ranks(call, f);
    if (tool_format(call) == TABLE_TEXT)
        put_sentences(f);
    return tool_finish(call);
}

static int run(tool_call *call)
{
    fleet f = { 0 };
    word_list list = { 0 };
    int exit_status = find_databases(call, &list);
    if (exit_status == TOOL_DONE)
        exit_status = answer(call, &list, &f);
    for (size_t i = 0; i < list.num_words; i++)
        free(list.words[i]);
    free(list.words);
    free(f.ranks);
    return exit_status;
}

const tool_command tool_fleet = {
    .name = "fleet",
    .words = "DB...|DIR",
    .min_words = 1,
    .max_words = -1,
    .summary = "compare the ranks of a job: which are slow, since when, why",
    .help = "Compares the last run of each rank. The ranks can have a database each, or share one; a folder stands "
            "for all *.db files in it. The job may still be running.\n\n"
            "slower is relative to the median rank. ready is the share of the time in which a result was available "
            "to the consumer: near 100 % the pipeline waits for the consumer, near 0 % the consumer waits for the "
            "pipeline.\n\n"
            "For each straggler, a line says what takes more time per item than on the median rank: CPU time, "
            "blocking in tasks (disk, network), waiting for a thread, or waiting for the consumer. A rank is silent "
            "if it has not ended and has recorded nothing for 15 % of the job's duration; its process may be gone.",
    .examples = "weir fleet rank*.db\n"
                "weir fleet /shared/job-17 --slower 5\n"
                "weir fleet /shared/job-17 --json\n",
    .shared = TOOL_FORMAT,
    .options = rows,
    .settings = &settings,
    .run = run,
};
