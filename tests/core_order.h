/*
 * What the recorder of a core driver sees: the order in which items pass. It says whether each merge, each stage in
 * the order of its inputs and each flush keeps the order that it promises. It has rules of its own (core_order.c).
 */
#ifndef TESTS_CORE_ORDER_H
#define TESTS_CORE_ORDER_H

#include "tests/core_driver.h"

/* Call it before driver_start(): the driver has a recorder from then on. Nothing runs in bursts, and nothing is taken ahead. */
void order_begin(core_driver *driver);

/* A task makes this item from its input, or at a flush. */
void order_made(core_driver *driver, const driver_slot *slot, uint64_t id);

/* The run is over, undisturbed: its whole order is known. */
void order_check(core_driver *driver);

#endif
