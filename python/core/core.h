/* The pieces of weir._core. Internal; all with the GIL held. */
#ifndef PYTHON_CORE_CORE_H
#define PYTHON_CORE_CORE_H

#include <stdio.h>

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

/* ---- span.c: weir.span() and its kind ---- */

int weirpy_span_ready(PyObject *module);

/* ---- text.c: what functions of weir write to a FILE, as a string ---- */

typedef struct weirpy_text {
    FILE *file;
    char *bytes;
    size_t size_bytes;
} weirpy_text;

/* Begins one. NULL = out of memory; end it even then. */
FILE *weirpy_text_begin(weirpy_text *text);

/* The string that was written; or NULL with an exception raised if the status is not WEIR_OK: the error, or if that is NULL the
   status. */
PyObject *weirpy_text_end(weirpy_text *text, int status, const weir_error *error);

/* ---- watch.c: the verdict on any loop ---- */

int weirpy_watch_ready(PyObject *module);

/* ---- stats.c, verdict.c: recordings ---- */

int weirpy_stats_ready(PyObject *module);
int weirpy_verdict_ready(PyObject *module);

/* From a dict with the names of its fields. -1 with an exception raised. */
struct weir_filter;
int weirpy_fill_filter(struct weir_filter *filter, PyObject *values);

/* ---- log.c: lines of the log go to Python's logging ---- */

int weirpy_log_ready(PyObject *module);

/* Lines that wait go to the logger. Call it where Python's caller waits for a result anyway; an exception that is set stays. */
void weirpy_drain_log(void);

/* ---- pipeline.c ---- */

int weirpy_pipeline_ready(PyObject *module);

#endif
