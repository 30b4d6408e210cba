#include "frame_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/log.h>

#include "memory.h"
#include "record_messages.h"
#include "record_outputs.h"
#include "record_pipeline.h"
#include "record_progress.h"
#include "terminal.h"

/* The label below the only folder, or all of it; as the name of a file in the output folder. "%" is taken by the
   numbers of pictures. */
static char *make_name(const frame_folder *job, const record_inputs *inputs, const char *label)
{
    const char *root = inputs->num_folders == 1 && inputs->num_all_paths == 0 ? inputs->folders[0].root : "";
    size_t length = strlen(root);
    if (strncmp(label, root, length) == 0 && (label[length] == '/' || (length && root[length - 1] == '/')))
        label += length;
    char *name = memory_format("%s/%s%s", job->path, label + strspn(label, "/"),
                               job->format == FRAME_FORMAT_PNG ? "" : ".npy");
    for (char *at = name + strlen(job->path) + 1; *at; at++)
        if (*at == '%' && job->format == FRAME_FORMAT_PNG)
            *at = '_';
        else if (strncmp(at, "../", 3) == 0 && at[-1] == '/')
            at[0] = at[1] = '_';
    return name;
}

/* The folders of a path, those that are missing. */
static int make_folders(char *path, weir_error *error)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int code = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
        *slash = '/';
        if (code)
            return weir_error_set(error, WEIR_EIO, code, "cannot make the folder of %s: %s", path, strerror(code));
    }
    return WEIR_OK;
}

static int write_item(const frame_folder *job, const record_inputs *inputs, const weir_item *item, weir_error *error)
{
    const char *label = item->label ? item->label : "";
    char *name = make_name(job, inputs, label);
    char *path = memory_format("%s%s", name, job->format == FRAME_FORMAT_PNG ? "/%04d.png" : "");
    const record_settings *settings = job->settings;
    const char *const others[] = { label, settings->list_path, settings->video.config.ca_file };
    const char *given[3];
    weir_output_rules rules = { .inputs = given };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i])
            given[rules.num_inputs++] = others[i];
    frame_output *output = NULL;
    int status = make_folders(path, error);
    if (status == WEIR_OK && job->force &&
        weir_output_check(path, WEIR_OUTPUT_NPY, &rules, NULL) != WEIR_OK && /* listing takes a while */
        record_is_clip(settings, inputs, path))
        status = weir_error_set(error, WEIR_EINVAL, 0, "%s is one of the files to decode: give another folder", path);
    rules.force = job->force;
    if (status == WEIR_OK)
        status = frame_output_open(path, job->format, &rules, &output, error);
    if (status == WEIR_OK)
        status = frame_output_add(output, item->data, error);
    if (status == WEIR_OK)
        status = frame_output_close(output, error);
    else
        frame_output_abort(output);
    free(path);
    free(name);
    return status;
}

/* Ends at the first file that cannot be written: the next one could not, either. */
static int write_all(const frame_folder *job, const record_inputs *inputs, weir_pipeline *pipeline,
                     uint64_t *num_written, weir_error *error)
{
    weir_item item;
    int interval_ms = record_progress_interval_ms(), status = WEIR_OK;
    int64_t timeout_ns = interval_ms < 0 ? WEIR_FOREVER : interval_ms * WEIR_MILLISECOND;
    while (status == WEIR_OK || status == WEIR_ETIMEDOUT) {
        status = weir_pipeline_next(pipeline, &item, timeout_ns);
        record_progress_update(pipeline);
        if (status != WEIR_OK)
            continue;
        status = write_item(job, inputs, &item, error);
        weir_item_release(&item);
        *num_written += status == WEIR_OK;
    }
    record_progress_end();
    if (status == WEIR_EOF || status == WEIR_ESTOPPED)
        return WEIR_OK;
    return *error->message ? status : weir_pipeline_error(pipeline, NULL, error);
}

static int run_folder(const frame_folder *job, const record_inputs *inputs)
{
    static const record_observers nobody;
    const record_settings *settings = job->settings;
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_account account = { 0 };
    uint64_t num_written = 0;
    terminal_start(true);
    int exit_status = record_pipeline_build(settings, inputs, &nobody, NULL, &pipeline);
    if (exit_status != RECORD_DONE)
        return exit_status;
    weir_pipeline_stop_on_signals(pipeline);
    record_progress_start(settings->tar ? NULL : inputs, 1);
    if (write_all(job, inputs, pipeline, &num_written, &error) != WEIR_OK) {
        record_refuse(settings, "%s", error.message);
        exit_status = RECORD_FAILED;
    }
    int signal_number = weir_pipeline_stop_signal(pipeline);
    weir_pipeline_account(pipeline, NULL, &account);
    weir_pipeline_free(pipeline);
    fprintf(stderr, "%s: %" PRIu64 " file%s sampled to %s, %" PRIu64 " failed\n", settings->program, num_written,
            num_written == 1 ? "" : "s", job->path, account.failed);
    if (exit_status == RECORD_DONE && account.failed > 0 && num_written == 0)
        exit_status = record_tell_useless(settings, account.failed);
    exit_status = record_inputs_tell_unreadable(settings, inputs, exit_status);
    return signal_number ? RECORD_SIGNAL + signal_number : exit_status;
}

int frame_folder_write(const frame_folder *job)
{
    static record_inputs inputs; /* static: the counting thread may use it until the process ends */
    inputs.share.world = (weir_world){ .size = 1 };
    int exit_status = record_pipeline_check(job->settings);
    if (exit_status == RECORD_DONE)
        exit_status = record_inputs_open(job->settings, &inputs);
    return exit_status == RECORD_DONE ? run_folder(job, &inputs) : exit_status;
}
