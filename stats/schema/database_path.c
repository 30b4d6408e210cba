/*
 * Nothing here opens the file: closing it again would release the locks that other connections of this process hold
 * on it (POSIX locks belong to the process).
 */
#include "stats/schema/database_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/output.h>

#include "common/replacement.h"
#include "common/text_escape.h"
#include "common/text_stream.h"

weir_path_text weir__path_for_message(const char *path)
{
    weir_path_text result = { "" };
    const size_t room = sizeof result.text - 1;
    if (weir__text_escape(path, NULL, 0) > room) {
        strcpy(result.text, "...");
        path += strlen(path) > room ? strlen(path) - room : 0;
        while (strlen(result.text) + weir__text_escape(path, NULL, 0) > room || ((unsigned char)*path & 0xc0) == 0x80)
            path++; /* to a whole character */
    }
    size_t used = strlen(result.text);
    weir__text_escape(path, result.text + used, sizeof result.text - used);
    return result;
}

static const struct {
    int failure, status;
    const char *reason; /* NULL = the system's */
} failures[] = {
    { ENOMEM, WEIR_ENOMEM, NULL },
    { ENOENT, WEIR_ENOTFOUND, NULL },
    { EACCES, WEIR_EACCESS, NULL },
    { EROFS, WEIR_EACCESS, NULL },
    { EPERM, WEIR_EACCESS, NULL },
    { ENOTDIR, WEIR_EINVAL, NULL },
    { EEXIST, WEIR_EINVAL, NULL },
    { EISDIR, WEIR_EINVAL, NULL },
    { EINVAL, WEIR_EINVAL, "not a regular file; give the path of a file" },
    { EBADMSG, WEIR_EDATA, "it is not a trace in Chrome's format" },
    { ENOTSUP, WEIR_EUNSUPPORTED, "this build of weir has no zlib; use a name without .gz" },
    { 0, WEIR_EIO, NULL }, /* all others */
};

int weir__path_fail(weir_error *error, int failure, const char *what, const char *path, const char *hint)
{
    size_t i = 0;
    while (failures[i].failure && failures[i].failure != failure)
        i++;
    return weir_error_set(error, failures[i].status, -failure, "%s %s: %s%s", what, weir__path_for_message(path).text,
                          failures[i].reason ? failures[i].reason : strerror(failure), hint);
}

static int fail_with(int failure, const char *what, const char *path, weir_error *error)
{
    return weir__path_fail(error, failure, what, path, "; give another path");
}

/* Refuses files on which SQLite would hang, or which it would overwrite. */
static int check_kind(const char *path, weir_error *error)
{
    if (!path || !*path)
        return weir_error_set(error, WEIR_EINVAL, 0, "no path for the database; give the path of a file");
    struct stat info;
    if (stat(path, &info) != 0)
        return WEIR_OK;
    const weir_path_text text = weir__path_for_message(path);
    if (!S_ISREG(info.st_mode))
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot open database %s: it is %s; give the path of a file",
                              text.text, S_ISDIR(info.st_mode) ? "a folder" : "not a regular file");
    if (info.st_size == 1) /* SQLite treats a file of one byte as empty, and overwrites it */
        return weir_error_set(error, WEIR_EDATA, 0,
                              "cannot open database %s: file is not a database; give another path", text.text);
    return WEIR_OK;
}

/* 0, or an errno. */
static int make_folder(const char *folder)
{
    if (mkdir(folder, 0777) == 0) {
        weir_log(WEIR_LOG_INFO, "created the folder %s", folder); /* so that a mistyped path is noticed */
        return 0;
    }
    int failure = errno;
    struct stat info;
    if (stat(folder, &info) != 0)
        return failure;
    return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
}

int weir__path_make_parents(const char *path)
{
    int failure = 0;
    char *copy = strdup(path);
    for (char *slash = copy ? strchr(copy + 1, '/') : NULL; slash && !failure; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        failure = make_folder(copy);
        *slash = '/';
    }
    free(copy);
    return copy ? failure : ENOMEM;
}

/* Creates the parent folders of `path`, and checks that the last one is writable. */
static int prepare_folders(const char *path)
{
    const char *last = strrchr(path, '/');
    char *folder = last ? strndup(path, (size_t)(last - path) + 1) : strdup("."); /* "a/b/" */
    int failure = folder ? weir__path_make_parents(path) : ENOMEM;
    if (!failure && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        failure = errno;
    free(folder);
    return failure;
}

/* Files beside it have longer names. */
static bool has_too_long_name(const char *path)
{
    struct stat info;
    char *longer = NULL;
    bool is_too_long =
        asprintf(&longer, "%s-journal", path) >= 0 && lstat(longer, &info) != 0 && errno == ENAMETOOLONG;
    free(longer);
    return is_too_long;
}

int weir__path_prepare_writing(const char *path, weir_error *error)
{
    int status = check_kind(path, error);
    if (status != WEIR_OK)
        return status;

    status = weir_output_check(path, WEIR_OUTPUT_DATABASE, NULL, error);
    if (status != WEIR_OK)
        return status;
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode) && (weir__is_planted(path) || stat(path, &info) != 0))
        return weir_error_set(error, WEIR_EACCESS, 0,
                              "cannot open database %s: it is a link %s; give the path of a file",
                              weir__path_for_message(path).text,
                              weir__is_planted(path) ? "of another user" : "to a file that is not there");
    const char *stray = weir__stray_beside(path);
    if (stray)
        return weir_error_set(
            error, WEIR_EACCESS, 0,
            "cannot write to database %s: the file %s%s beside it belongs to another one; remove that, or "
            "give another path",
            weir__path_for_message(path).text, weir__path_for_message(path).text, stray);
    int failure = prepare_folders(path);
    if (!failure && has_too_long_name(path))
        failure = ENAMETOOLONG;
    if (failure)
        return fail_with(failure, "cannot write to the folder of database", path, error);
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0 && errno != ENOENT)
        return fail_with(errno, "cannot write to database", path, error);
    return WEIR_OK;
}

int weir__path_prepare_reading(const char *path, weir_error *error)
{
    int status = check_kind(path, error);
    if (status != WEIR_OK)
        return status;
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
        return WEIR_OK;
    if (errno == ENOENT || errno == ENOTDIR)
        return weir_error_set(error, WEIR_ENOTFOUND, -errno,
                              "there is no database %s; give the path of one that a run has written",
                              weir__path_for_message(path).text);
    return fail_with(errno, "cannot read database", path, error);
}

char *weir__path_as_uri(const char *path, const char *query)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
    char *uri = NULL;
    size_t size;
    FILE *out = weir__text_stream(&uri, &size);
    if (!out)
        return NULL;
    fputs(*path == '/' ? "file:" : "file:./", out);
    for (const unsigned char *c = (const unsigned char *)path; *c; c++)
        fprintf(out, strchr(plain, *c) ? "%c" : "%%%02X", *c);
    fprintf(out, "?%s", query);
    fclose(out);
    return uri;
}
