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

/* Outputs of the same kind have the same letter. A file that is only there has none. */
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
                                      !error.library_code && (status == WEIR_EINVAL || status == WEIR_EDATA);
    if (!is_right)
        fprintf(stderr, "%s to %s: %s: %s\n", writers[writer].name, path, weir_status_name(status), error.message);
    return is_right;
}

/* A table has a column for each metric. */
TEST_CASE(a_table_with_many_columns_is_replaced)
{
    enum { HEADER_BYTES = 10000 };
    static char header[HEADER_BYTES];
    memset(header, 'x', sizeof header);
    for (size_t i = 20; i < sizeof header; i += 20)
        header[i] = ',';
    header[sizeof header - 1] = '\n';
    char *path = path_in(folder, "wide.csv");
    weir_error error = { 0 };
    write_bytes(path, header, sizeof header);
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_CSV, NULL, &error), WEIR_OK);
    header[100] = '\0';
    write_bytes(path, header, sizeof header);
    assert_int_equal(weir_output_check(path, WEIR_OUTPUT_CSV, NULL, &error), WEIR_EINVAL);
    free(path);
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

/* A trace gets its name with its first events: what has come there since it was opened stays, unless force is given. */
TEST_CASE(what_came_after_a_trace_was_opened_is_not_replaced)
{
    char *path = path_in(folder, "late.json");
    for (int is_forced = 0; is_forced < 2; is_forced++) {
        weir_trace_file *file;
        weir_error error = { 0 };
        const weir_trace_options options = { .overwrite = true, .force = is_forced };
        unlink(path);
        assert_int_equal(weir_trace_open(path, &options, &file, &error), WEIR_OK);
        write_file(path, "some notes\n");
        run_traced(file);
        int status = weir_trace_close(file, &error);
        assert_int_equal(status == WEIR_OK, is_forced);
        assert_int_equal(weir_output_is(path, WEIR_OUTPUT_TRACE), is_forced);
        assert_true(is_forced || strstr(error.message, "late.json"));
        char *text = read_file(path);
        assert_int_equal(strcmp(text, "some notes\n") == 0, !is_forced);
        free(text);
    }
    unlink(path);
    weir_trace_file *file;
    weir_error error = { 0 };
    assert_int_equal(weir_trace_open(path, NULL, &file, &error), WEIR_OK);
    assert_int_equal(mkdir(path, 0777), 0);
    run_traced(file);
    assert_int_not_equal(weir_trace_close(file, &error), WEIR_OK);
    assert_non_null(strstr(error.message, "late.json"));
    assert_int_equal(rmdir(path), 0); /* empty, and nothing has its name */
    free(path);
}

/* Who moves it away while it is written keeps it: its name is not taken again at the end. */
TEST_CASE(a_trace_gets_its_name_once)
{
    char *path = path_in(folder, "once.json"), *moved = path_in(folder, "moved.json");
    weir_trace_file *file;
    weir_error error = { 0 };
    assert_int_equal(weir_trace_open(path, NULL, &file, &error), WEIR_OK);
    run_traced(file);
    assert_int_equal(rename(path, moved), 0); /* it is live */
    assert_int_equal(weir_trace_close(file, &error), WEIR_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(weir_output_is(moved, WEIR_OUTPUT_TRACE));
    free(path);
    free(moved);
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

/* ---- kinds --------------------------------------------------------------------------------------------------------- */

/* A letter for each kind, in their order. */
static const char letters[] = "RMTPJCNSFYAKDILO";

/* The letters of the kinds that the file is. */
static const char *kinds_of(const char *path)
{
    static char found[sizeof letters];
    size_t count = 0;
    for (size_t kind = 0; letters[kind]; kind++)
        if (weir_output_is(path, (weir_output_kind)kind))
            found[count++] = letters[kind];
    found[count] = '\0';
    return found;
}

typedef struct content {
    const char *kinds; /* that are recognised, as letters */
    size_t num_bytes;
    const char *bytes;
} content;

#define BYTES(text) sizeof(text) - 1, (text)
static const content contents[] = {
    { "R", BYTES("\1\2\3") },
    { "R", BYTES("1") },
    { "R", BYTES("a\1b\n") },
    { "R", BYTES("a\0b\n") },
    { "L", BYTES("a\tb\r\n") },
    { "L", BYTES("\xff\xfe.mp4\n") },
    { "L", BYTES("some notes\nof mine, too\n") },
    { "CL", BYTES("path,label\na.mp4,1\n") },
    { "M", BYTES("# TYPE a gauge\n") },
    { "M", BYTES("# HELP a One, two.\n") },
    { "M", BYTES("# EOF\n") },
    { "", BYTES("# of mine\na.mp4\n") },
    { "C", BYTES("#path,label\n") },
    { "", BYTES("#EXTM3U\na.ts\n") },
    { "", BYTES("ffconcat version 1.0\nfile a.mp4\n") },
    { "", BYTES("v=0\no=- 0 0 IN IP4 127.0.0.1\n") },
    { "", BYTES("YUV4MPEG2 W2 H2\n") },
    { "J", BYTES("{\"labels\": [1, 2]}\n") },
    { "J", BYTES("[1,\n2]\n") },
    { "RJ", BYTES("[\1\2raw") },
    { "T", BYTES("[\n{\"ph\": \"X\", \"ts\": 1},\n") },
    { "T", BYTES(" \r\n\t{\"traceEvents\": []}") },
    { "T", BYTES("{\"displayTimeUnit\": \"ms\"}") },
    { "T", BYTES("{\"schemaVersion\": 1}") },
    { "L", BYTES("a \"ph\" of mine\n") },
    { "P", BYTES("<!doctype html>\n") },
    { "P", BYTES("<!DOCTYPE html>") },
    { "P", BYTES("\n<html>\n") },
    { "N", BYTES("\x89PNG\r\n\x1a\n\0\0\0\xdIHDR") },
    { "S", BYTES("<?xml version=\"1.0\"?>\n") },
    { "S", BYTES(" <svg width=\"1\"/>") },
    { "", BYTES("<p>one, two</p>\n") },
    { "F", BYTES("%PDF-1.7\n\1") },
    { "F", BYTES("%PDF-1.7, of mine\n") },
    { "Y", BYTES("\x93NUMPY\1\0") },
    { "K", BYTES("weir checkpoint 1, of mine\n") },
    { "A", BYTES("\x10\0\0\0\0\0\0\0{\"a\"") },
    { "R", BYTES("\x10\0\0\0\0\0\0\0[\"a\"") },
    { "R", BYTES("\x10\0\0\0\0\0\0\0{ \"a\"") },
    { "R", BYTES("\x10\0\0\0\0\1\0\0{\"a\"") },
    { "R", BYTES("\x10\0\0\0\0\0\1\0{\"a\"") },
    { "R", BYTES("\x10\0\0\0\0\0\0\1{\"a\"") },
    { "R", BYTES("\x10\0\0\0\0\0\0\0{") },
    /* what weir does not write */
    { "", BYTES("\0\0\0\x20"
                "ftypisom\0\0\2\0") },
    { "", BYTES("\0\0\0\x20"
                "moov\0\0") },
    { "R", BYTES("\0\0ftyp\0\0\0\0") },
    { "", BYTES("\x1a\x45\xdf\xa3\1") },
    { "", BYTES("RIFF\1") },
    { "", BYTES("OggS\1") },
    { "", BYTES("ID3\1") },
    { "", BYTES("PK\3\4\1") },
    { "", BYTES("\xff\xd8\xff\1") },
    { "", BYTES("\x7f"
                "ELF\1") },
    { "R", BYTES("\1\x7f"
                 "ELF\1") },
    /* packed: gzip's header has 10 bytes, then what the flags in the fourth say: 4 extra, 8 name, 16 comment */
    { "", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3\x4b\x4c\4\0") },
    { "T", BYTES("\x1f\x8b\x08\x10\0\0\0\0\0\3weir trace\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x10\0\0\0\0\0\3weir trace!\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3weir trace\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x10\0\0\0\0\0\3weir trace") },
    { "T", BYTES("\x1f\x8b\x08\x08\0\0\0\0\0\3t.json\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x08\0\0\0\0\0\3t.jsonl\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x08\0\0\0\0\0\3json\0\x4b") },
    { "T", BYTES("\x1f\x8b\x08\x18\0\0\0\0\0\3a\0weir trace\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x18\0\0\0\0\0\3weir trace\0b\0\x4b") },
    { "T", BYTES("\x1f\x8b\x08\x0c\0\0\0\0\0\3\2\0ab"
                 "t.json\0\x4b") },
    { "T", BYTES("\x1f\x8b\x08\x1c\0\0\0\0\0\3\3\0abc"
                 "t\0weir trace\0\x4b") },
    { "", BYTES("\x1f\x8b\x08\x0c\0\0\0\0\0\3\1\1ab"
                "t.json\0\x4b") },
    { "R", BYTES("\x1f\x8a\x08\x10\0\0\0\0\0\3weir trace\0\x4b") },
    { "R", BYTES("\x1e\x8b\x08\x10\0\0\0\0\0\3weir trace\0\x4b") },
};
#undef BYTES

TEST_CASE(a_file_is_recognised_as_the_kinds_that_it_is_and_no_others)
{
    char *path = path_in(folder, "content");
    size_t num_wrong = 0;
    for (size_t i = 0; i < LENGTH(contents); i++) {
        write_bytes(path, contents[i].bytes, contents[i].num_bytes);
        if (strcmp(kinds_of(path), contents[i].kinds) == 0)
            continue;
        fprintf(stderr, "content %zu, %.40s: \"%s\", not \"%s\"\n", i, contents[i].bytes, kinds_of(path),
                contents[i].kinds);
        num_wrong++;
    }
    assert_int_equal(num_wrong, 0);
    free(path);
}

/* Marks that are not at the start. */
TEST_CASE(marks_are_looked_for_where_they_are)
{
    static const char mark[] = "SQLite format 3";
    char bytes[400] = "", *path = path_in(folder, "far");
    memcpy(bytes + 257, "ustar", 5);
    write_bytes(path, bytes, sizeof bytes);
    assert_string_equal(kinds_of(path), "");
    memmove(bytes + 258, "ustar", 5);
    bytes[257] = 0;
    write_bytes(path, bytes, sizeof bytes);
    assert_string_equal(kinds_of(path), "R");
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, mark, sizeof mark);
    write_bytes(path, bytes, sizeof bytes);
    assert_string_equal(kinds_of(path), "D");
    memcpy(bytes + 68, "weix", 4);
    write_bytes(path, bytes, 72);
    assert_string_equal(kinds_of(path), "DI");
    write_bytes(path, bytes, 71);
    assert_string_equal(kinds_of(path), "D");
    memcpy(bytes, "\x1f\x8b\x08\x0c\0\0\0\0\0\3\4\1", 12); /* 260 bytes that belong to somebody */
    memcpy(bytes + 12 + 260, "t.json", sizeof "t.json");
    write_bytes(path, bytes, sizeof bytes);
    assert_string_equal(kinds_of(path), "T");
    free(path);
}

TEST_CASE(what_is_no_file_is_of_no_kind)
{
    char *path = path_in(folder, "nothing"), *pipe = path_in(folder, "pipe"), *log = path_in(folder, "base.db-shm"),
         *base = path_in(folder, "base.db");
    assert_string_equal(kinds_of(path), "");
    write_file(path, "");
    assert_string_equal(kinds_of(path), "");
    assert_int_equal(mkfifo(pipe, 0666), 0);
    assert_string_equal(kinds_of(pipe), ""); /* without waiting for somebody who writes to it */
    assert_string_equal(kinds_of(folder), "O");
    assert_false(weir_output_is(NULL, WEIR_OUTPUT_RAW));
    assert_false(weir_output_is(folder, (weir_output_kind)(WEIR_OUTPUT_FOLDER + 1)));
    write_file(log, "");
    assert_string_equal(kinds_of(base), ""); /* it may only be a name yet */
    free(path);
    free(pipe);
    free(log);
    free(base);
}

/* ---- names --------------------------------------------------------------------------------------------------------- */

/* The kinds that may be written to a new file of that name. Lists and folders may have any. */
static const struct {
    const char *name, *kinds;
} names[] = {
    { "a.raw", "RLO" },        { "a.rgb", "RLO" },        { "a.yuv", "RLO" },
    { "a.prom", "MLO" },       { "a.om", "MLO" },         { "a.json", "TJLO" },
    { "a.json.gz", "TLO" },    { "a.gz", "TLO" },         { "a.trace", "TLO" },
    { "a.html", "PLO" },       { "a.htm", "PLO" },        { "a.xhtml", "PLO" },
    { "a.csv", "CLO" },        { "a.png", "NLO" },        { "a.svg", "SLO" },
    { "a.pdf", "FLO" },        { "a.npy", "YLO" },        { "a.safetensors", "ALO" },
    { "a.ckpt", "KLO" },       { "a.checkpoint", "KLO" }, { "a.db", "DILO" },
    { "a.sqlite", "DILO" },    { "a.sqlite3", "DILO" },   { "a.weir", "DILO" },
    { "a.mp4", "LO" },         { "a.m4v", "LO" },         { "a.mov", "LO" },
    { "a.mkv", "LO" },         { "a.webm", "LO" },        { "a.avi", "LO" },
    { "a.ts", "LO" },          { "a.mpg", "LO" },         { "a.mpeg", "LO" },
    { "a.ogv", "LO" },         { "a.ogg", "LO" },         { "a.wav", "LO" },
    { "a.mp3", "LO" },         { "a.flac", "LO" },        { "a.m4a", "LO" },
    { "a.jpg", "LO" },         { "a.jpeg", "LO" },        { "a.gif", "LO" },
    { "a.webp", "LO" },        { "a.avif", "LO" },        { "a.tar", "LO" },
    { "a.zip", "LO" },         { "a.MP4", "LO" },         { "a.b.Csv", "CLO" },
    { "a.csv.mine", letters }, { "mp4", letters },        { "a", letters },
    { ".mp4", letters }, /* a hidden file */
};

TEST_CASE(a_name_says_what_may_be_written_there)
{
    size_t num_wrong = 0;
    for (size_t i = 0; i < LENGTH(names); i++) {
        char *path = path_in(folder, names[i].name), allowed[sizeof letters] = "";
        for (size_t kind = 0; letters[kind]; kind++)
            if (weir_output_check(path, (weir_output_kind)kind, NULL, NULL) == WEIR_OK)
                allowed[strlen(allowed)] = letters[kind];
        if (strcmp(allowed, names[i].kinds) != 0) {
            fprintf(stderr, "%s: \"%s\", not \"%s\"\n", names[i].name, allowed, names[i].kinds);
            num_wrong++;
        }
        free(path);
    }
    assert_int_equal(num_wrong, 0);
    weir_error error = { 0 };
    assert_int_equal(weir_output_check("x/a.mp4", WEIR_OUTPUT_RAW, NULL, &error), WEIR_EINVAL);
    assert_string_equal(error.message,
                        "x/a.mp4: raw video is written, but this is the name of another kind of file: end it in "
                        ".raw, .rgb, .yuv");
    assert_int_equal(error.library_code, 0);
    assert_int_equal(weir_output_check(".mp4", WEIR_OUTPUT_RAW, NULL, NULL), WEIR_OK);
    assert_int_equal(weir_output_check("x/a.mp4", WEIR_OUTPUT_RAW, &(weir_output_rules){ .force = true }, NULL),
                     WEIR_OK);
}

/* ---- rules --------------------------------------------------------------------------------------------------------- */

/* The answer, with a message that has this in it (NULL = none). */
static void expect_answer(const char *path, weir_output_kind kind, const weir_output_rules *rules, int status,
                          const char *reason)
{
    weir_error error = { 0 };
    int got = weir_output_check(path, kind, rules, &error);
    if (got != status || error.status != status || error.library_code || (reason && !strstr(error.message, reason)))
        fail_msg("%s, kind %d: %s: %s", path ? path : "NULL", (int)kind, weir_status_name(got), error.message);
}

TEST_CASE(an_input_is_never_replaced_by_whatever_name)
{
    char *input = path_in(folder, "in.db"), *link_there = path_in(folder, "link"), *hard = path_in(folder, "hard"),
         *log = path_in(folder, "in.db-wal"), *list = path_in(folder, "in.db-list"), *with_scheme = NULL,
         *missing = path_in(folder, "missing.db"), *by_folder = path_in(folder, "../"), *journal = NULL;
    assert_true(asprintf(&with_scheme, "file:%s", input) > 0);
    assert_true(asprintf(&journal, "%s/../%s/missing.db-journal", folder, strrchr(folder, '/') + 1) > 0);
    write_file(input, "1");
    write_file(log, "1");
    assert_int_equal(symlink(input, link_there), 0);
    assert_int_equal(link(input, hard), 0);
    const char *const inputs[] = { NULL, by_folder, with_scheme, missing };
    const weir_output_rules rules = { .force = true, .inputs = inputs, .num_inputs = LENGTH(inputs) };
    expect_answer(input, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "in.db would replace file:");
    expect_answer(link_there, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "which is read");
    expect_answer(hard, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "which is read");
    expect_answer(log, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "which is read");
    expect_answer(missing, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "which is read");
    expect_answer(journal, WEIR_OUTPUT_RAW, &rules, WEIR_EINVAL, "which is read");
    expect_answer(list, WEIR_OUTPUT_RAW, &rules, WEIR_OK, NULL);
    expect_answer("/dev/null", WEIR_OUTPUT_RAW,
                  &(weir_output_rules){ .inputs = (const char *const[]){ "/dev/null" }, .num_inputs = 1 }, WEIR_OK,
                  NULL);
    assert_true(weir_output_is_same(missing, missing));
    assert_false(weir_output_is_same(missing, list));
    assert_false(weir_output_is_same(missing, input));
    assert_false(weir_output_is_same(NULL, input));
    assert_false(weir_output_is_same(input, NULL));
    assert_false(weir_output_is_same("/nowhere/a", "/nowhere/a")); /* nothing can be there */
    free(input);
    free(link_there);
    free(hard);
    free(log);
    free(list);
    free(with_scheme);
    free(missing);
    free(by_folder);
    free(journal);
}

/* Makes the descriptor another file for a while. */
static int redirect(int fd, const char *path)
{
    int before = fcntl(fd, F_DUPFD_CLOEXEC, 10), to = open(path, O_RDWR | O_CLOEXEC);
    fflush(NULL);
    assert_true(before >= 0 && to >= 0 && dup2(to, fd) == fd);
    close(to);
    return before;
}

static void restore(int fd, int before)
{
    assert_int_equal(dup2(before, fd), fd);
    close(before);
}

TEST_CASE(stdin_is_an_input_and_what_is_printed_stays)
{
    static const char *const names_of_stdin[] = { "-", "pipe:", "pipe:0" };
    char *path = path_in(folder, "std"), *other = path_in(folder, "std2");
    write_file(path, "1");
    for (size_t i = 0; i < LENGTH(names_of_stdin); i++) {
        const weir_output_rules rules = { .inputs = &names_of_stdin[i], .num_inputs = 1 };
        int before = redirect(STDIN_FILENO, path);
        int status = weir_output_check(path, WEIR_OUTPUT_RAW, &rules, NULL);
        int status_of_other = weir_output_check(other, WEIR_OUTPUT_RAW, &rules, NULL);
        restore(STDIN_FILENO, before);
        assert_int_equal(status, WEIR_EINVAL);
        assert_int_equal(status_of_other, WEIR_OK);
    }
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        const char *const inputs[] = { path };
        weir_error error = { 0 };
        int before = redirect(fd, path);
        int status = weir_output_check(path, WEIR_OUTPUT_RAW, &(weir_output_rules){ .force = true }, &error);
        int status_of_stdout =
            weir_output_check("-", WEIR_OUTPUT_RAW, &(weir_output_rules){ .inputs = inputs, .num_inputs = 1 }, NULL);
        restore(fd, before);
        assert_int_equal(status, WEIR_EINVAL);
        assert_int_equal(error.library_code, 0);
        assert_non_null(strstr(error.message, "is where stdout or stderr goes"));
        assert_int_equal(status_of_stdout, fd == STDOUT_FILENO ? WEIR_EINVAL : WEIR_OK);
        expect_answer(path, WEIR_OUTPUT_RAW, NULL, WEIR_OK, NULL);
    }
    expect_answer("-", WEIR_OUTPUT_PNG, NULL, WEIR_OK, NULL);
    free(path);
    free(other);
}

TEST_CASE(an_answer_names_what_is_wrong)
{
    char *text = path_in(folder, "text"), *base = path_in(folder, "is.db");
    write_file(text, "some notes\n");
    write_file(base, "SQLite format 3");
    expect_answer(NULL, WEIR_OUTPUT_RAW, NULL, WEIR_EINVAL, "path is NULL");
    expect_answer("", WEIR_OUTPUT_RAW, NULL, WEIR_EINVAL, "the path of an output is empty");
    expect_answer(text, (weir_output_kind)16, NULL, WEIR_EINVAL, "16 is not a weir_output_kind");
    expect_answer(text, WEIR_OUTPUT_NPY, NULL, WEIR_EINVAL,
                  "text is there and is not a .npy file: give another path");
    expect_answer(text, WEIR_OUTPUT_DATABASE, NULL, WEIR_EDATA, "text is there and is not a database");
    expect_answer(text, WEIR_OUTPUT_INDEX, NULL, WEIR_EDATA, "text is there and is not an index");
    expect_answer(text, WEIR_OUTPUT_FOLDER, NULL, WEIR_EINVAL, "text is there and is not a folder");
    expect_answer(folder, WEIR_OUTPUT_FOLDER, NULL, WEIR_OK, NULL);
    expect_answer(base, WEIR_OUTPUT_DATABASE, NULL, WEIR_OK, NULL);
    expect_answer(base, WEIR_OUTPUT_INDEX, NULL, WEIR_OK, NULL); /* it is added to it */
    expect_answer(folder, WEIR_OUTPUT_NPY, NULL, WEIR_OK, NULL); /* opening it says why it cannot be written */
    free(text);
    free(base);
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
