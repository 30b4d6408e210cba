/*
 * The list source: paths (or URLs, or any other strings) that the program already has.
 *
 * Each item's data is a copy of the string (a char *, freed with free()), which is its label, too; in the label, the
 * secrets of a URL are hidden.
 */
#ifndef WEIR_LIST_H
#define WEIR_LIST_H

#include <stddef.h>
#include <stdint.h>

#include <weir/export.h>
#include <weir/op.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The array and its strings are copied. */
typedef struct weir_list_config {
    const char *const *paths; /* must not contain NULL */
    size_t num_paths;         /* (0 = the pipeline ends at once) */
} weir_list_config;

extern WEIR_API const weir_op weir_list_source;

/* Adds the source to the builder; see weir_builder_source(). */
static inline void weir_source_list(weir_builder *builder, const weir_list_config *config,
                                    const weir_stage_options *options)
{
    weir_builder_source(builder, &weir_list_source, config, sizeof *config, options);
}

#ifdef __cplusplus
}
#endif

#endif
