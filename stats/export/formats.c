/* Finds a format's row, checks what it is given, and calls its functions. */
#include "stats/export/formats.h"

#include <stdlib.h>
#include <string.h>

#include <weir/struct_copy.h>

struct weir_export {
    const weir_export_format *format;
    void *state; /* the format's */
};

#define FORMAT_POINTER(name) &weir__##name##_format,
static const weir_export_format *const formats[] = { WEIR_EXPORT_FORMATS(FORMAT_POINTER) };
enum { NUM_FORMATS = sizeof formats / sizeof formats[0] };

const weir_export_format *weir_export_at(size_t index)
{
    return index < NUM_FORMATS ? formats[index] : NULL;
}

const weir_export_format *weir_export_find(const char *name)
{
    for (size_t i = 0; name && i < NUM_FORMATS; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

/* -- checks */

static const weir_export_setting no_settings[1];

static const weir_export_setting *settings_of(const weir_export_format *format)
{
    return format->settings ? format->settings : no_settings;
}

static bool has_setting(const weir_export_format *format, const weir_export_setting *wanted)
{
    for (const weir_export_setting *own = settings_of(format); own->name; own++)
        if (own->offset == wanted->offset && own->from_database == wanted->from_database)
            return true;
    return false;
}

static bool is_given(const weir_export_options *options, const weir_export_setting *setting)
{
    const void *value = (const char *)options + setting->offset;
    switch (setting->value) {
    case WEIR_EXPORT_FLAG: return *(const bool *)value;
    case WEIR_EXPORT_BYTES: return *(const uint64_t *)value != 0;
    case WEIR_EXPORT_DURATION: return *(const int64_t *)value != 0;
    }
    return false;
}

/* Settings of the other formats, that this one does not have. */
static int check_settings(const weir_export_format *format, bool from_database, const weir_export_options *options,
                          weir_error *error)
{
    for (size_t i = 0; i < NUM_FORMATS; i++)
        for (const weir_export_setting *s = settings_of(formats[i]); s->name; s++)
            if (is_given(options, s) && !(s->from_database == from_database && has_setting(format, s)))
                return weir_error_set(error, WEIR_EINVAL, 0, "%s: only for %s%s", s->name, formats[i]->name,
                                      s->from_database == from_database ? ""
                                      : s->from_database                ? " from a database"
                                                                        : " while a pipeline runs");
    return WEIR_OK;
}

static int check_format(const weir_export_format *format, bool from_database, weir_error *error)
{
    if (!format || !format->name)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    for (size_t i = 0; i < sizeof format->reserved / sizeof format->reserved[0]; i++)
        if (format->reserved[i])
            return weir_error_set(error, WEIR_EUNSUPPORTED, 0,
                                  "weir_export_format has a member that is not known in weir %s", weir_version());
    bool is_possible =
        from_database ? format->write || format->write_folder : format->open && format->observer && format->close;
    return is_possible ? WEIR_OK
                       : weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%s cannot be written %s", format->name,
                                        from_database ? "from a database" : "while a pipeline runs");
}

/* Fills *options with what the program has given. */
static int take_options(const weir_export_format *format, bool from_database, const weir_export_options *given,
                        size_t given_size, weir_export_options *options, weir_error *error)
{
    int status = check_format(format, from_database, error);
    if (status == WEIR_OK)
        status = weir_struct_copy(options, sizeof *options, given, given_size, "weir_export_options", error);
    return status == WEIR_OK ? check_settings(format, from_database, options, error) : status;
}

int weir_export_check_sized(const weir_export_format *format, bool from_database, const weir_export_options *given,
                            size_t given_size, weir_error *error)
{
    weir_export_options options;
    return take_options(format, from_database, given, given_size, &options, error);
}

/* -- live */

int weir_export_open_sized(const weir_export_format *format, const char *path, const weir_export_options *given,
                           size_t given_size, weir_export **opened, weir_error *error)
{
    weir_export_options options;
    if (!path || !opened)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    *opened = NULL;
    int status = take_options(format, false, given, given_size, &options, error);
    if (status != WEIR_OK)
        return status;
    weir_export *made = calloc(1, sizeof *made);
    if (!made)
        return weir_error_set(error, WEIR_ENOMEM, 0, "out of memory");
    made->format = format;
    status = format->open(path, &options, &made->state, error);
    if (status == WEIR_OK)
        *opened = made;
    else
        free(made);
    return status;
}

weir_observer weir_export_observer(weir_export *opened)
{
    return opened ? opened->format->observer(opened->state) : (weir_observer){ 0 };
}

void weir_export_request(weir_export *opened)
{
    if (opened && opened->format->request)
        opened->format->request(opened->state);
}

int weir_export_close(weir_export *opened, weir_error *error)
{
    if (!opened)
        return WEIR_OK;
    int status = opened->format->close(opened->state, error);
    free(opened);
    return status;
}

/* -- from a database */

int weir_export_write_sized(const weir_export_format *format, weir_recording *recording, const weir_filter *filter,
                            const weir_export_options *given, size_t given_size, FILE *out, weir_error *error)
{
    weir_export_options options;
    if (!recording || !out)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = take_options(format, true, given, given_size, &options, error);
    if (status == WEIR_OK && !format->write)
        status = weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%s can only be written to a folder", format->name);
    return status == WEIR_OK ? format->write(recording, filter, &options, out, error) : status;
}

int weir_export_write_folder_sized(const weir_export_format *format, weir_recording *recording,
                                   const weir_filter *filter, const weir_export_options *given, size_t given_size,
                                   const char *folder, weir_error *error)
{
    weir_export_options options;
    if (!recording || !folder)
        return weir_error_set(error, WEIR_EINVAL, 0, "an argument that must not be NULL is NULL");
    int status = take_options(format, true, given, given_size, &options, error);
    if (status == WEIR_OK && !format->write_folder)
        status = weir_error_set(error, WEIR_EUNSUPPORTED, 0, "%s can only be written to a file", format->name);
    return status == WEIR_OK ? format->write_folder(recording, filter, &options, folder, error) : status;
}
