#include "tests/bytes_source.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/test_case.h"

typedef struct source_worker {
    size_t next;
} source_worker;

static int source_run(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)in;
    source_worker *worker = self;
    const bytes_source_config *config = weir_task_config(task);
    if (worker->next == config->num_files)
        return WEIR_EOF;
    weir_bytes *bytes = config->files[worker->next];
    config->files[worker->next++] = NULL;
    *out = (weir_item){
        .data = bytes,
        .release = weir_bytes_release,
        .size_bytes = weir_bytes_memory(bytes),
        .label = bytes && bytes->name ? bytes->name : "nameless",
    };
    return WEIR_OK;
}

const weir_op bytes_source = {
    .name = "bytes", .makes = WEIR_TYPE_BYTES, .worker_size = sizeof(source_worker), .run = source_run
};

weir_bytes *bytes_of_file(const char *path, const char *name)
{
    struct stat info;
    if (stat(path, &info) != 0)
        fail_msg("%s is not there", path);
    weir_bytes *bytes = weir_bytes_new((size_t)info.st_size, name);
    assert_non_null(bytes);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes->data, 1, bytes->size_bytes, file), bytes->size_bytes);
    fclose(file);
    return bytes;
}
