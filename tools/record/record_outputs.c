#include "record_outputs.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "output_check.h"
#include "record_run.h"

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

enum { MAX_OTHERS = 4 };

/* The path of an output (NULL = none), and the files that it must not be. */
static int check_output(const record_settings *settings, const record_inputs *inputs, const char *option,
                        const char *path, output_kind kind, const char *const others[MAX_OTHERS])
{
    char problem[OUTPUT_PROBLEM_BYTES];
    const char *given[MAX_OTHERS];
    output_rules rules = { .kind = kind, .force = settings->force && kind != OUTPUT_DATABASE, .inputs = given };
    for (size_t i = 0; i < MAX_OTHERS; i++)
        if (others[i] && strcmp(others[i], "-") != 0)
            given[rules.num_inputs++] = others[i];
    if (path && !output_check(path, &rules, problem))
        return record_refuse(settings, "%s: %s", option, problem);
    if (path && kind != OUTPUT_DATABASE && is_clip(settings, inputs, path))
        return record_refuse(settings, "%s: %s is one of the files to decode: give another path", option, path);
    return RECORD_DONE;
}

int record_outputs_check(const record_settings *settings, const record_inputs *inputs)
{
    const char *db = settings->db_path, *list = settings->list_path, *resume = settings->resume_path;
    const char *metrics = settings->openmetrics_path, *trace = settings->trace_path;
    char *old = NULL;
    if (trace && asprintf(&old, "%s.old", trace) < 0) /* see --trace-size */
        return record_refuse(settings, "out of memory");
    int exit_status =
        check_output(settings, inputs, "--db-path", db, OUTPUT_DATABASE, (const char *[MAX_OTHERS]){ list });
    if (exit_status == RECORD_DONE)
        exit_status = check_output(settings, inputs, "--openmetrics", metrics, OUTPUT_METRICS,
                                   (const char *[MAX_OTHERS]){ db, list, resume, trace });
    if (exit_status == RECORD_DONE)
        exit_status = check_output(settings, inputs, "--trace", trace, OUTPUT_TRACE,
                                   (const char *[MAX_OTHERS]){ db, list, resume, metrics });
    if (exit_status == RECORD_DONE)
        exit_status = check_output(settings, inputs, "--trace", old, OUTPUT_TRACE,
                                   (const char *[MAX_OTHERS]){ db, list, resume, metrics });
    free(old);
    return exit_status;
}
