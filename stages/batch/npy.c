/*
 * NumPy's format 1.0: a text header, padded so that the data starts at a multiple of 64 bytes, then the data. The
 * number of frames is known only at the end, so the header is written last, into reserved space.
 */
#include <weir/arrays.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/output.h>

#include "common/replacement.h"
#include "stages/batch/tensor.h"

/* Enough for any four 64-bit numbers. */
enum { HEADER_BYTES = 192, PREFIX_BYTES = 10 };

struct weir_npy {
    weir__replacement output; /* of a stream, only its file, which is the caller's */
    bool is_stream;
    weir_tensor shape; /* of the first frames, with the total number in shape[0]; num_dims 0 = no frames yet */
    char path[];
};

static int fail_npy(int code, const char *path, weir_error *error)
{
    int status = code == ENOENT || code == ENOTDIR                  ? WEIR_ENOTFOUND
                 : code == EACCES || code == EPERM || code == EROFS ? WEIR_EACCESS
                                                                    : WEIR_EIO;
    return weir_error_set(error, status, -code, "cannot write %s: %s", path, strerror(code));
}

static weir_npy *npy_new(const char *path)
{
    size_t path_bytes = strlen(path) + 1;
    weir_npy *npy = calloc(1, sizeof *npy + path_bytes);
    if (npy)
        memcpy(npy->path, path, path_bytes);
    return npy;
}

/* A folder would fail only at the end, and root could replace a device such as /dev/null. */
static int check_place(const char *path, weir_error *error)
{
    struct stat there;
    if (stat(path, &there) != 0 || S_ISREG(there.st_mode))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "cannot write %s: a %s has that name", path,
                          S_ISDIR(there.st_mode) ? "folder" : "device or pipe");
}

int weir_npy_open(weir_npy **to, const char *path, weir_error *error)
{
    if (!to || !path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *to = NULL;
    int rc = check_place(path, error);
    if (rc == WEIR_OK)
        rc = weir_output_check(path, WEIR_OUTPUT_NPY, NULL, error);
    if (rc != WEIR_OK)
        return rc;
    weir_npy *npy = npy_new(path);
    if (!npy)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    int failure = weir__replacement_open(&npy->output, path);
    if (failure) {
        free(npy);
        return fail_npy(failure, path, error);
    }
    if (npy->output.is_direct) { /* it became a pipe after the check */
        weir_npy_close(npy, false, NULL);
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write %s: a device or pipe has that name", path);
    }
    *to = npy;
    return WEIR_OK;
}

int weir_npy_open_stream(weir_npy **to, FILE *file, const char *name, weir_error *error)
{
    if (!to || !file || !name)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *to = npy_new(name);
    if (!*to)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    (*to)->output.file = file;
    (*to)->is_stream = true;
    return WEIR_OK;
}

static int write_npy_bytes(weir_npy *npy, const void *bytes, size_t num_bytes, weir_error *error)
{
    if (num_bytes == 0 || fwrite(bytes, num_bytes, 1, npy->output.file) == 1)
        return WEIR_OK;
    return fail_npy(errno, npy->path, error);
}

static int write_header(weir_npy *npy, weir_error *error)
{
    enum { MAGIC_BYTES = 8 };
    const weir_tensor *shape = &npy->shape;
    const uint16_t one = 1;
    bool is_little = *(const uint8_t *)&one == 1;
    char order = shape->num_bytes == 1 ? '|' : is_little ? '<' : '>';
    char header[HEADER_BYTES + 1] = "\x93NUMPY\x01";
    size_t text_bytes = HEADER_BYTES - PREFIX_BYTES;
    header[MAGIC_BYTES] = (char)(text_bytes & 0xff);
    header[MAGIC_BYTES + 1] = (char)(text_bytes >> 8);

    int end = PREFIX_BYTES;
    end += snprintf(header + end, sizeof header - (size_t)end,
                    "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", order, shape->kind, shape->num_bytes);
    for (int i = 0; i < shape->num_dims; i++)
        end += snprintf(header + end, sizeof header - (size_t)end, "%" PRId64 ", ", shape->shape[i]);
    end += snprintf(header + end, sizeof header - (size_t)end, "), }");
    memset(header + end, ' ', HEADER_BYTES - (size_t)end);
    header[HEADER_BYTES - 1] = '\n';
    return write_npy_bytes(npy, header, HEADER_BYTES, error);
}

static bool is_alike(const weir_tensor *a, const weir_tensor *b)
{
    bool same = a->kind == b->kind && a->num_bytes == b->num_bytes && a->num_dims == b->num_dims;
    for (int i = 1; same && i < a->num_dims; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

int weir_npy_add(weir_npy *npy, const weir_item *item, weir_error *error)
{
    weir_tensor tensor;
    if (!npy || !item)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = weir__item_tensor(item, &tensor, error);
    if (rc != WEIR_OK)
        return rc;
    rc = weir_memory_check(tensor.memory, "npy", error);
    if (rc != WEIR_OK)
        return rc;
    if (tensor.kind == 'b')
        return weir_error_set(error, WEIR_EUNSUPPORTED, 0, "cannot write %s: NumPy has no bfloat16; use .safetensors",
                              npy->path);
    if (npy->shape.num_dims == 0) {
        npy->shape = tensor;
        npy->shape.shape[0] = 0;
        rc = write_header(npy, error);
        if (rc != WEIR_OK)
            return rc;
    }
    if (!is_alike(&npy->shape, &tensor))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "these frames differ in size or pixel format from the others in %s", npy->path);
    npy->shape.shape[0] += tensor.shape[0];
    return write_npy_bytes(npy, tensor.data, weir__tensor_bytes(&tensor, 0), error);
}

int weir_npy_close(weir_npy *npy, bool keep, weir_error *error)
{
    if (!npy)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int rc = WEIR_OK;
    if (keep && npy->shape.num_dims == 0)
        rc = weir_error_set(error, WEIR_EINVAL, 0, "nothing to write to %s", npy->path);
    if (keep && rc == WEIR_OK && fseek(npy->output.file, 0, SEEK_SET) != 0)
        rc = fail_npy(errno, npy->path, error);
    if (keep && rc == WEIR_OK)
        rc = write_header(npy, error);
    int failure = !npy->is_stream                 ? weir__replacement_close(&npy->output, keep && rc == WEIR_OK)
                  : fflush(npy->output.file) == 0 ? 0
                                                  : errno;
    if (keep && rc == WEIR_OK && failure)
        rc = fail_npy(failure, npy->path, error);
    free(npy);
    return rc;
}
