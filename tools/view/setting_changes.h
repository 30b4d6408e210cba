/* The settings that differ between two recordings: of the nodes, the pool's threads and the CPU budget. */
#ifndef TOOLS_VIEW_SETTING_CHANGES_H
#define TOOLS_VIEW_SETTING_CHANGES_H

#include <stdio.h>

#include "lap_comparison.h"

/* One sentence: "Settings of B that differ: 0:1:decode.concurrency 4 instead of 2." Nothing if none are known. */
void setting_changes_say(FILE *out, const lap_comparison *c);

/* On stdout: an array of {"name": "0:1:decode", "setting": "concurrency", "a": 2, "b": 4}. */
void setting_changes_put_json(const lap_comparison *c);

#endif
