/*
 * What each field of a message may say. The other side may be a decoder that a file has broken. So a receiver takes
 * no struct as it comes. It takes each field whose rule holds, and refuses the message otherwise. A field without a
 * rule does not compile (field_rules.h). Internal. Pure; any thread.
 */
#ifndef STAGES_ISOLATE_MESSAGE_RULES_H
#define STAGES_ISOLATE_MESSAGE_RULES_H

#include "stages/config/field_rules.h"

extern const struct_rules weir__head_rules, weir__cost_rules, weir__window_rules, weir__frames_rules,
    weir__audio_rules, weir__entry_rules, weir__info_rules, weir__frames_size_rules, weir__times_rules;

#endif
