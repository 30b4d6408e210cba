/*
 * A pipeline: the listing, a stage that looks up unchanged files in the index, the probe, and the calling thread,
 * which writes. A file that a list has several times is read once: its rows follow each other in `rows`, and item `seq` of the
 * source is group `seq` of them. With archives, a stage before the lookup lists their members. The lookup stage has one slot and a
 * separate connection; it sets a bit for each row it finds, and the writer one for each row that it writes, so that rows
 * without a bit are removed at the end.
 *
 * During a build the index is not marked as complete, and cannot be opened as a dataset.
 */
#include <weir/dataset.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/files.h>
#include <weir/pipeline.h>
#include <weir/struct_copy.h>

#include "common/hash.h"
#include "dataset/index/index_file.h"
#include "dataset/index/tar_members.h"

/* Interval of the transactions and of the progress callback. */
#define WRITE_INTERVAL_NS (1 * WEIR_SECOND)
#define TELL_INTERVAL_NS  (WEIR_SECOND / 5)

typedef struct seen_rows {
    uint8_t *bits;
    size_t num_bytes;
} seen_rows;

/* What a list says of a clip. */
typedef struct listed_row {
    const char *path;
    const char *label; /* "" = none */
    int64_t start_ns, end_ns;
    size_t place; /* in the list */
} listed_row;

/* The rows of a list, ordered by path and place. Group i has the path paths[i], and is rows[starts[i]] to before
   rows[starts[i + 1]]. A folder has no groups. */
typedef struct path_groups {
    listed_row *rows;
    size_t *starts;
    const char **paths;
    size_t num_groups;
} path_groups;

/* Of the lookup stage: used only by its slot's thread until the pipeline has ended. */
typedef struct look {
    sqlite3 *db;
    sqlite3_stmt *find;
    size_t root_length; /* of the path, with the slash */
    seen_rows seen;
    const weir_dataset_build_options *options;
    path_groups groups; /* immutable */
    bool takes_all;     /* read all files: the index was built with other options */
    bool is_out_of_memory;
} look;

/* An archive that cannot be used, or not as a whole. */
typedef struct broken_archive {
    char *path;
    uint64_t number;
    weir_error error;
} broken_archive;

/* Of the stage that lists archives: used only by its slot's thread until the pipeline has ended. */
typedef struct members {
    const char *glob;
    weir_tar_members tar; /* the open archive */
    broken_archive *broken;
    size_t num_broken;
    bool is_out_of_memory;
} members;

typedef struct build {
    const char *path;
    const weir_dataset_build_options *options;
    char *root; /* absolute: the index may be opened from elsewhere; "" = a list */
    sqlite3 *db;
    sqlite3_stmt *put_clip, *put_packets, *drop_packets;
    look look;
    seen_rows written;
    members members;
    weir_directory_counts listed;
    weir_dataset_progress progress;
    bool is_in_transaction;
    bool has_changed;
    int64_t next_write_ns, next_tell_ns;
    weir_error *error;
} build;

/* ---- what is unchanged ------------------------------------------------------------------------------------------ */

static bool set_seen(seen_rows *seen, int64_t row)
{
    size_t byte = (size_t)row / 8;
    if (byte >= seen->num_bytes) {
        size_t num_bytes = byte * 2 + 1024;
        uint8_t *bits = realloc(seen->bits, num_bytes);
        if (!bits)
            return false;
        memset(bits + seen->num_bytes, 0, num_bytes - seen->num_bytes);
        seen->bits = bits;
        seen->num_bytes = num_bytes;
    }
    seen->bits[byte] |= (uint8_t)(1U << row % 8);
    return true;
}

static bool is_seen(const seen_rows *seen, int64_t row)
{
    return (size_t)row / 8 < seen->num_bytes && (seen->bits[row / 8] >> row % 8 & 1);
}

static size_t count_rows(const look *self, uint64_t group)
{
    return self->groups.rows ? self->groups.starts[group + 1] - self->groups.starts[group] : 1;
}

static const listed_row *row_of(const look *self, uint64_t group, size_t occurrence)
{
    static const listed_row whole_file = { .label = "" };
    return self->groups.rows ? &self->groups.rows[self->groups.starts[group] + occurrence] : &whole_file;
}

static double as_seconds(int64_t time_ns)
{
    return (double)time_ns / (double)WEIR_SECOND;
}

/* Does the row of the index say the same as the list? */
static bool is_same_row(const look *self, const listed_row *listed)
{
    return (!self->options->labels || strcmp(listed->label, weir__index_text(self->find, 3)) == 0) &&
           as_seconds(listed->start_ns) == sqlite3_column_double(self->find, 6) &&
           as_seconds(listed->end_ns) == sqlite3_column_double(self->find, 7);
}

/* Whether only another file gives another status. Limits, permissions and the storage can change without it; the memory
   of all decoders also depends on the clips that are read at the same time. */
static bool is_lasting(int status)
{
    return status == WEIR_OK || status == WEIR_EDATA || status == WEIR_EUNSUPPORTED;
}

/* A member that a later one of the same name replaces needs no reading either. */
static bool is_unchanged(sqlite3_stmt *find, const char *path, const weir_entry *member)
{
    struct stat file;
    if (member)
        return sqlite3_column_int64(find, 2) == member->mtime_ns &&
               (sqlite3_column_int64(find, 4) > member->offset ||
                (sqlite3_column_int64(find, 4) == member->offset &&
                 sqlite3_column_int64(find, 1) == member->size_bytes));
    if (stat(path, &file) != 0)
        return false;
    return sqlite3_column_int64(find, 1) == file.st_size &&
           sqlite3_column_int64(find, 2) == file.st_mtim.tv_sec * WEIR_SECOND + file.st_mtim.tv_nsec;
}

static int run_look(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    look *self = (look *)(uintptr_t)weir_task_config(task);
    const weir_entry *member = strcmp(in->type, WEIR_TYPE_ENTRY) == 0 ? in->data : NULL;
    const char *path = member ? member->path : in->data;
    size_t num_rows = count_rows(self, in->seq), num_unchanged = 0;
    assert(path);
    sqlite3_bind_text(self->find, 1, path + self->root_length, -1, SQLITE_STATIC);
    for (size_t i = 0; i < num_rows && sqlite3_step(self->find) == SQLITE_ROW; i++) {
        self->is_out_of_memory |= !set_seen(&self->seen, sqlite3_column_int64(self->find, 0));
        num_unchanged += !self->takes_all && is_lasting(sqlite3_column_int(self->find, 5)) &&
                         is_same_row(self, row_of(self, in->seq, i)) && is_unchanged(self->find, path, member);
    }
    sqlite3_reset(self->find);
    weir_item_move(out, in);
    if (num_unchanged < num_rows)
        return WEIR_OK;
    weir_item_release(out);
    return WEIR_SKIP;
}

#define BOTH WEIR_TYPE_TEXT " " WEIR_TYPE_ENTRY
static const weir_op look_op = { .name = "look", .takes = BOTH, .makes = BOTH, .run = run_look };

/* ---- members of archives ---------------------------------------------------------------------------------------- */

static void note_broken(members *self, const weir_item *archive, const weir_error *error)
{
    broken_archive *broken = realloc(self->broken, (self->num_broken + 1) * sizeof *broken);
    char *path = strdup(archive->data);
    self->broken = broken ? broken : self->broken;
    self->is_out_of_memory |= !broken || !path;
    if (broken && path)
        broken[self->num_broken++] = (broken_archive){ path, archive->seq, *error };
    else
        free(path);
}

/* Goes to the next member that matches. WEIR_EOF: no more. What is wrong with the archive is noted. */
static int next_member(members *self, const weir_item *archive, bool is_first, weir_task *task)
{
    weir_error error = { 0 };
    int rc;
    while ((rc = weir__tar_members_next(&self->tar, &error)) == WEIR_OK) {
        if (weir_task_should_stop(task))
            return WEIR_EOF;
        if (weir_file_name_matches(self->tar.name, self->glob))
            return WEIR_OK;
    }
    bool is_video = strcmp(self->glob, WEIR_VIDEO_FILES) == 0;
    if (rc == WEIR_EOF && is_first)
        rc = weir_error_set(&error, WEIR_ENOTFOUND, 0, "no %s in the archive%s%s", is_video ? "video" : "file",
                            is_video ? "" : " matches ", is_video ? "" : self->glob);
    if (rc != WEIR_EOF)
        note_broken(self, archive, &error);
    return WEIR_EOF;
}

static int make_member(const weir_tar_members *tar, const char *archive, weir_item *out)
{
    weir_entry *entry = weir_entry_new();
    if (!entry || asprintf(&entry->path, "%s!%s", archive, tar->name) < 0) {
        free(entry);
        return WEIR_ENOMEM;
    }
    entry->archive_length = strlen(archive);
    entry->offset = tar->offset;
    entry->size_bytes = tar->size;
    entry->mtime_ns = tar->mtime_ns;
    *out = (weir_item){
        .data = entry, .release = weir_entry_release, .size_bytes = weir_entry_memory(entry), .label = entry->path
    };
    return WEIR_OK;
}

static int run_members(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    members *self = (members *)(uintptr_t)weir_task_config(task);
    const char *path = in->data;
    int rc = WEIR_OK;
    if (weir_task_num_chunks(task) == 0) {
        weir_error error = { 0 };
        weir__tar_members_close(&self->tar);
        rc = weir__tar_members_open(&self->tar, path, &error);
        if (rc != WEIR_OK)
            note_broken(self, in, &error);
        if (rc != WEIR_OK || next_member(self, in, true, task) != WEIR_OK)
            return WEIR_SKIP;
    }
    rc = make_member(&self->tar, path, out);
    if (rc != WEIR_OK)
        return weir_task_fail(task, rc, 0, "out of memory");
    return next_member(self, in, false, task) == WEIR_OK ? WEIR_MORE : WEIR_OK;
}

static const weir_op members_op = {
    .name = "members", .takes = WEIR_TYPE_TEXT, .makes = WEIR_TYPE_ENTRY, .run = run_members
};

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static int fail_build(build *self, int code, const char *what)
{
    return weir__index_error(self->error, self->db, code, what, self->path);
}

static int begin_transaction(build *self)
{
    if (self->is_in_transaction)
        return WEIR_OK;
    self->is_in_transaction = true;
    self->next_write_ns = weir_clock_ns() + WRITE_INTERVAL_NS;
    return weir__index_run(self->db, "BEGIN IMMEDIATE", self->path, self->error);
}

static int commit_rows(build *self)
{
    if (!self->is_in_transaction)
        return WEIR_OK;
    self->is_in_transaction = false;
    return weir__index_run(self->db, "COMMIT", self->path, self->error);
}

/* Writes the name of the file's folder to `label`; "" = none. */
static const char *folder_label(const build *self, const weir_item *item, char *label, size_t size)
{
    const weir_probe_result *result = item->data;
    const char *first = result->archive_length ? item->label + result->archive_length + 1 /* after the '!' */
                                               : item->label + self->look.root_length;
    const char *end = strrchr(first, '/');
    if (!end)
        return "";
    const char *start = end;
    while (start > first && start[-1] != '/')
        start--;
    snprintf(label, size, "%.*s", (int)(end - start), start);
    return label;
}

/* Not the label, which hides what is secret in a URL: clips are opened by their path. */
static const char *path_of(const build *self, const weir_item *item)
{
    bool is_listed = !self->options->root && !self->options->tar;
    return is_listed ? self->look.groups.paths[item->seq] : item->label + self->look.root_length;
}

static int put_packets(build *self, int64_t row, const weir_probe_result *result)
{
    sqlite3_stmt *statement = result->packets ? self->put_packets : self->drop_packets;
    sqlite3_bind_int64(statement, 1, row);
    if (result->packets)
        sqlite3_bind_blob64(statement, 2, result->packets, result->packets_bytes, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? WEIR_OK : fail_build(self, code, "write to");
}

/* 0 is NULL. */
static void bind_seconds(sqlite3_stmt *statement, int at, int64_t time_ns)
{
    if (time_ns)
        sqlite3_bind_double(statement, at, as_seconds(time_ns));
    else
        sqlite3_bind_null(statement, at);
}

static int put_row(build *self, const weir_item *item, size_t occurrence)
{
    const weir_probe_result *result = item->data;
    sqlite3_stmt *statement = self->put_clip;
    char label[256];
    const listed_row *listed = row_of(&self->look, item->seq, occurrence);
    const char *text = self->options->labels ? listed->label : folder_label(self, item, label, sizeof label);
    sqlite3_bind_text(statement, 1, path_of(self, item), -1, SQLITE_STATIC);
    if (*text)
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, 2);
    sqlite3_bind_int64(statement, 3, result->size_bytes);
    sqlite3_bind_int64(statement, 4, result->mtime_ns);
    sqlite3_bind_text(statement, 5, result->codec, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 6, result->width);
    sqlite3_bind_int64(statement, 7, result->height);
    sqlite3_bind_double(statement, 8, (double)result->duration_ns / (double)WEIR_SECOND);
    sqlite3_bind_int64(statement, 9, (int64_t)result->num_frames);
    sqlite3_bind_int64(statement, 10, (int64_t)result->num_keyframes);
    sqlite3_bind_int64(statement, 11, (int64_t)result->num_errors);
    sqlite3_bind_int64(statement, 12, result->error.status);
    sqlite3_bind_int64(statement, 13, result->error.library_code);
    sqlite3_bind_text(statement, 14, result->error.message, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 15,
                       result->archive_length ? (int64_t)(result->archive_length - self->look.root_length) : 0);
    sqlite3_bind_int64(statement, 16, result->offset);
    sqlite3_bind_int64(statement, 17, (int64_t)occurrence);
    bind_seconds(statement, 18, listed->start_ns);
    bind_seconds(statement, 19, listed->end_ns);
    int code = sqlite3_step(statement);
    int64_t row = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return fail_build(self, code, "write to");
    if (code == SQLITE_DONE) /* a later member of the same name is there */
        return WEIR_OK;
    self->has_changed = true;
    if (!set_seen(&self->written, row))
        return weir_error_set(self->error, WEIR_ENOMEM, 0, "out of memory");
    return occurrence == 0 ? put_packets(self, row, result) : WEIR_OK;
}

/* All rows of the file. */
static int put_clip(build *self, const weir_item *item)
{
    const weir_probe_result *result = item->data;
    size_t num_rows = count_rows(&self->look, item->seq);
    int rc = begin_transaction(self);
    for (size_t i = 0; rc == WEIR_OK && i < num_rows; i++)
        rc = put_row(self, item, i);
    self->progress.num_indexed += rc == WEIR_OK;
    self->progress.num_broken += rc == WEIR_OK && result->error.status != WEIR_OK;
    return rc;
}

/* ---- the end of a build ----------------------------------------------------------------------------------------- */

static int remove_gone(build *self)
{
    sqlite3_stmt *all, *drop;
    int code = sqlite3_prepare_v2(self->db, "SELECT clip_id FROM clip", -1, &all, NULL);
    if (code != SQLITE_OK)
        return fail_build(self, code, "read");
    code = sqlite3_prepare_v2(self->db, "DELETE FROM clip WHERE clip_id = ?", -1, &drop, NULL);
    while (code == SQLITE_OK && sqlite3_step(all) == SQLITE_ROW) {
        int64_t row = sqlite3_column_int64(all, 0);
        if (is_seen(&self->look.seen, row) || is_seen(&self->written, row))
            continue;
        sqlite3_bind_int64(drop, 1, row);
        code = sqlite3_step(drop) == SQLITE_DONE ? sqlite3_reset(drop) : SQLITE_ERROR;
        self->progress.num_removed++;
        self->has_changed = true;
    }
    sqlite3_finalize(all);
    sqlite3_finalize(drop);
    return code == SQLITE_OK ? WEIR_OK : fail_build(self, code, "write to");
}

static const char number_clips[] =
    "DROP INDEX IF EXISTS clip_by_number;"
    "UPDATE clip SET number = NULL;"
    "UPDATE clip SET number = ordered.number FROM"
    " (SELECT clip_id, row_number() OVER (ORDER BY path, occurrence) - 1 AS number FROM clip WHERE status = 0) AS "
    "ordered"
    " WHERE clip.clip_id = ordered.clip_id;"
    "CREATE UNIQUE INDEX clip_by_number ON clip(number);"
    "DELETE FROM packets WHERE clip_id NOT IN (SELECT clip_id FROM clip);"
    "DELETE FROM class;"
    "INSERT INTO class SELECT DISTINCT label FROM clip WHERE status = 0 AND label IS NOT NULL;";

/* Stores the hash of what is in the rows and the number of clips, so that opening need not scan all clips. */
static int note_facts(build *self)
{
    sqlite3_stmt *all;
    uint64_t sum = WEIR__HASH_START;
    uint64_t num_clips = 0;
    char text[32];
    int code = sqlite3_prepare_v2(self->db,
                                  "SELECT path, size_bytes, label, start, end FROM clip"
                                  " WHERE number IS NOT NULL ORDER BY number",
                                  -1, &all, NULL);
    if (code != SQLITE_OK)
        return fail_build(self, code, "read");
    while ((code = sqlite3_step(all)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(all); i++) {
            const char *value = weir__index_text(all, i);
            sum = weir__hash(sum, value, strlen(value) + 1);
        }
        num_clips++;
    }
    sqlite3_finalize(all);
    if (code != SQLITE_DONE)
        return fail_build(self, code, "read");
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    int rc = weir__index_set(self->db, "fingerprint", text, self->path, self->error);
    snprintf(text, sizeof text, "%" PRIu64, num_clips);
    return rc == WEIR_OK ? weir__index_set(self->db, "num_clips", text, self->path, self->error) : rc;
}

static int finish_build(build *self, bool was_complete)
{
    bool lists_all = self->progress.num_unreadable_folders == 0;
    int rc = begin_transaction(self);
    if (rc == WEIR_OK && lists_all)
        rc = remove_gone(self);
    if (rc == WEIR_OK && (self->has_changed || !was_complete))
        rc = weir__index_run(self->db, number_clips, self->path, self->error);
    if (rc == WEIR_OK && (self->has_changed || !was_complete))
        rc = note_facts(self);
    if (rc == WEIR_OK)
        rc = weir__index_set(self->db, "complete", "1", self->path, self->error);
    return rc == WEIR_OK ? commit_rows(self) : rc;
}

/* ---- the pipeline ----------------------------------------------------------------------------------------------- */

static bool report_progress(build *self, bool now)
{
    if (!self->options->progress || (!now && weir_clock_ns() < self->next_tell_ns))
        return true;
    self->next_tell_ns = weir_clock_ns() + TELL_INTERVAL_NS;
    return self->options->progress(self->options->self, &self->progress);
}

static const char *clip_glob(const weir_dataset_build_options *options)
{
    return options->glob ? options->glob : WEIR_VIDEO_FILES;
}

static const char *file_glob(const weir_dataset_build_options *options)
{
    return options->tar ? "*.tar" : clip_glob(options);
}

static int start_pipeline(build *self, weir_pipeline **pipeline)
{
    const weir_dataset_build_options *options = self->options;
    uint32_t concurrency = options->concurrency ? options->concurrency : weir_cpu_budget();
    weir_directory_config folder = {
        .root = self->root,
        .glob = file_glob(options),
        .sorted = true,
        .counts = &self->listed,
    };
    weir_list_config list = { .paths = self->look.groups.paths, .num_paths = self->look.groups.num_groups };
    weir_probe_config probe = { .check = options->check,
                                .no_packets = options->no_packets,
                                .allow = options->allow,
                                .ca_file = options->ca_file };
    weir_builder *builder = weir_builder_new();
    weir_stage_options listing = { .threads = 1, .queue_items = 64 };
    if (options->root)
        weir_source_directory(builder, &folder, &listing);
    else
        weir_source_list(builder, &list, &listing);
    self->members.glob = clip_glob(options);
    if (options->tar)
        weir_builder_pipe(builder, &members_op, &self->members, 0,
                          &(weir_stage_options){ .threads = 1, .queue_items = 64 });
    weir_builder_pipe(builder, &look_op, &self->look, 0, &(weir_stage_options){ .queue_items = 64 });
    weir_pipe_probe(builder, &probe, &(weir_stage_options){ .concurrency = concurrency, .threads = concurrency });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 64 });
    return weir_builder_build(builder, &(weir_pipeline_options){ .stats_interval_ns = WEIR_FOREVER }, pipeline,
                              self->error);
}

static int write_all(build *self, weir_pipeline *pipeline)
{
    int rc = WEIR_OK;
    while (rc == WEIR_OK) {
        weir_item item;
        rc = weir_pipeline_next(pipeline, &item, TELL_INTERVAL_NS);
        weir_account account;
        if (weir_pipeline_account(pipeline, "look", &account) == WEIR_OK) {
            self->progress.num_found = account.taken;
            self->progress.num_unchanged = account.skipped;
        }
        if (rc == WEIR_OK) {
            rc = put_clip(self, &item);
            weir_item_release(&item);
        } else if (rc == WEIR_ETIMEDOUT) {
            rc = WEIR_OK;
        }
        if (rc == WEIR_OK && self->is_in_transaction && weir_clock_ns() >= self->next_write_ns)
            rc = commit_rows(self);
        if (rc == WEIR_OK && !report_progress(self, false))
            rc = weir_error_set(self->error, WEIR_ESTOPPED, 0, "stopped");
    }
    if (rc == WEIR_EFAILED) {
        weir_error failure;
        rc = weir_pipeline_error(pipeline, NULL, &failure);
        if (self->error)
            *self->error = failure;
    }
    return rc == WEIR_EOF ? WEIR_OK : rc;
}

/* A task can fail here only without memory: its file must not be treated as removed. */
static int check_failures(build *self, weir_pipeline *pipeline)
{
    weir_error failure;
    static const char *const stages[] = { "members", "look", "probe" };
    for (int i = self->options->tar ? 0 : 1; i < 3; i++) {
        weir_pipeline_error(pipeline, stages[i], &failure);
        if (failure.status != WEIR_OK)
            return weir_error_set(self->error, failure.status, failure.library_code, "%s: %s", failure.label,
                                  failure.message);
    }
    return self->look.is_out_of_memory || self->members.is_out_of_memory
               ? weir_error_set(self->error, WEIR_ENOMEM, 0, "out of memory")
               : WEIR_OK;
}

/* Are all its rows in the index already, with the same reason? */
static bool is_known(build *self, const broken_archive *broken)
{
    sqlite3_stmt *find = NULL;
    sqlite3_prepare_v2(self->db, "SELECT clip_id FROM clip WHERE path = ? AND status = ? AND message = ?", -1, &find,
                       NULL);
    sqlite3_bind_text(find, 1, broken->path + self->look.root_length, -1, SQLITE_STATIC);
    sqlite3_bind_int64(find, 2, broken->error.status);
    sqlite3_bind_text(find, 3, broken->error.message, -1, SQLITE_STATIC);
    size_t num_found = 0;
    while (sqlite3_step(find) == SQLITE_ROW)
        num_found += set_seen(&self->written, sqlite3_column_int64(find, 0));
    sqlite3_finalize(find);
    return num_found == count_rows(&self->look, broken->number);
}

/* As clips that cannot be used. */
static int put_broken_archives(build *self)
{
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && i < self->members.num_broken; i++) {
        const broken_archive *broken = &self->members.broken[i];
        weir_probe_result result = { .size_bytes = -1, .error = broken->error };
        if (is_known(self, broken))
            self->progress.num_unchanged++;
        else
            rc = put_clip(self, &(weir_item){ .data = &result, .label = broken->path, .seq = broken->number });
    }
    return rc;
}

static int run_pipeline(build *self)
{
    weir_pipeline *pipeline;
    int rc = start_pipeline(self, &pipeline);
    if (rc != WEIR_OK)
        return rc;
    rc = write_all(self, pipeline);
    if (rc == WEIR_OK)
        rc = check_failures(self, pipeline);
    if (rc == WEIR_OK)
        rc = put_broken_archives(self);
    weir_pipeline_free(pipeline);
    self->progress.num_unreadable_folders = self->listed.unreadable_folders;
    if (rc != WEIR_OK)
        (void)commit_rows(self); /* keep what was read */
    return rc;
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

static int prepare_build(build *self)
{
    static const char put[] =
        "INSERT INTO clip (path, label, size_bytes, mtime_ns, codec, width, height, duration, num_frames, "
        "num_keyframes,"
        " num_errors, status, library_code, message, archive_length, offset, occurrence, start, end)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (path, occurrence) DO UPDATE SET label = excluded.label, size_bytes = excluded.size_bytes,"
        " mtime_ns = excluded.mtime_ns, codec = excluded.codec, width = excluded.width, height = excluded.height,"
        " duration = excluded.duration, num_frames = excluded.num_frames, num_keyframes = excluded.num_keyframes,"
        " num_errors = excluded.num_errors, status = excluded.status, library_code = excluded.library_code,"
        " message = excluded.message, archive_length = excluded.archive_length, offset = excluded.offset,"
        " start = excluded.start, end = excluded.end"
        /* members are probed in any order; of those with the same name the last one in the archive counts */
        " WHERE excluded.mtime_ns <> clip.mtime_ns OR excluded.offset >= clip.offset"
        " RETURNING clip_id";
    int code = sqlite3_prepare_v2(self->db, put, -1, &self->put_clip, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(self->db, "INSERT OR REPLACE INTO packets VALUES (?, ?)", -1, &self->put_packets,
                                  NULL);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(self->db, "DELETE FROM packets WHERE clip_id = ?", -1, &self->drop_packets, NULL);
    if (code != SQLITE_OK)
        return fail_build(self, code, "write to");
    int rc = weir__index_open_reader(self->path, &self->look.db, self->error);
    if (rc != WEIR_OK)
        return rc;
    code = sqlite3_prepare_v2(self->look.db,
                              "SELECT clip_id, size_bytes, mtime_ns, label, offset, status, start, end FROM clip"
                              " WHERE path = ? ORDER BY occurrence",
                              -1, &self->look.find, NULL);
    return code == SQLITE_OK ? WEIR_OK : fail_build(self, code, "read");
}

/* An index is for one folder, or for lists. After a change of options all files are read again. */
static int note_source(build *self)
{
    char options[32];
    snprintf(options, sizeof options, "check %d, packets %d%s", (int)self->options->check, !self->options->no_packets,
             self->options->tar ? ", tar" : "");
    char *root_before = weir__index_get(self->db, "root");
    char *options_before = weir__index_get(self->db, "options");
    int rc = WEIR_OK;
    self->look.takes_all = !options_before || strcmp(options_before, options) != 0;
    if (root_before && strcmp(root_before, self->root) != 0)
        rc = weir_error_set(self->error, WEIR_EINVAL, 0,
                            "%s is the index of %s%s: choose another file, or remove it first", self->path,
                            *root_before ? "the folder " : "a list", root_before);
    if (rc == WEIR_OK)
        rc = weir__index_set(self->db, "root", self->root, self->path, self->error);
    if (rc == WEIR_OK)
        rc = weir__index_set(self->db, "options", options, self->path, self->error);
    free(root_before);
    free(options_before);
    return rc;
}

static int find_build_root(build *self)
{
    const weir_dataset_build_options *options = self->options;
    self->root = options->root ? realpath(options->root, NULL) : strdup("");
    if (!self->root)
        return weir_error_set(self->error, WEIR_ENOTFOUND, 0, "folder not found: %s", options->root);
    self->progress.num_total = self->look.groups.num_groups;
    self->look.root_length = options->root ? strlen(self->root) + (strcmp(self->root, "/") != 0) : 0;
    return WEIR_OK;
}

/* Lists the folder in advance to know the total for the progress; listing is cheap compared to reading. */
static int count_files(build *self)
{
    const weir_dataset_build_options *options = self->options;
    if (!options->root)
        return WEIR_OK;
    /* an empty folder is perhaps not mounted: the index is not emptied */
    weir_directory_config folder = { .root = options->root, .glob = file_glob(options) };
    int rc = weir_directory_count(&folder, UINT64_MAX, &self->progress.num_total, self->error);
    if (options->tar)
        self->progress.num_total = 0; /* of archives, not of clips */
    return rc;
}

static void free_build(build *self)
{
    free(self->look.groups.rows);
    free(self->look.groups.starts);
    free(self->look.groups.paths);
    sqlite3_finalize(self->put_clip);
    sqlite3_finalize(self->put_packets);
    sqlite3_finalize(self->drop_packets);
    sqlite3_finalize(self->look.find);
    sqlite3_close(self->look.db);
    sqlite3_close(self->db);
    weir__tar_members_close(&self->members.tar);
    for (size_t i = 0; i < self->members.num_broken; i++)
        free(self->members.broken[i].path);
    free(self->members.broken);
    free(self->look.seen.bits);
    free(self->written.bits);
    free(self->root);
}

static int check_options(const char *path, const weir_dataset_build_options *options, weir_error *error)
{
    if (!path || (!options->root && !options->paths && options->num_paths))
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if ((options->root != NULL) == (options->paths != NULL) || (options->root && !*options->root))
        return weir_error_set(error, WEIR_EINVAL, 0, "set either root (a folder) or paths (a list)");
    return WEIR_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const listed_row *one = a, *other = b;
    int order = strcmp(one->path, other->path);
    return order ? order : (one->place > other->place) - (one->place < other->place);
}

static int read_rows(const weir_dataset_build_options *options, listed_row *rows, weir_error *error)
{
    for (size_t i = 0; i < options->num_paths; i++) {
        const char *label = options->labels ? options->labels[i] : NULL;
        listed_row row = { options->paths[i], label ? label : "", options->starts_ns ? options->starts_ns[i] : 0,
                           options->ends_ns ? options->ends_ns[i] : 0, i };
        if (!row.path)
            return weir_error_set(error, WEIR_EINVAL, 0, "path %zu of the list is NULL", i);
        if (row.start_ns < 0 || row.end_ns < 0 || (row.end_ns && row.end_ns <= row.start_ns))
            return weir_error_set(error, WEIR_EINVAL, 0, "%s: its start is negative, or not before its end",
                                  row.path);
        rows[i] = row;
    }
    qsort(rows, options->num_paths, sizeof *rows, compare_rows);
    return WEIR_OK;
}

static int group_rows(build *self)
{
    path_groups *groups = &self->look.groups;
    size_t num_rows = self->options->num_paths;
    self->look.options = self->options;
    if (!self->options->paths)
        return WEIR_OK;
    groups->rows = malloc((num_rows + 1) * sizeof *groups->rows);
    groups->starts = malloc((num_rows + 1) * sizeof *groups->starts);
    groups->paths = malloc((num_rows + 1) * sizeof *groups->paths);
    if (!groups->rows || !groups->starts || !groups->paths)
        return weir_error_set(self->error, WEIR_ENOMEM, 0, "out of memory");
    int rc = read_rows(self->options, groups->rows, self->error);
    for (size_t i = 0; rc == WEIR_OK && i < num_rows; i++) {
        if (i > 0 && strcmp(groups->rows[i - 1].path, groups->rows[i].path) == 0)
            continue;
        groups->paths[groups->num_groups] = groups->rows[i].path;
        groups->starts[groups->num_groups++] = i;
    }
    groups->starts[groups->num_groups] = num_rows;
    return rc;
}

int weir_dataset_build_sized(const char *path, const weir_dataset_build_options *given, size_t given_size,
                             weir_dataset_progress *result, weir_error *error)
{
    weir_dataset_build_options options;
    build self = { .path = path, .options = &options, .error = error };
    int rc = weir_struct_copy(&options, sizeof options, given, given_size, "weir_dataset_build_options", error);
    if (rc == WEIR_OK)
        rc = check_options(path, &options, error);
    if (rc == WEIR_OK)
        rc = group_rows(&self);
    if (rc == WEIR_OK)
        rc = find_build_root(&self);
    if (rc == WEIR_OK)
        rc = count_files(&self);
    if (rc == WEIR_OK)
        rc = weir__index_open_writer(path, &self.db, error);
    bool was_complete = false;
    if (rc == WEIR_OK) {
        char *complete = weir__index_get(self.db, "complete");
        was_complete = complete && strcmp(complete, "1") == 0;
        free(complete);
        rc = note_source(&self);
    }
    if (rc == WEIR_OK)
        rc = weir__index_set(self.db, "complete", "0", path, error);
    if (rc == WEIR_OK)
        rc = prepare_build(&self);
    if (rc == WEIR_OK)
        rc = run_pipeline(&self);
    if (rc == WEIR_OK)
        rc = finish_build(&self, was_complete);
    if (rc == WEIR_OK)
        (void)report_progress(&self, true);
    if (result)
        *result = self.progress;
    free_build(&self);
    return rc;
}
