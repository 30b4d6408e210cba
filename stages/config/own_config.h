/*
 * The copy of a config that a program gives by pointer and size. Internal. Any thread.
 *
 * Each public config has a file here with its table of fields and two functions. …_own() replaces the program's
 * pointer by one to a checked copy, in which defaults stand for 0. …_free() frees that copy.
 */
#ifndef STAGES_CONFIG_OWN_CONFIG_H
#define STAGES_CONFIG_OWN_CONFIG_H

#include <stddef.h>

#include <weir/status.h>

#include "stages/config/field_rules.h"

/* The program's struct (NULL = all of it is 0) with the size of ours, its numbers checked, its strings copied. WEIR_OK, and *own
   is to be freed with weir__config_free(); or the failure with *error filled. */
int weir__config_copy(const struct_rules *rules, const void *given, size_t given_size, void **own, weir_error *error);

/* NULL is fine. */
void weir__config_free(const struct_rules *rules, void *own);

#endif
