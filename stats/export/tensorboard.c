#include "tensorboard.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "database_path.h"

char *weir__tensorboard_path(const char *folder, int64_t started_unix_ns, const char *node_id, int64_t pid,
                             unsigned number)
{
    char *path = NULL, node[128];
    size_t length = 0;
    for (; length < sizeof node - 1 && node_id[length]; length++) {
        unsigned char c = (unsigned char)node_id[length];
        node[length] = c < 0x80 && (isalnum(c) || c == '-' || c == '.') ? (char)c : '_';
    }
    node[length] = '\0';
    if (asprintf(&path, "%s/events.out.tfevents.%" PRId64 ".%s.%" PRId64 ".%u.weir", folder,
                 started_unix_ns / 1000000000, node, pid, number) < 0)
        return NULL;
    return path;
}

int weir__tensorboard_make_folder(const char *folder)
{
    char *path = NULL;
    if (asprintf(&path, "%s/", folder) < 0)
        return ENOMEM;
    int failure = weir__path_make_parents(path);
    free(path);
    return failure;
}

int weir__tensorboard_error(weir_error *error, int failure, const char *folder)
{
    int status = failure == ENOMEM                                              ? WEIR_ENOMEM
                 : failure == EACCES || failure == EROFS || failure == EPERM    ? WEIR_EACCESS
                 : failure == ENOTDIR || failure == EEXIST || failure == ENOENT ? WEIR_EINVAL
                                                                                : WEIR_EIO;
    return weir_error_set(error, status, -failure, "cannot write event files to %s: %s",
                          weir__path_for_message(folder).text, strerror(failure));
}
