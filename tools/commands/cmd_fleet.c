/* weir fleet: compares the ranks of a job: which are slow, since when, and why. */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/verdict.h>

#include "array.h"
#include "command_table.h"
#include "prose.h"
#include "text_escape.h"

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

enum { NUM_BINS = 20, NAME_BYTES = 128, MAX_WORLD = 1 << 16 /* more is damaged data */ };

/* One rank: the last of its runs. */
typedef struct rank_row {
    char node[NAME_BYTES], database[4096];
    int32_t rank;
    bool is_missing; /* no database has a run of it; the rest is 0 */
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
    uint32_t world;         /* of the run that started last; 0 = not recorded */
    int64_t latest_unix_ns; /* its start */
} fleet;

/* ---- reading --------------------------------------------------------------------------------------------------- */

static double seconds(int64_t ns)
{
    return ns > 0 ? (double)ns / 1e9 : 0;
}

static rank_row *find_row(const fleet *f, int32_t rank)
{
    for (size_t i = 0; i < f->num_ranks; i++)
        if (f->ranks[i].rank == rank)
            return &f->ranks[i];
    return NULL;
}

/* NULL = out of memory. */
static rank_row *add_row(fleet *f, int32_t rank)
{
    rank_row *ranks = weir__array_grow(f->ranks, f->num_ranks, sizeof *ranks);
    if (!ranks)
        return NULL;
    f->ranks = ranks;
    f->ranks[f->num_ranks] = (rank_row){ .rank = rank };
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
    rank_row *row = find_row(from->f, run->rank);
    bool has_started = run->threads > 0 || strcmp(run->version, "SPDL") == 0;
    if (!has_started || (row && seconds(run->started_unix_ns) < row->started))
        return WEIR_OK; /* one that never started, or an earlier run of the rank */
    if (!row && !(row = add_row(from->f, run->rank)))
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (run->started_unix_ns > from->f->latest_unix_ns) {
        from->f->latest_unix_ns = run->started_unix_ns;
        from->f->world = run->world;
    }
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
        row->parts[PART_BLOCKED] += seconds(tasks->busy_ns > tasks->cpu_ns ? tasks->busy_ns - tasks->cpu_ns : 0);
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
    return weir_reader_each(reader, WEIR_RECORD_QUEUE, &(weir_filter){ .run_id = row->run_id, .name = "sink*" },
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

typedef struct found_file {
    char *path;
    bool may_be_left_out; /* from a folder; the user has not named it */
} found_file;

typedef struct file_list {
    found_file *files;
    size_t num_files;
} file_list;

/* folder: NULL = none. */
static bool add_file(file_list *list, const char *folder, const char *name)
{
    found_file *files = weir__array_grow(list->files, list->num_files, sizeof *files);
    if (!files)
        return false;
    list->files = files;
    files[list->num_files].may_be_left_out = folder;
    if (asprintf(&files[list->num_files].path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name) < 0)
        return false;
    list->num_files++;
    return true;
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const found_file *)a)->path, ((const found_file *)b)->path);
}

/* Every *.db of a folder. 0, or an errno value. */
static int add_folder(file_list *list, const char *path)
{
    struct dirent *entry;
    bool is_added = true;
    DIR *folder = opendir(path);
    if (!folder)
        return errno;
    while (errno = 0, is_added && (entry = readdir(folder)))
        if (ends_with(entry->d_name, ".db"))
            is_added = add_file(list, path, entry->d_name);
    int failure = is_added ? errno : ENOMEM;
    closedir(folder);
    return failure;
}

/* Every *.db of a folder; a file as it is. */
static int find_databases(const tool_call *call, file_list *list)
{
    for (int i = 0; i < call->num_words; i++) {
        struct stat file;
        const char *word = call->words[i];
        size_t before = list->num_files;
        bool is_folder = stat(word, &file) == 0 && S_ISDIR(file.st_mode);
        int failure = is_folder ? add_folder(list, word) : add_file(list, NULL, word) ? 0 : ENOMEM;
        if (failure == ENOMEM)
            return tool_refuse(call, "out of memory"), TOOL_FAILED;
        if (failure)
            return tool_refuse(call, "cannot read the folder %s: %s", word, strerror(failure));
        if (list->num_files == before)
            return tool_refuse(call, "no *.db file in the folder %s", word);
    }
    if (list->num_files)
        qsort(list->files, list->num_files, sizeof *list->files, compare_files);
    return TOOL_DONE;
}

typedef enum step { STEP_RUNS, STEP_TOTALS, STEP_COURSE } step;

static int read_file(fleet *f, const char *path, step which, weir_error *error)
{
    weir_reader *reader;
    fleet_reading from = { f, path, NULL };
    int status = weir_reader_open(path, &reader, error);
    if (status == WEIR_OK)
        status = weir_reader_hold(reader, error);
    if (status == WEIR_OK)
        status = which == STEP_RUNS ? weir_reader_each(reader, WEIR_RECORD_RUN, NULL, add_run, &from, error)
                                    : for_each_rank(f, path, reader, which == STEP_COURSE, error);
    weir_reader_close(reader);
    return status;
}

/* Adds the ranks of a file whose runs have all been read. */
static int add_file_ranks(fleet *f, const fleet *added, weir_error *error)
{
    if (added->latest_unix_ns > f->latest_unix_ns) {
        f->latest_unix_ns = added->latest_unix_ns;
        f->world = added->world;
    }
    for (size_t i = 0; i < added->num_ranks; i++) {
        rank_row *row = find_row(f, added->ranks[i].rank);
        if (row && added->ranks[i].started < row->started)
            continue;
        if (!row && !(row = add_row(f, added->ranks[i].rank)))
            return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
        *row = added->ranks[i];
    }
    return WEIR_OK;
}

/* A file that fails in the middle of its runs adds nothing. */
static int read_runs(fleet *f, const char *path, weir_error *error)
{
    fleet added = { 0 };
    int status = read_file(&added, path, STEP_RUNS, error);
    if (status == WEIR_OK)
        status = add_file_ranks(f, &added, error);
    free(added.ranks);
    return status;
}

/* In a folder there may be databases of other programs: the first step leaves them out of the list. */
static int read_all(const tool_call *call, file_list *list, fleet *f, step which)
{
    size_t num_kept = 0;
    for (size_t i = 0; i < list->num_files; i++) {
        found_file *file = &list->files[i];
        weir_error error = { 0 };
        int status = which == STEP_RUNS ? read_runs(f, file->path, &error) : read_file(f, file->path, which, &error);
        if (status != WEIR_OK && (which != STEP_RUNS || !file->may_be_left_out || status == WEIR_ENOMEM))
            return status == WEIR_ENOTFOUND ? tool_refuse(call, "%s", error.message) : tool_fail_early(call, &error);
        if (status != WEIR_OK)
            tool_refuse(call, "left out: %s", error.message);
        found_file kept = list->files[num_kept]; /* exchanges them, so that every path is freed */
        list->files[num_kept] = *file;
        *file = kept;
        num_kept += status == WEIR_OK;
    }
    while (list->num_files > num_kept)
        free(list->files[--list->num_files].path);
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
    assert(f->num_ranks > 0);
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

/* Sorts the rows, and adds one for each rank of the job that no database has. */
static int add_missing(const tool_call *call, fleet *f)
{
    qsort(f->ranks, f->num_ranks, sizeof *f->ranks, compare_ranks);
    size_t at = 0, num_present = f->num_ranks;
    int64_t end = f->world <= MAX_WORLD ? f->world : 0, highest = f->ranks[num_present - 1].rank;
    if (highest >= end && highest < MAX_WORLD)
        end = highest + 1;
    if (f->world <= 1) /* a rank may be any label */
        return TOOL_DONE;
    for (int64_t rank = 0; rank < end; rank++) {
        while (at < num_present && f->ranks[at].rank < rank)
            at++;
        if (at < num_present && f->ranks[at].rank == rank)
            continue;
        rank_row *row = add_row(f, (int32_t)rank);
        if (!row)
            return tool_refuse(call, "out of memory"), TOOL_FAILED;
        row->is_missing = true;
    }
    qsort(f->ranks, f->num_ranks, sizeof *f->ranks, compare_ranks);
    return TOOL_DONE;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

enum { NUM_COLUMNS = 12 };

static const table_column columns[NUM_COLUMNS] = {
    { "rank", "rank", TABLE_COUNT },       { "node", "node", TABLE_WORDS },
    { "state", "state", TABLE_WORDS },     { "num_items", "items", TABLE_COUNT },
    { "rate", "items/s", TABLE_REAL },     { "slower", "slower", TABLE_SHARE },
    { "readiness", "ready", TABLE_SHARE }, { "num_failures", "failures", TABLE_COUNT },
    { "elapsed", "elapsed", TABLE_TIME },  { "slower_since", "slower since", TABLE_WHEN },
    { "reason", NULL, TABLE_WORDS },       { "database", NULL, TABLE_WORDS },
};

static void put_ranks(const tool_call *call, const fleet *f)
{
    table *t = table_begin(stdout, tool_format(call), columns, NUM_COLUMNS);
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        table_count(t, row->rank);
        if (row->is_missing) {
            table_nothing(t);
            table_words(t, "missing");
            for (int column = 3; column < NUM_COLUMNS; column++)
                table_nothing(t);
            continue;
        }
        table_words(t, row->node);
        table_words(t, row->has_ended ? "ended" : row->is_silent ? "silent" : "running");
        table_count(t, row->num_items);
        table_number(t, row->rate);
        if (row->slower > 0 || tool_format(call) != TABLE_TEXT)
            table_number(t, row->slower);
        else
            table_nothing(t); /* "-267 % slower" is hard to read */
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
    weir__text_escape_to(out, row->reason); /* it names stages */
    fputc('\n', out);
}

static int put_sentences(const tool_call *call, const fleet *f)
{
    double first = INFINITY, last = 0, least = INFINITY, most = 0;
    size_t num_present = 0;
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        if (row->is_missing)
            continue;
        num_present++;
        first = fmin(first, row->ended);
        last = fmax(last, row->ended);
        least = fmin(least, row->rate);
        most = fmax(most, row->rate);
    }
    weir_error error = { 0 };
    prose text;
    prose_open(&text);
    fprintf(text.file, "\n%zu rank%s; median %.2f items/s", num_present, num_present == 1 ? "" : "s", f->median_rate);
    if (num_present > 1)
        fprintf(text.file,
                "; the slowest rank is %.1f %% slower than the fastest; the first ended %.1f s before the last",
                most > 0 ? 100 * (1 - least / most) : 0, last - first);
    fputc('\n', text.file);
    for (size_t i = 0; i < f->num_ranks; i++) {
        const rank_row *row = &f->ranks[i];
        if (row->is_silent)
            fprintf(text.file, "rank %d is silent: it has not ended, but has recorded nothing for the last %.0f s\n",
                    row->rank, f->end - row->ended);
        if (row->reason)
            put_reason(text.file, row);
    }
    for (size_t i = 0, end; i < f->num_ranks; i = end) {
        for (end = i; end < f->num_ranks && f->ranks[end].is_missing; end++)
            ;
        if (end == i + 1)
            fprintf(text.file, "rank %d is missing: no database has a run of it\n", f->ranks[i].rank);
        else if (end > i)
            fprintf(text.file, "ranks %d to %d are missing: no database has a run of them\n", f->ranks[i].rank,
                    f->ranks[end - 1].rank);
        end += end == i;
    }
    return tool_close_prose(&text, WEIR_OK, &error) == WEIR_OK ? tool_finish(call) : tool_fail(call, &error);
}

static int answer(const tool_call *call, file_list *list, fleet *f)
{
    int exit_status = read_all(call, list, f, STEP_RUNS);
    if (exit_status == TOOL_DONE && list->num_files == 0)
        return tool_refuse(call, "no database of weir in %s", call->words[0]);
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
    if (exit_status == TOOL_DONE)
        exit_status = add_missing(call, f);
    if (exit_status != TOOL_DONE)
        return exit_status;
    put_ranks(call, f);
    return tool_format(call) == TABLE_TEXT ? put_sentences(call, f) : tool_finish(call);
}

static int run(tool_call *call)
{
    fleet f = { 0 };
    file_list list = { 0 };
    int exit_status = find_databases(call, &list);
    if (exit_status == TOOL_DONE)
        exit_status = answer(call, &list, &f);
    for (size_t i = 0; i < list.num_files; i++)
        free(list.files[i].path);
    free(list.files);
    free(f.ranks);
    return exit_status;
}

const tool_command tool_fleet = {
    .name = "fleet",
    .words = "DB...|DIR",
    .min_words = 1,
    .max_words = -1,
    .summary = "compare the ranks of a job: which are slow, since when, why",
    .help =
        "Compares the last run of each rank. The ranks can have a database each, or share one; a folder stands "
        "for all *.db files in it; files that are not databases of weir are named and left out. The job may still be "
        "running. Ranks of the job that no database has are listed as missing.\n\n"
        "slower says by how much a rank delivers less per second than the median rank. ready is the share of the "
        "time in which a result was available "
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
