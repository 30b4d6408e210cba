/* What a folder or an archive has instead of the files that were looked for: the message if there are none. */
#include "stages/source/directory_contents.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stages/source/directory_walk.h"

enum { MAX_SHOWN = 6 };

static void find_extension(const char *path, char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    bool has_one = dot && dot > name && dot[1] && strlen(dot) < size; /* longer ones are parts of names */
    snprintf(text, size, "%s", has_one ? dot : "");
}

static void add_file(weir_extension_counts *counts, const char *path)
{
    char text[sizeof counts->extensions[0].text];
    size_t i = 0;
    find_extension(path, text, sizeof text);
    counts->num_files++;
    while (i < counts->num_extensions && strcmp(counts->extensions[i].text, text) != 0)
        i++;
    if (i == sizeof counts->extensions / sizeof counts->extensions[0])
        return;
    if (i == counts->num_extensions)
        snprintf(counts->extensions[counts->num_extensions++].text, sizeof text, "%s", text);
    counts->extensions[i].count++;
}

void weir__contents_add(weir_contents *contents, const char *path)
{
    add_file(&contents->files, path);
    if (weir_file_name_matches(path, WEIR_VIDEO_FILES))
        add_file(&contents->videos, path);
}

/* The most frequent ones first. */
static int by_count(const void *a, const void *b)
{
    const weir_extension_count *first = a, *second = b;
    if (first->count != second->count)
        return first->count < second->count ? 1 : -1;
    return strcasecmp(first->text, second->text);
}

static void describe_counts(weir_extension_counts *counts, const char *noun, char *text, size_t size)
{
    uint64_t num_shown = 0;
    size_t used = (size_t)snprintf(text, size, "%llu other %s%s", (unsigned long long)counts->num_files, noun,
                                   counts->num_files == 1 ? "" : "s");
    qsort(counts->extensions, counts->num_extensions, sizeof counts->extensions[0], by_count);
    for (size_t i = 0; i < counts->num_extensions && i < MAX_SHOWN && used < size; i++) {
        const weir_extension_count *one = &counts->extensions[i];
        num_shown += one->count;
        used += (size_t)snprintf(text + used, size - used, "%s%llu %s", i ? ", " : ": ",
                                 (unsigned long long)one->count, *one->text ? one->text : "without an extension");
    }
    if (num_shown < counts->num_files && used < size)
        snprintf(text + used, size - used, ", ...");
}

int weir__contents_refuse(weir_contents *contents, const char *pattern, const char *place, weir_error *error)
{
    weir_error none = { 0 };
    char there[160] = "no files at all";
    if (contents->videos.num_files > 0)
        describe_counts(&contents->videos, "video", there, sizeof there);
    else if (contents->files.num_files > 0)
        describe_counts(&contents->files, "file", there, sizeof there);
    weir__file_names_refuse(pattern, place, &none);
    return weir_error_set(error, none.status, 0, "%s; it has %s", none.message, there);
}

int weir__directory_refuse_empty(const weir_directory_config *config, const weir_walk_listener *listener,
                                 weir_error *error)
{
    weir_contents contents = { 0 };
    weir_directory_config all = { .root = config->root, .flat = config->flat };
    weir_walk *walk = weir__walk_open(&all, listener);
    const char *path;
    while (walk && weir__walk_next(walk, &path) == WEIR_OK)
        weir__contents_add(&contents, path);
    weir__walk_close(walk);

    char place[300];
    snprintf(place, sizeof place, config->flat ? "%s" : "%s or its subfolders", config->root);
    return weir__contents_refuse(&contents, config->glob, place, error);
}
