/* The settings that differ between two recordings: of the nodes, the pool's threads, the CPU budget and the command. */
#ifndef TOOLS_VIEW_SETTING_CHANGES_H
#define TOOLS_VIEW_SETTING_CHANGES_H

#include <stdio.h>

#include "tools/view/lap_comparison.h"

typedef struct setting_change {
    const char *node; /* its key; "" = of the whole run */
    /* As for weir whatif --set; "command" = a part of a command that the other side does not have. */
    const char *name;
    char *values[2];  /* NULL = this side does not have it */
    const char *zero; /* of numbers: what 0 means; NULL = words */
} setting_change;

typedef struct setting_changes {
    setting_change *all; /* those of commands last */
    size_t count;
    bool are_same;     /* all settings are known, and none differs */
    bool are_recorded; /* SPDL records none */
    bool is_other_job; /* the commands have other folders, epochs or options of decoding: this is not an experiment */
} setting_changes;

/* Valid as long as the comparison is. */
setting_changes setting_changes_find(const lap_comparison *c);
void setting_changes_free(setting_changes *changes);

/* "Settings of B that differ: 0:1:decode.concurrency 4 instead of 2.", and what only one of the two commands has. Nothing
   if none are known. */
void setting_changes_say(FILE *out, const setting_changes *changes);

/* On stdout: an array of {"name": "0:1:decode", "setting": "concurrency", "a": 2, "b": 4}. */
void setting_changes_put_json(const setting_changes *changes);

#endif
