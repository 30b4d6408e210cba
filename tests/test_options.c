/* Options and configs from programs that were compiled with older or newer headers. */
#include "tests/support.h"

#include <unistd.h>

#include <weir/weir.h>

/* The stage options of a program with an older or newer header, followed by other memory. */
typedef struct other_options {
    weir_stage_options known;
    uint64_t unknown;
} other_options;

static weir_pipeline *build_with(const weir_stage_options *options, size_t size, weir_error *error,
                                 test_ledger *ledger)
{
    static test_numbers numbers;
    numbers = (test_numbers){ .ledger = ledger, .count = 3 };
    weir_pipeline *pipeline;
    weir_builder *builder = builder_with(&numbers);
    weir_builder_pipe_sized(builder, &pass_op, NULL, 0, options, size);
    weir_builder_sink(builder, NULL);
    weir_builder_build(builder, NULL, &pipeline, error);
    return pipeline;
}

TEST_CASE(what_an_older_program_does_not_know_is_the_default)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options;
    memset(&options, 0xa5, sizeof options); /* fields after the known ones have any value */
    memset(&options, 0, offsetof(weir_stage_options, queue_items));
    options.known.name = "old";
    options.known.concurrency = 3;
    weir_pipeline *pipeline = build_with(&options.known, offsetof(weir_stage_options, queue_items), &error, &ledger);
    assert_non_null(pipeline);
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    assert_string_equal(snapshot->stages[1].name, "0:1:old[3]");
    weir_snapshot_free(snapshot);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(what_a_newer_program_leaves_zero_is_no_matter)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" } };
    weir_pipeline *pipeline = build_with(&options.known, sizeof options, &error, &ledger);
    assert_non_null(pipeline);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

TEST_CASE(what_a_newer_program_sets_is_refused)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    other_options options = { .known = { .name = "new" }, .unknown = 1 };
    assert_null(build_with(&options.known, sizeof options, &error, &ledger));
    assert_int_equal(error.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, weir_version()));
    assert_non_null(strstr(error.message, "weir_stage_options"));
    ledger_close(&ledger);
}

TEST_CASE(no_options_are_the_defaults_whatever_their_size)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    weir_pipeline *pipeline = build_with(NULL, 1000, &error, &ledger);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- configs of stages ------------------------------------------------------------------------------------------ */

static int make_nothing(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker, (void)in, (void)out, (void)task;
    return WEIR_SKIP;
}

typedef struct new_config {
    uint64_t first, second, third;
} new_config;

static new_config seen_config;

static int see_config(void *config, weir_error *error)
{
    (void)error;
    seen_config = *(new_config *)config;
    return WEIR_OK;
}

static const weir_op configured_op = {
    .name = "configured",
    .config_size = sizeof(new_config),
    .config_init = see_config,
    .run = make_nothing,
};

static int add_configured(const weir_op *op, const void *config, size_t config_size, weir_error *error)
{
    static const test_numbers numbers = { .count = 0 }; /* it may run before it is freed */
    weir_pipeline *pipeline;
    weir_builder *builder = builder_with(&numbers);
    *error = (weir_error){ 0 };
    weir_builder_pipe(builder, op, config, config_size, &(weir_stage_options){ .name = "third" });
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(builder, NULL, &pipeline, error);
    weir_pipeline_free(pipeline);
    return status;
}

/* On the heap, so that a sanitizer sees each byte that is read beyond its end. */
TEST_CASE(an_older_programs_config_is_not_read_beyond_its_end)
{
    weir_error error;
    uint64_t *config = malloc(sizeof *config);
    *config = 7;
    seen_config = (new_config){ 1, 2, 3 };
    assert_int_equal(add_configured(&configured_op, config, sizeof *config, &error), WEIR_OK);
    assert_true(seen_config.first == 7 && seen_config.second == 0 && seen_config.third == 0);
    free(config);
}

TEST_CASE(a_newer_programs_config_is_refused_if_it_sets_more)
{
    weir_error error;
    struct {
        new_config known;
        uint64_t unknown;
    } config = { .known = { .first = 7 } };
    assert_int_equal(add_configured(&configured_op, &config, sizeof config, &error), WEIR_OK);
    assert_int_equal(seen_config.first, 7);
    config.unknown = 1;
    assert_int_equal(add_configured(&configured_op, &config, sizeof config, &error), WEIR_EUNSUPPORTED);
    assert_string_equal(error.stage, "third");
    assert_non_null(strstr(error.message, "32 bytes in the program, 24 in the library"));
}

TEST_CASE(a_config_without_its_size_is_refused)
{
    weir_error error;
    assert_int_equal(add_configured(&configured_op, &seen_config, 0, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "config_size is 0"));
    assert_int_equal(add_configured(&configured_op, NULL, 0, &error), WEIR_OK);
    assert_int_equal(seen_config.first, 0);
    assert_int_equal(add_configured(&pass_op, &seen_config, sizeof seen_config, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "pass 0"));
}

/* Elements of arrays, extern tables and structs that are passed by value or inside others have no size of their own. These
   are the sizes since version 0.3.0, on machines with 64 bits. */
TEST_CASE(structs_without_a_size_of_their_own_keep_their_size)
{
    if (sizeof(void *) != 8)
        skip();
    assert_int_equal(sizeof(weir_item), 96);
    assert_int_equal(sizeof(weir_op), 144);
    assert_int_equal(sizeof(weir_task_hook), 64);
    assert_int_equal(sizeof(weir_stage_hook), 56);
    assert_int_equal(sizeof(weir_thread_hook), 56);
    assert_int_equal(sizeof(weir_observer), 112);
    assert_int_equal(sizeof(weir_max_failures), 24);
    assert_int_equal(sizeof(weir_batch), 24);
    assert_int_equal(sizeof(weir_error), 1672);
    assert_int_equal(sizeof(weir_stage_info), 80);
    assert_int_equal(sizeof(weir_queue_info), 16);
    assert_int_equal(sizeof(weir_identity), 16);
    assert_int_equal(sizeof(weir_part_info), 32);
    assert_int_equal(sizeof(weir_item_part), 24);
#ifdef WEIR_EXPORT_H
    assert_int_equal(sizeof(weir_export_format), 152);
    assert_int_equal(sizeof(weir_export_setting), 48);
    assert_int_equal(sizeof(weir_named_limit), 272);
    assert_int_equal(sizeof(weir_limit_rules), 56);
#endif
#ifdef WEIR_ALLOCATOR_H
    assert_int_equal(sizeof(weir_memory), 8);
#endif
}

static void test_newer_function(void)
{
}

/* A program with a newer header has a name for a member that is reserved here. */
TEST_CASE(what_a_newer_program_sets_in_a_table_or_hook_is_refused)
{
    static const char set = 1;
    weir_op op = pass_op;
    weir_task_hook task_hook = { .reserved[3] = &set };
    weir_stage_hook stage_hook = { .reserved[0] = &set };
    weir_observer observer = { .reserved[2] = test_newer_function };
    weir_thread_hook thread_hook = { .reserved[3] = &set };
    const weir_stage_options options[] = { { .name = "op" },
                                           { .name = "task", .task_hooks = &task_hook, .num_task_hooks = 1 },
                                           { .name = "stage", .stage_hooks = &stage_hook, .num_stage_hooks = 1 },
                                           { .name = "observer" },
                                           { .name = "thread" } };
    static const char *const names[] = { "weir_op", "weir_task_hook", "weir_stage_hook", "weir_observer",
                                         "weir_thread_hook" };
    for (int i = 0; i < 5; i++) {
        static const test_numbers numbers = { .count = 0 }; /* it may run before it is freed */
        weir_pipeline *pipeline;
        weir_error error = { 0 };
        weir_builder *builder = builder_with(&numbers);
        op.reserved[0] = i == 0 ? &set : NULL;
        weir_builder_pipe(builder, &op, NULL, 0, &options[i]);
        weir_builder_sink(builder, NULL);
        weir_pipeline_options all = {
            .observers = &observer, .num_observers = i == 3, .thread_hooks = &thread_hook, .num_thread_hooks = i == 4
        };
        assert_int_equal(weir_builder_build(builder, &all, &pipeline, &error), WEIR_EUNSUPPORTED);
        assert_non_null(strstr(error.message, names[i]));
    }
}

/* What the library fills in a struct of an older program ends where that one ends; a newer one gets zeros. */
TEST_CASE(an_account_of_another_size_is_filled_as_far_as_it_goes)
{
    test_ledger ledger = LEDGER;
    weir_error error = { 0 };
    struct {
        weir_account known;
        uint64_t unknown;
    } account;
    memset(&account, 0xa5, sizeof account);
    weir_pipeline *pipeline = build_with(NULL, 0, &error, &ledger);
    assert_int_equal(drain_all(pipeline), 3);
    assert_int_equal(weir_pipeline_account_sized(pipeline, NULL, &account.known, 8), WEIR_OK);
    assert_int_equal(account.known.taken, 3);
    assert_int_equal(account.known.created, UINT64_C(0xa5a5a5a5a5a5a5a5));
    assert_int_equal(weir_pipeline_account_sized(pipeline, NULL, &account.known, sizeof account), WEIR_OK);
    assert_int_equal(account.known.passed_on, 3);
    assert_int_equal(account.unknown, 0);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
}

/* ---- structs that have grown, and the copy itself ---------------------------------------------------------------- */

TEST_CASE(a_copy_takes_what_both_sides_know_and_refuses_the_rest)
{
    weir_error error = { 0 };
    const unsigned char given[] = { 1, 2, 3, 0, 4 };
    unsigned char own[4] = { 9, 9, 9, 9 };
    assert_int_equal(weir_struct_copy(own, 4, given, 2, "mine", &error), WEIR_OK);
    assert_memory_equal(own, ((unsigned char[]){ 1, 2, 0, 0 }), 4);
    assert_int_equal(weir_struct_copy(own, 3, given, 4, "mine", &error), WEIR_OK);
    assert_memory_equal(own, ((unsigned char[]){ 1, 2, 3, 0 }), 4);
    assert_int_equal(weir_struct_copy(own, 3, NULL, 4, "mine", &error), WEIR_OK);
    assert_memory_equal(own, ((unsigned char[]){ 0, 0, 0, 0 }), 4);
    assert_int_equal(weir_struct_copy(own, 3, given, 5, "mine", &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "mine: the program sets a field"));
    assert_non_null(strstr(error.message, "5 bytes in the program, 3 in the library"));
    assert_int_equal(weir_struct_copy(own, 3, given, 5, "mine", NULL), WEIR_EUNSUPPORTED);
}

TEST_CASE(what_is_filled_ends_where_the_programs_struct_does)
{
    const unsigned char own[] = { 1, 2, 3 };
    unsigned char given[5] = { 9, 9, 9, 9, 9 };
    assert_int_equal(weir_struct_fill(given, 2, own, 3), WEIR_OK);
    assert_memory_equal(given, ((unsigned char[]){ 1, 2, 9, 9, 9 }), 5);
    assert_int_equal(weir_struct_fill(given, 4, own, 3), WEIR_OK);
    assert_memory_equal(given, ((unsigned char[]){ 1, 2, 3, 0, 9 }), 5);
}

static int pick_first(void *self, const weir_item *item)
{
    (void)self;
    (void)item;
    return 0;
}

static char folder[64], path[96];

static const char *in_folder(const char *name)
{
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/weir-options-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    if (folder[0])
        rmdir(folder);
    folder[0] = '\0';
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int build_line(weir_builder *builder, weir_error *error)
{
    weir_pipeline *pipeline;
    weir_builder_sink(builder, NULL);
    int status = weir_builder_build(builder, NULL, &pipeline, error);
    weir_pipeline_free(pipeline);
    return status;
}

static int pass_output_rules(const void *given, size_t size, weir_error *error)
{
    return weir_output_check_sized(in_folder("a.csv"), WEIR_OUTPUT_CSV, given, size, error);
}

/* What stands where a config has its members is what an operation without them takes for none. */
static int pass_route(const void *given, size_t size, weir_error *error)
{
    static const test_numbers numbers = { .count = 0 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_route_sized(builder, given, size, NULL, 0);
    weir_builder_branch(builder);
    weir_builder_branch(builder);
    weir_builder_join(builder, NULL);
    return build_line(builder, error);
}

#ifdef WEIR_FILES_H
static int pass_list(const void *given, size_t size, weir_error *error)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_list_source, given, size, NULL);
    return build_line(builder, error);
}

static int pass_directory(const void *given, size_t size, weir_error *error)
{
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &weir_directory_source, given, size, NULL);
    return build_line(builder, error);
}

static int pass_directory_count(const void *given, size_t size, weir_error *error)
{
    uint64_t count;
    return weir_directory_count_sized(given, size, 1, &count, error);
}
#endif

#ifdef WEIR_ALLOCATOR_H
static int pass_allocator(const void *given, size_t size, weir_error *error)
{
    weir_allocator *allocator;
    int status = weir_allocator_new_sized(given, size, &allocator, error);
    weir_allocator_free(allocator);
    return status;
}
#endif

#ifdef WEIR_TRACE_FILE_H
static int pass_trace(const void *given, size_t size, weir_error *error)
{
    weir_trace_file *file;
    int status = weir_trace_open_sized(in_folder("a.json"), given, size, &file, error);
    if (status == WEIR_OK)
        weir_trace_close(file, NULL);
    return status;
}
#endif

#ifdef WEIR_OPENMETRICS_H
static int pass_openmetrics(const void *given, size_t size, weir_error *error)
{
    weir_openmetrics_file *file;
    int status = weir_openmetrics_open_sized(in_folder("a.prom"), given, size, &file, error);
    if (status == WEIR_OK)
        weir_openmetrics_close(file, NULL);
    return status;
}
#endif

#ifdef WEIR_EXPORT_H
static int pass_export(const void *given, size_t size, weir_error *error)
{
    weir_export *opened;
    int status =
        weir_export_open_sized(weir_export_find("openmetrics"), in_folder("a.prom"), given, size, &opened, error);
    if (status == WEIR_OK)
        weir_export_close(opened, NULL);
    return status;
}
#endif

static const struct {
    const char *name; /* that the message tells */
    size_t size;
    int (*pass)(const void *given, size_t size, weir_error *error);
} grown[] = {
    { "weir_output_rules", sizeof(weir_output_rules), pass_output_rules },
    { "weir_route_config", sizeof(weir_route_config), pass_route },
#ifdef WEIR_FILES_H
    { "the config of the stage", sizeof(weir_list_config), pass_list },
    { "the config of the stage", sizeof(weir_directory_config), pass_directory },
    { "weir_directory_config", sizeof(weir_directory_config), pass_directory_count },
#endif
#ifdef WEIR_ALLOCATOR_H
    { "weir_allocator_config", sizeof(weir_allocator_config), pass_allocator },
#endif
#ifdef WEIR_TRACE_FILE_H
    { "weir_trace_options", sizeof(weir_trace_options), pass_trace },
#endif
#ifdef WEIR_OPENMETRICS_H
    { "weir_openmetrics_options", sizeof(weir_openmetrics_options), pass_openmetrics },
#endif
#ifdef WEIR_EXPORT_H
    { "weir_export_options", sizeof(weir_export_options), pass_export },
#endif
};

/* The known fields are all zero, which some of these refuse for another reason. */
TEST_CASE(what_a_newer_program_sets_in_a_struct_that_has_grown_is_refused)
{
    for (size_t i = 0; i < LENGTH(grown); i++) {
        weir_error error = { 0 };
        size_t size = grown[i].size + sizeof(uint64_t);
        unsigned char *given = calloc(1, size);
        assert_int_not_equal(grown[i].pass(given, size, &error), WEIR_EUNSUPPORTED);
        given[size - 1] = 1;
        error = (weir_error){ 0 };
        if (grown[i].pass(given, size, &error) != WEIR_EUNSUPPORTED || !strstr(error.message, grown[i].name))
            fail_msg("%s: %s", grown[i].name, error.message);
        free(given);
        remove(in_folder("a.json"));
        remove(in_folder("a.prom"));
    }
    remove_folder();
}

/* The struct of an older program: `known` is what it has set, in front of memory of the heap that has any value. */
static int pass_older(int (*pass)(const void *, size_t, weir_error *), const void *known, size_t old_size,
                      size_t new_size, weir_error *error)
{
    unsigned char *given = malloc(new_size);
    memset(given, 0xa5, new_size);
    memcpy(given, known, old_size);
    *error = (weir_error){ 0 };
    int status = pass(given, old_size, error);
    free(given);
    return status;
}

#define PASS_OLDER(pass, known, first_new_field, error) \
    pass_older(pass, &(known), offsetof(__typeof__(known), first_new_field), sizeof(known), error)

TEST_CASE(an_older_programs_route_and_outputs_have_the_defaults)
{
    weir_error error;
    weir_route_config route = { .pick = pick_first, .num_branches = 2 };
    if (PASS_OLDER(pass_route, route, look_ahead_items, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_output_rules rules = { .force = true };
    write_text("a.csv", "%PDF-1.4\n");
    assert_int_equal(PASS_OLDER(pass_output_rules, rules, inputs, &error), WEIR_OK);
    rules.force = false;
    assert_int_equal(PASS_OLDER(pass_output_rules, rules, inputs, &error), WEIR_EINVAL);
    remove(in_folder("a.csv"));
    remove_folder();
}

#ifdef WEIR_FILES_H
TEST_CASE(an_older_programs_sources_may_not_be_empty)
{
    weir_error error;
    const char *paths[] = { "a" };
    weir_list_config list = { 0 };
    assert_int_equal(PASS_OLDER(pass_list, list, may_be_empty, &error), WEIR_ENOTFOUND);
    list = (weir_list_config){ .paths = paths, .num_paths = 1 };
    assert_int_equal(PASS_OLDER(pass_list, list, may_be_empty, &error), WEIR_OK);
    list.may_be_empty = true;
    list.num_paths = 0;
    assert_int_equal(PASS_OLDER(pass_list, list, occurrences, &error), WEIR_OK);
    weir_directory_config directory = { .root = in_folder("") };
    assert_int_equal(PASS_OLDER(pass_directory_count, directory, may_be_empty, &error), WEIR_ENOTFOUND);
    assert_int_equal(PASS_OLDER(pass_directory, directory, may_be_empty, &error), WEIR_OK);
    remove_folder();
}
#endif

#ifdef WEIR_TRACE_FILE_H
TEST_CASE(an_older_programs_trace_replaces_no_other_file)
{
    weir_error error;
    weir_trace_options options = { .overwrite = true };
    write_text("a.json", "%PDF-1.4\n");
    assert_int_equal(PASS_OLDER(pass_trace, options, force, &error), WEIR_EINVAL);
    options.force = true;
    assert_int_equal(pass_trace(&options, sizeof options, &error), WEIR_OK);
    remove(in_folder("a.json"));
    remove_folder();
}
#endif

#ifdef WEIR_OPENMETRICS_H
TEST_CASE(an_older_programs_metrics_replace_no_other_file)
{
    weir_error error;
    weir_openmetrics_options options = { 0 };
    write_text("a.prom", "%PDF-1.4\n");
    assert_int_equal(PASS_OLDER(pass_openmetrics, options, force, &error), WEIR_EINVAL);
    options.force = true;
    assert_int_equal(pass_openmetrics(&options, sizeof options, &error), WEIR_OK);
    static const weir_limit_rules newer = { .reserved[3] = &newer };
    options.limit_rules = &newer;
    assert_int_equal(PASS_OLDER(pass_openmetrics, options, limit_rules, &error), WEIR_OK);
    assert_int_equal(pass_openmetrics(&options, sizeof options, &error), WEIR_EUNSUPPORTED);
    assert_non_null(strstr(error.message, "weir_limit_rules"));
    static const weir_limit_rules lacking = { .reserved = { NULL } };
    options.limit_rules = &lacking;
    error = (weir_error){ 0 };
    assert_int_equal(pass_openmetrics(&options, sizeof options, &error), WEIR_EINVAL);
    remove(in_folder("a.prom"));
    remove_folder();
}
#endif

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
