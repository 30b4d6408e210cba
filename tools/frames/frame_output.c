#include "frame_output.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/npy.h>

#include "png_picture.h"
#include "replacement.h"

struct frame_output {
    frame_format format;
    const char *path;
    bool is_stdout;
    uint64_t num_frames; /* that were added */
    weir_npy *npy;
    FILE *file;                   /* raw, and the picture that is being written */
    weir_replacement replacement; /* which `file` is, unless it is stdout */
    char *npy_folder, *npy_path;  /* npy; where it goes to stdout, a temporary file and the folder for it */
};

/* -- what is not complete */

static char *volatile part_path; /* NULL = nothing; also read by the signal handler */

/* Somebody interrupts us: half an array is of no use. */
static void remove_part_on_signal(int number)
{
    if (part_path)
        unlink(part_path);
    raise(number); /* its default action is back (SA_RESETHAND), and comes when this handler ends */
}

/* From now on `path` is removed if a signal ends the program. Copied. */
static int set_part_path(const char *path, weir_error *error)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    char *text = strdup(path);
    if (!text)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    free(part_path);
    part_path = text;
    struct sigaction before, ours = { .sa_handler = remove_part_on_signal, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
    return WEIR_OK;
}

static int fail(const frame_output *output, int code, weir_error *error)
{
    int status = code == ENOENT ? WEIR_ENOTFOUND : code == EACCES || code == EPERM ? WEIR_EACCESS : WEIR_EIO;
    return weir_error_set(error, status, code, "cannot write %s: %s", output->is_stdout ? "to stdout" : output->path,
                          strerror(code ? code : EIO));
}

/* Opens a file that will be at `path` when it is closed. */
static int open_part(frame_output *output, const char *path, weir_error *error)
{
    int code = weir_replacement_open(&output->replacement, path);
    if (code != 0)
        return fail(output, code, error);
    output->file = output->replacement.file;
    return output->replacement.path_before ? set_part_path(output->replacement.path_before, error) : WEIR_OK;
}

static int close_part(frame_output *output, weir_error *error)
{
    output->file = NULL;
    int code = weir_replacement_close(&output->replacement, true);
    return code == 0 ? WEIR_OK : fail(output, code, error);
}

/* -- raw */

static int add_raw(frame_output *output, const weir_frames *frames, weir_error *error)
{
    size_t size = (size_t)frames->num_frames * frames->frame_bytes;
    errno = 0;
    if (fwrite(frames->data, 1, size, output->file) == size && (!output->is_stdout || fflush(output->file) == 0))
        return WEIR_OK;
    return fail(output, errno, error);
}

/* -- pictures */

/* The path for the frame's number, to be freed; *has_number = the path has a place for it. */
static char *picture_path(const char *pattern, uint64_t number, bool *has_number)
{
    char *path = NULL;
    size_t size;
    const char *place = pattern;
    size_t digits = 0;
    while ((place = strchr(place, '%')) != NULL) {
        digits = strspn(place + 1, "0123456789");
        if (place[1 + digits] == 'd' && digits < 3)
            break;
        place++;
    }
    *has_number = place != NULL;
    FILE *to = open_memstream(&path, &size);
    if (!to)
        return NULL;
    if (place)
        fprintf(to, "%.*s%0*" PRIu64 "%s", (int)(place - pattern), pattern, atoi(place + 1), number,
                place + digits + 2);
    else
        fputs(pattern, to);
    return fclose(to) == 0 ? path : NULL;
}

static int add_picture(frame_output *output, const weir_frames *frames, uint32_t index, weir_error *error)
{
    if (output->is_stdout) {
        int rc = png_picture_write(frames, index, stdout, error);
        return rc == WEIR_OK && ferror(stdout) ? fail(output, errno, error) : rc;
    }
    uint64_t number = output->num_frames + index;
    bool has_number;
    char *path = picture_path(output->path, number, &has_number);
    int rc = path ? WEIR_OK : weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    if (rc == WEIR_OK && number > 0 && !has_number)
        rc = weir_error_set(error, WEIR_EINVAL, 0,
                            "%.200s: one picture, but there are more frames: put %%04d into the name, or choose one "
                            "frame with --at or --frames",
                            output->path);
    if (rc == WEIR_OK)
        rc = open_part(output, path, error);
    if (rc == WEIR_OK)
        rc = png_picture_write(frames, index, output->file, error);
    if (rc == WEIR_OK && has_number)
        rc = close_part(output, error); /* a single one waits: it may turn out not to be the only frame */
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

/* The array's size stands at its start, so it is complete before any of it goes to stdout. */
/* An array's header is written last, so that on its way to stdout it is a file in a folder that nobody can foresee. */
static int make_npy_path(frame_output *output, weir_error *error)
{
    const char *folder = getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    size_t size = 64 + strlen(folder);
    output->npy_folder = malloc(size);
    output->npy_path = malloc(size);
    if (!output->npy_folder || !output->npy_path)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    snprintf(output->npy_folder, size, "%s/weir-frames-XXXXXX", folder);
    if (!mkdtemp(output->npy_folder))
        return weir_error_set(error, WEIR_EIO, errno, "cannot make a folder in %s: %s", folder, strerror(errno));
    snprintf(output->npy_path, size, "%s/frames.npy", output->npy_folder);
    return WEIR_OK;
}

static int open_npy(frame_output *output, weir_error *error)
{
    int rc = output->is_stdout ? make_npy_path(output, error) : WEIR_OK;
    if (rc == WEIR_OK)
        rc = weir_npy_open(&output->npy, output->is_stdout ? output->npy_path : output->path, error);
    return rc == WEIR_OK ? set_part_path(weir_npy_part(output->npy), error) : rc;
}

static int copy_to_stdout(const frame_output *output, weir_error *error)
{
    static char block[1 << 16];
    FILE *file = fopen(output->npy_path, "rb");
    size_t length;
    errno = 0;
    while (file && (length = fread(block, 1, sizeof block, file)) > 0 && !ferror(stdout))
        fwrite(block, 1, length, stdout);
    bool is_whole = file && !ferror(file) && fflush(stdout) == 0 && !ferror(stdout);
    int code = errno;
    if (file)
        fclose(file);
    unlink(output->npy_path);
    return is_whole ? WEIR_OK : fail(output, code, error);
}

static int close_npy(frame_output *output, weir_error *error)
{
    int rc = weir_npy_close(output->npy, error);
    output->npy = NULL;
    return rc == WEIR_OK && output->is_stdout ? copy_to_stdout(output, error) : rc;
}

/* -- all of them */

frame_format frame_format_of(const char *path)
{
    const char *end = strrchr(path, '.');
    if (strcmp(path, "-") == 0 ||
        (end && (strcmp(end, ".raw") == 0 || strcmp(end, ".rgb") == 0 || strcmp(end, ".yuv") == 0)))
        return FRAME_FORMAT_RAW;
    return end && strcmp(end, ".png") == 0 ? FRAME_FORMAT_PNG : FRAME_FORMAT_NPY;
}

static void free_output(frame_output *output)
{
    if (output->npy_folder)
        rmdir(output->npy_folder);
    free(output->npy_folder);
    free(output->npy_path);
    free(output);
    char *path = part_path;
    part_path = NULL;
    free(path);
}

int frame_output_open(const char *path, frame_format format, frame_output **output, weir_error *error)
{
    *output = calloc(1, sizeof **output);
    if (!*output)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    **output = (frame_output){ .format = format, .path = path, .is_stdout = strcmp(path, "-") == 0 };
    int rc = WEIR_OK;
    if (format == FRAME_FORMAT_NPY)
        rc = open_npy(*output, error);
    else if (format == FRAME_FORMAT_RAW && (*output)->is_stdout)
        (*output)->file = stdout;
    else if (format == FRAME_FORMAT_RAW)
        rc = open_part(*output, path, error);
    if (rc != WEIR_OK) {
        free_output(*output);
        *output = NULL;
    }
    return rc;
}

int frame_output_add(frame_output *output, const weir_frames *frames, weir_error *error)
{
    int rc = output->format == FRAME_FORMAT_NPY   ? weir_npy_add_frames(output->npy, frames, error)
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
        rc = fflush(stdout) == 0 && !ferror(stdout) ? WEIR_OK : fail(output, errno, error);
    else if (output->file)
        rc = close_part(output, error);
    free_output(output);
    return rc;
}

void frame_output_abort(frame_output *output)
{
    if (!output)
        return;
    weir_npy_abort(output->npy);
    if (output->file && !output->is_stdout) {
        weir_replacement_close(&output->replacement, false);
    }
    free_output(output);
}
