/*
 * Functions that one library of weir shows to another one, and not to programs: their headers are private. All libraries are
 * of one version and in one package, so these functions may change in every release.
 */
#ifndef COMMON_SIBLING_H
#define COMMON_SIBLING_H

#if defined(__GNUC__)
#define WEIR_SIBLING_API __attribute__((visibility("default")))
#else
#define WEIR_SIBLING_API
#endif

#endif
