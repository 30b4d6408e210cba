/*
 * A simulated loss of power. What databases and checkpoints write is recorded, and made again up to any moment. Any
 * part of what was not synced by then may be missing. Files: an order of writes, each torn at sectors; names: in
 * their order, durable with the next fsync of the folder.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/checkpoint.h>
#include <weir/pipeline.h>

#include "tests/stats_fixture.h"
#include "tests/support.h"

enum {
    MAX_NAME = 100,
    MAX_EVENTS = 100000,
    MAX_FILES = 200,
    SECTOR_BYTES = 512,
    NUM_RUNS = 2,
    NUM_LAPS = 280 /* of a run */,
    STATE_BYTES = 20000
};

typedef enum event_kind {
    EVENT_WRITE,
    EVENT_CUT,
    EVENT_SYNC,
    EVENT_NAME,
    EVENT_MOVE,
    EVENT_REMOVE,
    EVENT_SYNC_FOLDER,
    EVENT_PROMISE
} event_kind;

typedef struct power_event {
    event_kind kind;
    int file, promise; /* promise: whole runs * 100 + the number of the checkpoint */
    int64_t at;        /* of the bytes; of a cut: the new size */
    size_t size;
    void *bytes;
    char name[MAX_NAME], to[MAX_NAME];
} power_event;

static struct {
    pthread_mutex_t lock;
    bool is_on;
    power_event *events;
    int num_events, num_files;
    char names[MAX_FILES][MAX_NAME]; /* now, of each file; "" = none */
} power = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static power_event *add_event_locked(event_kind kind, int file)
{
    REQUIRE(power.num_events < MAX_EVENTS);
    power_event *event = &power.events[power.num_events++];
    *event = (power_event){ .kind = kind, .file = file };
    return event;
}

static int find_file_locked(const char *path)
{
    for (int i = 0; i < power.num_files; i++)
        if (strcmp(power.names[i], base_name(path)) == 0)
            return i;
    return -1;
}

/* One that has no name yet is known by its number. */
static int nameless_file_locked(const struct stat *info)
{
    char number[MAX_NAME];
    snprintf(number, sizeof number, "#%llu", (unsigned long long)info->st_ino);
    int file = find_file_locked(number);
    if (file >= 0)
        return file;
    REQUIRE(power.num_files < MAX_FILES);
    snprintf(power.names[power.num_files], MAX_NAME, "%s", number);
    return power.num_files++;
}

static int file_of_locked(const char *path)
{
    int file = find_file_locked(path);
    if (file >= 0)
        return file;
    REQUIRE(power.num_files < MAX_FILES);
    file = power.num_files++;
    snprintf(power.names[file], MAX_NAME, "%s", base_name(path));
    snprintf(add_event_locked(EVENT_NAME, file)->name, MAX_NAME, "%s", base_name(path));
    return file;
}

static void add_bytes_locked(int file, const void *bytes, size_t size, int64_t at)
{
    power_event *event = add_event_locked(EVENT_WRITE, file);
    event->at = at;
    event->size = size;
    event->bytes = malloc(size);
    memcpy(event->bytes, bytes, size);
}

static void add_promise(int promise)
{
    pthread_mutex_lock(&power.lock);
    add_event_locked(EVENT_PROMISE, -1)->promise = promise;
    pthread_mutex_unlock(&power.lock);
}

/* ---- what SQLite does --------------------------------------------------------------------------------------------- */

static sqlite3_vfs *real_vfs, own_vfs;
static struct watched_handle {
    sqlite3_file *handle; /* NULL = free */
    int file;
    const sqlite3_io_methods *real;
    sqlite3_io_methods own;
} handles[MAX_FILES];

static _Thread_local bool is_in_sqlite; /* it syncs a file that is noted, and perhaps the folder */

static struct watched_handle *find_handle_locked(const sqlite3_file *handle)
{
    int i = 0;
    while (handles[i].handle != handle)
        REQUIRE(++i < MAX_FILES);
    return &handles[i];
}

static const sqlite3_io_methods *add_handle_event(sqlite3_file *handle, event_kind kind, const void *bytes, int size,
                                                  int64_t at)
{
    pthread_mutex_lock(&power.lock);
    struct watched_handle *watched = find_handle_locked(handle);
    if (kind == EVENT_WRITE)
        add_bytes_locked(watched->file, bytes, (size_t)size, at);
    else
        add_event_locked(kind, watched->file)->at = at;
    pthread_mutex_unlock(&power.lock);
    return watched->real;
}

static int write_watched(sqlite3_file *handle, const void *bytes, int size, sqlite3_int64 at)
{
    return add_handle_event(handle, EVENT_WRITE, bytes, size, at)->xWrite(handle, bytes, size, at);
}

static int cut_watched(sqlite3_file *handle, sqlite3_int64 size)
{
    return add_handle_event(handle, EVENT_CUT, NULL, 0, size)->xTruncate(handle, size);
}

static int sync_watched(sqlite3_file *handle, int flags)
{
    const sqlite3_io_methods *real = add_handle_event(handle, EVENT_SYNC, NULL, 0, 0);
    is_in_sqlite = true;
    int code = real->xSync(handle, flags);
    is_in_sqlite = false;
    return code;
}

static int close_watched(sqlite3_file *handle)
{
    pthread_mutex_lock(&power.lock);
    struct watched_handle *watched = find_handle_locked(handle);
    watched->handle = NULL;
    pthread_mutex_unlock(&power.lock);
    return watched->real->xClose(handle);
}

static int open_watched(sqlite3_vfs *vfs, const char *path, sqlite3_file *handle, int flags, int *flags_out)
{
    (void)vfs;
    int code = real_vfs->xOpen(real_vfs, path, handle, flags, flags_out);
    if (code != SQLITE_OK || !power.is_on || !path)
        return code;
    pthread_mutex_lock(&power.lock);
    struct watched_handle *watched = find_handle_locked(NULL);
    *watched = (struct watched_handle){ handle, file_of_locked(path), handle->pMethods, *handle->pMethods };
    watched->own.xWrite = write_watched;
    watched->own.xTruncate = cut_watched;
    watched->own.xSync = sync_watched;
    watched->own.xClose = close_watched;
    handle->pMethods = &watched->own;
    pthread_mutex_unlock(&power.lock);
    return code;
}

/* ---- what the C library does for others ---------------------------------------------------------------------------- */

/* The bytes of a checkpoint are written by the C library: they are taken from the file. */
static void add_whole_locked(int file, const char *path)
{
    size_t size;
    char *bytes = read_file(path, &size);
    add_event_locked(EVENT_CUT, file);
    add_bytes_locked(file, bytes, size, 0);
    free(bytes);
}

static void add_sync(int fd)
{
    char link[64], path[4096] = "";
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    pthread_mutex_lock(&power.lock);
    if (power.is_on && fstat(fd, &info) == 0 && readlink(link, path, sizeof path - 1) > 0) {
        if (S_ISDIR(info.st_mode))
            add_event_locked(EVENT_SYNC_FOLDER, -1);
        else if (strstr(path, "r.db") && !is_in_sqlite)
            add_event_locked(EVENT_SYNC, file_of_locked(path));
        else if (!is_in_sqlite) {
            int file = info.st_nlink ? file_of_locked(path) : nameless_file_locked(&info);
            add_whole_locked(file, link);
            add_event_locked(EVENT_SYNC, file);
        }
    }
    pthread_mutex_unlock(&power.lock);
}

int fsync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    add_sync(fd);
    return real(fd);
}

/* SQLite syncs folders with it. */
int fdatasync(int fd)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    add_sync(fd);
    return real(fd);
}

static void add_move(const char *from, const char *to)
{
    pthread_mutex_lock(&power.lock);
    if (power.is_on) {
        int replaced = find_file_locked(to), file = find_file_locked(from);
        if (file < 0)
            add_whole_locked(file = file_of_locked(from), from); /* never synced */
        power_event *event = add_event_locked(EVENT_MOVE, file);
        snprintf(event->name, MAX_NAME, "%s", base_name(from));
        snprintf(event->to, MAX_NAME, "%s", base_name(to));
        if (replaced >= 0)
            power.names[replaced][0] = '\0';
        snprintf(power.names[file], MAX_NAME, "%s", base_name(to));
    }
    pthread_mutex_unlock(&power.lock);
}

/* A nameless file gets a name. */
int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    int (*real)(int, const char *, int, const char *, int);
    struct stat info;
    *(void **)&real = dlsym(RTLD_NEXT, "linkat");
    bool is_nameless = stat(from, &info) == 0 && info.st_nlink == 0;
    int rc = real(from_fd, from, to_fd, to, flags);
    pthread_mutex_lock(&power.lock);
    if (rc == 0 && power.is_on && is_nameless) {
        int file = nameless_file_locked(&info);
        snprintf(add_event_locked(EVENT_NAME, file)->name, MAX_NAME, "%s", base_name(to));
        snprintf(power.names[file], MAX_NAME, "%s", base_name(to));
    }
    pthread_mutex_unlock(&power.lock);
    return rc;
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    add_move(from, to);
    return real(from, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
    int rc = real(from_fd, from, to_fd, to, flags);
    if (rc == 0)
        add_move(from, to);
    return rc;
}

int unlink(const char *path)
{
    int (*real)(const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "unlink");
    pthread_mutex_lock(&power.lock);
    int file = power.is_on ? find_file_locked(path) : -1;
    if (file >= 0) {
        snprintf(add_event_locked(EVENT_REMOVE, file)->name, MAX_NAME, "%s", base_name(path));
        power.names[file][0] = '\0';
    }
    pthread_mutex_unlock(&power.lock);
    return real(path);
}

/* ---- the crash ------------------------------------------------------------------------------------------------------ */

typedef struct disk_file {
    char *bytes;
    int64_t size, room;
} disk_file;

static void put_bytes(disk_file *file, const power_event *event, bool is_torn)
{
    for (size_t from = 0; from < event->size; from += SECTOR_BYTES) {
        size_t size = event->size - from < SECTOR_BYTES ? event->size - from : SECTOR_BYTES;
        int64_t end = event->at + (int64_t)(from + size);
        if (is_torn && rand() % 2)
            continue;
        if (end > file->size) {
            if (end > file->room)
                file->bytes = realloc(file->bytes, (size_t)(file->room = 2 * end));
            memset(file->bytes + file->size, 0, (size_t)(end - file->size));
            file->size = end;
        }
        memcpy(file->bytes + event->at + from, (char *)event->bytes + from, size);
    }
}

/* The files after a loss of power before event number `end`. left_out: a sync that was not made (-1 = all were). */
static void write_what_is_left(const char *folder, int end, int left_out)
{
    disk_file *files = calloc(MAX_FILES, sizeof *files);
    char names[MAX_FILES][MAX_NAME] = { "" }, path[sizeof names + 5000];
    int last_sync[MAX_FILES] = { 0 }, folder_sync = 0;
    for (int i = 0; i < end; i++) {
        if (power.events[i].kind == EVENT_SYNC && i != left_out)
            last_sync[power.events[i].file] = i;
        if (power.events[i].kind == EVENT_SYNC_FOLDER && i != left_out)
            folder_sync = i;
    }
    int num_luck = rand() % 3, names_end = num_luck == 0 ? end : folder_sync + rand() % (end - folder_sync + 1);
    for (int i = 0; i < end; i++) {
        const power_event *event = &power.events[i];
        bool is_synced = event->file >= 0 && i < last_sync[event->file], is_kept = is_synced || rand() % 2;
        if (event->kind == EVENT_WRITE && is_kept)
            put_bytes(&files[event->file], event, !is_synced && rand() % 4 == 0);
        if (event->kind == EVENT_CUT && is_kept && files[event->file].size > event->at)
            files[event->file].size = event->at;
        if (i >= names_end)
            continue;
        for (int j = 0; event->kind == EVENT_MOVE && j < MAX_FILES; j++)
            if (strcmp(names[j], event->to) == 0)
                names[j][0] = '\0';
        if (event->kind == EVENT_NAME || event->kind == EVENT_MOVE)
            snprintf(names[event->file], MAX_NAME, "%s", event->kind == EVENT_NAME ? event->name : event->to);
        if (event->kind == EVENT_REMOVE)
            names[event->file][0] = '\0';
    }
    for (int i = 0; i < MAX_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (names[i][0])
            write_file(path, files[i].size ? files[i].bytes : "", (size_t)files[i].size);
        free(files[i].bytes);
    }
    free(files);
}

static void check_checkpoint(const char *path, int at_least, int moment)
{
    char *text = NULL;
    uint8_t *state = NULL;
    size_t size = 0;
    weir_error error = { 0 };
    int status = weir_checkpoint_load(path, &text, (void **)&state, &size, &error);
    if (status != WEIR_OK && (status != WEIR_ENOTFOUND || at_least > 0))
        fail_msg("moment %d: checkpoint %d: %s", moment, at_least, error.message);
    for (size_t i = 0; status == WEIR_OK && i < size; i++)
        if (size != STATE_BYTES || state[i] != state[0] || state[0] < at_least)
            fail_msg("moment %d: checkpoint %d: %zu bytes, %d", moment, at_least, size, state[0]);
    free(text);
    free(state);
}

/* NULL = the database cannot be read. Otherwise to be freed. */
static char *ask_database(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *row = NULL;
    char *text = NULL;
    int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    if (code == SQLITE_OK && sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW)
        text = strdup((const char *)sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
    sqlite3_close(db);
    return text;
}

/* Whether the database is intact, and these runs are whole: there is none of the laps of a run, or its first ones. */
static bool is_as_promised(const char *path, int whole_runs, int num_laps)
{
    char sql[400];
    if (access(path, F_OK) != 0)
        return whole_runs == 0;
    char *check = ask_database(path, "PRAGMA integrity_check");
    snprintf(
        sql, sizeof sql,
        "SELECT count(CASE WHEN number = %d THEN 1 END) || ' ' || count(CASE WHEN last - first <> 2 * (number - 1) "
        "THEN 1 END) FROM (SELECT count(*) AS number, "
        "min(timestamp) AS first, max(timestamp) AS last FROM task_stats GROUP BY run_id)",
        num_laps);
    char *found = ask_database(path, sql);
    int num_whole = 0, num_holes = 0;
    bool is_read = found && sscanf(found, "%d %d", &num_whole, &num_holes) == 2;
    bool is_whole = check && strcmp(check, "ok") == 0 && is_read && num_whole >= whole_runs && num_holes == 0;
    free(check);
    free(found);
    return is_whole;
}

/* Returns how many laps are there. */
static int64_t check_database(const char *path, int whole_runs, int moment)
{
    if (!is_as_promised(path, whole_runs, NUM_LAPS))
        fail_msg("moment %d: the database is damaged, or of %d runs that had ended laps are missing", moment,
                 whole_runs);
    return access(path, F_OK) == 0 ? query_int(path, "SELECT count(*) FROM task_stats") : 0;
}

static void record_all(void)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 10 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .checkpoints = WEIR_CHECKPOINTS_DELIVERED });
    uint8_t state[STATE_BYTES];
    weir_error error = { 0 };
    for (int run = 0; run < NUM_RUNS; run++) {
        weir_sqlite_writer *writer = open_writer(
            in_folder("r.db"), &(weir_sqlite_options){ .buffer_entries = 16 /* a transaction for a lap */ });
        weir_observer observer = weir_sqlite_observer(writer);
        observe_start(observer);
        for (int lap = 0; lap < NUM_LAPS; lap++) {
            observe_lap(observer, lap, 20);
            if (lap % 70 == 0) {
                int number = 1 + run * 4 + lap / 70;
                memset(state, number, sizeof state);
                assert_int_equal(weir_checkpoint_store(pipeline, in_folder("c"), state, sizeof state, &error),
                                 WEIR_OK);
                add_promise(run * 100 + number);
            }
        }
        observe_end(observer, WEIR_OK);
        close_writer(writer);
        add_promise((run + 1) * 100 + (run + 1) * 4);
    }
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* Before a new database has its name, nobody can see what is missing. */
static int count_syncs_until_named(const char *name)
{
    int count = 0;
    for (int i = 0; i < power.num_events; i++) {
        if (power.events[i].kind == EVENT_MOVE && strcmp(power.events[i].to, name) == 0)
            return count;
        count += power.events[i].kind == EVENT_SYNC;
    }
    fail_msg("no file became %s", name);
    return -1;
}

static void begin_recording(void)
{
    memset(power.names, 0, sizeof power.names);
    power.num_events = power.num_files = 0;
    power.events = calloc(MAX_EVENTS, sizeof *power.events);
    real_vfs = sqlite3_vfs_find(NULL);
    own_vfs = *real_vfs;
    own_vfs.zName = "power";
    own_vfs.xOpen = open_watched;
    assert_int_equal(sqlite3_vfs_register(&own_vfs, 1), SQLITE_OK);
    power.is_on = true;
}

static void free_events(void)
{
    for (int i = 0; i < power.num_events; i++)
        free(power.events[i].bytes);
    free(power.events);
    sqlite3_vfs_unregister(&own_vfs);
}

static int promise_before(int end)
{
    int promise = 0;
    for (int i = 0; i < end; i++)
        promise = power.events[i].kind == EVENT_PROMISE ? power.events[i].promise : promise;
    return promise;
}

static void remove_disk(const char *folder)
{
    char command[6000];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* With another writer of the same file beside them, the runs end while the database stays open. */
static void lose_power(bool is_shared)
{
    const char *wanted = getenv("WEIR_POWER_LOSSES");
    int num_losses = wanted ? atoi(wanted) : 100;
    char folder[5000], path[6000];
    begin_recording();
    weir_sqlite_writer *beside = is_shared ? open_writer(in_folder("r.db"), NULL) : NULL;
    record_all();
    power.is_on = false;
    assert_int_equal(weir_sqlite_close(beside, NULL), WEIR_OK);
    assert_int_equal(count_syncs_until_named("r.db"), 1);
    int64_t most = 0, fewest = INT64_MAX;
    snprintf(folder, sizeof folder, "%s", in_folder("disk"));
    for (int i = 0; i < num_losses; i++) {
        int end = i == 0 ? power.num_events : rand() % (power.num_events + 1), promise = promise_before(end);
        assert_int_equal(mkdir(folder, 0700), 0);
        write_what_is_left(folder, end, -1);
        snprintf(path, sizeof path, "%s/c", folder);
        check_checkpoint(path, promise % 100, end);
        snprintf(path, sizeof path, "%s/r.db", folder);
        int64_t laps = check_database(path, promise / 100, end);
        most = laps > most ? laps : most;
        fewest = laps < fewest ? laps : fewest;
        remove_disk(folder);
    }
    assert_int_equal(most, NUM_RUNS * NUM_LAPS);
    fprintf(stderr, "%d events, %d losses: %d to %d laps\n", power.num_events, num_losses, (int)fewest, (int)most);
    free_events();
}

TEST_CASE(after_a_power_loss_databases_and_checkpoints_are_whole)
{
    lose_power(false);
}

TEST_CASE(after_a_power_loss_runs_that_ended_are_whole_while_another_writer_goes_on)
{
    lose_power(true);
}

/* ---- how many syncs there are --------------------------------------------------------------------------------------- */

enum { LAPS_OF_SHORT_RUN = 5 };

static void record_laps(weir_sqlite_writer *writer)
{
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    for (int lap = 0; lap < LAPS_OF_SHORT_RUN; lap++)
        observe_lap(observer, lap, 20);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
    add_promise(100);
}

/* Whether a loss of power at that moment keeps what was promised; see write_what_is_left(). */
static bool is_kept(int end, int left_out)
{
    char folder[5000], path[6000];
    snprintf(folder, sizeof folder, "%s", in_folder("disk"));
    snprintf(path, sizeof path, "%s/r.db", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    write_what_is_left(folder, end, left_out);
    bool is_kept = is_as_promised(path, promise_before(end) / 100, LAPS_OF_SHORT_RUN);
    remove_disk(folder);
    return is_kept;
}

/* Whether some loss of power breaks a promise if this sync is left out. */
static bool is_needed(int sync)
{
    enum { MANY_LOSSES = 3000 };
    bool is_needed = false;
    for (int i = 0; i < MANY_LOSSES && !is_needed; i++)
        is_needed = !is_kept(sync + 1 + rand() % (power.num_events - sync), sync);
    return is_needed;
}

/* The file before it gets its name, the names, the log before the database, and the database before the log is removed. */
TEST_CASE(a_short_run_in_a_new_file_makes_four_syncs_and_needs_each_of_them)
{
    int num_syncs = 0;
    begin_recording();
    record_laps(open_writer(in_folder("r.db"), NULL));
    power.is_on = false;
    for (int i = 0; i < power.num_events; i++) {
        const power_event *event = &power.events[i];
        if (event->kind != EVENT_SYNC && event->kind != EVENT_SYNC_FOLDER)
            continue;
        num_syncs++;
        if (!is_needed(i))
            fail_msg("sync %d of %s is not needed", num_syncs,
                     event->kind == EVENT_SYNC ? power.names[event->file] : "the folder");
    }
    assert_int_equal(num_syncs, 4);
    free_events();
}

/* Then closing leaves the log to the reader. */
TEST_CASE(after_a_power_loss_a_run_is_whole_that_ended_while_another_program_read)
{
    enum { NUM_LOSSES = 50 };
    begin_recording();
    weir_sqlite_writer *writer = open_writer(in_folder("r.db"), NULL);
    sqlite3 *reader = connect_to(in_folder("r.db"));
    run_sql(reader, "BEGIN; SELECT count(*) FROM run");
    record_laps(writer);
    power.is_on = false;
    for (int i = 0; i < NUM_LOSSES; i++)
        assert_true(is_kept(power.num_events, -1));
    sqlite3_close(reader);
    free_events();
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
