/* The pieces of weir._core. Internal; all with the GIL held. */
#ifndef PYTHON_CORE_CORE_H
#define PYTHON_CORE_CORE_H

#include "python/common/binding.h"

/* ---- interrupt.c ---- */

bool weirpy_is_interrupted(int64_t *last_ns);

/* ---- native_stage.c: a stage of C, as weirpy_core.new_stage() makes it ---- */

typedef struct weirpy_stage {
    PyObject ob_base;
    const weir_op *op;
    bool is_source;
    void *config;
    size_t config_size;
    void (*free_config)(void *config);
    PyObject *kept;
} weirpy_stage;

int weirpy_stage_ready(PyObject *module);

/* The stage; NULL = the object is none. */
weirpy_stage *weirpy_stage_of(PyObject *object);

PyObject *weirpy_stage_new(const weir_op *op, bool is_source, void *config, size_t config_size,
                           void (*free_config)(void *config), PyObject *kept);

/* ---- items.c: what items become in Python ---- */

int weirpy_register_type(const char *type, weirpy_wrap *wrap);

/* The Python object of an item of any type, which it owns from now on; or NULL with an exception raised, and the item has been
   released. */
PyObject *weirpy_item_object(weir_item *item);

/* ---- pipeline.c ---- */

int weirpy_pipeline_ready(PyObject *module);

#endif
