/*
 * Samples of stacks, counted: which functions called which (a tree), and how many samples each lap has of each of its stacks.
 *
 * Texts, functions with their callers, and counts are stored once and have numbers from 1 on. A function's number is larger than
 * that of its caller. Functions and callers stay, counts stay until they are taken. All of it takes at most
 * WEIR_STACK_TREE_BYTES. When that is full, the counts of the lap that has had no sample for the longest time make
 * room, and are counted as lost. So are samples for which there still is no room. An all-zero tree is empty. No lock:
 * one thread at a time.
 */
#ifndef STATS_RECORD_STACK_TREE_H
#define STATS_RECORD_STACK_TREE_H

#include <stddef.h>
#include <stdint.h>

/* As much as the engine keeps of failures and events for slow observers, see weir/observer.h. */
#define WEIR_STACK_TREE_BYTES ((size_t)16 << 20)

/* A hash table of numbers; 0 = an empty place. */
typedef struct weir_stack_places {
    struct weir_stack_place *all;
    size_t count;
} weir_stack_places;

/* A function, called from another one. */
typedef struct weir_stack_call {
    uint32_t caller; /* the number of a call; 0 = the outermost */
    uint32_t text;   /* of the function */
} weir_stack_call;

/* The samples of a stack in a lap. */
typedef struct weir_stack_count {
    uint64_t lap_id;
    uint32_t name;  /* the number of a text: the stage, pool or thread */
    uint32_t stack; /* the call at its end */
    uint64_t num_samples;
    int64_t last_ns; /* weir_clock_ns() of the last one */
} weir_stack_count;

typedef struct weir_stack_tree {
    char **texts;
    weir_stack_call *calls;
    weir_stack_count *counts;
    size_t num_texts, num_calls, num_counts;
    weir_stack_places text_places, call_places, count_places;
    size_t size_bytes;
    uint64_t num_lost;
} weir_stack_tree;

/* The number of a text, in which ";" and control characters are replaced. 0 = no room. */
uint32_t weir__stack_text(weir_stack_tree *tree, const char *text);

/* The number of a call. 0 = no room, or one of its parts is 0 for that reason. */
uint32_t weir__stack_call(weir_stack_tree *tree, uint32_t caller, uint32_t text);

/* Adds samples. If a number is 0, they are lost. */
void weir__stack_add(weir_stack_tree *tree, const weir_stack_count *samples);

/* Moves the counts of these laps to *taken (to be freed). Returns how many; without memory 0, and they stay. */
size_t weir__stack_take(weir_stack_tree *tree, const uint64_t *lap_ids, size_t num_ids, weir_stack_count **taken);

/* "" for 0 */
const char *weir__stack_text_of(const weir_stack_tree *tree, uint32_t text);

void weir__stack_tree_clear(weir_stack_tree *tree);

#endif
