#include "tools/frames/frame_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/arrays.h>

#include "common/replacement.h"
#include "tools/cli/memory.h"
#include "tools/cli/output_part.h"
#include "tools/frames/png_picture.h"

struct frame_output {
    frame_format format;
    const char *path;
    weir_output_kind kind;
    weir_output_rules rules;
    bool is_stdout;
    uint64_t num_frames; /* that were added */
    weir_npy *npy;
    FILE *spool;            /* nameless, of an array for stdout */
    weir__replacement file; /* the picture that is being written, or all; file.file NULL = none */
};

static int fail(const frame_output *output, const char *path, int code, weir_error *error)
{
    int status = code == ENOENT                    ? WEIR_ENOTFOUND
                 : code == EACCES || code == EPERM ? WEIR_EACCESS
                 : code == EISDIR                  ? WEIR_EINVAL
                                                   : WEIR_EIO;
    return weir_error_set(error, status, code, "cannot write %s: %s", output->is_stdout ? "to stdout" : path,
                          strerror(code ? code : EIO));
}

static int check_path(const frame_output *output, const char *path, weir_error *error)
{
    return output_check(path, output->kind, &output->rules, error);
}

static int open_file(frame_output *output, const char *path, weir_error *error)
{
    sigset_t mask;
    output_part_begin(&mask);
    int code = weir__replacement_open(&output->file, path);
    output_part_end(&mask, code ? NULL : output->file.path_before);
    return code ? fail(output, path, code, error) : WEIR_OK;
}

/* Gives the file its name, or removes it. */
static int close_file(frame_output *output, const char *path, bool keep, weir_error *error)
{
    int code = weir__replacement_close(&output->file, keep);
    output_part_forget();
    return code ? fail(output, path, code, error) : WEIR_OK;
}

/* -- raw */

static int add_raw(frame_output *output, const weir_frames *frames, weir_error *error)
{
    FILE *file = output->is_stdout ? stdout : output->file.file;
    size_t size = (size_t)frames->num_frames * frames->frame_bytes;
    errno = 0;
    if (fwrite(frames->data, 1, size, file) == size && (!output->is_stdout || fflush(file) == 0))
        return WEIR_OK;
    return fail(output, output->path, errno, error);
}

/* -- pictures */

/* The path for the frame's number, to be freed; *has_number = the path has a %d for it. */
static char *picture_path(const char *pattern, uint64_t number, bool *has_number)
{
    char *path = NULL;
    size_t size;
    const char *slash = strrchr(pattern, '/'), *place = slash ? slash : pattern; /* a folder's name is as it is */
    size_t digits = 0;
    while ((place = strchr(place, '%')) != NULL) {
        digits = strspn(place + 1, "0123456789");
        if (place[1 + digits] == 'd' && digits < 3)
            break;
        place++;
    }
    *has_number = place != NULL;
    FILE *to = memory_file_open(&path, &size);
    if (place)
        fprintf(to, "%.*s%0*" PRIu64 "%s", (int)(place - pattern), pattern, atoi(place + 1), number,
                place + digits + 2);
    else
        fputs(pattern, to);
    memory_file_close(to);
    return path;
}

static int add_picture(frame_output *output, const weir_frames *frames, uint32_t index, weir_error *error)
{
    if (output->is_stdout) {
        int rc = png_picture_write(frames, index, stdout, error);
        return rc == WEIR_OK && ferror(stdout) ? fail(output, NULL, errno, error) : rc;
    }
    uint64_t number = output->num_frames + index;
    bool has_number;
    char *path = picture_path(output->path, number, &has_number);
    int rc = WEIR_OK;
    if (number > 0 && !has_number)
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "%.200s: one picture, but there are more frames: put %%04d into the name, or choose one "
                            "frame with --at or --frames",
                            output->path);
    if (rc == WEIR_OK)
        rc = check_path(output, path, error);
    if (rc == WEIR_OK)
        rc = open_file(output, path, error);
    if (rc == WEIR_OK)
        rc = png_picture_write(frames, index, output->file.file, error);
    if (rc == WEIR_OK && has_number)
        rc = close_file(output, path, true,
                        error); /* a single picture is not completed yet: there may be more frames */
    free(path);
    return rc;
}

static int add_pictures(frame_output *output, const weir_frames *frames, weir_error *error)
{
    int rc = WEIR_OK;
    for (uint32_t i = 0; i < frames->num_frames && rc == WEIR_OK; i++)
        rc = add_picture(output, frames, i, error);
    return rc;
}

/* -- npy */

/* An array cannot be written to a pipe, whose opening would wait for a reader. */
static int check_place(const frame_output *output, weir_error *error)
{
    struct stat there;
    if (output->is_stdout || stat(output->path, &there) != 0 || S_ISREG(there.st_mode))
        return WEIR_OK;
    return weir_error_set(error, WEIR_EINVAL, 0, "cannot write %s: a %s has that name", output->path,
                          S_ISDIR(there.st_mode) ? "folder" : "device or pipe");
}

/* The header holds the array's size, so the array must be complete before it is written to stdout. */
static int open_npy(frame_output *output, weir_error *error)
{
    int rc = check_place(output, error);
    if (rc == WEIR_OK && !output->is_stdout)
        rc = open_file(output, output->path, error);
    int fd = output->is_stdout ? weir__spool_open() : -1;
    if (output->is_stdout && (fd < 0 || !(output->spool = fdopen(fd, "w+"))))
        rc = weir_error_set(error, WEIR_EIO, errno, "cannot create a temporary file in $TMPDIR or /tmp: %s",
                            strerror(errno));
    if (rc != WEIR_OK)
        return rc;
    return weir_npy_open_stream(&output->npy, output->is_stdout ? output->spool : output->file.file, output->path,
                                error);
}

static int copy_to_stdout(const frame_output *output, weir_error *error)
{
    static char block[1 << 16];
    size_t length;
    errno = 0;
    rewind(output->spool);
    while ((length = fread(block, 1, sizeof block, output->spool)) > 0 && !ferror(stdout))
        fwrite(block, 1, length, stdout);
    bool is_whole = !ferror(output->spool) && fflush(stdout) == 0 && !ferror(stdout);
    return is_whole ? WEIR_OK : fail(output, NULL, errno, error);
}

static int close_npy(frame_output *output, weir_error *error)
{
    int rc = weir_npy_close(output->npy, true, error);
    output->npy = NULL;
    if (rc == WEIR_OK)
        return output->is_stdout ? copy_to_stdout(output, error) : close_file(output, output->path, true, error);
    if (!output->is_stdout)
        close_file(output, output->path, false, NULL);
    return rc;
}

/* -- all of them */

bool frame_format_of(const char *path, frame_format *format)
{
    static const struct {
        const char *extension;
        frame_format format;
    } known[] = { { ".npy", FRAME_FORMAT_NPY },
                  { ".raw", FRAME_FORMAT_RAW },
                  { ".rgb", FRAME_FORMAT_RAW },
                  { ".yuv", FRAME_FORMAT_RAW },
                  { ".png", FRAME_FORMAT_PNG } };
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *extension = strrchr(name, '.');
    *format = strcmp(path, "-") == 0 ? FRAME_FORMAT_RAW : FRAME_FORMAT_NPY;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (extension && strcasecmp(extension, known[i].extension) == 0) {
            *format = known[i].format;
            return true;
        }
    return !extension || !extension[1];
}

static void free_output(frame_output *output)
{
    output_part_forget();
    if (output->spool)
        fclose(output->spool);
    free(output);
}

/* With pictures, it is the path of the first one. */
static int check_first_path(const frame_output *output, weir_error *error)
{
    bool has_number;
    char *path =
        output->format == FRAME_FORMAT_PNG ? picture_path(output->path, 0, &has_number) : memory_copy(output->path);
    int rc = check_path(output, path, error);
    free(path);
    return rc;
}

int frame_output_open(const char *path, frame_format format, const weir_output_rules *rules, frame_output **output,
                      weir_error *error)
{
    static const weir_output_kind kinds[] = { [FRAME_FORMAT_NPY] = WEIR_OUTPUT_NPY,
                                              [FRAME_FORMAT_RAW] = WEIR_OUTPUT_RAW,
                                              [FRAME_FORMAT_PNG] = WEIR_OUTPUT_PNG };
    *output = memory_get(1, sizeof **output);
    **output = (frame_output){ .format = format, .path = path, .rules = *rules, .is_stdout = strcmp(path, "-") == 0 };
    (*output)->kind = kinds[format];
    int rc = check_first_path(*output, error);
    if (rc == WEIR_OK && format == FRAME_FORMAT_NPY)
        rc = open_npy(*output, error);
    else if (rc == WEIR_OK && format == FRAME_FORMAT_RAW && !(*output)->is_stdout)
        rc = open_file(*output, path, error);
    if (rc != WEIR_OK) {
        frame_output_abort(*output);
        *output = NULL;
    }
    return rc;
}

int frame_output_add(frame_output *output, const weir_frames *frames, weir_error *error)
{
    const weir_item item = { .data = (void *)(uintptr_t)frames, .type = WEIR_TYPE_FRAMES };
    int rc = output->format == FRAME_FORMAT_NPY   ? weir_npy_add(output->npy, &item, error)
             : output->format == FRAME_FORMAT_RAW ? add_raw(output, frames, error)
                                                  : add_pictures(output, frames, error);
    output->num_frames += frames->num_frames;
    return rc;
}

int frame_output_close(frame_output *output, weir_error *error)
{
    int rc = WEIR_OK;
    errno = 0;
    if (output->format == FRAME_FORMAT_NPY)
        rc = close_npy(output, error);
    else if (output->is_stdout)
        rc = fflush(stdout) == 0 && !ferror(stdout) ? WEIR_OK : fail(output, NULL, errno, error);
    else if (output->file.file)
        rc = close_file(output, output->path, true, error);
    free_output(output);
    return rc;
}

void frame_output_abort(frame_output *output)
{
    if (!output)
        return;
    if (output->npy)
        weir_npy_close(output->npy, false, NULL);
    if (output->file.file)
        close_file(output, output->path, false, NULL);
    free_output(output);
}
