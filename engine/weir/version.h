/* The version of the headers, and of the library that runs; and what declares its functions. */
#ifndef WEIR_VERSION_H
#define WEIR_VERSION_H

/* Marks the symbols that the shared libraries export; all others are hidden. */
#if defined(__GNUC__)
#define WEIR_API                                  __attribute__((visibility("default")))
#define WEIR_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define WEIR_API
#define WEIR_PRINTF(format_index, first_argument)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 3
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION       "0.3.0"

/* The library's version, "0.3.0". Static text. */
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif

#endif
