#include <string.h>

#include <weir/item.h>

#include "python/core/core.h"

enum { MAX_TYPES = 16 };

static struct {
    const char *type;
    weirpy_wrap *wrap;
} types[MAX_TYPES];

int weirpy_register_type(const char *type, weirpy_wrap *wrap)
{
    for (int i = 0; i < MAX_TYPES; i++) {
        if (types[i].type && strcmp(types[i].type, type) != 0)
            continue;
        types[i].type = type;
        types[i].wrap = wrap;
        return 0;
    }
    PyErr_SetString(PyExc_SystemError, "too many types of items");
    return -1;
}

static PyObject *wrap_text(weir_item *item)
{
    PyObject *text = PyUnicode_DecodeFSDefault(item->data);
    if (text)
        weir_item_release(item);
    return text;
}

static weirpy_wrap *find_wrap(const weir_item *item)
{
    for (int i = 0; item->type && i < MAX_TYPES && types[i].type; i++)
        if (strcmp(types[i].type, item->type) == 0)
            return types[i].wrap;
    return item->type && strcmp(item->type, WEIR_TYPE_TEXT) == 0 ? wrap_text : NULL;
}

PyObject *weirpy_item_object(weir_item *item)
{
    weirpy_wrap *wrap = find_wrap(item);
    PyObject *object = NULL;
    if (wrap)
        object = wrap(item);
    else
        PyErr_Format(PyExc_TypeError, "items of the type %s have no form in Python",
                     item->type ? item->type : "(not declared)");
    if (!object)
        weir_item_release(item);
    return object;
}
