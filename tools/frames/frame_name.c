#include "tools/frames/frame_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "tools/cli/memory.h"

/* A file system takes 255 bytes; ".npy" and the name of a part of it are added. */
enum { MAX_PART = 200 };

static void put_part(FILE *to, const char *part, size_t length)
{
    size_t underscores = strspn(part, "_");
    if (length == 1 && *part == '.')
        fputs("_", to);
    else if (length == 2 && strncmp(part, "..", 2) == 0)
        fputs("__", to);
    else if (length > MAX_PART)
        fprintf(to, "%.*s~%016" PRIx64, MAX_PART, part, weir__hash(WEIR__HASH_START, part, length));
    else
        fprintf(to, "%.*s%s", (int)length, part, underscores >= length ? "__" : "");
}

char *frame_name_of(weir_identity identity, const char *root)
{
    const char *at = identity.address;
    size_t length = strlen(root), size;
    char *name;
    if (strncmp(at, root, length) == 0 && (at[length] == '/' || (length && root[length - 1] == '/')))
        at += length;
    FILE *to = memory_file_open(&name, &size);
    for (const char *separator = ""; *(at += strspn(at, "/")); at += length) {
        length = strcspn(at, "/");
        fputs(separator, to);
        put_part(to, at, length);
        separator = "/";
    }
    if (identity.occurrence)
        fprintf(to, "~%" PRIu64, identity.occurrence);
    memory_file_close(to);
    return name;
}
