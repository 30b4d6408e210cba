/* The version of the headers, and of the library that runs. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 2
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION       "0.2.0"

/* The library's version, "0.2.0". Static text. */
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif

#endif
