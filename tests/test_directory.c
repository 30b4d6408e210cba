/* The directory source and weir_directory_count(). */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
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

#include <libavformat/avformat.h>

#include "tests/clips.h"

enum { MAX_LISTED = 64 };

/* What a source gave. */
typedef struct listing {
    char *paths[MAX_LISTED];
    size_t num_paths;
    size_t num_events; /* of unreadable folders */
    char event_detail[4096];
} listing;

static void note_event(void *self, const weir_event *event)
{
    listing *list = self;
    if (strcmp(event->name, "unreadable_folder") != 0)
        return;
    list->num_events++;
    snprintf(list->event_detail, sizeof list->event_detail, "%s", event->detail);
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static weir_pipeline *start(const weir_directory_config *config, const weir_observer *observer)
{
    weir_pipeline *pipeline = NULL;
    weir_error error = { 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    int rc = weir_builder_build(builder,
                                &(weir_pipeline_options){ .observers = observer, .num_observers = observer != NULL },
                                &pipeline, &error);
    if (rc != WEIR_OK)
        fail_msg("%s", error.message);
    return pipeline;
}

/* All that the source gives, in the order it comes, without "FOLDER/root/" in front. */
static void collect(const weir_directory_config *config, listing *list)
{
    *list = (listing){ 0 };
    weir_observer observer = { .self = list, .event = note_event };
    weir_pipeline *pipeline = start(config, &observer);
    weir_item item;
    int rc;
    while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK) {
        const char *path = item.data;
        assert_string_equal(path, item.label);
        assert_int_equal(item.size_bytes, 0);
        assert_int_equal(strncmp(path, config->root, strlen(config->root)), 0);
        assert_true(list->num_paths < MAX_LISTED);
        list->paths[list->num_paths++] = strdup(path + strlen(config->root) + 1);
        weir_item_release(&item);
    }
    assert_int_equal(rc, WEIR_EOF);
    weir_pipeline_free(pipeline);
}

static void free_listing(listing *list)
{
    for (size_t i = 0; i < list->num_paths; i++)
        free(list->paths[i]);
}

/* The source gives exactly these, in any order unless sorted. */
static void assert_lists(const weir_directory_config *config, const char *const *expected)
{
    listing list;
    collect(config, &list);
    if (!config->sorted)
        qsort(list.paths, list.num_paths, sizeof *list.paths, compare_paths);
    size_t num_expected = 0;
    while (expected[num_expected]) {
        if (num_expected >= list.num_paths)
            fail_msg("%s is missing", expected[num_expected]);
        assert_string_equal(list.paths[num_expected], expected[num_expected]);
        num_expected++;
    }
    if (list.num_paths > num_expected)
        fail_msg("%s is too much", list.paths[num_expected]);
    free_listing(&list);
}

static const char *make(const char *root, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, name);
    const char *path = clips_path(full);
    size_t length = strlen(path);
    if (path[length - 1] == '/')
        clips_make_folder(path);
    else
        clips_write_text(path, "x");
    return path;
}

static void make_link(const char *to, const char *root, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", root, name);
    assert_int_equal(symlink(to, clips_path(full)), 0);
}

/* a/2.mp4, a/b/3.mp4, a/b/note.txt, a.mp4, c.mp4, .hidden.mp4 */
static const char *make_tree(const char *name)
{
    const char *root = clips_path(name);
    clips_make_folder(root);
    make(name, "a/");
    make(name, "a/b/");
    make(name, "a/2.mp4");
    make(name, "a/b/3.mp4");
    make(name, "a/b/note.txt");
    make(name, "a.mp4");
    make(name, "c.mp4");
    make(name, ".hidden.mp4");
    return root;
}

TEST_CASE(lists_what_matches_below_the_root)
{
    const char *root = make_tree("match");
    assert_lists(&(weir_directory_config){ .root = root, .glob = "*.mp4" },
                 (const char *[]){ ".hidden.mp4", "a.mp4", "a/2.mp4", "a/b/3.mp4", "c.mp4", NULL });
    assert_lists(&(weir_directory_config){ .root = root, .glob = "[23].*" },
                 (const char *[]){ "a/2.mp4", "a/b/3.mp4", NULL });
    assert_lists(&(weir_directory_config){ .root = root, .glob = "nothing", .may_be_empty = true },
                 (const char *[]){ NULL });
}

TEST_CASE(without_a_glob_every_file_is_listed)
{
    assert_lists(&(weir_directory_config){ .root = make_tree("all") },
                 (const char *[]){ ".hidden.mp4", "a.mp4", "a/2.mp4", "a/b/3.mp4", "a/b/note.txt", "c.mp4", NULL });
}

TEST_CASE(flat_stays_in_the_root)
{
    const char *root = make_tree("flat");
    make_link("a", "flat", "linked");
    assert_lists(&(weir_directory_config){ .root = root, .flat = true },
                 (const char *[]){ ".hidden.mp4", "a.mp4", "c.mp4", NULL });
}

TEST_CASE(sorted_puts_a_folders_contents_in_its_names_place)
{
    const char *root = make_tree("sorted");
    assert_lists(&(weir_directory_config){ .root = root, .sorted = true },
                 (const char *[]){ ".hidden.mp4", "a/2.mp4", "a/b/3.mp4", "a/b/note.txt", "a.mp4", "c.mp4", NULL });
}

static bool accept_each_third(void *remainder, const char *path, uint64_t number)
{
    return strstr(path, "/") && number % 3 == *(const uint64_t *)remainder;
}

TEST_CASE(only_accepted_files_are_listed_and_counted)
{
    uint64_t remainder = 1, count;
    weir_directory_config config = {
        .root = make_tree("accepted"), .sorted = true, .accept = accept_each_third, .accept_self = &remainder
    };
    assert_lists(&config, (const char *[]){ "a/2.mp4", "a.mp4", NULL });
    assert_int_equal(weir_directory_count(&config, UINT64_MAX, &count, NULL), WEIR_OK);
    assert_int_equal(count, 2);
    remainder = 3; /* an empty share of what is there is no failure */
    assert_lists(&config, (const char *[]){ NULL });
    assert_int_equal(weir_directory_count(&config, UINT64_MAX, &count, NULL), WEIR_OK);
    assert_int_equal(count, 0);
}

TEST_CASE(a_slash_behind_the_root_is_not_doubled)
{
    make_tree("slash");
    const char *root = clips_path("slash/");
    listing list;
    weir_directory_config config = { .root = root, .glob = "c.mp4" };
    collect(&config, &list);
    assert_int_equal(list.num_paths, 1);
    assert_string_equal(list.paths[0], ".mp4"); /* one letter less than with a slash of its own: "c" */
    free_listing(&list);
}

TEST_CASE(links_to_files_and_folders_are_followed)
{
    make_tree("target");
    const char *root = clips_path("links");
    clips_make_folder(root);
    make_link("../target/a.mp4", "links", "file.mp4");
    make_link("../target/a", "links", "folder");
    make_link("nowhere", "links", "broken.mp4");
    make_link("nowhere", "links", "broken.txt");
    assert_lists(&(weir_directory_config){ .root = root, .glob = "*.mp4" },
                 (const char *[]){ "broken.mp4", "file.mp4", "folder/2.mp4", "folder/b/3.mp4", NULL });
}

TEST_CASE(a_folder_that_several_links_lead_to_is_listed_once)
{
    make_tree("shared");
    const char *root = clips_path("once");
    clips_make_folder(root);
    make_link("../shared/a", "once", "first");
    make_link("../shared/a", "once", "second");
    make_link("../shared", "once", "third");
    assert_lists(
        &(weir_directory_config){ .root = root, .glob = "*.mp4", .sorted = true },
        (const char *[]){ "first/2.mp4", "first/b/3.mp4", "third/.hidden.mp4", "third/a.mp4", "third/c.mp4", NULL });
}

/* There are more than 100,000 ways through them. */
TEST_CASE(folders_that_link_to_each_other_are_listed_once_each)
{
    enum { NUM_FOLDERS = 8 };
    const char *root = clips_path("mesh");
    char name[64], to[32];
    clips_make_folder(root);
    for (int i = 0; i < NUM_FOLDERS; i++) {
        snprintf(name, sizeof name, "mesh/%d/", i);
        make(".", name);
        snprintf(name, sizeof name, "mesh/%d/%d.mp4", i, i);
        make(".", name);
        for (int j = 0; j < NUM_FOLDERS; j++) {
            snprintf(to, sizeof to, "../%d", j);
            snprintf(name, sizeof name, "%d/to%d", i, j);
            make_link(to, "mesh", name);
        }
    }
    listing list;
    weir_directory_counts counts;
    collect(&(weir_directory_config){ .root = root, .glob = "*.mp4", .counts = &counts }, &list);
    assert_int_equal(list.num_paths, NUM_FOLDERS);
    assert_int_equal(counts.folders, NUM_FOLDERS + 1);
    free_listing(&list);
}

TEST_CASE(link_loops_end)
{
    for (int sorted = 0; sorted < 2; sorted++) {
        const char *name = sorted ? "loops_sorted" : "loops";
        const char *root = clips_path(name);
        clips_make_folder(root);
        make(name, "a/");
        make(name, "b/");
        make(name, "a/1.mp4");
        make(name, "b/2.mp4");
        make_link(".", name, "self");
        make_link("..", name, "a/up");
        make_link("../b", name, "a/across");
        make_link("../a", name, "b/across");
        make_link("round", name, "round");
        listing list; /* which of its names a folder is listed by depends on the order */
        collect(&(weir_directory_config){ .root = root, .glob = "*.mp4", .sorted = sorted }, &list);
        assert_int_equal(list.num_paths, 2);
        free_listing(&list);
    }
}

/* ---- listings that do not end well ---------------------------------------------------------------------------- */

/* Takes the place of the C library's function. */
static struct {
    atomic_int mode; /* of the following */
    atomic_int num_calls;
} listings;

enum { HONEST = 0, BREAKS_OFF, ENDLESS };

struct dirent *readdir(DIR *from)
{
    struct dirent *(*real)(DIR *);
    static _Thread_local struct dirent made_up = { .d_type = DT_REG, .d_name = "note.txt" };
    *(void **)&real = dlsym(RTLD_NEXT, "readdir");
    int num_calls = atomic_fetch_add(&listings.num_calls, 1);
    int mode = atomic_load(&listings.mode);
    if (mode == ENDLESS)
        return &made_up;
    if (mode == BREAKS_OFF && num_calls >= 4) {
        errno = EIO;
        return NULL;
    }
    return real(from);
}

static void set_listings(int mode)
{
    atomic_store(&listings.num_calls, 0);
    atomic_store(&listings.mode, mode);
}

TEST_CASE(a_listing_that_breaks_off_is_counted_and_reported)
{
    for (int sorted = 0; sorted < 2; sorted++) {
        const char *root = make_tree(sorted ? "broken_sorted" : "broken");
        weir_directory_counts counts;
        listing list;
        set_listings(BREAKS_OFF);
        collect(&(weir_directory_config){ .root = root, .sorted = sorted, .counts = &counts }, &list);
        set_listings(HONEST);
        assert_true(list.num_paths < 6);
        assert_true(counts.unreadable_folders > 0);
        assert_int_equal(list.num_events, counts.unreadable_folders);
        free_listing(&list);
    }
}

TEST_CASE(stop_ends_a_listing_in_which_nothing_matches)
{
    const char *root = make_tree("endless");
    for (int sorted = 0; sorted < 2; sorted++) {
        set_listings(ENDLESS);
        weir_pipeline *pipeline =
            start(&(weir_directory_config){ .root = root, .glob = "*.mp4", .sorted = sorted }, NULL);
        while (atomic_load(&listings.num_calls) < 1000)
            sched_yield();
        weir_pipeline_stop(pipeline);
        weir_pipeline_free(pipeline); /* would wait for ever */
        set_listings(HONEST);
    }
}

TEST_CASE(pipes_are_passed_over)
{
    const char *root = clips_path("pipes");
    clips_make_folder(root);
    make("pipes", "1.mp4");
    assert_int_equal(mkfifo(clips_path("pipes/2.mp4"), 0600), 0);
    make_link("2.mp4", "pipes", "3.mp4");
    assert_lists(&(weir_directory_config){ .root = root }, (const char *[]){ "1.mp4", NULL });
}

/* Runs these folders, merged, and fills *error with the pipeline's. */
static int run_to_the_end(const weir_directory_config *folders, size_t num_folders, uint32_t epochs,
                          weir_error *error)
{
    weir_pipeline *pipeline = NULL;
    weir_item item;
    int rc;
    weir_builder *builder = weir_builder_new();
    for (size_t i = 0; i < num_folders; i++)
        weir_source_directory(builder, &folders[i], &(weir_stage_options){ .epochs = epochs });
    if (num_folders > 1)
        weir_builder_merge(builder, NULL, NULL);
    weir_builder_sink(builder, NULL);
    *error = (weir_error){ 0 };
    assert_int_equal(weir_builder_build(builder, NULL, &pipeline, error), WEIR_OK);
    while ((rc = weir_pipeline_next(pipeline, &item, WEIR_FOREVER)) == WEIR_OK || rc == WEIR_EPOCH)
        weir_item_release(&item);
    weir_pipeline_error(pipeline, NULL, error);
    weir_pipeline_free(pipeline);
    return rc;
}

TEST_CASE(unreadable_folders_are_counted_reported_and_passed_over)
{
    const char *root = make_tree("unreadable");
    assert_int_equal(chmod(clips_path("unreadable/a/b"), 0), 0);
    if (!clips_drop_root()) {
        fprintf(stderr, "skipped: permissions do not count for this user\n");
        skip();
    }
    weir_directory_counts counts;
    listing list;
    collect(&(weir_directory_config){ .root = root, .glob = "*.mp4", .counts = &counts }, &list);
    uint64_t count;
    weir_error error = { 0 };
    weir_directory_config config = { .root = root, .glob = "*.mp4" };
    assert_int_equal(weir_directory_count(&config, 1, &count, &error), WEIR_OK);
    config.glob = "*.none"; /* it may be in the folder that cannot be read */
    assert_int_equal(weir_directory_count(&config, 1, &count, &error), WEIR_EACCESS);
    assert_non_null(strstr(error.message, "cannot read folder"));
    assert_non_null(strstr(error.message, "unreadable/a/b: Permission denied"));
    weir_error failure;
    assert_int_equal(run_to_the_end(&config, 1, 1, &failure), WEIR_EFAILED);
    clips_regain_root();
    assert_int_equal(failure.status, WEIR_EACCESS);
    assert_string_equal(failure.message, error.message);
    assert_int_equal(chmod(clips_path("unreadable/a/b"), 0755), 0);
    assert_int_equal(list.num_paths, 4);
    assert_int_equal(list.num_events, 1);
    assert_non_null(strstr(list.event_detail, "unreadable/a/b"));
    assert_int_equal(counts.files, 4);
    assert_int_equal(counts.folders, 2);
    assert_int_equal(counts.unreadable_folders, 1);
    free_listing(&list);
}

/* Both hold for the listing and for the count; sorted, so that it is known which is the first. */
TEST_CASE(of_several_unreadable_folders_the_first_is_told)
{
    const char *root = make_tree("two_unreadable");
    make("two_unreadable", "d/");
    assert_int_equal(chmod(clips_path("two_unreadable/a/b"), 0), 0);
    assert_int_equal(chmod(clips_path("two_unreadable/d"), 0), 0);
    if (!clips_drop_root()) {
        fprintf(stderr, "skipped: permissions do not count for this user\n");
        skip();
    }
    weir_directory_config config = { .root = root, .glob = "*.none", .sorted = true };
    weir_error counted = { 0 }, failure = { 0 };
    uint64_t count;
    int count_status = weir_directory_count(&config, 1, &count, &counted);
    int run_status = run_to_the_end(&config, 1, 1, &failure);
    clips_regain_root();
    assert_int_equal(chmod(clips_path("two_unreadable/a/b"), 0755), 0);
    assert_int_equal(chmod(clips_path("two_unreadable/d"), 0755), 0);
    assert_int_equal(count_status, WEIR_EACCESS);
    assert_int_equal(run_status, WEIR_EFAILED);
    assert_non_null(strstr(counted.message, "two_unreadable/a/b: Permission denied"));
    assert_string_equal(failure.message, counted.message);
}

static int refusal(const weir_directory_config *config, weir_error *error)
{
    weir_pipeline *pipeline = NULL;
    uint64_t count = 1;
    *error = (weir_error){ 0 };
    weir_builder *builder = weir_builder_new();
    weir_source_directory(builder, config, NULL);
    weir_builder_sink(builder, NULL);
    int rc = weir_builder_build(builder, NULL, &pipeline, error);
    assert_null(pipeline);
    assert_int_equal(weir_directory_count(config, 1, &count, NULL), rc);
    assert_int_equal(count, 0);
    return rc;
}

TEST_CASE(a_root_that_cannot_be_listed_is_refused)
{
    weir_error error = { 0 };
    assert_int_equal(refusal(&(weir_directory_config){ 0 }, &error), WEIR_EINVAL);
    assert_int_equal(refusal(&(weir_directory_config){ .root = "" }, &error), WEIR_EINVAL);

    const char *missing = clips_path("missing");
    assert_int_equal(refusal(&(weir_directory_config){ .root = missing }, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, missing));

    const char *file = clips_path("file");
    clips_write_text(file, "x");
    assert_int_equal(refusal(&(weir_directory_config){ .root = file }, &error), WEIR_ENOTFOUND);
    assert_non_null(strstr(error.message, "not a folder"));

    const char *locked = clips_path("locked");
    clips_make_folder(locked);
    assert_int_equal(chmod(locked, 0), 0);
    if (clips_drop_root()) {
        int rc = refusal(&(weir_directory_config){ .root = locked }, &error);
        clips_regain_root();
        assert_int_equal(rc, WEIR_EACCESS);
        assert_non_null(strstr(error.message, locked));
    }
}

TEST_CASE(count_stops_where_it_is_told)
{
    weir_directory_config config = { .root = make_tree("count"), .glob = "*.mp4" };
    uint64_t count;
    assert_int_equal(weir_directory_count(&config, 1, &count, NULL), WEIR_OK);
    assert_int_equal(count, 1);
    assert_int_equal(weir_directory_count(&config, UINT64_MAX, &count, NULL), WEIR_OK);
    assert_int_equal(count, 5);
    config.glob = "*.avi";
    assert_int_equal(weir_directory_count(&config, 1, &count, NULL), WEIR_ENOTFOUND);
    assert_int_equal(count, 0);
}

TEST_CASE(videos_are_taken_by_their_extension_in_upper_and_lower_case)
{
    static const char *const names[] = { "a.mkv",     "b.MP4", "c.avi",    "d.Webm", "e.m2ts",    ".mov",
                                         "notes.txt", "g.jpg", "h.mp4.gz", "mp4",    "list.m3u8", "i.mp3" };
    const char *root = clips_path("mixed");
    clips_make_folder(root);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        make("mixed", names[i]);
    assert_lists(&(weir_directory_config){ .root = root, .glob = WEIR_VIDEO_FILES },
                 (const char *[]){ ".mov", "a.mkv", "b.MP4", "c.avi", "d.Webm", "e.m2ts", NULL });
    assert_lists(&(weir_directory_config){ .root = root, .glob = WEIR_IMAGE_FILES },
                 (const char *[]){ "g.jpg", NULL });
    assert_true(weir_file_name_matches("dir.mp4/A.WAV", WEIR_AUDIO_FILES));
    assert_false(weir_file_name_matches("dir.mp4/A", WEIR_VIDEO_FILES));
    assert_true(weir_file_name_matches("dir/a.mp4", "*.mp4"));
    assert_false(weir_file_name_matches("dir/A.MP4", "*.mp4"));
}

/* Other names of extensions that FFmpeg has, and of formats that it recognises by their contents. */
static const char *const usual_aliases[] = { "divx", "h263", "mpe", "mpv", "ogm", "qt", "rmvb", "viv", NULL };

/* Extensions of FFmpeg's formats for video that say that a file has only audio, or is a part of a stream. */
static const char *const not_videos[] = { "wma", "m4a", "m4b", "isma", "chk", NULL };

static bool is_among(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_known_to_ffmpeg(const char *extension)
{
    char name[32];
    void *place = NULL;
    const AVInputFormat *format;
    snprintf(name, sizeof name, "a.%s", extension);
    while ((format = av_demuxer_iterate(&place)))
        if (format->extensions && av_match_ext(name, format->extensions))
            return true;
    return av_guess_format(NULL, name, NULL) != NULL;
}

TEST_CASE(the_extensions_of_videos_are_those_that_ffmpeg_knows)
{
    char extensions[] = WEIR_VIDEO_EXTENSIONS, name[32];
    for (char *rest, *word = strtok_r(extensions, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!is_among(word, usual_aliases) && !is_known_to_ffmpeg(word))
            fail_msg("FFmpeg does not know .%s", word);

    void *place = NULL;
    const AVOutputFormat *format;
    while ((format = av_muxer_iterate(&place))) {
        bool is_video = format->mime_type && strncmp(format->mime_type, "video/", 6) == 0;
        const char *word = is_video && format->extensions ? format->extensions : "";
        for (; *word; word += strcspn(word, ","), word += *word == ',') {
            snprintf(name, sizeof name, "a.%.*s", (int)strcspn(word, ","), word);
            if (!weir_file_name_matches(name, WEIR_VIDEO_FILES) && !is_among(name + 2, not_videos))
                fail_msg("%s: FFmpeg's format %s is a video (%s)", name, format->name, format->mime_type);
        }
    }
}

static void assert_refusal(const weir_directory_config *config, const char *expected)
{
    weir_error error = { 0 };
    uint64_t count;
    assert_int_equal(weir_directory_count(config, 1, &count, &error), WEIR_ENOTFOUND);
    if (!strstr(error.message, expected))
        fail_msg("%s is not in: %s", expected, error.message);
}

TEST_CASE(a_folder_without_a_match_says_what_it_has)
{
    const char *root = clips_path("others");
    clips_make_folder(root);
    make("others", "sub/");
    weir_directory_config config = { .root = root, .glob = "*.mp4" };
    assert_refusal(&config, "or its subfolders matches *.mp4; it has no files at all");
    make("others", "README");
    assert_refusal(&config, "it has 1 other file: 1 without an extension");
    make("others", "a.txt");
    make("others", "sub/b.txt");
    assert_refusal(&config, "it has 3 other files: 2 .txt, 1 without an extension");
    make("others", "a.mkv");
    make("others", "b.MP4");
    make("others", "sub/c.avi");
    assert_refusal(&config, "it has 3 other videos: 1 .avi, 1 .mkv, 1 .MP4");
    config.flat = true;
    assert_refusal(&config, "it has 2 other videos: 1 .mkv, 1 .MP4");
    config.glob = WEIR_IMAGE_FILES;
    assert_refusal(&config, "no image in ");
}

/* The whole text: nothing follows the kinds, and six of them are shown, the most frequent first. */
TEST_CASE(kinds_of_files_are_listed_up_to_six_and_nothing_behind_them)
{
    const char *const kinds[] = { ".a", ".b", ".c", ".d", ".e", ".f", ".g", ".h" };
    const char *root = clips_path("kinds");
    char expected[2048], list[256] = "";
    size_t used = 0;
    clips_make_folder(root);
    weir_directory_config config = { .root = root, .glob = "*.mp4" };
    for (size_t i = 0; i < 8; i++) {
        weir_error error = { 0 };
        uint64_t count;
        char name[64];
        snprintf(name, sizeof name, "one%s", kinds[i]);
        make("kinds", name);
        if (i < 6)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s1 %s", i ? ", " : "", kinds[i]);
        snprintf(expected, sizeof expected,
                 "no file in %s or its subfolders matches *.mp4; it has %zu other file%s: %s%s", root, i + 1,
                 i ? "s" : "", list, i < 6 ? "" : ", ...");
        assert_int_equal(weir_directory_count(&config, 1, &count, &error), WEIR_ENOTFOUND);
        assert_string_equal(error.message, expected);
    }
}

/* In each epoch, alone and beside another folder. A folder that is empty for one pattern is not for another. */
TEST_CASE(a_run_that_finds_no_file_fails_with_what_the_folder_has)
{
    const char *root = make_tree("unmatched");
    weir_directory_config folders[] = { { .root = root, .glob = "*.avi" }, { .root = root, .glob = "*.mp4" } };
    weir_error error, counted;
    uint64_t count;
    for (uint32_t epochs = 1; epochs <= 2; epochs++)
        for (size_t num_folders = 1; num_folders <= 2; num_folders++) {
            counted = (weir_error){ 0 };
            folders[0].may_be_empty = false;
            assert_int_equal(run_to_the_end(folders, num_folders, epochs, &error), WEIR_EFAILED);
            assert_int_equal(weir_directory_count(&folders[0], 1, &count, &counted), WEIR_ENOTFOUND);
            assert_int_equal(error.status, WEIR_ENOTFOUND);
            assert_string_equal(error.message, counted.message);
            assert_non_null(strstr(error.message,
                                   "unmatched or its subfolders matches *.avi; it has 5 other videos: 5 "
                                   ".mp4"));
            folders[0].may_be_empty = true;
            assert_int_equal(run_to_the_end(folders, num_folders, epochs, &error), WEIR_EOF);
            assert_int_equal(weir_directory_count(&folders[0], 1, &count, NULL), WEIR_OK);
            assert_int_equal(count, 0);
        }
}

/* A thousand files, and a sink queue of one item: the source must not run ahead of the consumer. */
TEST_CASE(the_listing_streams)
{
    enum { NUM_FILES = 1000 };
    const char *root = clips_path("many");
    clips_make_folder(root);
    for (int i = 0; i < NUM_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%d", i);
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", root, i);
        clips_write_text(path, "");
    }
    for (int sorted = 0; sorted < 2; sorted++) {
        weir_directory_config config = { .root = root, .sorted = sorted };
        weir_pipeline *pipeline = start(&config, NULL);
        weir_item item;
        assert_int_equal(weir_pipeline_next(pipeline, &item, WEIR_FOREVER), WEIR_OK);
        weir_item_release(&item);
        weir_account account;
        assert_int_equal(weir_pipeline_account(pipeline, NULL, &account), WEIR_OK);
        assert_true(account.taken < 20);
        weir_pipeline_free(pipeline); /* in the middle of the listing */
    }
}

TEST_CASE(deep_folders_are_reached)
{
    enum { DEPTH = 200 };
    char path[4096];
    const char *root = clips_path("deep");
    clips_make_folder(root);
    size_t used = (size_t)snprintf(path, sizeof path, "%s", root);
    for (int i = 0; i < DEPTH; i++) {
        used += (size_t)snprintf(path + used, sizeof path - used, "/d");
        clips_make_folder(path);
    }
    snprintf(path + used, sizeof path - used, "/1.mp4");
    clips_write_text(path, "x");
    for (int sorted = 0; sorted < 2; sorted++) {
        listing list;
        weir_directory_counts counts;
        collect(&(weir_directory_config){ .root = root, .sorted = sorted, .counts = &counts }, &list);
        assert_int_equal(list.num_paths, 1);
        assert_int_equal(counts.folders, DEPTH + 1);
        free_listing(&list);
    }
}

TEST_MAIN(NULL, NULL, clips_set_up, clips_tear_down)
