#include "tools/record/record_outputs.h"

#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/memory.h"
#include "tools/record/record_ended.h"
#include "tools/record/record_exports.h"

#ifndef FNM_EXTMATCH /* only GNU has "*.@(jpg|png)" */
#define FNM_EXTMATCH 0
#endif

typedef struct clip_search {
    struct stat file;
    bool is_found;
} clip_search;

static void compare_clip(void *self, const char *path, uint64_t occurrence)
{
    clip_search *search = self;
    (void)occurrence;
    struct stat info;
    search->is_found |=
        stat(path, &info) == 0 && info.st_dev == search->file.st_dev && info.st_ino == search->file.st_ino;
}

/* Listing the folders may take a while, so it is done only where a clip can be meant. That is a name as those of
   clips, another link, or --force, without which the file is of the output's own kind. */
static bool may_be_clip(const record_settings *settings, const record_inputs *inputs, const char *path,
                        const struct stat *file)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool matches = inputs->num_folders == 0;
    for (size_t i = 0; i < inputs->num_folders; i++)
        matches |= fnmatch(inputs->folders[i].glob, name, FNM_EXTMATCH) == 0;
    return matches || settings->force || file->st_nlink > 1;
}

bool record_is_clip(const record_settings *settings, const record_inputs *inputs, const char *path)
{
    static const record_share all = { .world = { .size = 1 } };
    clip_search search = { .is_found = false };
    if (stat(path, &search.file) == 0 && S_ISREG(search.file.st_mode) &&
        may_be_clip(settings, inputs, path, &search.file))
        record_inputs_each(inputs, &all, compare_clip, &search);
    return search.is_found;
}

/* A file that may be written to, checked against the inputs, the other outputs included. */
static int check_output(const record_settings *settings, const record_inputs *inputs, const char *path,
                        weir_output_kind kind, const weir_output_rules *rules, weir_error *error)
{
    int status = output_check(path, kind, rules, error);
    if (status != WEIR_OK || kind == WEIR_OUTPUT_DATABASE || !record_is_clip(settings, inputs, path))
        return status;
    return weir_error_set(error, WEIR_EINVAL, 0, "%.300s is one of the files to decode: give another path", path);
}

/* The same for every file that is there and that a path with words in braces may name. */
static int check_named(const record_settings *settings, const record_inputs *inputs, const char *path,
                       weir_output_kind kind, const weir_output_rules *rules, weir_error *error)
{
    glob_t found = { 0 };
    char *pattern = record_escape_pattern(path), *to = pattern;
    for (const char *from = pattern; *from; from++) {
        const char *end = *from == '{' ? strchr(from, '}') : NULL;
        *to++ = end ? '*' : *from;
        from = end ? end : from;
    }
    *to = '\0';
    int status = check_output(settings, inputs, path, kind, rules, error);
    if (strchr(path, '{') && glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && status == WEIR_OK; i++)
            status = check_output(settings, inputs, found.gl_pathv[i], kind, rules, error);
    globfree(&found);
    free(pattern);
    return status;
}

/* A file that may be written; kind: of its content. */
typedef struct record_output {
    const char *option, *path;
    weir_output_kind kind;
} record_output;

typedef struct record_outputs {
    record_output all[2 * RECORD_MAX_EXPORTS + 1];
    size_t count;
    char *old[RECORD_MAX_EXPORTS]; /* paths that are made here */
} record_outputs;

/* The database is the first one. A folder is checked when its files are made. */
static void list_outputs(const record_settings *settings, record_outputs *outputs)
{
    const weir_export_format *format;
    outputs->all[outputs->count++] = (record_output){ "db-path", settings->db_path, WEIR_OUTPUT_DATABASE };
    for (size_t i = 0; (format = record_export_format(i)); i++) {
        const char *path = settings->exports[i].path;
        if (!path || format->kind == WEIR_OUTPUT_FOLDER)
            continue;
        outputs->all[outputs->count++] = (record_output){ format->name, path, format->kind };
        if (!format->old_suffix)
            continue;
        outputs->old[i] = memory_format("%s%s", path, format->old_suffix);
        outputs->all[outputs->count++] = (record_output){ format->name, outputs->old[i], format->kind };
    }
}

/* What the output must not be: all that is read, and the other outputs. The database may be that of --resume. */
static const char **list_others(const record_settings *settings, const record_outputs *outputs,
                                const record_output *own, const glob_t *ranks, size_t *count)
{
    const char **others = memory_get(outputs->count + ranks->gl_pathc + 3, sizeof *others);
    bool is_database = own->kind == WEIR_OUTPUT_DATABASE;
    const char *const inputs[] = { settings->list_path, settings->video.input.ca_file,
                                   is_database ? NULL : settings->resume_path };
    *count = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (inputs[i])
            others[(*count)++] = inputs[i];
    for (size_t i = 0; i < outputs->count; i++)
        if (outputs->all[i].option != own->option)
            others[(*count)++] = outputs->all[i].path;
    for (size_t i = 0; i < ranks->gl_pathc && !is_database; i++)
        others[(*count)++] = ranks->gl_pathv[i];
    return others;
}

/* Two options with one path. */
static int check_distinct(const record_outputs *outputs, const record_output *own, weir_error *error)
{
    for (const record_output *other = outputs->all; other < own; other++)
        if (other->option != own->option && strcmp(other->path, own->path) == 0)
            return weir_error_set(error, WEIR_EINVAL, 0, "%.300s is the output of --%s, too: give each its own path",
                                  own->path, other->option);
    return WEIR_OK;
}

static int check_listed(const record_settings *settings, const record_inputs *inputs, const record_outputs *outputs,
                        const record_output *own, const glob_t *ranks, weir_error *error)
{
    if (check_distinct(outputs, own, error) != WEIR_OK)
        return WEIR_EINVAL;
    weir_output_rules rules = { .force = settings->force && own->kind != WEIR_OUTPUT_DATABASE };
    const char **others = list_others(settings, outputs, own, ranks, &rules.num_inputs);
    rules.inputs = others;
    int status = check_named(settings, inputs, own->path, own->kind, &rules, error);
    free(others);
    return status;
}

const char *record_outputs_check(const record_settings *settings, const record_inputs *inputs, weir_error *error)
{
    record_outputs outputs = { .count = 0 };
    glob_t ranks = { 0 }; /* whose databases are read with that of --resume */
    const char *refused = NULL;
    if (settings->resume_path && record_rank_databases(settings->resume_path, &ranks, error) != WEIR_OK)
        return "resume";
    list_outputs(settings, &outputs);
    for (size_t i = outputs.count; i-- > 0 && !refused;) /* the last one knows all others */
        if (check_listed(settings, inputs, &outputs, &outputs.all[i], &ranks, error) != WEIR_OK)
            refused = outputs.all[i].option;
    for (size_t i = 0; i < RECORD_MAX_EXPORTS; i++)
        free(outputs.old[i]);
    globfree(&ranks);
    return refused;
}
