/*
 * The stages of C as weir._core.Stage objects: sources (files of a dataset, a list, the sources of decode_many), video, and
 * collate. A stage object owns its config; what that points to lives as long as the object.
 */
#include <stdlib.h>

#include <weir/files.h>
#include <weir/item.h>
#include <weir/sampler.h>

#include "python/media/media.h"

/* ---- many videos, in memory or at paths --------------------------------------------------------------------------- */

/* Immutable once it is made: run() may be on any thread. */
typedef struct many_source {
    PyObject *path; /* bytes; NULL = it has a view */
    char *text;     /* of the path */
    Py_buffer view; /* obj NULL = it is a path */
} many_source;

typedef struct many_sources {
    size_t num_sources;
    many_source sources[];
} many_sources;

static int put_bytes(const many_source *source, weir_item *out, weir_task *task)
{
    char name[32];
    snprintf(name, sizeof name, "sources[%llu]", (unsigned long long)weir_task_seq(task));
    weir_bytes *bytes = weir_bytes_wrap(source->view.buf, (size_t)source->view.len, NULL, NULL, NULL);
    if (!bytes || weir_task_set_label(task, name) != WEIR_OK) {
        weir_bytes_free(bytes);
        return weir_task_fail(task, WEIR_ENOMEM, 0, "out of memory");
    }
    *out = (weir_item){ .data = bytes, .release = weir_bytes_release, .type = WEIR_TYPE_BYTES };
    return WEIR_OK;
}

static int run_many(void *worker, weir_item *in, weir_item *out, weir_task *task)
{
    const many_sources *many = weir_task_config(task);
    uint64_t number = weir_task_seq(task);
    (void)worker, (void)in;
    if (number >= many->num_sources)
        return WEIR_EOF;
    const many_source *source = &many->sources[number];
    if (!source->path)
        return put_bytes(source, out, task);
    *out = (weir_item){ .data = source->text, .type = WEIR_TYPE_TEXT, .label = source->text };
    return WEIR_OK;
}

static const weir_op many_op = { .name = "sources", .makes = WEIR_TYPE_TEXT " " WEIR_TYPE_BYTES, .run = run_many };

static void free_many(void *config)
{
    many_sources *many = config;
    for (size_t i = 0; i < many->num_sources; i++) {
        Py_XDECREF(many->sources[i].path);
        if (many->sources[i].view.obj)
            PyBuffer_Release(&many->sources[i].view);
    }
}

static int read_many_source(many_source *source, PyObject *object)
{
    if (PyUnicode_Check(object) || PyObject_HasAttrString(object, "__fspath__"))
        return PyUnicode_FSConverter(object, &source->path) && (source->text = PyBytes_AsString(source->path)) ? 0
                                                                                                               : -1;
    if (PyObject_CheckBuffer(object))
        return PyObject_GetBuffer(object, &source->view, PyBUF_SIMPLE);
    PyErr_Format(PyExc_TypeError, "a source is a path, a URL or bytes, not %R", object);
    return -1;
}

static PyObject *many_stage(PyObject *self, PyObject *sources)
{
    (void)self;
    PyObject *tuple = PySequence_Tuple(sources);
    size_t length = tuple ? (size_t)PyTuple_Size(tuple) : 0;
    many_sources *many = tuple ? calloc(1, sizeof *many + length * sizeof many->sources[0]) : NULL;
    if (tuple && !many)
        PyErr_NoMemory();
    bool is_read = many != NULL;
    for (size_t i = 0; is_read && i < length; i++) {
        is_read = read_many_source(&many->sources[i], PyTuple_GetItem(tuple, (Py_ssize_t)i)) == 0;
        many->num_sources += is_read;
    }
    Py_XDECREF(tuple);
    if (is_read)
        return weirpy_core_table->new_stage(&many_op, true, many, 0, free_many, NULL);
    if (many)
        free_many(many);
    free(many);
    return NULL;
}

/* ---- video -------------------------------------------------------------------------------------------------------- */

static void free_video(void *config)
{
    weirpy_video_end(config);
}

/* The same stage in child processes. */
typedef struct isolated_video {
    weir_isolated_config config;
    weirpy_video video;
} isolated_video;

static void free_isolated(void *config)
{
    weirpy_video_end(&((isolated_video *)config)->video);
}

/* Takes over what *filled points to. */
static PyObject *isolated_stage(weirpy_video *filled, PyObject *options)
{
    isolated_video *stage = calloc(1, sizeof *stage);
    if (!stage) {
        weirpy_video_end(filled);
        return PyErr_NoMemory();
    }
    stage->video = *filled;
    stage->video.config.picture = &stage->video.picture;
    stage->video.config.input = &stage->video.input;
    stage->video.config.decoder = &stage->video.decoder;
    stage->config = stage->video.isolated;
    stage->config.op = &weir_video_decode;
    stage->config.config = &stage->video.config;
    stage->config.config_size = sizeof stage->video.config;
    return weirpy_core_table->new_stage(&weir_isolated, false, stage, sizeof stage->config, free_isolated, options);
}

static PyObject *video_stage(PyObject *self, PyObject *options)
{
    (void)self;
    weirpy_video *video = calloc(1, sizeof *video);
    if (!video)
        return PyErr_NoMemory();
    int rc = weirpy_video_fill(video, options);
    if (rc == 0 && !video->is_isolated)
        return weirpy_core_table->new_stage(&weir_video_decode, false, video, sizeof video->config, free_video,
                                            options);
    if (rc == 0) {
        PyObject *stage = isolated_stage(video, options);
        free(video);
        return stage;
    }
    weirpy_video_end(video);
    free(video);
    return NULL;
}

/* ---- collate ------------------------------------------------------------------------------------------------------ */

static const char *const dtypes[] = { "uint8", "float16", "bfloat16", "float32", "uint16", NULL };
static const char *const layouts[] = { "THWC", "TCHW", "CTHW", NULL };
static const char *const crops[] = { "center", "random", "resized", NULL };

static const weirpy_field collate_fields[] = {
    WEIRPY_FIELD(weir_collate_config, num_items, WEIRPY_SIZE),
    WEIRPY_FIELD(weir_collate_config, max_frames, WEIRPY_U64),
    WEIRPY_FIELD(weir_collate_config, max_bytes, WEIRPY_U64),
    WEIRPY_FIELD(weir_collate_config, drop_last, WEIRPY_BOOL),
    WEIRPY_ENUM(weir_collate_config, dtype, dtypes),
    WEIRPY_ENUM(weir_collate_config, layout, layouts),
    { .name = "mean", .offset = offsetof(weir_collate_config, mean), .kind = WEIRPY_DOUBLES, .count = 3 },
    { .name = "std", .offset = offsetof(weir_collate_config, std), .kind = WEIRPY_DOUBLES, .count = 3 },
    WEIRPY_FIELD(weir_collate_config, crop_width, WEIRPY_U32),
    WEIRPY_FIELD(weir_collate_config, crop_height, WEIRPY_U32),
    WEIRPY_ENUM(weir_collate_config, crop, crops),
    WEIRPY_FIELD(weir_collate_config, min_area, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_collate_config, max_area, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_collate_config, min_aspect, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_collate_config, max_aspect, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_collate_config, flip, WEIRPY_DOUBLE),
    WEIRPY_FIELD(weir_collate_config, seed, WEIRPY_U64),
    { 0 },
};

static PyObject *collate_stage(PyObject *self, PyObject *values)
{
    (void)self;
    weir_collate_config *config = calloc(1, sizeof *config);
    if (!config)
        return PyErr_NoMemory();
    if (weirpy_fill(config, collate_fields, values, "batch") == 0)
        return weirpy_core_table->new_stage(&weir_collate, false, config, sizeof *config, NULL, values);
    free(config);
    return NULL;
}

/* ---- the items of a dataset --------------------------------------------------------------------------------------- */

static const char *const orders[] = { "listed", "shuffled", "blocks", "buckets", "groups", NULL };
static const char *const shares[] = { "exact", "pad", "drop", NULL };
static const char *const failed_words[] = { "default", "replace", "mask", "skip", NULL };

static const weirpy_field sampler_fields[] = {
    WEIRPY_FIELD(weir_sampler_source_config, dataset, WEIRPY_U64),
    WEIRPY_ENUM(weir_sampler_source_config, failed, failed_words),
    WEIRPY_ENUM(weir_sampler_source_config, sampler.order, orders),
    WEIRPY_ENUM(weir_sampler_source_config, sampler.share, shares),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.num_items, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.seed, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.block_items, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.num_buckets, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.replacement, WEIRPY_BOOL),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.num_samples, WEIRPY_U64),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.world.rank, WEIRPY_U32),
    WEIRPY_FIELD(weir_sampler_source_config, sampler.world.size, WEIRPY_U32),
    { 0 },
};

static PyObject *sampler_stage(PyObject *self, PyObject *args)
{
    PyObject *dataset, *values, *order;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &dataset, &values, &order))
        return NULL;
    weir_sampler_source_config *config = calloc(1, sizeof *config);
    PyObject *own = config ? weirpy_dataset_again(dataset) : PyErr_NoMemory();
    PyObject *kept = own ? PyTuple_Pack(2, own, order) : NULL;
    PyObject *stage = NULL;
    if (config && kept && weirpy_fill(config, sampler_fields, values, "sampler") == 0 &&
        weirpy_order_fill(order, &config->sampler) == 0) {
        config->items = weirpy_dataset_items(own);
        stage = weirpy_core_table->new_stage(&weir_sampler_source, true, config, sizeof *config, NULL, kept);
        config = NULL; /* new_stage has taken it */
    }
    Py_XDECREF(kept);
    Py_XDECREF(own);
    free(config);
    return stage;
}

/* ---- how many batches a rank gets --------------------------------------------------------------------------------- */

/* The sampler, where the checkpoints were made; NULL with an exception raised. */
static weir_sampler *make_sampler(const weir_sampler_config *config, PyObject *resume)
{
    weir_sampler *sampler = NULL;
    weir_error error = { 0 };
    weirpy_text_list texts;
    int rc = weirpy_text_list_read(&texts, resume, false);
    if (rc) {
        weirpy_text_list_free(&texts);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    rc = weir_sampler_new(config, &sampler, &error);
    if (rc == WEIR_OK && texts.length)
        rc = weir_sampler_resume(sampler, texts.texts, texts.length, 0, &error);
    Py_END_ALLOW_THREADS;
    weirpy_text_list_free(&texts);
    if (rc == WEIR_OK)
        return sampler;
    weir_sampler_free(sampler);
    weirpy_raise(&error);
    return NULL;
}

static PyObject *count_left(PyObject *self, PyObject *args)
{
    PyObject *values, *order, *resume;
    weir_sampler_source_config config = { 0 };
    unsigned long long batch_items;
    int drop_last;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO!Kp", &values, &order, &PyTuple_Type, &resume, &batch_items, &drop_last) ||
        weirpy_fill(&config, sampler_fields, values, "sampler") || weirpy_order_fill(order, &config.sampler))
        return NULL;
    weir_sampler *sampler = make_sampler(&config.sampler, resume);
    if (!sampler)
        return NULL;
    uint64_t num_batches = weir_sampler_batches_left(sampler, batch_items, drop_last);
    uint64_t num_items = weir_sampler_left(sampler);
    weir_sampler_free(sampler);
    return Py_BuildValue("KK", (unsigned long long)num_batches, (unsigned long long)num_items);
}

static PyObject *find_world(PyObject *self, PyObject *unused)
{
    weir_world world;
    const char *launcher = "";
    weir_error error = { 0 };
    (void)self, (void)unused;
    if (weir_world_find(&world, &launcher, &error) != WEIR_OK)
        return weirpy_raise(&error);
    return Py_BuildValue("IIIs", world.rank, world.size, world.local_rank, launcher);
}

/* ---- the functions ------------------------------------------------------------------------------------------------ */

static PyMethodDef functions[] = {
    { "many_stage", many_stage, METH_O, "many_stage(sources): a source of paths, URLs and bytes, in their order." },
    { "video_stage", video_stage, METH_O, "video_stage(options): decodes; options as those of Reader." },
    { "collate_stage", collate_stage, METH_O, "collate_stage(values): makes batches of decoded clips." },
    { "sampler_stage", sampler_stage, METH_VARARGS,
      "sampler_stage(dataset, values, order): a source of the dataset's clips, drawn by the sampler." },
    { "count_left", count_left, METH_VARARGS,
      "count_left(values, order, resume, batch_items, drop_last): batches and items of this rank's epoch." },
    { "find_world", find_world, METH_NOARGS,
      "find_world(): rank, number of ranks, local rank and launcher, from the launcher's environment." },
    { NULL, NULL, 0, NULL },
};

int weirpy_stages_ready(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
