#include "tools/cli/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/output_part.h"

int output_allow(const tool_call *call, const char *path, weir_output_kind kind, bool force, int first_input)
{
    weir_error error = { 0 };
    const weir_output_rules rules = { force, (const char *const *)call->words + first_input,
                                      (size_t)(call->num_words - first_input) };
    int status = output_check(path ? path : "-", kind, &rules, &error);
    return status == WEIR_OK ? TOOL_DONE : tool_refuse(call, "%s", error.message);
}

int output_open(const tool_call *call, const char *path, weir_output_kind kind, bool force, output *out)
{
    *out = (output){ .file = stdout };
    if (output_allow(call, path, kind, force, 0) != TOOL_DONE)
        return TOOL_REFUSED;
    if (!path || strcmp(path, "-") == 0)
        return TOOL_DONE;
    sigset_t before;
    output_part_begin(&before);
    int failure = weir__replacement_open(&out->replacement, path);
    output_part_end(&before, failure ? NULL : out->replacement.path_before);
    if (failure)
        return tool_refuse(call, "cannot write %s: %s", path, strerror(failure));
    out->file = out->replacement.file;
    out->path = path;
    return TOOL_DONE;
}

int output_close(const tool_call *call, output *out, bool keep)
{
    if (!out->path)
        return keep ? tool_finish(call) : TOOL_DONE;
    int failure = weir__replacement_close(&out->replacement, keep);
    output_part_forget();
    if (failure && keep)
        tool_refuse(call, "cannot write %s: %s", out->path, strerror(failure));
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
    return failure ? tool_refuse(call, "cannot create the folder %s: %s", path, strerror(failure)) : TOOL_DONE;
}

const char *output_default_path(const char *db_path, const char *extension, char *path, size_t size)
{
    const char *slash = strrchr(db_path, '/'), *name = slash ? slash + 1 : db_path, *dot = strrchr(name, '.');
    snprintf(path, size, "%.*s%s", (int)(dot && dot > name ? dot - name : (ptrdiff_t)strlen(name)), name, extension);
    return path;
}
