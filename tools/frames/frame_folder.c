#include "tools/frames/frame_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/log.h>

#include "common/name_count.h"
#include "common/redact.h"
#include "tools/cli/memory.h"
#include "tools/frames/frame_name.h"
#include "tools/record/record_messages.h"
#include "tools/record/record_outputs.h"
#include "tools/record/record_pipeline.h"
#include "tools/record/record_progress.h"
#include "tools/record/terminal.h"

/* The only folder, which is left out of names; "" = there are others. */
static const char *root_of(const record_inputs *inputs)
{
    return inputs->num_folders == 1 && inputs->num_all_paths == 0 ? inputs->folders[0].root : "";
}

/* "FOLDER/a/clip.mp4.npy", or "FOLDER/a/clip.mp4" for pictures. */
static char *make_name(const frame_folder *job, const record_inputs *inputs, weir_identity identity)
{
    char *below = frame_name_of(identity, root_of(inputs));
    size_t length = strlen(job->path);
    while (length > 1 && job->path[length - 1] == '/')
        length--;
    char *name =
        memory_format("%.*s/%s%s", (int)length, job->path, below, job->format == FRAME_FORMAT_PNG ? "" : ".npy");
    free(below);
    return name;
}

/* ---- one file for each item ---- */

typedef struct named_input {
    char *name; /* of the output */
    char *shown;
} named_input;

typedef struct name_check {
    const frame_folder *job;
    const record_inputs *inputs;
    named_input *all;
    size_t count;
} name_check;

static void take_name(void *self, const char *path, uint64_t occurrence)
{
    name_check *check = self;
    char *address = memory_check(weir_identity_of(path));
    check->all = memory_grow(check->all, check->count, sizeof *check->all);
    named_input *input = &check->all[check->count++];
    input->name = make_name(check->job, check->inputs, (weir_identity){ address, occurrence });
    input->shown = memory_copy(path);
    weir__address_redact(input->shown);
    free(address);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const named_input *)a)->name, ((const named_input *)b)->name);
}

/* An only folder has each file once, and what archives hold is not known yet: write_item() looks at their names. */
static int check_names(const frame_folder *job, const record_inputs *inputs)
{
    name_check check = { .job = job, .inputs = inputs };
    int exit_status = RECORD_DONE;
    if (*root_of(inputs) || job->settings->tar)
        return RECORD_DONE;
    record_inputs_each(inputs, &inputs->share, take_name, &check);
    qsort(check.all, check.count, sizeof *check.all, compare_names);
    for (size_t i = 1; i < check.count && exit_status == RECORD_DONE; i++)
        if (strcmp(check.all[i - 1].name, check.all[i].name) == 0)
            exit_status = record_refuse(job->settings,
                                        "%s and %s would both be written to %s: leave one out, or decode them into "
                                        "another folder",
                                        check.all[i - 1].shown, check.all[i].shown, check.all[i].name);
    for (size_t i = 0; i < check.count; i++) {
        free(check.all[i].name);
        free(check.all[i].shown);
    }
    free(check.all);
    return exit_status;
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

static int write_item(const frame_folder *job, const record_inputs *inputs, const weir_item *item,
                      weir_name_counts *names, weir_error *error)
{
    const weir_identity identity = weir_item_identity(item);
    char *name = make_name(job, inputs, identity);
    char *path = memory_format("%s%s", name, job->format == FRAME_FORMAT_PNG ? "/%04d.png" : "");
    const record_settings *settings = job->settings;
    const char *const others[] = { identity.address, settings->list_path, settings->video.input.ca_file };
    const char *given[3];
    weir_output_rules rules = { .inputs = given };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i])
            given[rules.num_inputs++] = others[i];
    frame_output *output = NULL;
    int status =
        weir__name_count(names, name) == 0
            ? make_folders(path, error)
            : weir_error_set(error, WEIR_EINVAL, 0, "%s: two of the files would be written to %s", item->label, name);
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
    weir_name_counts names = { 0 };
    int interval_ms = record_progress_interval_ms(), status = WEIR_OK;
    int64_t timeout_ns = interval_ms < 0 ? WEIR_FOREVER : interval_ms * WEIR_MILLISECOND;
    while (status == WEIR_OK || status == WEIR_ETIMEDOUT) {
        status = weir_pipeline_next(pipeline, &item, timeout_ns);
        record_progress_update(pipeline);
        if (status != WEIR_OK)
            continue;
        status = write_item(job, inputs, &item, &names, error);
        weir_item_release(&item);
        *num_written += status == WEIR_OK;
    }
    record_progress_end();
    weir__name_counts_free(&names);
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
    if (exit_status == RECORD_DONE)
        exit_status = check_names(job, &inputs);
    return exit_status == RECORD_DONE ? run_folder(job, &inputs) : exit_status;
}
