/* A parsed checkpoint. */
#ifndef ENGINE_RESUME_CHECKPOINT_PARSED_H
#define ENGINE_RESUME_CHECKPOINT_PARSED_H

#include <weir/checkpoint.h>
#include <weir/version.h>

typedef struct weir_done_run {
    uint64_t first, last;
} weir_done_run;

typedef struct weir_done_set {
    uint64_t epoch;
    uint64_t low; /* all items before it are done */
    weir_done_run *runs;
    size_t num_runs;
} weir_done_set;

/* A result of an item that is not done. */
typedef struct weir_done_chunk {
    uint64_t epoch, seq, path;
} weir_done_chunk;

typedef struct weir_done_source {
    weir_checkpoint_source known; /* what programs get */
    char *name, *text;
    weir_done_set *sets;
    size_t num_sets;
    weir_done_chunk *chunks;
    size_t num_chunks;
    /* Set if the run that wrote the checkpoint numbered the items anew. Earlier runs had begun the epochs before
       begun_before, and left num_left_over items of them over. */
    uint64_t begun_before, num_left_over;
} weir_done_source;

/* The last line for these bytes. */
enum { WEIR__CHECKPOINT_END = sizeof "end 0123456789abcdef\n" };
void weir__checkpoint_end(const char *text, size_t length, char end[WEIR__CHECKPOINT_END]);

#endif
