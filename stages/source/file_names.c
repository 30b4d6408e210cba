#include <weir/files.h>

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "stages/source/directory_walk.h"

#ifndef FNM_EXTMATCH /* only GNU has "*.@(jpg|png)" */
#define FNM_EXTMATCH 0
#endif

typedef struct file_kind {
    const char *pattern;
    const char *noun;
    const char *extensions; /* separated by spaces */
} file_kind;

static const file_kind file_kinds[] = {
    { WEIR_VIDEO_FILES, "video", WEIR_VIDEO_EXTENSIONS },
    { WEIR_AUDIO_FILES, "audio file", WEIR_AUDIO_EXTENSIONS },
    { WEIR_IMAGE_FILES, "image", WEIR_IMAGE_EXTENSIONS },
};

/* NULL = a pattern for fnmatch(3). */
static const file_kind *find_kind(const char *pattern)
{
    for (size_t i = 0; i < sizeof file_kinds / sizeof file_kinds[0]; i++)
        if (strcmp(pattern, file_kinds[i].pattern) == 0)
            return &file_kinds[i];
    return NULL;
}

static bool has_extension(const char *name, const char *extensions)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot ? strlen(dot + 1) : 0;
    for (const char *word = extensions; length > 0 && *word; word += strspn(word, " ")) {
        size_t word_length = strcspn(word, " ");
        if (word_length == length && strncasecmp(word, dot + 1, length) == 0)
            return true;
        word += word_length;
    }
    return false;
}

bool weir_file_name_matches(const char *path, const char *pattern)
{
    if (!path)
        return false;
    if (!pattern)
        return true;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const file_kind *kind = find_kind(pattern);
    return kind ? has_extension(name, kind->extensions) : fnmatch(pattern, name, FNM_EXTMATCH) == 0;
}

int weir__file_names_refuse(const char *pattern, const char *place, weir_error *error)
{
    const file_kind *kind = pattern ? find_kind(pattern) : NULL;
    return weir_error_set(error, WEIR_ENOTFOUND, 0, "no %s in %s%s%s", kind ? kind->noun : "file", place,
                          pattern && !kind ? " matches " : "", pattern && !kind ? pattern : "");
}
