/*
 * A pipeline: the listing, a stage that looks up unchanged files in the index (build_list.c), the probe, and the calling
 * thread, which writes (build_writer.c). A file that a list has several times is read once: its rows follow each other in
 * `rows`, and item `seq` of the source is group `seq` of them. With archives, a stage before the lookup lists their members
 * (build_archives.c). The lookup stage has one slot and a separate connection. It sets a bit for each row that it
 * finds, and the writer sets one for each row that it writes. At the end, rows without a bit are removed.
 *
 * During a build the index is not marked as complete, and cannot be opened as a dataset.
 */
#include <weir/dataset.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/files.h>
#include <weir/pipeline.h>
#include <weir/struct_copy.h>

#include "dataset/index/build_columns.h"
#include "dataset/index/build_writer.h"
#include "dataset/index/index_file.h"
#include "dataset/index/memory_index.h"

/* Interval of the progress callback. */
#define TELL_INTERVAL_NS (WEIR_SECOND / 5)

/* ---- the pipeline ----------------------------------------------------------------------------------------------- */

static bool report_progress(index_build *self, bool now)
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

static int start_pipeline(index_build *self, weir_pipeline **pipeline)
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
                                .input = options->input,
                                .input_size = options->input_size,
                                .decoder = options->decoder,
                                .decoder_size = options->decoder_size };
    weir_builder *builder = weir_builder_new();
    weir_stage_options listing = { .threads = 1, .queue_items = 64 };
    if (options->root)
        weir_source_directory(builder, &folder, &listing);
    else
        weir_source_list(builder, &list, &listing);
    self->members.glob = clip_glob(options);
    if (options->tar)
        weir_builder_pipe(builder, &weir__build_members_op, &self->members, 0,
                          &(weir_stage_options){ .threads = 1, .queue_items = 64 });
    weir_builder_pipe(builder, &weir__build_look_op, &self->look, 0, &(weir_stage_options){ .queue_items = 64 });
    weir_pipe_probe(builder, &probe, &(weir_stage_options){ .concurrency = concurrency, .threads = concurrency });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 64 });
    return weir_builder_build(builder, &(weir_pipeline_options){ .stats_interval_ns = WEIR_FOREVER }, pipeline,
                              self->error);
}

static int write_all(index_build *self, weir_pipeline *pipeline)
{
    int rc = WEIR_OK;
    while (rc == WEIR_OK) {
        weir_item item;
        rc = weir_pipeline_next(pipeline, &item, TELL_INTERVAL_NS);
        weir_account account;
        if (weir_pipeline_account(pipeline, "look", &account) == WEIR_OK) {
            self->progress.num_found = account.taken;
            self->num_skipped = account.skipped;
        }
        if (rc == WEIR_OK) {
            rc = weir__build_put_clip(self, &item);
            weir_item_release(&item);
        } else if (rc == WEIR_ETIMEDOUT) {
            rc = WEIR_OK;
        }
        self->progress.num_unchanged = self->num_skipped + self->num_unchanged_urls;
        if (rc == WEIR_OK && self->is_in_transaction && weir_clock_ns() >= self->next_write_ns)
            rc = weir__build_commit(self);
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
static int check_failures(index_build *self, weir_pipeline *pipeline)
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

static int run_pipeline(index_build *self)
{
    weir_pipeline *pipeline;
    int rc = start_pipeline(self, &pipeline);
    if (rc != WEIR_OK)
        return rc;
    rc = write_all(self, pipeline);
    if (rc == WEIR_OK)
        rc = check_failures(self, pipeline);
    if (rc == WEIR_OK)
        rc = weir__build_put_broken_archives(self);
    if (rc == WEIR_OK)
        rc = weir__build_put_renamed(self);
    if (rc == WEIR_OK)
        rc = weir__build_put_columns(self);
    weir_pipeline_free(pipeline);
    self->progress.num_unreadable_folders = self->listed.unreadable_folders;
    if (rc != WEIR_OK)
        (void)weir__build_commit(self); /* keep what was read */
    return rc;
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

/* An index is for one folder, or for lists. After a change of options all files are read again. */
static int note_source(index_build *self)
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

static int find_build_root(index_build *self)
{
    const weir_dataset_build_options *options = self->options;
    self->root = options->root ? realpath(options->root, NULL) : strdup("");
    if (!self->root)
        return weir_error_set(self->error, WEIR_ENOTFOUND, 0, "folder not found: %s", options->root);
    self->progress.num_total = self->look.groups.num_groups;
    self->progress.num_clips = self->look.groups.num_rows;
    self->look.root_length = options->root ? strlen(self->root) + (strcmp(self->root, "/") != 0) : 0;
    return WEIR_OK;
}

/* Lists the folder in advance to know the total for the progress; listing is cheap compared to reading. */
static int count_files(index_build *self)
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

static void free_build(index_build *self)
{
    weir__path_groups_free(&self->look.groups);
    weir__build_free_statements(self);
    if (!self->memory)
        sqlite3_close(self->db);
    weir__build_members_free(&self->members);
    free(self->look.renamed.groups);
    free(self->look.seen.bits);
    free(self->written.bits);
    free(self->root);
}

static int check_options(const weir_dataset_build_options *options, weir_error *error)
{
    if (!options->root && !options->paths && options->num_paths)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    if ((options->root != NULL) == (options->paths != NULL) || (options->root && !*options->root))
        return weir_error_set(error, WEIR_EINVAL, 0, "set either root (a folder) or paths (a list)");
    return WEIR_OK;
}

/* Reads what is to be indexed, before an index is made. */
static int read_list(index_build *self)
{
    int rc = check_options(self->options, self->error);
    if (rc == WEIR_OK)
        rc = weir__build_check_columns(self->options, self->error);
    if (rc == WEIR_OK)
        rc = weir__path_groups_read(&self->look.groups, self->options, self->error);
    if (rc == WEIR_OK)
        rc = find_build_root(self);
    return rc == WEIR_OK ? count_files(self) : rc;
}

/* Into the open index. */
static int build_index(index_build *self)
{
    char *complete = weir__index_get(self->db, "complete");
    bool was_complete = complete && strcmp(complete, "1") == 0;
    free(complete);
    int rc = note_source(self);
    if (rc == WEIR_OK)
        rc = weir__index_set(self->db, "complete", "0", self->path, self->error);
    if (rc == WEIR_OK)
        rc = weir__build_prepare(self);
    if (rc == WEIR_OK)
        rc = run_pipeline(self);
    if (rc == WEIR_OK)
        rc = weir__build_finish(self, was_complete);
    if (rc == WEIR_OK)
        (void)report_progress(self, true);
    return rc;
}

/* path NULL: in memory; *memory is NULL on failure. */
static int build_anywhere(const char *path, weir_dataset_memory **memory, const weir_dataset_build_options *given,
                          size_t given_size, weir_dataset_progress *result, weir_error *error)
{
    weir_dataset_build_options options;
    index_build self = {
        .path = path ? path : WEIR__MEMORY_INDEX_NAME, .options = &options, .look.options = &options, .error = error
    };
    int rc = weir_struct_copy(&options, sizeof options, given, given_size, "weir_dataset_build_options", error);
    if (rc == WEIR_OK)
        rc = read_list(&self);
    if (rc == WEIR_OK)
        rc = path ? weir__index_open_writer(path, &self.db, error)
                  : weir__memory_index_new(&self.memory, &self.db, error);
    if (rc == WEIR_OK)
        rc = build_index(&self);
    if (result)
        *result = self.progress;
    free_build(&self);
    if (rc != WEIR_OK)
        weir_dataset_memory_free(self.memory);
    else if (memory)
        *memory = self.memory;
    return rc;
}

int weir_dataset_build_sized(const char *path, const weir_dataset_build_options *options, size_t options_size,
                             weir_dataset_progress *result, weir_error *error)
{
    if (!path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    return build_anywhere(path, NULL, options, options_size, result, error);
}

int weir_dataset_build_memory_sized(const weir_dataset_build_options *options, size_t options_size,
                                    weir_dataset_memory **memory, weir_dataset_progress *result, weir_error *error)
{
    if (!memory)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *memory = NULL;
    return build_anywhere(NULL, memory, options, options_size, result, error);
}
