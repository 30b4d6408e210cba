/* Marks the symbols that the shared libraries export; all others are hidden. */
#ifndef WEIR_EXPORT_H
#define WEIR_EXPORT_H

#if defined(__GNUC__)
#define WEIR_API                                  __attribute__((visibility("default")))
#define WEIR_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define WEIR_API
#define WEIR_PRINTF(format_index, first_argument)
#endif

#endif
