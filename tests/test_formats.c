/* The table of export formats: what its rows say is so, for each of them, and the programs take everything from it. */
#include "tests/stats_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/export.h>

static int make_one(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    int *made = worker;
    (void)in;
    (void)task;
    *out = (weir_item){ .size_bytes = 1 };
    return (*made)++ < 3 ? WEIR_OK : WEIR_EOF;
}

static const weir_op three_items = { .name = "three", .worker_size = sizeof(int), .run = make_one };

/* Runs a pipeline with this observer to its end. */
static void run_observed(weir_observer observer)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_item item;
    weir_builder_source(builder, &three_items, NULL, 0, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1 };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    while (weir_pipeline_next(pipeline, &item, -1) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
}

static bool is_folder_with_files(const char *path)
{
    char command[4400];
    snprintf(command, sizeof command, "find '%s' -type f | grep -q .", path);
    return system(command) == 0; /* NOLINT: a path of the test */
}

static void assert_is_of_kind(const weir_export_format *format, const char *path)
{
    if (format->kind == WEIR_OUTPUT_FOLDER ? !is_folder_with_files(path) : !weir_output_is(path, format->kind))
        fail_msg("%s: %s is not of its kind", format->name, path);
}

TEST_CASE(every_format_is_found_by_its_name_and_has_all_that_a_row_needs)
{
    size_t count = 0;
    const weir_export_format *format;
    for (size_t at = 0; (format = weir_export_at(at)); at++) {
        count++;
        assert_ptr_equal(weir_export_find(format->name), format);
        assert_true((format->open && format->observer && format->close) == (format->live_help != NULL));
        assert_true((format->write || format->write_folder) == (format->help != NULL));
        assert_true(format->live_help || format->help);
        if (format->help && strncmp(format->help, format->name, strlen(format->name)) != 0)
            fail_msg("the help of %s does not begin with its name", format->name);
    }
    assert_in_range(count, 3, 16); /* RECORD_MAX_EXPORTS */
    assert_null(weir_export_find("no format"));
    assert_null(weir_export_at(count));
}

TEST_CASE(every_format_writes_a_running_pipeline)
{
    const weir_export_format *format;
    for (size_t at = 0; (format = weir_export_at(at)); at++) {
        weir_export *opened;
        weir_error error = { 0 };
        weir_export_options options = { .rank = 3, .world_size = 4, .node_id = "node" };
        if (!format->live_help)
            continue;
        const char *path = in_folder(format->name);
        if (weir_export_open(format, path, &options, &opened, &error) != WEIR_OK)
            fail_msg("%s: %s", format->name, error.message);
        run_observed(weir_export_observer(opened));
        weir_export_request(opened);
        if (weir_export_close(opened, &error) != WEIR_OK)
            fail_msg("%s: %s", format->name, error.message);
        assert_is_of_kind(format, path);
        assert_int_not_equal(weir_export_open(format, "/proc/nowhere/a", NULL, &opened, &error), WEIR_OK);
        assert_null(opened);
        if (!strstr(error.message, "/proc/nowhere"))
            fail_msg("%s does not name the path: %s", format->name, error.message);
    }
}

/* A limit makes a second file, which the row names, so that programs can check that it replaces nothing. */
TEST_CASE(a_format_with_a_limit_names_the_file_of_the_older_half)
{
    size_t count = 0;
    const weir_export_format *format;
    for (size_t at = 0; (format = weir_export_at(at)); at++)
        for (const weir_export_setting *s = format->settings; s && s->name; s++) {
            char old[4200];
            weir_export *opened;
            weir_error error = { 0 };
            if (s->offset != offsetof(weir_export_options, max_bytes))
                continue;
            count++;
            assert_non_null(format->old_suffix);
            snprintf(old, sizeof old, "%s%s", in_folder(format->name), format->old_suffix);
            weir_export_options options = { .max_bytes = 1024 };
            assert_int_equal(weir_export_open(format, in_folder(format->name), &options, &opened, &error), WEIR_OK);
            /* each run is written at its end; at the end of all, the halves may be joined again */
            for (int i = 0; i < 4; i++)
                run_observed(weir_export_observer(opened));
            assert_is_of_kind(format, old);
            assert_int_equal(weir_export_close(opened, &error), WEIR_OK);
        }
    assert_int_equal(count, 1); /* the trace */
}

static void record_run(const char *path)
{
    weir_sqlite_writer *writer = open_writer(path, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    observe_start(observer);
    observe_lap(observer, 0, 8);
    observe_lap(observer, 1, 4);
    observe_end(observer, WEIR_OK);
    close_writer(writer);
}

static int write_one(const weir_export_format *format, weir_recording *recording, const char *path, weir_error *error)
{
    if (format->write_folder)
        return weir_export_write_folder(format, recording, NULL, NULL, path, error);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    int status = weir_export_write(format, recording, NULL, NULL, file, error);
    fclose(file);
    return status;
}

TEST_CASE(every_format_writes_a_database_that_it_says_it_can)
{
    record_run(in_folder("a.db"));
    weir_recording *recording = open_reader(in_folder("a.db"));
    const weir_export_format *format;
    for (size_t at = 0; (format = weir_export_at(at)); at++) {
        weir_error error = { 0 };
        int status = write_one(format, recording, in_folder(format->name), &error);
        if (format->help && status != WEIR_OK)
            fail_msg("%s: %s", format->name, error.message);
        if (format->help)
            assert_is_of_kind(format, in_folder(format->name));
        else
            assert_int_equal(status, WEIR_EUNSUPPORTED);
        if (format->write && !format->write_folder)
            assert_int_equal(weir_export_write_folder(format, recording, NULL, NULL, in_folder("no"), &error),
                             WEIR_EUNSUPPORTED);
        else if (!format->write)
            assert_int_equal(weir_export_write(format, recording, NULL, NULL, stderr, &error), WEIR_EUNSUPPORTED);
    }
    weir_recording_close(recording);
}

TEST_CASE(the_laps_of_openmetrics_are_its_own_setting)
{
    record_run(in_folder("a.db"));
    weir_recording *recording = open_reader(in_folder("a.db"));
    const weir_export_format *format = weir_export_find("openmetrics");
    weir_error error = { 0 };
    size_t sizes[2];
    for (int by_lap = 0; by_lap < 2; by_lap++) {
        FILE *file = fopen(in_folder("m.prom"), "w");
        assert_int_equal(
            weir_export_write(format, recording, NULL, &(weir_export_options){ .by_lap = by_lap }, file, &error),
            WEIR_OK);
        fclose(file);
        free(read_file(in_folder("m.prom"), &sizes[by_lap]));
    }
    assert_true(sizes[1] != sizes[0]);
    weir_recording_close(recording);
}

static void set_setting(weir_export_options *options, const weir_export_setting *setting)
{
    void *value = (char *)options + setting->offset;
    switch (setting->value) {
    case WEIR_EXPORT_FLAG: *(bool *)value = true; break;
    case WEIR_EXPORT_BYTES: *(uint64_t *)value = 1 << 20; break;
    case WEIR_EXPORT_DURATION: *(int64_t *)value = WEIR_SECOND; break;
    }
}

/* Each setting, given to each format: only its own one takes it, and only in its direction. */
TEST_CASE(a_setting_of_another_format_is_refused)
{
    for (size_t i = 0; weir_export_at(i); i++) {
        const weir_export_format *owner = weir_export_at(i);
        for (const weir_export_setting *setting = owner->settings; setting && setting->name; setting++) {
            const weir_export_format *format;
            for (size_t at = 0; (format = weir_export_at(at)); at++) {
                weir_export_options options = { 0 };
                weir_error error = { 0 };
                set_setting(&options, setting);
                bool is_written = setting->from_database ? format->help : format->live_help;
                int status = weir_export_check(format, setting->from_database, &options, &error);
                assert_int_equal(status, format == owner ? WEIR_OK : is_written ? WEIR_EINVAL : WEIR_EUNSUPPORTED);
                if (status == WEIR_EINVAL &&
                    (!strstr(error.message, setting->name) || !strstr(error.message, owner->name)))
                    fail_msg("%s: %s", format->name, error.message);
                if (setting->from_database ? format->live_help : format->help)
                    assert_int_equal(weir_export_check(format, !setting->from_database, &options, &error),
                                     WEIR_EINVAL);
            }
        }
    }
}

static int write_word(weir_recording *recording, const weir_filter *filter, const weir_export_options *options,
                      FILE *out, weir_error *error)
{
    (void)recording;
    (void)filter;
    (void)options;
    (void)error;
    return fputs("word", out) < 0 ? WEIR_EIO : WEIR_OK;
}

TEST_CASE(a_program_has_formats_of_its_own)
{
    record_run(in_folder("a.db"));
    weir_recording *recording = open_reader(in_folder("a.db"));
    weir_export_format own = { .name = "own", .kind = WEIR_OUTPUT_RAW, .help = "own: a word.", .write = write_word };
    weir_error error = { 0 };
    weir_export *opened;
    FILE *file = fopen(in_folder("own"), "w");
    assert_int_equal(weir_export_write(&own, recording, NULL, NULL, file, &error), WEIR_OK);
    fclose(file);
    char *text = read_file(in_folder("own"), NULL);
    assert_string_equal(text, "word");
    free(text);
    assert_int_equal(weir_export_open(&own, "a", NULL, &opened, &error), WEIR_EUNSUPPORTED);
    assert_string_equal(error.message, "own cannot be written while a pipeline runs");
    own.reserved[0] = "of a later version";
    assert_int_equal(weir_export_write(&own, recording, NULL, NULL, stderr, &error), WEIR_EUNSUPPORTED);
    weir_recording_close(recording);
}

/* What a command of weir prints; to be freed. */
static char *said(const char *arguments)
{
    char command[9000];
    const char *tool = getenv("WEIR_TOOL");
    if (!tool)
        fail_msg("WEIR_TOOL is not set: run this test with ctest");
    snprintf(command, sizeof command, "COLUMNS=1000 '%s' %s >'%s' 2>&1", tool, arguments, in_folder("said"));
    assert_int_not_equal(system(command), -1); /* NOLINT: a fixed command */
    return read_file(in_folder("said"), NULL);
}

static void assert_says(const char *text, const char *before, const char *word)
{
    char wanted[200];
    snprintf(wanted, sizeof wanted, "%s%s", before, word);
    const char *at = strstr(text, wanted);
    while (at && strchr("abcdefghijklmnopqrstuvwxyz-", at[strlen(wanted)]))
        at = strstr(at + 1, wanted);
    if (!at)
        fail_msg("no %s in:\n%s", wanted, text);
}

TEST_CASE(the_commands_have_every_format_and_setting_in_help_manual_and_completion)
{
    char *export_help = said("export --help"), *export_page = said("--manual export"),
         *completion = said("--completion");
    char *record_help = said("record --help");
    bool has_record = strstr(record_help, "no such subcommand") == NULL;
    const weir_export_format *format;
    for (size_t at = 0; (format = weir_export_at(at)); at++) {
        if (format->help) {
            assert_says(export_help, "\n\n", format->name);
            assert_says(export_page, ".PP\n", format->name);
            assert_says(export_help, "weir export --format ", format->name);
        }
        if (format->live_help && has_record) {
            assert_says(record_help, "\n  --", format->name);
            assert_says(completion, "record\t--", format->name);
        }
        for (const weir_export_setting *s = format->settings; s && s->name; s++) {
            if (!s->from_database && !has_record)
                continue;
            assert_says(s->from_database ? export_help : record_help, "\n  --", s->name);
            assert_says(completion, s->from_database ? "export\t--" : "record\t--", s->name);
        }
    }
    free(export_help);
    free(export_page);
    free(completion);
    free(record_help);
}

TEST_MAIN(make_folder, remove_folder, NULL, NULL)
