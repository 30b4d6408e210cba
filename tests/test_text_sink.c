/* Streams that pass text to a function of the program: all of it, in order, and failures are seen. */
#include "tests/support.h"

#include <stdlib.h>

#include <weir/output.h>
#include <weir/span.h>

typedef struct kept_text {
    char text[1 << 16];
    size_t size_bytes;
    int num_calls;
    int failing_call; /* 0 = none */
} kept_text;

static int keep_text(void *self, const char *text, size_t size_bytes)
{
    kept_text *kept = self;
    REQUIRE(size_bytes > 0 && size_bytes < sizeof kept->text - kept->size_bytes);
    if (++kept->num_calls == kept->failing_call)
        return WEIR_EIO;
    memcpy(kept->text + kept->size_bytes, text, size_bytes);
    kept->size_bytes += size_bytes;
    return WEIR_OK;
}

static kept_text kept;

static FILE *open_kept(int failing_call)
{
    kept.size_bytes = 0;
    kept.num_calls = 0;
    kept.failing_call = failing_call;
    memset(kept.text, 0, sizeof kept.text);
    FILE *stream = weir_text_open(keep_text, &kept);
    assert_non_null(stream);
    return stream;
}

TEST_CASE(all_that_is_written_is_passed_in_its_order)
{
    char expected[sizeof kept.text] = "";
    FILE *stream = open_kept(0);
    for (int i = 0; i < 5000; i++) {
        fprintf(stream, "%d,", i);
        sprintf(expected + strlen(expected), "%d,", i);
    }
    assert_true(kept.num_calls > 1); /* it is not kept until the end */
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(kept.text, expected);
}

TEST_CASE(a_flush_passes_what_was_written)
{
    FILE *stream = open_kept(0);
    fputs("a line", stream);
    assert_int_equal(kept.num_calls, 0);
    assert_int_equal(fflush(stream), 0);
    assert_string_equal(kept.text, "a line");
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(kept.num_calls, 1); /* never without text */
}

TEST_CASE(text_that_is_refused_is_an_error_of_the_stream)
{
    FILE *stream = open_kept(1);
    fputs("refused", stream);
    assert_int_equal(fflush(stream), EOF);
    assert_int_not_equal(ferror(stream), 0);
    fclose(stream);
    stream = open_kept(1);
    fputs("refused at the end", stream);
    assert_int_equal(fclose(stream), EOF);
    assert_int_equal(kept.num_calls, 1);
}

TEST_CASE(what_the_library_prints_goes_to_the_function)
{
    char *expected = NULL;
    size_t size;
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, NULL);
    assert_int_equal(drain_all(pipeline), 3);
    weir_pipeline_free(pipeline);
    FILE *memory = open_memstream(&expected, &size), *stream = open_kept(0);
    assert_non_null(memory);
    assert_int_equal(weir_span_dump(memory, NULL), WEIR_OK);
    assert_int_equal(weir_span_dump(stream, NULL), WEIR_OK);
    assert_int_equal(fclose(memory), 0);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(kept.size_bytes, size);
    free(expected);
    ledger_close(&ledger);
}

TEST_CASE(a_stream_without_a_function_is_none)
{
    assert_null(weir_text_open(NULL, &kept));
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
