#include "output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pipes and devices cannot be replaced; they are written to as they are. */
static bool is_replaceable(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

int output_open(const tool_call *call, const char *path, output *out)
{
    *out = (output){ .file = stdout };
    if (!path || strcmp(path, "-") == 0)
        return TOOL_DONE;
    size_t size = strlen(path) + 32;
    out->path = strdup(path);
    out->path_before = malloc(size);
    if (out->path && out->path_before) {
        if (is_replaceable(path))
            snprintf(out->path_before, size, "%s.%ld.tmp", path, (long)getpid());
        else
            strcpy(out->path_before, path);
        out->file = fopen(out->path_before, "w");
        if (out->file)
            return TOOL_DONE;
    }
    tool_refuse(call, "cannot write %s: %s", path, strerror(errno));
    free(out->path);
    free(out->path_before);
    return TOOL_REFUSED;
}

int output_close(const tool_call *call, output *out, bool keep)
{
    if (!out->path)
        return keep ? tool_finish(call) : TOOL_DONE;
    errno = 0;
    bool failed = fflush(out->file) != 0 || ferror(out->file);
    int failure = failed ? (errno ? errno : EIO) : 0;
    if (fclose(out->file) != 0 && !failure)
        failure = errno;
    bool replaces = strcmp(out->path, out->path_before) != 0;
    if (replaces && keep && !failure && rename(out->path_before, out->path) != 0)
        failure = errno;
    if (replaces && (!keep || failure))
        unlink(out->path_before);
    if (failure && keep)
        tool_refuse(call, "cannot write %s: %s", out->path, strerror(failure));
    free(out->path);
    free(out->path_before);
    return failure && keep ? TOOL_FAILED : TOOL_DONE;
}

int output_make_folder(const tool_call *call, const char *path)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return TOOL_DONE;
    int failure = errno;
    if (failure == EEXIST && stat(path, &info) == 0)
        failure = S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    return failure ? tool_refuse(call, "cannot make the folder %s: %s", path, strerror(failure)) : TOOL_DONE;
}

const char *output_default_path(const char *db_path, const char *ending, char *path, size_t size)
{
    const char *slash = strrchr(db_path, '/'), *name = slash ? slash + 1 : db_path, *dot = strrchr(name, '.');
    snprintf(path, size, "%.*s%s", (int)(dot && dot > name ? dot - name : (ptrdiff_t)strlen(name)), name, ending);
    return path;
}
