/* A checkpoint in a file: its text, a line "state BYTES HASH", and as many bytes, the program's own. */
#include "engine/resume/checkpoint_parsed.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/output.h>

#include "common/hash.h"
#include "common/replacement.h"

static int status_of_errno(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR: return WEIR_ENOTFOUND;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR: return WEIR_EACCESS;
    case ENOMEM: return WEIR_ENOMEM;
    default: return WEIR_EIO;
    }
}

static int fail_checkpoint_file(const char *what, const char *path, int code, weir_error *error)
{
    return weir_error_set(error, status_of_errno(code), -code, "cannot %s the checkpoint %s: %s", what, path,
                          strerror(code));
}

static int write_checkpoint(const char *path, const char *text, const void *state, size_t state_bytes)
{
    weir__replacement to;
    int code = weir__replacement_open(&to, path);
    if (code)
        return code;
    fprintf(to.file, "%sstate %zu %016" PRIx64 "\n", text, state_bytes,
            weir__hash(WEIR__HASH_START, state, state_bytes));
    if (state_bytes)
        fwrite(state, 1, state_bytes, to.file);
    bool is_file = !to.is_direct;
    code = fflush(to.file) == 0 && (!is_file || fsync(fileno(to.file)) == 0) ? 0 : errno;
    int closed = weir__replacement_close(&to, code == 0);
    code = code ? code : closed;
    return code || !is_file ? code : weir__folder_sync(path);
}

int weir_checkpoint_store(struct weir_pipeline *pipeline, const char *path, const void *state, size_t state_bytes,
                          weir_error *error)
{
    char *text;
    if (!pipeline || !path || (!state && state_bytes))
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = weir_pipeline_checkpoint(pipeline, &text);
    if (status != WEIR_OK)
        return weir_error_set(error, status, 0, "there is no checkpoint to store in %s: %s", path,
                              status == WEIR_EUNSUPPORTED ? "the pipeline was built without checkpoints"
                                                          : weir_status_text(status));
    status = weir_output_check(path, WEIR_OUTPUT_CHECKPOINT, NULL, error);
    if (status != WEIR_OK) {
        free(text);
        return status;
    }
    int code = write_checkpoint(path, text, state_bytes ? state : "", state_bytes);
    free(text);
    return code ? fail_checkpoint_file("write", path, code, error) : WEIR_OK;
}

/* The whole file with a NUL behind it, to be freed. 0 or an errno value. */
static int read_whole(const char *path, char **bytes, size_t *num_bytes)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file)
        return errno;
    int code = fstat(fileno(file), &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    size_t size = code ? 0 : (size_t)info.st_size;
    *bytes = malloc(size + 1);
    if (*bytes) {
        *num_bytes = fread(*bytes, 1, size, file);
        (*bytes)[*num_bytes] = '\0';
    }
    if (code == 0)
        code = !*bytes ? ENOMEM : ferror(file) ? EIO : 0;
    fclose(file);
    return code;
}

/* Behind the last line of the text; NULL = it has none. */
static char *find_text_end(char *bytes)
{
    assert(bytes);
    char *last = strstr(bytes, "\nend ");
    char *end = last ? strchr(last + 1, '\n') : NULL;
    return end ? end + 1 : NULL;
}

static int split_file(char *bytes, size_t num_bytes, char **text, void **state, size_t *state_bytes,
                      weir_error *error)
{
    char *line = find_text_end(bytes), *end = line ? strchr(line, '\n') : NULL;
    size_t size = end ? num_bytes - (size_t)(end + 1 - bytes) : 0;
    char expected[64];
    if (line)
        snprintf(expected, sizeof expected, "state %zu %016" PRIx64 "\n", size,
                 weir__hash(WEIR__HASH_START, end ? end + 1 : "", size));
    if (!line || !end || strncmp(line, expected, (size_t)(end + 1 - line)) != 0)
        return weir_error_set(error, WEIR_EDATA, 0, "it is not a file of weir_checkpoint_store(), or it is damaged");
    *text = strndup(bytes, (size_t)(line - bytes));
    *state = malloc(size + 1);
    *state_bytes = size;
    if (!*text || !*state)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    memcpy(*state, end + 1, size + 1);
    weir_checkpoint *checkpoint;
    int status = weir_checkpoint_read(*text, &checkpoint, error);
    weir_checkpoint_free(checkpoint);
    return status;
}

int weir_checkpoint_load(const char *path, char **text, void **state, size_t *state_bytes, weir_error *error)
{
    char *bytes = NULL, *own_text = NULL;
    void *own_state = NULL;
    size_t num_bytes = 0, num_state = 0;
    weir_error reason = { 0 };
    if (text)
        *text = NULL;
    if (state)
        *state = NULL;
    if (state_bytes)
        *state_bytes = 0;
    if (!path || !text)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int code = read_whole(path, &bytes, &num_bytes);
    int status = code ? fail_checkpoint_file("read", path, code, error)
                      : split_file(bytes, num_bytes, &own_text, &own_state, &num_state, &reason);
    if (status != WEIR_OK && !code)
        weir_error_set(error, status, 0, "cannot use the checkpoint %s: %s", path, reason.message);
    if (status == WEIR_OK) {
        *text = own_text;
        own_text = NULL;
    }
    if (status == WEIR_OK && state) {
        *state = own_state;
        own_state = NULL;
    }
    if (status == WEIR_OK && state_bytes)
        *state_bytes = num_state;
    free(own_text);
    free(own_state);
    free(bytes);
    return status;
}
