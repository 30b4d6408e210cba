/* Replaces the other TensorBoard files in a build without protobuf-c: every call reports that. */
#include <weir/tensorboard.h>

#include <stddef.h>

static int say_missing(weir_error *error)
{
    return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                          "this weir was built without support for TensorBoard: install protobuf-c (Debian: "
                          "protobuf-c-compiler, libprotobuf-c-dev) and build it again");
}

int weir_tensorboard_export(weir_reader *reader, const weir_filter *filter, const char *log_dir, weir_error *error)
{
    (void)reader;
    (void)filter;
    (void)log_dir;
    return say_missing(error);
}

int weir_tensorboard_open_sized(const char *log_dir, const weir_tensorboard_options *options, size_t options_size,
                                weir_tensorboard_log **log, weir_error *error)
{
    if (!log)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    (void)options_size;
    (void)log_dir;
    (void)options;
    *log = NULL;
    return say_missing(error);
}

weir_observer weir_tensorboard_observer(weir_tensorboard_log *log)
{
    (void)log;
    return (weir_observer){ 0 }; /* no log can exist */
}

int weir_tensorboard_close(weir_tensorboard_log *log, weir_error *error)
{
    (void)log;
    (void)error;
    return WEIR_OK;
}
