/* The states of slots, their lists, and what a pool may pick. */
#ifndef ENGINE_CORE_SLOTS_H
#define ENGINE_CORE_SLOTS_H

#include "engine/core/core.h"

void weir__list_append(weir__slot_list *list, weir__core_slot *slot);
weir__core_slot *weir__list_take_first(weir__slot_list *list);

void weir__slot_enter(weir__core_slot *slot, slot_state state);
void weir__slot_enter_idle(weir__core_slot *slot);
weir__core_slot *weir__slot_take_idle(weir__core_node *node);

/* The node ends: from now on the time of its idle slots is TIME_ENDED. Before its state changes. */
void weir__slots_end_idle(weir__core_node *node);

/* From now on the time of its idle slots, and of `taken` (NULL = none), which was idle until now, is that of this place. */
void weir__node_enter_epoch(weir__core_node *node, epoch_place place, weir__core_slot *taken);

/* SLOT_READY: a thread of the node's pool may pick it, as soon as the stage's start hooks have run. */
void weir__slot_make_ready(weir__core_slot *slot);

/* Releases the slots that waited for the start hooks. */
void weir__slots_open_gate(weir__core_node *node);

#endif
