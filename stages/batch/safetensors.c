/*
 * The format: the length of the header in 8 bytes, little endian; the header, JSON padded with spaces to a multiple
 * of 8 bytes; the tensors, one after the other.
 */
#include <weir/arrays.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/output.h>

#include "common/replacement.h"
#include "stages/batch/tensor.h"

enum { NUM_PARTS = 6, LENGTH_BYTES = 8 }; /* of a batch, without columns */

typedef struct named_tensor {
    const char *name, *dtype;
    bool is_column; /* of the user's: "column." comes before its name */
    const void *data;
    size_t num_bytes;
    int num_dims;
    int64_t shape[WEIR_TENSOR_MAX_DIMS];
} named_tensor;

static int fail_safetensors(int code, const char *path, weir_error *error)
{
    int status = code == ENOENT || code == ENOTDIR                  ? WEIR_ENOTFOUND
                 : code == EISDIR                                   ? WEIR_EINVAL
                 : code == EACCES || code == EPERM || code == EROFS ? WEIR_EACCESS
                                                                    : WEIR_EIO;
    return weir_error_set(error, status, -code, "cannot write %s: %s", path, strerror(code));
}

static void put_byte(FILE *to, unsigned byte)
{
    if (byte == '"' || byte == '\\')
        putc('\\', to);
    putc((int)byte, to);
}

static void put_name(FILE *to, const char *name, bool is_column)
{
    fputs(is_column ? "\"column." : "\"", to);
    for (; *name; name++) {
        if ((unsigned char)*name < ' ')
            fprintf(to, "\\u%04x", (unsigned char)*name);
        else
            put_byte(to, (unsigned char)*name);
    }
    putc('"', to);
}

/* JSON strings inside a JSON string: escapes are escaped again. */
static void put_texts(FILE *to, const char *const *texts, size_t num_texts)
{
    fputs(":\"[", to);
    for (size_t i = 0; i < num_texts; i++) {
        fputs(i ? ",\\\"" : "\\\"", to);
        for (const char *c = texts[i]; *c; c++) {
            if (*c == '"' || *c == '\\')
                fputs("\\\\", to);
            if ((unsigned char)*c < ' ')
                fprintf(to, "\\\\u%04x", (unsigned char)*c);
            else
                put_byte(to, (unsigned char)*c);
        }
        fputs("\\\"", to);
    }
    fputs("]\"", to);
}

static char *make_header(const named_tensor *tensors, size_t num_tensors, const weir_collated *batch, size_t *length)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, length);
    if (!to)
        return NULL;
    putc('{', to);
    if (batch) {
        fprintf(to, "\"__metadata__\":{\"epoch\":\"%" PRIu64 "\",", batch->epoch);
        put_name(to, "names", false);
        put_texts(to, (const char *const *)batch->names, batch->num_items);
        for (size_t i = 0; i < batch->num_columns; i++) {
            if (batch->columns[i].kind != WEIR_COLUMN_TEXT)
                continue;
            putc(',', to);
            put_name(to, batch->columns[i].name, true);
            put_texts(to, batch->columns[i].texts, batch->num_items);
        }
        fputs("},", to);
    }
    size_t offset = 0;
    for (size_t i = 0; i < num_tensors; i++) {
        const named_tensor *tensor = &tensors[i];
        fputs(i ? "," : "", to);
        put_name(to, tensor->name, tensor->is_column);
        fprintf(to, ":{\"dtype\":\"%s\",\"shape\":[", tensor->dtype);
        for (int d = 0; d < tensor->num_dims; d++)
            fprintf(to, "%s%" PRId64, d ? "," : "", tensor->shape[d]);
        fprintf(to, "],\"data_offsets\":[%zu,%zu]}", offset, offset + tensor->num_bytes);
        offset += tensor->num_bytes;
    }
    putc('}', to);
    for (long end = ftell(to); end % LENGTH_BYTES; end++)
        putc(' ', to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

static int write_tensors(const named_tensor *tensors, size_t num_tensors, const weir_collated *batch,
                         const char *path, weir_error *error)
{
    size_t length;
    uint8_t prefix[LENGTH_BYTES];
    weir__replacement output;
    char *header = make_header(tensors, num_tensors, batch, &length);
    if (!header)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (weir_output_check(path, WEIR_OUTPUT_SAFETENSORS, NULL, error) != WEIR_OK) {
        free(header);
        return WEIR_EINVAL;
    }
    int failure = weir__replacement_open(&output, path);
    if (failure) {
        free(header);
        return fail_safetensors(failure, path, error);
    }
    for (int i = 0; i < LENGTH_BYTES; i++)
        prefix[i] = (uint8_t)((uint64_t)length >> 8 * i);
    errno = EIO;
    bool is_written =
        fwrite(prefix, sizeof prefix, 1, output.file) == 1 && fwrite(header, length, 1, output.file) == 1;
    for (size_t i = 0; is_written && i < num_tensors; i++)
        is_written = tensors[i].num_bytes == 0 || fwrite(tensors[i].data, tensors[i].num_bytes, 1, output.file) == 1;
    int written = is_written ? 0 : errno;
    failure = weir__replacement_close(&output, is_written);
    free(header);
    return written || failure ? fail_safetensors(written ? written : failure, path, error) : WEIR_OK;
}

static const char *const type_names[] = { "U8", "F16", "BF16", "F32", "U16" }; /* by weir_dtype */

static int write_batch(const weir_collated *batch, const char *path, weir_error *error)
{
    int64_t num_items = (int64_t)batch->num_items;
    weir_tensor mask = weir__batch_mask(batch);
    size_t items_bytes = batch->num_items * sizeof(int64_t);
    named_tensor own[NUM_PARTS] = {
        { "frames", type_names[batch->dtype], false, batch->data, batch->data_bytes, batch->num_dims, { 0 } },
        { "labels", "I64", false, batch->labels, items_bytes, 1, { num_items } },
        { "ids", "I64", false, batch->ids, items_bytes, 1, { num_items } },
        { "sizes", "I32", false, batch->sizes, batch->num_items * 3 * sizeof(int32_t), 2, { num_items, 3 } },
        { "mask", "U8", false, batch->mask, weir__tensor_bytes(&mask, 0), mask.num_dims, { 0 } },
        { "valid", "U8", false, batch->valid, batch->num_items, 1, { num_items } },
    };
    memcpy(own[0].shape, batch->shape, sizeof batch->shape);
    memcpy(own[4].shape, mask.shape, sizeof mask.shape);
    named_tensor *tensors = calloc(NUM_PARTS + batch->num_columns, sizeof *tensors);
    if (!tensors)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    memcpy(tensors, own, sizeof own);
    size_t num_tensors = NUM_PARTS;
    for (size_t i = 0; i < batch->num_columns; i++) {
        const weir_column *column = &batch->columns[i];
        bool is_integer = column->kind == WEIR_COLUMN_INTEGER;
        if (column->kind != WEIR_COLUMN_TEXT)
            tensors[num_tensors++] =
                (named_tensor){ column->name, is_integer ? "I64" : "F64",
                                true,         is_integer ? (const void *)column->integers : column->reals,
                                items_bytes,  1,
                                { num_items } };
    }
    int rc = write_tensors(tensors, num_tensors, batch, path, error);
    free(tensors);
    return rc;
}

static named_tensor name_tensor(const char *name, const char *dtype, const weir_tensor *tensor)
{
    named_tensor named = { name, dtype, false, tensor->data, weir__tensor_bytes(tensor, 0), tensor->num_dims, { 0 } };
    memcpy(named.shape, tensor->shape, sizeof tensor->shape);
    return named;
}

static const char *const array_names[] = { "pts", "times_ns", "mask" }; /* of frames */

int weir_write_safetensors(const weir_item *item, const char *path, weir_error *error)
{
    if (!item || !path)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    bool is_batch = weir__item_is(item, WEIR_TYPE_COLLATED);
    if (!is_batch && !weir__item_is(item, WEIR_TYPE_FRAMES))
        return weir_error_set(error, WEIR_EINVAL, 0, "cannot write %s: the item is neither frames nor a batch", path);
    weir_tensor tensor;
    const weir_frames *frames = item->data;
    int rc = weir__item_tensor(item, &tensor, error);
    if (rc == WEIR_OK)
        rc = weir_memory_check(tensor.memory, "safetensors", error);
    if (rc != WEIR_OK || is_batch)
        return rc == WEIR_OK ? write_batch(item->data, path, error) : rc;
    weir_tensor arrays[] = { weir__frames_tensor(frames, frames->pts, 'i', sizeof *frames->pts),
                             weir__frames_tensor(frames, frames->times_ns, 'i', sizeof *frames->times_ns),
                             weir__frames_tensor(frames, frames->mask, 'u', sizeof *frames->mask) };
    named_tensor tensors[4] = { name_tensor("frames", tensor.num_bytes == 1 ? "U8" : "U16", &tensor) };
    size_t num_tensors = 1;
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        if (arrays[i].data) /* frames that a program made may lack some */
            tensors[num_tensors++] = name_tensor(array_names[i], arrays[i].kind == 'u' ? "U8" : "I64", &arrays[i]);
    return write_tensors(tensors, num_tensors, NULL, path, error);
}
