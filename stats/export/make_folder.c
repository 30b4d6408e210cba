#include "make_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int make_one(const char *folder)
{
    struct stat info;
    if (mkdir(folder, 0777) == 0)
        return 0;
    int failure = errno;
    if (stat(folder, &info) != 0)
        return failure;
    return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

int weir_make_folder(const char *folder)
{
    char *copy = strdup(folder);
    if (!copy)
        return ENOMEM;
    int failure = 0;
    for (char *slash = strchr(copy + 1, '/'); slash && !failure; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failure = make_one(copy);
        *slash = '/';
    }
    if (!failure)
        failure = make_one(copy);
    free(copy);
    return failure;
}
