/* Statuses, errors and the log. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text_escape.h"
#include "tests/support.h"

/* ---- status and error --------------------------------------------------------------------------------------- */

TEST_CASE(every_status_has_its_name_and_a_text)
{
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

TEST_CASE(a_foreign_number_is_no_status)
{
    static const int foreign[] = { 100, 12345, -100, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < LENGTH(foreign); i++) {
        assert_string_equal(weir_status_name(foreign[i]), "WEIR_?");
        assert_string_equal(weir_status_text(foreign[i]), "unknown status");
    }
}

TEST_CASE(the_first_error_counts)
{
    weir_error error = { 0 };
    assert_int_equal(weir_error_set(&error, WEIR_EIO, -5, "cannot read %s", "a.mp4"), WEIR_EIO);
    assert_int_equal(weir_error_set(&error, WEIR_EDATA, 7, "later"), WEIR_EDATA);
    assert_int_equal(error.status, WEIR_EIO);
    assert_int_equal(error.library_code, -5);
    assert_string_equal(error.message, "cannot read a.mp4");
}

TEST_CASE(an_error_is_one_line)
{
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

TEST_CASE(an_error_may_be_null)
{
    assert_int_equal(weir_error_set(NULL, WEIR_EIO, 0, "%d", 1), WEIR_EIO);
}

TEST_CASE(a_long_message_is_cut)
{
    weir_error error = { 0 };
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    weir_error_set(&error, WEIR_EIO, 0, "%s", text);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
}

TEST_CASE(the_version_is_that_of_the_headers)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
    assert_string_equal(WEIR_VERSION, expected);
    assert_string_equal(weir_version(), expected);
}

/* ---- the log ------------------------------------------------------------------------------------------------ */

TEST_CASE(lines_above_the_level_are_dropped)
{
    weir_log_set_level(WEIR_LOG_WARNING);
    assert_int_equal(weir_log_get_level(), WEIR_LOG_WARNING);
    for (weir_log_level level = WEIR_LOG_ERROR; level <= WEIR_LOG_DEBUG; level++)
        weir_log(level, "a line");
    assert_int_equal(logged_lines(WEIR_LOG_ERROR), 1);
    assert_int_equal(logged_lines(WEIR_LOG_WARNING), 1);
    assert_int_equal(logged_lines(WEIR_LOG_INFO), 0);
    assert_int_equal(logged_lines(WEIR_LOG_DEBUG), 0);
}

TEST_CASE(a_line_comes_as_it_was_formatted)
{
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

TEST_CASE(a_line_of_more_than_4095_bytes_is_cut)
{
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

static void assert_no_line(void)
{
    char line[8];
    weir_log_level level;
    uint64_t lost = 77;
    assert_int_equal(weir_log_take(&level, line, sizeof line, &lost, 0), WEIR_ETIMEDOUT);
    assert_int_equal(weir_log_take(&level, line, sizeof line, &lost, WEIR_MILLISECOND), WEIR_ETIMEDOUT);
    assert_int_equal(lost, 77);
}

static void assert_next_line(weir_log_level expected_level, const char *expected, uint64_t expected_lost)
{
    char line[4096];
    weir_log_level level = WEIR_LOG_DEBUG;
    uint64_t lost = 77;
    assert_int_equal(weir_log_take(&level, line, sizeof line, &lost, 0), WEIR_OK);
    assert_int_equal(level, expected_level);
    assert_string_equal(line, expected);
    assert_int_equal(lost, expected_lost);
}

TEST_CASE(lines_wait_in_the_queue_in_their_order)
{
    char line[5];
    weir_log_level level;
    weir_log_queue_start(0);
    assert_no_line();
    weir_log(WEIR_LOG_ERROR, "line\n%d", 1);
    weir_log(WEIR_LOG_INFO, "a long line");
    weir_log(WEIR_LOG_DEBUG, "not of this level");
    weir_log_set_function(NULL, NULL);
    assert_next_line(WEIR_LOG_ERROR, "line\n1", 0);
    assert_int_equal(weir_log_take(&level, line, sizeof line, NULL, WEIR_FOREVER), WEIR_OK);
    assert_string_equal(line, "a lo");
    assert_int_equal(level, WEIR_LOG_INFO);
    assert_no_line();
}

static int64_t count_switches(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_THREAD, &used), 0);
    return used.ru_nvcsw;
}

/* The module for Python takes lines while it holds the GIL. A page that is read can cost a switch as well, but not in each round. */
TEST_CASE(a_take_without_a_wait_gives_the_cpu_to_nobody)
{
    int64_t fewest = INT64_MAX;
    weir_log_queue_start(0);
    for (int round = 0; round < 10; round++) {
        int64_t before = count_switches();
        for (int i = 0; i < 100; i++) {
            char line[8];
            weir_log_level level;
            assert_int_equal(weir_log_take(&level, line, sizeof line, NULL, 0), WEIR_ETIMEDOUT);
        }
        int64_t switches = count_switches() - before;
        fewest = switches < fewest ? switches : fewest;
    }
    assert_int_equal(fewest, 0);
    weir_log_set_function(NULL, NULL);
}

TEST_CASE(lines_that_find_no_room_are_counted_with_the_next_one)
{
    weir_log_queue_start(2);
    for (int i = 0; i < 5; i++)
        weir_log(WEIR_LOG_INFO, "%d", i);
    assert_next_line(WEIR_LOG_INFO, "0", 3);
    weir_log(WEIR_LOG_INFO, "5");
    weir_log(WEIR_LOG_INFO, "6");
    assert_next_line(WEIR_LOG_INFO, "1", 1);
    assert_next_line(WEIR_LOG_INFO, "5", 0);
    assert_no_line();
    weir_log_set_function(NULL, NULL);
}

static void *log_one_line(void *argument)
{
    weir_log(WEIR_LOG_WARNING, "from another thread");
    return argument;
}

TEST_CASE(a_thread_may_wait_for_a_line)
{
    pthread_t thread;
    char line[64];
    weir_log_level level;
    weir_log_queue_start(0);
    pthread_create(&thread, NULL, log_one_line, NULL);
    assert_int_equal(weir_log_take(&level, line, sizeof line, NULL, WEIR_FOREVER), WEIR_OK);
    assert_string_equal(line, "from another thread");
    pthread_join(thread, NULL);
    assert_int_equal(weir_log_take(&level, line, 0, NULL, 0), WEIR_EINVAL);
    assert_int_equal(weir_log_take(&level, line, 1, NULL, -2), WEIR_EINVAL);
    weir_log_set_function(NULL, NULL);
}

static atomic_uint num_mixed; /* calls of a function with the self of another one */
static atomic_bool has_changed;
static char first_self, second_self;

static void log_first(void *self, weir_log_level level, const char *line)
{
    (void)level, (void)line;
    num_mixed += self != &first_self;
}

static void log_second(void *self, weir_log_level level, const char *line)
{
    (void)level, (void)line;
    num_mixed += self != &second_self;
}

static void *log_until_changed(void *argument)
{
    while (!atomic_load(&has_changed))
        weir_log(WEIR_LOG_WARNING, "a line");
    return argument;
}

/* At the end of an interpreter threads of weir still log. ThreadSanitizer sees what is not atomic. */
TEST_CASE(the_function_changes_with_its_self_while_threads_log)
{
    pthread_t threads[2];
    atomic_store(&has_changed, false);
    weir_log_set_function(log_first, &first_self);
    for (size_t i = 0; i < LENGTH(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_until_changed, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        weir_log_set_function(log_second, &second_self);
        weir_log_set_function(log_first, &first_self);
    }
    atomic_store(&has_changed, true);
    for (size_t i = 0; i < LENGTH(threads); i++)
        pthread_join(threads[i], NULL);
    weir_log_set_function(NULL, NULL);
    assert_int_equal(num_mixed, 0);
}

TEST_CASE(a_forked_child_has_none_of_the_lines_of_its_parent)
{
    int status;
    weir_log_queue_start(0);
    weir_log(WEIR_LOG_WARNING, "of the parent");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char line[64] = "";
        weir_log_level level;
        bool is_empty = weir_log_take(&level, line, sizeof line, NULL, 0) == WEIR_ETIMEDOUT;
        weir_log(WEIR_LOG_WARNING, "of the child");
        bool has_own =
            weir_log_take(&level, line, sizeof line, NULL, 0) == WEIR_OK && strcmp(line, "of the child") == 0;
        _exit(is_empty && has_own ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_next_line(WEIR_LOG_WARNING, "of the parent", 0);
    assert_no_line();
    weir_log_set_function(NULL, NULL);
}

TEST_CASE(null_gives_the_log_back_to_stderr)
{
    assert_on_stderr("the disk is full", "weir: error: the disk is full\n");
}

TEST_CASE(control_characters_do_not_reach_the_terminal)
{
    assert_on_stderr("a\nb\x1b[31m\t\xc3\xbc.mp4", "weir: error: a\\nb\\x1b[31m\\x09\xc3\xbc.mp4\n");
    assert_on_stderr("\xc2\x9b"
                     "1A\xe2\x80\xae\xff",
                     "weir: error: \\x9b1A\\u202e\\xff\n");
}

TEST_CASE(what_turns_or_forges_text_is_escaped)
{
    static const struct {
        const char *text, *shown;
    } all[] = {
        { "plain \\n text", "plain \\n text" },
        { "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x93\x8a", "gr\xc3\xbc\xc3\x9f \xe6\xbc\xa2 \xf0\x9f\x93\x8a" },
        { "\x01\x1f\x7f", "\\x01\\x1f\\x7f" },
        { "\xc2\x80\xc2\x9b"
          "31m\xc2\x9f",
          "\\x80\\x9b31m\\x9f" },
        { "\xc2\xa0", "\xc2\xa0" },
        { "\xe2\x80\xaa\xe2\x80\xae", "\\u202a\\u202e" },
        { "\xe2\x81\xa6\xe2\x81\xa9", "\\u2066\\u2069" },
        { "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u200e\\u200f\\u061c" },
        { "\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029" },
        { "\x9b"
          "2J\xff\xc3",
          "\\x9b2J\\xff\\xc3" },
        { "\xc0\x8a \xe0\x80\x8a \xf0\x80\x80\x8a", "\\xc0\\x8a \\xe0\\x80\\x8a \\xf0\\x80\\x80\\x8a" },
        { "\xed\xa0\x80 \xf4\x90\x80\x80", "\\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80" },
        { "", "" },
        { NULL, "" },
    };
    for (size_t i = 0; i < LENGTH(all); i++) {
        char shown[64];
        assert_int_equal(weir__text_escape(all[i].text, shown, sizeof shown), strlen(all[i].shown));
        assert_string_equal(shown, all[i].shown);
    }
}

TEST_CASE(escaped_text_is_cut_between_characters)
{
    static const char text[] = "a\x1b\xc3\xbcz", shown[] = "a\\x1b\xc3\xbcz";
    static const size_t cut_at[] = { 0, 0, 1, 1, 1, 1, 5, 5, 7, 8 };
    for (size_t size = 0; size < LENGTH(cut_at); size++) {
        char cut[16] = "unchanged";
        assert_int_equal(weir__text_escape(text, cut, size), strlen(shown));
        assert_int_equal(strlen(cut), size ? cut_at[size] : strlen("unchanged"));
        assert_int_equal(strncmp(cut, shown, size ? cut_at[size] : 0), 0);
    }
}

static void *log_lines(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++)
        weir_log(WEIR_LOG_INFO, "line %d", i);
    return NULL;
}

TEST_CASE(several_threads_may_log_at_once)
{
    pthread_t threads[4];
    for (size_t i = 0; i < LENGTH(threads); i++)
        threads[i] = thread_start(log_lines, NULL);
    for (size_t i = 0; i < LENGTH(threads); i++)
        thread_join(threads[i]);
    assert_int_equal(logged_lines(WEIR_LOG_INFO), 1000 * LENGTH(threads));
}

TEST_MAIN(test_setup, test_teardown, NULL, NULL)
