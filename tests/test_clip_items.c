/*
 * Clips as items of their own: together they are the array that they are without clip_items, each with a copy of what travels with
 * its video. Held constant: one video of 60 frames, clips of 4.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test_case.h"

#include <weir/cache.h>
#include <weir/isolated.h>
#include <weir/stages.h>
#include <weir/video_reader.h>

#include "tests/bytes_source.h"
#include "tests/clips.h"
#include "tests/result.h"

enum { CLIPS = 3, COUNT = 4 };

static const weir_picture_config small = { .width = 48, .height = 32 };

static const char *make_clip(void)
{
    return clips_make("b.mp4", "-f lavfi -i testsrc2=s=96x64:r=20:d=3 -c:v libx264 -preset veryfast -g 8 -bf 2");
}

static weir_video_config config_of(bool clip_items)
{
    return (weir_video_config){
        .seed = 7,
        .clip_items = clip_items,
        .sampling = { .what = WEIR_SAMPLE_CLIPS,
                      .count = COUNT,
                      .num_clips = CLIPS,
                      .stride_frames = 2,
                      .clip_start = WEIR_CLIP_RANDOM },
        .picture = &small,
        .picture_size = sizeof small,
    };
}

static weir_frames *all_clips(const char *path)
{
    weir_video_config config = config_of(false);
    uint64_t size_bytes;
    weir_error error = { 0 };
    weir_frames *frames = result_of_path(path, &weir_video_decode, &config, &size_bytes, &error);
    if (!frames)
        fail_msg("%s", error.message);
    assert_int_equal(frames->num_clips, CLIPS);
    return frames;
}

static void assert_is_clip(const weir_frames *clip, const weir_frames *all, uint32_t number)
{
    size_t first = (size_t)number * COUNT;
    assert_int_equal(clip->num_frames, COUNT);
    assert_int_equal(clip->num_clips, 0);
    assert_int_equal(clip->first_frame, first);
    assert_int_equal(clip->is_last_chunk, number == CLIPS - 1);
    assert_memory_equal(clip->data, all->data + first * all->frame_bytes, COUNT * all->frame_bytes);
    assert_memory_equal(clip->pts, all->pts + first, COUNT * sizeof *all->pts);
    assert_memory_equal(clip->times_ns, all->times_ns + first, COUNT * sizeof *all->times_ns);
    assert_memory_equal(clip->mask, all->mask + first, COUNT);
}

/* ---- a pipeline of one item ------------------------------------------------------------------------------------- */

typedef struct source_config {
    weir_item **item; /* set to NULL once it was given */
} source_config;

static int give_item(void *self, weir_item *in, weir_item *out, weir_task *task)
{
    (void)self;
    (void)in;
    weir_item **item = ((const source_config *)weir_task_config(task))->item;
    if (!*item)
        return WEIR_EOF;
    *out = **item;
    *item = NULL;
    return WEIR_OK;
}

static const weir_op give_op = { .name = "give",
                                 .makes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES " " WEIR_TYPE_ENTRY,
                                 .config_size = sizeof(source_config),
                                 .run = give_item };

static weir_pipeline *start(weir_item **item, const weir_video_config *video, bool is_isolated)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder_source(builder, &give_op, &(source_config){ item }, sizeof(source_config), NULL);
    if (is_isolated)
        weir_pipe_isolated(
            builder,
            &(weir_isolated_config){ .op = &weir_video_decode, .config = video, .config_size = sizeof *video }, NULL);
    else
        weir_pipe_video(builder, video, NULL);
    weir_builder_sink(builder, NULL);
    if (weir_builder_build(builder, NULL, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

static weir_entry *make_entry(const char *path)
{
    weir_value values[] = { { .name = "score", .text = "0.5" }, { .name = "who", .text = "Ada" } };
    weir_entry *entry = weir_entry_new();
    assert_non_null(entry);
    entry->path = strdup(path);
    entry->class_id = 5;
    assert_int_equal(weir_entry_set_values(entry, values, 2), WEIR_OK);
    return entry;
}

static void assert_entry(const weir_entry *entry, const char *path)
{
    assert_non_null(entry);
    assert_string_equal(entry->path, path);
    assert_int_equal(entry->class_id, 5);
    assert_int_equal(entry->num_values, 2);
    assert_string_equal(entry->values[1].text, "Ada");
}

TEST_CASE(clips_come_one_by_one_each_with_its_entry)
{
    const char *path = make_clip();
    weir_frames *all = all_clips(path);
    for (int way = 0; way < 3; way++) { /* 1: from a reader that stays open; 2: from a child */
        weir_item entry = { .data = make_entry(path), .type = WEIR_TYPE_ENTRY, .release = weir_entry_release };
        weir_item *item = &entry, got;
        weir_video_config config = config_of(true);
        config.keep_open = way == 1;
        weir_pipeline *pipeline = start(&item, &config, way == 2);
        uint32_t num_clips = 0;
        int rc;
        while ((rc = weir_pipeline_next(pipeline, &got, WEIR_FOREVER)) == WEIR_OK) {
            assert_true(num_clips < CLIPS);
            assert_is_clip(got.data, all, num_clips++);
            assert_entry(((weir_frames *)got.data)->entry, path);
            weir_item_release(&got);
        }
        assert_int_equal(rc, WEIR_EOF);
        assert_int_equal(num_clips, CLIPS);
        weir_pipeline_free(pipeline);
    }
    weir_frames_free(all);
}

TEST_CASE(clips_of_a_sample_each_have_its_other_files)
{
    const char *path = make_clip();
    for (int way = 0; way < 2; way++) {
        weir_bytes *bytes = bytes_of_file(path, "b.mp4");
        bytes->next = weir_bytes_new(3, "b.txt");
        memcpy(bytes->next->data, "cat", 3);
        weir_item sample = { .data = bytes, .type = WEIR_TYPE_BYTES, .release = weir_bytes_release };
        weir_item *item = &sample, got;
        weir_video_config config = config_of(true);
        weir_pipeline *pipeline = start(&item, &config, way == 1);
        for (int i = 0; i < CLIPS; i++) {
            assert_int_equal(weir_pipeline_next(pipeline, &got, WEIR_FOREVER), WEIR_OK);
            const weir_bytes *label = ((weir_frames *)got.data)->sidecars;
            assert_non_null(label);
            assert_string_equal(label->name, "b.txt");
            assert_memory_equal(label->data, "cat", 3);
            assert_null(label->next);
            weir_item_release(&got);
        }
        assert_int_equal(weir_pipeline_next(pipeline, &got, WEIR_FOREVER), WEIR_EOF);
        weir_pipeline_free(pipeline);
    }
}

TEST_CASE(a_reader_gives_clip_after_clip)
{
    const char *path = make_clip();
    const weir_video_source source = { .path = path };
    const weir_video_config config = config_of(true);
    const weir_sampling every = { .what = WEIR_SAMPLE_EVERY, .every = 5 };
    weir_frames *all = all_clips(path), *clip;
    for (int way = 0; way < 2; way++) {
        weir_video_reader *reader = NULL;
        weir_error error = { 0 };
        int rc =
            way ? weir_isolated_reader_open(&reader, &source, sizeof source, &config, sizeof config, NULL, 0, &error)
                : weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, &error);
        if (rc != WEIR_OK)
            fail_msg("%s", error.message);
        assert_int_equal(weir_video_reader_begin(reader, NULL, 0, NULL, 0, NULL), WEIR_OK);
        for (uint32_t i = 0; i < CLIPS; i++) {
            assert_int_equal(weir_video_reader_next(reader, &clip, NULL), WEIR_OK);
            assert_is_clip(clip, all, i);
            weir_frames_free(clip);
        }
        assert_int_equal(weir_video_reader_next(reader, &clip, NULL), WEIR_EOF);
        assert_int_equal(weir_video_reader_frames(reader, NULL, 0, NULL, 0, &clip, NULL), WEIR_OK);
        assert_int_equal(clip->num_clips, CLIPS); /* one array, as asked for */
        weir_frames_free(clip);
        assert_int_equal(weir_video_reader_begin(reader, &every, sizeof every, NULL, 0, &error), WEIR_EINVAL);
        assert_non_null(strstr(error.message, "clip_items"));
        weir_video_reader_free(reader);
    }
    weir_frames_free(all);
}

TEST_CASE(what_does_not_go_together_is_refused)
{
    const char *path = make_clip();
    weir_error error = { 0 };
    weir_video_config config = config_of(true);
    config.sampling = (weir_sampling){ 0 };
    const weir_video_source source = { .path = path };
    weir_video_reader *reader;
    assert_int_equal(weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.message, "clip_items"));
    config = config_of(true);
    config.chunk_frames = 2;
    error = (weir_error){ 0 };
    assert_int_equal(weir_video_reader_open(&reader, &source, sizeof source, &config, sizeof config, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.message, "chunk_frames"));
}

/* An entry that others hold, too, as a cache does, is copied with its values: they were freed twice. */
static void keep_entry(void *data, void *self)
{
    (void)data;
    (void)self;
}

TEST_CASE(an_entry_with_other_holders_is_copied_with_its_values)
{
    const char *path = make_clip();
    weir_entry *held = make_entry(path);
    weir_item entry = { .data = held, .type = WEIR_TYPE_ENTRY, .release = keep_entry };
    weir_item *item = &entry, got;
    weir_video_config config = config_of(false);
    weir_pipeline *pipeline = start(&item, &config, false);
    assert_int_equal(weir_pipeline_next(pipeline, &got, WEIR_FOREVER), WEIR_OK);
    const weir_frames *frames = got.data;
    assert_entry(frames->entry, path);
    assert_ptr_not_equal(frames->entry->values, held->values);
    weir_item_release(&got);
    weir_pipeline_free(pipeline);
    assert_entry(held, path);
    weir_entry_free(held);
}

int main(void)
{
    return test_cases_run(NULL, NULL, clips_set_up, clips_tear_down);
}
