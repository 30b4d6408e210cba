#include "record_outputs.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifndef FNM_EXTMATCH /* only GNU has "*.@(jpg|png)" */
#define FNM_EXTMATCH 0
#endif

typedef struct clip_search {
    struct stat file;
    bool is_found;
} clip_search;

static void compare_clip(void *self, const char *path)
{
    clip_search *search = self;
    struct stat info;
    search->is_found |=
        stat(path, &info) == 0 && info.st_dev == search->file.st_dev && info.st_ino == search->file.st_ino;
}

/* Listing the folders may take a while, so it is done only where a clip can be meant: by a name as those of clips, by
   another link, or by --force, without which the file is of the output's own kind. */
static bool may_be_clip(const record_settings *settings, const record_inputs *inputs, const char *path,
                        const struct stat *file)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool matches = inputs->num_folders == 0;
    for (size_t i = 0; i < inputs->num_folders; i++)
        matches |= fnmatch(inputs->folders[i].glob, name, FNM_EXTMATCH) == 0;
    return matches || settings->force || file->st_nlink > 1;
}

static bool is_clip(const record_settings *settings, const record_inputs *inputs, const char *path)
{
    static const record_share all = { .world = { .size = 1 } };
    clip_search search = { .is_found = false };
    if (stat(path, &search.file) == 0 && S_ISREG(search.file.st_mode) &&
        may_be_clip(settings, inputs, path, &search.file))
        record_inputs_each(inputs, &all, compare_clip, &search);
    return search.is_found;
}

enum { MAX_OUTPUTS = 4, MAX_OTHERS = 5 };

/* An output (path NULL = none), checked against the files that it must not be. */
static bool check_output(const record_settings *settings, const record_inputs *inputs, const char *path,
                         output_kind kind, const char *const others[], char *problem)
{
    const char *given[MAX_OTHERS];
    output_rules rules = { .kind = kind, .force = settings->force && kind != OUTPUT_DATABASE, .inputs = given };
    for (size_t i = 0; i < MAX_OTHERS; i++)
        if (others[i] && others[i] != path && strcmp(others[i], "-") != 0)
            given[rules.num_inputs++] = others[i];
    if (!path)
        return true;
    if (!output_check(path, &rules, problem))
        return false;
    if (kind == OUTPUT_DATABASE || !is_clip(settings, inputs, path))
        return true;
    snprintf(problem, OUTPUT_PROBLEM_BYTES, "%.300s is one of the files to decode: give another path", path);
    return false;
}

const char *record_outputs_check(const record_settings *settings, const record_inputs *inputs,
                                 char problem[OUTPUT_PROBLEM_BYTES])
{
    const char *trace = settings->trace_path;
    char old[PATH_MAX] = ""; /* see --trace-size */
    snprintf(old, sizeof old, "%s.old", trace ? trace : "");
    const struct {
        const char *option, *path;
        output_kind kind;
    } outputs[MAX_OUTPUTS] = { { "--db-path", settings->db_path, OUTPUT_DATABASE },
                               { "--openmetrics", settings->openmetrics_path, OUTPUT_METRICS },
                               { "--trace", trace, OUTPUT_TRACE },
                               { "--trace", trace ? old : NULL, OUTPUT_TRACE } };
    for (size_t i = 0; i < MAX_OUTPUTS; i++) {
        bool is_database = outputs[i].kind == OUTPUT_DATABASE; /* it may be that of --resume */
        const char *const others[MAX_OTHERS] = { settings->list_path, is_database ? NULL : settings->db_path,
                                                 is_database ? NULL : settings->resume_path,
                                                 settings->openmetrics_path, trace };
        if (!check_output(settings, inputs, outputs[i].path, outputs[i].kind, others, problem))
            return outputs[i].option;
    }
    return NULL;
}
