/*
 * What the library writes replaces only files of its own kind: each writer over each kind of file. Held constant: names say
 * nothing of the kind (test_outputs.c has those), a file is whole, the program is alone. The kinds include what the writers
 * themselves have made, so that none of them is refused where it has been before.
 */
#include "tests/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/arrays.h>
#include <weir/dataset.h>
#include <weir/openmetrics.h>
#include <weir/output.h>
#include <weir/sqlite.h>
#include <weir/trace_file.h>

#include "tests/program.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* ---- the writers --------------------------------------------------------------------------------------------------- */

static char *folder;

static int write_checkpoint(const char *path, weir_error *error)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .checkpoints = WEIR_CHECKPOINTS_DELIVERED });
    int status = weir_checkpoint_store(pipeline, path, "mine", 4, error);
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return status;
}

static const weir_frames *one_frame(void)
{
    static uint8_t bytes[12];
    static weir_frames frames = { .num_frames = 1, .width = 2, .height = 2, .channels = 3, .frame_bytes = 12 };
    frames.data = bytes;
    return &frames;
}

static weir_item frame_item(void)
{
    return (weir_item){ .data = (void *)(uintptr_t)one_frame(), .type = WEIR_TYPE_FRAMES };
}

static int write_npy(const char *path, weir_error *error)
{
    const weir_item item = frame_item();
    return weir_write_npy(&item, path, error);
}

static int write_safetensors(const char *path, weir_error *error)
{
    static int64_t pts;
    weir_frames frames = *one_frame();
    frames.pts = &pts;
    return weir_write_safetensors(&(weir_item){ .data = &frames, .type = WEIR_TYPE_FRAMES }, path, error);
}

static int write_metrics(const char *path, weir_error *error)
{
    weir_openmetrics_file *file;
    int status = weir_openmetrics_open(path, NULL, &file, error);
    return status == WEIR_OK ? weir_openmetrics_close(file, error) : status;
}

static int run_traced(weir_trace_file *file)
{
    test_ledger ledger = LEDGER;
    test_numbers numbers = { .ledger = &ledger, .count = 3 };
    weir_observer observer = weir_trace_observer(file);
    weir_builder *builder = builder_with(&numbers);
    weir_builder_sink(builder, NULL);
    weir_pipeline *pipeline = build(builder, &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 });
    drain_all(pipeline);
    weir_pipeline_free(pipeline);
    ledger_close(&ledger);
    return WEIR_OK;
}

static int write_trace(const char *path, weir_error *error)
{
    weir_trace_file *file;
    int status = weir_trace_open(path, &(weir_trace_options){ .overwrite = true }, &file, error);
    if (status == WEIR_OK)
        status = run_traced(file);
    return status == WEIR_OK ? weir_trace_close(file, error) : status;
}

static int write_merged(const char *path, weir_error *error)
{
    char *from = path_in(folder, "from.json");
    int status = access(from, F_OK) == 0 ? WEIR_OK : write_trace(from, error);
    if (status == WEIR_OK)
        status = weir_trace_merge(path, (const char *const *)&from, 1, NULL, false, error);
    free(from);
    return status;
}

static int write_database(const char *path, weir_error *error)
{
    weir_sqlite_writer *writer;
    int status = weir_sqlite_open(path, NULL, &writer, error);
    return status == WEIR_OK ? weir_sqlite_close(writer, error) : status;
}

static int write_index(const char *path, weir_error *error)
{
    char *root = path_in(folder, "clips"),
         *clip = path_in(folder, "clips/a.mp4"); /* that is none, and listed as broken */
    (void)mkdir(root, 0777);
    write_file(clip, "");
    free(clip);
    int status = weir_dataset_build(path, &(weir_dataset_build_options){ .root = root }, NULL, error);
    free(root);
    return status;
}

/* Those that make the same kind have the same letter; what is only there, none. */
static const struct {
    const char *name;
    int (*write)(const char *path, weir_error *error);
    char kind;
} writers[] = {
    { "checkpoint", write_checkpoint, 'c' },
    { "npy", write_npy, 'n' },
    { "safetensors", write_safetensors, 's' },
    { "metrics", write_metrics, 'm' },
    { "trace", write_trace, 't' },
    { "packed.gz", write_trace, 't' },
    { "merged", write_merged, 't' },
    { "database", write_database, 'd' },
    { "index", write_index, 'i' },
};

static const struct {
    const char *name;
    size_t num_bytes;
    const char *bytes;
} strangers[] = {
#define BYTES(text) sizeof(text) - 1, (text)
    { "video", BYTES("\0\0\0\x20"
                     "ftypisom\0\0\2\0") },
    { "notes", BYTES("some notes\nof mine\n") },
    { "csv", BYTES("path,label\na.mp4,one\n") },
    { "words", BYTES("{\"labels\": [1, 2]}\n") },
    { "page", BYTES("<!DOCTYPE html>\n<p>mine") },
    { "picture", BYTES("\x89PNG\r\n\x1a\n\0\0\0\xdIHDR") },
    { "packed", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\x4b\x4c\4\0\xf1\xb1\xb2") },
    { "one byte", BYTES("1") },
#undef BYTES
};

static void write_bytes(const char *path, const char *bytes, size_t num_bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(fd, bytes, num_bytes), num_bytes);
    close(fd);
}

/* The size and the bytes, as a number. */
static uint64_t sum_of(const char *path)
{
    uint64_t sum = 1;
    int byte;
    FILE *file = fopen(path, "rb");
    while (file && (byte = fgetc(file)) != EOF)
        sum = sum * 1000003 + (uint64_t)byte;
    if (file)
        fclose(file);
    return sum;
}

/* Whether the writer does as expected at the path; the file stays if it refuses. */
static bool behaves(size_t writer, const char *path, bool may_replace)
{
    weir_error error = { 0 };
    uint64_t before = sum_of(path);
    int status = writers[writer].write(path, &error);
    bool is_right = may_replace ? status == WEIR_OK
                                : status != WEIR_OK && sum_of(path) == before && strstr(error.message, path) &&
                                      (status == WEIR_EINVAL || status == WEIR_EDATA);
    if (!is_right)
        fprintf(stderr, "%s to %s: %s: %s\n", writers[writer].name, path, weir_status_name(status), error.message);
    return is_right;
}

TEST_CASE(each_writer_replaces_its_own_kind_and_nothing_else)
{
    size_t num_wrong = 0;
    for (size_t i = 0; i < LENGTH(writers); i++) {
        for (size_t j = 0; j < LENGTH(writers); j++) {
            char name[64];
            snprintf(name, sizeof name, "%zu.%s", i, writers[j].name);
            char *path = path_in(folder, name);
            weir_error error = { 0 };
            if (writers[j].write(path, &error) != WEIR_OK)
                fail_msg("%s: %s", name, error.message);
            /* a name that ends in .gz is of no other kind */
            num_wrong += !behaves(i, path, writers[i].kind == writers[j].kind);
            free(path);
        }
        for (size_t j = 0; j < LENGTH(strangers); j++) {
            char *path = path_in(folder, strangers[j].name);
            write_bytes(path, strangers[j].bytes, strangers[j].num_bytes);
            num_wrong += !behaves(i, path, false);
            free(path);
        }
    }
    assert_int_equal(num_wrong, 0);
}

/* What it wrote before is replaced, again and again, and each time the file is new. */
TEST_CASE(an_empty_file_and_one_of_its_own_are_replaced)
{
    for (size_t i = 0; i < LENGTH(writers); i++) {
        char *path = path_in(folder, "again");
        write_bytes(path, "", 0);
        for (int j = 0; j < 3; j++)
            assert_true(behaves(i, path, true));
        unlink(path);
        free(path);
    }
}

/* The second half of a trace with a limit becomes PATH.old, which must not replace anything else, either. */
TEST_CASE(the_older_half_of_a_trace_replaces_nothing_else)
{
    weir_trace_file *file;
    weir_error error = { 0 };
    char *path = path_in(folder, "limited.json"), *older = path_in(folder, "limited.json.old");
    const weir_trace_options options = { .overwrite = true, .max_bytes = 100000 };
    write_file(older, "some notes\n");
    assert_int_equal(weir_trace_open(path, &options, &file, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "limited.json.old"));
    char *text = read_file(older);
    assert_string_equal(text, "some notes\n");
    free(text);
    free(path);
    free(older);
}

TEST_CASE(force_replaces_another_kind_but_never_an_input)
{
    char *path = path_in(folder, "forced"), *other = path_in(folder, "other");
    write_file(path, "some notes\n");
    const weir_output_rules rules = { .force = true, .inputs = (const char *const *)&path, .num_inputs = 1 };
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_PAGE, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_PAGE, &(weir_output_rules){ .force = true }, NULL), WEIR_OK);
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_PAGE, &rules, NULL), WEIR_EINVAL);
    assert_int_equal(weir_output_check(other, WEIR_OUTPUT_PAGE, &rules, NULL), WEIR_OK);
    free(path);
    free(other);
}

/* A database that is open in this process is not opened again: closing that would end its locks. */
TEST_CASE(a_check_does_not_release_the_locks_of_an_open_database)
{
    char *path = path_in(folder, "locked.db"), *log = path_in(folder, "locked.db-wal");
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    write_file(path, "SQLite format 3");
    write_file(log, "");
    int status, fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
    assert_true(weir_output_is(path, WEIR_OUTPUT_DATABASE));
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_METRICS, NULL, NULL), WEIR_EINVAL);
    pid_t child = fork();
    if (child == 0) {
        struct flock seen = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        _exit(fcntl(fd, F_GETLK, &seen) == 0 && seen.l_type == F_WRLCK ? 7 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    close(fd);
    free(path);
    free(log);
}

static int set_up(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
