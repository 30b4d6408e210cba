/* Files are known by their first bytes: no library that reads them is needed here. */
#include <weir/output.h>
#include <weir/struct_copy.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/gzip_comment.h"
#include "common/sqlite_name.h"

/* Tables have headers of more than a thousand bytes, and the first line must be whole. */
enum { START_BYTES = 1 << 14, MAX_MARKS = 4, MAX_ENDINGS = 5 };

/* ---- the same file ----------------------------------------------------------------------------------------------- */

/* The folder's real path and the name, for a file that need not exist; NULL = the folder does not, or no memory. */
static char *find_place(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("."), *place = NULL;
    char *real = folder ? realpath(folder, NULL) : NULL;
    if (real && asprintf(&place, "%s/%s", real, name) < 0)
        place = NULL;
    free(real);
    free(folder);
    return place;
}

static bool are_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

bool weir_output_is_same(const char *path, const char *other)
{
    struct stat first, second;
    if (!path || !other)
        return false;
    if (stat(path, &first) == 0 && stat(other, &second) == 0)
        return are_same_file(&first, &second);
    char *place = find_place(path), *other_place = find_place(other);
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

static const char *const beside[] = { "", "-wal", "-shm", "-journal" };
enum { NUM_BESIDE = sizeof beside / sizeof beside[0] };

/* The files beside an input belong to it, if it is a database: also where they are not there yet. */
static bool belongs_to(const char *path, const char *given)
{
    bool belongs = false;
    for (size_t i = 0; i < NUM_BESIDE && !belongs; i++) {
        char *name = NULL;
        belongs = asprintf(&name, "%s%s", file_of_input(given), beside[i]) < 0 || weir_output_is_same(path, name);
        free(name);
    }
    return belongs;
}

/* What the program prints goes there, and would be mixed with the file. A pipe or a device holds nothing that could be lost. */
static bool is_printed_to(const char *path)
{
    struct stat file, printed;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &printed) == 0 && are_same_file(&file, &printed))
            return true;
    return false;
}

/* ---- the kinds --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *marks[MAX_MARKS];     /* that such a file begins with, after white space in texts */
    const char *endings[MAX_ENDINGS]; /* of its name. No other kind has such a name, unless it has the ending, too */
} kinds[] = {
    [WEIR_OUTPUT_RAW] = { "raw video", { NULL }, { ".raw", ".rgb", ".yuv" } },
    [WEIR_OUTPUT_METRICS] = { "OpenMetrics text", { "# TYPE ", "# HELP ", "# EOF" }, { ".prom", ".om" } },
    [WEIR_OUTPUT_TRACE] = { "a trace", { "[", "{" }, { ".json", ".json.gz", ".gz", ".trace" } },
    [WEIR_OUTPUT_PAGE] = { "an HTML page",
                           { "<!doctype html", "<!DOCTYPE html", "<html" },
                           { ".html", ".htm", ".xhtml" } },
    [WEIR_OUTPUT_JSON] = { "JSON", { "[", "{" }, { ".json" } },
    [WEIR_OUTPUT_CSV] = { "CSV", { NULL }, { ".csv" } },
    [WEIR_OUTPUT_PNG] = { "a PNG picture", { "\x89PNG\r\n" }, { ".png" } },
    [WEIR_OUTPUT_SVG] = { "an SVG picture", { "<?xml", "<svg" }, { ".svg" } },
    [WEIR_OUTPUT_PDF] = { "a PDF file", { "%PDF-" }, { ".pdf" } },
    [WEIR_OUTPUT_NPY] = { "a .npy file", { "\x93NUMPY" }, { ".npy" } },
    [WEIR_OUTPUT_SAFETENSORS] = { "a .safetensors file", { NULL }, { ".safetensors" } },
    [WEIR_OUTPUT_CHECKPOINT] = { "a checkpoint", { "weir checkpoint " }, { ".ckpt", ".checkpoint" } },
    [WEIR_OUTPUT_DATABASE] = { "a database", { "SQLite format 3" }, { ".db", ".sqlite", ".sqlite3", ".weir" } },
    [WEIR_OUTPUT_INDEX] = { "an index", { "SQLite format 3" }, { ".weir", ".db", ".sqlite", ".sqlite3" } },
    [WEIR_OUTPUT_LIST] = { "a list", { NULL }, { NULL } },
    [WEIR_OUTPUT_FOLDER] = { "a folder", { NULL }, { NULL } },
};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

/* What is worth something and is never written: at that offset. */
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

static const char *const other_endings[] = { ".mp4",  ".m4v", ".mov",  ".mkv",  ".webm", ".avi",  ".ts",  ".mpg",
                                             ".mpeg", ".ogv", ".ogg",  ".wav",  ".mp3",  ".flac", ".m4a", ".jpg",
                                             ".jpeg", ".gif", ".webp", ".avif", ".tar",  ".zip" };

typedef struct file_start {
    size_t length;
    char bytes[START_BYTES + 1]; /* with a NUL behind it */
} file_start;

/* A database that somebody has open has files beside it. POSIX locks belong to the process. So reading the database
   here, and closing it again, would release the locks that other connections of this process hold on it. */
static bool is_open_database(const char *path)
{
    bool is_there = false;
    for (size_t i = 1; i < NUM_BESIDE && !is_there; i++) {
        char *name = NULL;
        is_there = asprintf(&name, "%s%s", path, beside[i]) >= 0 && access(name, F_OK) == 0;
        free(name);
    }
    return is_there;
}

/* What a pipe has given is gone: nothing is read from it. */
static file_start read_start(const char *path)
{
    file_start start = { .length = 0 };
    struct stat info;
    int fd = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC) : -1;
    ssize_t length = fd < 0 ? 0 : pread(fd, start.bytes, START_BYTES, 0);
    if (fd >= 0)
        close(fd);
    start.length = length > 0 ? (size_t)length : 0;
    return start;
}

static const char *skip_space(const file_start *start)
{
    return start->bytes + strspn(start->bytes, " \t\r\n");
}

static bool begins_as(const file_start *start, weir_output_kind kind)
{
    const char *text = skip_space(start);
    for (const char *const *mark = kinds[kind].marks; *mark; mark++)
        if (strncmp(text, *mark, strlen(*mark)) == 0)
            return true;
    return false;
}

/* Text with a line's end. */
static bool is_text(const file_start *start)
{
    for (size_t i = 0; i < start->length; i++)
        if ((unsigned char)start->bytes[i] < ' ' && !strchr("\t\r\n", start->bytes[i] ? start->bytes[i] : 'x'))
            return false;
    return memchr(start->bytes, '\n', start->length) && strlen(start->bytes) == start->length;
}

/* The file begins with more than a bracket that belongs to a kind. */
static bool is_marked(const file_start *start)
{
    for (size_t kind = 0; kind < NUM_KINDS; kind++)
        if (strlen(kinds[kind].marks[0] ? kinds[kind].marks[0] : "") > 1 && begins_as(start, (weir_output_kind)kind))
            return true;
    return false;
}

/* The first line of the file has several columns. */
static bool is_csv(const file_start *start)
{
    const char *comma = strchr(start->bytes, ',');
    return is_text(start) && comma && comma < strchr(start->bytes, '\n') && !strchr("[{<", *skip_space(start)) &&
           !is_marked(start);
}

/* But no playlist or other text that FFmpeg reads, and no text of another kind. */
static bool is_list(const file_start *start)
{
    return is_text(start) && !strchr("#<[{", *skip_space(start)) && !is_marked(start) &&
           strncmp(start->bytes, "ffconcat", 8) != 0 && strncmp(start->bytes, "v=", 2) != 0 &&
           strncmp(start->bytes, "YUV4MPEG2", 9) != 0;
}

/* Events have a phase; an object has them under this name, behind others. */
static bool is_plain_trace(const file_start *start)
{
    static const char *const names[] = { "\"ph\"", "\"traceEvents\"", "\"displayTimeUnit\"", "\"schemaVersion\"" };
    bool has_name = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        has_name |= strstr(start->bytes, names[i]) != NULL;
    return has_name && begins_as(start, WEIR_OUTPUT_TRACE);
}

/* The text of a field of gzip's header, which ends with a NUL; "" = it is cut off, or not there. */
static const char *next_gzip_text(const file_start *start, size_t *at)
{
    const char *text = start->bytes + *at;
    const char *end = *at < start->length ? memchr(text, '\0', start->length - *at) : NULL;
    *at = end ? (size_t)(end - start->bytes) + 1 : start->length;
    return end ? text : "";
}

/* By the header (RFC 1952), without unpacking: the comment that weir's traces have, or the name of the file that gzip has
   packed. */
static bool is_packed_trace(const file_start *start)
{
    enum { HEADER_BYTES = 10, HAS_EXTRA = 4, HAS_NAME = 8, HAS_COMMENT = 16 };
    const unsigned char *bytes = (const unsigned char *)start->bytes;
    if (start->length < HEADER_BYTES + 2 || bytes[0] != 0x1f || bytes[1] != 0x8b)
        return false;
    size_t at = HEADER_BYTES;
    if (bytes[3] & HAS_EXTRA)
        at += 2 + (size_t)(bytes[at] | bytes[at + 1] << 8);
    const char *name = bytes[3] & HAS_NAME ? next_gzip_text(start, &at) : "";
    const char *comment = bytes[3] & HAS_COMMENT ? next_gzip_text(start, &at) : "";
    const char *ending = strrchr(name, '.');
    return strcmp(comment, WEIR__TRACE_COMMENT) == 0 || (ending && strcmp(ending, ".json") == 0);
}

/* The length of the header in little-endian, and JSON. */
static bool is_safetensors(const file_start *start)
{
    return start->length > 9 && start->bytes[5] == 0 && start->bytes[6] == 0 && start->bytes[7] == 0 &&
           start->bytes[8] == '{' && start->bytes[9] == '"';
}

static bool is_something_else(const file_start *start)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (start->length > others[i].offset + strlen(others[i].mark) &&
            memcmp(start->bytes + others[i].offset, others[i].mark, strlen(others[i].mark)) == 0)
            return true;
    return is_marked(start) || is_text(start) || is_plain_trace(start) || is_safetensors(start);
}

static bool has_index_mark(const file_start *start)
{
    enum { APPLICATION_AT = 68 }; /* SQLite's header */
    return begins_as(start, WEIR_OUTPUT_INDEX) && start->length >= APPLICATION_AT + 4 &&
           memcmp(start->bytes + APPLICATION_AT, "weix", 4) == 0;
}

static bool is_start_of(const file_start *start, weir_output_kind kind)
{
    switch (kind) {
    case WEIR_OUTPUT_RAW: return !is_something_else(start);
    case WEIR_OUTPUT_TRACE: return is_plain_trace(start) || is_packed_trace(start);
    case WEIR_OUTPUT_JSON: return begins_as(start, kind) && !is_plain_trace(start);
    case WEIR_OUTPUT_CSV: return is_csv(start);
    case WEIR_OUTPUT_LIST: return is_list(start);
    case WEIR_OUTPUT_SAFETENSORS: return is_safetensors(start);
    case WEIR_OUTPUT_INDEX: return has_index_mark(start);
    default: return begins_as(start, kind);
    }
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool weir_output_is(const char *path, weir_output_kind kind)
{
    if (!path || (unsigned)kind >= NUM_KINDS)
        return false;
    if (kind == WEIR_OUTPUT_FOLDER)
        return is_folder(path);
    if (kind != WEIR_OUTPUT_INDEX && is_open_database(path))
        return kind == WEIR_OUTPUT_DATABASE && access(path, F_OK) == 0;
    const file_start start = read_start(path);
    return start.length > 0 && is_start_of(&start, kind);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), ending_length = strlen(ending);
    return length > ending_length && path[length - ending_length - 1] != '/' &&
           strcasecmp(path + length - ending_length, ending) == 0;
}

static bool is_name_of(const char *path, weir_output_kind kind)
{
    for (size_t i = 0; i < MAX_ENDINGS && kinds[kind].endings[i]; i++)
        if (ends_with(path, kinds[kind].endings[i]))
            return true;
    return false;
}

/* Any ending that is not known may be given. */
static bool is_name_of_another(const char *path, weir_output_kind kind)
{
    bool is_another = false;
    if (!kinds[kind].endings[0])
        return false;
    for (size_t i = 0; i < NUM_KINDS && !is_another; i++)
        is_another = is_name_of(path, (weir_output_kind)i);
    for (size_t i = 0; i < sizeof other_endings / sizeof other_endings[0] && !is_another; i++)
        is_another = ends_with(path, other_endings[i]);
    return is_another && !is_name_of(path, kind);
}

static int refuse_name(const char *path, weir_output_kind kind, weir_error *error)
{
    char right[100] = "";
    for (size_t i = 0; i < MAX_ENDINGS && kinds[kind].endings[i]; i++)
        snprintf(right + strlen(right), sizeof right - strlen(right), "%s%s", i ? ", " : "", kinds[kind].endings[i]);
    return weir_error_set(error, WEIR_EINVAL, 0,
                          "%.240s: %s is written, but this is the name of another kind of file: end it in %s", path,
                          kinds[kind].name, right);
}

/* ---- the rules --------------------------------------------------------------------------------------------------- */

/* Fills *error if one of the rules for files forbids it. */
static int check_file(const char *path, weir_output_kind kind, const weir_output_rules *rules, weir_error *error)
{
    struct stat info;
    bool is_there = stat(path, &info) == 0, is_database = kind == WEIR_OUTPUT_DATABASE || kind == WEIR_OUTPUT_INDEX;
    if (is_database && is_sqlite_name(path))
        return weir_error_set(error, WEIR_EINVAL, 0, SQLITE_NAME_REFUSED, path, path);
    if (is_there && !S_ISREG(info.st_mode))
        return WEIR_OK;
    if (is_printed_to(path))
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "%.300s is where stdout or stderr goes, and what is printed would damage it: give "
                              "another path",
                              path);
    if (!rules->force && is_name_of_another(path, kind))
        return refuse_name(path, kind, error);
    if (rules->force || !is_there || info.st_size == 0 ||
        weir_output_is(path, is_database ? WEIR_OUTPUT_DATABASE : kind))
        return WEIR_OK;
    return weir_error_set(error, is_database ? WEIR_EDATA : WEIR_EINVAL, 0,
                          "%.300s is there and is not %s: give another path", path, kinds[kind].name);
}

int weir_output_check_sized(const char *path, weir_output_kind kind, const weir_output_rules *given,
                            size_t given_size, weir_error *error)
{
    weir_output_rules rules;
    struct stat info;
    if (!path || !*path)
        return weir_error_set(error, WEIR_EINVAL, 0, path ? "the path of an output is empty" : "path is NULL");
    bool is_stdout = strcmp(path, "-") == 0;
    if ((unsigned)kind >= NUM_KINDS)
        return weir_error_set(error, WEIR_EINVAL, 0, "%d is not a weir_output_kind", (int)kind);
    int status = weir_struct_copy(&rules, sizeof rules, given, given_size, "weir_output_rules", error);
    if (status != WEIR_OK)
        return status;
    const char *file = is_stdout ? "/dev/stdout" : path;
    bool is_there = stat(file, &info) == 0;
    for (size_t i = 0; i < rules.num_inputs && !(is_there && !S_ISREG(info.st_mode)); i++)
        if (rules.inputs[i] && belongs_to(file, rules.inputs[i]))
            return weir_error_set(error, WEIR_EINVAL, 0, "%.240s would replace %.200s, which is read", file,
                                  rules.inputs[i]);
    if (is_stdout)
        return WEIR_OK;
    if (kind != WEIR_OUTPUT_FOLDER)
        return check_file(path, kind, &rules, error);
    return !is_there || S_ISDIR(info.st_mode)
               ? WEIR_OK
               : weir_error_set(error, WEIR_EINVAL, 0, "%.300s is there and is not a folder: give another path",
                                path);
}
