/* The tar stage: archives made by the tar program, read in a pipeline. */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/tar.h>
#include <weir/video.h>

#include "tests/clips.h"

/* Runs a shell command in the tests' folder. */
static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void shell(const char *format, ...)
{
    char command[4096];
    int end = snprintf(command, sizeof command, "cd '%s' && ", clips_path("."));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + end, sizeof command - (size_t)end, format, arguments);
    va_end(arguments);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static weir_pipeline *start(const char *const *paths, size_t num_paths, const weir_tar_config *config)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = num_paths }, NULL);
    weir_pipe_tar(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* What comes out of one archive, as "name=data name=data+name=data …", the files of a sample joined by '+'. */
static void list(const char *path, const weir_tar_config *config, char *text, size_t max_bytes, weir_error *error)
{
    weir_pipeline *pipeline = start(&path, 1, config);
    size_t end = 0;
    weir_item item;
    int rc;
    text[0] = '\0';
    while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const weir_bytes *bytes = item.data;
        char label[4096];
        snprintf(label, sizeof label, "%s!%s", path, bytes->name);
        assert_string_equal(item.label, label);
        assert_int_equal(item.size_bytes, weir_bytes_memory(bytes));
        for (const weir_bytes *file = bytes; file; file = file->next) {
            int data_bytes = file->size_bytes < 16 ? (int)file->size_bytes : 16;
            const char *before = file == bytes ? (end > 0 ? " " : "") : "+";
            int written = snprintf(text + end, max_bytes - end, "%s%s=%.*s", before, file->name, data_bytes,
                                   (const char *)file->data);
            end += (size_t)written;
            assert_true(end < max_bytes);
        }
        weir_item_release(&item);
    }
    assert_int_equal(rc, WEIR_EOF);
    weir_pipeline_error(pipeline, "tar", error);
    weir_pipeline_free(pipeline);
}

static void assert_lists(const char *path, const weir_tar_config *config, const char *expected)
{
    char text[65536];
    weir_error error = { 0 };
    list(path, config, text, sizeof text, &error);
    if (error.status != WEIR_OK)
        fail_msg("%s: %s", path, error.message);
    assert_string_equal(text, expected);
}

/* The failure says that, and this much came before it. */
static void assert_fails(const char *path, const weir_tar_config *config, int status, const char *said,
                         const char *expected)
{
    char text[65536];
    weir_error error = { 0 };
    list(path, config, text, sizeof text, &error);
    if (error.status != status || !strstr(error.message, said))
        fail_msg("%s: %s: %s", path, weir_status_name(error.status), error.message);
    assert_string_equal(error.label, path);
    assert_string_equal(text, expected);
}

static const weir_tar_config all = { 0 };

static const char *plain_archive(void)
{
    const char *path = clips_path("plain.tar");
    if (access(path, F_OK) == 0)
        return path;
    shell("mkdir -p in/deep/er && cd in && printf one >1.mp4 && printf two >deep/2.mp4 && printf three "
          ">deep/er/3.txt && "
          "ln -s 1.mp4 link && : >empty.mp4 && tar cf ../plain.tar 1.mp4 deep/2.mp4 link deep/er "
          "empty.mp4");
    return path;
}

TEST_CASE(every_file_comes_out_with_its_name)
{
    assert_lists(plain_archive(), &all, "1.mp4=one deep/2.mp4=two deep/er/3.txt=three empty.mp4=");
}

TEST_CASE(compressed_archives_are_read_as_well)
{
    plain_archive();
    static const char *const programs[] = { "gzip", "bzip2", "xz", "zstd", "lz4" };
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        char command[64];
        snprintf(command, sizeof command, "command -v %s >/dev/null", programs[i]);
        if (system(command) != 0)
            continue;
        shell("%s -c plain.tar >plain.tar.%s", programs[i], programs[i]);
        snprintf(command, sizeof command, "plain.tar.%s", programs[i]);
        assert_lists(clips_path(command), &(weir_tar_config){ .glob = "*.mp4" },
                     "1.mp4=one deep/2.mp4=two empty.mp4=");
    }
}

TEST_CASE(only_what_matches_comes_out)
{
    assert_lists(plain_archive(), &(weir_tar_config){ .glob = "2*" }, "deep/2.mp4=two");
    assert_fails(plain_archive(), &(weir_tar_config){ .glob = "*.webm" }, WEIR_ENOTFOUND, "*.webm", "");
}

TEST_CASE(an_archive_without_a_match_says_what_it_has)
{
    weir_tar_config config = { .glob = "*.webm" };
    assert_fails(plain_archive(), &config, WEIR_ENOTFOUND,
                 "no file in it matches *.webm; it has 3 other videos: 3 .mp4", "");
    shell("mkdir -p notes && cd notes && touch 1.txt 2.txt 3 && tar -cf ../notes.tar 1.txt 2.txt 3");
    for (int samples = 0; samples < 2; samples++) {
        config = (weir_tar_config){ .glob = WEIR_VIDEO_FILES, .samples = samples };
        assert_fails(clips_path("notes.tar"), &config, WEIR_ENOTFOUND,
                     "no video in it; it has 3 other files: 2 .txt, 1 without an extension", "");
    }
}

TEST_CASE(files_of_a_sample_come_out_together)
{
    shell("mkdir -p web/a web/b && cd web && printf 7 >a/17.cls && printf v >a/17.mp4 && printf j >a/17.meta.json && "
          "printf w >b/17.mp4 && printf t >18.txt && printf x >19.mp4 && printf 9 >19.cls && printf h >.hidden && "
          "tar cf ../web.tar a/17.cls a/17.mp4 a/17.meta.json b/17.mp4 18.txt .hidden 19.mp4 19.cls");
    assert_lists(clips_path("web.tar"), &(weir_tar_config){ .glob = "*.mp4", .samples = true },
                 "a/17.mp4=v+a/17.cls=7+a/17.meta.json=j b/17.mp4=w 19.mp4=x+19.cls=9");
}

TEST_CASE(names_beyond_ascii_and_long_ones_are_kept)
{
    char expected[1024] = "Übung/第一.mp4=z";
    char name[256] = "";
    memset(name, 'n', 240);
    size_t end = strlen(expected);
    snprintf(expected + end, sizeof expected - end, " Übung/%s=z", name);
    shell("mkdir -p names/Übung && cd names && printf z >Übung/第一.mp4 && printf z >Übung/%s && "
          "tar --format=pax -cf ../pax.tar Übung/第一.mp4 Übung/%s && tar --format=gnu -cf ../gnu.tar Übung/第一.mp4 "
          "Übung/%s",
          name, name, name);
    assert_lists(clips_path("pax.tar"), &all, expected);
    assert_lists(clips_path("gnu.tar"), &all, expected);
}

static const char *big_archive(void)
{
    const char *path = clips_path("big.tar");
    if (access(path, F_OK) == 0)
        return path;
    shell("mkdir -p big && cd big && head -c 3000000 /dev/zero >a.mp4 && printf b >b.mp4 && "
          "head -c 3000000 /dev/zero >c.mp4 && tar cf ../big.tar a.mp4 b.mp4 c.mp4");
    return path;
}

TEST_CASE(a_file_over_the_limit_costs_only_itself)
{
    assert_fails(big_archive(), &(weir_tar_config){ .max_bytes = 1000 }, WEIR_ELIMIT, "a.mp4 was skipped", "b.mp4=b");
}

TEST_CASE(empty_files_of_a_sample_count_with_their_names)
{
    shell("mkdir -p many && cd many && for i in 1 2 3 4 5 6 7 8 9; do : >x.$i; done && tar cf ../many.tar *");
    assert_lists(clips_path("many.tar"), &(weir_tar_config){ .glob = "x.2", .samples = true },
                 "x.2=+x.1=+x.3=+x.4=+x.5=+x.6=+x.7=+x.8=+x.9=");
    assert_fails(clips_path("many.tar"), &(weir_tar_config){ .samples = true, .max_bytes = 2 * sizeof(weir_bytes) },
                 WEIR_ELIMIT, "x.3 was skipped", "x.1=+x.2=");
}

TEST_CASE(a_damaged_archive_gives_what_was_before_the_damage)
{
    const weir_tar_config of_b = { .glob = "b*" };
    const char *cut_in_c = clips_cut(big_archive(), "cut_c.tar", 4000000);
    assert_fails(cut_in_c, &(weir_tar_config){ .glob = "[bc]*" }, WEIR_EDATA, "damaged within c.mp4, after 1 item(s)",
                 "b.mp4=b");
    assert_fails(cut_in_c, &of_b, WEIR_EDATA, "damaged, after 1 item(s)",
                 "b.mp4=b"); /* also where c is passed over */
    assert_fails(clips_cut(big_archive(), "cut_a.tar", 1000000), &of_b, WEIR_EDATA, "damaged, after 0 item(s)", "");

    shell("cp big.tar header.tar && printf garbage | dd of=header.tar bs=1 seek=3001956 conv=notrunc 2>/dev/null");
    assert_fails(clips_path("header.tar"), &of_b, WEIR_EDATA, "after 1 item(s)", "b.mp4=b");
}

TEST_CASE(what_is_no_archive_fails_and_says_why)
{
    const char *text = clips_path("text.tar");
    clips_write_text(text, "this is no archive at all, whatever its name says");
    assert_fails(text, &all, WEIR_EDATA, "cannot", "");
    const char *empty = clips_path("empty.tar");
    clips_write_text(empty, "");
    assert_fails(empty, &all, WEIR_EDATA, "cannot open", "");
    assert_fails(clips_path("missing.tar"), &all, WEIR_ENOTFOUND, "No such file", "");
    const char *folder = clips_path("folder.tar");
    clips_make_folder(folder);
    assert_fails(folder, &all, WEIR_EUNSUPPORTED, "a folder", "");
    const char *pipe = clips_path("pipe.tar");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_fails(pipe, &all, WEIR_EUNSUPPORTED, "not a regular file", "");
}

TEST_CASE(a_bad_archive_costs_only_itself)
{
    const char *paths[] = { clips_path("missing.tar"), plain_archive(), clips_path("nowhere.tar"), plain_archive() };
    weir_pipeline *pipeline = start(paths, 4, &(weir_tar_config){ .glob = "*.mp4" });
    weir_item item;
    int num_items = 0;
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        num_items++;
        weir_item_release(&item);
    }
    assert_int_equal(num_items, 6);
    weir_pipeline_free(pipeline);
}

/* With one item of room the archive cannot be read ahead; whoever stops then loses nothing but what was asked for. */
TEST_CASE(stop_in_the_middle_leaves_nothing_behind)
{
    shell(
        "mkdir -p many && cd many && for i in $(seq 1000 1200); do printf $i >$i.mp4; done && tar cf ../many.tar *");
    const char *path = clips_path("many.tar");
    weir_pipeline *pipeline = start(&path, 1, &all);
    weir_item item;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        assert_int_equal(atoi((const char *)((weir_bytes *)item.data)->name), 1000 + i);
        weir_item_release(&item);
    }
    weir_pipeline_stop(pipeline);
    weir_pipeline_free(pipeline);
}

TEST_CASE(clips_in_an_archive_decode_as_their_files_do)
{
    clips_make("clip_a.mp4", "-f lavfi -i testsrc2=s=160x120:d=1 -c:v mpeg4 -bf 2");
    clips_make("clip_b.mkv", "-f lavfi -i testsrc2=s=120x160:d=1 -c:v mpeg4 -bf 2");
    shell("printf cat >clip_a.cls && tar czf clips.tar.gz clip_a.cls clip_a.mp4 clip_b.mkv");
    const char *path = clips_path("clips.tar.gz");
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_tar(builder, &(weir_tar_config){ .glob = "*.m[pk][4v]", .samples = true }, NULL);
    weir_pipe_video(builder, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 64, .height = 64) },
                    &(weir_stage_options){ .concurrency = 2, .output_order = WEIR_ORDER_INPUT });
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    static const char *const names[] = { "clip_a.mp4", "clip_b.mkv" };
    for (int i = 0; i < 2; i++) {
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        const weir_frames *frames = item.data;
        assert_int_equal(frames->num_frames, 25);
        assert_non_null(strstr(item.label, names[i]));
        if (i == 0)
            assert_memory_equal(frames->sidecars->data, "cat", 3);
        else
            assert_null(frames->sidecars);
        weir_item_release(&item);
    }
    weir_pipeline_free(pipeline);
}

/* Numbers do not depend on the number of slots, and random frames differ. */
TEST_CASE(each_member_has_a_number_of_its_own)
{
    const char *paths[] = { clips_path("clips0.tar"), clips_path("clips1.tar") };
    clips_make("long.mp4", "-f lavfi -i testsrc2=s=64x48:d=4 -c:v mpeg4");
    shell("for i in 0 1; do mkdir -p same$i && for j in 0 1 2 3 4 5; do cp long.mp4 same$i/$j.mp4; done; "
          "tar cf clips$i.tar same$i/*; done");
    for (uint32_t concurrency = 1; concurrency <= 2; concurrency++) {
        weir_pipeline *pipeline = NULL;
        weir_item item;
        weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32),
                                    .sampling = { .what = WEIR_SAMPLE_RANDOM, .length_frames = 2, .count = 2 } };
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 2 }, NULL);
        weir_pipe_tar(builder, &(weir_tar_config){ .glob = "*.mp4" },
                      &(weir_stage_options){ .concurrency = concurrency });
        weir_pipe_video(builder, &video, &(weir_stage_options){ .concurrency = concurrency });
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
        int num_items = 0, num_same = 0;
        int64_t first_pts = 0;
        while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
            const weir_frames *frames = item.data;
            unsigned archive, member;
            assert_int_equal(sscanf(strstr(item.label, "!same"), "!same%u/%u.mp4", &archive, &member), 2);
            assert_int_equal(item.seq, (uint64_t)archive << WEIR_NUMBER_BITS | member);
            first_pts = num_items ? first_pts : frames->pts[0];
            num_same += frames->pts[0] == first_pts;
            num_items++;
            weir_item_release(&item);
        }
        assert_int_equal(num_items, 12);
        assert_in_range(num_same, 1, 6);
        weir_pipeline_free(pipeline);
    }
}

/* In each place of the archive once. So the label of a result or a failure cannot be that of its neighbour, or of the
   archive. */
TEST_CASE(a_member_that_fails_has_its_own_label_and_so_have_the_others)
{
    clips_make("label.mp4", "-f lavfi -i testsrc2=s=64x48:d=1 -c:v mpeg4");
    for (int broken = 0; broken < 4; broken++) {
        char name[32], label[4096];
        snprintf(name, sizeof name, "labels%d.tar", broken);
        shell("mkdir -p labels && cd labels && for j in 0 1 2 3; do cp ../label.mp4 $j.mp4; done && "
              "printf broken >%d.mp4 && tar cf ../%s ?.mp4",
              broken, name);
        const char *path = clips_path(name);
        weir_pipeline *pipeline = NULL;
        weir_item item;
        weir_error error = { 0 };
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
        weir_pipe_tar(builder, &all, NULL);
        weir_pipe_video(builder, &(weir_video_config){ WEIR_WITH_PICTURE(.width = 32, .height = 32) },
                        &(weir_stage_options){ .concurrency = 2, .output_order = WEIR_ORDER_INPUT });
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
        for (int member = 0; member < 4; member++) {
            snprintf(label, sizeof label, "%s!%d.mp4", path, member);
            if (member == broken)
                continue;
            assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
            assert_string_equal(item.label, label);
            weir_item_release(&item);
        }
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_EOF);
        weir_pipeline_error(pipeline, "decode", &error);
        snprintf(label, sizeof label, "%s!%d.mp4", path, broken);
        assert_string_equal(error.label, label);
        weir_pipeline_free(pipeline);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
