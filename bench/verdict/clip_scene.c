#include "bench/verdict/clip_scene.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/engine.h>
#include <weir/stages.h>

#include "tools/cli/memory.h"

/* From about 30 files per second to one in two seconds, in one slot of a CPU of 2020. */
const clip_scene clip_scenes[] = {
    { "clips of 240p, 1 s", 426, 240, 1 },     { "clips of 240p, 5 s", 426, 240, 5 },
    { "clips of 1080p, 1 s", 1920, 1080, 1 },  { "clips of 1080p, 5 s", 1920, 1080, 5 },
    { "clips of 4K, 0.5 s", 3840, 2160, 0.5 }, { "clips of 4K, 3 s", 3840, 2160, 3 },
};
const size_t num_clip_scenes = sizeof clip_scenes / sizeof clip_scenes[0];

/* -- making clips */

/* Each clip is so much longer, or shorter, than the mean: files of a dataset are not equally long. */
static const double lengths[] = { 0.6, 1.4, 1 };
enum { NUM_CLIPS = sizeof lengths / sizeof lengths[0] };

/* The exit status of ffmpeg; -1 = it could not be started. */
static int run_ffmpeg(char *const *words)
{
    extern char **environ;
    pid_t child;
    int status;
    int error = posix_spawnp(&child, "ffmpeg", NULL, NULL, words, environ);
    if (error) {
        fprintf(stderr, "weir-bench: cannot run ffmpeg, which makes the clips: %s. --dataset-dir takes yours\n",
                strerror(error));
        return -1;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* libx264, or where ffmpeg does not have it, its default encoder. */
static int make_clip(const clip_scene *of, double seconds, char *path)
{
    static char ffmpeg[] = "ffmpeg", no_input[] = "-nostdin", quiet[] = "-loglevel", fatal[] = "error", yes[] = "-y",
                format[] = "-f", lavfi[] = "lavfi", input[] = "-i", pixels[] = "-pix_fmt", yuv[] = "yuv420p",
                codec[] = "-c:v", x264[] = "libx264", preset[] = "-preset", fast[] = "superfast", groups[] = "-g",
                length[] = "30";
    char picture[160];
    snprintf(picture, sizeof picture, "testsrc2=s=%ux%u:r=25:d=%.3f,noise=alls=8:allf=t:all_seed=1", of->width,
             of->height, seconds);
    char *with_x264[] = { ffmpeg, no_input, quiet, fatal,  yes,  format, lavfi,  input, picture, pixels,
                          yuv,    codec,    x264,  preset, fast, groups, length, path,  NULL };
    char *by_default[] = { ffmpeg,  no_input, quiet, fatal,  yes,    format, lavfi, input,
                           picture, pixels,   yuv,   groups, length, path,   NULL };
    int status = run_ffmpeg(with_x264);
    return status > 0 ? run_ffmpeg(by_default) : status;
}

static void name_clip(char path[CLIP_MOST_PATH], const char *folder, int number)
{
    snprintf(path, CLIP_MOST_PATH, "%.4000s/%d.mp4", folder, number);
}

int clip_scene_make(const clip_scene *of, char folder[CLIP_MOST_PATH])
{
    const char *temporary = getenv("TMPDIR");
    char path[CLIP_MOST_PATH];
    snprintf(folder, CLIP_MOST_PATH, "%.4000s/weir-bench-clips-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        fprintf(stderr, "weir-bench: cannot make the folder %s: %s\n", folder, strerror(errno));
        return -1;
    }
    for (int i = 0; i < NUM_CLIPS; i++) {
        name_clip(path, folder, i);
        if (make_clip(of, lengths[i] * of->seconds, path) == 0)
            continue;
        clip_scene_remove(folder);
        return -1;
    }
    return 0;
}

void clip_scene_remove(const char *folder)
{
    char path[CLIP_MOST_PATH];
    for (int i = 0; i < NUM_CLIPS; i++) {
        name_clip(path, folder, i);
        unlink(path);
    }
    rmdir(folder);
}

/* -- running them */

struct clip_run {
    weir_pipeline *pipeline;
    pthread_t consumer;
    atomic_ullong num_taken;
};

static void *take_clips(void *argument)
{
    clip_run *run = argument;
    weir_item item;
    while (weir_pipeline_next(run->pipeline, &item, WEIR_FOREVER) == WEIR_OK) {
        weir_item_release(&item);
        atomic_fetch_add(&run->num_taken, 1);
    }
    return NULL;
}

clip_run *clip_run_start(const bench_files *files, uint32_t slots, uint32_t threads, const weir_observer *observer)
{
    clip_run *run = memory_get(1, sizeof *run);
    weir_error error = { 0 };
    weir_video_config video = { WEIR_WITH_PICTURE(.width = 128, .height = 128) };
    weir_builder *builder = weir_builder_new();
    weir_builder_source(builder, &bench_files_op, files, 0, NULL);
    weir_builder_pipe(builder, &weir_video_decode, &video, sizeof video,
                      &(weir_stage_options){ .concurrency = slots });
    weir_builder_sink(builder, NULL);
    weir_pipeline_options options = { .threads = threads, .observers = observer, .num_observers = observer ? 1 : 0 };
    if (weir_builder_build(builder, &options, &run->pipeline, &error) == WEIR_OK &&
        pthread_create(&run->consumer, NULL, take_clips, run) == 0)
        return run;
    fprintf(stderr, "weir-bench: %s\n", error.message);
    weir_pipeline_free(run->pipeline);
    free(run);
    return NULL;
}

weir_pipeline *clip_run_pipeline(clip_run *run)
{
    return run->pipeline;
}

uint64_t clip_run_num_taken(clip_run *run)
{
    return atomic_load(&run->num_taken);
}

void clip_run_end(clip_run *run)
{
    weir_pipeline_stop(run->pipeline);
    pthread_join(run->consumer, NULL);
    weir_pipeline_free(run->pipeline);
    free(run);
}
