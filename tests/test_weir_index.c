/* weir index: from folders and lists, and its output. */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test_case.h"
#include "tools/cli/path_list.h"

static char *work; /* with clips/run/a.mp4, clips/walk/b.mp4 and clips/walk/broken.mp4 in it */

static void put_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", work, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    char command[1024];
    work = make_folder();
    snprintf(
        command, sizeof command,
        "cd '%s' && mkdir -p clips/run clips/walk && ffmpeg -nostdin -loglevel error -f lavfi -i "
        "testsrc2=s=64x48:r=10 -frames:v 20 -pix_fmt yuv420p clips/run/a.mp4 && cp clips/run/a.mp4 clips/walk/b.mp4 "
        "&& echo none > clips/walk/broken.mp4",
        work);
    return system(command) == 0 ? chdir(work) : -1; /* NOLINT: the test's own path */
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(work);
    return 0;
}

/* words: up to seven arguments. */
static struct program run(const char *const words[7])
{
    struct program program;
    char *argv[10] = { (char *)(uintptr_t)program_path("WEIR_TOOL") };
    for (int i = 0; i < 7 && words[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    program_run(&program, work, argv);
    return program;
}

#define WEIR(...) run((const char *const[7]){ __VA_ARGS__ })
#define RUN(...)  WEIR("index", __VA_ARGS__)

static void assert_done(struct program program, const char *out, const char *err)
{
    if (program.status != 0 || !strstr(program.out, out) || !strstr(program.err, err))
        fail_msg("status %d, stdout: %s, stderr: %s", program.status, program.out, program.err);
    program_free(&program);
}

static void assert_refused(struct program program, int status, const char *named)
{
    if (program.status != status || !strstr(program.err, named) || strchr(program.err, '\n')[1])
        fail_msg("status %d, stderr: %s", program.status, program.err);
    program_free(&program);
}

TEST_CASE(a_folder_becomes_an_index_that_answers)
{
    assert_done(RUN("clips/"), "", "clips.weir: 3 files: 3 read, 0 unchanged, 1 broken");
    assert_done(RUN("clips", "-o", "other.weir"), "", "weir index other.weir --list broken says why\n");
    assert_done(RUN("clips"), "", "3 files: 0 read, 3 unchanged");
    assert_done(RUN("clips.weir"), "complete\n    3       1        0        2      40", "");
    assert_done(RUN("clips.weir", "--list", "classes", "--csv"), "walk,2,1,20,2", "");
    assert_done(RUN("clips.weir", "--list", "broken", "--json"), "\"path\": \"walk/broken.mp4\", \"size_bytes\": 5",
                "");
    assert_done(RUN("clips.weir", "--list", "clips", "--where", "label = 'run'", "--csv"), "\n0,run/a.mp4,run,", "");
}

TEST_CASE(a_folder_of_other_videos_becomes_an_index_too)
{
    assert_int_equal(
        system(
            "mkdir -p others && cp clips/run/a.mp4 others/a.MP4 && cp clips/run/a.mp4 others/b.mov && " /* NOLINT */
            "echo no > others/c.txt"),
        0);
    assert_done(RUN("others"), "", "others.weir: 2 files: 2 read, 0 unchanged, 0 broken");
    assert_refused(RUN("others", "--glob", "*.mp4", "-o", "none.weir"), 2,
                   "no file in others or its subfolders matches *.mp4; it has 2 other videos: 1 .mov, 1 .MP4");
}

TEST_CASE(lists_bring_labels)
{
    put_file("list.csv", "file,class\nclips/run/a.mp4,\"a, \"\"b\"\"\"\nclips/walk/b.mp4,c\n");
    put_file("list.json", "[{\"path\": \"clips/run/a.mp4\", \"label\": \"\\u00e4\"}, \"clips/walk/b.mp4\"]");
    put_file("list.jsonl",
             "{\"path\": \"clips/run/a.mp4\", \"label\": 7}\n{\"label\": null, \"path\": \"clips/walk/b.mp4\"}\n");
    put_file("list.txt", "# two\nclips/run/a.mp4\r\n\nclips/walk/b.mp4\n");
    assert_done(RUN("list.csv", "--path-column", "file", "--label-column", "class"), "",
                "list.weir: 2 files: 2 read");
    assert_done(RUN("list.weir", "--list", "classes", "--csv"), "\"a, \"\"b\"\"\",1,", "");
    assert_done(RUN("list.json", "-o", "json.weir"), "", "2 files: 2 read");
    assert_done(RUN("json.weir", "--list", "classes", "--csv"), "\xc3\xa4,1,", "");
    assert_done(RUN("list.jsonl", "-o", "jsonl.weir"), "", "2 files: 2 read");
    assert_done(RUN("jsonl.weir", "--list", "classes", "--csv"), "\n7,1,", "");
    assert_done(RUN("list.txt", "-o", "txt.weir"), "", "2 files: 2 read");
    assert_done(RUN("clips/run/a.mp4", "clips/walk/b.mp4", "-o", "files.weir"), "", "2 files: 2 read");
}

TEST_CASE(the_users_columns_are_kept_and_are_conditions)
{
    put_file("own.csv", "path,label,split,score,id\nclips/run/a.mp4,x,train,3,007\nclips/walk/b.mp4,y,val,0.5,\n");
    assert_done(RUN("own.csv"), "", "own.weir: 2 files: 2 read");
    assert_done(RUN("own.weir", "--list", "clips", "--json"), "\"split\": \"train\", \"score\": 3, \"id\": \"007\"",
                "");
    assert_done(RUN("own.weir", "--list", "clips", "--csv", "--where", "split = 'val' AND score < 1"), ",val,0.5,",
                "");
    assert_refused(RUN("own.weir", "--list", "clips", "--where", "score > 3"), 3, "no clip of own.weir");

    /* other values: nothing is read again; other columns take the place of the old ones */
    put_file("own.csv", "path,label,split,score,id\nclips/run/a.mp4,x,train,4,007\nclips/walk/b.mp4,y,val,0.5,\n");
    assert_done(RUN("own.csv"), "", "own.weir: 2 files: 0 read, 2 unchanged");
    assert_done(RUN("own.weir", "--list", "clips", "--csv", "--where", "score = 4"), ",train,4,007", "");
    put_file("own.jsonl", "{\"path\": \"clips/run/a.mp4\", \"n\": 12345678901234567, \"k\": {\"a\": [1]}}\n"
                          "{\"path\": \"clips/walk/b.mp4\", \"n\": null, \"t\": \"5\"}\n");
    assert_done(RUN("own.jsonl", "-o", "own.weir"), "", "2 files");
    assert_done(RUN("own.weir", "--list", "clips", "--json"), "\"n\": 12345678901234567, \"k\": \"{\\\"a\\\":[1]}\"",
                "");
    assert_done(RUN("own.weir", "--list", "clips", "--where", "t = '5' AND n IS NULL", "--csv"), "b.mp4", "");
    assert_refused(RUN("own.weir", "--where", "score = 4"), 2, "no such column: score");
    put_file("own.txt", "clips/run/a.mp4\nclips/walk/b.mp4\n");
    assert_done(RUN("own.txt", "-o", "own.weir"), "", "2 files: 0 read, 2 unchanged");
    assert_refused(RUN("own.weir", "--where", "n = 1"), 2, "no such column: n");

    put_file("twice.csv", "path,start,end\nclips/run/a.mp4,0,0.1\nclips/run/a.mp4,0.1,0.2\n");
    assert_done(RUN("twice.csv"), "", "twice.weir: 2 clips\ntwice.weir: 1 file: 1 read");
}

TEST_CASE(what_an_index_cannot_keep_of_a_list_is_refused_by_name)
{
    put_file("cut.csv", "path,label,Width\nclips/run/a.mp4,x,0\n");
    put_file("same.csv", "path,label,split,split\nclips/run/a.mp4,x,0,1\n");
    put_file("none.csv", "path,label,\nclips/run/a.mp4,x,0\n");
    put_file("long.csv", "path,label\nclips/run/a.mp4,x,1\n");
    put_file("word.csv", "path,start\nclips/run/a.mp4,1\nclips/run/a.mp4,1:30\n");
    put_file("back.csv", "path,start,end\nclips/run/a.mp4,1,0.5\n");
    put_file("zero.csv", "path,end\nclips/run/a.mp4,0\n");
    assert_refused(RUN("cut.csv"), 2, "the column \"Width\" of the list has the name of a column of the index");
    assert_refused(RUN("same.csv"), 2, "same.csv, line 1: two columns have the same name");
    assert_refused(RUN("none.csv"), 2, "none.csv, line 1: a column has no name");
    assert_refused(RUN("long.csv"), 2, "long.csv, line 2: more cells than columns");
    assert_refused(RUN("word.csv"), 2, "\"start\" is \"1:30\", not a number of seconds");
    assert_refused(RUN("back.csv"), 2, "the end is not after the start");
    assert_refused(RUN("zero.csv"), 2, "the end is not after the start");
}

TEST_CASE(each_row_of_a_list_is_kept)
{
    put_file("rows.csv",
             "path,label,from,to\nclips/run/a.mp4,x,0.5,1.5\nclips/walk/b.mp4,x,,\nclips/run/a.mp4,y,1,\n");
    put_file("rows.json", "[{\"path\": \"clips/run/a.mp4\", \"end\": \"1.5\"}, \"clips/run/a.mp4\", {\"path\": "
                          "\"clips/run/a.mp4\", \"start\": 1}]");
    put_file("rows.txt", "clips/run/a.mp4\nclips/run/a.mp4\n");
    for (int i = 0; i < 2; i++)
        assert_done(RUN("rows.csv", "--start-column=from", "--end-column=to"), "",
                    i ? "2 unchanged" : "2 files: 2 read");
    assert_done(RUN("rows.weir", "--list", "clips", "--csv"), "\n0,clips/run/a.mp4,x,0.5,1.5,", "");
    assert_done(RUN("rows.weir", "--list", "clips", "--csv"), "\n1,clips/run/a.mp4,y,1,,", "");
    assert_done(RUN("rows.weir", "--list", "clips", "--csv"), "\n2,clips/walk/b.mp4,x,,,", "");
    assert_done(RUN("rows.weir", "--list", "classes", "--csv"), "x,2,0,40,3", "");
    assert_done(RUN("rows.weir", "--list", "classes", "--csv", "--where", "start >= 1"), "y,1,0,20,1", "");
    assert_done(RUN("rows.json", "-o", "rowsjson.weir"), "", "1 file: 1 read");
    assert_done(RUN("rowsjson.weir", "--list", "clips", "--csv"), "\n0,clips/run/a.mp4,,,1.5,", "");
    assert_done(RUN("rowsjson.weir", "--list", "clips", "--csv"), "\n2,clips/run/a.mp4,,1,,", "");
    put_file("rowsf.csv",
             "path,start_frame,end_frame\nclips/run/a.mp4,3,9\nclips/run/a.mp4,,4\nclips/run/a.mp4,7,\n");
    assert_done(RUN("rowsf.csv"), "", "3 clips");
    assert_done(RUN("rowsf.weir", "--list", "clips", "--csv", "--where", "end_frame - start_frame = 6"), ",3,9,", "");
    assert_done(RUN("rowsf.weir", "--list", "clips", "--csv"), "\n2,clips/run/a.mp4,,,,7,,", "");
    put_file("rowsb.csv", "path,start,end_frame\nclips/run/a.mp4,3,9\n");
    assert_refused(RUN("rowsb.csv"), 2, "a start or end in seconds and in frames");
    put_file("rowsc.csv", "path,start_frame\nclips/run/a.mp4,-1\n");
    assert_refused(RUN("rowsc.csv"), 2, "\"start_frame\" is \"-1\", not the number of a frame");
    assert_done(RUN("rows.txt", "-o", "rowstxt.weir"), "", "1 file: 1 read");
    assert_done(RUN("rowstxt.weir", "--csv"), "\n2,0,0,0,40,4,", "");
}

TEST_CASE(members_of_archives_are_indexed)
{
    assert_int_equal(system("mkdir -p shards && tar -cf shards/one.tar -C clips run walk"), 0); /* NOLINT */
    assert_done(RUN("shards", "--tar"), "", "shards.weir: 3 files: 3 read, 0 unchanged, 1 broken");
    assert_done(RUN("shards", "--tar"), "", "3 files: 0 read, 3 unchanged");
    assert_done(RUN("shards.weir", "--list", "clips", "--csv"), "\n0,one.tar!run/a.mp4,run,", "");
    assert_done(RUN("shards/one.tar", "--tar", "--glob", "b.*", "-o", "one.weir"), "", "one.weir: 1 file: 1 read");
    assert_done(RUN("one.weir", "--list", "clips", "--csv"), "\n0,shards/one.tar!walk/b.mp4,walk,", "");
    assert_refused(RUN("clips", "--tar", "-o", "none.weir"), 2,
                   "no file in clips or its subfolders matches *.tar; it has 3 other videos: 3 .mp4");
}

/* A header of a tar archive, and the data, in whole blocks. */
static void put_member(FILE *tar, const char *name, char type, const char *data, size_t size)
{
    char block[512] = "";
    unsigned sum = 8 * ' ';
    snprintf(block, 100, "%s", name);
    snprintf(block + 100, 8, "%07o", 0644U);
    snprintf(block + 124, 12, "%011zo", size);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    block[155] = ' ';
    assert_int_equal(fwrite(block, 1, sizeof block, tar), sizeof block);
    memset(block, 0, sizeof block);
    assert_int_equal(fwrite(data, 1, size, tar), size);
    size_t padding = (sizeof block - size % sizeof block) % sizeof block;
    assert_int_equal(fwrite(block, 1, padding, tar), padding);
}

/* Headers of headers: libarchive gives up after some. */
TEST_CASE(index_and_record_find_the_same_in_an_archive)
{
    static const int num_headers[] = { 0, 1, 20, 50000 };
    static char clip[1 << 20];
    FILE *file = fopen("clips/run/a.mp4", "rb");
    assert_non_null(file);
    size_t size = fread(clip, 1, sizeof clip, file);
    fclose(file);
    for (size_t i = 0; i < sizeof num_headers / sizeof num_headers[0]; i++) {
        unlink("pax.weir");
        unlink("pax.db");
        FILE *tar = fopen("pax.tar", "wb");
        assert_non_null(tar);
        put_member(tar, "first.mp4", '0', clip, size);
        for (int j = 0; j < num_headers[i]; j++)
            put_member(tar, "pax", 'x', "16 path=pax.mp4\n", 16);
        put_member(tar, "pax.mp4", '0', clip, size);
        assert_int_equal(fclose(tar), 0);
        struct program index = RUN("pax.tar", "--tar", "-o", "pax.weir");
        struct program record = WEIR("record", "pax.tar", "--tar", "-q", "--db-path", "pax.db", "--all-items");
        struct program clips = RUN("pax.weir", "--csv"), items = WEIR("failures", "pax.db");
        bool is_broken = strstr(index.err, "1 broken");
        assert_int_equal(is_broken, i == 3);
        assert_int_equal(is_broken, strstr(record.err, "1 of 2 files failed") != NULL);
        assert_int_equal(is_broken, strstr(items.out, "Damaged tar archive") != NULL);
        assert_non_null(strstr(clips.out, is_broken ? "\n2,1,0," : "\n2,0,0,"));
        program_free(&index);
        program_free(&record);
        program_free(&clips);
        program_free(&items);
    }
    assert_done(RUN("pax.weir", "--list", "broken"), "damaged: Damaged tar archive", "");
}

/* The file that can be reached is read, and what is left out is printed. */
TEST_CASE(a_tree_deeper_than_the_longest_path_is_told)
{
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    assert_int_equal(system("mkdir deep && cp clips/run/a.mp4 deep/"), 0); /* NOLINT: the test's own paths */
    int folder = open("deep", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 25; i++) {
        assert_int_equal(mkdirat(folder, name, 0755), 0);
        int next = openat(folder, name, O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(folder);
        folder = next;
    }
    close(folder);
    struct program programs[] = {
        RUN("deep"),
        WEIR("record", "deep", "-q", "--db-path", "deep.db"),
        WEIR("frames", "deep", "--count", "2", "-o", "deepframes"),
    };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(programs[i].status, 1);
        assert_non_null(strstr(programs[i].err, "cannot read folder: File name too long: "));
        assert_non_null(strstr(programs[i].err, "1 folder could not be read"));
        program_free(&programs[i]);
    }
    assert_int_equal(access("deepframes/a.mp4.npy", F_OK), 0);
    assert_done(WEIR("summary", "--db", "deep.db"), "1 folder could not be read", "");
}

TEST_CASE(bad_input_gets_one_line)
{
    put_file("bad.csv", "path,label\nclips/run/a.mp4,\"open\n");
    put_file("columns.csv", "name,label\na,b\n");
    put_file("bad.json", "[{\"path\": \"a\", }, 3]");
    put_file("empty.txt", "\n");
    assert_int_equal(system("printf 'a\\nb\\0c\\n' >nul.txt; cp nul.txt nul.csv; : >none.txt"), 0); /* NOLINT */
    assert_refused(RUN("nowhere"), 2, "nowhere does not exist");
    put_file("no-index.weir", "text");
    assert_refused(RUN("no-index.weir"), 2, "no-index.weir: not an index, or a damaged one; delete it");
    assert_refused(RUN("clips", "-o", "/dev/null"), 2, "/dev/null: not a regular file, so it cannot be the index");
    assert_refused(RUN("clips", "-o", "/nowhere/at/all.weir"), 2, "/nowhere/at/all.weir: No such file or directory");
    assert_refused(RUN("clips", "--list", "classes"), 2, "clips is not one");
    assert_refused(RUN("clips", "clips"), 2, "one folder at a time");
    assert_refused(RUN("bad.csv"), 2, "a quote is not closed");
    assert_refused(RUN("columns.csv"), 2, "no column \"path\"");
    assert_refused(RUN("bad.json"), 2, "bad.json");
    assert_refused(RUN("empty.txt"), 2, "empty.txt: no path in it");
    assert_refused(RUN("none.txt"), 2, "none.txt: no path in it");
    assert_refused(RUN("nul.txt"), 2, "nul.txt: line 2: it has a NUL byte");
    assert_refused(RUN("nul.csv"), 2, "nul.csv: line 2: it has a NUL byte");
    assert_refused(RUN("clips", "--check", "some"), 2, "--check");
    assert_refused(RUN("clips", "--glob", "*.avi", "-o", "none.weir"), 2,
                   "no file in clips or its subfolders matches *.avi");
    assert_int_not_equal(access("none.weir", F_OK), 0);
    assert_done(RUN("clips", "-o", "asked.weir"), "", "");
    assert_refused(RUN("asked.weir", "--where", "nosuch = 1"), 2, "no such column: nosuch");
    assert_refused(RUN("asked.weir", "--list", "clips", "--where", "duration > 9"), 3, "no clip of asked.weir");
    assert_done(RUN("clips/run", "-o", "whole.weir"), "", "");
    assert_refused(RUN("whole.weir", "--list", "broken"), 3, "whole.weir has no such clip");
}

/* ---- the reader of lists: whatever the bytes are, it ends, and says what is wrong --------------------------------- */

/* FFmpeg's prefix is not part of a name, so such a file can be opened, but its size and time cannot be read. */
TEST_CASE(a_file_whose_size_is_not_known_is_broken)
{
    put_file("prefixed.txt", "file:clips/run/a.mp4\n");
    assert_done(RUN("prefixed.txt", "-o", "prefixed.weir"), "", "1 broken among those read");
    assert_done(RUN("prefixed.weir", "--list", "broken"), "its size and time are not known: No such file", "");
}

TEST_CASE(lists_of_any_bytes_are_read_or_refused)
{
    static const char seed[] =
        "[{\"path\":\"a\\u00e4\\ud83d\\ude00\\n\",\"label\":[{\"x\":1}],\"k\":null},\"b\"]\n{\"path\":\"c\"}";
    static const char *const endings[] = { "json", "jsonl", "csv", "txt" };
    char text[sizeof seed], name[64], path[512];
    uint32_t random = 1;
    for (int round = 0; round < 4000; round++) {
        memcpy(text, seed, sizeof seed);
        for (int i = 0; i < 1 + round % 5; i++) {
            random = random * 1664525 + 1013904223;
            size_t at = (random >> 8) % (sizeof seed - 1);
            text[at] = "\"\\{}[],:u\n\r0a"[(random >> 4) % 13];
            if (round % 7 == 0)
                text[at] = '\0';
        }
        snprintf(name, sizeof name, "any.%s", endings[round % 4]);
        put_file(name, text);
        snprintf(path, sizeof path, "%s/%s", work, name);
        path_list list;
        char problem[512] = "";
        if (!path_list_read(path,
                            &(path_list_names){ .path = "path",
                                                .label = "label",
                                                .start = "start",
                                                .end = "end",
                                                .start_frame = "first",
                                                .end_frame = "behind" },
                            &list, problem))
            assert_string_not_equal(problem, "");
        path_list_free(&list);
    }
}

TEST_CASE(a_file_that_was_cut_off_is_told)
{
    char command[1024];
    snprintf(
        command, sizeof command,
        "cd '%s' && mkdir -p cut && ffmpeg -nostdin -loglevel error -i clips/run/a.mp4 -c copy -movflags faststart "
        "cut/whole.mp4 && head -c $(( $(wc -c < cut/whole.mp4) * 7 / 10 )) cut/whole.mp4 > cut/cut.mp4",
        work);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own path */
    assert_done(RUN("cut"), "", "1 of them lacks frames that the header announces: cut off?\n");
    assert_done(RUN("cut.weir", "--list", "broken"), " missing frames", "");
    assert_done(RUN("cut.weir", "--list", "clips", "--where", "num_missing = 0"), "whole.mp4", "");
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
