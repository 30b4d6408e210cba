/* What a folder has instead of the files that were looked for: the message if there are none. */
#include <weir/files.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "directory_walk.h"

enum {
    MAX_EXTENSIONS = 64, /* files with further ones are only counted */
    MAX_SHOWN = 6,
    MAX_LENGTH = 12 /* longer ones are parts of names */
};

typedef struct extension_count {
    char text[MAX_LENGTH + 2]; /* with the dot; "" = none */
    uint64_t count;
} extension_count;

typedef struct folder_contents {
    extension_count extensions[MAX_EXTENSIONS];
    size_t num_extensions;
    uint64_t num_files;
} folder_contents;

static void add_file(folder_contents *contents, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    bool has_one = dot && dot > slash + 1 && dot[1] && strlen(dot + 1) <= MAX_LENGTH;
    const char *text = has_one ? dot : "";
    size_t i = 0;
    contents->num_files++;
    while (i < contents->num_extensions && strcmp(contents->extensions[i].text, text) != 0)
        i++;
    if (i == MAX_EXTENSIONS)
        return;
    if (i == contents->num_extensions)
        snprintf(contents->extensions[contents->num_extensions++].text, sizeof contents->extensions[i].text, "%s",
                 text);
    contents->extensions[i].count++;
}

/* The most frequent ones first. */
static int by_count(const void *a, const void *b)
{
    const extension_count *first = a, *second = b;
    if (first->count != second->count)
        return first->count < second->count ? 1 : -1;
    return strcasecmp(first->text, second->text);
}

static void describe_contents(folder_contents *contents, const char *noun, char *text, size_t size)
{
    uint64_t num_shown = 0;
    size_t used = (size_t)snprintf(text, size, "%llu other %s%s", (unsigned long long)contents->num_files, noun,
                                   contents->num_files == 1 ? "" : "s");
    qsort(contents->extensions, contents->num_extensions, sizeof contents->extensions[0], by_count);
    for (size_t i = 0; i < contents->num_extensions && i < MAX_SHOWN && used < size; i++) {
        const extension_count *one = &contents->extensions[i];
        num_shown += one->count;
        used += (size_t)snprintf(text + used, size - used, "%s%llu %s", i ? ", " : ": ",
                                 (unsigned long long)one->count, *one->text ? one->text : "without an extension");
    }
    if (num_shown < contents->num_files && used < size)
        snprintf(text + used, size - used, ", ...");
}

static void list_contents(const weir_directory_config *config, const char *pattern, folder_contents *contents)
{
    weir_directory_config all = { .root = config->root, .glob = pattern, .flat = config->flat };
    weir_walk *walk = weir__walk_open(&all, NULL);
    const char *path;
    while (walk && weir__walk_next(walk, &path) == WEIR_OK)
        add_file(contents, path);
    weir__walk_close(walk);
}

int weir__directory_refuse_empty(const weir_directory_config *config, weir_error *error)
{
    folder_contents contents = { 0 };
    weir_error none = { 0 };
    const char *noun = "video";
    char place[300], there[160] = "no files at all";
    snprintf(place, sizeof place, config->flat ? "%s" : "%s or its subfolders", config->root);
    weir__file_names_refuse(config->glob, place, &none);
    list_contents(config, WEIR_VIDEO_FILES, &contents);
    if (contents.num_files == 0) {
        noun = "file";
        list_contents(config, NULL, &contents);
    }
    if (contents.num_files > 0)
        describe_contents(&contents, noun, there, sizeof there);
    return weir_error_set(error, none.status, 0, "%s; it has %s", none.message, there);
}
