#include "dataset/index/build_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/probe.h>

#include "common/hash.h"
#include "common/redact.h"
#include "dataset/index/index_file.h"
#include "dataset/index/user_columns.h"

/* Interval of the transactions. */
#define WRITE_INTERVAL_NS (1 * WEIR_SECOND)

/* Names of folders have at most 255 bytes. */
enum { MAX_FOLDER = 256 };

static int fail_build(index_build *self, int code, const char *what)
{
    return weir__index_error(self->error, self->db, code, what, self->path);
}

int weir__build_prepare(index_build *self)
{
    static const char put[] =
        "INSERT INTO clip (path, label, size_bytes, mtime_ns, codec, width, height, duration, num_frames, "
        "num_keyframes,"
        " num_errors, status, library_code, message, archive_length, offset, occurrence, start, end, identity,"
        " is_redacted, validator, num_missing, start_frame, end_frame) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (identity, occurrence) DO UPDATE SET path = excluded.path, is_redacted = excluded.is_redacted,"
        " label = excluded.label, size_bytes = excluded.size_bytes,"
        " mtime_ns = excluded.mtime_ns, codec = excluded.codec, width = excluded.width, height = excluded.height,"
        " duration = excluded.duration, num_frames = excluded.num_frames, num_keyframes = excluded.num_keyframes,"
        " num_errors = excluded.num_errors, status = excluded.status, library_code = excluded.library_code,"
        " message = excluded.message, archive_length = excluded.archive_length, offset = excluded.offset,"
        " start = excluded.start, end = excluded.end, validator = excluded.validator,"
        " num_missing = excluded.num_missing, start_frame = excluded.start_frame, end_frame = excluded.end_frame"
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
    int rc = self->memory ? WEIR_OK : weir__index_open_reader(self->path, &self->look.db, self->error);
    if (rc != WEIR_OK || self->memory)
        return rc;
    code =
        sqlite3_prepare_v2(self->look.db,
                           "SELECT clip_id, size_bytes, mtime_ns, label, offset, status, start, end, path,"
                           " is_redacted, validator, occurrence, start_frame, end_frame FROM clip WHERE identity = ?",
                           -1, &self->look.find, NULL);
    return code == SQLITE_OK ? WEIR_OK : fail_build(self, code, "read");
}

void weir__build_free_statements(index_build *self)
{
    sqlite3_finalize(self->put_clip);
    sqlite3_finalize(self->put_packets);
    sqlite3_finalize(self->drop_packets);
    sqlite3_finalize(self->look.find);
    sqlite3_close(self->look.db);
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

static int begin_transaction(index_build *self)
{
    if (self->is_in_transaction)
        return WEIR_OK;
    self->is_in_transaction = true;
    self->next_write_ns = weir_clock_ns() + WRITE_INTERVAL_NS;
    return weir__index_run(self->db, "BEGIN IMMEDIATE", self->path, self->error);
}

int weir__build_commit(index_build *self)
{
    if (!self->is_in_transaction)
        return WEIR_OK;
    self->is_in_transaction = false;
    return weir__index_run(self->db, "COMMIT", self->path, self->error);
}

/* Writes the name of the file's folder to `label`; "" = none. That of a URL is in the path of the object, not in its
   parameters; a host is none. */
static const char *folder_label(const index_build *self, const weir_item *item, char *label, size_t size)
{
    const weir_probe_result *result = item->data;
    const clip_name name = weir__build_name(&self->look, item->seq, result->path);
    const char *first =
        result->archive_length ? result->path + result->archive_length + 1 /* after the '!' */ : name.identity;
    bool is_url = !*self->root && !self->options->tar && weir__is_url(first);
    const char *end = memrchr(first, '/', is_url ? strcspn(first, "?#") : strlen(first));
    if (!end)
        return "";
    const char *start = end;
    while (start > first && start[-1] != '/')
        start--;
    if (is_url && start - first >= 2 && start[-2] == '/')
        return "";
    snprintf(label, size, "%.*s", (int)(end - start), start);
    return label;
}

static int put_packets(index_build *self, int64_t row, const weir_probe_result *result)
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
        sqlite3_bind_double(statement, at, weir__index_seconds(time_ns));
    else
        sqlite3_bind_null(statement, at);
}

/* 0 is NULL. */
static void bind_frame(sqlite3_stmt *statement, int at, uint64_t frame)
{
    if (frame)
        sqlite3_bind_int64(statement, at, frame > INT64_MAX ? INT64_MAX : (int64_t)frame);
    else
        sqlite3_bind_null(statement, at);
}

/* The columns of the file. */
static void bind_file(const index_build *self, sqlite3_stmt *statement, const weir_probe_result *result)
{
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
    char message[sizeof result->error.message];
    memcpy(message, result->error.message, sizeof message);
    weir__text_redact_about(message, (const char *const *)&result->path, 1);
    sqlite3_bind_text(statement, 14, message, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 15,
                       result->archive_length ? (int64_t)(result->archive_length - self->look.root_length) : 0);
    sqlite3_bind_int64(statement, 16, result->offset);
    sqlite3_bind_text(statement, 22, result->validator, -1, SQLITE_STATIC); /* NULL is NULL */
    sqlite3_bind_int64(statement, 23, (int64_t)result->num_missing);
}

/* The columns of a clip in it: what the list says, or the folder. `label` is used until the statement is reset. */
static void bind_clip(const index_build *self, sqlite3_stmt *statement, const weir_item *item, size_t occurrence,
                      char label[MAX_FOLDER])
{
    const weir_probe_result *result = item->data;
    const clip_name name = weir__build_name(&self->look, item->seq, result->path);
    const listed_row *listed = weir__path_groups_row(&self->look.groups, item->seq, occurrence);
    const char *text = self->options->labels ? listed->label : folder_label(self, item, label, MAX_FOLDER);
    sqlite3_bind_text(statement, 1, name.path, -1, SQLITE_STATIC);
    if (*text)
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, 2);
    sqlite3_bind_int64(statement, 17, (int64_t)occurrence);
    bind_seconds(statement, 18, listed->window.start_ns);
    bind_seconds(statement, 19, listed->window.end_ns);
    bind_frame(statement, 24, listed->window.start_frame);
    bind_frame(statement, 25, listed->window.end_frame);
    sqlite3_bind_text(statement, 20, name.identity, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 21, name.is_redacted);
}

static int put_row(index_build *self, const weir_item *item, size_t occurrence)
{
    char label[MAX_FOLDER];
    sqlite3_stmt *statement = self->put_clip;
    bind_file(self, statement, item->data);
    bind_clip(self, statement, item, occurrence, label);
    int code = sqlite3_step(statement);
    int64_t row = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return fail_build(self, code, "write to");
    if (code == SQLITE_DONE) /* a later member of the same name is there */
        return WEIR_OK;
    self->has_changed = true;
    if (!weir__seen_rows_add(&self->written, row))
        return weir_error_set(self->error, WEIR_ENOMEM, 0, "out of memory");
    return occurrence == 0 ? put_packets(self, row, item->data) : WEIR_OK;
}

/* All rows of the file. */
int weir__build_put_clip(index_build *self, const weir_item *item)
{
    const weir_probe_result *result = item->data;
    if (result->is_unchanged) {
        self->num_unchanged_urls++;
        return WEIR_OK;
    }
    size_t num_rows = weir__path_groups_count(&self->look.groups, item->seq);
    int rc = begin_transaction(self);
    for (size_t i = 0; rc == WEIR_OK && i < num_rows; i++)
        rc = put_row(self, item, i);
    self->progress.num_indexed += rc == WEIR_OK;
    self->progress.num_broken += rc == WEIR_OK && result->error.status != WEIR_OK;
    self->progress.num_cut += rc == WEIR_OK && result->error.status == WEIR_OK && result->num_missing > 0;
    return rc;
}

/* Are all its rows in the index already, with the same reason? */
static bool is_known(index_build *self, const broken_archive *broken)
{
    sqlite3_stmt *find = NULL;
    sqlite3_prepare_v2(self->db, "SELECT clip_id FROM clip WHERE identity = ? AND status = ? AND message = ?", -1,
                       &find, NULL);
    sqlite3_bind_text(find, 1, broken->path + self->look.root_length, -1, SQLITE_STATIC);
    sqlite3_bind_int64(find, 2, broken->error.status);
    sqlite3_bind_text(find, 3, broken->error.message, -1, SQLITE_STATIC);
    size_t num_found = 0;
    while (sqlite3_step(find) == SQLITE_ROW)
        num_found += weir__seen_rows_add(&self->written, sqlite3_column_int64(find, 0));
    sqlite3_finalize(find);
    return num_found == weir__path_groups_count(&self->look.groups, broken->number);
}

/* As clips that cannot be used. */
int weir__build_put_broken_archives(index_build *self)
{
    int rc = WEIR_OK;
    for (size_t i = 0; rc == WEIR_OK && i < self->members.num_broken; i++) {
        const broken_archive *broken = &self->members.broken[i];
        weir_probe_result result = { .size_bytes = -1, .error = broken->error, .path = broken->path };
        if (is_known(self, broken))
            self->progress.num_unchanged++;
        else
            rc = weir__build_put_clip(self, &(weir_item){ .data = &result, .seq = broken->number });
    }
    return rc;
}

static int put_path(index_build *self, sqlite3_stmt *put, uint64_t group)
{
    const clip_name name = weir__build_name(&self->look, group, NULL);
    sqlite3_bind_text(put, 1, name.path, -1, SQLITE_STATIC);
    sqlite3_bind_int64(put, 2, name.is_redacted);
    sqlite3_bind_text(put, 3, name.identity, -1, SQLITE_STATIC);
    int code = sqlite3_step(put);
    sqlite3_reset(put);
    self->has_changed = true;
    return code == SQLITE_DONE ? WEIR_OK : fail_build(self, code, "write to");
}

int weir__build_put_renamed(index_build *self)
{
    const renamed_groups *renamed = &self->look.renamed;
    sqlite3_stmt *put = NULL;
    int rc = begin_transaction(self);
    int code =
        sqlite3_prepare_v2(self->db, "UPDATE clip SET path = ?, is_redacted = ? WHERE identity = ?", -1, &put, NULL);
    if (rc == WEIR_OK && code != SQLITE_OK)
        rc = fail_build(self, code, "write to");
    for (size_t i = 0; rc == WEIR_OK && i < renamed->num_groups; i++)
        rc = put_path(self, put, renamed->groups[i]);
    sqlite3_finalize(put);
    return rc;
}

/* ---- the end of a build ----------------------------------------------------------------------------------------- */

static int remove_gone(index_build *self)
{
    sqlite3_stmt *all, *drop;
    int code = sqlite3_prepare_v2(self->db, "SELECT clip_id FROM clip", -1, &all, NULL);
    if (code != SQLITE_OK)
        return fail_build(self, code, "read");
    code = sqlite3_prepare_v2(self->db, "DELETE FROM clip WHERE clip_id = ?", -1, &drop, NULL);
    while (code == SQLITE_OK && sqlite3_step(all) == SQLITE_ROW) {
        int64_t row = sqlite3_column_int64(all, 0);
        if (weir__seen_rows_has(&self->look.seen, row) || weir__seen_rows_has(&self->written, row))
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
    " (SELECT clip_id, row_number() OVER (ORDER BY identity, occurrence) - 1 AS number FROM clip WHERE status = 0) "
    "AS "
    "ordered"
    " WHERE clip.clip_id = ordered.clip_id;"
    "CREATE UNIQUE INDEX clip_by_number ON clip(number);"
    "DELETE FROM packets WHERE clip_id NOT IN (SELECT clip_id FROM clip);"
    "DELETE FROM class;"
    "INSERT INTO class SELECT DISTINCT label FROM clip WHERE status = 0 AND label IS NOT NULL;"
    "INSERT OR REPLACE INTO dataset SELECT 'num_redacted', count(*) FROM clip WHERE number IS NOT NULL AND "
    "is_redacted;";

/* Stores the hash of what is in the rows and the number of clips, so that opening need not scan all clips. */
static int note_facts(index_build *self)
{
    sqlite3_stmt *all;
    user_columns columns;
    uint64_t sum = WEIR__HASH_START;
    uint64_t num_clips = 0;
    char text[32];
    int rc = weir__user_columns_read(&columns, self->db, self->path, self->error);
    if (rc != WEIR_OK)
        return rc;
    char *sql = sqlite3_mprintf("SELECT identity, size_bytes, label, start, end, start_frame, end_frame%s FROM clip"
                                " WHERE number IS NOT NULL ORDER BY number",
                                columns.sql);
    int code = sql ? sqlite3_prepare_v2(self->db, sql, -1, &all, NULL) : SQLITE_NOMEM;
    for (size_t i = 0; i < columns.num; i++)
        sum = weir__hash(sum, columns.all[i].name, strlen(columns.all[i].name) + 1);
    sqlite3_free(sql);
    weir__user_columns_free(&columns);
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
    rc = weir__index_set(self->db, "fingerprint", text, self->path, self->error);
    snprintf(text, sizeof text, "%" PRIu64, num_clips);
    return rc == WEIR_OK ? weir__index_set(self->db, "num_clips", text, self->path, self->error) : rc;
}

int weir__build_finish(index_build *self, bool was_complete)
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
    return rc == WEIR_OK ? weir__build_commit(self) : rc;
}
