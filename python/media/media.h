/* Functions that the files of weir._media share. Internal. Call all of them with the GIL held. */
#ifndef PYTHON_MEDIA_MEDIA_H
#define PYTHON_MEDIA_MEDIA_H

#include "python/common/binding.h"

#include <weir/arrays.h>
#include <weir/collate.h>
#include <weir/isolated.h>
#include <weir/sampler.h>
#include <weir/stages.h>
#include <weir/video_reader.h>

/* What weir._core gives. Set when the module is loaded. */
extern const weirpy_core *weirpy_core_table;

/* ---- array.c: an array that shares the memory of a result ---- */

int weirpy_array_ready(PyObject *module);

enum { WEIRPY_MAX_DIMS = 8 };

/* What an array shows of an item. The item and the column's name live as long as the owner of the item. */
typedef struct weirpy_view {
    weir_item *item;
    weir_array_kind kind;
    const char *column; /* of the user's, instead of the array; NULL = none */
    Py_ssize_t index;   /* one element of the first dimension; WEIRPY_WHOLE = all; WEIRPY_NONE = none */
    Py_ssize_t inner[WEIRPY_MAX_DIMS]; /* then one element of each further dimension */
    int num_inner;
} weirpy_view;

#define WEIRPY_WHOLE ((Py_ssize_t)-1)
#define WEIRPY_NONE  ((Py_ssize_t)-2) /* no element of it: an empty array */

/* `owner` is the Python object that holds the item: the array keeps it. NULL with an exception raised. */
PyObject *weirpy_array_new(PyObject *owner, const weirpy_view *view);

/* For objects that are an array themselves: their buffer, their DLPack capsule and device, and their shape and type. */
int weirpy_fill_buffer(PyObject *exporter, const weirpy_view *of, Py_buffer *view, int flags);
void weirpy_release_buffer(PyObject *exporter, Py_buffer *view);
PyObject *weirpy_dlpack(const weirpy_view *of, PyObject *args, PyObject *named);
PyObject *weirpy_dlpack_device(const weirpy_view *of);
PyObject *weirpy_shape(const weirpy_view *of);
PyObject *weirpy_array_text(const char *name, const weirpy_view *of); /* for repr() */
PyObject *weirpy_dtype(const weirpy_view *of);

/* ---- result.c: Frames and Batch ---- */

int weirpy_result_ready(PyObject *module);

/* weirpy_wrap functions. */
PyObject *weirpy_wrap_frames(weir_item *item);
PyObject *weirpy_wrap_batch(weir_item *item);

/* ---- convert.c: objects as items of native stages ---- */

/* 0, or -1 with an exception raised. */
int weirpy_convert_ready(void);

/* The item of Frames or of a Batch, which has it still; NULL = the object is neither. */
const weir_item *weirpy_result_item(PyObject *object);

/* ---- source.c: where a reader's bytes come from ---- */

typedef struct weirpy_source {
    PyObject *object;              /* NULL = none */
    PyObject *path;                /* bytes; NULL = it is not a path */
    Py_buffer view;                /* obj NULL = it is not a bytes object */
    weir_file_functions functions; /* self NULL = it is not a file object */
} weirpy_source;

/* Fills *source and what of *to says where the bytes are. The source must stay where it is until it is ended. 0; or -1 with an
   exception raised, and there is nothing to end. */
int weirpy_source_begin(weirpy_source *source, PyObject *object, weir_video_source *to);
void weirpy_source_end(weirpy_source *source);

/* ---- configs.c: structs of weir from dictionaries ---- */

/* A weir_video_config with the structs that it points to. */
typedef struct weirpy_video {
    weir_video_config config;
    weir_picture_config picture;
    weir_input_config input;
    weir_decoder_config decoder;
    weir_isolated_config isolated; /* how a child process does the work, without the operation */
    bool is_isolated;              /* one does */
    int64_t *numbers;              /* the lists of the sampling */
} weirpy_video;

/* options: a dict with any of "video", "sampling", "picture", "input", "decoder" and "isolated". Each of these is a
   dict with the names of the fields of that struct. Times are in nanoseconds. 0, or -1 with an exception raised;
   weirpy_video_end() in both cases. What it points to is valid as long as the dictionaries. */
int weirpy_video_fill(weirpy_video *video, PyObject *options);
void weirpy_video_end(weirpy_video *video);

/* *numbers holds the lists of the sampling, and is to be freed with PyMem_Free(). */
int weirpy_sampling_fill(weir_sampling *sampling, PyObject *values, int64_t **numbers);
int weirpy_picture_fill(weir_picture_config *picture, PyObject *values);

/* ---- index.c: lists of texts ---- */

/* The texts of a sequence of str, or paths; None is NULL. */
typedef struct weirpy_text_list {
    PyObject *objects; /* a list that keeps what the texts are in */
    const char **texts;
    size_t length;
} weirpy_text_list;

/* 0; or -1 with an exception raised. Free the list in each case. None is an empty list, whose texts are NULL. */
int weirpy_text_list_read(weirpy_text_list *list, PyObject *sequence, bool are_paths);
void weirpy_text_list_free(weirpy_text_list *list);

/* ---- reader.c ---- */

int weirpy_reader_ready(PyObject *module);

/* ---- index.c: the index of a dataset ---- */

int weirpy_dataset_ready(PyObject *module);

/* A weir._media.Dataset of the same index, opened with the same options, that nobody else has; NULL with an exception raised. */
PyObject *weirpy_dataset_again(PyObject *dataset);

/* For a sampler. The object must live as long as the pipeline, and nobody else may use it. */
weir_sampler_items weirpy_dataset_items(PyObject *dataset);

/* What an order needs of each clip of a Dataset: its size for buckets, or the number of its file for groups. The
   arrays live as long as the capsule, which Dataset.read_sizes() or read_files() made. None fills in nothing. 0; or
   -1 with an exception raised. */
int weirpy_order_fill(PyObject *order, weir_sampler_config *config);

/* ---- stages.c: native stages for weir._core.Pipeline ---- */

int weirpy_stages_ready(PyObject *module);

#endif
