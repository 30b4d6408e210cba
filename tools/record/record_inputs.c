#include "tools/record/record_inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/redact.h"
#include "tools/cli/list_text.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_check.h"
#include "tools/record/identity_key.h"
#include "tools/record/record_messages.h"

/* -- the share */

static bool is_in_share(const record_share *share, const char *path, uint64_t number, uint64_t occurrence)
{
    const weir_identity identity = { memory_check(weir_identity_of(path)), occurrence };
    uint64_t key = share->by_identity ? weir_identity_hash(path) : number;
    bool is_in = key % share->world.size == share->world.rank && !record_ended_has(&share->ended, identity) &&
                 !record_ended_has(share->ended_before, identity);
    free((char *)(uintptr_t)identity.address);
    return is_in;
}

static bool is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || (length > 0 && folder[length - 1] == '/'));
}

/* The number of a file of a folder among equals: those that are given by name come first, then those of the folders in
   their order. A folder has what is below it: its own listing may have led to that by a link first, under another name. */
static uint64_t find_occurrence(void *self, const char *path)
{
    const record_listing *listing = self;
    const record_inputs *inputs = listing->inputs;
    uint64_t occurrence = 0;
    if (inputs->names.num_names > 0) {
        char *identity = memory_check(weir_identity_of(path));
        occurrence = weir__name_counted(&inputs->names, identity);
        free(identity);
    }
    for (size_t i = 0; i < listing->number; i++)
        occurrence += is_below(path, inputs->folders[i].root);
    return occurrence;
}

static bool accept(void *self, const char *path, uint64_t number)
{
    const record_listing *listing = self;
    return is_in_share(&listing->inputs->share, path, number + listing->number, find_occurrence(self, path));
}

/* A listing apart from the source's. */
typedef struct visit {
    const record_share *share;
    record_listing *listing;
    record_file_function *take;
    void *self;
} visit;

static bool visit_file(void *self, const char *path, uint64_t number)
{
    visit *v = self;
    uint64_t occurrence = find_occurrence(v->listing, path);
    if (is_in_share(v->share, path, number + v->listing->number, occurrence))
        v->take(v->self, path, occurrence);
    return false;
}

void record_inputs_each(const record_inputs *inputs, const record_share *share, record_file_function *take,
                        void *self)
{
    visit v = { share, NULL, take, self };
    for (size_t i = 0; i < inputs->num_folders; i++) {
        uint64_t num_accepted;
        weir_directory_config folder = inputs->folders[i];
        v.listing = &inputs->listings[i];
        folder.accept = visit_file;
        folder.accept_self = &v;
        weir_directory_count(&folder, UINT64_MAX, &num_accepted, NULL);
    }
    for (size_t i = 0; i < inputs->num_all_paths; i++)
        if (is_in_share(share, inputs->all_paths[i], i, inputs->all_occurrences[i]))
            take(self, inputs->all_paths[i], inputs->all_occurrences[i]);
}

/* -- --list */

static int open_list(const record_settings *settings, record_inputs *inputs)
{
    bool is_stdin = strcmp(settings->list_path, "-") == 0;
    if (is_stdin && inputs->share.world.size > 1)
        return record_refuse(settings,
                             "--list -: not with several processes, as launchers give stdin to one of them; "
                             "write the list to a file");
    char problem[256];
    FILE *file = is_stdin ? stdin : fopen(settings->list_path, "r");
    snprintf(problem, sizeof problem, "%s", strerror(errno));
    inputs->list = file ? list_text_read(file, problem) : NULL;
    if (file && !is_stdin)
        fclose(file);
    if (!inputs->list)
        return record_refuse(settings, "--list: %s: %s", settings->list_path, problem);
    return RECORD_DONE;
}

/* row: of a table; 0 if there is none. */
static void add_clip(record_inputs *inputs, const char *path, uint64_t occurrence, weir_clip_window window,
                     size_t row)
{
    inputs->rows = memory_grow(inputs->rows, inputs->num_paths, sizeof *inputs->rows);
    inputs->rows[inputs->num_paths] = row;
    inputs->windows = memory_grow(inputs->windows, inputs->num_paths, sizeof *inputs->windows);
    inputs->windows[inputs->num_paths] = window;
    inputs->has_windows |= !weir_clip_window_is_whole(&window);
    inputs->paths = memory_grow(inputs->paths, inputs->num_paths, sizeof *inputs->paths);
    inputs->occurrences = memory_grow(inputs->occurrences, inputs->num_paths, sizeof *inputs->occurrences);
    inputs->occurrences[inputs->num_paths] = occurrence;
    inputs->paths[inputs->num_paths++] = path;
}

static void add_path(record_inputs *inputs, const char *path, uint64_t occurrence)
{
    add_clip(inputs, path, occurrence, (weir_clip_window){ 0 }, 0);
}

/* Terminates each line with NUL, and adds those that are not empty. */
static void add_lines(record_inputs *inputs)
{
    for (char *line, *next = inputs->list; (line = strsep(&next, "\n"));) {
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r')
            line[length - 1] = '\0';
        if (*line)
            add_path(inputs, line, 0);
    }
}

/* A table or JSON: as weir index reads it. */
static int add_rows(const record_settings *settings, record_inputs *inputs, const path_list_names *names)
{
    char problem[512];
    if (!path_list_read_text(inputs->list, settings->list_path, names, &inputs->clips, problem))
        return record_refuse(settings, "--list: %s", problem);
    for (size_t i = 0; i < inputs->clips.num_paths; i++)
        add_clip(inputs, inputs->clips.paths[i], 0, inputs->clips.windows[i], i);
    bool has_columns = inputs->clips.others.num > 0;
    const char *other = !inputs->has_windows && !has_columns      ? NULL
                        : settings->tar                           ? "--tar"
                        : inputs->num_folders                     ? "a folder"
                        : inputs->has_windows && settings->images ? "--images"
                        : inputs->has_windows && settings->audio  ? "--audio"
                                                                  : NULL;
    if (other)
        return record_refuse(settings, "--list: %s: its rows have %s, which cannot be combined with %s",
                             settings->list_path, inputs->has_windows ? "starts or ends" : "columns of their own",
                             other);
    return RECORD_DONE;
}

static int add_list(const record_settings *settings, record_inputs *inputs)
{
    static const path_list_names names = {
        .path = "path",
        .label = "label",
        .start = "start",
        .end = "end",
        .start_frame = "start_frame",
        .end_frame = "end_frame",
        .is_fixed = true,
    };
    if (inputs->list && path_list_has_columns(inputs->list, settings->list_path, &names))
        return add_rows(settings, inputs, &names);
    add_lines(inputs);
    return RECORD_DONE;
}

/* -- all of it */

const char *record_glob(const record_settings *settings)
{
    if (settings->glob)
        return settings->glob;
    return settings->images ? WEIR_IMAGE_FILES : settings->audio ? WEIR_AUDIO_FILES : WEIR_VIDEO_FILES;
}

static int take_input(const record_settings *settings, const char *input, record_inputs *inputs)
{
    if (weir_output_is(input, WEIR_OUTPUT_FOLDER)) {
        size_t number = inputs->num_folders++;
        inputs->folders[number] = (weir_directory_config){
            .root = input,
            .glob = settings->tar ? settings->tar_glob : record_glob(settings),
            .sorted = settings->sorted || inputs->share.world.size > 1, /* the same numbers everywhere */
            .counts = &inputs->counts[number],
        };
        inputs->listings[number] = (record_listing){ .inputs = inputs, .number = number };
        return RECORD_DONE;
    }
    struct stat info;
    if (stat(input, &info) != 0 && !weir__is_url(input))
        return record_refuse(settings, "%s%s: %s", settings->input_option, input, strerror(errno));
    if (*settings->input_option)
        return record_refuse(settings, "%s%s: not a folder", settings->input_option, input);
    if (weir_output_is(input, WEIR_OUTPUT_INDEX))
        return record_refuse(settings, "%s: an index of a dataset, not a video; weir index shows its files", input);
    if (weir_output_is(input, WEIR_OUTPUT_DATABASE))
        return record_refuse(settings, "%s: a database, not a video; weir summary and weir explain read it", input);
    if (!settings->images && weir_output_is(input, WEIR_OUTPUT_LIST))
        return record_refuse(settings, "%s: text, not a video; if it names files to decode: --list %s", input, input);
    add_path(inputs, input, 0);
    return RECORD_DONE;
}

static int check_folders(const record_settings *settings, const record_inputs *inputs)
{
    uint64_t num_found = inputs->num_paths;
    weir_error empty = { 0 };
    for (size_t i = 0; i < inputs->num_folders; i++) {
        weir_error error = { 0 };
        uint64_t found = 0;
        int status = weir_directory_count(&inputs->folders[i], 1, &found, &error);
        if (status == WEIR_ENOTFOUND && !empty.status)
            empty = error;
        else if (status != WEIR_OK && status != WEIR_ENOTFOUND)
            return record_refuse(settings, "%s%s", settings->input_option, error.message);
        num_found += found;
    }
    if (num_found > 0)
        return RECORD_DONE;
    if (inputs->num_folders == 0)
        return record_refuse(settings, "--list: %s: no path in it", settings->list_path);
    return record_refuse(settings, "%s%s (see --%sglob)", settings->input_option, empty.message,
                         settings->tar ? "tar-" : "");
}

static void count_names(record_inputs *inputs)
{
    for (size_t i = 0; i < inputs->num_all_paths && inputs->num_folders > 0; i++) {
        char *identity = memory_check(weir_identity_of(inputs->all_paths[i]));
        if (weir__name_count(&inputs->names, identity) == UINT64_MAX)
            memory_check(NULL);
        free(identity);
    }
}

/* The user's columns of the share's paths. */
static void choose_columns(record_inputs *inputs)
{
    const list_columns *others = &inputs->clips.others;
    if (others->num == 0)
        return;
    inputs->columns = memory_get(others->num, sizeof *inputs->columns);
    for (size_t i = 0; i < others->num; i++) {
        const weir_column *from = &others->columns[i];
        uint8_t *is_there = memory_get(inputs->num_paths, sizeof *is_there);
        int64_t *integers = memory_get(inputs->num_paths, sizeof *integers);
        double *reals = memory_get(inputs->num_paths, sizeof *reals);
        const char **texts = memory_get(inputs->num_paths, sizeof *texts);
        for (size_t j = 0; j < inputs->num_paths; j++) {
            size_t row = inputs->rows[j];
            is_there[j] = from->is_there[row];
            integers[j] = from->integers[row];
            reals[j] = from->reals[row];
            texts[j] = from->texts[row];
        }
        inputs->columns[i] = (weir_column){ from->name, from->kind, is_there, integers, reals, texts };
    }
}

static void free_columns(record_inputs *inputs)
{
    for (size_t i = 0; inputs->columns && i < inputs->clips.others.num; i++) {
        free((void *)(uintptr_t)inputs->columns[i].is_there);
        free((void *)(uintptr_t)inputs->columns[i].integers);
        free((void *)(uintptr_t)inputs->columns[i].reals);
        free((void *)(uintptr_t)inputs->columns[i].texts);
    }
    free(inputs->columns);
}

/* From here on the inputs are those of the share. */
static void select_share(record_inputs *inputs)
{
    inputs->num_all_paths = inputs->num_paths;
    inputs->all_paths = inputs->paths;
    inputs->all_occurrences = inputs->occurrences;
    weir_clip_window *windows = inputs->windows;
    size_t *rows = inputs->rows;
    inputs->rows = NULL;
    inputs->paths = NULL;
    inputs->occurrences = NULL;
    inputs->windows = NULL;
    inputs->num_paths = 0;
    identity_key_load(inputs->all_paths, inputs->num_all_paths);
    if (weir_identity_number(inputs->all_paths, inputs->num_all_paths, inputs->all_occurrences) != WEIR_OK)
        memory_check(NULL);
    count_names(inputs);
    for (size_t i = 0; i < inputs->num_all_paths; i++)
        if (is_in_share(&inputs->share, inputs->all_paths[i], i, inputs->all_occurrences[i]))
            add_clip(inputs, inputs->all_paths[i], inputs->all_occurrences[i], windows[i], rows[i]);
    free(windows);
    free(rows);
    choose_columns(inputs);
    for (size_t i = 0; i < inputs->num_folders; i++) {
        /* check_folders() has refused inputs that are empty together */
        inputs->folders[i].may_be_empty = inputs->num_folders > 1 || inputs->num_all_paths > 0;
        inputs->folders[i].accept = accept;
        inputs->folders[i].accept_self = &inputs->listings[i];
        inputs->folders[i].occurrence = find_occurrence;
    }
}

int record_inputs_open(const record_settings *settings, record_inputs *inputs)
{
    int exit_status = settings->list_path ? open_list(settings, inputs) : RECORD_DONE;
    if (exit_status != RECORD_DONE)
        return exit_status;
    inputs->folders = memory_get(settings->num_inputs, sizeof *inputs->folders);
    inputs->counts = memory_get(settings->num_inputs, sizeof *inputs->counts);
    inputs->listings = memory_get(settings->num_inputs, sizeof *inputs->listings);
    for (size_t i = 0; i < settings->num_inputs && exit_status == RECORD_DONE; i++)
        exit_status = take_input(settings, settings->inputs[i], inputs);
    if (exit_status != RECORD_DONE)
        return exit_status;
    exit_status = add_list(settings, inputs);
    if (exit_status == RECORD_DONE)
        exit_status = check_folders(settings, inputs);
    if (exit_status == RECORD_DONE)
        select_share(inputs);
    return exit_status;
}

static void count_file(void *count, const char *path, uint64_t occurrence)
{
    (void)path;
    (void)occurrence;
    ++*(uint64_t *)count;
}

uint64_t record_inputs_count(const record_inputs *inputs)
{
    uint64_t count = 0;
    record_inputs_each(inputs, &inputs->share, count_file, &count);
    return count;
}

int record_inputs_tell_unreadable(const record_settings *settings, const record_inputs *inputs, int exit_status)
{
    uint64_t num_unreadable = 0;
    for (size_t i = 0; i < inputs->num_folders; i++)
        num_unreadable += inputs->counts[i].unreadable_folders;
    if (num_unreadable == 0)
        return exit_status;
    fprintf(stderr, "%s: %llu folder%s could not be read: the list of files is not complete\n", settings->program,
            (unsigned long long)num_unreadable, num_unreadable == 1 ? "" : "s");
    return exit_status == RECORD_DONE ? RECORD_FAILED : exit_status;
}

void record_inputs_free(record_inputs *inputs)
{
    free(inputs->folders);
    free(inputs->counts);
    free(inputs->listings);
    free(inputs->paths);
    free(inputs->occurrences);
    free(inputs->all_paths);
    free(inputs->all_occurrences);
    weir__name_counts_free(&inputs->names);
    record_ended_free(&inputs->share.ended);
    free(inputs->list);
    free(inputs->rows);
    free_columns(inputs);
    free(inputs->windows);
    path_list_free(&inputs->clips);
    *inputs = (record_inputs){ 0 };
}
