#include "stages/reader/reader_source.h"

#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

static int check(const weir_video_source *source, weir_error *error)
{
    if (!!source->path + !!source->bytes + !!source->functions != 1)
        return weir_error_set(error, WEIR_EINVAL, 0, "set exactly one of path, bytes and functions");
    if (source->own_bytes && !source->bytes)
        return weir_error_set(error, WEIR_EINVAL, 0, "own_bytes is set, but there are no bytes");
    return WEIR_OK;
}

static int take_functions(weir_reader_source *source, weir_error *error)
{
    const weir_video_source *given = &source->given;
    weir_file_functions *own = &source->user.functions;
    if (!given->functions)
        return WEIR_OK;
    if (given->functions_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "functions are given, but functions_size is 0: pass sizeof(weir_file_functions)");
    int rc =
        weir_struct_copy(own, sizeof *own, given->functions, given->functions_size, "weir_file_functions", error);
    if (rc == WEIR_OK && (!own->read || own->size_bytes < 0))
        rc = weir_error_set(error, WEIR_EINVAL, 0, "%s",
                            own->read ? "functions.size_bytes is negative" : "functions.read is missing");
    return rc;
}

static const char *name_of(const weir_video_source *source)
{
    if (source->path)
        return source->path;
    if (source->name)
        return source->name;
    return source->bytes && source->bytes->name ? source->bytes->name : "(memory)";
}

int weir__reader_source_take(weir_reader_source *source, const weir_video_source *given, size_t given_size,
                             weir_error *error)
{
    *source = (weir_reader_source){ .user.position = -1 };
    if (!given || given_size == 0)
        return weir_error_set(error, WEIR_EINVAL, 0, "source or source_size is missing");
    weir_video_source own;
    int rc = weir_struct_copy(&own, sizeof own, given, given_size, "weir_video_source", error);
    if (rc != WEIR_OK)
        return rc;
    source->given = own;
    rc = take_functions(source, error);
    if (rc == WEIR_OK)
        rc = check(&source->given, error);
    if (rc == WEIR_OK && !(source->path = strdup(name_of(&source->given))))
        rc = weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    return rc;
}

int weir__reader_source_load(weir_reader_source *source, uint64_t max_bytes, weir_error *error)
{
    int rc = weir__user_file_load(&source->user, max_bytes, &source->loaded, error);
    source->user.position = -1;
    return rc;
}

void weir__reader_source_free(weir_reader_source *source)
{
    weir_bytes_free(source->loaded);
    if (source->given.own_bytes)
        weir_bytes_free(source->given.bytes);
    if (source->user.functions.close)
        source->user.functions.close(source->user.functions.self);
    free(source->path);
    *source = (weir_reader_source){ 0 };
}
