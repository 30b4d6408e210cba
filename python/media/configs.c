/* The tables of the structs that Python fills by the names of their fields. A new field needs one line here. */
#include <string.h>

#include "python/media/media.h"

static const char *const resizes[] = { "pad", "stretch", "crop", NULL };
static const char *const pixels[] = { "rgb24", "gray8", "yuv420p", "rgb48", "gray16", "yuv420p10", NULL };
static const char *const layouts[] = { "nhwc", "nchw", NULL };
static const char *const scalers[] = { "default", "exact", "fast", NULL };

static const weirpy_field picture_fields[] = {
    WEIRPY_FIELD(weir_picture_config, width, WEIRPY_U32),
    WEIRPY_FIELD(weir_picture_config, height, WEIRPY_U32),
    WEIRPY_FIELD(weir_picture_config, longest, WEIRPY_U32),
    WEIRPY_FIELD(weir_picture_config, shortest, WEIRPY_U32),
    WEIRPY_ENUM(weir_picture_config, resize, resizes),
    WEIRPY_ENUM(weir_picture_config, pixel, pixels),
    WEIRPY_ENUM(weir_picture_config, layout, layouts),
    WEIRPY_ENUM(weir_picture_config, scaler, scalers),
    WEIRPY_FIELD(weir_picture_config, no_autorotate, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_picture_config, filter, WEIRPY_TEXT),
    { 0 },
};

static const weirpy_field input_fields[] = {
    WEIRPY_FIELD(weir_input_config, allow, WEIRPY_U32),
    WEIRPY_FIELD(weir_input_config, io_thread, WEIRPY_I32),
    WEIRPY_FIELD(weir_input_config, io_timeout_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_input_config, ca_file, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_input_config, max_pipe_bytes, WEIRPY_U64),
    { 0 },
};

static const char *const loop_filters[] = { "all", "references", "keyframes", "none", NULL };

static const weirpy_field decoder_fields[] = {
    WEIRPY_FIELD(weir_decoder_config, max_pixels, WEIRPY_U64),
    WEIRPY_FIELD(weir_decoder_config, max_decoder_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_decoder_config, max_all_decoder_bytes, WEIRPY_U64),
    WEIRPY_ENUM(weir_decoder_config, loop_filter, loop_filters),
    WEIRPY_FIELD(weir_decoder_config, fast_decode, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_decoder_config, lowres, WEIRPY_U8),
    WEIRPY_FIELD(weir_decoder_config, threads, WEIRPY_U8),
    { 0 },
};

static const weirpy_field isolated_fields[] = {
    WEIRPY_FIELD(weir_isolated_config, program, WEIRPY_TEXT),
    WEIRPY_FIELD(weir_isolated_config, max_memory_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_isolated_config, no_sandbox, WEIRPY_BOOL),
    { 0 },
};

static const char *const samples[] = { "all",     "every", "rate",      "uniform", "random",
                                       "indices", "times", "keyframes", "clips",   NULL };
static const char *const matches[] = { "shown", "nearest", "exact", NULL };
static const char *const outsides[] = { "near", "clamp", "fail", NULL };
static const char *const origins[] = { "first", "stream", NULL };
static const char *const starts[] = { "first", "center", "random", "even", NULL };
static const char *const shorts[] = { "last", "loop", "fail", NULL };

static const weirpy_field sampling_fields[] = {
    WEIRPY_ENUM(weir_sampling, what, samples),
    WEIRPY_FIELD(weir_sampling, start_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_sampling, end_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_sampling, start_frame, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampling, end_frame, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampling, count, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, every, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, rate_num, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, rate_den, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, length_frames, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, length_ns, WEIRPY_I64),
    WEIRPY_ENUM(weir_sampling, match, matches),
    WEIRPY_ENUM(weir_sampling, outside, outsides),
    WEIRPY_FIELD(weir_sampling, tolerance_ns, WEIRPY_I64),
    WEIRPY_ENUM(weir_sampling, origin, origins),
    WEIRPY_FIELD(weir_sampling, num_clips, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, stride_frames, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampling, stride_ns, WEIRPY_I64),
    WEIRPY_ENUM(weir_sampling, clip_start, starts),
    WEIRPY_ENUM(weir_sampling, clip_short, shorts),
    { 0 },
};

static const char *const damages[] = { "tolerant", "strict", NULL };

static const weirpy_field video_fields[] = {
    WEIRPY_FIELD(weir_video_config, seed, WEIRPY_U64),
    WEIRPY_FIELD(weir_video_config, stream, WEIRPY_U32),
    WEIRPY_FIELD(weir_video_config, chunk_frames, WEIRPY_U32),
    WEIRPY_FIELD(weir_video_config, clip_items, WEIRPY_BOOL),
    WEIRPY_ENUM(weir_video_config, damage, damages),
    WEIRPY_FIELD(weir_video_config, min_share, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_video_config, max_frames, WEIRPY_U64),
    WEIRPY_FIELD(weir_video_config, max_duration_ns, WEIRPY_I64),
    WEIRPY_FIELD(weir_video_config, max_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_video_config, keep_open, WEIRPY_U32),
    { 0 },
};

int weirpy_picture_fill(weir_picture_config *picture, PyObject *values)
{
    return weirpy_fill(picture, picture_fields, values, "picture");
}

/* ---- lists of frames and times ------------------------------------------------------------------------------------ */

/* The numbers of a sequence; NULL with an exception raised. */
static int64_t *read_numbers(PyObject *sequence, size_t *num_numbers)
{
    PyObject *list = PySequence_List(sequence);
    Py_ssize_t length = list ? PyList_Size(list) : 0;
    int64_t *numbers = list ? PyMem_Malloc(sizeof *numbers * (size_t)(length + 1)) : NULL;
    if (list && !numbers)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; numbers && i < length && !PyErr_Occurred(); i++) {
        PyObject *value = PyList_GetItem(list, i);
        if (PyBool_Check(value))
            PyErr_SetString(PyExc_TypeError, "a mask of True and False chooses no frames: give their numbers");
        PyObject *number = PyErr_Occurred() ? NULL : PyNumber_Index(value);
        numbers[i] = number ? PyLong_AsLongLong(number) : 0;
        Py_XDECREF(number);
    }
    Py_XDECREF(list);
    if (PyErr_Occurred()) {
        PyMem_Free(numbers);
        return NULL;
    }
    *num_numbers = (size_t)length;
    return numbers;
}

/* The key's value is taken out of the dictionary. 1 = there is one, 0 = there is none, -1 = an exception. */
static int take_numbers(PyObject *values, const char *key, int64_t **numbers, size_t *num_numbers)
{
    PyObject *sequence = PyDict_GetItemString(values, key);
    if (!sequence)
        return 0;
    *numbers = read_numbers(sequence, num_numbers);
    if (!*numbers || PyDict_DelItemString(values, key))
        return -1;
    return 1;
}

int weirpy_sampling_fill(weir_sampling *sampling, PyObject *values, int64_t **numbers)
{
    *numbers = NULL;
    if (!values || values == Py_None)
        return 0;
    PyObject *rest = PyDict_Check(values) ? PyDict_Copy(values) : Py_NewRef(values);
    int found = 0, rc = 0;
    if (rest && PyDict_Check(rest)) {
        found = take_numbers(rest, "indices", numbers, &sampling->num_indices);
        if (found == 1) {
            sampling->what = WEIR_SAMPLE_INDICES;
            sampling->indices = *numbers;
        } else if (found == 0 && (found = take_numbers(rest, "times_ns", numbers, &sampling->num_times)) == 1) {
            sampling->what = WEIR_SAMPLE_TIMES;
            sampling->times_ns = *numbers;
        }
    }
    rc = !rest || found < 0 ? -1 : weirpy_fill(sampling, sampling_fields, rest, "sampling");
    Py_XDECREF(rest);
    return rc;
}

/* ---- all of a video config ---------------------------------------------------------------------------------------- */

int weirpy_video_fill(weirpy_video *video, PyObject *options)
{
    *video = (weirpy_video){ .config = { .picture_size = sizeof video->picture,
                                         .input_size = sizeof video->input,
                                         .decoder_size = sizeof video->decoder } };
    video->config.picture = &video->picture;
    video->config.input = &video->input;
    video->config.decoder = &video->decoder;
    if (!options || options == Py_None)
        return 0;
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options must be a dict");
        return -1;
    }
    PyObject *isolated = PyDict_GetItemString(options, "isolated");
    video->is_isolated = isolated && isolated != Py_None;
    bool is_filled =
        weirpy_fill(&video->isolated, isolated_fields, isolated, "isolated") == 0 &&
        weirpy_fill(&video->config, video_fields, PyDict_GetItemString(options, "video"), "video") == 0 &&
        weirpy_fill(&video->input, input_fields, PyDict_GetItemString(options, "input"), "input") == 0 &&
        weirpy_fill(&video->decoder, decoder_fields, PyDict_GetItemString(options, "decoder"), "decoder") == 0 &&
        weirpy_picture_fill(&video->picture, PyDict_GetItemString(options, "picture")) == 0 &&
        weirpy_sampling_fill(&video->config.sampling, PyDict_GetItemString(options, "sampling"), &video->numbers) ==
            0;
    return is_filled ? 0 : -1;
}

void weirpy_video_end(weirpy_video *video)
{
    PyMem_Free(video->numbers);
    video->numbers = NULL;
}
