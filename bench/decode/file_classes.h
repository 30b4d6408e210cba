/* Files by codec and size, so that a folder of many kinds can be looked at kind by kind. */
#ifndef BENCH_CLASSES_H
#define BENCH_CLASSES_H

#include <stdint.h>

#include "files.h"

typedef struct bench_class {
    char codec[32];     /* FFmpeg's name of it; "" = no video could be found */
    uint32_t max_lines; /* of the smaller side: 360, 720, 1080, or UINT32_MAX */
} bench_class;

typedef struct bench_group {
    bench_class kind;
    bench_files files;
} bench_group;

/* Setting this struct to all-0 makes it empty. */
typedef struct bench_groups {
    bench_group *groups;
    size_t num_groups;
} bench_groups;

bench_class bench_class_of(const char *codec, uint32_t width, uint32_t height);

/* < 0, 0, > 0: by codec, then by size; what has no video comes last. */
int bench_class_compare(const bench_class *a, const bench_class *b);

/* "h264 <= 360p", "hevc > 1080p", "no video" */
void bench_class_name(const bench_class *kind, char *name, size_t name_bytes);

/* Looks at the headers of all files; the groups come in the order of their classes. 0, or -1 after a line on stderr. */
int bench_classify(const bench_files *files, bench_groups *groups);

void bench_groups_free(bench_groups *groups);

#endif
