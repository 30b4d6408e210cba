/* What the decode stages tell of an item is its cost, and the statistics have a column for each part of it. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stats_fixture.h"

#include <weir/isolated.h>
#include <weir/stages.h>

#include "tests/clips.h"

#define ROW(field, name, kind, unit, meaning) \
    { { name, WEIR_PART_##kind, unit, meaning }, offsetof(weir_decode_cost, field) },

static const struct {
    weir_part_info info;
    size_t offset;
} rows[] = { WEIR_DECODE_PARTS(ROW) };

enum { NUM_ROWS = sizeof rows / sizeof rows[0] };

static const weir_item_part *find_part(const weir_task_end *end, const char *name)
{
    for (uint32_t i = 0; i < end->num_parts; i++)
        if (strcmp(end->parts[i].info->name, name) == 0)
            return &end->parts[i];
    return NULL;
}

static const weir_decode_cost *cost_of(const weir_item *item)
{
    return strcmp(item->type, WEIR_TYPE_FRAMES) == 0 ? &((const weir_frames *)item->data)->cost
                                                     : &((const weir_audio *)item->data)->cost;
}

/* What is 0 or "" is not reported. */
static int compare_parts(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    unsigned *num_compared = self;
    uint32_t num_known = 0;
    (void)state;
    (void)task;
    assert_non_null(end->out);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        const void *field = (const char *)cost_of(end->out) + rows[i].offset;
        const weir_item_part *part = find_part(end, rows[i].info.name);
        bool is_text = rows[i].info.kind == WEIR_PART_TEXT;
        bool is_known = is_text ? *(const char *)field : *(const int64_t *)field != 0;
        assert_true(is_known == (part != NULL));
        num_known += is_known;
        if (part && is_text)
            assert_string_equal(part->text, field);
        else if (part)
            assert_int_equal(part->number, *(const int64_t *)field);
        if (part)
            assert_true(part->info->kind == rows[i].info.kind);
    }
    assert_int_equal(end->num_parts, num_known);
    ++*num_compared;
    return WEIR_OK;
}

/* What the stage has said to have done in the last run. */
static struct work {
    uint64_t amount;
    char unit[16];
} work;

static void note_work(weir_pipeline *pipeline)
{
    weir_snapshot *snapshot;
    assert_int_equal(weir_pipeline_snapshot(pipeline, &snapshot), WEIR_OK);
    work.amount = snapshot->stages[1].num_work;
    assert_non_null(snapshot->stages[1].work_unit);
    snprintf(work.unit, sizeof work.unit, "%s", snapshot->stages[1].work_unit);
    weir_snapshot_free(snapshot);
}

static void assert_work(uint64_t amount, const char *unit)
{
    assert_int_equal(work.amount, amount);
    assert_string_equal(work.unit, unit);
}

/* Returns the number of results. */
static unsigned decode_recorded(const char *database, const char *path, const weir_op *op, const void *config)
{
    unsigned num_compared = 0, num_results = 0;
    weir_sqlite_writer *writer = open_writer(database, NULL);
    weir_task_hook hooks[2] = { { .self = &num_compared, .end = compare_parts } };
    weir_pipeline *pipeline;
    weir_error error = { 0 };
    weir_item item;
    assert_int_equal(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hooks[1], &error), WEIR_OK);
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_builder_pipe(builder, op, config, op->config_size,
                      &(weir_stage_options){ .queue_items = 1, .task_hooks = hooks, .num_task_hooks = 2 });
    weir_builder_sink(builder, &(weir_stage_options){ .queue_items = 1 });
    weir_observer observer = weir_sqlite_observer(writer);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1 };
    if (weir_builder_build(builder, &options, &pipeline, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    for (; weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK; num_results++)
        weir_item_release(&item);
    note_work(pipeline);
    if (weir_pipeline_error(pipeline, op->name, &error) != WEIR_OK)
        fail_msg("%s", error.message);
    weir_pipeline_free(pipeline);
    close_writer(writer);
    assert_int_equal(num_compared, 1);
    assert_int_equal(query_int(database,
                               "SELECT count(*) FROM item_stats WHERE parts = '' AND codec <> '' AND "
                               "num_frames >= 0 AND size_bytes > 1000 AND open_time > 0 AND demux_time > 0 AND "
                               "decode_time > 0 AND scale_time > 0 AND "
                               "open_time + demux_time + decode_time + scale_time <= elapsed"),
                     1);
    return num_results;
}

static const char *some_clip(void)
{
    return clips_make("both.mp4",
                      "-f lavfi -i testsrc2=s=160x120:d=1 -f lavfi -i sine=d=1:r=44100 -c:v mpeg4 -c:a aac "
                      "-shortest");
}

TEST_CASE(a_video_tells_its_cost_with_all_its_chunks)
{
    const char *path = in_folder("video.db");
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .chunk_frames = 10 };
    assert_int_equal(decode_recorded(path, some_clip(), &weir_video_decode, &video), 3);
    assert_work(25, "frames");
    assert_int_equal(query_int(path, "SELECT sum(num_work) FROM task_stats WHERE name = '0:1:decode'"), 25);
    assert_int_equal(
        query_int(path, "SELECT num_frames FROM item_stats WHERE codec = 'mpeg4' AND width = 160 AND height = 120"),
        25);
}

TEST_CASE(a_video_with_its_sound_tells_the_cost_of_both)
{
    const weir_audio_config sound = { .sample_rate = 8000 };
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .audio = &sound,
                                      .audio_size = sizeof sound };
    assert_int_equal(decode_recorded(in_folder("both.db"), some_clip(), &weir_video_decode, &video), 1);
    assert_work(25, "frames"); /* the stage counts no samples */
}

TEST_CASE(sound_and_pictures_tell_their_cost)
{
    const char *picture = clips_make("a.jpg", "-f lavfi -i testsrc2=s=320x240 -frames:v 1 -q:v 3");
    const char *path = in_folder("audio.db");
    assert_int_equal(
        decode_recorded(path, some_clip(), &weir_audio_decode, &(weir_audio_config){ .sample_rate = 8000 }), 1);
    assert_int_equal(query_int(path, "SELECT count(*) FROM item_stats WHERE codec = 'aac' AND width = 0"), 1);
    assert_int_equal(work.amount % 1024, 0);
    assert_in_range(work.amount, 44100, 44100 + 3 * 1024);
    assert_string_equal(work.unit, "samples");
    path = in_folder("image.db");
    assert_int_equal(decode_recorded(path, picture, &weir_image_decode,
                                     &(weir_image_config){ WEIR_WITH_PICTURE(.width = 32, .height = 32) }),
                     1);
    assert_int_equal(query_int(path, "SELECT num_frames FROM item_stats WHERE codec = 'mjpeg' AND width = 320"), 1);
    assert_work(1, "frames");
}

static int64_t held_bytes(const char *database, const char *path, const weir_op *op, const void *config)
{
    decode_recorded(database, path, op, config);
    return query_int(database, "SELECT max(max_held_bytes) FROM task_stats");
}

/* At least the result and a decoded frame; less than with a dozen frames, which is more than references and the file take. */
TEST_CASE(each_decode_stage_reports_what_it_holds)
{
    enum { RESULT = 640 * 480 * 3, CHUNK = 10 * 32 * 32 * 3, FRAME = 160 * 120 * 3 / 2, PICTURE = 320 * 240 * 3 / 2 };
    const char *picture = clips_make("a.jpg", "-f lavfi -i testsrc2=s=320x240 -frames:v 1 -q:v 3");
    const weir_video_config chunks = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .chunk_frames = 10 };
    const weir_video_config one = { WEIR_WITH_PICTURE(.width = 640, .height = 480), .sampling = { .count = 1 } };
    const weir_image_config image = { WEIR_WITH_PICTURE(.width = 640, .height = 480) };
    const weir_audio_config sound = { .sample_rate = 8000 };
    const weir_isolated_config isolated = {
        .op = &weir_video_decode, .config = &chunks, .config_size = sizeof chunks, .no_sandbox = true
    };
    assert_in_range(held_bytes(in_folder("chunks.db"), some_clip(), &weir_video_decode, &chunks), CHUNK + FRAME,
                    CHUNK + 12 * FRAME);
    assert_in_range(held_bytes(in_folder("one.db"), some_clip(), &weir_video_decode, &one), RESULT + FRAME,
                    RESULT + 12 * FRAME);
    assert_in_range(held_bytes(in_folder("image.db"), picture, &weir_image_decode, &image), RESULT + PICTURE,
                    RESULT + 12 * PICTURE);
    assert_in_range(held_bytes(in_folder("audio.db"), some_clip(), &weir_audio_decode, &sound), 4 * 8000,
                    8 * 4 * 8000);
    decode_recorded(in_folder("isolated.db"), some_clip(), &weir_isolated, &isolated);
    assert_int_equal(query_int(in_folder("isolated.db"), "SELECT count(max_held_bytes) FROM task_stats"), 0);
}

/* A result that is over a limit of frames is never passed on. What is held is then its frames while it is made. */
TEST_CASE(a_result_in_the_making_is_held)
{
    enum { FRAMES = 20, PICTURE = 160 * 120 * 3 };
    const weir_video_config video = { .max_frames = FRAMES };
    const char *path = some_clip(), *database = in_folder("over.db");
    weir_sqlite_writer *writer = open_writer(database, NULL);
    weir_observer observer = weir_sqlite_observer(writer);
    weir_pipeline *pipeline;
    weir_item item;
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &path, .num_paths = 1 }, NULL);
    weir_pipe_video(builder, &video, NULL);
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .observers = &observer, .num_observers = 1 };
    assert_int_equal(weir_builder_build(builder, &options, &pipeline, NULL), WEIR_OK);
    assert_int_not_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
    weir_pipeline_free(pipeline);
    close_writer(writer);
    assert_int_equal(query_int(database, "SELECT sum(num_failures) FROM task_stats"), 1);
    assert_in_range(query_int(database, "SELECT max(max_held_bytes) FROM task_stats"), (FRAMES - 2) * PICTURE,
                    (FRAMES + 12) * PICTURE);
}

TEST_CASE(what_a_child_process_decodes_has_its_cost)
{
    const char *path = in_folder("isolated.db");
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .chunk_frames = 10 };
    const weir_isolated_config isolated = {
        .op = &weir_video_decode, .config = &video, .config_size = sizeof video, .no_sandbox = true
    };
    assert_int_equal(decode_recorded(path, some_clip(), &weir_isolated, &isolated), 3);
    assert_int_equal(query_int(path, "SELECT num_frames FROM item_stats WHERE codec = 'mpeg4'"), 25);
    assert_work(25, "frames");
}

/* The pictures are whole. */
TEST_CASE(errors_of_the_sound_are_errors_of_the_item)
{
    char arguments[600];
    snprintf(arguments, sizeof arguments, "-i '%s' -c copy -bsf:a noise=amount=20", some_clip());
    const char *noisy = clips_make("noisy.mkv", arguments), *path = in_folder("noisy.db");
    const weir_audio_config sound = { .sample_rate = 8000 };
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32), .audio = &sound,
                                      .audio_size = sizeof sound };
    assert_int_equal(decode_recorded(in_folder("silent.db"), noisy, &weir_video_decode,
                                     &(weir_video_config){ WEIR_WITH_PICTURE(.width = 32, .height = 32) }),
                     1);
    assert_int_equal(query_int(in_folder("silent.db"), "SELECT num_errors FROM item_stats"), 0);
    assert_int_equal(decode_recorded(path, noisy, &weir_video_decode, &video), 1);
    assert_true(query_int(path, "SELECT num_errors FROM item_stats WHERE chosen = 'damaged'") > 0);
}

/* Frames that are decoded for another one, and thrown away, are work, too. */
TEST_CASE(frames_that_are_only_decoded_are_work)
{
    const int64_t last[] = { 23 }; /* of 25; a group of pictures has 12 */
    const weir_video_config video = { WEIR_WITH_PICTURE(.width = 32, .height = 32),
                                      .sampling = {
                                          .what = WEIR_SAMPLE_INDICES, .indices = last, .num_indices = 1 } };
    const char *path = in_folder("last.db");
    assert_int_equal(decode_recorded(path, some_clip(), &weir_video_decode, &video), 1);
    assert_int_equal(query_int(path, "SELECT num_frames FROM item_stats"), 1);
    assert_in_range(work.amount, 2, 24);
}

/* A file that is not a video: what is known of a failed item is reported, too, and nothing of the item before. */
static int count_times(void *self, void *state, weir_task *task, const weir_task_end *end)
{
    unsigned *num_failed = self;
    (void)state;
    (void)task;
    if (end->status < 0) {
        ++*num_failed;
        assert_non_null(find_part(end, "open"));
        assert_null(find_part(end, "decode"));
        assert_null(find_part(end, "codec"));
    }
    return WEIR_OK;
}

TEST_CASE(a_failed_item_tells_its_own_cost)
{
    const char *text = clips_path("text.mp4");
    const weir_op *const ops[] = { &weir_video_decode, &weir_audio_decode };
    clips_write_text(text, "this is no video at all, whatever its name says");
    for (size_t i = 0; i < 2; i++) {
        const char *const paths[] = { some_clip(), text };
        unsigned num_failed = 0;
        weir_task_hook hook = { .self = &num_failed, .end = count_times };
        weir_pipeline *pipeline;
        weir_item item;
        weir_builder *builder = weir_builder_new();
        weir_source_list(builder, &(weir_list_config){ .paths = paths, .num_paths = 2 }, NULL);
        weir_builder_pipe(builder, ops[i], NULL, 0,
                          &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
        weir_builder_sink(builder, NULL);
        assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
        while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
            weir_item_release(&item);
        weir_pipeline_free(pipeline);
        assert_int_equal(num_failed, 1);
    }
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static int tell_all(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    (void)worker;
    for (size_t i = 0; i < NUM_ROWS; i++)
        assert_int_equal(rows[i].info.kind == WEIR_PART_TEXT
                             ? weir_task_set_text(task, &rows[i].info, "x")
                             : weir_task_set_part(task, &rows[i].info, (int64_t)i + 1),
                         WEIR_OK);
    weir_item_move(out, in);
    return WEIR_OK;
}

TEST_CASE(each_part_of_a_decoded_item_has_a_column)
{
    static const weir_op op = { .name = "all", .run = tell_all };
    const char *database = in_folder("all.db"), *name = "item";
    weir_sqlite_writer *writer = open_writer(database, NULL);
    weir_task_hook hook;
    weir_pipeline *pipeline;
    weir_item item;
    weir_observer observer = weir_sqlite_observer(writer);
    assert_int_equal(weir_sqlite_item_hook(writer, &(weir_sqlite_items){ .all = true }, &hook, NULL), WEIR_OK);
    weir_builder *builder = weir_builder_new();
    weir_source_list(builder, &(weir_list_config){ .paths = &name, .num_paths = 1 }, NULL);
    weir_builder_pipe(builder, &op, NULL, 0, &(weir_stage_options){ .task_hooks = &hook, .num_task_hooks = 1 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder,
                                        &(weir_pipeline_options){ .observers = &observer, .num_observers = 1 },
                                        &pipeline, NULL),
                     WEIR_OK);
    while (weir_pipeline_next(pipeline, &item, WEIR_FOREVER) == WEIR_OK)
        weir_item_release(&item);
    weir_pipeline_free(pipeline);
    close_writer(writer);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        char sql[256];
        bool is_time = rows[i].info.kind == WEIR_PART_TIME;
        if (rows[i].info.kind == WEIR_PART_TEXT)
            snprintf(sql, sizeof sql, "SELECT %s = 'x' FROM item_stats", rows[i].info.name);
        else
            snprintf(sql, sizeof sql, "SELECT %s%s = %zu%s FROM item_stats", rows[i].info.name,
                     is_time ? "_time" : "", i + 1, is_time ? " / 1e9" : "");
        assert_int_equal(query_int(database, sql), 1);
    }
    assert_int_equal(query_int(database, "SELECT parts = '' FROM item_stats"), 1);
}

TEST_CASE(each_part_of_a_decoded_item_says_its_unit_and_meaning)
{
    for (size_t i = 0; i < NUM_ROWS; i++) {
        const weir_part_info *info = &rows[i].info;
        assert_true(strlen(info->name) > 0 && strlen(info->meaning) > 5);
        assert_true((info->kind == WEIR_PART_TEXT) == !*info->unit);
        assert_true((info->kind == WEIR_PART_TIME) == (strcmp(info->unit, "s") == 0));
        assert_true((info->kind == WEIR_PART_BYTES) == (strcmp(info->unit, "bytes") == 0));
        for (const char *c = info->name; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(info->name, rows[j].info.name);
    }
}

static int set_up(void **state)
{
    return clips_set_up(state) || make_folder(state);
}

static int tear_down(void **state)
{
    return remove_folder(state) || clips_tear_down(state);
}

TEST_MAIN(set_up, tear_down, NULL, NULL)
