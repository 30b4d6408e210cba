/*
 * The inputs of weir record --explain, gone through as often as the experiment needs: the rounds follow each other within
 * one epoch. At the end of an epoch slots wait for each other. With few files that would be the limit, and the
 * experiment would measure itself.
 */
#ifndef TOOLS_RECORD_RECORD_ROUNDS_H
#define TOOLS_RECORD_RECORD_ROUNDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <weir/files.h>

/* Shared by the sources, the experiment and the consumer. Zeroed at the start; it must outlive the pipeline. */
typedef struct record_rounds {
    /* The consumer has got a result. Until then, each round is an epoch, so that the consumer sees whether a whole round
       brings any. */
    atomic_bool has_result;
    atomic_bool is_over;  /* nothing more is needed: the first round is completed, a later one ends at once */
    atomic_uint num_ends; /* ends of epochs: those of the source that has made most of them */
} record_rounds;

/* These do what weir_source_directory() and weir_source_list() do, in rounds. A source whose round has no file ends
   for good. Several sources share the first round; after it, each one repeats its own files. */
void record_rounds_source_directory(weir_builder *builder, const weir_directory_config *config, record_rounds *rounds,
                                    const weir_stage_options *options);
void record_rounds_source_list(weir_builder *builder, const weir_list_config *config, record_rounds *rounds,
                               const weir_stage_options *options);

#endif
