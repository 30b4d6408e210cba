/* The list source. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/bytes.h>
#include <weir/engine.h>
#include <weir/files.h>

static int build(const weir_list_config *config, weir_pipeline **pipeline)
{
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    return weir_builder_build(builder, NULL, pipeline, NULL);
}

TEST_CASE(gives_copies_in_order)
{
    char first[] = "a b";
    const char *paths[] = { first, "http://example.org/c", "" };
    weir_pipeline *pipeline;
    weir_item item;
    assert_int_equal(build(&(weir_list_config){ .paths = paths, .num_paths = 3 }, &pipeline), WEIR_OK);
    first[0] = 'x';
    paths[1] = NULL;
    static const char *const expected[] = { "a b", "http://example.org/c", "" };
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_string_equal(item.data, expected[i]);
        assert_string_equal(item.label, expected[i]);
        assert_int_equal(item.seq, i);
        weir_item_release(&item);
    }
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_pipeline_free(pipeline);
}

TEST_CASE(an_empty_list_is_refused)
{
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ 0 }, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, &error), WEIR_ENOTFOUND);
    assert_null(pipeline);
    assert_non_null(strstr(error.message, "the list of files is empty; set may_be_empty"));
}

TEST_CASE(a_list_that_may_be_empty_ends_at_once)
{
    weir_pipeline *pipeline;
    weir_item item;
    assert_int_equal(build(&(weir_list_config){ .may_be_empty = true }, &pipeline), WEIR_OK);
    assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
    weir_pipeline_free(pipeline);
}

TEST_CASE(a_null_among_the_paths_is_refused)
{
    weir_pipeline *pipeline;
    const char *paths[] = { "a", NULL };
    assert_int_equal(build(&(weir_list_config){ .paths = paths, .num_paths = 2 }, &pipeline), WEIR_EINVAL);
    assert_null(pipeline);
}

TEST_CASE(a_list_with_windows_gives_entries)
{
    const char *paths[] = { "a", "b", "a" };
    weir_clip_window windows[] = { { .end_ns = 3 }, { .start_ns = 5 }, { .start_frame = 7, .end_frame = 9 } };
    for (int given = 1; given < 3; given++) {
        weir_pipeline *pipeline;
        weir_item item;
        weir_list_config config = { .paths = paths, .num_paths = 3, .windows = windows };
        windows[0].end_ns = given;
        assert_int_equal(build(&config, &pipeline), WEIR_OK);
        windows[0].end_ns = 3; /* they were copied */
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
            assert_string_equal(item.type, WEIR_TYPE_ENTRY);
            const weir_entry *entry = item.data;
            assert_string_equal(entry->path, paths[i]);
            assert_string_equal(item.label, paths[i]);
            assert_int_equal(entry->number, i);
            assert_int_equal(entry->occurrence, i == 2);
            weir_clip_window wanted = windows[i];
            wanted.end_ns = i == 0 ? given : wanted.end_ns;
            assert_memory_equal(&entry->window, &wanted, sizeof wanted);
            weir_item_release(&item);
        }
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        weir_pipeline_free(pipeline);
    }
}

TEST_CASE(windows_that_are_none_are_refused)
{
    const char *paths[] = { "a" };
    static const weir_clip_window wrong[] = { { -1, 0, 0, 0 }, { 0, -1, 0, 0 }, { 3, 3, 0, 0 }, { 4, 3, 0, 0 },
                                              { 0, 0, 3, 3 },  { 0, 0, 4, 3 },  { 1, 0, 1, 0 }, { 0, 1, 0, 1 } };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_pipeline *pipeline;
        weir_list_config config = { .paths = paths, .num_paths = 1, .windows = &wrong[i] };
        assert_int_equal(build(&config, &pipeline), WEIR_EINVAL);
        assert_null(pipeline);
    }
}

TEST_MAIN(NULL, NULL, NULL, NULL)
