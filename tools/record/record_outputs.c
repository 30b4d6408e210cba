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

enum { MAX_OUTPUTS = 4, MAX_OTHERS = 6 };

const char *record_outputs_check(const record_settings *settings, const record_inputs *inputs, weir_error *error)
{
    const char *trace = settings->trace_path, *resume = settings->resume_path, *refused = NULL;
    char old[PATH_MAX] = ""; /* see --trace-size */
    snprintf(old, sizeof old, "%s.old", trace ? trace : "");
    const struct {
        const char *option, *path;
        weir_output_kind kind;
    } outputs[MAX_OUTPUTS] = { { "--db-path", settings->db_path, WEIR_OUTPUT_DATABASE },
                               { "--openmetrics", settings->openmetrics_path, WEIR_OUTPUT_METRICS },
                               { "--trace", trace, WEIR_OUTPUT_TRACE },
                               { "--trace", trace ? old : NULL, WEIR_OUTPUT_TRACE } };
    glob_t ranks = { 0 }; /* whose databases are read with that of --resume */
    if (resume && record_rank_databases(resume, &ranks, error) != WEIR_OK)
        return "--resume";
    const char **given = memory_get(MAX_OTHERS + ranks.gl_pathc, sizeof *given);
    for (size_t i = 0; i < MAX_OUTPUTS && !refused; i++) {
        bool is_database = outputs[i].kind == WEIR_OUTPUT_DATABASE; /* it may be that of --resume */
        const char *const others[MAX_OTHERS] = { settings->list_path,
                                                 settings->video.config.ca_file,
                                                 settings->openmetrics_path,
                                                 trace,
                                                 is_database ? NULL : settings->db_path,
                                                 is_database ? NULL : resume };
        weir_output_rules rules = { .force = settings->force && !is_database, .inputs = given };
        for (size_t j = 0; j < MAX_OTHERS; j++)
            if (others[j] && others[j] != outputs[i].path)
                given[rules.num_inputs++] = others[j];
        for (size_t j = 0; j < ranks.gl_pathc && !is_database; j++)
            given[rules.num_inputs++] = ranks.gl_pathv[j];
        if (outputs[i].path &&
            check_named(settings, inputs, outputs[i].path, outputs[i].kind, &rules, error) != WEIR_OK)
            refused = outputs[i].option;
    }
    free(given);
    globfree(&ranks);
    return refused;
}
