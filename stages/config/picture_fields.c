#include "stages/config/picture_fields.h"

#include <stdlib.h>

#include "stages/config/own_config.h"

/* A side is at most what swscale takes. */
#define PICTURE_FIELDS(FIELD, type) \
    FIELD(type, width, UNSIGNED, 0, INT16_MAX) \
    FIELD(type, height, UNSIGNED, 0, INT16_MAX) \
    FIELD(type, longest, UNSIGNED, 0, INT16_MAX) \
    FIELD(type, shortest, UNSIGNED, 0, INT16_MAX) \
    FIELD(type, resize, ENUM, "WEIR_RESIZE_…", WEIR_RESIZE_CROP) \
    FIELD(type, pixel, ENUM, "WEIR_PIXEL_…", WEIR_PIXEL_YUV420P10) \
    FIELD(type, layout, ENUM, "WEIR_LAYOUT_…", WEIR_LAYOUT_NCHW) \
    FIELD(type, scaler, ENUM, "WEIR_SCALER_…", WEIR_SCALER_FAST) \
    FIELD(type, no_autorotate, UNSIGNED, false, true) \
    FIELD(type, filter, STRING, 0, 0)

DEFINE_STRUCT_RULES(weir__picture_fields, weir_picture_config, "weir_picture_config", PICTURE_FIELDS);

int weir__picture_config_own(const weir_picture_config **picture, size_t *picture_size, weir_error *error)
{
    void *copy;
    int rc = weir__config_copy(&weir__picture_fields, *picture, *picture_size, &copy, error);
    if (rc != WEIR_OK)
        return rc;
    weir_picture_config *own = copy;
    if ((own->longest && own->shortest) || ((own->longest || own->shortest) && (own->width || own->height))) {
        weir__config_free(&weir__picture_fields, own);
        return weir_error_set(error, WEIR_EINVAL, 0,
                              "picture: set width and height, or one of width, height, longest and shortest");
    }
    if (own->filter && !own->filter[0]) {
        free((void *)(uintptr_t)own->filter);
        own->filter = NULL;
    }
    *picture = own;
    *picture_size = sizeof *own;
    return WEIR_OK;
}

void weir__picture_config_free(const weir_picture_config *picture)
{
    weir__config_free(&weir__picture_fields, (void *)(uintptr_t)picture);
}
