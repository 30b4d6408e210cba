/* Statuses, errors and the log. */
#include "support.h"

/* ---- status and error --------------------------------------------------------------------------------------- */

static void every_status_has_its_name_and_a_text(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *name;
    } all[] = {
#define ROW(name, value, text) { value, "WEIR_" #name },
        WEIR_STATUS_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < LENGTH(all); i++) {
        assert_string_equal(weir_status_name(all[i].status), all[i].name);
        assert_true(strlen(weir_status_text(all[i].status)) > 0);
        assert_string_not_equal(weir_status_text(all[i].status), weir_status_text(12345));
    }
}

static void a_foreign_number_is_no_status(void **state)
{
    (void)state;
    static const int foreign[] = { 100, 12345, -100, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < LENGTH(foreign); i++) {
        assert_string_equal(weir_status_name(foreign[i]), "WEIR_?");
        assert_string_equal(weir_status_text(foreign[i]), "unknown status");
    }
}

static void the_first_error_counts(void **state)
{
    (void)state;
    weir_error error = { 0 };
    assert_int_equal(weir_error_set(&error, WEIR_EIO, -5, "cannot read %s", "a.mp4"), WEIR_EIO);
    assert_int_equal(weir_error_set(&error, WEIR_EDATA, 7, "later"), WEIR_EDATA);
    assert_int_equal(error.status, WEIR_EIO);
    assert_int_equal(error.library_code, -5);
    assert_string_equal(error.message, "cannot read a.mp4");
}

static void an_error_is_one_line(void **state)
{
    (void)state;
    weir_error error = { 0 };
    char line[WEIR_ERROR_LINE];
    assert_int_equal(weir_error_format(&error, line, sizeof line), 0);
    assert_string_equal(line, "");
    weir_error_set(&error, WEIR_EDATA, 0, "no video in it");
    weir_error_format(&error, line, sizeof line);
    assert_string_equal(line, "no video in it (WEIR_EDATA)");
    strcpy(error.label, "a.mp4");
    strcpy(error.stage, "0:1:decode");
    assert_int_equal(weir_error_format(&error, line, sizeof line), 46);
    assert_string_equal(line, "0:1:decode: a.mp4: no video in it (WEIR_EDATA)");
    assert_int_equal(weir_error_format(&error, line, 11), 46);
    assert_string_equal(line, "0:1:decode");
    memset(error.stage, 'x', sizeof error.stage - 1);
    memset(error.label, 'x', sizeof error.label - 1);
    memset(error.message, 'x', sizeof error.message - 1);
    error.status = WEIR_EUNSUPPORTED;
    assert_true(weir_error_format(&error, line, sizeof line) < (int)sizeof line);
}

static void an_error_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(weir_error_set(NULL, WEIR_EIO, 0, "%d", 1), WEIR_EIO);
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    weir_error error = { 0 };
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    weir_error_set(&error, WEIR_EIO, 0, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

static void the_version_is_that_of_the_headers(void **state)
{
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
    assert_string_equal(WEIR_VERSION, expected);
    assert_string_equal(weir_version(), expected);
}

/* ---- the log ------------------------------------------------------------------------------------------------ */

static void lines_above_the_level_are_dropped(void **state)
{
    (void)state;
    weir_log_set_level(WEIR_LOG_WARNING);
    assert_int_equal(weir_log_get_level(), WEIR_LOG_WARNING);
    for (weir_log_level level = WEIR_LOG_ERROR; level <= WEIR_LOG_DEBUG; level++)
        weir_log(level, "a line");
    assert_int_equal(logged_lines(WEIR_LOG_ERROR), 1);
    assert_int_equal(logged_lines(WEIR_LOG_WARNING), 1);
    assert_int_equal(logged_lines(WEIR_LOG_INFO), 0);
    assert_int_equal(logged_lines(WEIR_LOG_DEBUG), 0);
}

static void a_line_comes_as_it_was_formatted(void **state)
{
    (void)state;
    char line[256];
    weir_log(WEIR_LOG_WARNING, "%s %d %%", "text", 42);
    last_logged_line(WEIR_LOG_WARNING, line, sizeof line);
    assert_string_equal(line, "text 42 %");
}

static void keep_length(void *self, weir_log_level level, const char *line)
{
    (void)level;
    *(size_t *)self = strlen(line);
}

static void a_line_of_more_than_4095_bytes_is_cut(void **state)
{
    (void)state;
    static char text[10000];
    size_t length = 0;
    memset(text, 'x', sizeof text - 1);
    weir_log_set_function(keep_length, &length);
    weir_log(WEIR_LOG_WARNING, "%s", text);
    assert_int_equal(length, 4095);
}

/* Gives the log back to stderr, which is a file while the line is written. */
static void assert_on_stderr(const char *message, const char *expected)
{
    char line[256] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    FILE *kept = stderr;
    stderr = file;
    weir_log_set_function(NULL, NULL);
    weir_log(WEIR_LOG_ERROR, "%s", message);
    stderr = kept;
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, expected);
    fclose(file);
}

static void null_gives_the_log_back_to_stderr(void **state)
{
    (void)state;
    assert_on_stderr("the disk is full", "weir: error: the disk is full\n");
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    assert_on_stderr("a\nb\x1b[31m\t\xc3\xbc.mp4", "weir: error: a\\nb\\x1b[31m\\x09\xc3\xbc.mp4\n");
}

static void *log_lines(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++)
        weir_log(WEIR_LOG_INFO, "line %d", i);
    return NULL;
}

static void several_threads_may_log_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < LENGTH(threads); i++)
        threads[i] = thread_start(log_lines, NULL);
    for (size_t i = 0; i < LENGTH(threads); i++)
        thread_join(threads[i]);
    assert_int_equal(logged_lines(WEIR_LOG_INFO), 1000 * LENGTH(threads));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_status_has_its_name_and_a_text),
        TEST(a_foreign_number_is_no_status),
        TEST(the_first_error_counts),
        TEST(an_error_is_one_line),
        TEST(an_error_may_be_null),
        TEST(a_long_message_is_cut),
        TEST(the_version_is_that_of_the_headers),
        TEST(lines_above_the_level_are_dropped),
        TEST(a_line_comes_as_it_was_formatted),
        TEST(a_line_of_more_than_4095_bytes_is_cut),
        TEST(null_gives_the_log_back_to_stderr),
        TEST(control_characters_do_not_reach_the_terminal),
        TEST(several_threads_may_log_at_once),
    };
    return RUN_TESTS(tests);
}
