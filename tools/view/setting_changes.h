/* The settings that differ between two recordings: of the nodes, the pool's threads and the CPU budget. */
#ifndef TOOLS_VIEW_SETTING_CHANGES_H
#define TOOLS_VIEW_SETTING_CHANGES_H

#include <stdio.h>

#include "lap_comparison.h"

/* "Settings of B that differ: 0:1:decode.concurrency 4 instead of 2.", and what only one of the two commands has: folders,
   epochs, options of decoding. Nothing if none are known. */
void setting_changes_say(FILE *out, const lap_comparison *c);

/* Whether the commands have other folders, epochs or options of decoding: then the settings are no experiment. */
bool setting_changes_other_job(const lap_comparison *c);

/* On stdout: an array of {"name": "0:1:decode", "setting": "concurrency", "a": 2, "b": 4}; a part of a command has the name
   "", the setting "command", and null for the side that lacks it. */
void setting_changes_put_json(const lap_comparison *c);

#endif
