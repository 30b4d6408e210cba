#include "dataset/index/build_archives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/bytes.h>
#include <weir/files.h>

static void note_broken(build_members *self, const weir_item *archive, const weir_error *error)
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
static int next_member(build_members *self, const weir_item *archive, bool is_first, weir_task *task)
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
    build_members *self = (build_members *)(uintptr_t)weir_task_config(task);
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

const weir_op weir__build_members_op = {
    .name = "members", .takes = WEIR_TYPE_TEXT, .makes = WEIR_TYPE_ENTRY, .run = run_members
};

void weir__build_members_free(build_members *self)
{
    weir__tar_members_close(&self->tar);
    for (size_t i = 0; i < self->num_broken; i++)
        free(self->broken[i].path);
    free(self->broken);
}
