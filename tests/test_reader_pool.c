/*
 * Pools of readers: whatever was taken before, and whatever happened to the files meanwhile, a reader gives what a new one gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "tests/test_case.h"

#include <weir/engine.h>
#include <weir/files.h>
#include <weir/video.h>
#include <weir/video_reader_pool.h>

#include "common/random.h"
#include "tests/clips.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const weir_picture_config small = { .width = 48, .height = 32 };
static const weir_video_config video = { .picture = &small, .picture_size = sizeof small, .seed = 3 };

/* With B-frames; whose frames must be counted; MPEG-TS. */
static const char *make_clip(size_t which)
{
    static const char *const clips[][2] = {
        { "b.mp4",
          "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v libx264 -preset veryfast -g 8 -bf 2 -pix_fmt yuv420p" },
        { "old.avi", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v mpeg4 -g 8 -bf 2" },
        { "t.ts", "-f lavfi -i testsrc2=s=96x64:r=20:d=2 -c:v mpeg2video -g 8 -bf 2" },
    };
    return clips_make(clips[which][0], clips[which][1]);
}

enum { NUM_CLIPS = 3, NUM_FRAMES = 40 };

/* Files that changed just now are not kept. */
static void make_old(const char *path, unsigned seconds)
{
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = time(NULL) - (time_t)seconds } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A file of its own with that content, in place of what was there. */
static void put_file(const char *path, const char *from, bool in_place)
{
    char *other = malloc(strlen(path) + 5);
    sprintf(other, "%s.new", path);
    uint8_t block[4096];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(in_place ? path : other, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, got, out), got);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
    if (!in_place)
        assert_int_equal(rename(other, path), 0);
    make_old(path, 100);
    free(other);
}

static weir_video_reader_pool *make_pool(uint32_t max_open, uint64_t max_bytes)
{
    weir_video_reader_pool *pool;
    weir_video_reader_pool_config config = {
        .max_open = max_open, .max_bytes = max_bytes, .video = &video, .video_size = sizeof video
    };
    assert_int_equal(weir_video_reader_pool_new(&pool, &config, sizeof config, NULL), WEIR_OK);
    return pool;
}

static weir_video_reader_pool_figures figures_of(weir_video_reader_pool *pool)
{
    weir_video_reader_pool_figures figures;
    assert_int_equal(weir_video_reader_pool_figures_get(pool, &figures, sizeof figures), WEIR_OK);
    return figures;
}

static weir_video_reader *take(weir_video_reader_pool *pool, const char *path)
{
    weir_video_reader *reader;
    weir_error error = { 0 };
    weir_video_source source = { .path = path };
    if (weir_video_reader_pool_take(pool, &source, sizeof source, &reader, &error) != WEIR_OK)
        fail_msg("%s: %s", path, error.message);
    return reader;
}

/* What a request gave: the frames, or the status and text of the failure. */
typedef struct answer {
    int rc;
    weir_frames *frames;
    weir_error error;
} answer;

static void free_answer(answer *given)
{
    weir_frames_free(given->frames);
}

static answer ask(weir_video_reader *reader, const weir_sampling *sampling, uint64_t number)
{
    answer given = { 0 };
    weir_video_reader_set_number(reader, 1, number);
    given.rc = weir_video_reader_frames(reader, sampling, sizeof *sampling, NULL, 0, &given.frames, &given.error);
    return given;
}

static answer ask_new(const char *path, const weir_sampling *sampling, uint64_t number)
{
    answer given = { 0 };
    weir_video_reader *reader;
    weir_video_source source = { .path = path };
    given.rc = weir_video_reader_open(&reader, &source, sizeof source, &video, sizeof video, &given.error);
    if (given.rc == WEIR_OK)
        given = ask(reader, sampling, number);
    weir_video_reader_free(reader);
    return given;
}

static answer ask_pool(weir_video_reader_pool *pool, const char *path, const weir_sampling *sampling, uint64_t number)
{
    answer given = { 0 };
    weir_video_reader *reader;
    weir_video_source source = { .path = path };
    given.rc = weir_video_reader_pool_take(pool, &source, sizeof source, &reader, &given.error);
    if (given.rc == WEIR_OK)
        given = ask(reader, sampling, number);
    weir_video_reader_pool_give_back(pool, reader);
    return given;
}

static void check_same(const answer *a, const answer *b)
{
    assert_int_equal(a->rc, b->rc);
    assert_string_equal(a->error.message, b->error.message);
    if (a->rc != WEIR_OK)
        return;
    const weir_frames *left = a->frames, *right = b->frames;
    assert_int_equal(left->num_frames, right->num_frames);
    assert_int_equal(left->frame_bytes, right->frame_bytes);
    assert_memory_equal(left->data, right->data, left->num_frames * left->frame_bytes);
    assert_memory_equal(left->pts, right->pts, left->num_frames * sizeof *left->pts);
    assert_memory_equal(left->times_ns, right->times_ns, left->num_frames * sizeof *left->times_ns);
    assert_memory_equal(left->mask, right->mask, left->num_frames);
    assert_int_equal(left->num_errors, right->num_errors);
    assert_int_equal(left->num_corrupt_frames, right->num_corrupt_frames);
    assert_int_equal(left->num_missing_frames, right->num_missing_frames);
}

static weir_sampling random_sampling(uint64_t *random, int64_t *index)
{
    uint64_t kind = weir__random_below(random, 5);
    uint32_t count = 1 + (uint32_t)weir__random_below(random, 5);
    *index = (int64_t)weir__random_below(random, NUM_FRAMES + 5);
    switch (kind) {
    case 0: return (weir_sampling){ .what = WEIR_SAMPLE_ALL, .count = count };
    case 1: return (weir_sampling){ .what = WEIR_SAMPLE_INDICES, .indices = index, .num_indices = 1 };
    case 2: return (weir_sampling){ .what = WEIR_SAMPLE_UNIFORM, .count = count };
    case 3: return (weir_sampling){ .what = WEIR_SAMPLE_CLIPS, .count = count, .clip_start = WEIR_CLIP_RANDOM };
    default: return (weir_sampling){ .what = WEIR_SAMPLE_EVERY, .every = 1 + count };
    }
}

/* Replaces, overwrites, cuts or deletes the file, or leaves it. */
static void change_file(const char *path, uint64_t *random)
{
    const char *other = make_clip((size_t)weir__random_below(random, NUM_CLIPS));
    switch (weir__random_below(random, 12)) {
    case 0: put_file(path, other, false); break;
    case 1: put_file(path, other, true); break;
    case 2:
        put_file(path, other, false);
        assert_int_equal(truncate(path, 9000), 0);
        make_old(path, 100);
        break;
    case 3: unlink(path); break;
    default: break;
    }
}

TEST_CASE(random_requests_to_files_that_change_give_what_a_new_reader_gives)
{
    const char *paths[] = { clips_path("x.bin"), clips_path("y.bin"), clips_path("z.bin") };
    uint64_t random = 7;
    uint64_t num_reused = 0, num_replaced = 0, num_closed = 0;
    for (unsigned round = 0; round < 3; round++) {
        weir_video_reader_pool *pool = make_pool(1 + round, 0);
        for (size_t i = 0; i < LENGTH(paths); i++)
            put_file(paths[i], make_clip(i), false);
        for (unsigned i = 0; i < 120; i++) {
            int64_t index;
            const char *path = paths[weir__random_below(&random, LENGTH(paths))];
            change_file(path, &random);
            weir_sampling sampling = random_sampling(&random, &index);
            answer expected = ask_new(path, &sampling, i);
            answer given = ask_pool(pool, path, &sampling, i);
            check_same(&expected, &given);
            free_answer(&expected);
            free_answer(&given);
            assert_true(figures_of(pool).num_idle <= 1 + round);
            if (access(path, F_OK) != 0)
                put_file(path, make_clip(i % NUM_CLIPS), false);
        }
        num_reused += figures_of(pool).num_reused;
        num_replaced += figures_of(pool).num_replaced;
        num_closed += figures_of(pool).num_closed;
        weir_video_reader_pool_free(pool);
    }
    assert_true(num_reused > 30 && num_replaced > 10 && num_closed > 10);
}

static const weir_sampling middle = { .what = WEIR_SAMPLE_UNIFORM, .count = 3 };

static void use(weir_video_reader_pool *pool, const char *path)
{
    answer given = ask_pool(pool, path, &middle, 0);
    assert_int_equal(given.rc, WEIR_OK);
    free_answer(&given);
}

TEST_CASE(a_reader_is_kept_and_two_users_of_a_path_have_two)
{
    const char *path = clips_path("kept.mp4");
    put_file(path, make_clip(0), false);
    weir_video_reader_pool *pool = make_pool(0, 0);
    weir_video_reader *first = take(pool, path), *second = take(pool, path);
    assert_ptr_not_equal(first, second);
    assert_int_equal(figures_of(pool).num_used, 2);
    weir_video_reader_pool_give_back(pool, first);
    assert_int_equal(figures_of(pool).num_idle, 1);
    assert_ptr_equal(take(pool, path), first);
    assert_int_equal(figures_of(pool).num_reused, 1);
    weir_video_reader_pool_give_back(pool, first);
    weir_video_reader_pool_give_back(pool, second);
    assert_int_equal(figures_of(pool).num_idle, 2);
    weir_video_reader_pool_drop(pool);
    assert_int_equal(figures_of(pool).num_idle, 0);
    assert_int_equal(figures_of(pool).idle_bytes, 0);
    weir_video_reader_pool_free(pool);
}

TEST_CASE(the_least_recently_used_are_closed_first)
{
    const char *paths[] = { clips_path("a.bin"), clips_path("b.bin"), clips_path("c.bin") };
    for (size_t i = 0; i < LENGTH(paths); i++)
        put_file(paths[i], make_clip(i), false);
    weir_video_reader_pool *pool = make_pool(2, 0);
    use(pool, paths[0]);
    use(pool, paths[1]);
    use(pool, paths[0]);
    use(pool, paths[2]); /* closes 1 */
    assert_int_equal(figures_of(pool).num_reused, 1);
    assert_int_equal(figures_of(pool).num_closed, 1);
    use(pool, paths[0]);
    assert_int_equal(figures_of(pool).num_reused, 2);
    use(pool, paths[1]);
    assert_int_equal(figures_of(pool).num_reused, 2);
    assert_int_equal(figures_of(pool).num_idle, 2);
    weir_video_reader_pool_free(pool);
}

TEST_CASE(idle_readers_stay_within_the_bytes)
{
    const char *path = clips_path("bytes.mp4");
    put_file(path, make_clip(0), false);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    weir_video_reader_pool *pool = make_pool(0, 0);
    use(pool, path);
    uint64_t bytes = figures_of(pool).idle_bytes;
    assert_true(bytes > (uint64_t)info.st_size / 2); /* its packets are cached */
    weir_video_reader_pool_free(pool);

    pool = make_pool(0, bytes - 1);
    use(pool, path);
    assert_int_equal(figures_of(pool).num_idle, 0);
    assert_int_equal(figures_of(pool).num_closed, 1);
    weir_video_reader_pool_free(pool);
}

TEST_CASE(a_file_that_changed_just_now_is_not_kept)
{
    const char *path = clips_path("fresh.mp4");
    put_file(path, make_clip(0), false);
    make_old(path, 0);
    weir_video_reader_pool *pool = make_pool(0, 0);
    use(pool, path);
    assert_int_equal(figures_of(pool).num_idle, 0);
    weir_video_reader_pool_free(pool);
}

static bool always(void *self)
{
    (void)self;
    return true;
}

TEST_CASE(a_reader_asks_its_present_user_whether_to_stop)
{
    const char *path = clips_path("stop.mp4");
    put_file(path, make_clip(0), false);
    weir_video_reader_pool *pool = make_pool(0, 0);
    use(pool, path);
    weir_video_reader *reader;
    weir_video_source source = { .path = path, .should_stop = always };
    int rc = weir_video_reader_pool_take(pool, &source, sizeof source, &reader, NULL);
    assert_int_equal(rc, WEIR_ESTOPPED);
    assert_null(reader);
    use(pool, path);
    weir_video_reader_pool_free(pool);
}

TEST_CASE(after_a_failure_a_reader_is_not_kept)
{
    const char *path = clips_path("failed.mp4");
    int64_t beyond = 1000;
    weir_sampling sampling = { .what = WEIR_SAMPLE_INDICES, .indices = &beyond, .num_indices = 1 };
    put_file(path, make_clip(0), false);
    weir_video_reader_pool *pool = make_pool(0, 0);
    answer given = ask_pool(pool, path, &sampling, 0);
    assert_int_equal(given.rc, WEIR_ERANGE);
    assert_int_equal(figures_of(pool).num_idle, 0);
    assert_int_equal(figures_of(pool).num_used, 0);
    weir_video_reader_pool_free(pool);
}

TEST_CASE(a_pool_opens_only_paths)
{
    weir_video_reader *reader;
    weir_error error = { 0 };
    weir_video_source none = { 0 };
    weir_video_reader_pool *pool = make_pool(0, 0);
    assert_int_equal(weir_video_reader_pool_take(pool, &none, sizeof none, &reader, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.message, "set path"));
    weir_video_reader_pool_free(pool);
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

typedef struct user {
    weir_video_reader_pool *pool;
    const char *const *paths;
    const answer *expected; /* of each path */
    uint64_t random;
} user;

static void *use_often(void *self)
{
    user *one = self;
    for (unsigned i = 0; i < 60; i++) {
        size_t which = (size_t)weir__random_below(&one->random, NUM_CLIPS);
        answer given = ask_pool(one->pool, one->paths[which], &middle, 0);
        check_same(&given, &one->expected[which]);
        free_answer(&given);
    }
    return NULL;
}

TEST_CASE(threads_share_a_pool)
{
    enum { NUM_THREADS = 4 };
    const char *paths[] = { clips_path("p.bin"), clips_path("q.bin"), clips_path("r.bin") };
    answer expected[NUM_CLIPS];
    for (size_t i = 0; i < NUM_CLIPS; i++) {
        put_file(paths[i], make_clip(i), false);
        expected[i] = ask_new(paths[i], &middle, 0);
    }
    weir_video_reader_pool *pool = make_pool(3, 0);
    pthread_t threads[NUM_THREADS];
    user users[NUM_THREADS];
    for (size_t i = 0; i < NUM_THREADS; i++) {
        users[i] = (user){ pool, paths, expected, i };
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, &users[i]), 0);
    }
    for (size_t i = 0; i < NUM_THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_video_reader_pool_figures figures = figures_of(pool);
    assert_int_equal(figures.num_taken, 60 * NUM_THREADS);
    assert_int_equal(figures.num_used, 0);
    assert_true(figures.num_idle <= 3);
    weir_video_reader_pool_free(pool);
    for (size_t i = 0; i < NUM_CLIPS; i++)
        free_answer(&expected[i]);
}

/* ---- the stage ------------------------------------------------------------------------------------------------- */

enum { NUM_STAGE_CLIPS = 60 };

typedef struct stage_run {
    uint64_t hashes[NUM_STAGE_CLIPS]; /* of the results of each item: pixels, times, errors */
    unsigned num_failed;
    char message[512]; /* of a failure */
} stage_run;

static void add_frames(uint64_t *hash, const weir_frames *frames)
{
    *hash = weir__hash(*hash + 1, frames->data, frames->num_frames * frames->frame_bytes);
    *hash = weir__hash(*hash, frames->pts, frames->num_frames * sizeof *frames->pts);
    *hash = weir__hash(*hash, frames->times_ns, frames->num_frames * sizeof *frames->times_ns);
    *hash += frames->num_missing_frames + frames->first_frame + frames->is_last_chunk;
}

static void run_stage(const weir_list_config *list, weir_video_config config, stage_run *to)
{
    weir_builder *builder = weir_builder_new();
    weir_pipeline *pipeline;
    weir_item item;
    int status;
    *to = (stage_run){ 0 };
    weir_source_list(builder, list, NULL);
    weir_pipe_video(builder, &config, &(weir_stage_options){ .concurrency = 3 });
    weir_builder_sink(builder, NULL);
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, NULL), WEIR_OK);
    while ((status = weir_pipeline_next(pipeline, &item, 60 * WEIR_SECOND)) != WEIR_EOF) {
        assert_int_equal(status, WEIR_OK);
        add_frames(&to->hashes[item.seq], item.data);
        weir_item_release(&item);
    }
    weir_account account;
    weir_error error = { 0 };
    assert_int_equal(weir_pipeline_account(pipeline, "decode", &account), WEIR_OK);
    to->num_failed = (unsigned)account.failed;
    weir_pipeline_error(pipeline, "decode", &error);
    snprintf(to->message, sizeof to->message, "%s", error.message);
    weir_pipeline_free(pipeline);
}

/* Random windows of files of several containers, one of which is not a video; three slots share two readers. */
TEST_CASE(a_stage_that_keeps_files_open_gives_the_same)
{
    static const char *const kinds[][2] = {
        { "kept.mp4",
          "-f lavfi -i testsrc2=s=64x48:r=20:d=3 -c:v libx264 -preset veryfast -g 12 -bf 2 -pix_fmt yuv420p" },
        { "kept.mkv", "-f lavfi -i testsrc2=s=64x48:r=20:d=3 -c:v libx264 -preset veryfast -g 9 -pix_fmt yuv420p" },
        { "kept.avi", "-f lavfi -i testsrc2=s=64x48:r=20:d=2 -c:v mpeg4 -g 12 -bf 2" },
        { "kept.ts", "-f lavfi -i testsrc2=s=64x48:r=20:d=2 -c:v mpeg2video -g 12 -bf 2" },
    };
    static stage_run whole, kept;
    const char *paths[NUM_STAGE_CLIPS];
    weir_clip_window windows[NUM_STAGE_CLIPS];
    uint64_t chance = (uint64_t)weir_clock_ns();
    print_message("seed %llu\n", (unsigned long long)chance);
    for (size_t i = 0; i < NUM_STAGE_CLIPS; i++) {
        uint64_t kind = weir__random_below(&chance, 4);
        paths[i] = i == 7 ? clips_path("none.mp4") : clips_make(kinds[kind][0], kinds[kind][1]);
        if (!paths[i])
            return;
        int64_t start_ns = (int64_t)weir__random_below(&chance, 18) * 100 * WEIR_MILLISECOND;
        windows[i] =
            (weir_clip_window){ .start_ns = start_ns, .end_ns = i % 3 ? start_ns + 400 * WEIR_MILLISECOND : 0 };
    }
    const weir_list_config list = { .paths = paths, .num_paths = NUM_STAGE_CLIPS, .windows = windows };
    for (int way = 0; way < 4; way++) {
        weir_video_config config = { .seed = 3 };
        if (way % 2)
            config.sampling = (weir_sampling){ .what = WEIR_SAMPLE_RANDOM, .count = 3 };
        config.chunk_frames = way / 2 ? 2 : 0;
        run_stage(&list, config, &whole);
        config.keep_open = 2;
        run_stage(&list, config, &kept);
        assert_int_equal(whole.num_failed, 1);
        assert_int_equal(kept.num_failed, 1);
        assert_string_equal(kept.message, whole.message);
        for (size_t i = 0; i < NUM_STAGE_CLIPS; i++)
            if (kept.hashes[i] != whole.hashes[i])
                fail_msg("way %d: %s from %lld is different", way, paths[i], (long long)windows[i].start_ns);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
