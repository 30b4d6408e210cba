#include "output_check.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "memory.h"

#ifdef WEIR_HAVE_ZLIB
#include <zlib.h>
#else
#define gzFile          FILE *
#define gzopen          fopen
#define gzread(f, b, n) ((int)fread(b, 1, n, f))
#define gzclose         fclose
#endif

enum { START_BYTES = 512 };

/* ---- the same file ----------------------------------------------------------------------------------------------- */

/* The folder's real path and the name, for a file that need not exist; NULL = the folder does not. */
static char *place_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? memory_format("%.*s", (int)(slash - path) + 1, path) : memory_copy(".");
    char *real = realpath(folder, NULL), *place = real ? memory_format("%s/%s", real, name) : NULL;
    free(real);
    free(folder);
    return place;
}

bool output_is_same_file(const char *path, const char *other)
{
    struct stat first, second;
    if (stat(path, &first) == 0 && stat(other, &second) == 0)
        return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
    char *place = place_of(path), *other_place = place_of(other);
    bool is_same = place && other_place && strcmp(place, other_place) == 0;
    free(place);
    free(other_place);
    return is_same;
}

/* The file behind an input that FFmpeg or a command reads by another word. */
static const char *file_of_input(const char *input)
{
    if (strcmp(input, "-") == 0 || strcmp(input, "pipe:") == 0 || strcmp(input, "pipe:0") == 0)
        return "/dev/stdin";
    return strncmp(input, "file:", 5) == 0 ? input + 5 : input;
}

/* The files beside an input belong to it, if it is a database: also where they are not there yet. */
static bool belongs_to(const char *path, const char *given)
{
    const char *input = file_of_input(given);
    static const char *const endings[] = { "", "-wal", "-shm", "-journal" };
    bool belongs = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0] && !belongs; i++) {
        char *beside = memory_format("%s%s", input, endings[i]);
        belongs = output_is_same_file(path, beside);
        free(beside);
    }
    return belongs;
}

/* ---- the kind ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *marks[4]; /* that such a file begins with, after white space in texts */
} kinds[] = {
    [OUTPUT_METRICS] = { "OpenMetrics text", { "# TYPE ", "# HELP ", "# EOF" } },
    [OUTPUT_TRACE] = { "a trace", { "[", "{" } },
    [OUTPUT_PAGE] = { "an HTML page", { "<!doctype html", "<!DOCTYPE html", "<html" } },
    [OUTPUT_JSON] = { "JSON", { "[", "{" } },
    [OUTPUT_CSV] = { "CSV", { NULL } },
    [OUTPUT_PNG] = { "a PNG picture", { "\x89PNG\r\n" } },
    [OUTPUT_SVG] = { "an SVG picture", { "<?xml", "<svg" } },
    [OUTPUT_PDF] = { "a PDF file", { "%PDF-" } },
    [OUTPUT_NPY] = { "a .npy file", { "\x93NUMPY" } },
    [OUTPUT_RAW] = { "raw video", { NULL } },
    [OUTPUT_DATABASE] = { "a database", { "SQLite format 3" } },
};

/* Others that are worth something, for raw video: at that offset. */
static const struct {
    size_t offset;
    const char *mark;
} others[] = {
    { 4, "ftyp" },
    { 4, "moov" },
    { 0, "\x1a\x45\xdf\xa3" },
    { 0, "RIFF" },
    { 0, "OggS" },
    { 0, "ID3" },
    { 0, "\x1f\x8b" },
    { 0, "PK\x03\x04" },
    { 0, "\xff\xd8\xff" },
    { 257, "ustar" },
    { 0, "\x7f"
         "ELF" },
};

/* The start of the file; of a trace, unpacked. */
static size_t read_start(const char *path, bool unpacks, char start[START_BYTES + 1])
{
    int length = 0;
    if (unpacks) {
        gzFile file = gzopen(path, "rb");
        length = file ? gzread(file, start, START_BYTES) : -1;
        if (file)
            gzclose(file);
    } else {
        FILE *file = fopen(path, "rb");
        length = file ? (int)fread(start, 1, START_BYTES, file) : -1;
        if (file)
            fclose(file);
    }
    length = length > 0 ? length : 0;
    start[length] = '\0';
    return (size_t)length;
}

static bool begins_as(const char *start, output_kind kind)
{
    const char *text = start + strspn(start, " \t\r\n");
    for (const char *const *mark = kinds[kind].marks; *mark; mark++)
        if (strncmp(text, *mark, strlen(*mark)) == 0)
            return true;
    return false;
}

/* Text with a line's end. */
static bool is_text(const char *start, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)start[i] < ' ' && !strchr("\t\r\n", start[i] ? start[i] : 'x'))
            return false;
    return memchr(start, '\n', length) && strlen(start) == length;
}

static bool is_something_else(const char *start, size_t length)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (length > others[i].offset + strlen(others[i].mark) &&
            memcmp(start + others[i].offset, others[i].mark, strlen(others[i].mark)) == 0)
            return true;
    for (output_kind kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        if (strlen(kinds[kind].marks[0] ? kinds[kind].marks[0] : "") > 1 && begins_as(start, kind))
            return true;
    return is_text(start, length);
}

/* Its first line has several columns. */
static bool is_csv(const char *start, size_t length)
{
    const char *comma = strchr(start, ',');
    return is_text(start, length) && comma && comma < strchr(start, '\n') && !strchr("[{<", *start);
}

static bool is_of_kind(const char *path, output_kind kind)
{
    char start[START_BYTES + 1];
    size_t length = read_start(path, kind == OUTPUT_TRACE, start);
    if (kind == OUTPUT_RAW)
        return !is_something_else(start, length);
    return kind == OUTPUT_CSV ? is_csv(start, length) : begins_as(start, kind);
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* What a pipe has given is gone: of those nothing is read. */
static size_t read_input(const char *path, bool unpacks, char start[START_BYTES + 1])
{
    struct stat info;
    *start = '\0';
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? read_start(path, unpacks, start) : 0;
}

bool file_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_is_database(const char *path)
{
    char start[START_BYTES + 1];
    return read_input(path, false, start) > 0 && begins_as(start, OUTPUT_DATABASE);
}

bool file_is_trace(const char *path)
{
    char start[START_BYTES + 1];
    return read_input(path, true, start) > 0 && begins_as(start, OUTPUT_TRACE);
}

bool file_is_index(const char *path)
{
    char start[START_BYTES + 1];
    return read_input(path, false, start) >= 72 && begins_as(start, OUTPUT_DATABASE) &&
           memcmp(start + 68, "weix", 4) == 0;
}

bool file_is_list(const char *path)
{
    char start[START_BYTES + 1];
    size_t length = read_input(path, false, start);
    return is_text(start, length) && !strchr("#<[", *start) && strncmp(start, "ffconcat", 8) != 0 &&
           strncmp(start, "v=", 2) != 0 && strncmp(start, "YUV4MPEG2", 9) != 0;
}

/* ---- the rules --------------------------------------------------------------------------------------------------- */

bool output_check(const char *path, const output_rules *rules, char problem[OUTPUT_PROBLEM_BYTES])
{
    struct stat info;
    for (size_t i = 0; i < rules->num_inputs; i++)
        if (belongs_to(path, rules->inputs[i]) && !(stat(path, &info) == 0 && !S_ISREG(info.st_mode))) {
            snprintf(problem, OUTPUT_PROBLEM_BYTES, "%.240s would replace %.200s, which this command needs", path,
                     rules->inputs[i]);
            return false;
        }
    if (rules->force || stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0 ||
        is_of_kind(path, rules->kind))
        return true;
    bool is_database = rules->kind == OUTPUT_DATABASE;
    snprintf(problem, OUTPUT_PROBLEM_BYTES, "%.300s is there and is not %s: give another path%s", path,
             kinds[rules->kind].name, is_database ? "" : ", or --force to replace it");
    return false;
}
