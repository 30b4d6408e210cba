/* The states of slots, their lists, and what the threads of a pool may pick. All functions need the lock. */
#ifndef WEIR_SLOTS_H
#define WEIR_SLOTS_H

#include "state.h"

void weir_list_append(weir_slot_list *list, weir_slot *slot);
weir_slot *weir_list_take_first(weir_slot_list *list);

void weir_slot_enter_locked(weir_slot *slot, slot_state state);
void weir_slot_enter_idle_locked(weir_slot *slot);
weir_slot *weir_slot_take_idle_locked(weir_node *node);

/* SLOT_READY: a thread of the node's pool may pick it, as soon as the stage's start hooks have run. */
void weir_slot_make_ready_locked(weir_slot *slot);

/* Releases the slots that waited for the start hooks. */
void weir_slots_open_gate_locked(weir_node *node);

/* Takes the next slot to run: READY becomes RUNNING. NULL = no slot is ready. */
weir_slot *weir_slot_pick_locked(weir_pool *pool);

#endif
