#include "file_classes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

bench_class bench_class_of(const char *codec, uint32_t width, uint32_t height)
{
    static const uint32_t bounds[] = { 360, 720, 1080 };
    uint32_t lines = width < height ? width : height;
    bench_class kind = { .max_lines = UINT32_MAX };
    snprintf(kind.codec, sizeof kind.codec, "%s", codec);
    for (size_t i = sizeof bounds / sizeof bounds[0]; i-- > 0;)
        kind.max_lines = lines <= bounds[i] ? bounds[i] : kind.max_lines;
    return kind;
}

int bench_class_compare(const bench_class *a, const bench_class *b)
{
    if (!*a->codec != !*b->codec)
        return *a->codec ? -1 : 1;
    int order = strcmp(a->codec, b->codec);
    return order ? order : (a->max_lines > b->max_lines) - (a->max_lines < b->max_lines);
}

void bench_class_name(const bench_class *kind, char *name, size_t name_bytes)
{
    if (!*kind->codec)
        snprintf(name, name_bytes, "no video");
    else if (kind->max_lines == UINT32_MAX)
        snprintf(name, name_bytes, "%s > 1080p", kind->codec);
    else
        snprintf(name, name_bytes, "%s <= %" PRIu32 "p", kind->codec, kind->max_lines);
}

/* What the file's best video stream is, as its header says; where that does not tell the size, as FFmpeg finds it. */
static bench_class probe(const char *path)
{
    bench_class kind = { .codec = "" };
    AVFormatContext *format = NULL;
    if (avformat_open_input(&format, path, NULL, NULL) < 0)
        return kind;
    int stream = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if ((stream < 0 || format->streams[stream]->codecpar->width <= 0) && avformat_find_stream_info(format, NULL) >= 0)
        stream = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (stream >= 0) {
        const AVCodecParameters *parameters = format->streams[stream]->codecpar;
        kind = bench_class_of(avcodec_get_name(parameters->codec_id), (uint32_t)FFMAX(parameters->width, 0),
                              (uint32_t)FFMAX(parameters->height, 0));
    }
    avformat_close_input(&format);
    return kind;
}

/* The group of that class, made if there is none yet. NULL = out of memory. */
static bench_group *group_of(bench_groups *groups, const bench_class *kind)
{
    size_t place = 0;
    int order = 1;
    while (place < groups->num_groups && (order = bench_class_compare(&groups->groups[place].kind, kind)) < 0)
        place++;
    if (place < groups->num_groups && order == 0)
        return &groups->groups[place];

    bench_group *grown = realloc(groups->groups, (groups->num_groups + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    groups->groups = grown;
    memmove(&grown[place + 1], &grown[place], (groups->num_groups - place) * sizeof *grown);
    groups->num_groups++;
    grown[place] = (bench_group){ .kind = *kind };
    return &grown[place];
}

int bench_classify(const bench_files *files, bench_groups *groups)
{
    int log_level = av_log_get_level();
    int rc = 0;
    av_log_set_level(AV_LOG_QUIET);
    for (size_t i = 0; i < files->num_paths && rc == 0; i++) {
        bench_class kind = probe(files->paths[i]);
        bench_group *group = group_of(groups, &kind);
        rc = group ? bench_files_add(&group->files, files->paths[i]) : -1;
        if (!group)
            fprintf(stderr, "weir-bench: out of memory\n");
    }
    av_log_set_level(log_level);
    return rc;
}

void bench_groups_free(bench_groups *groups)
{
    for (size_t i = 0; i < groups->num_groups; i++)
        bench_files_free(&groups->groups[i].files);
    free(groups->groups);
    *groups = (bench_groups){ 0 };
}
