/* What functions of weir write to a FILE, as a Python string. */
#include <stdlib.h>

#include <weir/status.h>

#include "python/core/core.h"

FILE *weirpy_text_begin(weirpy_text *text)
{
    *text = (weirpy_text){ 0 };
    text->file = open_memstream(&text->bytes, &text->size_bytes);
    return text->file;
}

PyObject *weirpy_text_end(weirpy_text *text, int status, const weir_error *error)
{
    weir_error own = { 0 };
    PyObject *object = NULL;
    bool is_whole = text->file && fclose(text->file) == 0;
    if (status == WEIR_OK && !is_whole)
        weir_error_set(&own, WEIR_ENOMEM, 0, "out of memory");
    else if (status != WEIR_OK && !error)
        weir_error_set(&own, status, 0, "%s", weir_status_text(status));
    if (status == WEIR_OK && is_whole)
        object = PyUnicode_DecodeUTF8(text->bytes, (Py_ssize_t)text->size_bytes, "backslashreplace");
    else
        weirpy_raise(error && status != WEIR_OK ? error : &own);
    free(text->bytes);
    return object;
}
