/* The tar stage of a build without libarchive: it reports that. */
#include <weir/tar.h>

static int refuse_tar_config(void *config, weir_error *error)
{
    (void)config;
    return weir_error_set(
        error, WEIR_EUNSUPPORTED, 0,
        "weir was built without libarchive (Debian: libarchive-dev): install it and build weir again");
}

static int refuse_tar_run(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    (void)in;
    (void)out;
    return weir_task_fail(task, WEIR_EUNSUPPORTED, 0, "weir was built without libarchive");
}

const weir_op weir_tar_read = {
    .name = "tar",
    .takes = WEIR_TYPE_TEXT,
    .makes = WEIR_TYPE_BYTES,
    .config_size = sizeof(weir_tar_config),
    .config_init = refuse_tar_config,
    .run = refuse_tar_run,
};
