/* The index of a dataset: building and rebuilding it, its content, and a pipeline over it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_case.h"
#include <sqlite3.h>

#include <weir/collate.h>
#include <weir/dataset.h>
#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>

#include "tests/clips.h"

/* ---- a folder with labels ------------------------------------------------------------------------------------ */

/* DIR/run/a.mp4, DIR/run/b.mp4, DIR/walk/c.mp4, DIR/walk/broken.mp4, DIR/d.mp4 */
static const char *make_tree(const char *name)
{
    char path[512];
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *root = clips_path(name);
    clips_make_folder(root);
    const char *const folders[] = { "run", "walk" };
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        clips_make_folder(path);
    }
    const char *const files[][2] = {
        { "run/a.mp4", clip }, { "run/b.mp4", longer }, { "walk/c.mp4", clip }, { "d.mp4", clip }
    };
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i][0]);
        assert_int_equal(link(files[i][1], path), 0);
    }
    snprintf(path, sizeof path, "%s/walk/broken.mp4", root);
    clips_write_text(path, "no video\n");
    return root;
}

static weir_dataset_progress build_with(const char *index, const weir_dataset_build_options *options)
{
    weir_dataset_progress progress;
    weir_error error = { 0 };
    if (weir_dataset_build(index, options, &progress, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return progress;
}

static weir_dataset_progress build(const char *index, const char *root)
{
    return build_with(index, &(weir_dataset_build_options){ .root = root });
}

TEST_CASE(special_names_of_sqlite_are_no_index)
{
    static const char *const names[] = { ":memory:", "file:clips.weir" };
    for (int i = 0; i < 2; i++) {
        weir_dataset *dataset;
        weir_dataset_progress progress;
        weir_error error = { 0 };
        const char *missing = "missing.mp4";
        weir_dataset_build_options options = { .paths = &missing, .num_paths = 1 };
        assert_int_equal(weir_dataset_build(names[i], &options, &progress, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "special name of SQLite"));
        error = (weir_error){ 0 };
        assert_int_equal(weir_dataset_open(names[i], NULL, &dataset, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "special name of SQLite"));
        assert_int_not_equal(access(names[i], F_OK), 0);
    }
}

static weir_dataset *open_with(const char *index, const weir_dataset_options *options)
{
    weir_dataset *dataset;
    weir_error error = { 0 };
    if (weir_dataset_open(index, options, &dataset, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return dataset;
}

static weir_entry *entry_of(weir_dataset *dataset, uint64_t number)
{
    weir_sampler_items items = weir_dataset_items(dataset);
    weir_entry *entry = weir_entry_new();
    entry->number = number;
    assert_int_equal(items.fill(items.self, entry, NULL), WEIR_OK);
    return entry;
}

static void touch(const char *root, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){ { 1, 5 }, { 1, 5 } }, 0), 0);
}

/* ---- building ------------------------------------------------------------------------------------------------ */

TEST_CASE(clips_are_numbered_by_path_and_labelled_by_folder)
{
    const char *index = clips_path("tree.weir");
    weir_dataset_progress progress = build(index, make_tree("tree"));
    assert_int_equal(progress.num_total, 5);
    assert_int_equal(progress.num_found, 5);
    assert_int_equal(progress.num_indexed, 5);
    assert_int_equal(progress.num_broken, 1);
    weir_dataset *dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_count(dataset), 4);
    assert_int_equal(weir_dataset_num_classes(dataset), 2);
    assert_string_equal(weir_dataset_class_name(dataset, 1), "walk");
    static const char *const paths[] = { "tree/d.mp4", "tree/run/a.mp4", "tree/run/b.mp4", "tree/walk/c.mp4" };
    static const int64_t classes[] = { -1, 0, 0, 1 };
    for (uint64_t i = 0; i < 4; i++) {
        weir_entry *entry = entry_of(dataset, i);
        assert_string_equal(entry->path + strlen(entry->path) - strlen(paths[i]), paths[i]);
        assert_int_equal(entry->class_id, classes[i]);
        assert_non_null(entry->packets);
        weir_entry_free(entry);
    }
    uint32_t *labels;
    weir_error error = { 0 };
    assert_int_equal(weir_dataset_read_classes(dataset, &labels, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "clip 0"));
    weir_dataset_close(dataset);
}

TEST_CASE(a_second_build_reads_only_what_has_changed)
{
    char path[512], before[512];
    const char *index = clips_path("again.weir");
    const char *root = make_tree("again");
    build(index, root);
    weir_dataset *dataset = open_with(index, NULL);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);

    weir_dataset_progress progress = build(index, root);
    assert_int_equal(progress.num_unchanged, 5);
    assert_int_equal(progress.num_indexed, 0);
    touch(root, "run/a.mp4"); /* and d.mp4 and c.mp4, which are links to the same file */
    progress = build(index, root);
    assert_int_equal(progress.num_unchanged, 2);
    assert_int_equal(progress.num_indexed, 3);
    assert_int_equal(progress.num_removed, 0);
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_fingerprint(dataset), fingerprint);
    weir_dataset_close(dataset);

    snprintf(before, sizeof before, "%s/run/b.mp4", root);
    snprintf(path, sizeof path, "%s/walk/0.mp4", root);
    assert_int_equal(rename(before, path), 0);
    progress = build(index, root);
    assert_int_equal(progress.num_indexed, 1);
    assert_int_equal(progress.num_removed, 1);
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_count(dataset), 4);
    assert_int_not_equal(weir_dataset_fingerprint(dataset), fingerprint);
    weir_entry *entry = entry_of(dataset, 2);
    assert_non_null(strstr(entry->path, "walk/0.mp4"));
    weir_entry_free(entry);
    weir_dataset_close(dataset);
}

static int64_t read_integer(const char *index, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

/* Its clips, their numbers and their packets stay, until the folder can be read and they are not there. */
TEST_CASE(a_folder_that_is_unreadable_for_a_moment_keeps_its_clips)
{
    char folder[512], clip[512];
    const char *index = clips_path("moment.weir"), *root = make_tree("moment");
    build(index, root);
    weir_dataset *dataset = open_with(index, NULL);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);
    assert_int_equal(read_integer(index, "SELECT count(*) FROM packets"), 4);

    snprintf(folder, sizeof folder, "%s/run", root);
    snprintf(clip, sizeof clip, "%s/d.mp4", root);
    assert_int_equal(unlink(clip), 0); /* whether this one is gone is also not decided now */
    assert_int_equal(chmod(folder, 0), 0);
    assert_int_equal(chmod(index, 0666), 0);
    assert_int_equal(chmod(clips_path(""), 0777), 0);
    if (!clips_drop_root()) {
        print_message("permissions apply to nobody here\n");
        skip();
    }
    weir_dataset_progress progress = build(index, root);
    clips_regain_root();
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(progress.num_unreadable_folders, 1);
    assert_int_equal(progress.num_found, 2);
    assert_int_equal(progress.num_unchanged, 2);
    assert_int_equal(progress.num_removed, 0);
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_count(dataset), 4);
    assert_int_equal(weir_dataset_fingerprint(dataset), fingerprint);
    weir_dataset_close(dataset);
    assert_int_equal(read_integer(index, "SELECT count(*) FROM packets"), 4);

    progress = build(index, root);
    assert_int_equal(progress.num_unreadable_folders, 0);
    assert_int_equal(progress.num_unchanged, 4);
    assert_int_equal(progress.num_removed, 1);
    assert_int_equal(read_integer(index, "SELECT count(*) FROM packets"), 3);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[4096];
    size_t num_bytes;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    while ((num_bytes = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, num_bytes, out), num_bytes);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* The index then has the table and the number of frames that an index made anew has. */
static void assert_replaced(const char *index, const char *path, const char *by, int64_t num_frames)
{
    struct stat before;
    const char *fresh = clips_path("fresh.weir");
    weir_dataset_build_options options = { .paths = &path, .num_paths = 1 };
    assert_int_equal(stat(path, &before), 0);
    copy_file(by, path);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){ before.st_mtim, before.st_mtim }, 0), 0);
    assert_int_equal(build_with(index, &options).num_indexed, 1);
    assert_int_equal(read_integer(index, "SELECT num_frames FROM clip"), num_frames);
    assert_int_equal(read_integer(index, "SELECT count(*) FROM packets"), num_frames > 0);
    if (num_frames == 0)
        return;
    unlink(fresh);
    build_with(fresh, &options);
    weir_dataset *datasets[] = { open_with(index, NULL), open_with(fresh, NULL) };
    weir_entry *entries[] = { entry_of(datasets[0], 0), entry_of(datasets[1], 0) };
    assert_int_equal(entries[0]->packets_bytes, entries[1]->packets_bytes);
    assert_memory_equal(entries[0]->packets, entries[1]->packets, entries[1]->packets_bytes);
    for (int i = 0; i < 2; i++) {
        weir_entry_free(entries[i]);
        weir_dataset_close(datasets[i]);
    }
}

/* Only its size differs. */
TEST_CASE(a_file_that_is_replaced_under_the_same_time_is_read_again)
{
    const char *index = clips_path("replaced.weir");
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *path = clips_path("replaced.mp4"), *text = clips_path("replaced.txt");
    copy_file(clip, path);
    clips_write_text(text, "no video\n");
    build_with(index, &(weir_dataset_build_options){ .paths = &path, .num_paths = 1 });
    assert_int_equal(read_integer(index, "SELECT count(*) FROM packets"), 1);
    assert_replaced(index, path, longer, 30);
    assert_replaced(index, path, text, 0);
    assert_replaced(index, path, clip, 10);
}

static bool stop_at_once(void *self, const weir_dataset_progress *progress)
{
    (void)self;
    (void)progress;
    return false;
}

static bool go_on(void *self, const weir_dataset_progress *progress)
{
    *(weir_dataset_progress *)self = *progress;
    return true;
}

TEST_CASE(a_build_that_was_stopped_goes_on)
{
    enum { COUNT = 6 };
    const char *index = clips_path("stopped.weir");
    char names[COUNT][512];
    const char *paths[COUNT];
    weir_error error = { 0 };
    weir_dataset *dataset;
    weir_dataset_progress progress, reported = { 0 };
    const char *clip =
        clips_make("slow.mp4", "-f lavfi -i testsrc2=s=640x480:d=20:r=30 -c:v libx264 -preset ultrafast "
                               "-pix_fmt yuv420p");
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%s-%02d.mp4", clips_path("stop"), i);
        assert_int_equal(link(clip, names[i]), 0);
        paths[i] = names[i];
    }
    weir_dataset_build_options options = {
        .paths = paths, .num_paths = COUNT, .concurrency = 1, .progress = stop_at_once
    };
    assert_int_equal(weir_dataset_build(index, &options, &progress, &error), WEIR_ESTOPPED);
    assert_in_range(progress.num_indexed, 0, COUNT - 1); /* the first one, if it was quick */
    error = (weir_error){ 0 };
    assert_int_equal(weir_dataset_open(index, NULL, &dataset, &error), WEIR_EDATA);
    assert_non_null(strstr(error.message, "incomplete"));

    options.progress = go_on;
    options.self = &reported;
    weir_dataset_progress second = build_with(index, &options);
    assert_int_equal(second.num_unchanged, progress.num_indexed);
    assert_int_equal(second.num_indexed, COUNT - progress.num_indexed);
    assert_memory_equal(&reported, &second, sizeof reported);
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_count(dataset), COUNT);
    weir_dataset_close(dataset);
}

TEST_CASE(clips_that_failed_for_another_reason_than_their_data_are_read_again)
{
    const char *root = make_tree("lasting"), *index = clips_path("lasting.weir");
    const weir_dataset_build_options options = { .root = root };
    char sql[128];
    sqlite3 *db;
    weir_dataset_progress first = build_with(index, &options);
    const int statuses[] = { WEIR_EDATA, WEIR_ELIMIT, WEIR_EACCESS, WEIR_EIO };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
        snprintf(sql, sizeof sql, "UPDATE clip SET status = %d WHERE path = 'run/b.mp4'", statuses[i]);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_changes(db), 1);
        sqlite3_close(db);
        weir_dataset_progress again = build_with(index, &options);
        assert_int_equal(again.num_indexed, i != 0);
        assert_int_equal(again.num_broken, 0);
        assert_int_equal(again.num_unchanged, first.num_indexed - (i != 0));
    }
}

TEST_CASE(a_list_brings_its_labels)
{
    const char *index = clips_path("list.weir");
    const char *root = make_tree("list");
    char a[512], b[512];
    snprintf(a, sizeof a, "%s/run/b.mp4", root);
    snprintf(b, sizeof b, "%s/run/a.mp4", root);
    const char *paths[] = { a, b, "/nowhere/at/all.mp4" };
    const char *labels[] = { "slow", NULL, "slow" };
    weir_dataset_build_options options = { .paths = paths, .labels = labels, .num_paths = 3 };
    weir_dataset_progress progress = build_with(index, &options);
    assert_int_equal(progress.num_broken, 1);
    weir_dataset *dataset = open_with(index, NULL);
    weir_entry *entry = entry_of(dataset, 1);
    assert_string_equal(entry->path, a);
    assert_int_equal(entry->class_id, 0);
    weir_entry_free(entry);
    weir_dataset_close(dataset);
    labels[1] = "quick";
    progress = build_with(index, &options);
    assert_int_equal(progress.num_unchanged, 1); /* missing files are searched again */
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_num_classes(dataset), 2);
    weir_dataset_close(dataset);
}

/* The class of a URL is the folder of the object: neither its host nor a part of a parameter. Nothing listens there. */
TEST_CASE(the_class_of_a_url_is_its_folder)
{
    const char *index = clips_path("urls.weir"),
               *sql = "SELECT group_concat(label, ' ') = 'run' AND count(*) = 3 FROM clip";
    const char *paths[] = { "http://u:p@127.0.0.1:1/x.mp4", "http://u:p@127.0.0.1:1/a/run/x.mp4?token=b/c/d",
                            "http://127.0.0.1:1?x=/e/f" };
    build_with(index, &(weir_dataset_build_options){ .paths = paths, .num_paths = 3 });
    assert_int_equal(read_integer(index, sql), 1);
}

TEST_CASE(an_archive_that_is_a_url_is_refused_by_name)
{
    const char *path = "http://h/x.tar?token=secret";
    weir_error error = { 0 };
    const weir_dataset_build_options options = { .paths = &path, .num_paths = 1, .tar = true };
    assert_int_equal(weir_dataset_build(clips_path("url.weir"), &options, NULL, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "http://h/x.tar?token=***: archives are not read from URLs"));
}

/* Each row of a list is a clip, also if the file is the same. */
TEST_CASE(each_row_of_a_list_is_a_clip)
{
    const char *index = clips_path("rows.weir");
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *paths[] = { longer, clip, longer, longer };
    const char *labels[] = { "run", "walk", "jump", NULL };
    weir_clip_window windows[] = {
        { .start_ns = 2 * WEIR_SECOND }, { 0 }, { 0 }, { .start_ns = 500000000, .end_ns = 1500000000 }
    };
    weir_dataset_build_options options = { .paths = paths, .labels = labels, .num_paths = 4, .windows = windows };
    weir_dataset_progress progress = build_with(index, &options);
    assert_int_equal(progress.num_indexed, 2); /* files */
    assert_int_equal(progress.num_total, 2);
    assert_int_equal(build_with(index, &options).num_unchanged, 2);

    weir_dataset *dataset = open_with(index, NULL);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    const struct {
        const char *path;
        int64_t class_id, start_ns, end_ns;
        uint64_t occurrence;
    } wanted[] = { { clip, 2, 0, 0, 0 },
                   { longer, 1, 2 * WEIR_SECOND, 0, 0 },
                   { longer, 0, 0, 0, 1 },
                   { longer, -1, 500000000, 1500000000, 2 } };
    assert_int_equal(weir_dataset_count(dataset), 4);
    for (uint64_t i = 0; i < 4; i++) {
        weir_entry *entry = entry_of(dataset, i);
        assert_string_equal(entry->path, wanted[i].path);
        assert_int_equal(entry->class_id, wanted[i].class_id);
        assert_int_equal(entry->window.start_ns, wanted[i].start_ns);
        assert_int_equal(entry->window.end_ns, wanted[i].end_ns);
        assert_int_equal(entry->occurrence, wanted[i].occurrence);
        assert_non_null(entry->packets);
        weir_entry_free(entry);
    }
    weir_dataset_close(dataset);

    paths[2] = clip; /* the list is edited: one row less of a file, one more of the other; and a start */
    assert_int_equal(build_with(index, &options).num_removed, 1);
    windows[1].start_ns = 100000000;
    assert_int_equal(build_with(index, &options).num_indexed, 1);
    dataset = open_with(index, NULL);
    assert_int_equal(weir_dataset_count(dataset), 4);
    assert_int_not_equal(weir_dataset_fingerprint(dataset), fingerprint);
    weir_dataset_close(dataset);
}

static uint64_t fingerprint_of_index(const char *index, const weir_dataset_options *options)
{
    weir_dataset *dataset = open_with(index, options);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);
    return fingerprint;
}

/* A checkpoint is refused if the fingerprint is another one. */
TEST_CASE(all_that_a_clip_is_is_part_of_the_fingerprint)
{
    const char *index = clips_path("columns.weir");
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *copy = clips_path("copy.mp4");
    copy_file(clip, copy);
    const struct {
        const char *path, *label;
        int64_t start_ns, end_ns;
        uint64_t start_frame;
    } rows[] = {
        { clip, "a", 0, 0, 0 },
        { copy, "a", 0, 0, 0 },
        { clip, "b", 0, 0, 0 },
        { clip, "", 0, 0, 0 },
        { clip, "a", 100 * WEIR_MILLISECOND, 0, 0 },
        { clip, "a", 200 * WEIR_MILLISECOND, 0, 0 },
        { clip, "a", 0, 200 * WEIR_MILLISECOND, 0 },
        { clip, "a", 0, 300 * WEIR_MILLISECOND, 0 },
        { clip, "a", 100 * WEIR_MILLISECOND, 300 * WEIR_MILLISECOND, 0 },
        { longer, "a", 0, 0, 0 },
        { clip, "a", 0, 0, 3 },
    };
    enum { NUM_KINDS = sizeof rows / sizeof rows[0] };
    uint64_t fingerprints[2 * NUM_KINDS + 1];
    size_t num = 0;
    for (size_t i = 0; i < 2 * NUM_KINDS;
         i++) { /* of an index that is changed; the row is the first or the second one */
        const char *paths[] = { rows[i / 2].path, clip };
        const char *labels[] = { rows[i / 2].label, "z" };
        const weir_clip_window windows[] = { { rows[i / 2].start_ns, rows[i / 2].end_ns, rows[i / 2].start_frame, 0 },
                                             { 0 } };
        weir_dataset_build_options options = {
            .paths = paths, .labels = labels, .num_paths = 1 + i % 2, .windows = windows
        };
        build_with(index, &options);
        fingerprints[num] = fingerprint_of_index(index, NULL);
        unlink(index);
        build_with(index, &options);
        assert_int_equal(fingerprints[num++], fingerprint_of_index(index, NULL));
    }
    fingerprints[num++] = fingerprint_of_index(index, &(weir_dataset_options){ .where = "duration > 0" });
    for (size_t i = 0; i < num; i++)
        for (size_t j = 0; j < i; j++)
            if (fingerprints[i] == fingerprints[j])
                fail_msg("lists %zu and %zu have the same fingerprint", i, j);
}

static void change(const char *index, const char *sql)
{
    sqlite3 *db;
    char *message = NULL;
    assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
}

/* What a build compares to find out whether a file is unchanged: each column is another one once. */
TEST_CASE(each_column_that_a_build_compares_counts)
{
    static const struct {
        const char *sql; /* "UPDATE … SET " */
        int num_indexed, num_removed;
    } changes[] = {
        { "clip SET size_bytes = size_bytes + 1", 1, 0 },
        { "clip SET mtime_ns = mtime_ns + 1", 1, 0 },
        { "clip SET label = 'other'", 1, 0 },
        { "clip SET label = NULL", 1, 0 },
        { "clip SET start = start + 0.25", 1, 0 },
        { "clip SET end = end + 0.25", 1, 0 },
        { "clip SET end = NULL", 1, 0 },
        { "clip SET start_frame = 2", 1, 0 },
        { "clip SET end_frame = 2", 1, 0 },
        { "clip SET status = -5000", 1, 0 },
        { "clip SET occurrence = 1", 1, 1 },
        { "clip SET identity = 'other'", 1, 1 },
        { "clip SET path = 'other'", 0, 0 }, /* shown only, and written again */
        { "clip SET is_redacted = 1", 0, 0 },
        { "dataset SET value = 'other' WHERE key = 'options'", 1, 0 },
        { "clip SET validator = 'of a URL'", 0, 0 },
    };
    const char *index = clips_path("compared.weir"), *label = "one";
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const weir_clip_window window = { .start_ns = 250 * WEIR_MILLISECOND, .end_ns = 500 * WEIR_MILLISECOND };
    const weir_dataset_build_options options = {
        .paths = &clip, .labels = &label, .num_paths = 1, .windows = &window
    };
    build_with(index, &options);
    uint64_t fingerprint = fingerprint_of_index(index, NULL);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "UPDATE %s", changes[i].sql);
        change(index, sql);
        weir_dataset_progress progress = build_with(index, &options);
        if (progress.num_indexed != (uint64_t)changes[i].num_indexed ||
            progress.num_removed != (uint64_t)changes[i].num_removed)
            fail_msg("%s: %d read, %d removed", sql, (int)progress.num_indexed, (int)progress.num_removed);
        assert_true(fingerprint_of_index(index, NULL) == fingerprint);
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM clip WHERE path = '%s' AND identity = path AND is_redacted = 0 AND "
                 "label = 'one' AND start = 0.25 AND end = 0.5 AND status = 0",
                 clip);
        assert_int_equal(read_integer(index, sql), 1);
    }
}

/* Another file under the same name: the size is part of it. */
TEST_CASE(the_size_of_a_file_is_part_of_the_fingerprint)
{
    const char *index = clips_path("size.weir");
    const char *clip =
        clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *path = clips_path("grows.mp4");
    copy_file(clip, path);
    weir_dataset_build_options options = { .paths = &path, .num_paths = 1 };
    build_with(index, &options);
    uint64_t fingerprint = fingerprint_of_index(index, NULL);
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite("\0\0\0\10free", 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(build_with(index, &options).num_indexed, 1);
    assert_int_not_equal(fingerprint_of_index(index, NULL), fingerprint);
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

TEST_CASE(conditions_and_classes_choose)
{
    const char *index = clips_path("chosen.weir");
    build(index, make_tree("chosen"));
    weir_dataset *dataset = open_with(index, &(weir_dataset_options){ .where = "duration > 2 -- seconds" });
    assert_int_equal(weir_dataset_count(dataset), 1);
    weir_entry *entry = entry_of(dataset, 0);
    assert_non_null(strstr(entry->path, "run/b.mp4"));
    weir_entry_free(entry);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);

    const char *classes[] = { "walk", "run" };
    uint32_t *labels;
    dataset = open_with(index, &(weir_dataset_options){ .classes = classes, .num_classes = 2 });
    assert_int_equal(weir_dataset_count(dataset), 3);
    assert_int_not_equal(weir_dataset_fingerprint(dataset), fingerprint);
    assert_int_equal(weir_dataset_read_classes(dataset, &labels, NULL), WEIR_OK);
    static const uint32_t expected[] = { 1, 1, 0 };
    assert_memory_equal(labels, expected, sizeof expected);
    free(labels);
    weir_dataset_close(dataset);
}

static void assert_not_opened(const char *index, weir_dataset_options options, int status, const char *named)
{
    weir_dataset *dataset;
    weir_error error = { 0 };
    int got = weir_dataset_open(index, &options, &dataset, &error);
    assert_null(dataset);
    if (got != status || !strstr(error.message, named))
        fail_msg("%s: %s", weir_status_name(got), error.message);
}

/* ---- archives ------------------------------------------------------------------------------------------------ */

typedef struct taken {
    uint64_t num_items;
    char paths[8][1024];
    uint32_t num_frames[8];
    uint8_t *data[8];
} taken;

/* Decodes two frames of each clip. */
static taken decode_clips(weir_dataset *dataset)
{
    taken t = { 0 };
    weir_error error = { 0 };
    weir_pipeline *pipeline;
    weir_item item;
    weir_sampler_source_config source = { .sampler = { .num_items = weir_dataset_count(dataset), .world.size = 1 },
                                          .items = weir_dataset_items(dataset) };
    weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32),
                                .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 2 } };
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, NULL);
    weir_pipe_video(builder, &video, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        weir_frames *frames = item.data;
        const char *name = strrchr(frames->entry->path, '!');
        snprintf(t.paths[t.num_items], sizeof t.paths[0], "%s", name ? name + 1 : frames->entry->path);
        t.num_frames[t.num_items] = frames->num_frames;
        t.data[t.num_items] = malloc(frames->num_frames * frames->frame_bytes);
        memcpy(t.data[t.num_items++], frames->data, frames->num_frames * frames->frame_bytes);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
    return t;
}

static void shell(const char *format, const char *root, const char *name)
{
    char command[2048];
    snprintf(command, sizeof command, format, root, name);
    assert_int_equal(system(command), 0); /* NOLINT: the test's own paths */
}

TEST_CASE(members_of_archives_are_read_in_place)
{
    static const char *const formats[] = { "gnu --sparse", "pax --sparse", "ustar" };
    char root[512];
    snprintf(root, sizeof root, "%s", make_tree("packed"));
    shell("cd '%s' && mkdir -p %s && cd a_long* && cp ../run/b.mp4 and_a_long_name_of_a_file_after_it.mp4", root,
          "a_long_folder_name_of_ninety_nine_characters_____________________________________________________");
    shell("cd '%s' && for i in 1 3 5 7 9 11 13; do "
          "echo x | dd of=%s bs=64k seek=$i conv=notrunc status=none || exit; done",
          root, "a_file_with_holes");
    const char *shards = clips_path("shards");
    clips_make_folder(shards);
    for (int i = 0; i < 3; i++) {
        shell("cd '%s' && find . -type f -printf '%%P\n' | sort | tar --hard-dereference -cf ../shards/one.tar "
              "-T - --format=%s",
              root, formats[i]);
        shell("cd '%s' && gzip -c one.tar >%s", shards, "two.tar");
        const char *index = clips_path("shards.weir");
        unlink(index);
        weir_dataset_progress progress =
            build_with(index, &(weir_dataset_build_options){ .root = shards, .tar = true });
        assert_int_equal(progress.num_indexed, 7); /* two.tar is compressed: broken */
        assert_int_equal(progress.num_broken, 2);
        progress = build_with(index, &(weir_dataset_build_options){ .root = shards, .tar = true });
        assert_int_equal(progress.num_unchanged, 7);
        weir_dataset *dataset;
        assert_int_equal(weir_dataset_open(index, NULL, &dataset, NULL), WEIR_OK);
        assert_int_equal(weir_dataset_num_classes(dataset), 3);
        taken packed = decode_clips(dataset);
        weir_dataset_close(dataset);
        build_with(clips_path("packed.weir"), &(weir_dataset_build_options){ .root = root });
        assert_int_equal(weir_dataset_open(clips_path("packed.weir"), NULL, &dataset, NULL), WEIR_OK);
        taken plain = decode_clips(dataset);
        weir_dataset_close(dataset);
        assert_int_equal(packed.num_items, 5);
        assert_int_equal(plain.num_items, 5);
        for (int j = 0; j < 5; j++) {
            assert_string_equal(packed.paths[j], plain.paths[j] + strlen(root) + 1);
            assert_int_equal(packed.num_frames[j], 2);
            assert_memory_equal(packed.data[j], plain.data[j], 2 * 32 * 32 * 3);
            free(packed.data[j]);
            free(plain.data[j]);
        }
    }
}

/* Members of the same name: short, long, and the other way round, so that whichever is probed first, one of the two
   archives shows it. */
TEST_CASE(of_members_with_the_same_name_the_last_counts)
{
    const char *root = clips_path("twice"), *index = clips_path("twice.weir");
    clips_make_folder(root);
    shell("cd '%s' && mkdir a b && cp '%s' a/x.mp4", root,
          clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p"));
    shell("cd '%s' && cp '%s' b/x.mp4 && tar -cf ab.tar -C a x.mp4 -C ../b x.mp4 && "
          "tar -cf ba.tar -C b x.mp4 -C ../a x.mp4",
          root, clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p"));
    for (int i = 0; i < 3; i++) { /* new, unchanged, all read again */
        weir_dataset_progress progress = build_with(
            index, &(weir_dataset_build_options){
                       .root = root, .tar = true, .check = i == 2 ? WEIR_PROBE_FIRST : WEIR_PROBE_PACKETS });
        assert_int_equal(progress.num_unchanged, i == 1 ? 4 : 0);
        for (int is_longer = 0; is_longer < 2; is_longer++) {
            const char *where = is_longer ? "num_frames = 30" : "num_frames = 10";
            weir_dataset *dataset = open_with(index, &(weir_dataset_options){ .where = where });
            assert_int_equal(weir_dataset_count(dataset), 1);
            weir_entry *entry = entry_of(dataset, 0);
            assert_non_null(strstr(entry->path, is_longer ? "ab.tar" : "ba.tar"));
            weir_entry_free(entry);
            weir_dataset_close(dataset);
        }
    }
}

/* The label of an item hides what looks like a secret of a URL. Neither the clip nor its class is made of it. */
TEST_CASE(members_whose_names_look_like_urls_are_clips_of_their_own)
{
    const char *root = clips_path("named"), *index = clips_path("named.weir");
    clips_make_folder(root);
    shell("cd '%s' && mkdir -p 'http:/u:p@run' && for i in 1 2; do cp '%s' \"http:/u:p@run/x?token=$i.mp4\" || exit; "
          "done && "
          "tar -cf s.tar http:",
          root, clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p"));
    const weir_dataset_build_options options[] = { { .root = root }, { .root = root, .tar = true } };
    static const char *const paths[] = { "named/http:/u:p@run/x?token=%d.mp4",
                                         "named/s.tar!http:/u:p@run/x?token=%d.mp4" };
    for (int is_tar = 0; is_tar < 2; is_tar++) {
        unlink(index);
        assert_int_equal(build_with(index, &options[is_tar]).num_indexed, 2);
        weir_dataset *dataset = open_with(index, NULL);
        assert_int_equal(weir_dataset_count(dataset), 2);
        assert_string_equal(weir_dataset_class_name(dataset, 0), "u:p@run");
        for (int i = 0; i < 2; i++) {
            char path[128];
            snprintf(path, sizeof path, paths[is_tar], i + 1);
            weir_entry *entry = entry_of(dataset, (uint64_t)i);
            assert_string_equal(entry->path + strlen(entry->path) - strlen(path), path);
            weir_entry_free(entry);
        }
        weir_dataset_close(dataset);
        assert_int_equal(build_with(index, &options[is_tar]).num_unchanged, 2);
    }
}

TEST_CASE(archives_that_cannot_be_used_are_broken_clips)
{
    const char *root = clips_path("bad_shards");
    clips_make_folder(root);
    shell("cd '%s' && echo no tar >text.tar && : >empty.tar && echo hi >a.txt && tar -cf none.tar a.txt && "
          "cp '%s' x.mp4 && tar -cf cut.tar x.mp4 x.mp4 --hard-dereference && truncate -s -9000 cut.tar && tar -czf "
          "packed.tar x.mp4",
          root, clips_make("clip.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p"));
    const char *index = clips_path("bad_shards.weir");
    weir_dataset_progress progress = build_with(index, &(weir_dataset_build_options){ .root = root, .tar = true });
    assert_true(progress.num_broken >= 5);
    weir_dataset_progress again = build_with(index, &(weir_dataset_build_options){ .root = root, .tar = true });
    assert_int_equal(again.num_indexed, 0); /* so nothing is renumbered */
    assert_int_equal(again.num_unchanged, progress.num_indexed);
    assert_int_equal(again.num_removed, 0);
    sqlite3 *db;
    sqlite3_stmt *broken;
    char all[4096] = "";
    assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
    sqlite3_prepare_v2(db, "SELECT path || ': ' || message FROM clip WHERE status <> 0 ORDER BY path", -1, &broken,
                       NULL);
    while (sqlite3_step(broken) == SQLITE_ROW)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", (const char *)sqlite3_column_text(broken, 0));
    sqlite3_finalize(broken);
    sqlite3_close(db);
    assert_non_null(strstr(all, "text.tar: not a plain tar archive; unpack a compressed one first"));
    assert_non_null(strstr(all, "empty.tar: "));
    assert_non_null(strstr(all, "none.tar: no video in the archive"));
    assert_non_null(strstr(all, "cut.tar: the archive is truncated within its last file"));
    assert_non_null(strstr(all, "packed.tar: not a plain tar archive; unpack a compressed one first"));
}

static bool has_bytes(const char *path, const char *wanted)
{
    FILE *file = fopen(path, "rb");
    static char bytes[1 << 20];
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_in_range(size, 1, sizeof bytes - 1);
    return memmem(bytes, size, wanted, strlen(wanted)) != NULL;
}

/* And what it had of URLs does not stay in its free pages. */
TEST_CASE(an_index_of_an_older_version_is_made_anew_by_the_next_build)
{
    const char *root = make_tree("older"), *index = clips_path("older.weir");
    weir_dataset *dataset;
    weir_error error = { 0 };
    build_with(index, &(weir_dataset_build_options){ .root = root });
    sqlite3 *db;
    assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TABLE clip; CREATE TABLE clip (path TEXT UNIQUE); PRAGMA user_version = 3;"
                                  "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
                                  " INSERT INTO clip SELECT 'http://u:s3cr3t@h/' || i FROM n",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_true(has_bytes(index, "s3cr3t"));
    assert_int_equal(weir_dataset_open(index, NULL, &dataset, &error), WEIR_EDATA);
    assert_non_null(strstr(error.message, "run weir index again"));
    assert_int_equal(build_with(index, &(weir_dataset_build_options){ .root = root }).num_indexed, 5);
    assert_false(has_bytes(index, "s3cr3t"));
    assert_int_equal(weir_dataset_open(index, NULL, &dataset, &error), WEIR_OK);
    weir_dataset_close(dataset);
}

TEST_CASE(what_cannot_be_opened_is_named)
{
    const char *index = clips_path("refused.weir");
    const char *root = make_tree("refused");
    build(index, root);
    const char *none[] = { "run", "fly" };
    assert_not_opened("/nowhere.weir", (weir_dataset_options){ 0 }, WEIR_ENOTFOUND, "/nowhere.weir");
    assert_not_opened(index, (weir_dataset_options){ .where = "length > 2" }, WEIR_EINVAL, "length");
    assert_not_opened(index, (weir_dataset_options){ .where = "1); DELETE FROM clip; --" }, WEIR_EINVAL, "");
    assert_not_opened(index, (weir_dataset_options){ .where = "duration > 100" }, WEIR_ENOTFOUND, "conditions");
    assert_not_opened(index, (weir_dataset_options){ .classes = none, .num_classes = 2 }, WEIR_ENOTFOUND, "\"fly\"");
    assert_not_opened(index, (weir_dataset_options){ .root = "/nowhere" }, WEIR_ENOTFOUND, "/nowhere");
    const char *other = clips_path("other.db");
    sqlite3 *db;
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE a (b)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_not_opened(other, (weir_dataset_options){ 0 }, WEIR_EDATA, "another program's");
    weir_error error = { 0 };
    assert_int_equal(weir_dataset_build(other, &(weir_dataset_build_options){ .root = root }, NULL, &error),
                     WEIR_EDATA);
    error = (weir_error){ 0 };
    assert_int_equal(
        weir_dataset_build(index, &(weir_dataset_build_options){ .root = make_tree("another") }, NULL, &error),
        WEIR_EINVAL);
    assert_non_null(strstr(error.message, "is the index of the folder"));
    error = (weir_error){ 0 };
    assert_int_equal(weir_dataset_build(index, &(weir_dataset_build_options){ .root = "/nowhere" }, NULL, &error),
                     WEIR_ENOTFOUND);
    assert_int_equal(sqlite3_open(index, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 9", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_not_opened(index, (weir_dataset_options){ 0 }, WEIR_EUNSUPPORTED, "version 9");
}

/* A changed or damaged index may lack what its tables require. */
TEST_CASE(values_that_are_missing_do_no_harm)
{
    const char *index = clips_path("missing.weir");
    const char *root = make_tree("missing");
    build(index, root);
    change(index, "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')");
    change(index, "UPDATE clip SET path = NULL WHERE number = 0; UPDATE dataset SET value = NULL WHERE key = "
                  "'fingerprint'; DROP TABLE class; CREATE TABLE class (name); INSERT INTO class VALUES (NULL)");
    weir_dataset *dataset = open_with(index, &(weir_dataset_options){ 0 });
    weir_entry *entry = entry_of(dataset, 0);
    assert_non_null(strstr(entry->path, root)); /* the folder, which cannot be decoded */
    weir_entry_free(entry);
    weir_dataset_close(dataset);
    (void)weir_dataset_build(index, &(weir_dataset_build_options){ .root = root }, NULL, NULL);
}

/* ---- questions ----------------------------------------------------------------------------------------------- */

typedef struct answer {
    char text[4096];
    size_t length;
} answer;

static int add_row(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    answer *to = self;
    for (size_t i = 0; i < num_cells; i++) {
        const char *end = i + 1 < num_cells ? "|" : "\n";
        size_t room = sizeof to->text - to->length;
        switch (cells[i].kind) {
        case WEIR_CELL_INTEGER:
            to->length += (size_t)snprintf(to->text + to->length, room, "%" PRId64 "%s", cells[i].integer, end);
            break;
        case WEIR_CELL_REAL:
            to->length += (size_t)snprintf(to->text + to->length, room, "%.2f%s", cells[i].real, end);
            break;
        case WEIR_CELL_TEXT:
            to->length += (size_t)snprintf(to->text + to->length, room, "%s%s", cells[i].text, end);
            break;
        case WEIR_CELL_NOTHING: to->length += (size_t)snprintf(to->text + to->length, room, "%s", end); break;
        }
    }
    return WEIR_OK;
}

static void assert_answer(const char *index, weir_dataset_question question, const char *where, const char *expected)
{
    answer got = { 0 };
    weir_error error = { 0 };
    if (weir_dataset_ask(index, question, where, add_row, &got, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    if (strncmp(got.text, expected, strlen(expected)) != 0)
        fail_msg("%s", got.text);
}

TEST_CASE(questions_are_answered)
{
    const char *index = clips_path("asked.weir");
    build(index, make_tree("asked"));
    assert_answer(index, WEIR_DATASET_SUMMARY, NULL, "5|1|0|2|60|6.00|");
    assert_answer(index, WEIR_DATASET_CLASSES, NULL, "|1|0|10|1.00\nrun|2|0|40|4.00\nwalk|2|1|10|1.00\n");
    assert_answer(index, WEIR_DATASET_CLASSES, "duration > 2", "run|1|0|30|3.00\n");
    assert_answer(index, WEIR_DATASET_CODECS, NULL, "h264|64|48|4|60|6.00\n");
    assert_answer(index, WEIR_DATASET_DURATIONS, NULL, "1.00|2.00|3|3.00\n2.00|4.00|1|3.00\n");
    assert_answer(index, WEIR_DATASET_BROKEN, NULL, "walk/broken.mp4|9|-9|0|");
    assert_answer(index, WEIR_DATASET_CLIPS, "label = 'run'", "1|run/a.mp4|run|");
}

TEST_CASE(durations_that_make_no_sense_end_the_answer)
{
    const char *index = clips_path("endless.weir");
    build(index, make_tree("endless"));
    change(index, "UPDATE clip SET duration = 'long' WHERE path = 'run/a.mp4'");
    assert_answer(index, WEIR_DATASET_DURATIONS, NULL, "1.00|2.00|2|2.00\n2.00|4.00|1|3.00\n");
    change(index, "UPDATE clip SET duration = 9e999 WHERE path = 'run/a.mp4'");
    assert_answer(index, WEIR_DATASET_DURATIONS, NULL, "1.00|2.00|2|2.00\n2.00|4.00|1|3.00\n");
}

/* ---- in memory, and what is broken ------------------------------------------------------------------------------- */

static weir_dataset_memory *build_memory(const weir_dataset_build_options *options, weir_dataset_progress *progress)
{
    weir_dataset_memory *memory;
    weir_error error = { 0 };
    if (weir_dataset_build_memory(options, &memory, progress, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return memory;
}

static void assert_same_items(weir_dataset *one, weir_dataset *other)
{
    assert_int_equal(weir_dataset_count(one), weir_dataset_count(other));
    assert_int_equal(weir_dataset_fingerprint(one), weir_dataset_fingerprint(other));
    for (uint64_t i = 0; i < weir_dataset_count(one); i++) {
        weir_entry *left = entry_of(one, i), *right = entry_of(other, i);
        assert_string_equal(left->path, right->path);
        assert_int_equal(left->class_id, right->class_id);
        assert_int_equal(left->size_bytes, right->size_bytes);
        assert_int_equal(left->packets_bytes, right->packets_bytes);
        assert_memory_equal(left->packets, right->packets, left->packets_bytes);
        weir_entry_free(left);
        weir_entry_free(right);
    }
}

TEST_CASE(an_index_in_memory_is_the_same_as_in_a_file)
{
    const char *index = clips_path("beside.weir");
    weir_dataset_build_options options = { .root = make_tree("beside") };
    weir_dataset_progress of_file = build_with(index, &options), of_memory;
    weir_dataset_memory *memory = build_memory(&options, &of_memory);
    assert_memory_equal(&of_memory, &of_file, sizeof of_file);
    weir_dataset_options chosen = { .where = "duration > 2 OR label = 'walk'" };
    for (int i = 0; i < 2; i++) {
        chosen.memory = NULL;
        weir_dataset *file = open_with(index, &chosen);
        chosen.memory = memory;
        weir_dataset *dataset = open_with(NULL, &chosen);
        assert_same_items(dataset, file);
        weir_dataset_close(dataset);
        weir_dataset_close(file);
        chosen.where = NULL;
    }
    weir_dataset_memory_free(memory);
}

TEST_CASE(datasets_outlive_the_memory_that_they_were_opened_from)
{
    weir_dataset_build_options options = { .root = make_tree("outlived") };
    weir_dataset_memory *memory = build_memory(&options, NULL);
    weir_dataset *first = open_with(NULL, &(weir_dataset_options){ .memory = memory });
    weir_dataset *second = open_with(NULL, &(weir_dataset_options){ .memory = memory, .where = "label = 'run'" });
    weir_dataset_memory_free(memory);
    options.glob = "d.mp4";
    memory = build_memory(&options, NULL); /* another one, although the first one's memory is still in use */
    weir_dataset *other = open_with(NULL, &(weir_dataset_options){ .memory = memory });
    assert_int_equal(weir_dataset_count(first), 4);
    assert_int_equal(weir_dataset_count(second), 2);
    assert_int_equal(weir_dataset_count(other), 1);
    weir_entry *entry = entry_of(second, 1);
    assert_non_null(strstr(entry->path, "outlived/run/b.mp4"));
    weir_entry_free(entry);
    weir_dataset_close(first);
    weir_dataset_close(second);
    weir_dataset_close(other);
    weir_dataset_memory_free(memory);
}

static int sum_clips(void *self, const weir_dataset_cell *cells, size_t num_cells)
{
    assert_true(num_cells > 2);
    ((int64_t *)self)[0] += cells[0].integer;
    ((int64_t *)self)[1] += cells[1].integer;
    return WEIR_OK;
}

TEST_CASE(an_index_in_memory_answers_questions)
{
    weir_error error = { 0 };
    weir_dataset_memory *memory =
        build_memory(&(weir_dataset_build_options){ .root = make_tree("remembered") }, NULL);
    int64_t clips_and_broken[2] = { 0 };
    assert_int_equal(weir_dataset_ask_memory(memory, WEIR_DATASET_SUMMARY, NULL, sum_clips, clips_and_broken, &error),
                     WEIR_OK);
    assert_int_equal(clips_and_broken[0], 5);
    assert_int_equal(clips_and_broken[1], 1);
    assert_int_equal(weir_dataset_ask_memory(memory, WEIR_DATASET_SUMMARY, "1; DROP TABLE clip", sum_clips,
                                             clips_and_broken, &error),
                     WEIR_EINVAL);
    weir_dataset_memory_free(memory);
}

TEST_CASE(an_index_in_memory_is_whole_or_not_there)
{
    weir_error error = { 0 };
    weir_dataset_memory *memory = (weir_dataset_memory *)&error;
    weir_dataset_build_options options = { .root = make_tree("halved"), .progress = stop_at_once };
    assert_int_equal(weir_dataset_build_memory(&options, &memory, NULL, &error), WEIR_ESTOPPED);
    assert_null(memory);
    weir_dataset *dataset;
    error = (weir_error){ 0 };
    assert_int_equal(weir_dataset_open(NULL, &(weir_dataset_options){ .memory = NULL }, &dataset, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.message, "either a path or"));
    options.progress = NULL;
    memory = build_memory(&options, NULL);
    assert_int_equal(weir_dataset_open("a", &(weir_dataset_options){ .memory = memory }, &dataset, NULL),
                     WEIR_EINVAL);
    weir_dataset_memory_free(memory);
}

static uint64_t count_broken(weir_dataset *dataset)
{
    uint64_t num_broken;
    assert_int_equal(weir_dataset_count_broken(dataset, &num_broken, NULL), WEIR_OK);
    return num_broken;
}

TEST_CASE(broken_clips_are_counted_and_read_by_number)
{
    const char *root = make_tree("breakage");
    char path[512];
    snprintf(path, sizeof path, "%s/also.mp4", root);
    clips_write_text(path, "no video either\n");
    weir_error error = { 0 };
    weir_broken_clip broken;
    weir_dataset_memory *memory = build_memory(&(weir_dataset_build_options){ .root = root }, NULL);
    weir_dataset *dataset = open_with(NULL, &(weir_dataset_options){ .memory = memory });
    assert_int_equal(count_broken(dataset), 2);
    assert_int_equal(weir_dataset_read_broken(dataset, 1, &broken, &error), WEIR_OK);
    assert_string_equal(broken.path, "walk/broken.mp4");
    assert_string_equal(broken.label, "walk");
    assert_int_equal(broken.status, WEIR_EDATA);
    assert_true(strlen(broken.message) > 5);
    assert_int_equal(weir_dataset_read_broken(dataset, 0, &broken, &error), WEIR_OK);
    assert_string_equal(broken.path, "also.mp4");
    assert_int_equal(weir_dataset_read_broken(dataset, 2, &broken, &error), WEIR_ERANGE);
    assert_non_null(strstr(error.message, "no broken clip 2"));
    assert_int_equal(count_broken(dataset), 2);
    weir_dataset_close(dataset);
    dataset = open_with(NULL, &(weir_dataset_options){ .memory = memory, .where = "label = 'walk'" });
    assert_int_equal(count_broken(dataset), 1);
    weir_dataset_close(dataset);
    weir_dataset_memory_free(memory);
}

TEST_CASE(an_index_of_broken_files_only_can_be_opened_to_read_why)
{
    const char *path = clips_path("alone.mp4"), *index = clips_path("alone.weir");
    clips_write_text(path, "no video\n");
    build_with(index, &(weir_dataset_build_options){ .paths = &path, .num_paths = 1 });
    weir_dataset *dataset;
    assert_int_equal(weir_dataset_open(index, NULL, &dataset, NULL), WEIR_ENOTFOUND);
    dataset = open_with(index, &(weir_dataset_options){ .may_be_empty = true });
    assert_int_equal(weir_dataset_count(dataset), 0);
    assert_int_equal(count_broken(dataset), 1);
    weir_dataset_close(dataset);
}

/* ---- a pipeline over it ---------------------------------------------------------------------------------------- */

TEST_CASE(batches_have_the_labels_of_the_index)
{
    const char *index = clips_path("batches.weir");
    const char *classes[] = { "run", "walk" };
    build(index, make_tree("batches"));
    weir_dataset *dataset = open_with(index, &(weir_dataset_options){ .classes = classes, .num_classes = 2 });
    weir_sampler_source_config source = {
        .sampler = { .num_items = weir_dataset_count(dataset), .order = WEIR_SAMPLER_SHUFFLED, .world.size = 1 },
        .items = weir_dataset_items(dataset),
    };
    weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32),
                                .sampling = { .what = WEIR_SAMPLE_UNIFORM, .count = 4 } };
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_item item;
    weir_source_sampler(builder, &source, NULL);
    weir_pipe_video(builder, &video, &(weir_stage_options){ .concurrency = 2 });
    weir_pipe_collate(builder, &(weir_collate_config){ .num_items = 3 }, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    assert_int_equal(weir_pipeline_next(pipeline, &item, 30 * WEIR_SECOND), WEIR_OK);
    const weir_collated *batch = item.data;
    assert_int_equal(batch->num_items, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(batch->labels[i], strstr(batch->names[i], "/walk/") ? 1 : 0);
    weir_item_release(&item);
    weir_pipeline_free(pipeline);
    weir_dataset_close(dataset);
}

TEST_CASE(batches_have_the_columns_of_the_list)
{
    const char *index = clips_path("columns.weir");
    const char *clip = clips_make("own.mp4", "-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v mpeg4 -pix_fmt yuv420p");
    const char *paths[] = { clip, clip, clip };
    const weir_clip_window windows[] = { { 0 }, { .start_ns = 200000000 }, { .start_frame = 4 } };
    const int64_t counts[] = { 7, 0, INT64_MAX };
    const double scores[] = { 0.5, -1e300, 0 };
    const char *const texts[] = { "a \"b\"", "", NULL };
    const uint8_t some[] = { 1, 1, 0 };
    const weir_column columns[] = {
        { .name = "count of", .kind = WEIR_COLUMN_INTEGER, .integers = counts },
        { .name = "score\"", .kind = WEIR_COLUMN_REAL, .is_there = some, .reals = scores },
        { .name = "note", .kind = WEIR_COLUMN_TEXT, .is_there = some, .texts = texts },
    };
    weir_dataset_build_options options = {
        .paths = paths, .num_paths = 3, .windows = windows, .columns = columns, .num_columns = 3
    };
    weir_dataset_progress progress;
    weir_error error = { 0 };
    size_t num_columns;
    weir_item item;
    if (!clip)
        return;
    for (int from_list = 0; from_list < 2; from_list++) {
        weir_builder *builder = weir_builder_new();
        weir_pipeline *pipeline;
        weir_dataset *dataset = NULL;
        if (from_list) {
            weir_source_list(
                builder, &(weir_list_config){ .paths = paths, .num_paths = 3, .columns = columns, .num_columns = 3 },
                NULL);
        } else {
            if (weir_dataset_build(index, &options, &progress, &error) != WEIR_OK)
                fail_msg("%s", error.message);
            assert_int_equal(progress.num_clips, 3);
            dataset = open_with(index, &(weir_dataset_options){ .where = "note IS NULL OR \"count of\" < 9" });
            const weir_column *found = weir_dataset_columns(dataset, &num_columns);
            assert_int_equal(num_columns, 3);
            for (size_t i = 0; i < 3; i++)
                assert_true(strcmp(found[i].name, columns[i].name) == 0 && found[i].kind == columns[i].kind);
            weir_sampler_source_config source = {
                .sampler = { .num_items = weir_dataset_count(dataset), .world.size = 1 },
                .items = weir_dataset_items(dataset),
            };
            weir_source_sampler(builder, &source, NULL);
        }
        weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .sampling = { .count = 2 } };
        weir_pipe_video(builder, &video, NULL);
        weir_pipe_collate(builder, &(weir_collate_config){ .num_items = 3 }, NULL);
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
        assert_int_equal(weir_pipeline_next(pipeline, &item, 30 * WEIR_SECOND), WEIR_OK);
        const weir_collated *batch = item.data;
        assert_int_equal(batch->num_columns, 3);
        const weir_column *count = weir_column_find(batch->columns, 3, "count of");
        const weir_column *score = weir_column_find(batch->columns, 3, "score\"");
        const weir_column *note = weir_column_find(batch->columns, 3, "note");
        assert_memory_equal(count->integers, counts, sizeof counts);
        assert_memory_equal(score->is_there, some, 3);
        assert_true(score->reals[0] == 0.5 && score->reals[1] == -1e300 && score->reals[2] != score->reals[2]);
        assert_string_equal(note->texts[0], "a \"b\"");
        assert_true(!*note->texts[1] && !*note->texts[2] && note->is_there[1] && !note->is_there[2]);
        assert_null(weir_column_find(batch->columns, 3, "counts"));
        weir_item_release(&item);
        weir_pipeline_free(pipeline);
        weir_dataset_close(dataset);
    }
    /* another value, another fingerprint; nothing is read again */
    weir_dataset *dataset = open_with(index, NULL);
    uint64_t fingerprint = weir_dataset_fingerprint(dataset);
    weir_dataset_close(dataset);
    ((int64_t *)(uintptr_t)counts)[1] = 1;
    assert_int_equal(weir_dataset_build(index, &options, &progress, &error), WEIR_OK);
    assert_int_equal(progress.num_unchanged, 1);
    dataset = open_with(index, NULL);
    assert_true(weir_dataset_fingerprint(dataset) != fingerprint);
    weir_dataset_close(dataset);
}

TEST_CASE(columns_that_an_index_cannot_have_are_refused)
{
    const char *index = clips_path("refused_columns.weir");
    const char *paths[] = { "a.mp4" };
    const int64_t numbers[] = { 1 };
    const weir_column wrong[][2] = {
        { { .name = "", .integers = numbers }, { .name = "b", .integers = numbers } },
        { { .name = "a", .integers = numbers }, { .name = "a", .integers = numbers } },
        { { .name = "a", .integers = numbers }, { .name = "A", .integers = numbers } },
        { { .name = "a", .integers = numbers }, { .name = "path", .integers = numbers } },
        { { .name = "a", .integers = numbers }, { .name = "b", .kind = WEIR_COLUMN_REAL, .integers = numbers } },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_error error = { 0 };
        weir_dataset_build_options options = {
            .paths = paths, .num_paths = 1, .columns = wrong[i], .num_columns = 2
        };
        assert_int_equal(weir_dataset_build(index, &options, NULL, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "column"));
        assert_int_not_equal(access(index, F_OK), 0);
    }
}

/* The number of frames of each clip; 0 = it has failed, and *failure says why. */
static void count_frames_of(const char *index, weir_sampling sampling, uint64_t counts[4], weir_error *failure)
{
    weir_dataset *dataset = open_with(index, NULL);
    weir_sampler_source_config source = {
        .sampler = { .num_items = weir_dataset_count(dataset), .world.size = 1 },
        .items = weir_dataset_items(dataset),
    };
    weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .sampling = sampling };
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source_sampler(builder, &source, NULL);
    weir_pipe_video(builder, &video, NULL);
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    memset(counts, 0, 4 * sizeof *counts);
    while (weir_pipeline_next(pipeline, &item, 30 * WEIR_SECOND) == WEIR_OK) {
        counts[item.seq] = ((const weir_frames *)item.data)->num_frames;
        weir_item_release(&item);
    }
    weir_pipeline_error(pipeline, "decode", failure);
    weir_pipeline_free(pipeline);
    weir_dataset_close(dataset);
}

TEST_CASE(start_and_end_of_a_clip_are_not_ignored)
{
    const char *index = clips_path("windows.weir");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *paths[] = { longer, longer, longer, longer };
    weir_clip_window windows[] = { { 0 },
                                   { .start_ns = 2 * WEIR_SECOND },
                                   { .start_ns = 500000000, .end_ns = 1500000000 },
                                   { .end_ns = 300000000 } };
    build_with(index, &(weir_dataset_build_options){ .paths = paths, .num_paths = 4, .windows = windows });
    const struct {
        weir_sampling sampling;
        uint64_t counts[4];
    } wanted[] = {
        { { 0 }, { 30, 10, 10, 3 } },
        { { .count = 4 }, { 4, 4, 4, 3 } },
        { { .start_ns = 100000000, .end_ns = 700000000 }, { 6, 6, 6, 2 } },
        { { .what = WEIR_SAMPLE_UNIFORM, .count = 5 }, { 5, 5, 5, 5 } },
        { { .what = WEIR_SAMPLE_EVERY, .every = 4 }, { 8, 3, 3, 1 } },
        { { .start_ns = 400000000 }, { 26, 6, 6, 0 } },
        { { .what = WEIR_SAMPLE_INDICES, .indices = (int64_t[]){ 0, 7 }, .num_indices = 2 }, { 2, 0, 0, 0 } },
    };
    weir_error failure;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t counts[4];
        count_frames_of(index, wanted[i].sampling, counts, &failure);
        for (int j = 0; j < 4; j++)
            assert_int_equal(counts[j], wanted[i].counts[j]);
    }
    assert_int_equal(failure.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(failure.message, "explicit indices or times"));
}

/* Sizes for buckets: of windows in seconds and in frames, of conditions, of the user's columns. */
TEST_CASE(sizes_are_read_for_buckets)
{
    const char *index = clips_path("sizes.weir");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *paths[] = { longer, longer, longer, longer };
    const double scores[] = { 4, 3, 2, 1 };
    weir_clip_window windows[] = {
        { .start_frame = 20 }, { .start_ns = 500000000, .end_ns = 1500000000 }, { .end_frame = 3 }, { 0 }
    };
    const weir_column score = { .name = "score", .kind = WEIR_COLUMN_REAL, .reals = scores };
    build_with(index, &(weir_dataset_build_options){
                          .paths = paths, .num_paths = 4, .windows = windows, .columns = &score, .num_columns = 1 });
    weir_error error = { 0 };
    double *sizes;
    for (int chosen = 0; chosen < 2; chosen++) {
        weir_dataset *dataset = open_with(index, &(weir_dataset_options){ .where = chosen ? "score > 2.5" : NULL });
        assert_int_equal(weir_dataset_read_sizes(dataset, NULL, &sizes, &error), WEIR_OK);
        assert_true(sizes[0] > 0.99 && sizes[0] < 1.01 && sizes[1] == 1);
        assert_true(chosen || (sizes[2] > 0.29 && sizes[2] < 0.31 && sizes[3] == 3));
        free(sizes);
        assert_int_equal(weir_dataset_read_sizes(dataset, "score + width", &sizes, &error), WEIR_OK);
        assert_true(sizes[0] == 68 && sizes[1] == 67);
        free(sizes);
        assert_int_equal(weir_dataset_read_sizes(dataset, "path", &sizes, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "path is not a number for clip 0"));
        assert_null(sizes);
        assert_int_equal(weir_dataset_read_sizes(dataset, "nosuch", &sizes, &error), WEIR_EINVAL);
        uint64_t *files;
        assert_int_equal(weir_dataset_read_files(dataset, &files, &error), WEIR_OK);
        for (uint64_t i = 1; i < weir_dataset_count(dataset); i++)
            assert_int_equal(files[i], files[0]);
        free(files);
        weir_dataset_close(dataset);
    }
}

TEST_CASE(clips_of_one_file_have_one_number_and_others_another)
{
    const char *index = clips_path("files.weir");
    const char *one = clips_make("one.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -pix_fmt yuv420p");
    const char *two =
        clips_make("two.mp4", "-f lavfi -i testsrc2=s=64x48:d=1:r=10 -c:v libx264 -g 3 -pix_fmt yuv420p");
    const char *paths[] = { one, two, one, two, one };
    weir_clip_window windows[] = { { .end_frame = 3 }, { .end_frame = 3 }, { .start_frame = 2 }, { 0 }, { 0 } };
    build_with(index, &(weir_dataset_build_options){ .paths = paths, .num_paths = 5, .windows = windows });
    for (int chosen = 0; chosen < 2; chosen++) { /* chosen: without the first clip of each file */
        weir_dataset *dataset =
            open_with(index, &(weir_dataset_options){ .where = chosen ? "occurrence > 0" : NULL });
        uint64_t *files;
        weir_error error = { 0 };
        assert_int_equal(weir_dataset_count(dataset), chosen ? 3 : 5);
        assert_int_equal(weir_dataset_read_files(dataset, &files, &error), WEIR_OK);
        unsigned num_of_first = 0;
        for (uint64_t i = 0; i < weir_dataset_count(dataset); i++)
            num_of_first += files[i] == files[0];
        assert_int_equal(num_of_first, chosen ? 2 : 3); /* in the order of their paths: one.mp4 is first */
        free(files);
        weir_dataset_close(dataset);
    }
}

/* The same in frames: numbers of the sampling's window count from the first frame of the clip. */
TEST_CASE(windows_in_frames_are_decoded)
{
    const char *index = clips_path("frames.weir");
    const char *longer =
        clips_make("longer.mp4", "-f lavfi -i testsrc2=s=64x48:d=3:r=10 -c:v libx264 -g 5 -pix_fmt yuv420p");
    const char *paths[] = { longer, longer, longer, longer };
    weir_clip_window windows[] = {
        { .start_frame = 20 }, { .start_frame = 5, .end_frame = 15 }, { .end_frame = 3 }, { 0 }
    };
    build_with(index, &(weir_dataset_build_options){ .paths = paths, .num_paths = 4, .windows = windows });
    const struct {
        weir_sampling sampling;
        uint64_t counts[4];
    } wanted[] = {
        { { 0 }, { 10, 10, 3, 30 } },
        { { .count = 4 }, { 4, 4, 3, 4 } },
        { { .start_frame = 1, .end_frame = 7 }, { 6, 6, 2, 6 } },
        { { .what = WEIR_SAMPLE_EVERY, .every = 4 }, { 3, 3, 1, 8 } },
        { { .start_frame = 4 }, { 6, 6, 0, 26 } },
        { { .what = WEIR_SAMPLE_CLIPS, .count = 6, .clip_short = WEIR_SHORT_FAIL }, { 6, 6, 0, 6 } },
        { { .start_ns = 100000000 }, { 0, 0, 0, 29 } },
    };
    weir_error failure;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t counts[4];
        count_frames_of(index, wanted[i].sampling, counts, &failure);
        for (int j = 0; j < 4; j++)
            assert_int_equal(counts[j], wanted[i].counts[j]);
    }
    assert_int_equal(failure.status, WEIR_EUNSUPPORTED);
    assert_non_null(strstr(failure.message, "cannot be in time"));
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
